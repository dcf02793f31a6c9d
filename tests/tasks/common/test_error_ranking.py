"""How well a ranking finds what is wrong."""

import numpy as np
import pytest

from partwise.metrics import average_precision, precision_at, recall_at


def test_average_precision_is_that_of_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(0)
    for n in (1, 2, 10, 200):
        for digits in (0, 1, 5):
            wrong, suspicion = rng.random(n) < 0.3, rng.normal(size=n).round(digits)  # few digits: many ties
            wrong[0] = True
            assert average_precision(wrong, suspicion) == pytest.approx(metrics.average_precision_score(wrong, suspicion))


def test_rankings_at_the_edges():
    assert np.isnan(average_precision([False, False], [1.0, 2.0])) and np.isnan(recall_at([False], [1.0], 1))
    assert average_precision([True, False, False], [np.inf, 0.0, -np.inf]) == 1.0
    assert precision_at([True, True, False, False], [1, 1, 1, 0], 3) == recall_at([1, 1, 0, 0], [0, 0, 0, 0], 2) + 1 / 6
    assert np.isnan(precision_at([True], [0.0], 0)) and recall_at([True, False], [0.0, 1.0]) == 0.0
    with pytest.raises(ValueError, match="of one length"):
        average_precision([True], [1.0, 2.0])
    with pytest.raises(ValueError, match="NaN"):
        average_precision([True, False], [1.0, np.nan])
    with pytest.raises(ValueError, match=r"k must be an int in the range \[0, 1\]"):
        precision_at([True], [1.0], 2)
