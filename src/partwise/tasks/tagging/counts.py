"""Counts per sequence: what every measure of labellings is made of.

All measures here are ratios of sums over sequences, so the counts of each sequence are all that scores, intervals and paired
tests need. With n_true and n_predicted spans, n_correct of which agree in type, beginning and end::

    accuracy           right tokens / tokens             precision   n_correct / n_predicted
    sequence_accuracy  right sequences / sequences       recall      n_correct / n_true
                                                         f1          2 n_correct / (n_true + n_predicted)

The last is the harmonic mean of precision and recall. A ratio 0 / 0 is nan for the accuracies and 0 for spans, as in conlleval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from partwise.text.chunk_schemes import Boundaries, LabelTable, is_chunking, label_table, read_boundaries
from partwise.text.label_codes import Coded, check_coded, code_sequences

Labels = Sequence[Sequence[Any]]
ADVICE = " Precision, recall and F1 are of spans; for labels that are not chunk tags there are the accuracies."

#: columns of `SequenceCounts.table`
SEQUENCES, EXACT, TOKENS, RIGHT, TRUE, PREDICTED, CORRECT = range(7)

#: measure -> numerator and denominator, as {column: factor}, and the value of 0 / 0
MEASURES: dict[str, tuple[dict[int, float], dict[int, float], float]] = {
    "accuracy": ({RIGHT: 1}, {TOKENS: 1}, float("nan")),
    "sequence_accuracy": ({EXACT: 1}, {SEQUENCES: 1}, float("nan")),
    "precision": ({CORRECT: 1}, {PREDICTED: 1}, 0.0),
    "recall": ({CORRECT: 1}, {TRUE: 1}, 0.0),
    "f1": ({CORRECT: 2}, {TRUE: 1, PREDICTED: 1}, 0.0),
}
SPAN_MEASURES = ("precision", "recall", "f1")


def measure_of(name: str, sums: np.ndarray) -> np.ndarray:
    """A measure, from sums of the columns of `SequenceCounts.table`, (..., columns) -> (...)."""
    numerator, denominator, undefined = MEASURES[name]
    above = sum(factor * sums[..., column] for column, factor in numerator.items())
    below = sum(factor * sums[..., column] for column, factor in denominator.items())
    return np.divide(above, below, out=np.full(np.shape(below), undefined), where=np.asarray(below) > 0)


class Numbered(NamedTuple):
    """True and predicted labels of the same tokens, numbered alike."""

    true: Coded
    predicted: Coded
    labels: list[Any]


def number_pair(y_true: Labels, y_pred: Labels) -> Numbered:
    """Lists of label sequences as numbers, after checking that they are of the same lengths."""
    number: dict[Any, int] = {}
    true, predicted = code_sequences(y_true, number, "y_true"), code_sequences(y_pred, number, "y_pred")
    n_true, n_predicted = np.diff(true.starts), np.diff(predicted.starts)
    if len(n_true) != len(n_predicted):
        raise ValueError(f"y_true has {len(n_true)} sequences, y_pred has {len(n_predicted)}.")
    if (n_true != n_predicted).any():
        i = int(np.argmax(n_true != n_predicted))
        raise ValueError(f"Sequence {i}: y_true has {n_true[i]} labels, y_pred has {n_predicted[i]}.")
    return Numbered(true, predicted, list(number))


def number_pair_coded(
    true_codes: Any, pred_codes: Any, starts: Any, labels: Sequence[Any], pred_labels: Sequence[Any] | None = None
) -> Numbered:
    """Numbered labels, checked; where the predicted ones have numbers of their own, renumbered like the true ones."""
    names = labels.tolist() if isinstance(labels, np.ndarray) else list(labels)
    if len(np.shape(true_codes)) == len(np.shape(pred_codes)) == 1 and len(true_codes) != len(pred_codes):
        raise ValueError(f"true_codes has {len(true_codes)} labels, pred_codes has {len(pred_codes)}.")
    true = check_coded(true_codes, starts, len(names), "true_codes")
    if pred_labels is None:
        return Numbered(true, check_coded(pred_codes, starts, len(names), "pred_codes"), names)
    predicted = check_coded(pred_codes, starts, len(pred_labels), "pred_codes")
    number = {name: k for k, name in enumerate(names)}
    others = pred_labels.tolist() if isinstance(pred_labels, np.ndarray) else pred_labels
    recode = np.array([number.setdefault(name, len(number)) for name in others], np.intp)
    return Numbered(true, Coded(recode[predicted.codes], predicted.starts), list(number))


class Match(NamedTuple):
    """Spans of the truth and of the prediction, and which of the true ones were found."""

    table: LabelTable
    true: Boundaries
    predicted: Boundaries
    first: np.ndarray  #: (true spans,) first token
    predicted_first: np.ndarray  #: (predicted spans,) first token
    correct: np.ndarray  #: (true spans,) bool


def match_spans(pair: Numbered) -> Match:
    """Spans that agree in type, beginning and end. O(tokens)."""
    table = label_table(pair.labels)
    true = read_boundaries(pair.true, table, "y_true", ADVICE)
    predicted = read_boundaries(pair.predicted, table, "y_pred", ADVICE)
    first, last = np.flatnonzero(true.begins), np.flatnonzero(true.ends)
    predicted_first = np.flatnonzero(predicted.begins)
    last_of = np.full(len(true.kind), -1)  # of the predicted span that begins at a token
    last_of[predicted_first] = np.flatnonzero(predicted.ends)
    correct = (last_of[first] == last) & (predicted.kind[first] == true.kind[first])
    return Match(table, true, predicted, first, predicted_first, correct)


@dataclass(frozen=True, eq=False)
class SequenceCounts:
    """Counts of each sequence; made by `sequence_counts`.

    Attributes
    ----------
    n_tokens, n_right, n_inside, n_inside_right : int arrays (sequences,)
        Tokens, those labelled right, and the same of tokens whose true label is not ``O``.
    types : list of str
        The types of spans, sorted; empty if spans were not counted.
    n_true, n_predicted, n_correct : int arrays (sequences, types), or None
        Spans; None if spans were not counted, that is if labels are not chunk tags.

    Examples
    --------
    >>> counts = sequence_counts([["B-A", "O"], ["O"]], [["B-A", "O"], ["B-A"]])
    >>> counts.n_tokens.tolist(), counts.n_right.tolist(), counts.types
    ([2, 1], [2, 0], ['A'])
    """

    n_tokens: np.ndarray
    n_right: np.ndarray
    n_inside: np.ndarray
    n_inside_right: np.ndarray
    types: list[str]
    n_true: np.ndarray | None = None
    n_predicted: np.ndarray | None = None
    n_correct: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.n_tokens)

    @property
    def has_spans(self) -> bool:
        """Whether spans were counted."""
        return self.n_true is not None

    @property
    def measures(self) -> list[str]:
        """Names of the measures that can be computed from these counts."""
        return [name for name in MEASURES if self.has_spans or name not in SPAN_MEASURES]

    def table(self, type: str | None = None) -> np.ndarray:
        """(sequences, 7) float64: the columns SEQUENCES ... CORRECT, spans of one type only if `type` is given."""
        columns = [np.ones(len(self)), self.n_right == self.n_tokens, self.n_tokens, self.n_right]
        if self.n_true is not None and self.n_predicted is not None and self.n_correct is not None:
            if type is not None and type not in self.types:
                raise ValueError(f"There are no spans of type {type!r}; the types are {', '.join(map(repr, self.types))}.")
            which = slice(None) if type is None else [self.types.index(type)]
            columns += [spans[:, which].sum(1) for spans in (self.n_true, self.n_predicted, self.n_correct)]
        else:
            columns += [np.zeros(len(self))] * 3
        return np.stack(columns, axis=1).astype(np.float64)

    def measure(self, name: str, type: str | None = None) -> float:
        """The value of a measure, for spans of one type if `type` is given."""
        self.check_measure(name)
        return float(measure_of(name, self.table(type).sum(0)))

    def check_measure(self, name: str) -> None:
        """Raise if there is no measure of that name, or none for these labels."""
        if name not in self.measures:
            why = ADVICE if name in MEASURES else ""
            raise ValueError(f"The 'measure' parameter must be one of {', '.join(map(repr, self.measures))}. Got {name!r}.{why}")


def sequence_counts(y_true: Labels, y_pred: Labels, spans: bool | None = None) -> SequenceCounts:
    """Count tokens and spans, sequence by sequence.

    Parameters
    ----------
    y_true, y_pred : lists of label sequences
    spans : bool, optional
        Whether to count spans; None: if all labels that occur are chunk tags (no labels at all pass for such).

    Examples
    --------
    >>> sequence_counts([["A", "B"]], [["A", "A"]]).n_right.tolist()
    [1]
    """
    return _count(number_pair(y_true, y_pred), spans)


def sequence_counts_coded(
    true_codes: Any,
    pred_codes: Any,
    starts: Any,
    labels: Sequence[Any],
    pred_labels: Sequence[Any] | None = None,
    spans: bool | None = None,
) -> SequenceCounts:
    """`sequence_counts` for numbered labels; the parameters are those of `span_scores_coded`.

    Parameters
    ----------
    true_codes, pred_codes, starts, labels, pred_labels
        As in `span_scores_coded`.
    spans : bool, optional
        As in `sequence_counts`.

    Examples
    --------
    >>> sequence_counts_coded([0, 1], [0, 0], [0, 2], ["A", "B"]).n_right.tolist()
    [1]
    """
    return _count(number_pair_coded(true_codes, pred_codes, starts, labels, pred_labels), spans)


def _count(pair: Numbered, spans: bool | None) -> SequenceCounts:
    n = len(pair.true.starts) - 1
    lengths = np.diff(pair.true.starts)
    sequence = np.repeat(np.arange(n), lengths)
    right = pair.true.codes == pair.predicted.codes
    inside = np.array([label != "O" for label in pair.labels], bool)[pair.true.codes]

    def per_sequence(tokens: np.ndarray) -> np.ndarray:
        return np.bincount(sequence[tokens], minlength=n)

    tokens = (lengths, per_sequence(right), per_sequence(inside), per_sequence(right & inside))
    if spans is None:
        used = np.zeros(len(pair.labels), bool)
        used[pair.true.codes] = used[pair.predicted.codes] = True
        names = [label for label, is_used in zip(pair.labels, used.tolist(), strict=True) if is_used] or pair.labels
        spans = is_chunking(names) or not names
    if not spans:
        return SequenceCounts(*tokens, [])
    match = match_spans(pair)
    types = sorted(match.table.types)
    column = np.array([types.index(kind) for kind in match.table.types], np.intp)

    def per_type(first: np.ndarray, kind: np.ndarray) -> np.ndarray:
        cell = sequence[first] * len(types) + column[kind[first]]
        return np.bincount(cell, minlength=n * len(types)).reshape(n, len(types))

    return SequenceCounts(
        *tokens,
        types,
        per_type(match.first, match.true.kind),
        per_type(match.predicted_first, match.predicted.kind),
        per_type(match.first[match.correct], match.true.kind),
    )
