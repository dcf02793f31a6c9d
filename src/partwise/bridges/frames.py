"""Data frames: a row for each token, word, document or example, and a column that says which belong together.

Frames of pandas and polars and tables of Arrow are taken alike, and answers come back in the same kind. Rows of a group need not
be neighbours; groups come in the order of their first rows, rows in the order of the frame.

====================  ===================================================================================================
`SequenceLabeler`      a row is a token, a group a sequence: strings are attributes, numbers values, lists vectors
`SegmentLabeler`       a row is a token, a group a sentence; labels are those of chunks
`DependencyParser`     a row is a word, a group a sentence; columns form, lemma, upos, xpos, feats, head, deprel
`Ranker`               a row is a document, a group a query
`Classifier`           a row is an example; there is no group
`ConstituencyParser`   a row is a sentence: the column tree, or sentence
`RnaFolder`            a row is a sequence: the columns sequence and structure
`Aligner`              a row is a pair: the columns row1 and row2
====================  ===================================================================================================

What a task makes of a table is said where the task is (`partwise.tasks.common.tables`); parquet files on the command line are
read in the same way.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Hashable, Sequence
from typing import Any

from partwise.tasks.common.registry import BY_ESTIMATOR, TASKS
from partwise.tasks.common.tables import Grid, TaskTable, titled

#: packages, and their first and last major versions that the tests ran with
TESTED = {"pandas": (2, 3), "polars": (1, 2), "pyarrow": (14, 26)}
FRAME = {"pyarrow": "Table"}  #: the class, where it is no DataFrame
_warned: set[str] = set()


def kind_of(frame: Any) -> str:
    """Whose it is. A version that was not tested is warned of, once."""
    home = type(frame).__module__.partition(".")[0]
    if home not in TESTED or not isinstance(frame, getattr(sys.modules[home], FRAME.get(home, "DataFrame"))):
        lazy = " Collect it first." if hasattr(frame, "collect") else ""
        raise TypeError(f"Expected a frame of pandas or polars, or a table of Arrow. Got {type(frame).__name__}.{lazy}")
    version, (first, last) = str(getattr(sys.modules[home], "__version__", "0")), TESTED[home]
    if home not in _warned and version.split(".")[0].isdigit() and not first <= int(version.split(".")[0]) <= last:
        _warned.add(home)
        warnings.warn(f"partwise was tested with {home} {first} to {last}; this is {version}.", stacklevel=3)
    return home


def grid_of(frame: Any, name: str = "the frame") -> Grid:
    """The columns of a frame as lists."""
    kind = kind_of(frame)
    if kind == "pandas":
        return Grid(list(frame.columns), [frame.iloc[:, k].tolist() for k in range(frame.shape[1])], name).checked()
    if kind == "polars":
        return Grid(list(frame.columns), [column.to_list() for column in frame.get_columns()], name)
    return Grid(list(frame.column_names), [column.to_pylist() for column in frame.columns], name).checked()


def with_columns(frame: Any, columns: dict[str, list[Any]]) -> Any:
    """The frame with more columns; those that are there under these names are replaced."""
    kind = kind_of(frame)
    if kind == "pandas":
        return frame.assign(**columns)
    if kind == "polars":
        import polars

        return frame.with_columns(*(polars.Series(name, values) for name, values in columns.items()))
    import pyarrow

    for name, values in columns.items():
        frame = frame.drop_columns([name]) if name in frame.column_names else frame
        frame = frame.append_column(name, pyarrow.array(values))
    return frame


def sequences_of(
    frame: Any, group: Hashable | None, features: Sequence[str] | None = None, label: Hashable | None = None
) -> tuple:
    """Sequences of tokens as dicts, and their labels (None without `label`), for a `SequenceLabeler`.

    Parameters
    ----------
    frame : pandas or polars frame, Arrow table
    group : str or None
        The column that says which rows are one sequence; None: all are one.
    features : sequence of str, optional
        The columns that describe a token (default: all others).
    label : str, optional
        The column of labels.

    Returns
    -------
    X : list of lists of dicts
    y : list of lists of labels, or None

    Examples
    --------
    >>> import pandas
    >>> frame = pandas.DataFrame({"s": [1, 1, 2], "word": ["a", "dog", "it"], "tag": ["D", "N", "P"]})
    >>> sequences_of(frame, "s", label="tag")
    ([[{'word': 'a'}, {'word': 'dog'}], [{'word': 'it'}]], [['D', 'N'], ['P']])
    """
    from partwise.tasks.tagging.table import sequences

    grid = grid_of(frame)
    names = grid.others(group, label) if features is None else list(features)
    return sequences(grid, grid.groups(group), names, label)


def table_of(estimator: Any) -> TaskTable:
    """What an estimator makes of a table, by the task that the registry knows it for."""
    for cls in type(estimator).__mro__:
        if (task := BY_ESTIMATOR.get(cls.__name__)) is not None and task.table is not None:
            return task.table
    able = ", ".join(task.estimator for task in TASKS if task.table is not None)
    raise TypeError(f"A frame is natural for {able}. Got {type(estimator).__name__}.")


def fit_frame(
    estimator: Any,
    frame: Any,
    *,
    label: str | None = None,
    group: str | None = None,
    features: Sequence[str] | None = None,
    **fit: Any,
) -> Any:
    """Train on a frame.

    Parameters
    ----------
    estimator : estimator
        Of any task but graphs; see `partwise.bridges.frames` for what a row is.
    frame : pandas or polars frame, Arrow table
    label : str, optional
        The column of labels, or of grades, for tasks that have one; tokens without a value are unlabelled. Parsers, folders and
        aligners find their columns by title.
    group : str, optional
        The column that says which rows belong together: sentences, queries. By default one that is called so: ``sentence``,
        ``qid``, ...
    features : sequence of str, optional
        The columns that describe a row (default: all others).
    **fit
        Handed on to `fit`.

    Returns
    -------
    estimator
        It has an attribute more, ``frame_features_``: the columns that were learned from.

    Examples
    --------
    >>> import pandas
    >>> frame = pandas.DataFrame({"s": [1, 1, 2, 2], "word": ["a", "dog", "the", "cat"], "tag": ["D", "N", "D", "N"]})
    >>> labeler = fit_frame(partwise.SequenceLabeler(max_epochs=5), frame, group="s", label="tag")
    >>> predict_frame(labeler, frame, group="s")["predicted"].tolist()
    ['D', 'N', 'D', 'N']
    """
    table = table_of(estimator)
    if label is None and table.needs_label:
        raise ValueError(f"{type(estimator).__name__} needs 'label': the column to learn.")
    estimator.frame_features_ = table.fit(estimator, grid_of(frame), label, group, features, **fit)
    return estimator


def predict_frame(
    estimator: Any, frame: Any, *, group: str | None = None, features: Sequence[str] | None = None, name: str = "predicted"
) -> Any:
    """The frame with the answers as one more column: labels, classes, structures, or scores to sort documents by.

    Parameters
    ----------
    estimator : estimator
        Trained, by `fit_frame` or otherwise.
    frame : pandas or polars frame, Arrow table
    group : str, optional
        As in `fit_frame`.
    features : sequence of str, optional
        The columns that describe a row (default: those of `fit_frame`, or all others).
    name : str
        Of the new column. Answers of several parts have several: ``predicted_head`` and ``predicted_deprel``, ``predicted_row1``
        and ``predicted_row2``.

    Returns
    -------
    frame
        Of the kind that was given.

    Examples
    --------
    >>> import pandas
    >>> frame = pandas.DataFrame({"x": [0.0, 1.0, 2.0, 3.0], "class": ["low", "low", "high", "high"]})
    >>> classifier = fit_frame(partwise.Classifier(max_epochs=50, fit_intercept=True), frame, label="class")
    >>> predict_frame(classifier, pandas.DataFrame({"x": [0.2, 2.9]}))["predicted"].tolist()
    ['low', 'high']
    """
    names = features or getattr(estimator, "frame_features_", None) or None
    return with_columns(frame, titled(table_of(estimator).predict(estimator, grid_of(frame), group, names), name))
