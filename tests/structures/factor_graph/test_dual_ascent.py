"""Coordinate ascent before AD3: exact without cycles, and everywhere a bound that never rises and keeps what is best."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from partwise import FactorGraph

pytestmark = pytest.mark.interpreted


def pairs(rng, edges, n, states=3, forbidden=0.0, scale=1.0):
    """A graph of pairs, and the score of its best output by enumeration."""
    own = scale * rng.normal(size=(n, states))
    own[rng.random(own.shape) < forbidden] = -np.inf
    own[:, 0] = np.where(np.isfinite(own).any(axis=1), own[:, 0], 0.0)
    tables = [scale * rng.normal(size=(states, states)) for _ in edges]
    for table in tables:
        table[rng.random(table.shape) < forbidden] = -np.inf
    graph = FactorGraph()
    x = graph.variables((n,), states=states)
    graph.unary(x, own)
    for (a, b), table in zip(edges, tables, strict=True):
        graph.pairwise(x[a : a + 1], x[b : b + 1], table)
    scores = [
        sum(own[v, s] for v, s in enumerate(y)) + sum(t[y[a], y[b]] for (a, b), t in zip(edges, tables, strict=True))
        for y in itertools.product(range(states), repeat=n)
    ]
    return graph, max(scores)


@pytest.mark.parametrize("scale", [1.0, 1e6])
def test_it_is_exact_without_cycles(scale):
    for seed in range(15):
        rng = np.random.default_rng(seed)
        edges = [(int(rng.integers(v)), v) for v in range(1, 6)]
        graph, top = pairs(rng, edges, 6, scale=scale)
        found = graph.best("ad3")
        assert found.proven and found.value == pytest.approx(top, rel=1e-9) and found.n_iterations <= 20, seed


@pytest.mark.parametrize("forbidden", [0.0, 0.15])
def test_with_cycles_it_is_a_bound_that_never_rises_and_the_best_output_stays(forbidden):
    edges = list(itertools.combinations(range(5), 2))
    proven = 0
    for seed in range(25):
        graph, top = pairs(np.random.default_rng(seed), edges, 5, forbidden=forbidden)
        if top == -np.inf:
            continue
        found, exact = graph.best("ad3"), graph.best("exact")
        assert (found.bounds >= top - 1e-9).all() and (np.diff(found.bounds) <= 1e-12).all(), seed
        assert exact.proven and exact.value == pytest.approx(top, abs=1e-8), seed
        assert found.value <= top + 1e-9 and (not found.proven or found.value == pytest.approx(top, abs=1e-8)), seed
        proven += found.proven
    assert proven > 5
