"""Packing queries and pairs."""

from __future__ import annotations

import numpy as np
import pytest

from partwise import kernels
from partwise.structures import RankingProblem, pair_problem, ranking_problem
from partwise.structures.ranking.problem import pairs_of, position_weights


def test_one_ideal_ranking_keeps_the_order_of_the_documents():
    problem = ranking_problem(np.zeros((5, 1)), [5], [1, 2, 0, 2, 1], 4)
    assert problem.gold.tolist() == [1, 3, 0, 4]
    one = kernels.with_targets(problem, np.array([3, 1, 4, 0], np.int32))  # what CCCP learns from is convex
    assert type(one) is RankingProblem and kernels.target(one, 0).tolist() == [3, 1, 4, 0]


def test_pairs_of_many_queries():
    first, second, query = pairs_of(np.array([2, 0, 3, 1, 2]), np.array([0, 1, 2, 2, 0, 5, 1, 0]))
    assert list(zip(first, second, query, strict=True)) == [(1, 0, 0), (2, 4, 2), (3, 4, 2), (6, 7, 4)]
    problem = pair_problem(np.eye(3), [0, 1, 2], [1, 2, 0])._replace(targets=np.array([0, 1, 0], np.int32))
    assert kernels.take(problem, np.array([1])).targets.tolist() == [1]


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
