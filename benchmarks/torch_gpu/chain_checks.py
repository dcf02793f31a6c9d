"""Checks of chains and of the layer: kernels against plain torch in float64."""

from __future__ import annotations

import math

from benchmarks.torch_gpu.run import SHAPES, Run, apart, chain_batch, relative, twin


def check_chain(B, T, L, spread, bio=False, hole=False, **options):
    """Sums, best labels and the fused loss."""
    import torch

    from partwise.torch import operators
    from partwise.torch.cuda import chain

    tensors, lengths, sizes = chain_batch(B, T, L, spread, **options)
    if bio:  # I-x only after B-x or I-x
        K = (L - 1) // 2
        for k in range(K):
            forbidden = [s for s in range(L + 1) if s not in (1 + k, 1 + K + k)]
            tensors[2][:, forbidden, 1 + K + k] = -math.inf
    if hole:
        tensors[0][0] = -math.inf  # nothing is possible for the first sequence
        tensors[0][T + 1 :: 3, 0] = -math.inf
    wanted = twin(operators.CHAIN, tensors, lengths, sizes)
    found = operators.OPERATORS["chain"].sums(*tensors, lengths, sizes)
    half = tensors[0].dtype in (torch.float16, torch.bfloat16)
    exact = 1e-6 if not half else 1e-5
    errors = {
        "log Z": (relative(found[0], wanted[0]), exact),
        "labels": (apart(found[1], wanted[1]), 5e-5),
        "transitions": (relative(found[2], wanted[2]), 5e-5 if L <= 128 else 1e-4),
        "stop": (apart(found[3], wanted[3]), 5e-5),
    }
    values, outputs = operators.OPERATORS["chain"].best(*tensors, lengths, sizes, T)
    sharp = [t.double() * 1e4 if t.is_floating_point() else t for t in tensors]
    top = operators.CHAIN.log_partition(operators._expanded(operators.CHAIN, sharp, lengths), lengths, sizes) / 1e4
    errors["best"] = (relative(values, top), 1e-5)
    if not options.get("each") and not bio and not hole and not half:
        rows = tensors[0].shape[0]
        gold = torch.randint(0, L, (rows,), device="cuda")
        weights = torch.rand(B, device="cuda")
        given = [tensors[0], tensors[2][0, :L], tensors[2][0, L], tensors[3][0]]
        mine = [g.detach().clone().requires_grad_() for g in given]
        values = chain.chain_loss(*mine, gold, tensors[1], lengths.to("cuda", torch.int32), T)[0]
        gradients = torch.autograd.grad((values * weights).sum(), mine)
        twins = [g.detach().double().requires_grad_() for g in given]
        score = path_scores(*twins, gold, tensors[1], lengths.to("cuda"), T)
        of_gold = torch.autograd.grad((score * weights).sum(), twins)
        by_row = operators._per_example(operators.CHAIN, 0, weights.double(), wanted[1], tensors, sizes) if rows else 0
        of_z = [
            wanted[1] * by_row,
            (wanted[2][:, :L] * weights[:, None, None]).sum(0),
            (wanted[2][:, L] * weights[:, None]).sum(0),
            (wanted[3] * weights[:, None]).sum(0),
        ]
        # both are differences: what is right to seven digits are the numbers that are subtracted
        sizes_of = torch.maximum(wanted[0].abs(), score.detach().abs()).clamp(min=1)
        errors["loss"] = (float(((values - (wanted[0] - score.detach())).abs() / sizes_of).max()), 1e-6)
        of_loss = [
            float(((g - (z - p)).abs() / (z.abs() + p.abs()).clamp(min=1)).max()) if g.numel() else 0.0
            for g, z, p in zip(gradients, of_z, of_gold, strict=True)
        ]
        errors["its gradient"] = (max(of_loss), 5e-5)
    return errors


