"""Parquet files: recognised by their first bytes, whole or refused with words, read back as they were written."""

import sys

import pytest

from partwise.files import parquet
from partwise.files.parquet import as_parquet, is_parquet, read_parquet, with_columns


def test_there_and_back(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    table, path = pyarrow.table({"a": [1, 2], "b": ["x", None]}), tmp_path / "t.parquet"
    path.write_bytes(as_parquet(table))
    assert is_parquet(path) and is_parquet(str(path)) and read_parquet(path).equals(table)
    assert with_columns(table, {"c": [True, False]}, "t").column_names == ["a", "b", "c"]
    with pytest.raises(ValueError, match="t has a column 'a' already"):
        with_columns(table, {"a": [1, 2]}, "t")
    with pytest.raises(ValueError, match="there is nothing in it"):
        read_parquet(as_parquet(table.slice(0, 0)), "t")
    with pytest.raises(ValueError, match="two columns are called 'a'"):
        read_parquet(as_parquet(pyarrow.Table.from_arrays([[1], [2]], ["a", "a"])), "t")
    with pytest.raises(ValueError, match="t: not a parquet file that can be read"):
        read_parquet(path.read_bytes()[:40], "t")


def test_runs_that_no_memory_holds(monkeypatch):
    """A value that is repeated a billion times takes a few bytes of a file."""
    pyarrow = pytest.importorskip("pyarrow")
    content = as_parquet(pyarrow.table({"a": [0] * 1_000_000}))
    assert read_parquet(content, "t").num_rows == 1_000_000 and len(content) < 9000
    monkeypatch.setattr(parquet, "MOST_CELLS", 1000)
    with pytest.raises(ValueError, match="t: not a parquet file .* bytes say that they are 1,000,000 cells"):
        read_parquet(content, "t")


def test_what_is_none(tmp_path):
    (tmp_path / "text").write_text("PAR")
    assert not any(map(is_parquet, (tmp_path / "text", tmp_path, tmp_path / "nothing", "-", b"PAR1", None)))


def test_without_pyarrow(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ValueError, match='t is a parquet file; to read it, install pyarrow: pip install "partwise.parquet'):
        read_parquet(b"PAR1", "t")
