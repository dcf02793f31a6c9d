"""How good labels are: accuracy, token by token and sequence by sequence, and precision, recall and F1 of spans.

Those of spans are what conlleval computes. How labels are read as spans, well-formed or not, is said in
`partwise.text.chunk_schemes`. A predicted span is correct if its type, its beginning and its end are.

Reference: E. Tjong Kim Sang and S. Buchholz, "Introduction to the CoNLL-2000 shared task: chunking", CoNLL 2000.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from partwise.features.given_labels import GivenLabels
from partwise.tasks.tagging.counts import Labels, Numbered, match_spans, number_pair, number_pair_coded
from partwise.text.chunk_schemes import FORM, label_table, read_boundaries, split_label
from partwise.text.label_codes import Coded

Span = tuple[str, int, int]


def spans(labels: Sequence[Any]) -> list[Span]:
    """Spans (type, first, last + 1) written down by the chunk tags of one sequence, read as conlleval reads them.

    ``B-X`` begins a span of type X, ``I-X`` continues it, ``O`` is outside. An ``I-X`` that continues nothing, or a span of
    another type, begins a span of its own, as in conlleval; so IOB1 is read rightly too. ``E-X`` or ``L-X`` (last) and ``S-X`` or
    ``U-X`` (single) of the schemes IOBES, BILOU and IOE are understood.

    Parameters
    ----------
    labels : sequence of str
        Of one sequence.

    Examples
    --------
    >>> spans(["B-NP", "I-NP", "O", "B-NP", "B-NP", "I-VP"])
    [('NP', 0, 2), ('NP', 3, 4), ('NP', 4, 5), ('VP', 5, 6)]
    """
    for t, label in enumerate(labels):
        if split_label(label) is None:
            raise ValueError(f"Token {t}: the label {label!r} is not of the form {FORM}.")
    table = label_table(labels)
    read = read_boundaries(Coded(np.arange(len(labels)), np.array([0, len(labels)])), table)
    first, last = np.flatnonzero(read.begins), np.flatnonzero(read.ends)
    found = zip(read.kind[first].tolist(), first.tolist(), last.tolist(), strict=True)
    return [(table.types[kind], a, b + 1) for kind, a, b in found]


@dataclass(frozen=True)
class SpanScores:
    """Spans found against spans there are.

    Attributes
    ----------
    n_true, n_predicted, n_correct : int
        A predicted span is correct if its type, beginning and end are all right.
    by_type : dict
        The same for every type of span, sorted; empty for a single type's own scores.

    Examples
    --------
    >>> scores = span_scores([["B-A", "B-B"]], [["B-A", "O"]])
    >>> scores.precision, scores.recall, scores.by_type["B"].n_true
    (1.0, 0.5, 1)
    """

    n_true: int
    n_predicted: int
    n_correct: int
    by_type: dict[str, SpanScores] = field(default_factory=dict, repr=False)

    @classmethod
    def of_types(cls, types: Sequence[str], n_true: np.ndarray, n_predicted: np.ndarray, n_correct: np.ndarray) -> SpanScores:
        """From counts for each of some types; a type that the labels know, but that no span has, is left out."""
        rows = sorted(zip(types, n_true.tolist(), n_predicted.tolist(), n_correct.tolist(), strict=True))
        by_type = {kind: cls(*counts) for kind, *counts in rows if counts[0] or counts[1]}
        return cls(int(n_true.sum()), int(n_predicted.sum()), int(n_correct.sum()), by_type)

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

    Parameters
    ----------
    y_true, y_pred : lists of label sequences

    Examples
    --------
    >>> scores = span_scores([["B-NP", "I-NP", "B-VP"]], [["B-NP", "O", "B-VP"]])
    >>> scores.n_correct, scores.precision, scores.by_type["NP"].recall
    (1, 0.5, 0.0)
    """
    return _scores(number_pair(y_true, y_pred))


def span_scores_coded(
    true_codes: Any, pred_codes: Any, starts: Any, labels: Sequence[Any], pred_labels: Sequence[Any] | None = None
) -> SpanScores:
    """`span_scores` for numbered labels, in vector operations: O(tokens), a millisecond or two for 50 000 of them.

    Parameters
    ----------
    true_codes, pred_codes : int arrays (tokens,)
        Token t has the true label ``labels[true_codes[t]]``.
    starts : int array (sequences + 1,)
        Sequence i is the tokens ``starts[i] : starts[i + 1]``.
    labels : sequence of str
    pred_labels : sequence of str, optional
        What `pred_codes` number, if not `labels`: a file's labels and a model's, say.

    Examples
    --------
    >>> span_scores_coded([0, 1], [0, 0], [0, 2], ["B-A", "O"]).precision
    0.5
    """
    return _scores(number_pair_coded(true_codes, pred_codes, starts, labels, pred_labels))


def _scores(pair: Numbered) -> SpanScores:
    match = match_spans(pair)
    types = match.table.types
    true, predicted = match.true.kind[match.first], match.predicted.kind[match.predicted_first]
    counts = (np.bincount(kind, minlength=len(types)) for kind in (true, predicted, true[match.correct]))
    return SpanScores.of_types(types, *counts)


def span_f1(y_true: Labels, y_pred: Labels) -> float:
    """``span_scores(y_true, y_pred).f1``; for model selection see `span_f1_scorer`.

    Parameters
    ----------
    y_true, y_pred : lists of label sequences

    Examples
    --------
    >>> span_f1([["B-A", "O", "B-B"]], [["B-A", "O", "O"]])
    0.6666666666666666
    """
    return span_scores(y_true, y_pred).f1


def token_accuracy(y_true: Labels, y_pred: Labels) -> float:
    """Share of tokens with the right label, what conlleval calls accuracy; nan if there are none.

    Parameters
    ----------
    y_true, y_pred : lists of label sequences

    Examples
    --------
    >>> token_accuracy([["a", "b"], ["c"]], [["a", "x"], ["c"]])
    0.6666666666666666
    """
    pair = number_pair(y_true, y_pred)
    right = pair.true.codes == pair.predicted.codes
    return float(right.mean()) if len(right) else float("nan")


def sequence_accuracy(y_true: Labels, y_pred: Labels) -> float:
    """Share of sequences with every label right (an empty one has); nan if there are none.

    Parameters
    ----------
    y_true, y_pred : lists of label sequences

    Examples
    --------
    >>> sequence_accuracy([["a", "b"], ["c"]], [["a", "x"], ["c"]])
    0.5
    """
    pair = number_pair(y_true, y_pred)
    n = len(pair.true.starts) - 1
    wrong = np.flatnonzero(pair.true.codes != pair.predicted.codes)
    with_errors = np.unique(np.searchsorted(pair.true.starts, wrong, side="right"))
    return (n - len(with_errors)) / n if n else float("nan")


def acceptable_share(truth: GivenLabels, codes: np.ndarray, classes: np.ndarray, weight: np.ndarray | None = None) -> float:
    """Share of tokens whose label, ``classes[code]``, is one that the truth accepts; nan if there are none.

    Of tokens with several right labels any is accepted; those whose label is unknown do not count.
    """
    told = np.array([label is not None for label in truth.distinct], bool)[truth.codes]
    weight = np.ones(int(told.sum())) if weight is None else weight[told]
    if not weight.any():
        return float("nan")
    return float(np.average(truth.allows(classes)[truth.codes, codes][told], weights=weight))
