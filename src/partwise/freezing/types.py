"""Types of arguments and results as strings, which ``calls.c`` reads; the grammar is at its beginning."""

from __future__ import annotations

from typing import Any

from partwise.engine.frozen import DTYPES

ARGUMENTS = {"int64": "i", "float64": "d", "bool": "b", "none": "n"}
RESULTS = {**ARGUMENTS, "float32": "f", "int32": "l"}
MOST_RESULTS = 64  # fields of 8 bytes that there is room for
FIRST, BASE = ord("!"), 90  # digits are printable, and none of them is NUL
PLAIN = ""  # the class of a plain tuple, in the list of classes


class NotWritten(Exception):
    """A type that there is no string for: such calls are left to numba."""


def digit(n: int) -> str:
    """One character for 0 <= n < 90."""
    if not 0 <= n < BASE:
        raise NotWritten(f"{n} fields or classes")
    return chr(FIRST + n)


def name_of(cls: type) -> str:
    """Where a class is found."""
    return f"{cls.__module__}:{cls.__qualname__}"


def argument(t: Any, classes: list[str]) -> str:
    """The string of a type; classes that are not in the list yet are added to it."""
    from numba import types
    from numba.np.numpy_support import as_dtype

    if isinstance(t, types.Array):
        dtype = as_dtype(t.dtype)
        if dtype.kind not in "iufb" or not t.aligned or t.ndim > 9:
            raise NotWritten(str(t))
        return f"A{dtype.kind}{dtype.itemsize}{t.ndim}{t.layout}{int(not t.mutable)}"
    if isinstance(t, types.BaseTuple):
        name = name_of(t.instance_class) if isinstance(t, types.BaseNamedTuple) else PLAIN
        if name not in classes:
            classes.append(name)
        number = classes.index(name)
        return f"T{digit(number // BASE)}{digit(number % BASE)}{digit(len(t))}{''.join(argument(f, classes) for f in t)}"
    if str(t) not in ARGUMENTS:
        raise NotWritten(str(t))
    return ARGUMENTS[str(t)]


def result(t: Any) -> str:
    """The string of the type of what a loop returns."""
    from numba import types
    from numba.np.numpy_support import as_dtype

    if isinstance(t, types.Array) and t.layout == "C":
        letters = {dtype: chr(code) for code, dtype in DTYPES.items()}
        return f"a{letters[as_dtype(t.dtype)]}{t.ndim}"
    if isinstance(t, types.BaseTuple) and not isinstance(t, types.BaseNamedTuple):
        fields = [result(f) for f in t]
        if any(f.startswith("(") for f in fields):
            raise NotWritten(f"{t}: tuples in tuples")
        return f"({digit(len(t))}{''.join(fields)}"
    if str(t) not in RESULTS:
        raise NotWritten(str(t))
    return RESULTS[str(t)]


def room(t: Any) -> int:
    """Fields of 8 bytes that a result takes at most."""
    from numba import types

    if isinstance(t, types.BaseTuple):
        return sum(map(room, t))
    return 5 + 2 * t.ndim if isinstance(t, types.Array) else 1
