"""How good alignments are: recall, precision and F1 of the pairs of places that they align.

Recall is the share of the true pairs that were found, what Do et al. (2008) report and multiple aligners call the developer's or
SP score; precision the share of the found pairs that are true, the modeler's score. Only true pairs in *core* columns count for
recall where such are given, and for precision only found pairs of places that are in them. Shares are of each alignment, and the
mean over alignments is what is reported; pooled ones count every pair alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

BINS = ((0, 10), (10, 20), (20, 30), (30, 100))  #: of identity, %, as Do et al. (2008) have them


class AlignmentScores(NamedTuple):
    """Shares between 0 and 1, nan where there is nothing to count.

    Examples
    --------
    >>> scores = alignment_scores([[0, 1, -1]], [[0, -1, 1]])
    >>> scores.pairs, scores.f1, scores.complete
    (2, 0.5, 0.0)
    """

    recall: float  #: mean over alignments
    precision: float
    f1: float  #: harmonic mean of these two
    pooled_recall: float  #: over all pairs
    pooled_precision: float
    complete: float  #: alignments with all true pairs found
    pairs: int  #: true pairs that count
    alignments: int


def pair_counts(truth: Sequence[Any], predicted: Sequence[Any], core: Sequence[Any] | None = None) -> np.ndarray:
    """(N, 3) pairs that are true, found, and both, of each alignment.

    Parameters
    ----------
    truth, predicted : sequences of integer arrays
        For each place of the first sequence its partner in the second, negative for none.
    core : sequence of bool arrays, optional
        Places of the first sequence that count.
    """
    if len(truth) != len(predicted) or (core is not None and len(core) != len(truth)):
        raise ValueError(
            f"There must be as many predicted alignments, and cores, as true ones: {len(truth)}. Got {len(predicted)}."
        )
    counts = np.zeros((len(truth), 3), np.int64)
    for k, (right, found) in enumerate(zip(truth, predicted, strict=True)):
        right, found = np.asarray(right), np.asarray(found)
        if right.shape != found.shape:
            raise ValueError(f"alignment {k}: the first sequence has {len(right)} places, the predicted one {len(found)}.")
        known = np.ones(len(right), bool) if core is None else np.asarray(core[k], bool)
        known = known & (right > -2)
        counts[k] = (known & (right >= 0)).sum(), (known & (found >= 0)).sum(), (known & (right >= 0) & (right == found)).sum()
    return counts


def recalls(truth: Sequence[Any], predicted: Sequence[Any], core: Sequence[Any] | None = None) -> np.ndarray:
    """(N,) recall of each alignment; nan where no true pair counts."""
    return recalls_of(pair_counts(truth, predicted, core))


def recalls_of(counts: np.ndarray) -> np.ndarray:
    """The same from what `pair_counts` has counted."""
    return np.where(counts[:, 0] > 0, counts[:, 2] / np.maximum(counts[:, 0], 1), np.nan)


def recall_by_identity(each: np.ndarray, identity: np.ndarray) -> list[dict[str, Any]]:
    """Mean recall, of that of each alignment, where so many of the true pairs have the same letter."""
    rows, percents = [], np.round(100 * identity)
    for low, high in BINS:
        some = (percents > (low if low else -1)) & (percents <= high) & ~np.isnan(each)
        recall = float(each[some].mean()) if some.any() else None
        rows.append({"above": low, "to": high, "alignments": int(some.sum()), "recall": recall})
    return rows


def alignment_scores(truth: Sequence[Any], predicted: Sequence[Any], core: Sequence[Any] | None = None) -> AlignmentScores:
    """Recall, precision and F1.

    Parameters
    ----------
    truth, predicted : lists of integer sequences
        For each place of the first sequence its partner in the second, or -1.
    core : list of bool sequences, optional
        Places that count.

    Examples
    --------
    >>> scores = alignment_scores([[0, 1, -1]], [[0, -1, 1]])
    >>> scores.recall, scores.precision
    (0.5, 0.5)
    """
    return scores_of(pair_counts(truth, predicted, core))


def scores_of(counts: np.ndarray) -> AlignmentScores:
    """The same from what `pair_counts` has counted."""
    true, found, both = counts.T

    def mean(of: np.ndarray) -> float:
        some = of > 0
        return float((both[some] / of[some]).mean()) if some.any() else float("nan")

    recall, precision = mean(true), mean(found)
    total = recall + precision
    known = true > 0
    return AlignmentScores(
        recall,
        precision,
        2 * recall * precision / total if total > 0 else total if total != total else 0.0,
        float(both.sum() / true.sum()) if true.sum() else float("nan"),
        float(both.sum() / found.sum()) if found.sum() else float("nan"),
        float((both[known] == true[known]).mean()) if known.any() else float("nan"),
        int(true.sum()),
        len(counts),
    )
