"""Examples in files: tables (CSV, TSV, parquet) and svmlight.

**Tables**: a row for each example, a column for each feature and one for the class. What stands between columns is found out, and
so is whether the first line holds titles: it does if a title is one that columns of classes have, or if no cell of it is a number
but others below are. Cells may be quoted. What is missing is an empty cell, ``NA``, ``NaN``, ``null`` or ``?``.

**svmlight** (LIBSVM): ``class index:value index:value ...``, see `partwise.files.svmlight`.

Text may be gzipped. Parquet is read by pyarrow.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from partwise.files.parquet import MARK, read_parquet
from partwise.files.svmlight import SvmlightRows, read_svmlight
from partwise.files.text_source import open_bytes, read_bytes, to_text

LABEL_TITLES = ("label", "class", "target", "y")  #: of a column of classes, the first that there is
MISSING = frozenset(("", "na", "n/a", "nan", "null", "?"))
SEPARATORS = (",", "\t", ";", "|")
SNIFFED = 50  # lines
PAIR = re.compile(r"\s\d+:[-+.\d]")
PAIRS = re.compile(r"\S+(\s+qid:\S+)?(\s+\d+:[-+.\w]+)*\s*(#.*)?")


@dataclass(frozen=True, eq=False)
class Table:
    """Rows and columns, as a file has them."""

    name: str
    columns: list[Sequence[str] | np.ndarray]  #: cells of each as text; or numbers, if all are, with NaN for what is missing
    titles: list[str] | None  #: of the columns, if the file has any
    lines: np.ndarray  #: (rows,) where each begins, from 1
    texts: list[str] | None = None  #: rows as they are written; None: they are not text
    head: str = ""  #: the line of titles
    separator: str = ","
    unit: str = "line"

    def __len__(self) -> int:
        return len(self.lines)

    def __repr__(self) -> str:
        return f"<Table: {len(self)} rows, {len(self.columns)} columns from {self.name}>"

    def title(self, k: int) -> str:
        """What a column is called; by its number, from 0, if it has no name."""
        return f"column {k}" if self.titles is None else self.titles[k]

    def place(self, i: int, k: int | None = None) -> str:
        """Where a row or a cell is, in words."""
        where = f"{self.name}, {self.unit} {self.lines[i]}"
        if k is None:
            return where
        return f"{where}, {self.title(k)}" if self.titles is None else f"{where}, column {k} ({self.titles[k]})"

    def cells(self, k: int) -> list[str]:
        """A column as text."""
        column = self.columns[k]
        if not isinstance(column, np.ndarray):
            return [cell.strip() for cell in column]
        if self.texts is not None:
            return [split(text, self.separator)[k].strip() for text in self.texts]
        return ["" if value != value else f"{value:.17g}" for value in column.tolist()]

    def numbers(self, k: int) -> np.ndarray | None:
        """A column as numbers, NaN for what is missing; None if there is something else in it."""
        column = self.columns[k]
        if isinstance(column, np.ndarray):
            return column
        try:
            return np.array(column, np.float64)
        except ValueError:
            pass
        values = np.full(len(column), np.nan)
        for i, cell in enumerate(column):
            if not is_missing(cell):
                if (value := as_number(cell, self.separator)) is None:
                    return None
                values[i] = value
        return values


@dataclass(frozen=True, eq=False)
class SvmlightTable:
    """Rows of numbered features, most of them zero."""

    name: str
    rows: SvmlightRows
    texts: list[str]

    def __len__(self) -> int:
        return len(self.rows.labels)

    def __repr__(self) -> str:
        return f"<SvmlightTable: {len(self)} rows from {self.name}>"

    @property
    def lines(self) -> np.ndarray:
        """Where each row is, from 1."""
        return self.rows.lines

    def place(self, i: int) -> str:
        """Where a row is, in words."""
        return f"{self.name}, line {self.lines[i]}"


def is_missing(cell: str) -> bool:
    """Whether a cell says that there is no value."""
    return cell.strip().lower() in MISSING


def as_number(cell: str, separator: str = ",") -> float | None:
    """The number that a cell holds, written with a decimal comma where commas do not separate; None: it holds something else."""
    for text in (cell, cell.replace(",", ".")) if separator != "," else (cell,):
        try:
            return float(text)
        except ValueError:
            pass
    return None


def split(text: str, separator: str) -> list[str]:
    """The cells of a row."""
    if '"' in text:
        return next(csv.reader([text], delimiter=separator))
    return text.split() if separator == " " else text.split(separator)


# ---------------------------------------------------------------------------------------------------------------------
# Reading
# ---------------------------------------------------------------------------------------------------------------------


def read_examples(
    source: Any, encoding: str = "utf-8", separator: str | None = None, titled: bool | None = None
) -> Table | SvmlightTable:
    """Read a file; see the module for the formats.

    Parameters
    ----------
    source : path, ``"-"``, bytes or binary file
    encoding : str
    separator : str, optional
        What stands between columns; a blank for any run of blanks. Found out by default.
    titled : bool, optional
        Whether the first line holds titles. Found out by default.

    Raises
    ------
    ValueError
        Naming the file and the line.
    """
    with open_bytes(source) as (stream, name):
        data = read_bytes(stream, -1, name)
    if data.startswith(MARK):
        return table_of(read_parquet(data, name), name)
    text = to_text(data, encoding, name)
    if not text.strip():
        raise ValueError(f"{name}: there is nothing in it.")
    lines = text.split("\n")
    first = [line for line in lines[: 4 * SNIFFED] if line.strip()][:SNIFFED]
    if separator is None and any(PAIR.search(line) for line in first) and all(PAIRS.fullmatch(line.strip()) for line in first):
        rows = read_svmlight(text, name, "a class, and features as number:value")
        return SvmlightTable(name, rows, [lines[k - 1].rstrip("\r") for k in rows.lines.tolist()])
    return read_text(text, name, find_separator(first, name) if separator is None else separator, titled)


def find_separator(lines: list[str], name: str) -> str:
    """The one that cuts all these lines, or most of them, into as many cells."""
    best: tuple[float, float, int, str] = (0.0, 0.0, 0, "")
    for separator in SEPARATORS:
        try:
            rows = [row for row in csv.reader(lines, delimiter=separator) if row]
        except csv.Error as error:
            raise ValueError(f"{name}: its first lines cannot be cut into cells ({error}).") from None
        counts = [len(row) for row in rows]
        usual = max(set(counts), key=counts.count)
        if usual > 1:  # "1,5;2,5" is two numbers rather than three cells one of which is none
            numbers = sum(as_number(cell, separator) is not None for row in rows for cell in row) / sum(counts)
            best = max(best, (counts.count(usual) / len(counts), numbers, usual, separator))
    if best[3]:
        return best[3]
    if all(len(line.split()) > 1 for line in lines):
        return " "
    raise ValueError(f"{name}: expected columns with commas, tabs, semicolons, bars or blanks between them, or svmlight.")


def read_text(text: str, name: str, separator: str, titled: bool | None) -> Table:
    """A table as text."""
    if '"' in text:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=separator == " ", strict=True)
        raw, rows, texts, lines, last = text.split("\n"), [], [], [], 0
        try:
            for row in reader:
                if any(cell.strip() for cell in row):
                    rows.append(row)
                    lines.append(last + 1)
                    texts.append("\n".join(raw[last : reader.line_num]).rstrip("\r"))
                last = reader.line_num
        except csv.Error as error:
            raise ValueError(f"{name}, line {last + 1}: what is quoted cannot be read ({error}).") from None
        counts = [len(row) for row in rows]
    else:
        numbered = [(k, line.rstrip("\r")) for k, line in enumerate(text.split("\n"), 1) if line.strip()]
        lines, texts = [k for k, _ in numbered], [line for _, line in numbered]
        counts = [len(line.split()) if separator == " " else line.count(separator) + 1 for line in texts]
        rows = None
    for line, n in zip(lines, counts, strict=True):
        if n != counts[0]:
            raise ValueError(f"{name}, line {line}: expected {counts[0]} cells, as line {lines[0]} has. Got {n}.")
    given: list[Any] = texts if rows is None else rows
    first = split(texts[0], separator)
    if titled is None:
        titled = has_titles(first, cut(given[1 : SNIFFED + 1], separator, counts[0]), separator)
    titles = check_titles(first, name, lines[0]) if titled else None
    begin = int(titled)
    if len(lines) == begin:
        raise ValueError(f"{name}: there are titles in it, but no rows below them.")
    numbers = np.array(lines[begin:], np.int64)
    columns = cut(given[begin:], separator, counts[0])
    return Table(name, columns, titles, numbers, texts[begin:], texts[0] if titled else "", separator)


def cut(rows: list[Any], separator: str, n: int) -> list[Sequence[str] | np.ndarray]:
    """The n columns of rows; as numbers, quickly, if there is nothing else in them."""
    if not rows:
        return [[] for _ in range(n)]
    if not isinstance(rows[0], str):
        cells = list(chain.from_iterable(rows))
        return [cells[k::n] for k in range(n)]
    try:
        table = np.loadtxt(rows, delimiter=None if separator == " " else separator, comments=None, ndmin=2)
        return [np.ascontiguousarray(column) for column in table.T]
    except ValueError:
        cells = " ".join(rows).split() if separator == " " else separator.join(rows).split(separator)
        return [cells[k::n] for k in range(n)]


def has_titles(first: list[str], below: list[Sequence[str] | np.ndarray], separator: str) -> bool:
    """Whether the first line holds titles: by what they are, or by what the cells below them are."""
    names = [cell.strip().lower() for cell in first]
    if any(name in LABEL_TITLES for name in names):
        return True
    if any(as_number(cell, separator) is not None for cell in names) or all(name in MISSING for name in names):
        return False
    if not len(below[0]):
        return False
    if any(isinstance(c, np.ndarray) or all(is_missing(x) or as_number(x, separator) is not None for x in c) for c in below):
        return True
    strange = all(cell not in column for cell, column in zip(first, below, strict=True))
    return strange and len(set(names)) == len(names)  # words over words: titles do not come again below


def check_titles(first: list[str], name: str, line: int) -> list[str]:
    """Titles, each of which there is once; where there is none, the number of the column."""
    titles = [cell.strip() or f"column {k}" for k, cell in enumerate(first)]
    for k, title in enumerate(titles):
        if title in titles[:k]:
            raise ValueError(f"{name}, line {line}: two columns are called {title!r}, {titles.index(title)} and {k}.")
    return titles


def table_of(found: Any, name: str) -> Table:
    """A table of Arrow's."""
    columns = [from_values(column.to_pylist()) for column in found.columns]
    return Table(name, columns, list(found.column_names), np.arange(1, found.num_rows + 1), unit="row")


