"""Quadratic slacks: both losses against enumeration, every solver against the optimum over all outputs, what they certify."""

import math

import numpy as np
import pytest

import partwise
from column_cases import sentences, text
from partwise import Classifier, SequenceLabeler, kernels
from partwise.losses.records import SquaredHinge, Summed, get_loss
from partwise.objective import completions, losses_at, objective
from partwise.solvers import CCCP, can_minimise, for_optimum, get_solver, make_task, solve
from partwise.solvers.active import find, output_of, weights_of
from partwise.solvers.bcfw import BCFW
from partwise.solvers.dual_state import certified_dual
from partwise.solvers.sdcd import SDCD
from partwise.solvers.sdm import SDM
from partwise.structures import chain_problem, multiclass_problem

pytestmark = pytest.mark.interpreted

rng = np.random.default_rng(5)
X = rng.normal(size=(12, 3))
CLASSES = rng.integers(0, 3, 12)
COSTS = np.array([[0.0, 1.0, 3.0], [0.5, 0.0, 1.0], [2.0, 1.0, 0.0]])
LENGTHS = [3, 1, 0, 3, 2, 3]
NEIGHBOURS = np.eye(3)[CLASSES] + np.eye(3)[(CLASSES + 1) % 3] > 0
WEIGHT = np.ones(12)
WEIGHT[3], WEIGHT[4] = 0.0, 2.5
PAIRS = set(zip(CLASSES[:-1].tolist(), CLASSES[1:].tolist(), strict=True))
UNSEEN = next((a, b) for a in range(3) for b in range(3) if (a, b) not in PAIRS)
PROBLEMS = {
    "classes": multiclass_problem(X, CLASSES, 3, costs=COSTS),
    "classes, some without features": multiclass_problem(X * (np.arange(12) % 3 > 0)[:, None], CLASSES, 3),
    "chain": chain_problem(X, LENGTHS, CLASSES, 3),
    "chain, constraints": chain_problem(X, LENGTHS, CLASSES, 3, allowed=NEIGHBOURS, forbidden=[UNSEEN], costs=COSTS),
}
LISTED = ["classes", "classes, some without features"]
C = 0.7


def pieces(problem, i):
    """dF_i(y) and l_i(y) of every output that is allowed, but for the target."""
    d, t = kernels.n_weights(problem), kernels.target(problem, i)
    theta = np.zeros(kernels.n_parts(problem, i))
    kernels.score(problem, i, np.zeros(d), theta)
    for y in kernels.outputs(problem, i):
        if kernels.value_of(problem, i, theta, y) > -math.inf and not np.array_equal(y, t):
            row = np.zeros(d)
            kernels.difference(problem, i, t, y, 1.0, row)
            yield row, kernels.cost(problem, i, y)


def loss_at(problem, i, w, loss):
    """L_i(w) by enumeration."""
    slacks = [max(0.0, loss.gamma * cost - w @ row) for row, cost in pieces(problem, i)]
    if isinstance(loss, Summed):
        return sum(0.5 * slack**2 for slack in slacks)
    return 0.5 * max(slacks, default=0.0) ** 2


def optimum(problem, weights, shared, ratio=0.0):
    """max_{a >= 0} a.l - Omega*(A^T a) - sum_i 1/(2 C_i) (sum_y a_i(y))^2, or, not `shared`, with the sum of the squares."""
    from scipy.optimize import minimize

    blocks = [list(pieces(problem, i)) if c > 0 else [] for i, c in enumerate(weights)]
    A = np.array([row for block in blocks for row, _ in block])
    cost = np.array([cost for block in blocks for _, cost in block])
    owner = np.repeat(np.arange(len(blocks)), [len(block) for block in blocks])
    same = (owner[:, None] == owner) if shared else np.eye(len(cost))
    Q = same / weights[owner]

    def value(a):
        v = A.T @ a
        beyond = np.sign(v) * np.maximum(np.abs(v) - ratio, 0.0) / (1.0 - ratio)
        return 0.5 * (1.0 - ratio) * beyond @ beyond - a @ cost + 0.5 * a @ Q @ a, A @ beyond - cost + Q @ a

    result = minimize(
        value, np.full(len(cost), 0.1), jac=True, method="L-BFGS-B", bounds=[(0.0, None)] * len(cost),
        options={"maxiter": 20000, "maxfun": 100000, "ftol": 1e-15, "gtol": 1e-9},
    )  # fmt: skip
    return -result.fun


