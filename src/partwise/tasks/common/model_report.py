"""What ``partwise report`` tells of a model and a file with the truth: the same things for all tasks, in the same words.

A task makes a `ModelReport` in its module ``model_report``. The page in the browser and the command know no task: to them, a
report is scores, tables, kinds of mistakes, examples in panels, bins of probabilities and lists of weights.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from partwise.tasks.common.command_options import Refusal
from partwise.tasks.common.resampling import Measure, with_intervals

MOST_LABELS = 24  # in a table of confusions: those that are mistaken most
MOST_KINDS = 60  # of mistakes
EXAMPLES = 4  # of each kind
BINS = 10  # of probabilities
AROUND = 6  # words that are shown on either side of a mistake in a long sentence
LONG = 30  # words


class ScoreRow(NamedTuple):
    """A score, and the interval that chance could have moved it in."""

    name: str  #: for machines
    title: str
    value: float
    low: float = float("nan")
    high: float = float("nan")


@dataclass(frozen=True)
class ReportTable:
    """A row for each label, say. Cells are texts, counts (int) and shares between 0 and 1 (float), nan where there is none."""

    name: str  #: for machines
    title: str
    columns: tuple[str, ...]
    rows: list[list[Any]]
    note: str = ""

    def as_dicts(self) -> list[dict[str, Any]]:
        """For JSON."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


@dataclass(frozen=True)
class ConfusionTable:
    """How often a label was answered where another is true."""

    labels: list[str]
    counts: np.ndarray  #: [true, answered]
    unit: str  #: what is counted: "tokens"
    left_out: int = 0  #: labels that there is no room for


class Panel(NamedTuple):
    """A view of an example: `kind` says what is in it."""

    kind: str  #: words: `MarkedWord` s; fields: pairs (name, value); text: as it is, with line ends; drawing: an SVG picture
    content: Any
    caption: str = ""


class MarkedWord(NamedTuple):
    """A word of a sentence, what is true of it, and what was answered if that is something else."""

    word: str
    true: str
    answered: str | None = None


@dataclass(frozen=True)
class ShownExample:
    """An example to look at."""

    title: str  #: where it is
    note: str
    panels: list[Panel]


@dataclass(frozen=True)
class MistakeKind:
    """Something was taken for something else, so many times."""

    true: str
    answered: str
    count: int
    examples: list[ShownExample]


class ReliabilityBin(NamedTuple):
    """Answers of about the same probability."""

    low: float
    high: float
    n: int
    confidence: float  #: mean probability
    right: float  #: share


@dataclass(frozen=True)
class Reliability:
    """Whether answers of probability p are right in p of the cases."""

    unit: str
    bins: list[ReliabilityBin]

    @property
    def error(self) -> float:
        """The expected calibration error: mean of |confidence - share that is right|, weighted by the answers in each bin."""
        n = sum(one.n for one in self.bins)
        return sum(one.n * abs(one.confidence - one.right) for one in self.bins) / n if n else float("nan")


@dataclass(frozen=True)
class WeightList:
    """What a model has learnt: names and weights, the strongest first."""

    title: str
    rows: list[tuple[str, float]]


@dataclass(frozen=True)
class ModelReport:
    """All that is told of a model's answers to a file."""

    scores: list[ScoreRow]
    unit: str  #: what is drawn anew for the intervals: "sentences"
    tables: list[ReportTable] = field(default_factory=list)
    confusion: ConfusionTable | None = None
    mistakes: list[MistakeKind] = field(default_factory=list)
    more_mistakes: int = 0  #: kinds that there is no room for
    mistaken: str = ""  #: what mistakes are of, and which examples come first
    worst: list[ShownExample] = field(default_factory=list)
    ordered: str = ""  #: what makes an example the worst
    reliability: Reliability | None = None
    weights: list[WeightList] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  #: what readers should know before they believe the numbers

    def as_dict(self) -> dict[str, Any]:
        """The numbers, for machines; where examples are, but not how they look."""
        found: dict[str, Any] = {
            "scores": {one.name: {"value": one.value, "interval": [one.low, one.high]} for one in self.scores},
            **{table.name: table.as_dicts() for table in self.tables},
            "mistakes": [
                {
                    "true": one.true,
                    "answered": one.answered,
                    "count": one.count,
                    "examples": [example.title for example in one.examples],
                }
                for one in self.mistakes
            ],
            "worst": [{"example": one.title, "note": one.note} for one in self.worst],
            "weights": [{"title": one.title, "weights": [list(row) for row in one.rows]} for one in self.weights],
            "notes": self.notes,
        }
        if self.confusion is not None:
            counts = self.confusion.counts.tolist()
            found["confusion"] = {"unit": self.confusion.unit, "labels": self.confusion.labels, "counts": counts}
        if self.reliability is not None:
            bins = [one._asdict() for one in self.reliability.bins]
            found["calibration"] = {"unit": self.reliability.unit, "error": self.reliability.error, "bins": bins}
        return found


