"""SDM and BCFW: certificates, optima against a QP over all outputs, exact resuming; and the active sets they keep."""

import math

import numpy as np
import pytest

from budget_structure import PlainBudget, make_budget
from partwise import kernels
from partwise.engine.compilation import interpret
from partwise.losses.records import Family, get_loss
from partwise.objective import losses_at
from partwise.solvers import Task, solve
from partwise.solvers.active import (
    active_sets,
    drop_inactive,
    find,
    insert,
    output_of,
    packed,
    products_of,
    remove,
    reserve,
    start_at_targets,
    weights_of,
)
from partwise.solvers.bcfw import BCFW
from partwise.solvers.sdm import SDM
from partwise.structures import chain_problem, multiclass_problem

rng = np.random.default_rng(0)
X = rng.normal(size=(12, 3))
CLASSES = rng.integers(0, 3, 12)
COSTS = np.array([[0.0, 1.0, 3.0], [0.5, 0.0, 1.0], [2.0, 1.0, 0.0]])
LENGTHS = [3, 1, 0, 3, 2, 3]
NEIGHBOURS = np.eye(3)[CLASSES] + np.eye(3)[(CLASSES + 1) % 3] > 0
PAIRS = set(zip(CLASSES[:-1].tolist(), CLASSES[1:].tolist(), strict=True))
UNSEEN = next((a, b) for a in range(3) for b in range(3) if (a, b) not in PAIRS)


def target_elsewhere(problem):
    """Targets that are not the gold outputs, as CCCP chooses them."""
    targets = problem.gold.copy()
    targets[::2] = (targets[::2] + 1) % 3
    return problem._replace(targets=targets)


PROBLEMS = {
    "multiclass": multiclass_problem(X, CLASSES, 3),
    "multiclass, cost matrix": multiclass_problem(X, CLASSES, 3, costs=COSTS),
    "multiclass, other targets": target_elsewhere(multiclass_problem(X, CLASSES, 3, costs=COSTS)),
    "multiclass, no features": multiclass_problem(X * (np.arange(12) % 3 > 0)[:, None], CLASSES, 3),
    "chain": chain_problem(X, LENGTHS, CLASSES, 3),
    "chain, order 2": chain_problem(X, LENGTHS, CLASSES, 3, order=2),
    "chain, constraints": chain_problem(X, LENGTHS, CLASSES, 3, allowed=NEIGHBOURS, forbidden=[UNSEEN]),
    "chain, other targets": target_elsewhere(chain_problem(X, LENGTHS, CLASSES, 3, costs=COSTS)),
}


def constraints_of(problem, gamma=1.0):
    """dF_i(y) and gamma l_i(y) of every output that is allowed, for every example."""
    d = kernels.n_weights(problem)
    for i in range(kernels.n_examples(problem)):
        theta = np.zeros(kernels.n_parts(problem, i))
        kernels.score(problem, i, np.zeros(d), theta)
        rows, costs = [], []
        for y in kernels.outputs(problem, i):
            if kernels.value_of(problem, i, theta, y) > -math.inf:
                row = np.zeros(d)
                kernels.difference(problem, i, kernels.target(problem, i), y, 1.0, row)
                rows.append(row)
                costs.append(gamma * kernels.cost(problem, i, y))
        yield np.array(rows), np.array(costs)


def optimum(problem, C, gamma=1.0):
    """The optimal value by quadratic programming over all outputs: the dual, max a.l - 1/2 |A^T a|^2 over simplices."""
    from scipy.optimize import minimize

    blocks = list(constraints_of(problem, gamma))
    A, cost = np.concatenate([rows for rows, _ in blocks]), np.concatenate([costs for _, costs in blocks])
    owner = np.repeat(np.arange(len(blocks)), [len(costs) for _, costs in blocks])
    sums = (owner == np.arange(len(blocks))[:, None]).astype(float)
    Q = A @ A.T
    start = (sums.T / sums.sum(1)) @ C
    result = minimize(
        lambda a: 0.5 * a @ Q @ a - a @ cost, start, jac=lambda a: Q @ a - cost, method="SLSQP", bounds=[(0, None)] * len(start),
        constraints={"type": "eq", "fun": lambda a: sums @ a - C, "jac": lambda a: sums},
        options={"maxiter": 2000, "ftol": 1e-13},
    )  # fmt: skip
    return -result.fun


def duals_of(problem, sets):
    """{(i, y): lambda} of all records in the lists."""
    found = {}
    for i in range(len(sets.head)):
        record, n = sets.head[i], 0
        while record >= 0:
            y = tuple(int(k) for k in output_of(sets, record, kernels.length(problem, i)))
            assert (i, y) not in found, "an output is in its set twice"
            assert sets.cost[record] == pytest.approx(kernels.cost(problem, i, np.array(y, np.int32)))
            found[i, y] = sets.weight[record]
            record, n = sets.next[record], n + 1
        assert n == sets.size[i]
    return found


