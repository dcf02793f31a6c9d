"""Transitions that look at the input: a chain whose pairs of labels have features, too (CRF++'s ``B%x[..]``). Order 1.

    s(y) = (that of a chain) + sum_{t > 1} sum_{f in z_t} P_f[y_{t-1}, y_t]

with z_t the features of the transition into token t. A feature has weights for some pairs only, those that were observed with it
in the training data (or for all): ``pair_ptr`` and ``pair_codes`` list them, so memory is that of what was observed.

Parts: those of the chain, then (t, label before, label) for all tokens but the first. Weights: those of the chain, then those of
pairs, in rows of L. Cost of an oracle: O(T L^2) time and memory; sums are formed in log-space.
"""

from __future__ import annotations

import numpy as np

from partwise import kernels
from partwise.engine.accumulator import row
from partwise.engine.compilation import helper
from partwise.engine.memory import require_memory
from partwise.engine.numerics import fill, larger
from partwise.features.rows import Binary
from partwise.structures.chain import kernels as chain
from partwise.structures.chain.problem import TYPES, ChainProblem, PairChainProblem, PartialPairChainProblem
from partwise.structures.common.hidden import clear_unused
from partwise.structures.common.ranked import insert
from partwise.structures.common.semirings import LARGEST, LOG_SUM, make_semiring, plus

score_chain, value_of_chain, n_chain_weights = chain.score, chain.value_of, chain.n_weights
indicate_chain, add_chain_features, add_chain_parts = chain.indicate, chain.add_features, chain.add_parts


def with_pairs(problem: ChainProblem, rows: Binary, ptr: np.ndarray, codes: np.ndarray) -> PairChainProblem:
    """The chain with features of pairs; see `observed_pairs`."""
    if problem.order != 1:
        raise ValueError(f"Features of label pairs are for chains of order 1. This one has order {problem.order}.")
    return TYPES[True, kernels.is_partial(problem)](*problem, rows, ptr, codes)


def observed_pairs(problem: ChainProblem, rows: Binary) -> tuple[np.ndarray, np.ndarray]:
    """The pairs of true labels that each feature was seen with: offsets, and codes. All pairs, where labels are not known."""
    L, n = problem.n_labels, rows.n_features
    if kernels.is_partial(problem):
        return all_pairs(problem, rows)
    inner = np.ones(len(problem.gold), bool)
    inner[problem.starts[:-1][np.diff(problem.starts) > 0]] = False
    before = np.concatenate([[0], problem.gold[:-1]])[: len(problem.gold)].astype(np.int64)
    pair = np.repeat(before * L + problem.gold, np.diff(rows.ptr))
    seen = np.repeat(inner, np.diff(rows.ptr))
    keys = np.unique(rows.index[seen].astype(np.int64) * L * L + pair[seen])
    return np.searchsorted(keys, np.arange(n + 1, dtype=np.int64) * L * L).astype(np.int64), (keys % (L * L)).astype(np.int32)


