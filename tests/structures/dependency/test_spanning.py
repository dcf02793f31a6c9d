"""Spanning trees: large and extreme score matrices, sums against logarithms and derivatives."""

from __future__ import annotations

import numpy as np
import pytest

from partwise.engine.compilation import compiled_loop
from partwise.structures.dependency.problem import cycle
from partwise.structures.dependency.spanning import best_tree, eliminate, eliminate_in_logs, penalty_of_root, sum_over_trees


@compiled_loop
def both_sums(scores, n, single_root, floats, logs):
    fast, fine = eliminate(scores, n, single_root, floats)
    return fast, fine, eliminate_in_logs(scores, n, penalty_of_root(scores, n) if single_root else 0.0, logs)


@compiled_loop
def tree_and_sum(scores, n, single_root, heads, marginals):
    return best_tree(scores, n, single_root, heads), sum_over_trees(scores, n, single_root, marginals)


@pytest.mark.parametrize("single_root", [False, True])
@pytest.mark.parametrize("deviation", [1.0, 40.0])
def test_floats_and_logarithms_agree(deviation, single_root):
    rng = np.random.default_rng(1)
    for n in (1, 2, 17, 40):
        scores, floats, logs = deviation * rng.normal(size=(n, n + 1)), np.zeros((n, n + 1)), np.zeros((n, n + 1))
        fast, fine, slow = both_sums(scores, n, single_root, floats, logs)
        assert fine and fast == pytest.approx(slow, rel=1e-12)
        np.testing.assert_allclose(floats, logs, atol=1e-9)
        np.testing.assert_allclose(floats.sum(1), 1.0, atol=1e-9)
        assert not floats[np.arange(n), np.arange(1, n + 1)].any()
        if single_root:
            assert floats[:, 0].sum() == pytest.approx(1.0, abs=1e-9)


def test_cycles_that_outweigh_all_trees():
    """Each pair of words wants to be the other's head, by 1000: an ordinary determinant is zero."""
    n = 6
    scores = np.zeros((n, n + 1))
    for m in range(0, n, 2):
        scores[m, m + 2], scores[m + 1, m + 1] = 1000.0, 1000.0
    heads, marginals = np.zeros(n, np.int32), np.zeros((n, n + 1))
    value, log_z = tree_and_sum(scores, n, True, heads, marginals)
    assert value == 3000.0 and 3000.0 < log_z < 3010.0
    np.testing.assert_allclose(marginals.sum(1), 1.0, atol=1e-9)
    assert sum(marginals[m, m + 2] + marginals[m + 1, m + 1] for m in range(0, n, 2)) == pytest.approx(3.0)


def test_probabilities_are_derivatives_of_the_log_sum():
    rng = np.random.default_rng(2)
    n, step = 8, 1e-6
    scores, heads = 3 * rng.normal(size=(n, n + 1)), np.zeros(n, np.int32)
    marginals, other = np.zeros((n, n + 1)), np.zeros((n, n + 1))
    tree_and_sum(scores, n, True, heads, marginals)
    for m, h in ((0, 0), (3, 1), (7, 2)):
        values = []
        for sign in (1, -1):
            moved = scores.copy()
            moved[m, h] += sign * step
            values.append(tree_and_sum(moved, n, True, heads, other)[1])
        assert (values[0] - values[1]) / (2 * step) == pytest.approx(marginals[m, h], abs=1e-7)


def test_long_sentences():
    n = 500
    scores, heads, marginals = np.random.default_rng(3).normal(size=(n, n + 1)), np.zeros(n, np.int32), np.zeros((n, n + 1))
    value, log_z = tree_and_sum(scores, n, True, heads, marginals)
    assert not cycle(heads) and (heads == 0).sum() == 1
    assert value == pytest.approx(scores[np.arange(n), heads].sum()) and log_z > value
    np.testing.assert_allclose(marginals.sum(1), 1.0, atol=1e-8)
