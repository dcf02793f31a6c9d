"""Sums over all alignments of two sequences: the forward-backward algorithm of pair HMMs, in floats, and in logarithms.

The recursions are those of `best` with sums for maxima. In floats they need one exponential a cell and run over whole
vectors. Two things make that safe:

- Every place is consumed exactly once, by a match or opposite a gap, so all scores of place x_i may be lowered by one number
  without changing anything but log Z. Lowered by that of extending a gap (of being left out, in local alignments) gaps of any
  length weigh no more than what opened them: nothing grows along a row.
- Rows are rescaled when they leave the middle of the range of floats. What is lost at the edge of the range, e^-700 of a row, is
  negligible unless the rest of its path makes up for it; the product of the scales of a row forwards and backwards bounds that.

Where scores are too large, gaps are forbidden, or that bound is too large, the sums are done in logarithms: ten times slower, and
right always.

Cost: O(n m) time, 16 n m bytes; in logarithms 24 n m bytes.

References
----------
R. Durbin, S. Eddy, A. Krogh, G. Mitchison (1998). Biological sequence analysis, chapter 4.
"""

from __future__ import annotations

import numpy as np

from partwise.engine.compilation import helper
from partwise.engine.numerics import exp, fill, larger
from partwise.structures.alignment.best import gap_scores, sums_after, sums_before
from partwise.structures.alignment.problem import END_EXTEND, END_OPEN, EXTEND, OPEN

LARGEST = 100.0  # score of a gap against extending it, or of a match against two extensions, that floats are trusted with
MIDDLE = 1e50  # rows are rescaled when they leave [1 / MIDDLE, MIDDLE]
TRUSTED = 550.0  # logarithm of how much more than Z the best ways to and from a row may weigh together


@helper
def sum_over_paths(theta, n, m, local, parts):
    """log Z, and the probability of every part."""
    log_z, fine = sum_in_floats(theta, n, m, local, parts)
    return log_z if fine else sum_in_logarithms(theta, n, m, local, parts)


@helper
def factors(theta, n, m, side, local, base, out):
    """out[kind, k] = e^(score - base[k]) of gaps; base is what places are lowered by. Whether floats can be trusted with them."""
    size = n if side == 0 else m
    extended, ended = gap_scores(theta, n, m, side, EXTEND), gap_scores(theta, n, m, side, END_EXTEND)
    growth, fine = 0.0, True
    for k in range(size):
        base[k] = ended[k] if local else max(float(extended[k]), float(ended[k]))
        fine = fine and abs(base[k]) < np.inf
    if not fine:
        return False
    for kind in range(4):
        if local and kind >= END_OPEN:
            break
        scores = gap_scores(theta, n, m, side, kind)
        for k in range(size):
            value = float(scores[k]) - base[k]
            if not abs(value) <= LARGEST:
                return False
            if kind == EXTEND:
                growth += max(value, 0.0)
            out[kind, k] = exp(value)
    return growth <= LARGEST


@helper
def weigh(scores, lowered, base, out):
    """out = e^(scores - lowered - base); returns the largest exponent."""
    top = -np.inf
    for j in range(len(out)):
        value = scores[j] - lowered - base[j]
        top = larger(top, value)
        out[j] = exp(value)
    return top


@helper
def forward_row(weights, diagonal, above_m, above_d, opened, extended, row_m, row_d, row_a):
    """M, D and A of a row from the row above."""
    for j in range(len(weights)):
        value = weights[j] * diagonal[j]
        d = above_m[j] * opened + above_d[j] * extended
        row_m[j], row_d[j], row_a[j] = value, d, value + d


@helper
def scan(row_a, opened, extended, out):
    """I of a row from A: out[j + 1] = out[j] extended[j] + row_a[j] opened[j]."""
    value = out[0]
    after = out[1:]
    for j in range(len(opened)):
        value = value * extended[j] + row_a[j] * opened[j]
        after[j] = value


