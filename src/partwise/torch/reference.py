"""The sums over outputs in plain torch: the twins of the compiled oracles, on any device, differentiable as often as one likes.

They are what tests compare with, what runs where there is no compiled kernel, and what second derivatives come from. Steps go one
after the other in Python, over whole batches; forbidden parts may be -inf, and gradients stay free of NaN.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

OPEN, EXTEND, END_OPEN, END_EXTEND = 0, 1, 2, 3  # kinds of gaps (`structures.alignment.problem`)


def log_sum_exp(x: Tensor, dim: int) -> Tensor:
    """log sum exp along a dimension, whose gradient is zero, and not NaN, where everything is -inf."""
    high = x.detach().amax(dim, keepdim=True)
    high = torch.where(high.isfinite(), high, torch.zeros_like(high))
    total = (x - high).exp().sum(dim)
    some = total > 0
    return torch.where(some, torch.where(some, total, torch.ones_like(total)).log(), -math.inf) + high.squeeze(dim)


def log_add(*terms: Tensor) -> Tensor:
    """log of the sum of exponentials of tensors of one shape."""
    return log_sum_exp(torch.stack(torch.broadcast_tensors(*terms)), 0)


def nothing_to_sum(n: int, *scores: Tensor) -> Tensor:
    """log Z = 0 of n empty examples, differentiable: scores that nobody looks at may be -inf, or padding."""
    return sum((s.flatten()[:0].sum() for s in scores if s.is_floating_point()), start=scores[0].new_zeros(n))


def example_of_row(begins: Tensor, n_rows: int) -> Tensor:
    """To which example each of the rows belongs that lie end to end; rows of padding belong to the one before."""
    marks = torch.zeros(n_rows + 1, dtype=torch.int64, device=begins.device)
    marks = marks.index_add(0, begins, torch.ones_like(begins))
    return (marks.cumsum(0) - 1)[:n_rows].clamp(min=0)


def chain_log_partition(tensors: Sequence[Tensor], lengths: Tensor, sizes: Sequence[int]) -> Tensor:
    """The forward algorithm: O(T L^2) for each sequence."""
    nodes, begins, transitions, stop, *steps = tensors  # steps: transitions that differ from token to token, if there are such
    n, (L, T, _) = lengths.shape[0], sizes
    if n == 0 or T == 0:
        return nothing_to_sum(n, *tensors)
    place = torch.arange(T, device=nodes.device)
    inside = place < lengths[:, None].to(nodes.device)
    rows = torch.where(inside, begins[:, None] + place, torch.zeros_like(place))
    scores = torch.where(inside[..., None], nodes[rows], torch.zeros((), dtype=nodes.dtype, device=nodes.device))
    alpha = transitions[:, L] + scores[:, 0]
    for t in range(1, T):
        moves = transitions[:, :L]
        if steps:
            moves = moves + steps[0][:, t - 1].masked_fill(~inside[:, t, None, None], 0.0)
        further = log_sum_exp(alpha[:, :, None] + moves, 1) + scores[:, t]
        alpha = torch.where(inside[:, t, None], further, alpha)
    found = log_sum_exp(alpha + stop, -1)
    return torch.where(inside[:, 0], found, torch.zeros_like(found))


def segments_log_partition(tensors: Sequence[Tensor], lengths: Tensor, sizes: Sequence[int]) -> Tensor:
    """The semi-Markov forward algorithm: O(T D K + T K^2) for each sequence."""
    codes, segments, transitions, stop = tensors
    K, D = sizes
    T = codes.shape[1]
    n = lengths.shape[0]
    if n == 0 or T == 0:
        return nothing_to_sum(n, *tensors)
    ends_at = torch.arange(T)[:, None] + torch.arange(1, D + 1)
    there = (ends_at <= lengths.cpu()[:, None, None]).to(codes.device)  # what reaches over the end may be anything
    segments = torch.where(there[..., None], segments, torch.zeros((), dtype=segments.dtype, device=codes.device))
    before = [transitions[:, K].expand(n, K)]  # what the labels before say to a segment that begins at t
    ends: list[Tensor] = []
    for e in range(T):
        ways, inside = [], torch.zeros_like(codes[:, 0, :K])
        for d in range(min(D, e + 1)):
            a = e - d
            ways.append(before[a] + codes[:, a, K:] + inside + segments[:, a, d])
            inside = inside + codes[:, a, :K]
        ends.append(log_sum_exp(torch.stack(ways), 0))
        before.append(log_sum_exp(ends[e][:, :, None] + transitions[:, :K], 1))
    found = log_sum_exp(torch.stack(ends, 1) + stop[:, None], -1)
    last = (lengths.to(codes.device) - 1).clamp(min=0)
    found = found.gather(1, last[:, None])[:, 0]
    return torch.where(lengths.to(codes.device) > 0, found, torch.zeros_like(found))


def spans_log_partition(tensors: Sequence[Tensor], lengths: Tensor, sizes: Sequence[int]) -> Tensor:
    """The inside algorithm over binary trees, spans of one width at a time: O(n^3) for each sentence."""
    (spans,) = tensors
    n, device = spans.shape[1] - 1, spans.device
    lengths = lengths.to(device)
    if n == 0 or not lengths.shape[0]:
        return nothing_to_sum(len(spans), spans)
    place = torch.arange(n + 1, device=device)
    there = (place[:, None] < place) & (place <= lengths[:, None, None])  # padding may hold anything
    own = log_sum_exp(torch.where(there[..., None], spans, torch.zeros((), dtype=spans.dtype, device=device)), -1)
    inside: list[Tensor] = [own.new_zeros(0)]  # [width]: (B, n + 1 - width)
    for width in range(1, n + 1):
        of_width = own.diagonal(width, 1, 2)
        if width > 1:
            m = n + 1 - width
            ways = [inside[k][:, :m] + inside[width - k][:, k : k + m] for k in range(1, width)]
            of_width = of_width + log_sum_exp(torch.stack(ways), 0)
        inside.append(of_width)
    whole = torch.stack([of_width[:, 0] for of_width in inside[1:]], 1)
    found = whole.gather(1, (lengths - 1).clamp(min=0)[:, None])[:, 0]
    return torch.where(lengths > 0, found, torch.zeros_like(found))


def rules_log_partition(tensors: Sequence[Tensor], lengths: Tensor, sizes: Sequence[int]) -> Tensor:
    """The inside algorithm with rules: O(n^3 R) for each sentence, and O(n (R + n L^2)) memory for spans of one width."""
    spans, rules = tensors
    (B, n), (L, S), device = (spans.shape[0], spans.shape[1] - 1), sizes, spans.device
    lengths = lengths.to(device)
    if n == 0 or not B:
        return nothing_to_sum(B, spans, rules)
    place = torch.arange(n + 1, device=device)
    there = (place[:, None] < place) & (place <= lengths[:, None, None])  # padding may hold anything
    own = torch.where(there[..., None], spans, torch.zeros((), dtype=spans.dtype, device=device))
    inside = [own.new_zeros(0), own.diagonal(1, 1, 2).mT]  # [width]: (B, n + 1 - width, L)
    for width in range(2, n + 1):
        m = n + 1 - width
        ways = [inside[k][:, :m, :, None] + inside[width - k][:, k : k + m, None] for k in range(1, width)]
        pairs = log_sum_exp(torch.stack(ways), 0)
        of_rules = log_sum_exp((pairs[:, :, None] + rules[:, None]).flatten(3), -1)
        of_rules = torch.nn.functional.pad(of_rules, (0, L - S), value=-math.inf)
        inside.append(own.diagonal(width, 1, 2).mT + of_rules)
    whole = log_sum_exp(torch.stack([of_width[:, 0] for of_width in inside[1:]], 1), -1)
    found = whole.gather(1, (lengths - 1).clamp(min=0)[:, None])[:, 0]
    return torch.where(lengths > 0, found, torch.zeros_like(found))


def scores_of_arcs(arcs: Tensor, lengths: Tensor) -> Tensor:
    """Sums over labels, (B, n, n + 1): -inf for a word itself, and 0 for padding, which may hold anything."""
    place = torch.arange(arcs.shape[2], device=arcs.device)
    inside = place <= lengths[:, None]
    itself = place[1:, None] == place
    there = inside[:, 1:, None] & inside[:, None] & ~itself
    arcs = torch.where(there[..., None], arcs, torch.zeros((), dtype=arcs.dtype, device=arcs.device))
    scores = log_sum_exp(arcs, -1) if arcs.shape[-1] != 1 else arcs[..., 0]
    return scores.masked_fill(itself, -math.inf)


def sibling_tree_log_partition(tensors: Sequence[Tensor], lengths: Tensor, sizes: Sequence[int]) -> Tensor:
    """The recursion of `structures.dependency.siblings`, spans of one width at a time: O(n^3) for each sentence."""
    arcs, siblings = tensors
    n, lengths = arcs.shape[1], lengths.to(arcs.device)
    if n == 0:
        return nothing_to_sum(len(arcs), arcs, siblings)
    scores = scores_of_arcs(arcs, lengths)
    outside = (torch.arange(n + 1, device=arcs.device) > lengths[:, None])[:, None, None]
    outside = outside | outside.mT | outside[..., 1:].permute(0, 3, 1, 2)
    siblings = torch.where(outside, torch.zeros((), dtype=arcs.dtype, device=arcs.device), siblings)
    zero = scores.new_zeros(scores.shape[0], n + 1)
    right, left, between = [zero], [zero], [zero]  # [width]: (B, n + 1 - width), complete ones by the side of their head
    right_open, left_open = [zero], [zero]
    for width in range(1, n + 1):
        m = n + 1 - width
        s = torch.arange(m, device=arcs.device)
        t = s + width
        ways = [siblings[:, t - 1, s, 0] + left[width - 1][:, 1 : m + 1]]
        for k in range(1, width):
            way = right_open[k][:, :m] + between[width - k][:, k : k + m] + siblings[:, t - 1, s, s + k]
            ways.append(way.masked_fill(s == 0, -math.inf) if sizes[1] else way)  # the root takes one word, or any
        right_open.append(log_sum_exp(torch.stack(ways), 0) + scores[:, t - 1, s])
        s, t = s[1:], t[1:]
        ways = [siblings[:, s - 1, t, 0] + right[width - 1][:, 1:m]]
        for k in range(1, width):
            ways.append(left_open[width - k][:, k + 1 : k + m] + between[k][:, 1:m] + siblings[:, s - 1, t, s + k])
        found = log_sum_exp(torch.stack(ways), 0) + scores[:, s - 1, t]
        left_open.append(torch.nn.functional.pad(found, (1, 0), value=-math.inf))
        of_width = [right[k][:, :m] + left[width - 1 - k][:, k + 1 : k + 1 + m] for k in range(width)]
        between.append(log_sum_exp(torch.stack(of_width), 0))
        of_width = [right_open[k][:, :m] + right[width - k][:, k : k + m] for k in range(1, width + 1)]
        right.append(log_sum_exp(torch.stack(of_width), 0))
        of_width = [left[k][:, :m] + left_open[width - k][:, k : k + m] for k in range(width)]
        left.append(log_sum_exp(torch.stack(of_width), 0))
    return torch.stack([of_width[:, 0] for of_width in right], 1).gather(1, lengths[:, None])[:, 0]


def tree_log_partition(tensors: Sequence[Tensor], lengths: Tensor, sizes: Sequence[int]) -> Tensor:
    """Matrix-tree theorem (Koo et al. 2007), or Eisner's recursion for projective trees: O(n^3)."""
    (arcs,) = tensors
    _, projective, single_root = sizes
    n, lengths = arcs.shape[1], lengths.to(arcs.device)
    scores = scores_of_arcs(arcs, lengths)
    if n == 0:
        return nothing_to_sum(len(arcs), arcs)
    sums = eisner_log_partition if projective else matrix_tree_log_partition
    found = sums(scores, lengths, bool(single_root))
    return torch.where(lengths > 0, found, torch.zeros_like(found))


