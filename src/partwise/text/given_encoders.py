"""Encoders of features that users give themselves: attributes of tokens, and matrices.

With `TemplateEncoder` they share one interface, which is all that a model knows of where its features come from: ``kind``,
``n_features``, ``fit_transform`` (learn, from nothing), ``extend`` (learn more), ``transform``, ``feature_name``, ``to_state``.
They are given `Tokens` (see `partwise.tasks.tagging.data`), which know where a token is, for messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from partwise.features.rows import Binary, Dense, Sparse, make_rows
from partwise.files.packed_strings import pack_strings, unpack_strings
from partwise.text.attributes import LISTS, encode, put_before
from partwise.text.label_pairs import checked_pairs

ATTRIBUTES, MATRIX, COLUMNS = "attributes", "matrix", "columns"  #: kinds of tokens
DENSE = "dense"  #: the attribute that a matrix beside attributes stands for
CANNOT_COUNT = "cannot count what is still to come: min_count > 1 needs all training data at once. Use fit, or min_count=1."


class AttributeEncoder:
    """Dicts of attributes, or lists of strings (see `partwise.text.attributes`), numbered as they are first met.

    A matrix beside them, ``tokens.dense``, is as if every token had an attribute "dense" that is a vector, a row of it: the names
    ``dense:0``, ``dense:1`` and so on are the first of the vocabulary, and no strings are made of its numbers.

    Parameters
    ----------
    min_count : int
        Attributes that occur fewer times in the training data are left out.
    dtype
        Of the values.
    n_dense : int
        Columns of the matrix that has to come with the attributes.
    prefix : str, optional
        Attributes whose names begin with it are not of tokens but of label pairs: `pairs` encodes them.
    of_pairs : bool
        Whether this is the encoder of those.
    """

    kind = ATTRIBUTES

    def __init__(
        self, min_count: int = 1, dtype: Any = np.float64, n_dense: int = 0, prefix: str | None = None, *, of_pairs: bool = False
    ):
        self.min_count, self.dtype, self.n_dense, self.prefix, self.of_pairs = min_count, dtype, n_dense, prefix, of_pairs
        #: as in `TemplateEncoder`: makes the features of label pairs, and for which pairs each has weights, once known. Models
        #: that were read from other programs' files have it without a prefix
        self.pairs = AttributeEncoder(min_count, dtype, 0, prefix, of_pairs=True) if prefix is not None and not of_pairs else None
        self.pair_table: tuple[np.ndarray, np.ndarray] | None = None
        self.vocabulary: dict[str, int] = self._beginning()
        self._names: list[str] = []

    @property
    def n_features(self) -> int:
        return len(self.vocabulary)

    def _beginning(self) -> dict[str, int]:
        return {f"{DENSE}:{k}": k for k in range(self.n_dense)}

    def fit_transform(self, tokens: Any) -> Binary | Sparse:
        self.vocabulary = self._beginning()
        if self.pairs is not None:
            self.pairs.fit_transform(tokens)
            self.pair_table = None
        rows = self._encode(tokens, grow=True)
        if self.min_count == 1:
            return rows
        kept = np.bincount(rows.index, minlength=self.n_features) >= self.min_count
        kept[: self.n_dense] = True
        self.vocabulary = {name: k for k, name in enumerate(n for n, keep in zip(self.vocabulary, kept, strict=True) if keep)}
        stays = kept[rows.index]
        ptr = np.concatenate([[0], np.cumsum(stays)])[rows.ptr]
        index = (np.cumsum(kept) - 1)[rows.index[stays]].astype(np.int32)
        if isinstance(rows, Binary):
            return Binary(ptr, index, self.n_features)
        return Sparse(ptr, index, rows.value[stays], self.n_features)

    def extend(self, tokens: Any) -> Binary | Sparse:
        if self.min_count > 1:
            raise ValueError(f"extend {CANNOT_COUNT}")
        if self.pairs is not None:
            raise ValueError(f"extend: attributes of label pairs ({self.prefix!r}) need all training data at once. Use fit.")
        return self._encode(tokens, grow=True)

    def transform(self, tokens: Any) -> Binary | Sparse:
        return self._encode(tokens, grow=False)

    def _encode(self, tokens, grow):
        given = 0 if tokens.dense is None or self.of_pairs else tokens.dense.shape[1]
        if given != self.n_dense and len(tokens.tokens):
            raise ValueError(
                f"dense has {given} columns, but the model was fitted with {self.n_dense}."
                if given and self.n_dense
                else f"The model was fitted {'with' if self.n_dense else 'without'} a matrix beside the attributes: "
                f"{f'give dense= with {self.n_dense} columns' if self.n_dense else 'leave out dense='}."
            )
        rows = encode(self._own(tokens.tokens), self.vocabulary, grow=grow, dtype=self.dtype, place=tokens.place)
        if self.of_pairs and not isinstance(rows, Binary):
            r = int(np.searchsorted(rows.ptr, np.flatnonzero(rows.value != 1)[0], side="right")) - 1
            raise ValueError(
                f"{tokens.place(r)}: attributes of label pairs ({self.prefix!r}) are there or not; they cannot have values, "
                "nor be given twice."
            )
        return put_before(tokens.dense, rows) if given else rows

    def _own(self, tokens: Any) -> Any:
        """The tokens with the attributes that are for this encoder; what is no token is left for `encode` to refuse."""
        if self.prefix is None:
            return tokens

        def mine(name: Any) -> bool:
            text = name.decode() if isinstance(name, bytes) else name
            return isinstance(text, str) and text.startswith(self.prefix or "") == self.of_pairs or not isinstance(text, str)

        found: list[Any] = []
        for token in tokens:
            if isinstance(token, Mapping):
                found.append({name: value for name, value in token.items() if mine(name)})
            else:
                found.append([name for name in token if mine(name)] if isinstance(token, LISTS) else token)
        return found

    def feature_name(self, j: int) -> str:
        if len(self._names) != self.n_features:
            self._names = list(self.vocabulary)
        return self._names[j]

    def to_state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        text, offsets = pack_strings(list(self.vocabulary))
        state: dict[str, Any] = {"min_count": self.min_count, **({"n_dense": self.n_dense} if self.n_dense else {})}
        if self.prefix is not None:
            state["pair_prefix"] = self.prefix
        more: dict[str, np.ndarray] = {}
        if self.pairs is not None and self.pair_table is not None:
            state["pairs"] = {}
            more = {f"pair_{name}": tensor for name, tensor in self.pairs.to_state()[1].items()}
            more |= {"pair_ptr": self.pair_table[0], "pair_codes": self.pair_table[1]}
        return state, {"vocabulary": text, "vocabulary_offsets": offsets, **more}

    @classmethod
    def from_state(cls, model: Mapping[str, Any], tensors: Mapping[str, np.ndarray], dtype: Any) -> AttributeEncoder:
        if not isinstance(model.get("min_count"), int):
            raise ValueError("'min_count' of the attributes is missing")
        prefix = model.get("pair_prefix")
        if not isinstance(prefix, str | None):
            raise ValueError(f"'pair_prefix' of the attributes is {str(prefix)[:40]}")
        encoder = cls(model["min_count"], dtype, 0, prefix)
        encoder.vocabulary = _numbered(tensors, "vocabulary")
        encoder.n_dense = model.get("n_dense", 0)
        if not isinstance(encoder.n_dense, int) or list(encoder.vocabulary)[: max(encoder.n_dense, 0)] != list(
            encoder._beginning()
        ):
            raise ValueError(f"'n_dense' of the attributes is {encoder.n_dense!r}")
        own = model.get("pairs")
        if (own is None and prefix is not None) or (own is not None and not isinstance(own, Mapping)):
            raise ValueError("'pairs' of the attributes is no encoder")
        if own is not None:
            encoder.pairs = encoder.pairs or cls(1, dtype)
            encoder.pairs.vocabulary = _numbered(tensors, "pair_vocabulary")
            encoder.pair_table = checked_pairs(tensors.get("pair_ptr"), tensors.get("pair_codes"), encoder.pairs.n_features)
        return encoder


def _numbered(tensors: Mapping[str, np.ndarray], name: str) -> dict[str, int]:
    """A vocabulary, as `AttributeEncoder.to_state` wrote it."""
    names = unpack_strings(tensors.get(name), tensors.get(f"{name}_offsets"), "the attributes")
    found = {one: k for k, one in enumerate(names)}
    if len(found) != len(names):
        raise ValueError("an attribute occurs twice")
    return found


class MatrixEncoder:
    """Rows of matrices: nothing to learn but their width."""

    kind = MATRIX

    def __init__(self, dtype: Any = np.float64, n_features: int = 0, who: str = "The model"):
        self.dtype, self.n_features, self.who = dtype, n_features, who

    def fit_transform(self, tokens: Any) -> Binary | Sparse | Dense:
        self.n_features = int(tokens.tokens.shape[1])
        return self.transform(tokens)

    def transform(self, tokens: Any) -> Binary | Sparse | Dense:
        x = tokens.tokens
        if x.shape[1] != self.n_features:
            raise ValueError(
                f"X has {x.shape[1]} features per token, but {self.who} is expecting {self.n_features} features as input."
            )
        tokens.check_finite()
        if isinstance(x, np.ndarray) and not x.flags.writeable:
            x = x.copy()  # read-only arrays are a type of their own to numba: not worth a compilation
        return make_rows(x, self.dtype)

    extend = transform

    def feature_name(self, j: int) -> str:
        return f"x{j}"

    def to_state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return {"n_features": self.n_features}, {}

    @classmethod
    def from_state(cls, model: Mapping[str, Any], tensors: Mapping[str, np.ndarray], dtype: Any) -> MatrixEncoder:
        n = model.get("n_features")
        if not isinstance(n, int) or isinstance(n, bool) or n < 0:
            raise ValueError(f"'n_features' of the matrices is {n!r}")
        return cls(dtype, n)
