"""Precision, recall and F1 of entities under the names of seqeval: what calls it runs with the import changed.

Labels are chunk tags in any scheme; entities are their spans, read as `partwise.text.chunk_schemes` says, which is what seqeval's
default mode and conlleval do. With ``mode="strict"`` a span counts only if each of its labels is the one that `scheme` gives to
that span, so ``I-X`` after ``O`` begins nothing in IOB2. With n_true and n_predicted spans of a type, n_correct in both::

    precision = n_correct / n_predicted        recall = n_correct / n_true        F = (1 + beta^2) P R / (beta^2 P + R)

``average`` says what is made of several types: ``"micro"`` adds up the counts, ``"macro"`` takes the mean of the types' scores,
``"weighted"`` the mean weighted by n_true, None gives an array with a score per type, sorted by name.

Results are seqeval's, except where that errs:

- E and L, S and U mean the same in every mode. seqeval's default mode does not know L and U and joins what they part.
- IOE1 ``E-A I-A`` is two spans, IOE1 is read whole. seqeval loses the second, as its authors note.
- IOB1 ``B-A I-A`` at the beginning is ill-formed and counts for nothing in strict mode. seqeval finds ``I-A`` in it.
- ``mode="strict"`` without a scheme recognises it from the true labels. seqeval's report does, its scores count by default mode.
- Labels that are no chunk tags are refused, with their place. seqeval cuts off their first character.
- Data without a single span give a report and scores (`zero_division`). seqeval raises, or answers nan.
- `sample_weight`, one number per sequence, is applied. seqeval does not look at it.

Reference: H. Nakayama, "seqeval: a Python framework for sequence labeling evaluation", 2018.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from partwise.tasks.tagging.counts import ADVICE, Labels, Numbered, number_pair
from partwise.tasks.tagging.scores import spans
from partwise.text.chunk_schemes import SCHEMES, LabelTable, label_table, read_boundaries, read_strictly, recognise_coded

AVERAGES = (None, "micro", "macro", "weighted")
NO_TYPE = "_"  # what seqeval calls the type of a bare B or I
WARN = "{} ill-defined and set to 0.0 where there are no {} entities; the zero_division parameter says what it should be."


def get_entities(seq: Sequence[Any], suffix: bool = False) -> list[tuple[str, int, int]]:
    """Spans (type, first, last) of one sequence of labels; of several, as if an O stood between them.

    Unlike those of `partwise.metrics.spans`, they end with their last token, not after it.

    Parameters
    ----------
    seq : list of labels, or of label sequences
    suffix : bool
        Whether prefixes stand behind types: ``PER-B``.

    Examples
    --------
    >>> get_entities(["B-PER", "I-PER", "O", "B-LOC"])
    [('PER', 0, 1), ('LOC', 3, 3)]
    """
    flat: list[Any] = []
    if any(isinstance(one, list | tuple | np.ndarray) for one in seq):
        for one in seq:
            flat += [*one, "O"]
    else:
        flat = list(seq)
    return [(kind or NO_TYPE, a, b - 1) for kind, a, b in spans([_turned(one) for one in flat] if suffix else flat)]


class EntityCounts(NamedTuple):
    """Spans of each type, weighted; see `entity_counts`."""

    types: list[str]  #: sorted
    n_true: np.ndarray  #: (types,)
    n_predicted: np.ndarray
    n_correct: np.ndarray


def entity_counts(
    y_true: Labels,
    y_pred: Labels,
    *,
    suffix: bool = False,
    mode: str | None = None,
    scheme: Any = None,
    sample_weight: Any = None,
) -> EntityCounts:
    """How many spans of each type there are, were found, and were found rightly. O(tokens)."""
    if mode not in (None, "strict"):
        raise ValueError(f"The 'mode' parameter must be None or 'strict'. Got {mode!r} instead.")
    pair = number_pair(y_true, y_pred)
    if suffix:
        pair = pair._replace(labels=[_turned(label) for label in pair.labels])
    weight = np.ones(len(pair.true.starts) - 1) if sample_weight is None else np.asarray(sample_weight)
    if weight.shape != (len(pair.true.starts) - 1,) or weight.dtype.kind not in "biuf":
        raise ValueError(f"sample_weight must have a number for each of the {len(pair.true.starts) - 1} sequences.")
    table = label_table(pair.labels)
    true, predicted = _spans_of(pair, table, mode, scheme)
    correct = true[np.isin(_keys(true, pair), _keys(predicted, pair))]
    owner = np.repeat(np.arange(len(weight)), np.diff(pair.true.starts))
    order = sorted(range(len(table.types)), key=lambda k: table.types[k] or NO_TYPE)

    def counted(some: np.ndarray) -> np.ndarray:
        own = None if sample_weight is None else weight[owner[some[:, 1]]]
        return np.bincount(some[:, 0], own, minlength=len(order))[order]

    counts = [counted(some) for some in (true, predicted, correct)]
    there = np.flatnonzero([bool((true[:, 0] == k).any() or (predicted[:, 0] == k).any()) for k in order])
    return EntityCounts([table.types[order[k]] or NO_TYPE for k in there], *(one[there] for one in counts))


def _turned(label: Any) -> Any:
    """``X-B`` as ``B-X``."""
    if not isinstance(label, str) or "-" not in label:
        return label
    kind, _, prefix = label.rpartition("-")
    return f"{prefix}-{kind}"


def scheme_named(scheme: Any) -> str | None:
    """The name of a scheme given as such, in any case, or as one of seqeval's classes."""
    name = scheme if isinstance(scheme, str) else getattr(scheme, "__name__", scheme)
    if name is None:
        return None
    if not isinstance(name, str) or name.lower() not in SCHEMES:
        raise ValueError(f"The 'scheme' parameter must be one of {', '.join(SCHEMES)}. Got {scheme!r} instead.")
    return name.lower()


