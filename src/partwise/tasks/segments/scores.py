"""How good segments are: precision, recall and F1, as conlleval computes them.

A segment is right if its label and both its ends are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from partwise.features.given_labels import GivenLabels
from partwise.tasks.segments.data import spans_of


class SegmentCounts(NamedTuple):
    """Counts of each sentence."""

    kinds: list[str]  #: labels of segments, sorted
    true: np.ndarray  #: (sentences, kinds) segments there are
    found: np.ndarray  #: (sentences, kinds) segments answered
    right: np.ndarray  #: (sentences, kinds) those in both
    tokens: np.ndarray  #: (sentences,)
    tokens_right: np.ndarray  #: (sentences,) whose label is right

    def by_kind(self) -> dict[str, tuple[int, int, int]]:
        """True, found and right ones of each label."""
        totals = (self.true.sum(0).tolist(), self.found.sum(0).tolist(), self.right.sum(0).tolist())
        return {kind or "-": counts for kind, counts in zip(self.kinds, zip(*totals, strict=True), strict=True)}

    def scores(self) -> dict[str, Any]:
        """Under their usual names."""
        true, found, right = (int(table.sum()) for table in (self.true, self.found, self.right))
        n = int(self.tokens.sum())
        return {
            "precision": right / found if found else 0.0,
            "recall": right / true if true else 0.0,
            "f1": 2 * right / (true + found) if true + found else 0.0,
            "accuracy": float(self.tokens_right.sum()) / n if n else float("nan"),
            "sequence_accuracy": float((self.tokens == self.tokens_right).mean()) if len(self.tokens) else float("nan"),
            "segments": true,
        }


def segment_counts(truth: GivenLabels, answer: GivenLabels, starts: np.ndarray) -> SegmentCounts:
    """Compare chunk labels, in whatever schemes, of sentences laid end to end."""
    if truth.is_partial:
        raise ValueError("Segments can only be compared where the labels of all tokens are known.")
    pairs = [spans_of(given.codes, starts, given.distinct) for given in (truth, answer)]
    kinds = sorted({kind for spans in pairs for kind, _, _ in spans})
    number, n = {kind: k for k, kind in enumerate(kinds)}, len(starts) - 1

    def table(spans: Any) -> np.ndarray:
        counts = np.zeros((n, len(kinds)), np.int64)
        spans = list(spans)
        owner = np.searchsorted(starts, np.array([a for _, a, _ in spans], np.int64), side="right") - 1
        np.add.at(counts, (owner, np.array([number[kind] for kind, _, _ in spans], np.int64)), 1)
        return counts

    names = {label: k for k, label in enumerate(dict.fromkeys([*truth.distinct, *answer.distinct]))}
    true, found = (np.array([names[label] for label in one.distinct], np.int64)[one.codes] for one in (truth, answer))
    right = np.add.reduceat(np.append(true == found, False).astype(np.int64), starts[:-1]) if n else np.zeros(0, np.int64)
    lengths = np.diff(starts)
    both = set(pairs[0]) & set(pairs[1])
    return SegmentCounts(kinds, table(pairs[0]), table(pairs[1]), table(both), lengths, np.where(lengths > 0, right, 0))
