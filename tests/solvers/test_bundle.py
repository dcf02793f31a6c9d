"""Bundle methods: cuts, the master problem, line searches; BMRM, OCAS and the proximal method on problems with known optima."""

import itertools
import math
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partwise import Classifier, kernels
from partwise.engine.memory import available_memory
from partwise.losses.records import get_loss
from partwise.objective import losses_at, objective
from partwise.solvers import CCCP, SOLVERS, can_minimise, make_task, solve
from partwise.solvers.bmrm import BMRM, BMRMLS
from partwise.solvers.checkpoint import Checkpoint
from partwise.solvers.cuts import PLACE, SMALL, Cuts
from partwise.solvers.line_search import Ray, Tangent, lowest, minimise, search_maxima
from partwise.solvers.loop import run
from partwise.solvers.nrbm import NRBM
from partwise.solvers.ocas import OCAS
from partwise.solvers.proximal import Proximal
from partwise.solvers.qp import active_set, factorise, feasible, solve_master
from partwise.structures import chain_problem, multiclass_problem

MINE = (BMRM, BMRMLS, OCAS, Proximal)
NAMES = [solver.name for solver in MINE]


def noisy(kind, n=60, k=3, features=4, binary=False):
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


PROBLEMS = {kind: noisy(kind) for kind in ("multiclass", "chain")}
OPTIMA: dict = {}


def optimum(kind, loss, C=0.5):
    """The optimal value, by another method."""
    key = (kind, loss, C)
    if key not in OPTIMA:
        if loss == "slack":
            OPTIMA[key] = slack_by_programming(PROBLEMS[kind], C)
        else:
            peer = "sdm" if loss == "hinge" else "lbfgs"
            found = solve(PROBLEMS[kind], loss, peer, C=C, tol=1e-9, max_epochs=20000)
            assert found.gap <= 1e-7 * found.primal
            OPTIMA[key] = found.primal, found.dual
    return OPTIMA[key]


def slack_by_programming(problem, C):
    """min 1/2 ||w||^2 + C sum_i xi_i subject to xi_i >= l(y) (1 - w . dF(y)) for all outputs: above and below, by scipy."""
    from scipy.optimize import minimize

    n, d = kernels.n_examples(problem), kernels.n_weights(problem)
    rows, costs = [], []
    for i in range(n):
        for y in kernels.outputs(problem, i):
            row, cost = np.zeros(d), kernels.cost(problem, i, y)
            kernels.difference(problem, i, kernels.target(problem, i), y, cost, row)
            rows.append(np.concatenate([row, np.eye(n)[i]]))
            costs.append(cost)
    rows, costs = np.array(rows), np.array(costs)
    found = minimize(
        lambda v: 0.5 * v[:d] @ v[:d] + C * v[d:].sum(),
        np.concatenate([np.zeros(d), np.ones(n)]),
        jac=lambda v: np.concatenate([v[:d], np.full(n, C)]),
        constraints={"type": "ineq", "fun": lambda v: rows @ v - costs, "jac": lambda v: rows},
        method="SLSQP",
        options={"ftol": 1e-13, "maxiter": 500},
    )
    return found.fun * (1 + 1e-8), found.fun * (1 - 1e-8)


