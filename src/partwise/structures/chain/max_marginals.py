"""Max-marginals of chains: forward-backward in the semiring (max, +), see `chain` for parts and states.

forward(t, s)   the best prefix that ends in state s at t, its last node included
backward(t, s)  the best suffix after state s at t, the stop weight included
M_t(c) = max over states s whose last symbol is c of forward(t, s) + backward(t, s)
"""

from __future__ import annotations

import numpy as np

from partwise import kernels
from partwise.engine.accumulator import row
from partwise.engine.numerics import copy, fill, larger
from partwise.structures.chain.kernels import ChainProblem, n_states


@kernels.max_marginals.implements(ChainProblem)
def max_marginals(problem, i, theta, nodes):
    """O(T H^k L) time, twice that of Viterbi, and O(T H^k) memory."""
    L, T = problem.n_labels, problem.starts[i + 1] - problem.starts[i]
    if T == 0:
        return
    H, S = L + 1, n_states(problem)
    kept = S // H
    forward, backward, ahead = np.empty((T, S)), np.empty(S), np.empty(S)
    fill(forward.reshape(T * S), -np.inf)
    begin, leave, node = row(forward[0], (S - 1) % kept, H), row(theta, T + S - 1, L), row(theta, 0, L)
    for c in range(L):
        begin[c] = leave[c] + node[c]
    for t in range(1, T):
        node = row(theta, t, L)
        for s in range(S):
            before = forward[t - 1, s]
            if before > -np.inf:
                out, leave = row(forward[t], s % kept, H), row(theta, T + s, L)
                for c in range(L):
                    out[c] = larger(out[c], before + leave[c] + node[c])
    fill(backward, -np.inf)
    for h in range(kept):
        copy(row(theta, T + S, L), row(backward, h, H))
    for t in range(T - 1, -1, -1):
        if t < T - 1:
            node = row(theta, t + 1, L)
            copy(backward, ahead)
            for h in range(kept):
                after = row(ahead, h, H)
                for c in range(L):
                    after[c] += node[c]
            for s in range(S):
                after, leave, value = row(ahead, s % kept, H), row(theta, T + s, L), -np.inf
                for c in range(L):
                    value = larger(value, leave[c] + after[c])
                backward[s] = value
        out = row(nodes, t, L)
        fill(out, -np.inf)
        for h in range(kept):
            prefix, suffix = row(forward[t], h, H), row(backward, h, H)
            for c in range(L):
                out[c] = larger(out[c], prefix[c] + suffix[c])
