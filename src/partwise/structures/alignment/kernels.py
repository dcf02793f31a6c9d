"""Pairwise alignments: an output says which places of two sequences stand opposite each other, in order.

    s(y) = sum of match(i, j) over pairs + sum of open, extend over the places opposite gaps

Gaps are affine: the first place of a gap and the further ones have scores of their own, and so have gaps at the ends. Alignments
are global, or local: then the ends of both sequences may be left out. Parts and outputs: `problem`.

Cost: what each place of the first sequence whose partner is known loses if it gets another or none, and each wrong pair
(`problem.alignment_problem`): 1 - recall, weighed against precision. Where it is not known what some places are aligned
with, say outside core blocks, any alignment of them is right (`PartialAlignmentProblem`).

Cost of an oracle: O(n m) time and memory (`best`, `sums`); of anything else O(n + m).
"""

from __future__ import annotations

import itertools

import numpy as np

from partwise import kernels
from partwise.engine.numerics import fill
from partwise.structures.alignment.best import best_path, best_paths
from partwise.structures.alignment.pair_tables import add_all_parts, add_part, part_scores
from partwise.structures.alignment.problem import (
    GAP,
    MATCHED,
    UNKNOWN,
    AlignmentProblem,
    PartialAlignmentProblem,
    gap_kinds,
)
from partwise.structures.alignment.sums import sum_over_paths

# ---------------------------------------------------------------------------------------------------------------------
# Sizes
# ---------------------------------------------------------------------------------------------------------------------


@kernels.n_examples.implements(AlignmentProblem)
def n_examples(problem):
    return problem.starts.size - 1


@kernels.n_weights.implements(AlignmentProblem)
def n_weights(problem):
    return problem.rows.n_features


@kernels.n_parts.implements(AlignmentProblem)
def n_parts(problem, i):
    return problem.firsts[i + 1] - problem.firsts[i]


@kernels.length.implements(AlignmentProblem)
def length(problem, i):
    return problem.starts[i + 1] - problem.starts[i]


@kernels.target.implements(AlignmentProblem)
def target(problem, i):
    return problem.targets[problem.starts[i] : problem.starts[i + 1]]


# ---------------------------------------------------------------------------------------------------------------------
# Scores and oracles
# ---------------------------------------------------------------------------------------------------------------------


@kernels.score.implements(AlignmentProblem)
def score(problem, i, w, theta):
    n, m = length(problem, i), problem.others[i + 1] - problem.others[i]
    part_scores(problem.rows, i, problem.firsts[i], n, m, w, theta)
    if problem.allowed.size:
        allowed = problem.allowed[problem.firsts[i] : problem.firsts[i + 1]]
        for k in range(len(allowed)):
            if not allowed[k]:
                theta[k] = -np.inf


@kernels.add_cost.implements(AlignmentProblem)
def add_cost(problem, i, c, theta):
    n, m, start = length(problem, i), problem.others[i + 1] - problem.others[i], problem.starts[i]
    for k in range(n):
        miss, wrong, partner = problem.miss[start + k], problem.wrong[start + k], problem.gold[start + k]
        if miss == 0.0 and wrong == 0.0:
            continue
        scores = theta[k * m : (k + 1) * m]
        right = scores[partner] if partner >= 0 else theta[0]
        for j in range(m):
            scores[j] += c * (miss + wrong)
        if partner >= 0:
            scores[partner] = right
        for kind in range(4):
            theta[n * m + kind * n + k] += c * miss


@kernels.value_of.implements(AlignmentProblem)
def value_of(problem, i, theta, y):
    n, m = len(y), problem.others[i + 1] - problem.others[i]
    of_x, of_y, total = np.empty(n, np.int8), np.empty(m, np.int8), 0.0
    gap_kinds(y, m, problem.local, of_x, of_y)
    for k in range(n):
        total += theta[k * m + y[k]] if of_x[k] == MATCHED else theta[n * m + of_x[k] * n + k]
    for j in range(m):
        if of_y[j] != MATCHED:
            total += theta[n * m + 4 * n + of_y[j] * m + j]
    return total


@kernels.cost.implements(AlignmentProblem)
def cost(problem, i, y):
    start, total = problem.starts[i], 0.0
    for k in range(len(y)):
        if y[k] != problem.gold[start + k]:
            total += problem.miss[start + k]
            if y[k] >= 0:
                total += problem.wrong[start + k]
    return total


@kernels.truth.implements(AlignmentProblem)
def truth(problem, i, y):
    for k in range(len(y)):
        y[k] = problem.gold[problem.starts[i] + k]


@kernels.best.implements(AlignmentProblem)
def best(problem, i, theta, y):
    return best_path(theta, length(problem, i), problem.others[i + 1] - problem.others[i], problem.local, y)


@kernels.kbest.implements(AlignmentProblem)
def kbest(problem, i, theta, ys, values):
    return best_paths(theta, length(problem, i), problem.others[i + 1] - problem.others[i], problem.local, ys, values)