# -- cuts -----------------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.1, 1.0, 1e-3]))
def test_slopes_take_the_smallest_form_that_loses_nothing(seed, scale):
    rng = np.random.default_rng(seed)
    d, kept = 50, []
    cuts = Cuts.empty(d, scale)
    for _ in range(12):
        whole, entries = rng.random() < 0.5 and scale > 0, rng.integers(0, d + 1)
        a = np.zeros(d)
        a[rng.permutation(d)[:entries]] = rng.integers(-9, 10, entries) if whole else rng.normal(size=entries)
        a *= scale if whole else 1.0
        true, w = a.copy(), rng.normal(size=d)
        if whole:  # rounding errors of sums of many C, that end where they should not
            a += scale * 1e-12 * rng.normal(size=d)
        at_w = cuts.add(a, 0.0, w, 0.0)
        kept.append(true)
        np.testing.assert_allclose(cuts.vectors, kept, rtol=1e-15, atol=1e-16)
        np.testing.assert_array_equal(a, cuts.vectors[-1])  # freed of them
        np.testing.assert_allclose(at_w, np.array(kept) @ w, atol=1e-12)
        np.testing.assert_allclose(cuts.products, np.array(kept) @ np.array(kept).T, atol=1e-12)
        nonzero, place = np.count_nonzero(true), cuts.where[cuts.n - 1, PLACE]
        small = scale > 0 and np.allclose(true / scale, np.rint(true / scale), rtol=0, atol=1e-9)
        assert bool(cuts.where[cuts.n - 1, SMALL]) == small
        dense, sparse = (4 if small else 8) * d, (8 if small else 12) * nonzero
        assert (place >= 0) == (sparse <= dense) and cuts.sizes[-1] == min(dense, sparse)
        rows = np.sort(rng.permutation(cuts.n)[: rng.integers(1, cuts.n + 1)])  # some are dropped, their room is used again
        cuts.keep(rows)
        kept = [kept[j] for j in rows]
        cuts.set_multipliers(rng.random(cuts.n))
        np.testing.assert_allclose(cuts.minimiser(np.zeros(d)), -cuts.alpha @ np.array(kept), atol=1e-12)


def test_dropped_cuts_leave_their_memory_to_others():
    rng = np.random.default_rng(0)
    cuts = Cuts.empty(1000)
    for _ in range(100):
        cuts.add(rng.normal(size=1000), 0.0, np.zeros(1000), 0.0)
        cuts.keep(np.arange(max(0, cuts.n - 3), cuts.n))
    assert cuts.n == 3 and len(cuts.large) <= 6 * 1000


def test_cuts_that_do_not_fit_into_memory_are_aggregated():
    rng = np.random.default_rng(0)
    cuts, d = Cuts.empty(100), 100
    for _ in range(10):
        cuts.add(rng.normal(size=d), 0.0, np.zeros(d), 0.0)
    cuts.set_multipliers(np.full(10, 0.1))
    assert cuts.sizes.sum() == 8000 and cuts.fitting(8000) == 10 and cuts.fitting(7999) == 9 and cuts.fitting(0) == 2
    w = cuts.minimiser(np.zeros(d))
    cuts.aggregate(cuts.fitting(4000))
    assert cuts.sizes.sum() <= 4000
    np.testing.assert_allclose(cuts.minimiser(np.zeros(d)), w)


# -- the master problem ---------------------------------------------------------------------------------------------------


def test_duplicate_cuts_are_harmless():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(8, 5)), -rng.random(8)
    value = solve_master(a @ a.T, b).value
    a, b = np.tile(a, (6, 1)), np.tile(b, 6)
    for start in (None, np.ones(48)):  # all in the support: a singular system to begin with
        found = solve_master(a @ a.T, b, start)
        assert found.value == pytest.approx(value, rel=1e-12) and found.gap <= 1e-11
    zero = solve_master(np.zeros((4, 4)), np.zeros(4), np.ones(4))
    assert zero.value == zero.gap == 0.0 and zero.alpha.sum() == pytest.approx(1)


def test_hundreds_of_active_cuts_compiled_and_interpreted():
    rng = np.random.default_rng(0)
    a = rng.normal(size=(120, 200))
    b = -rng.random(120)
    gram = a @ a.T
    found = solve_master(gram, b)
    assert len(found.support) > 80 and found.gap <= 1e-11 * abs(found.value)
    alpha, support, factor = feasible(gram, b, None), np.empty(120, np.int64), np.empty((120, 120))
    size = factorise(gram, gram.max(), np.flatnonzero(alpha), support, factor)
    value, gap, _ = active_set.interpreted(gram, b, alpha, gram.max(), support, factor, size, 1e-12, 10**4)
    assert value == pytest.approx(found.value, rel=1e-12) and gap <= 1e-11 * abs(value)


# -- line searches --------------------------------------------------------------------------------------------------------


def on_ray(kind, loss, seed):
    """J along a random ray, as a function of the step, and what the searches want to know of it."""
    problem, loss = PROBLEMS[kind], get_loss(loss)
    rng = np.random.default_rng(seed)
    w, d = rng.normal(size=(2, kernels.n_weights(problem))) * 10.0 ** rng.uniform(-1, 1, size=(2, 1))
    C = rng.choice([0.0, 0.1, 1.0], kernels.n_examples(problem))

    def J(step):
        u = w + step * d
        return 0.5 * u @ u + C @ losses_at(problem, loss, u)

    return problem, loss, w, d, C, J


