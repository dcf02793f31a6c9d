"""Losses that rescale the margin by the cost: their oracle against enumeration, values, bounds, gradients, who minimises them."""

import math

import numpy as np
import pytest

import partwise
from budget_structure import BudgetProblem, make_budget
from partwise import Classifier, SequenceLabeler, kernels, load
from partwise.engine.compilation import compiled_loop, interpret
from partwise.losses.records import Rescaled, RescaledRamp, get_loss
from partwise.objective import losses_at, objective
from partwise.solvers import CCCP, for_optimum, make_task, solve
from partwise.solvers.dca import DCA
from partwise.solvers.pegasos import Pegasos
from partwise.structures import chain_problem, multiclass_problem

SCALES = [0.0, 0.1, 1.0, 30.0, 1e4, 1e6]
POWERS = [0.0, 0.5, 1.0, 2.0]
COSTS = np.array([[0.0, 1.0, 3.0], [2.0, 0.0, 0.0], [2.0, 1.0, 0.0]])
REALS = np.array([[0.0, 1.0, 3.0], [0.5, 0.0, 1.0], [2.0, 1.0, 0.0]])


def random_problem(kind, rng, partial=False):
    """A small problem, with constraints and a cost matrix half of the time; the truth may always be answered."""
    constrained, matrix = rng.random(2) < 0.5
    lengths = [1] * 4 if kind == "multiclass" else [3, 0, 1, 4]
    n = sum(lengths)
    x, gold = rng.normal(size=(n, 2)), rng.integers(0, 3, n)
    allowed = rng.random((n, 3)) < 0.7
    allowed[np.arange(n), gold] = True
    known = np.array([[True, True, False], [True, True, True]])
    given = np.where(rng.random(n) < 0.4, rng.integers(3, 5, n), gold) if partial else gold
    given[gold == 2] = np.where(given[gold == 2] == 3, 2, given[gold == 2])
    options = {"allowed": allowed if constrained else None, "known": known if partial else None}
    if kind == "multiclass":
        return multiclass_problem(x, given, 3, (REALS if rng.random() < 0.5 else COSTS) if matrix else None, **options)
    seen = set(zip(gold[:-1], gold[1:], strict=True))
    seen |= {(None, gold[k]) for k in (0, 3, 4)} | {(gold[k], None) for k in (2, 3, 7)}
    symbols, order = [0, 1, 2, None], int(rng.integers(1, 4))
    options["forbidden"] = [(a, b) for a in symbols for b in symbols if constrained and (a, b) not in seen and rng.random() < 0.2]
    return chain_problem(x, lengths, given, 3, order=order, costs=COSTS if matrix else None, **options)


def draws(kind, n=18, partial=False):
    """Random problems with random weights, very large ones and zero included."""
    for seed in range(n):
        rng = np.random.default_rng(seed)
        problem = random_problem(kind, rng, partial)
        yield problem, rng.normal(size=kernels.n_weights(problem)) * SCALES[seed % len(SCALES)]


class Enumeration:
    """All outputs of an example that are not forbidden: score, cost, and score against the truth, or the best acceptable one."""

    def __init__(self, problem, i, w):
        theta = np.zeros(kernels.n_parts(problem, i))
        kernels.score(problem, i, w, theta)
        pairs = [(kernels.value_of(problem, i, theta, y), kernels.cost(problem, i, y)) for y in kernels.outputs(problem, i)]
        scores, costs = np.array(pairs, float).T
        self.scores, self.costs = scores[scores > -np.inf], costs[scores > -np.inf]
        self.lead = self.scores - kernels.complete(problem, i, theta, np.zeros(kernels.length(problem, i), np.int32))
        self.rounding = 1e-9 * (1.0 + abs(self.scores).max()) * (1.0 + self.costs.max()) ** 2

    def augmented(self, power):
        return self.costs**power * self.lead + self.costs

    def value(self, loss):
        ramp = isinstance(loss, RescaledRamp)
        return self.augmented(loss.power).max() - ((self.costs**loss.power * self.lead).max() if ramp else 0.0)


