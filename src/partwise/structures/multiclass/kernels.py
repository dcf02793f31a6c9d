"""Multiclass classification: an output is one class; its only part is that class.

    F(x, y) = x (x) e_y,    s(y) = x . W[:, y],    l(y) = costs[gold, y]

All oracles are O(K) once the K scores are known; scoring is O(nnz(x) K).

The truth of an example may be a set of candidate classes. Then gold is K + k for the k-th set, and costs have a row for it.
"""

from __future__ import annotations

import numpy as np

from partwise import kernels
from partwise.features.rows import add_label, add_labels, add_row, emit, emit_difference, row_norm, take_rows
from partwise.structures.multiclass.problem import MulticlassProblem, PartialMulticlassProblem


@kernels.n_examples.implements(MulticlassProblem)
def n_examples(problem):
    return problem.gold.size


@kernels.n_weights.implements(MulticlassProblem)
def n_weights(problem):
    return problem.rows.n_features * problem.n_classes


@kernels.width.implements(MulticlassProblem)
def width(problem):
    return problem.n_classes


@kernels.n_parts.implements(MulticlassProblem)
def n_parts(problem, i):
    return problem.n_classes


@kernels.length.implements(MulticlassProblem)
def length(problem, i):
    return 1


@kernels.target.implements(MulticlassProblem)
def target(problem, i):
    return problem.targets[i : i + 1]


@kernels.score.implements(MulticlassProblem)
def score(problem, i, w, theta):
    theta[: problem.n_classes] = 0.0
    emit(problem.rows, i, w, problem.n_classes, theta)
    if problem.allowed.size:
        for k in range(problem.n_classes):
            if not problem.sets[problem.allowed[i], k]:
                theta[k] = -np.inf


@kernels.add_cost.implements(MulticlassProblem)
def add_cost(problem, i, c, theta):
    for k in range(problem.n_classes):
        theta[k] += c * problem.costs[problem.gold[i], k]


@kernels.value_of.implements(MulticlassProblem)
def value_of(problem, i, theta, y):
    return theta[y[0]]


@kernels.cost.implements(MulticlassProblem)
def cost(problem, i, y):
    return problem.costs[problem.gold[i], y[0]]


@kernels.best.implements(MulticlassProblem)
def best(problem, i, theta, y):
    y[0] = 0
    for k in range(1, problem.n_classes):
        if theta[k] > theta[y[0]]:
            y[0] = k
    return theta[y[0]]


@kernels.kbest.implements(MulticlassProblem)
def kbest(problem, i, theta, ys, values):
    found = 0
    for k in range(problem.n_classes):
        if theta[k] == -np.inf or (found == len(values) and theta[k] <= values[found - 1]):
            continue
        j = min(found, len(values) - 1)
        while j > 0 and values[j - 1] < theta[k]:
            values[j] = values[j - 1]
            ys[j, 0] = ys[j - 1, 0]
            j -= 1
        values[j] = theta[k]
        ys[j, 0] = k
        found = min(found + 1, len(values))
    return found


@kernels.n_costs.implements(MulticlassProblem)
def n_costs(problem, i):
    return problem.n_classes


@kernels.best_at_costs.implements(MulticlassProblem)
def best_at_costs(problem, i, theta, ys, values, costs):
    """Every class that is allowed: O(K)."""
    found = 0
    for k in range(problem.n_classes):
        if theta[k] > -np.inf:
            ys[found, 0], values[found], costs[found] = k, theta[k], problem.costs[problem.gold[i], k]
            found += 1
    return found


@kernels.n_outputs.implements(MulticlassProblem)
def n_outputs(problem, i):
    return problem.n_classes


@kernels.all_outputs.implements(MulticlassProblem)
def all_outputs(problem, i, ys):
    found = 0
    for k in range(problem.n_classes):
        if not problem.allowed.size or problem.sets[problem.allowed[i], k]:
            ys[found, 0] = k
            found += 1
    return found


@kernels.counts_costs.implements(MulticlassProblem)
def counts_costs(problem, i):
    return True


@kernels.expected.implements(MulticlassProblem)
def expected(problem, i, theta, parts):
    highest = -np.inf
    for k in range(problem.n_classes):
        highest = max(highest, float(theta[k]))
    parts[: problem.n_classes] = 0.0
    if highest == -np.inf:
        return highest
    total = 0.0
    for k in range(problem.n_classes):
        parts[k] = np.exp(theta[k] - highest)
        total += parts[k]
    for k in range(problem.n_classes):
        parts[k] /= total
    return highest + np.log(total)


@kernels.max_marginals.implements(MulticlassProblem)
def max_marginals(problem, i, theta, parts):
    highest = -np.inf
    for k in range(problem.n_classes):
        parts[k] = theta[k]
        highest = max(highest, float(theta[k]))
    return highest