def lines_of(problem, w, d):
    """(A, B) of every output of every example, by enumeration: L_i(w + s d) = max of A + s B."""
    found = []
    for i in range(kernels.n_examples(problem)):
        by_w, by_d = np.zeros((2, kernels.n_parts(problem, i)))
        kernels.score(problem, i, w, by_w)
        kernels.score(problem, i, d, by_d)
        t, outputs = kernels.target(problem, i), list(kernels.outputs(problem, i))
        a = [kernels.value_of(problem, i, by_w, y) + kernels.cost(problem, i, y) for y in outputs]
        b = [kernels.value_of(problem, i, by_d, y) for y in outputs]
        found.append((np.array(a) - kernels.value_of(problem, i, by_w, t), np.array(b) - kernels.value_of(problem, i, by_d, t)))
    return found


def lowest_of(J, end=8.0, points=400):
    """The minimum of a convex function over steps in [0, end]: a grid, refined by scipy."""
    from scipy.optimize import minimize_scalar

    grid = np.linspace(0, end, points)
    k = int(np.argmin([J(s) for s in grid]))
    near = (grid[max(k - 1, 0)], grid[min(k + 1, points - 1)])
    return min(minimize_scalar(J, bounds=near, method="bounded", options={"xatol": 1e-12}).fun, J(grid[k]))


@pytest.mark.parametrize("kind", PROBLEMS)
def test_the_search_of_ocas_is_exact(kind):
    steps = []
    for seed in range(8):
        problem, loss, w, d, C, _ = on_ray(kind, "hinge", seed)
        if seed % 2:
            d = d - w  # mostly downhill
        lines = lines_of(problem, w, d)

        def J(s, w=w, d=d, C=C, lines=lines):
            u = w + s * d
            return 0.5 * u @ u + sum(c * np.max(a + s * b) for c, (a, b) in zip(C, lines, strict=True))

        best = lowest_of(J)
        for first in (1.0, 0.03):
            found = search_maxima(Ray(problem, 1.0, w, d, n_jobs=1), C, w @ d, d @ d, first)
            u = w + found.step * d
            assert found.exact and found.risk == pytest.approx(C @ losses_at(problem, loss, u), rel=1e-11)
            assert J(found.step) <= best * (1 + 1e-12) and (found.step > 8 or J(found.step) >= best * (1 - 1e-7))
            steps.append(found.step)
        assert search_maxima(Ray(problem, 1.0, w, d, n_jobs=2), C, w @ d, d @ d, first) == found
    assert min(steps) == 0.0 and sum(0 < s < 8 for s in steps) >= 8


def test_examples_that_are_settled_are_not_asked_again():
    problem, loss, w, d, C, J = on_ray("chain", "hinge", 1)
    d = -w + 1e-3 * d
    n = np.count_nonzero(C)
    found = search_maxima(Ray(problem, 1.0, w, d), C, w @ d, d @ d)
    assert found.trials > 3 and found.calls < n * found.trials - n / 2


@pytest.mark.parametrize("kind, loss", [("multiclass", "hinge"), ("chain", "crf")])
def test_the_general_search_finds_the_minimum(kind, loss):
    for seed in range(3):
        problem, loss, w, d, C, J = on_ray(kind, loss, seed)
        best, steps = lowest_of(J, points=50), []

        def evaluate(step, problem=problem, loss=loss, w=w, d=d, C=C, steps=steps):
            steps.append(step)
            value = objective(problem, loss, C, w + step * d)
            gradient = value.gradient - w - step * d
            return Tangent(step, value.primal - 0.5 * (w + step * d) @ (w + step * d), gradient @ d)

        for first in (1.0, 0.02):
            del steps[:]
            found = minimise(evaluate, evaluate(0.0), w @ d, d @ d, 1e-12 * J(0.0), first)
            assert J(found.step) <= best * (1 + 1e-11) and len(steps) < 40


