"""Projective trees with scores of siblings, by enumeration; the layers for torch have more tests of the same loops."""

from __future__ import annotations

import numpy as np
import pytest

from partwise import kernels
from partwise.engine.compilation import compiled_loop
from partwise.structures.dependency import SiblingTreeProblem, tree_problem

pytestmark = pytest.mark.interpreted


@compiled_loop
def all_oracles(problem, i, theta, y, ys, values, parts):
    value = kernels.best(problem, i, theta, y)
    return value, kernels.kbest(problem, i, theta, ys, values), kernels.expected(problem, i, theta, parts)


@pytest.mark.parametrize("spread", [1.0, 1000.0])
@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("L", [1, 2])
def test_oracles_by_enumeration(spread, single_root, L):
    rng = np.random.default_rng(0)
    lengths, k = [0, 1, 2, 4 if L == 1 else 3], 4
    problem = SiblingTreeProblem(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64), L, single_root)
    for i, n in enumerate(lengths):
        theta = spread * rng.normal(size=kernels.n_parts(problem, i))
        for m in range(n):  # of a word with itself
            theta[(m * (n + 1) + m + 1) * L : (m * (n + 1) + m + 2) * L] = -np.inf
        if n > 2:
            theta[(n + 2) * L] = -np.inf  # the first word below the second
            theta[n * (n + 1) * L + (2 * (n + 1) + 1) * (n + 1)] = -np.inf  # the third as the nearest word of the first
        parts, y = np.full(len(theta), 7.0), np.zeros(n, np.int32)
        ys, values = np.zeros((k, n), np.int32), np.full(k, 7.0)
        value, found, log_z = all_oracles(problem, i, theta, y, ys, values, parts)
        outputs = list(kernels.outputs(problem, i))
        scores = np.array([kernels.value_of(problem, i, theta, output) for output in outputs])
        order = np.sort(scores[scores > -np.inf])[::-1][:k]
        assert value == pytest.approx(order[0]) == pytest.approx(kernels.value_of(problem, i, theta, y))
        assert values[:found] == pytest.approx(order) and len({tuple(row) for row in ys[:found]}) == found
        high = scores.max()
        weights = np.exp(scores - high)
        assert log_z == pytest.approx(high + np.log(weights.sum()))
        wanted = np.zeros(len(theta))
        for output, weight in zip(outputs, weights / weights.sum(), strict=True):
            kernels.indicate(problem, i, output, weight, wanted)
        np.testing.assert_allclose(parts, wanted, atol=1e-9)


def test_without_scores_of_siblings_they_are_projective_trees():
    n, rng = 12, np.random.default_rng(1)
    starts, arcs = np.array([0, n]), rng.normal(size=n * (n + 1))
    problem = SiblingTreeProblem(starts, 1, True)
    plain = tree_problem(np.zeros((n * (n + 1), 0)), [n], projective=True)
    theta = np.concatenate([arcs, np.zeros(n * (n + 1) * (n + 1))])
    parts, of_arcs = np.empty(len(theta)), np.empty(len(arcs))
    y, heads = np.zeros(n, np.int32), np.zeros(n, np.int32)
    for m in range(n):
        arcs[m * (n + 1) + m + 1] = theta[m * (n + 1) + m + 1] = -np.inf
    assert kernels.best(problem, 0, theta, y) == pytest.approx(kernels.best(plain, 0, arcs, heads)) and (y == heads).all()
    assert kernels.expected(problem, 0, theta, parts) == pytest.approx(kernels.expected(plain, 0, arcs, of_arcs))
    np.testing.assert_allclose(parts[: len(arcs)], of_arcs, atol=1e-12)
    assert parts[len(arcs) :].sum() == pytest.approx(n)  # each word has one next sibling, or none


def test_nothing_is_possible():
    problem = SiblingTreeProblem(np.array([0, 2]), 1, True)
    theta, y, parts = np.full(24, -np.inf), np.zeros(2, np.int32), np.full(24, 7.0)
    value, found, log_z = all_oracles(problem, 0, theta, y, np.zeros((2, 2), np.int32), np.zeros(2), parts)
    assert value == log_z == -np.inf and found == 0 and not parts.any()
