"""Messages between variables and factors: exact on forests, belief propagation on graphs with cycles.

**Best output of a forest** (max-product). Factors are visited from the leaves to the roots: each tells the variable above it, for
each of that variable's states, the best score of all that lies below; on the way back everyone takes what goes best with the
choice above. Needs nothing of a factor but its best configuration. Cost: (states + 1) searches of each factor.

**Marginals** (sum-product; Pearl 1988, with structured factors Smith and Eisner 2008). Every factor tells each of its ports how
likely it should be,

    m_{f -> l} = log sum over configurations with l on of exp(table + what the other ports hear)  -  the same with l off

(for a variable of a dense factor: a log-weight for each of its states). On a forest, one sweep from the leaves and one back give
the marginals and log Z exactly. With cycles the sweeps go on until no message changes by more than `tol`, or the schedule picks,
each time, the factor whose surroundings changed most since it last spoke (residual schedule; Elidan et al. 2006, in the form of
Sutton and McCallum 2007, which needs no trial messages). A share of the old message, `damping`, may be kept. What comes out is
then Bethe's approximation,

    log Z = sum_v (1 - degree_v) log Z_v + sum_f log Z_f,

whose derivatives are the marginals that come with it. It may fail to converge: `propagate` says so.

References
----------
J. Pearl (1988). Probabilistic reasoning in intelligent systems.
D. Smith, J. Eisner (2008). Dependency parsing by belief propagation. EMNLP.
G. Elidan, I. McGraw, D. Koller (2006). Residual belief propagation. UAI.
C. Sutton, A. McCallum (2007). Improved dynamic schedules for belief propagation. UAI.
"""

from __future__ import annotations

import numpy as np

from partwise.engine.compilation import helper
from partwise.engine.numerics import copy, fill
from partwise.structures.dependency.spanning import log_add
from partwise.structures.factor_graph.factor_sums import certainty, messages_of
from partwise.structures.factor_graph.factors import best_configuration
from partwise.structures.factor_graph.layout import DENSE, ONE_OF_K, choices, n_literals
from partwise.structures.factor_graph.order import factors_at


