"""Trees of spans without a grammar, by enumeration; the layers for torch have more tests of the same loops."""

from __future__ import annotations

import numpy as np
import pytest

from partwise import kernels
from partwise.engine.compilation import compiled_loop
from partwise.structures.constituency.free import SpanProblem, number_of


@compiled_loop
def all_oracles(problem, i, theta, y, ys, values, parts):
    value = kernels.best(problem, i, theta, y)
    return value, kernels.kbest(problem, i, theta, ys, values), kernels.expected(problem, i, theta, parts)


@pytest.mark.parametrize("spread", [1.0, 1000.0])
def test_oracles_by_enumeration(spread):
    rng = np.random.default_rng(0)
    lengths, L, k = [0, 1, 2, 4], 2, 4
    problem = SpanProblem(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64), L)
    for i, n in enumerate(lengths):
        theta = spread * rng.normal(size=kernels.n_parts(problem, i))
        if n > 2:
            theta[number_of(1, 3) * L : (number_of(1, 3) + 1) * L] = -np.inf
        parts, y = np.full(len(theta), 7.0), np.zeros(kernels.length(problem, i), np.int32)
        ys, values = np.zeros((k, len(y)), np.int32), np.full(k, 7.0)
        value, found, log_z = all_oracles(problem, i, theta, y, ys, values, parts)
        outputs = list(kernels.outputs(problem, i))
        scores = np.array([theta[output].sum() for output in outputs])
        order = np.sort(scores[scores > -np.inf])[::-1][:k]
        assert value == pytest.approx(order[0]) == pytest.approx(theta[y].sum())
        assert values[:found] == pytest.approx(order) and [theta[row].sum() for row in ys[:found]] == pytest.approx(order)
        assert len({tuple(sorted(row)) for row in ys[:found]}) == found
        high = scores.max()
        weights = np.exp(scores - high)
        assert log_z == pytest.approx(high + np.log(weights.sum()))
        wanted = np.zeros(len(theta))
        for output, weight in zip(outputs, weights / weights.sum(), strict=True):
            wanted[output] += weight
        np.testing.assert_allclose(parts, wanted, atol=1e-12)


def test_nothing_is_possible():
    problem = SpanProblem(np.array([0, 2]), 1)
    theta, y, parts = np.array([0.0, -np.inf, 0.0]), np.zeros(3, np.int32), np.full(3, 7.0)
    value, found, log_z = all_oracles(problem, 0, theta, y, np.zeros((2, 3), np.int32), np.zeros(2), parts)
    assert value == log_z == -np.inf and found == 0 and not parts.any()


def test_numbers_of_spans():
    spans = [(i, j) for j in range(1, 40) for i in range(j)]
    assert [number_of(i, j) for i, j in spans] == list(range(len(spans)))