def from_values(values: list[Any]) -> Sequence[str] | np.ndarray:
    """Numbers, or text, as CSV would have it; None and NaN are missing."""
    known = [value for value in values if value is not None and value == value]
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in known):
        return np.array([np.nan if value is None else value for value in values], np.float64)
    return ["" if value is None or value != value else str(value) for value in values]


# ---------------------------------------------------------------------------------------------------------------------
# Writing
# ---------------------------------------------------------------------------------------------------------------------


def with_columns(table: Table | SvmlightTable, titles: list[str], columns: list[list[Any]]) -> str:
    """The text of a table with more columns; of svmlight, the first of them in the place of the classes."""
    if isinstance(table, SvmlightTable):
        rests = (text.strip().split(None, 1) for text in table.texts)
        return "".join(" ".join([str(label), *rest[1:]]) + "\n" for label, rest in zip(columns[0], rests, strict=True))
    texts: Any = table.texts
    head = table.head
    if texts is None:  # parquet
        texts = [as_cells(row, ",") for row in zip(*(table.cells(k) for k in range(len(table.columns))), strict=True)]
        head = as_cells(table.titles or [], ",")
    separator = table.separator
    more = (as_cells(row, separator) for row in zip(*columns, strict=True))
    lines = [f"{head}{separator}{as_cells(titles, separator)}"] if head else []
    return "\n".join([*lines, *(f"{text}{separator}{cells}" for text, cells in zip(texts, more, strict=True)), ""])


def as_cells(row: Sequence[Any], separator: str) -> str:
    """Cells with separators between them, quoted where they must be."""
    out = io.StringIO()
    csv.writer(out, delimiter=separator, lineterminator="").writerow(row)
    return out.getvalue()
