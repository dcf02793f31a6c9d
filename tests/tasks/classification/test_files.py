"""Examples in files: what is found out about them, and what is refused, with the line."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from partwise.files.parquet import as_parquet
from partwise.tasks.classification.files import SvmlightTable, Table, read_examples, with_columns


@pytest.mark.parametrize(
    ("text", "separator"),
    [
        ("1,2,a\n3,4,b\n", ","),
        ("1\t2\ta\n3\t4\tb\n", "\t"),
        ("1,5;2;a\n3,25;4;b\n", ";"),
        ("1|2|a\n3|4|b\n", "|"),
        ("1 2  a\n3 4 b\n", " "),
    ],
)
def test_the_separator_is_found_out(text, separator):
    table = read_examples(text.encode())
    assert table.separator == separator and len(table) == 2 and len(table.columns) == 3 and table.titles is None
    first = [1.5, 3.25] if separator == ";" else [1.0, 3.0]
    assert table.numbers(0).tolist() == first and table.numbers(2) is None and table.cells(2) == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "titles"),
    [
        ("a,b\n1,2\n3,4\n", ["a", "b"]),  # words over numbers
        ("1,2\n3,4\n", None),
        ("1,x\n2,y\n", None),
        ("0,1,target\n5,6,7\n", ["0", "1", "target"]),  # a title that columns of classes have
        ("colour,kind\nred,rose\nred,tulip\nwhite,rose\n", ["colour", "kind"]),  # words that do not come again below
        ("red,rose\nred,tulip\nwhite,rose\n", None),
        ("?,2,3\n4,5,6\n", None),
        (",a\n0,1\n1,2\n", ["column 0", "a"]),
    ],
)
def test_titles_are_found_out(text, titles):
    table = read_examples(text.encode())
    assert table.titles == titles and len(table) == text.count("\n") - (titles is not None)
    assert read_examples(text.encode(), titled=False).titles is None


def test_numbers_words_and_what_is_missing(tmp_path):
    text = 'length,"name, of it",class\r\n1.5,"a ""b"" c",x\r\n\r\nNA,"two\r\nlines",y\r\n'
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(text.encode("latin-1")))
    table = read_examples(tmp_path / "t.csv.gz", encoding="latin-1")
    assert table.titles == ["length", "name, of it", "class"] and table.lines.tolist() == [2, 4]
    np.testing.assert_array_equal(table.numbers(0), [1.5, np.nan])
    assert table.cells(1) == ['a "b" c', "two\r\nlines"] and "2 rows, 3 columns" in repr(table)
    assert table.place(1, 0) == f"{tmp_path / 't.csv.gz'}, line 4, column 0 (length)"
    fast = read_examples(b"1,nan\n2,3\n")
    assert (
        isinstance(fast.columns[0], np.ndarray) and fast.cells(0) == ["1", "2"] and fast.place(1, 1).endswith("line 2, column 1")
    )


def test_svmlight_is_recognised():
    table = read_examples(b"spam 1:2 7:0.5 # note\nham 2:1\n")
    assert isinstance(table, SvmlightTable) and len(table) == 2 and table.place(1) == "<bytes>, line 2"
    assert isinstance(read_examples(b"12:30 1\n12:40 2\n"), Table)  # times are no features


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "<bytes>: there is nothing in it"),
        (b"\n  \n", "there is nothing in it"),
        (b"a,b,class\n", "there are titles in it, but no rows below them"),
        (b"1,2,3\n4,5,6\n7,8\n", "<bytes>, line 3: expected 3 cells, as line 1 has. Got 2"),
        (b'a,b\n1,"2\n3,4\n', "line 2: what is quoted cannot be read"),
        (b"a,b,a\n1,2,3\n", "line 1: two columns are called 'a', 0 and 2"),
        (b"one\ntwo\n", "expected columns with commas, tabs, semicolons, bars or blanks between them, or svmlight"),
        (b"1,2\n\xff,3\n", "line 2: not valid utf-8 text"),
        (b"1 1:2\n2 1:x\n", "line 2: expected a class, and features as number:value. Got '1:x'"),
        (b"PAR1 nonsense", "parquet"),
    ],
)
def test_files_with_errors(text, message):
    with pytest.raises(ValueError, match=message):
        read_examples(text)


def test_parquet():
    pyarrow = pytest.importorskip("pyarrow")
    columns = {"length": [1, None, 2.5], "colour": ["red", None, "blue"], "class": [True, False, True]}
    table = read_examples(as_parquet(pyarrow.table(columns)))
    np.testing.assert_array_equal(table.numbers(0), [1, np.nan, 2.5])
    assert (
        table.cells(1) == ["red", "", "blue"]
        and table.cells(2) == ["True", "False", "True"]
        and table.place(1, 0).endswith("row 2, column 0 (length)")
    )
    assert with_columns(table, ["predicted"], [["a", "b", "c"]]).splitlines()[:2] == [
        "length,colour,class,predicted",
        "1,red,True,a",
    ]


def test_more_columns():
    table = read_examples(b"a;b;class\n1;2;x\n3;4;y\n")
    assert with_columns(table, ["predicted", "P(x;y)"], [["x", 'y"z'], [1, 2]]) == (
        'a;b;class;predicted;"P(x;y)"\n1;2;x;x;1\n3;4;y;"y""z";2\n'
    )
    rows = read_examples(b"1 1:2 # note\n2\n")
    assert with_columns(rows, ["predicted"], [[7, 8]]) == "7 1:2 # note\n8\n"
