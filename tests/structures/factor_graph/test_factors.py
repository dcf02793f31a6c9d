"""Knapsacks and head automata: best outputs, sums and bounds against enumeration."""

from __future__ import annotations

import numpy as np
import pytest

from graph_cases import every_output
from partwise import FactorGraph, graph_problem, interpret, solve

pytestmark = pytest.mark.interpreted


def check(g, bits):
    """Best output, log Z and marginals of a graph without cycles, against all its outputs."""
    outputs, values = every_output(g)
    answer = g.best()
    assert answer.proven and answer.value == pytest.approx(values.max(), abs=1e-9)
    beliefs = g.marginals()
    p = np.exp(values - values.max())
    log_z = np.log(p.sum()) + values.max()
    assert beliefs.converged and beliefs.log_partition == pytest.approx(log_z, abs=1e-8)
    np.testing.assert_allclose(beliefs.of(bits)[:, 1], (p[:, None] * outputs[:, bits.numbers]).sum(0) / p.sum(), atol=1e-8)


@pytest.mark.parametrize("seed", range(12))
def test_a_knapsack_alone_is_exact(seed):
    rng = np.random.default_rng(seed)
    g = FactorGraph()
    b, x = g.bits(5), g.variables((), states=3)
    scores = rng.normal(size=5) * (1e3 if seed == 3 else 2.0)
    if seed == 4:
        scores[2] = -np.inf
    g.unary(b, scores)
    g.unary(x, rng.normal(size=3))
    literals = [b[0], ~b[1], b[2:], x.is_(1)] if seed % 2 else [b[:], ~x.is_(2)]
    g.knapsack(literals, rng.integers(0, 5, 6), int(rng.integers(0, 12)) if seed else 0)
    check(g, b)


def test_knapsacks_that_share_bits():
    """With cycles: AD3's bound, exact answers, and HiGHS as a referee."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        g = FactorGraph()
        b = g.bits(6)
        g.unary(b, rng.normal(1.0, 1.0, size=6))
        g.knapsack([b[:4]], [2, 3, 1, 2], 4, name="first")
        g.knapsack(np.array([b[2], b[3], b[4], b[5]], object).tolist(), [1, 2, 2, 3], 5)
        g.pairwise(b[0], b[5], rng.normal(size=(2, 2)))
        top = every_output(g)[1].max()
        exact, relaxed = g.best("exact"), g.best("ad3")
        assert exact.value == pytest.approx(top, abs=1e-7) == g.best("highs").value
        assert (relaxed.bounds >= top - 1e-7).all() and relaxed.bounds[-1] <= g.best("lp").value + 1e-4


def test_a_knapsack_of_ones_is_a_budget():
    rng = np.random.default_rng(0)
    scores, found = rng.normal(0.5, 1.0, 5), []
    for add in (lambda g, b: g.knapsack(b, [1] * 5, 2), lambda g, b: g.budget(b, 2)):
        g = FactorGraph()
        b = g.bits(5)
        g.unary(b, scores)
        add(g, b)
        found.append((g.best().of(b).tolist(), g.marginals().log_partition))
    assert found[0][0] == found[1][0] and found[0][1] == pytest.approx(found[1][1])


def head_graph(rng, G, L, R):
    g = FactorGraph()
    x = g.variables((), states=G) if G else None
    arcs = g.bits(L + R)
    if G:
        g.unary(x, rng.normal(size=G))
    g.unary(arcs, rng.normal(size=L + R))
    given = {"siblings": (rng.normal(size=(L, L)), rng.normal(size=(R, R)))}
    if G:
        given["grandparents"] = rng.normal(size=(G, L + R))
    g.head(x, arcs[:L] if L else (), arcs[L:] if R else (), **given)
    return g, x, arcs, given


@pytest.mark.parametrize(("G", "L", "R"), [(0, 3, 0), (0, 2, 2), (3, 2, 1), (2, 0, 3), (4, 1, 2)])
def test_a_head_automaton_scores_siblings_and_grandparents(G, L, R):
    """By its definition: each arc with the one before it on its side, and with the word's head."""
    g, x, arcs, given = head_graph(np.random.default_rng(G), G, L, R)
    check(g, arcs)
    outputs, values = every_output(g)
    for y, value in zip(outputs.tolist(), values, strict=True):
        wanted = 0.0
        held = y[1:] if G else y
        for side, of in enumerate((held[:L], held[L:])):
            before = 0
            for m, on in enumerate(of):
                if on:
                    wanted += given["siblings"][side][m, before]
                    before = m + 1
                    if G:
                        wanted += given["grandparents"][y[0], m + side * L]
        for v, scored in g.describe().unary:
            for k, place in enumerate(v):
                row = scored.given[k]
                wanted += row[y[place]] if len(row) > 1 else row[0] * y[place]
        assert value == pytest.approx(wanted)


