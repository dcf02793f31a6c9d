"""Accuracy of labels, token by token and sequence by sequence."""

from __future__ import annotations

import numpy as np

from partwise.tasks.tagging.counts import Labels, number_pair


def token_accuracy(y_true: Labels, y_pred: Labels) -> float:
    """Share of tokens with the right label, what conlleval calls accuracy; nan if there are none.

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
