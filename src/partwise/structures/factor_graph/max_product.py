"""The best output of a forest, by messages (max-product).

Factors are visited from the leaves to the roots: each tells the variable above it, for each of that variable's states, the best
score of all that lies below; on the way back everyone takes what goes best with the choice above. Needs nothing of a factor but
its best configuration. Cost: (states + 1) searches of each factor.
"""

from __future__ import annotations

import numpy as np

from partwise.engine.compilation import helper
from partwise.engine.numerics import copy, fill
from partwise.structures.factor_graph.factor_sums import certainty
from partwise.structures.factor_graph.factors import best_configuration
from partwise.structures.factor_graph.layout import choices, in_block, n_literals
from partwise.structures.factor_graph.messages import others_than


@helper
def heard(graph, f, belief, parent, state, boost, scores, far):
    """What the ports of a factor score from below; the variable above is held in a state, unless that is negative."""
    a = graph.ports[f]
    for p in range(len(scores)):
        literal = graph.literal[a + p]
        v = graph.owner[literal]
        if v == parent:
            if graph.states[v] == 1 or not in_block(graph, f, p):
                yes = state == (1 if graph.states[v] == 1 else literal - graph.first[v])
                scores[p] = boost if yes else -np.inf
            else:
                scores[p] = 0.0 if literal - graph.first[v] == state else -np.inf
        elif in_block(graph, f, p):
            scores[p] = belief[literal]
        else:
            scores[p] = belief[literal] - max(-far, others_than(graph, belief, literal, False))


@helper
def largest_sum(graph, f, theta, belief):
    """A number that no difference of two configurations of the factor exceeds."""
    total, top = 1.0, 0.0
    for p in range(graph.ports[f], graph.ports[f + 1]):
        value = belief[graph.literal[p]]
        rest = others_than(graph, belief, graph.literal[p], False)
        if value > -np.inf:  # zero times infinity is not a number
            total += abs(value)
        if rest > -np.inf:
            total += abs(rest)
    for k in range(graph.table[f], graph.table[f + 1]):
        if theta[k] > -np.inf:
            top += abs(theta[k])
    return total + 2.0 * top


@helper
def best_in_forest(graph, order, parents, theta, y):
    """Write the best output into y. `order`: factors, each after the one above it; `parents`: the variable above each factor."""
    n, far = n_literals(graph), certainty(theta)
    belief = np.empty(n)
    copy(theta[:n], belief)
    widest = 0
    for f in range(len(graph.kind)):
        widest = max(widest, graph.ports[f + 1] - graph.ports[f])
    scores, on = np.empty(widest), np.zeros(widest, np.int8)
    for step in range(len(order) - 1, -1, -1):
        f = order[step]
        v, size, boost = parents[f], graph.ports[f + 1] - graph.ports[f], largest_sum(graph, f, theta, belief)
        values = np.empty(choices(graph, v))
        for s in range(len(values)):
            heard(graph, f, belief, v, s, boost, scores[:size], far)
            values[s] = best_configuration(graph, f, theta, scores[:size], on[:size])
            for p in range(size):  # what held the variable in its state is no score
                literal = graph.literal[graph.ports[f] + p]
                if graph.owner[literal] == v and scores[p] == boost:
                    values[s] = values[s] - boost if on[p] else -np.inf
        if graph.states[v] == 1:
            belief[graph.first[v]] += max(-far, values[1]) - max(-far, values[0])
        else:
            top = values.max()
            for s in range(len(values)):
                belief[graph.first[v] + s] += max(-far, values[s] - top) if top > -np.inf else -far
    fill(y, -1)
    for step in range(len(order)):
        f = order[step]
        settle(graph, belief, parents[f], y)
        a, size = graph.ports[f], graph.ports[f + 1] - graph.ports[f]
        heard(graph, f, belief, parents[f], y[parents[f]], largest_sum(graph, f, theta, belief), scores[:size], far)
        best_configuration(graph, f, theta, scores[:size], on[:size])
        for p in range(size):
            literal = graph.literal[a + p]
            v = graph.owner[literal]
            if y[v] >= 0:
                continue
            if graph.states[v] == 1:
                y[v] = on[p]
            elif on[p]:
                y[v] = literal - graph.first[v]
            elif not in_block(graph, f, p):
                top = -1
                for k in range(graph.first[v], graph.first[v + 1]):
                    if k != literal and (top < 0 or belief[k] > belief[top]):
                        top = k
                y[v] = top - graph.first[v]
    for v in range(len(y)):
        settle(graph, belief, v, y)


@helper
def settle(graph, belief, v, y):
    """The best state of a variable that nothing above has decided."""
    if y[v] >= 0:
        return
    a, k = graph.first[v], 0
    if graph.states[v] == 1:
        y[v] = 1 if belief[a] > 0.0 else 0
        return
    for s in range(1, graph.states[v]):
        if belief[a + s] > belief[a + k]:
            k = s
    y[v] = k