def path_scores(emissions, transitions, start, stop, gold, begins, lengths, T):
    """Scores of gold labels in plain torch."""
    import torch

    place = torch.arange(T, device="cuda")
    inside = place < lengths[:, None]
    rows = torch.where(inside, begins[:, None] + place, 0)
    y = gold[rows]
    total = torch.where(inside, emissions[rows].gather(2, y[..., None])[..., 0], 0.0).sum(1)
    total = total + torch.where(inside[:, 1:], transitions[y[:, :-1], y[:, 1:]], 0.0).sum(1)
    last = y.gather(1, (lengths - 1).clamp(min=0)[:, None])[:, 0]
    return total + torch.where(lengths > 0, start[y[:, 0]] + stop[last], 0.0)


def check_twice(B, T, L):
    """Two runs agree bit by bit."""
    import torch

    from partwise.torch.cuda import chain

    tensors, lengths, sizes = chain_batch(B, T, L, 3.0)
    runs = [chain.sums(tensors, lengths, sizes) for _ in range(2)]
    return {"differences": (float(sum((a != b).sum() for a, b in zip(*runs, strict=True))), 0.0)} | {
        "nan": (float(torch.stack([a.isnan().any() for a in runs[0]]).any()), 0.0)
    }


def check_layer():
    """The layer on the device against the layer on the CPU in float64, with ragged masks, constraints, compiled and captured."""
    import torch

    from partwise.torch import CRF, reference_only

    torch.manual_seed(0)
    layer = CRF(9, batch_first=True, constraints=[(1, 2), (None, 3)])
    emissions, tags = torch.randn(6, 17, 9), torch.zeros(6, 17, dtype=torch.long)
    lengths = torch.tensor([17, 1, 5, 9, 12, 3])
    mask = torch.arange(17) < lengths[:, None]
    ours = CRF(9, batch_first=True, constraints=[(1, 2), (None, 3)])
    ours.load_state_dict(layer.state_dict())
    ours = ours.cuda()
    on = emissions.cuda().requires_grad_()
    value = ours(on, tags.cuda(), mask.cuda(), reduction="token_mean")
    gradient = torch.autograd.grad(value, [on, ours.transitions, ours.start_transitions])
    layer = layer.double()
    off = emissions.double().requires_grad_()
    with reference_only():
        wanted = layer(off, tags, mask, reduction="token_mean")
        gradients = torch.autograd.grad(wanted, [off, layer.transitions, layer.start_transitions])
    errors = {"value": (apart(value.cpu(), wanted), 1e-6)}
    errors["gradient"] = (max(apart(a.cpu(), b) for a, b in zip(gradient, gradients, strict=True)), 5e-6)
    compiled = torch.compile(lambda e: ours(e * 1.0, tags.cuda(), None, reduction="mean"), fullgraph=True)
    plain = ours(on, tags.cuda(), None, reduction="mean")
    errors["compiled"] = (relative(compiled(on), plain), 1e-6)
    return errors


def both(layer, emissions, tags, mask):
    """Loss, gradients and labels of the layer on the device; and the largest difference to the same in float64 in plain torch."""
    import copy

    import torch

    from partwise.torch import reference_only

    on = emissions.detach().requires_grad_()
    value = layer(on, tags, mask, reduction="sum")
    gradients = torch.autograd.grad(value, [on, *layer.parameters()])
    twin_of, doubled = copy.deepcopy(layer).double(), emissions.detach().double().requires_grad_()
    with reference_only():
        wanted = twin_of(doubled, tags, mask, reduction="sum")
        of_wanted = torch.autograd.grad(wanted, [doubled, *twin_of.parameters()])
    apart_by = max(relative(a, b) for a, b in zip(gradients, of_wanted, strict=True))
    return relative(value, wanted), apart_by, layer.decode(emissions, mask)


