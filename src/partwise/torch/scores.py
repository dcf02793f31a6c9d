"""Scores of a batch as tensors lay them out, and the compiled oracles over them.

A network gives the scores of parts in arrays of its own shape: emissions (tokens, labels), arcs (words, heads). A structure
wants them as one vector theta for each example (`partwise.kernels`). For every structure a record of arrays here says how one
becomes the other: `lay_out` writes theta, `lay_back` writes what the oracle has found for the parts into arrays of the record's
own shape. Everything else is the same for all structures: one loop for sums, one for the best output, one for the k best.

Nothing here knows torch; arrays are views of the tensors' own memory.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partwise import kernels
from partwise.engine.compilation import compiled_loop, kernel
from partwise.structures.semi_markov.kernels import CLASSES


class ChainScores(NamedTuple):
    """Scores of chains."""

    nodes: np.ndarray  #: (rows, L) emissions of all tokens
    begins: np.ndarray  #: (B,) int64 row of the first token of each sequence
    transitions: np.ndarray  #: (B or 1, L + 1, L) from label, or from the beginning (last row), to label
    stop: np.ndarray  #: (B or 1, L) of the last label


class StepwiseChainScores(NamedTuple):
    """Scores of chains whose transitions differ from token to token; what they all share is added."""

    nodes: np.ndarray
    begins: np.ndarray
    transitions: np.ndarray
    stop: np.ndarray
    steps: np.ndarray  #: (B, T - 1, L, L) into the second token, the third ...


class SegmentScores(NamedTuple):
    """Scores of segmentations; codes are those of `structures.semi_markov.problem`."""

    codes: np.ndarray  #: (B, T, 2 K) of each token going on with a label, or beginning a segment of it
    segments: np.ndarray  #: (B, T, D, K) of the segment that begins at a token, of d + 1 tokens, with each label
    transitions: np.ndarray  #: (B or 1, K + 1, K) from the label of the segment before, or from the beginning (last row)
    stop: np.ndarray  #: (B or 1, K) of the last label


class TreeScores(NamedTuple):
    """Scores of dependency trees."""

    arcs: np.ndarray  #: (B, n, n + 1, L) to each word, from the root or a word, with each label


class SiblingScores(NamedTuple):
    """Scores of projective trees with pairs of siblings."""

    arcs: np.ndarray
    siblings: np.ndarray  #: (B, n, n + 1, n + 1) of each word, below a head, behind its sibling, or nearest to the head (0)


class PairScores(NamedTuple):
    """Scores of alignments; kinds of gaps are those of `structures.alignment.problem`."""

    match: np.ndarray  #: (B, n, m)
    first: np.ndarray  #: (B, 4, n) places of the first sequence opposite gaps, by kind
    second: np.ndarray  #: (B, 4, m) the same of the second sequence


class BinaryTreeScores(NamedTuple):
    """Scores of spans, by the places between words where they begin and end."""

    spans: np.ndarray  #: (B, n + 1, n + 1, L)


class RuleScores(NamedTuple):
    """Scores of spans and of rules."""

    spans: np.ndarray
    rules: np.ndarray  #: (B or 1, S, L, L) of each of the first S labels with children of each label


class MatchScores(NamedTuple):
    """Scores of assignments."""

    match: np.ndarray  #: (B, n, m)


@kernel
def lay_out(scores, problem, i, theta):
    """theta = the part scores of example i."""


@kernel
def lay_back(scores, problem, i, parts):
    """Write one number for each part of example i where its score was; what is shared by examples has a place for each here."""


@lay_out.implements(ChainScores)
def lay_out_chain(scores, problem, i, theta):
    L, T, first = problem.n_labels, kernels.length(problem, i), scores.begins[i]
    k = i if scores.transitions.shape[0] > 1 else 0
    for t in range(T):
        for c in range(L):
            theta[t * L + c] = scores.nodes[first + t, c]
    for s in range(L + 1):
        for c in range(L):
            theta[(T + s) * L + c] = scores.transitions[k, s, c]
    k = i if scores.stop.shape[0] > 1 else 0
    for c in range(L):
        theta[(T + L + 1) * L + c] = scores.stop[k, c]


@lay_back.implements(ChainScores)
def lay_back_chain(scores, problem, i, parts):
    L, T, first = problem.n_labels, kernels.length(problem, i), scores.begins[i]
    for t in range(T):
        for c in range(L):
            scores.nodes[first + t, c] = parts[t * L + c]
    for s in range(L + 1):
        for c in range(L):
            scores.transitions[i, s, c] = parts[(T + s) * L + c]
    for c in range(L):
        scores.stop[i, c] = parts[(T + L + 1) * L + c]


@lay_out.implements(StepwiseChainScores)
def lay_out_steps(scores, problem, i, theta):
    lay_out_chain(scores, problem, i, theta)
    L, T = problem.n_labels, kernels.length(problem, i)
    k = (T + L + 2) * L
    for t in range(T - 1):
        for s in range(L):
            for c in range(L):
                theta[k] = scores.steps[i, t, s, c]
                k += 1


@lay_back.implements(StepwiseChainScores)
def lay_back_steps(scores, problem, i, parts):
    lay_back_chain(scores, problem, i, parts)
    L, T = problem.n_labels, kernels.length(problem, i)
    k = (T + L + 2) * L
    for t in range(T - 1):
        for s in range(L):
            for c in range(L):
                scores.steps[i, t, s, c] = parts[k]
                k += 1


@lay_out.implements(SegmentScores)
def lay_out_segments(scores, problem, i, theta):
    K, T, D = problem.n_labels, kernels.length(problem, i), scores.segments.shape[2]
    for t in range(T):
        for c in range(2 * K):
            theta[t * 2 * K + c] = scores.codes[i, t, c]
    tied, k = theta[T * 2 * K :], i if scores.transitions.shape[0] > 1 else 0
    tied[:] = 0.0  # classes of lengths are not used: segments have scores of their own
    for s in range(K + 1):
        for c in range(K):
            tied[s * K + c] = scores.transitions[k, s, c]
    k = i if scores.stop.shape[0] > 1 else 0
    for c in range(K):
        tied[(K + 1) * K + c] = scores.stop[k, c]
    j = K + 2 + CLASSES
    for t in range(T):
        for d in range(min(D, T - t)):
            for c in range(K):
                tied[j * K + c] = scores.segments[i, t, d, c]
            j += 1


@lay_back.implements(SegmentScores)
def lay_back_segments(scores, problem, i, parts):
    K, T, D = problem.n_labels, kernels.length(problem, i), scores.segments.shape[2]
    for t in range(T):
        for c in range(2 * K):
            scores.codes[i, t, c] = parts[t * 2 * K + c]
    tied = parts[T * 2 * K :]
    for s in range(K + 1):
        for c in range(K):
            scores.transitions[i, s, c] = tied[s * K + c]
    for c in range(K):
        scores.stop[i, c] = tied[(K + 1) * K + c]
    j = K + 2 + CLASSES
    for t in range(T):
        for d in range(min(D, T - t)):
            for c in range(K):
                scores.segments[i, t, d, c] = tied[j * K + c]
            j += 1


@lay_out.implements(TreeScores)
def lay_out_tree(scores, problem, i, theta):
    n, L = kernels.length(problem, i), problem.n_labels
    for m in range(n):
        for h in range(n + 1):
            for c in range(L):
                theta[(m * (n + 1) + h) * L + c] = scores.arcs[i, m, h, c] if h != m + 1 else -np.inf


@lay_back.implements(TreeScores)
def lay_back_tree(scores, problem, i, parts):
    n, L = kernels.length(problem, i), problem.n_labels
    for m in range(n):
        for h in range(n + 1):
            for c in range(L):
                scores.arcs[i, m, h, c] = parts[(m * (n + 1) + h) * L + c]


@lay_out.implements(SiblingScores)
def lay_out_siblings(scores, problem, i, theta):
    lay_out_tree(scores, problem, i, theta)
    n = kernels.length(problem, i)
    k = n * (n + 1) * problem.n_labels
    for m in range(n):
        for h in range(n + 1):
            for r in range(n + 1):
                theta[k] = scores.siblings[i, m, h, r]
                k += 1


@lay_back.implements(SiblingScores)
def lay_back_siblings(scores, problem, i, parts):
    lay_back_tree(scores, problem, i, parts)
    n = kernels.length(problem, i)
    k = n * (n + 1) * problem.n_labels
    for m in range(n):
        for h in range(n + 1):
            for r in range(n + 1):
                scores.siblings[i, m, h, r] = parts[k]
                k += 1


@lay_out.implements(PairScores)
def lay_out_alignment(scores, problem, i, theta):
    n, m = kernels.length(problem, i), problem.others[i + 1] - problem.others[i]
    for k in range(n):
        for j in range(m):
            theta[k * m + j] = scores.match[i, k, j]
    for kind in range(4):
        for k in range(n):
            theta[n * m + kind * n + k] = scores.first[i, kind, k]
        for j in range(m):
            theta[n * m + 4 * n + kind * m + j] = scores.second[i, kind, j]


@lay_back.implements(PairScores)
def lay_back_alignment(scores, problem, i, parts):
    n, m = kernels.length(problem, i), problem.others[i + 1] - problem.others[i]
    for k in range(n):
        for j in range(m):
            scores.match[i, k, j] = parts[k * m + j]
    for kind in range(4):
        for k in range(n):
            scores.first[i, kind, k] = parts[n * m + kind * n + k]
        for j in range(m):
            scores.second[i, kind, j] = parts[n * m + 4 * n + kind * m + j]


@lay_out.implements(BinaryTreeScores)
def lay_out_spans(scores, problem, i, theta):
    n, L, k = problem.starts[i + 1] - problem.starts[i], problem.n_labels, 0
    for j in range(1, n + 1):
        for a in range(j):
            for c in range(L):
                theta[k * L + c] = scores.spans[i, a, j, c]
            k += 1


@lay_back.implements(BinaryTreeScores)
def lay_back_spans(scores, problem, i, parts):
    n, L, k = problem.starts[i + 1] - problem.starts[i], problem.n_labels, 0
    for j in range(1, n + 1):
        for a in range(j):
            for c in range(L):
                scores.spans[i, a, j, c] = parts[k * L + c]
            k += 1


@lay_out.implements(RuleScores)
def lay_out_rules(scores, problem, i, theta):
    lay_out_spans(scores, problem, i, theta)
    n, L = problem.starts[i + 1] - problem.starts[i], problem.n_labels
    k, which = n * (n + 1) // 2 * L, i if scores.rules.shape[0] > 1 else 0
    for a in range(problem.n_parents):
        for b in range(L):
            for c in range(L):
                theta[k] = scores.rules[which, a, b, c]
                k += 1


@lay_back.implements(RuleScores)
def lay_back_rules(scores, problem, i, parts):
    lay_back_spans(scores, problem, i, parts)
    n, L = problem.starts[i + 1] - problem.starts[i], problem.n_labels
    k = n * (n + 1) // 2 * L
    for a in range(problem.n_parents):
        for b in range(L):
            for c in range(L):
                scores.rules[i, a, b, c] = parts[k]
                k += 1


@lay_out.implements(MatchScores)
def lay_out_assignment(scores, problem, i, theta):
    n, m = kernels.length(problem, i), problem.starts[i + 1] - problem.starts[i]
    for k in range(n):
        for j in range(m):
            theta[k * m + j] = scores.match[i, k, j]


@compiled_loop
def sums_of_scores(problem, scores, marginals, log_z, largest, first, last):
    """log_z[i] = log sum_y exp s(y), and the marginals of parts, for examples first .. last - 1 of a batch.

    `largest` is the number of parts of the largest example.
    """
    theta, parts = np.empty(largest, log_z.dtype), np.empty(largest)
    for i in range(first, last):
        n = kernels.n_parts(problem, i)
        lay_out(scores, problem, i, theta[:n])
        log_z[i] = kernels.expected(problem, i, theta[:n], parts[:n])
        if log_z[i] == -np.inf:  # nothing is possible: no output has a part
            parts[:n] = 0.0
        lay_back(marginals, problem, i, parts[:n])


@compiled_loop
def bests_of_scores(problem, scores, values, outputs, largest, first, last):
    """outputs[i] = the best output of example i, and its score into values[i]."""
    theta = np.empty(largest, values.dtype)
    for i in range(first, last):
        n = kernels.n_parts(problem, i)
        lay_out(scores, problem, i, theta[:n])
        values[i] = kernels.best(problem, i, theta[:n], outputs[i, : kernels.length(problem, i)])


@compiled_loop
def kbests_of_scores(problem, scores, values, outputs, largest, first, last):
    """outputs[i] = the k best outputs of example i, best first, and their scores into values[i]; -inf where there are fewer."""
    theta = np.empty(largest, values.dtype)
    best = np.empty(values.shape[1])
    for i in range(first, last):
        n, length = kernels.n_parts(problem, i), kernels.length(problem, i)
        lay_out(scores, problem, i, theta[:n])
        ys = np.zeros((values.shape[1], length), np.int32)
        found = kernels.kbest(problem, i, theta[:n], ys, best)
        for k in range(values.shape[1]):
            values[i, k] = best[k] if k < found else -np.inf
            for t in range(length if k < found else 0):
                outputs[i, k, t] = ys[k, t]
