"""The kernels of `partwise.torch` on a CUDA device: checks against float64 and figures beside pytorch-crf and torch-struct.

``python -m benchmarks.torch_gpu`` does everything in one go and needs nothing but PyTorch, Triton and this repository: every
kernel is first compared with the plain-torch twin in float64 (`checks`), then timed (`figures`), by CUDA events, medians, eager
and as a CUDA graph. Peers are found on the path or in ``build/peers``. What fails is reported and does not stop the rest. The
table, JSON and tracebacks go to the folder $OUT.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHAPES = {"A": (256, 128, 32), "B": (1024, 128, 64), "C": (64, 512, 128)}  # sequences, tokens, labels


class Run:
    """What has been found so far."""

    def __init__(self, folder: Path):
        self.folder, self.rows, self.checks, self.failures = folder, [], [], 0
        folder.mkdir(parents=True, exist_ok=True)
        self.log = (folder / "torch_gpu.log").open("w")
        self.began, self.part, self.parts, self.seen = time.time(), 0, 1, 0

    def say(self, text: str) -> None:
        print(text, flush=True)
        self.log.write(text + "\n")
        self.log.flush()

    def check(self, name: str, work: Callable[[], dict[str, tuple[float, float]]]) -> None:
        """Errors by name, each with the largest that is fine."""
        self.seen += 1
        if self.seen % self.parts != self.part:
            return
        clock = time.time()
        try:
            errors = work()
            fine = all(error <= limit for error, limit in errors.values())
            text = ", ".join(
                f"{k} {error:.1e}{'' if error <= limit else f' > {limit:.0e} !!'}" for k, (error, limit) in errors.items()
            )
        except Exception as error:
            self.log.write(traceback.format_exc() + "\n")
            fine, text, errors = False, first_line(error), {}
        self.failures += not fine
        self.checks.append({"name": name, "fine": fine, "errors": {k: e for k, (e, _) in errors.items()}, "text": text})
        self.say(f"{'ok  ' if fine else 'FAIL'} {name}: {text} ({time.time() - clock:.1f} s)")
        self.save()

    def time(self, shape: str, what: str, who: str, work: Callable[[], float | None], unit: str = "us") -> float | None:
        try:
            value = work()
        except Exception as error:
            self.log.write(traceback.format_exc() + "\n")
            self.say(f"FAIL {shape} {what} {who}: {first_line(error)}")
            value = None
        self.rows.append({"shape": shape, "what": what, "who": who, "unit": unit, "value": value})
        if value is not None:
            self.say(f"     {shape:14} {what:24} {who:22} {value:12.1f} {unit}")
        self.save()
        return value

    def save(self) -> None:
        (self.folder / "torch_gpu.json").write_text(json.dumps({"checks": self.checks, "figures": self.rows}, indent=1))


# ----------------------------------------------------------------------------------------------------------------------
# Checks
# ----------------------------------------------------------------------------------------------------------------------


def first_line(error: Exception) -> str:
    """What an error says, in short."""
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0][:160] if text else ''}"


def apart(a, b) -> float:
    """The largest difference; infinite where only one of them is finite."""
    a, b = a.double(), b.double()
    same = (a == b) | (a.isnan() & b.isnan())
    difference = (a - b).abs()
    difference = difference.masked_fill(same, 0.0).nan_to_num(math.inf)
    return float(difference.max()) if difference.numel() else 0.0


def relative(a, b) -> float:
    """The same in units of the larger of 1 and b."""
    scale = b.double().abs().nan_to_num(posinf=1.0, neginf=1.0).clamp(min=1)
    return apart(a.double() / scale, b.double() / scale)


def twin(structure, tensors, lengths, sizes):
    """log Z and marginals by the plain twin in float64, on the same device."""
    import torch

    from partwise.torch import operators

    with torch.no_grad():
        doubled = [t.double() if t.is_floating_point() else t for t in tensors]
        return operators._sums_by_reference(structure, doubled, lengths, sizes)


def chain_batch(B, T, L, spread, seed=0, full=False, each=False, packed=False, dtype=None, device="cuda"):
    """Random scores of chains, their lengths and sizes."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    lengths = torch.full((B,), T) if full else torch.randint(0, T + 1, (B,), generator=generator)
    lengths[0] = T
    if not full and B > 3:
        lengths[1], lengths[2] = 1, 0
    rows = int(lengths.sum()) if packed else B * T
    begins = lengths.cumsum(0) - lengths if packed else torch.arange(B) * T
    n = B if each else 1
    scores = [torch.randn(shape, generator=generator) * spread for shape in ((rows, L), (n, L + 1, L), (n, L))]
    scores = [s.to(device, dtype) for s in scores]
    return [scores[0], begins.to(device), scores[1], scores[2]], lengths, [L, T, int(not packed)]


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
        "transitions": (relative(found[2], wanted[2]), 5e-5),
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


