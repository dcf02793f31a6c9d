"""The summed error: its loss against enumeration, SDCD and the cutting plane against a QP over all outputs, what they certify."""

import copy
import json
import math

import numpy as np
import pytest
from typer.testing import CliRunner

import partwise
from column_cases import sentences, text
from partwise import Classifier, SequenceLabeler, kernels
from partwise.cli.app import app
from partwise.losses.records import LOSSES, Summed, get_loss
from partwise.objective import losses_at
from partwise.solvers import SOLVERS, for_optimum, get_solver, make_task, solve
from partwise.solvers.active import output_of, reserve, weights_of
from partwise.solvers.found import admit_pass, found_risk, longest_output, make_visit, two_accumulators
from partwise.solvers.lse_cutting_plane import LSECuttingPlane
from partwise.solvers.sdcd import SDCD
from partwise.structures import chain_problem, multiclass_problem

rng = np.random.default_rng(5)
X = rng.normal(size=(12, 3))
CLASSES = rng.integers(0, 3, 12)
COSTS = np.array([[0.0, 1.0, 3.0], [0.5, 0.0, 1.0], [2.0, 1.0, 0.0]])
LENGTHS = [3, 1, 0, 3, 2, 3]
NEIGHBOURS = np.eye(3)[CLASSES] + np.eye(3)[(CLASSES + 1) % 3] > 0
PAIRS = set(zip(CLASSES[:-1].tolist(), CLASSES[1:].tolist(), strict=True))
UNSEEN = next((a, b) for a in range(3) for b in range(3) if (a, b) not in PAIRS)


def target_elsewhere(problem):
    """Targets that are not the gold outputs."""
    targets = problem.gold.copy()
    targets[::2] = (targets[::2] + 1) % 3
    return problem._replace(targets=targets)


CLASS_PROBLEMS = {
    "plain": multiclass_problem(X, CLASSES, 3),
    "cost matrix": multiclass_problem(X, CLASSES, 3, costs=COSTS),
    "allowed": multiclass_problem(X, CLASSES, 3, allowed=NEIGHBOURS),
    "other targets": target_elsewhere(multiclass_problem(X, CLASSES, 3, costs=COSTS)),
    "no features": multiclass_problem(X * (np.arange(12) % 3 > 0)[:, None], CLASSES, 3),
}
CHAINS = {
    "plain": chain_problem(X, LENGTHS, CLASSES, 3),
    "order 2": chain_problem(X, LENGTHS, CLASSES, 3, order=2),
    "no weights at the ends": chain_problem(X, LENGTHS, CLASSES, 3, use_start=False, use_stop=False),
    "constraints": chain_problem(X, LENGTHS, CLASSES, 3, allowed=NEIGHBOURS, forbidden=[UNSEEN], costs=COSTS),
}
BOTH = [SDCD(), LSECuttingPlane()]


def pieces(problem, i, gamma=1.0):
    """dF_i(y), gamma l_i(y) and y of every output that is allowed and is not a target of no cost."""
    d, t = kernels.n_weights(problem), kernels.target(problem, i)
    theta = np.zeros(kernels.n_parts(problem, i))
    kernels.score(problem, i, np.zeros(d), theta)
    for y in kernels.outputs(problem, i):
        row, cost = np.zeros(d), kernels.cost(problem, i, y)
        if kernels.value_of(problem, i, theta, y) > -math.inf and (cost > 0 or not np.array_equal(y, t)):
            kernels.difference(problem, i, t, y, 1.0, row)
            yield row, gamma * cost, y


def sum_at(problem, i, w, gamma=1.0):
    """L_i(w) by enumeration."""
    return sum(max(0.0, cost - w @ row) for row, cost, _ in pieces(problem, i, gamma))


def optimum(blocks, C):
    """max a.l - 1/2 |A^T a|^2 over the box 0 <= a <= C, for lists of (dF, l) of each example."""
    from scipy.optimize import minimize

    A = np.array([row for block in blocks for row, _ in block])
    cost = np.array([cost for block in blocks for _, cost in block])
    upper = np.repeat(C, [len(block) for block in blocks])
    result = minimize(
        lambda a: 0.5 * (A.T @ a) @ (A.T @ a) - a @ cost, 0.5 * upper, jac=lambda a: A @ (A.T @ a) - cost, method="L-BFGS-B",
        bounds=[(0.0, c) for c in upper], options={"maxiter": 5000, "maxfun": 50000, "ftol": 1e-15, "gtol": 1e-10},
    )  # fmt: skip
    return -result.fun


