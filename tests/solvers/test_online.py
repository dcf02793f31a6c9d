"""Perceptron, MIRA, k-best MIRA, SGD and Pegasos against their definitions, each other, and independent optima."""

import copy
import dataclasses
import math

import numpy as np
import pytest
import scipy.optimize

from partwise import kernels
from partwise.losses.records import Family, get_loss
from partwise.objective import losses_at, mean_cost, objective
from partwise.solvers import SOLVERS, make_task, solve
from partwise.solvers.dca import DCA
from partwise.solvers.kbest_mira import KBestMIRA, solve_margins
from partwise.solvers.mira import MIRA
from partwise.solvers.pegasos import Pegasos
from partwise.solvers.perceptron import Perceptron
from partwise.solvers.sgd import SGD
from partwise.solvers.weights import current
from partwise.structures import chain_problem, multiclass_problem

# every solver of this file with a loss it takes
CASES = [
    (Perceptron(), "perceptron"),
    (MIRA(), "hinge"),
    (KBestMIRA(k=3, tol=1e-13), "hinge"),
    (SGD(), "hinge"),
    (Pegasos(), "hinge"),
]


def noisy(n=40, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4))
    return x, (x @ rng.normal(size=(4, 3)) + rng.normal(size=(n, 3))).argmax(1)


def classes(n=40, seed=0):
    x, y = noisy(n, seed)
    return multiclass_problem(x, y, 3)


def chains(n=12, seed=1):
    x, y = noisy(3 * n, seed)
    return chain_problem(x, [3] * n, y, 3)


def drop(problem, keep):
    """The multiclass problem of the examples `keep`."""
    return multiclass_problem(problem.rows.matrix[keep], problem.gold[keep], problem.n_classes)


# ---------------------------------------------------------------------------------------------------------------------
# Optima found by other means
# ---------------------------------------------------------------------------------------------------------------------


def crf_optimum(problem, C):
    """min P for the crf loss, by scipy."""

    def value_and_gradient(w):
        value = objective(problem, get_loss("crf"), C, w)
        return value.primal, value.gradient

    start = np.zeros(kernels.n_weights(problem))
    options = {"maxiter": 5000, "ftol": 1e-14, "gtol": 1e-8}
    return scipy.optimize.minimize(value_and_gradient, start, jac=True, method="L-BFGS-B", options=options).fun


def smallest_quadratic(K, b, C):
    """argmin 1/2 a'Ka - b.a over a >= 0, sum a <= C, by scipy."""
    return scipy.optimize.minimize(
        lambda a: 0.5 * a @ K @ a - b @ a,
        np.full(len(b), C / (len(b) + 1)),
        jac=lambda a: K @ a - b,
        bounds=[(0, C)] * len(b),
        constraints={"type": "ineq", "fun": lambda a: C - a.sum(), "jac": lambda a: -np.ones(len(a))},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    ).x


def hinge_optimum(problem, C, tol=1e-5):
    """min P for the hinge loss, by cutting planes over enumerated outputs.

    All examples share one slack: each cut (a, b) is a row of best answers, sum_i C_i L_i(w) >= b - w . a.
    """
    tables = []
    for i in range(kernels.n_examples(problem)):
        t, rows = kernels.target(problem, i), []
        for y in kernels.outputs(problem, i):
            a = np.zeros(kernels.n_weights(problem))
            kernels.difference(problem, i, t, y, 1.0, a)
            rows.append((C[i] * kernels.cost(problem, i, y), C[i] * a))
        tables.append((np.array([b for b, _ in rows]), np.array([a for _, a in rows])))
    w, cuts, lower = np.zeros(kernels.n_weights(problem)), [], 0.0
    while True:
        best = [np.argmax(b - a @ w) for b, a in tables]
        chosen = [(b[k], a[k]) for k, (b, a) in zip(best, tables, strict=True)]
        cuts.append((sum(b for b, _ in chosen), sum(a for _, a in chosen)))
        primal = 0.5 * w @ w + cuts[-1][0] - cuts[-1][1] @ w
        if primal - lower <= tol * primal:
            return primal
        b, A = np.array([c[0] for c in cuts]), np.array([c[1] for c in cuts])
        alpha = smallest_quadratic(A @ A.T, b, 1.0)
        w, lower = alpha @ A, b @ alpha - 0.5 * (alpha @ A) @ (alpha @ A)


