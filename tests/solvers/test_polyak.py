"""Polyak's step against its definition, optima found by other means, and what it promises about levels and bounds."""

import math

import numpy as np
import pytest

from partwise.losses.records import get_loss
from partwise.objective import losses_at, objective
from partwise.solvers import CCCP, SOLVERS, can_minimise, make_task, solve
from partwise.solvers.polyak import LONGEST, Polyak
from partwise.structures import chain_problem, multiclass_problem

pytestmark = pytest.mark.interpreted


def noisy(n, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4))
    return x, (x @ rng.normal(size=(4, 3)) + rng.normal(size=(n, 3))).argmax(1)


def classes(n=40):
    return multiclass_problem(*noisy(n), 3)


def chains(n=8):
    x, gold = noisy(3 * n, 1)
    return chain_problem(x, [3] * n + [0], gold, 3)


PROBLEMS = {"multiclass": classes(), "chain": chains()}
C = 0.2


def optimum(problem, loss):
    """Above and below, by a method that has nothing in common with this one."""
    found = solve(problem, loss, "lbfgs" if loss == "crf" else "sdm", C=C, tol=1e-7, max_epochs=2000)
    assert found.converged
    return found.primal, found.dual


@pytest.mark.parametrize("kind", PROBLEMS)
@pytest.mark.parametrize("loss", ["hinge", "crf", "slack"])
def test_the_optimum_is_reached_with_a_bound_at_every_step(kind, loss):
    problem = PROBLEMS[kind]
    above, below = optimum(problem, loss)
    result = solve(problem, loss, "polyak", C=C, tol=5e-3)
    assert result.status == "converged" and "duality gap" in result.message
    assert below * (1 - 1e-9) <= result.primal <= above * (1 + 5e-3)
    assert result.primal == pytest.approx(0.5 * result.w @ result.w + C * losses_at(problem, get_loss(loss), result.w).sum())
    duals, primals = [r.dual for r in result.history], [r.primal for r in result.history]
    assert max(duals) <= above * (1 + 1e-9)
    assert (np.diff(primals) <= 0).all()  # of the best point seen
    assert (np.diff(duals) >= -1e-12 * above).all()


@pytest.mark.parametrize("given", [True, False])
def test_a_step_is_as_polyak_says(given):
    """Written out: eta = (P - level) / ||g||^2, the level halfway between the best value and the bound of averaged tangents."""
    problem, loss = classes(), get_loss("hinge")
    weight = np.full(40, C)
    known = optimum(problem, "hinge")[0]
    solver, task = Polyak(known if given else None), make_task(problem, "hinge", C)
    state, w = solver.init(task), np.zeros(12)
    best, dual, tangents, begun = math.inf, 0.0, [], math.inf
    for step in range(25):
        value = objective(problem, loss, weight, w)
        g = value.gradient
        a = g - w
        best, dual = min(best, value.primal), max(dual, value.dual)
        level = known if given else 0.5 * (best + dual)
        eta = (value.primal - level) / (g @ g)
        if best - dual < 0.5 * begun or not step:
            tangents, begun = [], best - dual
        tangents.append((eta, a, value.primal - 0.5 * w @ w - a @ w))
        shares = np.array([t[0] for t in tangents])
        slope, offset = (sum(s * t[k] for s, t in zip(shares / shares.sum(), tangents, strict=True)) for k in (1, 2))
        dual = max(dual, offset - 0.5 * slope @ slope)
        w = w - eta * g
        progress = solver.epoch(task, state)
        np.testing.assert_allclose(state.w, w, rtol=0, atol=1e-9)
        assert state.dual == pytest.approx(dual, rel=1e-9) and progress.primal == pytest.approx(best, rel=1e-12)
        assert eta <= LONGEST
    assert best < 1.02 * known


def test_with_the_optimum_given_every_step_gets_nearer():
    problem = classes()
    far, near = solve(problem, "hinge", "sdm", C=C, tol=1e-10, max_epochs=5000), []
    solver, task = Polyak(optimum=far.dual), make_task(problem, "hinge", C)
    state = solver.init(task)
    for _ in range(40):
        near.append(np.linalg.norm(state.w - far.w))
        solver.epoch(task, state)
    assert (np.diff(near) < 0).all() and near[-1] < 0.1 * near[0]


def test_an_optimum_that_was_given_ends_the_run():
    problem, (above, _) = classes(), optimum(classes(), "hinge")
    result = solve(problem, "hinge", Polyak(optimum=above), C=C, tol=1e-2)
    assert result.converged and "optimum that was given" in result.message and result.primal <= above * 1.011
    too_high = solve(problem, "hinge", Polyak(optimum=2 * above), C=C, tol=0)
    assert too_high.status == "stalled" and "not above the optimum that was given" in too_high.message
    assert too_high.dual <= above  # what users say is no proof


