"""Tables of pairs for an `Aligner`: the columns row1 and row2, and core, if there is one."""

from __future__ import annotations

from typing import Any

from partwise.tasks.alignment.files import NAMED, read_alignments
from partwise.tasks.common.tables import Grid, TaskTable


class PairTable(TaskTable):
    """A row is a pair: two aligned rows to learn from, two sequences to align."""

    row = "a pair"

    def text(self, grid: Grid, group: Any, unknown: str | None = None) -> tuple[str, list[int]]:
        """A table as text."""
        titles = [*NAMED, *(("core",) if "core" in grid.titles else ())]
        columns = [grid.cells(title, "") for title in titles]
        lines = ["\t".join(titles), *("\t".join(row) for row in zip(*columns, strict=True))]
        return "\n".join([*lines, ""]), list(range(len(grid)))

    def read(self, text: bytes, labelled: bool) -> Any:
        return read_alignments(text, aligned=True if labelled else None)

    def answers(self, model: Any, data: Any) -> dict[str, list[Any]]:
        rows = [found.rows() for found in model.predict(data)]
        return {name: [one[k] for one in rows] for k, name in enumerate(NAMED)}


TABLE = PairTable()