@kernels.expected.implements(AlignmentProblem)
def expected(problem, i, theta, parts):
    return sum_over_paths(theta, length(problem, i), problem.others[i + 1] - problem.others[i], problem.local, parts)


@kernels.agreement.implements(AlignmentProblem)
def agreement(problem, i, parts, given):
    n, m, start = length(problem, i), problem.others[i + 1] - problem.others[i], problem.starts[i]
    for k in range(n):
        partner = problem.gold[start + k]
        if partner >= 0:
            given[k] = parts[k * m + partner]
        elif partner == UNKNOWN:
            given[k] = 1.0
        else:
            given[k] = 0.0
            for kind in range(4):
                given[k] += parts[n * m + kind * n + k]


@kernels.is_labelled.implements(PartialAlignmentProblem)
def is_labelled(problem, i):
    for k in range(problem.starts[i], problem.starts[i + 1]):
        if problem.gold[k] == UNKNOWN:
            return False
    return True


@kernels.restrict.implements(PartialAlignmentProblem)
def restrict(problem, i, theta):
    n, m, start = length(problem, i), problem.others[i + 1] - problem.others[i], problem.starts[i]
    for k in range(n):
        partner = problem.gold[start + k]
        if partner == UNKNOWN:
            continue
        scores = theta[k * m : (k + 1) * m]
        right = scores[partner] if partner >= 0 else theta[0]
        fill(scores, -np.inf)
        if partner >= 0:
            scores[partner] = right
            for kind in range(4):
                theta[n * m + kind * n + k] = -np.inf


@kernels.with_targets.implements(PartialAlignmentProblem)
def with_targets(problem, targets):
    return AlignmentProblem(*problem)._replace(targets=targets)


@kernels.outputs.implements(AlignmentProblem)
def outputs(problem, i):
    n, m = int(length(problem, i)), int(problem.others[i + 1] - problem.others[i])
    for size in range(min(n, m) + 1):
        for some in itertools.combinations(range(n), size):
            for others in itertools.combinations(range(m), size):
                y = np.full(n, GAP, np.int32)
                y[list(some)] = others
                yield y


# ---------------------------------------------------------------------------------------------------------------------
# Features
# ---------------------------------------------------------------------------------------------------------------------


@kernels.indicate.implements(AlignmentProblem)
def indicate(problem, i, y, c, parts):
    n, m = len(y), problem.others[i + 1] - problem.others[i]
    of_x, of_y = np.empty(n, np.int8), np.empty(m, np.int8)
    gap_kinds(y, m, problem.local, of_x, of_y)
    for k in range(n):
        parts[k * m + y[k] if of_x[k] == MATCHED else n * m + of_x[k] * n + k] += c
    for j in range(m):
        if of_y[j] != MATCHED:
            parts[n * m + 4 * n + of_y[j] * m + j] += c


@kernels.add_features.implements(AlignmentProblem)
def add_features(problem, i, y, c, into):
    n, m, first = len(y), problem.others[i + 1] - problem.others[i], problem.firsts[i]
    of_x, of_y = np.empty(n, np.int8), np.empty(m, np.int8)
    gap_kinds(y, m, problem.local, of_x, of_y)
    for k in range(n):
        part = k * m + y[k] if of_x[k] == MATCHED else n * m + of_x[k] * n + k
        add_part(problem.rows, i, first, n, m, part, c, into)
    for j in range(m):
        if of_y[j] != MATCHED:
            add_part(problem.rows, i, first, n, m, n * m + 4 * n + of_y[j] * m + j, c, into)


@kernels.add_parts.implements(AlignmentProblem)
def add_parts(problem, i, parts, c, into):
    n, m = length(problem, i), problem.others[i + 1] - problem.others[i]
    add_all_parts(problem.rows, i, problem.firsts[i], n, m, parts, c, into)


@kernels.difference.implements(AlignmentProblem)
def difference(problem, i, t, y, c, into):
    n, m, first = len(y), problem.others[i + 1] - problem.others[i], problem.firsts[i]
    t_x, t_y, of_x, of_y = np.empty(n, np.int8), np.empty(m, np.int8), np.empty(n, np.int8), np.empty(m, np.int8)
    gap_kinds(t, m, problem.local, t_x, t_y)
    gap_kinds(y, m, problem.local, of_x, of_y)
    for k in range(n):
        theirs = k * m + t[k] if t_x[k] == MATCHED else n * m + t_x[k] * n + k
        ours = k * m + y[k] if of_x[k] == MATCHED else n * m + of_x[k] * n + k
        if theirs != ours:
            add_part(problem.rows, i, first, n, m, theirs, c, into)
            add_part(problem.rows, i, first, n, m, ours, -c, into)
    for j in range(m):
        if t_y[j] != of_y[j]:
            if t_y[j] != MATCHED:
                add_part(problem.rows, i, first, n, m, n * m + 4 * n + t_y[j] * m + j, c, into)
            if of_y[j] != MATCHED:
                add_part(problem.rows, i, first, n, m, n * m + 4 * n + of_y[j] * m + j, -c, into)
