"""How good predictions are, in the measures of each task.

Sequences: accuracy per token and per sequence, and precision, recall and F1 of spans as the CoNLL shared tasks count them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

Labels = Sequence[Sequence[Any]]
Span = tuple[str, int, int]


def _check(y_true: Labels, y_pred: Labels) -> Iterator[tuple[Sequence[Any], Sequence[Any]]]:
    if len(y_true) != len(y_pred):
        raise ValueError(f"y_true has {len(y_true)} sequences, y_pred has {len(y_pred)}.")
    for i, (true, predicted) in enumerate(zip(y_true, y_pred, strict=True)):
        if len(true) != len(predicted):
            raise ValueError(f"Sequence {i}: y_true has {len(true)} labels, y_pred has {len(predicted)}.")
        yield true, predicted


def token_accuracy(y_true: Labels, y_pred: Labels) -> float:
    """Share of tokens with the right label; nan if there are none."""
    right = total = 0
    for true, predicted in _check(y_true, y_pred):
        right += sum(bool(a == b) for a, b in zip(true, predicted, strict=True))
        total += len(true)
    return right / total if total else float("nan")


def sequence_accuracy(y_true: Labels, y_pred: Labels) -> float:
    """Share of sequences with every label right; nan if there are none."""
    right = [all(a == b for a, b in zip(true, predicted, strict=True)) for true, predicted in _check(y_true, y_pred)]
    return sum(right) / len(right) if right else float("nan")


def spans(labels: Sequence[Hashable]) -> list[Span]:
    """Spans (type, first, last + 1) written down by IOB labels, read as conlleval reads them.

    ``B-X`` begins a span of type X, ``I-X`` continues it, ``O`` is outside. An ``I-X`` that continues nothing, or a span of
    another type, begins a span of its own, as in conlleval; so IOB1 is read rightly too. ``E-X`` (last) and ``S-X`` (single) of
    the IOBES scheme are understood.

    Examples
    --------
    >>> spans(["B-NP", "I-NP", "O", "B-NP", "B-NP", "I-VP"])
    [('NP', 0, 2), ('NP', 3, 4), ('NP', 4, 5), ('VP', 5, 6)]
    """
    found: list[Span] = []
    kind, first = None, 0
    for t, label in enumerate(labels):
        tag, dash, own = str(label).partition("-")
        if tag not in ("B", "I", "E", "S", "O") or (tag == "O" and dash):
            raise ValueError(f"Token {t}: the label {label!r} is not of the form B-type, I-type, E-type, S-type or O.")
        if kind is not None and (tag in ("B", "S", "O") or own != kind):
            found.append((kind, first, t))
            kind = None
        if tag != "O" and kind is None:
            kind, first = own, t
        if kind is not None and tag in ("E", "S"):
            found.append((kind, first, t + 1))
            kind = None
    if kind is not None:
        found.append((kind, first, len(labels)))
    return found


@dataclass(frozen=True)
class SpanScores:
    """Spans found against spans there are.

    Attributes
    ----------
    n_true, n_predicted, n_correct : int
        A predicted span is correct if its type, beginning and end are all right.
    by_type : dict
        The same for every type of span; empty for a single type's own scores.
    """

    n_true: int
    n_predicted: int
    n_correct: int
    by_type: dict[str, SpanScores] = field(default_factory=dict, repr=False)

    @property
    def precision(self) -> float:
        """Share of predicted spans that are correct; 0 if none was predicted."""
        return self.n_correct / self.n_predicted if self.n_predicted else 0.0

    @property
    def recall(self) -> float:
        """Share of true spans that were found; 0 if there are none."""
        return self.n_correct / self.n_true if self.n_true else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall: 2 correct / (true + predicted); 0 if there are no spans at all."""
        total = self.n_true + self.n_predicted
        return 2 * self.n_correct / total if total else 0.0


def span_scores(y_true: Labels, y_pred: Labels) -> SpanScores:
    """Precision, recall and F1 of spans, micro-averaged over types, as conlleval computes them.

    Examples
    --------
    >>> scores = span_scores([["B-NP", "I-NP", "B-VP"]], [["B-NP", "O", "B-VP"]])
    >>> scores.n_correct, scores.precision, scores.by_type["NP"].recall
    (1, 0.5, 0.0)
    """
    true, predicted, correct = Counter[str](), Counter[str](), Counter[str]()
    for i, (a, b) in enumerate(_check(y_true, y_pred)):
        try:
            in_a, in_b = set(spans(a)), set(spans(b))
        except ValueError as error:
            raise ValueError(f"Sequence {i}: {error}") from None
        true.update(kind for kind, _, _ in in_a)
        predicted.update(kind for kind, _, _ in in_b)
        correct.update(kind for kind, _, _ in in_a & in_b)
    kinds = sorted(true.keys() | predicted.keys())
    by_type = {kind: SpanScores(true[kind], predicted[kind], correct[kind]) for kind in kinds}
    return SpanScores(true.total(), predicted.total(), correct.total(), by_type)


def span_f1(y_true: Labels, y_pred: Labels) -> float:
    """``span_scores(y_true, y_pred).f1``, in the form that scikit-learn's ``make_scorer`` takes."""
    return span_scores(y_true, y_pred).f1
