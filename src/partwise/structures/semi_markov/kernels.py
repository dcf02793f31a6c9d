"""Segments (semi-Markov chains): an output cuts a sequence into pieces and labels them (see `problem` for its codes).

    s(y) = sum over segments (a, e, k) of   A[k', k] + x_a . B[:, k] + sum_{a < t <= e} x_t . I[:, k] + x_e . E[:, k]
                                          + length[e - a + 1, k] + z_{a, e} . S[:, k],        + stop[k] of the last one

with k' the label of the segment before (or a begin symbol), x the features of tokens and z those of whole spans: hits in a
dictionary, say. The first two of the token weights are those of a chain over IOB2 labels; the rest is what a chain cannot see.
Lengths fall into a few classes (`length_class`). Spans without features cost nothing.

Parts: (token, inside / begin / end, label), in rows of W = 3 K or, without ends, 2 K; then tied (label before, label), stop
labels and (length class, label), and last (span, label) for the spans that have features, in rows of K. Weights lie in rows of
W: features of tokens, of spans, transitions, stop, lengths; all but the first use the K places of "begin" only.

Cost of an oracle: O(T D K + T K^2) time with D the longest segment: the best label before is found once per boundary, not once
per segment.

References
----------
S. Sarawagi, W. W. Cohen (2004). Semi-Markov conditional random fields for information extraction. NIPS.
"""

from __future__ import annotations

import numpy as np

from partwise import kernels
from partwise.engine.accumulator import row
from partwise.engine.compilation import helper
from partwise.engine.numerics import fill, padded_width
from partwise.features.rows import add_label, add_labels, add_row, emit
from partwise.structures.semi_markov.problem import PartialSegmentProblem, SegmentProblem

CLASSES = 10  # of lengths: 1, 2, 3, 4, 5, 6, 7-8, 9-12, 13-20, more


@helper
def length_class(d):
    """Which class a length falls into."""
    if d <= 6:
        return d - 1
    if d <= 8:
        return 6
    if d <= 12:
        return 7
    return 8 if d <= 20 else 9


# ---------------------------------------------------------------------------------------------------------------------
# Sizes
# ---------------------------------------------------------------------------------------------------------------------


@kernels.width.implements(SegmentProblem)
def width(problem):
    return (3 if problem.use_ends else 2) * problem.n_labels


@kernels.n_examples.implements(SegmentProblem)
def n_examples(problem):
    return problem.starts.size - 1


@kernels.n_weights.implements(SegmentProblem)
def n_weights(problem):
    return (problem.span_rows.n_features + problem.n_labels + 2 + CLASSES) * width(problem)


@helper
def n_spans(problem, i):
    """Spans of example i that have features."""
    return problem.span_ptr[problem.starts[i + 1]] - problem.span_ptr[problem.starts[i]]


@kernels.n_parts.implements(SegmentProblem)
def n_parts(problem, i):
    T, K = problem.starts[i + 1] - problem.starts[i], problem.n_labels
    return T * width(problem) + (K + 2 + CLASSES + n_spans(problem, i)) * K


@kernels.length.implements(SegmentProblem)
def length(problem, i):
    return problem.starts[i + 1] - problem.starts[i]


@kernels.target.implements(SegmentProblem)
def target(problem, i):
    return problem.targets[problem.starts[i] : problem.starts[i + 1]]


@helper
def longest(problem, T):
    """D, the longest segment that a sequence of T tokens may have."""
    most = 0
    for k in range(problem.n_labels):
        most = max(most, problem.limits[k])
    return min(most, T)


# ---------------------------------------------------------------------------------------------------------------------
# Scores and costs
# ---------------------------------------------------------------------------------------------------------------------