@helper
def largest(values):
    """Of numbers that are not negative."""
    top = 0.0
    for j in range(len(values)):
        top = larger(top, values[j])
    return top


@helper
def sum_in_floats(theta, n, m, local, parts):
    """log Z and whether it can be trusted; if so, probabilities are in `parts`."""
    of_x, of_y, base_x, base_y = np.zeros((4, n)), np.zeros((4, m)), np.empty(n), np.empty(m)
    if not (factors(theta, n, m, 0, local, base_x, of_x) and factors(theta, n, m, 1, local, base_y, of_y)):
        return 0.0, False
    ends = OPEN if local else END_OPEN
    weights, deleted = np.empty((n + 1) * m), np.zeros((n + 1, m + 1))  # e^match and D of all cells; M is kept in `parts`
    fill(weights[n * m :], 0.0)
    scales = np.zeros(n + 1)  # logarithm of what the values of a row are to be multiplied with
    above_m, above_h, row_a, row_i = np.zeros(m + 1), np.zeros(m + 1), np.zeros(m + 1), np.zeros(m + 1)
    row_m, row_h = np.zeros(m + 1), np.zeros(m + 1)
    log_z = 0.0
    if local:
        fill(above_h, 1.0)
    else:
        above_m[0], row_a[0] = 1.0, 1.0
        scan(row_a, of_y[ends], of_y[ends + 1], above_h)
        above_h[0] = 1.0
    top, scale = -np.inf, 0.0
    for i in range(1, n + 1):
        w = weights[(i - 1) * m : i * m]
        top = max(top, float(weigh(theta[(i - 1) * m : i * m], base_x[i - 1], base_y, w)))
        row_d, above_d = deleted[i], deleted[i - 1]
        opened, extended, end_opened, end_extended = (
            of_x[OPEN, i - 1],
            of_x[EXTEND, i - 1],
            of_x[ends, i - 1],
            of_x[ends + 1, i - 1],
        )
        row_m[0], row_i[0] = 0.0, 0.0
        row_d[0] = 0.0 if local else above_m[0] * end_opened + above_d[0] * end_extended
        row_a[0] = row_d[0]
        if m > 0:
            forward_row(w, above_h[:m], above_m[1:], above_d[1:], opened, extended, row_m[1:], row_d[1:], row_a[1:])
            row_d[m] = above_m[m] * end_opened + above_d[m] * end_extended  # the last column again: its gaps are at the end
            row_a[m] = row_m[m] + row_d[m]
            kind = ends if i == n else OPEN
            scan(row_a, of_y[kind], of_y[kind + 1], row_i)
        start = exp(-scale) if local else 0.0
        ended = 0.0
        for j in range(m + 1):
            row_h[j] = row_a[j] + row_i[j] + start
            ended += row_m[j]
        if local and ended > 0.0:
            log_z = add_logs(log_z, scale + np.log(ended))
        size = largest(row_h)
        if size == 0.0 or not size < np.inf:
            return 0.0, False
        scales[i] = scale
        out = parts[(i - 1) * m : i * m]
        if not 1.0 / MIDDLE < size < MIDDLE:
            shrink = 1.0 / size
            scale += np.log(size)
            scales[i] = scale
            for j in range(m + 1):
                row_m[j], row_d[j], row_h[j] = row_m[j] * shrink, row_d[j] * shrink, row_h[j] * shrink
        for j in range(m):
            out[j] = row_m[j + 1]
        above_m, row_m = row_m, above_m
        above_h, row_h = row_h, above_h
    if not local:
        log_z = scales[n] + np.log(above_h[m]) if above_h[m] > 0.0 else -np.inf
    if not (top <= LARGEST and abs(log_z) < np.inf):
        return 0.0, False
    fine = backward(of_x, of_y, n, m, local, weights, deleted, scales, log_z, parts)
    for i in range(n):
        log_z += base_x[i]
    for j in range(m):
        log_z += base_y[j]
    return log_z, fine


