"""Rows of features as svmlight and LIBSVM write them: ``label index:value index:value ... # note``.

Where there are queries, ``qid:Q`` follows the label. Features that are left out are zero.
"""

from __future__ import annotations

import contextlib
import re
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

LAST = 2**31 - 1  # features are numbered by 32 bits
NUMBER = r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?"
PAIR = re.compile(rf"-?\d+\.?\d*:({NUMBER}|[-+]?(nan|inf|infinity))", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class SvmlightRows:
    """What the lines of a file say."""

    labels: list[str]  #: the first word of each
    queries: list[str]  #: what stands after ``qid:``, or nothing
    notes: list[str]  #: what stands after ``#``
    lines: np.ndarray  #: (rows,) where each is, from 1
    counts: np.ndarray  #: (rows,) features of each
    index: np.ndarray  #: of all features, row by row, as they are written
    value: np.ndarray

    def matrix(self, first: int, width: int) -> Any:
        """The features from number `first` on, (rows, width): dense where a quarter of them or more is there, else sparse.

        Those beyond the last one are left out.
        """
        row = np.repeat(np.arange(len(self.counts)), self.counts)
        index, value = self.index - first, self.value
        if index.max(initial=-1) >= width:
            row, index, value = row[index < width], index[index < width], value[index < width]
        if 4 * len(value) >= len(self.counts) * width:
            X = np.zeros((len(self.counts), width))
            X[row, index] = value
            return X
        import scipy.sparse

        ptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(self.counts)))])
        return scipy.sparse.csr_matrix((value, index, ptr), (len(self.counts), width))


def read_svmlight(text: str, name: str, expected: str) -> SvmlightRows:
    """Take a text apart; `expected`: what a line should have, for messages.

    Raises
    ------
    ValueError
        Naming the file and the line: what is no number, NaN and infinities, a feature that comes twice.
    """
    labels, queries, notes, lines, counts = [], [], [], [], []
    cells: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        said, _, note = line.partition("#")
        words = said.split()
        if not words:
            continue
        query = len(words) > 1 and words[1].startswith("qid:")
        own = words[2 if query else 1 :]
        labels.append(words[0])
        queries.append(words[1][4:] if query else "")
        notes.append(note.strip())
        lines.append(number)
        counts.append(len(own))
        cells += own
    starts = np.concatenate([[0], np.cumsum(counts)])

    def place(k: int) -> str:
        return f"{name}, line {lines[int(np.searchsorted(starts, k, side='right')) - 1]}"

    numbers = np.zeros(0)
    with contextlib.suppress(ValueError, DeprecationWarning), warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)  # of what cannot be read to its end: it is found below
        numbers = np.fromstring(":".join(cells), sep=":") if cells else numbers
    if len(numbers) != 2 * len(cells) or any(cell.count(":") != 1 for cell in cells):
        bad = next(k for k, cell in enumerate(cells) if not is_pair(cell))
        raise ValueError(f"{place(bad)}: expected {expected}. Got {cells[bad]!r}.")
    index, value = numbers[::2], numbers[1::2]
    for wrong, why in (
        (index != np.floor(index), "is not a whole number"),
        (index < 0, "is negative"),
        (index > LAST, f"is beyond the last one that there may be, {LAST}"),
        (~np.isfinite(value), "is not a finite number"),
    ):
        if wrong.any():
            k = int(np.argmax(wrong))
            raise ValueError(f"{place(k)}: feature {cells[k].split(':')[0]} {why}.")
    index = index.astype(np.int64)
    if (np.diff(index)[np.diff(np.repeat(np.arange(len(counts)), counts)) == 0] <= 0).any():  # not in order: some may be equal
        for i, number in enumerate(lines):
            if len(np.unique(index[starts[i] : starts[i + 1]])) < counts[i]:
                raise ValueError(f"{name}, line {number}: a feature comes twice.")
    return SvmlightRows(labels, queries, notes, np.array(lines, np.int64), np.array(counts, np.int64), index, value)


def is_pair(cell: str) -> bool:
    """Whether it is a number, a colon and another one: as numpy reads them, which is stricter than Python."""
    return PAIR.fullmatch(cell) is not None
