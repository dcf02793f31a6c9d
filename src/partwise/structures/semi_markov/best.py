"""The best segmentation, and the k best (see `kernels` for parts).

    alpha[e, k]  = best score of a segmentation of the first e tokens whose last segment has label k
    arrive[a, k] = max_k' alpha[a, k'] + A[k', k]                                   (arrive[0, k] = A[begin, k])
    alpha[e, k]  = max_a arrive[a, k] + score of the segment (a, e, k)

The scores of the segments that begin at a grow by a token at a time, so each costs O(1).
"""

from __future__ import annotations

import numpy as np

from partwise import kernels
from partwise.engine.accumulator import row
from partwise.engine.compilation import helper
from partwise.engine.numerics import fill
from partwise.structures.common.ranked import insert
from partwise.structures.semi_markov.kernels import CLASSES, SegmentProblem, length_class, longest, width


@helper
def length_scores(problem, tied, D):
    """(D + 1, K) scores of a segment of d tokens with label k, -inf where that is longer than allowed."""
    K = problem.n_labels
    scores = np.empty((D + 1, K))
    for d in range(1, D + 1):
        of_class = row(tied, K + 2 + length_class(d), K)
        for k in range(K):
            scores[d, k] = of_class[k] if d <= problem.limits[k] else -np.inf
    return scores


@helper
def segments_from(problem, i, theta, a, lengths, table):
    """table[d, k] = score of the segment of d tokens from a on with label k, d = 1 .. D; returns the longest within the sequence.

    All but the transition into it. O(D K) and the spans that begin there.
    """
    K, W, first = problem.n_labels, width(problem), problem.starts[i]
    T = problem.starts[i + 1] - first
    D, inside, begin = min(len(lengths) - 1, T - a), np.empty(K), row(theta, a, W)
    span, last = problem.span_ptr[first + a], problem.span_ptr[first + a + 1]
    spans = theta[T * W + (K + 2 + CLASSES) * K :]
    for k in range(K):
        inside[k] = begin[K + k]
    for d in range(1, D + 1):
        out, node, by_length = table[d], row(theta, a + d - 1, W), lengths[d]
        if d > 1:
            for k in range(K):
                inside[k] += node[k]
        for k in range(K):
            out[k] = inside[k] + by_length[k]
        if problem.use_ends:
            for k in range(K):
                out[k] += node[2 * K + k]
        if span < last and problem.span_length[span] == d:
            more = row(spans, span - problem.span_ptr[first], K)
            for k in range(K):
                out[k] += more[k]
            span += 1
    return D


@kernels.best.implements(SegmentProblem)
def best(problem, i, theta, y):
    """Semi-Markov Viterbi: O(T D K + T K^2) time, O((T + D) K) memory."""
    K, W = problem.n_labels, width(problem)
    T = problem.starts[i + 1] - problem.starts[i]
    if T == 0:
        return 0.0
    tied, D = theta[T * W :], longest(problem, T)
    lengths, table = length_scores(problem, tied, D), np.empty((D + 1, K))
    alpha, size, before = np.full((T + 1, K), -np.inf), np.zeros((T + 1, K), np.int64), np.zeros((T, K), np.int64)
    arrive = np.empty(K)
    for a in range(T):
        if a == 0:
            for k in range(K):
                arrive[k] = tied[K * K + k]
        else:
            reachable, came = False, before[a]
            fill(arrive, -np.inf)
            for p in range(K):
                value, moves = alpha[a, p], row(tied, p, K)
                if value > -np.inf:
                    reachable = True
                    for k in range(K):
                        if value + moves[k] > arrive[k]:
                            arrive[k], came[k] = value + moves[k], p
            if not reachable:
                continue
        for d in range(1, segments_from(problem, i, theta, a, lengths, table) + 1):
            scores, out, lasts = table[d], alpha[a + d], size[a + d]
            for k in range(K):
                value = arrive[k] + scores[k]
                if value > out[k]:
                    out[k], lasts[k] = value, d
    stop, value, k = row(tied, K + 1, K), -np.inf, 0
    for c in range(K):
        if alpha[T, c] + stop[c] > value:
            value, k = alpha[T, c] + stop[c], c
    if value == -np.inf:
        for t in range(T):
            y[t] = K
        return value
    e = T
    while e > 0:
        a = e - size[e, k]
        for t in range(a + 1, e):
            y[t] = k
        y[a] = K + k
        e, k = a, before[a, k] if a > 0 else 0
    return value


@kernels.kbest.implements(SegmentProblem)
def kbest(problem, i, theta, ys, values):
    """Every (end, label) keeps its k best segmentations. O(T (D + K) K k^2) time at worst, O(T K k) memory."""
    K, W, R = problem.n_labels, width(problem), len(values)
    T = problem.starts[i + 1] - problem.starts[i]
    if T == 0:
        values[0] = 0.0
        return 1
    tied, D = theta[T * W :], longest(problem, T)
    lengths, table = length_scores(problem, tied, D), np.empty((D + 1, K))
    alpha, back = np.full((T + 1, K, R), -np.inf), np.zeros((T + 1, K, R), np.int64)  # length * R + rank among arrivals
    arrive, origin = np.full((T, K, R), -np.inf), np.zeros((T, K, R), np.int64)  # label before * R + rank
    for a in range(T):
        for k in range(K):
            if a == 0:
                arrive[0, k, 0] = tied[K * K + k]
                continue
            for p in range(K):
                for rank in range(R):
                    if alpha[a, p, rank] == -np.inf:
                        break
                    insert(alpha[a, p, rank] + tied[p * K + k], p * R + rank, arrive[a, k], origin[a, k])
        for d in range(1, segments_from(problem, i, theta, a, lengths, table) + 1):
            for k in range(K):
                for rank in range(R):
                    if arrive[a, k, rank] == -np.inf:
                        break
                    insert(arrive[a, k, rank] + table[d, k], d * R + rank, alpha[a + d, k], back[a + d, k])
    final, where = np.full(R, -np.inf), np.zeros(R, np.int64)
    for k in range(K):
        for rank in range(R):
            insert(alpha[T, k, rank] + tied[(K + 1) * K + k], k * R + rank, final, where)
    found = 0
    while found < R and final[found] > -np.inf:
        values[found] = final[found]
        e, at = T, where[found]
        while e > 0:
            k, rank = at // R, at % R
            d, rank = back[e, k, rank] // R, back[e, k, rank] % R
            e -= d
            for t in range(e, e + d):
                ys[found, t] = k
            ys[found, e] = K + k
            at = origin[e, k, rank]
        found += 1
    return found
