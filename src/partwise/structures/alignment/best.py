"""The best alignment of two sequences, and the k best: Gotoh's recursion for affine gaps.

    M(i, j) = match(i, j) + H(i-1, j-1)                               x_i opposite z_j
    D(i, j) = max { M(i-1, j) + open(x_i),  D(i-1, j) + extend(x_i) }   x_i opposite a gap
    I(i, j) = max { A(i, j-1) + open(z_j),  I(i, j-1) + extend(z_j) }   z_j opposite a gap
    A = max(M, D),  H = max(A, I)

There is no way from I to D, so that every alignment is one path. Cells of a diagonal, i + j = t, do not depend on each other: a
vector has as many rows as it has lanes and moves along the diagonals of this strip, from left to right (`strip`). Each cell is
computed from its neighbours by the same additions in any order of cells, so that not a bit depends on how they are grouped.

Ties are broken in favour of M, then D, then I, and of opening a gap over extending it; of two local alignments the one that ends
first, and of two beginnings the later one.

Cost: O(n m) time; n m bytes and a few rows of memory, k-best k times that.

References
----------
O. Gotoh (1982). An improved algorithm for matching biological sequences. J. Mol. Biol. 162.
A. Wozniak (1997). Using video-oriented instructions to speed up sequence comparison. Comput. Appl. Biosci. 13.
"""

from __future__ import annotations

import numpy as np

from partwise.engine.compilation import helper
from partwise.engine.lanes import (
    above,
    at_least,
    chosen,
    first_lane,
    lanes_of,
    largest,
    load,
    moved_down,
    plus,
    spread,
    store,
    transpose,
    with_bit,
)
from partwise.engine.numerics import copy, fill
from partwise.structures.alignment.problem import END_EXTEND, END_OPEN, GAP, OPEN

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


# Rows of the tables that a strip is computed from: `down` has a number for each of its rows, `along` for each column
X_OPEN, X_EXTEND, X_END_OPEN, X_END_EXTEND, EDGE_D, EDGE_H, X_BEFORE, X_AFTER = range(8)
Y_OPEN, Y_EXTEND, Y_END_OPEN, Y_END_EXTEND, Y_BEFORE, Y_AFTER = range(6)
ROW_M, ROW_D, ROW_H = range(3)


@helper
def columns_of(theta, n, m, local, before, after):
    """What depends on the column alone: entry t + p belongs to lane p of diagonal t, which is in column t + p + 1 - lanes."""
    lanes = lanes_of(theta)
    along = np.zeros((6, m + 2 * lanes), theta.dtype)
    ends = OPEN if local else END_OPEN  # what a gap at the first or last row or column is
    for kind in range(4):
        copy(gap_scores(theta, n, m, 1, kind if kind < 2 else ends + kind - 2), along[kind, lanes : lanes + m])
    fill(along[Y_AFTER], -np.inf)
    copy(before, along[Y_BEFORE, lanes - 1 : lanes + m])
    copy(after[1:], along[Y_AFTER, lanes : lanes + m])
    return along


@helper
def rows_of(theta, n, m, local, i0, edge_d, edge_h, before, after, down):
    """What depends on the row alone, for rows i0 + 1 and on: the first one in the last lane."""
    lanes = lanes_of(theta)
    ends = OPEN if local else END_OPEN
    for r in range(lanes):
        p, i = lanes - 1 - r, min(i0 + r, n - 1)
        for kind in range(4):
            down[kind, p] = gap_scores(theta, n, m, 0, kind if kind < 2 else ends + kind - 2)[i]
        down[EDGE_D, p], down[EDGE_H, p] = edge_d[i + 1], edge_h[i + 1]
        down[X_BEFORE, p], down[X_AFTER, p] = before[i + 1], after[i + 1] if i0 + r < n else -np.inf


@helper
def skew(theta, i0, rows, m, places, out):
    """Scores of the matches of a strip, a diagonal a vector; what is in no column is arbitrary, and meets nothing that is."""
    lanes = lanes_of(theta)
    for t in range(1, m + rows, lanes):
        for p in range(lanes):
            r = min(lanes - 1 - p, rows - 1)
            places[p] = min((i0 + r) * m + t - r - 1, len(theta) - lanes)
        transpose(theta, places, out[t * lanes : (t + lanes) * lanes])


