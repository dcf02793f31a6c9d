"""Projective trees whose arcs have scores, and so have words next to each other below a head: the best one, and sums over all.

    s(y) = sum_m arc(h(m) -> m) + sibling(h(m), r(m), m),      r(m) the next word towards h(m) that is on its side, too; 0: none

Spans are those of `projective`, and one more kind, between two words that are next to each other below a head; it is what the
head needs to know when it takes the outer one:

    between(s, t)    = (+)_k complete(s, k) + complete(t, k + 1)                                     s <= k < t
    incomplete(h, m) = arc(h -> m) + [ sibling(h, 0, m) + complete(m, the word next to h)
                                      (+)_r incomplete(h, r) + between(r, m) + sibling(h, r, m) ]    r between h and m
    complete(h, e)   = (+)_m incomplete(h, m) + complete(m, e)

(+) being the maximum, or the log-sum-exp. Probabilities go the other way, the widest spans first.

Parts: those of a tree (arcs with labels), then sibling(h, r, m) as number ((m - 1)(n + 1) + h)(n + 1) + r. There are no features:
scores come from elsewhere.

Cost: O(n^3) time, O(n^2) memory beside the scores.

References
----------
R. McDonald, F. Pereira (2006). Online learning of approximate dependency parsing algorithms. EACL.
Y. Zhang, Z. Li, M. Zhang (2020). Efficient second-order TreeCRF for neural dependency parsing. ACL.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from partwise import kernels
from partwise.engine.compilation import helper
from partwise.engine.numerics import exp, fill, larger
from partwise.oracles.kbest_by_partition import kbest_by_partition
from partwise.structures.dependency.kernels import best_of_labels, share_among_labels, sums_of_labels
from partwise.structures.dependency.problem import cycle, is_projective
from partwise.structures.dependency.projective import combine, share


class SiblingTreeProblem(NamedTuple):
    """N sentences whose arcs and siblings have any scores."""

    starts: np.ndarray  #: (N + 1,) int64 first word of each sentence
    n_labels: int
    single_root: bool


class SiblingSpans(NamedTuple):
    """Values of spans by [head, other end], complete ones by [other end, head] too; of those between siblings either way."""

    incomplete: np.ndarray
    complete: np.ndarray
    complete_by_end: np.ndarray
    between: np.ndarray


@helper
def join(first, a, b, c, soft):
    """The maximum of `first` and a[k] + b[k] + c[k], or their log-sum-exp."""
    high = first
    for k in range(len(a)):
        high = larger(high, a[k] + b[k] + c[k])
    if not soft or high == -np.inf:
        return high
    total = exp(first - high)
    for k in range(len(a)):
        total += exp(a[k] + b[k] + c[k] - high)
    return high + np.log(total)


@helper
def fill_sibling_spans(scores, siblings, n, single_root, soft):
    """All spans, the narrowest first; scores[m - 1, h] of arcs, siblings[m - 1, h, r]."""
    N = n + 1
    incomplete, complete, by_end = np.full((N, N), -np.inf), np.full((N, N), -np.inf), np.full((N, N), -np.inf)
    between = np.full((N, N), -np.inf)
    for k in range(N):
        complete[k, k] = 0.0
        by_end[k, k] = 0.0
    for width in range(1, N):
        for s in range(N - width):
            t = s + width
            here = slice(s + 1, s + 1 if s == 0 and single_root else t)  # the root takes one word, or any
            nearest = siblings[t - 1, s, 0] + complete[t, s + 1]
            inner = join(nearest, incomplete[s, here], between[t, here], siblings[t - 1, s, here], soft)
            incomplete[s, t] = inner + scores[t - 1, s]
            if s > 0:
                here = slice(s + 1, t)
                nearest = siblings[s - 1, t, 0] + complete[s, t - 1]
                inner = join(nearest, incomplete[t, here], between[s, here], siblings[s - 1, t, here], soft)
                incomplete[t, s] = inner + scores[s - 1, t]
                value = combine(complete[s, s:t], complete[t, s + 1 : t + 1], soft)
                between[s, t] = value
                between[t, s] = value
                value = combine(incomplete[t, s:t], by_end[s, s:t], soft)
                complete[t, s] = value
                by_end[s, t] = value
            value = combine(incomplete[s, s + 1 : t + 1], by_end[t, s + 1 : t + 1], soft)
            complete[s, t] = value
            by_end[t, s] = value
    return SiblingSpans(incomplete, complete, by_end, between)


@helper
def best_sibling_tree(scores, siblings, n, single_root, heads):
    """Write the heads of a best tree, heads[m - 1], and return its score; -inf if there is none."""
    incomplete, complete, by_end, between = fill_sibling_spans(scores, siblings, n, single_root, False)
    if n and complete[0, n] == -np.inf:
        return -np.inf
    stack = np.empty((3 * n + 3, 2), np.int64)  # complete spans that are to be taken apart: head, other end
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
        stack[height, 0], stack[height, 1] = m, e
        height += 1
        while True:  # the words that h has on this side, the outermost first
            heads[m - 1] = h
            next_to = h + 1 if h < m else h - 1
            top, r = siblings[m - 1, h, 0] + complete[m, next_to], 0
            for k in range(min(h, m) + 1, max(h, m)):
                if (h or not single_root) and incomplete[h, k] + between[k, m] + siblings[m - 1, h, k] > top:
                    top, r = incomplete[h, k] + between[k, m] + siblings[m - 1, h, k], k
            if r == 0:
                stack[height, 0], stack[height, 1] = m, next_to
                height += 1
                break
            s, t = min(r, m), max(r, m)
            top, split = -np.inf, s
            for k in range(s, t):
                if complete[s, k] + complete[t, k + 1] > top:
                    top, split = complete[s, k] + complete[t, k + 1], k
            stack[height, 0], stack[height, 1] = s, split
            stack[height + 1, 0], stack[height + 1, 1] = t, split + 1
            height += 2
            m = r
    return complete[0, n]


@helper
def share_siblings(nearest, a, b, c, value, probability, to_a, to_b, to_c):
    """Give the probability of an incomplete span to what it is made of; returns the share of the nearest word's."""
    for k in range(len(a)):
        p = probability * exp(a[k] + b[k] + c[k] - value)
        to_a[k] += p
        to_b[k] += p
        to_c[k] = min(p, 1.0)
    return min(probability * exp(nearest - value), 1.0)


