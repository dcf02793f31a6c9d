"""Features of two places opposite each other, and of places opposite gaps: scores that are looked up in tables.

A template names columns of the place in the first sequence (``a``), of that in the second (``b``), or of a place opposite a gap
(``g``), with an offset where a neighbour is meant::

    a.letter|b.letter      a.letter[-1]|b.letter[-1]      a.class|b.class      g      g.letter      g.hydropathy[1]

There is a weight for every pair of values, so a template of pairs is a table, and each kind of gap (first place, further ones,
the same at the ends) has its own weights. Where the two sequences are of the same kind, tables are symmetric. Columns:
``letter``, and the properties of letters that are given: classes of letters, or numbers, of which the mean over a window is cut
into bins.

Scoring a pair of n and m places with T tables takes n m T additions of whole vectors, since the row of a table that belongs to a
letter of the first sequence is laid out along the second one once, and used wherever the letter comes again.

References
----------
C. Do, S. Gross, S. Batzoglou (2006). CONTRAlign: discriminative training for protein sequence alignment. RECOMB.
J. Kyte, R. Doolittle (1982). A simple method for displaying the hydropathic character of a protein. J. Mol. Biol. 157.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from partwise.engine.accumulator import row
from partwise.engine.compilation import helper, kernel
from partwise.engine.numerics import copy, fill
from partwise.features.rows import add_label, emit

WINDOW = 3  # places on either side that a number is averaged over
EDGES = (-0.9, -0.45, -0.15, 0.15, 0.45, 0.9)  # of bins, in standard deviations of the letters around their mean
LARGEST_TABLE = 1 << 26
FARTHEST = 9
KINDS = 4  # of gaps

LETTERS = ("a.letter|b.letter", "a.letter[-1]|b.letter[-1]", "a.letter[1]|b.letter[1]", "g", "g.letter")
PROTEINS = (
    "a.letter|b.letter", "a.letter[-1]|b.letter[-1]", "a.letter[1]|b.letter[1]", "a.class[-2]|b.class[-2]",
    "a.class[2]|b.class[2]", "a.hydropathy|b.hydropathy", "g", "g.letter", "g.hydropathy", "g.letter[-1]", "g.letter[1]",
)  # fmt: skip

AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"
CLASSES = {letter: name for name in ("AST", "C", "DEN", "FWY", "G", "H", "ILMV", "KQR", "P") for letter in name}
HYDROPATHY = dict(
    zip(
        "ARNDCQEGHILKMFPSTWYV",
        (1.8, -4.5, -3.5, -3.5, 2.5, -3.5, -3.5, -0.4, -3.2, 4.5, 3.8, -3.9, 1.9, 2.8, -1.6, -0.8, -0.7, -0.9, -1.3, 4.2),
        strict=True,
    )
)
PROTEIN_PROPERTIES: dict[str, Mapping[str, Any]] = {"class": CLASSES, "hydropathy": HYDROPATHY}


class PairTables(NamedTuple):
    """Pairs of sequences, as codes that templates look up their tables with."""

    x: np.ndarray  #: (templates, places) int32 codes of first sequences, end to end
    z: np.ndarray  #: (templates, places) int32 codes of second sequences
    x_starts: np.ndarray  #: (N,) int64 first place of each first sequence
    z_starts: np.ndarray  #: (N,) int64
    x_codes: np.ndarray  #: (templates,) int64 how many codes there are: rows of a table
    z_codes: np.ndarray  #: (templates,) int64 columns of a table
    first: np.ndarray  #: (templates,) int64 first weight of a table
    gap_x: np.ndarray  #: (gap templates, places) int32
    gap_z: np.ndarray  #: (gap templates, places) int32
    gap_codes: np.ndarray  #: (gap templates,) int64
    gap_first: np.ndarray  #: (gap templates,) int64
    symmetric: bool
    n_features: int


# ---------------------------------------------------------------------------------------------------------------------
# From letters to codes
# ---------------------------------------------------------------------------------------------------------------------


class PairTemplate(NamedTuple):
    """One template, read."""

    text: str
    first: tuple[tuple[str, int], ...]  #: columns and offsets, of ``a`` or of ``g``
    second: tuple[tuple[str, int], ...] | None  #: of ``b``; None for a gap


def read_template(text: str) -> PairTemplate:
    """Raises where it cannot be read."""
    sides: dict[str, list[tuple[str, int]]] = {}
    for part in text.split("|"):
        match = re.fullmatch(r"([abg])(?:\.(\w+)(?:\[([-+]?\d+)\])?)?", part.strip())
        if match is None or abs(int(match[3] or 0)) > FARTHEST:
            raise ValueError(
                f"pair template {text!r}: cannot read {part!r}. Expected a.column, b.column or g.column, with an offset up to "
                f"{FARTHEST}, as a.letter[-1]; a, b or g alone stand for a constant."
            )
        side = sides.setdefault(match[1], [])
        if match[2]:
            side.append((match[2], int(match[3] or 0)))
    if set(sides) == {"g"}:
        return PairTemplate(text, tuple(sides["g"]), None)
    if set(sides) != {"a", "b"}:
        raise ValueError(f"pair template {text!r}: expected both of a and b, or g alone.")
    return PairTemplate(text, tuple(sides["a"]), tuple(sides["b"]))


def column_codes(letters: Sequence[str], name: str, properties: Mapping[str, Mapping[str, Any]]) -> tuple[np.ndarray, int, bool]:
    """What a column makes of each letter: codes and how many there are; or numbers (True), to be averaged."""
    if name == "letter":
        return np.arange(len(letters)), len(letters), False
    if name not in properties:
        raise ValueError(f"There is no column {name!r}: there are letter, {', '.join(properties)}.")
    values = [properties[name].get(letter) for letter in letters]
    known = [value for value in values if value is not None]
    if not known:
        raise ValueError(f"The property {name!r} has no value for any letter of the alphabet {''.join(letters)!r}.")
    if all(isinstance(value, int | float) for value in known):
        numbers = np.array([np.nan if value is None else float(value) for value in values])
        spread = float(np.nanstd(numbers)) or 1.0
        return np.nan_to_num((numbers - np.nanmean(numbers)) / spread), len(EDGES) + 1, True
    names = sorted({str(value) for value in known})
    return np.array([len(names) if value is None else names.index(str(value)) for value in values]), len(names) + 1, False


def shifted(codes: np.ndarray, starts: np.ndarray, offset: int, outside: int) -> np.ndarray:
    """The code `offset` places on, or `outside` where that is not in the same sequence."""
    n = int(starts[-1])
    at = np.arange(n) + offset
    owner = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    inside = (at >= starts[owner]) & (at < starts[owner + 1])
    return np.where(inside, codes[np.clip(at, 0, max(n - 1, 0))] if n else codes, outside)


def window_means(values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Means over WINDOW places on either side, as far as the sequence goes."""
    n = int(starts[-1])
    owner = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    low, high = np.maximum(np.arange(n) - WINDOW, starts[owner]), np.minimum(np.arange(n) + WINDOW + 1, starts[owner + 1])
    sums = np.concatenate([[0.0], np.cumsum(values)])
    return (sums[high] - sums[low]) / np.maximum(high - low, 1)