@helper
def strip(theta, m, rows, is_last, local, scores, along, down, numbers, above_row, trace, found):
    """As many rows as there are lanes, diagonal by diagonal: lane p of diagonal t has row lanes - 1 - p and column t - row.

    `above_row` is the last row of the strip above, and of this one when it is done; `found` gets H at the end, and in a local
    alignment of each row the best end and its diagonal.
    """
    lanes = lanes_of(theta)
    never, row = spread(theta, -np.inf), load(numbers, 0)
    x_open, x_extend = load(down[X_OPEN], 0), load(down[X_EXTEND], 0)
    x_end_open, x_end_extend = load(down[X_END_OPEN], 0), load(down[X_END_EXTEND], 0)
    edge_d, edge_h = load(down[EDGE_D], 0), load(down[EDGE_H], 0)
    x_before, x_after = load(down[X_BEFORE], 0), load(down[X_AFTER], 0)
    above_m, above_d, above_h = above_row[ROW_M], above_row[ROW_D], above_row[ROW_H]
    y_open, y_extend, y_end_open, y_end_extend = along[Y_OPEN], along[Y_EXTEND], along[Y_END_OPEN], along[Y_END_EXTEND]
    y_before, y_after = along[Y_BEFORE], along[Y_AFTER]
    lowest = above(row, spread(theta, rows - 1.5))  # the last row of all, if this is the last strip
    m_, d, a, i, h, h_before = never, edge_d, edge_d, never, edge_h, never
    top, where = never, never
    for t in range(1, m + rows):
        opened, extended = load(y_open, t), load(y_extend, t)
        if is_last:
            opened, extended = chosen(lowest, load(y_end_open, t), opened), chosen(lowest, load(y_end_extend, t), extended)
        first, more = plus(a, opened), plus(i, extended)
        i = largest(first, more)
        bits = with_bit(0, above(more, first), I_EXTENDS)
        opened, extended = x_open, x_extend
        if t >= m:  # gaps in the last column are at the end
            ended = above(spread(theta, t - m + 0.5), row)
            opened, extended = chosen(ended, x_end_open, opened), chosen(ended, x_end_extend, extended)
        first, more = plus(moved_down(m_, above_m[t]), opened), plus(moved_down(d, above_d[t]), extended)
        d = largest(first, more)
        bits = with_bit(bits, above(more, first), D_EXTENDS)
        m_ = plus(load(scores, t * lanes), moved_down(h_before, above_h[t - 1]))
        bits = with_bit(bits, above(d, m_), D_BEATS_M)
        a = largest(m_, d)
        bits = with_bit(bits, above(i, a), I_BEATS_A)
        h_before, h = h, largest(a, i)
        if local:
            value = plus(m_, plus(x_after, load(y_after, t)))
            where = chosen(above(value, top), spread(theta, t), where)
            top = largest(top, value)
            start = plus(x_before, load(y_before, t))
            bits = with_bit(bits, at_least(start, h), STARTS)
            h = largest(start, h)
        store(trace, t * lanes, bits)
        if t < lanes:  # rows that have not begun: column 0
            waiting = above(row, spread(theta, t - 0.5))
            m_, i = chosen(waiting, never, m_), chosen(waiting, never, i)
            d, a, h = chosen(waiting, edge_d, d), chosen(waiting, edge_d, a), chosen(waiting, edge_h, h)
        if t >= lanes:
            above_m[t - lanes + 1], above_d[t - lanes + 1] = first_lane(m_), first_lane(d)
            above_h[t - lanes + 1] = first_lane(h)
    above_m[0], above_d[0], above_h[0] = -np.inf, first_lane(edge_d), first_lane(edge_h)
    store(found[0], 0, h)
    store(found[1], 0, top)
    store(found[2], 0, where)


