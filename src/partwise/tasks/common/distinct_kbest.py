"""The k best labellings of a model with hidden states: distinct labels, each with its best states.

The k best state sequences would mostly be one labelling told in several ways. Instead the set of labellings is cut up (Lawler
1972): when y is the best of a part of it, the rest of that part falls into

    labels y_1 .. y_{t-1}, then any but y_t (and what was excluded at t before), then anything        for every t,

each of which is again labels known of some tokens, so its best is one call of the oracle. The next best of all is the best of the
bests. Cost: k T calls of ``best``; memory: k T labellings.

E. L. Lawler (1972). A procedure for computing the k best solutions to discrete optimization problems. Management Science 18(7).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from partwise import kernels
from partwise.engine.compilation import compiled_loop, helper
from partwise.engine.numerics import copy
from partwise.engine.threads import in_threads
from partwise.kernels import chunks


@helper
def best_of_part(problem, i, theta, states, width, hidden, labels, t, excluded, restricted, y):
    """The best output that has `labels` before position t, and none of those `excluded` there."""
    copy(theta, restricted)
    for u in range(t):
        for s in range(states):
            if s // hidden != labels[u]:
                restricted[u * width + s] = -np.inf
    for s in range(states):
        if excluded[s // hidden]:
            restricted[t * width + s] = -np.inf
    return kernels.best(problem, i, restricted, y)


@compiled_loop
def distinct_pass(problem, first, last, w, n_states, width, hidden, theta, starts, out, values, found):
    """The k best labellings of every example in the k rows of `out`, their scores, and how many there are."""
    most = values.shape[1]
    for i in range(first, last):
        scores, T = theta[: kernels.n_parts(problem, i)], starts[i + 1] - starts[i]
        kernels.score(problem, i, w, scores)
        restricted = np.empty_like(scores)
        # parts of the set of labellings: the best states and score of each, where it was cut, and what is excluded there
        room = most * T + 1
        states, value = np.zeros((room, T), np.int32), np.full(room, -np.inf)
        at, excluded = np.zeros(room, np.int64), np.zeros((room, n_states // hidden), np.bool_)
        value[0] = kernels.best(problem, i, scores, states[0])
        n = 1
        while found[i] < most:
            k = np.argmax(value[:n])
            if value[k] == -np.inf:
                break
            labels = out[found[i], starts[i] : starts[i + 1]]
            for t in range(T):
                labels[t] = states[k, t] // hidden
            values[i, found[i]] = value[k]
            found[i] += 1
            value[k] = -np.inf
            if found[i] == most:
                break
            for t in range(at[k], T):
                if t == at[k]:
                    excluded[n] = excluded[k]
                excluded[n, labels[t]] = True
                at[n] = t
                value[n] = best_of_part(
                    problem, i, scores, n_states, width, hidden, labels, t, excluded[n], restricted, states[n]
                )
                n += 1


def distinct_kbest(
    problem: Any, w: np.ndarray, k: int, n_states: int, hidden: int, n_jobs: int | None = None, width: int | None = None
):
    """The k best labellings end to end (k, positions), their scores (N, k), and how many each example has (N,).

    For problems over states (`partwise.structures.common.hidden`) whose first parts are nodes, `width` of each position (by
    default as many as weights in a row): the first `n_states` are what an output may have there, state s being one of label
    s // hidden.
    """
    width = int(kernels.width(problem)) if width is None else width
    starts, parts = kernels.sizes(problem)
    n = len(starts) - 1
    out, values, found = np.zeros((k, starts[-1]), np.int32), np.full((n, k), -np.inf), np.zeros(n, np.int64)

    def run(chunk):
        distinct_pass(problem, *chunk, w, n_states, width, hidden, np.zeros(parts), starts, out, values, found)

    in_threads(run, chunks(problem), n_jobs)
    return out, values, found