@helper
def in_block(graph, f, p):
    """Whether port p of factor f is one of all literals of a variable, rather than a literal on its own."""
    kind, a = graph.kind[f], graph.ports[f]
    return kind == DENSE or (kind == ONE_OF_K and p < (graph.ports[f + 1] - a) // 2)


@helper
def others_than(graph, belief, literal, soft):
    """log of the weight, or the best score, of all states of a variable but one."""
    v = graph.owner[literal]
    total = -np.inf
    if graph.states[v] == 1:
        return 0.0
    for k in range(graph.first[v], graph.first[v + 1]):
        if k != literal:
            total = log_add(total, belief[k]) if soft else max(total, belief[k])
    return total


# ---------------------------------------------------------------------------------------------------------------------
# The best output of a forest
# ---------------------------------------------------------------------------------------------------------------------


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


# ---------------------------------------------------------------------------------------------------------------------
# Belief propagation
# ---------------------------------------------------------------------------------------------------------------------


@helper
def incoming(graph, f, belief, message, scores, far):
    """What the ports of a factor hear from elsewhere; returns what was taken off log-weights to make them log-odds."""
    a, total = graph.ports[f], 0.0
    for p in range(len(scores)):
        literal = graph.literal[a + p]
        scores[p] = belief[literal] - message[a + p]
        if not in_block(graph, f, p) and graph.states[graph.owner[literal]] > 1:
            rest = max(-far, others_than(graph, belief, literal, True))
            scores[p] -= rest
            total += rest
    return total


@helper
def speak(graph, f, theta, belief, message, damping, scores, out, none, far):
    """Renew the messages of a factor; returns the largest change, in units that do not grow with certainty."""
    a, size = graph.ports[f], graph.ports[f + 1] - graph.ports[f]
    incoming(graph, f, belief, message, scores[:size], far)
    messages_of(graph, f, theta, scores[:size], out[:size], none, far)
    p, change = 0, 0.0
    while p < size:
        literal = graph.literal[a + p]
        v, n = graph.owner[literal], 1
        if in_block(graph, f, p):
            n = graph.states[v]
        if n > 1:  # log-weights: only their differences matter
            top = -np.inf
            for s in range(n):
                top = max(top, out[p + s])
            for s in range(n):
                out[p + s] = max(-far, out[p + s] - top) if top > -np.inf else 0.0
        for s in range(n):
            new = (1.0 - damping) * out[p + s] + damping * message[a + p + s]
            change = max(change, abs(np.tanh(0.5 * new) - np.tanh(0.5 * message[a + p + s])))
            belief[literal + s] += new - message[a + p + s]
            message[a + p + s] = new
        p += n
    return change


@helper
def propagate(graph, order, forest, theta, max_sweeps, tol, damping, residual, parts):
    """Write marginals of all parts; returns log Z, whether messages converged, and how many sweeps it took."""
    n, F, P, far = n_literals(graph), len(graph.kind), len(graph.literal), certainty(theta)
    belief, message = np.empty(n), np.zeros(P)
    copy(theta[:n], belief)
    widest = 0
    for f in range(F):
        widest = max(widest, graph.ports[f + 1] - graph.ports[f])
    scores, out, none = np.empty(widest), np.empty(widest), np.empty(0)
    sweeps, converged = 0, False
    if forest:
        for step in range(2 * F):
            f = order[F - 1 - step] if step < F else order[step - F]
            speak(graph, f, theta, belief, message, 0.0, scores, out, none, far)
        sweeps, converged = 2, True
    elif residual:
        sweeps, converged = by_residuals(graph, theta, belief, message, max_sweeps, tol, damping, scores, out, none, far)
    else:
        while sweeps < max_sweeps and not converged:
            largest = 0.0
            for step in range(F):
                f = order[F - 1 - step] if sweeps % 2 == 0 else order[step]
                largest = max(largest, speak(graph, f, theta, belief, message, damping, scores, out, none, far))
            sweeps += 1
            converged = largest <= tol * (1.0 - damping)
    return read_beliefs(graph, theta, belief, message, scores, out, parts, far), converged, sweeps


@helper
def by_residuals(graph, theta, belief, message, max_sweeps, tol, damping, scores, out, none, far):
    """The factor whose surroundings changed most speaks next; F times is a sweep."""
    F = len(graph.kind)
    debt = np.full(F, np.inf)
    count, at = factors_at(graph)
    spoken = 0
    while spoken < max_sweeps * F:
        f = 0
        for g in range(1, F):
            if debt[g] > debt[f]:
                f = g
        if debt[f] <= tol:
            return spoken // F + 1, True
        change = speak(graph, f, theta, belief, message, damping, scores, out, none, far)
        spoken += 1
        debt[f] = damping * change  # what damping held back is still to be said
        for p in range(graph.ports[f], graph.ports[f + 1]):
            v = graph.owner[graph.literal[p]]
            for j in range(count[v], count[v + 1]):
                if at[j] != f:
                    debt[at[j]] = max(debt[at[j]], change)
    return max_sweeps, False


@helper
def read_beliefs(graph, theta, belief, message, scores, out, parts, far):
    """Marginals of literals and tables from the messages, and Bethe's log Z."""
    n, total = n_literals(graph), 0.0
    for k in range(n, len(parts)):
        parts[k] = 0.0
    degree = np.zeros(len(graph.states), np.int64)
    for f in range(len(graph.kind)):
        a, size = graph.ports[f], graph.ports[f + 1] - graph.ports[f]
        p = 0
        while p < size:
            v = graph.owner[graph.literal[a + p]]
            degree[v] += 1
            p += graph.states[v] if in_block(graph, f, p) else 1
        total += incoming(graph, f, belief, message, scores[:size], far)
        total += messages_of(graph, f, theta, scores[:size], out[:size], parts, far)
    for v in range(len(graph.states)):
        a, b = graph.first[v], graph.first[v + 1]
        log_z = 0.0 if graph.states[v] == 1 else -np.inf
        for k in range(a, b):
            log_z = log_add(log_z, belief[k])
        for k in range(a, b):
            parts[k] = np.exp(belief[k] - log_z) if log_z > -np.inf else 0.0
        if degree[v] != 1:
            total += (1 - degree[v]) * max(-far, log_z)
    return total
