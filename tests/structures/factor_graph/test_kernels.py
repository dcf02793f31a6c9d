"""Learning the weights of factor graphs: gradients, solvers that meet at one optimum, ramps, hidden variables, hard factors."""

from __future__ import annotations

import math

import numpy as np
import pytest

from oracle_checks import check_agreement
from partwise import FactorGraph, graph_families, graph_problem, kernels, multiclass_problem, solve
from partwise.engine.compilation import interpret
from partwise.losses.records import Family, get_loss
from partwise.objective import best_outputs, losses_at, objective
from partwise.structures.factor_graph.problem import NOT_PROVEN


@pytest.fixture(autouse=True)
def interpreted():
    """Graphs are tiny here: compiling takes longer than interpreting."""
    with interpret():
        yield


def some_graphs(n=4, seed=0, cycle=False, tie=None, hidden=False):
    """Graphs of three or four variables, with labels that features half tell; a cycle, or trees."""
    rng = np.random.default_rng(seed)
    graphs, y = [], []
    for _ in range(n):
        size = 3 if cycle else int(rng.integers(3, 5))
        states = rng.integers(0, 3, size)
        states[1:] = np.where(rng.random(size - 1) < 0.6, states[:-1], states[1:])
        g = FactorGraph()
        x = g.variables(size, states=3)
        g.unary(x, features=np.eye(3)[states] + rng.normal(0, 0.5, (size, 3)), weights="node")
        if cycle:
            ends = np.array([[0, 1], [1, 2], [2, 0]])
        else:
            ends = np.array([[int(rng.integers(k)), k] for k in range(1, size)])
        g.pairwise(x[ends[:, 0]], x[ends[:, 1]], features=rng.normal(1, 0.3, (len(ends), 1)), weights="edge", tie=tie)
        if hidden:
            states[rng.integers(size)] = -1
        graphs.append(g)
        y.append(states)
    return graphs, y


def primal_by_listing(problem, loss, C, w):
    """1/2 ||w||^2 + C sum of losses, outputs listed one by one."""
    total = 0.5 * w @ w
    for i in range(kernels.n_examples(problem)):
        theta = np.zeros(int(kernels.n_parts(problem, i)))
        kernels.score(problem, i, w, theta)
        outputs = list(kernels.outputs(problem, i))
        scores = np.array([kernels.value_of(problem, i, theta, y) for y in outputs])
        costs = np.array([kernels.cost(problem, i, y) for y in outputs])
        values = scores + loss.gamma * costs
        right = (
            scores[costs == 0].max() if math.isinf(loss.beta) else np.logaddexp.reduce(loss.beta * scores[costs == 0]) / loss.beta
        )
        top = values.max() if math.isinf(loss.beta) else np.logaddexp.reduce(loss.beta * values) / loss.beta
        total += C * (top - right)
    return float(total)


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("tie", [None, "symmetric", "potts"])
@pytest.mark.parametrize("loss", [Family(1, 0), Family(2, 1), Family(math.inf, 1)])
def test_objective_and_gradient(loss, tie, hidden):
    problem = graph_problem(*some_graphs(2, tie=tie, hidden=hidden))
    w, C = np.random.default_rng(1).normal(0, 0.5, kernels.n_weights(problem)), np.full(2, 0.7)
    value = objective(problem, loss, C, w)
    assert value.primal == pytest.approx(primal_by_listing(problem, loss, 0.7, w))
    step = 1e-5
    for j in range(len(w)):
        e = step * np.eye(len(w))[j]
        slope = (objective(problem, loss, C, w + e).primal - objective(problem, loss, C, w - e).primal) / (2 * step)
        assert value.gradient[j] == pytest.approx(slope, abs=1e-5)


def test_probabilities_by_lbfgs():
    graphs, y = some_graphs(4)
    problem = graph_problem(graphs, y)
    result = solve(problem, "crf", "lbfgs", 1.0, tol=1e-6, max_epochs=100)
    assert result.converged and result.primal == pytest.approx(primal_by_listing(problem, Family(1, 0), 1.0, result.w))
    assert result.gap <= 1e-5 * result.primal


