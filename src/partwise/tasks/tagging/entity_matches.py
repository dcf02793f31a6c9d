"""Entities that were found in part: four ways to count, as MUC and nervaluate do, and which type was taken for which.

A predicted entity is paired with a true one that it shares tokens with; no entity is in two pairs. What a pair counts as depends
on what is asked for:

=======  =====================================  ===================================  ==========================
kind     correct                                otherwise                            looks at
=======  =====================================  ===================================  ==========================
strict   same tokens, same type                 incorrect                            boundaries and type
exact    same tokens                            incorrect                            boundaries
partial  same tokens                            partial, half a point                boundaries, overlap
type     same type                              incorrect                            type, overlap
=======  =====================================  ===================================  ==========================

True entities without a pair are missed, predicted ones spurious. With actual = correct + incorrect + partial + spurious and
possible = correct + incorrect + partial + missed::

    precision = (correct + partial / 2) / actual        recall = (correct + partial / 2) / possible

**Pairs** are made from left to right, in nervaluate's order: a prediction takes the true entity that makes it correct (for the
kind "type": the one whose boundaries are nearest), else the first that is still free. One shared token is enough; nervaluate
asks for 1 % of the true entity, which is the same up to 100 tokens.

References: N. Chinchor and B. Sundheim, "MUC-5 evaluation metrics", 1993; I. Segura-Bedmar, P. Martinez and M. Herrero-Zazo,
"SemEval-2013 task 9", 2013.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from partwise.tasks.tagging.counts import Labels, Numbered, match_spans, number_pair, number_pair_coded

KINDS = ("strict", "exact", "partial", "type")
MISSED, SPURIOUS = "missed", "spurious"


@dataclass(frozen=True)
class EntityMatches:
    """Entities counted one way; see the module's docstring.

    Attributes
    ----------
    correct, incorrect, partial, missed, spurious : int
    by_type : dict
        The same of the entities of one type, those of other types left aside, as nervaluate counts.

    Examples
    --------
    >>> found = entity_matches([["B-A", "I-A"]], [["B-A", "O"]])["partial"]
    >>> found.partial, found.missed, found.f1
    (1, 0, 0.5)
    """

    correct: int
    incorrect: int
    partial: int
    missed: int
    spurious: int
    by_type: dict[str, EntityMatches] = field(default_factory=dict, repr=False)

    @property
    def actual(self) -> int:
        """Predicted entities."""
        return self.correct + self.incorrect + self.partial + self.spurious

    @property
    def possible(self) -> int:
        """True entities."""
        return self.correct + self.incorrect + self.partial + self.missed

    @property
    def precision(self) -> float:
        """0 if nothing was predicted."""
        return (self.correct + 0.5 * self.partial) / self.actual if self.actual else 0.0

    @property
    def recall(self) -> float:
        """0 if there are no entities."""
        return (self.correct + 0.5 * self.partial) / self.possible if self.possible else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall; 0 if there are no entities at all."""
        total = self.actual + self.possible
        return (2 * self.correct + self.partial) / total if total else 0.0

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        counts = {name: getattr(self, name) for name in ("correct", "incorrect", "partial", "missed", "spurious")}
        found = {**counts, "precision": self.precision, "recall": self.recall, "f1": self.f1}
        return found | ({"types": {name: one.to_dict() for name, one in self.by_type.items()}} if self.by_type else {})


@dataclass(frozen=True, eq=False)
class EntityConfusion:
    """How often entities of one type were taken for another; made by `entity_confusion`.

    Attributes
    ----------
    types : list of str
        Sorted.
    counts : int array (types + 1, types + 1)
        ``counts[a, b]``: entities of the true type a that were answered b. The last column counts what was missed, the last
        row what is spurious.

    Examples
    --------
    >>> found = entity_confusion([["B-A", "O"]], [["B-B", "O"]])
    >>> found.types, found.counts.tolist()
    (['A', 'B'], [[0, 1, 0], [0, 0, 0], [0, 0, 0]])
    """

    types: list[str]
    counts: np.ndarray

    @property
    def rows(self) -> list[str]:
        """Names of the rows: the true types, then "spurious"."""
        return [*self.types, SPURIOUS]

    @property
    def columns(self) -> list[str]:
        """Names of the columns: the answered types, then "missed"."""
        return [*self.types, MISSED]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"true": self.rows, "predicted": self.columns, "entities": self.counts.tolist()}

    def __str__(self) -> str:
        cells = [
            ["", *self.columns],
            *([name, *map(str, row)] for name, row in zip(self.rows, self.counts.tolist(), strict=True)),
        ]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        return "\n".join("  ".join(f"{cell:>{w}}" for cell, w in zip(row, widths, strict=True)) for row in cells)

    def plot(self, axes: Any = None) -> Any:
        """Draw it as a heat map: shades are shares of the row, numbers are counts. Needs matplotlib; returns the axes."""
        from partwise.tasks.common.plots import new_figure

        n = len(self.types) + 1
        if axes is None:
            axes = new_figure(1.6 + 0.5 * n, 1.2 + 0.45 * n).subplots()
        share = self.counts / np.maximum(self.counts.sum(1, keepdims=True), 1)
        axes.imshow(share, cmap="Blues", vmin=0.0, vmax=1.0)
        axes.set_xticks(range(n), self.columns, rotation=90)
        axes.set_yticks(range(n), self.rows)
        axes.set(xlabel="answered", ylabel="true")
        for (row, column), count in np.ndenumerate(self.counts):
            if count:
                colour = "white" if share[row, column] > 0.6 else "0.2"
                axes.text(column, row, f"{count:,}", ha="center", va="center", fontsize=8, color=colour)
        return axes

    def save(self, path: Any) -> None:
        """The picture, as a file in the format that its name asks for."""
        from partwise.tasks.common.plots import save

        save(self.plot().figure, Path(path))


