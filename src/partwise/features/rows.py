"""Feature rows: what a token, an arc or a document looks like to a linear model.

Weights that score a row against `width` labels form a row-major matrix [feature, label], flattened: scoring a row is a sum of
contiguous weight rows, which vectorises. The three kinds differ only in how non-zeros are stored, and structures are
compiled for the kind they are given.

Inner loops run over slices: indices that start at zero need no check for negative ones, and that check keeps LLVM from
vectorising. Arrays are taken out of a NamedTuple once, not in a loop: each time counts a reference.
"""

from __future__ import annotations

import functools
import sys
from typing import Any, NamedTuple

import numpy as np

from partwise.engine.accumulator import expect_row, row
from partwise.engine.compilation import helper, kernel
from partwise.engine.prefetch import AHEAD
from partwise.engine.ragged import lay_out, taken
from partwise.features.few_labels import FEW, emit_few, emit_few_of_all, emit_few_ones


class Binary(NamedTuple):
    """Sparse rows whose non-zeros are all one: most of natural language. 4 bytes per non-zero."""

    ptr: np.ndarray  #: (rows + 1,) int64 offsets into index
    index: np.ndarray  #: int32 feature of each non-zero
    n_features: int


class Sparse(NamedTuple):
    """Sparse rows with real values (CSR)."""

    ptr: np.ndarray
    index: np.ndarray
    value: np.ndarray
    n_features: int


class Dense(NamedTuple):
    """A plain matrix of features."""

    matrix: np.ndarray  #: (rows, features)
    n_features: int


lay_out(Binary, offsets=("ptr",), each=("index",))
lay_out(Sparse, offsets=("ptr",), each=("index", "value"))
lay_out(Dense, each=("matrix",))


def is_sparse(x: Any) -> bool:
    """Whether x is a scipy sparse matrix; without importing scipy, for where nobody has, there can be none."""
    module = sys.modules.get("scipy.sparse")
    return module is not None and module.issparse(x)


def as_csr(x: Any) -> Any:
    """A scipy sparse matrix by rows, after looking at what scipy itself does not: whether its indices are in it."""
    if x.format in ("csr", "csc", "bsr"):
        try:
            x.check_format(full_check=True)
        except ValueError as error:
            raise ValueError(f"The sparse matrix of shape {x.shape} contradicts itself: {error}.") from None
    elif x.format == "coo":
        for axis, index in enumerate(x.coords if hasattr(x, "coords") else (x.row, x.col)):
            if index.size and not (0 <= index.min() and index.max() < x.shape[axis]):
                raise ValueError(f"The sparse matrix of shape {x.shape} contradicts itself: there is an index {index.max()}.")
    return x.tocsr()


def make_rows(x: Any, dtype=np.float64) -> Binary | Sparse | Dense:
    """Rows from a 2-D array or a scipy sparse matrix; `Binary` where every stored value is one."""
    if not is_sparse(x):
        matrix = np.ascontiguousarray(x, dtype=dtype)
        return Dense(matrix, matrix.shape[1])
    x = as_csr(x)
    if x.shape[1] > np.iinfo(np.int32).max:
        raise ValueError(f"There are {x.shape[1]:,} features; they are numbered by 32 bits, so that 2,147,483,647 is the most.")
    ptr, index = x.indptr.astype(np.int64), x.indices.astype(np.int32)
    if (x.data == 1).all():
        return Binary(ptr, index, x.shape[1])
    return Sparse(ptr, index, x.data.astype(dtype), x.shape[1])


@kernel
def n_rows(rows):
    """Number of rows."""


@kernel
def emit(rows, r, w, width, out):
    """out += W^T x_r: add the scores of row r against all labels.

    `out` may be longer than `width`: whole vectors are then read past the end of a row of weights, and the surplus is rubbish.
    """


@kernel(default=True)
def n_emitted(problem):
    """How many rows of weights, the first ones, a structure reads by `emit` alone: they may be lists of what is not zero."""
    return 0


@kernel
def emit_difference(rows, r, w, width, a, b):
    """x_r . (W[:, a] - W[:, b])."""


@kernel
def add_label(rows, r, width, label, c, into):
    """W[:, label] += c * x_r."""


@kernel
def add_labels(rows, r, width, a, b, c, into):
    """W[:, a] += c * x_r and W[:, b] -= c * x_r."""


@kernel
def add_row(rows, r, width, p, c, into):
    """W += c * x_r p^T."""


@kernel
def row_norm(rows, r):
    """||x_r||^2."""


@n_rows.implements(Binary, Sparse)
def _(rows):
    return rows.ptr.size - 1


@n_rows.implements(Dense)
def _(rows):
    return rows.matrix.shape[0]


