"""Whole outputs: their scores, the nearest one to a relaxed solution, and what changing one variable at a time gains.

References
----------
J. Besag (1986). On the statistical analysis of dirty pictures. JRSS B 48(3) (iterated conditional modes).
"""

from __future__ import annotations

import numpy as np

from partwise.engine.compilation import helper
from partwise.structures.factor_graph.factors import allows, best_configuration, table_value
from partwise.structures.factor_graph.layout import HEAD, TREE, choices, n_literals, write_states
from partwise.structures.factor_graph.order import factors_at


@helper
def is_closed(value, bound):
    """Whether a score reaches its bound: then it is the best of all."""
    return value > -np.inf and bound - value <= 1e-9 * (1.0 + abs(bound))


@helper
def value_of_output(graph, theta, y):
    """Score of an output; -inf if a hard factor forbids it."""
    total = 0.0
    for v in range(len(graph.states)):
        if graph.states[v] > 1:
            total += theta[graph.first[v] + y[v]]
        elif y[v]:
            total += theta[graph.first[v]]
    for f in range(len(graph.kind)):
        if not allows(graph, f, y):
            return -np.inf
        total += table_value(graph, f, theta, y)
    return total


@helper
def rounded(graph, theta, p, y, on):
    """Round a relaxed solution, trees as trees; returns the score."""
    literals = p[: n_literals(graph)].copy()
    for f in range(len(graph.kind)):
        if graph.kind[f] == TREE:
            a, b = graph.ports[f], graph.ports[f + 1]
            scores = np.empty(b - a)
            for k in range(b - a):
                scores[k] = p[graph.literal[a + k]] if theta[graph.literal[a + k]] > -np.inf else -np.inf
            if best_configuration(graph, f, theta, scores, on[: b - a]) > -np.inf:
                for k in range(b - a):
                    literals[graph.literal[a + k]] = on[k]
    write_states(graph, literals, y)
    return value_of_output(graph, theta, y)


@helper
def improved(graph, theta, y):
    """Change one variable at a time while that is for the better (ICM, Besag 1986); returns the score. Trees stay as they are."""
    V = len(graph.states)
    count, at = factors_at(graph)
    held = np.zeros(V, np.bool_)
    for v in range(V):
        for j in range(count[v], count[v + 1]):
            held[v] = held[v] or graph.kind[at[j]] == TREE or graph.kind[at[j]] == HEAD
    better = True
    while better:
        better = False
        for v in range(V):
            if held[v]:
                continue
            was, top, pick = y[v], -np.inf, y[v]
            for s in range(choices(graph, v)):
                y[v] = s
                value = theta[graph.first[v] + s] if graph.states[v] > 1 else theta[graph.first[v]] * s if s else 0.0
                for j in range(count[v], count[v + 1]):
                    if value > -np.inf:
                        value += table_value(graph, at[j], theta, y) if allows(graph, at[j], y) else -np.inf
                if value > top or (value == top and s == was):
                    top, pick = value, s
            y[v] = pick
            better = better or pick != was
    return value_of_output(graph, theta, y)
