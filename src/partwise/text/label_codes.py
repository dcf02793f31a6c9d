"""Label sequences as numbers, end to end: what functions that end in ``_coded`` take."""

from __future__ import annotations

from collections.abc import Hashable
from itertools import chain
from typing import Any, NamedTuple

import numpy as np


class Coded(NamedTuple):
    """Label sequences, numbered and end to end."""

    codes: np.ndarray  #: (tokens,) int32
    starts: np.ndarray  #: (sequences + 1,) int64: first token of each sequence, and the end


def code_sequences(sequences: Any, number: dict[Any, int], name: str = "y") -> Coded:
    """Number the labels of `sequences`: those in `number` as they are there; new ones are added to it."""
    if isinstance(sequences, str | bytes) or not hasattr(sequences, "__iter__"):
        raise TypeError(f"{name} must be a list of label sequences. Got a {type(sequences).__name__}.")
    lists = [s.tolist() if isinstance(s, np.ndarray) else s for s in sequences]
    for i, labels in enumerate(lists):
        if isinstance(labels, str | bytes) or not hasattr(labels, "__len__"):
            raise TypeError(f"{name} must be a list of label sequences. Sequence {i} is {labels!r} ({type(labels).__name__}).")
    flat = list(chain.from_iterable(lists))
    try:
        for label in dict.fromkeys(flat):
            number.setdefault(label, len(number))
    except TypeError:
        for i, labels in enumerate(lists):
            for t, label in enumerate(labels):
                if not isinstance(label, Hashable):
                    message = f"Labels must be hashable. Sequence {i}, token {t} of {name} is {label!r} ({type(label).__name__})."
                    raise TypeError(message) from None
        raise
    codes = np.fromiter(map(number.__getitem__, flat), np.int32, len(flat))
    starts = np.zeros(len(lists) + 1, np.int64)
    np.cumsum([len(labels) for labels in lists], out=starts[1:])
    return Coded(codes, starts)


def check_coded(codes: Any, starts: Any, n_labels: int, name: str = "codes") -> Coded:
    """The same as arrays, after checking that they fit together."""
    codes, starts = np.asarray(codes), np.asarray(starts)
    for what, array in ((name, codes), ("starts", starts)):
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            raise ValueError(f"{what} must be a 1-D array of integers. Got shape {array.shape} and dtype {array.dtype}.")
    if not len(starts) or starts[0] != 0 or starts[-1] != len(codes) or (len(starts) > 1 and np.diff(starts).min() < 0):
        raise ValueError(
            f"starts must begin with 0, never fall, and end with the number of tokens, {len(codes)}. Got {shown(starts)}."
        )
    if codes.size:
        wrong = (codes < 0) | (codes >= n_labels)
        if wrong.any():
            t = int(np.argmax(wrong))
            raise ValueError(f"{place(starts, t)}: the code {codes[t]} of {name} is not one of the {n_labels} labels.")
    return Coded(codes.astype(np.intp, copy=False), starts.astype(np.int64, copy=False))


def shown(array: np.ndarray) -> str:
    """A long array, for a message."""
    return np.array2string(array, threshold=8, edgeitems=3)


def place(starts: np.ndarray, token: int) -> str:
    """Where a token is, in words."""
    sequence = int(np.searchsorted(starts, token, side="right")) - 1
    return f"Sequence {sequence}, token {token - int(starts[sequence])}"
