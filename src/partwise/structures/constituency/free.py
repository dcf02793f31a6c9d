"""Binary trees whose spans have scores, and no grammar: the best, the k best, sums, and trees drawn at random.

    s(y) = sum over the 2 n - 1 spans (i, j) of a tree of score(i, j, label),    in(i, j) = own(i, j) + (+)_k in(i, k) + in(k, j)

Labels of different spans have nothing to do with each other, so own(i, j) is the maximum, or log-sum, over the labels of a span,
and what is left is the algorithm of Cocke, Kasami and Younger without symbols. The chart is kept by the first word of spans and
by their end, so that loops over splits k read both children side by side.

Spans are numbered by their end and then by their first word, whatever the length of the sentence: span (i, j) of words i .. j - 1
has number j (j - 1) / 2 + i. An output is the 2 n - 1 spans of a tree in pre-order, each written as ``number * L + label``.

Costs: O(n^2 L + n^3) time and O(n^2) memory beside the scores; the k best: k^2 times as much time, k times as much memory.

References
----------
M. Stern, J. Andreas, D. Klein (2017). A minimal span-based neural constituency parser. ACL.
Y. Zhang, H. Zhou, Z. Li (2020). Fast and accurate neural CRF constituency parsing. IJCAI.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partwise import kernels
from partwise.engine.compilation import helper
from partwise.engine.numerics import exp, fill, larger


class SpanProblem(NamedTuple):
    """N sentences whose spans have any scores; there are no features."""

    starts: np.ndarray  #: (N + 1,) int64 first word of each sentence
    n_labels: int


@helper
def number_of(i, j):
    """Number of span (i, j)."""
    return j * (j - 1) // 2 + i


@kernels.n_examples.implements(SpanProblem)
def n_examples(problem):
    return problem.starts.size - 1


@helper
def n_words(problem, i):
    """Words of sentence i."""
    return problem.starts[i + 1] - problem.starts[i]


@kernels.n_parts.implements(SpanProblem)
def n_parts(problem, i):
    n = n_words(problem, i)
    return n * (n + 1) // 2 * problem.n_labels


@kernels.length.implements(SpanProblem)
def length(problem, i):
    return max(2 * n_words(problem, i) - 1, 0)


@kernels.value_of.implements(SpanProblem)
def value_of(problem, i, theta, y):
    total = 0.0
    for t in range(len(y)):
        total += theta[y[t]]
    return total


@kernels.indicate.implements(SpanProblem)
def indicate(problem, i, y, c, parts):
    for t in range(len(y)):
        parts[y[t]] += c


# ---------------------------------------------------------------------------------------------------------------------
# The best tree
# ---------------------------------------------------------------------------------------------------------------------


@helper
def best_labels(theta, spans, L, own, labels):
    """The best label of each span, and its score."""
    for span in range(spans):
        k = span * L
        for c in range(span * L + 1, (span + 1) * L):
            k = c if theta[c] > theta[k] else k
        own[span], labels[span] = theta[k], k - span * L


@helper
def best_inside(n, own, by_begin, by_end):
    """by_begin[i, j] = by_end[j, i] = the best score of a tree of span (i, j); own[span] is that of the span itself."""
    for j in range(1, n + 1):
        for i in range(j - 1, -1, -1):
            value, left, right = own[number_of(i, j)], by_begin[i], by_end[j]
            if j > i + 1:
                high = -np.inf
                for k in range(i + 1, j):
                    high = larger(high, left[k] + right[k])
                value += high
            by_begin[i, j], by_end[j, i] = value, value


@helper
def read_tree(n, L, labels, by_begin, by_end, y):
    """The spans of the best tree, in pre-order."""
    ends, top, t, i = np.empty(n + 1, np.int64), 1, 0, 0
    ends[0] = n  # of spans yet to be read: each begins where the one before it ended
    while top > 0:
        top -= 1
        j = ends[top]
        while True:
            span = number_of(i, j)
            y[t] = span * L + labels[span]
            t += 1
            if j == i + 1:
                break
            k, high = i + 1, by_begin[i, i + 1] + by_end[j, i + 1]
            for split in range(i + 2, j):
                value = by_begin[i, split] + by_end[j, split]
                if value > high:
                    k, high = split, value
            ends[top] = j
            top += 1
            j = k
        i = j


@kernels.best.implements(SpanProblem)
def best(problem, i, theta, y):
    n, L = n_words(problem, i), problem.n_labels
    if n == 0:
        return 0.0
    spans = n * (n + 1) // 2
    own, labels = np.empty(spans), np.empty(spans, np.int64)
    by_begin, by_end = np.empty((n, n + 1)), np.empty((n + 1, n))
    best_labels(theta, spans, L, own, labels)
    best_inside(n, own, by_begin, by_end)
    if by_begin[0, n] > -np.inf:
        read_tree(n, L, labels, by_begin, by_end, y)
    return by_begin[0, n]


# ---------------------------------------------------------------------------------------------------------------------
# The k best
# ---------------------------------------------------------------------------------------------------------------------


@helper
def insert(value, origin, values, origins):
    """Insert into a list sorted downwards, dropping its last; whether there was room for it."""
    j = len(values) - 1
    if not value > values[j]:
        return False
    while j > 0 and values[j - 1] < value:
        values[j], origins[j] = values[j - 1], origins[j - 1]
        j -= 1
    values[j], origins[j] = value, origin
    return True


@kernels.kbest.implements(SpanProblem)
def kbest(problem, i, theta, ys, values):
    """Every span keeps its K best trees: the K best of splits and ranks of both children, with the K best labels."""
    n, L, K = n_words(problem, i), problem.n_labels, len(values)
    if n == 0:
        values[0] = 0.0
        return 1
    spans = n * (n + 1) // 2
    chart, below, label = np.full((spans, K), -np.inf), np.zeros((spans, K), np.int64), np.zeros((spans, K), np.int64)
    splits, ways, names = np.empty(K), np.zeros(K, np.int64), np.zeros(K, np.int64)
    own, pairs = np.empty(K), np.zeros(K, np.int64)
    for b in range(1, n + 1):
        for a in range(b - 1, -1, -1):
            span = number_of(a, b)
            fill(own, -np.inf)
            for c in range(L):
                insert(theta[span * L + c], c, own, names)
            fill(splits, -np.inf)
            if b == a + 1:
                splits[0] = 0.0
            for k in range(a + 1, b):
                left, right = chart[number_of(a, k)], chart[number_of(k, b)]
                for r in range(K):
                    for s in range(K):
                        if not insert(left[r] + right[s], (k * K + r) * K + s, splits, ways):
                            break
            for r in range(K):
                for s in range(K):
                    if not insert(splits[r] + own[s], r * K + s, chart[span], pairs):
                        break
            for r in range(K):
                below[span, r], label[span, r] = ways[pairs[r] // K], names[pairs[r] % K]
    found, whole = 0, number_of(0, n)
    todo = np.empty((n + 1, 3), np.int64)
    while found < K and chart[whole, found] > -np.inf:
        values[found] = chart[whole, found]
        todo[0, 0], todo[0, 1], todo[0, 2] = 0, n, found
        top, t = 1, 0
        while top > 0:
            top -= 1
            a, b, rank = todo[top, 0], todo[top, 1], todo[top, 2]
            span = number_of(a, b)
            ys[found, t] = span * L + label[span, rank]
            t += 1
            if b > a + 1:
                way = below[span, rank]
                k = way // (K * K)
                todo[top, 0], todo[top, 1], todo[top, 2] = k, b, way % K
                todo[top + 1, 0], todo[top + 1, 1], todo[top + 1, 2] = a, k, way // K % K
                top += 2
        found += 1
    return found


# ---------------------------------------------------------------------------------------------------------------------
# Sums
# ---------------------------------------------------------------------------------------------------------------------


@helper
def sums_of_labels(theta, spans, L, own):
    """own[span] = log sum exp over its labels."""
    for span in range(spans):
        scores, high, total = theta[span * L : (span + 1) * L], -np.inf, 0.0
        for c in range(L):
            high = larger(high, np.float64(scores[c]))
        if high > -np.inf:
            for c in range(L):
                total += exp(scores[c] - high)
            high += np.log(total)
        own[span] = high


@helper
def sums_inside(n, own, by_begin, by_end):
    """by_begin[i, j] = by_end[j, i] = log of the sum over trees of span (i, j)."""
    for j in range(1, n + 1):
        for i in range(j - 1, -1, -1):
            value, left, right = own[number_of(i, j)], by_begin[i], by_end[j]
            if j > i + 1:
                high, total = -np.inf, 0.0
                for k in range(i + 1, j):
                    high = larger(high, left[k] + right[k])
                if high > -np.inf:
                    for k in range(i + 1, j):
                        total += exp(left[k] + right[k] - high)
                    high += np.log(total)
                value += high
            by_begin[i, j], by_end[j, i] = value, value


@helper
def share_outside(n, own, by_begin, by_end, probable):
    """probable[span] = the probability of a span, which its splits share as they contributed to it: no number overflows."""
    from_right, from_left = np.zeros((n, n + 1)), np.zeros((n + 1, n + 1))  # of first and of second children
    from_right[0, n] = 1.0
    for j in range(n, 0, -1):
        for i in range(j):
            p, span = from_right[i, j] + from_left[j, i], number_of(i, j)
            probable[span] = p
            if j > i + 1 and p > 0.0:
                left, right, high = by_begin[i], by_end[j], by_begin[i, j] - own[span]
                first, second = from_right[i], from_left[j]
                for k in range(i + 1, j):
                    share = p * exp(left[k] + right[k] - high)
                    first[k] += share
                    second[k] += share


@kernels.expected.implements(SpanProblem)
def expected(problem, i, theta, parts):
    n, L = n_words(problem, i), problem.n_labels
    if n == 0:
        return 0.0
    spans = n * (n + 1) // 2
    own, probable = np.empty(spans), np.zeros(spans)
    by_begin, by_end = np.empty((n, n + 1)), np.empty((n + 1, n))
    sums_of_labels(theta, spans, L, own)
    sums_inside(n, own, by_begin, by_end)
    log_z = by_begin[0, n]
    fill(parts[: spans * L], 0.0)
    if log_z == -np.inf:
        return log_z
    share_outside(n, own, by_begin, by_end, probable)
    for span in range(spans):
        if probable[span] > 0.0:
            for c in range(span * L, (span + 1) * L):
                parts[c] = probable[span] * exp(theta[c] - own[span])
    return log_z


@kernels.outputs.implements(SpanProblem)
def outputs(problem, i):
    n, L = int(n_words(problem, i)), problem.n_labels

    def below(a, b):
        """All trees of a span, as lists of codes."""
        for c in range(L):
            code = number_of(a, b) * L + c
            if b == a + 1:
                yield [code]
            for k in range(a + 1, b):
                for left in below(a, k):
                    for right in below(k, b):
                        yield [code, *left, *right]

    if n == 0:
        yield np.zeros(0, np.int32)
    else:
        for codes in below(0, n):
            yield np.array(codes, np.int32)
