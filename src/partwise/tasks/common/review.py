"""Suspects as a page shows them: what is given and where, what is believed, how surely and why; and how to write it back.

A task makes a `Review` of its suspects. The page in the browser and ``partwise repair`` know no task: to them, a corpus is text
with *cells* in it, each of which begins at a byte and may be replaced by another text.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from partwise.files.text_edits import EditableText, TextEdit
from partwise.tasks.common.command_options import Refusal

MOST_REASONS = 2000  # doubts that come with reasons: the worst ones
MOST_TEXT_BYTES = 32 << 20  # of a file that a page holds, to be copied from it corrected


@dataclass(frozen=True)
class Passage:
    """What is shown at once: a sentence, or a row of a table. Each of its words has a cell that may be corrected."""

    words: list[str]
    given: list[str]  #: what the cells say
    begins: list[int]  #: where each cell begins, a byte of the text
    lines: list[int]  #: likewise, from 1
    raw: list[str] | None = None  #: the cells as they are written, where that is not `given`: quoted, say
    fields: list[tuple[str, str]] = field(default_factory=list)  #: names and values that are shown besides
    width: int = 0  #: of a picture: so many words make a row
    above: list[str] = field(default_factory=list)  #: lines above cells that are edited as text: the bases of a structure

    def packed(self, number: Mapping[str, int]) -> dict[str, Any]:
        """For the page: labels by number, places from that of the first."""
        made: dict[str, Any] = {
            "line": self.lines[0],
            "at": self.begins[0],
            "words": self.words,
            "given": [number[label] for label in self.given],
            "begins": [begin - self.begins[0] for begin in self.begins],
        }
        if self.lines != list(range(self.lines[0], self.lines[0] + len(self.lines))):
            made["lines"] = self.lines
        if self.raw is not None:
            made["raw"] = self.raw
        if self.fields:
            made["fields"] = [list(pair) for pair in self.fields]
        if self.width:
            made["width"] = self.width
        if self.above:
            made["above"] = self.above
        return made


@dataclass(frozen=True)
class DoubtedWord:
    """A word of a passage whose cell is not believed."""

    word: int  #: its place in the passage
    believed: str
    wrong: float  #: the probability that what is given is wrong
    sure: tuple[float, float] | None = None  #: the probabilities of what is given and of what is believed
    why: list[tuple[str, float]] | None = None  #: what speaks for what is believed, and, below zero, for what is given


@dataclass(frozen=True)
class ReviewItem:
    """A suspect."""

    passage: int
    wrong: float  #: the probability that something is wrong
    doubts: list[DoubtedWord]

    def packed(self, number: Mapping[str, int]) -> dict[str, Any]:
        """For the page."""
        doubts = []
        for one in self.doubts:
            made: dict[str, Any] = {"word": one.word, "believed": number[one.believed], "wrong": rounded(one.wrong)}
            if one.sure is not None:
                made["sure"] = [rounded(p) for p in one.sure]
            if one.why is not None:
                made["why"] = [[name, rounded(value)] for name, value in one.why]
            doubts.append(made)
        return {"passage": self.passage, "wrong": rounded(self.wrong), "doubts": doubts}


@dataclass(frozen=True)
class Review:
    """All suspects of a file."""

    passages: list[Passage]
    items: list[ReviewItem]
    labels: list[str]  #: those to choose from
    whole: bool  #: whether all words of a passage may be corrected, or only those in doubt
    pattern: str  #: a regular expression that what is typed must match as a whole, for Python and JavaScript
    hint: str  #: the same in words
    reading: dict[str, Any]  #: options of ``train`` that say how to read the file
    separator: str | None = None  #: of CSV: what is typed is quoted where it must be
    reasons: str = ""  #: why there are none, or what they are
    #: what cells hold: "labels"; "heads": the number of a word's head, a tab and the relation to it; "brackets": a whole tree;
    #: "dot-bracket": a structure; "alignment": the rows of one, and its reliable columns if they are known
    shape: str = "labels"

    def packed(self, task: str, source: EditableText, said: str) -> dict[str, Any]:
        """The data of the page."""
        self.check(source)
        names: dict[str, int] = {label: k for k, label in enumerate(dict.fromkeys(self.labels))}
        menu = len(names)
        for label in [x for p in self.passages for x in p.given] + [one.believed for x in self.items for one in x.doubts]:
            names.setdefault(label, len(names))
        data: dict[str, Any] = {
            "version": 1,
            "task": task,
            "file": {"name": source.name, "sha256": source.sha256, "bytes": len(source.original), "encoding": source.encoding},
            "reading": self.reading,
            "said": said,
            "labels": list(names),
            "menu": menu,
            "whole": self.whole,
            "pattern": self.pattern,
            "hint": self.hint,
            "separator": self.separator,
            "reasons": self.reasons,
            "shape": self.shape,
            "passages": [passage.packed(names) for passage in self.passages],
            "items": [item.packed(names) for item in self.items],
        }
        data["page"] = hashlib.sha256(json.dumps(data, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()[:16]
        return data

    def check(self, source: EditableText) -> None:
        """Refuse if the cells are not where they are said to be: the file has changed since it was judged."""
        for passage in self.passages:
            for begin, cell, line in zip(passage.begins, passage.raw or passage.given, passage.lines, strict=True):
                if not source.holds(TextEdit(begin, cell, cell)):
                    raise Refusal(f"{source.name}, line {line}: expected {cell!r}. The file has changed while it was judged.")


def rounded(value: float) -> float | None:
    """Few digits; None for infinities, which JSON does not have."""
    return float(f"{value:.5g}") if math.isfinite(value) else None
