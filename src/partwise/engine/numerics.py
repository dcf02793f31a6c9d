"""Small numerics that vectorise: an exponential, which decides the speed of sums over outputs, maxima, and whole vectors."""

from __future__ import annotations

import numpy as np

from partwise.engine.compilation import helper, when_compiling

LOG2_E = 1.4426950408889634
LN2_HIGH = 0.6931471803691238  # the leading bits of ln 2: n * LN2_HIGH is exact for the n that occur
LN2_LOW = 1.9082149292705877e-10
LOWEST = -700.0  # e^-700 = 1e-304: anything below is zero


@helper
def exp(x):
    """e^x for x <= 700 with a relative error below 3e-14; zero below e^-700, so -inf is welcome.

    x = n ln 2 + r with |r| <= ln 2 / 2; e^r by its Taylor polynomial of degree 13 (remainder below 1e-17), 2^n by its bits.
    Unlike a library call this is plain arithmetic, which LLVM turns into vector instructions within a loop.
    """
    c = max(x, LOWEST)
    n = np.floor(c * LOG2_E + 0.5)
    r = c - n * LN2_HIGH - n * LN2_LOW
    p = 1.0 / 6227020800.0
    p = p * r + 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    power = np.int64((np.int64(n) + 1023) << 52).view(np.float64)
    return p * power if x >= LOWEST else 0.0


FLOAT_LOWEST = np.float32(-87.0)  # e^-87 = 1.6e-38: about the smallest number that float32 holds in full
FLOAT_LOG2_E, FLOAT_LN2_HIGH, FLOAT_LN2_LOW = np.float32(LOG2_E), np.float32(0.693359375), np.float32(-2.12194440e-4)
FLOAT_TERMS = tuple(np.float32(1.0 / k) for k in (5040, 720, 120, 24, 6, 2))


@helper
def exp_of_float(x):
    """e^x of a float32 x <= 87 with a relative error below 3e-7; zero below e^-87. A quarter of the work of `exp`."""
    one, half = np.float32(1.0), np.float32(0.5)
    c = max(x, FLOAT_LOWEST)
    n = np.floor(c * FLOAT_LOG2_E + half)
    r = c - n * FLOAT_LN2_HIGH - n * FLOAT_LN2_LOW
    p = FLOAT_TERMS[0]
    p = p * r + FLOAT_TERMS[1]
    p = p * r + FLOAT_TERMS[2]
    p = p * r + FLOAT_TERMS[3]
    p = p * r + FLOAT_TERMS[4]
    p = p * r + FLOAT_TERMS[5]
    p = p * r + one
    p = p * r + one
    power = np.int32((np.int32(n) + 127) << 23).view(np.float32)
    return p * power if x >= FLOAT_LOWEST else np.float32(0.0)


@helper
def padded_width(L, itemsize):
    """Room for L labels and one more symbol in whole vectors of 64 bytes, so that inner loops leave no remainder."""
    lanes = 64 // itemsize
    return (L + lanes) // lanes * lanes


@helper
def fill(out, value):
    """out[:] = value, as a loop: inlined, where numba's slice assignment is not."""
    for c in range(len(out)):
        out[c] = value


@helper
def clipped(x, limit):
    """x, but not beyond +-limit."""
    return max(-limit, min(limit, x))


@helper
def copy(values, out):
    """out[:] = values, likewise."""
    for c in range(len(values)):
        out[c] = values[c]


def larger(a, b):
    """max(a, b) of numbers that are not NaN."""
    return a if a > b else b


def smaller(a, b):
    """min(a, b) of numbers that are not NaN."""
    return a if a < b else b


@when_compiling
def _tell_of_extremes(numba):
    from partwise.engine.instructions import extreme

    numba.overloads(larger, extreme("llvm.maxnum", larger))
    numba.overloads(smaller, extreme("llvm.minnum", smaller))


@helper
def softplus(x):
    """log(1 + e^x)."""
    return x + np.log1p(np.exp(-x)) if x > 0.0 else np.log1p(np.exp(x))