# -- the oracle -------------------------------------------------------------------------------------------------------


@compiled_loop
def at_costs(problem, i, w, theta, ys, values, costs):
    kernels.score(problem, i, w, theta)
    return kernels.best_at_costs(problem, i, theta, ys, values, costs)


@pytest.mark.parametrize("partial", [False, True], ids=["full labels", "partial labels"])
@pytest.mark.parametrize("kind", ["multiclass", "chain"])
@pytest.mark.interpreted
def test_best_output_of_every_cost_is_that_of_enumeration(kind, partial):
    for problem, w in draws(kind, 24, partial):
        for i in range(kernels.n_examples(problem)):
            theta, most = np.zeros(kernels.n_parts(problem, i)), int(kernels.n_costs(problem, i))
            ys, values, costs = np.zeros((most, kernels.length(problem, i)), np.int32), np.zeros(most), np.zeros(most)
            n = at_costs(problem, i, w, theta, ys, values, costs)
            all_of_them = Enumeration(problem, i, w)
            assert set(costs[:n]) == set(all_of_them.costs)
            for cost in set(costs[:n]):
                highest = all_of_them.scores[all_of_them.costs == cost].max()
                assert values[:n][costs[:n] == cost].max() == pytest.approx(highest, rel=1e-12, abs=1e-12)
            for y, value, cost in zip(ys[:n], values[:n], costs[:n], strict=True):
                assert kernels.value_of(problem, i, theta, y) == pytest.approx(value, rel=1e-12, abs=1e-12)
                assert kernels.cost(problem, i, y) == cost


def test_the_oracle_is_the_same_in_the_interpreter():
    problem, w = next(draws("chain", 1))
    compiled = losses_at(problem, Rescaled(1), w)
    with interpret():
        np.testing.assert_allclose(losses_at(problem, Rescaled(1), w), compiled, rtol=1e-12)


# -- values, bounds, gradients ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["multiclass", "chain"])
@pytest.mark.interpreted
def test_values_and_bounds_are_those_of_enumeration(kind):
    for problem, w in draws(kind):
        examples = [Enumeration(problem, i, w) for i in range(kernels.n_examples(problem))]
        for power in POWERS:
            convex, ramp = losses_at(problem, Rescaled(power), w), losses_at(problem, RescaledRamp(power), w)
            for e, value, bounded in zip(examples, convex, ramp, strict=True):
                assert value == pytest.approx(e.value(Rescaled(power)), rel=1e-9, abs=e.rounding)
                assert bounded == pytest.approx(e.value(RescaledRamp(power)), rel=1e-9, abs=e.rounding)
                predicted, violating = e.costs[e.scores.argmax()], e.costs[e.augmented(power).argmax()]
                assert predicted - e.rounding <= bounded <= min(violating, value) + e.rounding


@pytest.mark.parametrize("kind", ["multiclass", "chain"])
@pytest.mark.interpreted
def test_constant_rescaling_is_margin_rescaling(kind):
    for problem, w in draws(kind, 12):
        C = np.linspace(0.5, 1.0, kernels.n_examples(problem))
        for rescaled, plain in ((Rescaled(0), "hinge"), (RescaledRamp(0), "ramp_do")):
            one, other = objective(problem, rescaled, C, w), objective(problem, get_loss(plain), C, w)
            assert one.primal == pytest.approx(other.primal, rel=1e-9)
            if w.any() and abs(w).max() < 1e3:  # else outputs tie, and each may take its own
                np.testing.assert_allclose(one.gradient, other.gradient, atol=1e-9)


def test_slack_is_the_cost_times_one_less_the_margin():
    problem = multiclass_problem(np.array([[1.0]]), [0], 3, costs=np.array([[0.0, 1.0, 4.0], [1, 0, 1], [1, 1, 0]]))
    w = np.array([1.0, 0.5, 0.2])  # margins 0.5 and 0.8
    assert get_loss("slack") == Rescaled(1) and Rescaled(1).name == "slack"
    assert losses_at(problem, get_loss("slack"), w)[0] == pytest.approx(max(1 * (1 - 0.5), 4 * (1 - 0.8)))


