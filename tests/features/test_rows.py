"""Rows of features: how far they lie from their mean."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from partwise.features.rows import make_rows, spread_of


def test_the_spread_of_rows_is_their_variance():
    rng = np.random.default_rng(0)
    x, weight = np.where(rng.random((20, 4)) < 0.3, 0.0, rng.normal(3.0, 1.0, (20, 4))), rng.integers(1, 4, 20)
    often = np.repeat(x, weight, axis=0)
    for kind in (np.asarray, scipy.sparse.csr_matrix, lambda a: scipy.sparse.csr_matrix(a != 0)):
        plain, repeated = (np.asarray(kind(a).todense() if scipy.sparse.issparse(kind(a)) else a, float) for a in (x, often))
        assert spread_of(make_rows(kind(x))) == pytest.approx(plain.var(axis=0).sum())
        assert spread_of(make_rows(kind(x)), weight.astype(float)) == pytest.approx(repeated.var(axis=0).sum())


def test_rows_that_do_not_differ_have_no_spread():
    for x in (np.full((7, 2), 0.1), np.zeros((0, 2)), scipy.sparse.csr_matrix(np.full((7, 2), 0.1))):
        assert spread_of(make_rows(x)) == 0.0