@helper
def sum_over_sibling_trees(scores, siblings, n, single_root, marginals, of_siblings):
    """log sum over trees of exp(score), and the probabilities marginals[m - 1, h] of arcs, of_siblings[m - 1, h, r]."""
    marginals[:n, : n + 1] = 0.0
    of_siblings[:] = 0.0
    incomplete, complete, by_end, between = fill_sibling_spans(scores, siblings, n, single_root, True)
    log_z = complete[0, n]
    if n == 0 or log_z == -np.inf:
        return log_z
    N = n + 1
    of_incomplete, of_complete, of_end = np.zeros((N, N)), np.zeros((N, N)), np.zeros((N, N))  # probabilities
    of_between = np.zeros((N, N))
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
            p = of_between[s, t] + of_between[t, s]
            if s > 0 and p > 0.0:
                here, there = slice(s, t), slice(s + 1, t + 1)
                share(complete[s, here], complete[t, there], between[s, t], p, of_complete[s, here], of_complete[t, there])
            p = of_incomplete[s, t]
            if p > 0.0:
                marginals[t - 1, s] = min(p, 1.0)
                here = slice(s + 1, s + 1 if s == 0 and single_root else t)
                nearest, value = siblings[t - 1, s, 0] + complete[t, s + 1], incomplete[s, t] - scores[t - 1, s]
                own = share_siblings(
                    nearest, incomplete[s, here], between[t, here], siblings[t - 1, s, here], value, p,
                    of_incomplete[s, here], of_between[t, here], of_siblings[t - 1, s, here],
                )  # fmt: skip
                of_siblings[t - 1, s, 0] = own
                of_complete[t, s + 1] += own
            p = of_incomplete[t, s]
            if s > 0 and p > 0.0:
                marginals[s - 1, t] = min(p, 1.0)
                here = slice(s + 1, t)
                nearest, value = siblings[s - 1, t, 0] + complete[s, t - 1], incomplete[t, s] - scores[s - 1, t]
                own = share_siblings(
                    nearest, incomplete[t, here], between[s, here], siblings[s - 1, t, here], value, p,
                    of_incomplete[t, here], of_between[s, here], of_siblings[s - 1, t, here],
                )  # fmt: skip
                of_siblings[s - 1, t, 0] = own
                of_complete[s, t - 1] += own
    return log_z