def _spans_of(pair: Numbered, table: LabelTable, mode: str | None, scheme: Any) -> list[np.ndarray]:
    """(spans, 3): type, first token, last token; of the truth, and of the prediction."""
    name = scheme_named(scheme)
    if mode is None and name is not None:
        warnings.warn("The 'scheme' parameter is for mode='strict'; otherwise labels are read in any scheme.", stacklevel=5)
    read_both = [read_boundaries(*one, ADVICE) for one in ((pair.true, table, "y_true"), (pair.predicted, table, "y_pred"))]
    if mode == "strict" and name is None:
        name = recognise_coded(*pair.true, pair.labels)
        if name is None and len(pair.true.codes):
            raise ValueError(f"The true labels are in no one scheme; set the 'scheme' parameter to one of {', '.join(SCHEMES)}.")
    found = []
    for coded, read in zip((pair.true, pair.predicted), read_both, strict=True):
        first, last = np.flatnonzero(read.begins), np.flatnonzero(read.ends)
        if mode == "strict" and name is not None:
            fine = read_strictly(coded, table, read, name)
            first, last = first[fine], last[fine]
        found.append(np.stack([read.kind[first].astype(np.int64), first, last], axis=1))
    return found


def _keys(some: np.ndarray, pair: Numbered) -> np.ndarray:
    """A number for each span, the same for the same span."""
    n = len(pair.true.codes) + 1
    return (some[:, 0] * n + some[:, 1]) * n + some[:, 2]


# ---------------------------------------------------------------------------------------------------------------------
# Scores
# ---------------------------------------------------------------------------------------------------------------------


def precision_recall_fscore_support(
    y_true: Labels,
    y_pred: Labels,
    *,
    average: str | None = None,
    warn_for: Sequence[str] = ("precision", "recall", "f-score"),
    beta: float = 1.0,
    sample_weight: Any = None,
    zero_division: Any = "warn",
    suffix: bool = False,
    mode: str | None = None,
    scheme: Any = None,
) -> tuple[Any, Any, Any, Any]:
    """Precision, recall, F score and number of true entities, for each type or averaged.

    Parameters
    ----------
    y_true, y_pred : lists of label sequences
    average : None, "micro", "macro" or "weighted"
    warn_for : names of the scores that are asked for; of others there are no warnings
    beta : float
        Of the F score: recall counts beta times as much as precision.
    sample_weight : one number per sequence, optional
    zero_division : "warn", 0 or 1
        What a score is where it would be 0 / 0; "warn": 0, and a warning of scikit-learn's kind.
    suffix : bool
        Whether labels are written ``PER-B`` instead of ``B-PER``.
    mode : None or "strict"
    scheme : str or class, optional
        For strict mode: ``"IOB2"`` and so on, or seqeval's class of that name; recognised from the true labels if None.

    Examples
    --------
    >>> y_true, y_pred = [["B-A", "I-A", "B-B"]], [["B-A", "O", "B-B"]]
    >>> precision_recall_fscore_support(y_true, y_pred, average="micro")
    (0.5, 0.5, 0.5, 2)
    >>> precision_recall_fscore_support(y_true, y_pred, average=None)[1].tolist()
    [0.0, 1.0]
    """
    counts = entity_counts(y_true, y_pred, suffix=suffix, mode=mode, scheme=scheme, sample_weight=sample_weight)
    return averaged(counts, average, warn_for, beta, zero_division)


