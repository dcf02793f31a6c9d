"""Kelley's cutting planes: the linear program, the box, the bound, and how slow it is."""

import itertools

import numpy as np
import pytest

from partwise import kernels
from partwise.losses.records import get_loss
from partwise.objective import losses_at, objective
from partwise.solvers import CCCP, can_minimise, make_task, solve
from partwise.solvers.comparison import able
from partwise.solvers.kelley import MOST_WEIGHTS, Kelley, lowest_corner
from partwise.structures import chain_problem, multiclass_problem

pytestmark = pytest.mark.interpreted


def noisy(kind, n=12, k=2, features=2, seed=3):
    """Tokens of which a tenth have a random label; the last sequence of a chain is empty."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, features))
    gold = (x @ rng.normal(size=(features, k)) + 0.3 * rng.normal(size=(n, k))).argmax(1)
    wrong = rng.random(n) < 0.1
    gold[wrong] = rng.integers(0, k, wrong.sum())
    if kind == "multiclass":
        return multiclass_problem(x, gold, k)
    return chain_problem(x, [4] * (n // 4) + [0], gold, k)


PROBLEMS = {"multiclass": noisy("multiclass"), "three classes": noisy("multiclass", k=3), "chain": noisy("chain", features=1)}


def test_the_lowest_corner_is_that_of_a_grid():
    rng = np.random.default_rng(0)
    grid = np.array(list(itertools.product(np.linspace(-1, 1, 81), repeat=2)))
    for n in (1, 2, 5, 9):
        slopes, offsets, centre, width = rng.normal(size=(n, 2)), rng.normal(size=n), rng.normal(size=2), 3.0
        w, alpha, found = lowest_corner(slopes, offsets, centre, width)
        value = np.max(slopes @ w + offsets)
        lowest = np.max((centre + width * grid) @ slopes.T + offsets, axis=1).min()
        assert found and np.abs(w - centre).max() <= width * (1 + 1e-12) and value <= lowest + 1e-9
        assert alpha.min() >= 0 and alpha.sum() == pytest.approx(1)
        slope = alpha @ slopes  # strong duality: the multipliers prove that nothing in the box is lower
        assert alpha @ offsets + slope @ centre - width * np.abs(slope).sum() == pytest.approx(value, abs=1e-8)


def test_a_flat_model_and_a_box_without_an_inside():
    for slopes, width in ((np.zeros((2, 3)), 1.0), (np.ones((2, 3)), 0.0)):
        w, alpha, found = lowest_corner(slopes, np.array([1.0, 2.0]), np.arange(3.0), width)
        assert found and w.tolist() == [0, 1, 2] and alpha.tolist() == [0, 1]


@pytest.mark.parametrize("loss", ["hinge", "slack", "crf"])
@pytest.mark.parametrize("kind", PROBLEMS)
def test_it_ends_where_bmrm_does_with_bounds_that_hold_all_the_way_but_later(kind, loss):
    problem = PROBLEMS[kind]
    best = solve(problem, loss, "bmrm", C=0.5, tol=1e-9)
    same = solve(problem, loss, "bmrm", C=0.5, tol=1e-3)
    result = solve(problem, loss, "kelley", C=0.5, tol=1e-3)
    assert best.converged and result.converged and "duality gap" in result.message
    assert best.dual <= result.primal <= best.primal * (1 + 1.1e-3)
    assert result.n_epochs >= same.n_epochs and result.n_oracle_calls == kernels.n_examples(problem) * result.n_epochs
    value = objective(problem, get_loss(loss), np.full(kernels.n_examples(problem), 0.5), result.w).primal
    assert result.primal == pytest.approx(value, rel=1e-12)
    for record in result.history:  # weak duality
        assert record.dual <= best.primal and record.primal >= best.dual and record.estimate >= 0
    for before, after in itertools.pairwise(result.history):
        assert after.primal <= before.primal and after.dual >= before.dual - 1e-9 * abs(after.dual)


def test_how_many_more_iterations_it_takes():
    """The figures of the docs."""
    problem = noisy("multiclass", 20, 3, features=4)
    quick, slow = (solve(problem, "hinge", name, C=0.5, tol=1e-4) for name in ("bmrm", "kelley"))
    assert quick.converged and slow.converged and slow.n_epochs >= 8 * quick.n_epochs
    problem = noisy("multiclass", 20, 3, features=8)
    quick, slow = (solve(problem, "hinge", name, C=0.5, tol=1e-4, max_epochs=300) for name in ("bmrm", "kelley"))
    assert quick.n_epochs < 40 and slow.status == "max_epochs" and slow.gap > slow.primal / 3


def test_the_model_is_made_of_tangents_of_the_whole_objective():
    problem, task = PROBLEMS["three classes"], make_task(PROBLEMS["three classes"], "crf", 0.5)
    solver = Kelley()
    state, rng = solver.init(task), np.random.default_rng(0)
    for _ in range(8):
        at = state.candidate.copy()
        solver.epoch(task, state)
        value = objective(problem, task.loss, task.C, at)
        np.testing.assert_allclose(state.slopes[-1], value.gradient, atol=1e-12)
        assert state.slopes[-1] @ at + state.offsets[-1] == pytest.approx(value.primal, rel=1e-12)
        w = rng.normal(size=len(at))
        assert np.max(state.slopes @ w + state.offsets) <= objective(problem, task.loss, task.C, w).primal


@pytest.mark.parametrize("kind", PROBLEMS)
def test_the_box_holds_the_optimum_wherever_one_starts(kind):
    """||w* - u/2||^2 <= J(u) - 1/4 ||u||^2; from u = 0, ||w*||^2 <= J(0)."""
    problem, rng = PROBLEMS[kind], np.random.default_rng(1)
    for C in (0.05, 5.0):
        best = solve(problem, "hinge", "bmrm", C=C, tol=1e-9)
        for size in (0.0, 0.3, 3.0):
            start = size * rng.normal(size=len(best.w))
            state = Kelley().init(task := make_task(problem, "hinge", C), start)
            Kelley().epoch(task, state)
            assert np.linalg.norm(best.w - state.centre) <= state.width * (1 + 1e-9)
            np.testing.assert_allclose(state.centre, 0.5 * start)
            assert state.width**2 == pytest.approx(C * losses_at(problem, task.loss, start).sum() + 0.25 * start @ start)
        result = solve(problem, "hinge", "kelley", C=C, tol=1e-2, start=start)
        assert result.converged and result.primal == pytest.approx(best.primal, rel=1.1e-2)


def test_too_many_weights_are_refused_before_any_work():
    problem = multiclass_problem(np.eye(2, MOST_WEIGHTS // 2 + 1), [0, 1], 2)
    message = r"'kelley' solves a linear program.*takes 1,000 weights at most; the problem has 1,002. Take 'bmrm'"
    for loss in ("hinge", "ramp"):  # also inside CCCP
        with pytest.raises(ValueError, match=message):
            solve(problem, loss, "kelley")
    with pytest.raises(ValueError, match=message):
        Kelley().init(make_task(problem, "hinge", 1.0))
    assert "kelley" not in able(problem, get_loss("hinge")) and "kelley" in able(PROBLEMS["chain"], get_loss("hinge"))


def test_a_tolerance_that_cannot_be_reached():
    best = solve(PROBLEMS["multiclass"], "hinge", "bmrm", C=0.5, tol=1e-9)
    result = solve(PROBLEMS["multiclass"], "hinge", "kelley", C=0.5, tol=1e-300, max_epochs=500)
    assert result.status == "stalled" and "solved to its last digits" in result.message
    assert result.gap <= 1e-7 * result.primal and result.primal == pytest.approx(best.primal, rel=1e-7)


def test_a_target_that_is_forbidden_and_nothing_to_learn():
    allowed = np.ones((4, 3), bool)
    allowed[2, 2] = False
    problem = multiclass_problem(np.eye(3)[[0, 1, 2, 0]], [0, 1, 2, 0], 3, allowed=allowed)
    with pytest.raises(ValueError, match="loss of example 2 is infinite"):
        solve(problem, "hinge", "kelley")
    result = solve(multiclass_problem(np.zeros((4, 2)), [0, 1, 0, 1], 2), "hinge", "kelley")
    assert result.converged and result.n_epochs == 1 and not result.w.any()


def test_threads_change_nothing_and_float32_is_honest():
    problem = PROBLEMS["chain"]
    one, two = (solve(problem, "hinge", "kelley", C=0.5, max_epochs=15, tol=0, n_jobs=n) for n in (1, 2))
    assert [(r.primal, r.dual) for r in one.history] == [(r.primal, r.dual) for r in two.history]
    problem = PROBLEMS["multiclass"]
    best = solve(problem, "hinge", "bmrm", C=0.5, tol=1e-9)
    single = solve(problem, "hinge", "kelley", C=0.5, tol=1e-3, dtype=np.float32)
    assert single.w.dtype == np.float32 and single.converged and all(record.dual <= best.primal for record in single.history)


def test_ramps_come_in_cccp_and_soft_ramps_are_refused():
    result = solve(PROBLEMS["three classes"], "ramp", "kelley", C=0.3, tol=1e-2)
    peer = solve(PROBLEMS["three classes"], "ramp", "sdm", C=0.3, tol=1e-2)
    assert isinstance(result.solver, CCCP) and result.primal == pytest.approx(peer.primal, rel=0.05)
    assert "kelley" not in can_minimise(get_loss("soft_ramp"))
