"""How good predicted RNA structures are: sensitivity and selectivity of base pairs.

Sensitivity (recall) is the share of true pairs that were found, selectivity (precision, positive predictive value) the share of
found pairs that are true, F1 their harmonic mean. A pair may be counted as found if it is off by one base at one end
(``slips``), as has been the habit where structures were derived by comparing sequences. Means are over sequences, as papers
report them; `pooled` is over all pairs of all sequences together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class BasePairScores(NamedTuple):
    """Shares between 0 and 1, means over sequences; nan where there are none.

    Examples
    --------
    >>> scores = base_pair_scores([[3, -1, -1, 0]], [[3, -1, -1, 0]])
    >>> scores.f1, scores.complete, scores.pairs
    (1.0, 1.0, 1)
    """

    sensitivity: float
    selectivity: float
    f1: float
    pooled_sensitivity: float
    pooled_selectivity: float
    pooled_f1: float
    complete: float  #: sequences with all pairs right, and no other
    sequences: int
    pairs: int  #: true ones


def base_pair_counts(truth: Sequence, predicted: Sequence, slips: bool = False) -> np.ndarray:
    """(sequences, 4): true pairs, those that were found, found pairs, those that are true.

    Parameters
    ----------
    truth, predicted : lists of integer sequences
        The partner of each base, from 0, or -1.
    slips : bool
        Whether a pair counts that is off by one base at one end.

    Examples
    --------
    >>> base_pair_counts([[5, 4, -1, -1, 1, 0]], [[5, -1, -1, -1, -1, 0]]).tolist()
    [[2, 1, 1, 1]]
    """
    if len(truth) != len(predicted):
        raise ValueError(f"There are {len(truth)} structures, but {len(predicted)} predictions.")
    counts = np.zeros((len(truth), 4), np.int64)
    for k, (true, found) in enumerate(zip(truth, predicted, strict=True)):
        true, found = np.asarray(true, np.int64), np.asarray(found, np.int64)
        if true.shape != found.shape or true.ndim != 1:
            raise ValueError(f"sequence {k}: the structure has {true.size} bases, but the prediction {found.size}.")
        here = np.arange(len(true))
        of_true, of_found = here[true > here], here[found > here]
        recalled, right = true[of_true] == found[of_true], true[of_found] == found[of_found]
        if slips:
            recalled, right = near(of_true, true, found), near(of_found, found, true)
        counts[k] = len(of_true), recalled.sum(), len(of_found), right.sum()
    return counts


def near(some: np.ndarray, partners: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Whether the pairs that begin at `some` are among the others, or one base off at one end."""
    ends, n = partners[some], len(partners)
    found = others[some] == ends
    for shift in (-1, 1):
        found |= np.where((some + shift >= 0) & (some + shift < n), others[np.clip(some + shift, 0, n - 1)] == ends, False)
        found |= others[some] == ends + shift
    return found


def base_pair_scores(truth: Sequence, predicted: Sequence, *, slips: bool = False) -> BasePairScores:
    """Sensitivity, selectivity and F1; see `base_pair_counts` for the parameters.

    A sequence without true pairs counts as 1 if none was found, and as 0 otherwise; so does one without found pairs.

    Parameters
    ----------
    truth, predicted : lists of integer sequences
        The partner of each base, from 0, or -1.
    slips : bool
        Whether a pair counts that is off by one base at one end.

    Examples
    --------
    >>> scores = base_pair_scores([[5, 4, -1, -1, 1, 0]], [[5, -1, -1, -1, -1, 0]])
    >>> scores.sensitivity, scores.selectivity
    (0.5, 1.0)
    """
    counts = base_pair_counts(truth, predicted, slips)
    each = sequence_scores(counts)
    means = each.mean(0) if len(counts) else np.full(3, np.nan)
    pooled = sequence_scores(counts.sum(0, keepdims=True))[0] if len(counts) else np.full(3, np.nan)
    complete = float((each.min(1) == 1.0).mean()) if len(counts) else float("nan")
    found = [float(value) for value in (*means, *pooled)]
    return BasePairScores(
        found[0], found[1], found[2], found[3], found[4], found[5], complete, len(counts), int(counts[:, 0].sum())
    )


def sequence_scores(counts: np.ndarray) -> np.ndarray:
    """(sequences, 3): sensitivity, selectivity and F1 of each row of `base_pair_counts`."""
    true, recalled, found, right = (column.astype(np.float64) for column in counts.T)
    neither = (true == 0) & (found == 0)
    sensitivity = np.where(true > 0, recalled / np.maximum(true, 1), neither)
    selectivity = np.where(found > 0, right / np.maximum(found, 1), neither)
    total = sensitivity + selectivity
    return np.stack(
        [sensitivity, selectivity, np.where(total > 0, 2 * sensitivity * selectivity / np.maximum(total, 1e-300), 0.0)], 1
    )
