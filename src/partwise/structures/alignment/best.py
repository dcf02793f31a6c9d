"""The best alignment of two sequences, and the k best: Gotoh's recursion for affine gaps.

    M(i, j) = match(i, j) + H(i-1, j-1)                               x_i opposite z_j
    D(i, j) = max { M(i-1, j) + open(x_i),  D(i-1, j) + extend(x_i) }   x_i opposite a gap
    I(i, j) = max { A(i, j-1) + open(z_j),  I(i, j-1) + extend(z_j) }   z_j opposite a gap
    A = max(M, D),  H = max(A, I)

There is no way from I to D, so that every alignment is one path. M and D of a row depend on the row above alone: those loops run
over whole vectors. I is a chain of one addition and one maximum a cell, which is what the time goes into.

Ties are broken in favour of M, then D, then I, and of opening a gap over extending it; of two local alignments the one that ends
first, and of two beginnings the later one.

Cost: O(n m) time; n m bytes and a few rows of memory, k-best k times that.

References
----------
O. Gotoh (1982). An improved algorithm for matching biological sequences. J. Mol. Biol. 162.
"""

from __future__ import annotations

import numpy as np

from partwise.engine.compilation import helper
from partwise.engine.numerics import fill, larger
from partwise.structures.alignment.problem import END_EXTEND, END_OPEN, EXTEND, GAP, OPEN

# what a byte of a cell tells
D_EXTENDS, I_EXTENDS, D_BEATS_M, I_BEATS_A, STARTS = 1, 2, 4, 8, 16
M, D, I, START = 0, 1, 2, 3  # noqa: E741 - the states of the literature


@helper
def gap_scores(theta, n, m, side, kind):
    """Scores of one kind of gap: of the places of the first (0) or second (1) sequence."""
    start = n * m + kind * n if side == 0 else n * m + 4 * n + kind * m
    return theta[start : start + (n if side == 0 else m)]


@helper
def sums_before(values, out):
    """out[k] = values[0] + ... + values[k - 1]."""
    out[0] = 0
    for k in range(len(values)):
        out[k + 1] = out[k] + values[k]


@helper
def sums_after(values, out):
    """out[k] = values[k] + ... up to the last one."""
    n = len(values)
    out[n] = 0
    for k in range(n - 1, -1, -1):
        out[k] = out[k + 1] + values[k]


@helper
def match_row(scores, diagonal, above_m, above_d, opened, extended, row_m, row_d, row_a, trace):
    """M, D and A of a row, and the bits that belong to them; all from the row above."""
    for j in range(len(scores)):
        m = scores[j] + diagonal[j]
        first, more = above_m[j] + opened, above_d[j] + extended
        d = larger(first, more)
        row_m[j], row_d[j], row_a[j] = m, d, larger(m, d)
        trace[j] = (D_EXTENDS if more > first else 0) | (D_BEATS_M if d > m else 0)


@helper
def insert_row(row_a, opened, extended, row_i):
    """I of a row, cell after cell; row_a[0] and row_i[0] are those of column 0."""
    value = row_i[0]
    after = row_i[1:]
    for j in range(len(opened)):
        value = larger(row_a[j] + opened[j], value + extended[j])
        after[j] = value


@helper
def finish_row(row_a, row_i, before, opened, extended, row_h, trace):
    """H of a row and the bits that belong to I; `before` is A one column earlier."""
    for j in range(len(row_h)):
        a, i = row_a[j], row_i[j + 1]
        row_h[j] = larger(a, i)
        bits = I_EXTENDS if row_i[j] + extended[j] > before[j] + opened[j] else 0
        trace[j] |= bits | (I_BEATS_A if i > a else 0)


