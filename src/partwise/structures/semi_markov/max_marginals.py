"""Max-marginals: the score of the best segmentation that has a part (see `kernels` for parts), in the way of `sums`.

    after[e, k]  = max_k' A[k, k'] + from[e, k'],                                   after[T, k] = stop[k]
    from[a, k]   = max_d  score of the segment (a, a + d, k) + after[a + d, k]
    segment (a, e, k):  arrive[a, k] + its score + after[e, k],                     arrive as in `best`

What holds of a segment holds of the parts it is made of, if no other one that has them is better.
"""

from __future__ import annotations

import numpy as np

from partwise import kernels
from partwise.engine.accumulator import row
from partwise.engine.numerics import fill, larger
from partwise.structures.semi_markov.best import length_scores, segments_from
from partwise.structures.semi_markov.kernels import CLASSES, SegmentProblem, length_class, longest, width


@kernels.max_marginals.implements(SegmentProblem)
def max_marginals(problem, i, theta, parts):
    """O(T D K + T K^2) time, O(T D K) memory."""
    K, W, first = problem.n_labels, width(problem), problem.starts[i]
    T = problem.starts[i + 1] - first
    fill(parts[: kernels.n_parts(problem, i)], -np.inf)
    if T == 0:
        return 0.0
    tied, D = theta[T * W :], longest(problem, T)
    lengths, table = length_scores(problem, tied, D), np.empty((T, D + 1, K))
    after, onward = np.full((T + 1, K), -np.inf), np.full((T, K), -np.inf)
    for k in range(K):
        after[T, k] = tied[(K + 1) * K + k]
    for a in range(T - 1, -1, -1):
        for d in range(1, segments_from(problem, i, theta, a, lengths, table[a]) + 1):
            for k in range(K):
                onward[a, k] = larger(onward[a, k], table[a, d, k] + after[a + d, k])
        for p in range(K if a > 0 else 0):
            for k in range(K):
                after[a, p] = larger(after[a, p], tied[p * K + k] + onward[a, k])
    counts, alpha = parts[T * W :], np.full((T + 1, K), -np.inf)  # alpha[e, k]: of those up to e, the last of label k
    spans, arrive, longer = counts[(K + 2 + CLASSES) * K :], np.empty(K), np.empty(K)
    for a in range(T):
        fill(arrive, -np.inf)
        for p in range(K if a > 0 else 0):
            for k in range(K):
                here = alpha[a, p] + tied[p * K + k]
                arrive[k] = larger(arrive[k], here)
                counts[p * K + k] = larger(counts[p * K + k], here + onward[a, k])
        for k in range(K if a == 0 else 0):
            arrive[k] = tied[K * K + k]
            counts[K * K + k] = arrive[k] + onward[0, k]
        least, span = problem.span_ptr[first + a], problem.span_ptr[first + a + 1] - 1  # lengths go down below
        while span >= least and problem.span_length[span] > D:
            span -= 1
        fill(longer, -np.inf)
        for d in range(min(D, T - a), 0, -1):
            own, node = table[a, d], row(parts, a + d - 1, W)
            of_class = row(counts, K + 2 + length_class(d), K)
            for k in range(K):
                alpha[a + d, k] = larger(alpha[a + d, k], arrive[k] + own[k])
                own[k] += arrive[k] + after[a + d, k]
                longer[k] = larger(longer[k], own[k])
                of_class[k] = larger(of_class[k], own[k])
                code = k if d > 1 else K + k
                node[code] = larger(node[code], longer[k])
                if problem.use_ends:
                    node[2 * K + k] = larger(node[2 * K + k], own[k])
            if span >= least and problem.span_length[span] == d:
                out = row(spans, span - problem.span_ptr[first], K)
                for k in range(K):
                    out[k] = own[k]
                span -= 1
    value = -np.inf
    for k in range(K):
        counts[(K + 1) * K + k] = alpha[T, k] + tied[(K + 1) * K + k]
        value = larger(value, counts[(K + 1) * K + k])
    return value
