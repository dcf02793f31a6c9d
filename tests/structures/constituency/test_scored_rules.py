"""Trees of spans with scores of rules, by enumeration; the layers for torch have more tests of the same loops."""

from __future__ import annotations

import numpy as np
import pytest

from partwise import kernels
from partwise.engine.compilation import compiled_loop
from partwise.structures.constituency import SpanProblem, scored_rule_problem
from partwise.structures.constituency.free import number_of

pytestmark = pytest.mark.interpreted


@compiled_loop
def all_oracles(problem, i, theta, y, ys, values, parts):
    value = kernels.best(problem, i, theta, y)
    return value, kernels.kbest(problem, i, theta, ys, values), kernels.expected(problem, i, theta, parts)


@pytest.mark.parametrize("spread", [1.0, 1000.0])
@pytest.mark.parametrize(("L", "S"), [(2, 2), (3, 1)])
def test_oracles_by_enumeration(spread, L, S):
    rng = np.random.default_rng(0)
    lengths, k = [0, 1, 2, 4], 4
    problem = scored_rule_problem(np.array(lengths), L, S)
    for i, n in enumerate(lengths):
        theta = spread * rng.normal(size=kernels.n_parts(problem, i))
        if n > 2:
            theta[number_of(1, 3) * L] = -np.inf
            theta[n * (n + 1) // 2 * L + 1] = -np.inf  # a rule
        parts, y = np.full(len(theta), 7.0), np.zeros(kernels.length(problem, i), np.int32)
        ys, values = np.zeros((k, len(y)), np.int32), np.full(k, 7.0)
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


def test_rules_that_all_score_nothing_leave_spans():
    n, L, rng = 6, 2, np.random.default_rng(1)
    spans = rng.normal(size=n * (n + 1) // 2 * L)
    problem, plain = scored_rule_problem(np.array([n]), L, L), SpanProblem(np.array([0, n]), L)
    theta = np.concatenate([spans, np.zeros(L**3)])
    parts, of_spans = np.empty(len(theta)), np.empty(len(spans))
    y, other = np.zeros(2 * n - 1, np.int32), np.zeros(2 * n - 1, np.int32)
    assert kernels.best(problem, 0, theta, y) == pytest.approx(kernels.best(plain, 0, spans, other)) and (y == other).all()
    assert kernels.expected(problem, 0, theta, parts) == pytest.approx(kernels.expected(plain, 0, spans, of_spans))
    np.testing.assert_allclose(parts[: len(spans)], of_spans, atol=1e-12)
    assert parts[len(spans) :].sum() == pytest.approx(n - 1)


def test_labels_without_rules_are_above_words_only():
    problem = scored_rule_problem(np.array([2]), 2, 1)
    theta = np.zeros(6 + 4)
    theta[number_of(0, 2) * 2] = -np.inf  # the whole, with the label that has rules
    y, parts = np.zeros(3, np.int32), np.full(10, 7.0)
    value, found, log_z = all_oracles(problem, 0, theta, y, np.zeros((2, 3), np.int32), np.zeros(2), parts)
    assert value == log_z == -np.inf and found == 0 and not parts.any()
    assert kernels.value_of(problem, 0, np.zeros(10), np.array([3, 0, 4], np.int32)) == -np.inf
