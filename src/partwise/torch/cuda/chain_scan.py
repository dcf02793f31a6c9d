"""log Z and all states of linear chains: the sequential kernels.

Forward and backward recursions, in units of log 2, run side by side as two programs of each sequence:

    a_t(j) = e_t(j) + log2 sum_i 2^( a_{t-1}(i) + w(i, j) ),        b_t(i) = e_t(i) + log2 sum_j 2^( w(i, j) + b_{t+1}(j) )

A step is T times in the way of the result, so what counts is how long one takes. `scan` therefore makes the inner step a plain
product of a vector with 2^w, which stays in registers, one target label for each lane: L^2 multiplications and L exponentials.
Both factors are scaled to a maximum of 2^50, w by column, so that sums lose only what is below 2^-126; the smallest column sum is
kept, and proves afterwards that nothing that counts was lost. What cannot be proved (scores far apart, forbidden transitions that
leave a label unreachable) is done again by `scan_again`, a second launch that is normally empty, with the maximum subtracted for
each target: L^2 exponentials a step.

States are kept relative to a running offset, whose parts (`shifts`) are what the gradient needs and add up to log Z.
Time O(T L^2) for each sequence, memory O(T L). Sequences lie anywhere among the rows of emissions (`begins`), padded or not.
"""

from __future__ import annotations

import triton
import triton.language as tl

from partwise.torch.cuda.launch import LN2, LOG2E, add_pairs, finite, highest, lg2

SCALE = tl.constexpr(50.0)  # log2 of the largest entry of both factors
LOST = tl.constexpr(2.0**-51)  # a column sum of L times this has lost less than its last bit: L 2^(50 - 125) 2^24


@triton.jit
def log2_unscaled(s):
    """log2(s) - 2 SCALE without rounding at magnitude 100."""
    return tl.where(s > 1.0, lg2(s * 2.0**-100), lg2(s) - 100.0)


@triton.jit
def row(E, place, label, L: tl.constexpr, there):
    """A row of scores as it is stored: converted only when it is used, so that the load can be on its way."""
    return tl.load(E + place + label, mask=(label < L) & there, other=0.0)


@triton.jit
def in_bits(r, more, label, L: tl.constexpr, LP: tl.constexpr):
    """A row in units of log 2, -inf behind the last label."""
    v = r.to(tl.float32) * LOG2E + more
    if L != LP:
        v = tl.where(label < L, v, float("-inf"))
    return v


@triton.jit
def _product_step(x, least, e, P, t, X, base, SH, first, label, L: tl.constexpr, LP: tl.constexpr, LATE: tl.constexpr, d):
    """One step by a product; sums over sources are split in two, as each is one dependent chain of additions."""
    H: tl.constexpr = LP // 2
    p = tl.reshape(tl.exp2(x + SCALE), (2, H))[:, :, None]
    if LATE:  # lowered by the sum of the sources: that of the step before, without waiting for a maximum
        s, z = tl.reduce((p * P, tl.broadcast_to(p, (2, H, LP))), 1, add_pairs)
        s, z = tl.reduce((s, z), 0, add_pairs)
        lz = lg2(z * 2.0**-50)
        em = highest(e)
        x = (log2_unscaled(s) - lz) + (e - em)
        shift = lz + em
    else:
        s = tl.sum(tl.sum(p * P, axis=1), axis=0)
        y = log2_unscaled(s) + e
        shift = highest(y)
        x = y - shift
    if L != LP:
        least = tl.where(label < L, tl.minimum(least, s), least)
    else:
        least = tl.minimum(least, s)
    tl.store(X + base + t * L + label, x, mask=label < L)
    if d == 0:
        if LATE:
            tl.store(SH + first + t + label * 0, shift, mask=label == 0)
        else:
            tl.store(SH + first + t, shift)
    return x, least