def check_inputs():
    """Rows without tokens, half precision at its end, memory in any order, empty batches, one label."""
    import torch

    from partwise.torch import CRF

    torch.manual_seed(0)
    errors = {}
    layer = CRF(7, batch_first=True).cuda()
    emissions, tags = torch.randn(4, 9, 7, device="cuda"), torch.randint(0, 7, (4, 9), device="cuda")
    mask = torch.arange(9, device="cuda") < torch.tensor([9, 0, 3, 0], device="cuda")[:, None]
    padded = torch.where(mask, tags, -100)
    value, gradient, labels = both(layer, emissions, tags, mask)
    same = layer(emissions, padded, mask, reduction="none") - layer(emissions, tags, mask, reduction="none")
    errors["no tokens"] = (max(value, float(list(map(len, labels)) != [9, 0, 3, 0]), float(same.abs().max())), 1e-6)
    errors["its gradient"] = (gradient, 5e-5)
    large = (torch.randn(4, 9, 7, device="cuda") * 3e4).clamp(-65000, 65000).half()
    value, gradient, _ = both(layer, large, tags, None)
    errors["half"], errors["of half"] = (value, 1e-5), (gradient, 1e-2)  # the gradient is half, too
    errors["infinite in half"] = (float(not torch.isfinite(layer(large, tags)).all()), 0.0)
    views = {
        "transposed": emissions.transpose(0, 1).contiguous().transpose(0, 1),
        "strided": torch.randn(4, 18, 14, device="cuda")[:, ::2, ::2],
        "expanded": emissions[:1].expand(4, 9, 7),
    }
    for name, view in views.items():
        plain = view.contiguous()
        errors[name] = (float((layer(view, tags, reduction="none") - layer(plain, tags, reduction="none")).abs().max()), 0.0)
        errors[name + ", labels"] = (float(layer.decode(view) != layer.decode(plain)), 0.0)
    for B, T in ((0, 9), (4, 0), (0, 0)):
        empty = torch.zeros(B, T, 7, device="cuda", requires_grad=True)
        value = layer(empty, torch.zeros(B, T, dtype=torch.long, device="cuda"))
        value.backward()
        errors[f"{B} of {T}"] = (float(value.detach().abs()) + float(layer.decode(empty.detach()) != [[]] * B), 0.0)
    one = CRF(1, batch_first=True).cuda()
    value, gradient, labels = both(one, emissions[..., :1], tags * 0, None)
    errors["one label"] = (max(value, gradient, float(labels != [[0] * 9] * 4)), 1e-5)
    return errors


def check_many_labels(L):
    """More labels than the kernels have registers for: plain torch, right all the same."""
    import torch

    from partwise.torch import CRF

    torch.manual_seed(0)
    layer = CRF(L, batch_first=True).cuda()
    emissions, tags = torch.randn(3, 6, L, device="cuda"), torch.randint(0, L, (3, 6), device="cuda")
    value, gradient, labels = both(layer, emissions, tags, None)
    start, stop, w = (t.detach().double() for t in (layer.start_transitions, layer.end_transitions, layer.transitions))
    scores = torch.stack(
        [emissions[:, t].double().gather(1, torch.tensor(labels, device="cuda")[:, t, None])[:, 0] for t in range(6)]
    )
    y = torch.tensor(labels, device="cuda")
    own = scores.sum(0) + start[y[:, 0]] + stop[y[:, -1]] + w[y[:, :-1], y[:, 1:]].sum(1)
    top = start + emissions[:, 0].double()
    for t in range(1, 6):
        top = (top[:, :, None] + w).amax(1) + emissions[:, t].double()
    return {"value": (value, 1e-6), "gradient": (gradient, 5e-5), "best": (relative(own, (top + stop).amax(1)), 1e-6)}


