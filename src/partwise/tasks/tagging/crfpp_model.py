"""Models that CRF++ has written as text (``crf_learn -t``), read into a tagger.

The file, part by part, an empty line after each: a header (``version``, ``cost-factor``, ``maxid``, ``xsize``); the labels; the
templates; the features, ``number name`` each; the weights, one a line. A feature of a template that begins with U has a weight
for each label, from its number on; one that begins with B, one for each label (column) after each other (row), whether it looks
at the text (``B01:%x[0,0]``) or not.

The cost factor of the header is not used: CRF++'s own tagger takes one from its command line alone (``crf_test -c``), 1 if it
says nothing.

Templates are written out as CRF++ does: ``%x[row,column]`` is a cell, ``_B-1`` or ``_B+1`` where there is none.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from partwise.files.text_source import read_text
from partwise.tasks.common.model_file import ModelFileError
from partwise.tasks.tagging.template_tagger import Sparse, TemplateTagger, Written, check_room, labeler_of

CELL = re.compile(r"%x\[\s*([+-]?\d+)\s*,\s*(\d+)\s*\]")
HEADER = ("version", "cost-factor", "maxid", "xsize")


def _writer(templates: list[str]) -> Written:
    """Writes out the features of a token, as CRF++ does."""
    split = [[_cell_of(part) for part in re.split(r"(%x\[[^]]*\])", one)] for one in templates]

    def written(sentence: Sequence[Sequence[str]], t: int) -> list[str]:
        return [
            "".join(part if isinstance(part, str) else _cell(sentence, t + int(part[0]), int(part[1])) for part in parts)
            for parts in split
        ]

    return written


def _cell_of(part: str) -> Any:
    """Row and column, if it is a cell."""
    found = CELL.fullmatch(part)
    return part if found is None else (found[1], found[2])


def _cell(sentence: Sequence[Sequence[str]], row: int, column: int) -> str:
    if row < 0:
        return f"_B{row}"
    return f"_B+{row - len(sentence) + 1}" if row >= len(sentence) else sentence[row][column]


def read_crfpp_model(source: Any, encoding: str = "utf-8") -> TemplateTagger:
    """A tagger with the weights of a text model of CRF++.

    Parameters
    ----------
    source : path or bytes
        What ``crf_learn -t`` has written beside the binary model, gzipped or not.
    encoding : str
        Of the text.
    """
    text, name = read_text(source, encoding)
    try:
        return _tagger(text)
    except (ValueError, IndexError) as error:
        raise ModelFileError(f"{os.fspath(name)} is not a text model of CRF++, or damaged: {error}.") from None


def _tagger(text: str) -> TemplateTagger:
    parts: list[list[str]] = [[]]
    for line in text.splitlines():
        if line.strip():
            parts[-1].append(line)
        else:
            parts.append([])
    parts = [part for part in parts if part]
    if len(parts) != 5:
        raise ValueError(f"it has {len(parts)} parts, not 5 (header, labels, templates, features, weights)")
    head, labels, templates, features, values = parts
    header = dict(line.split(": ", 1) for line in head)
    if any(key not in header for key in HEADER):
        raise ValueError(f"its header lacks one of {', '.join(HEADER)}")
    size = len(labels)
    weights = np.array(values, float)
    if len(weights) != int(header["maxid"]) or not np.isfinite(weights).all():
        raise ValueError(f"expected {header['maxid']} finite weights, got {len(weights)}")
    numbered = [(int(number), rest) for number, rest in (line.split(" ", 1) for line in features)]
    check_room(size, sum(feature.startswith("U") for _, feature in numbered))
    moves = np.zeros((size, size))
    single: dict[str, np.ndarray] = {}
    pairs: dict[str, Sparse] = {}
    reached = 0
    for first, feature in sorted(numbered):
        n = size if feature.startswith("U") else size * size
        if first < reached or first + n > len(weights) or feature in single or feature in pairs:
            raise ValueError(f"the feature {feature!r} has no weights of its own")
        reached = first + n
        own = weights[first : first + n]
        if feature.startswith("U"):
            single[feature] = own
        elif feature == "B":
            moves += own.reshape(size, size)
        elif feature.startswith("B"):
            codes = np.flatnonzero(own)
            pairs[feature] = codes, own[codes]
        else:
            raise ValueError(f"the feature {feature!r} is of no template of CRF++")
    for one in templates:
        if not one.startswith(("U", "B")) or "%" in CELL.sub("", one):
            raise ValueError(f"the template {one!r} is not one of CRF++")
    used = [one for one in templates if one != "B"]
    columns = [int(m[2]) + 1 for one in used for m in CELL.finditer(one)]
    if max(columns, default=0) > int(header["xsize"]):
        raise ValueError(f"its templates look at {max(columns)} columns, its header has {header['xsize']}")
    return TemplateTagger(labeler_of(labels, single, moves, pairs), used, max(columns, default=1), _writer(used))
