"""What an experiment is: a list of independent *cells*, a function that runs one of them, and what to make of the numbers.

A cell is a frozen dataclass of settings (data set, noise, loss, solver, seed, epochs ...): everything its numbers depend on
but the data. So a cell can be run anywhere, in any order, and never twice (`partwise.experiments.runner`). An experiment is
one class::

    class Figure51(Experiment):
        name, about = "mancev-figure-5.1", "one line for --list"
        minutes = {"quick": 3, "full": 60}              # on two cores
        files = ("conll2000/train.txt.gz",)             # below the data folder; checked before anything runs
        together = ("corpus", "fold")                   # cells alike in these are shown when all of them are there

        def cells(self, setting): ...                   # -> list of cells
        def run(self, data, cell): ...                  # -> {"f1": 93.7, ...}
        def summarise(self, results): ...               # -> list of Table
        def draw(self, figure, results): ...            # optional; matplotlib

Modules of experiments import numba, scipy and matplotlib only inside these functions: ``partwise reproduce --list`` is quick.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

SETTINGS = ("quick", "full")


class Result(NamedTuple):
    """A cell that has been run."""

    cell: Any
    numbers: dict[str, Any]  #: numbers, or lists of them
    seconds: float


class MeanInterval(NamedTuple):
    """A mean, and the interval in which it lies with 95 % confidence; the limits are nan for a single value."""

    value: float
    low: float
    high: float
    sd: float = math.nan  #: standard deviation of the single values
    n: int = 0

    def __str__(self) -> str:
        if math.isnan(self.low):
            return f"{self.value:.2f}"
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"

    @property
    def signed(self) -> str:
        """As a difference."""
        if math.isnan(self.low):
            return f"{self.value:+.2f}"
        return f"{self.value:+.2f} [{self.low:+.2f}, {self.high:+.2f}]"


def mean_interval(values: Iterable[float], overlap: float = 0.0) -> MeanInterval:
    """Mean of n values with its t interval, ``mean +- t s sqrt(1/n + overlap)``.

    Parameters
    ----------
    values : iterable of float
        Differences, where two methods saw the same data: then the interval is the paired one.
    overlap : float
        Test examples per training example where the values come from folds of a cross-validation: their training sets overlap, so
        they are not independent, and the plain interval is too narrow (Nadeau and Bengio 2003, corrected resampled t).

    Examples
    --------
    >>> str(mean_interval([1.0, 2.0, 3.0]))
    '2.00 [-0.48, 4.48]'
    """
    import numpy as np
    from scipy.stats import t

    x = np.asarray(list(values), float)
    n = len(x)
    if n < 2:
        return MeanInterval(float(x[0]) if n else math.nan, math.nan, math.nan, math.nan, n)
    sd = float(x.std(ddof=1))
    half = float(t.ppf(0.975, n - 1)) * sd * math.sqrt(1 / n + overlap)
    return MeanInterval(float(x.mean()), float(x.mean()) - half, float(x.mean()) + half, sd, n)


@dataclass
class Table:
    """Rows for people and for machines: cells are strings, numbers, or `MeanInterval`."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    differences: tuple[str, ...] = ()  #: columns shown with their sign

    def markdown(self) -> str:
        """The table as Markdown, columns aligned."""
        lines = [self.columns, *([self._shown(c, v) for c, v in zip(self.columns, row, strict=True)] for row in self.rows)]
        widths = [max(len(line[k]) for line in lines) for k in range(len(self.columns))]
        lines.insert(1, ["-" * w for w in widths])
        text = ("| " + " | ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)) + " |" for line in lines)
        return f"**{self.title}**\n\n" + "\n".join(text)

    def _shown(self, column: str, value: Any) -> str:
        if isinstance(value, MeanInterval):
            return value.signed if column in self.differences else str(value)
        if value is None:
            return "-"
        return f"{value:.2f}" if isinstance(value, float) else str(value)

    def to_json(self) -> dict[str, Any]:
        """The same for machines: one object per row."""
        plain = ([v._asdict() if isinstance(v, MeanInterval) else v for v in row] for row in self.rows)
        return {"title": self.title, "rows": [dict(zip(self.columns, row, strict=True)) for row in plain]}


class Experiment:
    """Base of all experiments (see the module)."""

    name: ClassVar[str] = ""
    about: ClassVar[str] = ""  #: one line
    source: ClassVar[str] = ""  #: the paper
    minutes: ClassVar[dict[str, float]] = {}  #: expected time of each setting on two cores
    files: ClassVar[tuple[str, ...]] = ()  #: below the data folder
    version: ClassVar[int] = 1  #: raise it when the same cell would give other numbers: finished cells are then run again
    notes: ClassVar[dict[str, str]] = {}  #: what each setting leaves out
    together: ClassVar[tuple[str, ...]] = ()  #: settings; cells alike in these count when none is missing. By default all cells

    def cells(self, setting: str) -> list[Any]:
        """Everything to run; `setting` is ``quick`` or ``full``."""
        raise NotImplementedError

    def run(self, data: Path, cell: Any) -> dict[str, Any]:
        """The numbers of one cell. The same cell gives the same numbers."""
        raise NotImplementedError

    def summarise(self, results: Sequence[Result]) -> list[Table]:
        """Means, differences, intervals."""
        raise NotImplementedError

    def draw(self, figure: Any, results: Sequence[Result]) -> None:
        """Draw into an empty matplotlib figure."""
        raise NotImplementedError


def groups(results: Sequence[Result], *names: str) -> dict[tuple[Any, ...], list[Result]]:
    """Results by the values that these settings have, in the order they are first met."""
    found: dict[tuple[Any, ...], list[Result]] = {}
    for result in results:
        found.setdefault(tuple(getattr(result.cell, name) for name in names), []).append(result)
    return found


def complete(cells: Sequence[Any], results: Sequence[Result], together: Sequence[str]) -> list[Result]:
    """The results in groups, alike in the settings `together`, that have all of their cells: a mean of half of them misleads."""
    of = {k: tuple(getattr(cell, name) for name in together) for k, cell in enumerate(cells)}
    there = {result.cell for result in results}
    broken = {of[k] for k, cell in enumerate(cells) if cell not in there}
    return [r for r in results if tuple(getattr(r.cell, name) for name in together) not in broken]


def paired(some: Sequence[Result], others: Sequence[Result], value: str, by: str) -> list[float]:
    """Differences ``some - others`` of a number, between cells with the same setting `by` (a seed, a fold)."""
    other = {getattr(r.cell, by): r.numbers[value] for r in others}
    return [r.numbers[value] - other[getattr(r.cell, by)] for r in some if getattr(r.cell, by) in other]


def values(results: Sequence[Result], name: str) -> list[float]:
    """One number of each result."""
    return [r.numbers[name] for r in results]


def settings_of(cell: Any) -> dict[str, Any]:
    """A cell as a dict, for JSON and for names of files."""
    return {f.name: getattr(cell, f.name) for f in fields(cell)}


Report = Callable[[str], None]
