"""The oracles of chains: Viterbi, k-best Viterbi, forward-backward (see `chain` for parts and states).

Viterbi keeps no back pointers: the forward pass is a pure maximum over contiguous labels, which vectorises, and the
way back recomputes one column per position. Forward-backward runs on exponentials scaled per position and falls back
to log-space, exactly when numbers could leave the range of float64.
"""

from __future__ import annotations

import numpy as np

from partwise import kernels
from partwise.compilation import entry, helper
from partwise.structures.chain import ChainProblem, n_states

WIDEST = 200.0  # scores of one step may differ by this much (e^-200 = 1e-87) before log-space takes over
SMALLEST = 1e-200


@kernels.best.implements(ChainProblem)
def best(problem, i, theta, y):
    """Viterbi: O(T H^k L) time, O(T H^k) memory."""
    L, T = problem.n_labels, problem.starts[i + 1] - problem.starts[i]
    if T == 0:
        return 0.0
    symbols, S = L + 1, n_states(problem)
    kept = S // symbols
    transitions = theta[T * L : (T + S) * L]
    alpha = np.full((T, S), -np.inf, theta.dtype)
    for c in range(L):  # the begin state is the largest number
        alpha[0, (S - 1) % kept * symbols + c] = transitions[(S - 1) * L + c] + theta[c]
    for t in range(1, T):
        before, now = alpha[t - 1], alpha[t]
        for s in range(S):
            if before[s] == -np.inf:
                continue
            a = before[s]
            out = now[s % kept * symbols : s % kept * symbols + L]
            leave = transitions[s * L : (s + 1) * L]
            for c in range(L):
                v = a + leave[c]
                out[c] = v if v > out[c] else out[c]
        node = theta[t * L : (t + 1) * L]
        for h in range(kept):
            out = now[h * symbols : h * symbols + L]
            for c in range(L):
                out[c] += node[c]
    stop = theta[(T + S) * L : (T + S + 1) * L]
    s, value = 0, -np.inf
    for u in range(S):
        if u % symbols < L and alpha[T - 1, u] + stop[u % symbols] > value:
            s, value = u, alpha[T - 1, u] + stop[u % symbols]
    y[T - 1] = s % symbols
    for t in range(T - 2, -1, -1):
        c, tail = s % symbols, s // symbols
        highest = -np.inf
        for x in range(symbols):
            u = x * kept + tail
            v = alpha[t, u] + transitions[u * L + c]
            if v > highest:
                highest, s = v, u
        y[t] = s % symbols if highest > -np.inf else 0
    return value


