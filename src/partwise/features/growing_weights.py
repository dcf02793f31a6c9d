"""Weights in training that are mostly zero: of each feature a list of (label, weight, sum) that grows as labels are touched.

A margin loss touches the labels that were ever mistaken for each other and no others. With hundreds of labels that is a hundredth
of the weights, and arrays of all of them, one for the weights and one for the sum that makes their average, are most of the
memory that training takes. Lists take 10 bytes for each weight that was ever touched (in float32), some more for room to grow,
12 for each feature; scoring a token takes O(weights of its features) instead of O(features * L). The sums are those of arrays,
in the same order, so that the model is the same to the last bit.

Lists lie in a pool, with room for 2, 4, 8, ... entries; a list that is full moves to the pool's end. The pool has room for the
case that all labels of all features are touched, but memory is taken only where it is used.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from partwise.engine.accumulator import dot_with, expect_row, move_row, row, touched, untouched_zeros, write_out
from partwise.engine.compilation import helper
from partwise.engine.prefetch import AHEAD, request
from partwise.features.rows import add_scaled_row, emit_ones
from partwise.features.sparse_weights import LABEL, MOST_LABELS, NEAR, SparseWeights, starts_of

FIRST = 2  # entries that a list has room for in the beginning: the right label, and the one it was taken for


class GrowingWeights(NamedTuple):
    """The weights v of `partwise.solvers.weights.Weights`: those of features as lists, the rest as an array."""

    first: np.ndarray  #: (features,) int64 where each list begins in the pool
    sizes: np.ndarray  #: (features,) int32 entries of each list
    labels: np.ndarray  #: uint16, one for each place of the pool
    pool: np.ndarray  #: weights; zero where there is no entry
    used: np.ndarray  #: (1,) int64 places of the pool that were given away
    rest: np.ndarray  #: weights behind those of features
    width: int  #: number of labels
    itemsize: int  #: bytes of a weight

    @property
    def pools(self) -> tuple[str, ...]:
        """Fields of which a checkpoint has the beginning."""
        return ("labels", "pool")

    def check(self, like: GrowingWeights, task: Any) -> None:
        """Raise a ValueError, unless lists that were read from a file are inside the pool and name labels that there are."""
        used, sizes = int(self.used[0]), self.sizes.astype(np.int64)
        if (self.width, self.itemsize) != (like.width, like.itemsize):
            raise ValueError("the lists of weights are those of another model")
        room = np.where(sizes > 0, np.maximum(FIRST, 1 << np.ceil(np.log2(np.maximum(sizes, 1))).astype(np.int64)), 0)
        inside = (sizes >= 0) & (sizes <= self.width) & (self.first >= 0) & (self.first + room <= used)
        if not 0 <= used <= len(self.pool) or not inside.all():
            raise ValueError("a list of weights is not inside the pool")
        if int(self.labels[:used].max(initial=0)) >= self.width:
            raise ValueError("a list of weights names a label that there is not")

    @property
    def dtype(self) -> np.dtype:
        """Of the weights."""
        return self.pool.dtype

    @property
    def values(self) -> np.ndarray:
        """Weights of features, and zeros."""
        return self.pool[: self.used[0]]

    def __matmul__(self, other: GrowingWeights) -> float:
        """v . v, for nobody asks for other products."""
        assert other is self
        return float(self.values @ self.values) + float(self.rest @ self.rest)


class GrowingSums(NamedTuple):
    """The vector u that goes with them, entry by entry."""

    pool: np.ndarray
    rest: np.ndarray
    size: int  #: 0: no average is wanted

    @property
    def pools(self) -> tuple[str, ...]:
        """Fields of which a checkpoint has the beginning."""
        return ("pool",)

    def check(self, like: GrowingSums, task: Any) -> None:
        """Raise a ValueError, unless sums that were read from a file are those of this run."""
        if self.size != like.size or len(self.pool) != len(like.pool):
            raise ValueError("the sums of weights are those of another model")


def growing_weights(n_features: int, width: int, n_weights: int, dtype, average: bool) -> tuple[GrowingWeights, GrowingSums]:
    """Zeros."""
    if width > MOST_LABELS:
        raise ValueError(f"Lists of weights are for at most {MOST_LABELS} labels, not {width}.")
    most, room = 0, FIRST
    while room < width:
        most, room = most + room, 2 * room
    pool, n_rest = n_features * (most + room), n_weights - n_features * width
    v = GrowingWeights(
        np.zeros(n_features, np.int64),
        np.zeros(n_features, np.int32),
        untouched_zeros(pool, LABEL),
        untouched_zeros(pool, dtype),
        np.zeros(1, np.int64),
        np.zeros(n_rest, dtype),
        width,
        np.dtype(dtype).itemsize,
    )
    return v, GrowingSums(untouched_zeros(pool if average else 0, dtype), np.zeros(n_rest if average else 0, dtype), int(average))


def listed(v: GrowingWeights, rest: np.ndarray, values) -> SparseWeights:
    """The weights `values(places)` of the pool, and `rest`, as they are kept when training is over: without zeros, in order."""
    of = np.repeat(np.arange(len(v.sizes)), v.sizes)
    places = v.first[of] + np.arange(len(of)) - starts_of(v.sizes)[of]
    labels, found = v.labels[places], values(places)
    order = np.lexsort((labels, of))
    order = order[found[order] != 0]
    counts = np.bincount(of[order], minlength=len(v.sizes))
    return SparseWeights(starts_of(counts), labels[order], found[order], rest, v.width)


@helper
def place_of(v, u, r, label):
    """Where the entry of a label is in the pool; a new one, if there is none."""
    first, n = v.first[r], np.int64(v.sizes[r])
    labels = v.labels
    for e in range(first, first + n):
        if np.int64(labels[e]) == label:
            return e
    if n == 0 or (n >= FIRST and n & (n - 1) == 0):  # none yet, or full
        to = v.used[0]
        v.used[0] = to + max(2 * n, FIRST)
        v.first[r] = to
        for e in range(n):
            labels[to + e] = labels[first + e]
            v.pool[to + e] = v.pool[first + e]
            v.pool[first + e] = 0.0
            if u.size:
                u.pool[to + e] = u.pool[first + e]
        first = to
    v.sizes[r] = n + 1
    labels[first + n] = label
    return first + n


@row.implements(GrowingWeights)
def _row_of_rest(into, r, width):
    first = (r - into.first.size) * width
    return into.rest[first : first + width]


@expect_row.implements(GrowingWeights)
def _expect_list(into, r, width):
    if r < into.first.size:
        request(into.first, r)
        request(into.sizes, r)


@expect_row.implements(GrowingSums)
def _expect_sums(into, r, width):
    pass  # where they lie is not known before the list is looked at


@emit_ones.implements(GrowingWeights)
def _emit_lists(w, index, k, end, width, out):
    """One feature after the other: the order that the compiled loop over dense rows adds them up in, so the same roundings."""
    first, sizes, labels, values, last = w.first, w.sizes, w.labels, w.pool, index.size - 1
    for i in range(k, end):
        ahead = np.int64(index[min(i + AHEAD, last)])
        request(first, ahead)
        request(sizes, ahead)
        soon = first[index[min(i + NEAR, last)]]
        request(labels, soon)
        request(values, soon)
        r = np.int64(index[i])
        begin = first[r]
        for e in range(begin, begin + sizes[r]):
            out[np.int64(labels[e])] += values[e]


@add_scaled_row.implements(GrowingWeights)
def _add_scaled_list(w, r, width, x, out):
    labels, values, begin = w.labels, w.pool, w.first[r]
    for e in range(begin, begin + w.sizes[r]):
        out[np.int64(labels[e])] += x * values[e]


@move_row.implements(GrowingWeights)
def _move_list(v, u, r, width, c, d, value):
    if r >= v.first.size:
        start = (r - v.first.size) * width
        for j in range(width):
            v.rest[start + j] += c * value[j]
            if u.size:
                u.rest[start + j] -= d * value[j]
        return
    for j in range(width):
        if value[j] != 0.0:
            e = place_of(v, u, r, j)
            v.pool[e] += c * value[j]
            if u.size:
                u.pool[e] -= d * value[j]


@dot_with.implements(GrowingWeights)
def _dot_with_lists(w, a):
    total = 0.0
    for k in range(a.count[0]):
        r, value = a.rows[k], touched(a, k)
        if r >= w.first.size:
            weight = row(w, r, a.width)
            for j in range(a.width):
                total += value[j] * weight[j]
        else:
            begin = w.first[r]
            for e in range(begin, begin + w.sizes[r]):
                total += value[np.int64(w.labels[e])] * w.pool[e]
    return total


@write_out.implements(GrowingWeights)
def _write_out_lists(v, u, total, a):
    for e in range(v.used[0]):
        if u.size:
            u.pool[e] += total * v.pool[e]
        v.pool[e] *= a
    for j in range(v.rest.size):
        if u.size:
            u.rest[j] += total * v.rest[j]
        v.rest[j] *= a
