"""How columns of files become features and classes."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from partwise.tasks.classification.files import read_examples
from partwise.tasks.classification.table_form import as_classes, as_dict, check_classes, from_dict, learn_form
from partwise.tasks.common.command_options import Refusal

TEXT = b"colour,length,kind,class\nred,1.5,a,x\nblue,2,b,y\nred,3,a,x\n"


def form_of(text=TEXT, label=None, drop=(), fill="refuse"):
    return learn_form(read_examples(text), label, drop, fill)


def test_words_are_features_of_their_own():
    form = form_of()
    assert form.features == ["colour=blue", "colour=red", "length", "kind=a", "kind=b"] and form.label == "class"
    table = read_examples(TEXT)
    np.testing.assert_array_equal(form.matrix(table), [[0, 1, 1.5, 1, 0], [1, 0, 2, 0, 1], [0, 1, 3, 1, 0]])
    assert form.labels(table) == ["x", "y", "x"]
    later = read_examples(b"kind,more,length,colour\nb,9,7,green\n")  # in another order, without classes, with a new word
    np.testing.assert_array_equal(form.matrix(later), [[0, 0, 7, 0, 1]])
    assert form.labels(later) is None


def test_forms_are_kept():
    for text in (TEXT, b"1 1:2\n2 3:1\n"):
        form = form_of(text)
        assert from_dict(as_dict(form)) == form


def test_many_words_make_a_sparse_matrix():
    text = "".join(f"word{k},{k % 2}\n" for k in range(30)).encode()
    matrix = form_of(text).matrix(read_examples(text))
    assert scipy.sparse.issparse(matrix) and matrix.shape == (30, 30) and matrix.sum() == 30


def test_the_column_of_classes():
    assert form_of(b"y,a\n1,2\n3,4\n").label == "y" and form_of(b"y,Class\n1,2\n3,4\n").label == "Class"
    assert form_of(b"a,b\n1,2\n3,4\n").label == "b" and "the last" in form_of(b"a,b\n1,2\n3,4\n").said(False)
    assert form_of(b"1,2,3\n3,4,5\n").label_number == 2 and form_of(b"1,2,3\n3,4,5\n", "0").label_number == 0
    assert form_of(b"1,2,3\n3,4,5\n", "-2").label_number == 1 and form_of(TEXT, "kind").label == "kind"
    assert "by its title" in form_of().said(False) and form_of(label="kind").said(True) == "classes: column 'kind'"
    with pytest.raises(
        Refusal, match=r"--label-column size: there is no such column. There are 4, counted from 0: colour, length"
    ):
        form_of(label="size")
    with pytest.raises(Refusal, match="--label-column 4: there is no such column"):
        form_of(label="4")
    with pytest.raises(Refusal, match="and they have no titles"):
        form_of(b"1,2\n3,4\n", "size")
    assert form_of(drop=["colour", "2"]).features == ["length"]
    with pytest.raises(Refusal, match="there is no column to learn from"):
        form_of(drop=["0", "1", "2"])
    with pytest.raises(Refusal, match="is svmlight, which has no columns"):
        form_of(b"1 1:2\n2 3:1\n", "0")


def test_columns_without_titles_are_counted():
    form = form_of(b"x,1,2\ny,3,4\n", "0")
    assert form.matrix(read_examples(b"z,5,6\n")).tolist() == form.matrix(read_examples(b"5,6\n")).tolist() == [[5, 6]]
    with pytest.raises(Refusal, match="there are 4 columns; the model learnt from 3, one of them the classes"):
        form.matrix(read_examples(b"1,2,3,4\n"))
    with pytest.raises(Refusal, match="there is no column 'length', which the model learnt from; there are colour, size"):
        form_of().matrix(read_examples(b"colour,size\nred,1\n"))
    with pytest.raises(Refusal, match=r"line 3, column 1 \(length\): expected a number, as in training. Got 'long'"):
        form_of().matrix(read_examples(b"colour,length,kind\nred,1,a\nred,long,a\n"))


def test_missing_values():
    text = b"a,b,class\n1,u,x\n,v,y\n5,NA,x\n"
    with pytest.raises(Refusal, match=r"line 3, column 0 \(a\): there is no value. --missing zero or --missing mean"):
        form_of(text)
    table = read_examples(text)
    np.testing.assert_array_equal(form_of(text, fill="zero").matrix(table), [[1, 1, 0], [0, 0, 1], [5, 0, 0]])
    np.testing.assert_array_equal(form_of(text, fill="mean").matrix(table)[:, 0], [1, 3, 5])
    with pytest.raises(Refusal, match=r"line 2, column 3 \(class\)|line 3, column 0 \(colour\): there is no value"):
        form_of().matrix(read_examples(b"colour,length,kind\nred,1,a\n?,2,a\n"))
    with pytest.raises(Refusal, match="line 1, column 0: inf is not a finite number"):
        form_of(b"inf,2\n3,4\n").matrix(read_examples(b"inf,2\n3,4\n"))


def test_svmlight_is_counted_from_zero_if_it_says_so():
    form = form_of(b"1 1:2 4:1\n2 3:1\n")
    assert form.first == 1 and form.n_features == 4 and form.features[0] == "1"
    assert form.matrix(read_examples(b"2 2:5 9:1\n")).tolist() == [[0, 5, 0, 0]]  # what it never saw says nothing
    with pytest.raises(Refusal, match="line 2: features of the model are numbered from 1. Got 0"):
        form.matrix(read_examples(b"2 2:5\n1 0:3\n"))
    assert form_of(b"1 0:2 4:1\n2 3:1\n").n_features == 5
    with pytest.raises(Refusal, match="there are no features"):
        form_of(b"1 # 1:2\n2 # 1:2\n")


def test_classes_are_whole_numbers_or_words():
    table = read_examples(b"1,2\n3,4\n5,6\n")
    assert as_classes(["1", "2.0", "+3"], table).tolist() == [1, 2, 3] and as_classes(["1", "b", "c"], table).tolist() == [
        "1",
        "b",
        "c",
    ]
    assert as_classes(["1", "?", "3"], table, "?") == [1, None, 3] and as_classes(["a", "?", "c"], table, "?") == ["a", None, "c"]
    with pytest.raises(Refusal, match="line 2: there is no class. --unknown-label '' says that it is not known"):
        as_classes(["a", "", "c"], table)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            b"1,x\n2,x\n",
            "all 2 rows are of one class, 'x' .classes: column 1, counted from 0, the last",
        ),
        (b"1,2\n2,0.25\n", "line 2: 0.25 is a quantity, not a class .* Say which column they are in: --label-column"),
        ("".join(f"1,{k}\n" for k in range(25)).encode(), "25 of 25 rows are the only ones of their class"),
        (b"1,2 1:3\n2 2:1\n", "line 1: '1,2' is more than one class"),
    ],
)
def test_what_is_no_column_of_classes(text, message):
    table = read_examples(text)
    form = learn_form(table, None, (), "refuse")
    with pytest.raises(Refusal, match=message):
        check_classes(form.labels(table), table, form, False)
