"""Sparse vectors with a list of touched rows: exact norms on the way, no allocation per example.

There are two kinds. `Accumulator` keeps its entries where they are in w, so that it can be read like a weight vector. `Compact`
keeps them side by side in the order they are touched: what one example touches stays in the nearest cache, however long w is.
Adding is O(1) per entry in both, reading and clearing O(touched).
"""

from __future__ import annotations

import mmap
from typing import NamedTuple

import numpy as np

from partwise.engine.compilation import helper, kernel
from partwise.engine.numerics import larger
from partwise.engine.prefetch import request, request_row

STRETCH = 1 << 8  # weights that are looked at together, whether any is not zero
LARGE = 1 << 20  # bytes, from which on it matters where memory comes from


class Accumulator(NamedTuple):
    """A sparse vector of weights under construction, laid out like w; a *row* is `width` neighbouring weights.

    Memory: d values and d / width marks, but pages never touched are never really allocated.
    """

    value: np.ndarray  #: (d,) entries, zero outside the touched rows
    seen: np.ndarray  #: (d / width,) whether a row is in the list
    rows: np.ndarray  #: touched rows
    count: np.ndarray  #: (1,) how many
    width: int


class Compact(NamedTuple):
    """The same, its touched rows side by side. Memory: d / width slots and what one example touches."""

    value: np.ndarray  #: (d,) row by row in the order of `rows`: only the beginning is ever used, so only that takes memory
    slot: np.ndarray  #: (d / width,) 1 + where a row is in the list, or 0
    rows: np.ndarray  #: touched rows
    count: np.ndarray  #: (1,) how many
    width: int


def untouched_zeros(n: int, dtype) -> np.ndarray:
    """np.zeros(n, dtype) that takes memory only where it is touched: np.zeros may be handed used memory and write all of it."""
    size = n * np.dtype(dtype).itemsize
    if size < LARGE or not hasattr(mmap, "MAP_PRIVATE"):
        return np.zeros(n, dtype)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
    try:
        return np.frombuffer(mmap.mmap(-1, size, flags), dtype, n)
    except OSError as error:  # memory that nobody touches costs nothing, but addresses may be limited: ulimit -v
        raise MemoryError(f"There is no room for {size / 1e9:.1f} GB of addresses ({error.strerror}).") from None


def accumulator(n_weights: int, width: int, dtype=np.float64) -> Accumulator:
    """An empty Accumulator for weight vectors of length `n_weights`."""
    n_rows = -(-n_weights // width)
    value, seen, rows = ((n_rows * width, dtype), (n_rows, np.bool_), (n_rows, np.int64))
    return Accumulator(untouched_zeros(*value), untouched_zeros(*seen), untouched_zeros(*rows), np.zeros(1, np.int64), width)


def compact(a: Accumulator) -> Compact:
    """An empty Compact for the same weight vectors as `a`."""
    value, slot, rows = (len(a.value), a.value.dtype), (len(a.rows), np.int32), (len(a.rows), np.int64)
    return Compact(untouched_zeros(*value), untouched_zeros(*slot), untouched_zeros(*rows), np.zeros(1, np.int64), a.width)


@kernel
def row(into, r, width):
    """The view of row r of a weight vector or accumulator that features are added to."""


@row.implements(np.ndarray)
def _row_of_weights(into, r, width):
    return into[r * width : (r + 1) * width]


@row.implements(Accumulator)
def _row_of_accumulator(into, r, width):
    if not into.seen[r]:
        into.seen[r] = True
        into.rows[into.count[0]] = r
        into.count[0] += 1
    return into.value[r * width : (r + 1) * width]


@row.implements(Compact)
def _row_of_compact(into, r, width):
    s = np.int64(into.slot[r])
    if s == 0:
        s = into.count[0] + 1
        into.count[0] = s
        into.slot[r] = s
        into.rows[s - 1] = r
    return into.value[(s - 1) * width : s * width]


@kernel
def expect_row(into, r, width):
    """Hint that row r of a weight vector or accumulator will soon be added to."""


@expect_row.implements(np.ndarray)
def _expect_row_of_weights(into, r, width):
    request_row(into, r, width)


@expect_row.implements(Accumulator)
def _expect_row_of_accumulator(into, r, width):
    request_row(into.value, r, width)


@expect_row.implements(Compact)
def _expect_row_of_compact(into, r, width):
    request(into.slot, r)


@kernel
def touched(a, k):
    """The view of the row that was touched as number k, row ``a.rows[k]`` of the vector."""


@touched.implements(Accumulator)
def _touched_in_accumulator(a, k):
    return a.value[a.rows[k] * a.width : (a.rows[k] + 1) * a.width]


@touched.implements(Compact)
def _touched_in_compact(a, k):
    return a.value[k * a.width : (k + 1) * a.width]


@kernel
def release(a, k):
    """Forget that row ``a.rows[k]`` was touched; its entries must be made zero, and in the end ``a.count[0]``."""


@release.implements(Accumulator)
def _release_in_accumulator(a, k):
    a.seen[a.rows[k]] = False


@release.implements(Compact)
def _release_in_compact(a, k):
    a.slot[a.rows[k]] = 0


@helper
def squared_norm(a):
    """||a||^2."""
    total = 0.0
    for k in range(a.count[0]):
        value = touched(a, k)
        for j in range(a.width):
            total += value[j] * value[j]
    return total


@kernel
def dot_with(w, a):
    """w . a, `w` being an array of weights or some other kind of them."""


@dot_with.implements(np.ndarray)
def _dot_with_array(w, a):
    total = 0.0
    for k in range(a.count[0]):
        value, weight = touched(a, k), row(w, a.rows[k], a.width)
        for j in range(a.width):
            total += value[j] * weight[j]
    return total


@helper
def dot(a, w):
    """a . w."""
    return dot_with(w, a)


@kernel
def move_row(v, u, r, width, c, d, value):
    """Row r of v += c * value, that of u -= d * value unless u is empty; v is an array or some other kind of weights."""


@move_row.implements(np.ndarray)
def _move_row_of_array(v, u, r, width, c, d, value):
    weight = row(v, r, width)
    for j in range(width):
        weight[j] += c * value[j]
    if u.size:
        weight = row(u, r, width)
        for j in range(width):
            weight[j] -= d * value[j]


@kernel
def write_out(v, u, total, a):
    """u += total * v, unless u is empty, and v *= a; stretches of zeros are passed over, so that they take no memory."""


@write_out.implements(np.ndarray)
def _write_out_array(v, u, total, a):
    for first in range(0, v.size, STRETCH):
        some = v[first : first + STRETCH]
        highest = abs(some[0])
        for j in range(len(some)):
            highest = larger(highest, abs(some[j]))
        if highest > 0.0:
            sums = u[first : first + STRETCH]
            for j in range(len(some)):
                if some[j] != 0.0:
                    if u.size:
                        sums[j] += total * some[j]
                    some[j] *= a


@helper
def clear(a):
    """a = 0, ready for the next example."""
    for k in range(a.count[0]):
        release(a, k)
        touched(a, k)[:] = 0.0
    a.count[0] = 0
