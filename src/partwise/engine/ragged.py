"""Things of different sizes laid end to end, example i having those from starts[i] to starts[i + 1]: taking some, adding up."""

from __future__ import annotations

from typing import Any

import numpy as np


def taken(starts: np.ndarray, which: np.ndarray | slice) -> tuple[np.ndarray, Any]:
    """Where the examples numbered `which` begin when they lie end to end, and where all that they have lies now.

    Neighbours have all they have in one place, which is told as a slice: what is taken by it is a view, and nothing is copied.

    Examples
    --------
    >>> [x.tolist() for x in taken(np.array([0, 2, 2, 5]), np.array([2, 0]))]
    [[0, 3, 5], [2, 3, 4, 0, 1]]
    >>> taken(np.array([0, 2, 2, 5]), slice(1, 3))
    (array([0, 0, 3]), slice(2, 5, None))
    """
    if isinstance(which, slice):
        own = starts[which.start : which.stop + 1]
        return own - own[0], slice(int(own[0]), int(own[-1]))
    sizes = np.diff(starts)[which]
    own = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=own[1:])
    # entry k of the result is as far into its example as k is from where that begins now
    return own, np.arange(own[-1]) + np.repeat(starts[:-1][which] - own[:-1], sizes)


def totals(values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """The sum of the values of each example, (N,); 0 where it has none. Of bools, how many are true.

    Examples
    --------
    >>> totals(np.array([True, False, True, True]), np.array([0, 2, 2, 4])).tolist()
    [1, 0, 2]
    """
    return np.diff(np.concatenate([[0], np.cumsum(values)])[starts])


_LAYOUTS: dict[type, dict[str, str]] = {}


def lay_out(kind: type, offsets: tuple[str, ...] = (), each: tuple[str, ...] = ()) -> None:
    """Say of a NamedTuple how examples lie in it, so that those of several can be laid end to end.

    Parameters
    ----------
    kind : type
    offsets : names of fields
        Where examples, or rows, begin, and the end: counted on from the end of what comes before.
    each : names of fields
        Things of examples, or rows, end to end. All other fields are shared by all examples, and must be alike.
    """
    _LAYOUTS[kind] = {**dict.fromkeys(offsets, "offsets"), **dict.fromkeys(each, "each")}


def layout_of(value: Any, prefix: str = "") -> dict[str, str]:
    """How the arrays of a NamedTuple lie: "offsets", "each" or "shared" by their names, ``rows.index``."""
    own = next((_LAYOUTS[kind] for kind in type(value).__mro__ if kind in _LAYOUTS), None)
    if own is None:
        raise TypeError(f"{type(value).__name__} does not say how examples lie in it: call `lay_out` for it.")
    found = {}
    for name, item in zip(value._fields, value, strict=True):
        if isinstance(item, np.ndarray):
            found[prefix + name] = own.get(name, "shared")
        elif isinstance(item, tuple) and hasattr(item, "_fields"):
            found |= layout_of(item, f"{prefix}{name}.")
    return found