def check_tree(B, n, spread, projective, single, labels=1):
    """Sums, and best projective trees."""
    import torch

    from partwise.torch import operators

    torch.manual_seed(0)
    arcs = torch.randn(B, n, n + 1, labels, device="cuda") * spread
    lengths = torch.randint(0, n + 1, (B,))
    lengths[0], lengths[1] = n, 1
    sizes = [labels, int(projective), int(single)]
    wanted = twin(operators.TREE, [arcs], lengths, sizes) if projective or spread < 10 else all_trees(arcs, lengths, single)
    found = operators.OPERATORS["tree"].sums(arcs, lengths, sizes)
    errors = {"log Z": (relative(found[0], wanted[0]), 1e-6), "arcs": (apart(found[1], wanted[1]), 1e-5)}
    if projective:
        errors |= best_and_compiled("tree", [arcs], lengths, sizes, n)
    return errors


def all_trees(arcs, lengths, single):
    """log Z and marginals by going through all spanning trees: determinants in float64 cancel where scores are far apart."""
    import itertools

    import torch

    B, n = arcs.shape[:2]
    values, marginals = torch.zeros(B, dtype=torch.float64), torch.zeros(arcs.shape, dtype=torch.float64)
    scores = arcs[..., 0].double().cpu()
    for size in set(lengths.tolist()) - {0}:
        trees = []
        for heads in itertools.product(range(size + 1), repeat=size):
            above = list(heads)
            for _ in range(size):
                above = [heads[h - 1] if h else 0 for h in above]
            if not any(above) and (not single or heads.count(0) == 1):
                trees.append(heads)
        trees = torch.tensor(trees)
        for b in (lengths == size).nonzero()[:, 0].tolist():
            of = scores[b, torch.arange(size), trees].sum(1)
            values[b] = of.logsumexp(0)
            for m in range(size):
                marginals[b, m, :, 0].index_add_(0, trees[:, m], (of - values[b]).exp())
    return values.to(arcs.device), marginals.to(arcs.device)


def best_and_compiled(name, tensors, lengths, sizes, width):
    """Scores of best outputs, by the kernel and by the sharpened log partition in plain torch."""
    from partwise.torch import operators

    structure = operators.STRUCTURES[name]
    values, _ = operators.OPERATORS[name].best(*tensors, lengths, sizes, width)
    sharp = [t.double() * 1e4 if t.is_floating_point() else t for t in tensors]
    top = structure.log_partition(operators._expanded(structure, sharp, lengths), lengths, sizes) / 1e4
    return {"best": (relative(values, top), 1e-3 if width > 100 else 1e-4)}


def check_spans(B, n, spread, labels):
    """Sums and best trees over spans."""
    import torch

    from partwise.torch import Constituency, operators

    torch.manual_seed(0)
    scores = torch.randn(B, n + 1, n + 1, labels, device="cuda") * spread
    lengths = torch.randint(0, n + 1, (B,))
    lengths[0], lengths[1] = n, 1
    wanted = twin(operators.SPANS, [scores], lengths, [labels])
    found = operators.OPERATORS["spans"].sums(scores, lengths, [labels])
    errors = {"log Z": (relative(found[0], wanted[0]), 1e-6), "spans": (apart(found[1], wanted[1]), 1e-5)}
    errors |= best_and_compiled("spans", [scores], lengths, [labels], 2 * n - 1)
    values, outputs = operators.OPERATORS["spans"].best(scores, lengths, [labels], 2 * n - 1)
    whole = Constituency(scores, lengths=lengths)
    whole.check_outputs(outputs.cpu())
    errors["its score"] = (relative(whole.score_of(outputs), values), 1e-6)
    return errors


