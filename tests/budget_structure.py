"""A structure as a user would write it: choose at most `budget` of a few items. One file, and every solver runs it.

The same functions serve a NamedTuple (compiled) and an ordinary Python class (interpreted).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partwise import kernels
from partwise.engine.compilation import helper


class BudgetProblem(NamedTuple):
    """x[i, j] are the features of item j of example i; gold[i, j] says whether it is chosen; targets[i, j] as margins see it."""

    x: np.ndarray
    gold: np.ndarray
    budget: int
    targets: np.ndarray


class PlainBudget:
    """The same in plain Python: never compiled."""

    def __init__(self, x, gold, budget, targets):
        self.x, self.gold, self.budget, self.targets = x, gold, budget, targets


STRUCTURES = (BudgetProblem, PlainBudget)


@kernels.n_examples.implements(*STRUCTURES)
def n_examples(problem):
    return len(problem.gold)


@kernels.n_weights.implements(*STRUCTURES)
def n_weights(problem):
    return problem.x.shape[2]


@kernels.n_parts.implements(*STRUCTURES)
def n_parts(problem, i):
    return 2 * problem.x.shape[1]  # item j left out, item j chosen: every alternative is a part and has its own cost


@kernels.length.implements(*STRUCTURES)
def length(problem, i):
    return problem.x.shape[1]


@kernels.target.implements(*STRUCTURES)
def target(problem, i):
    return problem.targets[i]


@kernels.with_targets.implements(*STRUCTURES)
def with_targets(problem, targets):
    return type(problem)(problem.x, problem.gold, problem.budget, targets.reshape(problem.gold.shape))


@kernels.score.implements(*STRUCTURES)
def score(problem, i, w, theta):
    for j in range(problem.x.shape[1]):
        theta[2 * j] = 0.0
        theta[2 * j + 1] = 0.0
        for f in range(problem.x.shape[2]):
            theta[2 * j + 1] += problem.x[i, j, f] * w[f]


@kernels.add_cost.implements(*STRUCTURES)
def add_cost(problem, i, c, theta):
    for j in range(problem.x.shape[1]):
        theta[2 * j + 1 - problem.gold[i, j]] += c


@kernels.value_of.implements(*STRUCTURES)
def value_of(problem, i, theta, y):
    total = 0.0
    for j in range(len(y)):
        total += theta[2 * j + y[j]]
    return total


@kernels.cost.implements(*STRUCTURES)
def cost(problem, i, y):
    wrong = 0.0
    for j in range(len(y)):
        if y[j] != problem.gold[i, j]:
            wrong += 1.0
    return wrong


@kernels.truth.implements(*STRUCTURES)
def truth(problem, i, y):
    for j in range(len(y)):
        y[j] = problem.gold[i, j]


@helper
def write_choice(code, budget, y):
    """Write choice number `code` into y; whether it keeps to the budget."""
    for j in range(len(y)):
        y[j] = (code >> j) & 1
    return y.sum() <= budget


@kernels.outputs.implements(*STRUCTURES)
def outputs(problem, i):
    for code in range(2 ** length(problem, i)):
        y = np.zeros(length(problem, i), np.int32)
        if write_choice(code, problem.budget, y):
            yield y


@kernels.best.implements(*STRUCTURES)
def best(problem, i, theta, y):
    highest, found = -np.inf, 0
    for code in range(2 ** len(y)):
        if write_choice(code, problem.budget, y) and value_of(problem, i, theta, y) > highest:
            highest, found = value_of(problem, i, theta, y), code
    write_choice(found, problem.budget, y)
    return highest


@kernels.kbest.implements(*STRUCTURES)
def kbest(problem, i, theta, ys, values):
    found, y = 0, np.zeros(length(problem, i), np.int32)
    for code in range(2 ** len(y)):
        if not write_choice(code, problem.budget, y):
            continue
        v = value_of(problem, i, theta, y)
        if found == len(values) and v <= values[found - 1]:
            continue
        j = min(found, len(values) - 1)
        while j > 0 and values[j - 1] < v:
            values[j] = values[j - 1]
            ys[j] = ys[j - 1]
            j -= 1
        values[j] = v
        ys[j] = y
        found = min(found + 1, len(values))
    return found


@kernels.expected.implements(*STRUCTURES)
def expected(problem, i, theta, parts):
    y = np.zeros(length(problem, i), np.int32)
    highest = best(problem, i, theta, y)
    parts[: 2 * len(y)] = 0.0
    total = 0.0
    for code in range(2 ** len(y)):
        if write_choice(code, problem.budget, y):
            p = np.exp(value_of(problem, i, theta, y) - highest)
            total += p
            indicate(problem, i, y, p, parts)
    for k in range(2 * len(y)):
        parts[k] /= total
    return highest + np.log(total)


@kernels.indicate.implements(*STRUCTURES)
def indicate(problem, i, y, c, parts):
    for j in range(len(y)):
        parts[2 * j + y[j]] += c


@kernels.add_features.implements(*STRUCTURES)
def add_features(problem, i, y, c, into):
    for f in range(problem.x.shape[2]):
        total = 0.0
        for j in range(len(y)):
            if y[j]:
                total += problem.x[i, j, f]
        kernels.row(into, f, 1)[0] += c * total


@kernels.add_parts.implements(*STRUCTURES)
def add_parts(problem, i, parts, c, into):
    for f in range(problem.x.shape[2]):
        total = 0.0
        for j in range(problem.x.shape[1]):
            total += parts[2 * j + 1] * problem.x[i, j, f]
        kernels.row(into, f, 1)[0] += c * total


def make_budget(n=20, items=3, features=4, budget=2, seed=0, structure=BudgetProblem):
    """Choices that a linear rule would make, some of them wrong."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, items, features))
    rule = rng.normal(size=features)
    gold = np.zeros((n, items), np.int32)
    for i in range(n):
        scores = x[i] @ rule + 0.5 * rng.normal(size=items)
        for j in np.argsort(-scores)[:budget]:
            gold[i, j] = scores[j] > 0
    return structure(x, gold, budget, gold)