def side_codes(atoms, codes, starts, letters, properties) -> tuple[np.ndarray, int]:
    """One code for all atoms of a side at every place, and how many codes there are."""
    out, size = np.zeros(int(starts[-1]), np.int64), 1
    for name, offset in atoms:
        table, n, is_number = column_codes(letters, name, properties)
        own = table[codes] if len(codes) else np.zeros(0, np.int64)
        if is_number:
            own = np.searchsorted(EDGES, window_means(own * np.sqrt(2 * WINDOW + 1), starts))
        out = out * (n + 1) + shifted(own, starts, offset, n)
        size *= n + 1
    return out.astype(np.int32), size


def pair_tables(
    first: tuple[np.ndarray, np.ndarray],
    second: tuple[np.ndarray, np.ndarray],
    letters: Sequence[str],
    templates: Sequence[str] = LETTERS,
    properties: Mapping[str, Mapping[str, Any]] | None = None,
    symmetric: bool = True,
) -> PairTables:
    """Tables for pairs of sequences.

    Parameters
    ----------
    first, second : (codes, starts)
        Numbers of letters, sequences end to end, and where each sequence begins, (N + 1,).
    letters : sequence of str
        The alphabet.
    templates : sequence of str
    properties : dict of dicts, optional
        For each column beside ``letter`` what it makes of a letter: a string, or a number to be averaged over a window.
    symmetric : bool
        Whether exchanging the two sequences changes nothing.
    """
    read = [read_template(text) for text in templates]
    properties = properties or {}
    (x, x_starts), (z, z_starts) = first, second
    pairs, gaps, end = [], [], 0
    for template in (t for t in read if t.second is not None):
        if symmetric and template.first != template.second:
            raise ValueError(f"pair template {template.text!r}: a and b must have the same columns where tables are symmetric.")
        xs, rows = side_codes(template.first, x, x_starts, letters, properties)
        zs, columns = side_codes(template.second, z, z_starts, letters, properties)
        if rows * columns > LARGEST_TABLE:
            raise ValueError(
                f"pair template {template.text!r} has a table of {rows} x {columns} weights: too many. Name fewer columns."
            )
        pairs.append((xs, zs, rows, columns, end))
        end += rows * columns
    for template in (t for t in read if t.second is None):
        xs, size = side_codes(template.first, x, x_starts, letters, properties)
        zs, _ = side_codes(template.first, z, z_starts, letters, properties)
        gaps.append((xs, zs, size, end))
        end += size * KINDS * (1 if symmetric else 2)
    if not pairs or not gaps:
        raise ValueError("There must be a template of pairs, say a.letter|b.letter, and one of gaps, say g.")
    p, g = list(zip(*pairs, strict=True)), list(zip(*gaps, strict=True))
    return PairTables(
        np.array(p[0]), np.array(p[1]), x_starts[:-1].astype(np.int64), z_starts[:-1].astype(np.int64), np.array(p[2], np.int64),
        np.array(p[3], np.int64), np.array(p[4], np.int64), np.array(g[0]), np.array(g[1]), np.array(g[2], np.int64),
        np.array(g[3], np.int64), bool(symmetric), end,
    )  # fmt: skip


