"""Suspects of a table as a page shows them: rows, their classes in doubt, and where in the text each class stands."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from partwise.files.text_edits import EditableText
from partwise.tasks.classification.files import SvmlightTable, Table
from partwise.tasks.classification.inspection import feature_names
from partwise.tasks.classification.table_form import TableForm, from_dict
from partwise.tasks.common.command_options import Refusal
from partwise.tasks.common.review import MOST_REASONS, DoubtedWord, Passage, Review, ReviewItem
from partwise.tasks.common.suspects import Judged

CELL = re.compile(r"\S+")
MOST_FIELDS = 60  # of a row that are shown
REASONS = 6  # that are shown of a doubt
NO_REASONS = "The classes of this model have several components: there are no reasons to show."


@dataclass(frozen=True)
class JudgedRows:
    """A table and what a model makes of its classes."""

    model: Any
    table: Any
    X: Any
    cells: list[str]  #: of the column of classes
    judged: Judged
    judges: list[Any]  #: the model itself, or one for each part of the file that it was dealt out into

    def review(self, source: EditableText, ranked: list[int]) -> Review:
        """The rows numbered `ranked`, for the page."""
        table, form = self.table, from_dict(self.model.table_)
        column = form.numbers_in(table)[1] if isinstance(form, TableForm) else None
        if table.texts is None:
            raise Refusal(f"{source.name} is no text, and cannot be corrected byte by byte: write it as CSV first.")
        quoted = isinstance(table, Table) and table.separator != " "
        classes = [self.judged.example(i)[0] for i in range(len(table))]
        spelled: dict[Any, str] = {}
        for name, cell in zip(classes, self.cells, strict=True):
            spelled.setdefault(name, cell)
        has_reasons, k_parts = self.model.hidden == 1, len(self.judges)
        from partwise.solvers.noise import dealt

        parts = dealt(len(table), k_parts, self.model._seed()) if k_parts > 1 else np.zeros(len(table), np.int64)
        number = {name: k for k, name in enumerate(self.model.classes_.tolist())}
        names = feature_names(self.model)
        passages, items = [], []
        for k, i in enumerate(ranked):
            wrong, believed = self.judged.wrong(i), self.judged.example(i)[1]
            passages.append(self.passage(i, source, column))
            judge, codes = self.judges[parts[i]], (number[classes[i]], number[believed])
            p = judge.predict_marginals(self.X[i : i + 1])[0]
            sure = float(p[codes[0]]), float(p[codes[1]])
            why = self.reasons(judge, i, *codes, names) if has_reasons and k < MOST_REASONS else None
            items.append(ReviewItem(k, wrong, [DoubtedWord(0, spelled.get(believed, str(believed)), wrong, sure, why)]))
        return Review(
            passages=passages,
            items=items,
            labels=sorted(set(self.cells)),
            whole=True,
            pattern=r"(?!\s)[\s\S]*\S" if quoted else r"[^\s#]+",
            hint="A class is not empty, and does not begin or end with a blank." if quoted else "A class is one word.",
            reading=reading_of(table, form, column, source.encoding),
            separator=table.separator if quoted else None,
            reasons="" if has_reasons else NO_REASONS,
        )

    def passage(self, i: int, source: EditableText, column: int | None) -> Passage:
        """A row, and where its class stands."""
        table, text = self.table, self.table.texts[i]
        line = int(table.lines[i])
        row = source.line_begin(line)
        separator = " " if column is None else table.separator
        if cells_of(text, separator)[column or 0].strip() != self.cells[i]:
            raise Refusal(f"{table.place(i)}: the class {self.cells[i]!r} cannot be found in the text, to be corrected.")
        begin, end = spans(text, separator)[column or 0]
        at = row + len(text[:begin].encode())
        raw, given = text[begin:end], self.cells[i]
        return Passage(
            [f"row {i + 1}"], [given], [at], [source.line(at)], [raw] if raw != given else None, self.fields(i, column)
        )

    def fields(self, i: int, column: int | None) -> list[tuple[str, str]]:
        """What else is in the row."""
        if isinstance(self.table, SvmlightTable):
            pairs = [pair.partition(":") for pair in self.table.texts[i].partition("#")[0].split()[1:]]
            found = [(name, value) for name, _, value in pairs]
        else:
            cells = cells_of(self.table.texts[i], self.table.separator)
            found = [(self.table.title(k), cell) for k, cell in enumerate(cells) if k != column]
        more = len(found) - MOST_FIELDS
        return found if more <= 0 else [*found[:MOST_FIELDS], ("...", f"and {more:,} more")]

    def reasons(self, model: Any, i: int, given: int, believed: int, names: list[str]) -> list[tuple[str, float]]:
        """The features whose weights make the largest difference between the two classes."""
        row = model._scaled(self.X[i : i + 1])
        row = np.asarray(row.toarray() if hasattr(row, "toarray") else row, np.float64)[0]
        difference = row * (model.coef_[believed].astype(np.float64) - model.coef_[given])
        constant = float(model.intercept_[believed]) - float(model.intercept_[given])
        found = [(names[j], float(difference[j])) for j in np.argsort(-np.abs(difference))[:REASONS].tolist()]
        found = [*found, ("constant", constant)]
        return sorted((one for one in found if one[1]), key=lambda one: -abs(one[1]))[:REASONS]


def reading_of(table: Any, form: Any, column: int | None, encoding: str) -> dict[str, Any]:
    """Options of ``train`` by which such a file is read as the model reads it."""
    if column is None:
        return {"encoding": encoding}
    used = {*form.numbers_in(table)[0], column}
    names = [str(k) if table.titles is None else table.titles[k] for k in range(len(table.columns))]
    return {
        "encoding": encoding,
        "separator": table.separator,
        "header": table.titles is not None,
        "label_column": names[column],
        "drop": [name for k, name in enumerate(names) if k not in used],
        "missing": form.fill,
    }


def spans(text: str, separator: str) -> list[tuple[int, int]]:
    """Where the cells of a row begin and end, as the csv module cuts them; with quotes, without blanks around."""
    if separator == " " and '"' not in text:
        return [cell.span() for cell in CELL.finditer(text)]
    found, begin, quoted = [], 0, False
    for k in range(len(text) + 1):
        if quoted:
            quoted = text[k : k + 1] != '"'
        elif text[k : k + 1] == '"' and (k == begin or text[begin] == text[k - 1] == '"'):  # a quote within is written twice
            quoted = True
        elif k >= begin and (k == len(text) or text.startswith(separator, k)):
            found.append((begin, k))
            begin = k + len(separator)
    return [(a + len(cell) - len(cell.lstrip()), b - len(cell) + len(cell.rstrip())) for a, b in found for cell in [text[a:b]]]


def cells_of(text: str, separator: str) -> list[str]:
    """The cells of a row as they read: without the quotes."""
    found = [text[a:b] for a, b in spans(text, separator)]
    return [cell[1:-1].replace('""', '"') if len(cell) > 1 and cell[0] == cell[-1] == '"' else cell for cell in found]
