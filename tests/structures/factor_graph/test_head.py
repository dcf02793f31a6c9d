"""The factor HEAD: the best configuration with each head, many heads at once, is that found head by head."""

from __future__ import annotations

import numpy as np
import pytest

from partwise.engine.compilation import compiled_loop
from partwise.structures.factor_graph.head import best_by_head, best_side, n_entries


@compiled_loop
def in_both_ways(table, scores, G, L, R, one_by_one):
    """Together, and one after the other into `one_by_one`."""
    best, back = np.empty(max(L, R)), np.empty(max(L, R), np.int32)
    for g in range(max(G, 1)):
        one_by_one[g] = scores[g] if G else 0.0
        for side in range(2):
            one_by_one[g] += best_side(table, scores, G, L, R, g, side, best, back)[0]
    return best_by_head(table, scores, G, L, R)


@pytest.mark.parametrize("sizes", [(0, 0, 5), (1, 3, 2), (8, 4, 0), (11, 6, 7), (17, 1, 1)])
def test_heads_together_are_heads_one_by_one(sizes):
    G, L, R = sizes
    rng = np.random.default_rng(G)
    table, scores, found = rng.normal(size=n_entries(G, L, R)), rng.normal(size=G + L + R), np.zeros(max(G, 1))
    scores[: G // 2] = -np.inf
    together = in_both_ways(table, scores, G, L, R, found)
    np.testing.assert_allclose(together[: max(G, 1)], found, rtol=1e-13)
    assert (together[max(G, 1) :] == -np.inf).all()
