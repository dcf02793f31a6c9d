"""Sums over all segmentations, and marginals (see `kernels` for parts), in logarithms: scores of any size are welcome.

Backwards, all that may follow is summed up:

    after[e, k]  = log sum_k' exp( A[k, k'] + from[e, k'] ),    after[T, k] = stop[k]
    from[a, k]   = log sum_d  exp( score of the segment (a, a + d, k) + after[a + d, k] )

The terms of these sums, divided by them, are probabilities of what comes next given what came before. So the way forwards is
free of exponentials: mass moves from the beginning through the sequence, segment by segment.
"""

from __future__ import annotations

import numpy as np

from partwise import kernels
from partwise.engine.accumulator import row
from partwise.engine.compilation import helper
from partwise.engine.numerics import exp, fill, larger
from partwise.structures.semi_markov.best import length_scores, segments_from
from partwise.structures.semi_markov.kernels import CLASSES, SegmentProblem, length_class, longest, width


@helper
def log_sums(terms, n, K, out):
    """out[k] = log sum_{j < n} exp terms[j, k], and terms[j, k] becomes its share of the sum; zero where there is nothing."""
    total = np.zeros(K)
    fill(out, -np.inf)
    for j in range(n):
        values = terms[j]
        for k in range(K):
            out[k] = larger(out[k], values[k])
    for j in range(n):
        values = terms[j]
        for k in range(K):
            share = exp(values[k] - out[k]) if out[k] > -np.inf else 0.0
            values[k] = share
            total[k] += share
    for k in range(K):
        if total[k] > 0.0:
            out[k] += np.log(total[k])
            total[k] = 1.0 / total[k]
    for j in range(n):
        values = terms[j]
        for k in range(K):
            values[k] *= total[k]


@helper
def log_sum(scores):
    """log sum_k exp scores[k], and scores[k] becomes its share."""
    high, total = -np.inf, 0.0
    for k in range(len(scores)):
        high = larger(high, scores[k])
    for k in range(len(scores)):
        scores[k] = exp(scores[k] - high) if high > -np.inf else 0.0
        total += scores[k]
    for k in range(len(scores)):
        scores[k] = scores[k] / total if total > 0.0 else 0.0
    return high + np.log(total) if total > 0.0 else high


@kernels.expected.implements(SegmentProblem)
def expected(problem, i, theta, parts):
    """O(T D K + T K^2) time and memory."""
    K, W, first = problem.n_labels, width(problem), problem.starts[i]
    T = problem.starts[i + 1] - first
    parts[: kernels.n_parts(problem, i)] = 0.0
    if T == 0:
        return 0.0
    tied, D = theta[T * W :], longest(problem, T)
    lengths, table = length_scores(problem, tied, D), np.empty((T, D + 1, K))
    after, sums, moves = np.empty((T + 1, K)), np.empty(K), np.empty((T, K, K))  # moves[e, k, k']: P(k' next | k ended at e)
    for k in range(K):
        after[T, k] = tied[(K + 1) * K + k]
    for a in range(T - 1, -1, -1):
        n, own = segments_from(problem, i, theta, a, lengths, table[a]), table[a]
        for d in range(1, n + 1):
            terms, later = own[d], after[a + d]
            for k in range(K):
                terms[k] += later[k]
        log_sums(own[1:], n, K, sums)
        for p in range(K if a > 0 else 0):
            out, scores = moves[a, p], row(tied, p, K)
            for k in range(K):
                out[k] = scores[k] + sums[k]
            after[a, p] = log_sum(out)
    for k in range(K):
        sums[k] += tied[K * K + k]
    log_z = log_sum(sums)
    if log_z == -np.inf:
        return log_z
    counts, mass, tail = parts[T * W :], np.zeros((T + 1, K)), np.empty(K)  # mass[e, k]: P(a segment of label k ends at e)
    spans = counts[(K + 2 + CLASSES) * K :]
    for a in range(T):
        if a == 0:
            begins = sums
            for k in range(K):
                counts[K * K + k] = begins[k]
        else:
            begins = np.zeros(K)
            for p in range(K):
                given, shares, pairs = mass[a, p], moves[a, p], row(counts, p, K)
                if given > 0.0:
                    for k in range(K):
                        begins[k] += given * shares[k]
                        pairs[k] += given * shares[k]
        least, span = problem.span_ptr[first + a], problem.span_ptr[first + a + 1] - 1  # lengths go down below
        while span >= least and problem.span_length[span] > D:
            span -= 1
        tail[:] = 0.0
        for d in range(min(D, T - a), 0, -1):
            shares, ended, node = table[a, d], mass[a + d], row(parts, a + d - 1, W)
            of_class = row(counts, K + 2 + length_class(d), K)
            for k in range(K):
                p = begins[k] * shares[k]
                tail[k] += p
                ended[k] += p
                of_class[k] += p
                node[k if d > 1 else K + k] += tail[k]
                shares[k] = p
            if problem.use_ends:
                for k in range(K):
                    node[2 * K + k] += shares[k]
            if span >= least and problem.span_length[span] == d:
                out = row(spans, span - problem.span_ptr[first], K)
                for k in range(K):
                    out[k] = shares[k]
                span -= 1
    for k in range(K):
        counts[(K + 1) * K + k] = mass[T, k]
    return log_z
