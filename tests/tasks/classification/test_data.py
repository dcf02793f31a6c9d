"""What a classifier is given: checked without scikit-learn, in its words."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse

from partwise.tasks.classification.data import Truth, check_names, names_of, read_classes, read_matrix


class Frame:
    """As much of a data frame as anyone looks at."""

    def __init__(self, values, columns):
        self.values, self.columns, self.shape = np.asarray(values), columns, np.shape(values)

    def __len__(self):
        return len(self.values)

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values, dtype)


def test_nothing_of_scikit_learn_is_imported():
    code = (
        "import sys; from partwise.tasks.classification.estimator import Classifier; "
        "Classifier(solver='dca', max_epochs=1, loss='crf').fit([[0.0], [1.0]], [0, 1]).predict_proba([[0.5]]); "
        "assert not [name for name in sys.modules if name.startswith('sklearn')]"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PARTWISE_INTERPRET": "1"})


def test_matrices_of_all_kinds():
    expected = [[0.0, 1.0], [2.0, 0.0]]
    for given in (
        expected,
        np.array(expected, np.float32),
        np.array(expected, object),
        [["0", "1"], ["2", "0"]],
        Frame(expected, "ab"),
    ):
        found = read_matrix(given, np.float64)
        assert found.dtype == np.float64 and found.flags.c_contiguous
        np.testing.assert_array_equal(found, expected)
    for kind in (scipy.sparse.csr_matrix, scipy.sparse.csc_array, scipy.sparse.coo_matrix):
        found = read_matrix(kind(expected), np.float32)
        assert found.format == "csr" and found.dtype == np.float32
        np.testing.assert_array_equal(found.toarray(), expected)


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ([1.0, 2.0], ValueError, "Expected 2D array, got 1D array instead. Reshape your data"),
        (np.zeros((2, 2, 2)), ValueError, "Expected 2D array, got 3D array instead"),
        (np.zeros((0, 3)), ValueError, r"Found array with 0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 1 is required"),
        (np.zeros((3, 0)), ValueError, r"Found array with 0 feature\(s\) \(shape=\(3, 0\)\) while a minimum of 1 is required"),
        (np.array([[1j]]), ValueError, "Complex data not supported"),
        (scipy.sparse.csr_matrix([[1j]]), ValueError, "Complex data not supported"),
        ([["a"]], ValueError, "could not convert string to float"),
        (np.array([[{}]], object), TypeError, "argument must be a string or a real number"),
        ([[0.0], [np.nan]], ValueError, "NaN or infinity: row 1 holds nan"),
        (np.array([[1e300]]), ValueError, "NaN or infinity: row 0 holds inf"),  # in float32
    ],
)
def test_what_is_no_matrix(X, error, message):
    with pytest.raises(error, match=message):
        read_matrix(X, np.float32)


def test_classes_of_all_kinds():
    for given in (["a", "b"], np.array(["a", "b"], object), np.array([1, 2], object), [True, False], [1.0, 2.0], (3, 4)):
        assert read_classes(given, 2, "Someone").tolist() == list(given)
    assert read_classes(["a", None], 2, "Someone").is_partial
    with pytest.warns(UserWarning, match="A column-vector y was passed when a 1d array was expected"):
        assert read_classes([[1], [2]], 2, "Someone").tolist() == [1, 2]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "Someone requires y to be passed, but the target y is None"),
        ([1, 2, 3], r"Found input variables with inconsistent numbers of samples: \[2, 3\]"),
        ([[1, 2], [3, 4]], r"y should be a 1d array, got an array of shape \(2, 2\)"),
        ([0.5, 1.0], "Unknown label type: continuous"),
        ([np.nan, 1.0], "Input y contains NaN or infinity: example 0 has nan"),
        (np.array([1, "a"], object), "Unknown label type: unknown. .* y holds int, str"),
        (np.array([1j, 2]), "Unknown label type: complex128"),
        (np.array(["2020-01-01", "2020-01-02"], "M8[D]"), "Unknown label type"),
    ],
)
def test_what_are_no_classes(y, message):
    with pytest.raises(ValueError, match=message):
        read_classes(y, 2, "Someone")


def test_names_of_features():
    known = names_of(Frame([[1, 2]], ["a", "b"]))
    assert known.tolist() == ["a", "b"] and known.dtype == object
    assert names_of(np.zeros((1, 2))) is None and names_of(Frame([[1, 2]], [0, 1])) is None
    with pytest.raises(TypeError, match="Feature names are only supported if all input features have string names"):
        names_of(Frame([[1, 2]], ["a", 1]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_names(known, known, "Someone")
        check_names(None, None, "Someone")
    with pytest.warns(UserWarning, match="X does not have valid feature names, but Someone was fitted with feature names"):
        check_names(known, None, "Someone")
    with pytest.warns(UserWarning, match="X has feature names, but Someone was fitted without feature names"):
        check_names(None, known, "Someone")
    begin = "The feature names should match those that were passed during fit.\n"
    with pytest.raises(ValueError, match=f"{begin}Feature names must be in the same order as they were in fit.\n"):
        check_names(known, known[::-1], "Someone")
    with pytest.raises(
        ValueError, match=f"{begin}Feature names unseen at fit time:\n- c\nFeature names seen at fit time, yet now"
    ):
        check_names(known, np.array(["a", "c"], object), "Someone")


def test_candidates():
    truth = Truth(np.array([1, 3, 0]), np.array([[True, False, True]]))
    assert truth.fits(3).tolist() == [[False, True, False], [True, False, True], [True, False, False]]
    assert truth[1:].fits(3).tolist() == truth.fits(3)[1:].tolist() and len(truth) == 3
