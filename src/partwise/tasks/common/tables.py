"""Tables with titled columns, as data frames and parquet files are, and what a task makes of their rows.

A task for which a table is natural has a module ``table`` with its `TaskTable`, called ``TABLE``: what a row is, which rows
belong together, which columns there must be. Frames (`partwise.bridges`) are learned from in memory, by `fit` and `predict`;
parquet files on the command line become the text that the task's reader knows, by `text`, and all else goes on as with text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from partwise.files.text_source import NamedText

BREAKING = "\t\n\r"  # would be the end of a cell or a row


@dataclass(frozen=True, eq=False)
class Grid:
    """Columns of values, each with its title."""

    titles: list[Any]
    columns: list[list[Any]]
    name: str = "the frame"

    def __len__(self) -> int:
        return len(self.columns[0]) if self.columns else 0

    def checked(self) -> Grid:
        """Itself, or an error that names a title that two columns have."""
        if len(set(self.titles)) < len(self.titles):
            title = next(title for title in self.titles if self.titles.count(title) > 1)
            raise ValueError(f"{self.name}: {self.titles.count(title)} columns are called {title!r}. Rename them.")
        return self

    def column(self, title: Hashable) -> list[Any]:
        """The values of a column, or an error that says which there are."""
        if title not in self.titles:
            listed = ", ".join(map(str, self.titles))
            raise ValueError(f"{self.name}: there is no column {title!r}. The columns are: {listed}.")
        return self.columns[self.titles.index(title)]

    def called(self, names: Iterable[str]) -> Any:
        """The title of the first column that is called one of these, in any case of letters; None: there is none."""
        found = {str(title).lower(): title for title in reversed(self.titles)}
        return next((found[name] for name in names if name in found), None)

    def groups(self, title: Hashable | None) -> list[list[int]]:
        """Numbers of the rows of each group, in the order of their first rows; None: all rows are one."""
        if title is None:
            return [list(range(len(self)))]
        found: dict[Any, list[int]] = {}
        for row, value in enumerate(self.column(title)):
            if is_missing(value):
                raise ValueError(f"{self.name}, row {row}, has no value in the column {title!r}, which says what it belongs to.")
            found.setdefault(value, []).append(row)
        return list(found.values())

    def others(self, *left_out: Hashable | None) -> list[Any]:
        """The titles of all columns but these."""
        found = [title for title in self.titles if title not in left_out]
        if not found:
            raise ValueError(f"{self.name}: there is no column left that would describe a row.")
        return found

    def matrix(self, titles: Sequence[Any]) -> np.ndarray:
        """Numbers of all rows; says which column has others."""
        columns = []
        for title in titles:
            try:
                columns.append(np.array(self.column(title), np.float64))
            except (TypeError, ValueError) as error:
                if "no column" in str(error):
                    raise
                raise ValueError(
                    f"{self.name}: the column {title!r} holds something that is no number. Leave it out, or encode it first."
                ) from None
        return np.column_stack(columns)

    def cells(self, title: Hashable, missing: str | None = None) -> list[str]:
        """A column as text; `missing` stands for what has no value, which is refused if it is None."""
        return [self.cell(value, row, title, missing) for row, value in enumerate(self.column(title))]

    def cell(self, value: Any, row: int, title: Hashable, missing: str | None) -> str:
        """A value as text, or an error that says where it is."""
        if is_missing(value) or value == "":
            if missing is not None:
                return missing
            raise ValueError(f"{self.name}, row {row}, column {title!r}: there is no value.")
        if isinstance(value, list | tuple | dict | np.ndarray | bytes):
            kind = type(value).__name__
            raise ValueError(f"{self.name}, row {row}, column {title!r}: expected a string or a number. Got a {kind}.")
        text = f"{value:.17g}" if isinstance(value, float) else str(value)
        if any(mark in text for mark in BREAKING):
            raise ValueError(f"{self.name}, row {row}, column {title!r}: a cell holds no tab and no end of a line. Got {text!r}.")
        return text


def is_missing(value: Any) -> bool:
    """Whether there is none: None, or NaN."""
    return value is None or (isinstance(value, float) and math.isnan(value))


class TaskTable:
    """What a task makes of a table."""

    row: ClassVar[str]  #: what a row is: "a token"
    group: ClassVar[str | None] = None  #: what the rows are that belong together; None: each row is an example
    group_titles: ClassVar[tuple[str, ...]] = ()  #: columns that tell groups apart, where none is named
    needs_label: ClassVar[bool] = False  #: whether frames must say which column is to be learned
    is_text: ClassVar[bool] = True  #: whether the task reads text, and not parquet files themselves

    # -- in memory ----------------------------------------------------------------------------------------------------

    def fit(self, estimator: Any, grid: Grid, label: Any, group: Any, features: Sequence[Any] | None, **fit: Any) -> list[Any]:
        """Train on a frame; returns the columns that were learned from."""
        if label is not None or features is not None:
            raise ValueError(
                f"{type(estimator).__name__} finds columns by their titles: rename them, and leave out 'label' and 'features'."
            )
        estimator.fit(self.data(grid, group, True)[0], **fit)
        return []

    def predict(self, estimator: Any, grid: Grid, group: Any, features: Sequence[Any] | None) -> dict[str, list[Any]]:
        """Columns of answers, in the order of the rows; the one that is called nothing is the answer itself."""
        data, order = self.data(grid, group, False)
        return in_rows(self.answers(estimator, data), order, grid.name)

    def data(self, grid: Grid, group: Any, labelled: bool) -> tuple[Any, list[int]]:
        """The task's data, and which row of the table each row of its text is; mistakes are told by rows of the table."""
        text, order = self.text(grid, group)
        try:
            return self.read(NamedText(text.encode(), grid.name), labelled), order
        except ValueError as error:
            raise ValueError(by_row(str(error), text, order, grid.name)) from None

    def read(self, text: bytes, labelled: bool) -> Any:
        """The task's data from its text."""
        raise NotImplementedError

    # -- as text ------------------------------------------------------------------------------------------------------

    def text(self, grid: Grid, group: Any, unknown: str | None = None) -> tuple[str, list[int]]:
        """The table as the task's reader would have it, and which row of the table each of its rows is.

        `unknown` is the cell that stands for a label that is not known.
        """
        raise NotImplementedError

    def answers(self, model: Any, data: Any) -> dict[str, list[Any]]:
        """Columns of answers to data that were read, in their order; the one that is called nothing is the answer itself."""
        raise NotImplementedError

    def groups(self, grid: Grid, group: Any) -> list[list[int]]:
        """The rows of each group: by the column `group`, or by one with a usual title."""
        return grid.groups(self.group_column(grid, group))

    def group_column(self, grid: Grid, group: Any) -> Any:
        """The column that tells groups apart."""
        found = grid.called(self.group_titles) if group is None else group
        if found is None:
            listed = ", ".join(map(str, grid.titles))
            raise ValueError(
                f"{grid.name}: which rows are {self.group}? Name the column that says so (group=, --group-column), or call it "
                f"{self.group_titles[0]!r}. The columns are: {listed}."
            )
        return found


