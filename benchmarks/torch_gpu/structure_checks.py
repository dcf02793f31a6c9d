"""Checks of trees, segmentations and alignments: kernels against plain torch in float64, or against all trees."""

from __future__ import annotations

from benchmarks.torch_gpu.run import Run, apart, relative, twin


def check_tree(B, n, spread, projective, single, labels=1):
    """Sums, and best trees: spanning ones are compared with those of the compiled code."""
    import torch

    from partwise.torch import DependencyTree, operators

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
    else:
        values, outputs = operators.OPERATORS["tree"].best(arcs, lengths, sizes, n)
        top, _ = operators._best(operators.TREE, [arcs.double()], lengths, sizes, n)
        errors["best"] = (relative(values, top), 1e-6)
        whole = DependencyTree(arcs, lengths=lengths, single_root=bool(single))
        errors["its score"] = (relative(whole.score_of(outputs), values), 1e-5)
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


def check_without_kernels(name, device="cuda"):
    """What has no kernel of its own, in plain torch on the device, against the compiled oracles in float64."""
    import torch

    from partwise.torch import Constituency, DependencyTree

    torch.manual_seed(0)
    lengths = [7, 0, 4]

    def made(scores):
        if name == "siblings":
            return DependencyTree(*scores, lengths=lengths, projective=True)
        return Constituency(*scores, lengths=lengths)

    shapes = ((3, 7, 8), (3, 7, 8, 8)) if name == "siblings" else ((3, 8, 8, 3), (2, 3, 3))
    scores = [torch.randn(shape) for shape in shapes]
    here, there = made([s.to(device) for s in scores]), made([s.double() for s in scores])
    errors = {"log Z": (relative(here.log_partition.cpu(), there.log_partition), 1e-5)}
    errors |= {k: (apart(a.cpu(), b), 1e-5) for k, a, b in zip(("first", "second"), here.marginals, there.marginals, strict=True)}
    errors["best"] = (relative(here.max.cpu(), there.max), 1e-6)
    return errors


def checks(run: Run) -> None:
    """Every kernel of other structures against float64."""
    for single in (0, 1):
        for spread in (1.0, 40.0):
            run.check(f"projective, single root {single}, {spread:g}", lambda s=single, d=spread: check_tree(6, 12, d, 1, s))
        for n, spread in ((12, 1.0), (5, 10.0), (5, 40.0), (40, 1.0), (70, 1.0), (130, 1.0)):
            run.check(
                f"spanning {n}, single root {single}, {spread:g}", lambda n=n, s=single, d=spread: check_tree(9, n, d, 0, s)
            )
    for name in ("siblings", "rules"):
        run.check(f"{name}, in plain torch", lambda name=name: check_without_kernels(name))
    run.check("spanning, labels", lambda: check_tree(5, 9, 3.0, 0, 1, labels=4))
    run.check("projective, labels", lambda: check_tree(5, 9, 3.0, 1, 1, labels=4))
    for spread in (1.0, 40.0):
        for labels in (1, 3):
            run.check(f"spans, {labels} labels, {spread:g}", lambda d=spread, k=labels: check_spans(6, 14, d, k))
        run.check(f"segments, {spread:g}", lambda d=spread: check_segments(5, 30, 6, 5, d))
        for local in (0, 1):
            run.check(f"alignment, local {local}, {spread:g}", lambda d=spread, k=local: check_alignment(5, 6, 7, d, k))
