"""What python-crfsuite takes as sequences and labels, made into what `SequenceLabeler` takes; and its answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np


def as_sequences(X: Any) -> Any:
    """Sequences in lists, whatever yields them: generators of generators, say."""
    if isinstance(X, str | bytes | Mapping) or not isinstance(X, Iterable):
        return X  # to be refused with a message, where all are
    return [as_sequence(one) for one in X]


def as_sequence(sequence: Any) -> Any:
    """One of them."""
    if hasattr(sequence, "__len__") or isinstance(sequence, str | bytes) or not isinstance(sequence, Iterable):
        return sequence
    return list(sequence)


def as_labels(y: Any) -> Any:
    """Label sequences in lists; bytes are read as UTF-8, as in CRFsuite."""
    if isinstance(y, str | bytes | Mapping) or not isinstance(y, Iterable):
        return y
    return [_decoded(as_sequence(one)) for one in y]


def _decoded(labels: Any) -> Any:
    if isinstance(labels, list | tuple) and any(isinstance(label, bytes) for label in labels):
        return [label.decode() if isinstance(label, bytes) else label for label in labels]
    return labels


class AnswerArray(np.ndarray):
    """A one-dimensional array of lists, one for each sequence, that can be compared with label sequences.

    ``(crf.predict(X) == y).all()`` tells whether all labels of all sequences agree, be they equally long or not; numpy alone
    would compare tables, and refuse lists of several lengths. Compared with one sequence, each answer is compared with that.
    """

    def __new__(cls, items: Iterable[Any]) -> AnswerArray:
        items = list(items)
        array = np.empty(len(items), object)
        for k, item in enumerate(items):  # numpy left alone would make a table of lists of one length
            array[k] = item
        return array.view(cls)

    def __eq__(self, other: Any) -> Any:
        others = list(other) if isinstance(other, Iterable) and not isinstance(other, str | bytes) else [other]
        if not all(isinstance(one, list | tuple | np.ndarray) for one in others):
            others = [others] * len(self)
        if len(others) != len(self):
            return np.zeros(max(len(self), 1), bool)
        return np.array([list(a) == list(b) for a, b in zip(self.tolist(), others, strict=True)], bool)

    def __ne__(self, other: Any) -> Any:
        return ~(self == other)

    __hash__ = None  # type: ignore[assignment]
