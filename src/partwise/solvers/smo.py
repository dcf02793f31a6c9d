"""SMO: sequential minimal optimisation of the dual over the active set of one example, two outputs at a time.

    g(y) = w . v_i(y) - o_i(y)  for y in S;  K(y, z) = v_i(y) . v_i(z)
    repeat
        y' = argmin_S g(y),  y'' = argmax over {y in S : lambda_i(y) > 0} of g(y);  stop if g(y'') - g(y') <= tau
        delta = min{ lambda_i(y''), (g(y'') - g(y')) / (K(y', y') - 2 K(y', y'') + K(y'', y'')) }
        lambda_i(y') += delta, lambda_i(y'') -= delta, g += delta (K(., y') - K(., y''))

Quadratic slacks (`losses.slacks`) put no bound on the multipliers of an example, and on the bill 1/(2 C_i) (sum of those of other
outputs than the target)^2. As the target has the rest of C_i, negative or not, that is (C_i - lambda_i(t_i))^2 / (2 C_i), so

    K(t_i, t_i) = 1 / C_i,    g(t_i) = -(C_i - lambda_i(t_i)) / C_i,    and t_i is always among those that can give

(instead of K(t_i, t_i) = g(t_i) = 0) is all that changes.

References
----------
D. Mancev (2015). A sequential dual method for the structured ramp loss minimization. Facta Universitatis 30(1). Section 4.
J. Platt (1999). Fast training of support vector machines using sequential minimal optimization.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partwise import kernels
from partwise.engine.compilation import helper
from partwise.engine.numerics import copy
from partwise.losses.linear_pieces import move_pieces, piece_products
from partwise.solvers.active import insert, set_products
from partwise.solvers.weights import SUM

INEXACT = 0.1  # SMO stops when it has removed all but this much of an example's violation: the next visit has a better w anyway
LONGEST_REST = 8  # full passes


class Rules(NamedTuple):
    """When SMO stops, and how long examples rest."""

    tau: float = 0.0  #: violation that is tolerated
    inexact: float = INEXACT  #: the same, as part of what it was before
    longest_rest: int = LONGEST_REST  #: full passes


class Block(NamedTuple):
    """The part of the dual that belongs to one example: scratch memory for n <= capacity outputs."""

    records: np.ndarray  #: (n,) in the active sets
    slots: np.ndarray  #: (n,) of these records
    ys: np.ndarray  #: (n, longest) the outputs
    gradient: np.ndarray  #: (n,) g(y)
    before: np.ndarray  #: (n,) g(y) before the visit
    mass: np.ndarray  #: (n,) lambda_i(y)
    change: np.ndarray  #: (n,) of lambda_i(y); also a row of products in the making


def make_block(capacity: int, longest: int) -> Block:
    """Scratch memory for the largest S_i."""
    numbers, records = np.zeros((4, capacity)), np.zeros((2, capacity), np.int64)
    return Block(records[0], records[1], np.zeros((capacity, longest), np.int32), numbers[0], numbers[1], numbers[2], numbers[3])


@helper
def smo(products, first, side, slots, g, mass, n, tau, tiny, free, diagonal):
    """Move mass between pairs of outputs, steepest first, until no pair promises more than `tau`.

    `products` holds K as a square of that `side` from `first` on; output k has row and column slots[k] in it. Output `free` (-1:
    none) may give more than it has, and has `diagonal` more curvature. A step leaves its two outputs with the same gradient: of
    those that tie, being no more than `tiny` apart, the first is taken, so that rounding does not choose the path.
    """
    for _ in range(16 * n * n):  # a bound for the sake of rounding; a handful of steps is usual
        low, high = 0, -1
        for k in range(n):
            if g[k] < g[low] - tiny:
                low = k
            if (mass[k] > 0.0 or k == free) and (high < 0 or g[k] > g[high] + tiny):
                high = k
        violation = g[high] - g[low] if high >= 0 else 0.0  # an example that does not count has no mass to move
        if violation <= tau:
            break
        to, of = first + slots[low] * side, first + slots[high] * side
        curvature = products[to + slots[low]] - 2.0 * products[to + slots[high]] + products[of + slots[high]]
        if free in (low, high):
            curvature += diagonal
        delta = np.inf if high == free else mass[high]
        if violation < delta * curvature:
            delta = violation / curvature
            mass[high] -= delta
        else:  # all of it, and exactly; also where the two outputs have the same features and the curvature is zero
            mass[high] = 0.0
        mass[low] += delta
        for k in range(n):
            g[k] += delta * (products[to + slots[k]] - products[of + slots[k]])
        if low == free:
            g[free] += delta * diagonal
        elif high == free:
            g[free] -= delta * diagonal


@helper
def extremes(g, n):
    """The lowest and the highest of n numbers."""
    low, high = np.inf, -np.inf
    for k in range(n):
        low, high = min(low, g[k]), max(high, g[k])
    return low, high


@helper
def keep(weight, records, before, gradient, mass, change, n):
    """Write the mass of the n outputs back; returns the gain in D and whether an output lost all of its mass."""
    gain, emptied = 0.0, False
    for k in range(n):
        change[k] = mass[k] - weight[records[k]]
        # D is quadratic, so its gain is minus the change times the mean of the gradients before and after
        gain -= 0.5 * change[k] * (before[k] + gradient[k])
        weight[records[k]] = mass[k]
        emptied = emptied or mass[k] == 0.0
    return gain, emptied


@helper
def include(problem, loss, i, sets, block, n, y, work, second):
    """S_i <- S_i + {y}, with no mass yet, and its products with the n outputs in `block`, which it joins as the last."""
    length = kernels.length(problem, i)
    block.records[n] = insert(sets, i, y, kernels.cost(problem, i, y))
    copy(y, block.ys[n, :length])
    ys = block.ys[:, :length]
    piece_products(loss, problem, i, kernels.target(problem, i), y, ys, n + 1, block.change, work.gradient, second)
    set_products(sets, i, block.records, n + 1, n, block.change)


@helper
def move(problem, loss, i, ys, change, n, weights):
    """w += sum_k change[k] v(ys[k]), and the same for the average if there is one."""
    t = kernels.target(problem, i)
    move_pieces(loss, problem, i, t, ys, change, n, 1.0, weights.v)
    if weights.u.size:
        move_pieces(loss, problem, i, t, ys, change, n, -weights.numbers[SUM], weights.u)


@helper
def rounding(w, magnitude):
    """Differences between scores of this magnitude that mean nothing."""
    return (1e-12 if w.itemsize == 8 else 1e-5) * (1.0 + magnitude)