def outputs_of(problem, sets):
    """{(i, y): alpha} of all outputs found."""
    found = {}
    for i in range(len(sets.head)):
        record = sets.head[i]
        while record >= 0:
            y = tuple(int(k) for k in output_of(sets, record, kernels.length(problem, i)))
            assert (i, y) not in found, "an output was found twice"
            found[i, y] = sets.weight[record]
            record = sets.next[record]
    return found


def with_all_outputs(task, state):
    """The same state with V_i = Y_i."""
    every = [[y for _, _, y in pieces(task.problem, i)] for i in range(task.n)]
    starts, _ = kernels.sizes(task.problem)
    for k in range(max(map(len, every))):
        out, values = np.zeros(starts[-1], np.int32), np.zeros(task.n)
        for i, ys in enumerate(every):
            if k < len(ys):
                out[starts[i] : starts[i + 1]], values[i] = ys[k], 1.0
        state.sets = reserve(state.sets, task.problem)
        visit = make_visit(k, longest_output(task.problem))
        scratch = two_accumulators(task.problem, np.float64)
        admit_pass(task.problem, task.loss.kernel, starts, out, values, task.C, state.sets, visit, *scratch)
    assert state.sets.size.sum() == sum(map(len, every))
    return state


def check_history(history, best):
    """Weak duality at every recorded iterate, whatever has been found; the bound never falls."""
    primal, dual = np.array([(r.primal, r.dual) for r in history]).T
    slack = 1e-9 * (1.0 + abs(best))
    assert (dual <= best + 1e3 * slack).all() and (primal >= dual - slack).all()
    assert (np.diff(dual) >= -slack).all()


# -- the loss ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CLASS_PROBLEMS)
def test_the_loss_is_the_sum_of_all_violations(name):
    problem = CLASS_PROBLEMS[name]
    with partwise.interpret():
        for scale in (0.0, 0.3, 3.0):
            w = scale * rng.normal(size=kernels.n_weights(problem))
            for gamma in (1.0, 2.5):
                expected = [sum_at(problem, i, w, gamma) for i in range(12)]
                np.testing.assert_allclose(losses_at(problem, Summed(gamma), w), expected, atol=1e-12)


def test_the_loss_knows_itself():
    loss = get_loss("summed")
    assert loss == Summed() and loss.name == "summed" and Summed(10).name == "summed(gamma=10)" and LOSSES["summed"] is loss
    assert loss.is_convex and not loss.is_smooth and loss.uses_cost
    with pytest.raises(ValueError, match="'gamma' parameter of Summed must be a float in"):
        Summed(-1)
    forbidden = multiclass_problem(X[:1], [1], 3, allowed=np.array([[True, False, True]]))
    with partwise.interpret():
        assert losses_at(forbidden, loss, np.zeros(9))[0] == math.inf


def test_auto_takes_sdcd_and_others_say_what_is_missing():
    chain, classes = CHAINS["plain"], CLASS_PROBLEMS["plain"]
    assert for_optimum(chain, get_loss("summed")).name == for_optimum(classes, get_loss("summed")).name == "sdcd"
    assert isinstance(get_solver("auto", chain, Summed(3)), SDCD)
    for name in ("sgd", "bmrm", "nrbm"):
        with pytest.raises(
            TypeError, match="'summed'.*any solver but 'sdcd' and 'lse_cutting_plane'.*needs the kernel 'n_outputs'"
        ):
            solve(chain, "summed", name)
    for name in ("sdm", "lbfgs"):
        with pytest.raises(ValueError, match=f"Solver '{name}' minimises .* not the loss 'summed'.*sdcd, lse_cutting_plane"):
            solve(classes, "summed", name)
    for name in ("sdcd", "lse_cutting_plane"):
        with pytest.raises(ValueError, match=f"Solver '{name}' minimises the summed error, not the loss 'hinge'"):
            solve(chain, "hinge", name)
    known = np.array([[True, True, False]])
    for problem in (multiclass_problem(X, [3] * 12, 3, known=known), chain_problem(X, [12], [3] * 12, 3, known=known)):
        for name in ("auto", "sdcd", "lse_cutting_plane", "sgd"):
            with pytest.raises(ValueError, match="'summed' needs one true output per example.*partially labelled"):
                solve(problem, "summed", name)


@pytest.mark.parametrize(
    ("make", "parameters", "words"),
    [
        (SDCD, {"kappa1": -1}, r"'kappa1' parameter of SDCD must be an int in the range \[0, inf\). Got -1"),
        (SDCD, {"kappa2": 0}, r"'kappa2' parameter of SDCD must be an int in the range \[1, inf\)"),
        (SDCD, {"threshold": -0.1}, "'threshold' parameter of SDCD must be None or a float"),
        (LSECuttingPlane, {"max_cuts": 2}, "'max_cuts' parameter of LSECuttingPlane must be an int"),
        (LSECuttingPlane, {"epsilon": "x"}, "'epsilon' parameter of LSECuttingPlane must be None or a float"),
    ],
)
def test_bad_parameters(make, parameters, words):
    with pytest.raises(ValueError, match=words):
        make(**parameters)


