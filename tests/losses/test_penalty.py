"""L1 penalties: the bounds, OWL-QN and ADMM against outside referees, exact zeros."""

import math

import numpy as np
import pytest
import scipy.optimize

import partwise
from partwise import Classifier, SequenceLabeler, kernels
from partwise.losses.penalty import penalty
from partwise.losses.records import Family, get_loss
from partwise.objective import losses_at, objective
from partwise.solvers import CCCP, SOLVERS, can_minimise, get_solver, solve
from partwise.solvers.admm import ADMM
from partwise.solvers.checkpoint import Checkpoint
from partwise.solvers.lbfgs import LBFGS
from partwise.solvers.owlqn import OWLQN
from partwise.structures import chain_problem, multiclass_problem
from partwise.text.columns import read_columns
from small_taggers import TEMPLATES, TRAIN

RATIOS = [0.3, 1.0]


def make(kind="multiclass", n=60, seed=0, allowed=None):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4))
    gold = (x @ rng.normal(size=(4, 3)) + rng.normal(size=(n, 3))).argmax(1)
    if kind == "multiclass":
        return multiclass_problem(x, gold, 3)
    return chain_problem(x, [3] * (n // 3), gold, 3)


def outputs_of(problem, i, d):
    """dF and costs of all outputs of an example."""
    target, target_features = kernels.target(problem, i), np.zeros(d)
    kernels.add_features(problem, i, target, 1.0, target_features)
    differences, costs = [], []
    for y in kernels.outputs(problem, i):
        features = np.zeros(d)
        kernels.add_features(problem, i, y, 1.0, features)
        differences.append(target_features - features)
        costs.append(kernels.cost(problem, i, y))
    return np.array(differences), np.array(costs)


# -- the bound ---------------------------------------------------------------------------------------------------------


def explicit_dual(loss, C, w, examples, r, s):
    """D of the distributions that w suggests, mixed with the targets, from all outputs."""
    value, v = 0.0, np.zeros(len(w))
    for c, (differences, costs) in zip(C, examples, strict=True):
        scores = loss.gamma * costs - differences @ w
        if loss.is_smooth:
            q = np.exp(loss.beta * (scores - scores.max()))
            q /= q.sum()
        else:
            q = np.eye(len(scores))[scores.argmax()]
        q = s * q + (1 - s) * (costs == 0)
        entropy = -(q[q > 0] @ np.log(q[q > 0])) / loss.beta if loss.is_smooth else 0.0
        value += c * (loss.gamma * (q @ costs) + entropy)
        v += c * (q @ differences)
    excess = np.maximum(np.abs(v) - r, 0.0)
    if r == 1.0:
        return value if excess.max() <= 1e-12 else -math.inf
    return value - excess @ excess / (2 * (1 - r))


@pytest.mark.parametrize("r", [0.3, 0.95, 1.0])
@pytest.mark.parametrize("loss", [get_loss("crf"), Family(3.0, 1.0), get_loss("hinge")], ids=lambda loss: loss.name)
def test_bound_is_that_of_the_best_mixture(loss, r):
    problem = make("chain", n=12)
    d, n = kernels.n_weights(problem), 4
    examples = [outputs_of(problem, i, d) for i in range(n)]
    rng = np.random.default_rng(5)
    for scale in (0.0, 0.1, 1.0, 30.0):
        C, w = rng.random(n) + 0.1, scale * rng.normal(size=d)
        value = objective(problem, loss, C, w, l1_ratio=r)
        assert value.primal == pytest.approx(penalty(w, r) + C @ losses_at(problem, loss, w), rel=1e-12)
        v = value.gradient - (1 - r) * w
        top = min(1.0, 1.0 / np.abs(v).max()) if r == 1.0 else 1.0
        grid = [explicit_dual(loss, C, w, examples, r, s) for s in np.linspace(0, top, 201)]
        assert max(grid) - 1e-9 <= value.dual <= max(grid) + 2e-3 * max(1.0, abs(value.dual)) and value.dual <= value.primal
        assert value.dual >= 0.0


def test_a_target_that_costs_something_leaves_a_bound():
    """CCCP chooses such targets: the entropy is then overestimated, by less than the cost that is left out."""
    problem, loss = make("chain", n=12), Family(1.0, 1.0)
    targets = np.random.default_rng(1).integers(0, 3, 12).astype(np.int32)
    other = kernels.with_targets(problem, targets)
    best = solve(other, loss, "owlqn", C=0.5, l1_ratio=1.0, tol=1e-9)
    for scale in (0.0, 0.3, 3.0):
        w = scale * np.random.default_rng(2).normal(size=kernels.n_weights(problem))
        assert objective(other, loss, np.full(4, 0.5), w, l1_ratio=1.0).dual <= best.primal * (1 + 1e-12)


# -- OWL-QN ------------------------------------------------------------------------------------------------------------


def smooth_referee(problem, loss, C, r):
    """The optimum by L-BFGS-B on w = p - q, p and q >= 0."""
    d = kernels.n_weights(problem)
    C = np.full(kernels.n_examples(problem), C)

    def f(pq):
        w = pq[:d] - pq[d:]
        value = objective(problem, loss, C, w)
        smooth = value.gradient - r * w
        rest = value.primal - 0.5 * r * w @ w
        return rest + r * pq.sum(), np.concatenate([smooth + r, r - smooth])

    options = {"maxiter": 20000, "maxfun": 40000, "ftol": 1e-15, "gtol": 1e-9}
    return scipy.optimize.minimize(f, np.zeros(2 * d), jac=True, method="L-BFGS-B", bounds=[(0, None)] * (2 * d), options=options)


@pytest.mark.parametrize("r", RATIOS)
@pytest.mark.parametrize("kind", ["multiclass", "chain"])
@pytest.mark.parametrize(("loss", "C"), [(get_loss("crf"), 1.0), (Family(3.0, 1.0), 0.2)], ids=["crf", "family"])
def test_owlqn_reaches_the_optimum_of_scipy(kind, loss, C, r):
    problem = make(kind)
    iterates = []
    result = solve(problem, loss, "auto", C=C, l1_ratio=r, tol=1e-7, callbacks=[lambda record: iterates.append(record.weights())])
    assert result.solver.name == "owlqn" and result.converged and 0 <= result.gap <= 1e-7 * result.primal
    assert result.primal == pytest.approx(smooth_referee(problem, loss, C, r).fun, rel=2e-7)
    primals = np.array([record.primal for record in result.history])
    assert (np.diff(primals) <= 1e-14 * primals[1:]).all()
    for record, w in zip(result.history, iterates, strict=True):
        value = objective(problem, loss, np.full(kernels.n_examples(problem), C), w, l1_ratio=r)
        assert record.primal == pytest.approx(value.primal, rel=1e-13)
        assert value.dual <= record.dual * (1 + 1e-13) and record.dual <= result.primal  # the best bound so far
        assert record.loss == pytest.approx(value.primal - penalty(w, r), rel=1e-12)
    if r == 1.0:
        assert 0 < result.n_nonzero < len(result.w) and result.n_nonzero == np.count_nonzero(result.w)


def test_correlated_features_and_large_C():
    """Where the alignment of all coordinates, as in the paper, takes thousands of iterations."""
    problem = make("chain")
    result = solve(problem, "crf", "owlqn", C=100.0, l1_ratio=1.0, tol=1e-5, max_epochs=2000)
    assert result.converged


@pytest.mark.parametrize("loss", ["crf", "hinge"])
@pytest.mark.parametrize("r", RATIOS)
def test_zero_is_the_answer_below_a_C_that_can_be_computed(loss, r):
    problem = make("chain", n=30)
    n, d = kernels.n_examples(problem), kernels.n_weights(problem)
    if loss == "crf":  # the gradient at zero
        critical = r / np.abs(objective(problem, get_loss("crf"), np.ones(n), np.zeros(d)).gradient).max()
    else:  # the L-infinity ball that the subdifferential of the risk at zero has to touch: a linear program
        critical = r / hinge_program(problem, 1.0, smallest=True)
    for share in (0.5, 0.98):
        result = solve(problem, loss, C=share * critical, l1_ratio=r, tol=1e-9, max_epochs=3000)
        assert result.converged and not result.w.any() and result.primal == pytest.approx(n * share * critical * at_zero(loss))
    assert solve(problem, loss, C=1.1 * critical, l1_ratio=r, tol=1e-5, max_epochs=3000).w.any()


def at_zero(loss):
    return 3 * math.log(3) if loss == "crf" else 3.0


def test_without_a_penalty_on_the_norm_it_is_lbfgs():
    problem = make("chain")
    expected = solve(problem, "crf", "lbfgs", C=3.0, tol=1e-11)
    result = solve(problem, "crf", "owlqn", C=3.0, tol=1e-9)
    assert result.converged and result.primal == pytest.approx(expected.primal, rel=1e-9)
    np.testing.assert_allclose(result.w, expected.w, atol=1e-4)
    assert solve(problem, "crf", "auto", C=3.0).solver.name == "lbfgs"


def test_what_is_not_convex_has_no_bound():
    rng = np.random.default_rng(0)
    x, gold = rng.normal(size=(30, 4)), np.array([3, 2, 1] * 10)  # 3: one of the first two
    problem = multiclass_problem(x, gold, 3, known=np.array([[True, True, False]]))
    partial = solve(problem, "crf", C=0.3, l1_ratio=1.0, tol=1e-6)
    assert partial.solver.name == "owlqn" and math.isnan(partial.gap) and "stationary" in partial.message
    soft = solve(make(), "soft_ramp", C=1.0, l1_ratio=0.9, tol=1e-6)
    assert soft.solver.name == "owlqn" and math.isnan(soft.gap) and soft.converged
    expected = penalty(partial.w, 1.0) + 0.3 * losses_at(problem, get_loss("crf"), partial.w).sum()
    assert partial.primal == pytest.approx(expected, rel=1e-12)
    latent = get_solver("auto", problem, get_loss("hinge"), 1.0)
    assert isinstance(latent, CCCP) and latent.name == "admm" and latent.sparse


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["ramp", partwise.Ramp(1.0, 1.0, beta=2.0)], ids=["ramp", "smooth"])
def test_ramps_never_rise(loss):
    problem = make()
    result = solve(problem, loss, C=1.0, l1_ratio=1.0, tol=1e-3, max_epochs=600)
    values = [r.objective for r in result.rounds]
    assert len(values) > 1 and (np.diff(values) <= 1e-9).all() and result.n_nonzero < len(result.w)
    expected = penalty(result.w, 1.0) + losses_at(problem, result.loss, result.w).sum()
    assert result.primal == pytest.approx(expected, rel=1e-12)
    assert all(r.dual <= r.primal * (1 + 1e-9) for r in result.rounds)


# -- ADMM --------------------------------------------------------------------------------------------------------------


def hinge_program(problem, C, loss="hinge", smallest=False):
    """min ||w||_1 + C sum_i L_i(w) as a linear program over all outputs, by HiGHS.

    With `smallest`: the smallest max_j |v_j(q)| of distributions q over the outputs that are worst at w = 0.
    """
    n, d = kernels.n_examples(problem), kernels.n_weights(problem)
    examples = [outputs_of(problem, i, d) for i in range(n)]
    if smallest:
        worst = [differences[costs == costs.max()] for differences, costs in examples]
        v, which = np.concatenate(worst).T, np.repeat(np.arange(n), [len(rows) for rows in worst])
        bound = -np.ones((d, 1))
        upper = np.block([[v, bound], [-v, bound]])
        equal = np.hstack([(which == np.arange(n)[:, None]).astype(float), np.zeros((n, 1))])
        objective_of = np.append(np.zeros(len(which)), 1.0)
        found = scipy.optimize.linprog(objective_of, upper, np.zeros(2 * d), equal, np.ones(n), (0, None))
        return found.fun
    rows, limits = [], []
    for i, (differences, costs) in enumerate(examples):
        factor = costs[:, None] if loss == "slack" else 1.0  # cost (1 - w.dF) <= xi, or cost - w.dF <= xi
        slack = np.zeros((len(costs), n))
        slack[:, i] = -1.0
        rows.append(np.hstack([-factor * differences, factor * differences, slack]))
        limits.append(-costs)
    weights = np.concatenate([np.ones(2 * d), np.full(n, C)])
    return scipy.optimize.linprog(weights, np.vstack(rows), np.concatenate(limits), bounds=(0, None)).fun


@pytest.mark.parametrize(
    ("kind", "loss"),
    [
        ("multiclass", "hinge"),
        ("chain", "hinge"),
        pytest.param("multiclass", "slack", marks=pytest.mark.slow),
        pytest.param("chain", "slack", marks=pytest.mark.slow),
    ],
)
def test_admm_reaches_the_optimum_of_a_linear_program(kind, loss):
    problem = make(kind, n=30)
    for C in (0.2, 2.0):
        best = hinge_program(problem, C, loss)
        result = solve(problem, loss, "auto", C=C, l1_ratio=1.0, tol=1e-5, max_epochs=3000, evaluate="epoch")
        assert result.solver.name == "admm" and result.converged and result.gap <= 1e-5 * result.primal
        assert result.primal == pytest.approx(best, rel=2e-5)
        for record in result.history:
            assert record.dual <= best * (1 + 1e-9) and best <= record.primal * (1 + 1e-9)
        assert result.n_nonzero < len(result.w)


@pytest.mark.parametrize("r", [0.0, 0.5])
def test_admm_with_an_elastic_net(r):
    problem = make("chain")
    result = solve(problem, "hinge", "admm", C=0.5, l1_ratio=r, tol=1e-5, max_epochs=2000, evaluate="epoch")
    assert result.converged
    if r == 0.0:
        assert result.primal == pytest.approx(solve(problem, "hinge", "sdm", C=0.5, tol=1e-7).primal, rel=2e-5)
    else:  # the smooth loss is at most log(outputs) / beta above the hinge, so its bound is nearly one of the hinge
        beta = 3000.0
        smooth = solve(problem, Family(beta, 1.0), "owlqn", C=0.5, l1_ratio=r, tol=1e-3, max_epochs=3000)
        slack = 0.5 * kernels.n_examples(problem) * 3 * math.log(3) / beta
        assert smooth.dual - slack <= result.primal and result.dual <= smooth.primal
        assert result.primal == pytest.approx(smooth.primal, rel=2e-3)
    assert all(record.dual <= result.primal <= record.primal * (1 + 1e-5) for record in result.history)


def test_perceptron_has_zero_for_its_optimum():
    result = solve(make(), "perceptron", C=1.0, l1_ratio=1.0, max_epochs=500)
    assert result.solver.name == "admm" and result.primal == 0.0 and not result.w.any()


# -- what every solver must do -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("loss", "solver"), [("crf", OWLQN()), ("hinge", ADMM())], ids=["owlqn", "admm"])
class TestSolvers:
    def test_resumed_equals_uninterrupted(self, loss, solver):
        problem = make("chain")
        given = {"C": 1.0, "l1_ratio": 1.0, "tol": 0.0}
        whole = solve(problem, loss, solver, **given, max_epochs=45)
        part = solve(problem, loss, solver, **given, max_epochs=17)
        for _ in range(2):
            rest = solve(problem, loss, solver, **given, max_epochs=45, resume=part)
            np.testing.assert_array_equal(rest.w, whole.w)
            assert rest.primal == whole.primal and rest.n_oracle_calls == whole.n_oracle_calls
            assert [r.loss for r in rest.history] == [r.loss for r in whole.history]

    def test_threads_never_change_the_answer(self, loss, solver):
        problem = make("chain")
        one, two = (solve(problem, loss, solver, l1_ratio=0.8, tol=0.0, max_epochs=20, n_jobs=n) for n in (1, 2))
        np.testing.assert_array_equal(one.w, two.w)
        assert one.primal == two.primal and one.dual == two.dual

    @pytest.mark.interpreted
    def test_float32(self, loss, solver):
        problem = make()
        exact = solve(problem, loss, solver, l1_ratio=1.0, tol=1e-6, max_epochs=2000)
        result = solve(problem, loss, solver, l1_ratio=1.0, tol=1e-3, dtype=np.float32)
        assert result.w.dtype == np.float32 and result.converged and result.n_nonzero < len(result.w)
        assert result.primal == pytest.approx(exact.primal, rel=1e-3) and result.dual <= exact.primal

    def test_weights_to_start_from(self, loss, solver):
        problem = make("chain")
        first = solve(problem, loss, solver, l1_ratio=1.0, tol=1e-5, max_epochs=2000)
        again = solve(problem, loss, solver, l1_ratio=1.0, tol=1e-5, max_epochs=2000, start=first.w)
        assert again.converged and again.primal == pytest.approx(first.primal, rel=2e-5)

    def test_model_of_the_best_epoch_on_held_out_data(self, loss, solver):
        problem, held = make("chain"), make("chain", seed=3)
        result = solve(problem, loss, solver, C=5.0, l1_ratio=1.0, tol=1e-6, validation=held, patience=3, max_epochs=60)
        expected = penalty(result.w, 1.0) + 5.0 * losses_at(problem, get_loss(loss), result.w).sum()
        assert result.primal == pytest.approx(expected, rel=1e-12) and result.dual <= result.primal

    @pytest.mark.interpreted
    def test_checkpoint(self, loss, solver, tmp_path):
        x = [np.random.default_rng(k).normal(size=(2 + k % 2, 4)) for k in range(10)]
        y = [["A", "B", "B"][: len(tokens)] for tokens in x]
        path = tmp_path / "run"

        def model(epochs, **more):
            return SequenceLabeler(loss, solver=solver, l1_ratio=0.9, tol=0.0, max_epochs=epochs, random_state=0, **more)

        class Kill(Exception):
            pass

        def kill(record):
            if record.epoch == 6:
                raise Kill

        interrupted = model(15, callbacks=[kill])
        interrupted.checkpoint_seconds = 0.0
        with pytest.raises(Kill):
            interrupted.fit(x, y, checkpoint=path)
        with pytest.raises(ValueError, match="belongs to another run: l1_ratio differ"):
            model(15).set_params(l1_ratio=0.5).fit(x, y, checkpoint=path)
        resumed, whole = model(15).fit(x, y, checkpoint=path), model(15).fit(x, y)
        np.testing.assert_array_equal(resumed.weights_, whole.weights_)
        assert resumed.result_.n_epochs == 15 and not path.exists()


def test_checkpoints_of_runs_without_a_penalty_on_the_norm_are_as_before(tmp_path):
    from partwise.solvers import make_task

    problem = make()
    follower = Checkpoint(tmp_path / "run", 0.0)
    follower.load(LBFGS(), make_task(problem, "crf", 1.0))
    assert "l1_ratio" not in follower.fingerprint


# -- errors ------------------------------------------------------------------------------------------------------------


def test_other_solvers_say_who_can():
    problem = make()
    for name in SOLVERS:
        if SOLVERS[name].sparse:
            continue
        loss = next((loss for loss in ("hinge", "crf", "perceptron") if name in can_minimise(get_loss(loss))), None)
        if loss is not None:
            with pytest.raises(ValueError, match=rf"Solver '{name}' takes no L1 penalty \(l1_ratio=0.5\).* can: (owlqn|admm)"):
                solve(problem, loss, name, l1_ratio=0.5)
    assert can_minimise(get_loss("crf"), 1.0) == ["owlqn"] and can_minimise(get_loss("hinge"), 1.0) == ["admm"]
    assert can_minimise(get_loss("crf")) == can_minimise(get_loss("crf"), 0.0)
    with pytest.raises(ValueError, match="Solver 'owlqn' minimises smooth losses"):
        solve(problem, "hinge", "owlqn", l1_ratio=0.5)
    with pytest.raises(ValueError, match="Solver 'admm' minimises max-margin losses"):
        solve(problem, "crf", "admm", l1_ratio=0.5)


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan, math.inf, "a", None, True, np.array([0.5])], ids=str)
def test_bad_ratios(bad):
    x, y = [[["a"]], [["b"]]], [["A"], ["B"]]
    with pytest.raises(ValueError, match=r"The 'l1_ratio' parameter must be a float in the range \[0, 1\]. Got"):
        solve(make(), "crf", l1_ratio=bad)
    for estimator, data in ((SequenceLabeler, (x, y)), (Classifier, (np.eye(2), [0, 1]))):
        with pytest.raises(ValueError, match=rf"The 'l1_ratio' parameter of {estimator.__name__} must be a float in the range"):
            estimator(l1_ratio=bad).fit(*data)


def test_bad_parameters():
    with pytest.raises(ValueError, match="'memory' parameter of OWLQN"):
        OWLQN(memory=0)
    for bad in (0.5, 2.0, "a"):
        with pytest.raises(ValueError, match="'relaxation' parameter of ADMM"):
            ADMM(relaxation=bad)


def test_learning_bit_by_bit_is_refused():
    x, y = [[["a"], ["b"]], [["b"]]], [["A", "B"], ["B"]]
    for estimator, data in ((SequenceLabeler, (x, y)), (Classifier, (np.eye(2), [0, 1]))):
        with pytest.raises(ValueError, match=f"partial_fit goes on .* 'l1_ratio' parameter of {estimator.__name__} must be 0"):
            estimator(l1_ratio=0.1).partial_fit(*data)
    with pytest.raises(ValueError, match="fit_stream goes on"):
        SequenceLabeler(l1_ratio=0.1, templates=TEMPLATES).fit_stream([read_columns(TRAIN)])
