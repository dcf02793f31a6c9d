"""Vectors as values: compiled, and as small arrays of numpy, they are the same."""

from __future__ import annotations

import numpy as np
import pytest

from partwise.engine.compilation import compiled_loop
from partwise.engine.lanes import (
    above,
    at_least,
    chosen,
    first_lane,
    lanes_of,
    largest,
    load,
    moved_down,
    plus,
    spread,
    store,
    transpose,
    with_bit,
)


@compiled_loop
def everything(a, out, bits, places, matrix):
    """Each function once."""
    n = lanes_of(a)
    x, y, z = load(a, 1), load(a, 3), spread(a, 0.25)
    store(out, 0, plus(x, y))
    store(out, n, largest(x, y))
    store(out, 2 * n, chosen(above(x, y), x, z))
    store(out, 3 * n, moved_down(x, 7.0))
    store(bits, 0, with_bit(with_bit(0, above(x, y), 4), at_least(x, x), 1))
    transpose(a, places, matrix)
    return first_lane(y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_compiled_lanes_are_those_of_numpy(dtype):
    n = 64 // np.dtype(dtype).itemsize
    a = np.random.default_rng(0).normal(size=n * n + n).astype(dtype)
    a[5] = -np.inf
    places = np.random.default_rng(1).integers(0, n * n, n)
    found = []
    for run in (everything, everything.interpreted):
        out, bits, matrix = np.zeros(4 * n, dtype), np.zeros(n, np.uint8), np.zeros(n * n, dtype)
        found.append((run(a, out, bits, places, matrix), out, bits, matrix))
    assert found[0][0] == found[1][0] == a[3]
    for ours, theirs in zip(found[0][1:], found[1][1:], strict=True):
        assert ours.tobytes() == theirs.tobytes()
    assert found[0][3].reshape(n, n)[2, 4] == a[places[4] + 2]
    assert found[0][1][4 * n - 1] == 7.0 and found[0][1][3 * n] == a[2]