def test_the_general_search_ends_exactly_where_the_risk_is_piecewise_linear():
    rng = np.random.default_rng(0)
    for _ in range(20):
        slopes, heights = np.sort(rng.normal(size=8)), rng.normal(size=8)

        def evaluate(step, slopes=slopes, heights=heights):
            k = int(np.argmax(heights + step * slopes))
            return Tangent(step, heights[k] + step * slopes[k], slopes[k])

        along, square = float(rng.normal()) - 1.0, float(rng.random()) + 0.1
        found = minimise(evaluate, evaluate(0.0), along, square, 0.0)
        grid = np.linspace(0, 40, 20001)
        J = along * grid + 0.5 * square * grid**2 + (heights + grid[:, None] * slopes).max(axis=1)
        s = found.step
        assert along * s + 0.5 * square * s * s + found.value <= J.min() + 1e-12


def test_the_lowest_point_of_many_kinks():
    rng = np.random.default_rng(0)
    for _ in range(30):
        n = int(rng.integers(0, 6))
        low, high, C = rng.normal(size=(n, 2)), rng.normal(size=(n, 2)), rng.random(n)
        low[:, 1], high[:, 1] = -np.abs(low[:, 1]) - 0.1, np.abs(high[:, 1])
        slope, square = float(rng.normal()), 0.3
        s = lowest(low, high, C, slope, square, 0.5, 2.0)
        grid = np.append(np.linspace(0.5, 2.0, 3001), s)
        kinks = np.maximum(low[:, 0] + grid[:, None] * low[:, 1], high[:, 0] + grid[:, None] * high[:, 1])
        # lines whose crossing is outside count as the one that is higher inside
        J = slope * grid + 0.5 * square * grid**2 + kinks @ C
        assert 0.5 <= s <= 2.0 and J[-1] <= J.min() + 1e-7


# -- optima and certificates ----------------------------------------------------------------------------------------------


CASES = [("multiclass", "hinge"), ("chain", "hinge"), ("multiclass", "slack"), ("multiclass", "softmax_margin"), ("chain", "crf")]


@pytest.mark.parametrize("kind, loss", CASES)
@pytest.mark.parametrize("name", NAMES)
def test_all_meet_at_the_optimum_with_bounds_that_hold_all_the_way(name, kind, loss):
    if name == "ocas" and loss != "hinge":
        with pytest.raises(ValueError, match=r"Solver 'ocas' minimises max-margin losses L\(inf, gamma\), not the loss"):
            solve(PROBLEMS[kind], loss, name)
        return
    above, below = optimum(kind, loss)
    result = solve(PROBLEMS[kind], loss, name, C=0.5, tol=1e-6)
    assert result.converged and "duality gap" in result.message and result.gap <= 1e-6 * result.primal
    assert result.primal == pytest.approx(above, rel=1.1e-6)
    n = result.size[0]
    assert result.primal == pytest.approx(objective(PROBLEMS[kind], get_loss(loss), np.full(n, 0.5), result.w).primal, rel=1e-12)
    for record in result.history:  # weak duality
        assert record.dual <= above * (1 + 1e-12) and record.primal >= below * (1 - 1e-12) and record.estimate >= 0
    for before, after in itertools.pairwise(result.history):  # the best iterate is kept, and the best bound
        assert after.primal <= before.primal and after.dual >= before.dual - 1e-9 * abs(after.dual)
    assert result.n_oracle_calls >= n * result.n_epochs


def test_ocas_on_two_classes_is_the_binary_svm():
    """LinearSVC has one vector u, our two classes have W = (v, -v) with x . u = 2 x . v, so ||W||^2 = 2 ||v||^2 = ||u||^2 / 2.

    The margin that is asked for is x . (W_y - W_other) = y x . u >= 1 in both. So ours is 1/2 (1/2 ||u||^2 + 2 C sum of hinges):
    half the objective of LinearSVC with 2 C. It has a regularised bias: a feature that is always 1, in both.
    """
    from sklearn.svm import LinearSVC

    rng = np.random.default_rng(1)
    x = np.column_stack([rng.normal(size=(80, 3)), np.ones(80)])
    y = (x @ [1.0, -1.0, 0.5, 0.3] + 0.5 * rng.normal(size=80) > 0).astype(int)
    for C in (0.05, 1.0):
        ours = solve(multiclass_problem(x, y, 2), "hinge", "ocas", C=C, tol=1e-8)
        svm = LinearSVC(loss="hinge", C=2 * C, fit_intercept=False, tol=1e-10, max_iter=10**6).fit(x, y)
        u = svm.coef_[0]
        value = 0.5 * u @ u + 2 * C * np.maximum(0, 1 - (2 * y - 1) * (x @ u)).sum()
        assert ours.converged and ours.primal == pytest.approx(0.5 * value, rel=1e-7)
        W = ours.w.reshape(4, 2)
        np.testing.assert_allclose(W[:, 1] - W[:, 0], u, atol=2e-3)
        np.testing.assert_allclose(W[:, 1], -W[:, 0], atol=1e-9)


