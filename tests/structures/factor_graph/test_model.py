"""Factor graphs: oracles against enumeration and HiGHS, bounds, messages, what they refuse."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

import partwise
from graph_cases import every_output, forest_cases, random_graph
from oracle_checks import check_features, check_oracles
from partwise import FactorGraph, graph_families, graph_problem, kernels
from partwise.structures.factor_graph.answers import Answer
from partwise.structures.factor_graph.layout import FactorLayout, TreeLayout
from partwise.structures.factor_graph.problem import view

pytestmark = pytest.mark.interpreted


def check_forests(case):
    problem, w = case
    assert problem.forest.all()
    check_oracles(problem, w, digits=1e-9)
    check_features(problem, w)


@settings(max_examples=12, deadline=None)
@given(forest_cases())
def test_oracles_of_forests_equal_enumeration(case):
    with partwise.interpret():  # compiling all of them takes a minute
        check_forests(case)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(forest_cases())
def test_compiled_oracles_of_forests_equal_enumeration(case):
    check_forests(case)


def graphs_with_cycles(n):
    for seed in range(n):
        g = random_graph(np.random.default_rng(seed), learnt=False, cycles=True, scale=2.0)
        outputs, values = every_output(g)
        if len(outputs):
            yield g, outputs, values


def test_ad3_lies_between_the_best_output_and_nothing_below_the_linear_program():
    proven = 0
    for g, _, values in graphs_with_cycles(60):
        found, lp, top = g.best("ad3"), g.best("lp").value, values.max()
        assert lp >= top - 1e-7
        assert (found.bounds >= lp - 1e-6).all(), "a bound that is none"
        assert found.bounds[-1] <= lp + 1e-5 * (1 + abs(lp)), "not converged to the linear program"
        assert found.value <= top + 1e-9
        if found.proven:
            assert found.value == pytest.approx(top, abs=1e-7)
            proven += 1
    assert proven > 20


def test_exact_answers_are_the_best_of_all():
    for g, outputs, values in graphs_with_cycles(60):
        top = values.max()
        for method in ("exact", "highs"):
            found = g.best(method)
            assert found.value == pytest.approx(top, abs=1e-6), method
            assert values[(outputs == found.states).all(axis=1)] == pytest.approx(top, abs=1e-6)


def test_loopy_marginals_are_close_and_their_sums_one():
    off = []
    for g, outputs, values in graphs_with_cycles(40):
        beliefs = g.marginals(sweeps=300, damping=0.3)
        if not beliefs.converged:
            continue
        p = np.exp(values - values.max())
        p /= p.sum()
        off.append(abs(beliefs.literals[0] - p[outputs[:, 0] == 0].sum()))
        assert beliefs.literals[:3].sum() == pytest.approx(1.0)
    assert len(off) > 15 and np.median(off) < 0.05


def test_the_residual_schedule_finds_the_same_beliefs():
    same = 0
    for g, _, _ in graphs_with_cycles(20):
        sweeps, residual = g.marginals(sweeps=300, damping=0.3), g.marginals(sweeps=300, damping=0.3, residual=True)
        if sweeps.converged and residual.converged:
            np.testing.assert_allclose(sweeps.literals, residual.literals, atol=1e-3)
            same += 1
    assert same > 8


def test_belief_propagation_says_when_it_has_not_converged():
    g = FactorGraph()
    b = g.bits(3)
    g.pairwise(b[[0, 1, 2]], b[[1, 2, 0]], 4.0 * (1 - np.eye(2)))  # frustrated
    g.unary(b, [0.1, 0.2, -0.3])
    assert not g.marginals(sweeps=2).converged
    assert g.marginals(sweeps=500, damping=0.5).converged


def test_a_grid_of_pixels():
    rng = np.random.default_rng(0)
    g = FactorGraph()
    x = g.variables((6, 5), states=3)
    g.unary(x, rng.normal(size=(6, 5, 3)))
    g.pairwise(x[:-1], x[1:], np.eye(3))
    g.pairwise(x[:, :-1], x[:, 1:], np.eye(3))
    found = g.best("exact")
    assert isinstance(found, Answer) and found.proven and found.of(x).shape == (6, 5)
    assert found.value == pytest.approx(g.best("highs").value, abs=1e-6)
    assert g.marginals(damping=0.3).of(x).shape == (6, 5, 3)
    bounds = g.best("ad3").bounds
    assert (np.diff(bounds) <= 1e-12).all() and bounds[-1] >= found.value - 1e-9


def tree_graph(rng, n, **kind):
    g = FactorGraph()
    heads, words = np.array([(h, m) for m in range(1, n + 1) for h in range(n + 1) if h != m]).T
    arcs = g.bits(len(heads))
    g.unary(arcs, rng.normal(size=len(heads)) * 2)
    g.tree(arcs, heads, words, **kind)
    return g, arcs, heads, words


@pytest.mark.parametrize("kind", [{}, {"single_root": False}, {"projective": True}])
def test_a_tree_factor_alone_is_exact(kind):
    g, _, _, _ = tree_graph(np.random.default_rng(1), 3, **kind)
    outputs, values = every_output(g)
    assert len(outputs) == {(): 9, ("single_root",): 16, ("projective",): 7}[tuple(kind)]
    assert g.best().value == pytest.approx(values.max(), abs=1e-9)
    p = np.exp(values - np.logaddexp.reduce(values))
    beliefs = g.marginals()
    assert beliefs.log_partition == pytest.approx(np.logaddexp.reduce(values), abs=1e-9)
    np.testing.assert_allclose(beliefs.literals, p @ outputs, atol=1e-9)


def test_a_tree_with_other_factors():
    """Arcs that exclude each other, on top of a tree: AD3's bound meets the linear program over flows; exact answers agree."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        g, arcs, heads, _ = tree_graph(rng, 3)
        g.budget(arcs[heads == 1], 1)
        g.pairwise(arcs[:3], arcs[3:6], rng.normal(size=(3, 2, 2)) * 2)
        _, values = every_output(g)
        lp, found = g.best("lp").value, g.best("ad3")
        assert found.bounds[-1] == pytest.approx(lp, abs=1e-4) and lp >= values.max() - 1e-7
        for method in ("exact", "highs"):
            assert g.best(method).value == pytest.approx(values.max(), abs=1e-6)


