"""How good rankings of documents are: NDCG and mean average precision, query by query.

    DCG@k = sum_{p <= k} (2^relevance_p - 1) / log2(1 + p),    NDCG@k = DCG@k / (DCG@k of the best order)

Documents with one score have no order: the mean over all of them counts, so that a model which scores all documents alike gets
what chance would give, whatever the order of the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from partwise.tasks.common.error_ranking import average_precision


def ndcg_by_query(relevance: Any, scores: Any, groups: Any = None, k: int | None = 10) -> np.ndarray:
    """NDCG@k of each query, in the order in which queries are first met; nan where nothing is relevant. O(n log n).

    Parameters
    ----------
    relevance : array (documents,)
        Numbers >= 0.
    scores : array (documents,)
        The larger, the earlier.
    groups : array (documents,), optional
        The query of each document; one query for all by default. Documents of a query need not be neighbours.
    k : int, optional
        Positions that count; all of them if None.

    Examples
    --------
    >>> ndcg_by_query([1, 0, 2, 0, 0], [0.9, 0.1, 0.5, 0.7, 0.2], [1, 1, 2, 2, 2], k=2).round(3)
    array([1.   , 0.631])
    """
    relevance, scores, queries = _queries(relevance, scores, groups)
    if k is not None and not (isinstance(k, int | np.integer) and not isinstance(k, bool) and k >= 1):
        raise ValueError(f"k must be an int in the range [1, inf), or None. Got {k!r} instead.")
    return ndcg_at(relevance, scores, queries, [k])[:, 0]


def ndcg_at(relevance: np.ndarray, scores: np.ndarray, queries: list[np.ndarray], depths: Sequence[int | None]) -> np.ndarray:
    """(queries, depths) NDCG@k for each k of `depths`, in one pass; `queries`: the documents of each."""
    found = np.full((len(queries), len(depths)), np.nan)
    for q, own in enumerate(queries):
        gains, s, n = np.exp2(relevance[own]) - 1.0, scores[own], len(own)
        if not gains.any():
            continue
        discounts = 1.0 / np.log2(np.arange(2.0, n + 2.0))
        order = np.argsort(-s, kind="stable")
        run = np.concatenate([[0], np.cumsum(np.diff(s[order]) != 0)])  # documents that tie are one run
        expected = (np.bincount(run, gains[order]) / np.bincount(run))[run]
        reached, ideal = np.cumsum(expected * discounts), np.cumsum(np.sort(gains)[::-1] * discounts)
        last = [n - 1 if k is None else min(k, n) - 1 for k in depths]
        found[q] = reached[last] / ideal[last]
    return found


def ndcg(relevance: Any, scores: Any, groups: Any = None, k: int | None = 10, empty: float | None = None) -> float:
    """Mean NDCG@k over queries (see `ndcg_by_query`).

    A query without any relevant document has no NDCG. It is left out, unless `empty` says what it counts: 0 as in LETOR's own
    script, 1 as in some others. nan if no query is left.

    Parameters
    ----------
    relevance, scores : arrays (documents,)
    groups : array (documents,), optional
        The query of each; one query by default.
    k : int or None
        Positions that count.
    empty : float, optional
        What a query without relevant documents counts.

    Examples
    --------
    >>> round(ndcg([1, 0, 2, 0, 0], [0.9, 0.1, 0.5, 0.7, 0.2], [1, 1, 2, 2, 2], k=2), 3)
    0.815
    """
    return mean_over(ndcg_by_query(relevance, scores, groups, k), empty)


def mean_average_precision(
    relevance: Any, scores: Any, groups: Any = None, least: float = 1.0, empty: float | None = None
) -> float:
    """Mean over queries of the average precision of their relevant documents, those of relevance `least` or more.

    `empty` as in `ndcg`; ties as in `average_precision`.

    Parameters
    ----------
    relevance, scores : arrays (documents,)
    groups : array (documents,), optional
        The query of each; one query by default.
    least : float
        The relevance from which on a document is relevant.
    empty : float, optional
        What a query without relevant documents counts.

    Examples
    --------
    >>> mean_average_precision([1, 0, 2, 0, 0], [0.9, 0.1, 0.5, 0.7, 0.2], [1, 1, 2, 2, 2])
    0.75
    """
    return mean_over(average_precisions(*_queries(relevance, scores, groups), least), empty)


def average_precisions(relevance: np.ndarray, scores: np.ndarray, queries: list[np.ndarray], least: float = 1.0) -> np.ndarray:
    """(queries,) average precision of each; nan where nothing is relevant."""
    return np.array([average_precision(relevance[own] >= least, scores[own]) for own in queries])


def mean_over(values: np.ndarray, empty: float | None = None) -> float:
    """The mean over queries; of those that have no value, `empty`, or nothing."""
    values = values[~np.isnan(values)] if empty is None else np.where(np.isnan(values), empty, values)
    return float(values.mean()) if len(values) else float("nan")


def _queries(relevance: Any, scores: Any, groups: Any) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """Checked arrays, and the documents of each query."""
    relevance, scores = np.asarray(relevance, np.float64), np.asarray(scores, np.float64)
    groups = np.zeros(len(relevance), np.int64) if groups is None else np.asarray(groups)
    if relevance.ndim != 1 or relevance.shape != scores.shape or relevance.shape != groups.shape:
        shapes = f"{relevance.shape}, {scores.shape} and {groups.shape}"
        raise ValueError(f"relevance, scores and groups must be of one length. Got shapes {shapes}.")
    for name, values, fine in (("relevance", relevance, relevance >= 0), ("scores", scores, ~np.isnan(scores))):
        if not fine.all():
            at = int(np.argmin(fine))
            raise ValueError(f"{name} must not hold {values[at]:g}. Got it at {at}.")
    return relevance, scores, members_of(groups)


def members_of(groups: np.ndarray) -> list[np.ndarray]:
    """The documents of each query, in the order in which queries are first met."""
    if not len(groups):
        return []
    _, first, which = np.unique(groups, return_index=True, return_inverse=True)
    order = np.argsort(first[which.reshape(-1)], kind="stable")
    ends = np.cumsum(np.bincount(which.reshape(-1))[np.argsort(first, kind="stable")])
    return np.split(order, ends[:-1])