def test_heads_in_a_tree():
    """Second-order parsing, written as a graph: the arcs are a tree, and every word is a head automaton."""
    rng = np.random.default_rng(5)
    n = 3
    g = FactorGraph()
    heads, words = zip(*[(h, m) for m in range(1, n + 1) for h in range(n + 1) if h != m], strict=True)
    arcs = g.bits(len(heads))
    g.unary(arcs, rng.normal(size=len(heads)))
    g.tree(arcs, heads, words)
    number = {arc: k for k, arc in enumerate(zip(heads, words, strict=True))}
    for h in range(n + 1):
        left = [arcs[number[h, m]] for m in range(h - 1, 0, -1)]
        right = [arcs[number[h, m]] for m in range(h + 1, n + 1)]
        siblings = tuple(rng.normal(size=(len(side), len(side))) for side in (left, right))
        g.head(None, left, right, siblings=siblings)
    top = every_output(g)[1].max()
    assert g.best("exact").value == pytest.approx(top, abs=1e-7)
    assert g.best("ad3").bounds[-1] >= top - 1e-7


def test_learning_with_a_knapsack():
    """Weights of bits below a knapsack, which holds in training too."""
    rng = np.random.default_rng(0)
    graphs, bits, y = [], [], []
    for _ in range(6):
        g = FactorGraph()
        b = g.bits(4)
        x = rng.normal(size=(4, 2))
        g.unary(b, features=x, weights="item")
        g.knapsack(b, [1, 2, 3, 1], 4)
        graphs.append(g)
        bits.append(b)
        y.append(g.best(w=np.array([2.0, -1.0])).of(b))
    with interpret():
        problem = graph_problem(graphs, y)
        result = solve(problem, "crf", "lbfgs", 1000.0, max_epochs=200)
        assert result.converged
        assert [g.best(w=result.w).of(b).tolist() for g, b in zip(graphs, bits, strict=True)] == [t.tolist() for t in y]
        with pytest.raises(ValueError, match="graph 0: the states that it is to learn are against the factor knapsack"):
            graph_problem(graphs, [[1, 1, 1, 1], *y[1:]])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda g, b, x: g.knapsack(b, [1, 2], 3), "expected 3 costs, one for each literal. Got shape"),
        (lambda g, b, x: g.knapsack(b, [1, 2, 0.5], 3), "must be whole numbers from 0 on"),
        (lambda g, b, x: g.knapsack(b, [1, 2, -1], 3, name="room"), "'costs' of knapsack 'room' must be whole"),
        (lambda g, b, x: g.knapsack(b, [1, 2, 3], -1), "'most' parameter of knapsack"),
        (lambda g, b, x: g.head(x, (), ()), "there are no arcs"),
        (lambda g, b, x: g.head(b, b[:1], ()), "one variable of k states"),
        (lambda g, b, x: g.head(x, b[:1], b[1:], grandparents=np.zeros((2, 3))), "grandparents must have shape \\(3, 3\\)"),
        (lambda g, b, x: g.head(x, b[:1], b[1:], siblings=([0.0], np.zeros((3, 3)))), "siblings must be arrays \\(1, 1\\) and"),
        (lambda g, b, x: g.head(x, b[:1], b[:2]), "a variable is in it twice"),
        (lambda g, b, x: g.head(None, [~b[0]], b[1:]), "arcs cannot be negated"),
        (lambda g, b, x: g.head(x, b, (), grandparents=np.full((3, 3), np.nan)), "must be numbers"),
    ],
)
def test_what_is_refused(make, words):
    g = FactorGraph()
    with pytest.raises(ValueError, match=words):
        make(g, g.bits(3), g.variables((), states=3))


def test_what_cannot_be_spent_is_named():
    g = FactorGraph()
    b = g.bits(3)
    g.knapsack(b, [2, 2, 2], 3, name="room")
    g.and_out([b[0]], b[1])
    g.or_([b[0], b[1]], name="any")
    with pytest.raises(ValueError, match="knapsack 'room'.*or 'any'|or 'any'.*knapsack 'room'"):
        g.best()


LOGIC = {
    "xor": lambda holds: sum(holds) == 1,
    "at_most_one": lambda holds: sum(holds) <= 1,
    "or_": any,
    "imply": lambda holds: holds[-1] or not all(holds[:-1]),
    "and_out": lambda holds: holds[-1] == all(holds[:-1]),
    "budget": lambda holds: sum(holds) <= 2,
    "knapsack": lambda holds: 1 * holds[0] + 2 * holds[1] + 3 * holds[2] + 1 * holds[3] <= 4,
}


