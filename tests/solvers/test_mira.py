"""MIRA with both of its updates, against computations by hand and the problem that each step solves."""

import math

import numpy as np
import pytest

from partwise import kernels
from partwise.losses.records import Family, get_loss
from partwise.objective import losses_at, mean_cost
from partwise.solvers import make_task, solve
from partwise.solvers.mira import MIRA
from partwise.solvers.weights import current
from partwise.structures import chain_problem, multiclass_problem

pytestmark = pytest.mark.interpreted


def noisy(n, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4))
    return x, (x @ rng.normal(size=(4, 3)) + rng.normal(size=(n, 3))).argmax(1)


def chains(n=12):
    x, gold = noisy(3 * n, 1)
    return chain_problem(x, [3] * n, gold, 3)


PROBLEMS = {"multiclass": multiclass_problem(*noisy(30), 3), "chain": chains()}


@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("update, rival, violation", [("max_loss", 2, 3.0 + 0.2), ("prediction", 1, 1.0 + 0.3)])
def test_a_step_by_hand(update, rival, violation, C):
    """Scores 0, 0.3, 0.2 of three classes, of which the first is right; answering the third costs 3, the second 1."""
    costs = np.array([[0.0, 1.0, 3.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    problem = multiclass_problem(np.array([[1.0, 2.0]]), [0], 3, costs=costs)
    w = np.array([[0.0, 0.3, 0.0], [0.0, 0.0, 0.1]])
    result = solve(problem, "hinge", MIRA(update=update, average=False), C=C, start=w.ravel(), max_epochs=1, tol=0)
    tau = min(C, violation / (2 * (1.0 + 4.0)))
    change = np.zeros((2, 3))
    change[:, 0], change[:, rival] = [tau, 2 * tau], [-tau, -2 * tau]
    np.testing.assert_allclose(result.w.reshape(2, 3), w + change, rtol=0, atol=1e-12)
    assert result.history[0].loss == pytest.approx(C * violation)


@pytest.mark.parametrize("kind", PROBLEMS)
@pytest.mark.parametrize("gamma", [1.0, 0.5])
def test_a_step_against_the_prediction_solves_its_problem(kind, gamma):
    """u minimises 1/2 ||u - w||^2 + C max{0, gamma l(y) - u . dF(y)}, y being the best of all outputs without their costs."""
    problem = PROBLEMS[kind]
    spread = np.resize([0.05, 5.0], kernels.n_examples(problem))  # steps that C ends, and steps that it does not
    task, solver = make_task(problem, Family(math.inf, gamma), 1.0, spread), MIRA(update="prediction")
    state, moved, bound = solver.init(task, np.random.default_rng(5).normal(size=kernels.n_weights(problem))), 0, 0
    for i in range(task.n):
        w = current(state.weights).copy()
        features = {}
        for y in kernels.outputs(problem, i):
            a = np.zeros(len(w))
            kernels.difference(problem, i, kernels.target(problem, i), y, 1.0, a)
            features[tuple(y)] = a
        y = min(features, key=lambda y: w @ features[y])  # the highest score
        a, cost = features[y], kernels.cost(problem, i, np.array(y, np.int32))
        solver.visit(task, state, np.array([i]))
        u = current(state.weights)
        if not cost:
            np.testing.assert_array_equal(u, w)
            continue
        # the slack is a kink: at the optimum either the margin is met or the whole of C is spent
        tau = (u - w) @ a / (a @ a)
        np.testing.assert_allclose(u, w + tau * a, rtol=0, atol=1e-12)
        left = gamma * cost - u @ a
        assert (tau == pytest.approx(spread[i]) and left >= 0) or (0 < tau < spread[i] and left == pytest.approx(0.0, abs=1e-9))
        moved, bound = moved + 1, bound + (left < 1e-9)
    assert moved > 3 and 0 < bound < moved


def test_without_costs_both_updates_are_one():
    problem = PROBLEMS["chain"]
    one, other = (solve(problem, "perceptron", MIRA(update=u), C=0.1, max_epochs=3, tol=0).w for u in ("max_loss", "prediction"))
    np.testing.assert_array_equal(one, other)
    one, other = (solve(problem, "hinge", MIRA(update=u), C=0.1, max_epochs=3, tol=0).w for u in ("max_loss", "prediction"))
    assert np.abs(one - other).max() > 1e-3


def test_right_answers_are_left_alone_and_that_is_no_certificate():
    """Separable: in the end all answers are right, but not by the margins that the hinge asks for."""
    x = np.random.default_rng(3).normal(size=(30, 4))
    problem = multiclass_problem(x, (x @ np.random.default_rng(4).normal(size=(4, 3))).argmax(1), 3)
    result = solve(problem, "hinge", MIRA(update="prediction", average=False), max_epochs=500)
    assert result.status == "stalled" and not result.converged and "every prediction is right" in result.message
    assert mean_cost(problem, result.w) == 0.0 and losses_at(problem, get_loss("hinge"), result.w).sum() > 0.0


def test_ramps_are_chosen_around_it():
    result = solve(PROBLEMS["multiclass"], "ramp", MIRA(update="prediction"), C=0.1, max_epochs=6, tol=0)
    assert len(result.rounds) == 3 and result.solver.solver.update == "prediction"


@pytest.mark.parametrize("value", ["predicted", None, 1])
def test_bad_parameters(value):
    with pytest.raises(ValueError, match=r"The 'update' parameter of MIRA must be 'max_loss' or 'prediction'\. Got .* instead\."):
        MIRA(update=value)
