"""Ramp losses and CCCP: values against enumeration, bounds, gradients, and a loop that never raises its objective."""

import dataclasses
import math

import numpy as np
import pytest

from partwise import Classifier, kernels, load
from partwise.losses.records import LOSSES, Family, Ramp, SoftRamp, get_loss
from partwise.objective import losses_at, objective
from partwise.solvers import CCCP, can_minimise, make_task, sdm, solve
from partwise.solvers.active import weights_of
from partwise.solvers.bcfw import BCFW
from partwise.solvers.checkpoint import Checkpoint
from partwise.solvers.dca import DCA
from partwise.solvers.lbfgs import LBFGS
from partwise.solvers.loop import run
from partwise.solvers.mira import MIRA
from partwise.solvers.pegasos import Pegasos
from partwise.solvers.sdm import SDM
from partwise.solvers.sgd import SGD
from partwise.solvers.weights import current
from partwise.structures import chain_problem, multiclass_problem

SCALES = [0.0, 0.1, 1.0, 30.0, 1e4, 1e6]
COSTS = np.array([[0.0, 1.0, 3.0], [0.5, 0.0, 1.0], [2.0, 1.0, 0.0]])
RAMPS = [Ramp(a, b) for a in (0.0, 0.5, 1.0, 3.0) for b in (0.0, 0.5, 1.0, 3.0)]
SOFT = [Ramp(1.0, 1.0, 1.0), Ramp(1.0, 0.0, 2.0), Ramp(0.5, 2.0, 0.3), Ramp(0.0, 0.0, 5.0)]
SOFTEST = [SoftRamp(1.0, 1.0), SoftRamp(3.0, 0.5), SoftRamp(0.2, 2.0), SoftRamp(1.0, 1.0, 3.0), SoftRamp(2.0, 0.0, 0.5)]


def random_problem(kind, rng):
    """A small problem, half of the time with forbidden parts and a cost matrix; the truth is never forbidden."""
    constrained, costs = rng.random() < 0.5, COSTS if rng.random() < 0.5 else None
    lengths = [1] * 4 if kind == "multiclass" else [3, 0, 1, 4]
    n = sum(lengths)
    x, gold = rng.normal(size=(n, 2)), rng.integers(0, 3, n)
    allowed = rng.random((n, 3)) < 0.7
    allowed[np.arange(n), gold] = True
    allowed = allowed if constrained else None
    if kind == "multiclass":
        return multiclass_problem(x, gold, 3, costs, allowed)
    seen = {(a, b) for k, a, b in zip((0, 1, 4, 5, 6), gold[[0, 1, 4, 5, 6]], gold[[1, 2, 5, 6, 7]], strict=True)}
    seen |= {(None, gold[k]) for k in (0, 3, 4)} | {(gold[k], None) for k in (2, 3, 7)}
    symbols = [0, 1, 2, None]
    forbidden = [(a, b) for a in symbols for b in symbols if constrained and (a, b) not in seen and rng.random() < 0.2]
    return chain_problem(x, lengths, gold, 3, order=int(rng.integers(1, 3)), costs=costs, allowed=allowed, forbidden=forbidden)


def draws(kind, n=25):
    """Random problems with random weights, very large ones and zero included."""
    for seed in range(n):
        rng = np.random.default_rng(seed)
        problem = random_problem(kind, rng)
        yield problem, rng.normal(size=kernels.n_weights(problem)) * SCALES[seed % len(SCALES)]


def scores_and_costs(problem, i, w):
    """s(y) and l(y) of all outputs that are not forbidden."""
    theta = np.zeros(kernels.n_parts(problem, i))
    kernels.score(problem, i, w, theta)
    pairs = [(kernels.value_of(problem, i, theta, y), kernels.cost(problem, i, y)) for y in kernels.outputs(problem, i)]
    scores, costs = np.array(pairs, float).T
    return scores[scores > -np.inf], costs[scores > -np.inf]


def soft_maximum(values, beta):
    """1/beta log sum exp beta values; the maximum for beta = inf."""
    high = values.max()
    return high if math.isinf(beta) else high + math.log(np.exp(beta * (values - high)).sum()) / beta


