"""Attributes: what people write down about a token, and the feature rows it becomes.

A token is a list of strings, ``["word=the", "cap"]``, or a dict, in the way of CRFsuite:

=============================  ===========================================
``{"word": "the"}``            the attribute ``word:the`` with value 1
``{"len": 3.0}``               the attribute ``len`` with value 3.0
``{"cap": True}``              the attribute ``cap`` with value 1 (False: 0)
``{"shape": ["Xx", "x"]}``     the attributes ``shape:Xx`` and ``shape:x``
``{"emb": {"a": 0.5}}``        the attribute ``emb:a`` with value 0.5
``{"emb": [0.5, 0.1]}``        ``emb:0`` with value 0.5, ``emb:1`` with 0.1
=============================  ===========================================

Vectors may be lists of numbers or one-dimensional arrays. Bytes are read as UTF-8, wherever a string may stand.
An attribute given twice counts twice. Attributes are numbered in the order they are first met; those not met in training are
ignored later. Building strings in Python costs more than training on them, so the loops here stay inside C (``map``, ``chain``)
where they can.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain, repeat
from typing import Any

import numpy as np

from partwise.engine.compilation import compiled_loop
from partwise.features.rows import Binary, Sparse

LISTS = (list, tuple, set, frozenset, type({}.keys()))
SIMPLE = (str, bool, int, float, np.bool_, np.integer, np.floating)
Place = Any  #: a function from the number of a token to words, "sequence 17, token 3"


def encode(
    tokens: Sequence[Any],
    vocabulary: dict[str, int],
    *,
    grow: bool,
    dtype: Any = np.float64,
    place: Place = "token {}".format,
) -> Binary | Sparse:
    """Feature rows of `tokens`, one each.

    Parameters
    ----------
    tokens : sequence of lists of strings or dicts
        See the module's docstring.
    vocabulary : dict
        From attribute to column.
    grow : bool
        Whether attributes that are not in the vocabulary enter it (training) or are ignored (prediction). If an error is
        raised, `vocabulary` is as before.
    dtype
        Of the values.
    place : function, optional
        Says in words where a token is; for error messages.

    Returns
    -------
    Binary or Sparse
        `Binary` where all values are one. Features are distinct within a row.

    Notes
    -----
    O(attributes) time; 12 bytes per attribute beside the result.
    """
    kinds = set(map(type, tokens))
    if any(issubclass(kind, str | bytes) or not issubclass(kind, (*LISTS, Mapping)) for kind in kinds):
        _refuse_token(tokens, place)
    numbers = _growing(vocabulary) if grow else vocabulary
    if any(issubclass(kind, Mapping) for kind in kinds):
        counts, index, value = _encode_dicts(tokens, numbers, grow, dtype, place)
    else:
        try:
            counts, index = _encode_lists(tokens, numbers, grow, place)
        except HasBytes:
            tokens = [[name.decode() if isinstance(name, bytes) else name for name in token] for token in tokens]
            numbers = _growing(vocabulary) if grow else vocabulary
            counts, index = _encode_lists(tokens, numbers, grow, place)
        value = np.ones(len(index), dtype)
    if not np.isfinite(value).all():
        k = int(np.flatnonzero(~np.isfinite(value))[0])
        names = list(numbers)
        row = int(np.searchsorted(np.cumsum(counts), k, side="right"))
        what = f" {names[index[k]]!r}" if index[k] >= 0 else ""
        raise ValueError(f"Input X contains NaN or infinity: attribute{what} of {place(row)} is {value[k]}.")
    ptr = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=ptr[1:])
    n_features = len(numbers)
    if n_features > np.iinfo(np.int32).max:
        raise ValueError(f"There are {n_features} distinct attributes; at most {np.iinfo(np.int32).max} can be numbered.")
    kept = compact(ptr, index, value, np.empty(n_features, np.int64))
    if kept < len(index):
        index, value = index[:kept].copy(), value[:kept].copy()
    if grow:
        vocabulary.update(numbers)
    return Binary(ptr, index, n_features) if (value == 1).all() else Sparse(ptr, index, value, n_features)


def items(tokens: Sequence[Any], place: Place = "token {}".format) -> list[dict[str, float]]:
    """For each token the names of its attributes and their values, zeros among them."""
    _refuse_token(tokens, place)
    numbers = _growing({})
    counts, index, value = _encode_nested(tokens, numbers.__getitem__, np.float64, place)
    names, found = list(numbers), []
    for a, b in zip((np.cumsum(counts) - counts).tolist(), np.cumsum(counts).tolist(), strict=True):
        own: dict[str, float] = {}
        for k, x in zip(index[a:b].tolist(), value[a:b].tolist(), strict=True):
            own[names[k]] = own.get(names[k], 0.0) + x
        found.append(own)
    return found


class HasBytes(TypeError):
    """Some attributes are bytes."""


def _growing(vocabulary):
    """A copy that numbers what it does not know."""
    numbers = defaultdict(None, vocabulary)
    numbers.default_factory = numbers.__len__
    return numbers


@compiled_loop
def compact(ptr, index, value, last):
    """In place: leave out unknown (negative) features and zeros, add up repeated ones; returns the number of entries left.

    `last` is scratch memory, one number per feature, and need not be cleared: what it says is believed only where `index` agrees.
    """
    kept = 0
    start = ptr[0]
    for r in range(ptr.size - 1):
        first, stop = kept, ptr[r + 1]
        for k in range(start, stop):
            f = index[k]
            if f < 0 or value[k] == 0.0:
                continue
            if first <= last[f] < kept and index[last[f]] == f:
                value[last[f]] += value[k]
            else:
                last[f] = kept
                index[kept] = f
                value[kept] = value[k]
                kept += 1
        start = stop
        ptr[r + 1] = kept
    return kept


def _encode_lists(tokens, numbers, grow, place):
    """Lists of strings: all loops run in C."""
    counts = np.fromiter(map(len, tokens), np.int64, len(tokens))
    attributes = chain.from_iterable(tokens)
    known = len(numbers)
    try:
        if grow:
            index = np.fromiter(map(numbers.__getitem__, attributes), np.int32, int(counts.sum()))
            strange = any(not isinstance(name, str) for name in list(numbers)[known:])
        else:
            index = np.fromiter(map(numbers.get, attributes, repeat(-1)), np.int32, int(counts.sum()))
            strange = any(not issubclass(kind, str) for kind in set(map(type, chain.from_iterable(tokens))))
    except TypeError:  # not hashable
        strange = True
    if strange:
        for r, token in enumerate(tokens):
            for name in token:
                if isinstance(name, bytes):
                    raise HasBytes
                if not isinstance(name, str):
                    raise TypeError(
                        f"The attributes of a token given as a list must be strings. Got {name!r} ({type(name).__name__}) in "
                        f"{place(r)}. For numbers use a dict, {{'name': 0.5}}, or one matrix per sequence."
                    )
    return counts, index


def _encode_dicts(tokens, numbers, grow, dtype, place):
    """Flat dicts of strings and numbers, the common case; remembering pairs is slower than building their strings."""
    flat = all(isinstance(token, Mapping) for token in tokens)
    if flat:
        values = list(chain.from_iterable([token.values() for token in tokens]))
        kinds = set(map(type, values))
        flat = all(issubclass(kind, SIMPLE) for kind in kinds)
        flat = flat and all(issubclass(kind, str) for kind in set(map(type, chain.from_iterable(tokens))))
    if not flat:
        number = numbers.__getitem__ if grow else lambda name: numbers.get(name, -1)
        return _encode_nested(tokens, number, dtype, place)
    if any(issubclass(kind, str) for kind in kinds):
        names = [f"{name}:{item}" if isinstance(item, str) else name for token in tokens for name, item in token.items()]
        value = np.array([1.0 if isinstance(item, str) else item for item in values], dtype)
    else:
        names, value = list(chain.from_iterable(tokens)), np.fromiter(values, dtype, len(values))
    counts = np.fromiter(map(len, tokens), np.int64, len(tokens))
    columns = map(numbers.__getitem__, names) if grow else map(numbers.get, names, repeat(-1))
    return counts, np.fromiter(columns, np.int32, len(values)), value


def _encode_nested(tokens, number, dtype, place):
    """Anything that is allowed, one attribute at a time."""
    counts, index, value = np.zeros(len(tokens), np.int64), [], []
    vectors: dict[tuple[str, int], list[int]] = {}  # the columns of a vector: its names are made once

    def put(name, item, row):
        name, item = (one.decode() if isinstance(one, bytes) else one for one in (name, item))
        if not isinstance(name, str):
            raise TypeError(f"The names of attributes must be strings. Got {name!r} ({type(name).__name__}) in {place(row)}.")
        if isinstance(item, str):
            index.append(number(f"{name}:{item}"))
            value.append(1.0)
        elif isinstance(item, SIMPLE):
            index.append(number(name))
            value.append(float(item))
        elif isinstance(item, Mapping):
            for key, inner in item.items():
                put(f"{name}:{key}", inner, row)
        elif isinstance(item, LISTS) and all(isinstance(one, str | bytes) for one in item):
            for one in item:
                put(f"{name}:{one.decode() if isinstance(one, bytes) else one}", True, row)
        elif _is_vector(item):
            if (name, len(item)) not in vectors:
                vectors[name, len(item)] = [number(f"{name}:{k}") for k in range(len(item))]
            index.extend(vectors[name, len(item)])
            value.extend(item.tolist() if isinstance(item, np.ndarray) else map(float, item))
        else:
            raise TypeError(
                f"The value of an attribute must be a string, a bool, a number, a list of strings or of numbers, or a dict "
                f"of these. "
                f"Got {item!r} ({type(item).__name__}) for {name!r} in {place(row)}."
            )

    for row, token in enumerate(tokens):
        before = len(index)
        for name, item in token.items() if isinstance(token, Mapping) else zip(token, repeat(True), strict=False):
            put(name, item, row)
        counts[row] = len(index) - before
    return counts, np.array(index, np.int32), np.array(value, dtype)


def put_before(dense: np.ndarray, rows: Binary | Sparse) -> Sparse:
    """Rows that begin with those of a matrix: its columns are the first of theirs, what they say of them already is added."""
    n, width = dense.shape
    ptr = rows.ptr + width * np.arange(n + 1)
    index, value = np.empty(int(ptr[-1]), np.int32), np.ones(int(ptr[-1]), dense.dtype)
    there = np.zeros(len(index), bool)
    places = ptr[:-1, None] + np.arange(width)
    there[places] = True
    index[places], value[places] = np.arange(width, dtype=np.int32), dense
    index[~there] = rows.index
    if isinstance(rows, Sparse):
        value[~there] = rows.value
    kept = compact(ptr, index, value, np.empty(rows.n_features, np.int64))
    return Sparse(ptr, index[:kept].copy(), value[:kept].copy(), rows.n_features)


def _is_vector(item):
    if isinstance(item, np.ndarray):
        return item.ndim == 1 and item.dtype.kind in "biuf"
    return isinstance(item, list | tuple) and all(isinstance(one, SIMPLE) and not isinstance(one, str) for one in item)


def _refuse_token(tokens, place):
    for r, token in enumerate(tokens):
        if isinstance(token, str | bytes):
            raise TypeError(
                f"A token must be a list of strings or a dict. Got the bare string {token!r} as {place(r)}; write [{token!r}] if "
                "that is its only attribute."
            )
        if not isinstance(token, (*LISTS, Mapping)):
            raise TypeError(f"A token must be a list of strings or a dict. Got {type(token).__name__} as {place(r)}.")