def check_segments(B, T, D, K, spread):
    """Sums and best segmentations."""
    import torch

    from partwise.torch import SemiMarkov, operators

    torch.manual_seed(0)
    shapes = ((B, T, 2 * K), (B, T, D, K), (1, K + 1, K), (1, K))
    tensors = [torch.randn(shape, device="cuda") * spread for shape in shapes]
    lengths = torch.randint(0, T + 1, (B,))
    lengths[0], lengths[1] = T, 1
    wanted = twin(operators.SEGMENTS, tensors, lengths, [K, D])
    found = operators.OPERATORS["segments"].sums(*tensors, lengths, [K, D])
    names = ("codes", "segments", "transitions", "stop")
    errors = {"log Z": (relative(found[0], wanted[0]), 1e-6)}
    errors |= {name: (relative(a, b), 1e-5) for name, a, b in zip(names, found[1:], wanted[1:], strict=True)}
    errors |= best_and_compiled("segments", tensors, lengths, [K, D], T)
    values, outputs = operators.OPERATORS["segments"].best(*tensors, lengths, [K, D], T)
    whole = SemiMarkov(tensors[1], tensors[2][0, :K], tensors[2][0, K], tensors[3][0], lengths=lengths)
    errors["its score"] = (relative(whole._with(tensors).score_of(outputs), values), 1e-5)
    return errors


def check_alignment(B, n, m, spread, local):
    """Sums and best alignments."""
    import torch

    from partwise.torch import Alignment, operators

    torch.manual_seed(0)
    tensors = [torch.randn(shape, device="cuda") * spread for shape in ((B, n, m), (B, 4, n), (B, 4, m))]
    lengths = torch.stack([torch.randint(0, n + 1, (B,)), torch.randint(0, m + 1, (B,))], 1)
    lengths[0] = torch.tensor([n, m])
    wanted = twin(operators.ALIGNMENT, tensors, lengths, [local])
    found = operators.OPERATORS["alignment"].sums(*tensors, lengths, [local])
    errors = {"log Z": (relative(found[0], wanted[0]), 1e-6)}
    errors |= {k: (apart(a, b), 1e-5) for k, a, b in zip(("match", "first", "second"), found[1:], wanted[1:], strict=True)}
    values, outputs = operators.OPERATORS["alignment"].best(*tensors, lengths, [local], n)
    whole = Alignment(tensors[0], 0.0, 0.0, lengths=lengths, local=bool(local))._with(tensors)
    outputs = torch.where(torch.arange(n, device="cuda") < lengths[:, :1].cuda(), outputs, -1)
    errors |= best_and_compiled("alignment", tensors, lengths, [local], n)
    errors["its score"] = (relative(whole.score_of(outputs), values), 1e-5)
    return errors


def checks(run: Run) -> None:
    """Every kernel against float64."""
    for L in (1, 5, 16, 32, 33, 64, 100, 128):
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
    run.check("chain, 300 labels", lambda: check_many_labels(300))
    for name, work in (
        ("inputs", check_inputs), ("gradients", check_gradients), ("bad inputs", check_refused),
        ("two runs, deterministic", check_repeats),
    ):  # fmt: skip
        run.check(f"layer, {name}", work)
    run.check("chain, opcheck", check_opcheck)
    for single in (0, 1):
        for spread in (1.0, 40.0):
            run.check(f"projective, single root {single}, {spread:g}", lambda s=single, d=spread: check_tree(6, 12, d, 1, s))
        for n, spread in ((12, 1.0), (5, 10.0), (5, 40.0), (40, 1.0), (70, 1.0)):
            run.check(
                f"spanning {n}, single root {single}, {spread:g}", lambda n=n, s=single, d=spread: check_tree(9, n, d, 0, s)
            )
    run.check("spanning, labels", lambda: check_tree(5, 9, 3.0, 0, 1, labels=4))
    run.check("projective, labels", lambda: check_tree(5, 9, 3.0, 1, 1, labels=4))
    for spread in (1.0, 40.0):
        for labels in (1, 3):
            run.check(f"spans, {labels} labels, {spread:g}", lambda d=spread, k=labels: check_spans(6, 14, d, k))
        run.check(f"segments, {spread:g}", lambda d=spread: check_segments(5, 30, 6, 5, d))
        for local in (0, 1):
            run.check(f"alignment, local {local}, {spread:g}", lambda d=spread, k=local: check_alignment(5, 6, 7, d, k))


# ----------------------------------------------------------------------------------------------------------------------
# Figures
# ----------------------------------------------------------------------------------------------------------------------


def events(work: Callable[[], object], repeats: int = 20, warm: int = 5, most: float = 15.0) -> float:
    """Microseconds by CUDA events, median."""
    import torch

    clock = time.time()
    for _ in range(warm):
        work()
        torch.cuda.synchronize()
        if time.time() - clock > most / 3:
            break
    times = []
    for _ in range(repeats):
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        a.record()
        work()
        b.record()
        b.synchronize()
        times.append(a.elapsed_time(b))
        if time.time() - clock > most:
            break
    return statistics.median(times) * 1e3


