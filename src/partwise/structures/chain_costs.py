"""The best labelling of a chain at every cost: Viterbi with the cost so far as part of the state.

    alpha[t, k, s] = best score of a prefix that ends in state s at t and has cost k

    arrival[k, c]              = max_s alpha[t - 1, k, s] + move[s, c]              the (max, +) product of `best`, at each level
    alpha[t, k + cost(c), s c] = arrival[k, c] + node[t, c]                         every label knows its cost at t

Costs are counted, so they must be integers: Hamming, or a cost matrix of small integers. Chains of any order, constraints and
partial labels (the cost is then against the set) are those of `chain`.

Cost, at order n: O(T K H^n L) time and O(T K H^n) memory with K = 1 + sum_t max_c cost_t(c) levels, T + 1 for Hamming. There are
no back pointers: the way back looks for the maximum again, O(H) per position and level.
"""

from __future__ import annotations

import numpy as np

from partwise import kernels
from partwise.accumulator import row
from partwise.numerics import copy, fill, padded_width
from partwise.structures.chain import ChainProblem, n_states
from partwise.structures.chain_oracles import gathered, max_sums

MOST = 1 << 27  # numbers that one example may take: 1 GB in float64


@kernels.truth.implements(ChainProblem)
def truth(problem, i, y):
    first = problem.starts[i]
    for t in range(len(y)):
        y[t] = problem.gold[first + t]


@kernels.n_costs.implements(ChainProblem)
def n_costs(problem, i):
    highest = 0
    for k in range(problem.starts[i], problem.starts[i + 1]):
        highest += int(problem.costs[problem.gold[k]].max())
    return highest + 1


@kernels.check_costs.implements(ChainProblem)
def check_costs(problem):
    name, costs = type(problem).__name__, problem.costs
    wrong = np.argwhere(costs != np.floor(costs))
    if len(wrong):
        truth, answer = wrong[0]
        raise ValueError(
            f"{name}: losses that rescale the margin by the cost count it, so the cost matrix must hold integers. Got "
            f"{costs[truth, answer]:g} for label {answer} where {truth} is true. Multiply the matrix until it does (for 'slack', "
            "dividing C by the same number gives the same objective), or use a margin-rescaled loss such as 'hinge' or 'ramp'."
        )
    highest = np.concatenate([[0.0], np.cumsum(costs.max(axis=1, initial=0.0)[problem.gold])])[problem.starts]
    lengths, levels = np.diff(problem.starts), 1.0 + np.diff(highest)
    i = int(np.argmax(lengths * levels)) if len(lengths) else 0
    if len(lengths) and lengths[i] * levels[i] * n_states(problem) > MOST:
        raise ValueError(
            f"{name}: sequence {i}, of {lengths[i]} tokens, can have {levels[i]:.0f} different costs. Its best output at each of "
            f"them takes more than {MOST} numbers of memory. Use smaller costs, shorter sequences or a lower order, or a "
            "margin-rescaled loss such as 'hinge' or 'ramp'."
        )


@kernels.best_at_costs.implements(ChainProblem)
def best_at_costs(problem, i, theta, ys, values, costs):
    """Viterbi over (position, cost, state): see the module."""
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