@kernels.truth.implements(MulticlassProblem)
def truth(problem, i, y):
    y[0] = problem.gold[i]


@kernels.n_values.implements(MulticlassProblem)
def n_values(problem):
    return problem.n_classes


@kernels.n_values.implements(PartialMulticlassProblem)
def n_values_of_sets(problem):
    return 0


@kernels.agreement.implements(MulticlassProblem)
def agreement(problem, i, parts, given):
    truth = problem.gold[i]
    if truth < problem.n_classes:
        given[0] = parts[truth]
        return
    given[0] = 0.0
    for k in range(problem.n_classes):
        if problem.known[truth - problem.n_classes, k]:
            given[0] += parts[k]


@kernels.is_labelled.implements(PartialMulticlassProblem)
def is_labelled(problem, i):
    return problem.gold[i] < problem.n_classes


@kernels.restrict.implements(PartialMulticlassProblem)
def restrict(problem, i, theta):
    fine = problem.known[problem.gold[i] - problem.n_classes]
    for k in range(problem.n_classes):
        if not fine[k]:
            theta[k] = -np.inf


@kernels.with_targets.implements(PartialMulticlassProblem)
def with_targets(problem, targets):
    return MulticlassProblem(*problem)._replace(targets=targets)


@kernels.take.implements(MulticlassProblem)
def take(problem, which):
    gold = problem.gold[which]
    kind = PartialMulticlassProblem if gold.max(initial=-1) >= problem.n_classes else MulticlassProblem
    return kind(*problem)._replace(
        rows=take_rows(problem.rows, which),
        gold=gold,
        targets=problem.targets[which],
        allowed=problem.allowed[which] if problem.allowed.size else problem.allowed,
    )


@kernels.outputs.implements(MulticlassProblem)
def outputs(problem, i):
    for k in range(problem.n_classes):
        yield np.array([k], np.int32)


@kernels.indicate.implements(MulticlassProblem)
def indicate(problem, i, y, c, parts):
    parts[y[0]] += c


@kernels.add_features.implements(MulticlassProblem)
def add_features(problem, i, y, c, into):
    add_label(problem.rows, i, problem.n_classes, y[0], c, into)


@kernels.add_parts.implements(MulticlassProblem)
def add_parts(problem, i, parts, c, into):
    add_row(problem.rows, i, problem.n_classes, parts, c, into)


@kernels.difference.implements(MulticlassProblem)
def difference(problem, i, t, y, c, into):
    if t[0] != y[0]:
        add_labels(problem.rows, i, problem.n_classes, t[0], y[0], c, into)


@kernels.move_mass.implements(MulticlassProblem)
def move_mass(problem, i, ys, changes, n, c, into):
    first, second, moved = 0, 0, 0
    for k in range(n):
        if changes[k] != 0.0:
            first, second, moved = second, k, moved + 1
    if moved == 2:
        add_labels(problem.rows, i, problem.n_classes, ys[first, 0], ys[second, 0], c * changes[second], into)
    elif moved > 2:  # one pass over the features for all of them
        parts = np.zeros(problem.n_classes)
        for k in range(n):
            parts[ys[k, 0]] = changes[k]
        add_row(problem.rows, i, problem.n_classes, parts, -c, into)


@kernels.margin.implements(MulticlassProblem)
def margin(problem, i, w, t, y, scratch):
    if t[0] == y[0]:
        return 0.0
    return emit_difference(problem.rows, i, w, problem.n_classes, t[0], y[0])


@kernels.margins.implements(MulticlassProblem)
def margins(problem, i, w, t, ys, n, values, scratch):
    rows, a = problem.rows, t[0]
    if n <= 3:  # t is usually one of them: two or fewer differences
        for k in range(n):
            values[k] = 0.0 if ys[k, 0] == a else emit_difference(rows, i, w, problem.n_classes, a, ys[k, 0])
        return
    theta = np.zeros(problem.n_classes, w.dtype)
    emit(rows, i, w, problem.n_classes, theta)
    for k in range(n):
        values[k] = theta[a] - theta[ys[k, 0]]


@kernels.products.implements(MulticlassProblem)
def products(problem, i, t, y, ys, n, values, scratch, second):
    norm = 0.0 if y[0] == t[0] else row_norm(problem.rows, i)
    for k in range(n):
        values[k] = 0.0 if ys[k, 0] == t[0] else 2.0 * norm if ys[k, 0] == y[0] else norm


@kernels.gram.implements(MulticlassProblem)
def gram(problem, i, t, ys, n, products, scratch, second):
    norm = row_norm(problem.rows, i)
    for j in range(n):
        for k in range(n):
            if ys[j, 0] == t[0] or ys[k, 0] == t[0]:
                products[j, k] = 0.0
            elif ys[j, 0] == ys[k, 0]:
                products[j, k] = 2.0 * norm
            else:
                products[j, k] = norm
