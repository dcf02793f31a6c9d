"""Suspects of graphs as they are listed, and as a page shows them: nodes or pixels with their labels, in JSON lines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from partwise.files.text_edits import EditableText
from partwise.tasks.common.command_options import Refusal
from partwise.tasks.common.judged_file import Doubted, JudgedFile, other_truth
from partwise.tasks.common.review import DoubtedWord, Passage, Review, ReviewItem

DECODER = json.JSONDecoder()
BLANKS = " \t\r\n"
SCALAR = r'"(?:[^"\\\x00-\x1f]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null'


class JudgedGraphs(JudgedFile):
    """Graphs or pictures and what is to be thought of the labels of their nodes."""

    examples, parts = "graphs", "nodes"

    def line(self, i: int) -> int:
        return int(self.data.lines[i]) if self.data.lines else i + 1  # of .npz, pictures have no lines

    def name(self, i: int) -> str:
        return f"{'picture' if self.data.is_pictures else 'graph'} {i + 1}"

    def part_name(self, i: int, t: int) -> str:
        if not self.data.is_pictures:
            return f"node {t}"
        row, column = divmod(t, self.data.graphs[i].shape[1])
        return f"{row},{column}"

    def same(self, truth: Any) -> np.ndarray:
        def flat(labels: Any) -> list[Any]:
            nested = labels.tolist() if hasattr(labels, "tolist") else labels
            return [label for row in nested for label in (row if isinstance(row, list) else [row])]

        if not truth.has_labels or len(truth) != len(self.data):
            raise other_truth(truth, self.data, "graphs")
        pairs = [(flat(a), flat(b)) for a, b in zip(self.data.labels, truth.labels, strict=True)]
        if any(len(a) != len(b) for a, b in pairs):
            raise other_truth(truth, self.data, "graphs")
        return np.array([x == y for a, b in pairs for x, y in zip(a, b, strict=True)], bool)

    def review(self, source: EditableText, doubted: Sequence[Doubted], whole: bool) -> Review:
        number: dict[int, int] = {}
        passages: list[Passage] = []
        items: list[ReviewItem] = []
        lines, menu = source.text.decode().split("\n"), dict[str, None]()
        for one in doubted:
            i, first = one.example, int(self.starts[one.example])
            if i not in number:
                number[i] = len(passages)
                passages.append(self.passage(i, source, lines))
                menu |= dict.fromkeys(passages[-1].given)
            doubts = [
                DoubtedWord(t, written(self.judged.part(first + t)[1]), self.judged.wrong_part(first + t))  # type: ignore[misc]
                for t in one.places
            ]
            items.append(ReviewItem(number[i], one.wrong, doubts))
        classes = [written(label) for label in self.model.classes_.tolist()]
        return Review(
            passages,
            items,
            labels=list(dict.fromkeys([*classes, *sorted(menu)])),
            whole=whole,
            pattern=SCALAR,
            hint='A label is a JSON value: a string in quotes ("sky"), a number, or null where it is not known.',
            reading={"encoding": source.encoding},
        )

    def passage(self, i: int, source: EditableText, lines: list[str]) -> Passage:
        """A graph, and where its labels stand."""
        number = self.data.lines[i]
        line, begin = lines[number - 1], source.line_begin(number)
        spans = label_spans(line)
        if spans is None or len(spans) != int(self.starts[i + 1] - self.starts[i]):
            raise Refusal(f"{source.name}, line {number}: the labels cannot be found in the text, to be corrected.")
        names = [self.part_name(i, t) for t in range(len(spans))]
        width = self.data.graphs[i].shape[1] if self.data.is_pictures else 0
        begins = [begin + len(line[:a].encode()) for a, _ in spans] if not line.isascii() else [begin + a for a, _ in spans]
        return Passage(names, [line[a:b] for a, b in spans], begins, [number] * len(spans), width=width)


def written(label: Any) -> str:
    """A label as JSON has it."""
    return json.dumps(label, ensure_ascii=False)


def label_spans(line: str) -> list[tuple[int, int]] | None:
    """Where in a line of JSON each of the ``labels`` stands, row by row; None if there are none."""

    def blank(k: int) -> int:
        while k < len(line) and line[k] in BLANKS:
            k += 1
        return k

    def elements(k: int) -> tuple[list[tuple[int, int]], int]:
        """Of the list that begins at k, and where it ends."""
        found: list[tuple[int, int]] = []
        k = blank(k + 1)
        while line[k] != "]":
            if line[k] == "[":
                inner, end = elements(k)
                found += inner
            else:
                end = DECODER.raw_decode(line, k)[1]
                found.append((k, end))
            k = blank(end)
            k = blank(k + 1) if line[k] == "," else k
        return found, k + 1

    spans, k = None, blank(blank(0) + 1)
    while line[k] != "}":
        key, end = DECODER.raw_decode(line, k)
        k = blank(blank(end) + 1)  # after the colon
        if key == "labels" and line[k] == "[":
            spans, end = elements(k)
        else:
            end = DECODER.raw_decode(line, k)[1]
        k = blank(end)
        k = blank(k + 1) if line[k] == "," else k
    return spans