def weights_for(problem):
    return WEIGHT if kernels.n_examples(problem) == 12 else np.ones(6)


def check_history(history, best):
    """Weak duality at every recorded iterate."""
    primal, dual = np.array([(r.primal, r.dual) for r in history]).T
    slack = 1e-6 * (1.0 + abs(best))  # as exact as scipy is
    assert (dual <= best + slack).all() and (primal >= best - slack).all() and (primal >= dual - 1e-9 * best).all()


def multipliers(problem, sets, i):
    """{y: lambda_i(y)} of one example."""
    found, record = {}, sets.head[i]
    while record >= 0:
        y = tuple(int(k) for k in output_of(sets, record, kernels.length(problem, i)))
        assert y not in found
        found[y] = sets.weight[record]
        record = sets.next[record]
    return found


# -- the losses -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_losses_are_those_of_all_outputs(name):
    problem = PROBLEMS[name]
    for scale in (0.0, 0.3, 3.0):
        w = scale * rng.normal(size=kernels.n_weights(problem))
        for loss in (SquaredHinge(), SquaredHinge(2.5), *((Summed(0.5, squared=True),) if name in LISTED else ())):
            expected = [loss_at(problem, i, w, loss) for i in range(kernels.n_examples(problem))]
            np.testing.assert_allclose(losses_at(problem, loss, w), expected, atol=1e-12)


