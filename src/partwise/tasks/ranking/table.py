"""Tables of documents for a `Ranker`: their query, their relevance, and features, which are numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from partwise.tasks.common.tables import Grid, TaskTable


class DocumentTable(TaskTable):
    """A row is a document."""

    row, group, needs_label = "a document", "a query", True
    group_titles = ("qid", "query", "query_id", "group")
    relevance = ("relevance", "grade", "label", "target", "y")  #: titles, where none is named

    def fit(self, estimator: Any, grid: Grid, label: Any, group: Any, features: Sequence[Any] | None, **fit: Any) -> list[Any]:
        group = self.group_column(grid, group)
        names = grid.others(group, label) if features is None else list(features)
        rows = grid.groups(group)
        order = [r for own in rows for r in own]
        numbers = np.repeat(np.arange(len(rows)), [len(own) for own in rows])
        estimator.fit(grid.matrix(names)[order], grid.matrix([label])[order, 0], groups=numbers, **fit)
        return names

    def predict(self, estimator: Any, grid: Grid, group: Any, features: Sequence[Any] | None) -> dict[str, list[Any]]:
        return {"": estimator.predict(grid.matrix(features or grid.others(group))).tolist()}

    def text(self, grid: Grid, group: Any, unknown: str | None = None) -> tuple[str, list[int]]:
        """svmlight with qid: queries are numbered from 1, features too, in the order of the columns."""
        group, label = self.group_column(grid, group), grid.called(self.relevance)
        rows = grid.groups(group)
        X = grid.matrix(grid.others(group, label))
        grades = np.zeros(len(grid)) if label is None else grid.matrix([label])[:, 0]
        lines = []
        for query, own in enumerate(rows, 1):
            for r in own:
                values = " ".join(f"{k}:{value:.17g}" for k, value in enumerate(X[r].tolist(), 1))
                lines.append(f"{grades[r]:.17g} qid:{query} {values}\n")
        return "".join(lines), [r for own in rows for r in own]

    def answers(self, model: Any, data: Any) -> dict[str, list[Any]]:
        from partwise.tasks.ranking.command import answers

        return {"": answers(model, data).tolist()}


TABLE = DocumentTable()