def matrix_tree_log_partition(scores: Tensor, lengths: Tensor, single_root: bool) -> Tensor:
    """log det of the Laplacian, in float64; each word's scores are lowered by their highest one, which log Z gets back.

    Words behind the end of a sentence become words that only the root can have, with score 0.
    """
    n, dtype = scores.shape[1], scores.dtype
    word = torch.arange(1, n + 1, device=scores.device)
    inside = word <= lengths[:, None]
    head = torch.arange(n + 1, device=scores.device)
    scores = scores.double().masked_fill((head > lengths[:, None])[:, None, :], -math.inf)
    high = scores.detach().amax(-1, keepdim=True)
    high = torch.where(high.isfinite(), high, torch.zeros_like(high))
    weights = torch.where(inside[..., None], (scores - high).exp(), torch.zeros_like(scores))  # (B, word, head)
    root, inner = weights[..., 0], weights[..., 1:]
    if single_root:
        laplacian = torch.diag_embed(inner.sum(-1)) - inner  # rows: words, columns: heads
        first = torch.zeros_like(laplacian)
        first[..., 0] = 1.0
        laplacian = laplacian * (1 - first) + first * root[..., None]
    else:
        laplacian = torch.diag_embed(inner.sum(-1) + root) - inner
    outside = torch.diag_embed((~inside).to(laplacian.dtype))
    keep = inside[..., None] & inside[:, None, :]
    laplacian = torch.where(keep, laplacian, outside)
    some = torch.linalg.slogdet(laplacian.detach())[0] > 0  # else there is no tree, and no derivative of the determinant
    eye = torch.eye(n, dtype=laplacian.dtype, device=laplacian.device)
    value = torch.linalg.slogdet(torch.where(some[:, None, None], laplacian, eye))[1]
    value = torch.where(some, value, torch.full_like(value, -math.inf))
    return (value + (high.squeeze(-1) * inside).sum(-1)).to(dtype)


