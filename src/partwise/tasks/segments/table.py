"""Tables of tokens for a `SegmentLabeler`: cells are text, labels those of chunks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from partwise.tasks.common.tables import Grid, TokenTable, in_rows, is_missing


def sentences(grid: Grid, rows: list[list[int]], features: Sequence[Any]) -> list[list[tuple[str, ...]]]:
    """Sentences of tokens as tuples of strings."""
    if not features:
        raise ValueError(f"{grid.name}: there is no column to describe a token.")
    tokens = list(zip(*(grid.cells(title) for title in features), strict=True))
    return [[tokens[r] for r in own] for own in rows]


class ChunkedTokens(TokenTable):
    """Tokens as tuples of cells."""

    def fit(self, estimator: Any, grid: Grid, label: Any, group: Any, features: Sequence[Any] | None, **fit: Any) -> list[Any]:
        group = self.group_column(grid, group)
        names = grid.others(group, label) if features is None else list(features)
        rows = grid.groups(group)
        labels = [None if is_missing(one) else one for one in grid.column(label)]
        estimator.fit(sentences(grid, rows, names), [[labels[r] for r in own] for own in rows], **fit)
        return names

    def predict(self, estimator: Any, grid: Grid, group: Any, features: Sequence[Any] | None) -> dict[str, list[Any]]:
        group = self.group_column(grid, group)
        rows = grid.groups(group)
        X = sentences(grid, rows, grid.others(group) if features is None else features)
        return in_rows(self.answers(estimator, X), [r for own in rows for r in own], grid.name)

    def answers(self, model: Any, data: Any) -> dict[str, list[Any]]:
        return {"": [label for labels in model.predict(data) for label in labels]}


TABLE = ChunkedTokens()
