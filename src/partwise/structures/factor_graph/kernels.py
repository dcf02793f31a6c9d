"""What solvers need of factor graphs: the kernels of `partwise.structures.factor_graph.problem.GraphProblem`.

Best output: exact in forests (max-product); else by AD3, whose bound often proves that it is, and by branch and bound on
request (`exact`). Sums: exact in forests (sum-product), else by loopy belief propagation, in Bethe's approximation. `status`
tells afterwards which examples' answers were not proven or not converged: see `NOT_PROVEN`, `NOT_CONVERGED`.
"""

from __future__ import annotations

import itertools

import numpy as np

from partwise import kernels
from partwise.engine.accumulator import row
from partwise.engine.compilation import helper
from partwise.oracles.kbest_by_partition import kbest_by_partition
from partwise.structures.factor_graph.ad3 import ad3
from partwise.structures.factor_graph.branch_and_bound import best_exactly
from partwise.structures.factor_graph.layout import DENSE, entry_of, hold_state, n_literals
from partwise.structures.factor_graph.max_product import best_in_forest
from partwise.structures.factor_graph.problem import (
    NOT_CONVERGED,
    NOT_PROVEN,
    GraphProblem,
    PartialGraphProblem,
    problem_class,
    view,
)
from partwise.structures.factor_graph.rounding import is_closed, value_of_output
from partwise.structures.factor_graph.sums import propagate

REPAIRS = 50  # nodes of branch and bound to find any output at all that hard factors allow


# ---------------------------------------------------------------------------------------------------------------------
# Sizes
# ---------------------------------------------------------------------------------------------------------------------


@kernels.n_examples.implements(GraphProblem)
def n_examples(problem):
    return problem.variables.size - 1


@kernels.is_exact.implements(GraphProblem)
def is_exact(problem):
    return bool(problem.forest.all()) or problem.search.exact


@kernels.n_weights.implements(GraphProblem)
def n_weights(problem):
    return problem.n_weights


@kernels.width.implements(GraphProblem)
def width(problem):
    return problem.width


@kernels.n_parts.implements(GraphProblem)
def n_parts(problem, i):
    return problem.parts[i + 1] - problem.parts[i]


@kernels.length.implements(GraphProblem)
def length(problem, i):
    return problem.variables[i + 1] - problem.variables[i]


@kernels.target.implements(GraphProblem)
def target(problem, i):
    return problem.targets[problem.variables[i] : problem.variables[i + 1]]


# ---------------------------------------------------------------------------------------------------------------------
# Scores and costs
# ---------------------------------------------------------------------------------------------------------------------


@kernels.score.implements(GraphProblem)
def score(problem, i, w, theta):
    graph, block = view(problem, i), problem.variables[i] + problem.factors[i]
    given = problem.given[problem.parts[i] : problem.parts[i + 1]]
    for k in range(len(given)):
        theta[k] = given[k]
    V = len(graph.states)
    for v in range(V):
        add_scores(problem, block + v, w, theta[graph.first[v] : graph.first[v + 1]])
    for f in range(len(graph.kind)):
        a, b = graph.table[f], graph.table[f + 1]
        if b > a:
            add_scores(problem, block + V + f, w, theta[a:b])


@helper
def add_scores(problem, block, w, out):
    """out += features of a block times their weights."""
    for k in range(problem.features[block], problem.features[block + 1]):
        start, x, tie = problem.start[k], problem.value[k], problem.tie[k]
        if tie >= 0:
            for j in range(len(out)):
                t = problem.ties[tie + j]
                if t >= 0:
                    out[j] += x * w[start + t]
                elif t < -1:
                    out[j] -= x * w[start - 2 - t]
        else:
            weights = w[start : start + len(out)]
            for j in range(len(out)):
                out[j] += x * weights[j]


@helper
def cost_places(problem, i, graph, v):
    """First part that carries the cost of a variable, and how many there are: none if its truth is not known."""
    at = problem.variables[i] + v
    if problem.gold[at] < 0 or problem.cost_at[at] < 0:
        return 0, 0
    return problem.cost_at[at], 2 if graph.states[v] == 1 else graph.states[v]


