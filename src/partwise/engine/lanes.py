"""Vectors of 64 bytes as values: where a recursion runs along diagonals, what one step hands to the next stays in registers.

LLVM vectorises loops over arrays by itself. But a value that moves to the neighbouring lane from one step to the next would go
through memory there, and a load that straddles two stores just made waits for both. Here a vector is a variable. In plain Python
the same functions work on small arrays of numpy, so that a recursion is written once; `lane_instructions` says what they are
compiled to.

The number of lanes follows from the type of the numbers: 8 of float64, 16 of float32 (`lanes_of`).
"""

from __future__ import annotations

import numpy as np

from partwise.engine.compilation import when_compiling

BYTES = 64


# ---------------------------------------------------------------------------------------------------------------------
# From and to arrays
# ---------------------------------------------------------------------------------------------------------------------


def lanes_of(a):
    """How many lanes the vectors of an array's numbers have."""
    return BYTES // a.itemsize


def load(a, b):
    """The vector that begins at a[b]."""
    return a[b : b + lanes_of(a)].copy()


def store(a, b, c):
    """a[b:] = vector c."""
    a[b : b + len(c)] = c


def transpose(a, b, c):
    """The vectors that begin at a[b[0]], a[b[1]], ..., as many as they have lanes, as the columns of matrix c (flat)."""
    c.reshape(len(b), len(b))[:] = np.stack([load(a, k) for k in b], axis=1)


def spread(a, b):
    """The number b in all lanes of a vector as those of array a."""
    return np.full(lanes_of(a), b, a.dtype)


def first_lane(a):
    """The number in lane 0."""
    return a[0]


# ---------------------------------------------------------------------------------------------------------------------
# Arithmetic, lane by lane
# ---------------------------------------------------------------------------------------------------------------------


def plus(a, b):
    """a + b."""
    return a + b


def largest(a, b):
    """max(a, b) of numbers that are not NaN."""
    return np.maximum(a, b)


def above(a, b):
    """Where a > b."""
    return a > b


def at_least(a, b):
    """Where a >= b."""
    return a >= b


def chosen(a, b, c):
    """b where a is true, c elsewhere."""
    return np.where(a, b, c)


def moved_down(a, b):
    """Lane k gets what lane k + 1 of a had; the last one gets the number b."""
    return np.append(a[1:], a.dtype.type(b))


# ---------------------------------------------------------------------------------------------------------------------
# Bits: one byte a lane
# ---------------------------------------------------------------------------------------------------------------------


def with_bit(a, b, c):
    """Bytes a, with bit c set where b is true; a is such bytes, or 0 for none."""
    return a | np.where(b, c, 0).astype(np.uint8)


@when_compiling
def _tell_of_lanes(numba):
    import partwise.engine.lane_instructions  # noqa: F401 - which tells what each of these is compiled to