def graph(work: Callable[[int], object], sets: int) -> float:
    """Microseconds of a call in a CUDA graph that goes through all sets of inputs."""
    import torch

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            for k in range(sets):
                work(k)
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        for k in range(sets):
            work(k)
    found = events(captured.replay) / sets
    del captured
    return found


def peak(work: Callable[[], object]) -> float:
    """MiB beyond what was there before."""
    import torch

    work()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    work()
    torch.cuda.synchronize()
    return (torch.cuda.max_memory_allocated() - before) / 2**20


def chain_figures(run: Run) -> None:
    """Losses, gradients and labels of chains."""
    import torch

    from partwise.torch import CRF
    from partwise.torch.cuda import chain

    for name, (B, T, L) in {**SHAPES, "long": (8, 4096, 16)}.items():
        for spread in (1.0, 40.0):
            if spread > 1 and name == "long":
                continue
            label = name if spread == 1 else f"{name} dev 40"
            sets = []
            for k in range(4):
                tensors, lengths, _ = chain_batch(B, T, L, spread, seed=k, full=True)
                of = [tensors[0], tensors[2][0, :L].contiguous(), tensors[2][0, L].contiguous(), tensors[3][0].contiguous()]
                gold = torch.randint(0, L, (B * T,), device="cuda")
                sets.append(([t.requires_grad_() for t in of], gold))
            begins, full = chain.layout(B, T, None, torch.device("cuda", 0))

            def learn(k, sets=sets, begins=begins, full=full, T=T):
                given, gold = sets[k]
                return torch.autograd.grad(chain.chain_loss(*given, gold, begins, full, T)[0].sum(), given)

            def decode(k, sets=sets, begins=begins, full=full, T=T):
                e, w, s, f = (t.detach() for t in sets[k][0])
                return chain.decode(e, begins, full, w, s, f, T)

            run.time(label, "loss and gradient", "graph", lambda: graph(learn, 4))
            run.time(label, "decode", "graph", lambda: graph(decode, 4))
            if spread == 1:

                def only_scan(k, sets=sets, begins=begins, full=full, T=T):
                    given, gold = sets[k]
                    return chain.scan(given[0].detach(), begins, full, *(t.detach() for t in given[1:]), gold, T)

                run.time(label, "loss", "graph", lambda: graph(only_scan, 4))
            if spread > 1:
                continue
            run.time(label, "loss and gradient", "operator, eager", lambda: events(lambda: learn(0)))
            run.time(label, "decode", "operator, eager", lambda: events(lambda: decode(0)))
            run.time(label, "loss and gradient", "memory", lambda: peak(lambda: learn(0)), "MiB")
            layer = CRF(L, batch_first=True).cuda()
            emissions = torch.randn(B, T, L, device="cuda", requires_grad=True)
            tags = torch.randint(0, L, (B, T), device="cuda")

            def train(layer=layer, emissions=emissions, tags=tags):
                emissions.grad = None
                layer.zero_grad()
                (-layer(emissions, tags, None, reduction="mean")).backward()

            run.time(label, "loss and gradient", "layer, eager", lambda: events(train))
            run.time(label, "decode to lists", "layer, eager", lambda: events(lambda: layer.decode(emissions)))
            if name != "long":
                chain_peer(run, label, B, T, L, emissions, tags)
            del sets
            torch.cuda.empty_cache()


def chain_peer(run: Run, label, B, T, L, emissions, tags) -> None:
    """The same by pytorch-crf."""
    import torch
    from torchcrf import CRF as Peer

    peer = Peer(L, batch_first=True).cuda()
    mask = torch.ones(B, T, dtype=torch.bool, device="cuda")

    def train():
        emissions.grad = None
        peer.zero_grad()
        (-peer(emissions, tags, mask, reduction="mean")).backward()

    run.time(label, "loss and gradient", "pytorch-crf", lambda: events(train, 5, 1))
    run.time(label, "loss and gradient", "pytorch-crf memory", lambda: peak(train), "MiB")
    run.time(label, "decode to lists", "pytorch-crf", lambda: events(lambda: peer.decode(emissions, mask), 3, 1))


