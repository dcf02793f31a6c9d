"""Sums over factor graphs: the bound of tree-reweighted belief propagation, and what is learnt with it, against enumeration."""

from __future__ import annotations

import numpy as np
import pytest

import partwise
from graph_cases import every_output, random_graph
from partwise import FactorGraph, graph_problem, kernels, solve
from partwise.structures.factor_graph.sums import cover

pytestmark = pytest.mark.interpreted


def log_sum(values):
    return np.logaddexp.reduce(values)


@pytest.mark.parametrize("scale", [0.3, 2.0, 8.0])
def test_the_bound_is_never_below_log_z(scale):
    """All kinds of factors, cycles, weak and strong scores; messages that have converged, and that had no time to."""
    seen = 0
    for seed in range(25):
        g = random_graph(np.random.default_rng(seed), learnt=False, cycles=True, scale=scale)
        values = every_output(g)[1]
        if len(values):
            for search in ({"sweeps": 1}, {"sweeps": 30}, {"sweeps": 30, "damping": 0.0}, {"residual": True, "sweeps": 5}):
                assert g.marginals(sums="trw", **search).log_partition >= log_sum(values) - 1e-9, (seed, search)
            seen += 1
    assert seen > 15


def loop(n, rng, scale=1.0):
    """n variables of three states in a ring."""
    g = FactorGraph()
    x = g.variables(n, states=3)
    g.unary(x, rng.normal(size=(n, 3)))
    g.pairwise(x, x[np.r_[1:n, 0]], scale * rng.normal(size=(n, 3, 3)))
    return g, x


def test_the_bound_is_close_where_scores_are_weak_and_exact_in_forests():
    g, x = loop(4, np.random.default_rng(0), scale=0.3)
    truth = log_sum(every_output(g)[1])
    bound = g.marginals(sums="trw", sweeps=200, change=1e-10)
    assert bound.converged and truth - 1e-9 <= bound.log_partition <= truth + 0.02
    np.testing.assert_allclose(bound.of(x).sum(axis=-1), 1.0)
    tree = FactorGraph()
    y = tree.variables(3, states=2)
    tree.pairwise(y[:-1], y[1:], np.eye(2))
    assert tree.marginals(sums="trw").log_partition == pytest.approx(log_sum(every_output(tree)[1]), abs=1e-12)


def test_marginals_are_the_derivatives_of_the_bound():
    g, _ = loop(3, np.random.default_rng(1))
    problem = graph_problem([g], sums="trw", sweeps=2000, change=1e-13)
    theta, n = problem.given.copy(), len(problem.given)
    parts, other = np.zeros(n), np.zeros(n)
    kernels.expected(problem, 0, theta, parts)
    assert problem.status[0] == 0
    for k in range(0, n, 5):
        slope = 0.0
        for sign in (1.0, -1.0):
            moved = theta.copy()
            moved[k] += sign * 1e-5
            slope += sign * kernels.expected(problem, 0, moved, other) / 2e-5
        assert slope == pytest.approx(parts[k], abs=1e-6)


def test_forests_have_every_factor_and_no_cycle():
    for seed in range(10):
        problem = graph_problem([random_graph(np.random.default_rng(seed), learnt=False, cycles=True)])
        graph = problem.graphs
        weight, members = cover(graph, problem.order)
        assert weight.sum() == pytest.approx(1.0) and (members.sum(axis=0) > 0).all()
        for row in members:
            tied = np.arange(len(graph.states))
            for f in np.flatnonzero(row):
                here = np.unique(graph.owner[graph.literal[graph.ports[f] : graph.ports[f + 1]]])
                assert len(np.unique(tied[here])) == len(here), "a cycle"
                tied[np.isin(tied, tied[here])] = tied[here[0]]


def everyone_agrees(n=5, **search):
    """Five bits, all pairs of them: with a strong weight for being equal Bethe's sum is below the score of the truth."""
    g = FactorGraph()
    x = g.variables(n, states=2)
    a, b = np.triu_indices(n, 1)
    g.pairwise(x[a], x[b], features=np.ones((len(a), 1)), weights="edge", tie="potts")
    return graph_problem([g, g], [np.zeros(n, int), np.ones(n, int)], **search)


@pytest.mark.parametrize("solver", ["lbfgs", "bmrm", "dca", "pegasos"])
def test_a_loss_below_zero_is_never_called_optimal(solver):
    """With Bethe's sum every weight above 0.88 has a loss below zero: no solver goes far into it, or says that it is done."""
    result = solve(everyone_agrees(), "crf", solver, C=10.0, max_epochs=5, tol=1e-2)
    assert result.primal >= 0.0
    if solver == "dca":
        assert result.status == "approximate" and "no example has a loss above zero" in result.message
    elif solver == "bmrm":  # the edge of what the oracle gets wrong, where the loss is zero, is the optimum that is left
        assert result.converged == ("approximate oracle" in result.message)
    else:
        assert not result.converged


def test_examples_that_were_skipped_are_counted():
    result = solve(everyone_agrees(), "crf", "dca", C=10.0, max_epochs=1, start=np.array([3.0]))
    assert result.n_skipped == 2 and not result.converged and result.w[0] == 3.0
    assert result.primal == 4.5  # they count as nothing
    result = solve(everyone_agrees(sums="trw"), "crf", "dca", C=10.0, max_epochs=1, start=np.array([3.0]))
    assert result.n_skipped == 0 and result.primal > 4.5


def test_with_the_bound_no_loss_is_below_zero_and_the_objective_is_one():
    problem = everyone_agrees(sums="trw", sweeps=300)
    result = solve(problem, "crf", "lbfgs", C=10.0, tol=1e-3)
    assert result.converged and result.n_skipped == 0 and "as far as it sees" in result.message
    (w,) = result.w
    outputs = [np.array(y) for y in np.ndindex(*(2,) * 5)]
    scores = [w * sum(y[i] == y[j] for i in range(5) for j in range(i)) for y in outputs]
    truth = 0.5 * w * w + 10.0 * 2 * (log_sum(scores) - 10 * w)
    assert result.primal >= truth
    assert w > 0.5


def test_what_sums_can_be():
    with pytest.raises(ValueError, match=r"'sums' option must be one of bethe, trw. Got 'exact'"):
        everyone_agrees(sums="exact")
    with pytest.raises(TypeError, match=r"Unknown options \['summs'\]; there are .*sums"):
        everyone_agrees(summs="trw")
    with pytest.raises(ValueError, match="search"):
        partwise.GraphLabeler(search={"sums": "exact"}).fit(np.zeros((2, 2, 2, 1)), np.zeros((2, 2, 2), int))
