"""What must hold of arrays that come from a file, before compiled loops see them: loops do not check indices.

Whoever packs training data (`partwise.tasks.common.packing`) may be a stranger. So whatever points somewhere is compared with
what it points into: rows of features here, the arrays of a structure in its module ``stored``. All of it is a few passes over
whole arrays, which takes no longer than their checksums do.
"""

from __future__ import annotations

import functools
import importlib
import math
from typing import Any

import numpy as np

from partwise.features.arc_rows import MARGIN, MOST_TEMPLATES, ArcRows
from partwise.features.rows import Binary, Dense, Sparse

MOST_FEATURES = 2**31  # they are numbered by 32 bits
MOST_BITS = 31  # of numbers of features that are hashes
MOST_WEIGHTS = 2**48  # far more than there can be, and far from where 64 bits end
KINDS = {"i": ("i4", "i8"), "t": ("i1",), "u": ("u8",), "f": ("f4", "f8"), "b": ("b1",)}


def expect(holds: Any, what: str) -> None:
    """Raise a ValueError that says `what` unless it holds."""
    if not holds:
        raise ValueError(what)


def check_array(name: str, array: np.ndarray, shape: tuple[int, ...], kind: str) -> None:
    """Of this shape, and of a type that loops are compiled for.

    Kinds: "i" whole, of 32 or 64 bits; "t" tiny, 8 bits; "u" 64 bits without sign; "f" real; "b" true or not.
    """
    expect(array.shape == shape, f"{name} has the shape {array.shape} instead of {shape}")
    expect(array.dtype.isnative and array.dtype.str[1:] in KINDS[kind], f"{name} has the type {array.dtype}")
    if kind == "b" and array.size:
        expect(np.ascontiguousarray(array).view(np.uint8).max() <= 1, f"{name} has something that is neither true nor false")


def check_numbers(name: str, array: np.ndarray, n: int, low: int, high: int, kind: str = "i") -> None:
    """Whole numbers, n of them, from `low` to below `high`."""
    check_array(name, array, (n,), kind)
    if array.size:
        least, most = int(array.min()), int(array.max())
        expect(low <= least and most < high, f"{name} has numbers from {least} to {most}, beyond {low} to {high - 1}")


def check_offsets(name: str, array: np.ndarray, n: int, total: int | None = None) -> None:
    """Where n things begin, and the end, that is `total`; without one it is not looked at."""
    check_array(name, array, (n + 1,), "i")
    expect(array[0] == 0 and (total is None or array[-1] == total), f"{name} goes from {array[0]} to {array[-1]}, not to {total}")
    expect((array[1:] >= array[:-1]).all(), f"{name} falls")


def check_sizes(name: str, array: np.ndarray, sizes: np.ndarray) -> None:
    """Offsets of things of these sizes."""
    check_offsets(name, array, len(sizes))
    expect((np.diff(array) == sizes).all(), f"{name} does not fit what else there is")


def check_reals(name: str, array: np.ndarray, shape: int | tuple[int, ...]) -> None:
    """Numbers, none of them NaN."""
    check_array(name, array, shape if isinstance(shape, tuple) else (shape,), "f")
    expect(not array.size or not math.isnan(array.min()), f"{name} has something that is no number")


def check_int(name: str, value: Any, low: int, high: int) -> None:
    """From `low` to below `high`."""
    fine = isinstance(value, int | np.integer) and not isinstance(value, bool | np.bool_) and low <= value < high
    expect(fine, f"{name} is {value!r}, not an int from {low} to {high - 1}")


def check_flags(value: Any, *names: str) -> None:
    """Fields that are true or false."""
    for name in names:
        expect(isinstance(getattr(value, name), bool), f"{name} is {getattr(value, name)!r}, neither true nor false")


def owners(starts: np.ndarray) -> np.ndarray:
    """The number of its example for everything that examples have."""
    return np.repeat(np.arange(len(starts) - 1), np.diff(starts))


# ---------------------------------------------------------------------------------------------------------------------
# Problems
# ---------------------------------------------------------------------------------------------------------------------


@functools.singledispatch
def check_arrays(problem: Any) -> None:
    """`check_stored` for one structure: each has a module ``stored`` that registers its own."""
    raise ValueError(f"nothing is known of what a {type(problem).__name__} must be")


def is_known(problem: Any) -> bool:
    """Whether it is known what must hold of such problems: of those of this library that are stored."""
    home = type(problem).__module__.rpartition(".")[0]
    if home.startswith("partwise.structures."):
        try:
            importlib.import_module(f"{home}.stored")
        except ModuleNotFoundError:
            return False
    return check_arrays.dispatch(type(problem)) is not check_arrays.dispatch(object)


def check_stored(problem: Any) -> None:
    """Raise a ValueError where a packed problem contradicts itself, or points beyond what it has.

    O(entries of all arrays), in whole passes.
    """
    is_known(problem)
    try:
        check_arrays(problem)
    except (LookupError, TypeError, AttributeError, OverflowError) as error:  # a field that is something else altogether
        raise ValueError(f"{type(problem).__name__}: {type(error).__name__}: {error}") from None


# ---------------------------------------------------------------------------------------------------------------------
# Rows of features
# ---------------------------------------------------------------------------------------------------------------------


@functools.singledispatch
def check_rows(rows: Any, n: int) -> None:
    """Raise a ValueError unless these are n rows of features whose arrays agree with each other."""
    raise ValueError(f"{type(rows).__name__} is no kind of rows of features")


@check_rows.register
def _(rows: Binary, n: int) -> None:
    check_int("n_features", rows.n_features, 0, MOST_FEATURES)
    check_offsets("ptr", rows.ptr, n, len(rows.index))
    check_numbers("index", rows.index, len(rows.index), 0, rows.n_features)


@check_rows.register
def _(rows: Sparse, n: int) -> None:
    check_rows(Binary(rows.ptr, rows.index, rows.n_features), n)
    check_reals("value", rows.value, len(rows.index))


@check_rows.register
def _(rows: Dense, n: int) -> None:
    check_int("n_features", rows.n_features, 0, MOST_FEATURES)
    check_reals("matrix", rows.matrix, (n, rows.n_features))


@check_rows.register
def _(rows: ArcRows, n: int) -> None:
    places = _check_cells(rows, len(rows.between))
    check_int("n_features", rows.n_features, 1 << rows.bits, (1 << rows.bits) + 1)
    expect(len(rows.seed) <= MOST_TEMPLATES, f"there are {len(rows.seed)} templates")
    check_numbers("side", rows.side, len(rows.side), 0, 2)
    check_numbers("between", rows.between, len(rows.seed), -1, len(rows.cells))
    check_numbers("head", rows.head, n, MARGIN, places - MARGIN)
    check_numbers("word", rows.word, n, MARGIN, places - MARGIN)


def _check_cells(rows: ArcRows, n_templates: int) -> int:
    """Cells, atoms and templates; how many places there are."""
    columns, places = rows.cells.shape if rows.cells.ndim == 2 else (0, 0)
    check_array("cells", rows.cells, (columns, places), "u")
    check_int("bits", rows.bits, 1, MOST_BITS + 1)
    check_numbers("column", rows.column, len(rows.side), 0, columns)
    check_numbers("offset", rows.offset, len(rows.side), -MARGIN, MARGIN + 1)
    check_array("seed", rows.seed, (n_templates,), "u")
    check_offsets("ptr", rows.ptr, n_templates, len(rows.atom))
    check_numbers("atom", rows.atom, len(rows.atom), 0, len(rows.side))
    return places