def by_enumeration(loss, scores, costs):
    """The loss by its definition."""
    if isinstance(loss, SoftRamp):
        return soft_maximum(scores + loss.gamma * costs, loss.beta) - soft_maximum(scores - loss.b * costs, loss.beta)
    return soft_maximum(scores + loss.a * costs, loss.beta) - (scores - loss.b * costs).max()


# -- values, bounds, gradients ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["multiclass", "chain"])
@pytest.mark.parametrize("losses", [RAMPS, SOFT, SOFTEST], ids=["ramp", "ramp, beta finite", "soft ramp"])
def test_values_are_those_of_enumeration(kind, losses):
    for problem, w in draws(kind):
        examples = [scores_and_costs(problem, i, w) for i in range(kernels.n_examples(problem))]
        rounding = 1e-9 * (1.0 + max(abs(scores).max() for scores, _ in examples))
        for loss in losses:
            expected = [by_enumeration(loss, *example) for example in examples]
            np.testing.assert_allclose(losses_at(problem, loss, w), expected, rtol=1e-9, atol=rounding, err_msg=loss.name)


@pytest.mark.parametrize("kind", ["multiclass", "chain"])
def test_ramps_are_bounded_by_the_costs_of_their_maximisers(kind):
    for problem, w in draws(kind, 40):
        mancev, do = losses_at(problem, Ramp(1, 1), w), losses_at(problem, Ramp(1, 0), w)
        for i in range(len(do)):
            scores, costs = scores_and_costs(problem, i, w)
            slack = 1e-9 * (1.0 + abs(scores).max())
            augmented, plain, diminished = (costs[np.argmax(scores + c * costs)] for c in (1.0, 0.0, -1.0))
            assert 2.0 * diminished - slack <= mancev[i] <= 2.0 * augmented + slack
            assert plain - slack <= do[i] <= augmented + slack


@pytest.mark.parametrize("kind", ["multiclass", "chain"])
def test_soft_ramp_bounds_the_expected_cost_and_tends_to_the_ramp_of_do(kind):
    for problem, w in draws(kind):
        if abs(w).max(initial=0.0) > 1e3:
            continue
        risk, sharper = losses_at(problem, SoftRamp(1, 1), w), {b: losses_at(problem, SoftRamp(b, 1), w) for b in (10.0, 1e4)}
        limit = losses_at(problem, Ramp(1, 0), w)
        for i in range(len(risk)):
            scores, costs = scores_and_costs(problem, i, w)
            p = np.exp(scores - scores.max())
            assert risk[i] >= p @ costs / p.sum() - 1e-9
            for beta, values in sharper.items():  # each half is within log |Y| / beta of its maximum
                assert abs(values[i] - limit[i]) <= math.log(len(scores)) / beta + 1e-9


def test_a_forbidden_truth_costs_a_ramp_no_more_than_its_bound():
    """The hinge is infinite there; the ramp refuses to believe such a label, as any other that it finds impossible."""
    allowed = np.array([[True, False, True]])
    problem = multiclass_problem(np.ones((1, 1)), [1], 3, allowed=allowed)
    w = np.array([0.5, 9.0, 0.2])
    assert losses_at(problem, get_loss("hinge"), w)[0] == math.inf
    for loss in (Ramp(1, 1), Ramp(1, 0), Ramp(1, 1, 2.0)):
        assert losses_at(problem, loss, w)[0] == pytest.approx(by_enumeration(loss, *scores_and_costs(problem, 0, w)))


OBJECTS = [Family(3.0, 1.0), Ramp(1.0, 0.5), Ramp(1.0, 1.0, 2.0), Ramp(0.5, 0.0, 0.7), SoftRamp(3.0, 2.0), SoftRamp(1, 1, 3)]


