"""Recall and precision of pairs of places."""

from __future__ import annotations

import numpy as np
import pytest

from partwise.metrics import alignment_scores
from partwise.tasks.alignment.scores import pair_counts, recall_by_identity, recalls_of, scores_of


def test_scores():
    scores = alignment_scores([[0, 1, -1], [0]], [[0, 2, -1], [-1]])
    assert scores.recall == 0.25 and scores.precision == 0.5 and scores.pooled_recall == pytest.approx(1 / 3)
    assert scores.complete == 0.0 and scores.pairs == 3 and scores.alignments == 2 and scores.f1 == pytest.approx(1 / 3)
    core = alignment_scores([[0, 1, 2]], [[0, 2, -1]], [[True, False, True]])
    assert core.recall == 0.5 and core.precision == 1.0 and core.pairs == 2
    assert np.isnan(alignment_scores([], []).recall) and alignment_scores([[-2, 0]], [[1, 0]]).recall == 1.0
    with pytest.raises(ValueError, match="as many predicted alignments"):
        alignment_scores([[0]], [])
    with pytest.raises(ValueError, match="alignment 0: the first sequence has 2 places"):
        alignment_scores([[0, 1]], [[0]])


def test_recall_by_identity():
    rows = recall_by_identity(np.array([0.5, 1.0, np.nan, 0.2]), np.array([0.0, 0.304, 0.1, 0.31]))
    assert [(row["alignments"], row["recall"]) for row in rows] == [(1, 0.5), (0, None), (1, 1.0), (1, 0.2)]
    counts = pair_counts([[0, 1], [-1]], [[0, -1], [0]])
    assert scores_of(counts) == alignment_scores([[0, 1], [-1]], [[0, -1], [0]])
    np.testing.assert_array_equal(recalls_of(counts), [0.5, np.nan])
