"""Suspects of RNA as they are listed, and as a page shows them: the bases, and below them the dot-brackets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from partwise.files.text_edits import EditableText
from partwise.tasks.common.command_options import Refusal
from partwise.tasks.common.judged_file import Doubted, JudgedFile, other_truth
from partwise.tasks.common.review import DoubtedWord, Passage, Review, ReviewItem
from partwise.tasks.folding.files import CLOSING, OPENING, write_dot_bracket


class JudgedRna(JudgedFile):
    """RNA and what is to be thought of its structures."""

    examples, parts, alone = "structures", "bases", False

    def name(self, i: int) -> str:
        return self.data.names[i]

    def part_name(self, i: int, t: int) -> str:
        return f"{t + 1}{self.data.sequences[i][t]}"

    def said(self, value: Any) -> str:
        return "unpaired" if value is None else str(value + 1)

    def same(self, truth: Any) -> np.ndarray:
        if truth.sequences != self.data.sequences or not truth.has_structures:
            raise other_truth(truth, self.data, "sequences")
        pairs = zip(self.data.partners, truth.partners, strict=True)
        return np.concatenate([np.zeros(0, bool), *(a == b for a, b in pairs)])

    def believed(self, i: int) -> str:
        """The structure that is believed, with those pairs of the given one that no model may find, if there is room for them."""
        first, last = self.starts[i : i + 2].tolist()
        partners = self.judged.found.evidence.believed[first:last]
        return with_left_out(write_dot_bracket(partners), self.data.structures[i], self.judged.example(i)[0])

    def review(self, source: EditableText, doubted: Sequence[Doubted], whole: bool) -> Review:
        lines = source.text.decode().split("\n")
        passages, items = [], []
        for k, one in enumerate(doubted):
            i = one.example
            begin, raw = written_at(source, lines, self.data, i)
            given, line = self.data.structures[i], self.data.below[i]
            passages.append(
                Passage([self.name(i)], [given], [begin], [line], None if raw == given else [raw], above=[self.data.sequences[i]])
            )
            items.append(ReviewItem(k, one.wrong, [DoubtedWord(0, self.believed(i), one.wrong)]))
        return Review(
            passages,
            items,
            labels=[],
            whole=True,
            pattern=r"\S+",
            hint="A structure is a dot-bracket, a character for each base.",
            reading={"encoding": source.encoding},
            shape="dot-bracket",
        )


def with_left_out(believed: str, given: str, judged: str) -> str:
    """A structure with those pairs of the given one that were left out when it was judged, where both bases are unpaired.

    Bases that are unpaired in both are marked as they were.
    """
    marks, waiting = list(believed), dict[str, list[int]]()
    for k, mark in enumerate(given):
        if mark in OPENING:
            waiting.setdefault(mark, []).append(k)
        elif mark in CLOSING:
            i = waiting[OPENING[CLOSING.index(mark)]].pop()
            free = judged[i] == judged[k] == "." and marks[i] == marks[k] == "."
            if free and (mark != ")" or is_nested(marks[i + 1 : k])):
                marks[i], marks[k] = given[i], mark
        elif marks[k] == ".":
            marks[k] = mark
    return "".join(marks)


def is_nested(marks: list[str]) -> bool:
    """Whether round brackets around these marks cross none of theirs."""
    depth = 0
    for mark in marks:
        depth += (mark == "(") - (mark == ")")
        if depth < 0:
            return False
    return depth == 0


def written_at(source: EditableText, lines: list[str], data: Any, i: int) -> tuple[int, str]:
    """The byte where the structure of sequence i begins, and how it is written there, over several lines perhaps."""
    number, given = data.below[i] - 1, data.structures[i]
    line = lines[number] if number < len(lines) else ""
    begin = line.find(given[:1]) if given else -1
    if "\t" in line:  # a table
        heads = [cell.strip().lower() for cell in lines[0].split("\t")]
        before = line.split("\t")[: heads.index("structure")]
        begin = sum(map(len, before)) + len(before)
        begin += len(line[begin:]) - len(line[begin:].lstrip())
    text, left = "\n".join(lines[number : number + 1 + len(given)])[begin:], list(given)
    size = 0
    while left and size < len(text):
        if text[size] == left[0]:
            left.pop(0)
        elif not text[size].isspace():
            break
        size += 1
    if begin < 0 or left:
        raise Refusal(f"{data.name}, line {data.below[i]}: the structure cannot be found in the text, to be corrected.")
    return source.line_begin(number + 1) + len(line[:begin].encode()), text[:size]
