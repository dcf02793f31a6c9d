"""Tables of words for a `DependencyParser`: the columns of CoNLL-U by their names."""

from __future__ import annotations

from typing import Any

from partwise.tasks.common.tables import Grid, TaskTable, TokenTable, is_missing
from partwise.tasks.dependency.files import UNKNOWN, read_treebank

TITLES = {
    "form": ("form", "word", "token"),
    "lemma": ("lemma",),
    "upos": ("upos", "tag", "pos"),
    "xpos": ("xpos",),
    "feats": ("feats",),
}
RELATIONS = ("deprel", "relation", "dep")


class WordTable(TaskTable):
    """A row is a word: form, and lemma, upos, xpos, feats, head (0: the root), deprel, as far as they are there."""

    row, group, group_titles = "a word", "a sentence", TokenTable.group_titles

    def text(self, grid: Grid, group: Any, unknown: str | None = None) -> tuple[str, list[int]]:
        """CoNLL-U."""
        rows, n = self.groups(grid, group), len(grid)
        if grid.called(TITLES["form"]) is None:
            listed = ", ".join(map(str, grid.titles))
            raise ValueError(f"{grid.name}: there is no column 'form' of words. The columns are: {listed}.")
        columns = [self.cells(grid, titles, n) for titles in TITLES.values()]
        heads = self.heads(grid, n)
        relations = self.cells(grid, RELATIONS, n)
        lines = []
        for own in rows:
            for place, r in enumerate(own, 1):
                lines.append("\t".join([str(place), *(cells[r] for cells in columns), heads[r], relations[r], UNKNOWN, UNKNOWN]))
            lines.append("")
        return "\n".join([*lines, ""]), [r for own in rows for r in own]

    @staticmethod
    def cells(grid: Grid, titles: tuple[str, ...], n: int) -> list[str]:
        """A column as text, an underscore where nothing is known."""
        title = grid.called(titles)
        return [UNKNOWN] * n if title is None else grid.cells(title, UNKNOWN)

    @staticmethod
    def heads(grid: Grid, n: int) -> list[str]:
        """Numbers of heads within the sentence, from 1; a column with gaps in it may have made them floats."""
        title = grid.called(("head",))
        if title is None:
            return [UNKNOWN] * n
        found = []
        for row, value in enumerate(grid.column(title)):
            whole = isinstance(value, float) and value.is_integer()
            found.append(UNKNOWN if is_missing(value) else grid.cell(int(value) if whole else value, row, title, UNKNOWN))
        return found

    def read(self, text: bytes, labelled: bool) -> Any:
        return read_treebank(text)

    def answers(self, model: Any, data: Any) -> dict[str, list[Any]]:
        trees = model.predict(data)
        found: dict[str, list[Any]] = {"head": [head for tree in trees for head in tree.heads]}
        if len(model.classes_):
            found["deprel"] = [relation for tree in trees for relation in tree.relations]
        return found


TABLE = WordTable()