def check_state(problem, C, state):
    """Feasible multipliers, and the weights they stand for."""
    duals = duals_of(problem, state.sets)
    sums = np.zeros(len(C))
    for (i, _), mass in duals.items():
        assert mass >= 0.0
        sums[i] += mass
    np.testing.assert_allclose(sums, C, rtol=1e-12)
    w = np.zeros(kernels.n_weights(problem))
    for (i, y), mass in duals.items():
        kernels.difference(problem, i, kernels.target(problem, i), np.array(y, np.int32), mass, w)
    np.testing.assert_allclose(state.weights.v, w, atol=1e-10)
    np.testing.assert_allclose(weights_of(problem, state.sets), w, atol=1e-12)


def check_history(result, best):
    """Weak duality at every recorded iterate; the dual never falls."""
    primal, dual = np.array([(r.primal, r.dual) for r in result.history]).T
    slack = 1e-9 * (1.0 + abs(best))
    assert (primal >= best - 1e3 * slack).all() and (dual <= best + 1e3 * slack).all()  # as exact as SLSQP is
    assert (primal >= dual - slack).all()
    assert (np.diff(dual) >= -slack).all()


@pytest.mark.parametrize("name", PROBLEMS)
def test_optimum_and_certificate(name):
    problem = PROBLEMS[name]
    C = np.full(kernels.n_examples(problem), 0.7)
    best = optimum(problem, C)
    sdm = solve(problem, "hinge", "sdm", C=0.7, tol=1e-7, evaluate="epoch", max_epochs=1000)
    check_history(sdm, best)
    check_state(problem, C, sdm.state)
    assert sdm.converged and sdm.gap <= 1e-7 * sdm.primal
    assert sdm.primal == pytest.approx(best, rel=1e-6)
    w, losses = sdm.w, losses_at(problem, get_loss("hinge"), sdm.w)
    assert sdm.primal == pytest.approx(0.5 * w @ w + C @ losses, rel=1e-12)
    bcfw = solve(problem, "hinge", "bcfw", C=0.7, tol=2e-3, evaluate="epoch", max_epochs=1000)
    check_history(bcfw, best)
    check_state(problem, C, bcfw.state)
    assert bcfw.converged and bcfw.primal == pytest.approx(best, rel=2e-3)


@pytest.mark.parametrize("gamma", [0.0, 0.5, 3.0])
def test_any_cost_weight(gamma):
    problem = PROBLEMS["multiclass, other targets"]
    C = np.full(12, 0.7)
    best = optimum(problem, C, gamma)
    for solver, tol in (("sdm", 1e-7), ("bcfw", 1e-3)):
        result = solve(problem, Family(math.inf, gamma), solver, C=0.7, tol=tol, evaluate="epoch", max_epochs=1000)
        check_history(result, best)
        check_state(problem, C, result.state)
        assert result.primal == pytest.approx(best, rel=tol, abs=1e-6)


def test_smooth_losses_are_refused():
    with pytest.raises(
        ValueError, match=r"Solver 'sdm' minimises max-margin losses, L\(inf, gamma\), rescaled or squared, not the loss 'crf'"
    ):
        solve(PROBLEMS["multiclass"], "crf", "sdm")


@pytest.mark.parametrize("solver", [SDM(), SDM(average=True), BCFW(), BCFW(average=False)])
def test_resume_is_exact(solver):
    problem = PROBLEMS["chain"]
    whole = solve(problem, "hinge", solver, C=0.7, tol=0, max_epochs=40, evaluate="never")
    half = solve(problem, "hinge", solver, C=0.7, tol=0, max_epochs=17, evaluate="epoch")
    rest = solve(problem, "hinge", solver, C=0.7, tol=0, max_epochs=40, evaluate="never", resume=half)
    assert (rest.w == whole.w).all() and rest.n_oracle_calls == whole.n_oracle_calls
    assert duals_of(problem, rest.state.sets) == duals_of(problem, whole.state.sets)
    half_again = solve(problem, "hinge", solver, C=0.7, tol=0, max_epochs=17, evaluate="never")
    assert len(half_again.state.sets.next) and half_again.state.epochs == 17  # resuming did not touch the first result
    assert duals_of(problem, half_again.state.sets) == duals_of(problem, half.state.sets)


