"""Multiclass classification: an output is one class; its only part is that class.

    F(x, y) = x (x) e_y,    s(y) = x . W[:, y],    l(y) = costs[gold, y]

All oracles are O(K) once the K scores are known; scoring is O(nnz(x) K).

The truth of an example may be a set of candidate classes. Then gold is K + k for the k-th set, and costs have a row for it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from partwise import kernels
from partwise.engine.numerics import copy
from partwise.features.rows import add_label, add_labels, add_row, emit, emit_difference, make_rows, n_rows, row_norm
from partwise.features.taken_rows import take_rows


class MulticlassProblem(NamedTuple):
    """N packed examples of a K-class problem."""

    rows: Any  #: feature rows, one per example
    gold: np.ndarray  #: (N,) int32 true classes, or K + the row of `known`: one of several
    targets: np.ndarray  #: (N,) int32 classes that margins are measured against
    costs: np.ndarray  #: (K + sets, K) cost of answering column for row, one row for every value of `gold`
    allowed: np.ndarray  #: (N,) int32 row of `sets`, or empty: everything is allowed
    sets: np.ndarray  #: (sets, K) bool
    n_classes: int
    known: np.ndarray  #: (sets, K) bool: acceptable classes, what `gold` above K refers to


@kernels.partially_labelled
class PartialMulticlassProblem(MulticlassProblem):
    """The same where some example has several acceptable classes: a type of its own, so that full labels pay nothing for it."""


def multiclass_problem(x, gold=None, n_classes=None, costs=None, allowed=None, dtype=np.float64, known=None) -> MulticlassProblem:
    """Pack a multiclass problem.

    Parameters
    ----------
    x : array or sparse matrix (N, n_features), or feature rows
    gold : integers (N,), optional
        True classes in [0, n_classes); left out for prediction.
    n_classes : int, optional
    costs : array (K, K), optional
        ``costs[true, answered]`` with a zero diagonal; 0/1 by default.
    allowed : bool array (N, K), optional
        Classes an example may be given; all by default.
    known : bool array (sets, K), optional
        Sets of acceptable classes: a gold of ``n_classes + k`` says that the truth is one of ``known[k]``. The answer to such an
        example is a PartialMulticlassProblem, if any set in use has more than one class.
    """
    rows = x if hasattr(x, "_fields") else make_rows(x, dtype)
    n = n_rows(rows)
    gold = np.zeros(n, np.int32) if gold is None else np.asarray(gold, np.int32)
    if gold.shape != (n,):
        raise ValueError(f"Expected one class per example: {n} examples, gold of shape {gold.shape}.")
    k = int(n_classes if n_classes is not None else gold.max(initial=-1) + 1)
    gold, targets, known = check_gold(gold, k, known, allowed, "Classes", lambda i: f"example {i}")
    which, sets = pack_sets(allowed, n, k)
    kind = PartialMulticlassProblem if len(known) else MulticlassProblem
    return kind(rows, gold, targets, costs_of_sets(check_costs(costs, k), known), which, sets, k, known)


def check_gold(gold, k: int, known, allowed, what: str, place) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Check true labels in [0, k + sets); returns them, labels to start as targets, and the sets (none if all are single labels).

    A set of one label becomes that label. `place` names the position of an entry of `gold` in words.
    """
    known = np.zeros((0, k), np.bool_) if known is None else np.ascontiguousarray(known, np.bool_)
    if known.ndim != 2 or known.shape[1] != k:
        raise ValueError(f"`known` must have one row of {k} booleans for each set of acceptable labels. Got shape {known.shape}.")
    if len(gold) and (gold.min() < 0 or gold.max() >= k + len(known)):
        raise ValueError(f"{what} must be integers in [0, {k + len(known)}). Got {gold.min()} to {gold.max()}.")
    if not len(known) or not (gold >= k).any():
        return gold, gold, known[:0]
    several = known.sum(axis=1)
    empty = np.flatnonzero((gold >= k) & (several[np.maximum(gold - k, 0)] == 0))
    if len(empty):
        where = place(int(empty[0]))
        raise ValueError(f"The set of acceptable labels of {where} is empty. Where nothing is known, all are acceptable.")
    first = np.concatenate([np.arange(k), known.argmax(axis=1)]).astype(np.int32)  # the first label of each set
    single = np.concatenate([np.ones(k, np.bool_), several == 1])
    gold = np.where(single[gold], first[gold], gold).astype(np.int32)
    if gold.max() < k:
        return gold, gold, known[:0]
    targets = first[gold]
    if allowed is not None:  # rather a target that may be answered, where there is one
        some = np.flatnonzero(gold >= k)
        both = known[gold[some] - k] & np.asarray(allowed, np.bool_)[some]
        targets[some] = np.where(both.any(axis=1), both.argmax(axis=1), targets[some])
    return gold, targets, known


def costs_of_sets(costs: np.ndarray, known: np.ndarray) -> np.ndarray:
    """The cost matrix with a row for each set below: the cost against the nearest acceptable label, zero for those in the set."""
    rows = [np.where(fine[:, None], costs, np.inf).min(axis=0, initial=np.inf) for fine in known]
    rows = [np.where(np.isfinite(row), row, 0.0) for row in rows]  # an empty set that nobody refers to
    return np.ascontiguousarray(np.vstack([costs, *rows]))


def check_costs(costs, k: int) -> np.ndarray:
    """A (k, k) cost matrix: 0/1 if None, else validated."""
    if costs is None:
        return 1.0 - np.eye(k)
    costs = np.ascontiguousarray(costs, np.float64)
    if costs.shape != (k, k):
        raise ValueError(f"The cost matrix must have shape ({k}, {k}), one row per true label. Got {costs.shape}.")
    if not np.isfinite(costs).all() or (costs < 0).any() or np.diagonal(costs).any():
        raise ValueError("The cost matrix must be finite and non-negative, with a zero diagonal.")
    return costs


def pack_sets(allowed, n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Distinct rows of a boolean (n, k) array and which row each line uses; both empty if None."""
    if allowed is None:
        return np.zeros(0, np.int32), np.ones((1, k), np.bool_)
    allowed = np.asarray(allowed, np.bool_)
    if allowed.shape != (n, k):
        raise ValueError(f"`allowed` must have shape ({n}, {k}). Got {allowed.shape}.")
    sets, which = np.unique(allowed, axis=0, return_inverse=True)
    return which.reshape(-1).astype(np.int32), np.ascontiguousarray(sets)


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


@kernels.max_marginals.implements(MulticlassProblem)
def max_marginals(problem, i, theta, nodes):
    copy(theta[: problem.n_classes], nodes[: problem.n_classes])


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


@kernels.truth.implements(MulticlassProblem)
def truth(problem, i, y):
    y[0] = problem.gold[i]


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
