"""Suspects of alignments as they are listed, and as a page shows them: the two rows, and which columns are reliable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from partwise.files.text_edits import EditableText
from partwise.tasks.alignment.files import GAPS, NAMED, aligned_rows
from partwise.tasks.common.command_options import Refusal
from partwise.tasks.common.judged_file import Doubted, JudgedFile, other_truth
from partwise.tasks.common.review import DoubtedWord, Passage, Review, ReviewItem


class Row(NamedTuple):
    """A row of an alignment, or the marks of its columns, in a file."""

    begin: int  #: byte of the text
    line: int
    raw: str  #: as it is written, over several lines perhaps

    @property
    def text(self) -> str:
        """Without line breaks and blanks."""
        return "".join(self.raw.split())


class JudgedPairs(JudgedFile):
    """Pairs of sequences and what is to be thought of their alignments."""

    examples, parts, alone = "alignments", "places", False

    def name(self, i: int) -> str:
        return " / ".join(self.data.names(i))

    def part_name(self, i: int, t: int) -> str:
        return f"{t + 1}{self.data.first[i][t]}"

    def said(self, value: Any) -> str:
        return "gap" if value is None else str(value + 1)

    def same(self, truth: Any) -> np.ndarray:
        data = self.data
        if (truth.first, truth.second) != (data.first, data.second) or truth.partners is None:
            raise other_truth(truth, data, "pairs of sequences")
        return np.concatenate([np.zeros(0, bool), *(a == b for a, b in zip(data.partners, truth.partners, strict=True))])

    def believed(self, i: int, given: list[str]) -> list[str]:
        """The rows that are believed; the marks of columns go with the letters in them."""
        first, last = self.starts[i : i + 2].tolist()
        partners = self.judged.found.evidence.believed[first:last].tolist()
        rows = ["".join(row) for row in aligned_rows(self.data.first[i], self.data.second[i], partners)]
        return rows if len(given) < 3 else [*rows, marks_of(rows, given)]

    def review(self, source: EditableText, doubted: Sequence[Doubted], whole: bool) -> Review:
        lines = source.text.decode().split("\n")
        rows = fasta_rows if next((line for line in lines if line.strip()), "").startswith(">") else table_rows
        passages, items = [], []
        for k, one in enumerate(doubted):
            cells = rows(source, lines, self.data, one.example)
            given = [cell.text for cell in cells]
            names = [*self.data.names(one.example), "core"][: len(cells)]
            raw = [cell.raw for cell in cells]
            begins, numbers = [cell.begin for cell in cells], [cell.line for cell in cells]
            passages.append(Passage(names, given, begins, numbers, None if raw == given else raw))
            doubts = [DoubtedWord(word, text, one.wrong) for word, text in enumerate(self.believed(one.example, given))]
            items.append(ReviewItem(k, one.wrong, doubts))
        return Review(
            passages,
            items,
            labels=[],
            whole=True,
            pattern=r"\S*",
            hint="Rows have the same letters as before, and are as long as each other.",
            reading={"encoding": source.encoding},
            shape="alignment",
        )


def marks_of(rows: list[str], given: list[str]) -> str:
    """Which columns are reliable: those whose letter of the first row was; else of the second, if it is still opposite a gap."""
    first = [mark for letter, mark in zip(given[0], given[2], strict=True) if letter not in GAPS]
    second = [mark if above in GAPS else "0" for above, letter, mark in zip(*given, strict=True) if letter not in GAPS]
    found, i, j = [], 0, 0
    for above, below in zip(*rows, strict=True):
        found.append(first[i] if above not in GAPS else second[j])
        i, j = i + (above not in GAPS), j + (below not in GAPS)
    return "".join(found)


def table_rows(source: EditableText, lines: list[str], data: Any, i: int) -> list[Row]:
    """The cells of a table."""
    number = data.lines[i]
    heads = next(line for line in lines if line.strip("\r\t ") or "\t" in line).rstrip("\r").split("\t")
    named = all(column in heads for column in NAMED)
    wanted = [heads.index(name) for name in (*NAMED, "core") if name in heads] if named else [0, 1]
    cells, begin = lines[number - 1].rstrip("\r").split("\t"), source.line_begin(number)
    starts = [begin + len("\t".join([*cells[:k], ""]).encode()) for k in range(len(cells))]
    return [Row(starts[k], number, cells[k]) for k in wanted]


def fasta_rows(source: EditableText, lines: list[str], data: Any, i: int) -> list[Row]:
    """The two rows of FASTA that begin at the title of a pair."""
    found, number = list[Row](), data.lines[i]
    while len(found) < 2:
        while not lines[number - 1].startswith(">"):
            number += 1
        first = last = number + 1  # lines of the row
        while last <= len(lines) and not lines[last - 1].startswith(">"):
            last += 1
        text = "\n".join(lines[first - 1 : last - 1])
        if not text.strip():
            raise Refusal(f"{data.name}, line {number}: the row is empty, and cannot be corrected in its place.")
        before = len(text) - len(text.lstrip())
        line = first + text[:before].count("\n")
        found.append(Row(source.line_begin(first) + len(text[:before].encode()), line, text.strip()))
        number = last
    return found
