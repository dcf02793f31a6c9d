"""Tables of tokens for a `SequenceLabeler`: in memory strings are attributes, numbers have values, lists are vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from partwise.tasks.common.tables import Grid, TokenTable, in_rows, is_missing


def as_attribute(value: Any) -> Any:
    """What `SequenceLabeler` takes: strings, numbers, and vectors as numbers by place; None: nothing is known."""
    if is_missing(value):
        return None
    if isinstance(value, list | tuple | np.ndarray):
        if len(value) and isinstance(value[0], str):
            return list(value)
        return {str(k): float(one) for k, one in enumerate(value)}
    return value.item() if isinstance(value, np.generic) else value


def sequences(grid: Grid, rows: list[list[int]], features: Sequence[Any], label: Any = None) -> tuple[Any, Any]:
    """Sequences of tokens as dicts, and their labels (None without `label`)."""
    columns = {str(title): [as_attribute(value) for value in grid.column(title)] for title in features}
    X = [[{name: values[r] for name, values in columns.items() if values[r] is not None} for r in own] for own in rows]
    if label is None:
        return X, None
    labels = [None if is_missing(one) else one for one in grid.column(label)]
    return X, [[labels[r] for r in own] for own in rows]


class LabelledTokens(TokenTable):
    """Tokens as dicts of attributes; on the command line as the cells of a column file."""

    def fit(self, estimator: Any, grid: Grid, label: Any, group: Any, features: Sequence[Any] | None, **fit: Any) -> list[Any]:
        group = self.group_column(grid, group)
        names = grid.others(group, label) if features is None else list(features)
        estimator.fit(*sequences(grid, grid.groups(group), names, label), **fit)
        return names

    def predict(self, estimator: Any, grid: Grid, group: Any, features: Sequence[Any] | None) -> dict[str, list[Any]]:
        group = self.group_column(grid, group)
        rows = grid.groups(group)
        X, _ = sequences(grid, rows, grid.others(group) if features is None else features)
        answers = [label for labels in estimator.predict(X) for label in labels]
        return in_rows({"": answers}, [r for own in rows for r in own], grid.name)

    def answers(self, model: Any, data: Any) -> dict[str, list[Any]]:
        from partwise.tasks.tagging.answers import Answers

        codes, names = Answers(model).written(model.predict_codes(data), data.starts)
        return {"": [names[k] for k in codes.tolist()]}


TABLE = LabelledTokens()
