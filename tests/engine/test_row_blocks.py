"""Sums and maxima of rows: compiled, the same numbers as in the interpreter, to the last bit."""

import numpy as np
import pytest

from partwise.engine.compilation import compiled_loop
from partwise.engine.row_blocks import add_rows, in_vectors, max_rows


@compiled_loop
def sums(w, width, index, begin, end, out):
    add_rows(w, width, index, begin, end, out)


@compiled_loop
def maxima(a, matrix, n, out):
    max_rows(a, matrix, n, out)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_they_are_those_of_the_interpreter(dtype):
    rng, lanes = np.random.default_rng(0), 64 // np.dtype(dtype).itemsize
    for n in range(lanes, 4 * lanes + 1, lanes):
        assert in_vectors(n, np.dtype(dtype).itemsize)
        for width in (n - 3, n):
            w, index = rng.standard_normal(50 * width + n).astype(dtype), rng.integers(0, 50, 60).astype(np.int32)
            for begin, end in ((0, 0), (0, 3), (0, 4), (2, 11), (3, 60)):
                out = rng.standard_normal(n).astype(dtype)
                expected = out.copy()
                sums(w, width, index, begin, end, out)
                sums.interpreted(w, width, index, begin, end, expected)
                np.testing.assert_array_equal(out, expected)
        a, matrix = rng.standard_normal(9).astype(dtype), rng.standard_normal(9 * n).astype(dtype)
        a[3], matrix[5::n], out = -np.inf, -np.inf, np.full(n, -np.inf, dtype)
        maxima(a, matrix, 9, out)
        np.testing.assert_array_equal(out, (a[:, None] + matrix.reshape(9, n)).max(0))


def test_other_rows_are_not_in_vectors():
    assert not any(in_vectors(n, 8) for n in (0, 7, 9, 40))
    assert not any(in_vectors(n, 4) for n in (8, 80))
