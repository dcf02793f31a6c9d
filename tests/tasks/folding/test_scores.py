"""Sensitivity and selectivity of base pairs."""

from __future__ import annotations

import numpy as np
import pytest

from partwise.metrics import base_pair_scores
from partwise.tasks.folding.files import read_dot_bracket


def test_measures():
    truth = read_dot_bracket("(((...)))..")[0]
    found = read_dot_bracket(".((....))..")[0]
    scores = base_pair_scores([truth, truth], [truth, found])
    assert scores.sensitivity == pytest.approx((1 + 0) / 2) and scores.complete == 0.5 and scores.pairs == 6
    slips = base_pair_scores([truth], [found], slips=True)
    assert slips.selectivity == 1.0 and slips.sensitivity == pytest.approx(1.0)  # each end is one base off
    none = np.full(11, -1)
    assert base_pair_scores([none], [none]).f1 == 1.0 and base_pair_scores([none], [truth]).f1 == 0.0
    assert base_pair_scores([truth], [none]).selectivity == 0.0 and np.isnan(base_pair_scores([], []).f1)
    with pytest.raises(ValueError, match="sequence 0"):
        base_pair_scores([truth], [none[:3]])
