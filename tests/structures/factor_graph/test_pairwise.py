"""Graphs of pairs, packed without a description: the same problem as `FactorGraph` makes, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from partwise import FactorGraph, graph_problem, interpret
from partwise.structures.factor_graph.description import WeightBlock
from partwise.structures.factor_graph.pairwise import arrange_pairs, pairwise_problem

EDGES = [np.array([[0, 1], [2, 1]]), np.zeros((0, 2), np.int64), np.array([[0, 1], [1, 2], [2, 0]])]
SIZES = [4, 2, 3]  # of the first graph, one node has no edge
SLOTS = {None: 9, "symmetric": 6, "potts": 1}


@pytest.mark.parametrize("tie", [None, "symmetric", "potts"])
@pytest.mark.parametrize("known", [None, 1.0, 0.7])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_same_as_by_description(tie, known, sparse):
    rng = np.random.default_rng(0)
    nodes = [np.where(rng.random((n, 4)) < 0.3, 0.0, rng.normal(size=(n, 4))) for n in SIZES]
    edges = [rng.normal(size=(len(e), 2)) for e in EDGES]
    y = None if known is None else np.where(rng.random(sum(SIZES)) < known, rng.integers(0, 3, sum(SIZES)), -1)
    costs = rng.random(sum(SIZES))
    blocks = {"node": WeightBlock(0, 4, 3), "edge": WeightBlock(12, 2, SLOTS[tie])}
    graphs = []
    for n, ends, x, features in zip(SIZES, EDGES, nodes, edges, strict=True):
        g = FactorGraph()
        v = g.variables(n, states=3)
        g.unary(v, features=x, weights="node")
        if len(ends):
            g.pairwise(v[ends[:, 0]], v[ends[:, 1]], features=features, weights="edge", tie=tie)
        graphs.append(g)
    cuts = np.cumsum(SIZES)[:-1]
    rows = zip([scipy.sparse.csr_matrix(x) for x in nodes] if sparse else nodes, edges, strict=True)
    with interpret():
        given = None if y is None else np.split(y, cuts)
        slow = graph_problem(graphs, given, families=blocks, costs=np.split(costs, cuts), sweeps=7)
        arranged = [arrange_pairs(n, ends, 3) for n, ends in zip(SIZES, EDGES, strict=True)]
        quick = pairwise_problem(arranged, rows, blocks, 3, tie, y, costs, {"sweeps": 7})
    assert type(quick) is type(slow)
    for name, a, b in zip(slow._fields, slow, quick, strict=True):
        for one, other in zip(a, b, strict=True) if name == "graphs" else [(a, b)]:
            np.testing.assert_array_equal(one, other, err_msg=name)
            assert getattr(one, "dtype", None) == getattr(other, "dtype", None), name
