"""Messages between variables and factors: exact on forests, belief propagation on graphs with cycles.

Sum-product (Pearl 1988; with structured factors Smith and Eisner 2008): every factor tells each of its ports how likely it
should be,

    m_{f -> l} = log sum over configurations with l on of exp(table + what the other ports hear)  -  the same with l off

(where a factor looks at all literals of a variable: a log-weight for each of its states). On a forest, one sweep from the leaves
and one back give the marginals and log Z exactly. With cycles the sweeps go on until no message changes by more than `tol`, or
the schedule picks, each time, the factor whose surroundings changed most since it last spoke (residual schedule; Elidan et al.
2006, in the form of Sutton and McCallum 2007, which needs no trial messages). A share of the old message, `damping`, may be kept.
What comes out is then Bethe's approximation,

    log Z = sum_v (1 - degree_v) log Z_v + sum_f log Z_f,

whose derivatives are the marginals that come with it. It may be too high or too low, and messages may fail to converge: `sweep`
says so. A factor that forbids what another factor forbids already is counted twice by it: see `head`.

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
from partwise.structures.dependency.spanning import log_add
from partwise.structures.factor_graph.factor_sums import messages_of
from partwise.structures.factor_graph.layout import in_block
from partwise.structures.factor_graph.order import factors_at


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
def speak(graph, f, theta, share, belief, message, damping, scores, out, none, far):
    """Renew the messages of a factor; returns the largest change, in units that do not grow with certainty.

    `share` is how much of its messages beliefs get: all of them in Bethe's approximation, less in `sums`' bound.
    """
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
            belief[literal + s] += share * (new - message[a + p + s])
            message[a + p + s] = new
        p += n
    return change


@helper
def walk(graph, order, theta, belief, message, far):
    """Messages of a forest, from the leaves to the roots and back: exact."""
    scores, out, none, F = np.empty(widest(graph)), np.empty(widest(graph)), np.empty(0), len(order)
    for step in range(2 * F):
        f = order[F - 1 - step] if step < F else order[step - F]
        speak(graph, f, theta, 1.0, belief, message, 0.0, scores, out, none, far)


@helper
def widest(graph):
    """Ports of the factor that has most."""
    most = 0
    for f in range(len(graph.kind)):
        most = max(most, graph.ports[f + 1] - graph.ports[f])
    return most


@helper
def more_damped(graph, f, damping):
    """Damping where a factor hears an echo of its own messages, as it does if its share is below one: more for more variables."""
    n, last = 0, -1
    for p in range(graph.ports[f], graph.ports[f + 1]):
        v = graph.owner[graph.literal[p]]
        n += v != last
        last = v
    return 1.0 - (1.0 - damping) / np.sqrt(max(n, 1))


@helper
def sweep(graph, order, theta, share, belief, message, search, far):
    """Messages in a graph with cycles, until they hold still: how many sweeps, and whether they do."""
    scores, out, none, F = np.empty(widest(graph)), np.empty(widest(graph)), np.empty(0), len(graph.kind)
    tol, damping = search.change, search.damping
    if search.residual:
        return by_residuals(graph, theta, share, belief, message, search.sweeps, tol, damping, scores, out, none, far)
    for sweeps in range(search.sweeps):
        largest = 0.0
        for step in range(F):
            f = order[F - 1 - step] if sweeps % 2 == 0 else order[step]
            kept = damping if share[f] == 1.0 else more_damped(graph, f, damping)
            largest = max(largest, speak(graph, f, theta, share[f], belief, message, kept, scores, out, none, far))
        if largest <= tol * (1.0 - damping):
            return sweeps + 1, True
    return search.sweeps, False


@helper
def by_residuals(graph, theta, share, belief, message, max_sweeps, tol, damping, scores, out, none, far):
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
        kept = damping if share[f] == 1.0 else more_damped(graph, f, damping)
        change = speak(graph, f, theta, share[f], belief, message, kept, scores, out, none, far)
        spoken += 1
        debt[f] = kept * change  # what damping held back is still to be said
        for p in range(graph.ports[f], graph.ports[f + 1]):
            v = graph.owner[graph.literal[p]]
            for j in range(count[v], count[v + 1]):
                if at[j] != f:
                    debt[at[j]] = max(debt[at[j]], change)
    return max_sweeps, False


@helper
def read_beliefs(graph, factors, theta, belief, message, weight, share, parts, far):
    """Add marginals, times `weight`, of literals and of the tables of these factors; returns their log Z, or Bethe's."""
    total = 0.0
    scores, out, own = np.empty(widest(graph)), np.empty(widest(graph)), np.zeros(len(parts))
    degree = np.zeros(len(graph.states), np.int64)
    for f in factors:
        a, size = graph.ports[f], graph.ports[f + 1] - graph.ports[f]
        p = 0
        while p < size:
            v = graph.owner[graph.literal[a + p]]
            degree[v] += 1
            p += graph.states[v] if in_block(graph, f, p) else 1
        total += incoming(graph, f, belief, message, scores[:size], far)
        total += messages_of(graph, f, theta, scores[:size], out[:size], own, far)
        for k in range(graph.table[f], graph.table[f + 1]):
            parts[k] += weight / share[f] * own[k]
    for v in range(len(graph.states)):
        a, b = graph.first[v], graph.first[v + 1]
        log_z = 0.0 if graph.states[v] == 1 else -np.inf
        for k in range(a, b):
            log_z = log_add(log_z, belief[k])
        if log_z > -np.inf:
            for k in range(a, b):
                parts[k] += weight * np.exp(belief[k] - log_z)
        if degree[v] != 1:
            total += (1 - degree[v]) * max(-far, log_z)
    return total