@helper
def whole_row(w, r, width, n):
    """Row r of the weights, n >= width of them if there are so many."""
    start = r * width
    return w[start : start + n] if start + n <= w.size else w[start : start + width]


@kernel
def emit_ones(w, index, k, end, width, out):
    """out += the rows ``index[k:end]`` of the weights `w`, an array or some other kind of them; as `emit`."""


@kernel(default=True)
def emit_scaled(w, index, value, k, end, width, out):
    """out += the rows ``index[k:end]`` of the weights `w`, each times its value; as `emit`."""
    while k < end:
        add_scaled_row(w, np.int64(index[k]), width, value[k], out)
        k += 1


@kernel
def add_scaled_row(w, r, width, x, out):
    """out += x times row r of the weights `w`; as `emit`."""


@emit.implements(Binary)
def _(rows, r, w, width, out):
    emit_ones(w, rows.index, rows.ptr[r], rows.ptr[r + 1], width, out)


@emit_ones.implements(np.ndarray)
def _(w, index, k, end, width, out):
    if width <= FEW:
        emit_few_ones(w, index, k, end, width, out)
        return
    n = len(out)
    while k + 4 <= end:  # four rows of weights for one pass over `out`
        if k + AHEAD + 4 <= index.size:
            for ahead in range(k + AHEAD, k + AHEAD + 4):
                expect_row(w, np.int64(index[ahead]), width)
        a, b = np.int64(index[k]), np.int64(index[k + 1])
        c, d = np.int64(index[k + 2]), np.int64(index[k + 3])
        m = n if max(max(a, b), max(c, d)) * width + n <= w.size else width
        p, q = w[a * width : a * width + m], w[b * width : b * width + m]
        x, y = w[c * width : c * width + m], w[d * width : d * width + m]
        for j in range(m):
            out[j] += (p[j] + q[j]) + (x[j] + y[j])
        k += 4
    while k < end:
        score = whole_row(w, np.int64(index[k]), width, n)
        for j in range(len(score)):
            out[j] += score[j]
        k += 1


@emit.implements(Sparse)
def _(rows, r, w, width, out):
    emit_scaled(w, rows.index, rows.value, rows.ptr[r], rows.ptr[r + 1], width, out)


@emit_scaled.implements(np.ndarray)
def _(w, index, value, k, end, width, out):
    if width <= FEW:
        emit_few(w, index, value, k, end, width, out)
        return
    while k < end:
        if k + AHEAD < index.size:
            expect_row(w, np.int64(index[k + AHEAD]), width)
        add_scaled_row(w, np.int64(index[k]), width, value[k], out)
        k += 1


@add_scaled_row.implements(np.ndarray)
def _(w, r, width, x, out):
    score = whole_row(w, r, width, len(out))
    for j in range(len(score)):
        out[j] += x * score[j]


@emit.implements(Dense)
def _(rows, r, w, width, out):
    x, whole = rows.matrix[r], rows.n_features // 4 * 4
    if width <= FEW:
        emit_few_of_all(x, w, width, out)
        return
    for f in range(0, whole, 4):  # four at a time: `out` is read and written once for all of them
        first, second, third, fourth = row(w, f, width), row(w, f + 1, width), row(w, f + 2, width), row(w, f + 3, width)
        x0, x1, x2, x3 = x[f], x[f + 1], x[f + 2], x[f + 3]
        for j in range(width):
            out[j] += x0 * first[j] + x1 * second[j] + x2 * third[j] + x3 * fourth[j]
    for f in range(whole, rows.n_features):
        score = row(w, f, width)
        for j in range(width):
            out[j] += x[f] * score[j]


@emit_difference.implements(Binary)
def _(rows, r, w, width, a, b):
    total = 0.0
    for k in range(rows.ptr[r], rows.ptr[r + 1]):
        start = rows.index[k] * np.int64(width)
        total += w[start + a] - w[start + b]
    return total


@emit_difference.implements(Sparse)
def _(rows, r, w, width, a, b):
    total = 0.0
    for k in range(rows.ptr[r], rows.ptr[r + 1]):
        start = rows.index[k] * np.int64(width)
        total += rows.value[k] * (w[start + a] - w[start + b])
    return total


@emit_difference.implements(Dense)
def _(rows, r, w, width, a, b):
    total = 0.0
    for f in range(rows.n_features):
        total += rows.matrix[r, f] * (w[f * width + a] - w[f * width + b])
    return total


@add_label.implements(Binary)
def _(rows, r, width, label, c, into):
    for k in range(rows.ptr[r], rows.ptr[r + 1]):
        row(into, np.int64(rows.index[k]), width)[label] += c


