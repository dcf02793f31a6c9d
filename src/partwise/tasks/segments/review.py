"""Suspects of a column file with segments: listed, and as a page shows them, sentences and their labels in doubt."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from partwise.files.text_edits import EditableText
from partwise.tasks.common.judged_file import Doubted, JudgedFile, other_truth
from partwise.tasks.common.review import DoubtedWord, Passage, Review, ReviewItem
from partwise.tasks.common.suspect_list import Listed
from partwise.tasks.segments.data import SegmentedText
from partwise.tasks.segments.suspects import JudgedSegments

CELL = re.compile(rb"[^ \t]+")
AROUND = 3  # words shown on either side of a word in doubt


@dataclass(frozen=True)
class JudgedSegmentFile(JudgedFile):
    """A column file and what is to be thought of its segments."""

    data: SegmentedText
    judged: JudgedSegments
    reading: dict[str, Any] = field(default_factory=dict)  #: how the file was read

    examples = "sentences"
    parts = "tokens"

    @classmethod
    def check_truth(cls, truth: SegmentedText, data: SegmentedText) -> None:
        if not np.array_equal(truth.columns.starts, data.columns.starts):
            raise other_truth(truth, data, cls.examples)

    # -- lists --------------------------------------------------------------------------------------------------------

    def line(self, i: int) -> int:
        return self.part_line(i, 0)

    def part_line(self, i: int, t: int) -> int:
        token = int(self.data.columns.starts[i]) + t
        columns = self.data.columns
        if columns.ends is None or token >= len(columns.ends):
            return 0
        return columns.first_line + columns.data.count(b"\n", 0, int(columns.ends[token]))

    def name(self, i: int) -> str:
        return f"sentence {i}"

    def part_name(self, i: int, t: int) -> str:
        return self.data.words(i)[t]

    def text(self, i: int) -> str:
        """A sentence, its words in doubt with both labels, long stretches without any left out."""
        first = int(self.starts[i])
        wrong = {p - first for p in self.judged.doubted(i)}
        pieces: list[str] = []
        for k, word in enumerate(self.data.words(i)):
            if k in wrong:
                pieces.append(f"[{word} {' > '.join(self.said_part(first + k))}]")
            elif any(near in wrong for near in range(k - AROUND, k + AROUND + 1)):
                pieces.append(word)
            elif not pieces or pieces[-1] != "...":
                pieces.append("...")
        return " ".join(pieces)

    def example_row(self, i: int) -> Listed:
        row = super().example_row(i)
        return row._replace(as_dict=lambda: {**row.as_dict(), "words": self.data.words(i)})

    def same(self, truth: SegmentedText) -> np.ndarray:
        theirs, ours = truth.truth(), self.data.truth()
        number = {label: k for k, label in enumerate(theirs.distinct)}
        codes = np.array([number.get(label, -1) for label in ours.distinct], np.int64)[ours.codes]
        return codes == theirs.codes

    # -- the page -----------------------------------------------------------------------------------------------------

    def review(self, source: EditableText, doubted: Sequence[Doubted], whole: bool) -> Review:
        shown = list(dict.fromkeys(one.example for one in doubted))
        number = {sentence: k for k, sentence in enumerate(shown)}
        items = []
        for one in doubted:
            first = int(self.starts[one.example])
            doubts = [DoubtedWord(t, self.said_part(first + t)[1], self.judged.wrong_part(first + t)) for t in one.places]
            items.append(ReviewItem(number[one.example], one.wrong, doubts))
        unknown, separator = self.reading.get("unknown_label"), self.reading.get("separator")
        cells = self.data.columns.cells[self.data.label_column or 0]
        return Review(
            passages=[self.passage(sentence) for sentence in shown],
            items=items,
            labels=sorted({*(cell for cell in cells if cell and cell != unknown), *self.judged.believed.distinct}),
            whole=whole,
            pattern=r"[^\s]+" if separator is None else rf"(?:(?!{re.escape(separator)})[^\r\n])+",
            hint="A label is one word, without blanks." if separator is None else "A label must fit in its column.",
            reading=self.reading,
        )

    def passage(self, i: int) -> Passage:
        """A sentence, and where its labels stand."""
        columns, column = self.data.columns, self.data.label_column or 0
        a, b = columns.starts[i : i + 2].tolist()
        given = [columns.cells[column][k] for k in columns.codes[column, a:b].tolist()]
        begins = [self.begin(t, column, label) for t, label in zip(range(a, b), given, strict=True)]
        return Passage(self.data.words(i), given, begins, [self.part_line(i, t) for t in range(b - a)])

    def begin(self, token: int, column: int, label: str) -> int:
        """Where in the text the label of a token begins."""
        columns, separator = self.data.columns, self.reading.get("separator")
        end = int(columns.ends[token])  # type: ignore[index]
        if column == columns.n_columns - 1:
            return end - len(label.encode())
        begin = columns.data.rfind(b"\n", 0, end) + 1
        line = columns.data[begin:end]
        if separator is None:
            return begin + [cell.start() for cell in CELL.finditer(line)][column]
        before = line.split(separator.encode())[:column]
        return begin + sum(map(len, before)) + len(before) * len(separator.encode())
