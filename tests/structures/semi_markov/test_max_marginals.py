"""Max-marginals of segmentations against enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from oracle_cases import segment_cases
from oracle_checks import check_max_marginals
from partwise import kernels
from partwise.structures import segment_problem

pytestmark = pytest.mark.interpreted


@settings(max_examples=60, deadline=None)
@given(segment_cases())
def test_they_equal_enumeration(case):
    check_max_marginals(*case)


def test_an_empty_sequence_has_none_and_one_token_has_its_scores():
    problem = segment_problem(np.ones((1, 1)), [0, 1], n_labels=2)
    w = np.arange(kernels.n_weights(problem), dtype=float)
    check_max_marginals(problem, w)
    assert kernels.max_marginals(problem, 0, np.zeros(kernels.n_parts(problem, 0)), np.zeros(kernels.n_parts(problem, 0))) == 0.0
