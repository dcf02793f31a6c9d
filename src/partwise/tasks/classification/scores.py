"""How good answered classes are: accuracy; precision, recall and F1 of each class; which class is taken for which.

Macro averages are over the classes that occur, in the truth or among the answers. Intervals are what chance could have moved a
score to: of as many examples as there are, drawn anew with replacement, R times, the middle `level` of the R scores. Of examples
only the pair (true, answered) matters, so that a draw is one of a multinomial distribution over the pairs there are.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from partwise.features.given_labels import learn_labels, numbering

MOST_DRAWS = 50_000_000  # pairs times draws; macro averages of more have no interval


class ClassScores(NamedTuple):
    """Of one class, shares between 0 and 1; 0 where it is never answered, or never true."""

    precision: float
    recall: float
    f1: float
    examples: int  #: that are of the class
    answered: int  #: that it was answered for


class ClassificationScores(NamedTuple):
    """Shares between 0 and 1."""

    accuracy: float
    precision: float  #: macro average
    recall: float
    f1: float
    classes: dict[Hashable, ClassScores]
    pairs: np.ndarray  #: (pairs, 2) places in `classes`, true and answered
    counts: np.ndarray  #: (pairs,) of each pair

    @property
    def confusion(self) -> np.ndarray:
        """[true, answered]."""
        table = np.zeros((len(self.classes), len(self.classes)), np.int64)
        table[self.pairs[:, 0], self.pairs[:, 1]] = self.counts
        return table

    def intervals(self, resamples: int = 1000, level: float = 0.95, seed: int = 0) -> dict[str, tuple[float, float]]:
        """Bootstrap intervals of accuracy and macro F1."""
        rng, n = np.random.default_rng(seed), int(self.counts.sum())
        ends = [0.5 - 0.5 * level, 0.5 + 0.5 * level]
        drawn = {"accuracy": rng.binomial(n, self.accuracy, resamples) / n}
        if len(self.counts) * resamples <= MOST_DRAWS:
            draws = rng.multinomial(n, self.counts / n, resamples)
            drawn["f1"] = np.array([macro(*by_class(self.pairs, row, len(self.classes)))[2] for row in draws])
        found = {name: np.quantile(values, ends).tolist() for name, values in drawn.items()}
        return {name: (low, high) for name, (low, high) in found.items()}


def class_scores(truth: Sequence[Any] | np.ndarray, found: Sequence[Any] | np.ndarray) -> ClassificationScores:
    """Compare two lists of classes.

    Examples
    --------
    >>> scores = class_scores(["a", "a", "b"], ["a", "b", "b"])
    >>> scores.accuracy, scores.classes["a"].recall
    (0.6666666666666666, 0.5)
    """
    true, answered = (labels.tolist() if isinstance(labels, np.ndarray) else list(labels) for labels in (truth, found))
    if len(true) != len(answered):
        raise ValueError(f"There are {len(true)} examples, but {len(answered)} answers.")
    if not true:
        raise ValueError("There are no examples to score.")
    classes = learn_labels([*true, *answered])
    number, n = numbering(classes), len(classes)
    codes = np.array([number[label] for label in true]) * n + np.array([number[label] for label in answered])
    distinct, counts = np.unique(codes, return_counts=True)
    pairs = np.stack([distinct // n, distinct % n], axis=1)
    right, has, got = by_class(pairs, counts, n)
    precision, recall, f1 = shares(right, has, got)
    columns = zip(precision.tolist(), recall.tolist(), f1.tolist(), has.tolist(), got.tolist(), strict=True)
    each = {label: ClassScores(*row) for label, row in zip(classes.tolist(), columns, strict=True)}
    return ClassificationScores(float(right.sum() / counts.sum()), *macro(right, has, got), each, pairs, counts)


def by_class(pairs: np.ndarray, counts: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each class: examples answered rightly, of the class, and answered so."""
    same = pairs[:, 0] == pairs[:, 1]
    right = np.bincount(pairs[same, 0], counts[same], n)
    counted = right, np.bincount(pairs[:, 0], counts, n), np.bincount(pairs[:, 1], counts, n)
    return tuple(array.astype(np.int64) for array in counted)  # type: ignore[return-value]


def shares(right: np.ndarray, has: np.ndarray, got: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Precision, recall and F1 of each class."""
    return right / np.maximum(got, 1), right / np.maximum(has, 1), 2 * right / np.maximum(has + got, 1)


def macro(right: np.ndarray, has: np.ndarray, got: np.ndarray) -> tuple[float, float, float]:
    """Their means over the classes that occur."""
    occurs = has + got > 0
    precision, recall, f1 = (float(share[occurs].mean()) for share in shares(right, has, got))
    return precision, recall, f1
