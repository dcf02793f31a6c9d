"""How good labels of nodes are."""

from __future__ import annotations

import numpy as np
import pytest

from partwise.metrics import node_scores


def test_measures():
    scores = node_scores(
        [["a", "b", None], np.array([["a", "a"], ["b", "c"]])], [["a", "a", "c"], np.array([["a", "a"], ["b", "c"]])]
    )
    assert (
        scores.accuracy == 5 / 6 and scores.complete == 0.5 and scores.nodes == 6 and scores.hamming_loss == pytest.approx(1 / 6)
    )
    assert scores.labels["a"].precision == 3 / 4 and scores.labels["a"].recall == 1.0 and scores.labels["a"].iou == 3 / 4
    assert scores.labels["b"].iou == 0.5 and scores.mean_iou == pytest.approx((0.75 + 0.5 + 1.0) / 3)
    assert scores.confusion.tolist() == [[3, 0, 0], [1, 1, 0], [0, 0, 1]]
    assert np.isnan(node_scores([], []).accuracy)
    with pytest.raises(ValueError, match="graph 0 has 2 nodes, but the answer 1"):
        node_scores([["a", "b"]], [["a"]])
