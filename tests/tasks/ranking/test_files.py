"""Queries in svmlight files, as LETOR has them."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
import scipy.sparse

from partwise.datasets import load_ohsumed, read_letor

TEXT = b"""\
# a comment
2 qid:a 1:4 3:1 #docid = 1

0 qid:b 1:8 2:0.5
0 qid:a 1:2 3:3  # docid = 2
1 qid:b 1:9 2:0.5
"""


def test_reading_letor(tmp_path):
    found = read_letor(TEXT, normalize=False)
    np.testing.assert_array_equal(found.X, [[4, 0, 1], [8, 0.5, 0], [2, 0, 3], [9, 0.5, 0]])
    assert found.relevance.tolist() == [2, 0, 0, 1] and found.qid.tolist() == list("abab") and found.notes[2] == "docid = 2"
    assert [own.tolist() for own in found.queries] == [[0, 2], [1, 3]] and found.place(2) == "<bytes>, line 5"
    scaled = read_letor(TEXT)
    np.testing.assert_array_equal(scaled.X, [[1, 0, 0], [0, 0, 0], [0, 0, 1], [1, 0, 0]])  # constant within its query: zero
    (tmp_path / "x.gz").write_bytes(gzip.compress(TEXT))
    np.testing.assert_array_equal(read_letor(tmp_path / "x.gz", n_features=4).X[:, :3], scaled.X)
    assert "4 documents of 2 queries" in repr(found) and len(found.take([0, 2])) == 2


def test_sparse_files_stay_sparse():
    found = read_letor(b"1 qid:1 1:2 90:4\n0 qid:1 90:-8\n1 qid:2 1:3\n", normalize=False)
    assert scipy.sparse.issparse(found.X) and found.X.shape == (3, 90)
    scaled = found.normalized().X.toarray()
    assert scaled[0, 0] == 1.0 and scaled[0, 89] == 0.5 and scaled[1, 89] == -1.0 and scaled[2, 0] == 1.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "no documents"),
        (b"1 1:2\n", "line 1: expected 'qid:' and a query after the relevance"),
        (b"1\n", "line 1: expected 'qid:' and a query after the relevance"),
        (b"0 qid:1 1:2\nx qid:1 1:2\n", "line 2: expected a relevance"),
        (b"0 qid:1 1:2\n0 qid:1 2\n", "line 2: expected a relevance"),
        (b"-1 qid:1 1:2\n", "line 1: relevance must be a finite number >= 0, got -1"),
        (b"1 qid:1 1:2 3:nan\n", "line 1: feature 3 is not a finite number"),
        (b"1 qid:1 0:2\n", "line 1: features are numbered from 1, got 0"),
        (b"1 qid:1 2:2 2:3\n", "line 1: a feature comes twice"),
        (b"1 qid:1 5:2\n", "line 1: feature 5, but there are only 4"),
        (b"1 qid:1 99999999999999999999:2\n", "line 1: feature 99999999999999999999 is beyond the last one"),
    ],
)
def test_bad_files(text, message):
    with pytest.raises(ValueError, match=message):
        read_letor(text, n_features=4)


def test_ohsumed(corpora):
    with pytest.raises(ValueError, match="fold must be"):
        load_ohsumed(6)
    train, valid, test = load_ohsumed(1)
    assert [len(part.queries) for part in (train, valid, test)] == [63, 21, 22] and train.X.shape == (9219, 25)
    assert [len(part.queries) for part in load_ohsumed(2)] == [64 - 1, 22, 21]
    assert train.X.min() == 0.0 and train.X.max() == 1.0


@pytest.mark.parametrize("text", [TEXT, b"1 qid:1 1:2 90:4\n0 qid:1 90:-8\n1 qid:2 1:3\n"], ids=["dense", "sparse"])
def test_features_that_a_file_does_not_tell_of(text):
    found = read_letor(text, normalize=False)
    have = found.X.shape[1]
    wide = found.widened(have + 2)
    assert wide.X.shape == (len(found), have + 2) and found.X.shape == (len(found), have) and found.widened(have) is found
    assert (wide.X[:, :have] != found.X).sum() == 0 and wide.X[:, have:].sum() == 0.0
    with pytest.raises(ValueError, match=f"there are {have} features, but the model was trained with 2"):
        found.widened(2)
