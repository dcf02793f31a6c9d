"""Trees without a grammar: any labels may meet, so the best label of a span has nothing to do with its splits.

    in(i, j) = max_A span(i, j, A) + max_k in(i, k) + in(k, j)

and the same with sums for maxima. Scores of labels are looked at once; what follows is a chart of one number for a span, kept
twice, by the first word of spans and by their end: a loop over splits reads both children side by side.

Sums are kept in logarithms: there are n^3 / 3 exponentials, few beside n^2 S scores. Probabilities go down from the root: that of
(i, j) is shared among its splits as they contributed to in(i, j). Shares are ratios of sums that contain one another, so nothing
overflows.

Costs: O(n^3 + n^2 S) time for n words and S symbols; beside scores, 16 n^2 bytes for the best tree, 32 n^2 for sums. The k best
trees: k log k times as much time, 12 k n^2 bytes.

References
----------
M. Stern, J. Andreas, D. Klein (2017). A minimal span-based neural constituency parser. ACL.
"""

from __future__ import annotations

import numpy as np

from partwise.engine.accumulator import row
from partwise.engine.compilation import helper
from partwise.engine.numerics import exp, fill, larger
from partwise.structures.common.semirings import LARGEST, LOG_SUM, inner, make_semiring
from partwise.structures.constituency.best import insert, span_number
from partwise.structures.constituency.grammar import AnyLabels, best_tree, kbest_trees, tree_sums

NEVER = 1e-300  # spans that are less probable give nothing to what is below them


@helper
def over_labels(s, scores):
    """The scores of all symbols of a span together: their maximum, or the logarithm of their sum."""
    top = -np.inf
    for a in range(len(scores)):
        top = larger(top, np.float64(scores[a]))
    if s.kind == LARGEST or top == -np.inf:
        return top
    total = 0.0
    for a in range(len(scores)):
        total += exp(scores[a] - top)
    return top + np.log(total)


@helper
def inside_any(s, S, n, theta, by_begin, by_end):
    """Fill the chart: by_begin[i, j] = by_end[j, i] = in(i, j)."""
    for size in range(1, n + 1):
        for i in range(n - size + 1):
            j = i + size
            value = over_labels(s, row(theta, span_number(i, j, n), S))
            if size > 1:
                value += inner(s, by_begin[i, i + 1 : j], by_end[j, i + 1 : j])
            by_begin[i, j], by_end[j, i] = value, value


@helper
def highest(values):
    """The place of the largest."""
    top = 0
    for a in range(len(values)):
        if values[a] > values[top]:
            top = a
    return top


@best_tree.implements(AnyLabels)
def _(grammar, n, theta, y):
    S, by_begin, by_end = grammar.n_symbols, np.empty((n, n + 1)), np.empty((n + 1, n + 1))
    inside_any(make_semiring(LARGEST), S, n, theta, by_begin, by_end)
    if by_begin[0, n] == -np.inf:
        return -np.inf
    begin, end = np.empty(2 * n - 1, np.int64), np.empty(2 * n - 1, np.int64)
    begin[0], end[0] = 0, n
    for t in range(2 * n - 1):
        i, j, split = begin[t], end[t], 0
        if j > i + 1:
            top = -np.inf
            for k in range(i + 1, j):
                value = by_begin[i, k] + by_end[j, k]
                if value > top:
                    top, split = value, k
            second = t + 2 * (split - i)
            begin[t + 1], end[t + 1], begin[second], end[second] = i, split, split, j
        y[t] = highest(row(theta, span_number(i, j, n), S)) * n + split
    return by_begin[0, n]


@kbest_trees.implements(AnyLabels)
def _(grammar, n, theta, ys, out):
    S, most, cells = grammar.n_symbols, len(out), n * (n + 1) // 2
    values, how, found = np.empty((cells, most)), np.empty((cells, most, 4), np.int32), np.zeros(cells, np.int64)
    label_values, label_how = np.empty(most), np.empty((most, 4), np.int32)
    split_values, split_how = np.empty(most), np.empty((most, 4), np.int32)
    for size in range(1, n + 1):
        for i in range(n - size + 1):
            j, cell = i + size, span_number(i, i + size, n)
            scores, labels, splits, count = row(theta, cell, S), 0, 0, 0
            for a in range(S):
                if scores[a] > -np.inf:
                    labels = insert(label_values, label_how, labels, most, scores[a], a, 0, 0, 0)
            if size == 1:
                split_values[0], splits = 0.0, 1
                split_how[0, 1], split_how[0, 2], split_how[0, 3] = 0, 0, 0
            for k in range(i + 1, j):
                b, c = span_number(i, k, n), span_number(k, j, n)
                for p in range(found[b]):
                    for q in range(min(found[c], most // (p + 1))):  # (p + 1)(q + 1) - 1 others are no worse
                        value = values[b, p] + values[c, q]
                        if splits == most and not value > split_values[most - 1]:
                            break
                        splits = insert(split_values, split_how, splits, most, value, 0, k, p, q)
            for p in range(labels):
                for q in range(min(splits, most // (p + 1))):
                    value, a, ways = label_values[p] + split_values[q], label_how[p, 0], split_how[q]
                    count = insert(values[cell], how[cell], count, most, value, a, ways[1], ways[2], ways[3])
            found[cell] = count
    begin, end, rank = np.empty(2 * n - 1, np.int64), np.empty(2 * n - 1, np.int64), np.empty(2 * n - 1, np.int64)
    whole = span_number(0, n, n)
    for m in range(found[whole]):
        out[m] = values[whole, m]
        begin[0], end[0], rank[0] = 0, n, m
        for t in range(2 * n - 1):
            i, j, cell = begin[t], end[t], span_number(begin[t], end[t], n)
            a, split = np.int64(how[cell, rank[t], 0]), np.int64(how[cell, rank[t], 1])
            if j > i + 1:
                second = t + 2 * (split - i)
                begin[t + 1], end[t + 1], begin[second], end[second] = i, split, split, j
                rank[t + 1], rank[second] = how[cell, rank[t], 2], how[cell, rank[t], 3]
            ys[m, t] = a * n + split
    return found[whole]


@tree_sums.implements(AnyLabels)
def _(grammar, n, theta, parts):
    s, S = make_semiring(LOG_SUM), grammar.n_symbols
    by_begin, by_end = np.empty((n, n + 1)), np.empty((n + 1, n + 1))
    inside_any(s, S, n, theta, by_begin, by_end)
    fill(parts, 0.0)
    log_z = by_begin[0, n]
    if log_z == -np.inf:
        return log_z
    p_begin, p_end = np.zeros((n, n + 1)), np.zeros((n + 1, n + 1))  # what spans were given as first and as second children
    p_begin[0, n] = 1.0
    for size in range(n, 0, -1):
        for i in range(n - size + 1):
            j = i + size
            p, scores, given = (
                p_begin[i, j] + p_end[j, i],
                row(theta, span_number(i, j, n), S),
                row(parts, span_number(i, j, n), S),
            )
            if p < NEVER:
                continue
            labels = over_labels(s, scores)
            for a in range(S):
                given[a] = p * exp(scores[a] - labels)
            if size == 1:
                continue
            left, right, splits = by_begin[i, i + 1 : j], by_end[j, i + 1 : j], by_begin[i, j] - labels
            to_left, to_right = p_begin[i, i + 1 : j], p_end[j, i + 1 : j]
            for k in range(len(left)):
                share = p * exp(left[k] + right[k] - splits)
                to_left[k] += share
                to_right[k] += share
    return log_z
