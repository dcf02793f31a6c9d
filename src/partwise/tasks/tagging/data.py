"""What `SequenceLabeler` accepts as sequences and labels, brought into one form: tokens end to end, and where sequences begin.

A sequence is a list of tokens (attribute dicts or lists of strings, see `partwise.text.attributes`), or a matrix with one row
per token (2-D array, scipy sparse matrix, nested lists of numbers). Alternatively all tokens come end to end with ``lengths=``.
For models with templates, sequences are `Columns`, or lists of tokens that are tuples of strings, one for each column. Nothing is
guessed: what is not recognised is refused, with the number of the sequence.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any, NamedTuple, cast

import numpy as np

from partwise.features.given_labels import GivenLabels, number_labels
from partwise.features.rows import as_csr, is_sparse
from partwise.text.attributes import LISTS
from partwise.text.columns import Columns, code_tokens
from partwise.text.given_encoders import ATTRIBUTES, COLUMNS, MATRIX

FORMS = "a list of sequences, each a list of tokens or a matrix with one row per token; or tokens end to end with lengths="


class Tokens(NamedTuple):
    """Sequences laid end to end."""

    kind: str  #: ATTRIBUTES, MATRIX, COLUMNS, or "" where there is no token to tell by
    tokens: Any  #: a list, a matrix (array or CSR), or Columns
    starts: np.ndarray  #: (sequences + 1,) int64 first token of each sequence, and the end
    joined: bool  #: whether the user gave them end to end
    dense: np.ndarray | None = None  #: a row of numbers of each token, beside its attributes

    @property
    def lengths(self) -> np.ndarray:
        """(sequences,) tokens of each."""
        return np.diff(self.starts)

    @property
    def n_sequences(self) -> int:
        return len(self.starts) - 1

    @property
    def n_tokens(self) -> int:
        return int(self.starts[-1])

    def split(self, values: Any) -> list[Any]:
        """Cut what lies end to end into sequences."""
        return cut(values, self.starts)

    def place(self, token: int) -> str:
        """Where a token is, in words."""
        if self.kind == COLUMNS and self.tokens.ends is not None:
            return self.tokens.place(token)
        sequence = int(np.searchsorted(self.starts, token, side="right")) - 1
        return f"token {token - self.starts[sequence]} of sequence {sequence}"

    def check_finite(self) -> None:
        """Raise, naming sequence and token, if a matrix holds NaN or infinity."""
        x = self.tokens
        values = x.data if is_sparse(x) else x
        if np.isfinite(values).all():
            return
        if is_sparse(x):
            k = int(np.flatnonzero(~np.isfinite(values))[0])
            row, column = int(np.searchsorted(x.indptr, k, side="right")) - 1, int(x.indices[k])
            value = values[k]
        else:
            row, column = (int(k) for k in np.argwhere(~np.isfinite(values))[0])
            value = values[row, column]
        raise ValueError(f"Input X contains NaN or infinity: feature {column} of {self.place(row)} is {value}.")


def read_tokens(X: Any, lengths: Any, dtype: Any, in_columns: bool = False) -> Tokens:
    """Sequences in any accepted form; `in_columns` says that tokens given as tuples of strings are cells of columns."""
    if isinstance(X, str | bytes | Mapping):
        raise TypeError(f"X must be {FORMS}. Got a {type(X).__name__}.")
    if isinstance(X, Columns):
        if lengths is not None:
            raise ValueError("Columns know where their sentences begin: leave out lengths=.")
        return Tokens(COLUMNS, X, X.starts, False)
    if in_columns:
        columns = code_tokens(X if lengths is None else cut(list(X), _read_lengths(lengths, len(X))))
        return Tokens(COLUMNS, columns, columns.starts, lengths is not None)
    if lengths is not None:
        return _read_joined(X, lengths, dtype)
    if is_sparse(X) or (isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype != object):
        raise ValueError(
            f"Got one matrix of shape {X.shape} as X: where do its sequences begin? Give lengths=, the number of rows of each "
            "sequence, or a list of matrices."
        )
    if not hasattr(X, "__len__") or not hasattr(X, "__getitem__"):
        raise TypeError(f"X must be {FORMS}. Got a {type(X).__name__}; if it yields sequences, pass list(X).")
    if isinstance(X, np.ndarray) and X.ndim == 0:
        raise TypeError(f"X must be {FORMS}. Got an array without dimensions holding a {type(X.item()).__name__}.")
    sequences = [_as_sequence(sequence, i) for i, sequence in enumerate(X)]
    kinds = [_kind(sequence, i) for i, sequence in enumerate(sequences)]
    told = [i for i, kind in enumerate(kinds) if kind]
    kind = kinds[told[0]] if told else ""
    for i in told:
        if kinds[i] != kind:
            raise ValueError(
                f"All sequences must be of one kind. Got {kind} in sequence {told[0]}, but {kinds[i]} in sequence {i}."
            )
    if kind != MATRIX:
        return Tokens(kind, list(chain.from_iterable(sequences)), starts_of(list(map(len, sequences))), False)
    matrices = [_as_matrix(sequences[i], dtype, f"Sequence {i}") if kinds[i] else None for i in range(len(sequences))]
    width = cast(Any, matrices[told[0]]).shape[1]
    for i, matrix in enumerate(matrices):
        if matrix is not None and matrix.shape[1] != width and matrix.shape != (0, 0):
            raise ValueError(f"Sequence {i} has {matrix.shape[1]} features per token, but sequence {told[0]} has {width}.")
    starts = starts_of([0 if matrix is None else matrix.shape[0] for matrix in matrices])
    filled = [matrix for matrix in matrices if matrix is not None and matrix.shape[0]] or [matrices[told[0]]]
    if any(is_sparse(matrix) for matrix in filled):
        import scipy.sparse

        return Tokens(kind, scipy.sparse.vstack(filled, format="csr", dtype=dtype), starts, False)
    return Tokens(kind, np.concatenate(filled), starts, False)


def with_dense(tokens: Tokens, dense: Any, dtype: Any) -> Tokens:
    """Tokens with a matrix beside their attributes: one for each sequence, or for all tokens if they came with ``lengths=``."""
    if dense is None:
        return tokens
    if tokens.kind not in (ATTRIBUTES, ""):
        other = "they are rows of numbers: put both into one matrix" if tokens.kind == MATRIX else "they have templates"
        raise ValueError(f"dense= is for tokens with attributes, dicts or lists of strings. Here {other}.")
    if tokens.joined:
        matrices = [dense]
        lengths = [tokens.n_tokens]
    else:
        if is_sparse(dense) or not hasattr(dense, "__len__") or len(dense) != tokens.n_sequences:
            many = f"{len(dense)} of them" if hasattr(dense, "__len__") and not is_sparse(dense) else f"a {type(dense).__name__}"
            raise ValueError(f"dense must hold one matrix per sequence, {tokens.n_sequences}. Got {many}.")
        matrices, lengths = list(dense), tokens.lengths.tolist()
    found, width = [], None
    for i, (given, n) in enumerate(zip(matrices, lengths, strict=True)):
        what = "dense" if tokens.joined else f"dense[{i}]"
        if n == 0 and not is_sparse(given) and np.size(given) == 0:
            continue
        if is_sparse(given):
            raise ValueError(f"{what} is a sparse matrix. Put what it says into the attributes, or make it an array.")
        matrix = _as_matrix(given, dtype, what)
        if len(matrix) != n:
            raise ValueError(f"{what} has {len(matrix)} rows, but there are {n} tokens.")
        if width is not None and matrix.shape[1] != width:
            raise ValueError(f"{what} has {matrix.shape[1]} columns, but those before have {width}.")
        width = matrix.shape[1]
        found.append(matrix)
    if width == 0:
        raise ValueError("dense has no columns.")
    if width is None:
        return tokens
    matrix = np.concatenate(found)
    wrong = np.argwhere(~np.isfinite(matrix))
    if len(wrong):
        row, column = wrong[0].tolist()
        raise ValueError(f"dense contains NaN or infinity: column {column} of {tokens.place(row)} is {matrix[row, column]}.")
    return tokens._replace(dense=matrix)


def _as_sequence(sequence: Any, i: int) -> Any:
    if isinstance(sequence, str | bytes | Mapping):
        raise TypeError(
            f"Each sequence must be a list of tokens or a matrix. Sequence {i} is the {type(sequence).__name__} {sequence!r}; "
            "X must be a list of sequences, not one sequence."
        )
    if isinstance(sequence, np.ndarray) and sequence.dtype.kind in "OU":
        return sequence.tolist()
    if not hasattr(sequence, "__len__") and not is_sparse(sequence):
        raise TypeError(
            f"Each sequence must be a list of tokens or a matrix. Sequence {i} is a {type(sequence).__name__}"
            + ("." if np.isscalar(sequence) else "; if it yields tokens, pass a list of them.")
        )
    return sequence


def _kind(sequence: Any, i: int) -> str:
    """ATTRIBUTES or MATRIX, or "" if the sequence is empty."""
    if is_sparse(sequence):
        return MATRIX
    if isinstance(sequence, np.ndarray):
        if sequence.ndim != 2 or sequence.dtype.kind not in "biuf":
            raise ValueError(
                f"A sequence given as an array must have two dimensions and hold numbers. Sequence {i} has shape "
                f"{sequence.shape} and dtype {sequence.dtype}."
            )
        return MATRIX
    return _kind_of_tokens(sequence, f"of sequence {i} ")


def _kind_of_tokens(tokens: Any, where: str = "") -> str:
    if not len(tokens):
        return ""
    first = tokens[0]
    if isinstance(first, str | bytes | set | frozenset | Mapping):
        return ATTRIBUTES  # a bare string is refused there, with advice
    if isinstance(first, np.ndarray) and first.ndim == 1 and first.dtype.kind in "biuf":
        return MATRIX
    if isinstance(first, LISTS):
        return MATRIX if len(first) and _is_number(next(iter(first))) else ATTRIBUTES
    raise TypeError(
        f"A token must be a list of strings, a dict, or a row of numbers. Token 0 {where}is {first!r} ({type(first).__name__})."
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, bool | int | float | np.number | np.bool_)


def _as_matrix(x: Any, dtype: Any, what: str) -> Any:
    if is_sparse(x):
        x = as_csr(x).astype(dtype)
        if not x.has_canonical_format:
            x = x.copy()
            x.sum_duplicates()
        return x
    try:
        x = np.ascontiguousarray(x, dtype)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{what} is not a matrix of numbers with one row per token: {error}") from None
    if x.ndim != 2:
        raise ValueError(f"{what} must be a matrix with one row per token. Got shape {x.shape}.")
    return x


def _read_joined(X: Any, lengths: Any, dtype: Any) -> Tokens:
    if hasattr(X, "to_numpy"):
        X = X.to_numpy()
    if not is_sparse(X) and not hasattr(X, "__len__"):
        raise TypeError(f"X must be {FORMS}. Got a {type(X).__name__}.")
    if isinstance(X, np.ndarray) and X.dtype.kind in "OU":
        X = X.tolist()
    matrix = is_sparse(X) or isinstance(X, np.ndarray)
    kind = MATRIX if matrix else _kind_of_tokens(X)
    tokens: Any = _as_matrix(X, dtype, "X") if kind == MATRIX else list(X)
    rows = tokens.shape[0] if kind == MATRIX else len(tokens)
    return Tokens(kind, tokens, _read_lengths(lengths, rows), True)


def _read_lengths(lengths: Any, n_tokens: int) -> np.ndarray:
    """Where sequences begin."""
    n = np.asarray(lengths)
    if n.ndim != 1 or (n.size and n.dtype.kind not in "iu") or (n < 0).any():
        raise ValueError(f"lengths must be a list of non-negative integers, one per sequence. Got {lengths!r}.")
    if n.sum() != n_tokens:
        raise ValueError(f"The lengths sum to {n.sum()}, but X has {n_tokens} tokens.")
    return starts_of(n)


def read_labels(y: Any, tokens: Tokens, what: str = "labels") -> GivenLabels:
    """The labels of all tokens, end to end, after checking that every token has one.

    For `Columns`, y may be the number of a column, or None for the last one.
    """
    n_tokens, n_sequences = tokens.n_tokens, tokens.n_sequences
    if isinstance(y, GivenLabels):
        if len(y.codes) != n_tokens:
            raise ValueError(f"X has {n_tokens} tokens, but y has {len(y.codes)} {what}.")
        return y
    if tokens.kind == COLUMNS and (y is None or (isinstance(y, int) and not isinstance(y, bool))):
        return tokens.tokens.labels(-1 if y is None else y)
    if isinstance(y, str | bytes | Mapping) or not hasattr(y, "__len__"):
        raise TypeError(f"y must be a list of label sequences. Got a {type(y).__name__}.")
    if tokens.joined:
        flat = y.tolist() if hasattr(y, "tolist") else list(y)
        if len(flat) != n_tokens:
            raise ValueError(f"X has {n_tokens} tokens, but y has {len(flat)} {what}.")
        return number_labels(flat, tokens.place)
    if len(y) != n_sequences:
        raise ValueError(f"X has {n_sequences} sequences, but y has {len(y)} sequences of {what}.")
    sequences = [s.tolist() if hasattr(s, "tolist") else s for s in y]
    for i, (labels, n) in enumerate(zip(sequences, tokens.lengths.tolist(), strict=True)):
        if isinstance(labels, str | bytes | Mapping) or not hasattr(labels, "__len__"):
            raise TypeError(f"The {what} of a sequence must be a list. Sequence {i} has {labels!r} ({type(labels).__name__}).")
        if len(labels) != n:
            raise ValueError(f"Sequence {i} has {n} tokens, but {len(labels)} {what}.")
    return number_labels(list(chain.from_iterable(sequences)), tokens.place)


def starts_of(lengths: Any) -> np.ndarray:
    """Where sequences of these lengths begin, laid end to end, and the end; int64."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def cut(values: Any, starts: np.ndarray) -> list[Any]:
    """What lies end to end as a list of sequences."""
    edges = starts.tolist()
    return [values[a:b] for a, b in zip(edges[:-1], edges[1:], strict=True)]
