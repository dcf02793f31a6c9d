"""Features of arcs between words, made when they are needed: feature rows whose row r is the arc number r.

Trees are scored by the arcs that could be in them, n (n + 1) for n words, with some hundred features each: too many to store.
They are hashes of what their templates find, computed on the way; a feature's number is the first `bits` bits of its hash. So
there is nothing to learn, and nothing to look up but the weight itself.

A template names cells of the head (``h``) and of the word (``m``), with an offset where a neighbour is meant, and the column::

    h.upos|m.upos          h.form|m.form          h.upos[-1]|h.upos|m.upos|m.upos[1]          h.upos|b.upos|m.upos

``b`` stands for the words between the two, one feature for each. Every template gives its feature twice, alone and together with
the direction of the arc and its length (1, 2, 3, 4, 5-10, more), as is the custom since McDonald et al. (2005). Cells outside the
sentence have a value of their own, and so have those of the root.

Cost of an arc: one multiplication for each cell that a template names, and one memory access for each feature.

References
----------
R. McDonald, K. Crammer, F. Pereira (2005). Online large-margin training of dependency parsers. ACL.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from partwise.engine.accumulator import expect_row, row
from partwise.engine.compilation import helper
from partwise.engine.prefetch import AHEAD
from partwise.features.rows import add_label, add_labels, add_row, emit, emit_difference, emit_ones, n_rows, row_norm, take_rows

MARGIN = 2  # places around a sentence that neighbours of its first and last word are read from
MOST = 512  # features of one arc; of words between, those that fit
MOST_TEMPLATES = MOST // 2  # each gives two features
ALONE = np.uint64(99)  # in place of direction and length

FIRST_ORDER = (
    "h.form", "h.upos", "h.form|h.upos", "m.form", "m.upos", "m.form|m.upos", "h.xpos", "m.xpos", "h.lemma", "m.lemma",
    "h.form|h.upos|m.form|m.upos", "h.upos|m.form|m.upos", "h.form|m.form|m.upos", "h.form|h.upos|m.form", "h.form|h.upos|m.upos",
    "h.form|m.form", "h.lemma|m.lemma", "h.form|m.upos", "h.upos|m.form", "h.upos|m.upos", "h.xpos|m.xpos", "h.lemma|m.upos",
    "h.upos|m.lemma", "h.feats|m.feats", "h.upos|m.upos|m.feats", "h.upos|h.feats|m.upos",
    "h.upos|h.upos[1]|m.upos[-1]|m.upos", "h.upos[-1]|h.upos|m.upos[-1]|m.upos", "h.upos|h.upos[1]|m.upos|m.upos[1]",
    "h.upos[-1]|h.upos|m.upos|m.upos[1]", "h.upos[-1]|h.upos|m.upos", "h.upos|m.upos[-1]|m.upos", "h.upos|h.upos[1]|m.upos",
    "h.upos|m.upos|m.upos[1]", "h.xpos|h.xpos[1]|m.xpos[-1]|m.xpos", "h.xpos[-1]|h.xpos|m.xpos|m.xpos[1]",
    "m.upos[-2]|m.upos[-1]|m.upos", "m.upos|m.upos[1]|m.upos[2]", "m.upos[-1]|m.upos|m.upos[1]", "h.upos[-1]|h.upos|h.upos[1]",
    "m.form[-1]|m.form", "m.form|m.form[1]", "h.upos|b.upos|m.upos",
)  # fmt: skip


class CodedColumns(Protocol):
    """Words whose cells are numbered, column by column, sentences end to end: `partwise.text.columns.Columns`, say."""

    @property
    def cells(self) -> list[list[str]]:
        """The distinct cells of each column."""

    @property
    def codes(self) -> np.ndarray:
        """(columns, words) the cell of a word is ``cells[column][codes[column, word]]``."""

    @property
    def starts(self) -> np.ndarray:
        """(sentences + 1,) first word of each sentence, and the end."""

    @property
    def n_tokens(self) -> int:
        """Words in all."""


class ArcRows(NamedTuple):
    """Arcs, what their words look like, and templates, compiled."""

    head: np.ndarray  #: (arcs,) int32 place of the head
    word: np.ndarray  #: (arcs,) int32 place of the word
    cells: np.ndarray  #: (columns, places) uint64 hashes; each sentence is MARGIN places, the root, its words, MARGIN places
    side: np.ndarray  #: (atoms,) int32: 0 head, 1 word
    column: np.ndarray  #: (atoms,) int32
    offset: np.ndarray  #: (atoms,) int32
    seed: np.ndarray  #: (templates,) uint64
    ptr: np.ndarray  #: (templates + 1,) int32 offsets into `atom`
    atom: np.ndarray  #: int32 atoms of all templates
    between: np.ndarray  #: (templates,) int32 column of the words between, or -1
    n_features: int
    bits: int


def arc_rows(columns: CodedColumns, names: Sequence[str], templates: Sequence[str] = FIRST_ORDER, bits: int = 22) -> ArcRows:
    """All arcs of all sentences, in the order that `partwise.structures.dependency` wants.

    Parameters
    ----------
    columns : CodedColumns
        The words.
    names : sequence of str
        Names of the columns; templates that name others are left out.
    templates : sequence of str
    bits : int
        There are 2^bits features.
    """
    lengths = np.diff(columns.starts)
    starts = np.cumsum(lengths + 2 * MARGIN + 1) - (lengths + 2 * MARGIN + 1) + MARGIN  # places of the roots
    places = int((lengths + 2 * MARGIN + 1).sum())
    if places > np.iinfo(np.int32).max:
        raise ValueError(f"There are {columns.n_tokens:,} words; they are numbered by 32 bits. Train on parts of the treebank.")
    where = np.arange(columns.n_tokens) - np.repeat(columns.starts[:-1], lengths) + np.repeat(starts, lengths) + 1
    cells = np.full((len(names), places), hash_text("outside"), np.uint64)
    for k in range(len(names)):
        cells[k, starts] = hash_text("root")
        cells[k, where] = np.array([hash_text(f"={cell}") for cell in columns.cells[k]], np.uint64)[columns.codes[k]]
    head = np.concatenate([np.tile(np.arange(n + 1), n) + s for n, s in zip(lengths, starts, strict=True)] or [np.zeros(0)])
    word = np.concatenate([np.repeat(np.arange(1, n + 1), n + 1) + s for n, s in zip(lengths, starts, strict=True)] or [head])
    program = compile_arc_templates(templates, names)
    return ArcRows._make((head.astype(np.int32), word.astype(np.int32), cells, *program, 1 << bits, bits))


def hash_text(text: str) -> int:
    """64 bits, the same everywhere and always."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def compile_arc_templates(templates: Sequence[str], names: Sequence[str]) -> tuple[np.ndarray, ...]:
    """side, column, offset of the distinct atoms; seed, ptr, atom, between of the templates."""
    atoms: dict[tuple[int, int, int], int] = {}
    seeds, ptr, used, between = [], [0], [], []
    for text in templates:
        own, column_between, known = [], -1, True
        for part in text.split("|"):
            match = re.fullmatch(r"([hmb])\.(\w+)(?:\[([-+]?\d+)\])?", part.strip())
            if match is None or abs(int(match[3] or 0)) > MARGIN or (match[1] == "b" and (match[3] or column_between >= 0)):
                raise ValueError(
                    f"arc template {text!r}: cannot read {part!r}. Expected h.column, m.column, with an offset of at most "
                    f"{MARGIN} words, as m.upos[-1], or once b.column."
                )
            if match[2] not in names:
                known = False
            elif match[1] == "b":
                column_between = list(names).index(match[2])
            else:
                key = ("hm".index(match[1]), list(names).index(match[2]), int(match[3] or 0))
                own.append(atoms.setdefault(key, len(atoms)))
        if known:
            seeds.append(hash_text(text))
            used += own
            ptr.append(len(used))
            between.append(column_between)
    if not seeds:
        raise ValueError(f"No arc template can be used: they name none of the columns {', '.join(names)} alone.")
    if len(seeds) > MOST_TEMPLATES:
        raise ValueError(f"At most {MOST_TEMPLATES} templates of arcs or spans can be used. Got {len(seeds)} instead.")
    table = np.array(list(atoms) or np.zeros((0, 3)), np.int32).reshape(-1, 3)
    return (
        *(np.ascontiguousarray(table[:, k]) for k in range(3)),
        np.array(seeds, np.uint64), np.array(ptr, np.int32), np.array(used, np.int32), np.array(between, np.int32),
    )  # fmt: skip


