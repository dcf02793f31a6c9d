"""Rows of features as svmlight writes them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from partwise.files.svmlight import read_svmlight

TEXT = "# a comment\n+1 1:4 3:-0.5e1 # first\n\n2 qid:7 2:0.5\r\nx\n"


def test_lines_are_taken_apart():
    rows = read_svmlight(TEXT, "some", "a class")
    assert rows.labels == ["+1", "2", "x"] and rows.queries == ["", "7", ""] and rows.notes == ["first", "", ""]
    assert rows.lines.tolist() == [2, 4, 5] and rows.counts.tolist() == [2, 1, 0]
    np.testing.assert_array_equal(rows.matrix(1, 3), [[4, 0, -5], [0, 0.5, 0], [0, 0, 0]])
    np.testing.assert_array_equal(rows.matrix(1, 2), [[4, 0], [0, 0.5], [0, 0]])  # what is beyond is left out
    np.testing.assert_array_equal(rows.matrix(0, 4)[:, 1:], rows.matrix(1, 3))


def test_few_features_are_kept_sparse():
    wide = read_svmlight("1 1:2 90:4\n0 90:-8\n", "some", "a class").matrix(1, 95)
    assert scipy.sparse.issparse(wide) and wide.shape == (2, 95) and wide[1, 89] == -8.0
    empty = read_svmlight("1\n0\n", "some", "a class").matrix(1, 5)
    assert empty.shape == (2, 5) and empty.sum() == 0.0


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 1:2 3", r"some, line 2: expected a class. Got '3'."),
        ("1 a:2", "line 2: expected a class. Got 'a:2'"),
        ("1 1:2:3 4", "line 2: expected a class. Got '1:2:3'"),
        ("1 1:x", "line 2: expected a class. Got '1:x'"),
        ("1 1:3.0_07", "line 2: expected a class. Got '1:3.0_07'"),
        ("1 1²:3", "line 2: expected a class. Got '1²:3'"),
        ("1 1:٣", "line 2: expected a class. Got '1:٣'"),
        ("1 1:nan", "line 2: feature 1 is not a finite number"),
        ("1 7:1e999", "line 2: feature 7 is not a finite number"),
        ("1 1.5:2", "line 2: feature 1.5 is not a whole number"),
        ("1 -3:1", "line 2: feature -3 is negative"),
        ("1 2:1 1:3 2:2", "line 2: a feature comes twice"),
        ("1 99999999999999999999:1", "line 2: feature 99999999999999999999 is beyond the last one"),
    ],
)
def test_errors_say_where_they_are(line, message):
    with pytest.raises(ValueError, match=message):
        read_svmlight(f"0 1:1\n{line}\n0 2:2\n", "some", "a class")
