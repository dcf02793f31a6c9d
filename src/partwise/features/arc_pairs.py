"""Features of two arcs that meet: of consecutive siblings, and of grandparents. Hashed on the way, as those of `arc_rows`.

A template names cells of the head (``h``), of the word (``m``) and of a third one: the sibling ``s``, which is the word's nearest
neighbour among the words of the same head on the same side, towards the head; or the grandparent ``g``, the head of the head::

    h.upos|s.upos|m.upos       s.form|m.upos          g.upos|h.upos|m.upos       g.lemma|m.lemma

Every feature is taken together with the directions of the arcs, and that of siblings with how far they are apart. The first word
of a side has no sibling: its cells have a value of their own.

References
----------
R. McDonald, F. Pereira (2006). Online learning of approximate dependency parsing algorithms. EACL.
X. Carreras (2007). Experiments with a higher-order projective dependency parser. EMNLP-CoNLL.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from partwise.engine.accumulator import row
from partwise.engine.compilation import helper
from partwise.features.arc_rows import MARGIN, ArcRows, hash_text, mix, stretch

SIBLING, GRANDPARENT = 0, 1
MOST_PAIRS = 64  # templates of one kind

SECOND_ORDER = (
    "h.upos|s.upos|m.upos", "s.upos|m.upos", "s.form|m.form", "s.form|m.upos", "s.upos|m.form", "h.form|s.upos|m.upos",
    "h.upos|s.upos|m.form", "h.upos|s.form|m.upos", "s.lemma|m.lemma", "h.xpos|s.xpos|m.xpos", "h.lemma|s.upos|m.upos",
    "g.upos|h.upos|m.upos", "g.upos|m.upos", "g.form|m.form", "g.form|m.upos", "g.upos|m.form", "g.form|h.upos|m.upos",
    "g.upos|h.form|m.upos", "g.upos|h.upos|m.form", "g.lemma|m.lemma", "g.xpos|h.xpos|m.xpos", "g.lemma|h.upos|m.upos",
)  # fmt: skip


class PairRows(NamedTuple):
    """What the words of all sentences look like, and templates, compiled."""

    cells: np.ndarray  #: (columns, places), as in `ArcRows`
    root: np.ndarray  #: (N,) place of the root of each sentence
    side: np.ndarray  #: (atoms,) int32: 0 sibling or grandparent, 1 head, 2 word
    column: np.ndarray
    offset: np.ndarray
    seed: np.ndarray  #: (templates,) uint64, those of siblings first
    ptr: np.ndarray
    atom: np.ndarray
    siblings: int  #: number of their templates
    none: np.uint64  #: cell of a sibling that is not there
    bits: int


def pair_rows(arcs: ArcRows, lengths: np.ndarray, names: Sequence[str], templates: Sequence[str] = SECOND_ORDER) -> PairRows:
    """Second-order features of the sentences of `arcs`; templates that name columns which are not there are left out."""
    width = lengths + 2 * MARGIN + 1
    root = (np.cumsum(width) - width + MARGIN).astype(np.int64)
    none = np.uint64(hash_text("none"))
    return PairRows._make((arcs.cells, root, *compile_pair_templates(templates, names), none, arcs.bits))


def compile_pair_templates(templates: Sequence[str], names: Sequence[str]) -> tuple:
    """side, column, offset of the distinct atoms; seed, ptr, atom of the templates, and how many of them are of siblings."""
    atoms: dict[tuple[int, int, int], int] = {}
    programs: tuple[list, list] = ([], [])
    for text in templates:
        own, kinds, known = [], set(), True
        for part in text.split("|"):
            match = re.fullmatch(r"([sghm])\.(\w+)(?:\[([-+]?\d+)\])?", part.strip())
            if match is None or abs(int(match[3] or 0)) > MARGIN:
                raise ValueError(
                    f"template {text!r}: cannot read {part!r}. Expected s.column, g.column, h.column or m.column, with an offset "
                    f"of at most {MARGIN} words, as m.upos[-1]."
                )
            kinds |= {match[1]} & {"s", "g"}
            known = known and match[2] in names
            if known:
                key = ({"s": 0, "g": 0, "h": 1, "m": 2}[match[1]], list(names).index(match[2]), int(match[3] or 0))
                own.append(atoms.setdefault(key, len(atoms)))
        if len(kinds) != 1:
            raise ValueError(f"template {text!r}: it must name a sibling (s.column) or a grandparent (g.column), and not both.")
        if known:
            programs[GRANDPARENT if "g" in kinds else SIBLING].append((hash_text(text), own))
    most = max(map(len, programs))
    if most > MOST_PAIRS:
        raise ValueError(
            f"At most {MOST_PAIRS} templates of siblings and as many of grandparents can be used. Got {most} of one kind instead."
        )
    table = np.array(list(atoms) or np.zeros((0, 3)), np.int32).reshape(-1, 3)
    every = programs[0] + programs[1]
    return (
        *(np.ascontiguousarray(table[:, k]) for k in range(3)),
        np.array([seed for seed, _ in every], np.uint64),
        np.concatenate([[0], np.cumsum([len(own) for _, own in every])]).astype(np.int32),
        np.array([a for _, own in every for a in own], np.int32),
        len(programs[0]),
    )


@helper
def pair_features(rows, i, kind, a, h, m, index):
    """Numbers of the features of word m below head h in sentence i, with sibling or grandparent a (-1: none); how many."""
    first, last = (0, rows.siblings) if kind == SIBLING else (rows.siblings, len(rows.seed))
    last = min(last, first + len(index))
    root, shift, n = rows.root[i], np.uint64(64 - rows.bits), 0
    if kind == SIBLING:
        how = stretch(m - a if a >= 0 else 0) * np.uint64(4) + np.uint64(m > h)
    else:
        how = np.uint64(2 * (h > a) + (m > h)) + np.uint64(64)
    for t in range(first, last):
        x = rows.seed[t]
        for k in range(rows.ptr[t], rows.ptr[t + 1]):
            atom = rows.atom[k]
            side = rows.side[atom]
            if side == 0 and a < 0:
                x = mix(x, rows.none)
            else:
                place = root + (a if side == 0 else h if side == 1 else m) + rows.offset[atom]
                x = mix(x, rows.cells[rows.column[atom], place])
        index[n] = mix(x, how) >> shift
        n += 1
    return n


@helper
def pair_score(rows, i, kind, a, h, m, w, index):
    """Sum of the weights of these features."""
    total = 0.0
    for k in range(pair_features(rows, i, kind, a, h, m, index)):
        total += w[index[k]]
    return total


@helper
def add_pair(rows, i, kind, a, h, m, c, into, index):
    """into += c times these features."""
    for k in range(pair_features(rows, i, kind, a, h, m, index)):
        row(into, index[k], 1)[0] += c
