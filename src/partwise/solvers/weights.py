"""Weights that are scaled and averaged lazily: no O(d) work per example.

The current weights are w_t = a_t v_t, so shrinking is one multiplication, and the sum of all iterates is kept as

    sum_{s <= t} w_s = A_t v_t + u_t,    A_t = sum_{s <= t} a_s,

because an update v += delta at step t changes the sum only through u -= A_{t-1} delta (Xu 2011; Collins' averaged perceptron
is the case a = 1). Iterates may enter with weights of their own, sum_s b_s w_s: then A_t = sum_{s <= t} b_s a_s.

v and u are arrays, or lists of what is not zero (`partwise.features.growing_weights`): then the model is `SparseWeights`.
"""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

import numpy as np

from partwise.engine.accumulator import expect_row, move_row, release, touched, untouched_zeros, write_out
from partwise.engine.compilation import helper
from partwise.features.growing_weights import GrowingWeights, growing_weights, listed

SCALE, SUM, STEPS, NORM, VISITS, POWER = range(6)
UNIT = 2.0**-12  # weights in the average are (t * UNIT)^power: a constant, so that they do not depend on how much data there is
BLOCK = 1 << 14  # weights in float64 that stay in the nearer caches
AHEAD = 16  # rows between the request for a row of the sum and its use


class Weights(NamedTuple):
    """Weights in the making.

    `numbers` holds a_t, A_t, the number of steps (or the sum of their weights in the average), ||v||^2 where a solver
    keeps it, t where `count_step` counts it, and the power of t that weighs the average.
    """

    v: Any  #: array, or GrowingWeights
    u: Any  #: array, or GrowingSums; empty when no average is wanted
    numbers: np.ndarray


def make_weights(
    n_weights: int,
    dtype=np.float64,
    average: bool = True,
    start=None,
    power: float = 0.0,
    lists: tuple[int, int] | None = None,
) -> Weights:
    """Zero weights, or those of `start`; `count_step` will enter w_t into the average with weight t^power.

    With `lists` = (features, labels), the first weights are lists of what is not zero; arrays, and the same model, where there
    are no addresses to grow into (``ulimit -v``).
    """
    if lists is not None and start is None:
        with contextlib.suppress(MemoryError):
            return Weights(*growing_weights(*lists, n_weights, dtype, average), np.array([1.0, 0.0, 0.0, 0.0, 0.0, power]))
    v = np.zeros(n_weights, dtype) if start is None else np.array(start, dtype)
    u = np.zeros(n_weights if average else 0, dtype)
    return Weights(v, u, np.array([1.0, 0.0, 0.0, float(v @ v), 0.0, power]))


def no_weights(n_weights: int, dtype, lists: tuple[int, int] | None) -> Any:
    """Zero weights, of the kind that the model will be; they take no memory."""
    if lists is not None:
        with contextlib.suppress(MemoryError):
            v, u = growing_weights(*lists, n_weights, dtype, False)
            return listed(v, v.rest, lambda places: v.pool[places])
    return untouched_zeros(n_weights, dtype)


def in_use(weights: Weights) -> Weights:
    """The same without room to grow, for a checkpoint. Views."""
    v, u, numbers = weights
    if not isinstance(v, GrowingWeights):
        return weights
    n = int(v.used[0])
    return Weights(v._replace(labels=v.labels[:n], pool=v.pool[:n]), u._replace(pool=u.pool[:n]), numbers)


@helper
def add(weights, c, a):
    """w += c * a, and a = 0: apply and clear a sparse vector in one pass over it."""
    v, u, numbers = weights.v, weights.u, weights.numbers
    c /= numbers[SCALE]
    d = c * numbers[SUM]
    for k in range(a.count[0]):
        if u.size and k + AHEAD < a.count[0]:  # w was just scored, but the sum lies cold in memory
            expect_row(u, a.rows[k + AHEAD], a.width)
        release(a, k)
        value = touched(a, k)
        move_row(v, u, a.rows[k], a.width, c, d, value)
        value[:] = 0.0
    a.count[0] = 0


@helper
def shrink(weights, factor):
    """w *= factor, 0 < factor <= 1.

    The sum of iterates is a difference A v + u of two numbers that grow like 1 / a: before half the digits are lost, both are
    written out, which costs O(d) and happens a few times in a run; some dozen times in the first steps of Pegasos, when nearly
    all weights are zero still: whole stretches of zeros are passed over.
    """
    v, u, numbers = weights.v, weights.u, weights.numbers
    numbers[SCALE] *= factor
    a = numbers[SCALE]
    if a < (1e-8 if v.itemsize == 8 else 3e-4):
        write_out(v, u, numbers[SUM], a)
        numbers[SCALE] = 1.0
        numbers[SUM] = 0.0
        numbers[NORM] *= a * a


@helper
def enter(weights, weight):
    """Enter the current weights into the average with a weight of their own."""
    weights.numbers[SUM] += weight * weights.numbers[SCALE]
    weights.numbers[STEPS] += weight


@helper
def count_step(weights):
    """Enter the current weights into the average as w_t, and go on to t + 1."""
    numbers = weights.numbers
    numbers[VISITS] += 1.0
    enter(weights, 1.0 if numbers[POWER] == 0.0 else (numbers[VISITS] * UNIT) ** numbers[POWER])


def current(weights: Weights, out: np.ndarray | None = None) -> Any:
    """The weights after the last step; they may overwrite ``weights.v``."""
    v, scale = weights.v, weights.v.dtype.type(weights.numbers[SCALE])
    if isinstance(v, GrowingWeights):
        return listed(v, v.rest * scale, lambda places: v.pool[places] * scale)
    return np.multiply(v, scale, out=out)


def averaged(weights: Weights, out: np.ndarray | None = None) -> Any:
    """The mean of the weights after each step. No memory but the result, which may overwrite ``weights.u``."""
    v, u, numbers = weights
    if not u.size or not numbers[STEPS]:
        return current(weights)

    def mean_of(v: np.ndarray, u: np.ndarray) -> np.ndarray:
        return (v.astype(np.float64) * numbers[SUM] + u) / numbers[STEPS]

    if isinstance(v, GrowingWeights):
        rest = mean_of(v.rest, u.rest).astype(v.dtype)
        return listed(v, rest, lambda places: mean_of(v.pool[places], u.pool[places]).astype(v.dtype))
    mean = np.empty_like(v) if out is None else out
    for first in range(0, len(mean), BLOCK):
        some = slice(first, first + BLOCK)
        mean[some] = mean_of(v[some], u[some])
    return mean
