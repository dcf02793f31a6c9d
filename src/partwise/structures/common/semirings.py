"""Three ways to add up alternatives: their maximum, their sum, and their sum in logarithms.

A recursion written over ``plus`` and ``times`` finds the best output in the first semiring, and the sum over all outputs in the
others.

=========  ===========  =======  ==================================================================================
semiring   plus         times    good for
=========  ===========  =======  ==================================================================================
LARGEST    max          +        the best output
SUM        +            x        sums, where no number leaves the range of floats: multiplications only, quick
LOG_SUM    log-sum-exp  +        the same, however large or small the scores
=========  ===========  =======  ==================================================================================

Which one is decided when the code runs, once for each vector: long recursions are then compiled once rather than three times, and
the loops over vectors, where the time goes, are as quick as if each were alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partwise.engine.compilation import helper
from partwise.engine.numerics import exp, larger

LARGEST, SUM, LOG_SUM = 0, 1, 2


class Semiring(NamedTuple):
    """One of the three."""

    kind: int
    zero: float  #: of an alternative that does not exist
    one: float


@helper
def make_semiring(kind):
    """The semiring of that kind."""
    return Semiring(kind, 0.0, 1.0) if kind == SUM else Semiring(kind, -np.inf, 0.0)


@helper
def lift(s, score):
    """What stands for an alternative of this score."""
    return exp(score) if s.kind == SUM else score


@helper
def times(s, a, b):
    """Both a and b."""
    return a * b if s.kind == SUM else a + b


@helper
def log_plus(a, b):
    """log(e^a + e^b)."""
    high, low = (a, b) if a > b else (b, a)
    return high if low == -np.inf else high + np.log1p(exp(low - high))


@helper
def plus(s, a, b):
    """Either a or b."""
    if s.kind == SUM:
        return a + b
    return larger(a, b) if s.kind == LARGEST else log_plus(a, b)


@helper
def sum_of_products(a, b):
    """`inner` of SUM."""
    total = 0.0
    for k in range(len(a)):
        total += a[k] * b[k]
    return total


@helper
def highest_sum(a, b):
    """`inner` of LARGEST."""
    top = -np.inf
    for k in range(len(a)):
        top = larger(top, a[k] + b[k])
    return top


@helper
def log_inner(a, b):
    """`inner` of LOG_SUM."""
    top = highest_sum(a, b)
    if top == -np.inf:
        return top
    total = 0.0
    for k in range(len(a)):
        total += exp(a[k] + b[k] - top)
    return top + np.log(total)


@helper
def inner(s, a, b):
    """sum_k a[k] b[k]."""
    if s.kind == SUM:
        return sum_of_products(a, b)
    return highest_sum(a, b) if s.kind == LARGEST else log_inner(a, b)


@helper
def add_to(s, out, c, a):
    """out[k] += c a[k]; not for LARGEST."""
    if s.kind == SUM:
        for k in range(len(a)):
            out[k] += c * a[k]
    else:
        for k in range(len(a)):
            out[k] = log_plus(out[k], c + a[k])


@helper
def divide(s, a, b):
    """a / b; b is not zero."""
    return a / b if s.kind == SUM else a - b


@helper
def as_number(s, a):
    """The plain number that a stands for: a probability, say."""
    return a if s.kind == SUM else exp(a)


@helper
def share(s, c, a, b, out, counts):
    """out[k] += c a[k], and counts[k] += c a[k] b[k] as plain numbers; returns the sum of what was counted. Not for LARGEST."""
    total = 0.0
    if s.kind == SUM:
        for k in range(len(a)):
            given = c * a[k]
            out[k] += given
            counts[k] += given * b[k]
            total += given * b[k]
        return total
    for k in range(len(a)):
        given = c + a[k]
        out[k] = log_plus(out[k], given)
        counts[k] += exp(given + b[k])
        total += exp(given + b[k])
    return total


@helper
def sum_of_products_counted(c, a, b, counts):
    """sum_k a[k] b[k], and counts[k] += c a[k] b[k], in SUM."""
    total = 0.0
    for k in range(len(a)):
        product = a[k] * b[k]
        total += product
        counts[k] += c * product
    return total


@helper
def log_inner_counted(c, a, b, counts):
    """The same in LOG_SUM; what is counted are plain numbers."""
    for k in range(len(a)):
        counts[k] += exp(c + a[k] + b[k])
    return log_inner(a, b)
