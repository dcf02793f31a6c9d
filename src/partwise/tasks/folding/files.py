"""RNA sequences and their secondary structures: FASTA with dot-bracket lines, tables, and what dot-brackets mean.

Structures are written below their sequences, ``(`` and ``)`` for a pair, a dot for a base without one::

    >5s_Acholeplasma-laidlawii-1
    UCUGGUGACGAUAGG
    ((((.......))))

A line that begins with ``>`` may be missing, sequence and structure may go over several lines, and an energy after the
structure, as ViennaRNA writes it, is left out. A table has columns separated by tabs and a first line that names them:
``sequence``, ``structure``, and ``id``, ``family`` and ``fold`` if there are any.

Other brackets, ``[]``, ``{}``, ``<>`` and ``Aa`` to ``Zz``, are pairs too: those that cross the ones before them are
*pseudoknots*, which nested structures do not have. They are counted and left out, or refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from partwise.files.text_source import read_text

PLAIN = "().,:_-~"
OPENING = "([{<" + "".join(map(chr, range(ord("A"), ord("Z") + 1)))
CLOSING = ")]}>" + OPENING[4:].lower()
ENERGY = re.compile(r"\s+[(\[{]?\s*[-+]?\d+(\.\d+)?.*$")


@dataclass(frozen=True, eq=False)
class RnaSet:
    r"""Sequences with what is known of their structures.

    Attributes
    ----------
    names, sequences : lists of str
    bases : list of int8 arrays
        The sequences as numbers (`partwise.structures.folding.problem.encode`).
    partners : list of int64 arrays, or None where there is no structure
        The partner of each base, from 0, or -1: nested pairs only.
    pseudoknots : int64 array
        How many pairs of each sequence were left out because they cross others.
    families, folds : lists of str
        Empty strings where the file does not say.
    lines : list of int
        Where each sequence begins, from 1.
    name : str
        Where it came from.
    structures : list of str, or None where there is none
        As they are written, pseudoknots too.
    below : list of int
        Where each structure begins.

    Examples
    --------
    >>> data = read_rna(b">a\nGAAAC\n(...)\n")
    >>> data.sequences, data.partners[0].tolist(), data.has_structures
    (['GAAAC'], [4, -1, -1, -1, 0], True)
    """

    names: list[str]
    sequences: list[str]
    bases: list[np.ndarray]
    partners: list[np.ndarray | None]
    pseudoknots: np.ndarray
    families: list[str]
    folds: list[str]
    lines: list[int]
    name: str
    structures: list[str | None]
    below: list[int]

    def __len__(self) -> int:
        return len(self.sequences)

    def __repr__(self) -> str:
        known = sum(p is not None for p in self.partners)
        return f"<RnaSet: {len(self)} sequences, {known} structures from {self.name}>"

    @property
    def lengths(self) -> np.ndarray:
        """Bases of each sequence."""
        return np.array([len(bases) for bases in self.bases], np.int64)

    @property
    def has_structures(self) -> bool:
        """Whether all of them are known."""
        return all(p is not None for p in self.partners)

    def place(self, i: int) -> str:
        """Where a sequence is, in words."""
        return f"{self.name}, line {self.lines[i]}"

    def take(self, which: Iterable[int]) -> RnaSet:
        """The sequences numbered `which`."""
        which = [int(i) for i in which]
        lists: dict[str, Any] = {
            key: [getattr(self, key)[i] for i in which]
            for key in ("names", "sequences", "bases", "partners", "families", "folds", "lines", "structures", "below")
        }
        return replace(self, pseudoknots=self.pseudoknots[which], **lists)

    def distinct(self) -> RnaSet:
        """Without sequences that came before, letter by letter: a test set must not have those of the training set."""
        first: dict[str, int] = {}
        for i, sequence in enumerate(self.sequences):
            first.setdefault(sequence.upper().replace("T", "U"), i)
        return self.take(first.values())

    def with_structures(self, structures: Sequence[str]) -> str:
        """FASTA with these structures below the sequences."""
        rows = zip(self.names, self.sequences, structures, strict=True)
        return "".join(f">{name}\n{sequence}\n{structure}\n" for name, sequence, structure in rows)


def read_rna(source: Any, encoding: str = "utf-8", first: int | None = None, pseudoknots: str = "drop") -> RnaSet:
    r"""Read FASTA with dot-brackets, without them, or a table; see the module.

    Parameters
    ----------
    source : path, ``"-"``, bytes or binary file
        Gzipped or not.
    encoding : str
    first : int, optional
        Stop after so many sequences.
    pseudoknots : {"drop", "refuse"}
        What to do with pairs that cross others.

    Raises
    ------
    ValueError
        Naming the file and the line: a letter that is no base, a bracket without its partner, a structure longer or shorter than
        its sequence, a pseudoknot that is refused.

    Examples
    --------
    >>> read_rna(b">a\nGGAAACC\n((...))\n>b\nAC\n").structures
    ['((...))', None]
    """
    from partwise.structures.folding.problem import encode

    if pseudoknots not in ("drop", "refuse"):
        raise ValueError(f"The 'pseudoknots' parameter must be 'drop' or 'refuse'. Got {pseudoknots!r} instead.")
    text, name = read_text(source, encoding)
    lines = text.splitlines()
    heads = [cell.strip().lower() for cell in lines[0].split("\t")] if lines else []
    rows = from_table(lines, heads, name) if "sequence" in heads else from_fasta(lines, name)
    rows = rows[:first] if first is not None else rows
    if not rows:
        raise ValueError(f"{name}: there are no sequences in it; expected FASTA, or a table with a column 'sequence'.")
    if not any(row["sequence"] for row in rows):
        raise ValueError(f"{name}, line {rows[0]['line']}: there are {len(rows)} titles, but not one base below them.")
    bases: list[np.ndarray] = []
    partners: list[np.ndarray | None] = []
    crossing = []
    for row in rows:
        place = f"{name}, line {row['line']}"
        if not row["sequence"] and row["structure"] is None:
            row["structure"] = ""  # no bases, no pairs: it is known
        bases.append(encode(row["sequence"], place))
        found, left_out = None, 0
        if row["structure"] is not None:
            below = f"{name}, line {row['below']}"
            if len(row["structure"]) != len(row["sequence"]):
                raise ValueError(
                    f"{below}: the structure has {len(row['structure'])} characters, but its sequence has {len(row['sequence'])}."
                )
            found, left_out = read_dot_bracket(row["structure"], below)
            if left_out and pseudoknots == "refuse":
                raise ValueError(
                    f"{below}: {left_out} pairs cross others, a pseudoknot. Take pseudoknots='drop' to leave them out."
                )
        partners.append(found)
        crossing.append(left_out)
    texts = {key: [row[key] for row in rows] for key in ("id", "sequence", "family", "fold", "line", "structure", "below")}
    return RnaSet(
        texts["id"],
        texts["sequence"],
        bases,
        partners,
        np.array(crossing, np.int64),
        texts["family"],
        texts["fold"],
        texts["line"],
        name,
        texts["structure"],
        texts["below"],
    )


def from_table(lines: list[str], heads: list[str], name: str) -> list[dict[str, Any]]:
    """Rows of a table whose first line names its columns."""
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(lines[1:], 2):
        if not line.strip():
            continue
        cells = line.split("\t")
        if len(cells) != len(heads):
            raise ValueError(f"{name}, line {number}: expected {len(heads)} cells with tabs between them, got {len(cells)}.")
        row = dict(zip(heads, (cell.strip() for cell in cells), strict=True))
        rows.append(
            {
                "id": row.get("id", f"sequence-{len(rows) + 1}"),
                "sequence": row["sequence"],
                "structure": row.get("structure") or None,
                "family": row.get("family", ""),
                "fold": row.get("fold", ""),
                "line": number,
                "below": number,
            }
        )
    return rows


def from_fasta(lines: list[str], name: str) -> list[dict[str, Any]]:
    """Sequences and the structures below them."""
    rows: list[dict[str, Any]] = []

    def begin(title: str | None, number: int) -> None:
        title = title or f"sequence-{len(rows) + 1}"
        rows.append({"id": title, "sequence": "", "structure": None, "family": "", "fold": "", "line": number, "below": number})

    titled = False
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith(("#", ";")):
            continue
        if text.startswith(">") and not (rows and goes_on(text, rows[-1])):
            begin(text[1:].strip(), number)
            titled = True
            continue
        if not rows:
            begin(None, number)
        row = rows[-1]
        if is_structure(text, row):
            bare = ENERGY.sub("", text)
            row["below"] = number if row["structure"] is None else row["below"]
            row["structure"] = (row["structure"] or "") + bare
        else:
            if row["structure"] is not None or (row["sequence"] and not titled):
                begin(None, number)
                row, titled = rows[-1], False
            row["line"] = row["line"] if row["sequence"] else number
            row["sequence"] += "".join(text.split())
    return rows


def is_structure(text: str, row: dict[str, Any]) -> bool:
    """Whether a line below a sequence is (a part of) its structure: it has brackets or dots and nothing but."""
    if not row["sequence"]:
        return False
    bare = ENERGY.sub("", text)
    marks = sum(c in PLAIN or c in "[]{}<>" for c in bare)
    return marks > 0 and 2 * marks >= len(bare) and all(c in PLAIN or c in OPENING or c in CLOSING for c in bare)


def goes_on(text: str, row: dict[str, Any]) -> bool:
    """Whether a line that begins with ``>`` is no title, but the next part of a structure that is shorter than its sequence."""
    if row["structure"] is None or not is_structure(text, row):
        return False
    return len(row["structure"]) + len(ENERGY.sub("", text)) <= len(row["sequence"])


def read_dot_bracket(text: str, place: str = "the structure") -> tuple[np.ndarray, int]:
    """The partner of each base, from 0, or -1, without pairs that cross others; and how many those are.

    Round brackets come first, then the other kinds in the order of ``[] {} <> Aa Bb``: a pair that crosses none so far is kept.

    Parameters
    ----------
    text : str
        Brackets and dots.
    place : str
        What to call it in messages.

    Examples
    --------
    >>> partners, crossing = read_dot_bracket("((..<<))..>>")
    >>> partners.tolist(), crossing
    ([7, 6, -1, -1, -1, -1, 1, 0, -1, -1, -1, -1], 2)
    """
    partners = np.full(len(text), -1, np.int64)
    waiting: dict[str, list[int]] = {}
    pairs: dict[str, list[tuple[int, int]]] = {}
    for k, mark in enumerate(text):
        if mark in OPENING:
            waiting.setdefault(mark, []).append(k)
        elif mark in CLOSING:
            kind = OPENING[CLOSING.index(mark)]
            if not waiting.get(kind):
                raise ValueError(f"{place}: the bracket {mark!r} at {k + 1} closes none that was opened.")
            pairs.setdefault(kind, []).append((waiting[kind].pop(), k))
        elif mark not in PLAIN:
            raise ValueError(f"{place}: {mark!r} at {k + 1} is no bracket and no dot.")
    for kind, left in waiting.items():
        if left:
            raise ValueError(f"{place}: the bracket {kind!r} at {left[-1] + 1} is never closed.")
    crossing = 0
    for kind in OPENING:
        for i, j in pairs.get(kind, ()):
            inside = partners[i + 1 : j]
            if kind != "(" and ((inside >= 0) & ((inside < i) | (inside > j))).any():
                crossing += 1
            else:
                partners[i], partners[j] = j, i
    return partners, crossing


def write_dot_bracket(partners: Sequence[int] | np.ndarray) -> str:
    """Brackets and dots for nested pairs.

    Parameters
    ----------
    partners : sequence of int
        The partner of each base, from 0, or -1.

    Examples
    --------
    >>> write_dot_bracket([5, -1, -1, -1, -1, 0])
    '(....)'
    """
    return "".join("." if j < 0 else "(" if j > i else ")" for i, j in enumerate(np.asarray(partners).tolist()))