@helper
def backward_row(nearer, following, inserted, opened, after_d, x_opened, x_extended, end, row_m, row_d):
    """B of M and D in a row: a match, an insertion, or a deletion comes next; the alignment may end after M."""
    for j in range(len(row_m)):
        on = nearer[j] * following[j] + opened[j] * inserted[j]
        row_m[j] = on + x_opened * after_d[j] + end
        row_d[j] = on + x_extended * after_d[j]


@helper
def used(a, b, c):
    """c sum_j a_j b_j over the places of b."""
    total = 0.0
    for j in range(len(b)):
        total += a[j] * b[j]
    return total * c


@helper
def backward(of_x, of_y, n, m, local, weights, deleted, scales, log_z, parts):
    """The way back, from M and D of the way there to probabilities. Whether scales stayed in bounds."""
    ends = OPEN if local else END_OPEN
    after_m, after_d, row_m, row_d, row_i = np.zeros(m + 1), np.zeros(m + 1), np.zeros(m + 1), np.zeros(m + 1), np.zeros(m + 1)
    row_a, forth = np.zeros(m + 1), np.zeros(m + 1)
    gaps_x, gaps_y = parts[n * m : n * m + 4 * n], parts[n * m + 4 * n :]
    fill(parts[n * m : n * m + 4 * (n + m)], 0.0)
    starts_x, ends_x, starts_y, ends_y = np.zeros(n + 2), np.zeros(n + 2), np.zeros(m + 2), np.zeros(m + 2)
    scale = 0.0
    for i in range(n, -1, -1):
        kind = ends if i == 0 or i == n else OPEN
        y_opened, y_extended = of_y[kind], of_y[kind + 1]
        nearer, following = weights[i * m : (i + 1) * m], after_m[1:]
        row_i[m] = 1.0 if i == n and not local else 0.0
        for j in range(m - 1, -1, -1):
            row_i[j] = nearer[j] * following[j] + y_extended[j] * row_i[j + 1]
        x_opened, x_extended, end_opened, end_extended = 0.0, 0.0, 0.0, 0.0
        if i < n:
            x_opened, x_extended, end_opened, end_extended = of_x[OPEN, i], of_x[EXTEND, i], of_x[ends, i], of_x[ends + 1, i]
        end = exp(-scale) if local else 0.0
        backward_row(nearer, following, row_i[1:], y_opened, after_d, x_opened, x_extended, end, row_m[:m], row_d[:m])
        if m > 0:  # the first column again: its gaps are at the end
            on = nearer[0] * following[0] + y_opened[0] * row_i[1]
            row_m[0], row_d[0] = on + end_opened * after_d[0] + end, on + end_extended * after_d[0]
        row_m[m], row_d[m] = end_opened * after_d[m] + end, end_extended * after_d[m]
        if i == n and not local:
            row_m[m] += 1.0
            row_d[m] += 1.0
        size = max(largest(row_m), max(largest(row_d), largest(row_i)))
        if not 0.0 < size < np.inf:
            return False
        if not 1.0 / MIDDLE < size < MIDDLE:
            shrink = 1.0 / size
            scale += np.log(size)
            for j in range(m + 1):
                row_m[j], row_d[j], row_i[j] = row_m[j] * shrink, row_d[j] * shrink, row_i[j] * shrink
        excess = scales[i] + scale - log_z
        if excess > TRUSTED or (i > 0 and scales[i - 1] + scale - log_z > TRUSTED):
            return False
        weight = exp(excess)
        # this row forwards: M and D were kept, I is found again
        fill(row_a, 0.0)
        if i > 0:
            mine, d = parts[(i - 1) * m : i * m], deleted[i]
            row_a[0] = d[0]
            for j in range(m):
                row_a[j + 1] = mine[j] + d[j + 1]
        elif not local:
            row_a[0] = 1.0
        forth[0] = 0.0
        scan(row_a, y_opened, y_extended, forth)
        first, more = gaps_y[kind * m : kind * m + m], gaps_y[(kind + 1) * m : (kind + 2) * m]
        for j in range(m):
            back = weight * row_i[j + 1]
            first[j] += row_a[j] * y_opened[j] * back
            more[j] += forth[j] * y_extended[j] * back
        if i > 0:
            over = exp(scales[i - 1] + scale - log_z)
            previous = deleted[i - 1]
            k, inner = i - 1, slice(1, m)
            if i > 1 and m > 0:
                before = parts[(i - 2) * m : (i - 1) * m]
                gaps_x[OPEN * n + k] += used(before, row_d[inner], of_x[OPEN, k] * over)
                gaps_x[ends * n + k] += before[m - 1] * row_d[m] * of_x[ends, k] * over
            elif i == 1 and not local:
                gaps_x[ends * n + k] += row_d[0] * of_x[ends, k] * over
            at_ends = previous[0] * row_d[0]
            if m > 0:
                at_ends += previous[m] * row_d[m]
                gaps_x[EXTEND * n + k] += used(previous[1:], row_d[inner], of_x[EXTEND, k] * over)
            gaps_x[(ends + 1) * n + k] += at_ends * of_x[ends + 1, k] * over
            mine = parts[(i - 1) * m : i * m]
            if local:
                w, fresh, over = weights[(i - 1) * m : i * m], exp(scale - log_z), exp(scales[i] - log_z)
                for j in range(m):
                    began, ended = w[j] * row_m[j + 1] * fresh, mine[j] * over
                    starts_x[i - 1] += began
                    starts_y[j] += began
                    ends_x[i] += ended
                    ends_y[j + 1] += ended
            for j in range(m):
                mine[j] *= row_m[j + 1] * weight
        after_m, row_m = row_m, after_m
        after_d, row_d = row_d, after_d
    if local:
        left_out(starts_x, ends_x, exp(-log_z), gaps_x[END_EXTEND * n : END_EXTEND * n + n])
        left_out(starts_y, ends_y, exp(-log_z), gaps_y[END_EXTEND * m : END_EXTEND * m + m])
    return True