@helper
def mix(x, cell):
    """A hash of a hash and one more cell."""
    x = (x ^ cell) * np.uint64(0x9E3779B97F4A7C15)
    return x ^ (x >> np.uint64(29))


@helper
def stretch(distance):
    """Direction and length of an arc as a small number."""
    length = abs(distance)
    bucket = length if length < 5 else 5 if length <= 10 else 6
    return np.uint64(2 * bucket + (1 if distance > 0 else 0))


@helper
def arc_features(rows, r, index):
    """Write the numbers of the features of arc r; returns how many there are.

    Every template has room for two, whatever those before it have found between the words: `index` is never too short.
    """
    h, m, cells, atom, ptr = np.int64(rows.head[r]), np.int64(rows.word[r]), rows.cells, rows.atom, rows.ptr
    side, column, offset, seed, between = rows.side, rows.column, rows.offset, rows.seed, rows.between
    values = np.empty(side.size, np.uint64)
    for a in range(side.size):
        values[a] = cells[column[a], (h if side[a] == 0 else m) + offset[a]]
    how, shift, n = stretch(h - m), np.uint64(64 - rows.bits), 0
    T = min(seed.size, index.size // 2)
    for t in range(T):
        x = seed[t]
        for a in range(ptr[t], ptr[t + 1]):
            x = mix(x, values[atom[a]])
        if between[t] < 0:
            index[n] = mix(x, ALONE) >> shift
            index[n + 1] = mix(x, how) >> shift
            n += 2
        else:
            words, room = cells[between[t]], index.size - 2 * (T - t - 1)
            for b in range(min(h, m) + 1, max(h, m)):
                if n + 2 > room:
                    break
                y = mix(x, words[b])
                index[n] = mix(y, ALONE) >> shift
                index[n + 1] = mix(y, how) >> shift
                n += 2
    return n


@take_rows.register
def _(rows: ArcRows, which: np.ndarray) -> ArcRows:
    # the cells of all words stay: arcs only point at them
    return rows._replace(head=np.ascontiguousarray(rows.head[which]), word=np.ascontiguousarray(rows.word[which]))


@n_rows.implements(ArcRows)
def _(rows):
    return rows.head.size


@emit.implements(ArcRows)
def _(rows, r, w, width, out):
    index = np.empty(MOST, np.int64)
    n = arc_features(rows, r, index)
    if width == 1:
        total = 0.0
        for k in range(n):
            total += w[index[k]]
        out[0] += total
        return
    for k in range(min(n, AHEAD)):
        expect_row(w, index[k], width)
    emit_ones(w, index[:n], 0, n, width, out)


@emit_difference.implements(ArcRows)
def _(rows, r, w, width, a, b):
    index, total = np.empty(MOST, np.int64), 0.0
    for k in range(arc_features(rows, r, index)):
        total += w[index[k] * width + a] - w[index[k] * width + b]
    return total


@add_label.implements(ArcRows)
def _(rows, r, width, label, c, into):
    index = np.empty(MOST, np.int64)
    for k in range(arc_features(rows, r, index)):
        row(into, index[k], width)[label] += c


@add_labels.implements(ArcRows)
def _(rows, r, width, a, b, c, into):
    index = np.empty(MOST, np.int64)
    for k in range(arc_features(rows, r, index)):
        out = row(into, index[k], width)
        out[a] += c
        out[b] -= c


@add_row.implements(ArcRows)
def _(rows, r, width, p, c, into):
    index = np.empty(MOST, np.int64)
    for k in range(arc_features(rows, r, index)):
        out = row(into, index[k], width)
        for j in range(width):
            out[j] += c * p[j]


@row_norm.implements(ArcRows)
def _(rows, r):
    index, total = np.empty(MOST, np.int64), 0.0
    n = arc_features(rows, r, index)
    for k in range(n):
        for j in range(n):  # two that fall together count as one of twice the size
            total += index[k] == index[j]
    return total