def same_arrays(a, b):
    """Whether two packed problems hold the same, array by array."""
    return all(same_arrays(x, y) if isinstance(x, tuple) else np.array_equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("tie", [None, "potts"])
def test_taking_some_graphs(hidden, tie):
    graphs, y = some_graphs(n=5, tie=tie, hidden=hidden)
    families = graph_families(graphs)
    for which in ([3, 0], [1, 2, 3, 4], []):
        taken = kernels.take(graph_problem(graphs, y, families=families), np.array(which, int))
        packed = graph_problem([graphs[i] for i in which], [y[i] for i in which], families=families)
        if which:
            assert type(taken) is type(packed) and same_arrays(taken, packed)
        assert kernels.n_examples(taken) == len(which)
    some = graph_problem(graphs, [*y[:-1], np.abs(y[-1])], families=families)
    assert not kernels.is_partial(kernels.take(some, np.array([4])))


@pytest.mark.parametrize("hidden", [False, True])
def test_agreement_by_enumeration(hidden):
    problem = graph_problem(*some_graphs(hidden=hidden))
    check_agreement(problem, np.random.default_rng(3).normal(size=problem.n_weights), -1)
    g = FactorGraph()
    g.unary(g.bits(3), features=np.eye(3), weights="bit")
    for truth in ([1, 0, 1], [0, -1, 1]):
        bits = graph_problem([g], [truth])
        check_agreement(bits, np.random.default_rng(3).normal(size=bits.n_weights), -1)


@pytest.mark.parametrize("cycle", [False, True])
def test_solvers_meet_at_one_optimum(cycle):
    graphs, y = some_graphs(2 if cycle else 3, cycle=cycle)
    problem = graph_problem(graphs, y, exact=True, iterations=10)  # few iterations: branch and bound has something to do
    best = solve(problem, "hinge", "sdm", 0.3, tol=1e-3, max_epochs=100)
    assert best.converged and best.primal == pytest.approx(primal_by_listing(problem, Family(math.inf, 1), 0.3, best.w))
    for solver in ("bcfw", "oneslack") if cycle else ("bcfw", "oneslack", "nslack", "ocas", "bmrm"):
        other = solve(problem, "hinge", solver, 0.3, tol=3e-3, max_epochs=100)
        assert best.dual - 1e-9 <= other.primal <= best.primal * 1.004, solver
    quick = solve(problem, "hinge", "dca", 0.3, tol=0.0, max_epochs=5)  # no certificate: it does not go to the optimum
    assert quick.primal >= best.dual - 1e-9 and (best_outputs(problem, quick.w)[0] == np.concatenate(y)).mean() > 0.8
    assert not (problem.status & NOT_PROVEN).any()


def test_ramp_by_cccp():
    graphs, y = some_graphs(4)
    y[0] = (y[0] + 1) % 3  # wrong labels: a ramp gives them up
    problem = graph_problem(graphs, y)
    result = solve(problem, "ramp", "sdm", 1.0, tol=1e-3, max_epochs=100)
    values = [r.objective for r in result.rounds]
    assert len(values) > 1 and all(later <= earlier + 1e-6 for earlier, later in zip(values, values[1:], strict=False))
    ramp, hinge = losses_at(problem, get_loss("ramp"), result.w), losses_at(problem, get_loss("hinge"), result.w)
    assert (ramp <= hinge + 1e-9).all() and (ramp >= -1e-9).all()
    assert values[-1] == pytest.approx(0.5 * result.w @ result.w + ramp.sum()) and ramp.sum() < hinge.sum()


def test_slack_rescaling_by_listing():
    graphs, y = some_graphs(2)
    problem = graph_problem(graphs, y)
    w = np.random.default_rng(0).normal(0, 0.5, kernels.n_weights(problem))
    found = losses_at(problem, get_loss("slack"), w)
    for i in range(2):
        theta = np.zeros(int(kernels.n_parts(problem, i)))
        kernels.score(problem, i, w, theta)
        right = kernels.value_of(problem, i, theta, kernels.target(problem, i))
        values = [
            kernels.cost(problem, i, out) * (1.0 + kernels.value_of(problem, i, theta, out) - right)
            for out in kernels.outputs(problem, i)
        ]
        assert 0.0 <= found[i] <= max(values) + 1e-9
    result = solve(problem, "slack", "sdm", 0.3, tol=1e-2, max_epochs=50)
    assert result.primal < losses_at(problem, get_loss("slack"), np.zeros_like(w)).sum() * 0.3


@pytest.mark.parametrize(("loss", "solver"), [("hinge", "sdm"), ("hinge", "dca"), ("crf", "lbfgs")])
def test_hidden_variables(loss, solver):
    """A bit that is never seen is the parity of two labels: without it, pairs that agree and pairs that do not look alike."""
    rng = np.random.default_rng(0)
    graphs, y = [], []
    for _ in range(8):
        kind = int(rng.integers(2))
        states = np.array([0, kind])
        g = FactorGraph()
        x, h = g.variables(2, states=2), g.variables((), states=2)
        g.unary(x, features=np.eye(2)[[0, kind]] @ [[1.0, 0.2], [0.2, 1.0]], weights="node")
        g.pairwise(h[None], x[:1], weights="hidden")
        g.pairwise(h[None], x[1:], weights="hidden too")
        graphs.append(g)
        y.append(np.append(states, -1))
    problem = graph_problem(graphs, y)
    start = np.random.default_rng(1).normal(0, 0.1, kernels.n_weights(problem))
    before = primal_by_listing(problem, get_loss(loss), 0.5, start)
    result = solve(problem, loss, solver, 0.5, tol=1e-3, max_epochs=30, start=start)
    after = primal_by_listing(problem, get_loss(loss), 0.5, result.w)
    assert after < before and np.isfinite(after)
    out, starts, _ = best_outputs(graph_problem(graphs, families=graph_families(graphs)), result.w)
    found = np.stack([out[a : a + 2] for a in starts[:-1]])
    assert (found == np.stack([states[:2] for states in y])).mean() > 0.9


def test_hard_factors_while_learning():
    """At most one bit of three holds, in the truth and in all rivals."""
    rng = np.random.default_rng(0)
    graphs, y = [], []
    for _ in range(4):
        truth = np.eye(4, 3, dtype=int)[rng.integers(4)]
        g = FactorGraph()
        bits = g.bits(3)
        g.unary(bits, features=np.stack([truth + rng.normal(0, 0.2, 3), np.ones(3)], axis=1), weights="bit")
        g.at_most_one(bits, name="one")
        graphs.append(g)
        y.append(truth)
    problem = graph_problem(graphs, y)
    for loss, solver in (("hinge", "sdm"), ("crf", "lbfgs")):
        result = solve(problem, loss, solver, 2.0, tol=1e-3, max_epochs=100)
        assert result.primal == pytest.approx(primal_by_listing(problem, get_loss(loss), 2.0, result.w), rel=1e-6)
        out, _, _ = best_outputs(graph_problem(graphs), result.w)
        assert (out.reshape(4, 3) == np.stack(y)).all()
    with pytest.raises(ValueError, match="graph 0: the states that it is to learn are against the factor at_most_one 'one'"):
        graph_problem(graphs[:1], [np.ones(3, int)])


def test_single_variables_are_classes():
    rng = np.random.default_rng(0)
    x, classes = rng.normal(size=(12, 4)), rng.integers(0, 3, 12)
    graphs = []
    for row in x:
        g = FactorGraph()
        g.unary(g.variables(1, states=3), features=row[None], weights="node")
        graphs.append(g)
    one = solve(graph_problem(graphs, classes[:, None]), "hinge", "sdm", 0.5, tol=1e-5, max_epochs=300)
    other = solve(multiclass_problem(x, classes, 3), "hinge", "sdm", 0.5, tol=1e-5, max_epochs=300)
    assert one.primal == pytest.approx(other.primal, rel=1e-4)


def test_states_cannot_be_learnt_that_are_not_there():
    graphs, y = some_graphs(2)
    with pytest.raises(ValueError, match="graph 1, variable 0: its state must be an int from 0 to 2, or -1. Got 3"):
        graph_problem(graphs, [y[0], np.full(len(y[1]), 3)])
    with pytest.raises(ValueError, match="2 graphs and states of 1"):
        graph_problem(graphs, y[:1])
