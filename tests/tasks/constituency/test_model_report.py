"""Brackets of two trees, compared."""

import numpy as np
import pytest

from partwise.tasks.common.resampling import with_intervals
from partwise.tasks.constituency.files import Constituent
from partwise.tasks.constituency.model_report import NONE, around, compare_brackets, measures
from partwise.tasks.constituency.scores import PUNCTUATION, bracket_scores

TRUE = [
    Constituent.read("(S (NP (D the) (N dog)) (VP (V barks)) (. .))"),
    Constituent.read("(S (NP (N dogs)) (VP (V see) (NP (N cats))) (. .))"),
]
ANSWERED = [
    Constituent.read("(S (ADJP (D the) (N dog)) (VP (V barks) (. .)))"),
    Constituent.read("(S (NP (N dogs)) (VP (V see) (NP (X cats))) (. .))"),
]


def test_scores_are_those_of_evaluate():
    found = with_intervals(measures(TRUE, ANSWERED), 0, 0.95, 0)
    given, bare = (bracket_scores(TRUE, ANSWERED, ignore=ignore) for ignore in ((), PUNCTUATION))
    for name in ("f1", "precision", "recall", "exact", "tags"):
        assert found[name].value == pytest.approx(getattr(given, name)), name
    assert 0 < found["tags"].value < 1 and found["f1_no_punct"].value == pytest.approx(bare.f1) != found["f1"].value


def test_brackets_are_put_together():
    pairs = compare_brackets(0, TRUE[0], ANSWERED[0])
    found = {(one.true, one.answered, one.begin, one.end) for one in pairs}
    assert found == {("S", "S", 0, 4), ("NP", "ADJP", 0, 2), ("VP", NONE, 2, 3), (NONE, "VP", 2, 4)}
    panel = around(next(one for one in pairs if one.true == "VP"), TRUE[0].words())
    assert [(one.word, one.true, one.answered) for one in panel.content] == [
        ("the", "", None),
        ("dog", "", None),
        ("barks", "VP", NONE),
        (".", "", None),
    ]
    assert np.all([one.true == one.answered for one in compare_brackets(0, TRUE[1], TRUE[1])])