@triton.jit
def _log_step(x, e, w, t, X, base, SH, first, label, L: tl.constexpr, LP: tl.constexpr, d):
    """One step with the maximum subtracted for each target; w is [4, sources / 4, targets]."""
    v = tl.reshape(x, (4, LP // 4))[:, :, None] + w
    m = finite(tl.max(tl.max(v, axis=1), axis=0))
    s = tl.sum(tl.sum(tl.exp2(v - m[None, None, :]), axis=1), axis=0)
    y = m + lg2(s) + e
    shift = highest(y)
    x = y - shift
    tl.store(X + base + t * L + label, x, mask=label < L)
    if d == 0:
        tl.store(SH + first + t, shift)
    return x


@triton.jit
def log_scan(E, base, w, x, X, SH, first, n, t0, dt, label, L: tl.constexpr, LP: tl.constexpr, d):
    """The recursion in the log domain from a state x at t0, over n tokens; four rows of emissions are always on their way."""
    c0 = row(E, base + (t0 + dt) * L, label, L, n > 1)
    c1 = row(E, base + (t0 + 2 * dt) * L, label, L, n > 2)
    c2 = row(E, base + (t0 + 3 * dt) * L, label, L, n > 3)
    c3 = row(E, base + (t0 + 4 * dt) * L, label, L, n > 4)
    blocks = (n - 1) // 4
    for k in range(0, blocks):
        s = 1 + 4 * k
        t = t0 + s * dt
        f0 = row(E, base + (t + 4 * dt) * L, label, L, s + 4 < n)
        f1 = row(E, base + (t + 5 * dt) * L, label, L, s + 5 < n)
        f2 = row(E, base + (t + 6 * dt) * L, label, L, s + 6 < n)
        f3 = row(E, base + (t + 7 * dt) * L, label, L, s + 7 < n)
        x = _log_step(x, in_bits(c0, 0.0, label, L, LP), w, t, X, base, SH, first, label, L, LP, d)
        x = _log_step(x, in_bits(c1, 0.0, label, L, LP), w, t + dt, X, base, SH, first, label, L, LP, d)
        x = _log_step(x, in_bits(c2, 0.0, label, L, LP), w, t + 2 * dt, X, base, SH, first, label, L, LP, d)
        x = _log_step(x, in_bits(c3, 0.0, label, L, LP), w, t + 3 * dt, X, base, SH, first, label, L, LP, d)
        c0 = f0
        c1 = f1
        c2 = f2
        c3 = f3
    for s in range(1 + 4 * blocks, n):
        t = t0 + s * dt
        e = in_bits(row(E, base + t * L, label, L, True), 0.0, label, L, LP)
        x = _log_step(x, e, w, t, X, base, SH, first, label, L, LP, d)
    return x


@triton.jit
def gold_score(E, TR, ST, EN, Y, base, first, n, L: tl.constexpr):
    """Score of the given labels, by 128 tokens at a time."""
    total = tl.zeros((128,), tl.float64)
    for lo in range(0, n, 128):
        t = lo + tl.arange(0, 128)
        there = t < n
        y = tl.load(Y + first + t, mask=there, other=0).to(tl.int32)
        before = tl.load(Y + first + t - 1, mask=there & (t > 0), other=0).to(tl.int32)
        y = tl.minimum(tl.maximum(y, 0), L - 1)  # whoever has not had the labels checked stays inside the memory
        before = tl.minimum(tl.maximum(before, 0), L - 1)
        s = tl.load(E + base + t * L + y, mask=there, other=0.0).to(tl.float32)
        s += tl.load(TR + before * L + y, mask=there & (t > 0), other=0.0).to(tl.float32)
        s += tl.load(ST + y, mask=t == 0, other=0.0).to(tl.float32)
        s += tl.load(EN + y, mask=t == n - 1, other=0.0).to(tl.float32)
        total += tl.where(there, s, 0.0).to(tl.float64)
    return tl.sum(total, axis=0)


@triton.jit
def log_z_of(x, EN, SH, first, n, label, L: tl.constexpr):
    """log Z from the last state and all shifts."""
    end = tl.load(EN + label, mask=label < L, other=float("-inf")).to(tl.float32) * LOG2E + x
    m = finite(tl.max(end, axis=0))
    last = m + lg2(tl.sum(tl.exp2(end - m), axis=0))
    tl.debug_barrier()  # shifts were stored by this program, by other threads
    total = tl.zeros((128,), tl.float64)
    for lo in range(0, n, 128):
        t = lo + tl.arange(0, 128)
        total += tl.load(SH + first + t, mask=t < n, other=0.0).to(tl.float64)
    return (tl.sum(total, axis=0) + last.to(tl.float64)) * LN2


@triton.jit(do_not_specialize=["of_tr", "of_st", "of_en"])
def scan(
    E, BEG, LEN, TR, ST, EN, Y, X0, X1, SH, OUT, FLAG, of_tr, of_st, of_en,
    L: tl.constexpr, LP: tl.constexpr, LATE: tl.constexpr, AGAIN: tl.constexpr, GOLD: tl.constexpr,
):  # fmt: skip
    """Program (b, d): sequence b from its beginning (d = 0) or its end (d = 1). OUT is log Z, less the score of the gold labels.

    With AGAIN only what is flagged is done, in the log domain; else FLAG says what has to be.
    """
    b = tl.program_id(0)
    d = tl.program_id(1)
    n = tl.load(LEN + b).to(tl.int32)
    if AGAIN:
        if tl.load(FLAG + b * 2 + d) == 0:
            return
    if n == 0:
        tl.store(FLAG + b * 2 + d, 0)
        if d == 0:
            tl.store(OUT + b, 0.0)
        return
    label = tl.arange(0, LP)
    first = tl.load(BEG + b).to(tl.int64)
    base = first * L
    TR += b.to(tl.int64) * of_tr
    ST += b.to(tl.int64) * of_st
    EN += b.to(tl.int64) * of_en
    source = 1  # strides of transitions: [target, source] forwards, the other way round backwards
    target = L
    X = X1
    EDGE = EN
    if d == 0:
        source = L
        target = 1
    if d == 0:
        X = X0
    if d == 0:
        EDGE = ST
    t0 = tl.where(d == 0, 0, n - 1)
    dt = tl.where(d == 0, 1, -1)
    square = (label[:, None] < L) & (label[None, :] < L)
    w = tl.load(TR + label[:, None] * target + label[None, :] * source, mask=square, other=float("-inf")).to(tl.float32) * LOG2E
    edge = tl.load(EDGE + label, mask=label < L, other=float("-inf")).to(tl.float32) * LOG2E
    x = in_bits(row(E, base + t0 * L, label, L, True), 0.0, label, L, LP) + edge
    m = highest(x)
    x = x - m
    tl.store(X + base + t0 * L + label, x, mask=label < L)
    if d == 0:
        tl.store(SH + first, m)
    if AGAIN:
        x = log_scan(E, base, tl.reshape(tl.trans(w), (4, LP // 4, LP)), x, X, SH, first, n, t0, dt, label, L, LP, d)
    else:
        w3 = tl.reshape(tl.trans(w), (2, LP // 2, LP))
        top = finite(tl.max(tl.max(w3, axis=1), axis=0))  # of each column: it goes into the emissions
        P = tl.exp2(w3 - top[None, None, :] + SCALE)
        least = tl.full((LP,), 1.0, tl.float32)
        c0 = row(E, base + (t0 + dt) * L, label, L, n > 1)
        c1 = row(E, base + (t0 + 2 * dt) * L, label, L, n > 2)
        c2 = row(E, base + (t0 + 3 * dt) * L, label, L, n > 3)
        c3 = row(E, base + (t0 + 4 * dt) * L, label, L, n > 4)
        blocks = (n - 1) // 4
        for k in range(0, blocks):
            s = 1 + 4 * k
            t = t0 + s * dt
            f0 = row(E, base + (t + 4 * dt) * L, label, L, s + 4 < n)
            f1 = row(E, base + (t + 5 * dt) * L, label, L, s + 5 < n)
            f2 = row(E, base + (t + 6 * dt) * L, label, L, s + 6 < n)
            f3 = row(E, base + (t + 7 * dt) * L, label, L, s + 7 < n)
            x, least = _product_step(x, least, in_bits(c0, top, label, L, LP), P, t, X, base, SH, first, label, L, LP, LATE, d)
            x, least = _product_step(
                x, least, in_bits(c1, top, label, L, LP), P, t + dt, X, base, SH, first, label, L, LP, LATE, d
            )
            x, least = _product_step(
                x, least, in_bits(c2, top, label, L, LP), P, t + 2 * dt, X, base, SH, first, label, L, LP, LATE, d
            )
            x, least = _product_step(
                x, least, in_bits(c3, top, label, L, LP), P, t + 3 * dt, X, base, SH, first, label, L, LP, LATE, d
            )
            c0 = f0
            c1 = f1
            c2 = f2
            c3 = f3
        for s in range(1 + 4 * blocks, n):
            t = t0 + s * dt
            e = in_bits(row(E, base + t * L, label, L, True), top, label, L, LP)
            x, least = _product_step(x, least, e, P, t, X, base, SH, first, label, L, LP, LATE, d)
        f = tl.max(x, axis=0)
        kept = (tl.min(least, axis=0) >= L * LOST) & (f > float("-inf")) & (f < float("inf"))
        tl.store(FLAG + b * 2 + d, tl.where(kept, 0, 1))
    if d == 0:
        value = log_z_of(x, EN, SH, first, n, label, L)
        if GOLD:
            value -= gold_score(E, TR, ST, EN, Y, base, first, n, L)
        tl.store(OUT + b, value)
