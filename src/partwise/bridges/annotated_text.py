"""Texts with spans, by character offsets: what annotation tools keep, and what column files can say.

A column file has a line for each token: the word, where it begins and ends in its text, perhaps more, and the label in the last
column. A blank line ends a sequence. A text goes on as long as offsets grow: where they fall back, another text begins. So a text
may be cut into sequences (at line breaks, here) and put together again.
"""

from __future__ import annotations

import bisect
import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from partwise.text.chunk_schemes import convert, recognise

FARTHEST = 1_000_000  # characters that texts may have beside 100 for each of their column file: they are written out with blanks
BLANK = re.compile(r"\s")
TOKEN = re.compile(r"\w+|[^\w\s]")


class TextSpan(NamedTuple):
    """Characters `start` to `end` (which is the first one behind it), and what they are.

    Attributes
    ----------
    start, end : int
        Characters, `end` being the first one behind the span.
    label : str

    Examples
    --------
    >>> TextSpan(0, 3, "PER")
    TextSpan(start=0, end=3, label='PER')
    """

    start: int
    end: int
    label: str


@dataclass
class AnnotatedText:
    """A text, its spans, and its tokens where a tool gave them.

    Attributes
    ----------
    text : str
    spans : list of TextSpan
    tokens : list of (start, end), optional
        Where a tool gave them; else they are found by `tokenise`.
    place : str
        Where it was read, for messages; texts are equal wherever they are from.

    Examples
    --------
    >>> AnnotatedText("Ada sleeps", [TextSpan(0, 3, "PER")]).spans[0].label
    'PER'
    """

    text: str
    spans: list[TextSpan] = field(default_factory=list)
    tokens: list[tuple[int, int]] | None = None
    place: str = field(default="", compare=False, repr=False)

    def checked(self, name: str) -> AnnotatedText:
        """Itself, called by the place where it was read; or an error that says which offsets are impossible."""
        self.place = name
        for what, some in (("span", self.spans), ("token", [(*token, "") for token in self.tokens or ()])):
            for start, end, label in some:
                if not 0 <= start < end <= len(self.text):
                    raise ValueError(
                        f"{name}: {what} {start}-{end} {label} is not within the {len(self.text)} characters of the text."
                    )
        return self


def tokenise(text: str) -> list[tuple[int, int]]:
    """Where tokens begin and end: runs of letters and digits, and every other character that is not blank by itself.

    Parameters
    ----------
    text : str

    Examples
    --------
    >>> tokenise("Oh, no!")
    [(0, 2), (2, 3), (4, 6), (6, 7)]
    """
    return [found.span() for found in TOKEN.finditer(text)]


def labels_of(document: AnnotatedText, name: str, adjust: bool = False) -> tuple[list[tuple[int, int]], list[str]]:
    """Tokens, and their labels in IOB2.

    A span must begin and end where tokens do; with `adjust` it is widened to whole tokens instead. Spans may not overlap.
    """
    tokens = sorted(document.tokens if document.tokens is not None else tokenise(document.text))
    labels, taken = ["O"] * len(tokens), [""] * len(tokens)
    firsts, reached = [first for first, _ in tokens], list(itertools.accumulate((last for _, last in tokens), max))
    for start, end, label in sorted(document.spans):
        near = range(bisect.bisect_right(reached, start), bisect.bisect_left(firsts, end))
        inside = [k for k in near if start < tokens[k][1]]
        shown = f"{name}: span {start}-{end} {document.text[start:end]!r} ({label})"
        if not inside:
            raise ValueError(f"{shown} holds no token.")
        first, last = tokens[inside[0]][0], tokens[inside[-1]][1]
        if (first, last) != (start, end) and not adjust:
            raise ValueError(
                f"{shown} does not begin and end with tokens; whole tokens would be {first}-{last} {document.text[first:last]!r}."
            )
        for k in inside:
            if taken[k]:
                raise ValueError(f"{shown} overlaps {taken[k]}: a column file has one label for each token.")
            labels[k] = f"{'B' if k == inside[0] else 'I'}-{label}"
            taken[k] = f"{start}-{end} ({label})"
    return tokens, labels


