"""Tiny factor graphs: forests and graphs with cycles, with soft and hard factors of every kind."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from partwise import FactorGraph, graph_problem, kernels

LOGIC = ("xor", "at_most_one", "or_", "imply", "and_out", "budget")


def some_literal(rng, variables, k):
    """A statement about variable k of a list: one of its states, or its negation."""
    x = variables[k]
    if x.is_bit:
        return x.is_(int(rng.integers(2)))
    literal = x.is_(int(rng.integers(x.n_states)))
    return ~literal if rng.random() < 0.3 else literal


def add_logic(rng, g, literals):
    """A hard factor of some kind over these."""
    kind = LOGIC[rng.integers(len(LOGIC))]
    if kind in ("imply", "and_out"):
        getattr(g, kind)(literals[:-1], literals[-1])
    elif kind == "budget":
        g.budget(literals, int(rng.integers(1, len(literals) + 1)))
    else:
        getattr(g, kind)(literals)


def random_graph(rng, learnt, cycles=False, scale=1.0):
    """Two variables of three states and three bits; each new one is tied to those before by one factor, or by more."""
    g = FactorGraph()
    x, b = g.variables(2, states=3), g.bits(3)
    variables = [x[0], b[0], b[1], x[1], b[2]]

    def scores(*shape):
        if learnt:
            return {"features": rng.normal(size=2)}
        return {"scores": rng.normal(size=shape) * scale}

    g.unary(
        x, **({"features": rng.normal(size=(2, 2)), "weights": "x"} if learnt else {"scores": rng.normal(size=(2, 3)) * scale})
    )
    g.unary(b, **({"features": rng.normal(size=(3, 2)), "weights": "b"} if learnt else {"scores": rng.normal(size=3) * scale}))
    k = 1
    while k < len(variables):
        u = int(rng.integers(k))
        choice = rng.random()
        pair = [variables[u], variables[k]]
        if choice < 0.5:
            name, tie = "".join("b" if v.is_bit else "x" for v in pair), None
            if learnt and name == "xx":
                tie = "potts"
            g.pairwise(*pair, **scores(*(v.n_states for v in pair)), weights=name, tie=tie)
        elif choice < 0.8 or k + 1 == len(variables):
            add_logic(rng, g, [some_literal(rng, variables, j) for j in (u, k)])
        else:
            add_logic(rng, g, [some_literal(rng, variables, j) for j in (u, k, k + 1)])
            k += 1
        k += 1
    if cycles:
        g.pairwise(x[0], x[1], **scores(3, 3), weights="cycle")
        g.dense([b[0], b[1], x[0]], **scores(2, 2, 3), weights="three")
        if rng.random() < 0.5:
            add_logic(rng, g, [some_literal(rng, variables, j) for j in rng.permutation(5)[:3]])
        if rng.random() < 0.3:
            g.one_of_k(x[1], b)
    return g


@st.composite
def forest_cases(draw):
    """Two forests with random weights (problem, w)."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    graphs, states = [], []
    while len(graphs) < 2:
        g = random_graph(rng, learnt=True)
        allowed = list(kernels.outputs(graph_problem([g]), 0))
        if allowed:
            graphs.append(g)
            states.append(allowed[rng.integers(len(allowed))])
    problem = graph_problem(graphs, states, costs=[rng.random(5) for _ in graphs])
    return problem, rng.normal(size=kernels.n_weights(problem)) * draw(st.sampled_from([0.0, 1.0, 30.0, 300.0]))


def every_output(g):
    """Outputs that are allowed, and their scores."""
    from partwise.structures.factor_graph.answers import scores_of

    problem = graph_problem([g])
    theta = scores_of(problem, 0, None)
    outputs = list(kernels.outputs(problem, 0))
    return np.array(outputs), np.array([kernels.value_of(problem, 0, theta, y) for y in outputs])


def paths(n=6, seed=0, edge_features=False):
    """Short paths whose labels come in runs; a node alone does not tell its label."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        k = int(rng.integers(3, 6))
        labels = np.cumsum(rng.random(k) < 0.4) % 3
        nodes = np.eye(3)[labels] + rng.normal(0, 0.3, (k, 3))
        edges = np.stack([np.arange(k - 1), np.arange(1, k)], axis=1)
        same = (labels[1:] == labels[:-1]).astype(float)[:, None]
        X.append((nodes, edges, same) if edge_features else (nodes, edges))
        y.append(np.array(["a", "b", "c"])[labels])
    return X, y


def several(n=24, seed=0):
    """Label 2 goes with label 0, label 1 by itself; the features tell of 0 and 1."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = np.stack([X[:, 0] > 0, X[:, 1] > 0.3, X[:, 0] > 0], axis=1).astype(int)
    X[:, 2:] *= 0.1
    return X, y
