"""Sums over all labellings of a chain, and marginals: forward-backward (see `kernels` for parts and states).

It runs on exponentials scaled per position, and falls back to log-space exactly where numbers could leave the range of float64.
"""

from __future__ import annotations

import numpy as np

from partwise import kernels
from partwise.engine.accumulator import row
from partwise.engine.compilation import compiled_loop, helper
from partwise.engine.numerics import copy, exp, fill, larger, padded_width, smaller
from partwise.structures.chain.best import gathered
from partwise.structures.chain.kernels import ChainProblem, n_states
from partwise.structures.common.semirings import LOG_SUM, make_semiring, plus

WIDEST = 200.0  # scores of one step may differ by this much (e^-200 = 1e-87) before log-space takes over
SMALLEST = 1e-200


@helper
def sum_products(a, matrix, n, R, out):
    """out[c] += sum_{k < n} a[k] * matrix[k, c]: the same in the semiring (+, *)."""
    k = 0
    while k + 4 <= n:
        a0, a1, a2, a3 = a[k], a[k + 1], a[k + 2], a[k + 3]
        m0, m1, m2, m3 = row(matrix, k, R), row(matrix, k + 1, R), row(matrix, k + 2, R), row(matrix, k + 3, R)
        for c in range(R):
            out[c] += a0 * m0[c] + a1 * m1[c] + a2 * m2[c] + a3 * m3[c]
        k += 4
    while k < n:
        a0, m0 = a[k], row(matrix, k, R)
        for c in range(R):
            out[c] += a0 * m0[c]
        k += 1


@kernels.expected.implements(ChainProblem)
def expected(problem, i, theta, parts):
    """Forward-backward: O(T H^k L) time, O(T H^k) memory."""
    L, T, S = problem.n_labels, problem.starts[i + 1] - problem.starts[i], n_states(problem)
    parts[: (T + S + 1) * L] = 0.0
    if T == 0:
        return 0.0
    value = expected_scaled(L, T, S, theta, parts)
    if value == np.inf:  # out of range
        parts[: (T + S + 1) * L] = 0.0
        value = expected_log(L, T, S, theta, parts)
    return value


@helper
def finite_range(values):
    """Highest and lowest among the finite values; highest = -inf if there is none."""
    nothing = values.dtype.type(np.inf)
    highest, lowest = -nothing, nothing
    for k in range(len(values)):
        v = values[k]
        highest = larger(highest, v)
        lowest = smaller(lowest, v if v > -nothing else nothing)
    return highest, lowest


@helper
def exponentials(scores, high, out):
    """out = exp(scores - high), zero where `out` is longer (whole vectors: no remainder)."""
    fill(out, -np.inf)
    for c in range(len(scores)):
        out[c] = scores[c] - high
    for c in range(len(out)):
        out[c] = exp(out[c])