def eisner_log_partition(scores: Tensor, lengths: Tensor, single_root: bool) -> Tensor:
    """Sums over projective trees, span by span from the shortest on (Eisner 1996)."""
    N = scores.shape[1] + 1
    arc = scores.new_full((scores.shape[0], N, N), -math.inf)
    arc = torch.cat([arc[:, :1], scores], 1)  # (B, to, from), the root being 0
    zero = scores.new_zeros(scores.shape[0])
    right = {(k, k): zero for k in range(N)}  # complete, head on the left
    left = {(k, k): zero for k in range(N)}  # complete, head on the right
    right_open, left_open = {}, {}
    for width in range(1, N):
        for i in range(N - width):
            j = i + width
            if i == 0 and single_root and j > 1:  # the root takes one word: it has taken none before
                halves = [right[0, 0] + left[1, j]]
            else:
                halves = [right[i, r] + left[r + 1, j] for r in range(i, j)]
            joined = log_sum_exp(torch.stack(halves), 0)
            right_open[i, j] = joined + arc[:, j, i]
            left_open[i, j] = joined + arc[:, i, j]
            right[i, j] = log_sum_exp(torch.stack([right_open[i, k] + right[k, j] for k in range(i + 1, j + 1)]), 0)
            left[i, j] = log_sum_exp(torch.stack([left[i, k] + left_open[k, j] for k in range(i, j)]), 0)
    found = torch.stack([right[0, k] for k in range(N)], 1)
    return found.gather(1, lengths[:, None])[:, 0]


