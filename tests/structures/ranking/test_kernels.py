"""Rankings: oracles against enumeration and scipy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings

from oracle_cases import Enumeration, ranking_cases
from oracle_checks import check_features
from partwise import kernels, solve
from partwise.engine.compilation import compiled_loop, interpret
from partwise.metrics import ndcg
from partwise.structures import PartialRankingProblem, ranking_problem


@compiled_loop
def ranked(problem, i, w, c, theta, y, ys, values):
    """Scores, the best ranking, the k best."""
    kernels.score(problem, i, w, theta)
    kernels.add_cost(problem, i, c, theta)
    value = kernels.best(problem, i, theta, y)
    return value, kernels.kbest(problem, i, theta, ys, values)


def run(problem, i, w, c, most=4):
    n, k = kernels.n_parts(problem, i), kernels.length(problem, i)
    theta, y, ys, values = np.full(n, 7.0), np.full(k, 99, np.int32), np.full((most, k), 99, np.int32), np.full(most, 7.0)
    value, found = ranked(problem, i, w, c, theta, y, ys, values)
    return theta, y, value, ys[:found], values[:found]


@settings(max_examples=80, deadline=None)
@given(ranking_cases())
def test_ranking_oracles_equal_enumeration(case):
    problem, w = case
    size = max(1.0, np.abs(w).max(initial=0.0))
    with interpret():
        for i in range(kernels.n_examples(problem)):
            for c in (0.0, 1.0, -1.0):
                theta, y, value, ys, values = run(problem, i, w, c)
                truth = Enumeration(problem, i, theta)
                np.testing.assert_allclose(truth.values, truth.features @ w + c * truth.costs, rtol=1e-9, atol=1e-9 * size)
                assert value == pytest.approx(truth.best, rel=1e-12, abs=1e-12 * size)
                assert kernels.value_of(problem, i, theta, y) == pytest.approx(value, rel=1e-12, abs=1e-12 * size)
                np.testing.assert_allclose(values, np.sort(truth.values)[::-1][:4], rtol=1e-12, atol=1e-12 * size)
                assert len({tuple(row) for row in ys}) == len(ys)
                assert truth.costs.min() == 0.0 and truth.costs.max() <= 1.0 + 1e-12
                check_completion(problem, i, theta, truth)
        check_features(problem, w)


def check_completion(problem, i, theta, truth):
    """The best acceptable ranking is the best of those that cost nothing; all of them, where nothing is relevant."""
    y = np.zeros(kernels.length(problem, i), np.int32)
    value = kernels.complete(problem, i, theta, y)
    if isinstance(problem, PartialRankingProblem):
        assert value == pytest.approx(truth.values[truth.costs < 1e-12].max(), rel=1e-9, abs=1e-9)
    else:
        np.testing.assert_array_equal(y, problem.gold[problem.places[i] : problem.places[i + 1]])
    assert kernels.cost(problem, i, y) == 0.0


def test_best_rankings_are_scipys_assignments_and_sorted_without_a_cost():
    rng = np.random.default_rng(0)
    for _ in range(60):
        n, k = int(rng.integers(1, 60)), int(rng.integers(1, 13))
        x, w = rng.normal(size=(n, 3)), rng.normal(size=3)
        problem = ranking_problem(x, [n], rng.integers(0, 3, n), k, rng.choice(["log", "linear", "reciprocal"]), "first")
        for c in (0.0, 1.0, 20.0, -1.0):
            theta, y, value, *_ = run(problem, 0, w, c, 1)
            table = theta.reshape(min(k, n), n)
            rows, columns = scipy.optimize.linear_sum_assignment(table, maximize=True)
            assert value == pytest.approx(table[rows, columns].sum(), abs=1e-9) and len(set(y.tolist())) == min(k, n)
            if c == 0.0:
                np.testing.assert_array_equal(y, np.argsort(-(x @ w))[:k])


def test_the_cost_is_one_minus_ndcg():
    rng = np.random.default_rng(1)
    relevance, s = rng.integers(0, 3, 30), rng.normal(size=30)
    problem = ranking_problem(np.zeros((30, 1)), [30], relevance, 10)
    y = np.argsort(-s)[:10].astype(np.int32)
    with interpret():
        assert kernels.cost(problem, 0, y) == pytest.approx(1.0 - ndcg(relevance, s))
    assert isinstance(problem, PartialRankingProblem) and type(problem._replace()) is PartialRankingProblem
    other = ranking_problem(np.zeros((30, 1)), [30], relevance, 10, positions="linear")  # of scores, not of the cost
    np.testing.assert_allclose(other.scores, np.linspace(1.0, 0.1, 10))
    np.testing.assert_array_equal(other.discounts, problem.discounts)


def test_parts_have_the_features_of_rankings():
    rng = np.random.default_rng(5)
    problem = ranking_problem(rng.normal(size=(4, 3)), [4], k=3)
    parts, by_parts, directly = np.zeros(12), np.zeros(3), np.zeros(3)
    y = np.array([2, 0, 3], np.int32)
    kernels.indicate(problem, 0, y, 2.0, parts)
    kernels.add_parts(problem, 0, parts, 1.0, by_parts)
    kernels.add_features(problem, 0, y, 2.0, directly)
    np.testing.assert_allclose(by_parts, directly)


def test_taking_some_queries():
    rng = np.random.default_rng(2)
    problem = ranking_problem(rng.normal(size=(9, 2)), [2, 4, 3], rng.integers(0, 3, 9), 3, ties="first")
    some = kernels.take(problem, np.array([2, 0]))
    w = rng.normal(size=2)
    with interpret():
        for i, j in enumerate((2, 0)):
            for a, b in zip(run(some, i, w, 1.0), run(problem, j, w, 1.0), strict=True):
                np.testing.assert_allclose(a, b)


def test_there_is_no_sum_over_rankings():
    problem = ranking_problem(np.eye(3), [3], [2, 1, 0])
    with pytest.raises(TypeError, match="needs the kernel 'expected'"):
        solve(problem, "crf", solver="lbfgs")