@pytest.mark.parametrize("kind", ["multiclass", "chain"])
@pytest.mark.parametrize("loss", [Rescaled(0.5), Rescaled(2), RescaledRamp(1), RescaledRamp(0.5)], ids=lambda loss: loss.name)
@pytest.mark.interpreted
def test_gradient_is_that_of_central_differences(kind, loss):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        problem = random_problem(kind, rng)
        if loss.is_convex and seed % 2:  # the target is not the truth, as in a round of CCCP
            problem = problem._replace(targets=np.where(rng.random(len(problem.gold)) < 0.5, problem.gold, 0).astype(np.int32))
            problem = problem._replace(allowed=problem.allowed[:0], barrier=np.zeros((0, 0))) if kind == "chain" else problem
            problem = problem._replace(allowed=problem.allowed[:0])
        C, w = rng.random(kernels.n_examples(problem)) + 0.2, rng.normal(size=kernels.n_weights(problem))
        directions = rng.normal(size=(3, len(w)))  # a wrong slope anywhere shows in each of them
        ends = [[objective(problem, loss, C, w + h * d).primal for h in (1e-6, -1e-6)] for d in directions]
        slopes = [(above - below) / 2e-6 for above, below in ends]
        np.testing.assert_allclose(directions @ objective(problem, loss, C, w).gradient, slopes, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ["multiclass", "chain"])
def test_partial_labels_are_compared_with_their_best_completion(kind):
    """The cost is against the set, and the convex problem with the completions for targets bounds the loss from above."""
    with partwise.interpret():  # tiny problems, and as many kinds of them to compile
        for problem, w in draws(kind, 12, partial=True):
            n = kernels.n_examples(problem)
            examples = [Enumeration(problem, i, w) for i in range(n)]
            solver, rng = CCCP(DCA()), np.random.default_rng(0)
            for power in (0.5, 1.0):
                expected = [e.value(Rescaled(power)) for e in examples]
                rounding = max(e.rounding for e in examples)
                np.testing.assert_allclose(losses_at(problem, Rescaled(power), w), expected, rtol=1e-9, atol=rounding)
                task = make_task(problem, Rescaled(power), 1.0)
                state = solver.init(task, w)
                fixed = kernels.with_targets(problem, state.targets)
                np.testing.assert_allclose(losses_at(fixed, Rescaled(power), w), expected, rtol=1e-9, atol=rounding)
                other = rng.normal(size=len(w))
                assert (losses_at(fixed, Rescaled(power), other) >= losses_at(problem, Rescaled(power), other) - 1e-9).all()


# -- the bounded loss and CCCP ----------------------------------------------------------------------------------------


def noisy(kind, n=40):
    """Labels that follow their features, some of them wrong."""
    rng = np.random.default_rng(0)
    lengths = np.ones(n, int) if kind == "multiclass" else rng.integers(0, 5, n)
    tokens = int(lengths.sum())
    truth = rng.integers(0, 3, tokens)
    gold = np.where(np.repeat(rng.random(n) < 0.25, lengths), rng.integers(0, 3, tokens), truth)
    x = rng.normal(size=(tokens, 3)) + 2.0 * np.eye(3)[truth]
    return multiclass_problem(x, gold, 3, COSTS) if kind == "multiclass" else chain_problem(x, lengths, gold, 3)


