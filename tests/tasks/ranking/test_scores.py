"""NDCG and mean average precision, against scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, ndcg_score

from partwise.metrics import mean_average_precision, ndcg, ndcg_by_query
from partwise.tasks.ranking.scores import mean_over, members_of, ndcg_at


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


def test_all_depths_in_one_pass():
    rng = np.random.default_rng(6)
    relevance, scores, groups = rng.integers(0, 3, 40).astype(float), rng.integers(0, 9, 40) / 2.0, rng.integers(0, 4, 40)
    relevance[groups == 2] = 0.0
    depths = [1, 2, 5, 30, None]
    each = ndcg_at(relevance, scores, members_of(groups), depths)
    for column, k in zip(each.T, depths, strict=True):
        np.testing.assert_allclose(column, ndcg_by_query(relevance, scores, groups, k))
        assert mean_over(column) == ndcg(relevance, scores, groups, k)