# -- the optimum ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CLASS_PROBLEMS)
def test_classes_are_solved_exactly(name):
    problem = CLASS_PROBLEMS[name]
    weight = np.ones(12)
    weight[3], weight[4] = 0.0, 2.5
    best = optimum([[piece[:2] for piece in pieces(problem, i)] for i in range(12)], 0.7 * weight)
    with partwise.interpret():
        for solver in BOTH:
            result = solve(problem, "summed", solver, 0.7, sample_weight=weight, tol=1e-7, evaluate="epoch", max_epochs=2000)
            check_history(result.history, best)
            assert result.converged and result.primal == pytest.approx(best, rel=1e-6) and result.unseen == 0.0
            losses = losses_at(problem, result.loss, result.w)
            assert result.primal == pytest.approx(0.5 * result.w @ result.w + 0.7 * weight @ losses, rel=1e-12)
        duals = outputs_of(problem, solve(problem, "summed", "sdcd", 0.7, sample_weight=weight, tol=1e-7).state.sets)
    for (i, y), alpha in duals.items():
        assert 0.0 <= alpha <= 0.7 * weight[i]
        assert y[0] != problem.targets[i] or problem.costs[problem.gold[i], y[0]] > 0  # the truth is left out
        if not X[i].any():
            assert alpha == 0.7 * weight[i]


def test_solvers_that_follow_gradients_meet_sdcd_on_classes():
    problem = CLASS_PROBLEMS["cost matrix"]
    with partwise.interpret():
        sdcd = solve(problem, "summed", "sdcd", 0.5, tol=1e-8)
        others = [solve(problem, "summed", name, 0.5, tol=1e-7) for name in ("bmrm", "nrbm")]
        sgd = solve(problem, "summed", "sgd", 0.5, max_epochs=200)
    assert sdcd.converged
    for other in others:
        assert other.primal == pytest.approx(sdcd.primal, rel=1e-6) and other.dual <= sdcd.primal * (1 + 1e-12)
        np.testing.assert_allclose(other.w, sdcd.w, atol=2e-3)
    assert sdcd.dual <= sgd.primal <= 1.01 * sdcd.primal


def test_an_output_without_curvature_gets_all_its_mass_at_once():
    problem = multiclass_problem(np.zeros((4, 2)), [0, 1, 2, 0], 3, costs=COSTS)
    with partwise.interpret():
        result = solve(problem, "summed", "sdcd", 0.3, tol=1e-9, max_epochs=3)
    assert result.converged and result.primal == pytest.approx(0.3 * COSTS[[0, 1, 2, 0]].sum()) and not result.w.any()
    assert set(outputs_of(problem, result.state.sets).values()) == {0.3}


@pytest.mark.parametrize("name", CHAINS)
def test_chains_with_all_outputs_found(name):
    problem = CHAINS[name]
    task = make_task(problem, "summed", 0.2)
    best = optimum([[piece[:2] for piece in pieces(problem, i)] for i in range(task.n)], task.C)
    with partwise.interpret():
        for solver in BOTH:
            state = with_all_outputs(task, solver.init(task))
            for _ in range(400):
                solver.epoch(task, state)
                value = solver.bounds(task, state)
                assert value.dual <= best * (1 + 1e-6) and value.primal >= best * (1 - 1e-6)
                if value.gap <= 1e-6 * value.primal:
                    break
            assert value.primal == pytest.approx(best, rel=2e-6)
            w = solver.weights(state)
            losses = [sum_at(problem, i, w) for i in range(task.n)]
            assert value.primal == pytest.approx(0.5 * w @ w + task.C @ losses, rel=1e-10)
            assert solver.value_at(task, state, w).primal == pytest.approx(value.primal, rel=1e-12)


def found_blocks(problem, found):
    blocks = [[] for _ in range(kernels.n_examples(problem))]
    for i in range(len(blocks)):
        blocks[i] = [(row, cost) for row, cost, y in pieces(problem, i) if (i, tuple(map(int, y))) in found]
    return blocks


