"""A file whose labels were judged: how its suspects are listed, and shown in a page.

A task that has parts says in a subclass of `JudgedFile` what its examples and parts are called, where they are, and how they
read; the rest is the same for all.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from partwise.engine.ragged import totals
from partwise.files.text_edits import EditableText
from partwise.tasks.common.command_options import Refusal
from partwise.tasks.common.review import Review
from partwise.tasks.common.suspect_list import Listed, Listing, about_judgement, found_among
from partwise.tasks.common.suspects import Judged

EXAMPLE = ("example", "line", "probability", "text")
PART = (*EXAMPLE, "part", "given", "believed")


class Doubted(NamedTuple):
    """What a page shows of a suspect."""

    example: int
    places: list[int]  #: in its output, most probably wrong first
    wrong: float  #: the probability that it is


@dataclass(frozen=True)
class JudgedFile:
    """The data of a file and what is to be thought of them."""

    model: Any
    data: Any
    judged: Judged

    examples: ClassVar[str]  #: what they are called, many of them
    parts: ClassVar[str]
    alone: ClassVar[bool] = True  #: whether a part can be corrected by itself; else its example is shown

    # -- what a task says ---------------------------------------------------------------------------------------------

    @classmethod
    def check_truth(cls, truth: Any, data: Any) -> None:
        """Refuse data with correct labels that are other data, before any work."""

    def line(self, i: int) -> int:
        """Where example i is."""
        return int(self.data.lines[i])

    def part_line(self, i: int, t: int) -> int:
        """Where place t of its output is."""
        return self.line(i)

    def name(self, i: int) -> str:
        """What example i is called."""
        raise NotImplementedError

    def part_name(self, i: int, t: int) -> str:
        """What place t of its output is called."""
        raise NotImplementedError

    def said(self, value: Any) -> str:
        """What is given or believed of a part."""
        return str(value)

    def same(self, truth: Any) -> np.ndarray:
        """Of every position, whether it is the same in these data; refuses others."""
        raise NotImplementedError

    def same_examples(self, truth: Any) -> np.ndarray:
        """Of every example, whether it is the same in these data: if all its positions are."""
        return totals(~self.same(truth), self.starts) == 0

    def review(self, source: EditableText, doubted: Sequence[Doubted], whole: bool) -> Review:
        """For the page; `whole`: whether all parts of an example may be corrected."""
        raise NotImplementedError

    # -- what follows -------------------------------------------------------------------------------------------------

    @property
    def starts(self) -> np.ndarray:
        """Where the positions of each example begin."""
        return self.judged.found.evidence.starts

    def at(self, position: int) -> tuple[int, int]:
        """The example of a position, and its place there."""
        i = int(np.searchsorted(self.starts, position, side="right")) - 1
        return i, position - int(self.starts[i])

    def said_part(self, position: int) -> tuple[str, str]:
        """What is given there, and what is believed."""
        assert self.judged.part is not None
        given, believed = self.judged.part(position)
        return self.said(given), self.said(believed)

    def text(self, i: int) -> str:
        """An example, with what is in doubt."""
        doubts = (f"[{self.part_name(*self.at(p))} {' > '.join(self.said_part(p))}]" for p in self.judged.doubted(i))
        return " ".join([f"{self.name(i)}:", *doubts])

    def example_row(self, i: int) -> Listed:
        """A suspect."""
        cells = (i, self.line(i), self.judged.wrong(i), self.text(i))

        def as_dict() -> dict[str, Any]:
            return {**self.judged.suspect(i).as_dict(), "line": self.line(i), "name": self.name(i)}

        return Listed(cells, as_dict)

    def part_row(self, position: int) -> Listed:
        """A part in doubt."""
        i, t = self.at(position)
        text = f"{self.name(i)}: {self.part_name(i, t)}"
        cells = (i, self.part_line(i, t), self.judged.wrong_part(position), text, t, *self.said_part(position))
        said = {title: cell for title, cell in zip(PART, cells, strict=True) if title != "text"}
        return Listed(cells, functools.partial(dict, said))

    def doubted(self, ranked: Sequence[int], parts: bool) -> list[Doubted]:
        """For the page: examples, or parts, as they are ranked."""
        if not parts:
            return [Doubted(i, [self.at(p)[1] for p in self.judged.doubted(i)], self.judged.wrong(i)) for i in ranked]
        found = [Doubted(i, [t], self.judged.wrong_part(p)) for p in ranked for i, t in [self.at(p)]]
        return found if self.alone else list({one.example: one for one in reversed(found)}.values())[::-1]

    def listing(self, options: Any, truth: Any = None) -> Listing:
        """What ``partwise suspects`` lists; `truth`: the data with correct labels, if they are known."""
        found, parts = self.judged.found, options.parts
        ranked = self.judged.ranked_parts(options.precision) if parts else self.judged.ranked(options.precision)
        n, m = len(self.starts) - 1, int(self.starts[-1])
        known = None
        if truth is not None:
            same = self.same(truth) if parts else self.same_examples(truth)
            known = found_among(~same, ranked, found.parts if parts else found.examples)
        return Listing(
            PART if parts else EXAMPLE,
            [self.part_row(p) if parts else self.example_row(p) for p in ranked],
            (m, self.parts) if parts else (n, self.examples),
            {**about_judgement(self.model, options.folds_to_judge(), found, parts), self.examples: n, self.parts: m},
            "where" if parts else f"{self.parts} in doubt: [given > believed]",
            known,
            lambda source, top: self.review(source, self.doubted(ranked[:top], parts), not (parts and self.alone)),
        )


def list_suspects(kind: type[JudgedFile], model: Any, data: Any, truth: Any, options: Any, **more: Any) -> Listing:
    """Judge the data of a file, and list what is probably wrong in them; `more` is what else `kind` wants to know."""
    if truth is not None:
        kind.check_truth(truth, data)
    model.random_state = options.random_state
    return kind(model, data, model.judge(data, folds=options.folds_to_judge()), **more).listing(options, truth)


def other_truth(truth: Any, data: Any, examples: str) -> Refusal:
    """What is said where the data with correct labels are other data."""
    return Refusal(f"--truth {truth.name}: it must have the {examples} of {data.name}, with other labels only.")
