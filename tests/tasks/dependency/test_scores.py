"""Attachment scores."""

from __future__ import annotations

import numpy as np
import pytest

from partwise.metrics import attachment_scores


def test_attachment_scores():
    gold, answers = [2, 0, 2, -1, 0], [2, 0, 1, 3, 0]
    scores = attachment_scores(
        gold, answers, ["a:x", "b", "c", "d", "e"], ["a:y", "b", "c", "d", "f"], starts=np.array([0, 4, 5])
    )
    assert scores.uas == 0.75 and scores.las == 0.25 and scores.label_accuracy == 0.5
    assert scores.complete == 0.5 and scores.words == 4 and scores.sentences == 2
    assert attachment_scores(gold, answers, ["a:x"] * 5, ["a:y"] * 5, subtypes=False).las == 0.75
    assert attachment_scores(gold, answers, ignore=np.array([False, False, True, False, False])).uas == 1.0
    assert np.isnan(attachment_scores([-1], [0]).uas) and np.isnan(attachment_scores([0], [0]).las)
    with pytest.raises(ValueError, match="as long as each other"):
        attachment_scores([0], [0, 1])