def take_pairs(tables: PairTables, which: np.ndarray) -> PairTables:
    """Some of the pairs; the codes of all stay, pairs only point at them."""
    return tables._replace(x_starts=tables.x_starts[which], z_starts=tables.z_starts[which])


# ---------------------------------------------------------------------------------------------------------------------
# Scores and features of the parts of a pair
# ---------------------------------------------------------------------------------------------------------------------


@kernel(default=True)
def part_scores(rows, e, first, n, m, w, theta):
    """Scores of all parts of pair e, which has sequences of n and m places and whose first part has the number `first`."""
    for k in range(n * m + 4 * (n + m)):
        theta[k] = 0.0
        emit(rows, first + k, w, 1, theta[k : k + 1])


@kernel(default=True)
def add_part(rows, e, first, n, m, k, c, into):
    """into += c * features of part k of pair e."""
    add_label(rows, first + k, 1, 0, c, into)


@kernel(default=True)
def add_all_parts(rows, e, first, n, m, parts, c, into):
    """into += c * sum_k parts[k] features of part k of pair e."""
    for k in range(n * m + 4 * (n + m)):
        if parts[k] != 0.0:
            add_label(rows, first + k, 1, 0, c * parts[k], into)


@helper
def entry_of(tables, t, a, b):
    """The weight of a pair of codes."""
    if tables.symmetric and a > b:
        a, b = b, a
    return tables.first[t] + a * tables.z_codes[t] + b


@helper
def gap_entry(tables, t, side, kind, code):
    """The weight of a code opposite a gap."""
    which = kind if tables.symmetric else 4 * side + kind
    return tables.gap_first[t] + which * tables.gap_codes[t] + code


