"""Graphs of pairs, packed without a description: the same problem as `FactorGraph` makes, to the last bit."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse

from partwise import FactorGraph, graph_problem, interpret, kernels
from partwise.structures.factor_graph.description import WeightBlock
from partwise.structures.factor_graph.pairwise import arrange_pairs, excess, make_supermodular, pair_weights, pairwise_problem

EDGES = [np.array([[0, 1], [2, 1]]), np.zeros((0, 2), np.int64), np.array([[0, 1], [1, 2], [2, 0]])]
SIZES = [4, 2, 3]  # of the first graph, one node has no edge
SLOTS = {None: 9, "symmetric": 6, "antisymmetric": 3, "potts": 1}


@pytest.mark.parametrize("tie", list(SLOTS))
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
        quick = pairwise_problem(arranged, rows, pair_weights(4, 3, [tie, tie]), y, costs, {"sweeps": 7})
    assert type(quick) is type(slow)
    for name, a, b in zip(slow._fields, slow, quick, strict=True):
        for one, other in zip(a, b, strict=True) if name == "graphs" else [(a, b)]:
            np.testing.assert_array_equal(one, other, err_msg=name)
            assert getattr(one, "dtype", None) == getattr(other, "dtype", None), name


def test_each_feature_has_ties_of_its_own():
    weights = pair_weights(1, 3, ["potts", None, "antisymmetric", "symmetric", "potts"])
    assert weights.n_weights == 3 + 1 + 9 + 3 + 6 + 1 and weights.start.tolist() == [3, 4, 13, 16, 22]
    w = np.arange(1.0, 24.0)
    tables = [weights.table(w, k) for k in range(5)]
    np.testing.assert_array_equal(tables[0], 4.0 * np.eye(3))
    np.testing.assert_array_equal(tables[1], w[4:13].reshape(3, 3))
    assert tables[2][0, 1] == 14.0 and not np.diag(tables[2]).any()
    np.testing.assert_array_equal(tables[2], -tables[2].T)
    np.testing.assert_array_equal(tables[3], tables[3].T)
    x, other = np.array([[1.0, 2.0, -3.0, 0.5, 0.0]]), np.zeros_like(w)
    with interpret():
        arranged = [arrange_pairs(2, np.array([[0, 1]]), 3)]
        problem = pairwise_problem(arranged, [(np.zeros((2, 1)), x)], weights, np.array([0, 0]), None, {})
        theta = np.zeros(kernels.n_parts(problem, 0))
        kernels.score(problem, 0, w, theta)
        np.testing.assert_allclose(theta[6:].reshape(3, 3), sum(v * t for v, t in zip(x[0], tables, strict=True)))
        for y in itertools.product(range(3), repeat=2):  # scores are weights times features
            features = np.zeros_like(w)
            kernels.add_features(problem, 0, np.array(y), 1.0, features)
            assert features @ w == pytest.approx(theta[6:].reshape(3, 3)[y])
            kernels.difference(problem, 0, np.array([1, 2]), np.array(y), 1.0, other)
            other += features
        kernels.add_features(problem, 0, np.array([1, 2]), -9.0, other)
        np.testing.assert_allclose(other, 0.0, atol=1e-12)


@pytest.mark.parametrize("tie", ["symmetric", "antisymmetric", None])
def test_supermodular_is_what_is_left_of_any_weights(tie):
    weights = pair_weights(0, 4, [tie, tie])
    w = np.random.default_rng(0).normal(size=weights.n_weights)
    assert min(excess(weights.table(w, k)).min() for k in range(2)) < -0.1
    before = w.copy()
    make_supermodular(weights, w)
    for k in range(2):
        table = weights.table(w, k)
        assert excess(table).min() > -1e-12
        np.testing.assert_allclose(table[0], weights.table(before, k)[0])
    again = w.copy()
    make_supermodular(weights, again)
    np.testing.assert_allclose(again, w, atol=1e-12)
