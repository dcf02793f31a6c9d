"""Sparse vectors under construction: both kinds against a plain vector; memory that is taken only where it is touched."""

import numpy as np
import pytest

from partwise.engine.accumulator import LARGE, accumulator, clear, compact, dot, row, squared_norm, untouched_zeros
from partwise.solvers.weights import add, averaged, count_step, make_weights

WIDTH, ROWS = 3, 7


@pytest.mark.parametrize("kind", [lambda a: a, compact])
def test_both_kinds_are_vectors(kind):
    """Adding to rows, norm, inner product and clearing, twice over with the same memory."""
    rng = np.random.default_rng(0)
    a, w = kind(accumulator(ROWS * WIDTH, WIDTH)), rng.normal(size=ROWS * WIDTH)
    for _ in range(2):
        plain = np.zeros((ROWS, WIDTH))
        for r, j, x in zip(rng.integers(0, ROWS, 9), rng.integers(0, WIDTH, 9), rng.normal(size=9), strict=True):
            row(a, r, WIDTH)[j] += x
            plain[r, j] += x
        assert squared_norm(a) == pytest.approx((plain**2).sum())
        assert dot(a, w) == pytest.approx(plain.ravel() @ w)
        assert sorted(a.rows[: a.count[0]]) == list(np.flatnonzero(plain.any(1)))
        clear(a)
        assert squared_norm(a) == 0.0 and not a.value.any()


@pytest.mark.parametrize("kind", [lambda a: a, compact])
@pytest.mark.parametrize("power", [0.0, 2.0])
def test_steps_and_their_average(kind, power):
    """w += c a for a few steps, and the mean of all w weighted by t^power; the accumulator is empty after each."""
    rng = np.random.default_rng(1)
    a, weights = kind(accumulator(ROWS * WIDTH, WIDTH)), make_weights(ROWS * WIDTH, power=power)
    w, iterates = np.zeros((ROWS, WIDTH)), []
    for _ in range(5):
        for r in rng.integers(0, ROWS, 3):
            x = rng.normal(size=WIDTH)
            row(a, r, WIDTH)[:] += x
            w[r] += 0.5 * x
        add(weights, 0.5, a)
        assert a.count[0] == 0 and not a.value.any()
        count_step(weights)
        iterates.append(w.ravel().copy())
    mean = np.average(iterates, axis=0, weights=np.arange(1, 6.0) ** power)
    np.testing.assert_allclose(weights.v, iterates[-1])
    np.testing.assert_allclose(averaged(weights), mean)
    np.testing.assert_allclose(averaged(weights, out=weights.u), mean)


@pytest.mark.parametrize("n", [0, 5, LARGE])
def test_untouched_zeros(n):
    zeros = untouched_zeros(n, np.float32)
    assert zeros.shape == (n,) and zeros.dtype == np.float32 and not zeros.any()
    zeros[n // 2 :] = 1.0
    assert zeros.sum() == n - n // 2