@helper
def expected_scaled(L, T, S, theta, parts):
    """Forward-backward on scaled exponentials; returns +inf when a number could leave the range (then nothing counts).

    Where no score is -inf, entries of one step differ by less than e^WIDEST and nothing can underflow. Where some are,
    a state can fall behind over many steps: it is caught on its way down, between SMALLEST and zero.
    """
    H = L + 1
    kept, R = S // H, padded_width(L, 8)
    high, low = finite_range(theta[T * L : (T + S) * L])
    stop_high, stop_low = finite_range(row(theta, T + S, L))
    if high == -np.inf or stop_high == -np.inf:
        return -np.inf
    if stop_high - stop_low > WIDEST:
        return np.inf
    log_z = stop_high + T * high
    # exp of the transitions out of each state as [history kept, symbol forgotten, label], and the same transposed
    move, back = np.zeros(S * R), np.zeros(kept * L * R)
    for s in range(S):
        h, k = s % kept, s // kept
        out = row(move, h * H + k, R)
        exponentials(row(theta, T + s, L), high, out)
        column = back[h * L * R + k :]
        for c in range(L):
            column[c * R] = out[c]
    alpha, beta = np.zeros((T, S)), np.zeros((T, S))  # all prefixes ending in, all suffixes after state s at t
    ahead = np.zeros((kept, T * R))  # what a state that keeps history h finds at t: emission times beta
    emission, coming, sums = np.zeros(R), np.zeros(max(H, T)), np.zeros(R)
    for t in range(T):
        node_high, node_low = finite_range(row(theta, t, L))
        if node_high == -np.inf:
            return -np.inf
        if high - low + node_high - node_low > WIDEST:
            return np.inf
        exponentials(row(theta, t, L), node_high, emission)
        for h in range(kept):
            copy(emission, row(ahead[h], t, R))
            fill(sums, 0.0)
            if t > 0:
                sum_products(gathered(alpha[t - 1], h, kept, coming), row(move, h, H * R), H, R, sums)
            elif h == kept - 1:
                copy(row(move, S - 1, R), sums)
            out = row(alpha[t], h, H)
            for c in range(L):
                out[c] = sums[c] * emission[c]
        total, trouble = normalise(alpha[t])
        if trouble != 0:
            return -np.inf if trouble < 0 else np.inf
        log_z += node_high + np.log(total)
    for h in range(kept):
        exponentials(row(theta, T + S, L), stop_high, row(beta[T - 1], h, H))
    for t in range(T - 1, -1, -1):
        now = beta[t]
        if t < T - 1:
            for h in range(kept):
                fill(sums, 0.0)
                sum_products(row(ahead[h], t + 1, R), row(back, h, L * R), L, R, sums)
                for k in range(H):
                    now[k * kept + h] = sums[k]
        total = 0.0
        for s in range(S):
            total += alpha[t, s] * now[s]
        if total < SMALLEST:
            return -np.inf if total == 0.0 and t == T - 1 else np.inf
        if t == T - 1:
            log_z += np.log(total)
        inverse, out = 1.0 / total, row(parts, t, L)
        for h in range(kept):
            prefix, suffix = row(alpha[t], h, H), row(now, h, H)
            for c in range(L):
                out[c] += inverse * prefix[c] * suffix[c]
        for s in range(S):
            alpha[t, s] *= inverse
        _, trouble = normalise(now)
        if trouble != 0:
            return np.inf
        for h in range(kept):
            into, suffix = row(ahead[h], t, R), row(now, h, H)
            for c in range(L):
                into[c] *= suffix[c]
    # expected transitions: counts[s, c] = move[s, c] sum_t alpha[t, s] ahead[t + 1, c], one matrix product per history kept
    for h in range(kept):
        for k in range(H):
            for t in range(T - 1):
                coming[t] = alpha[t, k * kept + h]
            fill(sums, 0.0)
            sum_products(coming, ahead[h][R:], T - 1, R, sums)
            leave, out = row(move, h * H + k, R), row(parts, T + k * kept + h, L)
            for c in range(L):
                out[c] = sums[c] * leave[c]
    copy(row(parts, 0, L), row(parts, T + S - 1, L))
    copy(row(parts, T - 1, L), row(parts, T + S, L))
    return log_z


@helper
def normalise(a):
    """Divide by the sum; the second value is -1 if the sum is zero, 1 if a positive entry is dangerously small."""
    total = 0.0
    for s in range(len(a)):
        total += a[s]
    if total == 0.0:
        return total, -1
    smallest, inverse = 1.0, 1.0 / total
    for s in range(len(a)):
        a[s] *= inverse
        positive = a[s] if a[s] > 0.0 else 1.0
        smallest = positive if positive < smallest else smallest
    return total, 1 if smallest < SMALLEST else 0