@pytest.mark.parametrize("make", [classes, chains])
@pytest.mark.parametrize("loss", ["hinge", "crf"])
def test_sgd_and_pegasos_reach_the_optimum(make, loss):
    problem, C = make(), 0.1
    optimum = (hinge_optimum if loss == "hinge" else crf_optimum)(problem, np.full(kernels.n_examples(problem), C))
    for solver in (SGD(), Pegasos(), Pegasos(project=False)):
        result = solve(problem, loss, solver, C=C, max_epochs=300, tol=0)
        assert optimum * (1 - 1e-4) <= result.primal <= optimum * (1 + 1e-3), solver
        assert result.dual <= optimum * (1 + 1e-5), solver


def test_sample_weights_are_the_objective_s():
    problem, weight = classes(), np.linspace(0.0, 2.0, 40)
    optimum = crf_optimum(problem, 0.1 * weight)
    for solver in (SGD(), Pegasos()):
        result = solve(problem, "crf", solver, C=0.1, sample_weight=weight, max_epochs=300, tol=0)
        assert result.primal == pytest.approx(optimum, rel=1e-3)


@pytest.mark.parametrize("loss", ["hinge", "crf"])
@pytest.mark.parametrize("project", [True, False])
def test_pegasos_has_a_certificate_at_every_epoch(loss, project):
    problem = chains()
    optimum = (hinge_optimum if loss == "hinge" else crf_optimum)(problem, np.full(12, 0.1))
    result = solve(problem, loss, Pegasos(project=project), C=0.1, max_epochs=300, tol=0, evaluate="epoch")
    assert all(record.dual <= optimum * (1 + 1e-5) for record in result.history)
    assert result.state.best_dual == pytest.approx(optimum, rel=2e-2)  # its own bound, not the one of `objective`
    stopped = solve(problem, loss, Pegasos(project=project), C=0.1, max_epochs=300, tol=2e-2)
    assert stopped.status == "converged" and stopped.n_epochs < 300
    assert stopped.primal <= optimum * (1 + 2e-2)


def test_the_certificate_survives_projection():
    """On separable data with a large C the first iterates are thrown far out and cut back: that mass may not be counted."""
    x = np.random.default_rng(3).normal(size=(40, 4))
    problem = multiclass_problem(x, (x @ np.random.default_rng(4).normal(size=(4, 3))).argmax(1), 3)
    optimum = hinge_optimum(problem, np.full(40, 10.0))
    result = solve(problem, "hinge", Pegasos(), C=10.0, max_epochs=5, tol=0, evaluate="epoch")
    assert all(record.dual <= optimum * (1 + 1e-5) for record in result.history)


def test_pegasos_claims_no_certificate_from_other_weights():
    problem = classes()
    start = np.random.default_rng(0).normal(size=12)
    state = solve(problem, "hinge", Pegasos(), C=0.1, max_epochs=3, tol=0, start=start, evaluate="never").state
    assert state.best_dual == -math.inf


def test_the_ball_of_pegasos_holds_the_optimum():
    problem, C = chains(), 0.3
    for loss in ("hinge", "crf"):
        w = solve(problem, loss, Pegasos(project=False), C=C, max_epochs=300, tol=0, evaluate="never").w
        radius = Pegasos().init(make_task(problem, loss, C)).radius
        assert radius**2 == pytest.approx(C * losses_at(problem, get_loss(loss), np.zeros_like(w)).sum())
        assert np.linalg.norm(w) <= radius