def check_gradients():
    """Each input alone, gradcheck in float64, gradients of gradients."""
    import torch

    from partwise.torch import CRF, reference_only
    from partwise.torch.cuda import chain

    tensors, lengths, _ = chain_batch(4, 6, 5, 1.0, full=True)
    given = [tensors[0], tensors[2][0, :5].clone(), tensors[2][0, 5].clone(), tensors[3][0].clone()]
    rest = (torch.randint(0, 5, (24,), device="cuda"), tensors[1], lengths.to("cuda", torch.int32), 6)
    together = [t.clone().requires_grad_() for t in given]
    of_all = torch.autograd.grad(chain.chain_loss(*together, *rest)[0].sum(), together)
    errors = {}
    for k, name in enumerate(("emissions", "transitions", "start", "stop")):
        alone = [t.clone().requires_grad_(j == k) for j, t in enumerate(given)]
        (found,) = torch.autograd.grad(chain.chain_loss(*alone, *rest)[0].sum(), alone[k : k + 1])
        errors[name] = (apart(found, of_all[k]), 0.0)
    layer = CRF(3, batch_first=True).cuda().double()
    emissions, tags = (
        torch.randn(2, 4, 3, device="cuda", dtype=torch.float64, requires_grad=True),
        torch.zeros(2, 4, dtype=torch.long),
    )
    tags = tags.cuda()
    errors["gradcheck"] = (1.0 - torch.autograd.gradcheck(lambda e: layer(e, tags), (emissions,), raise_exception=False), 0.0)
    errors["gradgradcheck"] = (
        1.0 - torch.autograd.gradgradcheck(lambda e: layer(e, tags), (emissions,), raise_exception=False),
        0.0,
    )
    layer, emissions = layer.float(), emissions.detach().float().requires_grad_()
    (gradient,) = torch.autograd.grad(layer(emissions, tags), emissions, create_graph=True)
    errors["twice"] = (refused(lambda: gradient.square().sum().backward(), "reference_only"), 0.0)
    with reference_only():
        (gradient,) = torch.autograd.grad(layer(emissions, tags), emissions, create_graph=True)
        gradient.square().sum().backward()
    errors["twice, plain"] = (float(not torch.isfinite(emissions.grad).all()), 0.0)
    return errors


def refused(work, *words) -> float:
    """0 if an error says these words, else 1."""
    try:
        work()
    except Exception as error:
        return float(not all(word in str(error) for word in words))
    return 1.0


def check_refused():
    """Errors name the place, and come before a kernel runs."""
    import torch

    from partwise.torch import CRF

    layer = CRF(5, batch_first=True).cuda()
    emissions, tags = torch.randn(3, 4, 5, device="cuda"), torch.zeros(3, 4, dtype=torch.long, device="cuda")
    wrong, hole = tags.clone(), torch.ones(3, 4, dtype=torch.bool, device="cuda")
    wrong[2, 3], hole[1, 1] = 5, False
    found = {
        "tags": refused(lambda: layer(emissions, wrong), "sequence 2", "token 3"),
        "mask": refused(lambda: layer(emissions, tags, hole), "row 1"),
        "mask in decode": refused(lambda: layer.decode(emissions, hole), "row 1"),
        "shape": refused(lambda: layer(emissions, tags[:2]), "(2, 4)"),
        "labels": refused(lambda: layer(emissions[..., :4], tags), "5", "4"),
        "device": refused(lambda: layer(emissions, tags.cpu()), "cpu", "cuda"),
        "vmap": refused(lambda: torch.vmap(lambda e: layer(e[None], tags[:1]))(emissions), "vmap"),
        "reduction": refused(lambda: layer(emissions, tags, reduction="some"), "some"),
    }
    return {k: (v, 0.0) for k, v in found.items()}


