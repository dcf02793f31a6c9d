"""The best labelling of a chain, and the k best: Viterbi (see `kernels` for parts and states).

It keeps no back pointers: the forward pass is a pure maximum over contiguous labels, which vectorises, and the way back
recomputes one column per position.
"""

from __future__ import annotations

import numpy as np

from partwise import kernels
from partwise.engine.accumulator import row
from partwise.engine.compilation import helper
from partwise.engine.numerics import copy, fill, larger, padded_width, smaller
from partwise.structures.chain.kernels import ChainProblem, n_states
from partwise.structures.common.ranked import insert

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
