"""Linear chains with more labels than the transitions of which fit into registers: the same states, in tiles.

The recursions are those of `chain_scan`, in the log domain, but transitions are read from the cache at each step, in tiles of
sources by targets, twice: for the maximum of each target, and for the sum of exponentials. States are kept relative to the
maximum of the step before, whose sum (`shifts`) is what the gradient needs. Marginals of tokens, one program for each, leave the
logarithm of their sum; transitions are added up by programs that own a tile of them. L^2 exponentials a token both times, memory
O(T L): no tensor with an entry for each pair of labels at each token is ever made. Time O(T L^2) for each sequence.
"""

from __future__ import annotations

import triton
import triton.language as tl

from partwise.torch.cuda.chain_best import first_best
from partwise.torch.cuda.chain_scan import gold_score, log_z_of
from partwise.torch.cuda.launch import LOG2E, finite, lg2


@triton.jit
def _tile(TR, i, j, L: tl.constexpr):
    """Transitions from labels i to labels j, -inf behind the last label."""
    there = (i < L)[:, None] & (j < L)[None, :]
    return tl.load(TR + i[:, None] * L + j[None, :], mask=there, other=float("-inf")).to(tl.float32)


@triton.jit
def _of_back(b, of_tr, L: tl.constexpr):
    """How far the transitions of sequence b the other way round are from the first ones."""
    return tl.where(of_tr > 0, b.to(tl.int64) * (L * L), 0)


@triton.jit
def _highest_before(X, TR, place, j, unit, L: tl.constexpr, BI: tl.constexpr, BJ: tl.constexpr):
    """max_i X[place + i] + unit TR[i, j]."""
    top = tl.full((BI, BJ), float("-inf"), tl.float32)
    for i0 in range(0, L, BI):
        i = i0 + tl.arange(0, BI)
        x = tl.load(X + place + i, mask=i < L, other=float("-inf"))
        top = tl.maximum(top, x[:, None] + _tile(TR, i, j, L) * unit)
    return tl.max(top, axis=0)


@triton.jit(do_not_specialize=["of_tr", "of_st", "of_en"])
def scan(
    E, BEG, LEN, TR, BACK, ST, EN, Y, X0, X1, SH, OUT, of_tr, of_st, of_en,
    L: tl.constexpr, LP: tl.constexpr, BI: tl.constexpr, BJ: tl.constexpr, GOLD: tl.constexpr,
):  # fmt: skip
    """Program (b, d): as `chain_scan.scan`. BACK are the transitions the other way round."""
    b = tl.program_id(0)
    d = tl.program_id(1)
    n = tl.load(LEN + b).to(tl.int32)
    if n == 0:
        if d == 0:
            tl.store(OUT + b, 0.0)
        return
    first = tl.load(BEG + b).to(tl.int64)
    base = first * L
    TR += b.to(tl.int64) * of_tr
    ST += b.to(tl.int64) * of_st
    EN += b.to(tl.int64) * of_en
    X = X1
    EDGE = EN
    W = BACK + _of_back(b, of_tr, L)
    if d == 0:
        X = X0
    if d == 0:
        EDGE = ST
    if d == 0:
        W = TR
    t0 = tl.where(d == 0, 0, n - 1)
    dt = tl.where(d == 0, 1, -1)
    label = tl.arange(0, LP)
    x = tl.load(E + base + t0 * L + label, mask=label < L, other=float("-inf")).to(tl.float32) * LOG2E
    x += tl.load(EDGE + label, mask=label < L, other=float("-inf")).to(tl.float32) * LOG2E
    high = finite(tl.max(x, axis=0))
    tl.store(X + base + t0 * L + label, x - high, mask=label < L)
    if d == 0:
        tl.store(SH + first, high)
    high = tl.max(x - high, axis=0)
    for s in range(1, n):
        tl.debug_barrier()
        t = t0 + s * dt
        before = base + (t - dt) * L
        shift = finite(high)
        high = tl.max(tl.full((BJ,), float("-inf"), tl.float32), axis=0)
        for j0 in range(0, L, BJ):
            j = j0 + tl.arange(0, BJ)
            e = tl.load(E + base + t * L + j, mask=j < L, other=float("-inf")).to(tl.float32) * LOG2E
            m = finite(_highest_before(X, W, before, j, LOG2E, L, BI, BJ))
            total = tl.zeros((BI, BJ), tl.float32)
            for i0 in range(0, L, BI):
                i = i0 + tl.arange(0, BI)
                a = tl.load(X + before + i, mask=i < L, other=float("-inf"))
                total += tl.exp2(a[:, None] + _tile(W, i, j, L) * LOG2E - m[None, :])
            v = m + lg2(tl.sum(total, axis=0)) + (e - shift)
            tl.store(X + base + t * L + j, v, mask=j < L)
            high = tl.maximum(high, tl.max(v, axis=0))
        if d == 0:
            tl.store(SH + first + t, shift)
    if d == 0:
        tl.debug_barrier()
        x = tl.load(X + base + (n - 1) * L + label, mask=label < L, other=float("-inf"))
        value = log_z_of(x, EN, SH, first, n, label, L)
        if GOLD:
            value -= gold_score(E, TR, ST, EN, Y, base, first, n, L)
        tl.store(OUT + b, value)


