"""Dependency trees: packing and its errors, large and extreme score matrices, and every kind of loss on top of them."""

from __future__ import annotations

import numpy as np
import pytest

from partwise import kernels, solve
from partwise.engine.compilation import compiled_loop
from partwise.objective import best_outputs, completions
from partwise.structures import tree_problem
from partwise.structures.dependency.kernels import cycle, is_projective
from partwise.structures.dependency.spanning import best_tree, eliminate, eliminate_in_logs, penalty_of_root, sum_over_trees


@compiled_loop
def both_sums(scores, n, single_root, floats, logs):
    fast, fine = eliminate(scores, n, single_root, floats)
    return fast, fine, eliminate_in_logs(scores, n, penalty_of_root(scores, n) if single_root else 0.0, logs)


@compiled_loop
def tree_and_sum(scores, n, single_root, heads, marginals):
    return best_tree(scores, n, single_root, heads), sum_over_trees(scores, n, single_root, marginals)


def random_heads(rng, n):
    """Heads of a random tree with one word below the root."""
    order = rng.permutation(n) + 1
    heads = np.zeros(n, int)
    for k in range(1, n):
        heads[order[k] - 1] = order[rng.integers(k)]
    return heads


def small_treebank(seed=0, sentences=12, n_labels=2, **more):
    """Sentences whose arcs have features that tell the right ones, with noise."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 6, sentences)
    heads = np.concatenate([random_heads(rng, n) for n in lengths])
    labels = rng.integers(0, n_labels, len(heads))
    x, word = [], 0
    for n in lengths:
        for _m in range(1, n + 1):
            for h in range(n + 1):
                right = float(heads[word] == h)
                x.append([right + 0.7 * rng.normal(), right * labels[word] + 0.5 * rng.normal(), float(h == 0), 1.0])
            word += 1
    return tree_problem(np.array(x).reshape(-1, 4), lengths, heads, labels, n_labels, **more)


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


def test_solvers_meet():
    problem = small_treebank()
    margin = [solve(problem, "hinge", solver, 0.3, tol=1e-5, max_epochs=3000) for solver in ("sdm", "bmrm")]
    assert all(result.converged for result in margin)
    assert margin[0].primal == pytest.approx(margin[1].primal, rel=1e-4)
    smooth = solve(problem, "crf", "lbfgs", 0.3, tol=1e-8)
    assert smooth.converged and smooth.gap >= -1e-9


def test_unknown_heads_are_completed():
    problem = small_treebank()
    words = np.arange(len(problem.gold))
    heads, labels = problem.gold // 2, problem.gold % 2
    heads[words % 3 == 0], labels[words % 4 == 0] = -1, -1
    some = tree_problem(problem.rows, np.diff(problem.starts), heads, labels, 2)
    assert kernels.is_partial(some)
    w = solve(some, "hinge", "sdm", 0.3, tol=1e-3).w
    found, starts, _ = completions(some, w)
    assert ((heads < 0) | (found // 2 == heads)).all()
    assert ((heads < 0) | (labels < 0) | (found % 2 == labels)).all()
    for a, b in zip(starts[:-1], starts[1:], strict=True):
        assert not cycle(found[a:b] // 2) and (found[a:b] // 2 == 0).sum() == 1


def test_ramp_and_taking_examples():
    problem = kernels.take(small_treebank(), np.array([3, 1, 7]))
    assert kernels.n_examples(problem) == 3
    result = solve(problem, "ramp", "sdm", 0.3)
    objectives = [r.objective for r in result.rounds]
    assert all(b <= a + 1e-9 for a, b in zip(objectives[:-1], objectives[1:], strict=True))
    out, starts, _ = best_outputs(problem, result.w)
    assert len(out) == starts[-1] == len(problem.gold)
