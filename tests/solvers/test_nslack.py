"""n-slack and 1-slack cutting planes, and dual solvers of rescaled losses: optima, certificates, resuming, threads, CCCP."""

import math

import numpy as np
import pytest

from partwise import kernels
from partwise.losses.records import Family, Rescaled, RescaledRamp, get_loss
from partwise.objective import losses_at
from partwise.solvers import CCCP, SOLVERS, make_task, solve
from partwise.solvers.active import weights_of
from partwise.solvers.bcfw import BCFW
from partwise.solvers.checkpoint import Checkpoint
from partwise.solvers.loop import run
from partwise.solvers.nslack import NSlack
from partwise.solvers.oneslack import Cache, OneSlack, remember
from partwise.solvers.sdm import SDM
from partwise.structures import chain_problem, multiclass_problem

pytestmark = pytest.mark.interpreted

rng = np.random.default_rng(0)
X, GOLD = rng.normal(size=(12, 3)), rng.integers(0, 3, 12)
COSTS = np.array([[0.0, 1.0, 3.0], [2.0, 0.0, 0.0], [2.0, 1.0, 0.0]])
LENGTHS = [3, 1, 0, 3, 2, 3]
PROBLEMS = {"multiclass": multiclass_problem(X, GOLD, 3, costs=COSTS), "chain": chain_problem(X, LENGTHS, GOLD, 3)}
METHODS = {
    "a": NSlack(),
    "a, to the letter": NSlack(every=1),
    "b": NSlack("b"),
    "1-slack": OneSlack(),
    "1-slack, to the letter": OneSlack(step=1.0, cache=0),
    "1-slack, small cache": OneSlack(cache=1, cached_passes=5, max_cuts=60),
    "sdm": SDM(),
}


def pieces_of(problem, loss):
    """v_i(y) and o_i(y) of every output of every example, from the formulas."""
    for i in range(kernels.n_examples(problem)):
        t, rows, offsets = kernels.target(problem, i), [], []
        r = t.copy()
        if kernels.cost(problem, i, t) > 0:
            kernels.truth(problem, i, r)
        for y in kernels.outputs(problem, i):
            row, cost = np.zeros(kernels.n_weights(problem)), kernels.cost(problem, i, y)
            if isinstance(loss, Rescaled):
                kernels.difference(problem, i, r, y, cost**loss.power, row)
                kernels.difference(problem, i, r, t, -(kernels.cost(problem, i, t) ** loss.power), row)
            else:
                kernels.difference(problem, i, t, y, 1.0, row)
            rows.append(row)
            offsets.append(loss.gamma * cost)
        yield np.array(rows), np.array(offsets)


def optimum(problem, loss, C):
    """The optimal value by quadratic programming over all constraints: the dual, max a.o - 1/2 |V^T a|^2 over simplices."""
    from scipy.optimize import minimize

    blocks = list(pieces_of(problem, loss))
    V, offset = np.concatenate([v for v, _ in blocks]), np.concatenate([o for _, o in blocks])
    owner = np.repeat(np.arange(len(blocks)), [len(o) for _, o in blocks])
    sums = (owner == np.arange(len(blocks))[:, None]).astype(float)
    Q, start = V @ V.T, (sums.T / sums.sum(1)) @ C
    result = minimize(
        lambda a: 0.5 * a @ Q @ a - a @ offset, start, jac=lambda a: Q @ a - offset, method="SLSQP",
        bounds=[(0, None)] * len(start), constraints={"type": "eq", "fun": lambda a: sums @ a - C, "jac": lambda a: sums},
        options={"maxiter": 3000, "ftol": 1e-14},
    )  # fmt: skip
    return -result.fun


OPTIMA = {
    (kind, name): optimum(problem, get_loss(name), np.full(kernels.n_examples(problem), 0.7))
    for kind, problem in PROBLEMS.items()
    for name in ("hinge", "slack")
}


def check_history(result, best):
    """Weak duality at every recorded iterate, as exactly as SLSQP knows the optimum."""
    for record in result.history:
        assert record.dual <= best + 1e-6 * (1 + best) and record.primal >= best - 1e-6 * (1 + best)
        assert record.dual <= record.primal + 1e-9


