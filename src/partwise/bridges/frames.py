"""Data frames: a row for each token, document or example, a column that says which belong together.

Frames of pandas and polars and tables of Arrow are taken alike, and answers come back in the same kind. Rows of a group need not
be neighbours; groups come in the order of their first rows, rows in the order of the frame.

==================  ===================================================================
`SequenceLabeler`    a row is a token, a group a sequence
`Ranker`             a row is a document, a group a query
`Classifier`         a row is an example; there is no group
==================  ===================================================================
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

KINDS = ("pandas", "polars", "pyarrow")


def kind_of(frame: Any) -> str:
    """Whose it is."""
    home = type(frame).__module__.partition(".")[0]
    if home not in KINDS or not hasattr(frame, "columns"):
        raise TypeError(f"Expected a frame of pandas or polars, or a table of Arrow. Got {type(frame).__name__}.")
    return home


def names_in(frame: Any) -> list[str]:
    """Its columns."""
    return list(frame.column_names if kind_of(frame) == "pyarrow" else frame.columns)


def column(frame: Any, name: Hashable) -> list[Any]:
    """The values of a column, or an error that says which there are."""
    if name not in names_in(frame):
        raise KeyError(f"There is no column {name!r}. The columns are: {', '.join(map(str, names_in(frame)))}.")
    if kind_of(frame) == "pandas":
        return frame[name].tolist()
    return frame[name].to_list() if kind_of(frame) == "polars" else frame[name].to_pylist()


def with_column(frame: Any, name: str, values: Sequence[Any]) -> Any:
    """The frame with one more column, the last."""
    kind = kind_of(frame)
    if kind == "pandas":
        return frame.assign(**{name: values})
    if kind == "polars":
        import polars

        return frame.with_columns(polars.Series(name, values))
    import pyarrow

    return frame.append_column(name, pyarrow.array(values))


def groups_of(frame: Any, group: Hashable | None) -> list[list[int]]:
    """Numbers of the rows of each group; None: all rows are one."""
    if group is None:
        return [list(range(len(frame)))]
    found: dict[Any, list[int]] = {}
    for row, value in enumerate(column(frame, group)):
        if value is None or (isinstance(value, float) and math.isnan(value)):
            raise ValueError(f"Row {row} has no value in the column {group!r}, which says what it belongs to.")
        found.setdefault(value, []).append(row)
    return list(found.values())


def features_in(frame: Any, features: Sequence[str] | None, *others: Hashable | None) -> list[str]:
    """Which columns describe a row: those that are named, or all but `others`."""
    if features is not None:
        return list(features)
    found = [name for name in names_in(frame) if name not in others]
    if not found:
        raise ValueError("There is no column left that would describe a row.")
    return found


def as_attribute(value: Any) -> Any:
    """What `SequenceLabeler` takes: strings, numbers, and vectors as numbers by place; None: nothing is known."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, list | tuple | np.ndarray):
        if len(value) and isinstance(value[0], str):
            return list(value)
        return {str(k): float(one) for k, one in enumerate(value)}
    return value.item() if isinstance(value, np.generic) else value


def sequences_of(
    frame: Any, group: Hashable | None, features: Sequence[str] | None = None, label: Hashable | None = None
) -> tuple:
    """Sequences of tokens as dicts, and their labels (None without `label`), for a `SequenceLabeler`."""
    names = features_in(frame, features, group, label)
    columns = {name: [as_attribute(value) for value in column(frame, name)] for name in names}
    rows = groups_of(frame, group)
    X = [[{name: columns[name][r] for name in names if columns[name][r] is not None} for r in own] for own in rows]
    if label is None:
        return X, None
    labels = [None if isinstance(one, float) and math.isnan(one) else one for one in column(frame, label)]
    return X, [[labels[r] for r in own] for own in rows]


def matrix_of(frame: Any, features: Sequence[str]) -> np.ndarray:
    """Numbers of all rows; says which column has others."""
    columns = []
    for name in features:
        try:
            columns.append(np.array(column(frame, name), np.float64))
        except (TypeError, ValueError):
            raise ValueError(
                f"The column {name!r} holds something that is no number. Leave it out, or encode it first."
            ) from None
    return np.column_stack(columns)


def role_of(estimator: Any) -> str:
    """The task of an estimator, by the name of its class."""
    known = {"SequenceLabeler": "tokens", "Ranker": "documents", "Classifier": "rows"}
    for cls in type(estimator).__mro__:
        if cls.__name__ in known:
            return known[cls.__name__]
    raise TypeError(f"A frame is natural for {', '.join(known)}. Got {type(estimator).__name__}.")


def fit_frame(
    estimator: Any, frame: Any, *, label: str, group: str | None = None, features: Sequence[str] | None = None, **fit: Any
) -> Any:
    """Train on a frame.

    Parameters
    ----------
    estimator : SequenceLabeler, Ranker or Classifier
    frame : pandas or polars frame, Arrow table
    label : str
        The column of labels, or of grades. Tokens without a value are unlabelled.
    group : str, optional
        The column that says which rows belong together: sentences, queries.
    features : sequence of str, optional
        The columns that describe a row (default: all others).
    **fit
        Handed on to `fit`.
    """
    role = role_of(estimator)
    if role != "rows" and group is None:
        raise ValueError(f"{type(estimator).__name__} needs 'group': the column that says which rows belong together.")
    names = features_in(frame, features, group, label)
    if role == "tokens":
        estimator.fit(*sequences_of(frame, group, names, label), **fit)
    elif role == "documents":
        rows = groups_of(frame, group)
        order = [r for own in rows for r in own]
        numbers = np.repeat(np.arange(len(rows)), [len(own) for own in rows])
        grades = np.array(column(frame, label))
        estimator.fit(matrix_of(frame, names)[order], grades[order], groups=numbers, **fit)
    else:
        estimator.fit(matrix_of(frame, names), np.array(column(frame, label)), **fit)
    estimator.frame_features_ = names
    return estimator


def predict_frame(
    estimator: Any, frame: Any, *, group: str | None = None, features: Sequence[str] | None = None, name: str = "predicted"
) -> Any:
    """The frame with one more column: labels, classes, or scores to sort documents by."""
    role = role_of(estimator)
    names = list(features or getattr(estimator, "frame_features_", None) or features_in(frame, None, group))
    if role != "tokens":
        answers = estimator.predict(matrix_of(frame, names))
        return with_column(frame, name, list(np.asarray(answers).tolist()))
    answers = [None] * len(frame)
    X, _ = sequences_of(frame, group, names)
    for own, labels in zip(groups_of(frame, group), estimator.predict(X), strict=True):
        for row, label in zip(own, labels, strict=True):
            answers[row] = label
    return with_column(frame, name, answers)