def alignment_log_partition(tensors: Sequence[Tensor], lengths: Tensor, sizes: Sequence[int]) -> Tensor:
    """Sums over alignments with affine gaps, from match to match: O(n^2 m^2), for small inputs only."""
    match, first, second = tensors
    (local,) = sizes
    out = []
    for b, (n, m) in enumerate(lengths.tolist()):
        out.append(_one_alignment(match[b, :n, :m], first[b, :, :n], second[b, :, :m], n, m, bool(local)))
    return torch.stack(out) if out else match.new_zeros(0)


def _one_alignment(match: Tensor, first: Tensor, second: Tensor, n: int, m: int, local: bool) -> Tensor:
    """Sums over the next match: what lies between two matches is one gap in each sequence, at most."""

    def run(scores: Tensor, begin: int, end: int, at_end: bool) -> Tensor:  # one gap over places begin .. end - 1
        if begin == end:
            return scores.new_zeros(())
        opened, extended = (END_OPEN, END_EXTEND) if at_end else (OPEN, EXTEND)
        return scores[opened, begin] + scores[extended, begin + 1 : end].sum()

    def left_out(i: int, j: int, end_i: int, end_j: int) -> Tensor:  # outside a local alignment
        return first[END_EXTEND, i:end_i].sum() + second[END_EXTEND, j:end_j].sum()

    total = [left_out(0, 0, n, m) if local else run(first, 0, n, True) + run(second, 0, m, True)]
    sums: dict[tuple[int, int], Tensor] = {}
    for i in range(n):
        for j in range(m):
            ways = [left_out(0, 0, i, j) if local else run(first, 0, i, True) + run(second, 0, j, i == 0)]
            ways += [sums[a, b] + run(first, a + 1, i, False) + run(second, b + 1, j, False) for a in range(i) for b in range(j)]
            sums[i, j] = log_sum_exp(torch.stack(ways), 0) + match[i, j]
            behind = left_out(i + 1, j + 1, n, m) if local else run(first, i + 1, n, j + 1 == m) + run(second, j + 1, m, True)
            total.append(sums[i, j] + behind)
    return log_sum_exp(torch.stack(total), 0)
