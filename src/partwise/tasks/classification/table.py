"""Tables of examples for a `Classifier`: columns of numbers; parquet files are read as other tables are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from partwise.tasks.common.tables import Grid, TaskTable


class ExampleTable(TaskTable):
    """A row is an example."""

    row = "an example"
    needs_label, is_text = True, False

    def fit(self, estimator: Any, grid: Grid, label: Any, group: Any, features: Sequence[Any] | None, **fit: Any) -> list[Any]:
        names = grid.others(group, label) if features is None else list(features)
        estimator.fit(grid.matrix(names), np.array(grid.column(label)), **fit)
        return names

    def predict(self, estimator: Any, grid: Grid, group: Any, features: Sequence[Any] | None) -> dict[str, list[Any]]:
        return {"": np.asarray(estimator.predict(grid.matrix(features or grid.others(group)))).tolist()}

    def answers(self, model: Any, data: Any) -> dict[str, list[Any]]:
        return {"": np.asarray(model.predict(data.X)).tolist()}


TABLE = ExampleTable()