@kernels.add_cost.implements(GraphProblem)
def add_cost(problem, i, c, theta):
    graph = view(problem, i)
    for v in range(len(graph.states)):
        at, n = cost_places(problem, i, graph, v)
        k = problem.variables[i] + v
        for s in range(n):
            if s // problem.hidden != problem.gold[k]:
                theta[at + s] += c * problem.weight[k]


@kernels.cost.implements(GraphProblem)
def cost(problem, i, y):
    total = 0.0
    for v in range(len(y)):
        k = problem.variables[i] + v
        if problem.gold[k] >= 0 and problem.cost_at[k] >= 0 and y[v] // problem.hidden != problem.gold[k]:
            total += problem.weight[k]
    return total


@kernels.truth.implements(GraphProblem)
def truth(problem, i, y):
    for v in range(len(y)):
        y[v] = problem.gold[problem.variables[i] + v] * problem.hidden


@kernels.value_of.implements(GraphProblem)
def value_of(problem, i, theta, y):
    return value_of_output(view(problem, i), theta, y)


@kernels.is_labelled.implements(PartialGraphProblem)
def is_labelled(problem, i):
    if problem.hidden > 1:
        return False
    for k in range(problem.variables[i], problem.variables[i + 1]):
        if problem.gold[k] < 0:
            return False
    return True


@kernels.restrict.implements(PartialGraphProblem)
def restrict(problem, i, theta):
    graph = view(problem, i)
    for v in range(len(graph.states)):
        at, n = cost_places(problem, i, graph, v)
        for s in range(n):
            if s // problem.hidden != problem.gold[problem.variables[i] + v]:
                theta[at + s] = -np.inf


@kernels.with_targets.implements(PartialGraphProblem)
def with_targets(problem, targets):
    return problem_class(problem.graphs, False)(*problem)._replace(targets=targets)


# ---------------------------------------------------------------------------------------------------------------------
# Oracles
# ---------------------------------------------------------------------------------------------------------------------


@kernels.best.implements(GraphProblem)
def best(problem, i, theta, y):
    graph, search = view(problem, i), problem.search
    scores = theta[: n_parts(problem, i)].astype(np.float64)
    problem.status[i] &= NOT_CONVERGED
    if problem.forest[i]:
        a, b = problem.factors[i], problem.factors[i + 1]
        best_in_forest(graph, problem.order[a:b], problem.parents[a:b], scores, y)
        return value_of_output(graph, scores, y)
    p = np.empty(n_literals(graph))
    value, bound, _ = ad3(graph, scores, y, p, search.iterations, search.tol, p[:0])
    if bound == -np.inf:
        return -np.inf
    if not is_closed(value, bound) and (search.exact or value == -np.inf):  # -inf: what was rounded is against a hard factor
        nodes = search.nodes if search.exact else REPAIRS
        value, bound, _ = best_exactly(graph, scores, y, search.iterations, search.tol, nodes)
    if not is_closed(value, bound):
        problem.status[i] |= NOT_PROVEN
    return value


@kernels.expected.implements(GraphProblem)
def expected(problem, i, theta, parts):
    graph, search, n = view(problem, i), problem.search, n_parts(problem, i)
    a, b = problem.factors[i], problem.factors[i + 1]
    scores = theta[:n].astype(np.float64)
    log_z, converged, _ = propagate(graph, problem.order[a:b], problem.forest[i], scores, search, parts[:n])
    problem.status[i] &= NOT_PROVEN
    if not converged:
        problem.status[i] |= NOT_CONVERGED
    return log_z


@kernels.agreement.implements(GraphProblem)
def agreement(problem, i, parts, given):
    graph = view(problem, i)
    for v in range(len(given)):
        truth, a = problem.gold[problem.variables[i] + v], graph.first[v]
        if truth < 0:
            given[v] = 1.0
        elif graph.states[v] > 1:
            given[v] = parts[a + truth * problem.hidden : a + (truth + 1) * problem.hidden].sum()
        else:
            given[v] = parts[a] if truth else 1.0 - parts[a]