def tree_figures(run: Run) -> None:
    """Trees over words and over spans, beside torch-struct."""
    import torch

    from partwise.torch import operators

    torch.manual_seed(0)
    sums, best = operators.OPERATORS["tree"].sums, operators.OPERATORS["tree"].best
    for B, what, kind in ((256, "spanning", 0), (64, "projective", 1)):
        n = 40
        arcs, lengths = torch.randn(B, n, n + 1, 1, device="cuda"), torch.full((B,), n)
        label = f"{B} x {n}"
        for single in (0, 1):
            run.time(
                label, f"{what} sums, single {single}", "eager", lambda: events(lambda: sums(arcs, lengths, [1, kind, single]))
            )
        there = lengths.to("cuda", torch.int32)
        run.time(label, f"{what} sums, single 1", "graph", lambda: graph(lambda k: sums(arcs, there, [1, kind, 1]), 4))
        run.time(label, f"{what} sums", "memory", lambda: peak(lambda: sums(arcs, lengths, [1, kind, 1])), "MiB")
        if kind:
            run.time(label, f"{what} best", "eager", lambda: events(lambda: best(arcs, lengths, [1, kind, 1], n)))
    scores, lengths = torch.randn(64, 41, 41, 1, device="cuda"), torch.full((64,), 40)
    spans = operators.OPERATORS["spans"]
    run.time("64 x 40", "spans sums", "eager", lambda: events(lambda: spans.sums(scores, lengths, [1])))
    run.time("64 x 40", "spans best", "eager", lambda: events(lambda: spans.best(scores, lengths, [1], 79)))
    run.time("64 x 40", "spans sums", "memory", lambda: peak(lambda: spans.sums(scores, lengths, [1])), "MiB")

    import torch_struct

    square = torch.randn(256, 40, 40, device="cuda")

    def peer(make, scores, what="marginals"):
        def work():
            found = make(scores.detach().requires_grad_())
            return found.partition, getattr(found, what)

        return work

    makers = {
        "spanning sums": (lambda s: torch_struct.NonProjectiveDependencyCRF(s), square),
        "projective sums": (lambda s: torch_struct.DependencyCRF(s), square[:64].contiguous()),
        "spans sums": (lambda s: torch_struct.TreeCRF(s), torch.randn(64, 40, 40, 1, device="cuda")),
    }
    for what, (make, given) in makers.items():
        label = f"{len(given)} x 40"
        run.time(label, what, "torch-struct", lambda: events(peer(make, given), 5, 1))
        run.time(label, what, "torch-struct memory", lambda: peak(peer(make, given)), "MiB")
        if not what.startswith("spanning"):
            run.time(label, what.replace("sums", "best"), "torch-struct", lambda: events(peer(make, given, "argmax"), 5, 1))


def other_figures(run: Run) -> None:
    """Alignments and segmentations, beside torch-struct."""
    import torch

    from partwise.torch import operators

    torch.manual_seed(0)
    B, n = 64, 300
    tensors = [torch.randn(B, n, n, device="cuda"), *(torch.randn(B, 4, n, device="cuda") for _ in range(2))]
    lengths = torch.full((B, 2), n)
    align = operators.OPERATORS["alignment"]
    for local in (0, 1):
        run.time(
            "64 x 300 x 300",
            f"alignment sums, local {local}",
            "eager",
            lambda: events(lambda: align.sums(*tensors, lengths, [local])),
        )
        run.time(
            "64 x 300 x 300",
            f"alignment best, local {local}",
            "eager",
            lambda: events(lambda: align.best(*tensors, lengths, [local], n)),
        )
    run.time("64 x 300 x 300", "alignment sums", "memory", lambda: peak(lambda: align.sums(*tensors, lengths, [0])), "MiB")
    B, T, D, K = 64, 1000, 16, 24
    shapes = ((B, T, 2 * K), (B, T, D, K), (1, K + 1, K), (1, K))
    given = [torch.randn(shape, device="cuda") for shape in shapes]
    whole = torch.full((B,), T)
    pieces = operators.OPERATORS["segments"]
    label = "64 x 1000 x 16 x 24"
    run.time(label, "segments sums", "eager", lambda: events(lambda: pieces.sums(*given, whole, [K, D])))
    run.time(label, "segments best", "eager", lambda: events(lambda: pieces.best(*given, whole, [K, D], T)))
    run.time(label, "segments sums", "memory", lambda: peak(lambda: pieces.sums(*given, whole, [K, D])), "MiB")

    import torch_struct

    def peer(make, scores):
        def work():
            found = make(scores.detach().requires_grad_())
            return found.partition, found.marginals

        return work

    for pairs in (64, 4):
        potentials = torch.randn(pairs, 300, 300, 3, device="cuda")
        work = peer(lambda s: torch_struct.AlignmentCRF(s), potentials)
        took = run.time(f"{pairs} x 300 x 300", "alignment sums", "torch-struct", lambda: events(work, 3, 1))
        if took is not None:
            run.time(f"{pairs} x 300 x 300", "alignment sums", "torch-struct memory", lambda: peak(work), "MiB")
            break
        torch.cuda.empty_cache()
    for batch, T in ((64, 1000), (1, 100)):
        try:
            potentials = torch.randn(batch, T, D, K, K, device="cuda")
        except RuntimeError:
            continue
        work = peer(lambda s: torch_struct.SemiMarkovCRF(s), potentials)
        took = run.time(f"{batch} x {T} x 16 x 24", "segments sums", "torch-struct", lambda: events(work, 2, 1))
        if took is not None:
            run.time(f"{batch} x {T} x 16 x 24", "segments sums", "torch-struct memory", lambda: peak(work), "MiB")
            break
        del potentials
        torch.cuda.empty_cache()