@helper
def best_path(theta, n, m, local, y):
    """Write the best alignment into y and return its score; -inf if all are forbidden."""
    dtype = theta.dtype
    forbidden = -np.inf
    fill(y, GAP)
    trace = np.empty((n + 1, m + 1), np.uint8)
    above_m, above_d, above_h = np.empty(m + 1, dtype), np.empty(m + 1, dtype), np.empty(m + 1, dtype)
    row_m, row_d, row_h = np.empty(m + 1, dtype), np.empty(m + 1, dtype), np.empty(m + 1, dtype)
    row_a, row_i = np.empty(m + 1, dtype), np.empty(m + 1, dtype)
    ends = OPEN if local else END_OPEN  # what a gap at the first or last row or column is
    x_open, x_extend = gap_scores(theta, n, m, 0, OPEN), gap_scores(theta, n, m, 0, EXTEND)
    x_end_open, x_end_extend = gap_scores(theta, n, m, 0, ends), gap_scores(theta, n, m, 0, ends + 1)
    y_open, y_extend = gap_scores(theta, n, m, 1, OPEN), gap_scores(theta, n, m, 1, EXTEND)
    y_end_open, y_end_extend = gap_scores(theta, n, m, 1, ends), gap_scores(theta, n, m, 1, ends + 1)
    x_before, x_after = np.empty(n + 1, dtype), np.empty(n + 1, dtype)
    y_before, y_after = np.empty(m + 1, dtype), np.empty(m + 1, dtype)
    top, top_i, top_j = -np.inf, 0, 0
    if local:
        outside_x, outside_y = gap_scores(theta, n, m, 0, END_EXTEND), gap_scores(theta, n, m, 1, END_EXTEND)
        sums_before(outside_x, x_before)
        sums_after(outside_x, x_after)
        sums_before(outside_y, y_before)
        sums_after(outside_y, y_after)
        top = float(x_before[n] + y_before[m])  # nothing is aligned
    # row 0: the second sequence alone
    fill(above_m, forbidden)
    fill(above_d, forbidden)
    trace[0, 0] = STARTS
    if local:
        for j in range(m + 1):
            above_h[j], trace[0, j] = x_before[0] + y_before[j], STARTS
    else:
        above_m[0], above_h[0] = 0, 0
        for j in range(1, m + 1):
            above_h[j] = above_h[j - 1] + (y_end_open[0] if j == 1 else y_end_extend[j - 1])
            trace[0, j] = I_BEATS_A | (I_EXTENDS if j > 1 else 0)
    for i in range(1, n + 1):
        scores, bits = theta[(i - 1) * m : i * m], trace[i]
        # column 0: the first sequence alone
        row_m[0], row_i[0] = forbidden, forbidden
        if local:
            row_d[0], row_h[0] = forbidden, x_before[i] + y_before[0]
            bits[0] = STARTS
        else:
            row_d[0] = above_m[0] + x_end_open[i - 1] if i == 1 else above_d[0] + x_end_extend[i - 1]
            row_h[0] = row_d[0]
            bits[0] = D_BEATS_M | (D_EXTENDS if i > 1 else 0)
        row_a[0] = row_d[0]
        if m > 0:
            match_row(
                scores,
                above_h[:m],
                above_m[1:],
                above_d[1:],
                x_open[i - 1],
                x_extend[i - 1],
                row_m[1:],
                row_d[1:],
                row_a[1:],
                bits[1:],
            )
            if not local:  # the last column again: its gaps are at the end
                first, more = above_m[m] + x_end_open[i - 1], above_d[m] + x_end_extend[i - 1]
                row_d[m] = larger(first, more)
                row_a[m] = larger(row_m[m], row_d[m])
                bits[m] = (D_EXTENDS if more > first else 0) | (D_BEATS_M if row_d[m] > row_m[m] else 0)
            opened, extended = (y_end_open, y_end_extend) if i == n else (y_open, y_extend)
            insert_row(row_a, opened, extended, row_i)
            finish_row(row_a[1:], row_i, row_a, opened, extended, row_h[1:], bits[1:])
        if local:
            for j in range(m):
                value = float(row_m[j + 1] + (x_after[i] + y_after[j + 1]))
                if value > top:
                    top, top_i, top_j = value, i, j + 1
                start = x_before[i] + y_before[j + 1]
                if start >= row_h[j + 1]:
                    row_h[j + 1] = start
                    bits[j + 1] |= STARTS
        above_m, row_m = row_m, above_m
        above_d, row_d = row_d, above_d
        above_h, row_h = row_h, above_h
    if local:
        trace_back(trace, top_i, top_j, M, y)
        return top
    if above_h[m] > forbidden:
        trace_back(trace, n, m, state_of(trace[n, m]), y)
    return float(above_h[m])


@helper
def state_of(bits):
    """The best state of a cell."""
    return I if bits & I_BEATS_A else D if bits & D_BEATS_M else M


@helper
def trace_back(trace, i, j, state, y):
    """Write the matches of the path that ends in a cell."""
    while i > 0 or j > 0:
        bits = trace[i, j]
        if state == M:
            if i == 0 or j == 0:
                break
            i, j = i - 1, j - 1
            y[i] = j
            if trace[i, j] & STARTS:
                break
            state = state_of(trace[i, j])
        elif state == D:
            i -= 1
            state = D if bits & D_EXTENDS else M
        else:
            j -= 1
            state = I if bits & I_EXTENDS else D if trace[i, j] & D_BEATS_M else M


