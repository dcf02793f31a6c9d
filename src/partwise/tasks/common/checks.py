"""What a parameter may be: tests of a value, each with the words for the message."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np

Check = tuple[Callable[[Any], bool], str]  #: whether a value is fine, and what would be, in words


def is_real(low: float, high: float = math.inf, closed: bool = False) -> Callable[[Any], bool]:
    """Whether a value is a number above `low`, or from it on if `closed`, and below `high`."""

    def test(value: Any) -> bool:
        number = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
        return number and (low <= value if closed else low < value) and value < high

    return test


def is_count(low: int, optional: bool = False) -> Callable[[Any], bool]:
    """Whether a value is an integer from `low` on; or None, if `optional`."""

    def test(value: Any) -> bool:
        return (optional and value is None) or (isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= low)

    return test


def is_share(value: Any) -> bool:
    """Whether a value is a number from 0 to 1."""
    return is_real(0.0, closed=True)(value) and value <= 1.0


def is_bool(value: Any) -> bool:
    """Whether a value is True or False."""
    return isinstance(value, bool | np.bool_)


def is_dtype(value: Any) -> bool:
    """Whether weights may be of that type."""
    try:
        return np.dtype(value) in (np.float32, np.float64)
    except (TypeError, ValueError, SyntaxError):  # numpy gives parts of a string to Python's parser
        return False


def is_callbacks(value: Any) -> bool:
    """Whether a value can be called after every epoch."""
    return value is None or callable(value) or (isinstance(value, list | tuple) and all(map(callable, value)))


def optional(test: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """The same, or None."""
    return lambda value: value is None or test(value)


def one_of(*names: Any) -> Check:
    """One of these values, and nothing that only compares equal, as 1 and True do."""
    words = ", ".join(repr(name) for name in names[:-1])
    return (lambda value: any(type(value) is type(name) and value == name for name in names)), f"{words} or {names[-1]!r}"