@pytest.mark.parametrize("solver", ["sdm", "bcfw"])
def test_order_comes_from_the_seed(solver):
    def run(**options):
        return solve(PROBLEMS["multiclass"], "hinge", solver, C=0.7, tol=0, max_epochs=2, evaluate="never", **options).w

    assert (run(seed=1) == run(seed=1)).all()
    assert (run(seed=1) != run(seed=2)).any()
    assert (run(shuffle=False) == run(shuffle=False, seed=5)).all()


@pytest.mark.parametrize("solver", ["sdm", "bcfw"])
def test_weight_of_an_example_is_its_number_of_copies(solver):
    weight = np.array([0, 1, 2] * 4)
    copies = np.repeat(np.arange(12), weight)
    a = solve(PROBLEMS["multiclass"], "hinge", solver, C=0.7, tol=1e-4, max_epochs=1000, sample_weight=weight)
    b = solve(multiclass_problem(X[copies], CLASSES[copies], 3), "hinge", "sdm", C=0.7, tol=1e-7, max_epochs=1000)
    check_state(PROBLEMS["multiclass"], 0.7 * weight, a.state)
    assert a.primal == pytest.approx(b.primal, rel=1e-4)
    assert a.n_oracle_calls <= 8 * a.n_epochs


@pytest.mark.parametrize("solver", ["sdm", "bcfw"])
def test_single_precision(solver):
    a = solve(PROBLEMS["multiclass"], "hinge", solver, C=0.7, tol=1e-4, max_epochs=300, dtype=np.float32, evaluate="epoch")
    b = solve(PROBLEMS["multiclass"], "hinge", "sdm", C=0.7, tol=1e-7, max_epochs=1000)
    assert a.w.dtype == np.float32 and a.primal == pytest.approx(b.primal, rel=1e-3)
    assert all(r.dual <= b.primal * (1 + 1e-6) for r in a.history)


class OneByOne(Task):
    """Hands out the examples one per epoch, so that every iterate can be seen."""

    def slices(self, epoch):
        yield np.array([epoch % self.n])


def test_bcfw_average_weighs_the_later_iterates_more():
    """sum_t t w_t / sum_t t, with one w per visit; bounds speak of the better of it and the last w, and so do the weights."""
    problem, solver = PROBLEMS["multiclass"], BCFW(gap_sampling=False, cached_passes=0)
    task = OneByOne(problem, get_loss("hinge"), np.full(12, 0.7))
    state, total = solver.init(task), np.zeros(9)
    for t in range(1, 37):
        solver.epoch(task, state)
        total += t * state.weights.v
        np.testing.assert_allclose(solver.weights(state), total / (t * (t + 1) / 2), atol=1e-12)
        primal = solver.bounds(task, state).primal
        candidates = [0.5 * w @ w + task.C @ losses_at(problem, task.loss, w) for w in (solver.weights(state), state.weights.v)]
        assert primal == pytest.approx(min(candidates)) and primal == pytest.approx(candidates[0])


@pytest.mark.parametrize("solver", ["sdm", "bcfw"])
def test_start_offers_its_outputs(solver):
    problem = PROBLEMS["chain"]
    best = solve(problem, "hinge", "sdm", C=0.7, tol=1e-7, max_epochs=1000)
    cold = solve(problem, "hinge", solver, C=0.7, tol=0, max_epochs=1)
    warm = solve(problem, "hinge", solver, C=0.7, tol=0, max_epochs=1, start=best.w)
    check_state(problem, np.full(6, 0.7), warm.state)
    assert cold.dual < warm.dual <= best.primal


def test_interpreted_and_compiled_agree():
    for name in ("multiclass", "chain"):
        for solver in ("sdm", BCFW(gap_sampling=False)):  # gaps that are nothing but rounding draw other examples
            compiled = solve(PROBLEMS[name], "hinge", solver, C=0.7, tol=0, max_epochs=3)
            with interpret():
                interpreted = solve(PROBLEMS[name], "hinge", solver, C=0.7, tol=0, max_epochs=3)
            np.testing.assert_allclose(interpreted.w, compiled.w, atol=1e-9)
            assert interpreted.dual == pytest.approx(compiled.dual)


@pytest.mark.parametrize("solver", ["sdm", "bcfw"])
def test_structure_in_plain_python(solver):
    """It brings only the required kernels: the defaults of margins, products and the like do the rest."""
    problem, C = make_budget(6, structure=PlainBudget), np.full(6, 0.7)
    result = solve(problem, "hinge", solver, C=0.7, tol=1e-3, max_epochs=100, evaluate="epoch")
    best = optimum(problem, C)
    check_history(result, best)
    check_state(problem, C, result.state)
    assert result.primal == pytest.approx(best, rel=1e-3)


