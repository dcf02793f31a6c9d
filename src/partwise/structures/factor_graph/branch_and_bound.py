"""Branch and bound: the best output of a factor graph, proven, where AD3 alone leaves a gap.

    best_exactly:  solve a node, the graph with some variables held in a state, by AD3: an output and a bound
                   keep the best output seen; a node whose bound is no better is closed
                   else branch on the variable that AD3 is least sure of, its likeliest state first; depth first

References
----------
D. Das, A. F. T. Martins, N. A. Smith (2012). An exact dual decomposition algorithm for shallow semantic parsing with
constraints. *SEM.
"""

from __future__ import annotations

import numpy as np

from partwise.engine.compilation import helper
from partwise.engine.numerics import copy, fill
from partwise.structures.factor_graph.ad3 import ad3
from partwise.structures.factor_graph.factors import FAR
from partwise.structures.factor_graph.layout import choices, hold_state, n_literals
from partwise.structures.factor_graph.rounding import is_closed, value_of_output


@helper
def best_exactly(graph, theta, y, max_iterations, tol, max_nodes):
    """The best output by branching on the states of variables that AD3 leaves undecided, depth first.

    Returns its score, a bound, and how many nodes were looked at. If that is `max_nodes`, the bound may be above the score.
    """
    n, V = n_literals(graph), len(graph.states)
    fixed, depth, nodes = np.full(V, -1, np.int64), 0, 0
    path, bounds = np.empty(V + 1, np.int64), np.full(V + 1, -np.inf)  # variables branched on, bounds of what is below
    most = 2
    for v in range(V):
        most = max(most, graph.states[v])
    tried = np.zeros((V + 1, most), np.bool_)
    held, p, guess, none = theta.copy(), np.empty(n), np.empty(V, np.int32), np.empty(0)
    boost = 1.0
    for k in range(len(theta)):
        if theta[k] > -np.inf:
            boost += 2.0 * abs(theta[k])
    value = -np.inf
    fill(y, 0)
    while True:
        # one node: what is fixed is fixed
        copy(theta, held)
        lifted = 0.0
        for v in range(V):
            if fixed[v] >= 0:
                lifted += hold_state(graph, held, v, fixed[v], boost)
        score, bound, _ = ad3(graph, held, guess, p, max_iterations, tol, none)
        nodes += 1
        score, bound = score - lifted, bound - lifted
        for v in range(V):
            if score > -np.inf and fixed[v] >= 0 and guess[v] != fixed[v]:
                score = -np.inf  # lifted, and yet not taken: nothing allowed has it
        if score > value:
            value = value_of_output(graph, theta, guess)
            copy(guess, y)
        closed = bound < -0.5 * FAR or is_closed(value, bound)
        if not closed and nodes >= max_nodes:
            return value, max(bound, bounds[:depth].max() if depth else bound), nodes
        pick, least = -1, np.inf
        if not closed:
            for v in range(V):
                if fixed[v] >= 0:
                    continue
                a, m = graph.first[v], graph.states[v]
                sure = abs(p[a] - 0.5) if m == 1 else p[a : a + m].max()
                if sure < least:
                    pick, least = v, sure
        if pick >= 0:  # deeper, the likelier state first
            path[depth], bounds[depth] = pick, bound
            tried[depth] = False
            depth += 1
        # the next state to try, here or further up
        while depth > 0:
            v = path[depth - 1]
            s = -1
            if pick >= 0:
                if graph.states[v] == 1:
                    s = 1 if p[graph.first[v]] > 0.5 else 0
                else:
                    s = np.argmax(p[graph.first[v] : graph.first[v + 1]])
                pick = -1
            else:
                for k in range(choices(graph, v)):
                    if not tried[depth - 1, k]:
                        s = k
            if s >= 0:
                tried[depth - 1, s], fixed[v] = True, s
                break
            fixed[v] = -1
            depth -= 1
        if depth == 0:
            return value, value, nodes
