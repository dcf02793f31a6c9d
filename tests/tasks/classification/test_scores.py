"""How good answered classes are."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, confusion_matrix, precision_recall_fscore_support

from partwise.tasks.classification.scores import class_scores


def test_the_same_as_scikit_learn():
    rng = np.random.default_rng(0)
    truth, found = rng.integers(0, 5, 200), rng.integers(0, 6, 200)  # class 5 is never true
    scores = class_scores(truth, found)
    assert scores.accuracy == pytest.approx(accuracy_score(truth, found))
    np.testing.assert_array_equal(scores.confusion, confusion_matrix(truth, found))
    rows = np.array([one[:4] for one in scores.classes.values()])
    np.testing.assert_allclose(rows, np.array(precision_recall_fscore_support(truth, found, zero_division=0)).T)
    macro = precision_recall_fscore_support(truth, found, average="macro", zero_division=0)[:3]
    assert (scores.precision, scores.recall, scores.f1) == pytest.approx(macro)


def test_intervals_are_those_of_the_bootstrap():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 150)
    found = np.where(rng.random(150) < 0.7, truth, rng.integers(0, 3, 150))
    intervals = class_scores(truth, found).intervals(4000)
    draws = [rng.integers(0, 150, 150) for _ in range(4000)]
    for name in ("accuracy", "f1"):
        by_hand = np.quantile([getattr(class_scores(truth[d], found[d]), name) for d in draws[:1000]], [0.025, 0.975])
        np.testing.assert_allclose(intervals[name], by_hand, atol=0.015)
    assert class_scores(truth, found).intervals(50, seed=1) == class_scores(truth, found).intervals(50, seed=1)
    wide, narrow = (class_scores(truth, found).intervals(500, level)["f1"] for level in (0.99, 0.5))
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_labels_of_any_kind():
    scores = class_scores(["a", 1, "a"], ["a", "a", "b"])
    assert scores.accuracy == 1 / 3 and scores.classes["a"].recall == 0.5 and scores.classes[1].f1 == 0.0
    with pytest.raises(ValueError, match="There are 2 examples, but 1 answers"):
        class_scores([1, 2], [1])
    with pytest.raises(ValueError, match="no examples"):
        class_scores([], [])