def entity_matches(y_true: Labels, y_pred: Labels) -> dict[str, EntityMatches]:
    """Entities counted in four ways: "strict", "exact", "partial" and "type".

    Parameters
    ----------
    y_true, y_pred : lists of label sequences

    Examples
    --------
    >>> found = entity_matches([["B-A", "I-A", "O", "B-B"]], [["B-A", "O", "O", "B-A"]])
    >>> found["partial"].correct, found["partial"].partial, found["type"].correct, found["strict"].f1
    (1, 1, 1, 0.0)
    """
    return Entities(number_pair(y_true, y_pred)).matches()


def entity_confusion(y_true: Labels, y_pred: Labels) -> EntityConfusion:
    """Which types were taken for which, what was missed and what is spurious. Pairs are those of the kind "type".

    Parameters
    ----------
    y_true, y_pred : lists of label sequences

    Examples
    --------
    >>> print(entity_confusion([["B-A", "I-A", "O", "B-B"]], [["B-A", "O", "B-A", "O"]]))
              A  B  missed
           A  1  0       0
           B  0  0       1
    spurious  1  0       0
    """
    return Entities(number_pair(y_true, y_pred)).confusion()


class Entities:
    """True and predicted spans of the same text, and which of them share tokens.

    Parameters
    ----------
    pair : Numbered
        Chunk tags, as `number_pair` and `number_pair_coded` make them.
    """

    def __init__(self, pair: Numbered):
        match = match_spans(pair)
        self.types = [kind or "-" for kind in match.table.types]
        first = (match.first, match.predicted_first)
        last = (np.flatnonzero(match.true.ends), np.flatnonzero(match.predicted.ends))
        kind = (match.true.kind, match.predicted.kind)
        #: (spans, 3): type, first token, last token
        self.true, self.predicted = (np.stack([k[a], a, b], axis=1) for k, a, b in zip(kind, first, last, strict=True))

    @classmethod
    def coded(cls, *args: Any) -> Entities:
        """From numbered labels; the parameters are those of `span_scores_coded`."""
        return cls(number_pair_coded(*args))

    def matches(self) -> dict[str, EntityMatches]:
        """Every kind, of all and of each type. O(spans log spans)."""
        found = {}
        for kind in KINDS:
            by_type = {}
            for k in sorted(range(len(self.types)), key=lambda k: self.types[k]):
                true, predicted = self.true[self.true[:, 0] == k], self.predicted[self.predicted[:, 0] == k]
                if len(true) or len(predicted):
                    by_type[self.types[k]] = EntityMatches(*_counted(kind, true, predicted))
            found[kind] = EntityMatches(*_counted(kind, self.true, self.predicted), by_type)
        return found

    def confusion(self) -> EntityConfusion:
        """Of the types that occur."""
        partner = _paired("type", self.true, self.predicted)
        used = sorted({*self.true[:, 0].tolist(), *self.predicted[:, 0].tolist()}, key=lambda k: self.types[k])
        place = {k: row for row, k in enumerate(used)}
        counts = np.zeros((len(used) + 1,) * 2, np.int64)
        for p, t in enumerate(partner):
            counts[-1 if t < 0 else place[int(self.true[t, 0])], place[int(self.predicted[p, 0])]] += 1
        for t in set(range(len(self.true))) - set(partner):
            counts[place[int(self.true[t, 0])], -1] += 1
        return EntityConfusion([self.types[k] for k in used], counts)


def _counted(kind: str, true: np.ndarray, predicted: np.ndarray) -> tuple[int, int, int, int, int]:
    partner = _paired(kind, true, predicted)
    correct = sum(t >= 0 and _is_correct(kind, true[t], predicted[p]) for p, t in enumerate(partner))
    paired = sum(t >= 0 for t in partner)
    rest = paired - correct
    incorrect, partial = (0, rest) if kind == "partial" else (rest, 0)
    return correct, incorrect, partial, len(true) - paired, len(predicted) - paired


def _is_correct(kind: str, true: np.ndarray, predicted: np.ndarray) -> bool:
    return bool(
        (true[0] == predicted[0] or kind in ("exact", "partial")) and (kind == "type" or (true[1:] == predicted[1:]).all())
    )


def _paired(kind: str, true: np.ndarray, predicted: np.ndarray) -> Sequence[int]:
    """The true entity that each predicted one is paired with, or -1. Entities are in the order of the text, none overlap."""
    low = np.searchsorted(true[:, 2], predicted[:, 1], side="left").tolist()  # those that end before it are no partners
    high = np.searchsorted(true[:, 1], predicted[:, 2], side="right").tolist()
    taken: set[int] = set()
    partner = []
    for p, (a, b) in enumerate(zip(low, high, strict=True)):
        free = [t for t in range(a, b) if t not in taken]
        right = [t for t in free if _is_correct(kind, true[t], predicted[p])]
        chosen = min(right or free[:1], key=lambda t: int(np.abs(true[t, 1:] - predicted[p, 1:]).sum()), default=-1)
        taken.add(chosen)
        partner.append(chosen)
    return partner
