"""Weights of a finished model that are mostly zero: of each feature a list of (label, weight), and the rest as it is.

A margin loss touches the labels that were ever mistaken for each other and no others: with many labels, nearly all of a feature's
row is zero. Kept as lists, a row of L weights takes 6 bytes for each that is not zero instead of 4 L, and scoring a token takes

    O(weights of its features that are not zero)    instead of    O(features * L).

Structures see them through the kernels that see an array of weights: `emit` for feature rows, `row` for all other rows, which
stay dense (transitions, say). They are read only: what trains, or looks at single weights, asks for `dense` ones.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from partwise.engine.accumulator import expect_row, row
from partwise.engine.prefetch import AHEAD, request
from partwise.features.rows import add_scaled_row, emit_ones

LABEL = np.uint16  #: type of a label in a list, and of the length of one
MOST_LABELS = (1 << 16) - 1
NEAR = AHEAD // 2  # features between the request for a list and its use; where it begins is asked for before that


class SparseWeights(NamedTuple):
    """A vector of weights of which the first rows, those of features, are lists of what is not zero.

    Has the face of an array as far as callers of compiled loops look at one.
    """

    starts: np.ndarray  #: (features + 1,) int64 where the list of each feature begins
    labels: np.ndarray  #: uint16, rising within a list
    values: np.ndarray  #: float32 or float64, one for each of `labels`
    rest: np.ndarray  #: weights behind those of features, as many rows as there are
    width: int  #: number of labels

    @property
    def grows(self) -> tuple[str, ...]:
        """Fields that are longer in a checkpoint than without weights."""
        return ("labels", "values")

    def check(self, like: SparseWeights, task: Any) -> None:
        """Raise a ValueError, unless lists that were read from a checkpoint are where they should be."""
        n = len(self.values)
        whole = len(self.labels) == n and self.width == like.width and self.starts[0] == 0 and self.starts[-1] == n
        if not whole or (np.diff(self.starts) < 0).any() or int(self.labels.max(initial=0)) >= self.width:
            raise ValueError("the lists of weights do not fit the problem")

    @property
    def ndim(self) -> int:
        """As of an array."""
        return 1

    @property
    def dtype(self) -> np.dtype:
        """Of the weights."""
        return self.values.dtype

    @property
    def size(self) -> int:
        """Number of weights, the zeros counted."""
        return (len(self.starts) - 1) * self.width + len(self.rest)

    @property
    def shape(self) -> tuple[int]:
        """As of an array."""
        return (self.size,)

    @property
    def nbytes(self) -> int:
        """Memory that they take."""
        return sum(array.nbytes for array in self[:4])

    def min(self, initial: float = 0.0) -> float:
        """As of an array; zeros are taken for granted."""
        return min(initial, float(self.values.min(initial=0.0)), float(self.rest.min(initial=0.0)))

    def max(self, initial: float = 0.0) -> float:
        """As of an array; zeros are taken for granted."""
        return max(initial, float(self.values.max(initial=0.0)), float(self.rest.max(initial=0.0)))

    def dense(self) -> np.ndarray:
        """All of them."""
        n = len(self.starts) - 1
        w = np.zeros(self.size, self.dtype)
        w[np.repeat(np.arange(n) * self.width, np.diff(self.starts)) + self.labels] = self.values
        w[n * self.width :] = self.rest
        return w


BLOCK = 1 << 22  # weights that are looked at together: what this takes while it lasts


def sparse_weights(w: np.ndarray, n_features: int, width: int) -> SparseWeights | None:
    """The same weights, or None if more than one in sixteen is not zero: then a bit for each says as briefly which those are.

    O(weights) time, and memory for the lists alone.
    """
    cut = n_features * width
    if width > MOST_LABELS or not n_features:
        return None
    n = sum(int(np.count_nonzero(w[k : min(k + BLOCK, cut)])) for k in range(0, cut, BLOCK))
    if 16 * (n + n_features) >= cut:
        return None
    counts, labels, values = np.empty(n_features, np.int64), np.empty(n, LABEL), np.empty(n, w.dtype)
    rows, at = max(1, BLOCK // width), 0
    for first in range(0, n_features, rows):
        some = w[first * width : min(first + rows, n_features) * width].reshape(-1, width)
        of, label = np.nonzero(some)
        counts[first : first + len(some)] = np.bincount(of, minlength=len(some))
        labels[at : at + len(of)], values[at : at + len(of)] = label, some[of, label]
        at += len(of)
    return SparseWeights(starts_of(counts), labels, values, w[cut:].copy(), width)


def written_out(w: np.ndarray | SparseWeights) -> np.ndarray:
    """All of them, in an array."""
    return w if isinstance(w, np.ndarray) else w.dense()


def n_not_zero(w: np.ndarray | SparseWeights) -> int:
    """How many of the weights are not zero."""
    return sum(int(np.count_nonzero(values)) for values in ((w,) if isinstance(w, np.ndarray) else (w.values, w.rest)))


def without_small(w: np.ndarray | SparseWeights, least: float) -> np.ndarray | SparseWeights:
    """A copy with zeros for weights whose absolute value is less than `least`."""
    if isinstance(w, np.ndarray):
        return np.where(np.abs(w) < least, w.dtype.type(0), w)
    kept = ~(np.abs(w.values) < least)
    before = np.concatenate([[0], np.cumsum(kept)])
    return w._replace(
        starts=before[w.starts], labels=w.labels[kept], values=w.values[kept], rest=np.where(np.abs(w.rest) < least, 0, w.rest)
    )


def starts_of(counts: np.ndarray) -> np.ndarray:
    """Where lists of these lengths begin, laid end to end; and where the last one ends."""
    starts = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


def check_lists(w: SparseWeights) -> None:
    """Raise ValueError unless compiled loops, which do not check indices, may see these weights. O(weights that are stored)."""
    starts, labels, values, rest, width = w
    if not 0 < width <= MOST_LABELS:
        raise ValueError(f"sparse weights have rows of {width}")
    if any(array.ndim != 1 for array in w[:4]) or labels.dtype != LABEL or values.dtype != rest.dtype:
        raise ValueError("sparse weights are not lists of labels and of floats")
    if values.dtype not in (np.float32, np.float64) or starts.dtype != np.int64:
        raise ValueError("sparse weights are not lists of labels and of floats")
    if not starts.size or starts[0] != 0 or (starts[1:] < starts[:-1]).any() or starts[-1] != len(values):
        raise ValueError("the lists of sparse weights do not begin where others end")
    if len(labels) != len(values) or len(rest) % width:
        raise ValueError(f"sparse weights have {len(labels)} labels for {len(values)} weights, and {len(rest)} that are dense")
    if labels.max(initial=0) >= width:
        raise ValueError(f"a label of the sparse weights is {labels.max()}, where there are {width}")
    falls = np.flatnonzero(labels[1:] <= labels[:-1]) + 1  # only where a list begins
    if len(falls) and not np.isin(falls, starts).all():
        raise ValueError("the labels of a list of sparse weights do not rise")


@row.implements(SparseWeights)
def _row_of_rest(into, r, width):
    first = (r - into.starts.size + 1) * width
    return into.rest[first : first + width]


@emit_ones.implements(SparseWeights)
def _emit_lists(w, index, k, end, width, out):
    """One feature after the other: the order that the compiled loop over dense rows adds them up in, so the same roundings."""
    starts, labels, values, last = w.starts, w.labels, w.values, index.size - 1
    for i in range(k, end):
        request(starts, np.int64(index[min(i + AHEAD, last)]))
        soon = starts[index[min(i + NEAR, last)]]
        request(labels, soon)
        request(values, soon)
        r = np.int64(index[i])
        for e in range(starts[r], starts[r + 1]):
            out[np.int64(labels[e])] += values[e]


@add_scaled_row.implements(SparseWeights)
def _add_scaled_list(w, r, width, x, out):
    labels, values = w.labels, w.values
    for e in range(w.starts[r], w.starts[r + 1]):
        out[np.int64(labels[e])] += x * values[e]


@expect_row.implements(SparseWeights)
def _expect_list(into, r, width):
    request(into.starts, r)