def in_processes(run: Run, parts: int = 10) -> None:
    """All checks, dealt out to processes: most of their time goes into compiling, on one core each."""
    started = []
    for k in range(parts):
        folder = run.folder.resolve() / f"checks_{k}"
        command = [sys.executable, "-m", "benchmarks.torch_gpu", "--only", "checks", "--part", f"{k}/{parts}"]
        started.append(
            (folder, subprocess.Popen(command, env={**os.environ, "OUT": str(folder)}, stdout=subprocess.DEVNULL, cwd=ROOT))
        )
    for folder, process in started:
        try:
            process.wait(max(10.0, 270 - (time.time() - run.began)))
        except subprocess.TimeoutExpired:
            process.kill()
            run.say(f"FAIL {folder.name} took too long")
        log = folder / "torch_gpu.log"
        text = log.read_text() if log.exists() else "no log"
        run.log.write(text)
        found = folder / "torch_gpu.json"
        done = json.loads(found.read_text())["checks"] if found.exists() else []
        run.checks += done
        for check in done:
            run.say(f"{'ok  ' if check['fine'] else 'FAIL'} {check['name']}: {check['text']}")


def main() -> None:
    """Checks, then figures, then the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.torch_gpu", description=__doc__)
    parser.add_argument("--only", choices=("checks", "figures"), help="one half")
    parser.add_argument(
        "--part", default="", metavar="K/N", help="only every N-th check: what the processes do that this one starts"
    )
    parser.add_argument("--match", default="", metavar="TEXT", help="only checks whose name has this")
    arguments = parser.parse_args()
    for folder in (ROOT / "src", ROOT / "build" / "peers"):
        sys.path.insert(0, str(folder))
    import torch
    import triton

    run = Run(Path(os.environ.get("OUT") or "benchmarks/results"))
    device = torch.cuda.get_device_name(0) if torch.cuda.is_available() else "no CUDA device"
    run.say(f"torch {torch.__version__}, triton {triton.__version__}, {device}, Python {sys.version.split()[0]}")
    if not torch.cuda.is_available():
        sys.exit("there is no CUDA device")
    torch.cuda.set_device(0)
    if arguments.part:
        run.part, run.parts = map(int, arguments.part.split("/"))
    elif arguments.only != "figures" and not arguments.match:
        in_processes(run)
    if arguments.only != "figures" and (arguments.match or arguments.part):
        if arguments.match:
            every, run.check = run.check, lambda name, work: every(name, work) if arguments.match in name else None
        checks(run)
        run.say(f"checks took {time.time() - run.began:.0f} s")
    if arguments.only != "checks":
        for part in (chain_figures, tree_figures, other_figures):
            try:
                part(run)
            except Exception as error:
                run.log.write(traceback.format_exc() + "\n")
                run.say(f"FAIL {part.__name__}: {type(error).__name__}: {str(error)[:200]}")
            run.say(f"{part.__name__} done after {time.time() - run.began:.0f} s")
    run.save()
    passed = sum(check["fine"] for check in run.checks)
    run.say(f"\n{passed} of {len(run.checks)} checks passed, {time.time() - run.began:.0f} s")
    for check in run.checks:
        if not check["fine"]:
            run.say(f"  FAIL {check['name']}: {check['text']}")
    for row in run.rows:
        if row["value"] is not None:
            run.say(f"{row['shape']:20}{row['what']:28}{row['who']:22}{row['value']:14.1f} {row['unit']}")


if __name__ == "__main__":
    main()
