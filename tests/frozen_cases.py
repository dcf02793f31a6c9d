"""Loops to make machine code of: every kind of argument and of result."""

from typing import NamedTuple

import numpy as np

from partwise.engine.compilation import compiled_loop, helper


class Inner(NamedTuple):
    rows: np.ndarray
    flag: bool


class Outer(NamedTuple):
    values: np.ndarray
    inner: Inner
    n: int


@helper
def doubled(x):
    return 2 * x


@compiled_loop
def total(problem, scale, more, pair):
    """All kinds of arguments; changes one of them, and returns a number."""
    found = 0.0
    for k in range(problem.n):
        found += doubled(problem.values[k]) * scale if problem.inner.flag else 0.0
        problem.inner.rows[k, 0] += 1
    return found + more.sum() + pair[0] + pair[1]


@compiled_loop
def several(a, n):
    """Results of several kinds, among them an array."""
    return n + 1, a.sum(), n > 3, np.arange(n), a.reshape((n, -1)).astype(np.float32)


@compiled_loop
def nothing(a):
    a[0] = 7.0


@compiled_loop
def itself(a):
    return a


@compiled_loop
def fails(a, kind):
    if kind == 1:
        raise ValueError("as planned")
    if kind == 2:
        return np.empty(1 << 50).sum()
    return 0.0


@compiled_loop
def slow(a, n):
    """Long enough for threads to meet."""
    found = 0.0
    for k in range(n):
        found += np.sin(a[k % len(a)])
    return found
