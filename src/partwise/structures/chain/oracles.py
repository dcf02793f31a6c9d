"""The oracles of chains: Viterbi, k-best Viterbi, forward-backward (see `chain` for parts and states).

Viterbi keeps no back pointers: the forward pass is a pure maximum over contiguous labels, which vectorises, and the
way back recomputes one column per position. Forward-backward runs on exponentials scaled per position and falls back
to log-space, exactly when numbers could leave the range of float64.
"""

from __future__ import annotations

import numpy as np

from partwise import kernels
from partwise.engine.accumulator import row
from partwise.engine.compilation import entry, helper
from partwise.engine.numerics import copy, exp, fill, larger, padded_width, smaller
from partwise.structures.chain.kernels import ChainProblem, n_states

WIDEST = 200.0  # scores of one step may differ by this much (e^-200 = 1e-87) before log-space takes over
SMALLEST = 1e-200
MANY = 64  # labels, from which on it pays to look which of them matter


@helper
def max_sums(a, matrix, n, R, out):
    """out[c] = max(out[c], max_{k < n} a[k] + matrix[k, c]): a vector times a matrix in the semiring (max, +).

    Four rows at a time: one pass over `out` for four of them.
    """
    k = 0
    while k + 4 <= n:
        a0, a1, a2, a3 = a[k], a[k + 1], a[k + 2], a[k + 3]
        m0, m1, m2, m3 = row(matrix, k, R), row(matrix, k + 1, R), row(matrix, k + 2, R), row(matrix, k + 3, R)
        for c in range(R):
            u = larger(larger(a0 + m0[c], a1 + m1[c]), larger(a2 + m2[c], a3 + m3[c]))
            out[c] = larger(out[c], u)
        k += 4
    while k < n:
        a0, m0 = a[k], row(matrix, k, R)
        for c in range(R):
            out[c] = larger(out[c], a0 + m0[c])
        k += 1


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


@helper
def gathered(values, h, kept, out):
    """values[k * kept + h] for all k: the states that forget their oldest symbol into the same history h."""
    if kept == 1:
        return values
    for k in range(len(values) // kept):
        out[k] = values[k * kept + h]
    return out


@helper
def highest_of_rows(matrix, n, L, out):
    """out[k] = max_c matrix[k, c]."""
    for k in range(n):
        entries = row(matrix, k, L)
        high = entries[0]
        for c in range(L):
            high = larger(high, entries[c])
        out[k] = high


@helper
def max_sums_of_few(a, bound, matrix, n, L, out, few):
    """`max_sums` for many labels, the same numbers for less work, where bound[k] = max_c matrix[k, c].

    Row k can be left out if a[k] + bound[k] <= min_c out[c], for then it is nowhere above `out`. One good row makes `out` large
    enough to leave out most of the others: of the 457 labels of the Brown corpus, about ten are left.
    """
    first = 0
    for k in range(1, n):
        if a[k] > a[first]:
            first = k
    start, entries = a[first], row(matrix, first, L)
    for c in range(L):
        out[c] = start + entries[c]
    lowest = out[0]
    for c in range(L):
        lowest = smaller(lowest, out[c])
    m = 0
    for k in range(n):
        few[m] = k
        m += 1 if a[k] + bound[k] > lowest and k != first else 0
    j = 0
    while j + 4 <= m:
        k0, k1, k2, k3 = few[j], few[j + 1], few[j + 2], few[j + 3]
        a0, a1, a2, a3 = a[k0], a[k1], a[k2], a[k3]
        m0, m1, m2, m3 = row(matrix, k0, L), row(matrix, k1, L), row(matrix, k2, L), row(matrix, k3, L)
        for c in range(L):
            u = larger(larger(a0 + m0[c], a1 + m1[c]), larger(a2 + m2[c], a3 + m3[c]))
            out[c] = larger(out[c], u)
        j += 4
    while j < m:
        a0, m0 = a[few[j]], row(matrix, few[j], L)
        for c in range(L):
            out[c] = larger(out[c], a0 + m0[c])
        j += 1


@kernels.best.implements(ChainProblem)
def best(problem, i, theta, y):
    """Viterbi: O(T H^k L) time, far less where labels are many (see `max_sums_of_few`), O(T H^k) memory."""
    L, T = problem.n_labels, problem.starts[i + 1] - problem.starts[i]
    if T == 0:
        return 0.0
    H, S = L + 1, n_states(problem)
    kept, many = S // H, L >= MANY
    R = L if many else padded_width(L, theta.itemsize)
    if many and kept == 1:
        move = theta[T * L : (T + S) * L]
    else:
        move = np.empty(S * R, theta.dtype)  # [history kept, symbol forgotten, label]
        fill(move, -np.inf)
        for s in range(S):
            copy(row(theta, T + s, L), row(move, s % kept * H + s // kept, R))
    alpha = np.empty((T, S), theta.dtype)  # best prefix ending in state s at t
    fill(alpha.reshape(T * S), -np.inf)
    out, scores, leave = row(alpha[0], kept - 1, H), row(theta, 0, L), row(theta, T + S - 1, L)
    for c in range(L):
        out[c] = leave[c] + scores[c]
    arrival = np.empty((T, kept * R), theta.dtype)  # the same without the last node: what the way back looks for
    coming, few, bound = np.empty(H, theta.dtype), np.empty(H, np.int64), np.empty(S if many else 0, theta.dtype)
    if many:
        highest_of_rows(move, S, L, bound)
    for t in range(1, T):
        scores = row(theta, t, L)
        for h in range(kept):
            highest = row(arrival[t], h, R)
            before = gathered(alpha[t - 1], h, kept, coming)
            if many:
                max_sums_of_few(before, row(bound, h, H), row(move, h, H * R), H, L, highest, few)
            else:
                fill(highest, -np.inf)
                max_sums(before, row(move, h, H * R), H, R, highest)
            out = row(alpha[t], h, H)
            for c in range(L):
                out[c] = highest[c] + scores[c]
    stop, value, s = row(theta, T + S, L), -np.inf, 0
    for h in range(kept):
        out = row(alpha[T - 1], h, H)
        for c in range(L):
            if out[c] + stop[c] > value:
                value, s = out[c] + stop[c], h * H + c
    for t in range(T - 1, 0, -1):
        h, c = s // H, s % H
        y[t] = c
        before, column, value_here = alpha[t - 1], move[h * H * R + c :], arrival[t, h * R + c]
        k = 0
        while k < H - 1 and before[k * kept + h] + column[k * R] < value_here:
            k += 1
        s = k * kept + h if value_here > -np.inf else 0
    y[0] = s % H
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
