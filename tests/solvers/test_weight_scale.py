"""The scale of weights: what it is, and what it is good for."""

import numpy as np

from partwise import kernels
from partwise.losses.records import get_loss
from partwise.objective import objective
from partwise.solvers import make_task, solve, weight_scale
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