@pytest.mark.parametrize("kind", PROBLEMS)
def test_the_bound_of_the_iteration_theorem_holds(kind):
    """Acharya's Theorem 6.3 for lambda/2 ||w||^2 + mean loss, with H* = 1:

        n <= log2(lambda J(0) / G^2) + 8 G^2 / (lambda eps) - 1    for eps < 4 G^2 / lambda, G a bound of the subgradients.

    Ours is N C times that objective, lambda = 1 / (N C): with our J, eps' = N C eps and G' = N C G, lambda drops out.
    """
    problem = PROBLEMS[kind]
    for C in (0.05, 0.5, 5.0):
        first = C * float(losses_at(problem, get_loss("hinge"), np.zeros(kernels.n_weights(problem))).sum())
        norms = []

        class Watched(BMRM):
            def look(self, task, state, w, norms=norms):
                point = super().look(task, state, w)
                norms.append(float(point.a @ point.a))
                return point

        result = solve(problem, "hinge", Watched(max_cuts=10**4), C=C, tol=1e-3)
        square, held = max(norms), 0
        for record in result.history:
            if 0 < record.gap < 4 * square:
                assert record.epoch <= math.log2(first / square) + 8 * square / record.gap - 1
                held += 1
        assert result.converged and held > 5


def test_no_losses_but_convex_ones():
    for solver in MINE:
        assert (solver.name in can_minimise(get_loss("crf"))) == (solver is not OCAS)
        assert solver.name in can_minimise(get_loss("hinge")) and solver.name in can_minimise(get_loss("ramp"))
        assert solver.name not in can_minimise(get_loss("soft_ramp"))
    result = solve(PROBLEMS["multiclass"], "ramp", "proximal", C=0.3)
    peer = solve(PROBLEMS["multiclass"], "ramp", "sdm", C=0.3)
    assert isinstance(result.solver, CCCP) and result.converged and result.primal == pytest.approx(peer.primal, rel=0.05)


def test_the_centre_of_the_proximal_method_is_the_last_serious_iterate():
    task, solver = make_task(PROBLEMS["chain"], "hinge", 1.0), Proximal()
    state = solver.init(task)
    for _ in range(40):
        centre, value, serious, expected = state.best.copy(), state.objective, state.serious, state.expected
        solver.epoch(task, state)
        if state.serious > serious:
            assert value - state.objective >= solver.rho * expected * (1 - 1e-12)
        elif state.epochs > 1:
            np.testing.assert_array_equal(state.best, centre)
        assert state.expected >= -1e-9
        np.testing.assert_allclose(state.cuts.at_best, state.cuts.vectors @ state.best, atol=1e-9)
        # w_t minimises the model around the centre
        a, b, zeta = state.cuts.vectors, state.cuts.offset, state.zeta

        def near(w, a=a, b=b, zeta=zeta, best=state.best):
            return 0.5 * w @ w + np.max(a @ w + b) + 0.5 * zeta * (w - best) @ (w - best)

        rng = np.random.default_rng(0)
        for length in (1e-4, 1e-2):
            other = state.candidate + length * rng.normal(size=len(state.candidate))
            assert near(state.candidate) <= near(other) + 1e-9
    assert state.serious > 3 and state.null > 3 and state.serious + state.null == 39