def check_repeats():
    """Deterministic mode, which also fills new memory with NaN: two runs of everything agree bit by bit."""
    import torch

    from partwise.torch import CRF, operators

    torch.manual_seed(0)
    layer = CRF(9, batch_first=True).cuda()
    emissions, tags = torch.randn(40, 30, 9, device="cuda", requires_grad=True), torch.randint(0, 9, (40, 30), device="cuda")
    ends = torch.randint(0, 13, (6,))
    pairs = torch.stack([ends, ends.flip(0)], 1)
    given = {
        "tree": ([torch.randn(6, 12, 13, 2, device="cuda")], ends, [2, 0, 1]),
        "projective": ([torch.randn(6, 12, 13, 2, device="cuda")], ends, [2, 1, 0]),
        "spans": ([torch.randn(6, 13, 13, 2, device="cuda")], ends, [2]),
        "alignment": ([torch.randn(shape, device="cuda") for shape in ((6, 12, 12), (6, 4, 12), (6, 4, 12))], pairs, [0]),
        "segments": ([torch.randn(s, device="cuda") for s in ((6, 12, 6), (6, 12, 4, 3), (1, 4, 3), (1, 3))], ends, [3, 4]),
    }
    torch.use_deterministic_algorithms(True)
    try:
        runs = []
        for _ in range(2):
            value = layer(emissions, tags)
            found = [value, *torch.autograd.grad(value, [emissions, *layer.parameters()])]
            found.append(torch.tensor(layer.decode(emissions)))
            for name, (tensors, lengths, sizes) in given.items():
                found += operators.OPERATORS["tree" if name == "projective" else name].sums(*tensors, lengths, sizes)
            runs.append(found)
    finally:
        torch.use_deterministic_algorithms(False)
    return {
        "differences": (float(sum(int((a != b).sum()) for a, b in zip(*runs, strict=True))), 0.0),
        "nan": (float(sum(int(a.isnan().sum()) for a in runs[0])), 0.0),
    }


def check_opcheck():
    """What torch asks of an operator."""
    import torch

    from partwise.torch.cuda import chain

    tensors, lengths, _ = chain_batch(4, 6, 5, 1.0, full=True)
    given = [tensors[0], tensors[2][0, :5].clone(), tensors[2][0, 5].clone(), tensors[3][0].clone()]
    given = [g.requires_grad_() for g in given]
    gold = torch.randint(0, 5, (24,), device="cuda")
    found = torch.library.opcheck(
        chain.chain_loss, (*given, gold, tensors[1], lengths.to("cuda", torch.int32), 6), raise_exception=False,
        test_utils=("test_schema", "test_autograd_registration", "test_faketensor"),
    )  # fmt: skip
    return {str(k): (0.0 if v == "SUCCESS" else 1.0, 0.0) for k, v in found.items()}


def checks(run: Run) -> None:
    """Every kernel of chains against float64."""
    for L in (1, 5, 16, 32, 33, 64, 100, 128, 129, 300):
        for spread in (1.0, 10.0, 40.0) if L in (16, 64, 128) else (1.0, 40.0):
            run.check(f"chain 9x40x{L}, deviation {spread:g}", lambda L=L, spread=spread: check_chain(9, 40, L, spread))
    for name, (B, T, L) in SHAPES.items():
        run.check(f"chain {name}, deviation 40", lambda B=B, T=T, L=L: check_chain(min(B, 64), T, L, 40.0))
    run.check("chain, packed", lambda: check_chain(9, 40, 20, 3.0, packed=True))
    run.check("chain, a table for each", lambda: check_chain(9, 40, 20, 10.0, each=True))
    run.check("chain, BIO", lambda: check_chain(9, 40, 25, 10.0, bio=True))
    run.check("chain, holes", lambda: check_chain(9, 40, 20, 3.0, hole=True, full=True))
    run.check("chain, bfloat16", lambda: check_chain(9, 40, 20, 3.0, dtype=__import__("torch").bfloat16))
    for spread in (1.0, 40.0):
        run.check(f"chain 8x4096x16, deviation {spread:g}", lambda spread=spread: check_chain(8, 4096, 16, spread))
    run.check("chain, two runs", lambda: check_twice(300, 50, 20))
    run.check("chain, layer", check_layer)
    run.check("chain, many labels, packed", lambda: check_chain(9, 20, 150, 3.0, packed=True))
    run.check("chain, many labels, a table for each", lambda: check_chain(9, 20, 150, 3.0, each=True))
    for L in (300, 1100):
        run.check(f"chain, {L} labels", lambda L=L: check_many_labels(L))
    for name, work in (
        ("inputs", check_inputs), ("gradients", check_gradients), ("bad inputs", check_refused),
        ("two runs, deterministic", check_repeats),
    ):  # fmt: skip
        run.check(f"layer, {name}", work)
    run.check("chain, opcheck", check_opcheck)