def test_the_best_iterate_is_returned():
    """Steps towards a level that nobody can reach go up and down."""
    problem, seen = classes(), []
    task, solver = make_task(problem, "hinge", C), Polyak(optimum=0.0)
    state = solver.init(task)
    for _ in range(15):
        seen.append(objective(problem, task.loss, task.C, state.w).primal)
        solver.epoch(task, state)
    assert seen[-1] > min(seen)
    assert objective(problem, task.loss, task.C, solver.weights(state)).primal == pytest.approx(min(seen))
    assert solver.bounds(task, state).primal == pytest.approx(min(seen))


def test_ramps_come_inside_cccp_and_soft_ramps_as_they_are():
    problem = classes(24)
    assert all("polyak" in can_minimise(get_loss(loss)) for loss in ("hinge", "crf", "slack", "ramp", "ramp_do", "soft_ramp"))
    ramp = solve(problem, "ramp_do", "polyak", C=C, tol=1e-2)
    assert isinstance(ramp.solver, CCCP) and ramp.converged and len(ramp.rounds) > 1
    assert ramp.primal == pytest.approx(0.5 * ramp.w @ ramp.w + C * losses_at(problem, get_loss("ramp_do"), ramp.w).sum())
    soft = solve(problem, "soft_ramp", "polyak", C=C, tol=1e-3)
    assert isinstance(soft.solver, Polyak) and soft.converged and "stationary point" in soft.message
    assert math.isnan(soft.dual) and soft.primal < C * losses_at(problem, get_loss("soft_ramp"), np.zeros(12)).sum()
    value = objective(problem, get_loss("soft_ramp"), np.full(24, C), soft.w)
    assert 0.5 * value.gradient @ value.gradient <= 1e-3 * soft.primal


def test_without_a_bound_the_level_comes_nearer():
    """With a large C the risk is steep, and half of the objective is no level to go on aiming at."""
    problem, task = classes(24), make_task(classes(24), "soft_ramp", 5.0)
    solver = Polyak()
    state = solver.init(task)
    for _ in range(100):
        solver.epoch(task, state)
    first = 5.0 * losses_at(problem, task.loss, np.zeros(12)).sum()
    assert 0.0 < state.delta <= 0.5 * first / 4
    peer = solve(problem, "soft_ramp", "lbfgs", C=5.0, start=state.best, tol=1e-6)
    assert state.primal <= 1.001 * peer.primal


def test_no_step_is_longer_than_strong_convexity_allows():
    """Where features are tiny the gradient is, and a level far too low asks for steps of any length."""
    x, gold = noisy(10)
    task = make_task(multiclass_problem(1e-3 * x, gold, 3), "hinge", C)
    solver = Polyak(optimum=0.0)
    state = solver.init(task)
    solver.epoch(task, state)
    np.testing.assert_allclose(state.w, -LONGEST * objective(task.problem, task.loss, task.C, np.zeros(12)).gradient)


def test_a_new_round_has_its_own_optimum_and_bound():
    problem = classes(24)
    solver, task = Polyak(optimum=1.0), make_task(problem, "hinge", C)
    state = solver.init(task)
    for _ in range(5):
        solver.epoch(task, state)
    best = solver.weights(state)
    fresh = solver.retarget(task, task, state, np.arange(3))
    np.testing.assert_array_equal(fresh.w, best)
    assert math.isnan(fresh.optimum) and fresh.dual == -math.inf and fresh.slope is None
    assert fresh.epochs == 5 and fresh.oracle_calls == 5 * 24


def test_nothing_to_learn_ends_at_once():
    problem = classes(10)
    result = solve(problem, "hinge", "polyak", sample_weight=np.zeros(10))
    assert not result.w.any() and result.primal == 0.0 and result.n_epochs == 1
    start = np.ones(12)
    result = solve(problem, "hinge", "polyak", sample_weight=np.zeros(10), start=start, tol=1e-6, max_epochs=200)
    assert np.abs(result.w).max() < 1e-2


def test_float32_and_threads():
    problem = chains()
    double = solve(problem, "hinge", "polyak", C=C, max_epochs=20, tol=0)
    single = solve(problem, "hinge", "polyak", C=C, max_epochs=20, tol=0, dtype=np.float32)
    assert single.w.dtype == np.float32
    np.testing.assert_allclose(single.w, double.w, rtol=0, atol=1e-3)
    np.testing.assert_array_equal(solve(problem, "hinge", "polyak", C=C, max_epochs=20, tol=0, n_jobs=2).w, double.w)


def test_a_forbidden_target_is_named():
    x, _ = noisy(4)
    problem = chain_problem(x, [2, 2], [0, 0, 0, 1], 2, forbidden=[(0, 1)])
    with pytest.raises(ValueError, match="The loss of example 1 is infinite"):
        solve(problem, "hinge", "polyak")


@pytest.mark.parametrize("value", [-1.0, math.inf, math.nan, "low", True])
def test_bad_parameters(value):
    message = r"The 'optimum' parameter of Polyak must be a float in the range \[0, inf\) or None\. Got .* instead\."
    with pytest.raises(ValueError, match=message):
        Polyak(optimum=value)


def test_it_has_a_name():
    assert SOLVERS["polyak"] is Polyak
    assert solve(classes(10), "hinge", "polyak(optimum=3)", C=C, max_epochs=1).solver == Polyak(optimum=3)