class TokenTable(TaskTable):
    """A row is a token; all columns but the groups' are those of a column file, the last one the labels."""

    row, group, needs_label = "a token", "a sentence", True
    group_titles = ("sentence", "sentence_id", "sent_id", "sequence", "sequence_id", "group")

    def text(self, grid: Grid, group: Any, unknown: str | None = None) -> tuple[str, list[int]]:
        rows = self.groups(grid, group)
        titles = grid.others(self.group_column(grid, group))
        columns = [grid.cells(title, unknown if title == titles[-1] else None) for title in titles]
        lines = ["\t".join(cells) for cells in zip(*columns, strict=True)]
        return "".join("\n".join([*(lines[r] for r in own), "", ""]) for own in rows), [r for own in rows for r in own]


def by_row(told: str, text: str, order: Sequence[int], name: str) -> str:
    """What is told of a line of the text, told of the row of the table: lines at the top that are no rows are titles."""
    found = re.match(re.escape(f"{name}, line ") + r"(\d+)", told)
    if found is None:
        return told
    lines = text.split("\n")
    row = sum(map(bool, lines[: int(found[1])])) - 1 - (sum(map(bool, lines)) - len(order))
    return f"{name}, row {order[row]}{told[found.end() :]}" if row >= 0 else told


def in_rows(answers: dict[str, list[Any]], order: Sequence[int], name: str) -> dict[str, list[Any]]:
    """Answers in the order of the rows of a table."""
    found = {}
    for key, values in answers.items():
        if len(values) != len(order):
            raise ValueError(f"{name} has {len(order)} rows, but there are {len(values)} answers: some rows hold no example.")
        found[key] = [None] * len(order)
        for row, value in zip(order, values, strict=True):
            found[key][row] = value
    return found


def titled(answers: dict[str, list[Any]], name: str) -> dict[str, list[Any]]:
    """The columns with the titles that they are to have: `name`, or `name` and what each is."""
    return {f"{name}_{key}" if key else name: values for key, values in answers.items()}
