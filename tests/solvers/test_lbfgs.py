"""L-BFGS: the optimum of scipy, the textbook's direction, honest line searches, exact resuming."""

import copy
import math

import numpy as np
import pytest
import scipy.optimize

import partwise.solvers.lbfgs as module
from partwise import kernels
from partwise.engine.compilation import interpret
from partwise.losses.records import Family, get_loss
from partwise.objective import objective
from partwise.solvers import SOLVERS, make_task, solve
from partwise.solvers.lbfgs import CURVATURE, DECREASE, LBFGS, LineSearch, Trial
from partwise.structures import chain_problem, multiclass_problem

ROUNDING = 3e-15


def make(kind="multiclass", n=60, scale=1.0, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4)) * scale
    gold = (x / scale @ rng.normal(size=(4, 3)) + rng.normal(size=(n, 3))).argmax(1)
    return multiclass_problem(x, gold, 3) if kind == "multiclass" else chain_problem(x, [5] * (n // 5), gold, 3)


def scipy_optimum(problem, loss, C=1.0, weight=None):
    C = C * (np.ones(kernels.n_examples(problem)) if weight is None else weight)

    def f(w):
        value = objective(problem, loss, C, w)
        return value.primal, value.gradient

    start = np.zeros(kernels.n_weights(problem))
    options = {"maxiter": 5000, "maxfun": 10000, "ftol": 1e-15, "gtol": 1e-9}
    return scipy.optimize.minimize(f, start, jac=True, method="L-BFGS-B", options=options)


@pytest.mark.parametrize("kind", ["multiclass", "chain"])
@pytest.mark.parametrize("loss", [get_loss("crf"), get_loss("softmax_margin"), Family(3.0, 1.0)], ids=lambda loss: loss.name)
def test_reaches_the_optimum_of_scipy(kind, loss):
    problem = make(kind)
    weight = np.random.default_rng(1).random(kernels.n_examples(problem)) + 0.1
    result = solve(problem, loss, "lbfgs", C=2.0, sample_weight=weight, tol=1e-10)
    reference = scipy_optimum(problem, loss, 2.0, weight)
    assert result.status == "converged" and 0 <= result.gap <= 1e-10 * result.primal
    assert result.primal == pytest.approx(reference.fun, rel=1e-9)
    np.testing.assert_allclose(result.w, reference.x, atol=1e-4)
    exact = objective(problem, loss, 2.0 * weight, result.w)
    assert result.primal == pytest.approx(exact.primal, rel=1e-13) and result.gap == pytest.approx(exact.gap, rel=1e-2)


def test_every_iterate_is_certified_and_none_goes_up():
    problem = make("chain")
    best = solve(problem, "crf", "lbfgs", C=10.0, tol=1e-12).primal
    iterates = []
    result = solve(
        problem, "crf", "lbfgs", C=10.0, tol=1e-9, evaluate="epoch", callbacks=[lambda record: iterates.append(record.weights())]
    )
    primals = np.array([r.primal for r in result.history])
    assert all(r.dual <= best * (1 + 1e-12) and best <= r.primal * (1 + 1e-12) for r in result.history)
    assert all(r.estimate == pytest.approx(r.gap, rel=1e-6, abs=1e-12) for r in result.history)
    assert (np.diff(primals) <= ROUNDING * primals[1:]).all() and len(primals) > 5
    C = np.full(kernels.n_examples(problem), 10.0)
    for r, w in zip(result.history, iterates, strict=True):
        value = objective(problem, get_loss("crf"), C, w)
        assert value.primal == pytest.approx(r.primal, rel=1e-13)
        assert r.loss == pytest.approx(value.primal - 0.5 * w @ w, rel=1e-12)


@pytest.mark.parametrize("C", [1e-4, 1e-2, 1.0, 1e2, 1e4])
def test_small_and_large_C(C):
    problem = make()
    result = solve(problem, "crf", "lbfgs", C=C, tol=1e-8)
    assert result.converged, result
    assert result.primal == pytest.approx(scipy_optimum(problem, get_loss("crf"), C).fun, rel=1e-8)
    assert result.n_oracle_calls <= 2 * 60 * (result.n_epochs + 2)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_features_of_very_different_scales(dtype):
    problem = make(scale=np.array([1e-3, 1.0, 30.0, 1e3]))
    result = solve(problem, "crf", "lbfgs", tol=1e-6 if dtype == np.float64 else 1e-3, max_epochs=2000, dtype=dtype)
    assert result.converged, result
    assert result.primal == pytest.approx(scipy_optimum(problem, get_loss("crf")).fun, rel=1e-5 if dtype == np.float64 else 1e-3)


@pytest.mark.parametrize("scale", [1e-9, 1e-4, 1e4, 1e12])
def test_features_of_any_unit(scale):
    result = solve(make(scale=scale), "crf", "lbfgs", tol=1e-6, max_epochs=100)
    if scale < 1:  # nothing to be learnt from such small numbers
        assert result.converged and result.primal == pytest.approx(60 * math.log(3), rel=1e-4)
    else:  # the regulariser is nothing: the likelihood alone. Its certificate would need more digits than there are.
        assert result.primal == pytest.approx(solve(make(), "crf", "lbfgs", C=1e8, tol=1e-6).primal / 1e8, rel=1e-5)


def test_weights_of_float32():
    problem = make()
    exact = solve(problem, "crf", "lbfgs", tol=1e-10)
    result = solve(problem, "crf", "lbfgs", tol=1e-6, dtype=np.float32)
    assert result.w.dtype == np.float32 and result.converged
    assert result.primal == pytest.approx(exact.primal, rel=2e-6)
    assert result.dual <= exact.primal


@pytest.mark.parametrize("m", [1, 6])
def test_resumed_equals_uninterrupted(m):
    problem = make("chain")
    whole = solve(problem, "crf", LBFGS(memory=m), tol=0, max_epochs=15)
    part = solve(problem, "crf", LBFGS(memory=m), tol=0, max_epochs=9)
    kept = copy.deepcopy(part.state)
    for _ in range(2):  # resuming does not spoil what it resumes from
        rest = solve(problem, "crf", LBFGS(memory=m), tol=0, max_epochs=15, resume=part)
        np.testing.assert_array_equal(rest.w, whole.w)
        assert rest.primal == whole.primal and rest.n_oracle_calls == whole.n_oracle_calls and rest.n_epochs == 15
        assert [r.loss for r in rest.history] == [r.loss for r in whole.history]
    np.testing.assert_array_equal(part.state.memory.pairs, kept.memory.pairs)


def test_number_of_threads_never_changes_the_iterates():
    rng = np.random.default_rng(2)  # enough weights for several ranges
    problem = multiclass_problem(rng.normal(size=(6, 90_000)), rng.integers(0, 3, 6), 3)
    one, two, three = (solve(problem, "crf", "lbfgs", C=0.01, tol=0, max_epochs=4, n_jobs=k) for k in (1, 2, 3))
    for other in (two, three):
        assert other.primal == one.primal and other.gap == one.gap
        np.testing.assert_array_equal(other.w, one.w)


def test_interpreted_and_compiled_agree():
    problem = make("chain", n=20)
    compiled = solve(problem, "crf", "lbfgs", tol=0, max_epochs=4)
    with interpret():
        interpreted = solve(problem, "crf", "lbfgs", tol=0, max_epochs=4)
    np.testing.assert_allclose(interpreted.w, compiled.w, rtol=1e-7, atol=1e-10)


def test_nearly_always_one_evaluation_per_iteration():
    result = solve(make("chain", n=200), "crf", "lbfgs", C=1.0, tol=1e-9)
    assert result.n_oracle_calls <= 40 * (1.2 * result.n_epochs + 4)


def test_starts_where_it_is_told_and_leaves_the_start_alone():
    problem = make()
    best = solve(problem, "crf", "lbfgs", tol=1e-12)
    start = best.w.copy()
    again = solve(problem, "crf", "lbfgs", start=start, tol=1e-6)
    assert again.n_epochs == 1 and again.primal <= best.primal * (1 + 1e-12)
    np.testing.assert_array_equal(start, best.w)


def test_weights_are_a_copy():
    task = make_task(make(), "crf", 1.0)
    solver = LBFGS()
    state = solver.init(task)
    for _ in range(3):
        w = solver.weights(state)
        before = w.copy()
        solver.epoch(task, state)
        np.testing.assert_array_equal(w, before)
        assert not np.array_equal(solver.weights(state), before)
        assert all(v is not state.gradient for v in state.pool) and state.trial is not state.w
    value = solver.bounds(task, state)
    calls = state.oracle_calls
    assert value.gap == pytest.approx(0.5 * value.gradient @ value.gradient) and calls == state.oracle_calls


def test_rests_once_nothing_is_left_to_gain():
    problem = make()
    result = solve(problem, "crf", "lbfgs", tol=0, max_epochs=400)
    assert result.state.exhausted and result.gap <= 1e-13 * result.primal
    more = solve(problem, "crf", "lbfgs", tol=0, max_epochs=500, resume=result)
    assert more.n_oracle_calls == result.n_oracle_calls and more.n_epochs == 500
    np.testing.assert_array_equal(more.w, result.w)


@pytest.mark.parametrize("at", [1, 2, 5, 12])
def test_an_interrupt_keeps_the_last_point_and_can_be_resumed(monkeypatch, at):
    problem = make("chain")
    calls = [0]

    def interrupted(*arguments):
        calls[0] += 1
        if calls[0] == at:
            raise KeyboardInterrupt
        return objective(*arguments)

    monkeypatch.setattr(module, "objective", interrupted)
    seen = [np.zeros(kernels.n_weights(problem))]
    result = solve(problem, "crf", "lbfgs", tol=1e-10, callbacks=[lambda record: seen.append(record.weights())])
    assert result.status == "interrupted"
    np.testing.assert_array_equal(result.w, seen[-1])
    rest = solve(problem, "crf", "lbfgs", tol=1e-10, resume=result)
    assert rest.converged
    assert rest.primal == pytest.approx(solve(problem, "crf", "lbfgs", tol=1e-10).primal, rel=1e-9)


# ---------------------------------------------------------------------------------------------------------------------
# The parts
# ---------------------------------------------------------------------------------------------------------------------


FUNCTIONS = {
    "parabola": (lambda t: (t - 1.0) ** 2, lambda t: 2.0 * (t - 1.0)),
    "far": (lambda t: (t - 1e4) ** 2, lambda t: 2.0 * (t - 1e4)),
    "near": (lambda t: (t - 1e-4) ** 2, lambda t: 2.0 * (t - 1e-4)),
    "steep": (lambda t: math.exp(min(9.0 * t, 700.0)) - 20.0 * t, lambda t: 9.0 * math.exp(min(9.0 * t, 700.0)) - 20.0),
    "walled": (lambda t: -t if t < 0.3 else (t - 0.3) ** 2 * 50 - t, lambda t: -1.0 if t < 0.3 else 100 * (t - 0.3) - 1.0),
    "barrier": (
        lambda t: -math.log(1e-2 - t) - 200.0 * t if t < 1e-2 else math.inf,
        lambda t: 1.0 / (1e-2 - t) - 200.0 if t < 1e-2 else math.nan,
    ),
}


@pytest.mark.parametrize("first", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_line_search_fulfils_the_strong_wolfe_conditions(name, first):
    value, slope = FUNCTIONS[name]
    search = LineSearch(Trial(0.0, value(0.0), slope(0.0)), 30)
    step, trials = first, 0
    while True:
        wanted = search.next(Trial(step, value(step), slope(step)))
        trials += 1
        if wanted in (step, 0.0):
            break
        step = wanted
    assert wanted == step > 0 and trials <= 15
    assert value(step) <= value(0.0) + DECREASE * step * slope(0.0)
    assert abs(slope(step)) <= -CURVATURE * slope(0.0)


@pytest.mark.parametrize("most", [1, 2, 3])
def test_line_search_out_of_trials_takes_a_decrease_or_nothing(most):
    for value, slope in FUNCTIONS.values():
        for first in (1e-3, 1.0, 1e3):
            search = LineSearch(Trial(0.0, value(0.0), slope(0.0)), most)
            step, trials = first, 0
            while True:
                wanted = search.next(Trial(step, value(step), slope(step)))
                trials += 1
                if wanted in (step, 0.0):
                    break
                step = wanted
            assert trials <= most
            assert wanted == 0.0 or value(wanted) < value(0.0)


def test_a_line_search_cut_short_still_never_goes_up():
    problem = make(scale=np.array([1e-3, 1.0, 30.0, 1e3]))
    result = solve(problem, "crf", LBFGS(max_evaluations=6), tol=0, max_epochs=60, evaluate="epoch")
    primals = np.array([r.primal for r in result.history])
    assert (np.diff(primals) <= ROUNDING * primals[1:]).all() and primals[-1] < 0.7 * primals[0]


def test_refuses_losses_without_a_gradient():
    assert SOLVERS["lbfgs"] is LBFGS
    with pytest.raises(
        ValueError,
        match=r"'lbfgs' minimises smooth losses \(finite beta, or squared and summed\), not the loss 'hinge'.*crf, softmax",
    ):
        solve(make(), "hinge", "lbfgs")


@pytest.mark.parametrize(("name", "value"), [("memory", 0), ("memory", 2.5), ("max_evaluations", -1)])
def test_bad_parameters(name, value):
    with pytest.raises(
        ValueError, match=rf"The '{name}' parameter of LBFGS must be an int in the range \[1, inf\). Got {value} instead."
    ):
        LBFGS(**{name: value})
