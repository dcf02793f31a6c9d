"""Sums over the outputs of a factor graph: exact in forests, Bethe's approximation, or a bound that is never too low.

**The bound** (``sums="trw"``; tree-reweighted belief propagation, Wainwright, Jaakkola and Willsky 2005, for any factors). Let
forests T with weights mu_T, of sum one, have every factor between them, and let share_f be the weight of those that have factor
f. Whatever messages m there are, the scores are a mean of scores of forests,

    theta = sum_T mu_T theta_T,    theta_T(y) = sum_v B_v(y_v) + sum_{f in T} [ table_f(y_f) / share_f - sum_v m_{f -> v}(y_v) ],
    B_v = theta_v + sum_f share_f m_{f -> v},

and log Z is convex in the scores, so

    log Z(theta) <= sum_T mu_T log Z(theta_T),

each an exact sum. (A forest without a hard factor sums over outputs that the factor forbids: that only raises it.) Messages of
belief propagation, of which beliefs get share_f only and which see tables divided by share_f, make that small, and at their fixed
point least; but it is a bound at any time. The marginals that come with it are the means of those of the forests: its derivatives
where messages hold still. Factors hear an echo of what they said, share_f - 1 times: without damping messages seldom converge,
and factors of many variables need more of it.

Cost: a sweep is as expensive as Bethe's; in the end three sums of every factor for each forest that has it.

References
----------
M. J. Wainwright, T. S. Jaakkola, A. S. Willsky (2005). A new class of upper bounds on the log partition function. IEEE
Transactions on Information Theory 51.
"""

from __future__ import annotations

import numpy as np

from partwise.engine.compilation import helper
from partwise.engine.numerics import copy, fill
from partwise.structures.factor_graph.factor_sums import certainty
from partwise.structures.factor_graph.layout import n_literals
from partwise.structures.factor_graph.messages import read_beliefs, sweep, walk
from partwise.structures.factor_graph.order import plan


@helper
def propagate(graph, order, forest, theta, search, parts):
    """Write marginals of all parts; returns log Z, whether messages converged, and how many sweeps it took.

    `order`: the factors, each after the one above it where there are no cycles (`forest`). `search` says how long to go on, and
    whether sums are Bethe's or bounds (see the module).
    """
    n, F, far = n_literals(graph), len(graph.kind), certainty(theta)
    belief, message, share = np.empty(n), np.zeros(len(graph.literal)), np.ones(F)
    copy(theta[:n], belief)
    fill(parts, 0.0)
    if forest:
        walk(graph, order, theta, belief, message, far)
        return read_beliefs(graph, order, theta, belief, message, 1.0, share, parts, far), True, 2
    if search.bound:
        weight, members = cover(graph, order)
        for f in range(F):
            share[f] = 0.0
            for k in range(len(weight)):
                share[f] += weight[k] * members[k, f]
        theta = sharpened(graph, theta, share)
        far = certainty(theta)
        sweeps, converged = sweep(graph, order, theta, share, belief, message, search, far)
        return sum_of_forests(graph, theta, belief, message, weight, members, share, parts, far), converged, sweeps
    sweeps, converged = sweep(graph, order, theta, share, belief, message, search, far)
    return read_beliefs(graph, order, theta, belief, message, 1.0, share, parts, far), converged, sweeps


@helper
def cover(graph, order):
    """Forests that have every factor between them: their weights (sum one), and members[k, f]: whether forest k has factor f.

    Each takes the factors that were taken least often first, and leaves out those that would close a cycle. A forest counts for
    as much as it looks at: its ports. (On second-order trees that gives TREE a third: bounds are tighter than with even weights.)
    At most as many as factors. O(forests x ports).
    """
    F, V = len(graph.kind), len(graph.states)
    members, taken, n = np.zeros((F, F)), np.zeros(F, np.int64), 0
    root, mark = np.empty(V, np.int64), np.full(V, -1, np.int64)
    while n < F and taken.min() == 0:
        for v in range(V):
            root[v] = v
        for level in range(n + 1):
            for f in order:
                if taken[f] == level and members[n, f] == 0.0 and joins(graph, f, root, mark):
                    members[n, f] = 1.0
        for f in range(F):
            taken[f] += members[n, f] > 0.0
        n += 1
    weight = np.zeros(n)
    for k in range(n):
        for f in range(F):
            weight[k] += members[k, f] * (graph.ports[f + 1] - graph.ports[f])
    return weight / max(weight.sum(), 1.0), members[:n]


@helper
def find_root(root, v):
    """The variable that stands for all that v is tied to."""
    while root[v] != v:
        root[v] = root[root[v]]
        v = root[v]
    return v


@helper
def joins(graph, f, root, mark):
    """Tie the variables of a factor together, unless two of them are tied already; returns whether it was done."""
    last, fits = -1, True
    for again in range(2):
        first = -1
        for p in range(graph.ports[f], graph.ports[f + 1]):
            v = graph.owner[graph.literal[p]]
            if v == last:  # another literal of the same variable
                continue
            last = v
            r = find_root(root, v)
            if again == 0:
                fits = fits and mark[r] < 0
                mark[r] = f
            elif first < 0:
                first = r
            else:
                root[r] = first
        last = -1
        if again == 0:
            for p in range(graph.ports[f], graph.ports[f + 1]):
                mark[find_root(root, graph.owner[graph.literal[p]])] = -1
            if not fits:
                return False
    return True


@helper
def sharpened(graph, theta, share):
    """The same scores, tables divided by the shares of their factors."""
    out = theta.copy()
    for f in range(len(graph.kind)):
        for k in range(graph.table[f], graph.table[f + 1]):
            out[k] /= share[f]
    return out


@helper
def sum_of_forests(graph, theta, belief, message, weight, members, share, parts, far):
    """sum_k weight_k log Z_k over forests that share the scores as the messages say: a bound whatever these are."""
    total, F = 0.0, len(graph.kind)
    order, parents = np.empty(F, np.int64), np.empty(F, np.int64)
    for k in range(len(weight)):
        own, said, size = belief.copy(), np.zeros(len(message)), 0
        left_out = members[k] == 0.0
        for f in range(F):
            left_out[f] = left_out[f] or graph.ports[f] == graph.ports[f + 1]  # without ports it says nothing
            if not left_out[f]:
                size += 1
                for p in range(graph.ports[f], graph.ports[f + 1]):
                    own[graph.literal[p]] -= message[p]
        plan(graph, left_out, order, parents)
        walk(graph, order[:size], theta, own, said, far)
        total += weight[k] * read_beliefs(graph, order[:size], theta, own, said, weight[k], share, parts, far)
    return total
