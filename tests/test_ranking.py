"""Rankings: oracles against enumeration and scipy, pairs against a linear SVM, metrics against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from sklearn.metrics import average_precision_score, ndcg_score
from sklearn.svm import LinearSVC

from oracle_cases import Enumeration, pair_cases, ranking_cases
from partwise import kernels, solve
from partwise.engine.compilation import entry, interpret
from partwise.metrics import mean_average_precision, ndcg, ndcg_by_query
from partwise.structures import PartialRankingProblem, RankingProblem, pair_problem, ranking_problem
from partwise.structures.ranking.kernels import position_weights
from partwise.structures.ranking.pairs import pairs_of
from oracle_checks import check_features, check_oracles


@entry
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


@settings(max_examples=60, deadline=None)
@given(pair_cases())
def test_pair_oracles_equal_enumeration(case):
    with interpret():
        check_oracles(*case)
        check_features(*case)


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


def test_one_ideal_ranking_keeps_the_order_of_the_documents():
    problem = ranking_problem(np.zeros((5, 1)), [5], [1, 2, 0, 2, 1], 4)
    assert problem.gold.tolist() == [1, 3, 0, 4]
    one = kernels.with_targets(problem, np.array([3, 1, 4, 0], np.int32))  # what CCCP learns from is convex
    assert type(one) is RankingProblem and kernels.target(one, 0).tolist() == [3, 1, 4, 0]


def test_parts_have_the_features_of_rankings():
    rng = np.random.default_rng(5)
    problem = ranking_problem(rng.normal(size=(4, 3)), [4], k=3)
    parts, by_parts, directly = np.zeros(12), np.zeros(3), np.zeros(3)
    y = np.array([2, 0, 3], np.int32)
    kernels.indicate(problem, 0, y, 2.0, parts)
    kernels.add_parts(problem, 0, parts, 1.0, by_parts)
    kernels.add_features(problem, 0, y, 2.0, directly)
    np.testing.assert_allclose(by_parts, directly)


def test_pairs_of_many_queries():
    first, second, query = pairs_of(np.array([2, 0, 3, 1, 2]), np.array([0, 1, 2, 2, 0, 5, 1, 0]))
    assert list(zip(first, second, query, strict=True)) == [(1, 0, 0), (2, 4, 2), (3, 4, 2), (6, 7, 4)]
    problem = pair_problem(np.eye(3), [0, 1, 2], [1, 2, 0])._replace(targets=np.array([0, 1, 0], np.int32))
    assert kernels.take(problem, np.array([1])).targets.tolist() == [1]


def test_taking_some_queries():
    rng = np.random.default_rng(2)
    problem = ranking_problem(rng.normal(size=(9, 2)), [2, 4, 3], rng.integers(0, 3, 9), 3, ties="first")
    some = kernels.take(problem, np.array([2, 0]))
    w = rng.normal(size=2)
    with interpret():
        for i, j in enumerate((2, 0)):
            for a, b in zip(run(some, i, w, 1.0), run(problem, j, w, 1.0), strict=True):
                np.testing.assert_allclose(a, b)


def test_what_cannot_be_packed():
    with pytest.raises(ValueError, match="sum to the number of documents, 3"):
        ranking_problem(np.zeros((3, 1)), [2])
    with pytest.raises(ValueError, match="finite number >= 0"):
        ranking_problem(np.zeros((2, 1)), [2], [0, -1])
    for bad in ("cube", [0.5], [1.0, 2.0], [1.0, -1.0]):
        with pytest.raises(ValueError, match="do not rise"):
            position_weights(bad, 2)
    np.testing.assert_array_equal(position_weights([3, 2, 1], 2), [3, 2])
    np.testing.assert_allclose(position_weights("log", 3), [1.0, 1.0 / np.log2(3.0), 0.5])
    np.testing.assert_allclose(position_weights("linear", 4), [1.0, 0.75, 0.5, 0.25])
    np.testing.assert_allclose(position_weights("reciprocal", 3), [1.0, 1.0 / 2.0, 1.0 / 3.0])
    assert isinstance(ranking_problem(np.zeros((2, 1)), [2], ties="first"), RankingProblem)


def test_there_is_no_sum_over_rankings():
    problem = ranking_problem(np.eye(3), [3], [2, 1, 0])
    with pytest.raises(TypeError, match="needs the kernel 'expected'"):
        solve(problem, "crf", solver="lbfgs")


def test_pairs_with_the_hinge_are_a_linear_svm_of_differences():
    rng = np.random.default_rng(3)
    x, relevance = rng.normal(size=(11, 3)), rng.integers(0, 3, 11)
    first, second, query = pairs_of(np.array([5, 6]), relevance)
    assert (relevance[first] > relevance[second]).all() and (np.searchsorted([5], first, "right") == query).all()
    problem, weight = pair_problem(x, first, second), 0.5 + query
    with interpret():
        result = solve(problem, "hinge", C=0.3, sample_weight=weight, solver="sdm", tol=1e-6, max_epochs=500, seed=0)
    d = x[first] - x[second]
    referee = LinearSVC(C=0.3, loss="hinge", fit_intercept=False, tol=1e-8, max_iter=200_000, random_state=0)
    both = np.concatenate([d, -d])  # it wants two classes: every pair in both directions, at half the weight
    referee.fit(both, np.repeat([1, -1], len(d)), sample_weight=np.tile(weight / 2, 2))
    np.testing.assert_allclose(result.w, referee.coef_[0], atol=2e-3 * np.abs(result.w).max())


def test_metrics_agree_with_scikit_learn():
    rng = np.random.default_rng(4)
    groups = rng.integers(0, 5, 60)
    relevance, scores = rng.integers(0, 3, 60), rng.integers(0, 12, 60) / 4  # with ties
    for k in (1, 3, 10, None):
        each = [ndcg_score([2.0 ** relevance[own] - 1], [scores[own]], k=k) for own in own_of(groups)]
        np.testing.assert_allclose(ndcg_by_query(relevance, scores, groups, k), each)
        assert ndcg(relevance, scores, groups, k) == pytest.approx(np.mean(each))
    each = [average_precision_score(relevance[own] > 0, scores[own]) for own in own_of(groups)]
    assert mean_average_precision(relevance, scores, groups) == pytest.approx(np.mean(each))


def own_of(groups):
    return [np.flatnonzero(groups == g) for g in dict.fromkeys(groups.tolist())]


def test_queries_without_relevant_documents():
    relevance, scores, groups = [0, 0, 1, 0], [1, 2, 3, 0], [7, 7, 3, 3]
    assert np.isnan(ndcg_by_query(relevance, scores, groups)[0])
    assert [ndcg(relevance, scores, groups, empty=value) for value in (None, 0.0, 1.0)] == [1.0, 0.5, 1.0]
    assert mean_average_precision(relevance, scores, groups, empty=0.0) == 0.5
    assert np.isnan(ndcg([0, 0], [1, 2])) and len(ndcg_by_query([], [])) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, 0], [1.0]), "of one length"),
        (([1, 0], [1.0, 2.0], [1]), "of one length"),
        (([1, -1], [1.0, 2.0]), "relevance must not hold -1. Got it at 1"),
        (([1, 0], [np.nan, 2.0]), "scores must not hold nan. Got it at 0"),
        (([1, 0], [1.0, 2.0], None, 0), "k must be an int"),
    ],
)
def test_metrics_of_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        ndcg(*arguments)
