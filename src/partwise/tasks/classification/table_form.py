"""How columns of files become features and classes: learnt from the training file, kept in the model, used for all that follow.

Columns of numbers are features as they are. Others hold words: each that the training file has in such a column is a feature,
called ``column=word``, which is one where the column has the word; words that come later are none of them. Classes are whole
numbers where all cells are, else words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from partwise.tasks.classification.files import LABEL_TITLES, SvmlightTable, Table, as_number, is_missing
from partwise.tasks.common.command_options import Refusal

FILLS = ("refuse", "zero", "mean")  #: what to do about missing values
FEW = 12  # columns named in a message


@dataclass(frozen=True)
class FeatureColumn:
    """A column that is learnt from."""

    name: str
    number: int  #: in the training file, from 0
    words: list[str] | None = None  #: that it may hold; None: it holds numbers
    fill: float | None = None  #: what stands for a missing number; None: there must be none

    @property
    def width(self) -> int:
        """How many features it is."""
        return 1 if self.words is None else len(self.words)

    @property
    def features(self) -> list[str]:
        """What they are called."""
        return [self.name] if self.words is None else [f"{self.name}={word}" for word in self.words]


@dataclass(frozen=True)
class TableForm:
    """Of a table."""

    columns: list[FeatureColumn]
    label: str  #: what the column of classes is called
    label_number: int
    titled: bool  #: whether columns are found by their titles; else by their numbers
    n_columns: int
    fill: str = "refuse"

    kind = "table"

    @classmethod
    def learn(cls, table: Table, label: str | None, drop: Sequence[str], fill: str) -> TableForm:
        """From a training file: `label` and `drop` are titles or numbers of columns."""
        number = label_column(table) if label is None else column_called(table, label, "--label-column")
        left_out = {number, *(column_called(table, name, "--drop") for name in drop)}
        columns = []
        for k in range(len(table.columns)):
            if k in left_out:
                continue
            values = table.numbers(k)
            if values is None:
                cells = table.cells(k)
                missing = [is_missing(cell) for cell in cells]
                words = sorted({cell for cell, none in zip(cells, missing, strict=True) if not none})
                columns.append(FeatureColumn(table.title(k), k, words))
            else:
                missing = np.isnan(values)
                known = values[~missing]
                value = float(known.mean()) if fill == "mean" and len(known) else 0.0
                columns.append(FeatureColumn(table.title(k), k, None, None if fill == "refuse" else value))
            if fill == "refuse" and np.any(missing):
                refuse_missing(table, int(np.argmax(missing)), k)
        if not columns:
            raise Refusal(f"{table.name}: there is no column to learn from, besides that of the classes.")
        return cls(columns, table.title(number), number, table.titles is not None, len(table.columns), fill)

    @property
    def features(self) -> list[str]:
        """Names of all features."""
        return [name for column in self.columns for name in column.features]

    def numbers_in(self, table: Table) -> tuple[list[int], int | None]:
        """Where the columns are in a table, and where its classes are, if anywhere."""
        if self.titled:
            there = {title: k for k, title in enumerate(table.titles or [])}
            for column in self.columns:
                if column.name not in there:
                    learnt = f"there is no column {column.name!r}, which the model learnt from"
                    raise Refusal(f"{table.name}: {learnt}; there are {few(list(there))}.")
            return [there[column.name] for column in self.columns], there.get(self.label)
        n, at = len(table.columns), self.label_number
        if n == self.n_columns:
            return [column.number for column in self.columns], at
        if n == self.n_columns - 1:  # without the classes
            return [column.number - (column.number > at) for column in self.columns], None
        raise Refusal(f"{table.name}: there are {n} columns; the model learnt from {self.n_columns}, one of them the classes.")

    def matrix(self, table: Table) -> Any:
        """Features of all rows: dense where a quarter of them or more can be there, else sparse."""
        n, width = len(table), sum(column.width for column in self.columns)
        rows, places, values, begin = [], [], [], 0
        for column, k in zip(self.columns, self.numbers_in(table)[0], strict=True):
            if column.words is None:
                found = self.numbers(table, column, k)
                rows.append(np.arange(n))
                places.append(np.full(n, begin))
                values.append(found)
            else:
                number = {word: j for j, word in enumerate(column.words)}
                cells = table.cells(k)
                if self.fill == "refuse" and any(none := [is_missing(cell) for cell in cells]):
                    refuse_missing(table, none.index(True), k)
                codes = np.array([number.get(cell, -1) for cell in cells])
                rows.append(np.flatnonzero(codes >= 0))
                places.append(begin + codes[codes >= 0])
                values.append(np.ones(len(rows[-1])))
            begin += column.width
        if 4 * len(self.columns) >= width:
            X = np.zeros((n, width))
            for row, place, value in zip(rows, places, values, strict=True):
                X[row, place] = value
            return X
        import scipy.sparse

        where = np.concatenate(rows), np.concatenate(places)
        return scipy.sparse.coo_matrix((np.concatenate(values), where), (n, width)).tocsr()

    def numbers(self, table: Table, column: FeatureColumn, k: int) -> np.ndarray:
        """A column of finite numbers."""
        found = table.numbers(k)
        if found is None:
            cells = table.cells(k)
            fine = [is_missing(cell) or as_number(cell, table.separator) is not None for cell in cells]
            bad = fine.index(False)
            raise Refusal(f"{table.place(bad, k)}: expected a number, as in training. Got {cells[bad]!r}.")
        missing = np.isnan(found)
        if missing.any():
            if column.fill is None:
                refuse_missing(table, int(np.argmax(missing)), k)
            found = np.where(missing, column.fill or 0.0, found)
        if not np.isfinite(found).all():
            bad = int(np.argmin(np.isfinite(found)))
            raise Refusal(f"{table.place(bad, k)}: {found[bad]} is not a finite number.")
        return found

    def labels(self, table: Table) -> list[str] | None:
        """The cells of the column of classes, if there is one."""
        k = self.numbers_in(table)[1]
        return None if k is None else table.cells(k)

    def said(self, chosen: bool) -> str:
        """Which column the classes are in, in words; `chosen`: because the user says so."""
        name = f"{self.label!r}" if self.titled else f"{self.label_number}, counted from 0"
        by_title = self.titled and self.label.lower() in LABEL_TITLES
        return f"classes: column {name}{'' if chosen else ', by its title' if by_title else ', the last'}"


@dataclass(frozen=True)
class SvmlightForm:
    """Of svmlight: features are called by their numbers."""

    first: int  #: 1, or 0 if there is a feature of that number
    n_features: int

    kind = "svmlight"

    @classmethod
    def learn(cls, table: SvmlightTable) -> SvmlightForm:
        """From a training file."""
        index = table.rows.index
        if not len(index):
            raise Refusal(f"{table.name}: there are no features in it.")
        first = min(1, int(index.min()))
        return cls(first, int(index.max()) + 1 - first)

    @property
    def features(self) -> list[str]:
        """Names of all features."""
        return [str(k + self.first) for k in range(self.n_features)]

    def matrix(self, table: SvmlightTable) -> Any:
        """Features of all rows; those that the model does not know are left out."""
        if self.first and not table.rows.index.all():
            at = int(np.searchsorted(np.cumsum(table.rows.counts), np.argmin(table.rows.index), side="right"))
            raise Refusal(f"{table.place(at)}: features of the model are numbered from 1. Got 0.")
        return table.rows.matrix(self.first, self.n_features)

    def labels(self, table: SvmlightTable) -> list[str]:
        """The first word of each line."""
        return table.rows.labels

    def said(self, chosen: bool) -> str:
        """Where the classes are."""
        return "classes: the first word of each line"


Form = TableForm | SvmlightForm


def learn_form(table: Table | SvmlightTable, label: str | None, drop: Sequence[str], fill: str) -> Form:
    """How a training file is to be read."""
    if isinstance(table, Table):
        return TableForm.learn(table, label, drop, fill)
    if label is not None or drop:
        raise Refusal(f"{table.name} is svmlight, which has no columns: --label-column and --drop are for tables.")
    return SvmlightForm.learn(table)


def as_dict(form: Form) -> dict[str, Any]:
    """For the model file."""
    return {"kind": form.kind, **asdict(form)}


def from_dict(given: dict[str, Any]) -> Form:
    """What `as_dict` wrote."""
    fields = {name: value for name, value in given.items() if name != "kind"}
    if given["kind"] == SvmlightForm.kind:
        return SvmlightForm(**fields)
    return TableForm(**{**fields, "columns": [FeatureColumn(**column) for column in fields["columns"]]})


# ---------------------------------------------------------------------------------------------------------------------
# Columns, classes
# ---------------------------------------------------------------------------------------------------------------------


def label_column(table: Table) -> int:
    """The column of classes, by its title; else the last."""
    titles = [title.lower() for title in table.titles or []]
    return next((titles.index(name) for name in LABEL_TITLES if name in titles), len(table.columns) - 1)


def column_called(table: Table, name: str, option: str) -> int:
    """The number of a column by its title or its number, from 0; negative: from the last."""
    n = len(table.columns)
    if name in (table.titles or []):
        return (table.titles or []).index(name)
    if name.lstrip("-").isdigit() and -n <= int(name) < n:
        return int(name) % n
    have = f": {few(table.titles)}" if table.titles else ", and they have no titles"
    raise Refusal(f"{table.name}: {option} {name}: there is no such column. There are {n}, counted from 0{have}.")


def few(names: list[str]) -> str:
    """Some names, for a message."""
    return ", ".join(names[:FEW]) + (", ..." if len(names) > FEW else "")


def refuse_missing(table: Table, i: int, k: int) -> None:
    """Say where a value is missing."""
    raise Refusal(
        f"{table.place(i, k)}: there is no value. --missing zero or --missing mean puts one there, "
        f"--drop {k if table.titles is None else repr(table.titles[k])} leaves the column out."
    )


def as_classes(cells: Sequence[str], table: Table | SvmlightTable, unknown: str | None = None) -> Any:
    """Whole numbers where all cells are, else words; None for the cell that stands for a class that is not known."""
    known = [cell for cell in cells if cell != unknown]
    values = whole_numbers(known)
    if values is None:
        for i, cell in enumerate(cells):
            if cell != unknown and is_missing(cell):
                raise Refusal(f"{table.place(i)}: there is no class. --unknown-label {cell!r} says that it is not known.")
        return np.array(cells) if len(known) == len(cells) else [None if cell == unknown else cell for cell in cells]
    if len(known) == len(cells):
        return np.array(values)
    numbers = iter(values)
    return [None if cell == unknown else next(numbers) for cell in cells]


def whole_numbers(cells: Sequence[str]) -> list[int] | None:
    """Numbers, if all of them are whole."""
    try:
        found = [float(cell) for cell in cells]
        whole = [int(value) for value in found]
    except (ValueError, OverflowError):
        return None
    return whole if whole == found else None


def check_classes(cells: Sequence[str], table: Table | SvmlightTable, form: Form, chosen: bool) -> None:
    """Refuse what is no column of classes: one class, a quantity, or, if the user has not chosen it, nearly as many as rows."""
    if isinstance(table, SvmlightTable) and any("," in cell for cell in cells):
        several = next(i for i, cell in enumerate(cells) if "," in cell)
        raise Refusal(f"{table.place(several)}: {cells[several]!r} is more than one class, which a classifier cannot learn.")
    counts = Counter(cells)
    where, advice = form.said(chosen), "Say which column they are in: --label-column."
    if len(counts) < 2:
        raise Refusal(f"{table.name}: all {len(cells):,} rows are of one class, {cells[0]!r} ({where}). {advice}")
    numbers = [as_number(cell) for cell in counts]
    if whole_numbers(list(counts)) is None and all(number is not None and np.isfinite(number) for number in numbers):
        i = next(i for i, cell in enumerate(cells) if whole_numbers([cell]) is None)
        raise Refusal(f"{table.place(i)}: {cells[i]} is a quantity, not a class ({where}). {advice}")
    once = sum(n == 1 for n in counts.values())
    if not chosen and len(cells) > 20 and 2 * once > len(cells):
        raise Refusal(f"{table.name}: {once:,} of {len(cells):,} rows are the only ones of their class ({where}). {advice}")
