"""`solve` and the loop around all solvers: callbacks, early stopping, Ctrl-C, resuming, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

from partwise.losses.records import LOSSES, Family
from partwise.objective import losses_at, objective
from partwise.solvers import SOLVERS, get_solver, make_task, solve
from partwise.solvers.loop import run
from partwise.structures import chain_problem, multiclass_problem


def classes(n=60, seed=0, k=3):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4))
    return multiclass_problem(x, (x[:, :k] + 0.5 * rng.normal(size=(n, k))).argmax(1), k)


@pytest.mark.parametrize("loss", ["hinge", "crf"])
def test_all_convex_solvers_meet_at_one_optimum(loss):
    problem, C = classes(), 0.1
    exact = {"hinge": ("sdm", "bcfw"), "crf": ("lbfgs",)}[loss]
    best = solve(problem, loss, exact[0], C=C, tol=1e-9, max_epochs=3000)
    assert best.converged and best.gap <= 1e-8 * best.primal
    for name in exact[1:]:
        other = solve(problem, loss, name, C=C, tol=1e-6, max_epochs=3000)
        assert other.primal == pytest.approx(best.primal, rel=1e-6)
    for name in ("sgd", "pegasos"):
        other = solve(problem, loss, name, C=C, tol=0, max_epochs=300)
        assert best.primal * (1 - 1e-9) <= other.primal <= best.primal * (1 + 1e-3)
        assert other.dual <= best.primal * (1 + 1e-9)
    # DCA is an online method with MIRA's steps: after an epoch far better than nothing, but its limit is not the optimum of (P)
    at_zero = float(objective(problem, LOSSES[loss], np.full(60, C), np.zeros(12)).primal)
    online = solve(problem, loss, "dca", C=C, max_epochs=1)
    assert best.primal <= online.primal < 0.9 * at_zero


def test_a_callback_sees_every_epoch_and_may_stop():
    seen = []

    def watch(record):
        seen.append((record.epoch, record.weights().copy()))
        return record.epoch == 3

    result = solve(classes(), "hinge", "dca", callbacks=[watch])
    assert [epoch for epoch, _ in seen] == [1, 2, 3]
    assert result.status == "callback" and not result.converged and result.n_epochs == 3
    np.testing.assert_array_equal(seen[-1][1], result.w)
    with pytest.raises(RuntimeError, match="only within its callback"):
        result.history[0].weights()


def test_early_stopping_returns_the_best_model_on_held_out_data():
    problem, held = classes(30, 0), classes(200, 1)
    costs = []
    result = solve(
        problem,
        "hinge",
        "dca",
        C=100.0,
        max_epochs=60,
        validation=held,
        patience=4,
        callbacks=[lambda r: costs.append(r.validation)],
    )
    assert result.status == "early_stopping"
    best = int(np.argmin(costs))
    assert len(costs) == best + 1 + 4
    again = solve(problem, "hinge", "dca", C=100.0, max_epochs=best + 1, tol=0)
    np.testing.assert_array_equal(result.w, again.w)


def test_ctrl_c_keeps_the_model_so_far():
    def interrupt(record):
        if record.epoch == 4:
            raise KeyboardInterrupt

    result = solve(classes(), "hinge", "dca", max_epochs=20, callbacks=[interrupt])
    assert result.status == "interrupted" and result.n_epochs == 4 and math.isnan(result.gap)
    np.testing.assert_array_equal(result.w, solve(classes(), "hinge", "dca", max_epochs=4, tol=0).w)


@pytest.mark.parametrize("name", list(SOLVERS))
def test_resuming_equals_never_having_stopped(name):
    loss = next(loss for loss in ("hinge", "crf", "perceptron", "summed") if SOLVERS[name]().accepts(LOSSES[loss]))
    whole = solve(classes(), loss, name, C=0.5, max_epochs=6, tol=0)
    part = solve(classes(), loss, name, C=0.5, max_epochs=2, tol=0)
    resumed = solve(classes(), loss, name, C=0.5, max_epochs=6, tol=0, resume=part)
    np.testing.assert_array_equal(resumed.w, whole.w)
    assert resumed.primal == whole.primal and resumed.n_oracle_calls == whole.n_oracle_calls
    assert [r.epoch for r in resumed.history] == [1, 2, 3, 4, 5, 6]
    # the first result was not used up
    np.testing.assert_array_equal(solve(classes(), loss, name, C=0.5, max_epochs=6, tol=0, resume=part).w, whole.w)


def test_the_order_depends_on_the_seed_and_can_be_fixed():
    w = [solve(classes(), "hinge", "dca", max_epochs=1, seed=seed, tol=0).w for seed in (1, 1, 2)]
    np.testing.assert_array_equal(w[0], w[1])
    assert (w[0] != w[2]).any()
    plain = [solve(classes(), "hinge", "dca", max_epochs=1, seed=seed, shuffle=False, tol=0).w for seed in (1, 2)]
    np.testing.assert_array_equal(plain[0], plain[1])


@pytest.mark.parametrize("name", ["lbfgs", "sdm"])
def test_sample_weights_are_repetitions(name):
    problem = classes(20)
    loss = "crf" if name == "lbfgs" else "hinge"
    counts = np.arange(20) % 3
    weighted = solve(problem, loss, name, C=0.2, sample_weight=counts, tol=1e-8, max_epochs=2000)
    x, gold = np.repeat(problem.rows.matrix, counts, 0), np.repeat(problem.gold, counts)
    repeated = solve(multiclass_problem(x, gold, 3), loss, name, C=0.2, tol=1e-8, max_epochs=2000)
    assert weighted.primal == pytest.approx(repeated.primal, rel=1e-6)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"C": -1}, r"The 'C' parameter must be a float in the range \(0, inf\). Got -1 instead"),
        ({"loss": "squared"}, "'loss' parameter must be one of 'perceptron', 'hinge', 'crf', 'softmax_margin'.*Got 'squared'"),
        ({"solver": "newton"}, "'solver' parameter must be one of 'auto', 'perceptron', 'mira'.*Got 'newton'"),
        ({"loss": "crf", "solver": "sdm"}, "Solver 'sdm' minimises .* not the loss 'crf'.*Solvers that can: .*lbfgs"),
        ({"loss": "hinge", "solver": "lbfgs"}, "Solver 'lbfgs' .*Solvers that can: .*sdm"),
        ({"sample_weight": np.ones(3)}, r"shape \(60,\). Got \(3,\)"),
        ({"sample_weight": np.full(60, np.nan)}, "finite and non-negative"),
        ({"start": np.zeros(5)}, r"one number per weight, shape \(12,\). Got shape \(5,\)"),
        ({"validation": classes(9, k=2)}, "validation problem has 8 weights, the training problem 12"),
        ({"n_jobs": 0}, "'n_jobs' parameter must be None or a non-zero integer"),
    ],
)
def test_what_cannot_be_is_refused_in_words(arguments, words):
    with pytest.raises(ValueError, match=words):
        solve(classes(), **{"max_epochs": 1, "solver": "dca", **arguments})


def test_a_result_of_another_problem_is_not_resumed():
    result = solve(classes(30), "hinge", "dca", max_epochs=1)
    with pytest.raises(ValueError, match="another size.*start=result.w"):
        solve(classes(40), "hinge", "dca", resume=result)


def test_no_examples():
    with pytest.raises(ValueError, match="no training examples"):
        solve(multiclass_problem(np.zeros((0, 2)), [], 2))


def test_auto_says_what_it_picked():
    assert solve(classes(), "hinge", max_epochs=1).solver.name == "sdm"
    assert solve(classes(), "crf", max_epochs=1).solver.name == "lbfgs"
    assert solve(classes(), "perceptron", max_epochs=1).solver.name == "perceptron"
    large = chain_problem(np.zeros((700, 1)), [1] * 700, None, 90)  # 700 * (92 * 90) parts
    assert get_solver("auto", large, LOSSES["hinge"]).name == "dca"


def test_families_between_the_named_losses_are_ordered_like_their_formulas():
    """L(beta, gamma) grows with gamma and, as a softened maximum less log|Y| / beta, shrinks towards the hinge with beta."""
    problem = classes()
    w = np.random.default_rng(0).normal(size=12)
    hinge, crf = losses_at(problem, LOSSES["hinge"], w), losses_at(problem, LOSSES["crf"], w)
    margin = losses_at(problem, LOSSES["softmax_margin"], w)
    assert (crf <= margin + 1e-12).all() and (hinge <= margin + 1e-12).all()
    for beta in (3.0, 30.0, 1000.0):
        near = losses_at(problem, Family(beta, 1.0), w)
        assert (hinge - 1e-12 <= near).all() and (near <= hinge + math.log(3) / beta + 1e-12).all()


def test_the_user_can_own_the_loop():
    task = make_task(classes(), "hinge", 0.5)
    solver = get_solver("dca")
    state = solver.init(task)
    for _ in range(3):
        solver.epoch(task, state)
    np.testing.assert_array_equal(solver.weights(state), run(solver, task, max_epochs=3, tol=0).w)


def test_patience_waits_for_the_first_change():
    values = iter([1.0, 1.0, 1.0, 0.4, 0.5, 0.5, 0.5])
    result = solve(classes(), "crf", "lbfgs", C=10.0, tol=0, max_epochs=20, patience=2, validation=lambda w: next(values))
    assert result.status == "early_stopping" and result.n_epochs == 6 and result.best.epoch == 4
    perfect = solve(classes(), "crf", "lbfgs", C=10.0, tol=0, max_epochs=20, patience=2, validation=lambda w: 0.0)
    assert perfect.status == "early_stopping" and perfect.n_epochs == 3