# ---------------------------------------------------------------------------------------------------------------------
# Made of arrays
# ---------------------------------------------------------------------------------------------------------------------


def score_rows(measures: Sequence[Measure], options: Any) -> list[ScoreRow]:
    """Scores with bootstrap intervals over examples."""
    found = with_intervals(measures, options.resamples, options.level, options.seed)
    return [ScoreRow(one.name, one.title, *found[one.name]) for one in measures]


def share_of(part: Any, whole: Any) -> float:
    """A share; nan of nothing."""
    return float(part) / float(whole) if whole else float("nan")


def label_table(counts: dict[str, tuple[int, int, int]], title: str, what: str, note: str = "") -> ReportTable:
    """Precision, recall and F1 of each label; `counts`: (that are true, answered, both) of it. Most frequent first."""
    rows = [
        [label, share_of(both, got), share_of(both, has), share_of(2 * both, has + got), has, got, both]
        for label, (has, got, both) in sorted(counts.items(), key=lambda item: (-item[1][0], -item[1][1], item[0]))
        if has or got
    ]
    return ReportTable("labels", title, (what, "precision", "recall", "F1", "true", "answered", "right"), rows, note)


class Confusions:
    """True and answered labels of the same positions, counted by pairs of them.

    Parameters
    ----------
    true, answered : int arrays (positions,)
        Places in `names`; positions whose truth is negative do not count.
    names : list of str
    """

    def __init__(self, true: np.ndarray, answered: np.ndarray, names: Sequence[str]):
        n = len(names)
        self.true, self.answered, self.names = np.asarray(true), np.asarray(answered), list(names)
        self.wrong = np.flatnonzero((self.true >= 0) & (self.true != self.answered))
        known = self.true >= 0
        self.counts = np.bincount(self.true[known] * n + self.answered[known], minlength=n * n).reshape(n, n)

    def by_label(self) -> dict[str, tuple[int, int, int]]:
        """(true, answered, both) of each label, for `label_table`."""
        has, got, both = self.counts.sum(1).tolist(), self.counts.sum(0).tolist(), np.diagonal(self.counts).tolist()
        return {name: (has[k], got[k], both[k]) for k, name in enumerate(self.names)}

    def table(self, unit: str) -> ConfusionTable | None:
        """Of the labels that are mistaken most; None if there are fewer than two."""
        occurs = np.flatnonzero(self.counts.sum(0) + self.counts.sum(1))
        if len(occurs) < 2:
            return None
        mistaken = self.counts - np.diag(np.diagonal(self.counts))
        weight = mistaken.sum(0) + mistaken.sum(1)
        some = np.array(sorted(occurs[np.argsort(-weight[occurs], kind="stable")[:MOST_LABELS]], key=lambda k: self.names[k]))
        labels = [self.names[k] for k in some.tolist()]
        return ConfusionTable(labels, self.counts[np.ix_(some, some)], unit, len(occurs) - len(some))

    def kinds(
        self, badness: np.ndarray, show: Callable[[int], ShownExample], owner: np.ndarray | None = None
    ) -> tuple[list[MistakeKind], int]:
        """Kinds of mistakes, the most frequent first, with the worst of their examples; and how many more kinds there are.

        Parameters
        ----------
        badness : array (positions,)
            The larger, the earlier.
        show : function of a position
        owner : int array (positions,), optional
            The example that each position is in: of each, one mistake of a kind is shown.
        """
        n = len(self.names)
        pairs: dict[int, dict[int, int]] = {}
        for t in self.wrong[np.argsort(-badness[self.wrong], kind="stable")].tolist():
            chosen = pairs.setdefault(int(self.true[t]) * n + int(self.answered[t]), {})
            if len(chosen) < EXAMPLES:
                chosen.setdefault(t if owner is None else int(owner[t]), t)
        flat = self.counts.ravel()
        order = sorted(pairs, key=lambda pair: (-flat[pair], pair))
        found = [
            MistakeKind(self.names[pair // n], self.names[pair % n], int(flat[pair]), [show(t) for t in pairs[pair].values()])
            for pair in order[:MOST_KINDS]
        ]
        return found, max(len(order) - MOST_KINDS, 0)


def numbered(*lists: Sequence[Hashable]) -> tuple[list[str], list[np.ndarray]]:
    """Labels of several lists as places in one list of names, sorted; None is -1."""
    names = sorted({str(label) for some in lists for label in some if label is not None})
    number = {name: k for k, name in enumerate(names)}
    return names, [np.array([-1 if label is None else number[str(label)] for label in some], np.int64) for some in lists]


def reliability(confidence: Any, right: Any, unit: str) -> Reliability | None:
    """Bins of answers by their probabilities; None if there are no answers."""
    p, right = np.clip(np.asarray(confidence, float), 0.0, 1.0), np.asarray(right, bool)
    if not len(p):
        return None
    place = np.minimum((p * BINS).astype(int), BINS - 1)
    bins = []
    for k in range(BINS):
        own = place == k
        n = int(own.sum())
        if n:
            bins.append(ReliabilityBin(k / BINS, (k + 1) / BINS, n, float(p[own].mean()), float(right[own].mean())))
    return Reliability(unit, bins)


def worst_first(n_wrong: np.ndarray, lengths: np.ndarray, most: int) -> list[int]:
    """Examples with mistakes, by their number over the root of the length: else long ones come first because they are long."""
    order = np.argsort(-n_wrong / np.sqrt(np.maximum(lengths, 1)), kind="stable")[:most]
    return [i for i in order.tolist() if n_wrong[i]]


def marked_words(words: Sequence[str], true: Sequence[str], answered: Sequence[str]) -> Panel:
    """A sentence with what is true and what was answered; of a long one, what is around mistakes."""
    wrong = [k for k, (a, b) in enumerate(zip(true, answered, strict=True)) if a != b]
    near = {k for t in wrong for k in range(t - AROUND, t + AROUND + 1)} if len(words) > LONG else set(range(len(words)))
    found: list[MarkedWord] = []
    for k, (word, a, b) in enumerate(zip(words, true, answered, strict=True)):
        if k in near:
            found.append(MarkedWord(word, a, b if a != b else None))
        elif not found or found[-1].word != "…" or found[-1].true:
            found.append(MarkedWord("…", ""))
    return Panel("words", found)


def side_by_side(true: str, answered: str, kind: str = "drawing") -> list[Panel]:
    """The truth and the answer, drawn."""
    return [Panel(kind, true, "true"), Panel(kind, answered, "answered")]


def require_truth(n: int, place: str, what: str) -> None:
    """Refuse a file in which there is nothing to compare with."""
    if n == 0:
        raise Refusal(f"{place}: there is nothing to compare with, no {what}.")


def note_unknown(names: Sequence[str], known: Sequence[Any], place: str, what: str) -> list[str]:
    """A note about labels of the truth that the model does not know; a refusal if it knows none of them."""
    strange = sorted({str(name) for name in names} - {str(name) for name in known})
    if not strange:
        return []
    if len(strange) == len(set(map(str, names))):
        raise Refusal(
            f"{place}: the model knows none of its {what} ({', '.join(map(repr, strange[:3]))}, ...); it knows "
            f"{', '.join(repr(str(name)) for name in list(known)[:3])}, ... Is that the file, and the column, you mean?"
        )
    some = ", ".join(strange[:10]) + (", ..." if len(strange) > 10 else "")
    return [f"the model does not know these {what} of the file, and answers them wrongly: {some}"]
