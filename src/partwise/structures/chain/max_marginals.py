"""Max-marginals of a chain: the score of the best labelling that has a part (see `kernels` for parts and states)."""

from __future__ import annotations

import numpy as np

from partwise import kernels
from partwise.engine.numerics import fill, larger
from partwise.structures.chain.kernels import ChainProblem, n_states
from partwise.structures.chain.sums import forward_backward
from partwise.structures.common.semirings import LARGEST, make_semiring


@kernels.max_marginals.implements(ChainProblem)
def max_marginals(problem, i, theta, parts):
    """Viterbi from both ends: O(T H^k L) time, O(T H^k) memory."""
    L, T, S = problem.n_labels, problem.starts[i + 1] - problem.starts[i], n_states(problem)
    symbols = L + 1
    kept = S // symbols
    fill(parts[: (T + S + 1) * L], -np.inf)
    if T == 0:
        return 0.0
    alpha, beta, value = forward_backward(make_semiring(LARGEST), L, T, S, theta)
    for t in range(T):
        for s in range(S):
            if alpha[t, s] == -np.inf:
                continue
            node = t * L + s % symbols
            parts[node] = larger(parts[node], alpha[t, s] + beta[t, s])
            if t + 1 < T:
                for c in range(L):
                    step, after = (T + s) * L + c, beta[t + 1, s % kept * symbols + c]
                    parts[step] = larger(parts[step], alpha[t, s] + theta[step] + theta[(t + 1) * L + c] + after)
    for c in range(L):
        parts[(T + S - 1) * L + c] = parts[c]
        parts[(T + S) * L + c] = parts[(T - 1) * L + c]
    return value
