"""Ranking by pairs: an example is a pair of documents of one query, an output says which of the two comes first.

    s(0) = w . (x_a - x_b),    s(1) = 0,    l(1) = 1,    where document a is the more relevant one

With the hinge it is the ranking SVM (Herbrich et al. 2000, Joachims 2002), with crf pairwise logistic regression (RankNet with a
linear net). Pairs are numbers of two rows, differences are never stored: 8 bytes each. All oracles are O(1) once the two
documents are scored, O(nnz).

References
----------
R. Herbrich, T. Graepel, K. Obermayer (2000). Large margin rank boundaries for ordinal regression.
T. Joachims (2002). Optimizing search engines using clickthrough data. KDD.
"""

from __future__ import annotations

import numpy as np

from partwise import kernels
from partwise.engine.compilation import helper
from partwise.features.rows import add_label, emit
from partwise.structures.ranking.problem import PairProblem

SWAP = 1  # the wrong order


@helper
def advantage(problem, i, w):
    """w . (x_a - x_b)."""
    s = np.zeros(2, w.dtype)
    emit(problem.rows, problem.first[i], w, 1, s[:1])
    emit(problem.rows, problem.second[i], w, 1, s[1:])
    return s[0] - s[1]


@kernels.n_examples.implements(PairProblem)
def n_examples(problem):
    return problem.first.size


@kernels.n_weights.implements(PairProblem)
def n_weights(problem):
    return problem.rows.n_features


@kernels.n_parts.implements(PairProblem)
def n_parts(problem, i):
    return 2


@kernels.length.implements(PairProblem)
def length(problem, i):
    return 1


@kernels.target.implements(PairProblem)
def target(problem, i):
    return problem.targets[i : i + 1]


@kernels.truth.implements(PairProblem)
def truth(problem, i, y):
    y[0] = 0


@kernels.score.implements(PairProblem)
def score(problem, i, w, theta):
    theta[0], theta[SWAP] = advantage(problem, i, w), 0.0


@kernels.add_cost.implements(PairProblem)
def add_cost(problem, i, c, theta):
    theta[SWAP] += c


@kernels.value_of.implements(PairProblem)
def value_of(problem, i, theta, y):
    return theta[y[0]]


@kernels.cost.implements(PairProblem)
def cost(problem, i, y):
    return float(y[0])


@kernels.best.implements(PairProblem)
def best(problem, i, theta, y):
    y[0] = SWAP if theta[SWAP] > theta[0] else 0
    return theta[y[0]]


@kernels.kbest.implements(PairProblem)
def kbest(problem, i, theta, ys, values):
    values[0] = best(problem, i, theta, ys[0])
    if len(values) == 1:
        return 1
    ys[1, 0] = 1 - ys[0, 0]
    values[1] = theta[ys[1, 0]]
    return 2


@kernels.expected.implements(PairProblem)
def expected(problem, i, theta, parts):
    high, low = max(theta[0], theta[SWAP]), min(theta[0], theta[SWAP])
    rest = np.log1p(np.exp(low - high))
    parts[0], parts[SWAP] = np.exp(theta[0] - high - rest), np.exp(theta[SWAP] - high - rest)
    return high + rest


@kernels.agreement.implements(PairProblem)
def agreement(problem, i, parts, given):
    given[0] = parts[0]


@kernels.outputs.implements(PairProblem)
def outputs(problem, i):
    yield np.array([0], np.int32)
    yield np.array([SWAP], np.int32)


@kernels.take.implements(PairProblem)
def take(problem, which):
    return problem._replace(first=problem.first[which], second=problem.second[which], targets=problem.targets[which])


@kernels.indicate.implements(PairProblem)
def indicate(problem, i, y, c, parts):
    parts[y[0]] += c


@kernels.add_parts.implements(PairProblem)
def add_parts(problem, i, parts, c, into):
    if parts[0] != 0.0:
        add_label(problem.rows, problem.first[i], 1, 0, c * parts[0], into)
        add_label(problem.rows, problem.second[i], 1, 0, -c * parts[0], into)


@kernels.add_features.implements(PairProblem)
def add_features(problem, i, y, c, into):
    if y[0] == 0:
        add_label(problem.rows, problem.first[i], 1, 0, c, into)
        add_label(problem.rows, problem.second[i], 1, 0, -c, into)


@kernels.difference.implements(PairProblem)
def difference(problem, i, t, y, c, into):
    if t[0] != y[0]:
        sign = c if t[0] == 0 else -c
        add_label(problem.rows, problem.first[i], 1, 0, sign, into)
        add_label(problem.rows, problem.second[i], 1, 0, -sign, into)


@kernels.margin.implements(PairProblem)
def margin(problem, i, w, t, y, scratch):
    return float(y[0] - t[0]) * advantage(problem, i, w)