@helper
def merge(a, to_a, b, to_b, c, to_c, start, values, back):
    """The best of three sorted lists, each with something added, and of a fresh start; where from: 4 rank + state."""
    k, p, q, r, fresh = len(values), 0, 0, 0, start > -np.inf
    for t in range(k):
        u = float(a[p] + to_a) if p < k else -np.inf
        v = float(b[q] + to_b) if q < k else -np.inf
        w = float(c[r] + to_c) if r < k else -np.inf
        top = max(max(u, v), w)
        if fresh and start >= top:
            values[t], back[t], fresh = start, START, False
        elif u >= v and u >= w:
            values[t], back[t], p = u, 4 * p + M, p + 1
        elif v >= w:
            values[t], back[t], q = v, 4 * q + D, q + 1
        else:
            values[t], back[t], r = w, 4 * r + I, r + 1


@helper
def best_paths(theta, n, m, local, ys, found_values):
    """The k best alignments, best first; returns how many there are. O(n m k) time and 6 n m k bytes."""
    k = len(found_values)
    none = -np.inf
    back = np.empty((n + 1, m + 1, 3, k), np.uint16)
    above, here = np.full((m + 1, 3, k), none), np.full((m + 1, 3, k), none)
    nothing = np.full(k, none)
    ends = OPEN if local else END_OPEN
    ends_at = np.zeros((k, 3), np.int64)  # of local alignments: cell and rank, best first
    top = np.full(k, none)
    x_before, y_before, x_after, y_after = np.zeros(n + 1), np.zeros(m + 1), np.zeros(n + 1), np.zeros(m + 1)
    if local:
        sums_before(gap_scores(theta, n, m, 0, END_EXTEND), x_before)
        sums_after(gap_scores(theta, n, m, 0, END_EXTEND), x_after)
        sums_before(gap_scores(theta, n, m, 1, END_EXTEND), y_before)
        sums_after(gap_scores(theta, n, m, 1, END_EXTEND), y_after)
        top[0] = x_before[n] + y_before[m]
    for i in range(n + 1):
        fill(here, none)
        if i == 0 and not local:
            here[0, M, 0] = 0.0
        for j in range(m + 1):
            if i > 0 and j > 0:
                start = x_before[i - 1] + y_before[j - 1] if local else none
                score, p = float(theta[(i - 1) * m + j - 1]), above[j - 1]
                if start > none and score > none:
                    start += score
                else:
                    start = none
                merge(p[M], score, p[D], score, p[I], score, start, here[j, M], back[i, j, M])
                if local:
                    for rank in range(k):
                        value = here[j, M, rank] + x_after[i] + y_after[j]
                        if not value > top[k - 1]:
                            break
                        t = k - 1
                        while t > 0 and value > top[t - 1]:
                            top[t] = top[t - 1]
                            ends_at[t] = ends_at[t - 1]
                            t -= 1
                        top[t] = value
                        ends_at[t, 0], ends_at[t, 1], ends_at[t, 2] = i, j, rank
            if i > 0:
                kind = ends if j == 0 or j == m else OPEN
                opened, extended = gap_scores(theta, n, m, 0, kind)[i - 1], gap_scores(theta, n, m, 0, kind + 1)[i - 1]
                merge(above[j, M], opened, above[j, D], extended, nothing, 0.0, none, here[j, D], back[i, j, D])
            if j > 0:
                kind = ends if i == 0 or i == n else OPEN
                opened, extended = gap_scores(theta, n, m, 1, kind)[j - 1], gap_scores(theta, n, m, 1, kind + 1)[j - 1]
                p = here[j - 1]
                merge(p[M], opened, p[D], opened, p[I], extended, none, here[j, I], back[i, j, I])
        above, here = here, above
    states = np.zeros(k, np.uint16)
    if not local:
        merge(above[m, M], 0.0, above[m, D], 0.0, above[m, I], 0.0, none, top, states)
    found = 0
    while found < k and top[found] > none:
        fill(ys[found], GAP)
        found_values[found] = top[found]
        if local:
            walk(back, ends_at[found, 0], ends_at[found, 1], np.int64(4 * ends_at[found, 2] + M), ys[found])
        else:
            walk(back, n, m, np.int64(states[found]), ys[found])
        found += 1
    return found


@helper
def walk(back, i, j, code, y):
    """Write the matches of a path; `code` is rank and state at its last cell."""
    while (i > 0 or j > 0) and code != START:
        state, rank = code % 4, code // 4
        code = np.int64(back[i, j, state, rank])
        if state == M:
            i, j = i - 1, j - 1
            y[i] = j
        elif state == D:
            i -= 1
        else:
            j -= 1
