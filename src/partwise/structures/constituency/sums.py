"""Sums over all trees of a sentence by a binary grammar, and the probabilities of their parts: inside-outside.

    in(i, j, A) = span(i, j, A) + log sum_{A -> B C, k} exp(rule(A -> B C) + in(i, k, B) + in(k, j, C))

is kept as a plain number, exp(in(i, j, A) - scale(i, j)) with the largest of a span one, so that sums over splits k are inner
products: multiplications only. The scales of the children are one factor for each split of a span, whatever the rule.

What is so much smaller than the rest of its span that floats cannot hold it (`LEAST`) is formed again in logarithms, entry by
entry: where other parts are forbidden it may be all that is left in the end. What plain numbers lose in other entries is less
than a part in 1e15.

Probabilities go down from the root: that of (i, j, A) is shared among its rules and splits as they contributed to in(i, j, A).
Shares are ratios of sums that contain one another, so nothing overflows.

Costs: O(n^3 R) time for n words and R rules, about four times that of the best tree; 28 n^2 S bytes for S symbols.

References
----------
J. K. Baker (1979). Trainable grammars for speech recognition. Speech Communication Papers for the 97th Meeting of the ASA.
J. Goodman (1999). Semiring parsing. Computational Linguistics 25.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partwise.engine.compilation import helper
from partwise.engine.numerics import exp, fill, larger, smaller
from partwise.structures.common.semirings import log_plus
from partwise.structures.constituency.best import span_number, widen, window, windows_of
from partwise.structures.constituency.grammar import Grammar, tree_sums

LEAST = 1e-280  # sums below are formed in logarithms: what floats lose, 1e-304 for each rule and split, would show in them
HELD = 1e-290  # entries below are looked up in logarithms; a sum of at least LEAST is above, over that of its span
NEVER = 1e-18  # what is less probable gives nothing to what is below it: n^2 / 2 times all pairs such errors are below 1e-9


class Sums(NamedTuple):
    """A chart of sums, and scratch memory for one span."""

    by_begin: np.ndarray  #: [i, A, j] exp(in(i, j, A) - scale)
    by_end: np.ndarray  #: [j, A, i] the same
    scales: np.ndarray  #: [i, j]
    scales_by_end: np.ndarray  #: [j, i]
    small: np.ndarray  #: [span, A] in(i, j, A) where `by_begin` does not hold it, else -inf
    ends: np.ndarray  #: see `windows_of`
    begun: np.ndarray
    rules: np.ndarray  #: (R,) exp(rule - top)
    rarest: np.ndarray  #: (S,) the smallest of those of each parent that are not forbidden
    top: float  #: the largest score of a rule
    left: np.ndarray  #: [B, k] first children of the span at hand, times the scales of both children
    products: np.ndarray  #: sums over splits of the span at hand, for the pairs of children that meet in it
    met: np.ndarray  #: the numbers of these pairs


@helper
def make_sums(grammar, n, theta):
    """An empty chart."""
    S, R, spans, top = grammar.n_symbols, grammar.parent.size, n * (n + 1) // 2, -np.inf
    given, rules, rarest = theta[spans * S : spans * S + R], np.zeros(R), np.ones(S)
    for r in range(R):
        top = larger(top, np.float64(given[r]))
    if top > -np.inf:
        for r in range(R):
            rules[r] = exp(given[r] - top)
            if given[r] > -np.inf:
                rarest[grammar.parent[r]] = smaller(rarest[grammar.parent[r]], rules[r])
    ends, begun = windows_of(n, S)
    return Sums(
        np.zeros((n, S, n + 1)),
        np.zeros((n + 1, S, n + 1)),
        np.full((n, n + 1), -np.inf),
        np.full((n + 1, n + 1), -np.inf),
        np.full((spans, S), -np.inf),
        ends,
        begun,
        rules,
        rarest,
        top,
        np.empty((S, n + 1)),
        np.empty(grammar.pair_first.size),
        np.empty(grammar.pair_first.size, np.int64),
    )


@helper
def log_entry(chart, n, i, j, a):
    """in(i, j, A)."""
    value = chart.by_begin[i, a, j]
    return np.log(value) + chart.scales[i, j] if value >= HELD else chart.small[span_number(i, j, n), a]


@helper
def multiply_scales(chart, i, j):
    """Fill `left` for a span, and its last row, for glue is no first child, with the factors of the splits.

    Returns the logarithm that products of children were divided by, -inf if there are none, and the smallest factor.
    """
    S, top, least, first, second = chart.left.shape[0], -np.inf, 1.0, chart.scales[i], chart.scales_by_end[j]
    for k in range(i + 1, j):
        top = larger(top, first[k] + second[k])
    if top > -np.inf:
        left, by_begin, ends, factor = chart.left, chart.by_begin[i], chart.ends[i], chart.left[S - 1]
        for k in range(i + 1, j):
            factor[k] = exp(first[k] + second[k] - top)
            if first[k] + second[k] > -np.inf:
                least = smaller(least, factor[k])
        for b in range(np.uint64(S - 1)):
            for k in range(ends[b, 0], min(ends[b, 1], np.uint64(j))):
                left[b, k] = factor[k] * by_begin[b, k]
    return top, least


@helper
def sum_over_splits(left, right, b, c, low, high):
    """sum_k of products of two children."""
    total = 0.0
    for k in range(low, high):
        total += left[b, k] * right[c, k]
    return total


@helper
def add_products(grammar, chart, i, j, totals):
    """Write what rules and splits of a span add up to for every parent, and note its pairs of children; returns how many.

    `left` must have been filled. Pairs whose first child begins nowhere at i, or whose splits do not meet, are passed over.
    """
    pairs_of, second, uses, by_pair, parent = grammar.pairs_of, grammar.pair_second, grammar.uses, grammar.by_pair, grammar.parent
    ends, begun, left, right, rules = chart.ends, chart.begun, chart.left, chart.by_end[j], chart.rules
    products, met, count = chart.products, chart.met, 0
    fill(totals, 0.0)
    for b in range(np.uint64(grammar.n_symbols)):
        if ends[i, b, 0] >= ends[i, b, 1]:
            continue
        for p in range(pairs_of[b], pairs_of[np.uint64(b) + np.uint64(1)]):
            c = second[p]
            low, high = window(ends, begun, i, j, b, c)
            if low >= high:
                continue
            product = sum_over_splits(left, right, b, c, low, high)
            products[count], met[count] = product, p
            count += 1
            for u in range(uses[p], uses[p + 1]):
                totals[parent[by_pair[u]]] += rules[by_pair[u]] * product
    return count


@helper
def log_sum(grammar, n, theta, chart, i, j, a):
    """The logarithm of the sum over rules and splits, in logarithms all the way."""
    base, total = n * (n + 1) // 2 * grammar.n_symbols, -np.inf
    for r in range(grammar.begins[a], grammar.begins[a + 1]):
        low, high = window(chart.ends, chart.begun, i, j, grammar.first[r], grammar.second[r])
        if theta[base + r] > -np.inf:
            for k in range(np.int64(low), np.int64(high)):
                both = log_entry(chart, n, i, k, grammar.first[r]) + log_entry(chart, n, k, j, grammar.second[r])
                if both > -np.inf:
                    total = log_plus(total, both + theta[base + r])
    return total


@helper
def inside_sums(grammar, n, theta, chart):
    """Fill the chart, from short spans to long ones."""
    S, by_begin, by_end, small = grammar.n_symbols, chart.by_begin, chart.by_end, chart.small
    totals, values, lowest = np.ones(S), np.empty(S), 1.0
    for size in range(1, n + 1):
        for i in range(n - size + 1):
            j = i + size
            span = span_number(i, j, n)
            own, high, common, largest, least = theta[span * S : (span + 1) * S], -np.inf, 0.0, 0.0, 1.0
            for a in range(S):
                high = larger(high, np.float64(own[a]))
            if size > 1 and high > -np.inf:
                common, least = multiply_scales(chart, i, j)
                common, least = common + chart.top, least * lowest * lowest
            if high + common == -np.inf:
                continue
            if size > 1:
                add_products(grammar, chart, i, j, totals)
            for a in range(S):
                values[a] = totals[a] * exp(own[a] - high)
                largest = larger(largest, values[a])
            # the largest entry is the scale; only where none is large enough do those in logarithms decide it. Zero is no entry,
            # unless it may be a product of small ones
            scale = high + common + np.log(largest) if largest >= LEAST else -np.inf
            for a in range(S):
                if values[a] < LEAST and own[a] > -np.inf and (totals[a] > 0.0 or least * chart.rarest[a] < HELD):
                    rest = log_sum(grammar, n, theta, chart, i, j, a) if size > 1 else 0.0
                    if rest > -np.inf:
                        small[span, a] = own[a] + rest
                        if largest < LEAST:
                            scale = larger(scale, small[span, a])
            if scale == -np.inf:
                continue
            chart.scales[i, j], chart.scales_by_end[j, i] = scale, scale
            for a in range(S):
                value = values[a] / largest if values[a] >= LEAST else exp(small[span, a] - scale)
                by_begin[i, a, j], by_end[j, a, i] = value, value
                if value > 0.0 or small[span, a] > -np.inf:
                    widen(chart.ends, chart.begun, i, j, a)
                    if a < S - 1:
                        lowest = smaller(lowest, value)


@helper
def share_in_logarithms(grammar, n, theta, chart, i, j, a, p, parts):
    """What (i, j, A) of probability p gives to its rules and children, in logarithms all the way."""
    S, base = grammar.n_symbols, n * (n + 1) // 2 * grammar.n_symbols
    whole = log_entry(chart, n, i, j, a) - theta[span_number(i, j, n) * S + a]
    for r in range(grammar.begins[a], grammar.begins[a + 1]):
        low, high = window(chart.ends, chart.begun, i, j, grammar.first[r], grammar.second[r])
        if theta[base + r] > -np.inf:
            for k in range(np.int64(low), np.int64(high)):
                both = log_entry(chart, n, i, k, grammar.first[r]) + log_entry(chart, n, k, j, grammar.second[r])
                if both > -np.inf:
                    share = p * exp(both + theta[base + r] - whole)
                    parts[base + r] += share
                    parts[span_number(i, k, n) * S + grammar.first[r]] += share
                    parts[span_number(k, j, n) * S + grammar.second[r]] += share


@helper
def outside_sums(grammar, n, theta, chart, log_z, parts):
    """Write the probabilities of spans with symbols and the expected number of uses of rules, from the root down."""
    S, uses, by_pair, parent = grammar.n_symbols, grammar.uses, grammar.by_pair, grammar.parent
    pair_first, pair_second, by_begin, ends, begun = (
        grammar.pair_first,
        grammar.pair_second,
        chart.by_begin,
        chart.ends,
        chart.begun,
    )
    left, products, met, rules = chart.left, chart.products, chart.met, chart.rules
    base, shares, scaled = n * (n + 1) // 2 * S, np.empty(S), np.empty((S, n + 1))
    # what entries were given so far, over what they are: as first children, [i, A, j], and as second ones of spans that end at j
    as_first, as_second = np.zeros((n, S, n + 1)), np.empty((S, n + 1))
    fill(parts, 0.0)
    for a in range(S):
        parts[span_number(0, n, n) * S + a] = exp(log_entry(chart, n, 0, n, a) - log_z)
    for j in range(n, 0, -1):
        right = chart.by_end[j]
        as_second[:] = 0.0
        for i in range(j):  # all that contain (i, j) come before
            here, likeliest = span_number(i, j, n) * S, 0.0
            for a in range(S):
                parts[here + a] += by_begin[i, a, j] * as_first[i, a, j] + right[a, i] * as_second[a, i]
                likeliest = larger(likeliest, parts[here + a])
            if j == i + 1 or likeliest < NEVER:
                continue
            multiply_scales(chart, i, j)
            factor, given = left[S - 1], as_first[i]
            for c in range(np.uint64(S)):
                for k in range(max(begun[j, c, 0], np.uint64(i + 1)), begun[j, c, 1]):
                    scaled[c, k] = factor[k] * right[c, k]
            count = add_products(grammar, chart, i, j, shares)
            for a in range(S):
                p, total = parts[here + a], shares[a]
                shares[a] = 0.0
                if p >= NEVER and total >= LEAST:
                    shares[a] = p / total
                elif p >= NEVER:
                    share_in_logarithms(grammar, n, theta, chart, i, j, a, p, parts)
            for m in range(count):
                q, product, weight = met[m], products[m], 0.0
                for u in range(uses[q], uses[q + 1]):
                    r = by_pair[u]
                    own = shares[parent[r]] * rules[r]
                    weight += own
                    parts[base + r] += own * product
                if weight * product >= NEVER:
                    b, c = pair_first[q], pair_second[q]
                    low, stop = window(ends, begun, i, j, b, c)
                    for k in range(low, stop):
                        given[b, k] += weight * scaled[c, k]
                    for k in range(low, stop):
                        as_second[c, k] += weight * left[b, k]


@tree_sums.implements(Grammar)
def _(grammar, n, theta, parts):
    log_z, chart = -np.inf, make_sums(grammar, n, theta)
    inside_sums(grammar, n, theta, chart)
    for a in range(grammar.n_symbols):
        log_z = log_plus(log_z, log_entry(chart, n, 0, n, a))
    if log_z > -np.inf:
        outside_sums(grammar, n, theta, chart, log_z, parts)
    else:
        fill(parts, 0.0)
    return log_z
