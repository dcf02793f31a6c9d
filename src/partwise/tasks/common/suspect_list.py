"""What ``partwise suspects`` lists of a file: for people, for files, for machines, and for the page."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from partwise.files.text_edits import EditableText
from partwise.tasks.common.command_options import percent
from partwise.tasks.common.error_ranking import average_precision
from partwise.tasks.common.review import Review
from partwise.tasks.common.suspects import folds_of, judge_like, probability

if TYPE_CHECKING:
    from partwise.solvers.noise import Judgement

MOST_TEXT = 300  # characters of a suspect in the table; files and JSON have all of it


class Listed(NamedTuple):
    """A suspect in a list."""

    cells: tuple[Any, ...]  #: of its line, one for each title of the `Listing`
    as_dict: Callable[[], dict[str, Any]]  #: for machines


@dataclass(frozen=True)
class Listing:
    """All suspects of a file, worst first.

    Titles are ``example``, ``line`` (where it is), ``probability`` (of being wrong); ``given`` and ``believed`` where a suspect
    has one label of each; ``text``, which people are shown; and others that only files have.
    """

    titles: tuple[str, ...]
    rows: list[Listed]
    judged: tuple[int, str]  #: how many there are in all, and of what: (120, "sentences")
    about: dict[str, Any]  #: for machines: what `about_judgement` says, and how much was judged
    context: str = ""  #: title of the column `text`
    truth: dict[str, Any] | None = None  #: what `found_among` says, where it is known which labels are wrong
    #: the first so many, to be looked at and corrected in that text; None: they cannot be
    review: Callable[[EditableText, int | None], Review] | None = None

    def in_words(self) -> list[str]:
        """What people are told before the list."""
        n, what = self.judged
        folds = self.about["folds"]
        how = f"judged in {folds} parts by models of the others" if folds else "judged by one model"
        said = f"{len(self.rows):,} of {n:,} {what} are listed; about {self.about['expected']:,.0f} of all are wrong"
        lines = [f"{said} ({how}, loss {self.about['loss']})"]
        if (truth := self.truth) is not None:
            names = ("precision", "recall", "average_precision")
            parts = ", ".join(f"{name.replace('_', ' ')} {percent(truth[name])}" for name in names)
            lines.append(f"{truth['wrong']:,} are wrong, {truth['found']:,} of them found: {parts}")
        return lines

    def table(self, n: int) -> Any:
        """The first n, for people."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        titles = [title for title in ("given", "believed") if title in self.titles]
        table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
        for title in ("line", "wrong"):
            table.add_column(title, justify="right", no_wrap=True)
        for title in titles:
            table.add_column(title, no_wrap=True)
        if self.context:
            table.add_column(Text(self.context))
        for row in self.rows[:n]:
            cells = dict(zip(self.titles, row.cells, strict=True))
            last = [Text(textwrap.shorten(cells["text"], MOST_TEXT, placeholder=" ..."))] if self.context else []
            labels = [Text(str(cells[title])) for title in titles]
            table.add_row(f"{cells['line']:,}", f"{100 * cells['probability']:.1f} %", *labels, *last)
        return table

    def as_text(self, n: int | None = None) -> bytes:
        """The first n, tab-separated, a line each, after a line of titles."""
        lines = ["\t".join(self.titles)]
        for row in self.rows[:n]:
            cells = (f"{value:.6g}" if isinstance(value, float) else str(value) for value in row.cells)
            lines.append("\t".join(cell.replace("\t", " ") for cell in cells))
        return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass")


def about_judgement(model: Any, folds: int | str | None, found: Judgement, parts: bool = False) -> dict[str, Any]:
    """How it was judged, and the noise that was found: for `Listing.about`."""
    log_odds = found.parts if parts else found.examples
    folds = folds_of(model, folds, len(found.examples))
    return {
        "loss": (model if folds is None else judge_like(model))._loss().name,
        "folds": folds or 0,
        "expected": float(probability(log_odds).sum()),
        "noise": {name: value for name, value in found.noise._asdict().items() if isinstance(value, float)},
    }


def found_among(wrong: np.ndarray, listed: list[int], suspicion: np.ndarray) -> dict[str, Any]:
    """How many of the labels that are really wrong, bool (n,), are among those listed, and how well they are ranked."""
    hits, n, total = int(np.count_nonzero(wrong[listed])), len(listed), int(np.count_nonzero(wrong))
    return {
        "wrong": total,
        "found": hits,
        "precision": hits / n if n else math.nan,
        "recall": hits / total if total else math.nan,
        "average_precision": average_precision(wrong, suspicion),
    }