# ---------------------------------------------------------------------------------------------------------------------
# Step by step
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [classes, chains])
@pytest.mark.parametrize("gamma", [1.0, pytest.param(0.5, marks=pytest.mark.slow)])
def test_mira_is_dca_step_for_step(make, gamma):
    problem = make()
    task = make_task(problem, Family(math.inf, gamma), 0.1)
    states = {solver: solver.init(task) for solver in (DCA(average_power=0.0), MIRA(), KBestMIRA(k=1))}
    for epoch in range(3):
        for i in task.order(epoch):
            for solver, state in states.items():
                solver.visit(task, state, np.array([i]))
            dca, mira, kbest = (current(state.weights) for state in states.values())
            np.testing.assert_allclose(mira, dca, rtol=0, atol=1e-12)
            np.testing.assert_allclose(kbest, dca, rtol=0, atol=1e-12)
    assert np.abs(dca).max() > 0.01
    dca, mira, kbest = (solver.weights(state) for solver, state in states.items())
    np.testing.assert_allclose(mira, dca, rtol=0, atol=1e-12)
    np.testing.assert_allclose(kbest, dca, rtol=0, atol=1e-12)


@pytest.mark.parametrize("C", [0.01, 0.2, 0.7, 10.0])
def test_inner_problem_of_kbest_mira_against_scipy(C):
    rng = np.random.default_rng(0)
    for trial in range(100):
        n, rank = int(rng.integers(1, 6)), int(rng.integers(1, 5))
        A, b = rng.normal(size=(n, rank)), rng.normal(size=n)
        if trial % 3 == 0:
            A[0] = 0.0  # the target itself among the k best
        alpha, K = np.zeros(n), A @ A.T
        solve_margins(K, b, n, C, 1e-9, 10000, alpha, np.zeros(n))
        assert (alpha >= 0).all() and alpha.sum() <= C * (1 + 1e-12)
        reference = smallest_quadratic(K, b, C)
        assert 0.5 * alpha @ K @ alpha - b @ alpha <= 0.5 * reference @ K @ reference - b @ reference + 1e-7
        np.testing.assert_allclose(alpha @ A, reference @ A, atol=1e-4)


def test_a_step_of_kbest_mira_solves_its_problem():
    """With k as large as the output set, the step minimises 1/2 ||u - w||^2 + C L_i(u)."""
    problem, C = chains(4), 0.05
    task = make_task(problem, "hinge", C)
    solver = KBestMIRA(k=27, tol=1e-10, max_steps=100000)
    state = solver.init(task)
    for i in range(4):
        before = current(state.weights).copy()
        solver.visit(task, state, np.array([i]))
        after = current(state.weights)

        def proximal(u, before=before, i=i):
            return 0.5 * (u - before) @ (u - before) + C * losses_at(problem, get_loss("hinge"), u)[i]

        value, rng = proximal(after), np.random.default_rng(i)
        assert value < proximal(before)
        for size in (1e-3, 1e-2, 1e-1):
            for _ in range(20):
                assert value <= proximal(after + size * rng.normal(size=after.shape)) + 1e-9


def naive(problem, loss, C, epochs, solver):
    """Perceptron or Pegasos with every iterate written out, and their plain or weighted mean."""
    task = make_task(problem, loss, C)
    d, n = kernels.n_weights(problem), task.n
    w, t, iterates = np.zeros(d), 0, []
    radius = math.sqrt(C * losses_at(problem, task.loss, w).sum())
    for epoch in range(epochs):
        for i in task.order(epoch):
            t += 1
            values = []
            for y in kernels.outputs(problem, i):
                a = np.zeros(d)
                kernels.difference(problem, i, kernels.target(problem, i), y, 1.0, a)
                values.append((task.loss.gamma * kernels.cost(problem, i, y) - w @ a, a))
            gradient = -max(values, key=lambda v: v[0])[1]
            if isinstance(solver, Perceptron):
                w = w - C * gradient
            else:
                w = (1 - 1 / t) * w - n * C / t * gradient
                if solver.project and np.linalg.norm(w) > radius:
                    w = w * radius / np.linalg.norm(w)
            iterates.append(w)
    power = getattr(solver, "average_power", 0.0)
    return np.average(iterates, axis=0, weights=np.arange(1, t + 1.0) ** power), w


