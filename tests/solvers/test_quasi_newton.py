"""Pairs of steps and changes of the gradient: the direction is the textbook's, and pairs without curvature are forgotten."""

import math

import numpy as np
import pytest

from partwise.solvers.quasi_newton import Memory, learn, move


def two_loops(g, pairs, inverse):
    """-H g as in the textbook (Nocedal & Wright, algorithm 7.4), H_0 = gamma D^-1; pairs from the oldest to the newest."""
    q, alpha = g.copy(), []
    for s, y in reversed(pairs):
        alpha.append(s @ q / (s @ y))
        q -= alpha[-1] * y
    s, y = pairs[-1]
    r = q * inverse * (s @ y) / (y @ (inverse * y))
    for (s, y), a in zip(pairs, reversed(alpha), strict=True):
        r += (a - y @ r / (s @ y)) * s
    return -r


def test_direction_is_that_of_the_two_loop_recursion():
    rng = np.random.default_rng(0)
    d, m = 5000, 3  # more than a block
    hessian = rng.random(d) * 9 + 1
    scale = (rng.random(d) + 0.5).astype(np.float32)
    inverse = scale.astype(float) ** 2
    memory = Memory(np.zeros((2 * m, d), np.float32), [], np.zeros((2 * m, 2 * m)), np.zeros(2 * m))
    w, kept = rng.normal(size=d), []
    for n in range(8):
        g = hessian * w
        direction = memory.direction((scale * g) @ (scale * g), 1e9)
        to = np.zeros(d)
        move(to, w, g, scale, direction.c_gradient, memory.pairs, direction.rows, direction.c, 0, d)
        expected = two_loops(g, kept[-m:], inverse) if n else -inverse * g / np.linalg.norm(scale * g)
        np.testing.assert_allclose(to - w, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
        assert direction.slope == pytest.approx(g @ expected, rel=1e-9)
        to = w + rng.random() * (to - w)
        slot = memory.free()
        rows = np.array([*memory.rows(), 2 * slot, 2 * slot + 1])
        norm, square, products = learn(to, w, hessian * to, g, hessian * to, scale, memory.pairs, slot, rows, 0, d)
        assert norm == pytest.approx(to @ to) and square == pytest.approx((scale * hessian * to) @ (scale * hessian * to))
        memory = memory.after(slot, rows, products)
        kept.append((memory.pairs[2 * slot].astype(float) * scale, memory.pairs[2 * slot + 1] / scale.astype(float)))
        w = to
    assert len(memory.slots) == m


@pytest.mark.parametrize("bad", [[-1.0, 0.0], [math.inf, 0.0], [1e200, 1e200], [0.0, 0.0]])
def test_a_pair_without_curvature_is_forgotten(bad):
    memory = Memory(np.zeros((4, 2), np.float32), [], np.zeros((4, 4)), np.zeros(4))
    w, to, old = np.zeros(2), np.array([1.0, 0.0]), np.zeros(2)
    for slot, new in enumerate([[2.0, 0.0], bad]):
        rows = np.array([*memory.rows(), 2 * slot, 2 * slot + 1])
        _, _, products = learn(to, w, np.array(new), old, np.array(new), np.ones(2, np.float32), memory.pairs, slot, rows, 0, 2)
        memory = memory.after(slot, rows, products)
    assert memory.slots == [0]
    assert np.isfinite(memory.products).all() and memory.products[0, 1] == 2.0