def test_factors_that_cannot_hold_together_are_named():
    g = FactorGraph()
    b, c = g.bits(3), g.bits(2)
    g.unary(b, [1.0, 2.0, 3.0])
    g.xor(b, name="one of three")
    g.or_(c, name="irrelevant")
    g.budget(b, 0, name="none at all")
    for ask in (g.best, g.marginals, lambda: g.best("exact"), lambda: g.best("highs")):
        with pytest.raises(ValueError, match="cannot hold together: xor 'one of three', budget 'none at all'"):
            ask()
    free = FactorGraph()
    x = free.variables(1, states=2)
    free.unary(x, [[-np.inf, -np.inf]])
    with pytest.raises(ValueError, match="no state whose score is not -inf"):
        free.best()


def test_forbidden_states_are_never_taken():
    g = FactorGraph()
    x = g.variables(2, states=2)
    g.unary(x, [[-np.inf, 0.0], [5.0, 0.0]])
    g.pairwise(x[0], x[1], [[0.0, 0.0], [-np.inf, 0.0]])
    assert g.best().states.tolist() == [1, 1] and g.best("ad3").states.tolist() == [1, 1]
    np.testing.assert_allclose(g.marginals().of(x), [[0, 1], [0, 1]])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda g, x, b: g.unary(x, np.zeros((2, 4))), "scores must have shape"),
        (lambda g, x, b: g.unary(x, np.full((2, 3), np.nan)), "unary 0: scores must be numbers"),
        (lambda g, x, b: g.unary(x, features=[[1.0], [np.inf]]), "unary 1, feature 0: features must be finite"),
        (lambda g, x, b: g.unary(x), "either scores or features"),
        (lambda g, x, b: g.pairwise(x[0], x[0], np.zeros((3, 3))), "in it twice"),
        (lambda g, x, b: g.dense([x[0]], np.zeros(3)), "two variables or more"),
        (lambda g, x, b: g.xor([]), "Expected bits"),
        (lambda g, x, b: g.xor(x), "Say which of its 3 states"),
        (lambda g, x, b: g.xor(~x), "Only bits can be negated"),
        (lambda g, x, b: x.is_(3), "the states 0 to 2"),
        (lambda g, x, b: g.budget(b, -1), "must be an int in the range"),
        (lambda g, x, b: g.one_of_k(x[0], b[:2]), "each of the 3 states"),
        (lambda g, x, b: g.tree(b, [0, 0, 4], [1, 2, 3]), "heads must be 0"),
        (lambda g, x, b: g.tree(b, [0, 0], [1, 2]), "3 arcs, 2 heads"),
        (lambda g, x, b: g.tree(b, [0, 0, 0], [1, 2, 2]), "given twice"),
        (lambda g, x, b: g.variables(2, states=0), "must be an int in the range"),
        (lambda g, x, b: g.pairwise(x[0], b[0], tie="potts"), "must be one of 'symmetric'"),
        (lambda g, x, b: g.best("guess"), "must be one of auto, ad3"),
        (lambda g, x, b: g.best(sweep=3), "Unknown options"),
        (lambda g, x, b: g.marginals(damping=1.0), "must be a float in the range"),
    ],
)
def test_what_is_refused(make, words):
    g = FactorGraph()
    x, b = g.variables(2, states=3), g.bits(3)
    with pytest.raises((ValueError, TypeError), match=words):
        make(g, x, b)