@helper
def best_path(theta, n, m, local, y):
    """Write the best alignment into y and return its score; -inf if all are forbidden."""
    dtype, lanes = theta.dtype, lanes_of(theta)
    fill(y, GAP)
    x_before, x_after = np.zeros(n + 1, dtype), np.zeros(n + 1, dtype)
    y_before, y_after = np.zeros(m + 1, dtype), np.zeros(m + 1, dtype)
    edge_d, edge_h = np.empty(n + 1, dtype), np.empty(n + 1, dtype)
    above_row = np.full((3, m + lanes), -np.inf, dtype)
    top, top_i, top_j = -np.inf, 0, 0
    # row 0 and column 0: one sequence alone
    if local:
        sums_before(gap_scores(theta, n, m, 0, END_EXTEND), x_before)
        sums_after(gap_scores(theta, n, m, 0, END_EXTEND), x_after)
        sums_before(gap_scores(theta, n, m, 1, END_EXTEND), y_before)
        sums_after(gap_scores(theta, n, m, 1, END_EXTEND), y_after)
        top = float(x_before[n] + y_before[m])  # nothing is aligned
        fill(edge_d, -np.inf)
        copy(x_before, edge_h)
        copy(y_before, above_row[ROW_H])
    else:
        above_row[ROW_M, 0], above_row[ROW_H, 0], edge_d[0] = 0, 0, 0
        for j in range(m):
            kind = END_OPEN if j == 0 else END_EXTEND
            above_row[ROW_H, j + 1] = above_row[ROW_H, j] + gap_scores(theta, n, m, 1, kind)[j]
        for i in range(n):
            edge_d[i + 1] = edge_d[i] + gap_scores(theta, n, m, 0, END_OPEN if i == 0 else END_EXTEND)[i]
        copy(edge_d, edge_h)
    if n == 0 or m == 0:
        return top if local else float(above_row[ROW_H, m] if n == 0 else edge_h[n])
    along = columns_of(theta, n, m, local, y_before, y_after)
    down, found = np.empty((8, lanes), dtype), np.empty((3, lanes), dtype)
    numbers, places = np.empty(lanes, dtype), np.empty(lanes, np.int64)
    for p in range(lanes):
        numbers[p] = lanes - 1 - p
    scores = np.empty((m + 2 * lanes) * lanes, dtype)
    trace = np.empty(((n + lanes - 1) // lanes, (m + lanes) * lanes), np.uint8)
    if len(theta) < n * m + lanes:  # whole vectors are read
        theta = np.append(theta, np.zeros(lanes, dtype))
    for i0 in range(0, n, lanes):
        rows = min(lanes, n - i0)
        rows_of(theta, n, m, local, i0, edge_d, edge_h, x_before, x_after, down)
        skew(theta, i0, rows, m, places, scores)
        strip(theta, m, rows, i0 + rows == n, local, scores, along, down, numbers, above_row, trace[i0 // lanes], found)
        if local:
            for r in range(rows):
                value = float(found[1, lanes - 1 - r])
                if value > top:
                    top, top_i, top_j = value, i0 + r + 1, int(found[2, lanes - 1 - r]) - r
    if local:
        trace_back(trace, lanes, local, top_i, top_j, M, y)
        return top
    value = float(found[0, lanes - 1 - (n - 1) % lanes])
    if value > -np.inf:
        trace_back(trace, lanes, local, n, m, state_of(bits_at(trace, lanes, local, n, m)), y)
    return value


@helper
def bits_at(trace, lanes, local, i, j):
    """The byte of a cell."""
    if i > 0 and j > 0:
        r = (i - 1) % lanes
        return trace[(i - 1) // lanes, (j + r) * lanes + lanes - 1 - r]
    if local or i + j == 0:
        return np.uint8(STARTS)
    if i == 0:
        return np.uint8(I_BEATS_A | (I_EXTENDS if j > 1 else 0))
    return np.uint8(D_BEATS_M | (D_EXTENDS if i > 1 else 0))


@helper
def state_of(bits):
    """The best state of a cell."""
    return I if bits & I_BEATS_A else D if bits & D_BEATS_M else M


@helper
def trace_back(trace, lanes, local, i, j, state, y):
    """Write the matches of the path that ends in a cell."""
    while i > 0 or j > 0:
        bits = bits_at(trace, lanes, local, i, j)
        if state == M:
            if i == 0 or j == 0:
                break
            i, j = i - 1, j - 1
            y[i] = j
            bits = bits_at(trace, lanes, local, i, j)
            if bits & STARTS:
                break
            state = state_of(bits)
        elif state == D:
            i -= 1
            state = D if bits & D_EXTENDS else M
        else:
            j -= 1
            state = I if bits & I_EXTENDS else D if bits_at(trace, lanes, local, i, j) & D_BEATS_M else M


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