@kernels.kbest.implements(ChainProblem)
def kbest(problem, i, theta, ys, values):
    """k-best Viterbi: every state keeps its k best prefixes. O(T H^k L k^2) time at worst, O(T H^k k) memory."""
    L, T, K = problem.n_labels, problem.starts[i + 1] - problem.starts[i], len(values)
    if T == 0:
        values[0] = 0.0
        return 1
    symbols, S = L + 1, n_states(problem)
    kept = S // symbols
    transitions = theta[T * L : (T + S) * L]
    alpha = np.full((T, S, K), -np.inf)
    back = np.zeros((T, S, K), np.int64)  # previous state * K + rank among its prefixes
    for c in range(L):
        alpha[0, (S - 1) % kept * symbols + c, 0] = transitions[(S - 1) * L + c] + theta[c]
    for t in range(1, T):
        for s in range(S):
            for rank in range(K):
                a = alpha[t - 1, s, rank]
                if a == -np.inf:
                    break
                for c in range(L):
                    u = s % kept * symbols + c
                    insert(a + transitions[s * L + c] + theta[t * L + c], s * K + rank, alpha[t, u], back[t, u])
    stop = theta[(T + S) * L : (T + S + 1) * L]
    final, where = np.full(K, -np.inf), np.zeros(K, np.int64)
    for s in range(S):
        if s % symbols < L:
            for rank in range(K):
                insert(alpha[T - 1, s, rank] + stop[s % symbols], s * K + rank, final, where)
    found = 0
    while found < K and final[found] > -np.inf:
        values[found] = final[found]
        at = where[found]
        for t in range(T - 1, -1, -1):
            ys[found, t] = at // K % symbols
            at = back[t, at // K, at % K]
        found += 1
    return found


@helper
def insert(value, origin, values, origins):
    """Insert into a list sorted downwards, dropping its last; equal values keep the order they came in."""
    j = len(values) - 1
    if value <= values[j]:
        return
    while j > 0 and values[j - 1] < value:
        values[j] = values[j - 1]
        origins[j] = origins[j - 1]
        j -= 1
    values[j] = value
    origins[j] = origin


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
    highest, lowest = -np.inf, np.inf
    for v in values:
        if v != -np.inf:
            highest = max(highest, float(v))
            lowest = min(lowest, float(v))
    return highest, lowest


@helper
def expected_scaled(L, T, S, theta, parts):
    """Forward-backward on scaled exponentials; returns +inf when a number could leave the range (then nothing counts).

    Where no score is -inf, entries of one step differ by less than e^WIDEST and nothing can underflow. Where some are,
    a state can fall behind over many steps: it is caught on its way down, between SMALLEST and zero.
    """
    symbols = L + 1
    kept = S // symbols
    high, low = finite_range(theta[T * L : (T + S) * L])
    if high == -np.inf:
        return -np.inf
    spread = high - low
    stop_high, stop_low = finite_range(theta[(T + S) * L : (T + S + 1) * L])
    if stop_high == -np.inf:
        return -np.inf
    if stop_high - stop_low > WIDEST:
        return np.inf
    move = np.empty(S * L)
    for k in range(S * L):
        move[k] = np.exp(theta[T * L + k] - high)
    node = np.empty((T, L))
    log_z = stop_high + T * high
    for t in range(T):
        node_high, node_low = finite_range(theta[t * L : (t + 1) * L])
        if node_high == -np.inf:
            return -np.inf
        if spread + node_high - node_low > WIDEST:
            return np.inf
        log_z += node_high
        for c in range(L):
            node[t, c] = np.exp(theta[t * L + c] - node_high)
    alpha, beta, now = np.zeros((T, S)), np.zeros((T, S)), np.zeros(S)
    for c in range(L):
        alpha[0, (S - 1) % kept * symbols + c] = move[(S - 1) * L + c] * node[0, c]
    for t in range(T):
        if t > 0:
            for s in range(S):
                a = alpha[t - 1, s]
                if a > 0.0:
                    out = alpha[t, s % kept * symbols : s % kept * symbols + L]
                    leave = move[s * L : (s + 1) * L]
                    for c in range(L):
                        out[c] += a * leave[c]
            for h in range(kept):
                for c in range(L):
                    alpha[t, h * symbols + c] *= node[t, c]
        total, state = normalise(alpha[t])
        if state != 0:
            return -np.inf if state < 0 else np.inf
        log_z += np.log(total)
    total = 0.0
    for s in range(S):
        if s % symbols < L:
            beta[T - 1, s] = np.exp(theta[(T + S) * L + s % symbols] - stop_high)
            total += alpha[T - 1, s] * beta[T - 1, s]
    if total < SMALLEST:
        return -np.inf if total == 0.0 else np.inf
    log_z += np.log(total)
    for t in range(T - 2, -1, -1):
        for h in range(kept):
            for c in range(L):
                now[h * symbols + c] = node[t + 1, c] * beta[t + 1, h * symbols + c]
        total = 0.0
        for s in range(S):
            if alpha[t, s] > 0.0:
                into = now[s % kept * symbols : s % kept * symbols + L]
                leave = move[s * L : (s + 1) * L]
                b = 0.0
                for c in range(L):
                    b += leave[c] * into[c]
                beta[t, s] = b
                total += alpha[t, s] * b
        if total < SMALLEST:
            return np.inf
        for s in range(S):
            a = alpha[t, s] / total
            if a > 0.0:
                into = now[s % kept * symbols : s % kept * symbols + L]
                out = parts[(T + s) * L : (T + s + 1) * L]
                for c in range(L):
                    out[c] += a * into[c]
        _, state = normalise(beta[t])
        if state != 0:
            return np.inf
    for k in range(S * L):
        parts[T * L + k] *= move[k]
    for t in range(T):
        total = 0.0
        for s in range(S):
            total += alpha[t, s] * beta[t, s]
        for h in range(kept):
            for c in range(L):
                parts[t * L + c] += alpha[t, h * symbols + c] * beta[t, h * symbols + c] / total
    for c in range(L):
        parts[(T + S - 1) * L + c] = parts[c]
        parts[(T + S) * L + c] = parts[(T - 1) * L + c]
    return log_z


@helper
def normalise(a):
    """Divide by the sum; the second value is -1 if the sum is zero, 1 if a positive entry is dangerously small."""
    total = 0.0
    for s in range(len(a)):
        total += a[s]
    if total == 0.0:
        return total, -1
    smallest = 1.0
    for s in range(len(a)):
        a[s] /= total
        if a[s] > 0.0 and a[s] < smallest:
            smallest = a[s]
    return total, 1 if smallest < SMALLEST else 0


@helper
def log_add(a, b):
    """log(e^a + e^b), -inf welcome."""
    if a == -np.inf:
        return b
    if b == -np.inf:
        return a
    if a < b:
        a, b = b, a
    return a + np.log1p(np.exp(b - a))


@helper
def forward_backward_log(L, T, S, theta):
    """Log forward and backward scores (both (T, S)) and the log-partition, for scores of any size."""
    symbols = L + 1
    kept = S // symbols
    move, stop = theta[T * L : (T + S) * L], theta[(T + S) * L : (T + S + 1) * L]
    alpha, beta = np.full((T, S), -np.inf), np.full((T, S), -np.inf)
    for c in range(L):
        alpha[0, (S - 1) % kept * symbols + c] = move[(S - 1) * L + c] + theta[c]
    for t in range(1, T):
        for s in range(S):
            if alpha[t - 1, s] > -np.inf:
                for c in range(L):
                    u = s % kept * symbols + c
                    alpha[t, u] = log_add(alpha[t, u], alpha[t - 1, s] + move[s * L + c] + theta[t * L + c])
    log_z = -np.inf
    for s in range(S):
        if s % symbols < L:
            beta[T - 1, s] = stop[s % symbols]
            log_z = log_add(log_z, alpha[T - 1, s] + beta[T - 1, s])
    for t in range(T - 2, -1, -1):
        for s in range(S):
            for c in range(L):
                u = s % kept * symbols + c
                beta[t, s] = log_add(beta[t, s], move[s * L + c] + theta[(t + 1) * L + c] + beta[t + 1, u])
    return alpha, beta, log_z


@helper
def expected_log(L, T, S, theta, parts):
    """Forward-backward in log-space: slower by the price of an exponential per transition, and never out of range."""
    symbols = L + 1
    kept = S // symbols
    alpha, beta, log_z = forward_backward_log(L, T, S, theta)
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


@entry
def pair_marginals(problem, i, theta):
    """P(y_t = a, y_{t+1} = b) as an array (T - 1, L, L), under p(y) ~ exp(theta . z(y)).

    O(T H^k L) time, O(T H^k) memory, in log-space.
    """
    L, T, S = problem.n_labels, problem.starts[i + 1] - problem.starts[i], n_states(problem)
    symbols = L + 1
    pairs = np.zeros((max(T - 1, 0), L, L))
    if T < 2:
        return pairs
    alpha, beta, log_z = forward_backward_log(L, T, S, theta)
    for t in range(T - 1):
        for s in range(S):
            if alpha[t, s] > -np.inf:
                for c in range(L):
                    v = theta[(T + s) * L + c] + theta[(t + 1) * L + c] + beta[t + 1, s % (S // symbols) * symbols + c]
                    if v > -np.inf:
                        pairs[t, s % symbols, c] += np.exp(alpha[t, s] + v - log_z)
    return pairs
