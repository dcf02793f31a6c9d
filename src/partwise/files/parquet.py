"""Parquet files, by pyarrow: read as tables of Arrow, written so that they are there as a whole or not at all."""

from __future__ import annotations

import io
import os
from typing import Any

MARK = b"PAR1"
MOST_CELLS = 100_000_000  #: beside 100 for each byte: runs of one value take next to no room in a file
ENDINGS = (".parquet", ".pq")  #: of files that are to be written in this form


def is_parquet(file: Any) -> bool:
    """Whether a path names a file that begins like one."""
    if not isinstance(file, str | os.PathLike) or not os.path.isfile(file):
        return False
    with open(file, "rb") as stream:
        return stream.read(len(MARK)) == MARK


def needs_pyarrow(name: Any, what: str) -> Any:
    """The module, or an error that says how to get it."""
    try:
        import pyarrow.parquet
    except ImportError:
        raise ValueError(f'{name} is a parquet file; to {what} it, install pyarrow: pip install "partwise[parquet]".') from None
    return pyarrow.parquet


def read_parquet(source: Any, name: str | None = None) -> Any:
    """The table in a file, or in its bytes; ValueError if it cannot be read, is empty, or has a title twice."""
    name = os.fspath(source) if name is None else name
    parquet = needs_pyarrow(name, "read")
    if not isinstance(source, bytes):
        with open(source, "rb") as stream:
            source = stream.read()
    try:
        file = parquet.ParquetFile(io.BytesIO(source))
        cells = file.metadata.num_rows * file.metadata.num_columns
        if cells > MOST_CELLS + 100 * len(source):
            raise ValueError(f"its {len(source):,} bytes say that they are {cells:,} cells")
        table = file.read()
    except Exception as error:  # pyarrow has its own, and it is not imported here
        raise ValueError(f"{name}: not a parquet file that can be read ({error}).") from None
    titles = table.column_names
    if not titles or not table.num_rows:
        raise ValueError(f"{name}: there is nothing in it.")
    for title in titles:
        if titles.count(title) > 1:
            raise ValueError(f"{name}: two columns are called {title!r}.")
    return table


def as_parquet(table: Any) -> bytes:
    """The bytes of a file with this table."""
    stream = io.BytesIO()
    needs_pyarrow("the output", "write").write_table(table, stream)
    return stream.getvalue()


def with_columns(table: Any, columns: dict[str, list[Any]], name: str) -> Any:
    """The table with more columns, the last; ValueError if it has one of that title already."""
    import pyarrow

    for title, values in columns.items():
        if title in table.column_names:
            raise ValueError(f"{name} has a column {title!r} already, where answers would go. Rename it first.")
        table = table.append_column(title, pyarrow.array(values))
    return table