# -- the optimum ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind, name",
    [
        ("multiclass", "hinge"),
        ("multiclass", "slack"),
        ("chain", "hinge"),
        pytest.param("chain", "slack", marks=pytest.mark.slow),  # most of it is compiling
    ],
)
def test_all_meet_at_the_optimum(kind, name):
    problem, best = PROBLEMS[kind], OPTIMA[kind, name]
    for words, solver in METHODS.items():
        result = solve(problem, name, solver, C=0.7, tol=1e-6, evaluate="epoch", max_epochs=3000)
        check_history(result, best)
        assert result.converged and result.gap <= 1e-6 * result.primal, words
        assert result.primal == pytest.approx(best, rel=1e-5), words
        value = 0.5 * result.w @ result.w + 0.7 * losses_at(problem, get_loss(name), result.w).sum()
        assert result.primal == pytest.approx(value, rel=1e-12)
    slow = solve(problem, name, "bcfw", C=0.7, tol=5e-3, evaluate="epoch", max_epochs=2000)
    check_history(slow, best)
    assert slow.converged and slow.primal == pytest.approx(best, rel=5e-3)


def test_slack_optimum_with_targets_of_cccp():
    """Where the target is not the truth, the pieces have a second half."""
    targets = PROBLEMS["multiclass"].gold.copy()
    targets[::2] = (targets[::2] + 1) % 3
    problem = PROBLEMS["multiclass"]._replace(targets=targets)
    best = optimum(problem, Rescaled(0.5), np.full(12, 0.7))
    for words in ("a", "b", "1-slack", "sdm"):
        result = solve(problem, Rescaled(0.5), METHODS[words], C=0.7, tol=1e-6, evaluate="epoch", max_epochs=3000)
        check_history(result, best)
        assert result.primal == pytest.approx(best, rel=1e-5)
    result = solve(problem, Rescaled(0.5), BCFW(), C=0.7, tol=5e-3, evaluate="epoch", max_epochs=2000)
    check_history(result, best)


def test_perceptron_loss_is_minimal_at_zero():
    for words in ("a", "b", "1-slack"):
        result = solve(PROBLEMS["chain"], Family(math.inf, 0.0), METHODS[words], C=0.7, tol=1e-6)
        assert result.converged and result.primal == pytest.approx(0.0, abs=1e-12) and not result.w.any()


# -- the theorem ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant, every", [("a", 1), ("a", 100), ("b", 1)])
@pytest.mark.parametrize("epsilon", [0.5, 0.05])
def test_constraints_added_obey_theorem_4_1(variant, every, epsilon):
    problem, C, n = PROBLEMS["chain"], 0.7, 6
    largest = max((v**2).sum(1).max() for v, _ in pieces_of(problem, get_loss("hinge")))
    highest = max(o.max() for _, o in pieces_of(problem, get_loss("hinge")))
    bound = max(2 * n * highest / epsilon, 8 * n * C * highest * largest / epsilon**2)  # Acharya's C / n is our C
    result = solve(problem, "hinge", NSlack(variant, every, epsilon), C=C, tol=1e-12, max_epochs=2000)
    assert result.status == "converged" and "epsilon" in result.message
    assert 0 < result.state.constraints <= bound
    assert result.gap <= 2 * epsilon * n * C


@pytest.mark.parametrize("variant", ["a", "b"])
@pytest.mark.parametrize("tol", [0.5, 1e-3, 1e-12])
def test_epsilon_decides_whatever_the_tolerance(variant, tol):
    problem, C = PROBLEMS["chain"], 0.7
    for epsilon in (1.0, 0.1, 1e-5):
        result = solve(problem, "hinge", NSlack(variant, epsilon=epsilon), C=C, tol=tol, max_epochs=2000)
        assert result.status == "converged" and f"epsilon = {epsilon:g}" in result.message
        assert result.gap <= 2 * epsilon * 6 * C
        again = solve(problem, "hinge", NSlack(variant, epsilon=epsilon), C=C, tol=0.01, max_epochs=2000, evaluate="epoch")
        assert again.n_epochs == result.n_epochs
        short = solve(problem, "hinge", NSlack(variant, epsilon=epsilon), C=C, tol=tol, max_epochs=1)
        assert short.status == "max_epochs" and not short.converged


