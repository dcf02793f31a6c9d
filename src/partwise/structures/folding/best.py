"""The best structure: the way back through the tables of `inside`.

There are no back pointers, and most of the tables are gone when the way back begins: it looks for the maxima again, some 500
loops for each of at most n / 2 pairs, and computes again what it compares, by the same additions.
"""

from __future__ import annotations

import numpy as np

from partwise.engine.compilation import helper
from partwise.engine.numerics import larger
from partwise.structures.folding.inside import (
    SPAN,
    bulge_end,
    external_pair,
    fill_inside,
    hairpin,
    inner_end,
    loop_end,
    multi_loop,
    one_by_one,
    outer_end,
    reach,
    row_of,
    stack,
    with_two_or_more,
)
from partwise.structures.folding.loops import BULGE_END, INTERNAL_END, LONGEST, MULTI_END

CLOSED, ONE, SOME, TWO, LATER = 0, 1, 2, 3, 4


@helper
def inner_pair(scores, table, i, j):
    """The pair (p, q) of the best loop that (i, j) closes with another; and its score, without (i, j) itself."""
    s, e, b = scores.semiring, scores.entries, scores.bases
    top, p, q = -np.inf, -1, -1
    for left in range(min(scores.after[i], LONGEST) + 1):
        right = reach(scores.before[j], j - i, left)
        if right < 0:
            break
        for k in range(right + 1):
            x, y = i + 1 + left, j - 1 - k
            if left + k <= 1:
                value = stack(s, e, b, i, j, x, y) + table.closed[x, y]
            elif left == 0 or k == 0:
                value = scores.bulges[left + k] + e[BULGE_END + 4 * b[i] + b[j]] + bulge_end(s, e, b, table.closed[x, y], x, y)
            elif left + k == 2:
                value = one_by_one(s, e, b, i, j) + loop_end(s, e, b, table.closed[x, y], x, y)
            else:
                value = scores.internal[left, LONGEST - k] + e[inner_end(b, INTERNAL_END, i, j)]
                value += loop_end(s, e, b, table.closed[x, y], x, y)
            if value > top:
                top, p, q = value, x, y
    return top, p, q


@helper
def best_structure(scores, y):
    """Write the partner of every base, or -1, into y; returns the score, -inf if there is no structure."""
    s, b, n, e = scores.semiring, scores.bases, len(scores.bases), scores.entries
    table = fill_inside(scores, True)
    one_by_end, later = table.one_by_end, np.empty(n + 1)
    for i in range(n):
        y[i] = -1
    if table.prefix[n] == -np.inf:
        return -np.inf
    stacked = np.empty((n + 2, 3), np.int64)  # spans to be taken apart: what they are, where they begin and end
    height, end = 0, n
    while end > 0:
        j = end - 1
        top, first = table.prefix[j] + scores.external[j], -1
        for i in range(j - SPAN + 1):
            if table.closed[i, j] > -np.inf:
                value = table.prefix[i] + external_pair(s, e, b, table.closed[i, j], i, j)
                if value > top:
                    top, first = value, i
        if first >= 0:
            stacked[height, 0], stacked[height, 1], stacked[height, 2] = CLOSED, first, j
            height += 1
            end = first
        else:
            end = j
    while height:
        height -= 1
        kind, i, j = stacked[height, 0], stacked[height, 1], stacked[height, 2]
        if kind == SOME:
            later[j - SPAN + 1] = -np.inf
            for k in range(j - SPAN, i - 1, -1):
                later[k] = larger(one_by_end[j, k], scores.multi[k] + later[k + 1])
            kind = TWO if with_two_or_more(s, row_of(table.some, n, i), one_by_end, i, j) > later[i] else LATER
        if kind == LATER:
            while one_by_end[j, i] < scores.multi[i] + later[i + 1]:
                i += 1
            kind = ONE
        if kind == ONE:
            while table.closed[i, j] + e[outer_end(b, MULTI_END, i, j)] < one_by_end[j - 1, i] + scores.multi[j]:
                j -= 1
            kind = CLOSED
        if kind == CLOSED:
            y[i], y[j] = j, i
            top, p, q = inner_pair(scores, table, i, j)
            multi = with_two_or_more(s, row_of(table.some, n, i + 1), one_by_end, i + 1, j - 1)
            multi += multi_loop(s, e, b, i, j)
            if max(top, multi) <= hairpin(s, e, b, scores.hairpins, scores.after[i], i, j):
                continue
            if top >= multi:
                stacked[height, 0], stacked[height, 1], stacked[height, 2] = CLOSED, p, q
                height += 1
                continue
            kind, i, j = TWO, i + 1, j - 1
        top, split, some = -np.inf, -1, row_of(table.some, n, i)
        for k in range(i + SPAN + 1, j - SPAN + 1):
            value = some[k - 1] + one_by_end[j, k]
            if value > top:
                top, split = value, k
        stacked[height, 0], stacked[height, 1], stacked[height, 2] = SOME, i, split - 1
        stacked[height + 1, 0], stacked[height + 1, 1], stacked[height + 1, 2] = ONE, split, j
        height += 2
    return table.prefix[n]
