r"""Models of Wapiti (its text files), read into a tagger.

The file, every string with its length in bytes before it (``5:U:x=1,``):

==============================  =====================================================================================
``#mdl#2#active``               kind (2: CRF; older files leave it out), number of weights that are not zero
``#rdr#patterns/columns/0``     then the patterns
``#qrk#n``                      the labels
``#qrk#n``                      the observations
``number=weight``               weights that are not zero, in hexadecimal floating point
==============================  =====================================================================================

An observation that begins with u has a weight for each label, one with b a weight for each label after each other, one with ``*``
both; they are numbered in the order of the observations.

Patterns: ``%x[row,column]`` is a cell, ``%t[row,column,"regexp"]`` whether the expression is found in it, ``%m`` what it finds; a
capital letter makes it lower case, ``@`` counts rows from the beginning. A model without patterns takes features as they are, as
columns. Expressions know ``. ^ $ * ?`` and classes such as ``\d`` and ``\U``; ``*`` takes as little as it can, and all look at
bytes, not at letters: only those of English have a case. They are matched by Python's engine, if `partwise.text.patterns` finds
that they end in time; those with a ``*`` look at the first `LONGEST` bytes of a cell. (Wapiti itself copies too much, for a
``%m``, where a ``?`` has to be taken back.)
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from partwise.files.text_source import read_text
from partwise.tasks.common.model_file import ModelFileError
from partwise.tasks.tagging.template_tagger import Sparse, TemplateTagger, Written, check_room, labeler_of
from partwise.text.patterns import LONGEST, check_pattern

COMMAND = re.compile(r"%([xtmXTM])\[\s*(@?)\s*([+-]?\d+)\s*,\s*(\d+)\s*")
ARGUMENT = re.compile(r',"((?:[^"\\]|\\.)*)"')
CLASSES = {"a": "A-Za-z", "d": "0-9", "l": "a-z", "p": "!-/:-@\\[-`{-~", "s": "\\t-\\r ", "u": "A-Z", "w": "A-Za-z0-9"}
LOWER = {ord(c): ord(c) + 32 for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
FARTHEST = 5  # cells that are farther outside than that have one name
MOST_LABELS = 10_000


class CellCommand(NamedTuple):
    """A part of a pattern that looks at a cell."""

    row: int
    absolute: bool
    column: int
    lower: bool
    change: Callable[[str], str]  #: what is written of the cell


def read_wapiti_model(source: Any, encoding: str = "utf-8") -> TemplateTagger:
    """A tagger with the weights of a model of Wapiti.

    Parameters
    ----------
    source : path or bytes
        What ``wapiti train`` has written, gzipped or not.
    encoding : str
        Of the text it was trained on.

    Notes
    -----
    O(size of the file) time and memory. Answers are those of ``wapiti label``: the labels of the highest score.
    """
    text, name = read_text(source, "latin-1")  # a letter is a byte, as for Wapiti; the lengths in the file are of bytes
    try:
        return _tagger(_File(text), encoding)
    except (ValueError, IndexError, OverflowError) as error:
        raise ModelFileError(f"{os.fspath(name)} is not a model of Wapiti, or damaged: {error}.") from None


class _File:
    """Reads what the file is made of, one thing after the other."""

    def __init__(self, text: str):
        self.text, self.at = text, 0

    def line(self, pattern: str, what: str) -> tuple[int, ...]:
        end = self.text.find("\n", self.at)
        line = self.text[self.at : len(self.text) if end < 0 else end]
        found = re.fullmatch(pattern, line)
        if found is None:
            raise ValueError(f"expected {what} at byte {self.at}, got {line[:40]!r}")
        self.at += len(line) + 1
        return tuple(int(one) for one in found.groups() if one is not None)

    def strings(self, n: int) -> list[str]:
        found = []
        for _ in range(n):
            end = self.text.find(":", self.at, self.at + 12)
            size = self.text[self.at : end] if end >= 0 else ""
            last = end + 1 + int(size) if size.isdecimal() else -1
            if last < 0 or self.text[last : last + 1] != ",":
                raise ValueError(
                    f"expected a string with its length at byte {self.at}, got {self.text[self.at : self.at + 20]!r}"
                )
            found.append(self.text[end + 1 : last])
            self.at = last + 2
        return found


def _tagger(file: _File, encoding: str) -> TemplateTagger:
    *kind, n_active = file.line(r"#mdl#(?:(\d+)#)?(\d+)", "'#mdl#2#' and the number of weights")
    if kind not in ([], [2]):
        raise ValueError("it is a maximum entropy model or an MEMM; only those of CRFs can be read")
    n_patterns, n_columns, *automatic = file.line(r"#rdr#(\d+)/(\d+)(?:/(\d+))?", "'#rdr#' and the number of patterns")
    patterns = [pattern[:1].lower() + pattern[1:] for pattern in file.strings(n_patterns)]
    labels = [label.encode("latin-1").decode(encoding) for label in file.strings(file.line(r"#qrk#(\d+)", "the labels")[0])]
    observations = file.strings(file.line(r"#qrk#(\d+)", "the observations")[0])
    size = len(labels)
    if not 1 <= size <= MOST_LABELS:
        raise ValueError(f"it has {size} labels")
    for name in observations:
        if name[:1] not in ("u", "b", "*"):
            raise ValueError(f"the observation {name[:40]!r} begins neither with u, nor with b, nor with *")
    # how many weights an observation has of its own, and of pairs
    n_own = np.array([size * (name[0] in "u*") for name in observations], np.int64)
    n_pairs = np.array([size * size * (name[0] in "b*") for name in observations], np.int64)
    ends = np.cumsum(n_own + n_pairs)
    firsts = ends - n_own - n_pairs
    number, weight = _weights(file, n_active)
    if number.size and not (0 <= number.min() and number.max() < ends[-1]):
        raise ValueError(f"there is a weight {number.max()}, of {ends[-1] if len(ends) else 0}")
    if len(np.unique(number)) != len(number):
        raise ValueError("a weight is there twice")
    order = np.argsort(number)
    number, weight = number[order], weight[order]
    constant = {pattern for pattern in patterns if "%" not in pattern}
    single: dict[str, np.ndarray] = {}
    pairs: dict[str, Sparse] = {}
    check_room(size, int(np.count_nonzero(n_own)))
    moves = np.zeros((size, size))
    lows, highs = np.searchsorted(number, firsts), np.searchsorted(number, ends)
    for k, name in enumerate(observations):
        if lows[k] == highs[k]:
            continue
        some = number[lows[k] : highs[k]] - firsts[k]
        values, shown, last = weight[lows[k] : highs[k]], _shown(name), int(np.searchsorted(some, n_own[k]))
        if n_own[k]:
            single[shown] = np.zeros(size)
            single[shown][some[:last]] = values[:last]
        if n_pairs[k] and name in constant:
            moves.flat[some[last:] - n_own[k]] += values[last:] * patterns.count(name)
        elif n_pairs[k]:
            pairs[shown] = some[last:] - n_own[k], values[last:]
    written, columns = _writer(patterns, bool(automatic and automatic[0]), encoding)
    if patterns and columns > n_columns + 1:
        raise ValueError(f"its patterns look at {columns} columns, its header has {n_columns + 1}")
    return TemplateTagger(labeler_of(labels, single, moves, pairs), patterns, max(columns, 1), written)


def _weights(file: _File, n: int) -> tuple[np.ndarray, np.ndarray]:
    lines = file.text[file.at :].splitlines()
    if len(lines) != n:
        raise ValueError(f"expected {n} weights, got {len(lines)} lines")
    number, weight = np.zeros(n, np.int64), np.zeros(n)
    for k, line in enumerate(lines):
        place, found, value = line.partition("=")
        if not (found and place.isdecimal()):
            raise ValueError(f"{line[:40]!r} is not a weight")
        number[k], weight[k] = int(place), float.fromhex(value)
    if not np.isfinite(weight).all():
        raise ValueError("a weight is not finite")
    return number, weight


def _shown(name: str) -> str:
    """An observation as people read it, though it may end within a letter of several bytes."""
    return name.encode("latin-1").decode("utf-8", "backslashreplace")


def _writer(patterns: list[str], automatic: bool, encoding: str) -> tuple[Written, int]:
    """Writes out the observations of a token, and says how many columns it looks at."""
    split = [_parse(pattern) for pattern in patterns]

    def as_bytes(cell: str) -> str:
        return cell.encode(encoding).decode("latin-1")

    def written(sentence: Sequence[Sequence[str]], t: int) -> list[str]:
        if not patterns:
            return [("u" if automatic else "") + cell for cell in sentence[t]]
        found = []
        for parts in split:
            texts = []
            for part in parts:
                if isinstance(part, str):
                    texts.append(part)
                    continue
                row = t + part.row if not part.absolute else part.row + len(sentence) if part.row < 0 else part.row - 1
                outside = _outside(row, len(sentence))
                text = part.change(as_bytes(sentence[row][part.column]) if outside is None else outside)
                texts.append(text.translate(LOWER) if part.lower else text)
            found.append(_shown("".join(texts)))
        return found

    return written, max((part.column + 1 for parts in split for part in parts if not isinstance(part, str)), default=0)


def _outside(row: int, n: int) -> str | None:
    """What stands for a cell before the beginning or after the end."""
    away = -row if row < 0 else row - n + 1
    if 0 <= row < n:
        return None
    return f"_x{'-' if row < 0 else '+'}{away if away < FARTHEST else '#'}"


def _parse(pattern: str) -> list[Any]:
    """A pattern as texts and commands."""
    if pattern[:1] not in ("u", "b", "*"):
        raise ValueError(f"the pattern {pattern[:40]!r} begins neither with u, nor with b, nor with *")
    parts: list[Any] = []
    at = 0
    while at < len(pattern):
        end = pattern.find("%", at)
        if end != at:
            parts.append(pattern[at : end if end > 0 else len(pattern)])
            at = end if end > 0 else len(pattern)
            continue
        found = COMMAND.match(pattern, at)
        change: Any = str
        if found is not None:
            kind, at = found[1].lower(), found.end()
            if kind != "x":
                argument = ARGUMENT.match(pattern, at)
                change, at = (None, at) if argument is None else (_change(kind, argument[1]), argument.end())
        if found is None or change is None or pattern[at : at + 1] != "]":
            raise ValueError(f"the pattern {pattern[:60]!r} cannot be read")
        parts.append(CellCommand(int(found[3]), bool(found[2]), int(found[4]), found[1].isupper(), change))
        at += 1
    return parts


def _change(kind: str, expression: str) -> Callable[[str], str]:
    """What is written of a cell for an expression: whether it is found (t), or what is found (m)."""
    translated = _translated(expression)
    check_pattern(translated)
    search, most = re.compile(translated).search, LONGEST if "*" in translated else None
    if kind == "t":
        return lambda cell: "true" if search(cell[:most]) else "false"

    def first(cell: str) -> str:
        found = search(cell[:most])
        return "" if found is None else found[0]

    return first


def _translated(expression: str) -> str:
    """An expression of Wapiti as one of Python."""
    found = [r"\A"] if expression.startswith("^") else []
    at = 1 if found else 0
    while at < len(expression):
        c = expression[at]
        if c == "$" and at + 1 == len(expression):
            found.append(r"\Z")
            break
        if c in "*?":
            raise ValueError(f"the expression {expression!r} repeats nothing")
        if c == "\\" and at + 1 < len(expression):
            at += 1
            c = expression[at]
            of = CLASSES.get(c.lower())
            one = re.escape(c) if of is None else f"[{'^' if c.isupper() else ''}{of}]"
        else:
            one = r"[\s\S]" if c == "." else re.escape(c)
        at += 1
        if expression[at : at + 1] in ("*", "?") and at < len(expression):
            one += "*?" if expression[at] == "*" else "?"
            at += 1
        found.append(one)
    return "".join(found)
