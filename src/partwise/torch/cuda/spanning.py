"""Sums over all spanning trees of a sentence on the device: Tutte's matrix-tree theorem, by an elimination without a minus sign.

The Laplacian has a row for each word m: what its heads weigh on the diagonal, -w(h, m) beside it. Its determinant is Z, but at
large scores its entries cancel, and those of its inverse even more. The elimination of Grassmann, Taksar and Heyman (1985) keeps
what each word's heads weigh, r(m) of the root and w(h, m), and the diagonal only as their sum:

    p_k = r(k) + sum_h w(h, k),        w(h, m) += w(k, m) w(h, k) / p_k,        r(m) += w(k, m) r(k) / p_k,        log Z = sum_k
    log p_k

with words taken out one after the other: sums, products and quotients of what is not negative, so log Z is right to the last
digits at any spread of scores, without pivots. If the root has exactly one word, p_k is without r(k) but for the last word: the
first-order term of Z in the root's weights. (Words that only the root can have must come late then: the one whose p_k is largest
goes first.) Marginals are w times the derivatives, by the same steps backwards; the one difference in them, 1 less the expected
number of words that k is the head of, has a small absolute error whatever the scores.

One program for each sentence of up to `MOST` words keeps both matrices in its registers, float64. Longer ones go through a
factorisation and the inverse by torch's linear algebra. Time O(n^3), memory beyond the answer none (O(n^2) for the longer ones).
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from partwise.torch.cuda.launch import launch, power_of_2

MOST = 64  # words


@triton.jit
def _weights(A, m, length, n):
    """Scores of heads among the words [word, head] and of the root, -inf for what is none."""
    pair = (m[:, None] < length) & (m[None, :] < length) & (m[:, None] != m[None, :])
    s = tl.load(A + m[:, None] * (n + 1) + m[None, :] + 1, mask=pair, other=float("-inf")).to(tl.float64)
    root = tl.load(A + m * (n + 1), mask=m < length, other=float("-inf")).to(tl.float64)
    return s, root


@triton.jit
def _taken_out(w, r, now, rest, with_root):
    """What the words in `rest` are to word `now`: as heads and as its own, each over what all its heads weigh; and that."""
    heads = tl.where(rest, tl.sum(tl.where(now[:, None], w, 0.0), axis=0), 0.0)
    words = tl.where(rest, tl.sum(tl.where(now[None, :], w, 0.0), axis=1), 0.0)
    root = tl.sum(tl.where(now, r, 0.0), axis=0)
    p = tl.sum(heads, axis=0) + tl.where(with_root, root, 0.0)
    one = tl.where(p > 0.0, 1.0 / tl.where(p > 0.0, p, 1.0), 0.0)
    return heads * one, words, root * one, p, one


@triton.jit(do_not_specialize=["n"])
def eliminate(A, LEN, OUT, Z, n, SINGLE: tl.constexpr, NP: tl.constexpr):
    """A, OUT (B, n, n + 1): scores and marginals of heads, the root first; Z (B,)."""
    b = tl.program_id(0).to(tl.int64)
    length = tl.load(LEN + b).to(tl.int32)
    A += b * n * (n + 1)
    OUT += b * n * (n + 1)
    m = tl.arange(0, NP)
    inside = m < length
    s, root = _weights(A, m, length, n)
    high = tl.maximum(tl.max(s, axis=1), root)
    high = tl.where(high > float("-inf"), high, 0.0)
    w = tl.exp(s - high[:, None])
    r = tl.exp(root - high)
    beside = m[:, None] != m[None, :]
    when = tl.where(inside, NP, -1)  # in which step a word is taken out
    value = tl.sum(tl.where(inside, high, 0.0), axis=0)
    for step in range(0, length):
        if SINGLE:
            sums = tl.where(when == NP, tl.sum(tl.where((when == NP)[None, :], w, 0.0), axis=1), -1.0)
            k = tl.min(tl.where(sums == tl.max(sums, axis=0), m, NP), axis=0)
        else:
            k = step
        now = m == k
        when = tl.where(now, step, when)
        with_root = step == length - 1
        if not SINGLE:
            with_root = step >= 0
        heads, words, of_root, p, _ = _taken_out(w, r, now, when == NP, with_root)
        value += tl.where(p > 0.0, tl.log(tl.where(p > 0.0, p, 1.0)), float("-inf"))
        w += tl.where(beside, words[:, None] * heads[None, :], 0.0)
        r += words * of_root
    tl.store(Z + b, value)
    of_w = tl.zeros((NP, NP), tl.float64)
    of_r = tl.zeros((NP,), tl.float64)
    for back in range(0, length):
        step = length - 1 - back
        now = when == step
        rest = when > step
        with_root = back == 0
        if not SINGLE:
            with_root = back >= 0
        heads, words, of_root, p, one = _taken_out(w, r, now, rest, with_root)
        up = tl.sum(of_w * heads[None, :], axis=1) + of_r * of_root
        left = (1.0 - tl.sum(words * up, axis=0)) * one
        across = tl.sum(of_w * (words * one)[:, None], axis=0) + left
        below = tl.sum(of_r * (words * one), axis=0) + tl.where(with_root, left, 0.0)
        up = tl.minimum(tl.maximum(up, 0.0), 1e300)  # not infinite: it may be multiplied by 0
        across = tl.minimum(tl.maximum(across, 0.0), 1e300)
        below = tl.minimum(tl.maximum(below, 0.0), 1e300)
        of_w = tl.where(now[:, None] & rest[None, :], across[None, :], of_w)
        of_w = tl.where(now[None, :] & rest[:, None], up[:, None], of_w)
        of_r = tl.where(now, below, of_r)
    s, root = _weights(A, m, length, n)
    possible = value > float("-inf")
    found = tl.where(possible, tl.exp(s - high[:, None]) * of_w, 0.0)
    tl.store(OUT + m[:, None] * (n + 1) + m[None, :] + 1, found, mask=(m < n)[:, None] & (m < n)[None, :])
    tl.store(OUT + m * (n + 1), tl.where(possible, tl.exp(root - high) * of_r, 0.0), mask=m < n)


def trees(scores: Tensor, lengths: Tensor, single_root: bool, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """log Z (B,) and marginals of arcs (B, n, n + 1); lengths int32 on the device."""
    B, n, _ = scores.shape
    if n > MOST:
        return by_factors(scores, lengths, single_root)
    found = torch.empty(scores.shape, dtype=dtype, device=scores.device)
    values = torch.empty(B, dtype=dtype, device=scores.device)
    width = power_of_2(n)
    launch(
        eliminate, (B,), scores.contiguous(), lengths, found, values, n, SINGLE=single_root, NP=width,
        num_warps=1 if width == 16 else 4 if width == 32 else 8,
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
