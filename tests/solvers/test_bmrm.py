"""BMRM with a penalty of its own for each weight: 1/2 sum_j lambda_j w_j^2. What it shares with the others: test_bundle."""

import dataclasses

import numpy as np
import pytest

from partwise import kernels
from partwise.losses.records import get_loss
from partwise.objective import losses_at, objective
from partwise.solvers import CCCP, SOLVERS, can_minimise, make_task, solve
from partwise.solvers.bmrm import BMRM, BMRMLS
from partwise.solvers.checkpoint import Checkpoint
from partwise.solvers.loop import run
from partwise.structures import chain_problem, multiclass_problem

pytestmark = pytest.mark.interpreted

WEIGHTED = ["bmrm", "bmrm_ls"]


def noisy(kind, n=24, k=3, features=4, binary=False):
    """Tokens of which a tenth have a random label; the last sequence of a chain is empty."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(n, features))
    gold = (x @ rng.normal(size=(features, k)) + 0.3 * rng.normal(size=(n, k))).argmax(1)
    wrong = rng.random(n) < 0.1
    gold[wrong] = rng.integers(0, k, wrong.sum())
    x = (x > 0.5).astype(float) if binary else x
    if kind == "multiclass":
        return multiclass_problem(x, gold, k)
    return chain_problem(x, [4] * (n // 4) + [0], gold, k)


PROBLEMS = {"multiclass": noisy("multiclass"), "chain": noisy("chain", k=2, features=2)}


def scaled(problem, weight):
    """The same problem in the variables u_j = sqrt(lambda_j) w_j: features are divided by the roots (all classes alike)."""
    roots = np.sqrt(weight.reshape(-1, 3)[:, 0])
    return multiclass_problem(problem.rows.matrix / roots, problem.gold, 3)


def some_weights(d, seed=0):
    """One lambda for all classes of a feature, from 0.01 to 100."""
    return np.repeat(10.0 ** np.random.default_rng(seed).uniform(-2, 2, d // 3), 3)


@pytest.mark.parametrize("solver", WEIGHTED)
@pytest.mark.parametrize(("loss", "peer"), [("hinge", "ocas"), ("crf", "lbfgs"), ("slack", "proximal")])
def test_penalties_of_weights_are_scales_of_features(solver, loss, peer):
    problem = PROBLEMS["multiclass"]
    weight = some_weights(kernels.n_weights(problem))
    other = solve(scaled(problem, weight), loss, peer, C=0.5, tol=1e-9, max_epochs=5000)
    result = solve(problem, loss, solver, C=0.5, tol=1e-7, penalty_weight=weight)
    assert other.gap <= 1e-7 * other.primal and result.converged and result.primal == pytest.approx(other.primal, rel=2e-7)
    np.testing.assert_allclose(result.w * np.sqrt(weight), other.w, atol=2e-3 * np.abs(other.w).max())
    for record in result.history:  # weak duality, of the weighted problem
        assert record.dual <= other.primal * (1 + 1e-12) and record.primal >= other.dual * (1 - 1e-12)
    C = np.full(result.size[0], 0.5)
    value = objective(problem, get_loss(loss), C, result.w, penalty_weight=weight)
    assert result.primal == pytest.approx(value.primal, rel=1e-12) and value.dual <= other.primal * (1 + 1e-12)
    risk = C @ losses_at(problem, get_loss(loss), result.w)
    assert result.primal == pytest.approx(0.5 * weight @ result.w**2 + risk, rel=1e-12)
    plain = solve(problem, loss, solver, C=0.5, tol=1e-7)  # it does matter
    assert 0.5 * weight @ plain.w**2 + C @ losses_at(problem, get_loss(loss), plain.w) > 1.01 * result.primal


@pytest.mark.parametrize("solver", WEIGHTED)
@pytest.mark.parametrize("kind", PROBLEMS)
def test_penalties_of_weights_against_a_minimiser_of_smooth_functions(kind, solver):
    from scipy.optimize import minimize

    problem, loss = PROBLEMS[kind], get_loss("crf")
    d, C = kernels.n_weights(problem), np.full(kernels.n_examples(problem), 0.5)
    weight = 10.0 ** np.random.default_rng(1).uniform(-1, 1, d)  # no two alike

    def J(w):
        plain = objective(problem, loss, C, w)
        return plain.primal + 0.5 * (weight - 1) @ w**2, plain.gradient + (weight - 1) * w

    best = minimize(J, np.zeros(d), jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000})
    result = solve(problem, "crf", solver, C=0.5, tol=1e-7, penalty_weight=weight)
    assert result.converged and result.primal == pytest.approx(best.fun, rel=2e-7) and result.dual <= best.fun * (1 + 1e-12)
    np.testing.assert_allclose(result.w, best.x, atol=5e-3)
    value = objective(problem, loss, C, best.x + 0.1, penalty_weight=weight)
    np.testing.assert_allclose(value.gradient, J(best.x + 0.1)[1], atol=1e-10)
    assert value.primal == pytest.approx(J(best.x + 0.1)[0]) and value.dual <= best.fun * (1 + 1e-12) <= value.primal
    assert objective(problem, loss, C, best.x, penalty_weight=weight).gap <= 1e-8 * best.fun


@pytest.mark.parametrize("solver", WEIGHTED)
def test_ones_change_nothing_and_a_constant_is_another_C(solver):
    problem = PROBLEMS["chain"]
    d = kernels.n_weights(problem)
    plain, ones = (solve(problem, "hinge", solver, C=0.5, max_epochs=20, tol=0, penalty_weight=v) for v in (None, np.ones(d)))
    np.testing.assert_allclose(ones.w, plain.w, rtol=1e-7, atol=1e-9)
    four = solve(problem, "hinge", solver, C=2.0, tol=1e-6, penalty_weight=np.full(d, 4.0))
    assert four.primal == pytest.approx(4 * solve(problem, "hinge", solver, C=0.5, tol=1e-6).primal, rel=1e-5)


@pytest.mark.parametrize("solver", [BMRM, BMRMLS])
def test_penalties_of_weights_survive_aggregates_threads_files_and_early_stopping(solver, tmp_path):
    problem = noisy("multiclass", features=20, binary=True)
    d = kernels.n_weights(problem)
    weight = 10.0 ** np.random.default_rng(2).uniform(-1, 1, d)
    whole = solve(problem, "hinge", solver(max_cuts=8), C=0.3, max_epochs=40, tol=0, penalty_weight=weight)
    many = solve(problem, "hinge", solver(), C=0.3, tol=1e-4, penalty_weight=weight)
    few = solve(problem, "hinge", solver(max_cuts=8), C=0.3, tol=1e-3, penalty_weight=weight)
    assert few.converged and few.primal == pytest.approx(many.primal, rel=1.2e-3) and few.state.cuts.n <= 8
    cuts = whole.state.cuts
    np.testing.assert_allclose(cuts.products, (cuts.vectors / weight) @ cuts.vectors.T, atol=1e-9)
    task, path = make_task(problem, "hinge", 0.3, penalty_weight=weight), tmp_path / "run.checkpoint"
    saver = Checkpoint(path, 0.0)
    assert saver.load(solver(max_cuts=8), task) is None
    run(solver(max_cuts=8), task, max_epochs=27, tol=0, callbacks=[saver.save])
    before = Checkpoint(path, 0.0).load(solver(max_cuts=8), task)
    after = run(solver(max_cuts=8), task, max_epochs=40, tol=0, resume=before)
    np.testing.assert_array_equal(after.w, whole.w)
    for another in (None, weight[::-1]):
        with pytest.raises(ValueError, match=r"another run: penalty_weight differ" if another is not None else "another run"):
            Checkpoint(path, 0.0).load(solver(max_cuts=8), make_task(problem, "hinge", 0.3, penalty_weight=another))
    two = run(solver(max_cuts=8), dataclasses.replace(task, n_jobs=2), max_epochs=40, tol=0)
    np.testing.assert_array_equal(two.w, whole.w)
    C, loss = np.full(24, 0.3), get_loss("hinge")
    early = solve(problem, "hinge", solver(), C=0.3, validation=problem, patience=2, penalty_weight=weight, tol=1e-6)
    assert early.primal == pytest.approx(0.5 * weight @ early.w**2 + C @ losses_at(problem, loss, early.w))
    short = solve(problem, "hinge", solver(), C=0.3, max_epochs=3, evaluate="primal", penalty_weight=weight)
    assert short.primal == pytest.approx(0.5 * weight @ short.w**2 + C @ losses_at(problem, loss, short.w))


def test_ramps_take_penalties_of_weights_in_cccp():
    problem = PROBLEMS["multiclass"]
    weight = some_weights(kernels.n_weights(problem))
    result = solve(problem, "ramp", "auto", C=0.3, penalty_weight=weight)
    assert isinstance(result.solver, CCCP) and result.solver.solver == BMRMLS() and result.converged
    risk = 0.3 * losses_at(problem, get_loss("ramp"), result.w).sum()
    assert result.primal == pytest.approx(0.5 * weight @ result.w**2 + risk)
    assert result.primal == pytest.approx(solve(scaled(problem, weight), "ramp", "bmrm_ls", C=0.3).primal, rel=1e-3)


def test_bad_penalties_and_solvers_that_have_only_one():
    problem = PROBLEMS["multiclass"]
    good = np.ones(12)
    for bad, words in (
        (np.ones(5), r"one number per weight, shape \(12,\). Got shape \(5,\)"),
        (2.0, r"shape \(12,\). Got shape \(\)"),
        (np.where(np.arange(12) == 7, 0.0, 1.0), "finite and positive: a weight without .* Got 0.0 for weight 7"),
        (np.where(np.arange(12) == 3, -1.0, 1.0), "Got -1.0 for weight 3"),
        (np.where(np.arange(12) == 2, np.nan, 1.0), "Got nan for weight 2"),
        (np.where(np.arange(12) == 2, np.inf, 1.0), "Got inf for weight 2"),
        ("many", "penalty_weight must be an array of numbers, one per weight, or None. Got 'many'"),
    ):
        with pytest.raises(ValueError, match=words):
            solve(problem, "hinge", "bmrm", penalty_weight=bad)
    for name in SOLVERS:
        loss = next(loss for loss in ("hinge", "crf", "perceptron", "summed") if SOLVERS[name]().accepts(get_loss(loss)))
        if name not in WEIGHTED:
            with pytest.raises(
                ValueError, match=rf"Solver '{name}' has one penalty for all weights.* can: bmrm, bmrm_ls. Or divide"
            ):
                solve(problem, loss, name, penalty_weight=good)
    with pytest.raises(ValueError, match="takes no penalty_weight. Solvers that can: none for this loss and penalty"):
        solve(problem, "crf", "auto", penalty_weight=good, l1_ratio=0.5)
    assert can_minimise(get_loss("hinge"), weighted=True) == WEIGHTED
    assert solve(problem, "hinge", penalty_weight=list(good)).solver == BMRMLS()