@pytest.mark.parametrize(
    "solver, loss",
    [
        (Perceptron(), "perceptron"),
        (Pegasos(), "hinge"),
        (Pegasos(project=False), "hinge"),
        (Pegasos(average_power=0), "hinge"),
        (Pegasos(project=False, average_power=0.5), "hinge"),
    ],
)
def test_lazy_average_is_the_average(solver, loss):
    problem = classes()
    average, last = naive(problem, loss, 3.0, 4, solver)
    result = solve(problem, loss, solver, C=3.0, max_epochs=4, tol=0, evaluate="never")
    np.testing.assert_allclose(result.w, average, rtol=0, atol=1e-9 * np.abs(average).max())
    plain = dataclasses.replace(solver, average=False)
    result = solve(problem, loss, plain, C=3.0, max_epochs=4, tol=0, evaluate="never")
    np.testing.assert_allclose(result.w, last, rtol=0, atol=1e-9 * np.abs(last).max())


def test_strong_shrinking_keeps_the_average():
    """SGD with eta far above C shrinks w by many orders of magnitude: the lazy sum must not lose its digits."""
    problem, C, eta = classes(), 0.02, 0.7
    result = solve(problem, "hinge", SGD(eta=eta, average_power=1), C=C, max_epochs=30, tol=0, evaluate="never")
    task, w, t, iterates = make_task(problem, "hinge", C), np.zeros(12), 0, []
    for epoch in range(30):
        for i in task.order(epoch):
            step = eta / (1 + t / 40)
            t += 1
            x, gold = problem.rows.matrix[i], problem.gold[i]
            scores = x @ w.reshape(4, 3) + (np.arange(3) != gold)
            gradient = np.outer(x, np.eye(3)[scores.argmax()] - np.eye(3)[gold]).ravel()
            w = (1 - step / (40 * C)) * w - step * gradient
            iterates.append(w)
    assert np.prod([1 - eta / (1 + s / 40) / (40 * C) for s in range(t)]) < 1e-30
    average = np.average(iterates, axis=0, weights=np.arange(1, t + 1))
    np.testing.assert_allclose(result.w, average, rtol=0, atol=1e-6 * np.abs(average).max())


