"""Ranking the documents of a query: an output names the document that stands at each of the first k positions.

    s(y) = sum_p c_p w . x_{y_p},    F(x, y) = sum_p c_p x_{y_p},    l(y) = 1 - NDCG@k(y) = sum_p D_p (G*_p - G_{y_p}) / Z

Parts are (position, document): theta[p n + j] = c_p w . x_j. The weights of positions c fall, so that the best ranking sorts by
w . x_j. What stands below position k counts nothing: another constant there would change all scores alike. D are the discounts of
NDCG, 1 / log2(1 + position), G = 2^relevance - 1 the gains, G*_p the p-th largest one, and Z = sum_p D_p G*_p. Charged against
G*_p the cost has no constant term. Where nothing is relevant (Z = 0) all rankings cost nothing.

Documents of one relevance tie, so that many rankings are ideal. `RankingProblem` measures margins against one of them (convex);
`PartialRankingProblem` accepts them all, and its reference is the ideal ranking that the model likes best (Do et al. 2008,
section 3).

The best ranking under a cost is a linear assignment of documents to positions (Le and Smola): shortest augmenting paths
(Jonker and Volgenant) over the k best documents for each position, of which there are at most k^2. No others are needed: of k
documents one is left over by the other positions. O(k n + k^2 min(n, k^2)) time, O(k^2 + n) memory.

There is no tractable sum over rankings (it is a permanent), so no `expected`: losses that need it are refused.

References
----------
O. Chapelle, Q. Le, A. Smola (2007). Large margin optimization of ranking measures. NIPS workshop on web search.
C. B. Do, Q. Le, C. H. Teo, O. Chapelle, A. Smola (2008). Tighter bounds for structured estimation. NIPS.
R. Jonker, A. Volgenant (1987). A shortest augmenting path algorithm for dense and sparse linear assignment. Computing 38.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

from partwise import kernels
from partwise.engine.compilation import helper
from partwise.engine.numerics import copy, fill
from partwise.features.rows import add_label, emit, make_rows, n_rows
from partwise.features.taken_rows import take_rows
from partwise.oracles.kbest_by_partition import kbest_by_partition

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


def position_weights(kind: Any, k: int) -> np.ndarray:
    """Weights c of the first k positions: "log" is 1 / log2(1 + position), "reciprocal" 1 / position, "linear" falls to 1 / k.

    Numbers are taken as they are: at least k of them, positive and not rising.
    """
    place = np.arange(1.0, k + 1.0)
    if isinstance(kind, str) and kind in POSITIONS:
        return {"log": 1.0 / np.log2(1.0 + place), "reciprocal": 1.0 / place, "linear": (k + 1.0 - place) / k}[kind]
    c = np.zeros(0) if isinstance(kind, str) else np.asarray(kind, np.float64)
    if c.ndim != 1 or len(c) < k or not np.isfinite(c).all() or (c <= 0).any() or (np.diff(c) > 0).any():
        raise ValueError(
            f"The weights of positions must be one of {', '.join(map(repr, POSITIONS))}, or at least k = {k} positive numbers "
            f"that do not rise. Got {kind!r} instead."
        )
    return np.ascontiguousarray(c[:k])


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
    discounts = position_weights("log", k)
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
        position_weights(positions, k),
        discounts,
    )


# ---------------------------------------------------------------------------------------------------------------------
# Sizes
# ---------------------------------------------------------------------------------------------------------------------


@kernels.n_examples.implements(RankingProblem)
def n_examples(problem):
    return problem.starts.size - 1


@kernels.n_weights.implements(RankingProblem)
def n_weights(problem):
    return problem.rows.n_features


@kernels.n_parts.implements(RankingProblem)
def n_parts(problem, i):
    return length(problem, i) * n_documents(problem, i)


@kernels.length.implements(RankingProblem)
def length(problem, i):
    return problem.places[i + 1] - problem.places[i]


@helper
def n_documents(problem, i):
    """How many documents query i has."""
    return problem.starts[i + 1] - problem.starts[i]


@kernels.target.implements(RankingProblem)
def target(problem, i):
    return problem.targets[problem.places[i] : problem.places[i + 1]]


@kernels.truth.implements(RankingProblem)
def truth(problem, i, y):
    copy(problem.gold[problem.places[i] : problem.places[i + 1]], y)


# ---------------------------------------------------------------------------------------------------------------------
# Scores and costs
# ---------------------------------------------------------------------------------------------------------------------


@kernels.score.implements(RankingProblem)
def score(problem, i, w, theta):
    k, n, start, c = length(problem, i), n_documents(problem, i), problem.starts[i], problem.scores
    s = theta[:n] if k else np.zeros(n, theta.dtype)
    fill(s, 0.0)
    for j in range(n):
        emit(problem.rows, start + j, w, 1, s[j : j + 1])
    for p in range(k - 1, -1, -1):  # the first position last: its scores are what all others are made of
        out = theta[p * n : (p + 1) * n]
        for j in range(n):
            out[j] = c[p] * s[j]


@kernels.add_cost.implements(RankingProblem)
def add_cost(problem, i, c, theta):
    k, n = length(problem, i), n_documents(problem, i)
    gains, ideal = problem.gains[problem.starts[i] : problem.starts[i + 1]], problem.ideal[problem.places[i] :]
    for p in range(k):
        out, weight, most = theta[p * n : (p + 1) * n], c * problem.discounts[p], ideal[p]
        for j in range(n):
            out[j] += weight * (most - gains[j])


@kernels.cost.implements(RankingProblem)
def cost(problem, i, y):
    gains, ideal, total = problem.gains[problem.starts[i] :], problem.ideal[problem.places[i] :], 0.0
    for p in range(len(y)):
        total += problem.discounts[p] * (ideal[p] - gains[y[p]])
    return max(total, 0.0)


@kernels.value_of.implements(RankingProblem)
def value_of(problem, i, theta, y):
    n, total = n_documents(problem, i), 0.0
    for p in range(len(y)):
        total += theta[p * n + y[p]]
    return total


@kernels.restrict.implements(PartialRankingProblem)
def restrict(problem, i, theta):
    """An ideal ranking has a document of the ideal gain at each position."""
    k, n = length(problem, i), n_documents(problem, i)
    gains, ideal = problem.gains[problem.starts[i] :], problem.ideal[problem.places[i] :]
    for p in range(k):
        for j in range(n):
            if gains[j] != ideal[p]:
                theta[p * n + j] = -np.inf


# ---------------------------------------------------------------------------------------------------------------------
# Oracles
# ---------------------------------------------------------------------------------------------------------------------


@helper
def candidates(theta, k, n):
    """The documents that are among the k best for some position, and how many they are."""
    found, wanted = np.empty(min(n, k * k), np.int64), np.zeros(n, np.bool_)
    top = np.empty(k, np.int64)
    for p in range(k):
        own = theta[p * n : (p + 1) * n]
        size = 0
        for j in range(n):
            if size < k:
                size += 1
            elif not own[j] > own[top[k - 1]]:
                continue
            at = size - 1
            while at > 0 and own[top[at - 1]] < own[j]:
                top[at] = top[at - 1]
                at -= 1
            top[at] = j
        for at in range(size):
            wanted[top[at]] = True
    m = 0
    for j in range(n):
        if wanted[j]:
            found[m] = j
            m += 1
    return found, m


@kernels.best.implements(RankingProblem)
def best(problem, i, theta, y):
    """A shortest augmenting path for each position; u and v keep all reduced lengths u_p + v_j - theta_pj >= 0."""
    k, n = len(y), n_documents(problem, i)
    documents, m = candidates(theta, k, n)
    u, v = np.zeros(k), np.zeros(m + 1)  # column m stands for the position that is to be placed
    holder, before = np.full(m + 1, -1, np.int64), np.empty(m + 1, np.int64)
    near, done = np.empty(m), np.empty(m + 1, np.bool_)
    for p in range(k):
        fill(near, np.inf)
        fill(done, False)
        holder[m] = p
        j = m
        while holder[j] >= 0:
            done[j] = True
            q, step, nearest = holder[j], np.inf, -1
            own = theta[q * n : (q + 1) * n]
            for other in range(m):
                if not done[other]:
                    path = u[q] + v[other] - own[documents[other]]
                    if path < near[other]:
                        near[other], before[other] = path, j
                    if near[other] < step:
                        step, nearest = near[other], other
            if nearest < 0:
                return -np.inf
            for other in range(m + 1):
                if done[other]:
                    u[holder[other]] -= step
                    v[other] += step
                elif other < m:
                    near[other] -= step
            j = nearest
        while j != m:
            holder[j] = holder[before[j]]
            j = before[j]
    for j in range(m):
        if holder[j] >= 0:
            y[holder[j]] = documents[j]
    return value_of(problem, i, theta, y)


@kernels.kbest.implements(RankingProblem)
def kbest(problem, i, theta, ys, values):
    return kbest_by_partition(problem, i, theta, ys, values)


@kernels.hold.implements(RankingProblem)
def hold(problem, i, theta, t, code, far):
    n = n_documents(problem, i)
    value = theta[t * n + code]
    fill(theta[t * n : (t + 1) * n], -np.inf)
    theta[t * n + code] = value


@kernels.forbid.implements(RankingProblem)
def forbid(problem, i, theta, t, code, far):
    theta[t * n_documents(problem, i) + code] = -np.inf


@kernels.outputs.implements(RankingProblem)
def outputs(problem, i):
    for y in itertools.permutations(range(n_documents(problem, i)), int(length(problem, i))):
        yield np.array(y, np.int32)


@kernels.take.implements(RankingProblem)
def take(problem, which):
    def members(starts):
        return np.concatenate([np.zeros(0, np.int64), *(np.arange(starts[i], starts[i + 1]) for i in which)])

    documents, positions = members(problem.starts), members(problem.places)
    return problem._replace(
        rows=take_rows(problem.rows, documents),
        starts=np.concatenate([[0], np.cumsum(np.diff(problem.starts)[which])]),
        places=np.concatenate([[0], np.cumsum(np.diff(problem.places)[which])]),
        gains=problem.gains[documents],
        ideal=problem.ideal[positions],
        gold=problem.gold[positions],
        targets=problem.targets[positions],
    )


@kernels.with_targets.implements(PartialRankingProblem)
def with_targets(problem, targets):
    return RankingProblem(*problem)._replace(targets=targets)


# ---------------------------------------------------------------------------------------------------------------------
# Features
# ---------------------------------------------------------------------------------------------------------------------


@kernels.indicate.implements(RankingProblem)
def indicate(problem, i, y, c, parts):
    n = n_documents(problem, i)
    for p in range(len(y)):
        parts[p * n + y[p]] += c


@kernels.add_features.implements(RankingProblem)
def add_features(problem, i, y, c, into):
    for p in range(len(y)):
        add_label(problem.rows, problem.starts[i] + y[p], 1, 0, c * problem.scores[p], into)


@kernels.add_parts.implements(RankingProblem)
def add_parts(problem, i, parts, c, into):
    n = n_documents(problem, i)
    for j in range(n):
        total = 0.0
        for p in range(length(problem, i)):
            total += problem.scores[p] * parts[p * n + j]
        if total != 0.0:
            add_label(problem.rows, problem.starts[i] + j, 1, 0, c * total, into)


@kernels.difference.implements(RankingProblem)
def difference(problem, i, t, y, c, into):
    start = problem.starts[i]
    for p in range(len(y)):
        if t[p] != y[p]:
            add_label(problem.rows, start + t[p], 1, 0, c * problem.scores[p], into)
            add_label(problem.rows, start + y[p], 1, 0, -c * problem.scores[p], into)
