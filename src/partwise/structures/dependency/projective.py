"""Projective trees with arc scores: the best one, and the sum over all of them (Eisner 1996).

Scores are those of `spanning`. A tree is projective if every head has all words between it and a word below it below
itself: no arcs cross. Two kinds of spans, each with its head at one end:

    incomplete(h, m)    h has just taken m; of the words between, those on the side of h are done, and so are those of m
    complete(h, e)      all words from h to e are below h, and h takes no more on that side

    incomplete(h, m) = score(h -> m) + max_r complete(s, r) + complete(t, r + 1)          s = min(h, m), t = max(h, m), s <= r < t
    complete(h, e)   = max_m incomplete(h, m) + complete(m, e)                              m from the word next to h to e

and the best tree is complete(0, n). For the sum over trees the maxima are log-sum-exps. Marginals go the other way: each span
gives the probability that it is in the tree to those it is made of, in proportion to their share in its sum, the widest spans
first. *Single-rooted* trees: the root takes one word only.

Each table is kept twice, by row and by column, so that the inner loops over r and m run over neighbours and vectorise. There are
no back pointers: the way back looks for the maxima again, O(n) for each of the n arcs.

Cost: O(n^3) time, O(n^2) memory.

References
----------
J. Eisner (1996). Three new probabilistic models for dependency parsing: an exploration. COLING.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partwise.engine.compilation import helper
from partwise.engine.numerics import exp
from partwise.structures.common.semirings import highest_sum, log_inner


class Spans(NamedTuple):
    """Values of spans by [head, other end], and the complete ones by [other end, head] too."""

    incomplete: np.ndarray
    complete: np.ndarray
    complete_by_end: np.ndarray


@helper
def make_spans(n):
    """Tables without any span but single words, which are complete."""
    N = n + 1
    incomplete, complete, by_end = np.full((N, N), -np.inf), np.full((N, N), -np.inf), np.full((N, N), -np.inf)
    for k in range(N):
        complete[k, k] = 0.0
        by_end[k, k] = 0.0
    return Spans(incomplete, complete, by_end)


@helper
def combine(a, b, soft):
    """The maximum of the sums, or their log-sum-exp."""
    return log_inner(a, b) if soft else highest_sum(a, b)


@helper
def fill_spans(scores, n, single_root, soft):
    """All spans, the narrowest first."""
    spans = make_spans(n)
    incomplete, complete, by_end = spans
    for width in range(1, n + 1):
        for s in range(n + 1 - width):
            t = s + width
            last = 1 if s == 0 and single_root else t  # the root has nothing on its side before it takes its word
            inner = combine(complete[s, s:last], complete[t, s + 1 : last + 1], soft)
            incomplete[s, t] = inner + scores[t - 1, s]
            if s > 0:
                incomplete[t, s] = inner + scores[s - 1, t]
                value = combine(incomplete[t, s:t], by_end[s, s:t], soft)
                complete[t, s] = value
                by_end[s, t] = value
            value = combine(incomplete[s, s + 1 : t + 1], by_end[t, s + 1 : t + 1], soft)
            complete[s, t] = value
            by_end[t, s] = value
    return spans


@helper
def best_projective_tree(scores, n, single_root, heads):
    """Write the heads of a best projective tree, heads[m - 1], and return its score; -inf if there is no tree."""
    incomplete, complete, by_end = fill_spans(scores, n, single_root, False)
    if n and complete[0, n] == -np.inf:
        return -np.inf
    stack = np.empty((2 * n + 2, 2), np.int64)  # complete spans that are to be taken apart: head, other end
    stack[0, 0], stack[0, 1], height = 0, n, 1
    while height:
        height -= 1
        h, e = stack[height, 0], stack[height, 1]
        if h == e:
            continue
        low, high = (h + 1, e) if h < e else (e, h - 1)
        top, m = -np.inf, low
        for k in range(low, high + 1):
            if incomplete[h, k] + by_end[e, k] > top:
                top, m = incomplete[h, k] + by_end[e, k], k
        heads[m - 1] = h
        s, t = min(h, m), max(h, m)
        last = 1 if s == 0 and single_root else t
        top, split = -np.inf, s
        for r in range(s, last):
            if complete[s, r] + complete[t, r + 1] > top:
                top, split = complete[s, r] + complete[t, r + 1], r
        for a, b in ((m, e), (s, split), (t, split + 1)):
            stack[height, 0], stack[height, 1] = a, b
            height += 1
    total = 0.0
    for m in range(n):
        total += scores[m, heads[m]]
    return total


@helper
def share(a, b, value, probability, to_a, to_b):
    """Give the probability of a span to the pairs it is made of, in proportion to exp(a[k] + b[k] - value)."""
    for k in range(len(a)):
        p = probability * exp(a[k] + b[k] - value)
        to_a[k] += p
        to_b[k] += p


@helper
def sum_over_projective_trees(scores, n, single_root, marginals):
    """log sum over projective trees of exp(score), and the probability of every arc, marginals[m - 1, h]."""
    marginals[:n, : n + 1] = 0.0
    incomplete, complete, by_end = fill_spans(scores, n, single_root, True)
    log_z = complete[0, n]
    if n == 0 or log_z == -np.inf:
        return log_z
    N = n + 1
    of_incomplete, of_complete, of_end = np.zeros((N, N)), np.zeros((N, N)), np.zeros((N, N))  # probabilities
    of_complete[0, n] = 1.0
    for width in range(n, 0, -1):
        for s in range(N - width):
            t = s + width
            p = of_complete[s, t] + of_end[t, s]
            if p > 0.0:
                here = slice(s + 1, t + 1)
                share(incomplete[s, here], by_end[t, here], complete[s, t], p, of_incomplete[s, here], of_end[t, here])
            p = of_complete[t, s] + of_end[s, t]
            if s > 0 and p > 0.0:
                here = slice(s, t)
                share(incomplete[t, here], by_end[s, here], complete[t, s], p, of_incomplete[t, here], of_end[s, here])
            marginals[t - 1, s] = min(of_incomplete[s, t], 1.0)
            p, value = of_incomplete[s, t], incomplete[s, t] - scores[t - 1, s] if of_incomplete[s, t] > 0.0 else 0.0
            if s > 0:
                marginals[s - 1, t] = min(of_incomplete[t, s], 1.0)
                if of_incomplete[t, s] > 0.0:
                    value = incomplete[t, s] - scores[s - 1, t]
                p += of_incomplete[t, s]
            if p > 0.0:
                last = 1 if s == 0 and single_root else t
                here, there = slice(s, last), slice(s + 1, last + 1)
                share(complete[s, here], complete[t, there], value, p, of_complete[s, here], of_complete[t, there])
    return log_z
