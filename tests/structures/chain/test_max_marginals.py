"""Max-marginals of chains against enumeration."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from oracle_cases import chain_cases, multiclass_cases, pair_chain_cases
from oracle_checks import check_max_marginals

pytestmark = pytest.mark.interpreted


@settings(max_examples=40, deadline=None)
@given(chain_cases())
def test_those_of_chains_equal_enumeration(case):
    check_max_marginals(*case)


@settings(max_examples=40, deadline=None)
@given(pair_chain_cases())
def test_those_of_chains_with_features_of_pairs_equal_enumeration(case):
    check_max_marginals(*case)


@settings(max_examples=20, deadline=None)
@given(multiclass_cases())
def test_those_of_classes_are_their_scores(case):
    check_max_marginals(*case)
