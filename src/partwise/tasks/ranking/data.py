"""What a ranker is given: documents with features, the query of each, and how relevant it is.

Queries come as `groups`, as `qid`, as the column ``qid`` of a data frame, or within a `RankingSet`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from partwise.features.rows import as_csr, is_sparse
from partwise.tasks.ranking.files import RankingSet
from partwise.tasks.ranking.scores import members_of

MISSING = ("None", "nan", "<NA>", "NaT")  # what data frames have where nothing is known
HIGHEST = 60.0  # relevance: gains are 2^relevance, and differences between them should be seen


@dataclass(frozen=True, eq=False)
class Documents:
    """Checked documents, as they were given."""

    X: Any
    qid: np.ndarray | None
    relevance: np.ndarray | None
    names: list[str] | None = None  #: of the features, where a data frame has them

    def __len__(self) -> int:
        return self.X.shape[0]

    @cached_property
    def queries(self) -> list[np.ndarray]:
        """The documents of each query, in the order in which queries are first met."""
        return [np.arange(len(self))] if self.qid is None else members_of(self.qid)

    def take(self, queries: list[np.ndarray]) -> Documents:
        """The documents of these queries, one query after the other."""
        which = np.concatenate([np.zeros(0, np.int64), *queries])
        qid = np.repeat(np.arange(len(queries)), [len(own) for own in queries])
        return Documents(self.X[which], qid, None if self.relevance is None else self.relevance[which], self.names)


def read_documents(X: Any, y: Any = None, groups: Any = None, qid: Any = None, dtype: Any = np.float64) -> Documents:
    """Check what was given; see the module."""
    if groups is not None and qid is not None:
        raise ValueError("`groups` and `qid` are two names for the query of each document. Got both; give one.")
    which = groups if qid is None else qid
    name = "groups" if qid is None else "qid"
    if isinstance(X, RankingSet):
        y, which, X = X.relevance if y is None else y, X.qid if which is None else which, X.X
    elif hasattr(X, "columns") and "qid" in X.columns:  # a data frame, in XGBoost's manner
        which, name = (X["qid"], "qid") if which is None else (which, name)
        X = X[[column for column in X.columns if column != "qid"]]
    names = list(X.columns) if hasattr(X, "columns") and all(isinstance(column, str) for column in X.columns) else None
    matrix = check_features(X, dtype)
    n = matrix.shape[0]
    if which is not None:
        which = np.asarray(which)
        if which.shape != (n,):
            raise ValueError(f"{name} must have the query of each document, shape ({n},). Got shape {which.shape}.")
        missing = np.isnan(which) if which.dtype.kind == "f" else np.zeros(n, bool)
        if which.dtype.kind == "O":
            missing = np.array([str(value) in MISSING and not isinstance(value, str) for value in which], bool)
            which = which.astype(str)  # numbers among strings have no order
        if missing.any():
            raise ValueError(f"{name} must not hold NaN. Got one at document {int(np.argmax(missing))}.")
    return Documents(matrix, which, None if y is None else check_relevance(y, n), names)


def check_features(X: Any, dtype: Any) -> Any:
    """A matrix of finite numbers, one row for each document."""
    if getattr(getattr(X, "dtype", None), "kind", "") == "c":
        raise ValueError(f"Complex data not supported: X must hold real numbers. Got dtype {X.dtype}.")
    if is_sparse(X):
        matrix = as_csr(X).astype(dtype)
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
    else:
        try:
            matrix = np.array(X, dtype)
        except (ValueError, TypeError) as error:
            raise type(error)(
                f"X must hold numbers only, but {error}. Leave out columns of other kinds; the one that names queries is 'qid'."
            ) from None
    if matrix.ndim != 2:
        raise ValueError(
            f"Expected X with one row of features for each document, a 2D array. Got {matrix.ndim}D. Reshape your data: "
            "X.reshape(1, -1) is one document, X.reshape(-1, 1) many of one feature."
        )
    if not matrix.shape[1]:
        raise ValueError(f"X has no columns: 0 feature(s) (shape={matrix.shape}) while a minimum of 1 is required.")
    values = matrix.data if is_sparse(matrix) else matrix
    if not np.isfinite(values).all():
        bad = int(np.argmin(np.isfinite(values)))
        row = int(np.searchsorted(matrix.indptr, bad, side="right")) - 1 if is_sparse(matrix) else bad // matrix.shape[1]
        raise ValueError(f"Input X contains NaN or infinity: document {row} holds {values.flat[bad]}.")
    return matrix


def check_relevance(y: Any, n: int) -> np.ndarray:
    """One number >= 0 for each document; whole ones, as a rule, but any will do."""
    relevance = np.asarray(y, np.float64)
    if relevance.shape != (n,):
        raise ValueError(f"y must have the relevance of each document, shape ({n},). Got shape {relevance.shape}.")
    fine = (relevance >= 0.0) & (relevance <= HIGHEST)
    if not fine.all():
        i = int(np.argmin(fine))
        raise ValueError(
            f"Relevance must be a number in the range [0, {HIGHEST:g}], 0 for irrelevant: gains are 2^relevance - 1. Got "
            f"{relevance[i]:g} for document {i}."
        )
    return relevance
