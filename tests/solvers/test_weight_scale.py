"""The scale of weights: what it is, and what it is good for."""

import numpy as np
import pytest

from partwise import kernels
from partwise.losses.records import get_loss
from partwise.objective import objective
from partwise.solvers import make_task, solve, weight_scale
from partwise.solvers.lbfgs import LATE
from partwise.solvers.quasi_newton import Memory, told_anew
from partwise.solvers.weight_scale import ROOT, scaling
from partwise.structures import chain_problem, multiclass_problem


def make(kind, scale=1.0):
    rng = np.random.default_rng(0)
    x, gold = rng.normal(size=(20, 4)) * scale, rng.integers(0, 3, 20)
    return multiclass_problem(x, gold, 3) if kind == "multiclass" else chain_problem(x, [5] * 4, gold, 3)


def test_the_scale_is_that_of_the_gradients_of_single_examples():
    problem, loss = make("chain"), get_loss("crf")
    task = make_task(problem, loss, 2.0)
    squares = np.zeros(kernels.n_weights(problem))
    for i in range(4):
        gradient = objective(kernels.take(problem, [i]), loss, np.ones(1), np.zeros(len(squares))).gradient
        squares += 2.0 * gradient**2
    found = scaling(task, [])
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, (1.0 + squares) ** (-0.5 * ROOT), rtol=1e-6)
    huge = make("multiclass", 1e300)
    assert np.isfinite(scaling(make_task(huge, loss, 1.0), [])).all() and (scaling(make_task(huge, loss, 1.0), []) > 0).all()


def test_rare_features_do_not_wait_for_frequent_ones(monkeypatch):
    rng = np.random.default_rng(0)
    x = (rng.random((400, 60)) < 1.0 / np.arange(1, 61)).astype(float)  # as words are
    gold = (x @ rng.normal(size=(60, 3)) + rng.normal(size=(400, 3))).argmax(1)
    problem = multiclass_problem(x, gold, 3)
    scaled = solve(problem, "crf", "lbfgs", C=100.0, max_epochs=12, tol=0).primal
    monkeypatch.setattr(weight_scale, "ROOT", 0.0)
    best = solve(problem, "crf", "lbfgs", C=100.0, tol=1e-8).primal
    assert scaled - best < 0.5 * (solve(problem, "crf", "lbfgs", C=100.0, max_epochs=12, tol=0).primal - best)


@pytest.mark.parametrize("power", [0.5, 0.0])
def test_pairs_told_in_another_scale_are_those_of_that_scale(power):
    """Everything a memory knows, computed from the vectors themselves."""
    rng = np.random.default_rng(0)
    d, m = 7, 3
    scale = rng.uniform(0.1, 1.0, d).astype(np.float32)
    steps, changes, gradient = rng.normal(size=(m, d)), rng.normal(size=(m, d)), rng.normal(size=d)

    def memory_of(scale):
        pairs = np.empty((2 * m, d), np.float32)
        pairs[0::2], pairs[1::2] = steps / scale, changes * scale
        exact = pairs.astype(np.float64)
        return Memory(pairs, [0, 1, 2], exact @ exact.T, exact @ (scale * gradient))

    told = told_anew(memory_of(scale), scale, scale**power, gradient)
    wanted = memory_of(scale**power)
    assert told["scale"].dtype == np.float32 and told["memory"].slots == wanted.slots
    for found, right in zip(vars(told["memory"]).values(), vars(wanted).values(), strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-6)
    assert told["scaled"] == pytest.approx(float(np.square(scale**power * gradient).sum()), rel=1e-6)


def test_the_scale_of_the_beginning_is_let_go_of():
    problem = chain_problem(
        np.random.default_rng(0).normal(size=(60, 5)), [3] * 20, np.random.default_rng(1).integers(0, 3, 60), 3
    )
    result = solve(problem, "crf", "lbfgs", C=10.0, tol=1e-10)
    assert result.state.stage == len(LATE) and (result.state.scale == 1.0).all() and result.converged
    early = solve(problem, "crf", "lbfgs", C=10.0, tol=0, max_epochs=2)
    assert early.state.stage == 0 and early.state.scale.min() < 0.9