@pytest.mark.parametrize("solver", [*BOTH, SDCD(plain=True)], ids=repr)
def test_chains_are_solved_over_the_outputs_found(solver):
    problem = CHAINS["constraints"]
    with partwise.interpret():
        result = solve(problem, "summed", solver, 0.2, tol=1e-6, evaluate="epoch", max_epochs=1000)
    found = outputs_of(problem, result.state.sets)
    allowed = {(i, tuple(map(int, y))) for i in range(6) for _, _, y in pieces(problem, i)}
    assert set(found) <= allowed
    best = optimum(found_blocks(problem, found), np.full(6, 0.2))
    everything = optimum([[piece[:2] for piece in pieces(problem, i)] for i in range(6)], np.full(6, 0.2))
    check_history(result.history, best)
    assert result.converged and result.primal == pytest.approx(best, rel=2e-6) and best <= everything * (1 + 1e-6)
    assert result.unseen == math.inf and f"over the {len(found)} outputs found" in result.message
    assert result.dual <= everything
    w = result.w
    losses = np.array([sum(max(0.0, cost - w @ row) for row, cost in block) for block in found_blocks(problem, found)])
    assert result.primal == pytest.approx(0.5 * w @ w + 0.2 * losses.sum(), rel=1e-10)
    # a later oracle pass was no more than the tolerance away, with what it found
    assert result.state.seen <= 1e-6 * result.primal


def test_both_meet_on_the_same_outputs():
    problem = CHAINS["plain"]
    task = make_task(problem, "summed", 0.5)
    with partwise.interpret():
        sdcd = solve(problem, "summed", "sdcd", 0.5, tol=1e-8, max_epochs=1000)
        solver = LSECuttingPlane()
        state = solver.init(task)
        none = np.zeros(0, np.int64)
        state.sets = sdcd.state.sets._replace(room=none, square=none, products=np.zeros(0))
        state.listed = True  # look for no others
        for _ in range(200):
            solver.epoch(task, state)
        value = solver.bounds(task, state)
    assert value.primal == pytest.approx(sdcd.primal, rel=1e-7) and value.gap <= 1e-7 * value.primal
    np.testing.assert_allclose(solver.weights(state), sdcd.w, atol=1e-3)


def test_weights_are_those_of_the_multipliers():
    problem = CHAINS["order 2"]
    with partwise.interpret():
        result = solve(problem, "summed", "sdcd", 0.5, tol=0, max_epochs=12)
        np.testing.assert_allclose(result.w, weights_of(problem, result.state.sets, result.loss.kernel), atol=1e-10)
    w = np.zeros(kernels.n_weights(problem))
    for (i, y), alpha in outputs_of(problem, result.state.sets).items():
        assert 0.0 <= alpha <= 0.5
        kernels.difference(problem, i, kernels.target(problem, i), np.array(y, np.int32), alpha, w)
    np.testing.assert_allclose(result.w, w, atol=1e-10)


# -- as every solver --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", BOTH, ids=lambda s: s.name)
def test_compiled_on_chains_with_exact_resuming_and_any_number_of_threads(solver):
    """Also that the number of examples, 200, and float32 make no difference."""
    random = np.random.default_rng(0)
    lengths = random.integers(0, 7, 200)
    tokens = int(lengths.sum())
    problem = chain_problem(random.normal(size=(tokens, 4)), lengths, random.integers(0, 3, tokens), 3)
    whole = solve(problem, "summed", solver, 0.01, max_epochs=14, tol=0, n_jobs=2)
    part = solve(problem, "summed", solver, 0.01, max_epochs=12, tol=0)
    before = copy.deepcopy(part.state)
    resumed = solve(problem, "summed", solver, 0.01, max_epochs=14, tol=0, resume=part)
    np.testing.assert_array_equal(resumed.w, whole.w)
    assert (resumed.primal, resumed.dual, resumed.n_oracle_calls) == (whole.primal, whole.dual, whole.n_oracle_calls)
    np.testing.assert_array_equal(part.state.sets.weight, before.sets.weight)
    task = make_task(problem, "summed", 0.01)
    for slope in (False, True):
        one, two = (found_risk(make_task(problem, "summed", 0.01, n_jobs=n), whole.state.sets, whole.w, slope) for n in (1, 2))
        assert one[0] == two[0]
        np.testing.assert_array_equal(one[1], two[1])
    assert 0.5 * whole.w @ whole.w + found_risk(task, whole.state.sets, whole.w)[0] == pytest.approx(whole.primal, rel=1e-12)
    warm = solve(problem, "summed", solver, 0.01, max_epochs=14, tol=0, start=whole.w)
    assert warm.state.sets.size.sum() > 0 and warm.dual <= warm.primal
    few = kernels.take(problem, np.arange(12))  # small enough for the interpreter
    compiled = solve(few, "summed", solver, 0.5, max_epochs=12, tol=0)
    with partwise.interpret():
        plain = solve(few, "summed", solver, 0.5, max_epochs=12, tol=0)
        small = solve(few, "summed", solver, 0.5, max_epochs=200, tol=1e-3, dtype=np.float32)
    np.testing.assert_allclose(plain.w, compiled.w, atol=1e-6)
    assert small.w.dtype == np.float32 and small.converged and small.dual <= small.primal
    assert small.dual <= 1.001 * solve(few, "summed", solver, 0.5, max_epochs=200, tol=1e-5).primal


