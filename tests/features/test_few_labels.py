"""Scores of rows are sums of rows of weights, however many labels there are: few of them are summed another way."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from partwise.engine.compilation import compiled_loop
from partwise.features.few_labels import FEW
from partwise.features.rows import emit, make_rows

RNG = np.random.default_rng(0)
X = np.where(RNG.random((12, 9)) < 0.4, 0.0, RNG.normal(size=(12, 9)))


@compiled_loop
def score_all(rows, w, width, out):
    """The scores of all rows, added to what is there."""
    for r in range(len(out)):
        emit(rows, r, w, width, out[r])


@pytest.mark.parametrize("compiled", [False, True], ids=["interpreted", "compiled"])
@pytest.mark.parametrize("kind", ["dense", "sparse", "ones"])
def test_scores_are_products(kind, compiled):
    x = (X != 0).astype(float) if kind == "ones" else X
    rows = make_rows(x if kind == "dense" else scipy.sparse.csr_matrix(x))
    assert type(rows).__name__ == {"dense": "Dense", "sparse": "Sparse", "ones": "Binary"}[kind]
    for width in range(1, FEW + 3):
        for room in (width, width + 3):  # longer rows of scores may hold rubbish at their end
            w, out = RNG.normal(size=9 * width), np.ones((len(x), room))
            (score_all if compiled else score_all.interpreted)(rows, w, width, out)
            np.testing.assert_allclose(out[:, :width], 1.0 + x @ w.reshape(9, width), rtol=1e-12, atol=1e-12)