def test_epsilon_ends_the_rounds_of_cccp():
    """A round solved to epsilon is over, though its gap is above the tolerance of the run."""
    result = solve(PROBLEMS["multiclass"], "ramp", NSlack(epsilon=0.2), C=0.7, tol=1e-9, max_epochs=500)
    check_rounds(PROBLEMS["multiclass"], result)
    assert result.status == "converged" and max(np.diff([0, *(r.epochs for r in result.rounds)])) < 50
    assert result.rounds[-1].gap > 1e-9 * result.rounds[-1].primal


# -- resuming, threads, weights, precision ----------------------------------------------------------------------------------


@pytest.mark.parametrize("words", ["a", "b", "1-slack", "1-slack, small cache"])
def test_resume_is_exact(words, tmp_path):
    solver, task = METHODS[words], make_task(PROBLEMS["chain"], "hinge", 0.7)
    whole = run(solver, task, tol=0.0, max_epochs=12)
    half = run(solver, task, tol=0.0, max_epochs=5)
    rest = run(solver, task, tol=0.0, max_epochs=12, resume=half)
    np.testing.assert_array_equal(rest.w, whole.w)
    assert rest.n_oracle_calls == whole.n_oracle_calls and rest.dual == whole.dual
    checkpoint = Checkpoint(tmp_path / "run", 0.0)
    assert checkpoint.load(solver, task) is None
    run(solver, task, tol=0.0, max_epochs=5, callbacks=[checkpoint.save])
    found = Checkpoint(tmp_path / "run", 0.0).load(solver, task)
    again = run(solver, task, tol=0.0, max_epochs=12, resume=found)
    np.testing.assert_array_equal(again.w, whole.w)
    assert again.dual == whole.dual


def test_threads_do_not_change_the_answer():
    for n_jobs in (2, 3):
        one, more = (
            solve(PROBLEMS["chain"], "hinge", OneSlack(cached_passes=3), C=0.7, tol=1e-5, n_jobs=k) for k in (None, n_jobs)
        )
        np.testing.assert_array_equal(one.w, more.w)
        assert one.dual == more.dual and one.n_oracle_calls == more.n_oracle_calls


@pytest.mark.parametrize("words", ["a", "b", "1-slack"])
def test_weight_of_an_example_is_its_number_of_copies(words):
    weight = np.array([0, 1, 2] * 4)
    copies = np.repeat(np.arange(12), weight)
    problem = PROBLEMS["multiclass"]
    result = solve(problem, "slack", METHODS[words], C=0.7, tol=1e-6, max_epochs=3000, sample_weight=weight)
    copied = solve(kernels.take(problem, copies), "slack", "sdm", C=0.7, tol=1e-7, max_epochs=3000)
    assert result.primal == pytest.approx(copied.primal, rel=1e-5)
    assert result.n_oracle_calls <= 8 * (result.n_epochs + 1)


@pytest.mark.slow
@pytest.mark.parametrize("words", ["a", "b", "1-slack"])
def test_single_precision(words):
    result = solve(
        PROBLEMS["chain"], "hinge", METHODS[words], C=0.7, tol=1e-4, max_epochs=300, dtype=np.float32, evaluate="epoch"
    )
    best = OPTIMA["chain", "hinge"]
    assert result.w.dtype == np.float32 and result.primal == pytest.approx(best, rel=1e-3)
    assert all(record.dual <= best * (1 + 1e-6) for record in result.history)


# -- the parts --------------------------------------------------------------------------------------------------------------


def test_cache_forgets_what_was_not_used_for_longest():
    cache = Cache(np.zeros((2, 3), np.int32), np.zeros((2, 1), np.int64), np.array([0, 3]))
    y = np.arange(3, dtype=np.int32)
    for now, k in enumerate((0, 1, 0, 2, 2), start=1):  # 1 goes, not 0, which came again
        remember(cache, 0, y + k, now)
    assert sorted(cache.outputs[:, 0].tolist()) == [0, 2] and sorted(cache.used[:, 0].tolist()) == [3, 5]


def test_caches_save_oracle_calls_and_polish_closes_the_gap():
    problem = PROBLEMS["chain"]
    plain = solve(problem, "hinge", OneSlack(cache=0), C=0.7, tol=1e-4)
    cached = solve(problem, "hinge", OneSlack(cached_passes=10, polish=False), C=0.7, tol=1e-4)
    polished = solve(problem, "hinge", OneSlack(cached_passes=10), C=0.7, tol=1e-4)
    assert cached.n_oracle_calls < plain.n_oracle_calls
    assert polished.gap < cached.gap and polished.n_oracle_calls <= cached.n_oracle_calls + 6