@helper
def left_out(starts, ends, never, out):
    """Probability that a place is outside a local alignment: it starts later, has ended, or nothing is aligned.

    starts[k]: it begins at place k; ends[k]: it ends before place k.
    """
    later = never
    for k in range(len(out) - 1, -1, -1):
        out[k] = later + starts[k + 1]
        later += starts[k + 1]
    earlier = 0.0
    for k in range(len(out)):
        earlier += ends[k]
        out[k] += earlier


@helper
def add_logs(a, b):
    """log(e^a + e^b)."""
    if a < b:
        a, b = b, a
    if b == -np.inf:
        return a
    return a + np.log(1.0 + exp(b - a))


@helper
def probability(a, b):
    """e^(a - b), zero if a is -inf."""
    return 0.0 if a == -np.inf else exp(a - b)


@helper
def sum_in_logarithms(theta, n, m, local, parts):
    """The same for all scores, one logarithm after another."""
    none = -np.inf
    ends = OPEN if local else END_OPEN
    fill(parts[: n * m + 4 * (n + m)], 0.0)
    gap = n * m
    forth = np.full((3, n + 1, m + 1), none)  # M, D, I
    x_before, y_before, x_after, y_after = np.zeros(n + 1), np.zeros(m + 1), np.zeros(n + 1), np.zeros(m + 1)
    log_z = none
    if local:
        sums_before(gap_scores(theta, n, m, 0, END_EXTEND), x_before)
        sums_after(gap_scores(theta, n, m, 0, END_EXTEND), x_after)
        sums_before(gap_scores(theta, n, m, 1, END_EXTEND), y_before)
        sums_after(gap_scores(theta, n, m, 1, END_EXTEND), y_after)
        log_z = x_before[n] + y_before[m]
    else:
        forth[0, 0, 0] = 0.0
    never = log_z
    for i in range(n + 1):
        for j in range(m + 1):
            if i > 0 and j > 0:
                value = add_logs(add_logs(forth[0, i - 1, j - 1], forth[1, i - 1, j - 1]), forth[2, i - 1, j - 1])
                if local:
                    value = add_logs(value, x_before[i - 1] + y_before[j - 1])
                forth[0, i, j] = value + theta[(i - 1) * m + j - 1]
                if local:
                    log_z = add_logs(log_z, forth[0, i, j] + x_after[i] + y_after[j])
            if i > 0:
                at = gap + (ends if j == 0 or j == m else OPEN) * n + i - 1
                forth[1, i, j] = add_logs(forth[0, i - 1, j] + theta[at], forth[1, i - 1, j] + theta[at + n])
            if j > 0:
                at = gap + 4 * n + (ends if i == 0 or i == n else OPEN) * m + j - 1
                value = add_logs(forth[0, i, j - 1], forth[1, i, j - 1])
                forth[2, i, j] = add_logs(value + theta[at], forth[2, i, j - 1] + theta[at + m])
    if not local:
        log_z = add_logs(add_logs(forth[0, n, m], forth[1, n, m]), forth[2, n, m])
    if log_z == none:
        return log_z
    after, row = np.full((3, m + 2), none), np.full((3, m + 2), none)
    starts_x, ends_x, starts_y, ends_y = np.zeros(n + 2), np.zeros(n + 2), np.zeros(m + 2), np.zeros(m + 2)
    for i in range(n, -1, -1):
        for j in range(m, -1, -1):
            end = 0.0 if i == n and j == m and not local else none
            on = theta[i * m + j] + after[0, j + 1] if i < n and j < m else none
            row[2, j] = add_logs(on, end)
            on = add_logs(on, end)
            row[0, j], row[1, j] = on, on
            if j < m:
                at = gap + 4 * n + (ends if i == 0 or i == n else OPEN) * m + j
                opened, extended = theta[at] + row[2, j + 1], theta[at + m] + row[2, j + 1]
                parts[at] += probability(add_logs(forth[0, i, j], forth[1, i, j]) + opened, log_z)
                parts[at + m] += probability(forth[2, i, j] + extended, log_z)
                row[0, j], row[1, j], row[2, j] = add_logs(on, opened), add_logs(on, opened), add_logs(row[2, j], extended)
            if i < n:
                at = gap + (ends if j == 0 or j == m else OPEN) * n + i
                opened, extended = theta[at] + after[1, j], theta[at + n] + after[1, j]
                parts[at] += probability(forth[0, i, j] + opened, log_z)
                parts[at + n] += probability(forth[1, i, j] + extended, log_z)
                row[0, j], row[1, j] = add_logs(row[0, j], opened), add_logs(row[1, j], extended)
            if local and i > 0 and j > 0:
                ended = probability(forth[0, i, j] + x_after[i] + y_after[j], log_z)
                row[0, j] = add_logs(row[0, j], x_after[i] + y_after[j])
                began = probability(x_before[i - 1] + y_before[j - 1] + theta[(i - 1) * m + j - 1] + row[0, j], log_z)
                starts_x[i - 1] += began
                starts_y[j - 1] += began
                ends_x[i] += ended
                ends_y[j] += ended
            if i > 0 and j > 0:
                parts[(i - 1) * m + j - 1] = probability(forth[0, i, j] + row[0, j], log_z)
        after, row = row, after
    if local:
        p = probability(never, log_z)
        left_out(starts_x, ends_x, p, parts[gap + END_EXTEND * n : gap + END_EXTEND * n + n])
        left_out(starts_y, ends_y, p, parts[gap + 4 * n + END_EXTEND * m : gap + 4 * n + END_EXTEND * m + m])
    return log_z
