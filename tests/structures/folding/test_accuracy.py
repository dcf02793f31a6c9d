"""The structure of maximum expected accuracy."""

from __future__ import annotations

import numpy as np
import pytest

from partwise import kernels, passes
from partwise.engine.compilation import interpret
from partwise.structures import folding_problem
from partwise.structures.folding.accuracy import most_accurate


def test_the_most_accurate_structure_by_enumeration():
    rng = np.random.default_rng(3)
    problem = folding_problem(["".join(rng.choice(list("ACGU"), 12))], pairs=None)
    parts = passes_of(problem, rng.normal(size=kernels.n_weights(problem)) * 0.5)
    for gamma in (0.2, 1.0, 5.0):
        y = np.zeros(12, np.int32)
        with interpret():
            value = most_accurate(parts, 12, gamma, y)
        best = max(accuracy(parts, 12, gamma, structure) for structure in kernels.outputs(problem, 0))
        assert value == pytest.approx(best) and accuracy(parts, 12, gamma, y) == pytest.approx(best)


def test_the_most_accurate_structure_has_pairs_next_to_each_other():
    parts, y = np.full(4 + 6, 0.1), np.zeros(4, np.int32)
    parts[[4, 9]] = 0.8  # the pairs of the first two and of the last two bases
    with interpret():
        assert most_accurate(parts, 4, 1.0, y) == pytest.approx(3.2)
    assert y.tolist() == [1, 0, 3, 2]


def passes_of(problem, w):
    """Marginals of bases without a partner, and of pairs."""
    return passes.parts(problem, 0, w, 1.0)[problem.n_tied :]


def accuracy(parts, n, gamma, y):
    pairs = np.zeros((n, n))
    pairs[np.triu_indices(n, 1)] = parts[n:]
    return sum(parts[i] if j < 0 else 2 * gamma * pairs[i, j] for i, j in enumerate(y) if j < 0 or j > i)