@helper
def forward_backward(s, L, T, S, theta):
    """Forward and backward scores, both (T, S), and that of all outputs, for scores of any size, in a semiring of logarithms."""
    symbols = L + 1
    kept = S // symbols
    move, stop = theta[T * L : (T + S) * L], theta[(T + S) * L : (T + S + 1) * L]
    alpha, beta = np.full((T, S), -np.inf), np.full((T, S), -np.inf)
    for c in range(L):
        alpha[0, (S - 1) % kept * symbols + c] = move[(S - 1) * L + c] + theta[c]
    for t in range(1, T):
        for state in range(S):
            if alpha[t - 1, state] > -np.inf:
                for c in range(L):
                    u = state % kept * symbols + c
                    alpha[t, u] = plus(s, alpha[t, u], alpha[t - 1, state] + move[state * L + c] + theta[t * L + c])
    total = -np.inf
    for state in range(S):
        if state % symbols < L:
            beta[T - 1, state] = stop[state % symbols]
            total = plus(s, total, alpha[T - 1, state] + beta[T - 1, state])
    for t in range(T - 2, -1, -1):
        for state in range(S):
            for c in range(L):
                u = state % kept * symbols + c
                beta[t, state] = plus(s, beta[t, state], move[state * L + c] + theta[(t + 1) * L + c] + beta[t + 1, u])
    return alpha, beta, total


@helper
def expected_log(L, T, S, theta, parts):
    """Forward-backward in log-space: slower by the price of an exponential per transition, and never out of range."""
    symbols = L + 1
    kept = S // symbols
    alpha, beta, log_z = forward_backward(make_semiring(LOG_SUM), L, T, S, theta)
    if log_z == -np.inf:
        return log_z
    for t in range(T):
        for s in range(S):
            if alpha[t, s] == -np.inf:
                continue
            if beta[t, s] > -np.inf:
                parts[t * L + s % symbols] += np.exp(alpha[t, s] + beta[t, s] - log_z)
            if t + 1 < T:
                for c in range(L):
                    v = theta[(T + s) * L + c] + theta[(t + 1) * L + c] + beta[t + 1, s % kept * symbols + c]
                    if v > -np.inf:
                        parts[(T + s) * L + c] += np.exp(alpha[t, s] + v - log_z)
    for c in range(L):
        parts[(T + S - 1) * L + c] += parts[c]
        parts[(T + S) * L + c] = parts[(T - 1) * L + c]
    return log_z


@compiled_loop
def pair_marginals(problem, i, theta):
    """P(y_t = a, y_{t+1} = b) as an array (T - 1, L, L), under p(y) ~ exp(theta . z(y)).

    O(T H^k L) time, O(T H^k) memory, in log-space.
    """
    L, T, S = problem.n_labels, problem.starts[i + 1] - problem.starts[i], n_states(problem)
    symbols = L + 1
    pairs = np.zeros((max(T - 1, 0), L, L))
    if T < 2:
        return pairs
    alpha, beta, log_z = forward_backward(make_semiring(LOG_SUM), L, T, S, theta)
    for t in range(T - 1):
        for s in range(S):
            if alpha[t, s] > -np.inf:
                for c in range(L):
                    v = theta[(T + s) * L + c] + theta[(t + 1) * L + c] + beta[t + 1, s % (S // symbols) * symbols + c]
                    if v > -np.inf:
                        pairs[t, s % symbols, c] += np.exp(alpha[t, s] + v - log_z)
    return pairs


@compiled_loop
def score_of_parts(problem, i, w, theta):
    """Part scores of one chain."""
    kernels.score(problem, i, w, theta)


def pair_probabilities(problem: ChainProblem, i: int, w: np.ndarray, beta: float) -> np.ndarray:
    """P(y_t, y_{t+1} | x) of chain i, (length - 1, labels, labels), under p(y) ~ exp(beta s(y))."""
    theta = np.zeros(kernels.n_parts(problem, i))
    score_of_parts(problem, i, w, theta)
    return pair_marginals(problem, i, beta * theta)
