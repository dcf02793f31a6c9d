"""Dependency trees: an output is one head, and one label of the arc from it, for every word.

    s(y) = sum_m x_{h(m) -> m} . W[:, label(m)],        the arcs h(m) -> m being a tree below the root

Trees may be non-projective (`spanning`) or projective (`projective`), with one word below the root or with several.
Which label an arc gets is decided arc by arc, so the oracles first take the best label of each arc, or the sum over its labels.
Parts: (arc, label), in that order; how arcs and outputs are written down: `problem`.

Cost: the number of words whose head is wrong; one whose head is right and whose label is not costs `label_cost`. Where the head
of a word is not known, or its label, any is right: then the acceptable outputs are a set (`PartialTreeProblem`).

Cost of an oracle: O(n^2 L) to reduce labels, and O(n^2) time for the best tree, O(n^3) for the best projective one and for sums.
"""

from __future__ import annotations

import itertools

import numpy as np

from partwise import kernels
from partwise.engine.accumulator import row
from partwise.engine.compilation import helper
from partwise.engine.numerics import copy, exp, fill
from partwise.features.rows import add_label, add_row, emit
from partwise.oracles.kbest_by_partition import kbest_by_partition
from partwise.structures.dependency.problem import (
    UNKNOWN,
    PartialTreeProblem,
    TreeProblem,
    cycle,
    is_projective,
)
from partwise.structures.dependency.projective import best_projective_tree, sum_over_projective_trees
from partwise.structures.dependency.spanning import best_tree, sum_over_trees

# ---------------------------------------------------------------------------------------------------------------------
# Sizes
# ---------------------------------------------------------------------------------------------------------------------


@kernels.n_examples.implements(TreeProblem)
def n_examples(problem):
    return problem.starts.size - 1


@kernels.n_weights.implements(TreeProblem)
def n_weights(problem):
    return problem.rows.n_features * problem.n_labels


@kernels.width.implements(TreeProblem)
def width(problem):
    return problem.n_labels


@kernels.n_parts.implements(TreeProblem)
def n_parts(problem, i):
    return (problem.arcs[i + 1] - problem.arcs[i]) * problem.n_labels


@kernels.length.implements(TreeProblem)
def length(problem, i):
    return problem.starts[i + 1] - problem.starts[i]


@kernels.target.implements(TreeProblem)
def target(problem, i):
    return problem.targets[problem.starts[i] : problem.starts[i + 1]]


# ---------------------------------------------------------------------------------------------------------------------
# Scores and oracles
# ---------------------------------------------------------------------------------------------------------------------


@helper
def may_be(problem, i, n, m, h):
    """Whether the arc h -> m is one that trees of example i may have."""
    return h != m and (problem.allowed.size == 0 or problem.allowed[problem.arcs[i] + (m - 1) * (n + 1) + h])


@kernels.score.implements(TreeProblem)
def score(problem, i, w, theta):
    L, n, first = problem.n_labels, length(problem, i), problem.arcs[i]
    for m in range(1, n + 1):
        for h in range(n + 1):
            arc = (m - 1) * (n + 1) + h
            out = row(theta, arc, L)
            if may_be(problem, i, n, m, h):
                fill(out, 0.0)
                emit(problem.rows, first + arc, w, L, out)
            else:
                fill(out, -np.inf)


@helper
def cost_of(problem, truth, h, label):
    """Cost of one word's answer."""
    L = problem.n_labels
    if truth == UNKNOWN:
        return 0.0
    if truth < 0:
        return 0.0 if h == -2 - truth else 1.0
    if h != truth // L:
        return 1.0
    return 0.0 if label == truth % L else problem.label_cost


@kernels.add_cost.implements(TreeProblem)
def add_cost(problem, i, c, theta):
    L, n, first = problem.n_labels, length(problem, i), problem.starts[i]
    for m in range(n):
        truth = problem.gold[first + m]
        for h in range(n + 1):
            out = row(theta, m * (n + 1) + h, L)
            for label in range(L):
                out[label] += c * cost_of(problem, truth, h, label)