@pytest.mark.parametrize("kind", LOGIC)
def test_two_statements_about_one_variable(kind):
    """Two states of one variable in one factor, and a bit with its negation, against the meaning of the words."""
    rng = np.random.default_rng(len(kind))
    g = FactorGraph()
    x, b = g.variables((), states=4), g.bits(2)
    scores, odds = rng.normal(size=4), rng.normal(size=2)
    g.unary(x, scores)
    g.unary(b, odds)
    literals = [x.is_(1), b[0], ~x.is_(3), b[1]]
    if kind in ("imply", "and_out"):
        getattr(g, kind)(literals[:-1], literals[-1])
    else:
        getattr(g, kind)(literals, *{"budget": [2], "knapsack": [[1, 2, 3, 1], 4]}.get(kind, []))
    outputs, values = every_output(g)
    found = {tuple(y): v for y, v in zip(outputs.tolist(), values, strict=True) if v > -np.inf}
    wanted = {}
    for y in np.ndindex(4, 2, 2):
        if LOGIC[kind]([y[0] == 1, y[1] == 1, y[0] != 3, y[2] == 1]):
            wanted[y] = scores[y[0]] + odds @ y[1:]
    assert found == pytest.approx(wanted)
    assert g.best().value == pytest.approx(max(wanted.values())) == g.best("exact").value
    assert g.marginals().log_partition == pytest.approx(np.logaddexp.reduce(list(wanted.values())))


def test_statements_about_one_variable_alone():
    g = FactorGraph()
    x, b = g.variables((), states=3), g.bits(2)
    g.unary(x, [3.0, 2.0, 1.0])
    g.or_([x.is_(1), x.is_(2)])
    g.xor([b[0], b[0], b[1]])  # b[0] cannot hold, so b[1] does
    answer = g.best()
    assert int(answer.of(x)) == 1 and answer.of(b).tolist() == [0, 1] and answer.value == 2.0
    many = FactorGraph()
    bits = many.bits(17)
    with pytest.raises(ValueError, match="or: a variable is in it twice, and its table would have 131072 entries"):
        many.or_([bits, bits[0]])
    with pytest.raises(ValueError, match="tree: an arc is given twice|tree: a variable is in it twice"):
        many.tree([bits[0], bits[0]], [0, 1], [1, 2])


def test_variables_with_one_state():
    """They are what they are: tables have an axis of one for them."""
    rng = np.random.default_rng(0)
    g, plain = FactorGraph(), FactorGraph()
    x, one, z = g.variables(2, states=3), g.variables(2, states=1), g.bits(1)
    px, pz = plain.variables(2, states=3), plain.bits(1)
    own, pair, three, unary = (
        rng.normal(size=(2, 3)),
        rng.normal(size=(3, 1)),
        rng.normal(size=(1, 3, 2)),
        rng.normal(size=(2, 1)),
    )
    g.unary(x, own)
    g.unary(one, unary)
    g.pairwise(x, one, pair)
    g.dense([one[0], x[1], z[0]], three)
    g.or_([~one[1].is_(0), z[0]])
    plain.unary(px, own + pair[:, 0])
    plain.pairwise(px[1], pz[0], three[0])
    plain.xor([pz[0]])
    a, b = g.best(), plain.best()
    assert a.value == pytest.approx(b.value + unary.sum()) and a.of(x).tolist() == b.of(px).tolist()
    assert a.of(one).tolist() == [0, 0]
    p, q = g.marginals(), plain.marginals()
    assert p.log_partition == pytest.approx(q.log_partition + unary.sum()) and p.of(one).tolist() == [[1.0], [1.0]]
    np.testing.assert_allclose(p.of(x), q.of(px), atol=1e-9)
    with pytest.raises(ValueError, match="has no code"):
        g.one_of_k(one[0], z)


def test_weights_of_tables_with_variables_of_one_state():
    def graph(size):
        g = FactorGraph()
        x, one = g.variables((), states=3), g.variables((), states=1)
        g.pairwise(x, one, features=[size, 1.0], weights="pair")
        return g, x

    graphs, xs = zip(*[graph(size) for size in (-1.0, 2.0, 0.5)], strict=True)
    with interpret():
        problem = graph_problem(graphs, [[0, 0], [2, 0], [1, 0]])
        result = solve(problem, "crf", "lbfgs", 100.0, max_epochs=100)
    assert result.w.size == 6  # two features, three entries
    assert [int(g.best(w=result.w).of(x)) for g, x in zip(graphs, xs, strict=True)] == [0, 2, 1]
