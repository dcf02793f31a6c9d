"""Dependency trees: every kind of loss on top of them, and heads that are not known."""

from __future__ import annotations

import numpy as np
import pytest

from partwise import kernels, solve
from partwise.objective import best_outputs, completions
from partwise.structures import tree_problem
from partwise.structures.dependency.problem import cycle


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