@kernels.value_of.implements(TreeProblem)
def value_of(problem, i, theta, y):
    L, n, total = problem.n_labels, len(y), 0.0
    for m in range(n):
        total += theta[m * (n + 1) * L + y[m]]
    return total


@kernels.cost.implements(TreeProblem)
def cost(problem, i, y):
    L, total = problem.n_labels, 0.0
    for m in range(len(y)):
        total += cost_of(problem, problem.gold[problem.starts[i] + m], y[m] // L, y[m] % L)
    return total


@kernels.truth.implements(TreeProblem)
def truth(problem, i, y):
    for m in range(len(y)):
        y[m] = problem.gold[problem.starts[i] + m]


@helper
def best_of_labels(theta, n, L, scores, labels):
    """scores[m, h] = the score of the best label of each arc, and which that is (where there are several)."""
    for m in range(n):
        if L == 1:
            copy(row(theta, m, n + 1), scores[m])
            continue
        for h in range(n + 1):
            values, k = row(theta, m * (n + 1) + h, L), 0
            for label in range(1, L):
                if values[label] > values[k]:
                    k = label
            scores[m, h], labels[m, h] = values[k], k


@kernels.best.implements(TreeProblem)
def best(problem, i, theta, y):
    L, n = problem.n_labels, length(problem, i)
    scores, labels = np.empty((n, n + 1)), np.empty((n if L > 1 else 0, n + 1), np.int32)
    best_of_labels(theta, n, L, scores, labels)
    if problem.projective:
        value = best_projective_tree(scores, n, problem.single_root, y)
    else:
        value = best_tree(scores, n, problem.single_root, y)
    if value > -np.inf and L > 1:
        for m in range(n):
            y[m] = y[m] * L + labels[m, y[m]]
    return value


@kernels.kbest.implements(TreeProblem)
def kbest(problem, i, theta, ys, values):
    return kbest_by_partition(problem, i, theta, ys, values)


@kernels.hold.implements(TreeProblem)
def hold(problem, i, theta, t, code, far):
    size = (length(problem, i) + 1) * problem.n_labels
    value = theta[t * size + code]
    fill(theta[t * size : (t + 1) * size], -np.inf)
    theta[t * size + code] = value


@kernels.forbid.implements(TreeProblem)
def forbid(problem, i, theta, t, code, far):
    theta[t * (length(problem, i) + 1) * problem.n_labels + code] = -np.inf


@helper
def sums_of_labels(theta, n, L, scores):
    """scores[m, h] = log sum exp over the labels of each arc."""
    for m in range(n):
        if L == 1:
            copy(row(theta, m, n + 1), scores[m])
            continue
        for h in range(n + 1):
            values, top, total = row(theta, m * (n + 1) + h, L), -np.inf, 0.0
            for label in range(L):
                top = max(top, float(values[label]))
            if top > -np.inf:
                for label in range(L):
                    total += exp(values[label] - top)
                top += np.log(total)
            scores[m, h] = top


@helper
def share_among_labels(theta, scores, marginals, n, L, possible, parts):
    """parts = the probability of each arc times the share of each of its labels in `scores`; 0 if nothing is possible."""
    for m in range(n):
        if L == 1 and possible:
            copy(marginals[m], row(parts, m, n + 1))
            continue
        for h in range(n + 1):
            values, out = row(theta, m * (n + 1) + h, L), row(parts, m * (n + 1) + h, L)
            if marginals[m, h] > 0.0 and possible:
                for label in range(L):
                    out[label] = marginals[m, h] * exp(values[label] - scores[m, h])
            else:
                fill(out, 0.0)


@kernels.expected.implements(TreeProblem)
def expected(problem, i, theta, parts):
    L, n = problem.n_labels, length(problem, i)
    scores, marginals = np.empty((n, n + 1)), np.empty((n, n + 1))
    sums_of_labels(theta, n, L, scores)
    if problem.projective:
        log_z = sum_over_projective_trees(scores, n, problem.single_root, marginals)
    else:
        log_z = sum_over_trees(scores, n, problem.single_root, marginals)
    share_among_labels(theta, scores, marginals, n, L, log_z > -np.inf, parts)
    return log_z


@kernels.agreement.implements(TreeProblem)
def agreement(problem, i, parts, given):
    L, n, first = problem.n_labels, length(problem, i), problem.starts[i]
    for m in range(n):
        known = problem.gold[first + m]
        if known >= 0:
            given[m] = parts[m * (n + 1) * L + known]
        elif known == UNKNOWN:
            given[m] = 1.0
        else:
            given[m] = 0.0
            for label in range(L):
                given[m] += parts[(m * (n + 1) - 2 - known) * L + label]


@kernels.is_labelled.implements(PartialTreeProblem)
def is_labelled(problem, i):
    for k in range(problem.starts[i], problem.starts[i + 1]):
        if problem.gold[k] < 0:
            return False
    return True


@kernels.restrict.implements(PartialTreeProblem)
def restrict(problem, i, theta):
    L, n, first = problem.n_labels, length(problem, i), problem.starts[i]
    for m in range(n):
        known = problem.gold[first + m]
        if known >= 0:
            hold(problem, i, theta, m, known, 0.0)
        elif known < UNKNOWN:
            for h in range(n + 1):
                if h != -2 - known:
                    fill(row(theta, m * (n + 1) + h, L), -np.inf)


@kernels.with_targets.implements(PartialTreeProblem)
def with_targets(problem, targets):
    return TreeProblem(*problem)._replace(targets=targets)


@kernels.outputs.implements(TreeProblem)
def outputs(problem, i):
    L, n = problem.n_labels, int(length(problem, i))
    for heads in itertools.product(range(n + 1), repeat=n):
        if any(h == m + 1 for m, h in enumerate(heads)) or cycle(np.array(heads, int)):
            continue
        if n and problem.single_root and heads.count(0) != 1:
            continue
        if problem.projective and not is_projective(heads):
            continue
        for labels in itertools.product(range(L), repeat=n):
            yield np.array([h * L + label for h, label in zip(heads, labels, strict=True)], np.int32)


# ---------------------------------------------------------------------------------------------------------------------
# Features
# ---------------------------------------------------------------------------------------------------------------------


@kernels.indicate.implements(TreeProblem)
def indicate(problem, i, y, c, parts):
    L, n = problem.n_labels, len(y)
    for m in range(n):
        parts[m * (n + 1) * L + y[m]] += c


@kernels.add_features.implements(TreeProblem)
def add_features(problem, i, y, c, into):
    L, n, first = problem.n_labels, len(y), problem.arcs[i]
    for m in range(n):
        add_label(problem.rows, first + m * (n + 1) + y[m] // L, L, y[m] % L, c, into)


@kernels.add_parts.implements(TreeProblem)
def add_parts(problem, i, parts, c, into):
    L, n, first = problem.n_labels, length(problem, i), problem.arcs[i]
    for arc in range(n * (n + 1)):
        p, used = row(parts, arc, L), False
        for label in range(L):
            used = used or p[label] != 0.0
        if used:
            add_row(problem.rows, first + arc, L, p, c, into)


@kernels.difference.implements(TreeProblem)
def difference(problem, i, t, y, c, into):
    L, n, first = problem.n_labels, len(y), problem.arcs[i]
    for m in range(n):
        if t[m] != y[m]:
            add_label(problem.rows, first + m * (n + 1) + t[m] // L, L, t[m] % L, c, into)
            add_label(problem.rows, first + m * (n + 1) + y[m] // L, L, y[m] % L, -c, into)