# ---------------------------------------------------------------------------------------------------------------------
# Kernels
# ---------------------------------------------------------------------------------------------------------------------


@kernels.n_examples.implements(SiblingTreeProblem)
def n_examples(problem):
    return problem.starts.size - 1


@kernels.length.implements(SiblingTreeProblem)
def length(problem, i):
    return problem.starts[i + 1] - problem.starts[i]


@helper
def n_arcs(problem, i):
    """Parts of sentence i that are arcs with labels."""
    n = length(problem, i)
    return n * (n + 1) * problem.n_labels


@kernels.n_parts.implements(SiblingTreeProblem)
def n_parts(problem, i):
    n = length(problem, i)
    return n_arcs(problem, i) + n * (n + 1) * (n + 1)


@helper
def sibling_of(problem, y, m):
    """The number of the part sibling(h, r, m) of tree y, without that of the first one."""
    n, h = len(y), y[m - 1] // problem.n_labels
    step, r = (1 if h > m else -1), 0
    for k in range(m + step, h, step):
        if y[k - 1] // problem.n_labels == h:
            r = k
            break
    return ((m - 1) * (n + 1) + h) * (n + 1) + r


@kernels.value_of.implements(SiblingTreeProblem)
def value_of(problem, i, theta, y):
    n, total = len(y), 0.0
    for m in range(n):
        total += theta[m * (n + 1) * problem.n_labels + y[m]] + theta[n_arcs(problem, i) + sibling_of(problem, y, m + 1)]
    return total


@kernels.indicate.implements(SiblingTreeProblem)
def indicate(problem, i, y, c, parts):
    n = len(y)
    for m in range(n):
        parts[m * (n + 1) * problem.n_labels + y[m]] += c
        parts[n_arcs(problem, i) + sibling_of(problem, y, m + 1)] += c


@helper
def tables(problem, i, parts):
    """The parts of siblings as [m - 1, h, r]."""
    n = length(problem, i)
    return parts[n_arcs(problem, i) : n_parts(problem, i)].reshape(n, n + 1, n + 1)


@kernels.best.implements(SiblingTreeProblem)
def best(problem, i, theta, y):
    L, n = problem.n_labels, length(problem, i)
    scores, labels = np.empty((n, n + 1)), np.zeros((n if L > 1 else 0, n + 1), np.int32)
    best_of_labels(theta, n, L, scores, labels)
    value = best_sibling_tree(scores, tables(problem, i, theta), n, problem.single_root, y)
    if value > -np.inf and L > 1:
        for m in range(n):
            y[m] = y[m] * L + labels[m, y[m]]
    return value


@kernels.expected.implements(SiblingTreeProblem)
def expected(problem, i, theta, parts):
    L, n = problem.n_labels, length(problem, i)
    scores, marginals = np.empty((n, n + 1)), np.empty((n, n + 1))
    sums_of_labels(theta, n, L, scores)
    of_siblings = tables(problem, i, parts)
    log_z = sum_over_sibling_trees(scores, tables(problem, i, theta), n, problem.single_root, marginals, of_siblings)
    share_among_labels(theta, scores, marginals, n, L, log_z > -np.inf, parts)
    return log_z


@kernels.kbest.implements(SiblingTreeProblem)
def kbest(problem, i, theta, ys, values):
    return kbest_by_partition(problem, i, theta, ys, values)


@kernels.hold.implements(SiblingTreeProblem)
def hold(problem, i, theta, t, code, far):
    size = (length(problem, i) + 1) * problem.n_labels
    value = theta[t * size + code]
    fill(theta[t * size : (t + 1) * size], -np.inf)
    theta[t * size + code] = value


@kernels.forbid.implements(SiblingTreeProblem)
def forbid(problem, i, theta, t, code, far):
    theta[t * (length(problem, i) + 1) * problem.n_labels + code] = -np.inf


@kernels.outputs.implements(SiblingTreeProblem)
def outputs(problem, i):
    L, n = problem.n_labels, int(length(problem, i))
    for heads in itertools.product(range(n + 1), repeat=n):
        if any(h == m + 1 for m, h in enumerate(heads)) or cycle(np.array(heads, int)) or not is_projective(heads):
            continue
        if n and problem.single_root and heads.count(0) != 1:
            continue
        for labels in itertools.product(range(L), repeat=n):
            yield np.array([h * L + label for h, label in zip(heads, labels, strict=True)], np.int32)
