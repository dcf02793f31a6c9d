"""Pairs of sequences, aligned or not: tables with two rows a line, and FASTA.

A table has tabs between its cells. Its first line may name the columns; ``row1`` and ``row2`` are the aligned rows then,
``core``, if there is one, tells with 1 and 0 which columns of the alignment are reliable, ``id1`` and ``id2`` name the sequences.
Without such a line the first two cells are the rows::

    id1     id2     row1         row2         core
    1aab    1j46    GKGD-PKKPR   -MQDRVKRPM   0011011111

Sequences of FASTA files are taken two by two; or all pairs of a multiple alignment. Gaps are written ``-`` or ``.``.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from partwise.files.text_source import read_lines

GAP = -1  # in place of a partner
GAPS = "-."
NAMED = ("row1", "row2")
Rows = list[tuple[str, str]]


@dataclass(frozen=True, eq=False)
class AlignedPairs:
    r"""Pairs of sequences, with their alignments if they are known.

    Attributes
    ----------
    first, second : lists of str
        The sequences, without gaps.
    partners : list of int32 arrays, optional
        For each place of a first sequence the place of the second that it is aligned with, or -1.
    core : list of bool arrays, optional
        For each place of a first sequence whether it is in a reliable column.
    fields : dict of lists of str
        The other columns of a table: ids, families, ...
    lines : list of int
        Where in the text each pair begins, from 1.
    name : str
        Where it came from.

    Examples
    --------
    >>> pairs = read_alignments(b"AC-T\tACGT\n")
    >>> pairs.first, pairs.second, pairs.partners[0].tolist()
    (['ACT'], ['ACGT'], [0, 1, 3])
    """

    first: list[str]
    second: list[str]
    partners: list[np.ndarray] | None
    core: list[np.ndarray] | None = None
    fields: dict[str, list[str]] = field(default_factory=dict)
    lines: list[int] = field(default_factory=list)
    name: str = "<pairs>"

    def __len__(self) -> int:
        return len(self.first)

    def __repr__(self) -> str:
        known = "aligned" if self.partners is not None else "not aligned"
        return f"<AlignedPairs: {len(self)} pairs, {known}, from {self.name}>"

    @property
    def lengths(self) -> np.ndarray:
        """(N, 2) places of the two sequences."""
        return np.array([[len(a), len(b)] for a, b in zip(self.first, self.second, strict=True)], np.int64).reshape(-1, 2)

    def take(self, which: Sequence[int] | np.ndarray) -> AlignedPairs:
        """The pairs numbered `which`."""
        chosen = [int(k) for k in which]

        def some(values: Any) -> Any:
            return None if values is None else [values[k] for k in chosen]

        return AlignedPairs(
            some(self.first), some(self.second), some(self.partners), some(self.core),
            {name: some(values) for name, values in self.fields.items()}, some(self.lines), self.name,
        )  # fmt: skip

    def names(self, pair: int) -> tuple[str, str]:
        """What the two sequences of a pair are called."""
        return tuple(self.fields[key][pair] if key in self.fields else f"{pair}.{k}" for k, key in ((1, "id1"), (2, "id2")))  # type: ignore[return-value]

    def place(self, pair: int) -> str:
        """Where a pair is, in words."""
        return f"{self.name}, line {self.lines[pair]}" if self.lines else f"pair {pair}"

    def warn_of_names(self) -> None:
        """A note if no row has a gap: then each place is opposite the one below it, and perhaps these are names, not rows."""
        if self.partners is not None and len(self) and not any((own == GAP).any() for own in self.partners):
            if all(len(a) == len(b) for a, b in zip(self.first, self.second, strict=True)):
                warnings.warn(
                    f"{self.place(0)}: {self.first[0][:20]!r} and {self.second[0][:20]!r} were taken for aligned rows, and so "
                    "on; not one has a gap. If they are names, say which columns are the rows: with a first line that has 'row1' "
                    "and 'row2'.",
                    stacklevel=2,
                )

    def identity(self) -> np.ndarray:
        """(N,) share of aligned pairs of places with the same letter; nan where nothing is aligned."""
        if self.partners is None:
            raise ValueError(f"{self.name}: the pairs are not aligned.")
        return np.array([identity(a, b, p) for a, b, p in zip(self.first, self.second, self.partners, strict=True)])


def identity(first: Sequence[str], second: Sequence[str], partners: Sequence[int] | np.ndarray) -> float:
    """Share of aligned pairs with the same letter."""
    pairs = [(i, int(j)) for i, j in enumerate(partners) if j >= 0]
    return float(np.mean([first[i] == second[j] for i, j in pairs])) if pairs else float("nan")


def partner_of(rows: Sequence[str], gap: str = GAPS[0]) -> np.ndarray:
    """The partner of each place of the first of two aligned rows, or GAP."""
    first, second = (np.array([letter != gap for letter in row], bool) for row in rows)
    place = np.where(second, np.cumsum(second) - 1, GAP)
    return place[first].astype(np.int32)


def aligned_rows(first: Sequence[str], second: Sequence[str], partners: Sequence[int] | np.ndarray, gap: str = GAPS[0]) -> tuple:
    """The two rows of an alignment, as lists of letters; gaps in the second row come first where both have one."""
    rows: tuple[list[str], list[str]] = ([], [])
    done = 0
    for i, j in [*enumerate(partners), (len(first), len(second))]:
        if j == GAP:
            rows[0].append(first[i])
            rows[1].append(gap)
            continue
        rows[0].extend([gap] * (j - done))
        rows[1].extend(second[done:j])
        done = j + 1
        if i < len(first):
            rows[0].append(first[i])
            rows[1].append(second[j])
    return rows


def read_alignments(
    source: Any, encoding: str = "utf-8", *, aligned: bool | None = None, all_pairs: bool = False, first: int | None = None
) -> AlignedPairs:
    r"""Read a table of pairs, or FASTA; by its first character it is known which.

    Parameters
    ----------
    source : path, ``"-"``, bytes or binary file
        Gzipped or not.
    encoding : str
    aligned : bool, optional
        True: the two rows of a pair must be as long as each other. False: gaps are thrown away, nothing is aligned. By default
        pairs are aligned if all rows allow it.
    all_pairs : bool
        Of a FASTA file: all pairs of its rows, rather than the first with the second, the third with the fourth.
    first : int, optional
        Stop after so many pairs.

    Raises
    ------
    ValueError
        Naming the file and the line: rows of different lengths, a cell that is missing, an odd number of sequences.

    Examples
    --------
    >>> read_alignments(b">a\nAC-T\n>b\nACGT\n").partners[0].tolist()
    [0, 1, 3]
    """
    lines, name = read_lines(source, encoding)
    begins = next((line for line in lines if line.strip()), "")
    found = from_fasta(lines, name, all_pairs) if begins.startswith(">") else from_table(lines, name)
    rows, fields, core, at = found
    if first is not None:
        rows, at, core = rows[:first], at[:first], None if core is None else core[:first]
        fields = {key: values[:first] for key, values in fields.items()}
    if not rows:
        raise ValueError(f"{name}: there are no pairs in it; expected two rows a line, with a tab between them, or FASTA.")
    return pairs_from_rows(rows, fields, core, at, name, aligned)


def pairs_from_rows(rows, fields, core, at, name, aligned) -> AlignedPairs:
    """What the rows say, after checking their lengths."""
    table = str.maketrans("", "", GAPS)
    plain = [row.translate(str.maketrans(GAPS, GAPS[0] * len(GAPS))) for pair in rows for row in pair]
    pairs = list(zip(plain[::2], plain[1::2], strict=True))
    uneven = next((k for k, (a, b) in enumerate(pairs) if len(a) != len(b)), None)
    if aligned and uneven is not None:
        a, b = map(len, pairs[uneven])
        raise ValueError(f"{name}, line {at[uneven]}: aligned rows must be as long as each other. Got {a} and {b} columns.")
    if aligned is None:
        aligned = uneven is None
    partners = [partner_of(pair) for pair in pairs] if aligned else None
    kept = None
    if core is not None and aligned:
        kept = []
        for k, (marks, (a, _)) in enumerate(zip(core, pairs, strict=True)):
            if len(marks) != len(a) or set(marks) - set("01"):
                raise ValueError(f"{name}, line {at[k]}: core must have 0 or 1 for each of {len(a)} columns. Got {marks[:40]!r}.")
            kept.append(np.array([mark == "1" for mark, letter in zip(marks, a, strict=True) if letter != GAPS[0]], bool))
    return AlignedPairs(
        [row.translate(table) for row, _ in rows], [row.translate(table) for _, row in rows], partners, kept, fields, at, name
    )


def from_table(lines: list[str], name: str) -> tuple[Rows, dict[str, list[str]], list[str] | None, list[int]]:
    """Rows, other columns, cores and line numbers of a table."""
    filled = [(k, line) for k, line in enumerate(lines, 1) if line.strip("\r\n\t ") or "\t" in line]
    head = filled[0][1].split("\t") if filled else []
    named = all(column in head for column in NAMED)
    if not named:
        head = [*NAMED]
    where = [head.index(column) for column in NAMED]
    rows, at = [], []
    columns: dict[str, list[str]] = {column: [] for column in head if column not in NAMED}
    for number, line in filled[1:] if named else filled:
        cells = line.split("\t")
        if len(cells) < len(head):
            what = f"{len(head)} cells with tabs between, as in the first line" if named else "two rows with a tab between"
            raise ValueError(f"{name}, line {number}: expected {what}. Got {len(cells)}: {line[:60]!r}.")
        if not named and len(cells) > len(head):
            raise ValueError(
                f"{name}, line {number}: expected two rows with a tab between. Got {len(cells)} cells: {line[:60]!r}. If there "
                f"are names beside the rows, say which is which in a first line that has {' and '.join(map(repr, NAMED))}."
            )
        rows.append((cells[where[0]], cells[where[1]]))
        at.append(number)
        for k, column in enumerate(head):
            if column in columns:
                columns[column].append(cells[k])
    return rows, columns, columns.pop("core", None), at


def from_fasta(
    lines: list[str], name: str, all_pairs: bool
) -> tuple[list[tuple[str, str]], dict[str, list[str]], None, list[int]]:
    """Rows, names and line numbers of FASTA."""
    heads: list[tuple[str, int]] = []
    texts: list[list[str]] = []
    for number, line in enumerate(lines, 1):
        if line.startswith(">"):
            heads.append((line[1:].split(maxsplit=1)[0] if line[1:].strip() else str(len(heads) + 1), number))
            texts.append([])
        elif line.strip():
            texts[-1].append("".join(line.split()))
    if not all_pairs and len(heads) % 2:
        raise ValueError(
            f"{name}, line {heads[-1][1]}: the sequence {heads[-1][0]!r} has no partner: sequences are taken in twos. For all "
            "pairs of a multiple alignment, take all_pairs=True, or train with --all-pairs."
        )
    which = list(combinations(range(len(heads)), 2)) if all_pairs else [(k, k + 1) for k in range(0, len(heads), 2)]
    rows = ["".join(text) for text in texts]
    fields = {"id1": [heads[a][0] for a, _ in which], "id2": [heads[b][0] for _, b in which]}
    return [(rows[a], rows[b]) for a, b in which], fields, None, [heads[a][1] for a, _ in which]
