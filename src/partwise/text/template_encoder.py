"""`TemplateEncoder`: from columns to feature rows by templates, without building strings.

::

for each row of values that templates look at:  apply its functions to the distinct cells of its column; number the results
for each token, for each template:              the numbers of the values it finds are a key; number the key
"""

from __future__ import annotations

import copy
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, count, islice, repeat
from typing import Any

import numpy as np

from partwise.features.rows import Binary
from partwise.files.packed_strings import pack_strings, unpack_strings
from partwise.text.columns import Columns, code_tokens
from partwise.text.given_encoders import COLUMNS
from partwise.text.label_pairs import checked_pairs
from partwise.text.lookup import Lookup, look_up, make_lookup
from partwise.text.templates import END, START, compile_templates, make_function, read_templates
from partwise.text.vocabulary import LARGEST, Boundary, FeatureVocabulary, drop_features, hash_rows

Data = Any  #: `Columns`, or sentences as lists of tokens


class TemplateEncoder:
    """Feature rows by templates.

    Parameters
    ----------
    templates : {"chunking", "phrases", "words", "ner"}, path or list of str, default="chunking"
        A ready-made set, a file (ours or of CRF++), or the templates themselves; see `partwise.text.templates`.
    columns : list of str, optional
        Names of the columns, from the first on; ``["w", "pos"]`` by default. Columns that no template names need none.
    min_count : int, default=1
        Features that occur fewer times in the training data are left out.
    hash_bits : int, optional
        Number features by their hash, into ``2 ** hash_bits`` of them, instead of keeping a vocabulary: fixed size and nothing to
        learn, but features may fall together and have no names.

    Attributes
    ----------
    n_features : int
    has_transitions : bool
        False for a CRF++ file without a ``B``: its model knows no transitions between labels.

    Notes
    -----
    Features are numbered in the order they are first met, token by token and template by template, so it does not matter in which
    parts the data comes. Encoding takes O(tokens * templates + distinct cells * functions) time, 4 bytes per feature of a token
    and, while it lasts, 4 per token for each kind of value that templates look at.

    Examples
    --------
    >>> encoder = TemplateEncoder(["w[-1]|w[0]", "suffix2(w)"])
    >>> rows = encoder.fit_transform([[["the"], ["dog"]]])
    >>> [encoder.feature_name(j) for j in rows.index]
    ['suffix2(w[0])=he', 'w[-1]|w[0]=the|dog', 'suffix2(w[0])=og']
    """

    kind = COLUMNS

    def __init__(
        self,
        templates: str | os.PathLike[str] | Iterable[str] = "chunking",
        columns: Sequence[str] | None = None,
        *,
        min_count: int = 1,
        hash_bits: int | None = None,
    ):
        for name, value, most in (("min_count", min_count, LARGEST), ("hash_bits", 1 if hash_bits is None else hash_bits, 30)):
            if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
                allowed = f"an int in the range [1, {most}]"
                raise ValueError(f"The {name!r} parameter of TemplateEncoder must be {allowed}. Got {value!r} instead.")
        if hash_bits is not None and min_count > 1:
            raise ValueError("The 'min_count' parameter of TemplateEncoder needs a vocabulary; it cannot go with 'hash_bits'.")
        found, self.columns, self.has_transitions = read_templates(templates, columns)
        self.templates = [template for template in found if not template.is_pair]
        self.min_count, self.hash_bits = min_count, hash_bits
        pairs = [f"U{template.text}" for template in found if template.is_pair]
        #: makes the features of label pairs, where templates ask for some, and for which pairs each has weights, once known
        self.pairs = TemplateEncoder(pairs, self.columns, min_count=min_count, hash_bits=hash_bits) if pairs else None
        self.pair_table: tuple[np.ndarray, np.ndarray] | None = None
        self._program, self._sources, self._groups = compile_templates(self.templates)
        self._functions = functions_of(self._sources)
        padded = self._program.offset[np.repeat(self._program.padded, np.diff(self._program.ptr)) > 0]
        self._before = [f"_B-{k + 1}" for k in range(max(0, -int(padded.min(initial=0))))]
        self._after = [f"_B+{k + 1}" for k in range(max(0, int(padded.max(initial=0))))]
        self._forget()

    def __getstate__(self) -> dict[str, Any]:
        """For pickle, which grid search in processes needs: functions are made anew."""
        return {name: value for name, value in vars(self).items() if name != "_functions"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._functions = functions_of(self._sources)

    def _forget(self) -> None:
        self._values = _Values()
        self._strings: list[str] = []
        self._vocabulary = FeatureVocabulary(1 + int(self._program.arity.max(initial=0)))
        self._lookup: Lookup | None = None  # made when first asked for, forgotten when the vocabulary grows
        self._fitted = self.hash_bits is not None

    @property
    def n_features(self) -> int:
        return len(self._vocabulary) if self.hash_bits is None else 1 << self.hash_bits

    @property
    def n_columns(self) -> int:
        """How many columns templates look at, all up to the last one counted."""
        return 1 + max((source[0] for source in self._sources), default=-1)

    def __repr__(self) -> str:
        return f"<TemplateEncoder: {len(self.templates)} templates, {self.n_features} features>"

    # -- encoding -----------------------------------------------------------------------------------------------------

    def fit(self, data: Data) -> TemplateEncoder:
        """Learn the vocabulary, from nothing.

        Parameters
        ----------
        data : Columns, sentences, or an iterator of Columns
            An iterator, as of `stream_columns`, is read once, part by part.
        """
        if isinstance(data, Iterator):
            self.refuse_pairs("fit to parts")
        elif self.pairs is not None:
            self.pairs.fit(data)
            self.pair_table = None
        self._forget()
        counts: np.ndarray = np.zeros(0, np.int64)
        for part in data if isinstance(data, Iterator) else [data]:
            if isinstance(data, Iterator) and not isinstance(part, Columns):
                raise TypeError(f"An iterator must give Columns, not {type(part).__name__}; make a list of sentences.")
            rows = self._encode(part, grow=True)
            if self.min_count > 1:
                counts = np.bincount(rows.index, minlength=self.n_features) + np.pad(counts, (0, self.n_features - len(counts)))
        self._fitted = True
        if self.min_count > 1:
            self._cut(counts)
        elif isinstance(data, Iterator):
            self._rebuild(self._vocabulary.keys[: len(self._vocabulary)])
        return self

    def fit_transform(self, data: Data) -> Binary:
        """`fit` and `transform` in one pass."""
        if self.pairs is not None:
            self.pairs.fit(data)
            self.pair_table = None
        self._forget()
        ptr, index, _ = rows = self._encode(data, grow=True)
        self._fitted = True
        if self.min_count == 1:
            self._vocabulary.rest()
            return rows
        self._vocabulary.rest()
        renumber = self._cut(np.bincount(index, minlength=self.n_features))
        n = drop_features(ptr, index, renumber)
        return Binary(ptr, index[:n].copy(), self.n_features)  # a view would hold what was dropped as long as training takes

    def transform(self, data: Data) -> Binary:
        """Feature rows, one per token; features that are not in the vocabulary are ignored."""
        if not self._fitted:
            raise ValueError("This TemplateEncoder is not fitted yet. Call fit or fit_transform first.")
        return self._encode(data, grow=False)

    def extend(self, data: Data) -> Binary:
        """Feature rows of more training data; features that are new enter the vocabulary."""
        self.refuse_pairs("extend")
        if self.min_count > 1:
            raise ValueError(
                "extend cannot count what is still to come: it needs min_count=1. Call fit with an iterator instead."
            )
        self._fitted = True
        return self._encode(data, grow=True)

    def vocabulary_of(self, data: Columns) -> tuple[list[str], np.ndarray, np.ndarray]:
        """Values, keys and counts of the features of these sentences alone: what `Merging` puts together."""
        self.refuse_pairs("partwise pack")
        own = copy.copy(self)
        own._forget()
        rows = own._encode(data, grow=True)
        keys = own._vocabulary.keys[: len(own._vocabulary)]
        return own._names_of_values(), keys.copy(), np.bincount(rows.index, minlength=len(keys))

    def refuse_pairs(self, what: str) -> None:
        """Raise if there are templates of label pairs, which `what` cannot learn."""
        if self.pairs is not None:
            raise ValueError(
                f"{what}: templates of label pairs (B with %x) learn which pairs there are from all data at once, and only "
                "taggers have them. Fit a tagger to all data, or leave these templates out."
            )

    @property
    def lines(self) -> list[str]:
        """All templates, as a file of them would have them."""
        texts = [template.text for template in self.templates]
        texts += [template.text[1:] for template in self.pairs.templates] if self.pairs is not None else []
        if self.has_transitions and any(template.literals is not None for template in self.templates):
            texts.append("B")
        return texts

    def _encode(self, data: Data, grow: bool) -> Binary:
        columns = data if isinstance(data, Columns) else code_tokens(data)
        if not columns.n_tokens:
            return Binary(np.zeros(1, np.int64), np.zeros(0, np.int32), self.n_features)
        self._check_columns(columns)
        grow = grow or self.hash_bits is not None
        known = self._values if self.hash_bits is None else _Values()
        values = np.empty((len(self._sources), columns.n_tokens), np.int32)
        for row, source, functions in zip(values, self._sources, self._functions, strict=True):
            if source in (START, END):
                row[:] = -1
                there = columns.starts[:-1] if source == START else columns.starts[1:] - 1
                row[there[np.diff(columns.starts) > 0]] = _codes([""], known, grow)[0]
                continue
            cells: Any = columns.cells[source[0]]
            for function in functions:
                cells = function(cells)
            np.take(_codes(cells, known, grow), columns.codes[source[0]], out=row, mode="clip")
        boundary = Boundary(_codes(self._before, known, grow), _codes(self._after, known, grow))
        if self.hash_bits is not None:
            hashes = _hashes(islice(known, 1, None)), _hashes("\0".join(template.group) for template in self._groups)
            ptr, index = hash_rows(values, columns.starts, self._program, boundary, *hashes, self.hash_bits)
        elif grow:
            self._lookup = None
            ptr, index = self._vocabulary.number(values, columns.starts, self._program, boundary)
        else:
            if self._lookup is None:
                self._lookup = make_lookup(self._vocabulary, self._program, len(self._sources), len(known) - 1)
            ptr, index = look_up(self._lookup, values, columns.starts, self._program, boundary)
        return Binary(ptr, index, self.n_features)

    def _check_columns(self, columns: Columns) -> None:
        for template in self.templates:
            for (column, _), _ in template.atoms:
                if column >= columns.n_columns:
                    called = f" ({self.columns[column]!r})" if template.literals is None else ""
                    raise ValueError(
                        f"{columns.name}: the template {template.text!r} refers to column {column}{called}, but there are "
                        f"{columns.n_columns} columns, counted from 0."
                    )

    def refuse_column(self, column: int, what: str) -> None:
        """Raise if a template looks at this column: a model that sees the answers in training learns nothing else."""
        for template in self.templates:
            if any(source[0] == column for source, _ in template.atoms):
                raise ValueError(
                    f"The template {template.text!r} looks at column {column}, which is {what}. Choose other templates (for "
                    "files with words and labels only: 'words' or 'ner'), or say which column holds the labels."
                )

    def _cut(self, counts: np.ndarray) -> np.ndarray:
        """Forget rare features, and values that only they have; returns the new numbers of the old features, -1 for none."""
        kept = np.flatnonzero(counts >= self.min_count)
        renumber = np.full(len(counts), -1, np.int32)
        renumber[kept] = np.arange(len(kept), dtype=np.int32)
        self._rebuild(self._vocabulary.keys[kept])
        return renumber

    def _rebuild(self, keys: np.ndarray) -> None:
        """Keep these features and the values they have, numbered in the order they are met, feature by feature.

        That order is the same in whatever parts the data came; the order in which values are first looked up is not.
        """
        values = keys[:, 1:]
        used, first = np.unique(values, return_index=True)
        used = used[np.argsort(first)]
        used = used[used >= 0]
        codes = np.full(len(self._values), -1, np.int32)  # the last stays -1, which is where -1 looks
        codes[used] = np.arange(len(used), dtype=np.int32)
        strings = self._names_of_values()
        self._values = _Values(strings[code] for code in used.tolist())
        self._strings = []
        self._vocabulary = FeatureVocabulary.from_keys(np.column_stack([keys[:, 0], codes[values]]), self._program.arity)
        self._lookup = None

    # -- names --------------------------------------------------------------------------------------------------------

    def _names_of_values(self) -> list[str]:
        if len(self._strings) != len(self._values) - 1:  # values are added or dropped, never put in another order
            self._strings = list(islice(self._values, 1, None))
        return self._strings

    def feature_name(self, j: int) -> str:
        """What feature j is called, ``w[-1]|w[0]=the|dog``; for inspection."""
        if not 0 <= j < self.n_features:
            raise IndexError(f"There is no feature {j}; there are {self.n_features}.")
        if self.hash_bits is not None:
            return f"hash={j}"
        group, *codes = self._vocabulary.keys[j].tolist()
        template, strings = self._groups[group], self._names_of_values()
        return template.name([strings[code] for code in codes[: len(template.atoms)]])

    def feature_names(self) -> list[str]:
        """The names of all features."""
        return [self.feature_name(j) for j in range(self.n_features)]

    # -- saving -------------------------------------------------------------------------------------------------------

    def to_state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """All that `from_state` needs: numbers and strings for JSON, and arrays."""
        model = {"templates": self.lines, "columns": self.columns, "min_count": self.min_count, "hash_bits": self.hash_bits}
        model["fitted"] = self._fitted
        more: dict[str, np.ndarray] = {}
        if self.pairs is not None and self.pair_table is not None:
            more = {f"pair_{name}": tensor for name, tensor in self.pairs.to_state()[1].items()}
            more |= {"pair_ptr": self.pair_table[0], "pair_codes": self.pair_table[1]}
        if self.hash_bits is not None:
            return model, more
        text, offsets = pack_strings(self._names_of_values())
        keys = self._vocabulary.keys[: len(self._vocabulary)]
        return model, {"template_keys": keys, "template_values": text, "template_value_offsets": offsets, **more}

    @classmethod
    def from_state(cls, model: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> TemplateEncoder:
        """The encoder that `to_state` described. Nothing is taken on trust: what does not fit together is a ValueError."""
        kinds = {"templates": list, "columns": list, "min_count": int, "hash_bits": int | None, "fitted": bool}
        for key, kind in kinds.items():
            if not isinstance(model.get(key), kind):
                raise ValueError(f"{key!r} of the templates is {str(model.get(key))[:40]}")
        try:
            encoder = cls(model["templates"], model["columns"], min_count=model["min_count"], hash_bits=model["hash_bits"])
        except TypeError as error:
            raise ValueError(str(error)) from None
        if encoder.pairs is not None:
            own = {name.removeprefix("pair_"): tensor for name, tensor in tensors.items() if name.startswith("pair_template_")}
            texts = [template.text for template in encoder.pairs.templates]
            encoder.pairs = cls.from_state({**model, "templates": texts}, own)
            encoder.pair_table = checked_pairs(tensors.get("pair_ptr"), tensors.get("pair_codes"), encoder.pairs.n_features)
        if encoder.hash_bits is not None:
            return encoder
        keys, text, offsets = (tensors.get(f"template_{name}") for name in ("keys", "values", "value_offsets"))
        arity = encoder._program.arity
        if keys is None or keys.dtype != np.int32 or keys.ndim != 2 or keys.shape[1] != 1 + arity.max(initial=0):
            raise ValueError("the features of the templates are missing or have a wrong shape")
        strings = unpack_strings(text, offsets, "the values of the templates")
        encoder._values = _Values(strings)
        if len(encoder._values) != len(strings) + 1:
            raise ValueError("a value of the templates occurs twice")
        groups = keys[:, 0]
        if groups.size and not 0 <= groups.min() <= groups.max() < len(arity):
            raise ValueError("a feature belongs to no template")
        filled = np.arange(1, keys.shape[1]) <= arity[groups][:, None]
        if (np.where(filled, (keys[:, 1:] < 0) | (keys[:, 1:] >= len(strings)), keys[:, 1:] != -1)).any():
            raise ValueError("a feature has values that are out of range")
        encoder._vocabulary = FeatureVocabulary.from_keys(keys, arity)
        encoder._fitted = model["fitted"]
        return encoder


class Merging:
    """`TemplateEncoder.fit` in parts that know nothing of each other: features are numbered as if they had come one by one."""

    def __init__(self, encoder: TemplateEncoder):
        encoder._forget()
        self.encoder, self.counts = encoder, np.zeros(0, np.int64)

    def add(self, strings: list[str], keys: np.ndarray, counts: np.ndarray) -> None:
        """The next part, as `TemplateEncoder.vocabulary_of` found it."""
        encoder = self.encoder
        codes = np.append(_codes(strings, encoder._values, True), np.int32(-1))  # the last is where -1 looks
        more = np.column_stack([keys[:, 0], codes[keys[:, 1:]]])
        numbers = encoder._vocabulary.merge(np.ascontiguousarray(more, np.int32), encoder._program.arity)
        self.counts = np.pad(self.counts, (0, len(encoder._vocabulary) - len(self.counts)))
        self.counts[numbers] += counts

    def finish(self) -> None:
        """All parts were there."""
        self.encoder._fitted = True
        if self.encoder.hash_bits is None:
            self.encoder._cut(self.counts)  # of features that occur once, none is rare if min_count is 1


def functions_of(sources: Iterable[Any]) -> list[list[Any]]:
    """What is done to the cells of each source, one after the other."""
    return [[make_function(*f) for f in functions] if column >= 0 else [] for column, functions in sources]


class _Values(dict):
    """Values and their numbers, in the order they are first looked up with ``[]``; None, which is no value, is numbered -1."""

    def __init__(self, values: Iterable[str] = ()):
        super().__init__(zip(chain([None], values), count(-1), strict=False))

    def __missing__(self, value):
        self[value] = number = len(self) - 1
        return number


def _codes(cells: Sequence[str | None], known: _Values, grow: bool) -> np.ndarray:
    """Numbers of values; of new ones too if growing, else -1."""
    codes = map(known.__getitem__, cells) if grow else map(known.get, cells, repeat(-1))
    return np.fromiter(codes, np.int32, len(cells))


def _hashes(strings: Iterable[str]) -> np.ndarray:
    """64 bits of each, the same on every machine and day."""
    import hashlib

    digests = [hashlib.blake2b(string.encode("utf-8", "surrogatepass"), digest_size=8).digest() for string in strings]
    return np.frombuffer(b"".join(digests), "<u8").astype(np.uint64)
