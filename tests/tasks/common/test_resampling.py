"""Intervals of any measure that is a function of sums over examples."""

import numpy as np
import pytest

from partwise.tasks.common.resampling import Measure, ratio, with_intervals


def test_ratios_of_sums_and_their_intervals():
    right, all_of = np.array([1, 0, 3, 2]), np.array([2, 1, 3, 4])
    found = with_intervals([ratio("share", "", right, all_of), ratio("mean", "", right / all_of, np.ones(4))], 3000, 0.9, 0)
    assert found["share"].value == 0.6 and found["mean"].value == pytest.approx(0.5)
    rng = np.random.default_rng(5)
    drawn = rng.integers(4, size=(3000, 4))
    for name, values in (("share", right[drawn].sum(1) / all_of[drawn].sum(1)), ("mean", (right / all_of)[drawn].mean(1))):
        low, high = np.quantile(values, [0.05, 0.95])
        assert found[name].low == pytest.approx(low, abs=0.04) and found[name].high == pytest.approx(high, abs=0.04)
    assert with_intervals([ratio("share", "", right, all_of)], 3000, 0.9, 0)["share"] == found["share"]  # alone as together


def test_functions_of_sums_nothing_to_count_and_no_draws():
    table = np.array([[1.0, 2.0], [3.0, 4.0]])
    found = with_intervals([Measure("product", "", table, lambda sums: sums[..., 0] * sums[..., 1])], 50, 0.5, 0)["product"]
    assert found.value == 24.0 and 8.0 <= found.low <= found.high <= 48.0
    nothing = with_intervals([ratio("share", "", [0, 0], [0, 0])], 50, 0.5, 0)["share"]
    assert all(np.isnan(nothing))
    alone = with_intervals([ratio("share", "", [1], [2])], 0, 0.5, 0)["share"]
    assert alone.value == 0.5 and np.isnan(alone.low) and np.isnan(alone.high)
    with pytest.raises(ValueError, match="'level' parameter must be a float"):
        with_intervals([ratio("share", "", [1], [2])], 10, 2.0, 0)
