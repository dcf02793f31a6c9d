"""NamedTuples of arrays, numbers and NamedTuples, taken apart into JSON and arrays by name, and put together again.

A packed problem is one. Its arrays are called by the way to them, ``rows.index``; its types are written as ``module:name``, and
only NamedTuples of this library are made from such text: nothing in a file is executed.
"""

from __future__ import annotations

import contextlib
import importlib
import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

DTYPE = re.compile(r"[<>|=]?[?A-Za-z]+\d{0,9}")  #: "<f8", "|b1", "float32"
HOMES = ("partwise.structures.", "partwise.features.")  #: where types of packed problems are


def apart(value: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What `together` needs: a description for JSON, and arrays by name.

    Examples
    --------
    >>> from partwise.features.rows import Binary
    >>> apart(Binary(np.array([0, 1]), np.array([7]), 9))
    ({'type': 'partwise.features.rows:Binary', 'fields': {'ptr': 'array', 'index': 'array', 'n_features': 9}}, \
{'ptr': array([0, 1]), 'index': array([7])})
    """
    arrays: dict[str, np.ndarray] = {}
    return _describe(value, "", arrays), arrays


def _describe(value: Any, prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    kind = type(value)
    fields: dict[str, Any] = {}
    for name, item in zip(value._fields, value, strict=True):
        if isinstance(item, np.ndarray):
            fields[name], arrays[prefix + name] = "array", item
        elif isinstance(item, tuple) and hasattr(item, "_fields"):
            fields[name] = _describe(item, f"{prefix}{name}.", arrays)
        elif isinstance(item, np.generic):
            fields[name] = {"numpy": [item.dtype.str, item.item()]}
        elif isinstance(item, float) and not math.isfinite(item):
            fields[name] = {"float": str(item)}
        elif isinstance(item, bool | int | float):
            fields[name] = item
        else:
            raise TypeError(f"A packed problem cannot keep {prefix}{name}, a {type(item).__name__}.")
    return {"type": f"{kind.__module__}:{kind.__qualname__}", "fields": fields}


def together(about: Any, arrays: Mapping[str, np.ndarray], prefix: str = "") -> Any:
    """The value that `apart` described; a description that is not one is a ValueError."""
    if not isinstance(about, dict) or not isinstance(about.get("fields"), dict):
        raise ValueError("a problem is not described as one")
    kind = type_called(about.get("type"))
    found: dict[str, Any] = {}
    if tuple(about["fields"]) != kind._fields:
        raise ValueError(f"{kind.__name__} has other fields")
    for name, item in about["fields"].items():
        annotated = next(one.__annotations__[name] for one in kind.__mro__ if name in getattr(one, "__annotations__", ()))
        if (getattr(annotated, "__forward_arg__", "") == "np.ndarray") != (item == "array"):
            raise ValueError(f"{prefix}{name} is an array, or should not be one")
        if item == "array":
            if prefix + name not in arrays:
                raise ValueError(f"the array {prefix + name!r} is missing")
            found[name] = arrays[prefix + name]
        elif isinstance(item, dict) and "type" in item:
            found[name] = together(item, arrays, f"{prefix}{name}.")
        elif isinstance(item, dict) and list(item) == ["numpy"]:
            found[name] = dtype_called(item["numpy"][0]).type(item["numpy"][1])
        elif isinstance(item, dict) and list(item) == ["float"]:
            found[name] = float(item["float"])
        elif isinstance(item, bool | int | float):
            found[name] = item
        else:
            raise ValueError(f"{prefix}{name} is {str(item)[:40]}")
    return kind(**found)


def dtype_called(name: Any) -> np.dtype:
    """A type of numpy's by its name in a file; a ValueError for anything else.

    For `numpy.dtype` a name may be a whole language, parts of which it gives to Python's parser: ``"(2,<i4"`` is a SyntaxError.
    """
    if isinstance(name, str) and DTYPE.fullmatch(name):
        with contextlib.suppress(TypeError):
            return np.dtype(name)
    raise ValueError(f"{str(name)[:40]!r} is no type of an array")


def type_called(name: Any) -> Any:
    """The NamedTuple of that name, one of ours."""
    module, _, own = str(name).partition(":")
    try:
        if not f"{module}.".startswith(HOMES) or not own.isidentifier():
            raise AttributeError
        kind = getattr(importlib.import_module(module), own)
    except (ImportError, AttributeError):
        raise ValueError(f"there is no structure {str(name)[:80]!r} in this version") from None
    if not (isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")):
        raise ValueError(f"{name!r} is no structure")
    return kind