def test_few_cuts_and_little_memory_are_enough_though_it_takes_longer():
    problem = PROBLEMS["multiclass"]
    d = kernels.n_weights(problem)
    for solver in MINE:
        many = solve(problem, "hinge", solver(), C=0.5, tol=1e-3)
        few = solve(problem, "hinge", solver(max_cuts=6), C=0.5, tol=1e-3)
        small = solve(problem, "hinge", solver(memory=8 * d * 18 + (16 * 180 if solver is OCAS else 0)), C=0.5, tol=1e-3)
        assert few.state.cuts.n <= 6 < many.state.cuts.n and many.converged and few.converged and small.converged
        assert small.state.cuts.sizes.sum() <= 8 * d * 8
        assert few.primal == pytest.approx(many.primal, rel=1e-3) and small.primal == pytest.approx(many.primal, rel=1e-3)


# -- bad input, threads, going on -----------------------------------------------------------------------------------------


def test_too_little_memory_is_said_before_it_is_taken():
    with pytest.raises(
        MemoryError, match=r"'bmrm' needs at least 0.0 MB for 12 weights .4 cuts.*'memory' parameter.*fewer features.*'sdm'"
    ):
        solve(PROBLEMS["multiclass"], "hinge", BMRM(memory=8 * 12 * 14 - 1))
    assert 1e6 < available_memory() < math.inf or available_memory() == math.inf

    class Large(NRBM):  # weights that no machine has room for: nothing may be allocated
        pass

    huge = multiclass_problem(np.zeros((1, 1)), [0], 2)
    huge = huge._replace(rows=huge.rows._replace(n_features=2**48))
    for solver in (*MINE, Large):
        with pytest.raises(MemoryError, match="needs at least .* MB for 562,949,953,421,312 weights .*half of what is free"):
            solver().init(make_task(huge, "hinge", 1.0))


@pytest.mark.parametrize("solver", MINE)
def test_parameters_are_checked(solver):
    name = solver.__name__
    with pytest.raises(
        ValueError, match=rf"'max_cuts' parameter of {name} must be an int in the range \[3, inf\). Got 2 instead"
    ):
        solver(max_cuts=2)
    with pytest.raises(ValueError, match=rf"'memory' parameter of {name} must be a number of bytes > 0 or None. Got -1 instead"):
        solver(memory=-1)
    share = {"Proximal": "rho", "BMRM": None}.get(name, "theta")
    if share:
        with pytest.raises(
            ValueError, match=rf"'{share}' parameter of {name} must be a float in the range \(0, 1\]. Got 0 instead"
        ):
            solver(**{share: 0})


@pytest.mark.parametrize("name", NAMES)
def test_a_tolerance_that_cannot_be_reached(name):
    above, _ = optimum("multiclass", "hinge")
    result = solve(PROBLEMS["multiclass"], "hinge", name, C=0.5, tol=1e-300)
    assert result.status == "stalled" and not result.converged and "rounding errors" in result.message
    assert result.gap <= 1e-11 * result.primal and result.primal == pytest.approx(above, rel=1e-9)
    with pytest.warns(UserWarning, match=f"Classifier: solver '{name}' after .* rounding errors are all .* Increase tol"):
        Classifier("hinge", solver=name, tol=1e-300).fit(np.eye(3)[[0, 1, 2, 0]] + 0.5, [0, 1, 2, 1])


def test_a_target_that_is_forbidden():
    allowed = np.ones((4, 3), bool)
    allowed[2, 2] = False
    problem = multiclass_problem(np.eye(3)[[0, 1, 2, 0]], [0, 1, 2, 0], 3, allowed=allowed)
    for name in NAMES:
        with pytest.raises(ValueError, match="loss of example 2 is infinite: the constraints forbid its target"):
            solve(problem, "hinge", name)


def test_nothing_to_learn():
    problem = multiclass_problem(np.zeros((4, 2)), [0, 1, 0, 1], 2)  # no features: w = 0 is optimal
    for name in NAMES:
        result = solve(problem, "hinge", name)
        assert result.converged and result.n_epochs == 1 and result.gap <= 1e-12 and not result.w.any()