@kernels.kbest.implements(GraphProblem)
def kbest(problem, i, theta, ys, values):
    return kbest_by_partition(problem, i, theta, ys, values)


@kernels.hold.implements(GraphProblem)
def hold(problem, i, theta, t, code, far):
    hold_state(view(problem, i), theta, t, code, far)


@kernels.forbid.implements(GraphProblem)
def forbid(problem, i, theta, t, code, far):
    graph = view(problem, i)
    if graph.states[t] == 1:
        hold_state(graph, theta, t, 1 - code, far)
    else:
        theta[graph.first[t] + code] = -np.inf


@kernels.outputs.implements(GraphProblem)
def outputs(problem, i):
    graph = view(problem, i)
    zero = np.zeros(int(n_parts(problem, i)))
    for states in itertools.product(*(range(2 if n == 1 else n) for n in graph.states)):
        y = np.array(states, np.int32)
        if value_of_output(graph, zero, y) > -np.inf:
            yield y


# ---------------------------------------------------------------------------------------------------------------------
# Features
# ---------------------------------------------------------------------------------------------------------------------


@kernels.indicate.implements(GraphProblem)
def indicate(problem, i, y, c, parts):
    graph = view(problem, i)
    for v in range(len(y)):
        if graph.states[v] > 1:
            parts[graph.first[v] + y[v]] += c
        elif y[v]:
            parts[graph.first[v]] += c
    for f in range(len(graph.kind)):
        if graph.kind[f] == DENSE:
            parts[graph.table[f] + entry_of(graph, f, y)] += c


@helper
def add_entry(problem, block, j, c, into):
    """into += c times the features of a block at entry j of its table."""
    if c == 0.0:
        return
    W = problem.width
    for k in range(problem.features[block], problem.features[block + 1]):
        tie, change = problem.tie[k], c * problem.value[k]
        t = problem.ties[tie + j] if tie >= 0 else np.int64(j)
        if t < -1:
            t, change = -2 - t, -change
        if t >= 0:
            at = problem.start[k] + t
            row(into, at // W, W)[at % W] += change


@kernels.add_features.implements(GraphProblem)
def add_features(problem, i, y, c, into):
    graph, block = view(problem, i), problem.variables[i] + problem.factors[i]
    V = len(y)
    for v in range(V):
        if graph.states[v] > 1:
            add_entry(problem, block + v, y[v], c, into)
        elif y[v]:
            add_entry(problem, block + v, 0, c, into)
    for f in range(len(graph.kind)):
        if graph.kind[f] == DENSE:
            add_entry(problem, block + V + f, entry_of(graph, f, y), c, into)


@kernels.difference.implements(GraphProblem)
def difference(problem, i, t, y, c, into):
    graph, block = view(problem, i), problem.variables[i] + problem.factors[i]
    V = len(y)
    for v in range(V):
        if t[v] != y[v]:
            if graph.states[v] > 1:
                add_entry(problem, block + v, t[v], c, into)
                add_entry(problem, block + v, y[v], -c, into)
            else:
                add_entry(problem, block + v, 0, c if t[v] else -c, into)
    for f in range(len(graph.kind)):
        if graph.kind[f] == DENSE:
            right, wrong = entry_of(graph, f, t), entry_of(graph, f, y)
            if right != wrong:
                add_entry(problem, block + V + f, right, c, into)
                add_entry(problem, block + V + f, wrong, -c, into)


@kernels.add_parts.implements(GraphProblem)
def add_parts(problem, i, parts, c, into):
    graph, block = view(problem, i), problem.variables[i] + problem.factors[i]
    V = len(graph.states)
    for v in range(V):
        for s in range(graph.states[v]):
            add_entry(problem, block + v, s, c * parts[graph.first[v] + s], into)
    for f in range(len(graph.kind)):
        for j in range(graph.table[f + 1] - graph.table[f]):
            add_entry(problem, block + V + f, j, c * parts[graph.table[f] + j], into)
