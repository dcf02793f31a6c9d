"""Pictures that are made up."""

from __future__ import annotations

import numpy as np
import pytest

from partwise.datasets import make_pictures


def test_generated_pictures():
    X, y = make_pictures(3, seed=1, size=(9, 7), n_labels=5, noise=0.0)
    again = make_pictures(3, seed=1, size=(9, 7), n_labels=5, noise=0.0)
    assert X.shape == (3, 9, 7, 3) and y.max() <= 4 and np.array_equal(X, again[0]) and np.array_equal(y, again[1])
    assert len(np.unique(X.reshape(-1, 3), axis=0)) == len(np.unique(y))  # a colour for each label
    with pytest.raises(ValueError, match="'n_labels' parameter of make_pictures"):
        make_pictures(n_labels=1)