@pytest.mark.parametrize("name", NAMES)
def test_threads_change_nothing_and_float32_is_honest(name):
    problem = PROBLEMS["chain"]
    one, two = (solve(problem, "hinge", name, C=0.5, max_epochs=15, tol=0, n_jobs=n) for n in (1, 2))
    np.testing.assert_array_equal(one.w, two.w)
    assert [(r.primal, r.dual) for r in one.history] == [(r.primal, r.dual) for r in two.history]
    problem = PROBLEMS["multiclass"]
    above, _ = optimum("multiclass", "hinge")
    single = solve(problem, "hinge", name, C=0.5, tol=1e-4, dtype=np.float32)
    assert single.w.dtype == np.float32 and single.converged
    assert single.primal == pytest.approx(above, rel=1e-4) and all(record.dual <= above for record in single.history)
    w = single.w.astype(np.float64)
    assert single.primal == pytest.approx(objective(problem, get_loss("hinge"), np.full(60, 0.5), w).primal, rel=1e-6)


@pytest.mark.parametrize("solver", [*MINE, NRBM])
def test_going_on_is_as_if_nothing_had_happened(solver, tmp_path):
    """From a result in memory, from a file, and after Ctrl-C; with sparse slopes, dropped cuts and aggregates on the way."""
    problem = noisy("multiclass", features=20, binary=True)
    solver = solver(max_cuts=8)
    whole = solve(problem, "hinge", solver, C=0.3, max_epochs=40, tol=0)
    assert whole.n_epochs == 40 and whole.state.cuts.n == 8
    assert whole.state.cuts.where[: whole.state.cuts.n, SMALL].any()
    task, path = make_task(problem, "hinge", 0.3), tmp_path / "run.checkpoint"
    saver = Checkpoint(path, 0.0)
    assert saver.load(solver, task) is None

    def impatient(record):
        if record.epoch == 27:
            raise KeyboardInterrupt

    part = run(solver, task, max_epochs=40, tol=0, callbacks=[saver.save, impatient])
    assert part.status == "interrupted" and part.n_epochs == 27
    for before in (part, Checkpoint(path, 0.0).load(solver, task)):
        after = solve(problem, "hinge", solver, C=0.3, max_epochs=40, tol=0, resume=before)
        np.testing.assert_array_equal(after.w, whole.w)
        assert [(r.primal, r.dual) for r in after.history] == [(r.primal, r.dual) for r in whole.history]


def test_weights_to_start_from_and_examples_that_do_not_count():
    problem = PROBLEMS["multiclass"]
    weight = np.arange(60) % 3.0
    for name in NAMES:
        first = solve(problem, "hinge", name, C=0.2, tol=1e-5, sample_weight=weight)
        again = solve(problem, "hinge", name, C=0.2, tol=1e-5, sample_weight=weight, start=first.w)
        assert again.primal == pytest.approx(first.primal, rel=1e-5) and again.history[0].primal <= first.primal * (1 + 1e-12)
        some = kernels.take(problem, np.flatnonzero(weight))
        assert solve(some, "hinge", name, C=0.2, tol=1e-5, sample_weight=weight[weight > 0]).primal == pytest.approx(
            first.primal, rel=1e-5
        )


def test_they_are_known_by_their_names():
    assert [SOLVERS[name] for name in ("bmrm", "bmrm_ls", "ocas", "proximal")] == list(MINE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = Classifier("hinge", solver="ocas").fit(np.eye(3)[[0, 1, 2, 0, 1, 2]], list("abcabc"))
    assert model.predict(np.eye(3)).tolist() == ["a", "b", "c"]


# -- the benchmark of the master problem ----------------------------------------------------------------------------------


def test_the_benchmark_judges_everybody_by_one_certificate():
    root = Path(__file__).parent.parent.parent
    if not (root / "benchmarks").is_dir():
        pytest.skip("the benchmarks come with the checkout only")
    sys.path.insert(0, str(root))
    from benchmarks.qp import Problem, certified, compare

    a = np.random.default_rng(0).normal(size=(6, 4))
    problem = Problem(a @ a.T, -np.ones(6), np.ones(6))

    def fails(problem):
        raise ValueError("no answer")

    rows = compare("toy", problem, {"corner": lambda p: np.eye(6)[0], "fails": fails}, 1)
    assert [row.peer_name for row in rows] == ["ours, cold", "corner", "fails"] and "fails inf" in rows[-1].note
    exact = solve_master(problem.gram, problem.offset)
    assert certified(problem, exact.alpha) <= 1e-12 < certified(problem, np.eye(6)[0])