@add_label.implements(Sparse)
def _(rows, r, width, label, c, into):
    for k in range(rows.ptr[r], rows.ptr[r + 1]):
        row(into, np.int64(rows.index[k]), width)[label] += c * rows.value[k]


@add_label.implements(Dense)
def _(rows, r, width, label, c, into):
    for f in range(rows.n_features):
        if rows.matrix[r, f] != 0:
            row(into, f, width)[label] += c * rows.matrix[r, f]


@add_labels.implements(Binary)
def _(rows, r, width, a, b, c, into):
    for k in range(rows.ptr[r], rows.ptr[r + 1]):
        out = row(into, np.int64(rows.index[k]), width)
        out[a] += c
        out[b] -= c


@add_labels.implements(Sparse)
def _(rows, r, width, a, b, c, into):
    for k in range(rows.ptr[r], rows.ptr[r + 1]):
        out, change = row(into, np.int64(rows.index[k]), width), c * rows.value[k]
        out[a] += change
        out[b] -= change


@add_labels.implements(Dense)
def _(rows, r, width, a, b, c, into):
    x = rows.matrix[r]
    for f in range(rows.n_features):
        if x[f] != 0:
            out, change = row(into, f, width), c * x[f]
            out[a] += change
            out[b] -= change


@add_row.implements(Binary)
def _(rows, r, width, p, c, into):
    for k in range(rows.ptr[r], rows.ptr[r + 1]):
        if k + AHEAD < rows.index.size:
            expect_row(into, np.int64(rows.index[k + AHEAD]), width)
        out = row(into, np.int64(rows.index[k]), width)
        for j in range(width):
            out[j] += c * p[j]


@add_row.implements(Sparse)
def _(rows, r, width, p, c, into):
    for k in range(rows.ptr[r], rows.ptr[r + 1]):
        if k + AHEAD < rows.index.size:
            expect_row(into, np.int64(rows.index[k + AHEAD]), width)
        out = row(into, np.int64(rows.index[k]), width)
        x = c * rows.value[k]
        for j in range(width):
            out[j] += x * p[j]


@add_row.implements(Dense)
def _(rows, r, width, p, c, into):
    for f in range(rows.n_features):
        x = c * rows.matrix[r, f]
        if x != 0:
            out = row(into, f, width)
            for j in range(width):
                out[j] += x * p[j]


@row_norm.implements(Binary)
def _(rows, r):
    return float(rows.ptr[r + 1] - rows.ptr[r])


@row_norm.implements(Sparse)
def _(rows, r):
    total = 0.0
    for k in range(rows.ptr[r], rows.ptr[r + 1]):
        total += rows.value[k] * rows.value[k]
    return total


@row_norm.implements(Dense)
def _(rows, r):
    total, x = 0.0, rows.matrix[r]
    for f in range(rows.n_features):
        total += x[f] * x[f]
    return total


@functools.singledispatch
def take_rows(rows: Any, which: np.ndarray) -> Any:
    """The rows numbered `which`, in that order, of the same kind. O(their non-zeros)."""
    raise TypeError(f"{type(rows).__name__} says nothing of how to take some of its rows: register `take_rows` for it.")


@take_rows.register
def _(rows: Dense, which: np.ndarray) -> Dense:
    return Dense(rows.matrix[which], rows.n_features)


@take_rows.register
def _(rows: Binary, which: np.ndarray) -> Binary:
    ptr, entries = taken(rows.ptr, which)
    return Binary(ptr, rows.index[entries], rows.n_features)


@take_rows.register
def _(rows: Sparse, which: np.ndarray) -> Sparse:
    ptr, entries = taken(rows.ptr, which)
    return Sparse(ptr, rows.index[entries], rows.value[entries], rows.n_features)


def spread_of(rows: Any, weight: np.ndarray | None = None) -> float:
    """The mean squared distance of the rows from their mean, sum_j Var(x_j): what decides which C suits numbers of any scale.

    A row of weight two counts as two rows.
    """
    n = n_rows(rows)
    share = np.full(n, 1.0 / max(n, 1)) if weight is None else weight / weight.sum()
    if isinstance(rows, Dense):
        x = np.asarray(rows.matrix, np.float64)
        means = share @ x
        found = (share @ np.square(x - means)).sum()
    else:
        values = np.ones(len(rows.index)) if isinstance(rows, Binary) else rows.value.astype(np.float64)
        shares = np.repeat(share, np.diff(rows.ptr))
        means = np.bincount(rows.index, shares * values, rows.n_features)
        found = shares @ np.square(values) - means @ means
    return float(found) if found > 1e-12 * (means @ means) else 0.0  # less is rounding: nothing differs
