"""What reports are made of: counts of confusions, kinds of mistakes, bins of probabilities."""

import numpy as np
import pytest

from partwise.tasks.common.command_options import Refusal
from partwise.tasks.common.model_report import (
    EXAMPLES,
    LONG,
    MOST_LABELS,
    Confusions,
    ModelReport,
    ScoreRow,
    ShownExample,
    label_table,
    marked_words,
    note_unknown,
    numbered,
    reliability,
    worst_first,
)


def shown(t):
    return ShownExample(f"at {t}", "", [])


def test_confusions_are_counted_by_pairs_of_labels():
    names, (true, answered) = numbered(["b", "b", "b", "a", None, "c"], ["b", "a", "a", "a", "a", "d"])
    assert names == ["a", "b", "c", "d"] and true.tolist() == [1, 1, 1, 0, -1, 2]
    found = Confusions(true, answered, names)
    assert found.by_label() == {"a": (1, 3, 1), "b": (3, 1, 1), "c": (1, 0, 0), "d": (0, 1, 0)}
    table = found.table("tokens")
    assert table.labels == names and table.counts.tolist() == [[1, 0, 0, 0], [2, 1, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]]
    kinds, more = found.kinds(np.arange(6.0), shown)
    assert [(one.true, one.answered, one.count) for one in kinds] == [("b", "a", 2), ("c", "d", 1)] and more == 0
    assert [example.title for example in kinds[0].examples] == ["at 2", "at 1"]  # the worst first
    kinds, _ = found.kinds(np.arange(6.0), shown, np.zeros(6, int))
    assert [example.title for example in kinds[0].examples] == ["at 2"]  # one of each example
    assert Confusions(np.zeros(3, int), np.zeros(3, int), ["only"]).table("tokens") is None


def test_many_labels_and_many_examples_are_cut():
    n = MOST_LABELS + 5
    true = np.repeat(np.arange(n), 2)
    answered = np.where(np.arange(2 * n) % 2, true, (true + 1) % n)
    answered[true >= MOST_LABELS + 1] = true[true >= MOST_LABELS + 1]  # the last ones are never mistaken
    table = Confusions(true, answered, [f"{k:03}" for k in range(n)]).table("rows")
    assert len(table.labels) == MOST_LABELS and table.left_out == 5 and table.labels == sorted(table.labels)
    kinds, _ = Confusions(np.zeros(20, int), np.ones(20, int), ["a", "b"]).kinds(np.zeros(20), shown)
    assert kinds[0].count == 20 and len(kinds[0].examples) == EXAMPLES


def test_tables_of_labels_and_the_same_for_machines():
    table = label_table({"rare": (1, 0, 0), "often": (4, 2, 2), "never": (0, 0, 0)}, "Labels", "label")
    assert [row[0] for row in table.rows] == ["often", "rare"]
    assert table.as_dicts()[0] == {
        "label": "often", "precision": 1.0, "recall": 0.5, "F1": 2 / 3, "true": 4, "answered": 2, "right": 2
    }  # fmt: skip
    report = ModelReport([ScoreRow("f1", "F1", 0.5)], "rows", [table], reliability=reliability([0.5], [True], "rows"))
    told = report.as_dict()
    assert told["scores"]["f1"]["value"] == 0.5 and told["labels"] == table.as_dicts() and told["calibration"]["error"] == 0.5


def test_reliability_by_hand():
    found = reliability([0.95, 0.91, 1.0, 0.55, 0.0], [True, False, True, True, False], "tokens")
    assert [(one.low, one.high, one.n) for one in found.bins] == [(0.0, 0.1, 1), (0.5, 0.6, 1), (0.9, 1.0, 3)]
    assert found.bins[2].confidence == pytest.approx(2.86 / 3) and found.bins[2].right == pytest.approx(2 / 3)
    assert found.error == pytest.approx((0.0 + 0.45 + abs(2.86 - 2.0)) / 5)
    assert reliability([], [], "tokens") is None


def test_long_sentences_are_cut_around_mistakes():
    words = [f"w{k}" for k in range(LONG + 20)]
    true = ["a"] * len(words)
    answered = ["a"] * 10 + ["b"] + ["a"] * (len(words) - 11)
    content = marked_words(words, true, answered).content
    assert [one.word for one in content] == ["…", *words[4:17], "…"]
    assert [one.word for one in content if one.answered is not None] == ["w10"]
    assert len(marked_words(words[:20], true[:20], answered[:20]).content) == 20


def test_worst_first_and_notes_of_unknown_labels():
    assert worst_first(np.array([3, 2, 0, 1]), np.array([36, 4, 9, 1]), 9) == [1, 3, 0]
    assert worst_first(np.array([3, 2, 0, 1]), np.array([36, 4, 9, 1]), 1) == [1]
    assert note_unknown(["a", "b"], ["a", "b", "c"], "file", "labels") == []
    assert note_unknown(["a", "x"], ["a"], "file", "labels")[0].endswith("wrongly: x")
    with pytest.raises(Refusal, match=r"file: the model knows none of its labels \('x'"):
        note_unknown(["x"], ["a"], "file", "labels")