@pytest.mark.parametrize("kind", ["multiclass", "chain"])
@pytest.mark.interpreted
def test_a_round_bounds_the_objective_from_above_and_touches_it(kind):
    problem, rng, solver, moved = noisy(kind), np.random.default_rng(1), CCCP(DCA()), 0
    for power in (0.0, 0.5, 1.0, 2.0):
        loss = RescaledRamp(power)
        task = make_task(problem, loss, 0.7)
        state = solver.init(task)
        for _ in range(4):
            w = rng.normal(size=kernels.n_weights(problem)) * rng.choice([0.1, 1.0, 10.0])
            view = solver.look(task, state, w)
            moved += view.refused
            convex = solver.convex(task, view.targets)
            assert convex.loss == Rescaled(power)
            assert objective(convex.problem, convex.loss, convex.C, w).primal == pytest.approx(view.objective, rel=1e-9)
            for other in rng.normal(size=(4, len(w))):
                bounds, values = losses_at(convex.problem, convex.loss, other), losses_at(problem, loss, other)
                assert (bounds >= values - 1e-9).all()
    assert moved > 20


def test_algorithm_1_of_do_may_raise_the_objective():
    """One weight, three outputs: the bound of Lemma 1 with the target of Lemma 2 is not what CCCP needs (see `RescaledRamp`)."""
    feature, cost, C = np.array([0.0, -2.0, 2.0]), np.array([0.0, 4.0, 1.0]), 0.5
    w = np.linspace(-1.0, 1.0, 200_001)
    s = np.outer(w, feature)

    def lemma_1(t):
        return 0.5 * w**2 + C * (cost * (s - s[:, [t]]) + cost).max(axis=1)

    pieces = cost * (s - s[:, [0]])
    J = 0.5 * w**2 + C * ((pieces + cost).max(axis=1) - pieces.max(axis=1))
    first = lemma_1(0).argmin()
    target = pieces[first].argmax()
    as_printed = lemma_1(target)
    assert (as_printed < J - 0.4).any()  # no bound
    assert J[as_printed.argmin()] > J[first] + 0.5
    tangent = 0.5 * w**2 + C * ((pieces + cost).max(axis=1) - pieces[:, target])
    assert (tangent >= J - 1e-12).all() and tangent[first] == pytest.approx(J[first])
    assert J[tangent.argmin()] <= J[first]


@pytest.mark.parametrize("kind, inside", [("multiclass", Pegasos()), ("multiclass", DCA()), ("chain", Pegasos())])
@pytest.mark.interpreted
def test_cccp_lowers_the_objective_round_by_round(kind, inside):
    problem, C, loss = noisy(kind), 0.3, RescaledRamp(1)
    seen = {}
    result = solve(problem, loss, inside, C=C, tol=1e-4, callbacks=[lambda r: seen.update({r.epoch: r.weights()})])
    values = [0.5 * float(w @ w) + C * float(losses_at(problem, loss, w).sum()) for w in (seen[r.epochs] for r in result.rounds)]
    assert isinstance(result.solver, CCCP) and len(values) > 2
    assert (np.diff(values) <= 1e-9 * values[0]).all() and values[-1] < values[0]
    assert result.primal == pytest.approx(min(values), rel=1e-9)


# -- who minimises them -----------------------------------------------------------------------------------------------


def optimum(problem, power, C):
    """The optimal value by quadratic programming over all outputs: max_a a.l - 1/2 |sum_y a_y Gamma dF(y)|^2 over simplices."""
    from scipy.optimize import minimize

    pieces, costs, owner = [], [], []
    for i in range(kernels.n_examples(problem)):
        for y in kernels.outputs(problem, i):
            row = np.zeros(kernels.n_weights(problem))
            kernels.difference(problem, i, kernels.target(problem, i), y, kernels.cost(problem, i, y) ** power, row)
            pieces.append(row)
            costs.append(kernels.cost(problem, i, y))
            owner.append(i)
    A, cost = np.array(pieces), np.array(costs)
    sums = (np.array(owner) == np.arange(kernels.n_examples(problem))[:, None]).astype(float)
    Q, start = A @ A.T, C * sums.T @ (1.0 / sums.sum(1))
    result = minimize(
        lambda a: 0.5 * a @ Q @ a - a @ cost, start, jac=lambda a: Q @ a - cost, method="SLSQP", bounds=[(0, None)] * len(start),
        constraints={"type": "eq", "fun": lambda a: sums @ a - C, "jac": lambda a: sums},
        options={"maxiter": 1000, "ftol": 1e-12},
    )  # fmt: skip
    return -result.fun


