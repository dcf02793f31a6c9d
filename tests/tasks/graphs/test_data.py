"""What a labeller of graphs is given: grids of pixels, and which labels of a multilabel problem go together."""

from __future__ import annotations

import numpy as np

from graph_cases import several
from partwise.tasks.graphs.data import chow_liu, grid


def test_neighbours():
    for neighbours, n in ((4, 2 * 2 + 3), (8, 2 * 2 + 3 + 2 * 2)):
        edges, directions = grid(2, 3, neighbours)
        assert len(edges) == n and directions.sum(axis=0).tolist() == [4, 3, 2, 2][: directions.shape[1]]
        steps = {0: 1, 1: 3, 2: 4, 3: 2}
        assert all(b - a == steps[int(d.argmax())] for (a, b), d in zip(edges.tolist(), directions, strict=True))


def test_tree_of_highest_mutual_information():
    y = several(200)[1]
    assert [0, 2] in chow_liu(y).tolist() and len(chow_liu(y)) == 2
    rng = np.random.default_rng(0)
    first = rng.integers(0, 2, 400)
    chain = [first]
    for _ in range(3):
        chain.append(np.where(rng.random(400) < 0.1, 1 - chain[-1], chain[-1]))
    assert chow_liu(np.stack([chain[2], chain[0], chain[3], chain[1]], axis=1)).tolist() == [[0, 2], [0, 3], [1, 3]]
    assert chow_liu(np.zeros((5, 1), int)).shape == (0, 2)
