"""Tables of sentences for a `ConstituencyParser`: a column of trees in brackets, or of sentences to parse."""

from __future__ import annotations

from typing import Any

from partwise.tasks.common.tables import Grid, TaskTable
from partwise.tasks.constituency.files import read_brackets, read_brackets_or_lines


class TreeTable(TaskTable):
    """A row is a sentence: its ``tree``, or its words in the column ``sentence``."""

    row = "a sentence"

    def text(self, grid: Grid, group: Any, unknown: str | None = None) -> tuple[str, list[int]]:
        """A tree, or a sentence, a line."""
        title = grid.called(("tree", "sentence", "text"))
        lines = [" ".join(str(value).split()) for value in grid.column("tree" if title is None else title)]
        for row, line in enumerate(lines):
            if not line or line == "None":
                raise ValueError(f"{grid.name}, row {row}, column {title!r}: there is no value.")
        return "\n".join([*lines, ""]), list(range(len(grid)))

    def read(self, text: bytes, labelled: bool) -> Any:
        return (read_brackets if labelled else read_brackets_or_lines)(text)

    def answers(self, model: Any, data: Any) -> dict[str, list[Any]]:
        return {"": [str(tree) for tree in model.predict(data)]}


TABLE = TreeTable()
