"""Queries packed one after the other: rankings of their documents, and pairs of documents.

An output of a query names the document at each of the first k positions, numbered within the query; that of a pair says which of
its two documents comes first.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

from partwise import kernels
from partwise.engine.ragged import taken
from partwise.features.rows import make_rows, n_rows, take_rows

POSITIONS = ("log", "reciprocal", "linear")


class RankingProblem(NamedTuple):
    """N packed queries."""

    rows: Any  #: feature rows, one per document, query after query
    starts: np.ndarray  #: (N + 1,) int64 offsets of documents
    places: np.ndarray  #: (N + 1,) int64 offsets of outputs: min(k, documents) positions each
    gains: np.ndarray  #: (documents,) 2^relevance - 1, divided by Z of the query; zero if nothing is relevant
    ideal: np.ndarray  #: (positions,) the largest of them, in order
    gold: np.ndarray  #: (positions,) int32 an ideal ranking: documents numbered within their query
    targets: np.ndarray  #: (positions,) int32 rankings that margins are measured against
    scores: np.ndarray  #: (k,) c
    discounts: np.ndarray  #: (k,) D


@kernels.partially_labelled
class PartialRankingProblem(RankingProblem):
    """The same where every ideal ranking is acceptable: a type of its own, because the objective is not convex."""


def position_weights(kind: Any, k: int, most: int | None = None) -> np.ndarray:
    """Weights c of the first k positions, or the first `most` of them.

    "log" is 1 / log2(1 + position), "reciprocal" 1 / position, "linear" falls to 1 / k.

    Numbers are taken as they are: at least k of them, positive and not rising.
    """
    place = np.arange(1.0, (k if most is None else min(k, most)) + 1.0)
    if isinstance(kind, str) and kind in POSITIONS:
        return {"log": 1.0 / np.log2(1.0 + place), "reciprocal": 1.0 / place, "linear": (k + 1.0 - place) / k}[kind]
    c = np.zeros(0) if isinstance(kind, str) else np.asarray(kind, np.float64)
    if c.ndim != 1 or len(c) < k or not np.isfinite(c).all() or (c <= 0).any() or (np.diff(c) > 0).any():
        raise ValueError(
            f"The weights of positions must be one of {', '.join(map(repr, POSITIONS))}, or at least k = {k} positive numbers "
            f"that do not rise. Got {kind!r} instead."
        )
    return np.ascontiguousarray(c[: len(place)])


def ranking_problem(x, lengths, relevance=None, k=10, positions="log", ties="any", dtype=np.float64) -> RankingProblem:
    """Pack queries.

    Parameters
    ----------
    x : array or sparse matrix (documents, features), or feature rows
        Documents, query after query.
    lengths : integers (N,)
        Documents of each query.
    relevance : array (documents,), optional
        Numbers >= 0, 0 for irrelevant; left out for prediction.
    k : int
        Positions that count.
    positions : str or array (k,)
        See `position_weights`.
    ties : {"any", "first"}
        Whether any ideal ranking is the truth (a PartialRankingProblem), or the one that leaves documents of one relevance in the
        order in which they are given.
    """
    rows = x if hasattr(x, "_fields") else make_rows(x, dtype)
    lengths = np.asarray(lengths, np.int64)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    if starts[-1] != n_rows(rows) or (lengths < 0).any():
        raise ValueError(f"Expected lengths that sum to the number of documents, {n_rows(rows)}. Got {starts[-1]}.")
    relevance = np.zeros(n_rows(rows)) if relevance is None else np.asarray(relevance, np.float64)
    if relevance.shape != (n_rows(rows),) or not (np.isfinite(relevance) & (relevance >= 0)).all():
        raise ValueError("Relevance must be one finite number >= 0 for each document.")
    longest = int(lengths.max(initial=1))  # k may be any number; no query has more positions than documents
    discounts = position_weights("log", k, longest)
    gains, ideal, gold = np.exp2(relevance) - 1.0, [], []
    for a, b in itertools.pairwise(starts.tolist()):
        order = np.argsort(-gains[a:b], kind="stable")[:k]
        best = gains[a:b][order]
        total = float(best @ discounts[: len(best)])
        gains[a:b] = gains[a:b] / total if total > 0.0 else 0.0
        gold.append(order)
        ideal.append(gains[a:b][order])
    places = np.concatenate([[0], np.cumsum(np.minimum(lengths, k))])
    first = np.concatenate([*gold, np.zeros(0)]).astype(np.int32)
    kind = PartialRankingProblem if ties == "any" else RankingProblem
    return kind(
        rows,
        starts,
        places.astype(np.int64),
        gains,
        np.concatenate([*ideal, np.zeros(0)]),
        first,
        first,
        position_weights(positions, k, longest),
        discounts,
    )


@kernels.take.implements(RankingProblem)
def take(problem, which):
    (starts, documents), (places, positions) = taken(problem.starts, which), taken(problem.places, which)
    return problem._replace(
        rows=take_rows(problem.rows, documents),
        starts=starts,
        places=places,
        gains=problem.gains[documents],
        ideal=problem.ideal[positions],
        gold=problem.gold[positions],
        targets=problem.targets[positions],
    )


# ---------------------------------------------------------------------------------------------------------------------
# Pairs
# ---------------------------------------------------------------------------------------------------------------------


class PairProblem(NamedTuple):
    """N pairs of documents."""

    rows: Any  #: feature rows, one per document
    first: np.ndarray  #: (N,) int32 the documents that should come first
    second: np.ndarray  #: (N,) int32 those that should not
    targets: np.ndarray  #: (N,) int32 orders that margins are measured against: 0 unless CCCP chose otherwise


def pair_problem(x, first, second, dtype=np.float64) -> PairProblem:
    """Pack pairs of documents, numbers of rows of `x`, of which the first should come before the second."""
    rows = x if hasattr(x, "_fields") else make_rows(x, dtype)
    first, second = np.asarray(first, np.int32), np.asarray(second, np.int32)
    return PairProblem(rows, first, second, np.zeros(len(first), np.int32))


def pairs_of(lengths: np.ndarray, relevance: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All pairs of documents of one query that differ in relevance: the better ones, the worse ones, and their queries."""
    first, second, query, start = [], [], [], 0
    for q, n in enumerate(np.asarray(lengths).tolist()):
        own = relevance[start : start + n]
        a, b = np.nonzero(own[:, None] > own[None, :])
        first.append(a + start)
        second.append(b + start)
        query.append(np.full(len(a), q))
        start += n
    none = np.zeros(0, np.int64)
    return np.concatenate([none, *first]), np.concatenate([none, *second]), np.concatenate([none, *query])
