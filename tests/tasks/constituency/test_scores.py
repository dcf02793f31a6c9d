"""Brackets counted by hand."""

from __future__ import annotations

import pytest

from partwise.datasets import Constituent
from partwise.metrics import bracket_scores
from partwise.tasks.constituency.scores import PUNCTUATION

DOG = Constituent.read("(S (NP (D the) (N dog)) (VP (V barks)) (. .))")


def test_scores_by_hand():
    """Right: S 0-4, NP 0-2, VP 2-3. Found: S 0-4, NP 0-2, VP 2-4, X 2-4: two of four, two of three."""
    found = Constituent.read("(S (NP (D the) (V dog)) (VP (X (V barks) (. .))))")
    scores = bracket_scores([DOG], [found])
    assert scores.precision == 0.5 and scores.recall == pytest.approx(2 / 3) and scores.f1 == pytest.approx(4 / 7)
    assert scores.unlabelled_f1 == pytest.approx(4 / 7) and scores.exact == 0.0 and scores.tags == 0.75
    bare = bracket_scores([DOG], [found], ignore=PUNCTUATION)  # VP 2-3 is right then, X 2-3 is not
    assert bare.precision == 0.75 and bare.recall == 1.0 and bare.tags == pytest.approx(2 / 3)
    assert bracket_scores([DOG], [found], skip=("S", "X")).precision == 0.5
    assert bracket_scores([DOG, DOG], [DOG, found]).exact == 0.5
    chain = Constituent.read("(A (A (A a)))")  # the same bracket twice counts twice
    assert bracket_scores([chain], [Constituent.read("(A (A a))")]).recall == 0.5
    with pytest.raises(ValueError, match="tree 0: the predicted tree has other words"):
        bracket_scores([DOG], [chain])
    assert bracket_scores([], []).f1 != bracket_scores([], []).f1
