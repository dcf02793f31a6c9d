"""Ranking by pairs: oracles against enumeration, the hinge against a linear SVM."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from sklearn.svm import LinearSVC

from oracle_cases import pair_cases
from oracle_checks import check_agreement, check_features, check_oracles
from partwise import solve
from partwise.engine.compilation import interpret
from partwise.structures import pair_problem
from partwise.structures.ranking.problem import pairs_of


@settings(max_examples=60, deadline=None)
@given(pair_cases())
def test_pair_oracles_equal_enumeration(case):
    with interpret():
        check_oracles(*case)
        check_features(*case)
        check_agreement(*case)


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