# ---------------------------------------------------------------------------------------------------------------------
# Manners
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [classes, chains])
def test_perceptron_separates_what_is_separable(make):
    n = len(make().gold)
    x = np.random.default_rng(3).normal(size=(n, 4))
    y = (x @ np.random.default_rng(4).normal(size=(4, 3))).argmax(1)
    problem = multiclass_problem(x, y, 3) if make is classes else chain_problem(x, [3] * (n // 3), y, 3)
    result = solve(problem, "perceptron", Perceptron(average=False), max_epochs=2000)
    assert result.status == "converged" and result.n_epochs < 2000
    assert mean_cost(problem, result.w) == 0.0


def test_ties_are_mistakes():
    """Orthogonal examples: the whole first epoch has no loss, only ties, and is not the end."""
    problem = multiclass_problem(np.eye(4), [1, 2, 1, 2], 3)
    first = solve(problem, "perceptron", Perceptron(average=False), max_epochs=1)
    assert first.history[0].loss == 0.0 and first.state.mistakes == 4 and not first.converged
    assert solve(problem, "perceptron", Perceptron(average=False)).n_epochs == 2


def test_no_convergence_is_claimed_while_the_regulariser_shrinks():
    problem = multiclass_problem(np.eye(3) * 10, [0, 1, 2], 3)
    for solver in (SGD(eta=1.0), Pegasos()):
        result = solve(problem, "hinge", solver, C=10.0, max_epochs=10, tol=1e-9)
        assert result.n_epochs == 10


@pytest.mark.parametrize("solver, loss", CASES, ids=lambda c: getattr(c, "name", c))
def test_resuming_changes_nothing(solver, loss):
    problem = classes()
    straight = solve(problem, loss, solver, C=0.1, max_epochs=6, tol=0)
    half = solve(problem, loss, solver, C=0.1, max_epochs=3, tol=0)
    kept = copy.deepcopy(half.state)
    resumed = solve(problem, loss, solver, C=0.1, max_epochs=6, tol=0, resume=half)
    assert (resumed.w == straight.w).all() and resumed.primal == straight.primal
    assert resumed.n_oracle_calls == straight.n_oracle_calls
    assert (half.state.weights.v == kept.weights.v).all()  # the first result is not touched


@pytest.mark.parametrize("solver, loss", CASES, ids=lambda c: getattr(c, "name", c))
def test_examples_without_weight_are_not_there(solver, loss):
    problem = classes()
    keep = np.arange(40) % 3 != 0
    with_zeros = solve(problem, loss, solver, C=0.1, sample_weight=keep, max_epochs=4, tol=0, shuffle=False)
    without = solve(drop(problem, keep), loss, solver, C=0.1, max_epochs=4, tol=0, shuffle=False)
    np.testing.assert_allclose(with_zeros.w, without.w, rtol=0, atol=1e-12 * np.abs(without.w).max())
    nothing = solve(problem, loss, solver, sample_weight=np.zeros(40), max_epochs=2, tol=0, evaluate="never")
    assert not nothing.w.any()


@pytest.mark.parametrize("solver, loss", CASES, ids=lambda c: getattr(c, "name", c))
def test_seed_decides(solver, loss):
    problem = classes()

    def weights(**options):
        return solve(problem, loss, solver, C=0.1, max_epochs=2, tol=0, evaluate="never", **options).w

    assert (weights(seed=1) == weights(seed=1)).all()
    assert (weights(seed=1) != weights(seed=2)).any()
    assert (weights(seed=1, shuffle=False) != weights(seed=1)).any()


@pytest.mark.parametrize("solver, loss", CASES, ids=lambda c: getattr(c, "name", c))
def test_float32(solver, loss):
    problem = classes()
    double = solve(problem, loss, solver, C=0.1, max_epochs=5, tol=0, evaluate="never").w
    single = solve(problem, loss, solver, C=0.1, max_epochs=5, tol=0, evaluate="never", dtype=np.float32).w
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, double, rtol=0, atol=1e-4 * np.abs(double).max())


@pytest.mark.parametrize("solver, loss", CASES, ids=lambda c: getattr(c, "name", c))
def test_interpreted_is_compiled(solver, loss):
    from partwise.engine.compilation import interpret

    problem = classes(15)
    if isinstance(solver, SGD):
        solver = SGD(eta=0.1)
    compiled = solve(problem, loss, solver, C=0.1, max_epochs=2, tol=0, evaluate="never").w
    with interpret():
        interpreted = solve(problem, loss, solver, C=0.1, max_epochs=2, tol=0, evaluate="never").w
    np.testing.assert_allclose(interpreted, compiled, rtol=0, atol=1e-12)


def test_refused_losses_name_who_can():
    problem = classes()
    with pytest.raises(
        ValueError, match=r"'perceptron' minimises the perceptron loss.*not the loss 'hinge'.*mira.*can: perceptron, ramp_2\."
    ):
        solve(problem, "hinge", "perceptron")
    for name in ("mira", "kbest_mira"):
        with pytest.raises(
            ValueError, match=rf"'{name}' minimises max-margin losses L\(inf, gamma\), not the loss 'crf'.*sgd.*pegasos"
        ):
            solve(problem, "crf", name)
    assert {"perceptron", "mira", "kbest_mira", "sgd", "pegasos"} <= set(SOLVERS)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: KBestMIRA(k=0), r"The 'k' parameter of KBestMIRA must be an int in the range \[1, inf\)\. Got 0 instead\."),
        (lambda: KBestMIRA(tol=0), "The 'tol' parameter of KBestMIRA"),
        (
            lambda: SGD(eta=-1.0),
            r"The 'eta' parameter of SGD must be 'auto' or a float in the range \(0, inf\)\. Got -1.0 instead\.",
        ),
        (lambda: SGD(average_power=-1), "The 'average_power' parameter of SGD"),
        (lambda: Pegasos(average_power=math.nan), "The 'average_power' parameter of Pegasos"),
        (lambda: solve(classes(), "hinge", SGD(eta=5.0), C=0.1), "The 'eta' parameter of SGD must be below the sum of all C, 4"),
    ],
)
def test_bad_parameters(make, message):
    with pytest.raises(ValueError, match=message):
        make()
