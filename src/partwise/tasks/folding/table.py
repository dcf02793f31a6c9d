"""Tables of sequences for an `RnaFolder`: the columns sequence and structure, and id, family and fold, if there are any."""

from __future__ import annotations

from typing import Any

from partwise.tasks.common.tables import Grid, TaskTable
from partwise.tasks.folding.files import read_rna

TITLES = ("structure", "family", "fold")


class RnaTable(TaskTable):
    """A row is a sequence."""

    row = "a sequence"

    def text(self, grid: Grid, group: Any, unknown: str | None = None) -> tuple[str, list[int]]:
        """A table as text."""
        wanted = [("sequence", grid.called(("sequence",)))]
        if wanted[0][1] is None:
            grid.column("sequence")  # says which columns there are
        wanted += [(name, title) for name in TITLES if (title := grid.called((name,))) is not None]
        name = grid.called(("id",))
        names = [f"row {r}" for r in range(len(grid))] if name is None else grid.cells(name)
        columns = [grid.cells(title, "") for _, title in wanted]
        rows = zip(names, *columns, strict=True)
        lines = ["\t".join(["id", *(name for name, _ in wanted)]), *("\t".join(row) for row in rows)]
        return "\n".join([*lines, ""]), list(range(len(grid)))

    def read(self, text: bytes, labelled: bool) -> Any:
        return read_rna(text)

    def answers(self, model: Any, data: Any) -> dict[str, list[Any]]:
        return {"": list(model.predict(data))}


TABLE = RnaTable()
