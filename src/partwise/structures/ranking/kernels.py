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

import numpy as np

from partwise import kernels
from partwise.engine.compilation import helper
from partwise.engine.numerics import copy, fill
from partwise.features.rows import add_label, emit
from partwise.oracles.kbest_by_partition import kbest_by_partition
from partwise.structures.ranking.problem import PartialRankingProblem, RankingProblem

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