def test_duplicate_cuts_do_no_harm():
    problem, solver = PROBLEMS["chain"], OneSlack()
    task = make_task(problem, "hinge", 0.7)
    state = solver.init(task)
    for _ in range(60):
        solver.epoch(task, state)
        for j in range(min(state.cuts.n, 2)):  # some again, and with them a singular Gram matrix
            state.cuts.add(state.cuts.vectors[j], float(state.cuts.offset[j]), state.best, 0.0)
        solver.minimise_model(task, state)
    value = solver.bounds(task, state)
    assert value.dual <= OPTIMA["chain", "hinge"] * (1 + 1e-6)
    assert value.gap <= 1e-4 * value.primal


def test_parameters_are_checked_and_names_registered():
    assert SOLVERS["nslack"] is NSlack and SOLVERS["oneslack"] is OneSlack
    for make, message in (
        (lambda: NSlack("c"), "'variant' parameter of NSlack must be 'a' or 'b'. Got 'c'"),
        (lambda: NSlack(every=0), r"'every' parameter of NSlack must be an int in the range \[1, inf\)"),
        (lambda: NSlack(epsilon=0.0), r"'epsilon' parameter of NSlack must be a float in the range \(0, inf\) or None"),
        (lambda: OneSlack(step=0.0), r"'step' parameter of OneSlack must be a float in the range \(0, 1\]"),
        (lambda: OneSlack(cache=-1), r"'cache' parameter of OneSlack must be an int in the range \[0, inf\)"),
    ):
        with pytest.raises(ValueError, match=message):
            make()
    for name in ("nslack", "oneslack"):
        with pytest.raises(ValueError, match=f"Solver '{name}' minimises max-margin losses, .* not the loss 'crf'"):
            solve(PROBLEMS["multiclass"], "crf", name)


# -- CCCP -------------------------------------------------------------------------------------------------------------------


def check_rounds(problem, result):
    """J falls from round to round, and is what it is at the weights."""
    values = [r.objective for r in result.rounds]
    assert isinstance(result.solver, CCCP) and len(values) > 1 and (np.diff(values) <= 1e-9 * values[0]).all()
    value = 0.5 * result.w @ result.w + 0.7 * losses_at(problem, result.loss, result.w).sum()
    assert result.primal == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("words", ["a", "b", "1-slack"])
def test_ramp_and_partial_labels_by_cccp(words):
    ramp = solve(PROBLEMS["multiclass"], "ramp", METHODS[words], C=0.7, tol=1e-4, max_epochs=500)
    check_rounds(PROBLEMS["multiclass"], ramp)
    gold = np.where(np.arange(12) % 3 == 0, 3, GOLD)
    partial = multiclass_problem(X, gold, 3, known=np.array([[True, True, False]]))
    result = solve(partial, "hinge", METHODS[words], C=0.7, tol=1e-4, max_epochs=500)
    check_rounds(partial, result)


@pytest.mark.parametrize("solver", [SDM(), BCFW(), NSlack()], ids=lambda s: s.name)
def test_multipliers_of_rescaled_losses_follow_the_targets(solver):
    """Ramps of rescaled losses, and partial labels, where even the output that scores are measured against changes."""
    problem, loss = PROBLEMS["multiclass"], RescaledRamp(1)
    result = solve(problem, loss, CCCP(solver, epochs=3), C=0.7, tol=0.0, max_epochs=12)
    check_rounds(problem, result)
    assert sum(r.changed > 0 for r in result.rounds) > 0
    gold = np.where(np.arange(12) % 3 == 0, 3, GOLD)
    partial = multiclass_problem(X, gold, 3, known=np.array([[True, True, False]]), costs=COSTS)
    other = solve(partial, "slack", CCCP(solver, epochs=3), C=0.7, tol=0.0, max_epochs=12)
    assert sum(r.changed > 0 for r in other.rounds) > 0
    for p, found in ((problem, result), (partial, other)):
        state, convex = found.state, found.loss.convex
        w = weights_of(kernels.with_targets(p, state.targets), state.inside.sets, convex.kernel)
        np.testing.assert_allclose(state.inside.weights.v, w, atol=1e-9)