@kernels.score.implements(SegmentProblem)
def score(problem, i, w, theta):
    K, W, first = problem.n_labels, width(problem), problem.starts[i]
    T = problem.starts[i + 1] - first
    rows = problem.rows
    whole = min(padded_width(W, theta.itemsize), theta.size - (T - 1) * W)  # what spills over is overwritten below
    for t in range(T):
        out = theta[t * W : t * W + whole]
        fill(out, 0.0)
        emit(rows, first + t, w, W, out)
    if problem.allowed.size:
        for t in range(T):
            fine = problem.sets[problem.allowed[first + t]]
            for c in range(2 * K):
                if not fine[c]:
                    theta[t * W + c] = -np.inf
    tied, block = theta[T * W :], problem.span_rows.n_features
    for r in range(K + 2 + CLASSES):
        weight, out = row(w, block + r, W), row(tied, r, K)
        for k in range(K):
            out[k] = weight[K + k]
    if problem.barrier.size:
        for r in range(K + 1):
            for k in range(K):
                tied[r * K + k] += problem.barrier[r, k]
        for k in range(K):
            tied[(K + 1) * K + k] += problem.barrier[k, K]
    if n_spans(problem, i) > 0:
        scores = np.empty(W, theta.dtype)
        for j in range(n_spans(problem, i)):
            fill(scores, 0.0)
            emit(problem.span_rows, problem.span_ptr[first] + j, w, W, scores)
            out = row(tied, K + 2 + CLASSES + j, K)
            for k in range(K):
                out[k] = scores[K + k]


@kernels.add_cost.implements(SegmentProblem)
def add_cost(problem, i, c, theta):
    K, W, first = problem.n_labels, width(problem), problem.starts[i]
    for t in range(problem.starts[i + 1] - first):
        costs, node = problem.costs[problem.gold[first + t]], row(theta, t, W)
        for code in range(2 * K):
            node[code] += c * costs[code]


@helper
def segment_end(y, a, K):
    """Where the segment that begins at a ends; one past its last token."""
    e = a + 1
    while e < len(y) and y[e] < K:
        e += 1
    return e


@helper
def span_of(problem, token, d):
    """The number of the span of d tokens that begins at a token (of all sequences), or -1 if it has no features."""
    for j in range(problem.span_ptr[token], problem.span_ptr[token + 1]):
        if problem.span_length[j] == d:
            return j
    return -1


@kernels.value_of.implements(SegmentProblem)
def value_of(problem, i, theta, y):
    K, W, T, first = problem.n_labels, width(problem), len(y), problem.starts[i]
    if T == 0:
        return 0.0
    tied, total, a, before = theta[T * W :], 0.0, 0, np.int64(K)
    for t in range(T):
        total += theta[t * W + y[t]]
    while a < T:
        e, k = segment_end(y, a, K), np.int64(y[a]) - K
        total += tied[before * K + k] + tied[(K + 2 + length_class(e - a)) * K + k]
        if problem.use_ends:
            total += theta[(e - 1) * W + 2 * K + k]
        j = span_of(problem, first + a, e - a)
        if j >= 0:
            total += tied[(K + 2 + CLASSES + j - problem.span_ptr[first]) * K + k]
        if e - a > problem.limits[k]:
            total = -np.inf
        a, before = e, k
    return total + tied[(K + 1) * K + before]


@kernels.cost.implements(SegmentProblem)
def cost(problem, i, y):
    total = 0.0
    for t in range(len(y)):
        total += problem.costs[problem.gold[problem.starts[i] + t], y[t]]
    return total


@kernels.truth.implements(SegmentProblem)
def truth(problem, i, y):
    first = problem.starts[i]
    for t in range(len(y)):
        y[t] = problem.gold[first + t]


@kernels.agreement.implements(SegmentProblem)
def agreement(problem, i, parts, given):
    K, W, first = problem.n_labels, width(problem), problem.starts[i]
    for t in range(problem.starts[i + 1] - first):
        code = problem.gold[first + t]
        if code < 2 * K:
            given[t] = parts[t * W + code]
            continue
        given[t] = 0.0
        for c in range(2 * K):
            if problem.known[code - 2 * K, c]:
                given[t] += parts[t * W + c]


@kernels.is_labelled.implements(PartialSegmentProblem)
def is_labelled(problem, i):
    for t in range(problem.starts[i], problem.starts[i + 1]):
        if problem.gold[t] >= 2 * problem.n_labels:
            return False
    return True


@kernels.restrict.implements(PartialSegmentProblem)
def restrict(problem, i, theta):
    K, W, first = problem.n_labels, width(problem), problem.starts[i]
    for t in range(problem.starts[i + 1] - first):
        code, node = problem.gold[first + t], row(theta, t, W)
        for c in range(2 * K):
            fine = c == code if code < 2 * K else problem.known[code - 2 * K, c]
            if not fine:
                node[c] = -np.inf


