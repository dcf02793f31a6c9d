"""Suspects of rankings as they are listed, and as a page shows them: the documents of a query and their relevance."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from partwise.files.text_edits import EditableText
from partwise.tasks.common.judged_file import Doubted, JudgedFile, other_truth
from partwise.tasks.common.review import DoubtedWord, Passage, Review, ReviewItem

CELL = re.compile(r"\S+")
MOST_NAME = 24  # characters of a note that are shown


class JudgedRelevance(JudgedFile):
    """Queries and what is to be thought of the relevance of their documents."""

    examples, parts = "queries", "documents"

    def document(self, i: int, t: int) -> int:
        """The number of document t of query i."""
        return int(self.data.queries[i][t])

    def line(self, i: int) -> int:
        return int(self.data.lines[self.document(i, 0)])

    def part_line(self, i: int, t: int) -> int:
        return int(self.data.lines[self.document(i, t)])

    def name(self, i: int) -> str:
        return f"query {self.data.qid[self.document(i, 0)]}"

    def part_name(self, i: int, t: int) -> str:
        note = self.data.notes[self.document(i, t)]
        short = note if len(note) <= MOST_NAME else note[: MOST_NAME - 1] + "…"
        return short or f"line {self.part_line(i, t)}"

    def said(self, value: Any) -> str:
        return f"{value:g}"

    def same(self, truth: Any) -> np.ndarray:
        if truth.qid.tolist() != self.data.qid.tolist():
            raise other_truth(truth, self.data, "documents")
        order = np.concatenate([np.zeros(0, np.int64), *self.data.queries])
        return (truth.relevance == self.data.relevance)[order]

    def review(self, source: EditableText, doubted: Sequence[Doubted], whole: bool) -> Review:
        lines, number = source.text.decode().split("\n"), dict[int, int]()
        passages: list[Passage] = []
        items: list[ReviewItem] = []
        spelled: dict[float, str] = {}
        for k, relevance in enumerate(self.data.relevance.tolist()):
            spelled.setdefault(relevance, self.cell(k, lines)[1])
        for one in doubted:
            i, first = one.example, int(self.starts[one.example])
            if i not in number:
                number[i] = len(passages)
                passages.append(self.passage(i, source, lines))
            doubts = []
            for t in one.places:
                believed = self.judged.part(first + t)[1]  # type: ignore[misc]
                text = spelled.get(believed, self.said(believed))
                doubts.append(DoubtedWord(t, text, self.judged.wrong_part(first + t)))
            items.append(ReviewItem(number[i], one.wrong, doubts))
        return Review(
            passages,
            items,
            labels=[spelled[value] for value in sorted(spelled)],
            whole=whole,
            pattern=r"\d+(?:\.\d+)?",
            hint="Relevance is a number, 0 for irrelevant.",
            reading={"encoding": source.encoding},
        )

    def cell(self, document: int, lines: list[str]) -> tuple[int, str]:
        """Where in its line the relevance of a document stands, and how it is written."""
        found = CELL.search(lines[int(self.data.lines[document]) - 1])
        return (found.start(), found.group()) if found else (0, "")

    def passage(self, i: int, source: EditableText, lines: list[str]) -> Passage:
        """A query, and where the relevance of its documents stands."""
        own = [self.document(i, t) for t in range(len(self.data.queries[i]))]
        cells = [self.cell(k, lines) for k in own]
        numbers = [int(self.data.lines[k]) for k in own]
        begins = [source.line_begin(line) + at for line, (at, _) in zip(numbers, cells, strict=True)]
        names = [self.part_name(i, t) for t in range(len(own))]
        return Passage(names, [text for _, text in cells], begins, numbers, fields=[("query", str(self.data.qid[own[0]]))])
