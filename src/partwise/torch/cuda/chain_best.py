"""The best labels of linear chains.

Values only, no back-pointers: two programs of each sequence walk from both ends to the middle and leave the best score of all
beginnings that end in a label there, and of all endings that follow one. A second kernel walks back from the middle, again both
ways at once, and finds the best label before by the one column of transitions that the path uses: the sums of the first walk
again, so the two agree exactly. (Stored pointers were slower: they make the longer walk heavier.) Every sixteenth step the values
are lowered by their maximum, which keeps float32 exact enough. Time O(T L^2), T / 2 dependent steps and as many back; memory O(T
L).
"""

from __future__ import annotations

import triton
import triton.language as tl

from partwise.torch.cuda.chain_scan import row
from partwise.torch.cuda.launch import highest, ordered


@triton.jit
def first_best(x, label, LP: tl.constexpr):
    """The first label with the largest value."""
    k = ordered(x)
    return tl.min(tl.where(k == tl.max(k, axis=0), label, LP - 1), axis=0)


@triton.jit
def _as_scores(r, label, L: tl.constexpr, LP: tl.constexpr):
    v = r.to(tl.float32)
    if L != LP:
        v = tl.where(label < L, v, float("-inf"))
    return v


@triton.jit
def _step(x, e, w, t, X, base, label, L: tl.constexpr, LP: tl.constexpr):
    x = tl.max(tl.max(tl.reshape(x, (2, LP // 2))[:, :, None] + w, axis=1), axis=0) + e
    tl.store(X + base + t * L + label, x, mask=label < L)
    return x


@triton.jit(do_not_specialize=["of_tr", "of_st", "of_en"])
def climb(E, BEG, LEN, TR, ST, EN, X, MIDDLE, of_tr, of_st, of_en, L: tl.constexpr, LP: tl.constexpr):
    """Program (b, d): values of sequence b from its beginning to the middle (d = 0), or from its end to just behind it."""
    b = tl.program_id(0)
    d = tl.program_id(1)
    n = tl.load(LEN + b).to(tl.int32)
    if n == 0:
        return
    label = tl.arange(0, LP)
    base = tl.load(BEG + b).to(tl.int64) * L
    TR += b.to(tl.int64) * of_tr
    ST += b.to(tl.int64) * of_st
    EN += b.to(tl.int64) * of_en
    middle = tl.minimum(n // 2, n - 1)
    source = 1
    target = L
    EDGE = EN
    if d == 0:
        source = L
        target = 1
    if d == 0:
        EDGE = ST
    t0 = tl.where(d == 0, 0, n - 1)
    dt = tl.where(d == 0, 1, -1)
    steps = tl.where(d == 0, middle + 1, n - 1 - middle)
    square = (label[:, None] < L) & (label[None, :] < L)
    w = tl.load(TR + label[:, None] * target + label[None, :] * source, mask=square, other=float("-inf")).to(tl.float32)
    w = tl.reshape(tl.trans(w), (2, LP // 2, LP))
    edge = tl.load(EDGE + label, mask=label < L, other=float("-inf")).to(tl.float32)
    if steps == 0:  # one token: nothing behind the middle
        tl.store(MIDDLE + b * L + label, edge, mask=label < L)
    else:
        x = _as_scores(row(E, base + t0 * L, label, L, True), label, L, LP) + edge
        tl.store(X + base + t0 * L + label, x, mask=label < L)
        c0 = row(E, base + (t0 + dt) * L, label, L, steps > 1)
        c1 = row(E, base + (t0 + 2 * dt) * L, label, L, steps > 2)
        c2 = row(E, base + (t0 + 3 * dt) * L, label, L, steps > 3)
        c3 = row(E, base + (t0 + 4 * dt) * L, label, L, steps > 4)
        blocks = (steps - 1) // 4
        for k in range(0, blocks):
            s = 1 + 4 * k
            t = t0 + s * dt
            f0 = row(E, base + (t + 4 * dt) * L, label, L, s + 4 < steps)
            f1 = row(E, base + (t + 5 * dt) * L, label, L, s + 5 < steps)
            f2 = row(E, base + (t + 6 * dt) * L, label, L, s + 6 < steps)
            f3 = row(E, base + (t + 7 * dt) * L, label, L, s + 7 < steps)
            if k % 4 == 0:
                x = x - highest(x)
            x = _step(x, _as_scores(c0, label, L, LP), w, t, X, base, label, L, LP)
            x = _step(x, _as_scores(c1, label, L, LP), w, t + dt, X, base, label, L, LP)
            x = _step(x, _as_scores(c2, label, L, LP), w, t + 2 * dt, X, base, label, L, LP)
            x = _step(x, _as_scores(c3, label, L, LP), w, t + 3 * dt, X, base, label, L, LP)
            c0 = f0
            c1 = f1
            c2 = f2
            c3 = f3
        for s in range(1 + 4 * blocks, steps):
            t = t0 + s * dt
            x = _step(x, _as_scores(row(E, base + t * L, label, L, True), label, L, LP), w, t, X, base, label, L, LP)
        if d == 1:
            x = tl.max(tl.max(tl.reshape(x, (2, LP // 2))[:, :, None] + w, axis=1), axis=0)
            tl.store(MIDDLE + b * L + label, x, mask=label < L)


@triton.jit
def _values(X, place, label, L: tl.constexpr, there):
    return tl.load(X + place + label, mask=(label < L) & there, other=float("-inf"))


@triton.jit
def _before(x, TR, y, of_y, of_label, label, L: tl.constexpr, LP: tl.constexpr):
    w = tl.load(TR + y * of_y + label * of_label, mask=label < L, other=float("-inf")).to(tl.float32)
    return first_best(x + w, label, LP)


@triton.jit(do_not_specialize=["T", "of_tr"])
def descend(BEG, LEN, TR, X, MIDDLE, OUT, T, of_tr, L: tl.constexpr, LP: tl.constexpr):
    """Program (b, d): the best labels from the middle to the beginning (d = 0) or to the end."""
    b = tl.program_id(0)
    d = tl.program_id(1)
    n = tl.load(LEN + b).to(tl.int32)
    if n == 0:
        return
    label = tl.arange(0, LP)
    base = tl.load(BEG + b).to(tl.int64) * L
    TR += b.to(tl.int64) * of_tr
    OUT += b.to(tl.int64) * T
    h = tl.minimum(n // 2, n - 1)
    x = _values(X, base + h * L, label, L, True) + tl.load(MIDDLE + b * L + label, mask=label < L, other=0.0)
    y = first_best(x, label, LP)
    if d == 0:
        tl.store(OUT + h, y.to(OUT.dtype.element_ty))
    of_y = L
    of_label = 1
    if d == 0:
        of_y = 1
        of_label = L
    dt = tl.where(d == 0, -1, 1)
    steps = tl.where(d == 0, h, n - 1 - h)
    c0 = _values(X, base + (h + dt) * L, label, L, steps > 0)
    c1 = _values(X, base + (h + 2 * dt) * L, label, L, steps > 1)
    c2 = _values(X, base + (h + 3 * dt) * L, label, L, steps > 2)
    c3 = _values(X, base + (h + 4 * dt) * L, label, L, steps > 3)
    for k in range(0, steps // 4):
        s = 1 + 4 * k
        t = h + s * dt
        f0 = _values(X, base + (t + 4 * dt) * L, label, L, s + 4 <= steps)
        f1 = _values(X, base + (t + 5 * dt) * L, label, L, s + 5 <= steps)
        f2 = _values(X, base + (t + 6 * dt) * L, label, L, s + 6 <= steps)
        f3 = _values(X, base + (t + 7 * dt) * L, label, L, s + 7 <= steps)
        y0 = _before(c0, TR, y, of_y, of_label, label, L, LP)
        y1 = _before(c1, TR, y0, of_y, of_label, label, L, LP)
        y2 = _before(c2, TR, y1, of_y, of_label, label, L, LP)
        y = _before(c3, TR, y2, of_y, of_label, label, L, LP)
        tl.store(OUT + t, y0.to(OUT.dtype.element_ty))
        tl.store(OUT + t + dt, y1.to(OUT.dtype.element_ty))
        tl.store(OUT + t + 2 * dt, y2.to(OUT.dtype.element_ty))
        tl.store(OUT + t + 3 * dt, y.to(OUT.dtype.element_ty))
        c0 = f0
        c1 = f1
        c2 = f2
        c3 = f3
    for s in range(1 + steps // 4 * 4, steps + 1):
        t = h + s * dt
        y = _before(_values(X, base + t * L, label, L, True), TR, y, of_y, of_label, label, L, LP)
        tl.store(OUT + t, y.to(OUT.dtype.element_ty))


@triton.jit(do_not_specialize=["T", "of_tr", "of_st", "of_en"])
def score_path(E, BEG, LEN, TR, ST, EN, Y, OUT, T, of_tr, of_st, of_en, L: tl.constexpr):
    """Scores of padded labels Y (B, T)."""
    b = tl.program_id(0)
    n = tl.load(LEN + b).to(tl.int32)
    base = tl.load(BEG + b).to(tl.int64) * L
    TR += b.to(tl.int64) * of_tr
    ST += b.to(tl.int64) * of_st
    EN += b.to(tl.int64) * of_en
    Y += b.to(tl.int64) * T
    total = tl.zeros((128,), tl.float64)
    for lo in range(0, n, 128):
        t = lo + tl.arange(0, 128)
        there = t < n
        y = tl.load(Y + t, mask=there, other=0).to(tl.int32)
        before = tl.load(Y + t - 1, mask=there & (t > 0), other=0).to(tl.int32)
        s = tl.load(E + base + t * L + y, mask=there, other=0.0).to(tl.float32).to(tl.float64)
        s += tl.load(TR + before * L + y, mask=there & (t > 0), other=0.0).to(tl.float32)
        s += tl.load(ST + y, mask=t == 0, other=0.0).to(tl.float32)
        s += tl.load(EN + y, mask=t == n - 1, other=0.0).to(tl.float32)
        total += tl.where(there, s, 0.0)
    tl.store(OUT + b, tl.sum(total, axis=0))