@triton.jit(do_not_specialize=["T"])
def expect_labels(
    E, BEG, LEN, Y, G, X0, X1, SH, DE, NORM, T, L: tl.constexpr, LP: tl.constexpr, GOLD: tl.constexpr, WEIGHED: tl.constexpr
):
    """Program (b, t): DE, marginals of a token, less the gold label (GOLD), times G (WEIGHED); NORM, what its pairs are over."""
    b = tl.program_id(0)
    t = tl.program_id(1)
    n = tl.load(LEN + b).to(tl.int32)
    if t >= n:
        return
    row = tl.load(BEG + b).to(tl.int64) + t
    label = tl.arange(0, LP)
    fine = label < L
    e = tl.load(E + row * L + label, mask=fine, other=float("-inf")).to(tl.float32) * LOG2E
    x = tl.load(X0 + row * L + label, mask=fine, other=float("-inf"))
    y = tl.load(X1 + row * L + label, mask=fine, other=float("-inf"))
    u = tl.where(e == float("-inf"), float("-inf"), x + y - e)
    um = finite(tl.max(u, axis=0))
    q = tl.exp2(u - um)
    z = tl.sum(q, axis=0)
    g = 1.0
    if WEIGHED:
        g = tl.load(G + b).to(tl.float32)
    q = q * tl.where(z > 0.0, g / tl.where(z > 0.0, z, 1.0), 0.0)
    if GOLD:
        q = tl.where(label == tl.load(Y + row).to(tl.int32), q - g, q)
    tl.store(DE + row * L + label, q, mask=fine)
    tl.store(NORM + row, tl.where(z > 0.0, um + lg2(z) + tl.load(SH + row), float("inf")))


@triton.jit(do_not_specialize=["B", "PER", "GROUP", "of_tr"])
def expect_pairs(
    BEG, LEN, TR, Y, G, X0, X1, NORM, PART, B, PER, GROUP, of_tr,
    L: tl.constexpr, BI: tl.constexpr, BJ: tl.constexpr, GOLD: tl.constexpr, WEIGHED: tl.constexpr,
):  # fmt: skip
    """Program (g, s, tile): GROUP sequences from g GROUP on, of each PER tokens from s PER on.

    PART (groups, splits, L + 2, L): the program's share of the transitions.
    """
    group = tl.program_id(0)
    split = tl.program_id(1)
    tile = tl.program_id(2)
    across: tl.constexpr = (L + BJ - 1) // BJ
    i = tile // across * BI + tl.arange(0, BI)
    j = tile % across * BJ + tl.arange(0, BJ)
    w = _tile(TR + group.to(tl.int64) * of_tr, i, j, L) * LOG2E
    total = tl.zeros((BI, BJ), tl.float32)
    g = 1.0
    for b in range(group * GROUP, tl.minimum(group * GROUP + GROUP, B)):
        n = tl.load(LEN + b).to(tl.int32)
        first = tl.load(BEG + b).to(tl.int64)
        if WEIGHED:
            g = tl.load(G + b).to(tl.float32)
        for t in range(tl.maximum(split * PER, 1), tl.minimum((split + 1) * PER, n)):
            row = first + t
            a = tl.load(X0 + (row - 1) * L + i, mask=i < L, other=float("-inf"))
            y = tl.load(X1 + row * L + j, mask=j < L, other=float("-inf")) - tl.load(NORM + row)
            total += g * tl.exp2(w + a[:, None] + y[None, :])
            if GOLD:
                before = i == tl.load(Y + row - 1).to(tl.int32)
                total -= tl.where(before[:, None] & (j == tl.load(Y + row).to(tl.int32))[None, :], g, 0.0)
    mine = PART + (group * tl.num_programs(1) + split).to(tl.int64) * ((L + 2) * L)
    tl.store(mine + i[:, None] * L + j[None, :], total, mask=(i < L)[:, None] & (j < L)[None, :])


@triton.jit(do_not_specialize=["T", "of_tr", "of_st", "of_en"])
def climb(
    E, BEG, LEN, TR, BACK, ST, EN, X, OUT, T, of_tr, of_st, of_en,
    L: tl.constexpr, LP: tl.constexpr, BI: tl.constexpr, BJ: tl.constexpr,
):  # fmt: skip
    """Program b: values of all beginnings of sequence b, and back along the best ones: its best labels."""
    b = tl.program_id(0)
    n = tl.load(LEN + b).to(tl.int32)
    if n == 0:
        return
    base = tl.load(BEG + b).to(tl.int64) * L
    TR += b.to(tl.int64) * of_tr
    BACK += _of_back(b, of_tr, L)
    label = tl.arange(0, LP)
    x = tl.load(E + base + label, mask=label < L, other=float("-inf")).to(tl.float32)
    x += tl.load(ST + b.to(tl.int64) * of_st + label, mask=label < L, other=float("-inf")).to(tl.float32)
    tl.store(X + base + label, x, mask=label < L)
    high = tl.max(x, axis=0)
    for t in range(1, n):
        tl.debug_barrier()
        shift = finite(high)
        high = tl.max(tl.full((BJ,), float("-inf"), tl.float32), axis=0)
        for j0 in range(0, L, BJ):
            j = j0 + tl.arange(0, BJ)
            e = tl.load(E + base + t * L + j, mask=j < L, other=float("-inf")).to(tl.float32)
            v = _highest_before(X, TR, base + (t - 1) * L, j, 1.0, L, BI, BJ) + e - shift
            tl.store(X + base + t * L + j, v, mask=j < L)
            high = tl.maximum(high, tl.max(v, axis=0))
    tl.debug_barrier()
    x = tl.load(EN + b.to(tl.int64) * of_en + label, mask=label < L, other=float("-inf")).to(tl.float32)
    OUT += b.to(tl.int64) * T
    for back in range(0, n):
        t = n - 1 - back
        x += tl.load(X + base + t * L + label, mask=label < L, other=float("-inf"))
        y = first_best(x, label, LP)
        tl.store(OUT + t, y.to(OUT.dtype.element_ty))
        x = tl.load(BACK + y * L + label, mask=label < L, other=float("-inf")).to(tl.float32)