def averaged(counts: EntityCounts, average: str | None, warn_for: Sequence[str], beta: float, zero_division: Any) -> tuple:
    """The scores that counts amount to."""
    if average not in AVERAGES:
        raise ValueError(f"The 'average' parameter must be one of {', '.join(map(repr, AVERAGES))}. Got {average!r} instead.")
    if not beta >= 0:
        raise ValueError(f"The 'beta' parameter must be a float in the range [0, inf]. Got {beta!r} instead.")
    if zero_division not in ("warn", 0, 1):
        raise ValueError(f"The 'zero_division' parameter must be 'warn', 0 or 1. Got {zero_division!r} instead.")
    undefined = 1.0 if zero_division in (1,) else 0.0
    n_true, n_predicted, n_correct = counts[1:]
    if average == "micro":
        n_true, n_predicted, n_correct = (np.array([one.sum()]) for one in counts[1:])
    precision = np.divide(n_correct, n_predicted, out=np.full(len(n_true), undefined), where=n_predicted > 0)
    recall = np.divide(n_correct, n_true, out=np.full(len(n_true), undefined), where=n_true > 0)
    if zero_division == "warn":
        _warn_of(n_true, n_predicted, warn_for)
    if np.isinf(beta):
        f = recall
    else:
        below = beta**2 * precision + recall
        f = np.divide((1 + beta**2) * precision * recall, below, out=np.zeros(len(below)), where=below > 0)
    if average is None:
        return precision, recall, f, n_true
    total = n_true.sum().item()
    if average == "weighted" and not total:
        none_found = undefined if not n_predicted.sum() else 0.0
        return none_found, undefined, none_found, total
    if not len(n_true):
        return undefined, undefined, undefined, total
    weights = n_true if average == "weighted" else None
    return *(float(np.average(one, weights=weights)) for one in (precision, recall, f)), total


def _warn_of(n_true: np.ndarray, n_predicted: np.ndarray, warn_for: Sequence[str]) -> None:
    words = []
    if "precision" in warn_for and (n_predicted == 0).any():
        words.append(WARN.format("Precision is", "predicted"))
    if "recall" in warn_for and (n_true == 0).any():
        words.append(WARN.format("Recall is", "true"))
    if tuple(warn_for) == ("f-score",) and ((n_true == 0) & (n_predicted == 0)).any():
        words.append(WARN.format("F-score is", "true nor predicted"))
    if words:
        from sklearn.exceptions import UndefinedMetricWarning

        for one in words:
            warnings.warn(one, UndefinedMetricWarning, stacklevel=4)


def precision_score(y_true: Labels, y_pred: Labels, *, average: str | None = "micro", **options: Any) -> Any:
    """Share of predicted entities that are right; the parameters are those of `precision_recall_fscore_support`.

    Parameters
    ----------
    y_true, y_pred : lists of label sequences
    average : {"micro", "macro", "weighted"} or None
        Over types; None: an array of all.
    **options
        Those of `precision_recall_fscore_support`.

    Examples
    --------
    >>> precision_score([["B-A", "O"]], [["B-A", "B-A"]])
    0.5
    """
    return precision_recall_fscore_support(y_true, y_pred, average=average, warn_for=("precision",), **options)[0]


def recall_score(y_true: Labels, y_pred: Labels, *, average: str | None = "micro", **options: Any) -> Any:
    """Share of true entities that were found; the parameters are those of `precision_recall_fscore_support`.

    Parameters
    ----------
    y_true, y_pred : lists of label sequences
    average : {"micro", "macro", "weighted"} or None
        Over types; None: an array of all.
    **options
        Those of `precision_recall_fscore_support`.

    Examples
    --------
    >>> recall_score([["B-A", "B-A"]], [["B-A", "O"]])
    0.5
    """
    return precision_recall_fscore_support(y_true, y_pred, average=average, warn_for=("recall",), **options)[1]


def f1_score(y_true: Labels, y_pred: Labels, *, average: str | None = "micro", **options: Any) -> Any:
    """Harmonic mean of precision and recall; the parameters are those of `precision_recall_fscore_support`.

    Parameters
    ----------
    y_true, y_pred : lists of label sequences
    average : {"micro", "macro", "weighted"} or None
        Over types; None: an array of all.
    **options
        Those of `precision_recall_fscore_support`.

    Examples
    --------
    >>> f1_score([["B-A", "I-A", "O"]], [["B-A", "I-A", "B-A"]])
    0.6666666666666666
    >>> f1_score([["B-A", "I-A"]], [["I-A", "I-A"]], mode="strict", scheme="IOB2")
    0.0
    """
    return precision_recall_fscore_support(y_true, y_pred, average=average, warn_for=("f-score",), **options)[2]


