"""The alignment of maximum expected accuracy."""

from __future__ import annotations

import numpy as np

from partwise import interpret
from partwise.structures.alignment.accuracy import most_expected


def test_the_most_expected_alignment():
    p = np.array([[0.4, 0.35, 0.0], [0.3, 0.3, 0.3], [0.0, 0.05, 0.6]])
    with interpret():
        assert most_expected(p).tolist() == [0, 1, 2]
        assert most_expected(np.array([[0.005, 0.9]])).tolist() == [1] and most_expected(np.zeros((2, 2))).tolist() == [-1, -1]
