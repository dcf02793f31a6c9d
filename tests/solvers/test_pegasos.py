"""The two balls of Pegasos: which of them holds the optimum, and when. (Its steps and certificates: test_online.)"""

import math

import numpy as np
import pytest

from partwise.losses.records import get_loss
from partwise.objective import losses_at
from partwise.solvers import make_task, solve
from partwise.solvers.pegasos import Pegasos
from partwise.solvers.weights import current
from partwise.structures import chain_problem, multiclass_problem

pytestmark = pytest.mark.interpreted


def radius(problem, loss, C, ball):
    return Pegasos(ball=ball).init(make_task(problem, loss, C)).radius


def one_long_margin(length=9, n=3):
    """Sequences of one feature a and one label of two; sum_i C_i = 1 with C = 1 / n, and a^2 = 1 / (2 length).

    With d the difference of both labels' weights, ||w||^2 = d^2 / 2 and P = d^2 / 4 + length max{0, 1 - a d}. Its minimum is at
    a d = 1: ||w*||^2 = length, P* = length / 2. In the ball ||w||^2 <= 1 it is 1/2 + length - sqrt(length).
    """
    x = np.full((n * length, 1), math.sqrt(0.5 / length))
    return chain_problem(x, [length] * n, np.zeros(n * length, int), 2, use_transitions=False)


def test_where_costs_grow_with_the_length_the_ball_of_the_paper_excludes_the_optimum():
    problem, length = one_long_margin(), 9
    optimum = solve(problem, "hinge", "sdm", C=1 / 3, tol=1e-9)
    assert optimum.primal == pytest.approx(length / 2) and optimum.w @ optimum.w == pytest.approx(length, rel=1e-4)
    assert radius(problem, "hinge", 1 / 3, "duality") ** 2 == pytest.approx(length)  # the smallest ball that holds it
    assert radius(problem, "hinge", 1 / 3, "paper") ** 2 == pytest.approx(1.0)
    ours, papers = (solve(problem, "hinge", Pegasos(ball=b), C=1 / 3, max_epochs=200, tol=0) for b in ("duality", "paper"))
    assert ours.primal == pytest.approx(length / 2, rel=1e-2)
    assert papers.primal == pytest.approx(0.5 + length - math.sqrt(length), rel=1e-2)
    assert papers.dual <= length / 2 * (1 + 1e-9) and papers.gap > 1.0  # and it knows that it is not there


@pytest.mark.parametrize("C", [0.03, 0.3])
@pytest.mark.parametrize("cost", [1.0, 0.4])
def test_where_no_cost_is_above_one_the_ball_of_the_paper_holds_the_optimum(C, cost):
    rng = np.random.default_rng(7)
    x = rng.normal(size=(30, 4))
    gold = (x @ rng.normal(size=(4, 3)) + rng.normal(size=(30, 3))).argmax(1)
    problem = multiclass_problem(x, gold, 3, costs=cost * (1.0 - np.eye(3)))
    ours, papers = (radius(problem, "hinge", C, ball) for ball in ("duality", "paper"))
    assert papers**2 == pytest.approx(30 * C) and ours**2 == pytest.approx(30 * C * cost)
    optimum = solve(problem, "hinge", "sdm", C=C, tol=1e-6, max_epochs=2000)
    assert np.linalg.norm(optimum.w) <= min(ours, papers)
    found = solve(problem, "hinge", Pegasos(ball="paper"), C=C, max_epochs=100, tol=0)
    assert found.primal <= optimum.primal * 1.02
    if cost == 1.0:  # the balls are one
        same = solve(problem, "hinge", Pegasos(), C=C, max_epochs=100, tol=0)
        np.testing.assert_allclose(found.w, same.w, rtol=0, atol=1e-9)


def test_the_radius_of_the_paper_is_one_over_the_root_of_lambda():
    """lambda = 1 / sum_i C_i whatever the loss, the weights of examples and the targets; it takes no pass to know."""
    problem, weight = one_long_margin(), np.array([1.0, 2.0, 0.0])
    for loss in ("hinge", "crf"):
        solver, task = Pegasos(ball="paper"), make_task(problem, loss, 0.5, weight)
        state = solver.init(task)
        assert state.radius == pytest.approx(math.sqrt(1.5)) and state.oracle_calls == 0
        state = solver.retarget(task, task, state, np.arange(3))
        assert state.radius == pytest.approx(math.sqrt(1.5)) and state.oracle_calls == 0
        for _ in range(5):
            solver.epoch(task, state)
            assert np.linalg.norm(current(state.weights)) <= state.radius * (1 + 1e-9)
    assert Pegasos(project=False, ball="paper").init(make_task(problem, "hinge", 0.5)).radius == 0.0


def test_the_default_is_the_ball_of_duality():
    assert Pegasos() == Pegasos(ball="duality")
    problem = one_long_margin()
    state = Pegasos().init(make_task(problem, "crf", 0.5))
    assert state.radius**2 == pytest.approx(0.5 * losses_at(problem, get_loss("crf"), np.zeros_like(state.weights.v)).sum())
    assert state.oracle_calls == 3


@pytest.mark.parametrize("value", ["paper's", 1.0, None])
def test_bad_parameters(value):
    with pytest.raises(ValueError, match=r"The 'ball' parameter of Pegasos must be 'duality' or 'paper'\. Got .* instead\."):
        Pegasos(ball=value)