def test_linear_svc_has_the_same_optimum():
    from sklearn.datasets import load_digits
    from sklearn.svm import LinearSVC

    x, y = load_digits(return_X_y=True)
    x = x / 16
    result = solve(multiclass_problem(x, y), "hinge", "sdm", C=0.1, tol=1e-5)
    svc = LinearSVC(multi_class="crammer_singer", fit_intercept=False, C=0.1, tol=1e-4, max_iter=100_000, random_state=0)
    svc.fit(x, y)
    scores = x @ svc.coef_.T
    margins = 1 + scores - scores[np.arange(len(y)), y][:, None]
    margins[np.arange(len(y)), y] = 0
    theirs = 0.5 * (svc.coef_**2).sum() + 0.1 * margins.max(1).sum()
    assert result.converged
    assert result.primal == pytest.approx(theirs, rel=1e-4)
    assert result.dual <= theirs


def check_products(problem, sets):
    """Every kept product is dF(y) . dF(z)."""
    for i in range(len(sets.head)):
        records, record = [], sets.head[i]
        while record >= 0:
            records.append(record)
            record = sets.next[record]
        rows = np.zeros((len(records), kernels.n_weights(problem)))
        for k, record in enumerate(records):
            y = output_of(sets, record, kernels.length(problem, i))
            kernels.difference(problem, i, kernels.target(problem, i), y, 1.0, rows[k])
        kept = np.array([products_of(sets, i, record)[sets.slot[records]] for record in records])
        np.testing.assert_allclose(kept, rows @ rows.T, atol=1e-12)


def test_products_stay_those_of_the_outputs():
    """After many epochs of growing and shrinking, and after packing, which changes nothing else either."""
    problem = PROBLEMS["chain, order 2"]
    sets = solve(problem, "hinge", "sdm", C=5.0, tol=0, max_epochs=60, evaluate="never").state.sets
    assert sets.size.max() >= 4 and sets.used[0] > sets.size.sum()
    check_products(problem, sets)
    again = packed(sets, np.array(LENGTHS))
    assert again.used.tolist() == [sets.size.sum(), sets.size @ LENGTHS, sets.size @ sets.size]
    assert duals_of(problem, again) == duals_of(problem, sets)
    check_products(problem, again)
    check_products(problem, reserve(again, problem))


def test_retarget_keeps_the_multipliers():
    """What CCCP does: other targets, the same multipliers, and on to the optimum of the new problem."""
    before, after = PROBLEMS["multiclass, cost matrix"], PROBLEMS["multiclass, other targets"]
    result = solve(before, "hinge", "sdm", C=0.7, tol=1e-7, max_epochs=1000)
    state, task, C = result.state, Task(after, get_loss("hinge"), np.full(12, 0.7)), np.full(12, 0.7)
    duals = duals_of(before, state.sets)
    SDM().retarget(Task(before, task.loss, C), task, state, np.flatnonzero(before.targets != after.targets))
    assert duals_of(after, state.sets) == duals
    check_state(after, C, state)
    check_products(after, state.sets)
    first = SDM().bounds(task, state).dual
    while SDM().bounds(task, state).gap > 1e-6 and state.epochs < 1000:
        SDM().epoch(task, state)
    check_state(after, C, state)
    assert first <= SDM().bounds(task, state).dual
    assert SDM().bounds(task, state).primal == pytest.approx(optimum(after, C), rel=1e-6)


def test_active_sets_against_a_dictionary():
    """Random insertions and removals, reserving room as solvers do, against plain Python; removed records are used again."""
    problem = PROBLEMS["chain"]
    random = np.random.default_rng(1)
    sets, model = reserve(active_sets(6), problem), {}
    start_at_targets(problem, sets, np.ones(6))
    for i in range(6):
        model[i, tuple(kernels.target(problem, i).tolist())] = 1.0
    for _ in range(60):
        sets = reserve(sets, problem)
        for i in random.permutation(6):
            y = random.integers(0, 3, LENGTHS[i]).astype(np.int32)
            record = find(sets, i, y)
            assert (record >= 0) == ((i, tuple(y.tolist())) in model)
            if record < 0:
                sets.weight[insert(sets, i, y, kernels.cost(problem, i, y))] = model[i, tuple(y.tolist())] = random.random() + 0.1
            for key in [k for k in model if k[0] == i and random.random() < 0.4]:
                sets.weight[find(sets, i, np.array(key[1], np.int32))] = 0.0
                del model[key]
            drop_inactive(sets, i)
        assert duals_of(problem, sets) == model
    assert sets.used[0] <= 2 * len(model) + 2 * 6
    i = 0
    while sets.size[i]:
        remove(sets, i, sets.head[i], -1)
    assert sets.head[i] == -1 and sets.size[i] == 0