@kernels.hold.implements(SegmentProblem)
def hold(problem, i, theta, t, code, far):
    node = row(theta, t, width(problem))
    for c in range(2 * problem.n_labels):
        if c != code:
            node[c] = -np.inf


@kernels.forbid.implements(SegmentProblem)
def forbid(problem, i, theta, t, code, far):
    row(theta, t, width(problem))[code] = -np.inf


@kernels.with_targets.implements(PartialSegmentProblem)
def with_targets(problem, targets):
    return SegmentProblem(*problem)._replace(targets=targets)


@kernels.outputs.implements(SegmentProblem)
def outputs(problem, i):
    T, K = int(problem.starts[i + 1] - problem.starts[i]), problem.n_labels

    def after(t):
        if t == T:
            yield []
            return
        for k in range(K):
            for d in range(1, min(int(problem.limits[k]), T - t) + 1):
                for rest in after(t + d):
                    yield [K + k, *[k] * (d - 1), *rest]

    for y in after(0):
        yield np.array(y, np.int32)


# ---------------------------------------------------------------------------------------------------------------------
# Features
# ---------------------------------------------------------------------------------------------------------------------


@kernels.indicate.implements(SegmentProblem)
def indicate(problem, i, y, c, parts):
    K, W, T, first = problem.n_labels, width(problem), len(y), problem.starts[i]
    tied, a, before = parts[T * W :], 0, np.int64(K)
    for t in range(T):
        parts[t * W + y[t]] += c
    while a < T:
        e, k = segment_end(y, a, K), np.int64(y[a]) - K
        tied[before * K + k] += c
        tied[(K + 2 + length_class(e - a)) * K + k] += c
        if problem.use_ends:
            parts[(e - 1) * W + 2 * K + k] += c
        j = span_of(problem, first + a, e - a)
        if j >= 0:
            tied[(K + 2 + CLASSES + j - problem.span_ptr[first]) * K + k] += c
        a, before = e, k
    if T:
        tied[(K + 1) * K + before] += c


@helper
def add_segments(problem, i, y, c, into):
    """into += c * (what segments have beside the codes of their tokens)."""
    K, W, T, first = problem.n_labels, width(problem), len(y), problem.starts[i]
    block, a, before = problem.span_rows.n_features, 0, np.int64(K)
    while a < T:
        e, k = segment_end(y, a, K), np.int64(y[a]) - K
        row(into, block + before, W)[K + k] += c
        row(into, block + K + 2 + length_class(e - a), W)[K + k] += c
        if problem.use_ends:
            add_label(problem.rows, first + e - 1, W, 2 * K + k, c, into)
        j = span_of(problem, first + a, e - a)
        if j >= 0:
            add_label(problem.span_rows, j, W, K + k, c, into)
        a, before = e, k
    if T:
        row(into, block + K + 1, W)[K + before] += c


@kernels.add_features.implements(SegmentProblem)
def add_features(problem, i, y, c, into):
    for t in range(len(y)):
        add_label(problem.rows, problem.starts[i] + t, width(problem), y[t], c, into)
    add_segments(problem, i, y, c, into)


@kernels.add_parts.implements(SegmentProblem)
def add_parts(problem, i, parts, c, into):
    K, W, first = problem.n_labels, width(problem), problem.starts[i]
    T = problem.starts[i + 1] - first
    if T == 0:
        return
    for t in range(T):
        add_row(problem.rows, first + t, W, row(parts, t, W), c, into)
    tied, block = parts[T * W :], problem.span_rows.n_features
    for r in range(K + 2 + CLASSES):
        p, out = row(tied, r, K), row(into, block + r, W)
        for k in range(K):
            out[K + k] += c * p[k]
    if n_spans(problem, i) > 0:
        whole = np.zeros(W)
        for j in range(n_spans(problem, i)):
            p = row(tied, K + 2 + CLASSES + j, K)
            for k in range(K):
                whole[K + k] = p[k]
            add_row(problem.span_rows, problem.span_ptr[first] + j, W, whole, c, into)


@kernels.difference.implements(SegmentProblem)
def difference(problem, i, t, y, c, into):
    first, differ = problem.starts[i], False
    for k in range(len(y)):
        if t[k] != y[k]:
            differ = True
            add_labels(problem.rows, first + k, width(problem), t[k], y[k], c, into)
    if differ:
        add_segments(problem, i, t, c, into)
        add_segments(problem, i, y, -c, into)
