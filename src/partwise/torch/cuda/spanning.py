"""Sums over all spanning trees of a sentence on the device: Tutte's matrix-tree theorem, by an elimination without a minus sign.

The Laplacian has a row for each word m: what its heads weigh on the diagonal, -w(h, m) beside it. Its determinant is Z, but at
large scores its entries cancel, and those of its inverse even more. The elimination of Grassmann, Taksar and Heyman (1985) keeps
what each word's heads, the root among them, weigh, and the diagonal only as their sum:

    p_k = sum_h w(h, k),        w(h, m) += w(k, m) w(h, k) / p_k,        log Z = sum_k log p_k

for all heads h and words m that are left, with words taken out one after the other: sums, products and quotients of what is not
negative, so log Z is right to the last digits at any spread of scores, without pivots. That the root has exactly one word is the
term of Z of first order in the root's weights: these are made so small that no other term counts. Marginals are w times the
derivatives o of log Z, by the same steps backwards:

    u(m) = sum_h o(h, m) w(h, k) / p_k,      left = 1 - sum_m w(k, m) u(m),      o(h, k) = ( sum_m o(h, m) w(k, m) + left ) / p_k

and o(k, m) = u(m), over what was left when k was taken out. The one difference, `left`, 1 less the expected number of words that
k is the head of, has a small absolute error whatever the scores.

What counts is how long a step takes: n of them wait for each other, and n more on the way back. One program for each sentence has
a thread for each place, a word or the root. Words are taken out by panels of P: the weights of their heads and those of the words
they may be heads of stay in registers, float64, and learn of the words before them all at once, when the panel is begun. What is
left of each word when it is taken out goes to memory, where the derivatives take its place on the way back. A head that is e^300
times less likely than another of its word counts as impossible. Longer sentences than `MOST` go through a factorisation and the
inverse by torch's linear algebra. Time O(n^3), memory 16 n (n + 1) bytes, rounded up, for each sentence.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from partwise.torch.cuda.launch import add_pairs, launch, power_of_2

MOST = 127  # words
PANEL = 4  # words that are taken out together
STEPS = 4  # of a product, whose factors are loaded together
FAINT = tl.constexpr(1e-150)  # what the root's weights are multiplied by if it has exactly one word
OF_FAINT = tl.constexpr(-345.38776394910684)  # its logarithm
WIDTH = 32  # places for each warp
LARGEST = tl.constexpr(1e300)  # derivatives are not infinite: they may be multiplied by 0


@triton.jit
def _weights(A, high, m, j, length, n, SINGLE: tl.constexpr):
    """Weights of heads j, the root behind the last word, of words m over that of the best one, whose score is `high`."""
    column = tl.where(j == length, 0, j + 1)
    there = (m < length) & (j <= length) & (j != m)
    w = _exp(tl.load(A + m * (n + 1) + column, mask=there, other=float("-inf")).to(tl.float64) - high)
    if SINGLE:
        w = tl.where(j == length, w * FAINT, w)
    return w


@triton.jit
def _products(
    one, other, X0, X1, of_row, of_step, Y0, Y1, rows, place, some, first, last, after, end0, end1,
    NP: tl.constexpr, STEPS: tl.constexpr,
):  # fmt: skip
    """one[r, c] += sum of X0[r, k] Y0[k, c] over first <= k < last, for r < some, after <= c < end0; and the other product.

    `of_row` and `of_step` are the strides of X0 and X1. What STEPS of k need is loaded at once: memory is what takes time here.
    """
    for k0 in range(first, last, STEPS):
        for i in tl.static_range(STEPS):
            k = k0 + i
            row = (rows < some) & (k < last)
            column = (place >= after) & (k < last)
            x = tl.load(X0 + rows * of_row + k * of_step, mask=row, other=0.0)
            y = tl.load(Y0 + k * NP + place, mask=column & (place < end0), other=0.0)
            one += x[:, None] * y[None, :]
            x = tl.load(X1 + rows * of_row + k * of_step, mask=row, other=0.0)
            y = tl.load(Y1 + k * NP + place, mask=column & (place < end1), other=0.0)
            other += x[:, None] * y[None, :]
    return one, other


@triton.jit
def _inverse(p):
    return tl.where(p > 0.0, 1.0 / tl.where(p > 0.0, p, 1.0), 0.0)


@triton.jit
def _exp(x):
    """exp(x) for x <= 0 to fifteen digits; 0 below e^-700. That of the library goes through its special cases for each number."""
    x = tl.maximum(x, -750.0) * 1.4426950408889634
    whole = (x + 6755399441055744.0) - 6755399441055744.0  # the nearest integer
    f = x - whole
    y = f * 4.4549e-10 + 7.0549116208011233e-09  # ln(2)^k / k!
    y = y * f + 1.0178086009239699e-07
    y = y * f + 1.3215486790144309e-06
    y = y * f + 1.5252733804059841e-05
    y = y * f + 1.5403530393381608e-04
    y = y * f + 1.3333558146428441e-03
    y = y * f + 9.6181291076284769e-03
    y = y * f + 5.5504108664821580e-02
    y = y * f + 2.4022650695910069e-01
    y = y * f + 6.9314718055994529e-01
    y = y * f + 1.0
    power = ((whole.to(tl.int32) + 1023).to(tl.int64) << 52).to(tl.float64, bitcast=True)
    return tl.where(x > -1009.0, y * power, 0.0)


@triton.jit
def _row(tile, r, i):
    """Row i of a tile: r are the numbers of its rows."""
    return tl.sum(tl.where(r == i, tile, 0.0), axis=0)


@triton.jit
def _spread(few, r, c, k0):
    """A number for each word of the panel, at its place."""
    return tl.sum(tl.where(c == k0 + r, few[:, None], 0.0), axis=0)


@triton.jit
def _bounded(x):
    return tl.minimum(tl.maximum(x, 0.0), LARGEST)


@triton.jit(do_not_specialize=["n"])
def eliminate(A, LEN, S, OUT, Z, n, SINGLE: tl.constexpr, NP: tl.constexpr, P: tl.constexpr, STEPS: tl.constexpr):
    """A, OUT (B, n, n + 1): scores of heads, the root first, and marginals. S: room, 2 n + 4 rows of NP. Z (B,)."""
    b = tl.program_id(0).to(tl.int64)
    length = tl.load(LEN + b).to(tl.int32)
    A += b * n * (n + 1)
    OUT += b * n * (n + 1)
    V = S + b * (2 * n + 4) * NP  # of each word what it weighs as a head of those left; then the derivatives by word
    H = V + n * NP  # of each word the shares of its heads; then the derivatives by head, the root's behind those of the words
    HIGH = H + (n + 1) * NP  # the best score of each word's heads
    SUMS = HIGH + NP  # p
    SHARES = SUMS + NP  # 1 / p
    place = tl.arange(0, NP)
    rows = tl.arange(0, P)
    c = place[None, :]
    r = rows[:, None]
    high = tl.full((NP,), float("-inf"), tl.float64)
    for j0 in range(0, length + 1, 16):
        j = j0 + tl.arange(0, 16)[:, None]
        there = (c < length) & (j <= length) & (j != c + 1)
        s = tl.load(A + c * (n + 1) + j, mask=there, other=float("-inf"))
        high = tl.maximum(high, tl.max(s, axis=0).to(tl.float64))
    high = tl.where(high > float("-inf"), high, 0.0)
    tl.store(HIGH + place, high)
    tl.debug_barrier()
    for k0 in range(0, length, P):
        heads, words = _products(  # what the words before have left them
            tl.zeros((P, NP), tl.float64), tl.zeros((P, NP), tl.float64), V + k0, H + k0, 1, NP, H, V,
            rows, place, length - k0, 0, k0, k0, NP, NP, NP, STEPS,
        )  # fmt: skip
        of_row = tl.load(HIGH + k0 + rows)
        heads += _weights(A, of_row[:, None], k0 + r, c, length, n, SINGLE)
        words += tl.where(k0 + r < length, _weights(A, high[None, :], c, k0 + r, length, n, False), 0.0)
        for i in tl.static_range(P):
            k = k0 + i
            there = (place > k) & (k < length)
            h = tl.where(there, _row(heads, r, i), 0.0)
            v = tl.where(there, _row(words, r, i), 0.0)
            mine = c == k0 + r  # what a word of the panel gets, by its row; and in row i all
            if i < P - 1:
                few = (tl.where(mine, v[None, :], 0.0), tl.where(mine | (r == i), h[None, :], 0.0))
                of_words, of_heads = tl.reduce(few, 1, add_pairs)
                p = _row(of_heads, rows, i)
                one = _inverse(p)
                heads += of_words[:, None] * (h * one)[None, :]
                words += (of_heads * one)[:, None] * v[None, :]
            else:
                p = tl.sum(h, axis=0)
                one = _inverse(p)
            tl.store(V + k * NP + place, v, mask=(place < NP) & (k < length))
            tl.store(H + k * NP + place, h * one, mask=(place < NP) & (k < length))
            tl.store(SUMS + k, p)
            tl.store(SHARES + k, one)
        tl.debug_barrier()
    sums = tl.load(SUMS + place, mask=place < length, other=1.0)
    value = tl.where(sums > 0.0, tl.log(tl.where(sums > 0.0, sums, 1.0)), float("-inf"))
    value = tl.sum(value, axis=0) + tl.sum(tl.where(place < length, high, 0.0), axis=0)
    for back in range(0, tl.cdiv(length, P)):
        k0 = (tl.cdiv(length, P) - 1 - back) * P
        k1 = k0 + P
        outer = (c >= k1) | (c == length)  # places that are not of this panel: the root's may lie among them
        out = (place >= k1) | (place == length)
        inside = (k0 + r < length) & (c > k0 + r)
        share = tl.load(H + (k0 + r) * NP + c, mask=inside & (c <= length), other=0.0)
        weigh = tl.load(V + (k0 + r) * NP + c, mask=inside & (c < length), other=0.0)
        ones = tl.load(SHARES + k0 + rows)
        by_head, by_word = _products(  # of o(k, ...) and o(..., k), from what is left behind the panel
            tl.zeros((P, NP), tl.float64), tl.zeros((P, NP), tl.float64), H + k0 * NP, V + k0 * NP, NP, 1, H, V,
            rows, place, length - k0, k1, length + 1, k1, length, length + 1, NP, STEPS,
        )  # fmt: skip
        for back_in in tl.static_range(P):
            i = P - 1 - back_in
            k = k0 + i
            later = rows > i
            fine = k < length
            of_share = _row(share, r, i)
            of_weigh = _row(weigh, r, i)
            one = tl.where(fine, _row(ones, rows, i), 0.0)
            weighed = by_head * of_weigh[None, :]
            shared = tl.where(r > i, by_word * of_share[None, :], tl.where((r == i) & outer, weighed, 0.0))
            if i < P - 1:
                x, y = tl.reduce((shared, tl.where(r > i, weighed, 0.0)), 1, add_pairs)
            else:
                x = tl.where(rows == i, tl.sum(tl.where(out, _row(by_head, r, i) * of_weigh, 0.0), axis=0), 0.0)
                y = tl.zeros((P,), tl.float64)
            to = tl.load(V + k * NP + k0 + rows, mask=fine & later, other=0.0)
            left = 1.0 - tl.sum(tl.where(rows == i, x, tl.where(later, to * x, 0.0)), axis=0)
            x = tl.where(later & fine, _bounded(x), 0.0)
            y = tl.where(later & fine & (k0 + rows < length), _bounded((y + left) * one), 0.0)
            up = tl.where(out, _bounded(_row(by_head, r, i)), _spread(x, r, c, k0))
            across = tl.where(out, _bounded((_row(by_word, r, i) + left) * one), _spread(y, r, c, k0))
            up = tl.where((place < length) & fine, up, 0.0)
            across = tl.where((place <= length) & fine, across, 0.0)
            if i < P - 1:
                by_head = tl.where((c == k) & (r > i), y[:, None], by_head)
                by_word = tl.where((c == k) & (r > i), x[:, None], by_word)
            by_head = tl.where(r == i, up[None, :], by_head)
            by_word = tl.where(r == i, across[None, :], by_word)
            if i > 0:
                as_head = tl.load(H + (k0 + rows) * NP + k, mask=fine & (rows < i), other=0.0)
                as_word = tl.load(V + (k0 + rows) * NP + k, mask=fine & (rows < i), other=0.0)
                by_head += as_head[:, None] * up[None, :]
                by_word += as_word[:, None] * across[None, :]
        tl.debug_barrier()
        here = (k0 + r < length) & (c >= k0)
        tl.store(V + (k0 + r) * NP + c, by_word, mask=here & (c <= length))
        tl.store(H + (k0 + r) * NP + c, by_head, mask=here & (c < length))
        tl.store(V + c * NP + k0 + r, by_head, mask=here & outer & (c < length))
        tl.store(H + c * NP + k0 + r, by_word, mask=here & outer & (c <= length))
        tl.debug_barrier()
    possible = value > float("-inf")
    if SINGLE:
        value -= OF_FAINT
        of_root = tl.load(H + length * NP + place, mask=place < length, other=0.0)
        roots = tl.sum(of_root * _weights(A, high, place, length + place * 0, length, n, SINGLE), axis=0)
        possible = possible & (roots < 1.5)  # else there are only trees with two words of the root, or more
    value = tl.where(length == 0, 0.0, value)
    tl.store(Z + b, tl.where(possible, value, float("-inf")))
    for m0 in range(0, n, P):
        m = m0 + r
        w = _weights(A, tl.load(HIGH + m0 + rows, mask=m0 + rows < length, other=0.0)[:, None], m, c, length, n, SINGLE)
        found = w * tl.load(V + m * NP + c, mask=(m < length) & (c <= length), other=0.0)
        column = tl.where(c == length, 0, tl.where(c < length, c + 1, c))
        tl.store(OUT + m * (n + 1) + column, tl.where(possible, found, 0.0), mask=(m < n) & (c <= n))


def trees(scores: Tensor, lengths: Tensor, single_root: bool, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """log Z (B,) and marginals of arcs (B, n, n + 1); lengths on the device."""
    B, n, _ = scores.shape
    if n > MOST:
        return by_factors(scores, lengths, single_root)
    places = power_of_2(n + 1, 32)
    room = torch.empty(B, 2 * n + 4, places, dtype=torch.float64, device=scores.device)
    found = torch.empty(scores.shape, dtype=dtype, device=scores.device)
    values = torch.empty(B, dtype=dtype, device=scores.device)
    launch(
        eliminate, (B,), scores.contiguous(), lengths, room, found, values, n, SINGLE=single_root, NP=places, P=PANEL,
        STEPS=STEPS, num_warps=max(1, places // WIDTH),
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
