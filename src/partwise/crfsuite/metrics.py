"""Measures of single labels: those of `sklearn.metrics`, for lists of label sequences.

They count tokens. For chunks and entities see `partwise.metrics`, which counts spans as conlleval does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn import metrics

from partwise.crfsuite.utils import flatten


def _flat(measure: Callable[..., Any]) -> Callable[..., Any]:
    """`measure` of the labels end to end; further arguments are handed on."""

    def flat(y_true: Any, y_pred: Any, *args: Any, **kwargs: Any) -> Any:
        return measure(flatten(y_true), flatten(y_pred), *args, **kwargs)

    flat.__name__ = flat.__qualname__ = f"flat_{measure.__name__}"  # also what pickle and joblib look for
    flat.__doc__ = f"`sklearn.metrics.{measure.__name__}` of the labels of all sequences, end to end."
    return flat


flat_accuracy_score = _flat(metrics.accuracy_score)
flat_precision_score = _flat(metrics.precision_score)
flat_recall_score = _flat(metrics.recall_score)
flat_f1_score = _flat(metrics.f1_score)


def flat_fbeta_score(y_true: Any, y_pred: Any, beta: float, **kwargs: Any) -> Any:
    """`sklearn.metrics.fbeta_score` of the labels of all sequences, end to end; `beta` may be given by its place."""
    return metrics.fbeta_score(flatten(y_true), flatten(y_pred), beta=beta, **kwargs)


def flat_classification_report(y_true: Any, y_pred: Any, labels: Any = None, **kwargs: Any) -> Any:
    """`sklearn.metrics.classification_report` of the labels of all sequences, end to end; `labels` may be given by its place."""
    return metrics.classification_report(flatten(y_true), flatten(y_pred), labels=labels, **kwargs)


def sequence_accuracy_score(y_true: Any, y_pred: Any) -> float:
    """Share of sequences with every label right; 0 if there are none. One of another length is wrong."""
    pairs = list(zip(y_true, y_pred, strict=True))
    return sum(list(a) == list(b) for a, b in pairs) / len(pairs) if pairs else 0.0
