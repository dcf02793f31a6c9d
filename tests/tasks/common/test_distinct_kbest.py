"""The k best labellings where labels have hidden states, against enumeration: of chains and of segments."""

from __future__ import annotations

import numpy as np
import pytest

from partwise import kernels
from partwise.structures import chain_problem, segment_problem
from partwise.tasks.common.distinct_kbest import distinct_kbest

pytestmark = pytest.mark.interpreted


@pytest.mark.parametrize("kind", ["chain", "segments", "segments with ends"])
@pytest.mark.parametrize("k", [1, 3, 50])
def test_they_are_those_of_enumeration(kind, k):
    rng, hidden = np.random.default_rng(0), 2
    x, lengths = rng.normal(size=(4, 2)), [3, 0, 1]
    if kind == "chain":
        problem, n = chain_problem(x, lengths, n_labels=4), 4
    else:
        problem, n = segment_problem(x, lengths, n_labels=4, limits=[2, 2, 1, 1], use_ends="ends" in kind), 8
    w = rng.normal(size=kernels.n_weights(problem))
    out, values, found = distinct_kbest(problem, w, k, n, hidden)
    for i in range(3):
        theta = np.zeros(kernels.n_parts(problem, i))
        kernels.score(problem, i, w, theta)
        best: dict[tuple[int, ...], float] = {}
        for y in kernels.outputs(problem, i):
            labels = tuple((y // hidden).tolist())
            best[labels] = max(best.get(labels, -np.inf), kernels.value_of(problem, i, theta, y))
        ranked = sorted(best.items(), key=lambda one: -one[1])[:k]
        assert found[i] == len(ranked)
        np.testing.assert_allclose(values[i, : found[i]], [value for _, value in ranked])
        first, last = problem.starts[i : i + 2]
        assert [tuple(own) for own in out[: found[i], first:last].tolist()] == [labels for labels, _ in ranked]
