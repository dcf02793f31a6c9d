"""Sums over all spanning trees of a sentence on the device: Tutte's matrix-tree theorem, by an elimination without a minus sign.

The Laplacian has a row for each word m: what its heads weigh on the diagonal, -w(h, m) beside it. Its determinant is Z, but at
large scores its entries cancel, and those of its inverse even more. The elimination of Grassmann, Taksar and Heyman (1985) keeps
what each word's heads, the root among them, weigh, and the diagonal only as their sum:

    p_k = sum_h w(h, k),        w(h, m) += w(k, m) w(h, k) / p_k,        log Z = sum_k log p_k

for all heads h and words m that are left, with words taken out one after the other: sums, products and quotients of what is not
negative, so log Z is right to the last digits at any spread of scores, without pivots. That the root has exactly one word is the
term of Z of first order in the root's weights: these are made so small that no other term counts. Marginals are w times the
derivatives, by the same steps backwards; the one difference in them, 1 less the expected number of words that k is the head of,
has a small absolute error whatever the scores.

One program for each sentence of up to `MOST` words keeps its matrix in registers, float64, and leaves the row and the column of
each word as they are when it is taken out in memory: the next step needs them, and the way back. A head that is e^300 times less
likely than another of its word counts as impossible. Longer sentences go through a factorisation and the inverse by torch's
linear algebra. Time O(n^3), memory O(n^2) for each sentence.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from partwise.torch.cuda.launch import launch, power_of_2

MOST = 63  # words
FAINT = tl.constexpr(1e-150)  # what the root's weights are multiplied by if it has exactly one word
OF_FAINT = tl.constexpr(-345.38776394910684)  # its logarithm


@triton.jit
def _weights(A, m, j, length, n, SINGLE: tl.constexpr):
    """Weights of heads j, the root first, of words m over that of the best one; and the logarithm of that."""
    there = (m < length) & (j <= length) & (j != m + 1)
    s = tl.load(A + m * (n + 1) + j, mask=there, other=float("-inf")).to(tl.float64)
    high = tl.max(s, axis=1)
    high = tl.where(high > float("-inf"), high, 0.0)
    w = tl.exp(s - high[:, None])
    if SINGLE:
        w = tl.where(j == 0, w * FAINT, w)
    return w, high


@triton.jit
def _left_over(S, place, k, length, n):
    """Row and column of word k when it is taken out: its heads and its words among what is left then."""
    heads = tl.load(S + k * (n + 1) + place, mask=(place == 0) | ((place > k + 1) & (place <= length)), other=0.0)
    words = tl.load(S + place * (n + 1) + k + 1, mask=(place > k) & (place < length), other=0.0)
    return heads, words


@triton.jit(do_not_specialize=["n"])
def eliminate(A, LEN, S, OUT, Z, n, SINGLE: tl.constexpr, NP: tl.constexpr):
    """A, S, OUT (B, n, n + 1): scores of heads, the root first; room; marginals. Z (B,)."""
    b = tl.program_id(0).to(tl.int64)
    length = tl.load(LEN + b).to(tl.int32)
    A += b * n * (n + 1)
    S += b * n * (n + 1)
    OUT += b * n * (n + 1)
    place = tl.arange(0, NP)
    m = place[:, None]
    j = place[None, :]
    inside = (m < length) & (j <= length)
    w, high = _weights(A, m, j, length, n, SINGLE)
    tl.store(S + m * (n + 1) + j, w, mask=inside & ((m == 0) | (j == 1)))
    sums = tl.full((NP,), 1.0, tl.float64)
    for k in range(0, length):
        tl.debug_barrier()
        heads, words = _left_over(S, place, k, length, n)
        p = tl.sum(heads, axis=0)
        sums = tl.where(place == k, p, sums)
        heads *= tl.where(p > 0.0, 1.0 / tl.where(p > 0.0, p, 1.0), 0.0)
        w += words[:, None] * heads[None, :]
        tl.store(S + m * (n + 1) + j, w, mask=inside & (m > k) & ((m == k + 1) | (j == k + 2)))
    value = tl.where(sums > 0.0, tl.log(tl.where(sums > 0.0, sums, 1.0)), float("-inf"))
    value = tl.sum(value, axis=0) + tl.sum(tl.where(place < length, high, 0.0), axis=0)
    tl.store(S + place * (n + 1) + place + 1, sums, mask=place < length)
    tl.debug_barrier()
    of = tl.zeros((NP, NP), tl.float64)
    for back in range(0, length):
        k = length - 1 - back
        heads, words = _left_over(S, place, k, length, n)
        p = tl.load(S + k * (n + 1) + k + 1)
        one = tl.where(p > 0.0, 1.0 / tl.where(p > 0.0, p, 1.0), 0.0)
        up = tl.sum(of * (heads * one)[None, :], axis=1)
        left = 1.0 - tl.sum(words * up, axis=0)
        across = (tl.sum(of * words[:, None], axis=0) + left) * one
        up = tl.minimum(tl.maximum(up, 0.0), 1e300)  # not infinite: it may be multiplied by 0
        across = tl.minimum(tl.maximum(across, 0.0), 1e300)
        of = tl.where((m == k) & ((j == 0) | (j > k + 1)), across[None, :], of)
        of = tl.where((j == k + 1) & (m > k), up[:, None], of)
    w, high = _weights(A, m, j, length, n, SINGLE)
    found = w * of
    possible = value > float("-inf")
    if SINGLE:
        value -= OF_FAINT
        roots = tl.sum(tl.sum(tl.where(j == 0, found, 0.0), axis=1), axis=0)
        possible = possible & (roots < 1.5)  # else there are only trees with two words of the root, or more
    value = tl.where(length == 0, 0.0, value)
    tl.store(Z + b, tl.where(possible, value, float("-inf")))
    tl.store(OUT + m * (n + 1) + j, tl.where(possible, found, 0.0), mask=(m < n) & (j <= n))


def trees(scores: Tensor, lengths: Tensor, single_root: bool, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """log Z (B,) and marginals of arcs (B, n, n + 1); lengths int32 on the device."""
    B, n, _ = scores.shape
    if n > MOST:
        return by_factors(scores, lengths, single_root)
    room = torch.empty(scores.shape, dtype=torch.float64, device=scores.device)
    found = torch.empty(scores.shape, dtype=dtype, device=scores.device)
    values = torch.empty(B, dtype=dtype, device=scores.device)
    width = power_of_2(n + 1)
    launch(
        eliminate, (B,), scores.contiguous(), lengths, room, found, values, n, SINGLE=single_root, NP=width,
        num_warps=1 if width == 16 else 8,
    )  # fmt: skip
    return values, found


def by_factors(scores: Tensor, lengths: Tensor, single_root: bool) -> tuple[Tensor, Tensor]:
    """log Z (B,) and marginals of arcs (B, n, n + 1), float64; each word's weights are divided by its largest one.

    Words behind the end of a sentence are words that only the root can have, with score 0.
    """
    B, n, _ = scores.shape
    device = scores.device
    if not n:
        return scores.new_zeros(B, dtype=torch.float64), scores.new_zeros(scores.shape, dtype=torch.float64)
    inside = torch.arange(n, device=device) < lengths[:, None]
    head = torch.arange(n + 1, device=device)
    forbidden = (head > lengths[:, None])[:, None, :] | (head[1:, None] == head) | ~inside[..., None]
    scores = scores.double().masked_fill(forbidden, -torch.inf)
    high = scores.amax(-1, keepdim=True)
    high = torch.where(high.isfinite(), high, 0.0)
    weights = (scores - high).exp()
    root, inner = weights[..., 0], weights[..., 1:]
    total = inner.sum(-1) + (0.0 if single_root else root)
    laplacian = torch.diag_embed(torch.where(inside, total, 1.0)) - inner  # rows: words, columns: heads
    if single_root:
        laplacian[..., 0] = torch.where(inside, root, laplacian[..., 0])
    factors, pivots, _ = torch.linalg.lu_factor_ex(laplacian)
    diagonal = factors.diagonal(dim1=1, dim2=2)
    value = diagonal.abs().log().sum(-1)
    odd = ((pivots != torch.arange(1, n + 1, device=device, dtype=pivots.dtype)).sum(-1) + (diagonal < 0).sum(-1)) % 2
    some = (diagonal != 0).all(-1) & (odd == 0)
    some = some & torch.isfinite(value)
    factors = torch.where(some[:, None, None], factors, torch.eye(n, dtype=factors.dtype, device=device))
    inverse = torch.linalg.lu_solve(factors, pivots, torch.eye(n, dtype=factors.dtype, device=device).expand(B, n, n))
    itself = inverse.diagonal(dim1=1, dim2=2)
    if single_root:  # the first column holds the root's weights
        of_root = root * inverse[:, 0]
        first = head[:n] == 0
        itself, columns = torch.where(first, 0.0, itself), inverse.mT.masked_fill(first, 0.0)
    else:
        of_root, columns = root * itself, inverse.mT
    found = torch.cat([of_root[..., None], inner * (itself[..., None] - columns)], -1)
    empty = lengths == 0
    found = torch.where(some[:, None, None] & inside[..., None], found, 0.0).clamp(min=0.0)
    value = torch.where(some, value + torch.where(inside, high[..., 0], 0.0).sum(-1), -torch.inf)
    return torch.where(empty, 0.0, value), found