def in_one_word(label: str) -> str:
    """A label for files in which blanks, tabs and line breaks end it."""
    return BLANK.sub("_", label)


def to_columns(documents: Iterable[AnnotatedText], adjust: bool = False) -> str:
    """A column file: word, start, end, label. Sequences end at line breaks of the text."""
    lines: list[str] = []
    for n, document in enumerate(documents, 1):
        name = document.place or f"text {n}"
        tokens, labels = labels_of(document, name, adjust)
        before = 0
        for (start, end), label in zip(tokens, labels, strict=True):
            word = document.text[start:end]
            if BLANK.search(word):
                raise ValueError(f"{name}: token {start}-{end} {word!r} has a blank in it; a column file cannot hold that.")
            if lines and lines[-1] and "\n" in document.text[before:start]:
                lines.append("")
            lines.append(f"{word}\t{start}\t{end}\t{in_one_word(label)}")
            before = end
        if lines and lines[-1]:
            lines.append("")
    return "\n".join(lines) + "\n" if lines else ""


def from_columns(content: str, name: str = "the file") -> list[AnnotatedText]:
    """Texts and spans from such a file, in any scheme of chunks; further columns between offsets and label do not matter."""
    rows: list[tuple[int, list[str]]] = [(n, line.split()) for n, line in enumerate(content.splitlines(), 1)]
    groups: list[list[list[tuple[int, int, str, str]]]] = []  # texts of sequences of tokens
    fresh, reached, room = True, -1, FARTHEST + 100 * len(content)
    for n, cells in rows:
        if not cells:
            fresh = True
            continue
        if len(cells) < 4 or not (cells[1].isdecimal() and cells[2].isdecimal()):
            raise ValueError(f"{name}, line {n}: expected a word, its two offsets and a label. Got {' '.join(cells)!r}.")
        start, end = int(cells[1]), int(cells[2])
        if end - start != len(cells[0]):
            raise ValueError(f"{name}, line {n}: {cells[0]!r} has {len(cells[0])} characters, its offsets say {end - start}.")
        if start < reached and not fresh:
            raise ValueError(f"{name}, line {n}: offset {start} lies before the end of the token above it, {reached}.")
        if fresh and (start < reached or not groups):
            groups.append([])
            reached = 0
        room -= end - max(reached, 0)  # of all texts together
        if room < 0:
            raise ValueError(f"{name}, line {n}: offset {end} is too far away for a file of {len(content)} characters.")
        if fresh:
            groups[-1].append([])
        groups[-1][-1].append((start, end, cells[0], cells[-1]))
        fresh, reached = False, end
    return [together(sequences) for sequences in groups]


def together(sequences: Sequence[Sequence[tuple[int, int, str, str]]]) -> AnnotatedText:
    """One text from its sequences: blanks between tokens, a line break between sequences."""
    text, spans, tokens = "", [], []
    for sequence in sequences:
        for k, (start, end, word, _) in enumerate(sequence):
            gap = start - len(text)
            text += ("\n" if k == 0 and text and gap else "") + " " * (gap - (1 if k == 0 and text and gap else 0)) + word
            tokens.append((start, end))
        spans += spans_of([(start, end, label) for start, end, _, label in sequence])
    return AnnotatedText(text, spans, tokens)


def spans_of(labelled: Sequence[tuple[int, int, str]]) -> list[TextSpan]:
    """Spans of one sequence from its chunk labels."""
    labels = [label for _, _, label in labelled]
    found: list[TextSpan] = []
    for (start, end, _), label in zip(labelled, convert([labels], "iob2", recognise([labels]) or "iob2")[0], strict=True):
        prefix, _, kind = label.partition("-")
        if prefix == "B":
            found.append(TextSpan(start, end, kind))
        elif prefix == "I":
            found[-1] = found[-1]._replace(end=end)
    return found
