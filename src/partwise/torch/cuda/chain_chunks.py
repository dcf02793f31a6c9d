"""States of few, very long chains: steps of many places at once.

With few sequences of thousands of tokens `chain_scan` leaves the device idle: its steps are one after the other. Here a sequence
is cut into chunks of K tokens.

1. `products`: for all chunks at once, the matrix of log sums over paths from each label before a chunk to each at its end:
   O(T L^3) work instead of O(T L^2), on the matrix units.
2. `link`: from chunk to chunk, T / K dependent steps.
3. `fill`: inside all chunks at once, states from the chunk's edge, as `chain_scan` would leave them: K dependent steps.

Dependent steps: 2 K + T / K instead of T. Memory: O(T L + T / K L^2). All in the log domain, but for the products in `products`,
whose rows are scaled as in `chain_scan`, proved, and made again in the log domain where that fails.
"""

from __future__ import annotations

import triton
import triton.language as tl

from partwise.torch.cuda.chain_scan import LOST, SCALE, gold_score, in_bits, log2_unscaled, log_scan, row
from partwise.torch.cuda.launch import LN2, LOG2E, finite, highest, lg2


@triton.jit(do_not_specialize=["CHUNKS", "of_tr"])
def products(
    E, BEG, LEN, TR, M, OFFSET, FLAG, CHUNKS, of_tr,
    L: tl.constexpr, LP: tl.constexpr, K: tl.constexpr, AGAIN: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """M[b, c, i, j] = log2 of the sum over paths from label i at token c K to label j at token (c + 1) K, or at the last one."""
    b = tl.program_id(0)
    c = tl.program_id(1)
    n = tl.load(LEN + b).to(tl.int32)
    lo = c * K
    if lo + 1 >= n:
        return
    if AGAIN:
        if tl.load(FLAG + b * CHUNKS + c) == 0:
            return
    hi = tl.minimum(lo + K, n - 1)
    label = tl.arange(0, LP)
    base = tl.load(BEG + b).to(tl.int64) * L
    square = (label[:, None] < L) & (label[None, :] < L)
    TR += b.to(tl.int64) * of_tr
    w = tl.load(TR + label[:, None] * L + label[None, :], mask=square, other=float("-inf")).to(tl.float32) * LOG2E
    x = w + in_bits(row(E, base + (lo + 1) * L, label, L, True), 0.0, label, L, LP)[None, :]
    r1 = row(E, base + (lo + 2) * L, label, L, lo + 2 <= hi)
    r2 = row(E, base + (lo + 3) * L, label, L, lo + 3 <= hi)
    m = finite(tl.max(x, axis=1))
    x = x - m[:, None]
    offset = m.to(tl.float64)  # rows of a matrix must stay comparable
    if AGAIN:
        wt = tl.trans(w)
        for t in range(lo + 2, hi + 1):
            e = in_bits(r1, 0.0, label, L, LP)
            r1 = r2
            r2 = row(E, base + (t + 2) * L, label, L, t + 2 <= hi)
            v = x[:, None, :] + wt[None, :, :]  # [start, target, source]
            m2 = finite(tl.max(v, axis=2))
            y = m2 + lg2(tl.sum(tl.exp2(v - m2[:, :, None]), axis=2)) + e[None, :]
            m1 = finite(tl.max(y, axis=1))
            x = y - m1[:, None]
            offset += m1.to(tl.float64)
    else:
        top = finite(tl.max(w, axis=0))
        P = tl.exp2(w - top[None, :] + SCALE)
        least = tl.full((LP, LP), 1.0, tl.float32)
        for t in range(lo + 2, hi + 1):
            e = in_bits(r1, top, label, L, LP)
            r1 = r2
            r2 = row(E, base + (t + 2) * L, label, L, t + 2 <= hi)
            s = tl.dot(tl.exp2(x + SCALE), P, input_precision=PRECISION)
            least = tl.where(square, tl.minimum(least, s), least)
            y = log2_unscaled(s) + e[None, :]
            m1 = finite(tl.max(y, axis=1))
            x = y - m1[:, None]
            offset += m1.to(tl.float64)
        kept = tl.min(tl.min(least, axis=1), axis=0) >= L * LOST
        tl.store(FLAG + b * CHUNKS + c, tl.where(kept, 0, 1))
    most = tl.max(tl.where(label < L, offset, float("-inf")), axis=0)
    tl.store(OFFSET + b * CHUNKS + c, most)
    place = (b * CHUNKS + c).to(tl.int64) * (L * L) + label[:, None] * L + label[None, :]
    tl.store(M + place, x + (offset - most).to(tl.float32)[:, None], mask=square)


@triton.jit(do_not_specialize=["B", "CHUNKS", "of_tr", "of_st", "of_en"])
def link(
    E, BEG, LEN, TR, ST, EN, Y, M, OFFSET, EDGES, OUT, B, CHUNKS, of_tr, of_st, of_en,
    L: tl.constexpr, LP: tl.constexpr, K: tl.constexpr, GOLD: tl.constexpr,
):  # fmt: skip
    """Program (b, d): EDGES[0, b, c] is the state before chunk c, EDGES[1, b, c] that behind it; OUT as in `chain_scan.scan`."""
    b = tl.program_id(0)
    d = tl.program_id(1)
    n = tl.load(LEN + b).to(tl.int32)
    if n == 0:
        if d == 0:
            tl.store(OUT + b, 0.0)
        return
    chunks = (n - 1 + K - 1) // K
    label = tl.arange(0, LP)
    fine = label < L
    first = tl.load(BEG + b).to(tl.int64)
    TR += b.to(tl.int64) * of_tr
    ST += b.to(tl.int64) * of_st
    EN += b.to(tl.int64) * of_en
    source = 1
    target = L
    if d == 0:
        source = L
        target = 1
    square = fine[:, None] & fine[None, :]
    place = label[:, None] * target + label[None, :] * source
    c0 = tl.where(d == 0, 0, chunks - 1)
    dc = tl.where(d == 0, 1, -1)
    mine = M + b.to(tl.int64) * CHUNKS * L * L
    end = tl.load(EN + label, mask=fine, other=float("-inf")).to(tl.float32) * LOG2E
    x = end
    if d == 0:
        x = in_bits(row(E, first * L, label, L, True), 0.0, label, L, LP)
        x += tl.load(ST + label, mask=fine, other=float("-inf")).to(tl.float32) * LOG2E
    m = highest(x)
    x = x - m
    offset = m.to(tl.float64)
    g1 = tl.load(mine + c0 * L * L + place, mask=square & (chunks > 0), other=float("-inf"))
    g2 = tl.load(mine + (c0 + dc) * L * L + place, mask=square & (chunks > 1), other=float("-inf"))
    for k in range(0, chunks):
        c = c0 + k * dc
        tl.store(EDGES + ((d * B + b) * CHUNKS + c).to(tl.int64) * L + label, x, mask=fine)
        g = g1
        g1 = g2
        g2 = tl.load(mine + (c + 2 * dc) * L * L + place, mask=square & (k + 2 < chunks), other=float("-inf"))
        v = x[None, :] + g
        m1 = finite(tl.max(v, axis=1))
        y = m1 + lg2(tl.sum(tl.exp2(v - m1[:, None]), axis=1))
        shift = highest(y)
        x = y - shift
        offset += shift.to(tl.float64) + tl.load(OFFSET + b * CHUNKS + c)
    if d == 0:
        v1 = end + x
        m2 = finite(tl.max(v1, axis=0))
        value = (offset + (m2 + lg2(tl.sum(tl.exp2(v1 - m2), axis=0))).to(tl.float64)) * LN2
        if GOLD:
            value -= gold_score(E, TR, ST, EN, Y, first * L, first, n, L)
        tl.store(OUT + b, value)


@triton.jit(do_not_specialize=["B", "CHUNKS", "of_tr", "of_st", "of_en"])
def fill(
    E, BEG, LEN, TR, ST, EN, EDGES, X0, X1, SH, FLAG, B, CHUNKS, of_tr, of_st, of_en,
    L: tl.constexpr, LP: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Program (b, c, d): states inside chunk c, forwards or backwards, from its edge."""
    b = tl.program_id(0)
    c = tl.program_id(1)
    d = tl.program_id(2)
    n = tl.load(LEN + b).to(tl.int32)
    lo = c * K
    if c == 0:
        tl.store(FLAG + b * 2 + d, 1)  # states may be far apart: transitions are to be added up in the log domain
    if (lo + 1 >= n) & ((c > 0) | (n == 0)):
        return
    hi = tl.minimum(lo + K, n - 1)
    label = tl.arange(0, LP)
    fine = label < L
    first = tl.load(BEG + b).to(tl.int64)
    base = first * L
    TR += b.to(tl.int64) * of_tr
    ST += b.to(tl.int64) * of_st
    EN += b.to(tl.int64) * of_en
    source = 1
    target = L
    X = X1
    if d == 0:
        source = L
        target = 1
    if d == 0:
        X = X0
    square = fine[:, None] & fine[None, :]
    w = tl.load(TR + label[:, None] * target + label[None, :] * source, mask=square, other=float("-inf")).to(tl.float32) * LOG2E
    t0 = tl.where(d == 0, lo, hi)
    dt = tl.where(d == 0, 1, -1)
    e = in_bits(row(E, base + t0 * L, label, L, True), 0.0, label, L, LP)
    if n == 1:
        EDGE = EN
        if d == 0:
            EDGE = ST
        x = e + tl.load(EDGE + label, mask=fine, other=float("-inf")).to(tl.float32) * LOG2E
    else:
        x = tl.load(EDGES + ((d * B + b) * CHUNKS + c).to(tl.int64) * L + label, mask=fine, other=float("-inf"))
        if d == 1:
            x += e
    x = x - highest(x)
    steps = hi - lo + 1  # the first chunk owns both its edges, the others only the one behind them
    if (d == 1) & (c > 0):
        steps = hi - lo
    if (d == 1) | (c == 0):
        tl.store(X + base + t0 * L + label, x, mask=fine)
    log_scan(E, base, tl.reshape(tl.trans(w), (4, LP // 4, LP)), x, X, SH, first, steps, t0, dt, label, L, LP, d)
