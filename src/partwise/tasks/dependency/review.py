"""Suspects of a treebank, listed and as a page shows them: sentences, words in doubt, and where in the text each arc stands.

The cells HEAD and DEPREL of a word are side by side in its line: together, with the tab between them, they are one cell of the
page. So heads and relations are corrected, and every other byte stays: comments, multi-word tokens, empty nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from partwise.files.text_edits import EditableText
from partwise.tasks.common.judged_file import Doubted, JudgedFile, other_truth
from partwise.tasks.common.review import DoubtedWord, Passage, Review, ReviewItem
from partwise.tasks.common.suspect_list import Listed
from partwise.tasks.dependency.files import HEAD, RELATION, UNKNOWN, Treebank
from partwise.tasks.dependency.suspects import JudgedTrees

AROUND = 3  # words shown on either side of a word in doubt


@dataclass(frozen=True)
class JudgedTreebank(JudgedFile):
    """A treebank and what is to be thought of its trees."""

    data: Treebank
    judged: JudgedTrees
    encoding: str = "utf-8"

    examples = "sentences"
    parts = "words"

    @classmethod
    def check_truth(cls, truth: Treebank, data: Treebank) -> None:
        if not np.array_equal(truth.words.starts, data.words.starts):
            raise other_truth(truth, data, cls.examples)

    # -- lists --------------------------------------------------------------------------------------------------------

    def line(self, i: int) -> int:
        return self.part_line(i, 0)

    def part_line(self, i: int, t: int) -> int:
        return int(self.data.at[self.starts[i] + t]) + 1

    def name(self, i: int) -> str:
        return f"sentence {i}"

    def part_name(self, i: int, t: int) -> str:
        words = self.data.forms(i)
        around = range(max(0, t - AROUND), min(len(words), t + AROUND + 1))
        return " ".join(f"[{words[k]}]" if k == t else words[k] for k in around)

    def said_part(self, position: int) -> tuple[str, str]:
        assert self.judged.part is not None
        words = self.data.forms(self.at(position)[0])
        given, believed = (arc(words, said) for said in self.judged.part(position))
        return given, believed

    def text(self, i: int) -> str:
        """A sentence, its words in doubt with both arcs, long stretches without any left out."""
        words, first = self.data.forms(i), int(self.starts[i])
        wrong = {t - first for t in self.judged.doubted(i)}
        pieces: list[str] = []
        for k, word in enumerate(words):
            if k in wrong:
                pieces.append(f"[{word} {' > '.join(self.said_part(first + k))}]")
            elif any(near in wrong for near in range(k - AROUND, k + AROUND + 1)):
                pieces.append(word)
            elif not pieces or pieces[-1] != "...":
                pieces.append("...")
        return " ".join(pieces)

    def example_row(self, i: int) -> Listed:
        row = super().example_row(i)
        return row._replace(as_dict=lambda: {**row.as_dict(), "words": self.data.forms(i)})

    def same(self, truth: Treebank) -> np.ndarray:
        """Relations count where they are judged."""
        same = truth.heads == self.data.heads
        if self.judged.relations is None:
            return same
        theirs, ours = ([some.names[k] if k >= 0 else UNKNOWN for k in some.relations.tolist()] for some in (truth, self.data))
        return same & np.array([a == b for a, b in zip(theirs, ours, strict=True)], bool)

    # -- the page -----------------------------------------------------------------------------------------------------

    def review(self, source: EditableText, doubted: Sequence[Doubted], whole: bool) -> Review:
        shown = list(dict.fromkeys(one.example for one in doubted))
        number = {sentence: k for k, sentence in enumerate(shown)}
        passages = [passage(self.data, source, sentence) for sentence in shown]
        items = []
        for one in doubted:
            k, first = number[one.example], int(self.starts[one.example])
            doubts = [DoubtedWord(t, self.cell(first + t), self.judged.wrong_part(first + t)) for t in one.places]
            items.append(ReviewItem(k, one.wrong, doubts))
        return Review(
            passages=passages,
            items=items,
            labels=self.data.names,
            whole=whole,
            pattern=r"([0-9]+|_)\t[^\s]+",
            hint="A head is a number, 0 for the root, and a relation has no blanks in it.",
            reading={"encoding": self.encoding},
            shape="heads",
        )

    def cell(self, position: int) -> str:
        """What is believed of a word, as the file would have it; a relation that nobody knows stays as it was."""
        relation = None if self.judged.relations is None else self.judged.relations[position]
        return f"{int(self.judged.heads[position])}\t{relation or arc_cells(self.data, position)[1]}"


def arc(words: list[str], said: Any) -> str:
    """A head, its word and the relation to it: ``4:buy nsubj``."""
    head, relation = said if isinstance(said, tuple) else (said, None)
    name = "?" if head is None else "0" if head == 0 else f"{head}:{words[head - 1]}"
    return name if relation is None else f"{name} {relation}"


def arc_cells(treebank: Treebank, position: int) -> list[str]:
    """The cells of head and relation of a word."""
    return treebank.lines[int(treebank.at[position])].split("\t")[HEAD : RELATION + 1]


def passage(treebank: Treebank, source: EditableText, sentence: int) -> Passage:
    """A sentence, and where its heads and relations stand."""
    given, begins, lines = [], [], []
    first, last = treebank.words.starts[sentence : sentence + 2]
    for line in treebank.at[first:last].tolist():
        cells = treebank.lines[line].split("\t")
        begin = int(source.newlines[line - 1]) + 1 if line else 0
        given.append("\t".join(cells[HEAD : RELATION + 1]))
        begins.append(begin + len("\t".join(cells[:HEAD]).encode()) + 1)
        lines.append(line + 1)
    return Passage(treebank.forms(sentence), given, begins, lines)


def without_trees(treebank: Treebank) -> list[str]:
    """The text, line by line, with nothing in the cells of heads and relations: what a correction may not change."""
    lines = list(treebank.lines)
    for line in treebank.at.tolist():
        cells = lines[line].split("\t")
        cells[HEAD] = cells[RELATION] = UNKNOWN
        lines[line] = "\t".join(cells)
    return lines