def test_training_outputs_are_checked():
    g = FactorGraph()
    b = g.bits(2)
    g.unary(b, features=np.ones((2, 1)))
    g.xor(b, name="one")
    with pytest.raises(ValueError, match="graph 0: the states that it is to learn are against the factor xor 'one'"):
        graph_problem([g], [[1, 1]])
    with pytest.raises(ValueError, match="graph 0, variable 1: its state must be an int from 0 to 1, or -1. Got 2"):
        graph_problem([g], [[1, 2]])
    with pytest.raises(ValueError, match="expected 2 states, got 3"):
        graph_problem([g], [[1, 0, 0]])
    with pytest.raises(ValueError, match="1 graphs and states of 2"):
        graph_problem([g], [[1, 0], [0, 1]])
    other = FactorGraph()
    other.unary(other.bits(2), features=np.ones((2, 3)))
    with pytest.raises(ValueError, match="graph 1: weights='unary'"):
        graph_problem([g, other])


def test_weights_are_learnt_and_found_again():
    """Variables that like to be equal, and hidden ones: one in three is not known."""
    rng = np.random.default_rng(0)
    graphs, states = [], []
    for _ in range(12):
        y = np.repeat(rng.integers(0, 2, 3), 3)
        g = FactorGraph()
        x = g.variables(9, states=2)
        g.unary(x, features=(y + rng.normal(size=9))[:, None] * [1.0, 0.0] + [0.0, 1.0], weights="node")
        g.pairwise(x[:-1], x[1:], weights="edge", tie="potts")
        graphs.append(g)
        states.append(y)
    families = graph_families(graphs)
    assert [f.n_weights for f in families.values()] == [4, 1]
    known = [np.where(np.arange(9) % 3 == 1, -1, y) for y in states]
    with partwise.interpret():
        result = partwise.solve(graph_problem(graphs, states), "crf", "lbfgs", C=1.0, tol=1e-2)
        hidden = partwise.solve(graph_problem(graphs, known), "crf", "lbfgs", C=1.0, tol=1e-2)
    assert result.converged and result.w[families["edge"].start] > 0.5
    found = [g.best(w=hidden.w, families=families).states for g in graphs]
    assert np.mean(np.concatenate(found) == np.concatenate(states)) > 0.7


def test_kernels_know_what_was_not_proven():
    """A frustrated triangle: AD3 alone leaves a gap, branch and bound does not."""
    g = FactorGraph()
    x = g.variables(3, states=2)
    g.pairwise(x[[0, 1, 2]], x[[1, 2, 0]], 1.0 - np.eye(2))
    g.unary(x, features=np.zeros((3, 1)))
    for exact, status in ((False, 1), (True, 0)):
        problem = graph_problem([g], exact=exact)
        theta = np.zeros(kernels.n_parts(problem, 0))
        kernels.score(problem, 0, np.zeros(2), theta)
        y = np.zeros(3, np.int32)
        assert kernels.best(problem, 0, theta, y) == 2.0 and problem.status[0] == status
        assert kernels.is_exact(problem) == exact


def test_only_graphs_with_trees_carry_their_code():
    """The class of the layout decides what is compiled; taking graphs out, and looking at one, keep it."""
    plain, tree = FactorGraph(), FactorGraph()
    plain.xor(plain.bits(3))
    tree.tree(tree.bits(2), [0, 1], [1, 2])
    for graphs, kind in (([plain], FactorLayout), ([tree], TreeLayout), ([plain, tree], TreeLayout)):
        problem = graph_problem(graphs)
        assert type(problem.graphs) is kind and type(view(problem, 0)) is kind
        assert type(kernels.take(problem, np.array([0])).graphs) is kind
