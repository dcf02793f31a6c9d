"""Wrong heads that are planted: as many as asked for, and trees still."""

import numpy as np
import pytest

from partwise.datasets import plant_head_errors
from partwise.datasets.planted_trees import others_for
from partwise.structures.dependency.problem import cycle
from partwise.tasks.dependency.data import Tree


def random_trees(n, seed=0):
    """Each word hangs from an earlier one; some heads are not known."""
    rng = np.random.default_rng(seed)
    trees = [[0, *(int(rng.integers(1, m)) for m in range(2, rng.integers(2, 12)))] for _ in range(n)]
    trees[0][-1] = None
    return trees


@pytest.mark.parametrize("how", ["near", "uniform"])
def test_as_many_wrong_heads_as_asked_for_and_trees_still(how):
    trees = random_trees(60)
    noisy = plant_head_errors(trees, 0.1, seed=3, how=how)
    before, after = ([-1 if h is None else h for own in some for h in own] for some in (trees, noisy.y))
    assert noisy.tokens.sum() == round(0.1 * (len(before) - 1))
    np.testing.assert_array_equal(noisy.tokens, np.array(before) != np.array(after))
    assert noisy.changed.tolist() == [a != [-1 if h is None else h for h in b] for a, b in zip(noisy.y, trees, strict=True)]
    for old, new in zip(trees, noisy.y, strict=True):
        assert not cycle(np.array(new)) and new.count(0) == old.count(0) and len(new) == len(old)
    assert noisy.y != plant_head_errors(trees, 0.1, seed=4, how=how).y
    assert plant_head_errors(trees, 0.0).tokens.sum() == 0


def test_near_heads_are_grandparents_and_siblings():
    heads = np.array([2, 0, 2, 3, 4, 2])
    assert others_for(heads, 4, "near") == [2] and others_for(heads, 3, "near") == [1, 6]
    assert others_for(heads, 5, "near") == [3] and others_for(heads, 2, "near") == []
    assert others_for(heads, 3, "uniform") == [1, 6] and others_for(heads, 5, "uniform") == [1, 2, 3, 6]


def test_forms_and_what_cannot_be():
    pair, tree = ([2, 0, 2], ["a", "b", "c"]), Tree([2, 0, 2], ["a", "b", "c"])
    noisy = plant_head_errors([pair, tree, [0]], 1.0)
    assert isinstance(noisy.y[1], Tree) and noisy.y[0][1] == tree.relations == noisy.y[1].relations and noisy.y[2] == [0]
    assert noisy.y[0][0] in ([3, 0, 2], [2, 0, 1]) and noisy.tokens.sum() == 2  # the second would be below the first
    for trees, message in (([[2, 1]], "tree 0: the heads above word 1 go in a circle"), ([[0], [0, 7]], "tree 1: the head of")):
        with pytest.raises(ValueError, match=message):
            plant_head_errors(trees, 0.5)
    with pytest.raises(ValueError, match="'how' parameter of plant_head_errors must be one of 'near', 'uniform'. Got 'far'"):
        plant_head_errors([[0]], 0.5, how="far")
    with pytest.raises(ValueError, match="'fraction' parameter"):
        plant_head_errors([[0]], 1.5)