def test_the_stopping_rules_of_the_paper():
    problem = CHAINS["plain"]
    with partwise.interpret():
        result = solve(problem, "summed", SDCD(plain=True, threshold=1e-4), 0.5, shuffle=False, max_epochs=1000)
        assert result.converged and "changed by 0.0001" in result.message and result.state.changed < 1e-4
        sooner = solve(problem, "summed", SDCD(plain=True, threshold=1.0), 0.5, shuffle=False, max_epochs=1000)
        assert sooner.n_epochs < result.n_epochs
        cut = solve(problem, "summed", LSECuttingPlane(epsilon=0.1), 0.5, max_epochs=1000)
        assert cut.converged and cut.state.seen <= 0.1 and "violated by" in cut.message
        tighter = solve(problem, "summed", LSECuttingPlane(epsilon=1e-6), 0.5, max_epochs=1000)
        assert tighter.state.seen <= 1e-6 and tighter.n_epochs >= cut.n_epochs


def test_a_held_out_set_decides():
    problem = CHAINS["plain"]
    with partwise.interpret():
        for solver in BOTH:
            result = solve(problem, "summed", solver, 0.5, validation=problem, patience=3, max_epochs=20, tol=0)
            assert math.isfinite(result.primal) and result.dual <= result.primal and result.best is not None


def test_margins_and_moves_of_many_outputs_are_those_of_each():
    """Chains score and move several outputs at once, by rows of labels where that is cheaper."""
    for problem in CHAINS.values():
        d = kernels.n_weights(problem)
        w, t = rng.normal(size=d), kernels.target(problem, 3)
        ys = np.array(list(kernels.outputs(problem, 3)), np.int32)
        for some in (ys[:2], ys[5:9], ys):
            values, scratch = np.zeros(len(some)), two_accumulators(problem, np.float64)[0]
            kernels.margins(problem, 3, w, t, some, len(some), values, scratch)
            rows = np.zeros((len(some), d))
            for y, row in zip(some, rows, strict=True):
                kernels.add_features(problem, 3, t, 1.0, row)
                kernels.add_features(problem, 3, y, -1.0, row)
            np.testing.assert_allclose(values, rows @ w, atol=1e-12)
            change = rng.normal(size=len(some)) * (rng.random(len(some)) < 0.7)
            change[-1] -= change.sum()
            into = np.zeros(d)
            kernels.move_mass(problem, 3, some, change, len(some), 2.0, into)
            np.testing.assert_allclose(into, 2.0 * change @ rows, atol=1e-12)


# -- faces ------------------------------------------------------------------------------------------------------------


def test_the_estimators_and_the_command_line(tmp_path, monkeypatch):
    y = np.array(list("abc"))[CLASSES]
    model = Classifier(loss="summed", random_state=0).fit(X, y)
    assert model.solver_ == "sdcd" and model.result_.unseen == 0.0 and model.score(X, y) > 0.5
    starts = np.cumsum([0, *LENGTHS])
    words = [[{f"x{k}": float(v) for k, v in enumerate(x)} for x in X[a:b]] for a, b in zip(starts, starts[1:], strict=False)]
    labels = [y[a:b].tolist() for a, b in zip(starts, starts[1:], strict=False)]
    with partwise.interpret():
        labeler = SequenceLabeler(loss="summed", random_state=0, max_epochs=30).fit(words, labels)
    assert labeler.solver_ == "sdcd" and labeler.result_.unseen == math.inf and len(labeler.predict(words)) == 6
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.txt").write_text(text(sentences(8)))
    options = ["-o", "model", "--loss", "summed", "--json", "-t", "words", "--epochs", "30"]
    with partwise.interpret():
        result = CliRunner().invoke(app, ["train", "tag", "train.txt", *options])
    assert result.exit_code == 0, result.output
    about = json.loads(result.stdout)
    assert about["solver"] == "sdcd" and about["loss"] == "summed" and about["gap"] >= 0.0 and about["primal"] > 0.0
    assert set(LOSSES["summed"].found_by) <= set(SOLVERS)