@pytest.mark.parametrize("kind", ["multiclass", "chain"])
@pytest.mark.parametrize("loss", [*LOSSES.values(), *OBJECTS], ids=lambda loss: loss.name)
def test_gradient_is_that_of_central_differences(kind, loss):
    """At random points, where even the losses with corners have a gradient."""
    if kernels.all_outputs in loss.needs and kind == "chain":
        pytest.skip("the outputs of chains cannot be listed")
    for seed in range(6):
        rng = np.random.default_rng(seed)
        problem = random_problem(kind, rng)
        if loss.is_searched(problem):
            continue  # what is found may jump from one output to another
        C, w = rng.random(kernels.n_examples(problem)) + 0.2, rng.normal(size=kernels.n_weights(problem))
        h, slopes = 1e-6, np.zeros(len(w))
        for j in range(len(w)):
            e = np.zeros(len(w))
            e[j] = h
            slopes[j] = (objective(problem, loss, C, w + e).primal - objective(problem, loss, C, w - e).primal) / (2 * h)
        np.testing.assert_allclose(objective(problem, loss, C, w).gradient, slopes, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("c", [1.0, 2.5])
def test_binary_ramp_is_that_of_collobert(c):
    """Two classes with scores w_y . x and margin m = s(truth) - s(other), at the cost c of a wrong one:

        max(s_t, s_o + a c) - max(s_t, s_o - b c) = max(0, a c - m) - max(0, -b c - m) = H_{ac}(m) - H_{-bc}(m),

    the difference of hinges H_z(m) = max(0, z - m) of Collobert et al. (2006), with their s = -b c: -1 for Mancev, 0 for Do.
    """
    rng = np.random.default_rng(0)
    x, gold = rng.normal(size=(60, 3)), rng.integers(0, 2, 60)
    problem = multiclass_problem(x, gold, 2, costs=c * (1.0 - np.eye(2)))
    for scale in (0.0, 0.3, 3.0):
        W = rng.normal(size=(3, 2)) * scale
        scores = x @ W
        m = scores[np.arange(60), gold] - scores[np.arange(60), 1 - gold]
        for loss in (Ramp(1, 1), Ramp(1, 0), Ramp(2, 0.5)):
            expected = np.maximum(0, loss.a * c - m) - np.maximum(0, -loss.b * c - m)
            np.testing.assert_allclose(losses_at(problem, loss, W.ravel()), expected, atol=1e-12)


# -- CCCP -------------------------------------------------------------------------------------------------------------


def noisy_classes(n=60, noise=0.25, seed=0):
    """Three classes that a line could separate, some of them labelled at random."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n)
    x = rng.normal(size=(n, 3)) + 2.0 * np.eye(3)[truth]
    gold = np.where(rng.random(n) < noise, rng.integers(0, 3, n), truth)
    return multiclass_problem(np.hstack([x, np.ones((n, 1))]), gold, 3)


def noisy_chains(n=25, seed=0):
    """Sequences whose labels follow their tokens, some sequences labelled at random."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 6, n)
    tokens = int(lengths.sum())
    truth = rng.integers(0, 3, tokens)
    wrong = np.repeat(rng.random(n) < 0.25, lengths)
    x = rng.normal(size=(tokens, 3)) + 2.0 * np.eye(3)[truth]
    return chain_problem(x, lengths, np.where(wrong, rng.integers(0, 3, tokens), truth), 3)


PROBLEMS = {"multiclass": noisy_classes(), "chain": noisy_chains()}
INSIDE = {
    "sdm": (SDM(), Ramp(1, 1)),
    "sdm, average": (SDM(average=True), Ramp(1, 0)),
    "bcfw": (BCFW(), Ramp(1, 1)),
    "pegasos": (Pegasos(), Ramp(1, 1)),
    "pegasos without projection": (Pegasos(project=False), Ramp(1, 0)),
    "sgd": (SGD(eta=0.3), Ramp(1, 1)),
    "dca": (DCA(), Ramp(1, 0.5)),
    "mira": (MIRA(), Ramp(1, 1)),
    "lbfgs": (LBFGS(), Ramp(1, 1, 1.0)),
}


def value_of(problem, loss, C, w):
    """J(w)."""
    return 0.5 * float(w @ w) + C * float(losses_at(problem, loss, w).sum())


def followed(problem, loss, solver, **options):
    """A run, and the weights after each of its epochs."""
    seen = {}
    result = solve(problem, loss, solver, callbacks=[lambda r: seen.update({r.epoch: r.weights()})], **options)
    return result, seen


@pytest.mark.parametrize("name", INSIDE)
def test_the_objective_never_rises_from_round_to_round(name):
    solver, loss = INSIDE[name]
    problem, C = PROBLEMS["multiclass"], 0.3
    result, seen = followed(problem, loss, CCCP(solver), C=C, tol=1e-4, max_epochs=120)
    values = [value_of(problem, loss, C, seen[r.epochs]) for r in result.rounds]
    assert len(values) > 2 and result.rounds[0].refused > 0
    np.testing.assert_allclose([r.objective for r in result.rounds], values, rtol=1e-9)
    assert (np.diff(values) <= 1e-9 * values[0]).all()
    assert result.primal == pytest.approx(value_of(problem, loss, C, result.w), rel=1e-12)
    assert result.primal <= values[-1] * (1 + 1e-12)
    if solver.fixed_targets:  # the others do not reach the optimum of a convex problem either
        assert result.primal < value_of(problem, loss, C, solve(problem, "hinge", "sdm", C=C, tol=1e-6).w)


@pytest.mark.parametrize("kind", PROBLEMS)
def test_a_round_bounds_the_objective_from_above_and_touches_it(kind):
    """bound(w) = convex problem with the targets of w_0, plus b l(t): J(w_0) at w_0, and no less than J anywhere."""
    problem, rng = PROBLEMS[kind], np.random.default_rng(1)
    for loss in (Ramp(1, 1), Ramp(1, 0), Ramp(2, 0.5), Ramp(1, 1, 2.0)):
        solver, task = CCCP(SDM()), make_task(problem, loss, 0.7)
        state = solver.init(task)
        for _ in range(4):
            w = rng.normal(size=kernels.n_weights(problem)) * rng.choice([0.1, 1.0, 10.0])
            view = solver.look(task, state, w)
            convex = solver.convex(task, view.targets)
            outputs = [view.targets[a:b] for a, b in zip(state.starts[:-1], state.starts[1:], strict=True)]
            constant = loss.b * sum(task.C[i] * kernels.cost(problem, i, t) for i, t in enumerate(outputs))

            def bound(at, convex=convex, constant=constant):
                return objective(convex.problem, convex.loss, convex.C, at).primal + constant

            assert bound(w) == pytest.approx(view.objective, rel=1e-9)
            for other in rng.normal(size=(5, len(w))):
                assert bound(other) >= value_of(problem, loss, 0.7, other) - 1e-9


@pytest.mark.parametrize("kind", PROBLEMS)
@pytest.mark.parametrize("name", ["sdm", "bcfw", "lbfgs"])
def test_every_round_is_solved_to_its_tolerance_and_the_last_to_that_of_the_run(kind, name):
    solver, loss = INSIDE[name]
    result = solve(PROBLEMS[kind], loss, solver, C=0.3, tol=1e-4, max_epochs=2000)
    assert result.status == "converged"
    begun = 0
    for r in result.rounds:
        assert r.gap >= -1e-9 * r.primal
        assert r.gap <= r.tolerance * r.primal or r.epochs - begun >= 50
        begun = r.epochs
    assert result.rounds[-1].gap <= 1e-4 * result.rounds[-1].primal


@pytest.mark.parametrize("name", ["pegasos", "sgd", "dca", "mira"])
def test_nothing_is_claimed_without_a_certificate(name):
    """Rounds that change nothing end the run, but that is no proof: the result says what is known."""
    solver, loss = INSIDE[name]
    problem, told = PROBLEMS["multiclass"], set()
    for C, tol in ((0.01, 1e-3), (0.03, 1e-2), (0.3, 1e-2)):
        result = solve(problem, loss, solver, C=C, tol=tol, max_epochs=3000)
        assert not result.converged and result.status == "stalled" and result.n_epochs < 3000
        before, last = result.rounds[-2:]
        assert before.objective - last.objective <= tol * abs(last.objective)
        words = f"last 2 rounds lowered the objective by less than {tol:g} of it each" if last.changed else "no target changed"
        assert words in result.message and result.message.endswith("; the inner solver has no certificate")
        assert result.primal == last.objective
        told.add(last.changed > 0)
    assert False in told or name != "pegasos"  # some rounds do change nothing


@pytest.mark.parametrize("loss", [SoftRamp(1, 1), SoftRamp(3.0, 0.5)], ids=lambda loss: loss.name)
def test_solvers_of_the_soft_ramp_end_below_zero_weights(loss):
    """On labels drawn at random, where hardly anything can be learnt: w = 0 is nearly the best there is."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        n, k = int(rng.integers(10, 40)), int(rng.integers(2, 5))
        problem = multiclass_problem(rng.normal(size=(n, 3)), rng.integers(0, k, n), k)
        for C in (0.1, 1.0, 10.0):
            for name in can_minimise(loss):
                result = solve(problem, loss, name, C=C, seed=seed)
                assert result.primal <= value_of(problem, loss, C, np.zeros_like(result.w)) * (1 + 1e-9), (name, C, seed)


def test_dca_refuses_what_has_no_target():
    problem = PROBLEMS["multiclass"]
    message = r"Solver 'dca' minimises losses with a target.* not the loss 'soft_ramp'.* Solvers that can: sgd, pegasos, lbfgs"
    with pytest.raises(ValueError, match=message):
        solve(problem, "soft_ramp", "dca")
    with pytest.raises(ValueError, match=message):
        Classifier("soft_ramp", solver="dca").fit([[0.0], [1.0]], [0, 1])
    message = (
        "partial_fit goes on by 'dca', which cannot minimise the loss 'soft_ramp'. Use fit, or solver='sgd' or solver='pegasos'"
    )
    for solver in ("auto", "lbfgs"):
        with pytest.raises(ValueError, match=message):
            Classifier("soft_ramp", solver=solver).partial_fit([[0.0], [1.0]], [0, 1])
    Classifier("soft_ramp", solver="pegasos").partial_fit([[0.0], [1.0]], [0, 1])
    assert solve(problem, "ramp", "dca").solver == CCCP(DCA())  # whose rounds are convex


@pytest.mark.parametrize("kind", PROBLEMS)
@pytest.mark.parametrize("loss", [Ramp(1, 1), Ramp(1, 0)], ids=lambda loss: loss.name)
def test_convergence_leaves_a_stationary_point(kind, loss):
    """The convex problem that touches J at the result has its optimum there: no step of CCCP gets lower."""
    problem, C, tol = PROBLEMS[kind], 0.3, 1e-6
    result = solve(problem, loss, "sdm", C=C, tol=tol, max_epochs=3000)
    assert result.status == "converged"
    solver, task = CCCP(SDM()), make_task(problem, loss, C)
    state = solver.init(task)
    view = solver.look(task, state, result.w)
    convex = solver.convex(task, view.targets)
    here = objective(convex.problem, convex.loss, convex.C, result.w).primal
    lowest = solve(convex.problem, convex.loss, "sdm", C=C, tol=1e-9, max_epochs=3000).dual
    assert here - lowest <= 3 * tol * here


@pytest.mark.parametrize("kind", PROBLEMS)
def test_the_first_round_of_mancev_is_the_hinge(kind):
    """The first targets are the truth, and the weights are those of plain SDM, epoch by epoch."""
    problem, epochs = PROBLEMS[kind], 6
    solver, task = CCCP(SDM(), epochs=epochs), make_task(problem, "ramp", 0.3)
    np.testing.assert_array_equal(solver.init(task).targets, problem.gold)
    hinge, plain = followed(problem, "hinge", "sdm", C=0.3, tol=0.0, max_epochs=epochs)
    ramp, inside = followed(problem, "ramp", solver, C=0.3, tol=0.0, max_epochs=2 * epochs)
    for epoch in range(1, epochs + 1):
        np.testing.assert_array_equal(inside[epoch], plain[epoch])
    assert ramp.rounds[0].primal == hinge.primal and ramp.rounds[0].dual == hinge.dual
    assert ramp.rounds[0].changed > 0 and (inside[2 * epochs] != inside[epochs]).any()


def check_weights(problem, state):
    """w is what the multipliers stand for, against the targets of the problem at hand: Mancev's u - v."""
    w = weights_of(kernels.with_targets(problem, state.targets), state.inside.sets)
    np.testing.assert_allclose(state.inside.weights.v, w, atol=1e-9)


@pytest.mark.parametrize("kind", PROBLEMS)
@pytest.mark.parametrize("solver", [SDM(), BCFW()], ids=lambda solver: solver.name)
def test_weights_follow_the_targets(kind, solver):
    problem = PROBLEMS[kind]
    result = solve(problem, "ramp", CCCP(solver, epochs=3), C=0.3, tol=0.0, max_epochs=15)
    assert len(result.rounds) == 5 and sum(r.changed > 0 for r in result.rounds) >= 2
    check_weights(problem, result.state)


def test_line_10_of_mancev_as_printed_does_not_follow_the_targets(monkeypatch):
    """It subtracts all of v in every round, v = sum_i C_i (F(x_i, y_i) - F(x_i, t_i)): twice what the last round subtracted."""

    def as_printed(before, task, sets, examples, weights):
        problem = task.problem
        for i in range(task.n):
            gold = problem.gold[i : i + 1]
            kernels.difference(problem, i, kernels.target(problem, i), gold, task.C[i], weights.v)
        return sets

    monkeypatch.setattr(sdm, "follow_targets", as_printed)
    problem = PROBLEMS["multiclass"]
    result = solve(problem, "ramp", CCCP(SDM(), epochs=3), C=0.3, tol=0.0, max_epochs=4)  # v was zero: nothing is wrong yet
    assert result.rounds[0].changed > 0
    check_weights(problem, result.state)
    result = solve(problem, "ramp", CCCP(SDM(), epochs=3), C=0.3, tol=0.0, max_epochs=10)
    with pytest.raises(AssertionError):
        check_weights(problem, result.state)


AVERAGING = {"sdm": SDM(average=True), "bcfw": BCFW(), "pegasos": Pegasos(), "dca": DCA()}


@pytest.mark.interpreted
@pytest.mark.parametrize("name", AVERAGING)
@pytest.mark.parametrize("place", ["model", "current"])
def test_targets_are_chosen_where_they_should_be(name, place, monkeypatch):
    """At the average of a round, or at its last iterate, as in Algorithm 1 of Mancev; the two would choose differently."""
    solver, task = CCCP(AVERAGING[name], epochs=1, targets_at=place), make_task(PROBLEMS["multiclass"], Ramp(1, 1), 1.0)
    seen, finish_round = {}, CCCP.finish_round

    def watched(self, task, state, problem, value):
        seen["model"] = self.look(task, state, self.solver.weights(state.inside))
        seen["current"] = self.look(task, state, current(state.inside.weights))
        finish_round(self, task, state, problem, value)

    monkeypatch.setattr(CCCP, "finish_round", watched)
    state, told = solver.init(task), 0
    for _ in range(6):
        before, targets = state.objective, state.targets
        solver.epoch(task, state)
        assert state.objective == min(before, seen["model"].objective)  # J is that of what would be returned
        last = solver.rounds(state)[-1]
        assert last.refused == seen[place].refused and last.changed == np.count_nonzero(seen[place].targets != targets)
        if state.objective < before or not solver.certified:
            np.testing.assert_array_equal(state.targets, seen[place].targets)
            told += bool((seen["model"].targets != seen["current"].targets).any())
    assert told > 0


@pytest.mark.interpreted
def test_without_an_average_there_is_one_place_to_choose_targets_at():
    problem = PROBLEMS["multiclass"]
    for inside in (SDM(), Pegasos(average=False), LBFGS()):
        loss = Ramp(1, 1, 1.0) if isinstance(inside, LBFGS) else Ramp(1, 1)
        one, other = (solve(problem, loss, CCCP(inside, 2, place), C=0.3, max_epochs=8, tol=0) for place in ("model", "current"))
        np.testing.assert_array_equal(one.w, other.w)
        assert one.rounds == other.rounds and one.n_oracle_calls == other.n_oracle_calls
    with pytest.raises(
        ValueError, match=r"The 'targets_at' parameter of CCCP must be 'model' or 'current'\. Got 'average' instead"
    ):
        CCCP(SDM(), targets_at="average")


@pytest.mark.parametrize("name", ["sdm", "bcfw", "pegasos", "lbfgs"])
def test_resuming_is_exact(name):
    solver, loss = INSIDE[name]
    problem, options = PROBLEMS["multiclass"], {"C": 0.3, "tol": 0.0}
    whole = solve(problem, loss, solver, max_epochs=23, **options)
    half = solve(problem, loss, solver, max_epochs=11, **options)
    rest = solve(problem, loss, solver, max_epochs=23, resume=half, **options)
    np.testing.assert_array_equal(rest.w, whole.w)
    assert rest.rounds == whole.rounds and rest.n_oracle_calls == whole.n_oracle_calls and rest.primal == whole.primal


@pytest.mark.parametrize("name", ["sdm", "pegasos", "lbfgs"])
def test_a_checkpoint_goes_on_as_if_nothing_had_happened(name, tmp_path):
    solver, loss = INSIDE[name]
    task, path = make_task(PROBLEMS["multiclass"], loss, 0.3), tmp_path / "run.checkpoint"
    whole = run(CCCP(solver), task, max_epochs=23, tol=0.0)
    checkpoint = Checkpoint(path, 0.0)
    assert checkpoint.load(CCCP(solver), task) is None
    run(CCCP(solver), task, max_epochs=11, tol=0.0, callbacks=[checkpoint.save])
    found = Checkpoint(path, 0.0).load(CCCP(solver), task)
    assert found.n_epochs == 11
    rest = run(CCCP(solver), task, max_epochs=23, tol=0.0, resume=found)
    np.testing.assert_array_equal(rest.w, whole.w)
    assert rest.rounds == whole.rounds and rest.primal == whole.primal
    with pytest.raises(ValueError, match="belongs to another run: solver"):
        Checkpoint(path, 0.0).load(CCCP(solver, epochs=2), task)
    with pytest.raises(ValueError, match="belongs to another run: loss"):
        Checkpoint(path, 0.0).load(CCCP(solver), dataclasses.replace(task, loss=dataclasses.replace(loss, b=0.25)))


@pytest.mark.parametrize("when", [1, 7])
def test_an_interrupted_run_keeps_its_model(when):
    problem = PROBLEMS["multiclass"]

    def stop(record):
        if record.epoch == when:
            raise KeyboardInterrupt

    result = solve(problem, "ramp", CCCP(SDM(), epochs=3), C=0.3, callbacks=[stop])
    assert result.status == "interrupted" and result.n_epochs == when and np.abs(result.w).max() > 0
    whole = solve(problem, "ramp", CCCP(SDM(), epochs=3), C=0.3, tol=0.0, max_epochs=when, evaluate="never")
    np.testing.assert_array_equal(result.w, whole.w)


@pytest.mark.parametrize("loss", ["ramp", Ramp(1, 0.5), Ramp(1, 1, 2.0), SoftRamp(2.0, 1.0)], ids=str)
def test_model_files_keep_the_loss_and_the_solver(loss, tmp_path):
    rng = np.random.default_rng(0)
    gold = rng.integers(0, 3, 60)
    x = rng.normal(size=(60, 3)) + 2.0 * np.eye(3)[gold]
    solver = "auto" if loss != Ramp(1, 0.5) else CCCP(SDM(cached_passes=3, average=True), epochs=4, targets_at="current")
    model = Classifier(loss=loss, solver=solver, C=0.3, max_epochs=30).fit(x, gold)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.get_params()["loss"] == loss and again.get_params()["solver"] == solver
    np.testing.assert_array_equal(again.predict(x), model.predict(x))
    assert model.score(x, gold) > 0.8
