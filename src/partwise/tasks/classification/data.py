"""What a classifier is given in Python: a matrix of features and the classes of its rows, checked.

The checks are those that scikit-learn makes, in its words, so that what is refused looks familiar; scikit-learn itself is not
needed for them. The truth of an example is a class, None (unknown) or a set of candidate classes.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from numbers import Number
from typing import Any

import numpy as np

from partwise.features.given_labels import GivenLabels, number_labels
from partwise.features.rows import as_csr, is_sparse

FEW = 5  # names in a message


class Truth:
    """The classes of some examples: codes, and the sets that codes from the number of classes on stand for."""

    def __init__(self, codes: np.ndarray, known: np.ndarray | None = None):
        self.codes, self.known = codes, known

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, which: Any) -> Truth:
        return Truth(self.codes[which], self.known)

    def fits(self, n_classes: int) -> np.ndarray:
        """Which classes may be right, bool (examples, classes)."""
        found, single = np.zeros((len(self), n_classes), bool), np.flatnonzero(self.codes < n_classes)
        found[single, self.codes[single]] = True
        if self.known is not None:
            several = np.flatnonzero(self.codes >= n_classes)
            found[several] = self.known[self.codes[several] - n_classes]
        return found


# ---------------------------------------------------------------------------------------------------------------------
# Features
# ---------------------------------------------------------------------------------------------------------------------


def read_matrix(X: Any, dtype: Any) -> Any:
    """Finite numbers: an array (examples, features), row by row, or a sparse matrix in rows."""
    given: Any = X if is_sparse(X) else np.asarray(X)
    if given.dtype.kind == "c":
        raise ValueError(f"Complex data not supported. X is of type {given.dtype}.")
    if given.ndim != 2:
        advice = (
            "Reshape your data: array.reshape(-1, 1) if it is one feature, array.reshape(1, -1) if it is one example. "
            if given.ndim < 2
            else ""
        )
        raise ValueError(f"Expected 2D array, got {given.ndim}D array instead. {advice}Got shape {given.shape}.")
    for n, what in zip(given.shape, ("sample", "feature"), strict=True):
        if n < 1:
            raise ValueError(f"Found array with 0 {what}(s) (shape={given.shape}) while a minimum of 1 is required.")
    with np.errstate(over="ignore"):  # what is too large for the type is infinite, and refused below
        matrix: Any = as_csr(given).astype(dtype) if is_sparse(given) else np.ascontiguousarray(given, dtype)
    values = matrix.data if is_sparse(matrix) else matrix
    if not np.isfinite(values).all():
        bad = int(np.flatnonzero(~np.isfinite(values))[0])
        row = np.searchsorted(matrix.indptr, bad, side="right") - 1 if is_sparse(matrix) else bad // matrix.shape[1]
        raise ValueError(f"Input X contains NaN or infinity: row {row} holds {values.flat[bad]}.")
    return matrix


def names_of(X: Any) -> np.ndarray | None:
    """Names of the columns of a data frame, if all of them are strings."""
    columns = getattr(X, "columns", None)
    if columns is None or not len(columns):
        return None
    names = np.empty(len(columns), object)
    names[:] = list(columns)
    kinds = sorted({type(name).__qualname__ for name in names})
    if "str" in kinds and len(kinds) > 1:
        raise TypeError(
            "Feature names are only supported if all input features have string names, but your input has "
            f"{kinds} as feature name / column name types."
        )
    return names if kinds == ["str"] else None


def check_names(known: np.ndarray | None, found: np.ndarray | None, who: str) -> None:
    """Warn if only one of training and prediction has names of features; raise if they are not the same."""
    if known is None or found is None:
        if found is not None:
            warnings.warn(f"X has feature names, but {who} was fitted without feature names", stacklevel=4)
        elif known is not None:
            warnings.warn(f"X does not have valid feature names, but {who} was fitted with feature names", stacklevel=4)
        return
    if known.tolist() == found.tolist():
        return
    message = "The feature names should match those that were passed during fit.\n"
    new, gone = sorted(set(found) - set(known)), sorted(set(known) - set(found))
    for title, names in (("Feature names unseen at fit time:", new), ("Feature names seen at fit time, yet now missing:", gone)):
        if names:
            message += "\n".join([title, *(f"- {name}" for name in names[:FEW]), *["- ..."] * (len(names) > FEW)]) + "\n"
    raise ValueError(message if new or gone else message + "Feature names must be in the same order as they were in fit.\n")


# ---------------------------------------------------------------------------------------------------------------------
# Classes
# ---------------------------------------------------------------------------------------------------------------------


def read_classes(y: Any, n: int, who: str) -> np.ndarray | GivenLabels:
    """The classes of n examples: an array, or, if some are unknown or sets, the labels numbered."""
    if y is None:
        raise ValueError(f"{who} requires y to be passed, but the target y is None.")
    if is_partial(y):
        return number_classes(y, n)
    if isinstance(y, list | tuple) and len(types := set(map(type, y))) > 1:
        refuse_mixed(y, types)
    classes = np.asarray(y)
    if classes.ndim == 2 and classes.shape[1] == 1:
        # scikit-learn's class, where anyone can know it: not worth importing otherwise
        category = getattr(sys.modules.get("sklearn.exceptions"), "DataConversionWarning", UserWarning)
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected. Please change the shape of y to (n_samples, ), for "
            "example using ravel().",
            category,
            stacklevel=4,
        )
        classes = classes.reshape(-1)
    if classes.ndim != 1:
        raise ValueError(f"y should be a 1d array, got an array of shape {classes.shape} instead.")
    if len(classes) != n:
        raise ValueError(f"Found input variables with inconsistent numbers of samples: [{n}, {len(classes)}]")
    return check_kind(classes)


def refuse_mixed(y: Sequence[Any], types: set[type]) -> None:
    """Raise for classes that numpy would take for one though they look like several: 1, 1.0, True and '1'."""
    words = [kind for kind in types if issubclass(kind, str | bytes)]
    if words and len(words) < len(types) and all(issubclass(kind, str | bytes | Number | np.bool_) for kind in types):
        k = next(k for k, label in enumerate(y) if not isinstance(label, str | bytes))
        raise ValueError(
            f"Some classes are strings, and {place(k)} has {y[k]!r} ({type(y[k]).__name__}). Give them one type, strings say."
        )
    if not words and all(issubclass(kind, Number | np.bool_) for kind in types):
        number_labels(y, place)


def check_kind(classes: np.ndarray) -> np.ndarray:
    """Raise unless these can be classes: whole numbers, truth values or strings."""
    kind = classes.dtype.kind
    if kind == "f":
        if not np.isfinite(classes).all():
            bad = int(np.flatnonzero(~np.isfinite(classes))[0])
            raise ValueError(f"Input y contains NaN or infinity: {place(bad)} has {classes[bad]}.")
        if (classes != np.floor(classes)).any():
            raise ValueError(
                "Unknown label type: continuous. Maybe you are trying to fit a classifier, which expects discrete classes, on a "
                "regression target with continuous values."
            )
    elif kind == "O":
        types = {type(label) for label in classes}
        if not types <= {str, np.str_}:
            natural = np.array(classes.tolist())
            if natural.dtype.kind not in "biu" or len(types) > 1:
                raise ValueError(
                    f"Unknown label type: unknown. Classes must be strings or whole numbers; y holds "
                    f"{', '.join(sorted(t.__name__ for t in types))}."
                )
            return natural
    elif kind not in "biuUS":
        raise ValueError(f"Unknown label type: {classes.dtype}. Classes must be strings or whole numbers.")
    return classes


def place(k: int) -> str:
    """Where an example is, in words."""
    return f"example {k}"


def is_partial(y: Any) -> bool:
    """Whether some label is None (unknown) or a set (one of these)."""
    if isinstance(y, np.ndarray):
        y = y if y.dtype == object else ()
    elif not isinstance(y, list | tuple):
        return False
    return any(label is None or isinstance(label, set | frozenset) for label in y)


def number_classes(y: Any, n: int) -> GivenLabels:
    """Labels some of which are unknown or sets."""
    labels = y.tolist() if isinstance(y, np.ndarray) else list(y)
    if len(labels) != n:
        raise ValueError(f"X has {n} examples, but y has {len(labels)} labels.")
    return number_labels(labels, place)
