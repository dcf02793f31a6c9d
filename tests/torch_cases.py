"""Tiny batches with all their outputs: what the distributions are compared with."""

from __future__ import annotations

import itertools

import torch

from partwise.torch import Alignment, Constituency, DependencyTree, LinearChain, SemiMarkov


def chain(seed=0, lengths=(3, 1, 0), L=3, dtype=torch.float64, spread=1.0, **options):
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape):
        return (spread * torch.randn(*shape, generator=generator, dtype=torch.float64)).to(dtype).requires_grad_()

    return LinearChain(draw(len(lengths), max(lengths), L), draw(L, L), draw(L), draw(L), lengths=lengths, **options)


def stepwise(seed=0, lengths=(3, 1, 0), L=3, dtype=torch.float64, spread=1.0, **options):
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape):
        return (spread * torch.randn(*shape, generator=generator, dtype=torch.float64)).to(dtype).requires_grad_()

    B, T = len(lengths), max(lengths)
    return LinearChain(draw(B, T, L), draw(B, T - 1, L, L), draw(L), draw(L), lengths=lengths, **options)


def tree(seed=0, lengths=(3, 1, 0), L=2, dtype=torch.float64, spread=1.0, **options):
    generator = torch.Generator().manual_seed(seed)
    n = max(lengths)
    arcs = spread * torch.randn(len(lengths), n, n + 1, L, generator=generator, dtype=torch.float64)
    return DependencyTree(arcs.to(dtype).requires_grad_(), lengths=lengths, **options)


def alignment(seed=0, lengths=((2, 3), (1, 2), (0, 1)), dtype=torch.float64, spread=1.0, **options):
    generator = torch.Generator().manual_seed(seed)
    n, m = (max(sizes) for sizes in zip(*lengths, strict=True))

    def draw(*shape):
        return (spread * torch.randn(*shape, generator=generator, dtype=torch.float64)).to(dtype).requires_grad_()

    gaps = [(draw(len(lengths), n), draw(len(lengths), m)) for _ in range(4)]
    return Alignment(draw(len(lengths), n, m), *gaps, lengths=lengths, **options)


def segments(seed=0, lengths=(3, 1, 0), K=2, D=2, dtype=torch.float64, spread=1.0, **options):
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape):
        return (spread * torch.randn(*shape, generator=generator, dtype=torch.float64)).to(dtype).requires_grad_()

    return SemiMarkov(draw(len(lengths), max(lengths), D, K), draw(K, K), draw(K), draw(K), lengths=lengths, **options)


def constituency(seed=0, lengths=(3, 1, 0), L=2, dtype=torch.float64, spread=1.0, **options):
    generator = torch.Generator().manual_seed(seed)
    n = max(lengths)
    spans = spread * torch.randn(len(lengths), n + 1, n + 1, L, generator=generator, dtype=torch.float64)
    return Constituency(spans.to(dtype).requires_grad_(), lengths=lengths, **options)


def siblings(seed=0, lengths=(4, 1, 0), L=1, dtype=torch.float64, spread=1.0, **options):
    generator = torch.Generator().manual_seed(seed)
    n = max(lengths)

    def draw(*shape):
        return (spread * torch.randn(*shape, generator=generator, dtype=torch.float64)).to(dtype).requires_grad_()

    arcs, pairs = draw(len(lengths), n, n + 1, L), draw(len(lengths), n, n + 1, n + 1)
    return DependencyTree(arcs, pairs, lengths=lengths, projective=True, **options)


def rules(seed=0, lengths=(3, 1, 0), L=3, S=2, dtype=torch.float64, spread=1.0, **options):
    generator = torch.Generator().manual_seed(seed)
    n = max(lengths)

    def draw(*shape):
        return (spread * torch.randn(*shape, generator=generator, dtype=torch.float64)).to(dtype).requires_grad_()

    return Constituency(draw(len(lengths), n + 1, n + 1, L), draw(S, L, L), lengths=lengths, **options)


CASES = {
    "chain": chain,
    "chain, step by step": stepwise,
    "segments": segments,
    "spanning": tree,
    "spanning, many roots": lambda **given: tree(**given, single_root=False),
    "projective": lambda **given: tree(**given, projective=True),
    "projective, many roots": lambda **given: tree(**given, projective=True, single_root=False),
    "siblings": siblings,
    "siblings, many roots": lambda **given: siblings(**{"lengths": (3, 1, 0), "L": 2, **given}, single_root=False),
    "constituency": constituency,
    "rules": rules,
    "global": alignment,
    "local": lambda **given: alignment(**given, local=True),
}


def outputs_of(distribution, i):
    """All outputs of example i, padded."""
    from partwise.kernels import outputs
    from partwise.torch.shells import shell

    problem, _ = shell(distribution.structure, distribution.lengths.numpy(), tuple(distribution.sizes))
    empty = -1 if distribution.structure == "alignment" else 0
    for y in outputs(problem, i):
        yield [*y.tolist(), *itertools.repeat(empty, distribution.width - len(y))]


def enumerated(distribution):
    """For each example its outputs as a tensor, and their scores."""
    found = []
    for i in range(len(distribution.lengths)):
        ys = torch.tensor(list(outputs_of(distribution, i)), dtype=torch.int64).reshape(-1, distribution.width)
        rows = distribution.argmax.repeat(len(ys), 1, 1) if len(ys) else ys
        scores = []
        for y in ys:
            batch = rows[0].clone()
            batch[i] = y
            scores.append(distribution.score_of(batch)[i])
        found.append((ys, torch.stack(scores)))
    return found
