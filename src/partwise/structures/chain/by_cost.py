"""The best labelling of a chain at every cost: Viterbi with the cost so far as part of the state.

    alpha[t, k, s] = best score of a prefix that ends in state s at t and has cost k

    arrival[k, c]              = max_s alpha[t - 1, k, s] + move[s, c]              the (max, +) product of `best`, at each level
    alpha[t, k + cost(c), s c] = arrival[k, c] + node[t, c]                         every label knows its cost at t

Costs are counted, so they must be integers: Hamming, or a cost matrix of small integers. For other costs, and for sequences so
long that the table would not fit, outputs are searched instead (`cost_search`). Chains of any order, constraints and partial
labels (the cost is then against the set) are those of `chain`.

Cost, at order n: O(T K H^n L) time and O(T K H^n) memory with K = 1 + sum_t max_c cost_t(c) levels, T + 1 for Hamming. There are
no back pointers: the way back looks for the maximum again, O(H) per position and level.
"""

from __future__ import annotations

import numpy as np

from partwise import kernels
from partwise.engine.accumulator import row
from partwise.engine.compilation import helper
from partwise.engine.numerics import copy, fill, padded_width
from partwise.oracles.by_cost import search_costs
from partwise.structures.chain.best import gathered, max_sums
from partwise.structures.chain.kernels import ChainProblem, n_states
from partwise.structures.chain.problem import PairChainProblem

MOST = 1 << 27  # numbers that the table of one example may take: 1 GB in float64


@kernels.truth.implements(ChainProblem, PairChainProblem)
def truth(problem, i, y):
    first = problem.starts[i]
    for t in range(len(y)):
        y[t] = problem.gold[first + t]


@helper
def n_levels(problem, i):
    """1 + the highest cost of an output of example i, as a number that may be no integer."""
    highest = 1.0
    for k in range(problem.starts[i], problem.starts[i + 1]):
        highest += problem.costs[problem.gold[k]].max()
    return highest


@kernels.counts_costs.implements(ChainProblem)
def counts_costs(problem, i):
    T = problem.starts[i + 1] - problem.starts[i]
    if T * n_levels(problem, i) * n_states(problem) > MOST:
        return False
    for a in range(problem.costs.shape[0]):
        for b in range(problem.costs.shape[1]):
            if problem.costs[a, b] != np.floor(problem.costs[a, b]):
                return False
    return True


@kernels.n_costs.implements(ChainProblem)
def n_costs(problem, i):
    return int(n_levels(problem, i)) if counts_costs(problem, i) else kernels.SEARCHED


@kernels.best_at_costs.implements(ChainProblem)
def best_at_costs(problem, i, theta, ys, values, costs):
    """Viterbi over (position, cost, state): see the module."""
    if not counts_costs(problem, i):
        return search_costs(problem, i, theta, ys, values, costs, np.empty((2 * len(values), 2)))[0]
    L, first = problem.n_labels, problem.starts[i]
    T = problem.starts[i + 1] - first
    if T == 0:
        values[0], costs[0] = 0.0, 0.0
        return 1
    H, S, K = L + 1, n_states(problem), n_costs(problem, i)
    kept, R = S // H, padded_width(L, theta.itemsize)
    move = np.empty(S * R, theta.dtype)  # [history kept, symbol forgotten, label]
    fill(move, -np.inf)
    for s in range(S):
        copy(row(theta, T + s, L), row(move, s % kept * H + s // kept, R))
    step = np.empty((T, L), np.int64)  # cost of each label at t
    for t in range(T):
        for c in range(L):
            step[t, c] = int(problem.costs[problem.gold[first + t], c])
    alpha = np.empty((T, K, S), theta.dtype)
    fill(alpha.reshape(T * K * S), -np.inf)
    leave, scores, low, high = row(theta, T + S - 1, L), row(theta, 0, L), K, 0  # levels that can be reached: low <= k <= high
    for c in range(L):
        alpha[0, step[0, c], (kept - 1) * H + c] = leave[c] + scores[c]
        low, high = min(low, step[0, c]), max(high, step[0, c])
    arrival, coming = np.empty(R, theta.dtype), np.empty(H, theta.dtype)
    for t in range(1, T):
        scores, least, most = row(theta, t, L), K, 0
        for k in range(low, high + 1):
            for h in range(kept):
                fill(arrival, -np.inf)
                max_sums(gathered(alpha[t - 1, k], h, kept, coming), row(move, h, H * R), H, R, arrival)
                for c in range(L):
                    alpha[t, k + step[t, c], h * H + c] = arrival[c] + scores[c]
        for c in range(L):
            least, most = min(least, step[t, c]), max(most, step[t, c])
        low, high = low + least, high + most
    stop, found = row(theta, T + S, L), 0
    for level in range(low, high + 1):
        value, s = -np.inf, 0
        for h in range(kept):
            for c in range(L):
                total = float(alpha[T - 1, level, h * H + c]) + float(stop[c])
                if total > value:
                    value, s = total, h * H + c
        if value == -np.inf:
            continue
        values[found], costs[found] = value, level
        k = level
        for t in range(T - 1, 0, -1):
            h, c = s // H, s % H
            ys[found, t] = c
            k -= step[t, c]
            before, column = alpha[t - 1, k], move[h * H * R + c :]
            symbol = 0
            for a in range(1, H):
                if before[a * kept + h] + column[a * R] > before[symbol * kept + h] + column[symbol * R]:
                    symbol = a
            s = symbol * kept + h
        ys[found, 0] = s % H
        found += 1
    return found
