"""Sparse vectors in a dense scratch with a list of touched rows: exact norms on the way, no allocation per example."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partwise.compilation import helper, kernel
from partwise.prefetch import request_row


class Accumulator(NamedTuple):
    """A sparse vector of weights under construction.

    Entries live in `value`, a vector as long as w that is zero outside the touched rows; a *row* is `width` neighbouring weights.
    Adding is O(1) per entry, reading and clearing O(touched). Memory: d values and d / width marks, but pages never touched
    are never really allocated.
    """

    value: np.ndarray  #: (d,) entries
    seen: np.ndarray  #: (d / width,) whether a row is in the list
    rows: np.ndarray  #: touched rows
    count: np.ndarray  #: (1,) how many
    width: int


def accumulator(n_weights: int, width: int, dtype=np.float64) -> Accumulator:
    """An empty Accumulator for weight vectors of length `n_weights`."""
    n_rows = -(-n_weights // width)
    return Accumulator(
        np.zeros(n_rows * width, dtype), np.zeros(n_rows, np.bool_), np.zeros(n_rows, np.int64), np.zeros(1, np.int64), width
    )


@kernel
def row(into, r, width):
    """The view of row r of a weight vector or Accumulator that features are added to."""


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


@kernel
def expect_row(into, r, width):
    """Hint that row r of a weight vector or Accumulator will soon be added to."""


@expect_row.implements(np.ndarray)
def _expect_row_of_weights(into, r, width):
    request_row(into, r, width)


@expect_row.implements(Accumulator)
def _expect_row_of_accumulator(into, r, width):
    request_row(into.value, r, width)


@helper
def squared_norm(a):
    """||a||^2."""
    total = 0.0
    for k in range(a.count[0]):
        value = row(a.value, a.rows[k], a.width)
        for j in range(a.width):
            total += value[j] * value[j]
    return total


@helper
def dot(a, w):
    """a . w."""
    total = 0.0
    for k in range(a.count[0]):
        value, weight = row(a.value, a.rows[k], a.width), row(w, a.rows[k], a.width)
        for j in range(a.width):
            total += value[j] * weight[j]
    return total


@helper
def clear(a):
    """a = 0, ready for the next example."""
    for k in range(a.count[0]):
        a.seen[a.rows[k]] = False
        row(a.value, a.rows[k], a.width)[:] = 0.0
    a.count[0] = 0
