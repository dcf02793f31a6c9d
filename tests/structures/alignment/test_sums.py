"""Sums over alignments: counting, in floats and in logarithms."""

from __future__ import annotations

import math

import numpy as np
import pytest

from small_alignments import random_scores, run_paths


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize(("n", "m"), [(0, 0), (0, 3), (1, 1), (7, 5), (60, 40), (700, 800)])
def test_every_alignment_is_counted_once(n, m, local):
    """sum_k C(n, k) C(m, k) = C(n + m, n) alignments: those of 700 and 800 places are e^1036."""
    value, fast, fine, slow, _, floats, logs = run_paths(np.zeros(n * m + 4 * (n + m)), n, m, local)
    exact = math.lgamma(n + m + 1) - math.lgamma(n + 1) - math.lgamma(m + 1)
    assert value == 0.0 and fine
    assert fast == pytest.approx(exact, rel=1e-12, abs=1e-12) and slow == pytest.approx(exact, rel=1e-12, abs=1e-12)
    np.testing.assert_allclose(floats, logs, atol=1e-9)


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("deviation", [1.5, 12.0])
def test_floats_and_logarithms_agree(local, deviation):
    n, m = 90, 120
    theta = random_scores(np.random.default_rng(1), n, m, deviation=deviation)
    _, fast, fine, slow, _, floats, logs = run_paths(theta, n, m, local)
    assert fine and fast == pytest.approx(slow, rel=1e-12)
    np.testing.assert_allclose(floats, logs, atol=1e-11)
    of_x = floats[: n * m].reshape(n, m).sum(1) + floats[n * m : n * m + 4 * n].reshape(4, n).sum(0)
    of_y = floats[: n * m].reshape(n, m).sum(0) + floats[n * m + 4 * n :].reshape(4, m).sum(0)
    np.testing.assert_allclose(of_x, 1.0, atol=1e-10)
    np.testing.assert_allclose(of_y, 1.0, atol=1e-10)


@pytest.mark.parametrize("local", [False, True])
def test_large_scores_are_left_to_logarithms(local):
    rng, n, m = np.random.default_rng(2), 20, 30
    theta = 1e3 * rng.normal(size=n * m + 4 * (n + m))
    value, _, fine, slow, y, _, logs = run_paths(theta, n, m, local)
    assert not fine and slow >= value and slow == pytest.approx(value, rel=1e-3)
    matched = np.flatnonzero(y >= 0)
    np.testing.assert_allclose(logs[matched * m + y[matched]], 1.0, atol=1e-6)


def test_a_path_that_falls_behind_for_long_is_not_lost():
    """One way gains 90 in each of the first 12 rows and is at the last column then; the other gains more, but later.

    Forwards it is e^1080 behind at row 12, out of the range of floats.
    """
    n = m = 26
    theta = random_scores(np.random.default_rng(0), n, m, (-1.0, -1.0, -1.0, -1.0), 0.1)
    match = theta[: n * m].reshape(n, m)
    match[np.arange(12), np.arange(12) + 14] = 90.0
    match[np.arange(12, n), np.arange(12, n)] = 90.0
    for local in (False, True):
        value, _, fine, slow, y, _, logs = run_paths(theta, n, m, local)
        assert not fine and value > 1200 and slow >= value and (y[12:] == np.arange(12, n)).all()
        np.testing.assert_allclose(logs[: n * m].reshape(n, m).diagonal()[12:], 1.0, atol=1e-9)


def test_gradients_against_differences():
    rng, n, m, step = np.random.default_rng(3), 6, 5, 1e-5
    for local in (False, True):
        theta = rng.normal(size=n * m + 4 * (n + m))
        parts = run_paths(theta, n, m, local)[5]
        for k in range(len(theta)):
            moved = [run_paths(theta + sign * step * np.eye(len(theta))[k], n, m, local)[1] for sign in (1, -1)]
            assert (moved[0] - moved[1]) / (2 * step) == pytest.approx(parts[k], abs=1e-7)