def all_pairs(problem: ChainProblem, rows: Binary) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of labels for each feature, in the way of `observed_pairs`: L^2 weights each, also for what was never seen."""
    L, n = problem.n_labels, rows.n_features
    require_memory(
        16.0 * n * L * L, None, f"{n:,} features with weights for all {L * L:,} pairs of labels", "Take those observed"
    )
    return np.arange(n + 1, dtype=np.int64) * L * L, np.tile(np.arange(L * L, dtype=np.int32), n)


@clear_unused.register
def _(problem: PairChainProblem, w: np.ndarray) -> None:
    """What the chain has no weights for, and the places left over in the last row of pairs."""
    first = n_chain_weights(problem)
    clear_unused(ChainProblem(**{name: getattr(problem, name) for name in ChainProblem._fields}), w[:first])
    w[first + problem.pair_codes.size :] = 0.0


@helper
def n_chain_parts(problem, T):
    """Parts of the chain alone: where those of pairs begin."""
    return (T + problem.n_labels + 2) * problem.n_labels


@kernels.n_weights.implements(PairChainProblem)
def n_weights(problem):
    L = problem.n_labels
    return n_chain_weights(problem) + (problem.pair_codes.size + L - 1) // L * L


@kernels.n_parts.implements(PairChainProblem)
def n_parts(problem, i):
    L, T = problem.n_labels, problem.starts[i + 1] - problem.starts[i]
    return n_chain_parts(problem, T) + max(T - 1, 0) * L * L


@kernels.with_targets.implements(PartialPairChainProblem)
def with_targets(problem, targets):
    return PairChainProblem(*problem)._replace(targets=targets)


@kernels.score.implements(PairChainProblem)
def score(problem, i, w, theta):
    L, first = problem.n_labels, problem.starts[i]
    T = problem.starts[i + 1] - first
    score_chain(problem, i, w, theta)
    base, rows, block = n_chain_parts(problem, T), problem.pair_rows, n_chain_weights(problem) // L
    for t in range(1, T):
        out = theta[base + (t - 1) * L * L : base + t * L * L]
        for k in range(L * L):
            out[k] = 0.0
        for k in range(rows.ptr[first + t], rows.ptr[first + t + 1]):
            f = rows.index[k]
            for j in range(problem.pair_ptr[f], problem.pair_ptr[f + 1]):
                out[problem.pair_codes[j]] += row(w, block + j // L, L)[j % L]


@kernels.value_of.implements(PairChainProblem)
def value_of(problem, i, theta, y):
    L, T = problem.n_labels, len(y)
    total, base = value_of_chain(problem, i, theta, y), n_chain_parts(problem, T)
    for t in range(1, T):
        total += theta[base + ((t - 1) * L + y[t - 1]) * L + y[t]]
    return total


@kernels.indicate.implements(PairChainProblem)
def indicate(problem, i, y, c, parts):
    L, T = problem.n_labels, len(y)
    indicate_chain(problem, i, y, c, parts)
    for t in range(1, T):
        parts[n_chain_parts(problem, T) + ((t - 1) * L + y[t - 1]) * L + y[t]] += c


@kernels.add_features.implements(PairChainProblem)
def add_features(problem, i, y, c, into):
    L, first, rows = problem.n_labels, problem.starts[i], problem.pair_rows
    add_chain_features(problem, i, y, c, into)
    block = n_chain_weights(problem) // L
    for t in range(1, len(y)):
        code = y[t - 1] * L + y[t]
        for k in range(rows.ptr[first + t], rows.ptr[first + t + 1]):
            f = rows.index[k]
            for j in range(problem.pair_ptr[f], problem.pair_ptr[f + 1]):
                if problem.pair_codes[j] == code:
                    row(into, block + j // L, L)[j % L] += c


@kernels.add_parts.implements(PairChainProblem)
def add_parts(problem, i, parts, c, into):
    L, first, rows = problem.n_labels, problem.starts[i], problem.pair_rows
    T = problem.starts[i + 1] - first
    add_chain_parts(problem, i, parts, c, into)
    base, block = n_chain_parts(problem, T), n_chain_weights(problem) // L
    for t in range(1, T):
        own = parts[base + (t - 1) * L * L : base + t * L * L]
        for k in range(rows.ptr[first + t], rows.ptr[first + t + 1]):
            f = rows.index[k]
            for j in range(problem.pair_ptr[f], problem.pair_ptr[f + 1]):
                row(into, block + j // L, L)[j % L] += c * own[problem.pair_codes[j]]


@helper
def step_scores(theta, L, T, t, out):
    """out[a, c] = score of label c at t after label a."""
    base = (T + L + 2) * L + (t - 1) * L * L
    for a in range(L):
        move, own, into = row(theta, T + a, L), theta[base + a * L : base + (a + 1) * L], out[a]
        node = row(theta, t, L)
        for c in range(L):
            into[c] = move[c] + own[c] + node[c]


@kernels.best.implements(PairChainProblem)
def best(problem, i, theta, y):
    """Viterbi: O(T L^2) time, O(T L) memory."""
    L, T = problem.n_labels, problem.starts[i + 1] - problem.starts[i]
    if T == 0:
        return 0.0
    alpha, back, step = np.full((T, L), -np.inf), np.zeros((T, L), np.int64), np.empty((L, L))
    for c in range(L):
        alpha[0, c] = theta[c] + theta[(T + L) * L + c]
    for t in range(1, T):
        step_scores(theta, L, T, t, step)
        for a in range(L):
            for c in range(L):
                if alpha[t - 1, a] + step[a, c] > alpha[t, c]:
                    alpha[t, c], back[t, c] = alpha[t - 1, a] + step[a, c], a
    value, label = -np.inf, 0
    for c in range(L):
        if alpha[T - 1, c] + theta[(T + L + 1) * L + c] > value:
            value, label = alpha[T - 1, c] + theta[(T + L + 1) * L + c], c
    for t in range(T - 1, -1, -1):
        y[t] = label
        label = back[t, label]
    return value


@kernels.kbest.implements(PairChainProblem)
def kbest(problem, i, theta, ys, values):
    """Every label keeps its k best prefixes. O(T L^2 k^2) time at worst, O(T L k) memory."""
    L, T, K = problem.n_labels, problem.starts[i + 1] - problem.starts[i], len(values)
    if T == 0:
        values[0] = 0.0
        return 1
    alpha, back, step = np.full((T, L, K), -np.inf), np.zeros((T, L, K), np.int64), np.empty((L, L))
    for c in range(L):
        alpha[0, c, 0] = theta[c] + theta[(T + L) * L + c]
    for t in range(1, T):
        step_scores(theta, L, T, t, step)
        for a in range(L):
            for rank in range(K):
                if alpha[t - 1, a, rank] == -np.inf:
                    break
                for c in range(L):
                    insert(alpha[t - 1, a, rank] + step[a, c], a * K + rank, alpha[t, c], back[t, c])
    final, where = np.full(K, -np.inf), np.zeros(K, np.int64)
    for c in range(L):
        for rank in range(K):
            insert(alpha[T - 1, c, rank] + theta[(T + L + 1) * L + c], c * K + rank, final, where)
    found = 0
    while found < K and final[found] > -np.inf:
        values[found], at = final[found], where[found]
        for t in range(T - 1, -1, -1):
            ys[found, t] = at // K
            at = back[t, at // K, at % K]
        found += 1
    return found


@helper
def forward_backward(s, L, T, theta):
    """Forward and backward scores, both (T, L), and that of all outputs, in a semiring."""
    alpha, beta, step, total = np.full((T, L), -np.inf), np.full((T, L), -np.inf), np.empty((L, L)), -np.inf
    for c in range(L):
        alpha[0, c] = theta[c] + theta[(T + L) * L + c]
        beta[T - 1, c] = theta[(T + L + 1) * L + c]
    for t in range(1, T):
        step_scores(theta, L, T, t, step)
        for a in range(L):
            for c in range(L):
                alpha[t, c] = plus(s, alpha[t, c], alpha[t - 1, a] + step[a, c])
    for c in range(L):
        total = plus(s, total, alpha[T - 1, c] + beta[T - 1, c])
    for t in range(T - 1, 0, -1):
        step_scores(theta, L, T, t, step)
        for a in range(L):
            for c in range(L):
                beta[t - 1, a] = plus(s, beta[t - 1, a], step[a, c] + beta[t, c])
    return alpha, beta, total


@kernels.expected.implements(PairChainProblem)
def expected(problem, i, theta, parts):
    """Forward-backward in log-space: O(T L^2) time and exponentials, O(T L) memory."""
    L, T = problem.n_labels, problem.starts[i + 1] - problem.starts[i]
    parts[: n_parts(problem, i)] = 0.0
    if T == 0:
        return 0.0
    alpha, beta, log_z = forward_backward(make_semiring(LOG_SUM), L, T, theta)
    if log_z == -np.inf:
        return log_z
    base, step = n_chain_parts(problem, T), np.empty((L, L))
    for t in range(1, T):
        step_scores(theta, L, T, t, step)
        for a in range(L):
            for c in range(L):
                value = step[a, c] + beta[t, c]
                if value > -np.inf and alpha[t - 1, a] > -np.inf:
                    p = np.exp(alpha[t - 1, a] + value - log_z)
                    parts[base + ((t - 1) * L + a) * L + c] = p
                    parts[(T + a) * L + c] += p
                    parts[t * L + c] += p
    for c in range(L):
        if alpha[0, c] > -np.inf and beta[0, c] > -np.inf:
            parts[c] = np.exp(alpha[0, c] + beta[0, c] - log_z)
            parts[(T + L) * L + c] = parts[c]
        parts[(T + L + 1) * L + c] = parts[(T - 1) * L + c]
    return log_z


@kernels.max_marginals.implements(PairChainProblem)
def max_marginals(problem, i, theta, parts):
    """Forward-backward with maxima: O(T L^2) time, O(T L) memory."""
    L, T = problem.n_labels, problem.starts[i + 1] - problem.starts[i]
    fill(parts[: n_parts(problem, i)], -np.inf)
    if T == 0:
        return 0.0
    alpha, beta, value = forward_backward(make_semiring(LARGEST), L, T, theta)
    base, step = n_chain_parts(problem, T), np.empty((L, L))
    for t in range(1, T):
        step_scores(theta, L, T, t, step)
        for a in range(L):
            for c in range(L):
                through = alpha[t - 1, a] + step[a, c] + beta[t, c]
                parts[base + ((t - 1) * L + a) * L + c] = through
                parts[(T + a) * L + c] = larger(parts[(T + a) * L + c], through)
                parts[t * L + c] = larger(parts[t * L + c], through)
    for c in range(L):
        parts[c] = alpha[0, c] + beta[0, c]
        parts[(T + L) * L + c] = parts[c]
        parts[(T + L + 1) * L + c] = parts[(T - 1) * L + c]
    return value
