"""Packing dependency trees, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from partwise.structures import tree_problem
from partwise.structures.dependency.problem import cycle, is_projective


def test_cycles_and_crossings():
    assert cycle(np.array([0, 1, 2])) == [] and set(cycle(np.array([0, 3, 2]))) == {2, 3}
    assert cycle(np.array([-1, 1, -1])) == []
    assert is_projective([2, 0, 2]) and not is_projective([3, 4, 0, 3])


@pytest.mark.parametrize(
    ("heads", "more", "message"),
    [
        ([2, 1], {}, "sentence 0: words 1, 2 are each other's heads"),
        ([0, 3], {}, "sentence 0, word 2: its head must be another word, 1 to 2"),
        ([0, 2], {}, "sentence 0, word 2: its head must be another word"),
        ([0, 0], {}, "words 1, 2 hang from the root"),
        ([0], {}, "one head and one label per word"),
        ([0, 1], {"labels": [0, 5]}, "sentence 0, word 2: labels must be in"),
        ([0, 1], {"allowed": [True]}, "one entry per arc"),
        ([0, 1], {"lengths": [3]}, "have 12 arcs, but there are 6 rows"),
        ([0, -1], {"allowed": [True] * 3 + [False] * 3}, "no tree agrees with its known heads"),
    ],
)
def test_bad_trees_are_refused(heads, more, message):
    settings = {"lengths": [2], "labels": None, "n_labels": 2, **more}
    with pytest.raises(ValueError, match=message):
        tree_problem(np.ones((6, 1)), settings.pop("lengths"), heads, settings.pop("labels"), **settings)


def test_crossing_arcs_are_refused_where_trees_are_projective():
    with pytest.raises(ValueError, match="sentence 0: its arcs cross"):
        tree_problem(np.ones((20, 1)), [4], [3, 4, 0, 3], projective=True)