@helper
def first_of_each(codes, n_codes, slot, found):
    """Number the codes that occur: slot[place] and found[slot]; returns how many."""
    where, n = np.full(n_codes, -1, np.int32), 0
    for i in range(len(codes)):
        a = codes[i]
        if where[a] < 0:
            where[a] = n
            found[n] = a
            n += 1
        slot[i] = where[a]
    return n


@helper
def add_to(values, out):
    """out += values."""
    for j in range(len(out)):
        out[j] += values[j]


@part_scores.implements(PairTables)
def _(rows, e, first, n, m, w, theta):
    x0, z0 = rows.x_starts[e], rows.z_starts[e]
    slot, found = np.empty(n, np.int32), np.empty(n, np.int32)
    profile = np.empty((n, m), theta.dtype)
    for t in range(len(rows.first)):
        xs, zs = rows.x[t, x0 : x0 + n], rows.z[t, z0 : z0 + m]
        by_code = np.empty(min(rows.z_codes[t], m), theta.dtype)
        for s in range(first_of_each(xs, rows.x_codes[t], slot, found)):
            out, a = profile[s], np.int64(found[s])
            if rows.z_codes[t] < m:  # look the row of the table up once, and then its letters
                for b in range(len(by_code)):
                    by_code[b] = w[entry_of(rows, t, a, b)]
                for j in range(m):
                    out[j] = by_code[zs[j]]
            else:
                for j in range(m):
                    out[j] = w[entry_of(rows, t, a, np.int64(zs[j]))]
        for i in range(n):
            if t == 0:
                copy(profile[slot[i]], theta[i * m : (i + 1) * m])
            else:
                add_to(profile[slot[i]], theta[i * m : (i + 1) * m])
    at = n * m
    for side in range(2):
        size, start, codes = (n, x0, rows.gap_x) if side == 0 else (m, z0, rows.gap_z)
        for kind in range(4):
            for i in range(size):
                total = 0.0
                for t in range(len(rows.gap_first)):
                    total += w[gap_entry(rows, t, side, kind, np.int64(codes[t, start + i]))]
                theta[at + i] = total
            at += size


@add_part.implements(PairTables)
def _(rows, e, first, n, m, k, c, into):
    if k < n * m:
        i, j = rows.x_starts[e] + k // m, rows.z_starts[e] + k % m
        for t in range(len(rows.first)):
            row(into, entry_of(rows, t, np.int64(rows.x[t, i]), np.int64(rows.z[t, j])), 1)[0] += c
        return
    k -= n * m
    side = 0 if k < 4 * n else 1
    k -= 4 * n * side
    size, codes, start = (n, rows.gap_x, rows.x_starts[e]) if side == 0 else (m, rows.gap_z, rows.z_starts[e])
    for t in range(len(rows.gap_first)):
        row(into, gap_entry(rows, t, side, k // size, np.int64(codes[t, start + k % size])), 1)[0] += c


@add_all_parts.implements(PairTables)
def _(rows, e, first, n, m, parts, c, into):
    x0, z0 = rows.x_starts[e], rows.z_starts[e]
    slot, found = np.empty(n, np.int32), np.empty(n, np.int32)
    profile = np.empty((n, m))
    for t in range(len(rows.first)):
        xs, zs = rows.x[t, x0 : x0 + n], rows.z[t, z0 : z0 + m]
        used = first_of_each(xs, rows.x_codes[t], slot, found)
        for s in range(used):
            fill(profile[s], 0.0)
        for i in range(n):
            add_to(parts[i * m : (i + 1) * m], profile[slot[i]])
        for s in range(used):
            values, a = profile[s], np.int64(found[s])
            for j in range(m):
                if values[j] != 0.0:
                    row(into, entry_of(rows, t, a, np.int64(zs[j])), 1)[0] += c * values[j]
    for k in range(n * m, n * m + 4 * (n + m)):
        if parts[k] != 0.0:
            add_part(rows, e, first, n, m, k, c * parts[k], into)
