"""Models that CRF++ has written as text (``crf_learn -t``), read into a tagger.

The file, part by part, an empty line after each: a header (``version``, ``cost-factor``, ``maxid``, ``xsize``); the labels; the
templates; the features, ``number name`` each; the weights, one a line. A feature of a template that begins with U has a weight
for each label, from its number on; the feature ``B`` one for each label (column) after each other (row).

Templates are written out as CRF++ does: ``%x[row,column]`` is a cell, ``_B-1`` or ``_B+1`` where there is none. Features of pairs
of labels that look at the text as well (``B01:%x[0,0]``) have no counterpart here, and are refused.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from partwise.files.text_source import read_text
from partwise.tasks.common.model_file import ModelFileError
from partwise.text.given_encoders import AttributeEncoder

CELL = re.compile(r"%x\[\s*([+-]?\d+)\s*,\s*(\d+)\s*\]")
HEADER = ("version", "cost-factor", "maxid", "xsize")


class TemplateTagger:
    """Labels sentences of columns with a model that was read.

    Attributes
    ----------
    labeler : SequenceLabeler
        Of attributes: the features that `attributes` writes out.
    templates : list of str
    n_columns : int
        Cells that a token needs, at least.
    """

    def __init__(self, labeler: Any, templates: list[str], n_columns: int):
        self.labeler, self.templates, self.n_columns = labeler, templates, n_columns
        self._parts = [[_cell_of(part) for part in re.split(r"(%x\[[^]]*\])", one)] for one in templates]

    def attributes(self, sentence: Sequence[Sequence[str]]) -> list[list[str]]:
        """The features of each token of a sentence, a list of rows of cells."""
        for t, row in enumerate(sentence):
            if len(row) < self.n_columns:
                raise ValueError(f"Token {t}: the model looks at {self.n_columns} columns. Got {len(row)}.")
        return [[self._written(parts, sentence, t) for parts in self._parts] for t in range(len(sentence))]

    def _written(self, parts: list[Any], sentence: Sequence[Sequence[str]], t: int) -> str:
        return "".join(part if isinstance(part, str) else _cell(sentence, t + int(part[0]), int(part[1])) for part in parts)

    def tag(self, sentence: Sequence[Sequence[str]]) -> list[str]:
        """The best labels of one sentence."""
        return self.labeler.predict([self.attributes(sentence)])[0]

    def predict(self, sentences: Sequence[Any]) -> list[list[str]]:
        """The best labels of each sentence."""
        return self.labeler.predict([self.attributes(sentence) for sentence in sentences])

    def predict_marginals(self, sentences: Sequence[Any]) -> list[np.ndarray]:
        """Probabilities of labels, an array (tokens, labels) for each sentence; labels as in ``labeler.classes_``."""
        return self.labeler.predict_marginals([self.attributes(sentence) for sentence in sentences])


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
    from partwise import SequenceLabeler

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
    factor, size = float(header["cost-factor"]), len(labels)
    weights = np.array(values, float)
    if len(weights) != int(header["maxid"]) or not np.isfinite(weights).all():
        raise ValueError(f"expected {header['maxid']} finite weights, got {len(weights)}")
    numbered = [(int(number), rest) for number, rest in (line.split(" ", 1) for line in features)]
    order = sorted(range(size), key=lambda k: labels[k])
    moves = np.zeros((size, size))
    vocabulary: dict[str, int] = {}
    rows: list[np.ndarray] = []
    for first, feature in numbered:
        n = size if feature.startswith("U") else size * size
        if first < 0 or first + n > len(weights) or feature in vocabulary:
            raise ValueError(f"the feature {feature!r} has no weights of its own")
        if feature.startswith("U"):
            vocabulary[feature] = len(rows)
            rows.append(weights[first : first + n])
        elif feature == "B":
            moves += weights[first : first + n].reshape(size, size)
        else:
            raise ValueError(f"the feature {feature!r} is of pairs of labels and of the text, which is not supported here")
    table = np.concatenate([np.array(rows).reshape(len(rows), size), moves[order], np.zeros((2, size))])
    labeler = SequenceLabeler(loss="crf", use_start=False, use_stop=False, dtype="float64")
    labeler.encoder_ = AttributeEncoder(1, np.float64)
    labeler.encoder_.vocabulary = vocabulary
    labeler.classes_ = np.array([labels[k] for k in order])
    labeler.weights_ = np.ascontiguousarray(factor * table[:, order]).ravel()
    labeler.label_column_, labeler.temperature_, labeler.solver_, labeler.C_ = None, 1.0, "lbfgs", 1.0
    used = [one for one in templates if one.startswith("U")]
    for one in templates:
        if not one.startswith(("U", "B")) or "%" in CELL.sub("", one):
            raise ValueError(f"the template {one!r} is not one of CRF++")
    columns = [int(m[2]) + 1 for one in used for m in CELL.finditer(one)]
    if max(columns, default=0) > int(header["xsize"]):
        raise ValueError(f"its templates look at {max(columns)} columns, its header has {header['xsize']}")
    return TemplateTagger(labeler, used, max(columns, default=1))