def _flat(y_true: Any, y_pred: Any) -> tuple[np.ndarray, np.ndarray, list[Any]]:
    """Codes and labels of sequences, or of one sequence as seqeval allows."""
    if not any(isinstance(one, list | tuple | np.ndarray) for one in y_true):
        y_true, y_pred = [list(y_true)], [list(y_pred)]
    pair = number_pair(y_true, y_pred)
    return pair.true.codes, pair.predicted.codes, pair.labels


def accuracy_score(y_true: Any, y_pred: Any) -> float:
    """Share of tokens with the right label; nan if there are none.

    Parameters
    ----------
    y_true, y_pred : lists of label sequences

    Examples
    --------
    >>> accuracy_score([["B-A", "O"]], [["B-A", "B-A"]])
    0.5
    """
    true, predicted, _ = _flat(y_true, y_pred)
    return float((true == predicted).mean()) if len(true) else float("nan")


def performance_measure(y_true: Any, y_pred: Any) -> dict[str, int]:
    """Tokens: TP right and not O, FP wrong and answered other than O, FN answered O and not so, TN rightly O.

    Parameters
    ----------
    y_true, y_pred : lists of label sequences

    Examples
    --------
    >>> performance_measure([["O", "B-A", "B-B"]], [["O", "B-A", "O"]])
    {'TP': 1, 'FP': 0, 'FN': 1, 'TN': 1}
    """
    true, predicted, labels = _flat(y_true, y_pred)
    inside = np.array([label != "O" for label in labels], bool)
    right, true, predicted = true == predicted, inside[true], inside[predicted]
    cells = {"TP": right & true, "FP": ~right & predicted, "FN": true & ~predicted, "TN": right & ~true}
    return {name: int(cell.sum()) for name, cell in cells.items()}


# ---------------------------------------------------------------------------------------------------------------------
# Report
# ---------------------------------------------------------------------------------------------------------------------


def classification_report(
    y_true: Labels,
    y_pred: Labels,
    digits: int = 2,
    suffix: bool = False,
    output_dict: bool = False,
    mode: str | None = None,
    sample_weight: Any = None,
    zero_division: Any = "warn",
    scheme: Any = None,
) -> Any:
    """Precision, recall and F1 of each type and their averages, as a text or, with `output_dict`, as a dict of dicts.

    Parameters
    ----------
    y_true, y_pred : lists of label sequences
    digits : int
        Behind the point, in the text.
    suffix : bool
        Whether prefixes stand behind types: ``PER-B``.
    output_dict : bool
        A dict instead of a text.
    mode, scheme, sample_weight, zero_division
        As in `precision_recall_fscore_support`.

    Examples
    --------
    >>> print(classification_report([["B-A", "I-A", "B-B"]], [["B-A", "O", "B-B"]]).rstrip())
                  precision    recall  f1-score   support
    <BLANKLINE>
               A       0.00      0.00      0.00         1
               B       1.00      1.00      1.00         1
    <BLANKLINE>
       micro avg       0.50      0.50      0.50         2
       macro avg       0.50      0.50      0.50         2
    weighted avg       0.50      0.50      0.50         2
    """
    counts = entity_counts(y_true, y_pred, suffix=suffix, mode=mode, scheme=scheme, sample_weight=sample_weight)
    every = ("precision", "recall", "f-score")
    columns = averaged(counts, None, every, 1.0, zero_division)
    rows: dict[str, tuple] = dict(zip(counts.types, zip(*(one.tolist() for one in columns), strict=True), strict=True))
    quiet = 0 if zero_division == "warn" else zero_division  # what there is to warn of has been said
    means = {f"{one} avg": averaged(counts, one, every, 1.0, quiet) for one in AVERAGES[1:]}
    if output_dict:
        names = ("precision", "recall", "f1-score", "support")
        return {name: dict(zip(names, row, strict=True)) for name, row in (rows | means).items()}
    width = max([len("weighted avg"), digits, *map(len, rows)])
    lines = [f"{'':>{width}}  " + " ".join(f"{title:>9}" for title in ("precision", "recall", "f1-score", "support")), ""]
    for part in (rows, means):
        for name, (*scores, support) in part.items():
            lines.append(f"{name:>{width}}  " + " ".join(f"{one:>9.{digits}f}" for one in scores) + f" {support:>9}")
        lines.append("")
    return "\n".join(lines)