@pytest.mark.parametrize("loss", ["squared_hinge", "squared_summed"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_the_gradient_is_that_of_differences(name, loss):
    problem = PROBLEMS[name]
    if loss == "squared_summed" and name not in LISTED:
        pytest.skip("nobody lists its outputs")
    weights, d = C * weights_for(problem), kernels.n_weights(problem)
    for scale in (0.1, 1.0):
        w, step = scale * rng.normal(size=d), 1e-6
        value = objective(problem, get_loss(loss), weights, w)
        assert value.primal == pytest.approx(0.5 * w @ w + weights @ losses_at(problem, get_loss(loss), w), rel=1e-12)
        for j in range(d):
            e = step * np.eye(d)[j]
            up, down = (objective(problem, get_loss(loss), weights, w + s * e).primal for s in (1, -1))
            assert value.gradient[j] == pytest.approx((up - down) / (2 * step), abs=1e-5 * (1 + abs(value.gradient[j])))


def test_the_losses_know_themselves():
    hinge, summed = get_loss("squared_hinge"), get_loss("squared_summed")
    assert hinge == SquaredHinge() and hinge.name == "squared_hinge" and SquaredHinge(3).name == "squared_hinge(gamma=3)"
    assert summed == Summed(squared=True) and summed.name == "squared_summed" and not get_loss("summed").is_squared
    assert get_loss("summed(squared=True)") == summed and get_loss("squared_hinge(2)") == SquaredHinge(2)
    for loss in (hinge, summed):
        assert loss.is_convex and not loss.is_smooth and loss.uses_cost and loss.is_squared
    assert summed.has_gradient and not hinge.has_gradient and hinge.takes_sets and not summed.takes_sets
    with pytest.raises(ValueError, match=r"'gamma' parameter of SquaredHinge must be a float in \[0, inf\). Got -1"):
        SquaredHinge(-1)
    with pytest.raises(ValueError, match="asks for no margin, and w = 0 is its minimum: gamma must be positive"):
        SquaredHinge(0)
    with pytest.raises(ValueError, match="'squared' parameter of Summed must be True or False. Got 1 instead"):
        Summed(1.0, 1)


def test_a_forbidden_target_costs_everything_and_pulls_at_nothing():
    forbidden = multiclass_problem(X[:1], [1], 3, allowed=np.array([[True, False, True]]))
    for loss in (SquaredHinge(), Summed(squared=True)):
        value = objective(forbidden, loss, np.ones(1), np.zeros(9))
        assert value.primal == math.inf and not value.gradient.any()


# -- the optimum ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROBLEMS)
def test_all_solvers_of_the_squared_hinge_meet(name):
    problem = PROBLEMS[name]
    weight = weights_for(problem)
    best = optimum(problem, C * weight, shared=True)
    exact = {"sdm": 1e-6, "bmrm": 1e-6, "bmrm_ls": 1e-6, "proximal": 1e-6, "nrbm": 1e-6, "bcfw": 2e-3, "polyak": 1e-2}
    rough = {"pegasos": 0.15, "sgd": 0.15}
    assert {*exact, *rough, "dca", "admm", "kelley"} == set(can_minimise(get_loss("squared_hinge")))
    for solver, tol in exact.items():
        result = solve(problem, "squared_hinge", solver, C, sample_weight=weight, tol=tol, evaluate="epoch", max_epochs=600)
        check_history(result.history, best)
        assert result.converged and result.gap <= tol * result.primal, solver
        assert result.primal == pytest.approx(best, rel=2 * tol), solver
        assert result.primal == pytest.approx(
            0.5 * result.w @ result.w + C * sum(c * loss_at(problem, i, result.w, result.loss) for i, c in enumerate(weight))
        )
    for solver, tol in rough.items():
        result = solve(problem, "squared_hinge", solver, C, sample_weight=weight, tol=0, evaluate="epoch", max_epochs=60)
        check_history(result.history, best)
        assert result.primal <= (1 + tol) * best, solver


@pytest.mark.parametrize("name", LISTED)
def test_all_solvers_of_the_summed_squares_meet(name):
    problem = PROBLEMS[name]
    best = optimum(problem, C * WEIGHT, shared=False)
    for solver in ("sdcd", "lse_cutting_plane", "lbfgs", "owlqn", "bmrm", "proximal", "nrbm"):
        result = solve(problem, "squared_summed", solver, C, sample_weight=WEIGHT, tol=1e-6, evaluate="epoch", max_epochs=600)
        check_history(result.history, best)
        assert result.converged and result.unseen == 0.0 and result.primal == pytest.approx(best, rel=2e-6), solver
    plain = solve(problem, "squared_summed", SDCD(plain=True), C, sample_weight=WEIGHT, tol=1e-6, max_epochs=600)
    assert plain.primal == pytest.approx(best, rel=2e-6)


@pytest.mark.parametrize("solver", ["sdcd", "lse_cutting_plane"])
def test_summed_squares_of_chains_are_over_the_outputs_found(solver):
    problem = PROBLEMS["chain"]
    everything = optimum(problem, np.full(6, C), shared=False)
    result = solve(problem, "squared_summed", solver, C, tol=1e-6, evaluate="epoch", max_epochs=600)
    check = [(r.primal, r.dual) for r in result.history]
    assert result.converged and result.unseen == math.inf and all(dual <= primal for primal, dual in check)
    assert result.dual <= everything * (1 + 1e-9)
    w, total = result.w, 0.0
    for i in range(6):
        for y in multipliers(problem, result.state.sets, i):
            row = np.zeros(len(w))
            kernels.difference(problem, i, kernels.target(problem, i), np.array(y, np.int32), 1.0, row)
            total += 0.5 * C * max(0.0, kernels.cost(problem, i, np.array(y, np.int32)) - w @ row) ** 2
    assert result.primal == pytest.approx(0.5 * w @ w + total, rel=1e-10)


def test_two_classes_are_those_of_scikit_learn():
    """Two vectors that are each other's negative have half the squared norm of their difference, and 2 times 1/2 is 1."""
    from sklearn.svm import LinearSVC

    y = (X[:, 0] + 0.5 * rng.normal(size=12) > 0).astype(int)
    referee = LinearSVC(loss="squared_hinge", dual=True, C=C, fit_intercept=False, tol=1e-10, max_iter=100000).fit(X, y)
    for loss in ("squared_hinge", "squared_summed"):  # one rival: the same
        w = solve(multiclass_problem(X, y, 2), loss, "auto", C, tol=1e-10, max_epochs=2000).w.reshape(3, 2)
        np.testing.assert_allclose(w[:, 1] - w[:, 0], referee.coef_[0], atol=1e-5)


def test_multipliers_sum_to_C_times_the_slack():
    problem = PROBLEMS["chain"]
    for solver in ("sdm", "bcfw"):
        result = solve(problem, "squared_hinge", solver, C, tol=1e-8 if solver == "sdm" else 1e-3, max_epochs=1000)
        sets, close = result.state.sets, 1e-3 if solver == "sdm" else 0.2
        np.testing.assert_allclose(result.state.weights.v, weights_of(problem, sets, result.loss.kernel), atol=1e-10)
        slacks = np.sqrt(2 * losses_at(problem, result.loss, result.state.weights.v))
        for i in range(6):
            mass = multipliers(problem, sets, i)
            assert sum(mass.values()) == pytest.approx(C, rel=1e-10)
            mass.pop(tuple(int(k) for k in kernels.target(problem, i)))  # it stays, whatever it has
            assert all(m > 0 for m in mass.values())
            assert sum(mass.values()) == pytest.approx(C * slacks[i], abs=close)
        assert slacks.max() > 1  # more than C in sum, which the hinge would not allow


@pytest.mark.parametrize("solver", [SDM(inexact=0.0, cached_passes=0), BCFW(average=False), SDCD()], ids=lambda s: s.name)
def test_one_visit_solves_one_example_with_one_rival(solver):
    """One multiplier is all there is, and every step is exact."""
    loss = "squared_summed" if solver.name == "sdcd" else "squared_hinge"
    for scale in (0.0, 0.1, 2.0):
        problem, x = multiclass_problem(scale * X[:1], [0], 2), scale * X[0]
        result = solve(problem, loss, solver, C, tol=0, max_epochs=1)
        slack = 1.0 / (1.0 + C * 2.0 * x @ x)  # 1 - ||dF||^2 C slack
        assert result.gap == pytest.approx(0.0, abs=1e-12)
        assert losses_at(problem, result.loss, result.w)[0] == pytest.approx(0.5 * slack**2)


@pytest.mark.parametrize("solver", ["sdm", "bcfw", "sdcd"])
def test_a_visit_sees_the_gap_of_its_example(solver):
    loss = "squared_summed" if solver == "sdcd" else "squared_hinge"
    problem = kernels.take(PROBLEMS["chain" if solver != "sdcd" else "classes"], np.arange(1))
    task, solver = make_task(problem, loss, C), get_solver(solver)
    state = solver.init(task)
    for _ in range(4):
        w = state.weights.v.copy()
        value = 0.5 * w @ w + C * losses_at(problem, task.loss, w)[0] - certified_dual(task, state)
        seen = solver.epoch(task, state).estimate if solver.name == "bcfw" else (solver.epoch(task, state), state.gaps[0])[1]
        assert seen == pytest.approx(value, abs=1e-12)


def test_targets_stay_in_their_sets_whatever_they_have():
    problem = PROBLEMS["classes, some without features"]  # where they have nothing: C (1 - slack) is exactly zero
    for solver in ("sdm", "bcfw"):
        sets = solve(problem, "squared_hinge", solver, 1.0, tol=1e-3, max_epochs=50).state.sets
        assert all(find(sets, i, kernels.target(problem, i)) >= 0 for i in range(12))
        assert sum(sets.weight[find(sets, i, kernels.target(problem, i))] == 0.0 for i in range(12)) >= 4


def test_with_an_L1_penalty():
    problem, ratio = PROBLEMS["classes"], 0.4
    best = optimum(problem, C * WEIGHT, shared=True, ratio=ratio)
    result = solve(
        problem, "squared_hinge", "auto", C, l1_ratio=ratio, sample_weight=WEIGHT, tol=1e-4, evaluate="epoch", max_epochs=800
    )
    assert result.solver.name == "admm" and result.converged and result.primal == pytest.approx(best, rel=2e-4)
    check_history(result.history, best)
    best = optimum(problem, C * WEIGHT, shared=False, ratio=ratio)
    result = solve(problem, "squared_summed", "auto", C, l1_ratio=ratio, sample_weight=WEIGHT, tol=1e-5, evaluate="epoch")
    assert result.solver.name == "owlqn" and result.converged and result.primal == pytest.approx(best, rel=2e-5)
    check_history(result.history, best)


# -- sets of outputs --------------------------------------------------------------------------------------------------

KNOWN = np.array([[True, True, False], [False, True, True]])
PARTIAL = {
    "classes": multiclass_problem(X, np.where(np.arange(12) % 3, CLASSES, 3 + np.arange(12) % 2), 3, known=KNOWN),
    "chain": chain_problem(X, LENGTHS, np.where(np.arange(12) % 3, CLASSES, 3 + np.arange(12) % 2), 3, known=KNOWN),
}


@pytest.mark.parametrize("name", PARTIAL)
def test_partial_labels_are_completed_round_by_round(name):
    problem = PARTIAL[name]
    loss, start = get_loss("squared_hinge"), np.random.default_rng(1).normal(size=kernels.n_weights(problem))
    for solver in ("sdm", "bcfw", "bmrm"):
        result = solve(problem, loss, CCCP(get_solver(solver), epochs=8), C, tol=1e-5, max_epochs=200, start=start)
        values = [r.objective for r in result.rounds]
        assert len(values) > 1 and sum(r.changed for r in result.rounds) > 0, "the targets must change for this to be a test"
        assert all(after <= before * (1 + 1e-9) for before, after in zip(values, values[1:], strict=False))
        assert result.primal == pytest.approx(0.5 * result.w @ result.w + C * losses_at(problem, loss, result.w).sum())
        if solver != "bmrm":  # what the multipliers stand for, against the targets of the last round
            inside = result.state.inside
            at_end = kernels.with_targets(problem, result.state.targets)
            np.testing.assert_allclose(inside.weights.v, weights_of(at_end, inside.sets, loss.kernel), atol=1e-9)
            task = make_task(at_end, loss, C)
            value, best = get_solver(solver).bounds(task, inside), optimum(at_end, task.C, shared=True)
            assert value.dual <= best * (1 + 1e-6) and value.primal >= best * (1 - 1e-6)
            for _ in range(30):  # the products are those of the last targets, too
                get_solver(solver).epoch(task, inside)
            assert get_solver(solver).bounds(task, inside).gap <= 0.01 * best
            for i in range(task.n):
                assert find(inside.sets, i, kernels.target(at_end, i)) >= 0


@pytest.mark.parametrize("solver", [SDM(), BCFW(average=False)], ids=lambda s: s.name)
@pytest.mark.parametrize("name", PARTIAL)
def test_multipliers_follow_new_targets(name, solver):
    partial, loss = PARTIAL[name], get_loss("squared_hinge")
    d, n = kernels.n_weights(partial), kernels.n_examples(partial)
    some, others = (completions(partial, w)[0] for w in np.random.default_rng(3).normal(size=(2, d)))
    before, after = (make_task(kernels.with_targets(partial, t), loss, C) for t in (some, others))
    changed = np.flatnonzero(
        [not np.array_equal(kernels.target(before.problem, i), kernels.target(after.problem, i)) for i in range(n)]
    )
    assert len(changed) > 1
    state = solver.init(before)
    for _ in range(5):
        solver.epoch(before, state)
    state = solver.retarget(before, after, state, changed)
    problem, sets = after.problem, state.sets
    np.testing.assert_allclose(state.weights.v, weights_of(problem, sets, loss.kernel), atol=1e-10)
    for i in range(n):
        mass, t = multipliers(problem, sets, i), tuple(int(k) for k in kernels.target(problem, i))
        assert sum(mass.values()) == pytest.approx(C, rel=1e-10) and t in mass
        assert tuple(int(k) for k in kernels.target(before.problem, i)) not in mass or i not in changed
        assert all(m > 0 for y, m in mass.items() if y != t)
    best = optimum(problem, after.C, shared=True)
    assert solver.bounds(after, state).dual <= best * (1 + 1e-6)
    for _ in range(60):
        solver.epoch(after, state)
    value = solver.bounds(after, state)
    assert value.gap <= (1e-5 if solver.name == "sdm" else 0.03) * best and value.dual <= best * (1 + 1e-6)


# -- refusals and faces -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["mira", "kbest_mira", "perceptron", "lbfgs", "ocas", "nslack", "oneslack", "sdcd"])
def test_who_cannot_names_those_that_can(solver):
    with pytest.raises(
        ValueError, match=f"Solver '{solver}' minimises .* not the loss 'squared_hinge'.*can: .*sdm, bcfw, kelley, bmrm"
    ):
        solve(PROBLEMS["classes"], "squared_hinge", solver)


def test_other_refusals():
    with pytest.raises(ValueError, match="Solver 'sdm' minimises .* not the loss 'squared_summed'.*lbfgs, .*sdcd"):
        solve(PROBLEMS["classes"], "squared_summed", "sdm")
    with pytest.raises(TypeError, match="'squared_summed'.*any solver but 'sdcd' and 'lse_cutting_plane'.*'n_outputs'"):
        solve(PROBLEMS["chain"], "squared_summed", "lbfgs")
    with pytest.raises(ValueError, match="'squared_summed' needs one true output per example"):
        solve(PARTIAL["chain"], "squared_summed")
    elsewhere = PROBLEMS["classes"]._replace(targets=(CLASSES + 1) % 3)
    for solver in ("sdm", "bcfw"):
        with pytest.raises(ValueError, match="takes the loss 'squared_hinge' only with targets that cost nothing"):
            solve(elsewhere, "squared_hinge", solver)
    assert for_optimum(PROBLEMS["chain"], get_loss("squared_hinge")) == SDM()
    assert for_optimum(PROBLEMS["chain"], get_loss("squared_summed")) == SDCD()


@pytest.mark.parametrize("solver", ["sdm", "bcfw", "sdcd"])
def test_resuming_float32_and_weights_to_start_from(solver):
    problem, loss = PROBLEMS["chain"], "squared_summed" if solver == "sdcd" else "squared_hinge"
    whole = solve(problem, loss, solver, C, tol=0, max_epochs=20)
    part = solve(problem, loss, solver, C, tol=0, max_epochs=9)
    rest = solve(problem, loss, solver, C, tol=0, max_epochs=20, resume=part)
    np.testing.assert_array_equal(rest.w, whole.w)
    assert (rest.primal, rest.dual) == (whole.primal, whole.dual)
    small = solve(problem, loss, solver, C, tol=1e-2, max_epochs=400, dtype=np.float32)
    assert small.converged and small.w.dtype == np.float32 and small.dual <= small.primal
    warm = solve(problem, loss, solver, C, tol=1e-2, max_epochs=400, start=whole.w, sample_weight=[0, 1, 1, 2, 1, 1])
    assert warm.converged and warm.dual <= warm.primal


def test_the_estimators_and_the_command_line(tmp_path, monkeypatch):
    import json

    from typer.testing import CliRunner

    from partwise.cli.app import app

    y = np.array(list("abc"))[CLASSES]
    for loss, solver in (("squared_hinge", "pegasos"), ("squared_summed", "sdcd")):
        model = Classifier(loss=loss).fit(X, y)
        assert model.solver_ == solver and model.score(X, y) > 0.5
        with pytest.raises(AttributeError, match="calibrate"):
            model.predict_proba(X)
    starts = np.cumsum([0, *LENGTHS])
    words = [[{f"x{k}": float(v) for k, v in enumerate(x)} for x in X[a:b]] for a, b in zip(starts, starts[1:], strict=False)]
    labels = [y[a:b].tolist() for a, b in zip(starts, starts[1:], strict=False)]
    labeler = SequenceLabeler(loss="squared_hinge").fit(words, labels)
    assert labeler.solver_ == "pegasos" and len(labeler.predict(words)) == 6
    with pytest.raises(ValueError, match="calibrate"):
        labeler.predict_marginals(words)
    labeler.save(tmp_path / "model")
    assert partwise.SequenceLabeler.load(tmp_path / "model").predict(words) == labeler.predict(words)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.txt").write_text(text(sentences(8)))
    options = ["-o", "tagger", "--loss", "squared_hinge", "--solver", "sdm", "--json", "-t", "words", "--epochs", "30"]
    result = CliRunner().invoke(app, ["train", "tag", "train.txt", *options])
    assert result.exit_code == 0, result.output
    about = json.loads(result.stdout)
    assert about["loss"] == "squared_hinge" and 0.0 <= about["gap"] <= about["primal"]
