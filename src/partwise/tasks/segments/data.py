"""Sentences whose tokens are to be cut into labelled segments, and what their labels are called.

Labels come one per token, in any chunking scheme (`partwise.text.chunk_schemes`), or as segments ``(label, begin, end)``. A model
thinks in codes of its own (`partwise.structures.semi_markov`): `Coding` goes from one to the other.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from partwise.features.given_labels import GivenLabels, number_labels
from partwise.text.chunk_schemes import FORM, Coded, convert_coded, label_table, read_boundaries, recognise_coded, split_label
from partwise.text.columns import Columns, code_tokens

OUTSIDE = "O"
Segment = tuple[str, int, int]  #: label, first token, one past the last


@dataclass(frozen=True)
class SegmentedText:
    r"""Sentences, and their labels where these are known.

    Attributes
    ----------
    columns : Columns
        The tokens.
    labels : GivenLabels, optional
        Their chunk labels.

    Examples
    --------
    >>> text = read_segments(b"Ann B-PER\nLee I-PER\nleft O\n")
    >>> len(text), text.words(0)
    (1, ['Ann', 'Lee', 'left'])
    """

    columns: Columns
    labels: GivenLabels | None = None

    def __len__(self) -> int:
        return self.columns.n_sentences

    @property
    def name(self) -> str:
        return self.columns.name

    @property
    def n_tokens(self) -> int:
        return self.columns.n_tokens

    @property
    def label_column(self) -> int | None:
        """The column that the labels came from."""
        return None if self.labels is None else self.labels.column

    def take(self, which: Any) -> SegmentedText:
        """The sentences numbered `which`."""
        some = np.asarray(list(which), np.int64)
        if self.labels is None:
            return SegmentedText(self.columns.take(some))
        # the labels travel as one more column
        codes = np.vstack([self.columns.codes, self.labels.codes[None]])
        whole = dataclasses.replace(self.columns, codes=codes, cells=[*self.columns.cells, []]).take(some)
        taken = dataclasses.replace(whole, codes=np.ascontiguousarray(whole.codes[:-1]), cells=self.columns.cells)
        return SegmentedText(taken, self.labels._replace(codes=whole.codes[-1]))

    def words(self, i: int) -> list[str]:
        """The first cells of the tokens of a sentence; the second ones, if the first are the labels."""
        a, b = self.columns.starts[i : i + 2].tolist()
        form = int(self.label_column == 0 and self.columns.n_columns > 1)
        return [self.columns.cells[form][k] for k in self.columns.codes[form, a:b].tolist()]

    def truth(self) -> GivenLabels:
        """The labels, if they are known."""
        if self.labels is None:
            raise ValueError("These sentences come without labels: there is nothing to learn from, or to compare with.")
        return self.labels


def read_segmented(X: Any, y: Any = None) -> SegmentedText:
    """From `SegmentedText`, `Columns`, or a list of sentences, each a list of tokens (tuples of strings, or strings).

    `y` is a list with an entry for each sentence: labels of its tokens, or segments ``(label, begin, end)``; of `Columns` it may
    be the number of a column.
    """
    if isinstance(X, SegmentedText):
        return X if y is None else read_segmented(X.columns, y)
    if isinstance(X, str | bytes):
        raise TypeError("X must be a list of sentences, each a list of tokens. Got a string.")
    if isinstance(X, Columns):
        columns = X
        if isinstance(y, int) and not isinstance(y, bool):
            return SegmentedText(columns, checked(columns.labels(y), columns))
    else:
        sentences = [[(token,) if isinstance(token, str) else token for token in _tokens(one, i)] for i, one in enumerate(X)]
        columns = code_tokens(sentences)
    if y is None:
        return SegmentedText(columns)
    if isinstance(y, str | bytes) or not hasattr(y, "__len__") or len(y) != columns.n_sentences:
        got = f"{len(y)} entries" if hasattr(y, "__len__") else f"a {type(y).__name__}"
        raise ValueError(f"y must have an entry for each of the {columns.n_sentences} sentences. Got {got}.")
    lengths = np.diff(columns.starts).tolist()
    flat = chain.from_iterable(_labels(own, n, i) for i, (own, n) in enumerate(zip(y, lengths, strict=True)))
    return SegmentedText(columns, checked(number_labels(list(flat), columns.place), columns))


def _tokens(sentence: Any, i: int) -> Any:
    if isinstance(sentence, str | bytes) or not isinstance(sentence, Sequence):
        raise TypeError(f"A sentence must be a list of tokens. Got {type(sentence).__name__} as sequence {i}.")
    return sentence


def _labels(given: Any, n: int, i: int) -> Sequence[Any]:
    """Labels of one sentence, in IOB2 where they are given as segments."""
    given = given.tolist() if hasattr(given, "tolist") else list(given)
    if not any(isinstance(one, tuple) for one in given):
        if len(given) == 0 and n > 0:  # no segments at all
            return [OUTSIDE] * n
        if len(given) != n:
            raise ValueError(f"Sequence {i} has {n} tokens, but {len(given)} labels.")
        return given
    labels, end = [OUTSIDE] * n, 0
    for one in sorted(given, key=lambda segment: segment[1:]):
        if not (isinstance(one, tuple) and len(one) == 3 and isinstance(one[0], str)):
            raise ValueError(f"Sequence {i}: a segment must be (label, begin, end). Got {one!r}.")
        label, a, b = one
        if not end <= a < b <= n:
            raise ValueError(f"Sequence {i}: the segment {one!r} overlaps another, is empty, or not within {n} tokens.")
        labels[a:b] = [f"B-{label}", *[f"I-{label}"] * (b - a - 1)]
        end = b
    return labels


def checked(labels: GivenLabels, columns: Columns) -> GivenLabels:
    """The labels, after a look whether they are chunk labels."""
    for k, label in enumerate(labels.distinct):
        for one in label if isinstance(label, frozenset) else () if label is None else (label,):
            if split_label(one) is None:
                raise ValueError(
                    f"{columns.place(labels.where(k))}: the label {one!r} is not of the form {FORM}. Segments are written as "
                    "chunk labels; to label tokens one by one, train a tagger."
                )
    return labels


def types_of(labels: GivenLabels) -> list[str]:
    """The labels of segments that chunk labels name, sorted."""
    found = set()
    for label in labels.distinct:
        for one in label if isinstance(label, frozenset) else () if label is None else (label,):
            prefix, kind = split_label(one) or (OUTSIDE, "")
            if prefix != OUTSIDE:
                found.add(kind)
    if OUTSIDE in found:
        raise ValueError(f"A segment cannot be labelled {OUTSIDE!r}, which stands for what is outside of all segments.")
    return sorted(found)


@dataclass(frozen=True)
class Coding:
    """Labels of tokens as codes of segments, and back; the last kind is what is outside of segments."""

    kinds: list[str]

    @property
    def names(self) -> list[str]:
        """The label of each code, in IOB2."""
        own = [(kind, f"-{kind}" if kind else "") for kind in self.kinds]
        inside, begin = ([OUTSIDE if kind == OUTSIDE else p + end for kind, end in own] for p in "IB")
        return inside + begin

    def encode(self, text: SegmentedText) -> tuple[np.ndarray, np.ndarray | None]:
        """True codes, those of several or none as 2 K + a row of the sets, in the way of `segment_problem`."""
        given, columns = text.truth(), text.columns
        number = {name: k for k, name in enumerate(self.names)}  # of two that are called O the later, which begins
        if not given.is_partial:
            scheme = recognise_coded(given.codes, columns.starts, given.distinct)
            codes, distinct, _ = convert_coded(given.codes, columns.starts, given.distinct, "iob2", scheme)
            given = GivenLabels(codes, list(distinct))
        table: list[int] = []
        sets: list[list[bool]] = []
        for k, label in enumerate(given.distinct):
            own = number.keys() if label is None else label if isinstance(label, frozenset) else (label,)
            for one in own:
                if one not in number:
                    known = ", ".join(kind or "-" for kind in self.kinds if kind != OUTSIDE)
                    advice = "Partial labels are written in IOB2." if given.is_partial else "Fit again to learn others."
                    raise ValueError(f"{columns.place(given.where(k))}: {one!r} is no label of a segment of {known}. {advice}")
            if label is None or isinstance(label, frozenset):
                table.append(2 * len(self.kinds) + len(sets))
                sets.append([name in own for name in self.names])
            else:
                table.append(number[label])
        codes = np.array(table, np.int32)[given.codes] if len(table) else np.zeros(0, np.int32)
        return codes, np.array(sets, bool) if sets else None

    def write(self, codes: np.ndarray, starts: np.ndarray, scheme: str | None) -> tuple[np.ndarray, list[str]]:
        """Codes as labels in a scheme: places in a list, and the list."""
        if scheme in (None, "iob2"):
            return codes, self.names
        converted = convert_coded(codes, starts, self.names, scheme or "iob2", "iob2")
        return converted.codes, list(converted.labels)

    def segments(self, codes: np.ndarray) -> list[Segment]:
        """The segments of one sentence, without what is outside."""
        K, found = len(self.kinds), []
        begins = [*np.flatnonzero(codes >= K).tolist(), len(codes)]
        for a, b in zip(begins[:-1], begins[1:], strict=True):
            if self.kinds[int(codes[a]) - K] != OUTSIDE:
                found.append((self.kinds[int(codes[a]) - K], a, b))
        return found


def spans_of(codes: np.ndarray, starts: np.ndarray, names: Sequence[Any]) -> list[Segment]:
    """The segments that chunk labels write down, in all sentences laid end to end, in order."""
    table = label_table(names)
    read = read_boundaries(Coded(codes, starts), table)
    first, last = np.flatnonzero(read.begins), np.flatnonzero(read.ends)
    return [(table.types[k], a, b + 1) for k, a, b in zip(read.kind[first].tolist(), first.tolist(), last.tolist(), strict=True)]
