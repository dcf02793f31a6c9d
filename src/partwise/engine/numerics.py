"""Small numerics that vectorise: an exponential, which decides the speed of sums over outputs, maxima, and whole vectors."""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from partwise.engine.compilation import OPTIONS, helper

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


def _one_instruction(name):
    """LLVM's own maximum or minimum: a loop over it is known to be a reduction and vectorises, one over comparisons is not."""

    @intrinsic
    def extreme(typing_context, a, b):
        def codegen(context, builder, signature, arguments):
            number = arguments[0].type
            function = builder.module.declare_intrinsic(name, [number], ir.FunctionType(number, [number, number]))
            return builder.call(function, arguments, fastmath=("nnan", "nsz"))

        return a(a, a), codegen

    return extreme


_largest, _smallest = _one_instruction("llvm.maxnum"), _one_instruction("llvm.minnum")


@overload(larger, jit_options=OPTIONS)
def _larger(a, b):
    if isinstance(a, types.Float) and a == b:
        return lambda a, b: _largest(a, b)
    return lambda a, b: a if a > b else b


@overload(smaller, jit_options=OPTIONS)
def _smaller(a, b):
    if isinstance(a, types.Float) and a == b:
        return lambda a, b: _smallest(a, b)
    return lambda a, b: a if a < b else b


@helper
def softplus(x):
    """log(1 + e^x)."""
    return x + np.log1p(np.exp(-x)) if x > 0.0 else np.log1p(np.exp(x))
