"""Queries and their documents: svmlight files with ``qid``, as LETOR has them.

A document is a line: its relevance, its query, its features, and what else is known of it after ``#``::

    2 qid:1 1:3.0 2:2.07 4:0.21 #docid = 40626
    0 qid:1 1:1.0 2:0.69 #docid = 11852

Features are numbered from 1 and those left out are zero. Documents of a query need not be neighbours.

What a feature's values mean differs from query to query, so that they are usually scaled within each: `RankingSet.normalized`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from partwise.features.rows import is_sparse
from partwise.files.corpora import data_folder
from partwise.files.svmlight import SvmlightRows, read_svmlight
from partwise.files.text_source import open_bytes, read_bytes, to_utf8
from partwise.tasks.ranking.scores import members_of

SUBSETS = 5  #: of OHSUMED's queries
EXPECTED = "a relevance, qid:Q, and features as number:value"


@dataclass(frozen=True, eq=False)
class RankingSet:
    r"""Documents with their queries and their relevance.

    Attributes
    ----------
    X : array or sparse matrix (documents, features)
    relevance : float64 array (documents,)
    qid : array of str (documents,)
    notes : list of str
        What stands after ``#``.
    lines : int64 array
        Where each document is, from 1.
    name : str
        Where it came from.

    Examples
    --------
    >>> data = read_letor(b"2 qid:1 1:3.0\n0 qid:1 1:1.0\n1 qid:2 1:2.0\n")
    >>> len(data), len(data.queries), data.relevance.tolist()
    (3, 2, [2.0, 0.0, 1.0])
    """

    X: Any
    relevance: np.ndarray
    qid: np.ndarray
    notes: list[str]
    lines: np.ndarray
    name: str

    def __len__(self) -> int:
        return len(self.relevance)

    def __repr__(self) -> str:
        return f"<RankingSet: {len(self)} documents of {len(self.queries)} queries from {self.name}>"

    @cached_property
    def queries(self) -> list[np.ndarray]:
        """The documents of each query, in the order in which queries are first met."""
        return members_of(self.qid)

    def place(self, i: int) -> str:
        """Where a document is, in words."""
        return f"{self.name}, line {self.lines[i]}"

    def weights_of(self, queries: np.ndarray | None) -> np.ndarray | None:
        """The weights of queries, in the order in which these are first met, as weights of their documents."""
        if queries is None:
            return None
        weights = np.zeros(len(self))
        for own, weight in zip(self.queries, queries, strict=True):
            weights[own] = weight
        return weights

    def take(self, which: Any) -> RankingSet:
        """The documents numbered `which`."""
        which = np.asarray(which, np.int64)
        return replace(
            self,
            X=self.X[which],
            relevance=self.relevance[which],
            qid=self.qid[which],
            notes=[self.notes[i] for i in which.tolist()],
            lines=self.lines[which],
        )

    def widened(self, n_features: int) -> RankingSet:
        """With as many features as that: a file does not tell of the last ones if they are zero in all of it."""
        have = self.X.shape[1]
        if have > n_features:
            raise ValueError(f"{self.name}: there are {have} features, but the model was trained with {n_features}.")
        if have == n_features:
            return self
        if not is_sparse(self.X):
            return replace(self, X=np.hstack([self.X, np.zeros((len(self), n_features - have))]))
        X = self.X.copy()
        X.resize(len(self), n_features)
        return replace(self, X=X)

    def normalized(self) -> RankingSet:
        """Features scaled to [0, 1] within each query; one that is constant there is zero, since it says nothing.

        Sparse features are divided by the largest absolute value of their query instead, so that zeros stay.
        """
        if not is_sparse(self.X):
            X = np.array(self.X)
            for own in self.queries:
                low, high = X[own].min(axis=0), X[own].max(axis=0)
                X[own] = (X[own] - low) / np.where(high > low, high - low, 1.0)
            return replace(self, X=X)
        X = self.X.tocsr(copy=True)
        for own in self.queries:
            entries = np.concatenate([np.arange(X.indptr[i], X.indptr[i + 1]) for i in own])
            _, column = np.unique(X.indices[entries], return_inverse=True)  # not all columns: a number may be any
            largest = np.zeros(column.max(initial=-1) + 1)
            np.maximum.at(largest, column, np.abs(X.data[entries]))
            X.data[entries] /= np.where(largest > 0.0, largest, 1.0)[column]
        return replace(self, X=X)


def read_letor(source: Any, normalize: bool = True, n_features: int | None = None, encoding: str = "utf-8") -> RankingSet:
    r"""Read an svmlight file with queries; see the module.

    Parameters
    ----------
    source : path, ``"-"``, bytes or binary file
        Gzipped or not.
    normalize : bool
        Whether features are scaled within each query.
    n_features : int, optional
        Columns of X; as many as the file has, by default. Higher features are an error.
    encoding : str

    Raises
    ------
    ValueError
        Naming the file and the line: no ``qid``, what is no number, NaN and infinities, negative relevance, feature 0, a feature
        that comes twice.

    Examples
    --------
    >>> read_letor(b"2 qid:a 1:3.0\n0 qid:a 1:1.0\n", normalize=False).X.tolist()
    [[3.0], [1.0]]
    """
    with open_bytes(source) as (stream, name):
        data = to_utf8(read_bytes(stream, -1, name), encoding, name)
    rows = read_svmlight(data.decode("utf-8", "replace"), name, EXPECTED)
    if not rows.labels:
        raise ValueError(f"{name}: there are no documents in it; expected lines such as '2 qid:1 1:0.5 2:3'.")
    relevance = check_documents(rows, n_features, name)
    width = n_features if n_features is not None else int(rows.index.max(initial=0))
    found = RankingSet(rows.matrix(1, width), relevance, np.array(rows.queries), rows.notes, rows.lines, name)
    return found.normalized() if normalize else found


def check_documents(rows: SvmlightRows, n_features: int | None, name: str) -> np.ndarray:
    """The relevance of each; raises unless all lines can be used."""
    relevance = np.zeros(len(rows.labels))
    for i, (label, query) in enumerate(zip(rows.labels, rows.queries, strict=True)):
        place = f"{name}, line {rows.lines[i]}"
        if not query:
            raise ValueError(f"{place}: expected 'qid:' and a query after the relevance.")
        try:
            relevance[i] = float(label)
        except ValueError:
            raise ValueError(f"{place}: expected {EXPECTED}. Got {label!r}.") from None
        if not 0 <= relevance[i] < np.inf:
            raise ValueError(f"{place}: relevance must be a finite number >= 0, got {label}.")
    line = np.repeat(rows.lines, rows.counts)
    if (rows.index < 1).any():
        raise ValueError(f"{name}, line {line[np.argmin(rows.index)]}: features are numbered from 1, got 0.")
    if n_features is not None and (rows.index > n_features).any():
        k = int(np.argmax(rows.index > n_features))
        raise ValueError(f"{name}, line {line[k]}: feature {rows.index[k]}, but there are only {n_features}.")
    return relevance


def write_letor(data: RankingSet, scores: Iterable[float]) -> str:
    """The documents best first, query by query: rank, score, and what the file says of them."""
    scores = np.asarray(list(scores))
    lines = []
    for own in data.queries:
        for rank, i in enumerate(own[np.argsort(-scores[own], kind="stable")].tolist(), 1):
            note = data.notes[i] or f"line {data.lines[i]}"
            lines.append(f"{data.qid[i]}\t{rank}\t{scores[i]:.9g}\t{note}\n")
    return "".join(lines)


def load_ohsumed(fold: int = 1, normalize: bool = True, folder: Path | None = None) -> tuple[RankingSet, RankingSet, RankingSet]:
    """OHSUMED, 106 queries with 25 features: (training, validation, test) part of fold 1 to 5.

    `folder`: where the corpora are, if not in PARTWISE_DATA.

    Parameters
    ----------
    fold : int
        1 to 5.
    normalize : bool
        Whether features are scaled within each query.
    folder : path, optional
        Where the corpora are, if not in PARTWISE_DATA.

    Examples
    --------
    >>> train, validation, test = load_ohsumed(fold=1)  # doctest: +SKIP
    """
    if fold not in range(1, SUBSETS + 1):
        raise ValueError(f"fold must be an int in the range [1, {SUBSETS}]. Got {fold!r} instead.")
    parts = []
    for subset in range(SUBSETS):
        file = f"ohsumed_letor/S{(fold - 1 + subset) % SUBSETS + 1}.txt.gz"
        parts.append(read_letor(data_folder(file) if folder is None else Path(folder, file), normalize))
    return together(parts[:3]), parts[3], parts[4]


def together(parts: list[RankingSet]) -> RankingSet:
    """Sets with the same features one after the other."""
    return RankingSet(
        np.concatenate([part.X for part in parts]),
        np.concatenate([part.relevance for part in parts]),
        np.concatenate([part.qid for part in parts]),
        [note for part in parts for note in part.notes],
        np.concatenate([part.lines for part in parts]),
        ", ".join(part.name for part in parts),
    )