SMALL = noisy("multiclass", 15)


@pytest.mark.parametrize("power", [0.5, 1.0])
@pytest.mark.parametrize("solver, accuracy", [("pegasos", 0.01), ("sgd", 0.01), ("nrbm", 0.001), ("dca", 1.0)])
@pytest.mark.interpreted
def test_solvers_that_follow_gradients_reach_the_optimum(power, solver, accuracy):
    """But for DCA, an online method that never takes back a step: it gets near in an epoch or two, and then leaves again."""
    best = optimum(SMALL, power, 0.3)
    epochs = 2 if solver == "dca" else 300
    result = solve(SMALL, Rescaled(power), solver, C=0.3, tol=1e-3, max_epochs=epochs, evaluate="epoch")
    assert best * (1 - 1e-6) <= result.primal <= best * (1 + accuracy)
    for record in result.history:  # weak duality at every iterate
        assert record.dual <= best * (1 + 1e-6) <= record.primal * (1 + 2e-6)
    if solver in ("pegasos", "nrbm"):
        assert result.dual >= best * (1 - 2 * accuracy)


@pytest.mark.parametrize("name", ["mira", "kbest_mira", "perceptron", "lbfgs", "ocas"])
def test_other_solvers_refuse_and_name_who_can(name):
    for loss in ("slack", RescaledRamp(1)):
        with pytest.raises(ValueError, match=rf"Solver '{name}' minimises .* not the loss .*Solvers that can: .*pegasos"):
            solve(SMALL, loss, name)


@pytest.mark.interpreted
def test_auto_finds_a_solver():
    for loss in (Rescaled(1), RescaledRamp(0.5)):
        assert solve(SMALL, loss, C=0.3).primal > 0
        assert for_optimum(SMALL, loss).name == "sdm" and for_optimum(SMALL, loss).accepts(Rescaled(1))
    assert for_optimum(next(draws("multiclass", 1, partial=True))[0], Rescaled(1)).name == "sgd"


def test_what_cannot_be_rescaled_is_refused(monkeypatch):
    monkeypatch.delitem(kernels.truth.kernel.implementations, BudgetProblem)
    with pytest.raises(TypeError, match="The loss 'slack' needs the kernel 'truth'. BudgetProblem does not implement"):
        solve(make_budget(), "slack", "dca")
    partial = next(draws("chain", 1, partial=True))[0]
    with pytest.raises(ValueError, match="'rescaled_ramp' needs one true output per example, but PartialChainProblem"):
        solve(partial, RescaledRamp(1))
    for value in (-1, math.inf, "1"):
        with pytest.raises(ValueError, match=r"The 'power' parameter of Rescaled must be a float in \[0, inf\)"):
            Rescaled(value)


@pytest.mark.parametrize("loss", ["slack", Rescaled(0.5), RescaledRamp(1)], ids=str)
@pytest.mark.interpreted
def test_estimators_take_them_and_model_files_keep_them(loss, tmp_path):
    rng = np.random.default_rng(0)
    gold = rng.integers(0, 3, 60)
    x = rng.normal(size=(60, 3)) + 2.0 * np.eye(3)[gold]
    model = Classifier(loss=loss, C=0.3).fit(x, gold)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.get_params()["loss"] == loss and type(again.get_params()["loss"]) is type(loss)
    np.testing.assert_array_equal(again.predict(x), model.predict(x))
    assert model.score(x, gold) > 0.8


@pytest.mark.slow  # compiling; classes take it quickly in the tests above
def test_sequence_labeler_takes_slack(tmp_path):
    X = [[{"word": w, "bias": 1.0} for w in text.split()] for text in ("a b a", "b a", "a a b b", "b")] * 5
    y = [["A" if token["word"] == "a" else "B" for token in sentence] for sentence in X]
    model = SequenceLabeler(loss="slack", C=1.0).fit(X, y)
    assert [list(labels) for labels in model.predict(X)] == y
