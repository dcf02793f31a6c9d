"""One factor on its own: the sum over its configurations, and what it says to its ports.

    log Z_f = log sum_c exp(table[c] + sum over ports on in c of scores[port]),

and the same with a port forced on, less the same with it forced off: the messages of belief propagation.

Costs: dense factors the size of their table times their number of variables, the hard factors of logic O(ports^2),
BUDGET O(ports x number^2), KNAPSACK O(ports x number), TREE O(n^3) (the matrix-tree theorem), HEAD O(arcs in x arcs out^2).
"""

from __future__ import annotations

import numpy as np

from partwise.engine.compilation import helper, kernel
from partwise.engine.numerics import clipped, fill, softplus
from partwise.structures.dependency.projective import sum_over_projective_trees
from partwise.structures.dependency.spanning import log_add, sum_over_trees
from partwise.structures.factor_graph.factors import advance, arc_scores, port_score
from partwise.structures.factor_graph.head import head_messages
from partwise.structures.factor_graph.layout import (
    AND_OUT,
    AT_MOST_ONE,
    BUDGET,
    DENSE,
    HEAD,
    IMPLY,
    KNAPSACK,
    ONE_OF_K,
    OR,
    PROJECTIVE,
    SINGLE_ROOT,
    TREE,
    WHOLE,
    WRITTEN,
    TreeLayout,
    choices,
)


@helper
def certainty(theta):
    """Log-odds of what is certain: finite, so that sums of them are, and more than any scores together."""
    total = 1e3
    for k in range(len(theta)):
        if theta[k] > -np.inf:
            total += 4.0 * abs(theta[k])
    return total


@helper
def messages_of(graph, f, theta, scores, out, parts, far):
    """What the factor says to each port, and log sum_c exp of its scores.

    `scores` are what the rest of the graph says: log-odds of single literals, and for all literals of a variable (in a dense
    factor, or the variable of ONE_OF_K) a log-weight for each of its states. `out` is of the same form, without what came in
    through the same port. The marginals of the factor's table are written into `parts`, an array like theta, unless it is empty.
    """
    kind, n = graph.kind[f], len(scores)
    if kind == DENSE:
        return dense_messages(graph, f, theta, scores, out, parts, far)
    if kind == TREE or kind == HEAD or kind == WRITTEN:
        return tree_kind_messages(graph, f, theta, scores, out, parts, far)
    mark, total = graph.mark[graph.ports[f] : graph.ports[f + 1]], 0.0
    value = np.empty(n)
    for p in range(n):
        value[p] = max(-far, scores[p])
        if mark[p]:
            value[p] = -value[p]
            total -= value[p]
    total += logic_messages(graph, f, kind, value, out, far)
    for p in range(n):
        if mark[p]:
            out[p] = -out[p]
        out[p] = clipped(out[p], far)
    return total


@kernel(default=True)
def tree_kind_messages(graph, f, theta, scores, out, parts, far):
    """The same for a TREE, a HEAD or a WRITTEN factor, which a plain `FactorLayout` never has."""
    return -np.inf


@tree_kind_messages.implements(TreeLayout)
def tree_or_head_messages(graph, f, theta, scores, out, parts, far):
    if graph.kind[f] == TREE:
        return tree_messages(graph, f, scores, out, far)
    members = graph.members[graph.slots[f] : graph.slots[f + 1]]
    a, b = graph.table[f], graph.table[f + 1]
    return head_messages(members, theta[a:b], scores, out, parts[a:b] if len(parts) else parts, far)


@helper
def any_of(scores, without):
    """log weights of any choice of ports, one left out, and of any but none: a sum over the first one on, not a difference."""
    free, some = 0.0, -np.inf
    for p in range(len(scores) - 1, -1, -1):
        if p != without:
            some = log_add(some, scores[p] + free)
            free += softplus(scores[p])
    return free, some


@helper
def logic_messages(graph, f, kind, scores, out, far):
    """The same for the hard factors of logic: log Z with the port on, without its own score, less log Z with it off."""
    n = len(scores)
    if kind == ONE_OF_K:
        k, total = n // 2, -np.inf
        for s in range(k):
            out[s] = scores[k + s]
            total = log_add(total, scores[s] + scores[k + s])
            rest = -np.inf
            for t in range(k):
                if t != s:
                    rest = log_add(rest, scores[t] + scores[k + t])
            out[k + s] = max(-far, scores[s]) - max(-far, rest)
        return total
    if kind == AND_OUT or kind == IMPLY:
        last, lazy = scores[n - 1], softplus(scores[n - 1]) if kind == IMPLY else 0.0  # what the outcome adds if not all hold
        for p in range(n - 1):
            every, free, some = conditions(scores, n - 1, p)
            out[p] = log_add(every + last, some + lazy) - (free + lazy)
        every, free, some = conditions(scores, n - 1, -1)
        if kind == AND_OUT:
            out[n - 1] = max(-far, every) - max(-far, some)
        else:
            out[n - 1] = free - max(-far, some)
        return log_add(every + last, some + lazy)
    if kind == BUDGET:
        return budget_messages(scores, graph.number[f], out, far)
    if kind == KNAPSACK:
        return knapsack_messages(scores, graph.members[graph.slots[f] : graph.slots[f + 1]], graph.number[f], out, far)
    if kind == OR:
        for p in range(n):
            free, some = any_of(scores, p)
            out[p] = free - max(-far, some)
        return any_of(scores, -1)[1]
    total = 0.0 if kind == AT_MOST_ONE else -np.inf
    for p in range(n):
        rest = 0.0 if kind == AT_MOST_ONE else -np.inf
        for q in range(n):
            if q != p:
                rest = log_add(rest, scores[q])
        out[p] = -max(-far, rest)
        total = log_add(total, scores[p])
    return total


@helper
def conditions(scores, n, without):
    """log weights of n conditions, one left out: of all holding, of any choice, and of any but all.

    The last is a sum over the first condition that fails, not a difference: there may be nothing left of that.
    """
    every, free, some = 0.0, 0.0, -np.inf
    for p in range(n - 1, -1, -1):
        if p != without:
            some = log_add(some + scores[p], free)
            every += scores[p]
            free += softplus(scores[p])
    return every, free, some


@helper
def budget_messages(scores, most, out, far):
    """Counts from the left and from the right: before[p, c] = log weight of c on among the first p."""
    n = len(scores)
    most = min(most, n)
    before, after = np.full((n + 1, most + 1), -np.inf), np.full((n + 1, most + 1), -np.inf)
    before[0, 0], after[n, 0] = 0.0, 0.0
    for p in range(n):
        for c in range(most + 1):
            before[p + 1, c] = before[p, c]
            if c:
                before[p + 1, c] = log_add(before[p, c], before[p, c - 1] + scores[p])
    for p in range(n - 1, -1, -1):
        for c in range(most + 1):
            after[p, c] = after[p + 1, c]
            if c:
                after[p, c] = log_add(after[p + 1, c], after[p + 1, c - 1] + scores[p])
    for p in range(n):
        yes, no = -np.inf, -np.inf
        for c in range(most + 1):
            for d in range(most + 1 - c):
                both = before[p, c] + after[p + 1, d]
                no = log_add(no, both)
                if c + d < most:
                    yes = log_add(yes, both)
        out[p] = max(-far, yes) - max(-far, no)
    total = -np.inf
    for c in range(most + 1):
        total = log_add(total, before[n, c])
    return total


@helper
def knapsack_messages(scores, costs, most, out, far):
    """Log weights: before[p, c] of spending just c on the first p ports, after[p, c] of spending at most c on those from p on."""
    n = len(scores)
    most = min(most, costs.sum())
    before, after = np.full((n + 1, most + 1), -np.inf), np.zeros((n + 1, most + 1))
    before[0, 0] = 0.0
    for p in range(n):
        for c in range(most + 1):
            before[p + 1, c] = before[p, c]
            if costs[p] <= c:
                before[p + 1, c] = log_add(before[p, c], before[p, c - costs[p]] + scores[p])
    for p in range(n - 1, -1, -1):
        for c in range(most + 1):
            after[p, c] = after[p + 1, c]
            if costs[p] <= c:
                after[p, c] = log_add(after[p + 1, c], after[p + 1, c - costs[p]] + scores[p])
    for p in range(n):
        yes, no = -np.inf, -np.inf
        for c in range(most + 1):
            no = log_add(no, before[p, c] + after[p + 1, most - c])
            if c + costs[p] <= most:
                yes = log_add(yes, before[p, c] + after[p + 1, most - c - costs[p]])
        out[p] = max(-far, yes) - max(-far, no)
    return after[0, most]


@helper
def dense_messages(graph, f, theta, scores, out, parts, far):
    """Sums over the table; those to a variable leave out what it said."""
    a, b = graph.slots[f], graph.slots[f + 1]
    arity, table = b - a, theta[graph.table[f] : graph.table[f + 1]]
    state, where, count = np.zeros(arity, np.int64), np.zeros(arity, np.int64), np.empty(arity, np.int64)
    for j in range(arity):
        count[j] = choices(graph, graph.members[a + j])
        where[j] = 0 if j == 0 else where[j - 1] + graph.states[graph.members[a + j - 1]]
    sums = np.empty(count.max())
    for j in range(arity):
        fill(state, 0)
        fill(sums, -np.inf)
        for entry in range(len(table)):
            value = table[entry]
            for other in range(arity):
                if other != j:
                    value += port_score(graph, a + other, scores, where[other], state[other])
            sums[state[j]] = log_add(sums[state[j]], value)
            advance(state, count)
        if graph.states[graph.members[a + j]] > 1:
            for s in range(count[j]):
                out[where[j] + s] = sums[s]
        else:
            out[where[j]] = clipped(max(-far, sums[1]) - max(-far, sums[0]), far)
    total, j = -np.inf, arity - 1
    for s in range(count[j]):
        total = log_add(total, sums[s] + port_score(graph, a + j, scores, where[j], s))
    if len(parts) and total > -np.inf:
        fill(state, 0)
        for entry in range(len(table)):
            value = table[entry] - total
            for j in range(arity):
                value += port_score(graph, a + j, scores, where[j], state[j])
            parts[graph.table[f] + entry] = np.exp(value)
            advance(state, count)
    return total


@helper
def tree_messages(graph, f, scores, out, far):
    """Marginals of arcs by the matrix-tree theorem; what is left of a word's head is the sum over its other heads."""
    n, kind = graph.members[graph.slots[f]], graph.members[graph.slots[f] + 1]
    matrix, marginals = arc_scores(graph, f, scores), np.zeros((n, n + 1))
    single = (kind & SINGLE_ROOT) > 0
    if kind & PROJECTIVE:
        total = sum_over_projective_trees(matrix, n, single, marginals)
    else:
        total = sum_over_trees(matrix, n, single, marginals)
    for p in range(len(scores)):
        port = graph.ports[f] + p
        arc, rest = graph.mark[port], 0.0
        m, h = arc // (n + 1), arc % (n + 1)
        if kind & WHOLE and graph.states[graph.owner[graph.literal[port]]] > 1:  # log-weights of the states of a head
            out[p] = np.log(marginals[m, h]) - scores[p] if marginals[m, h] > 0.0 else -np.inf
            continue
        for g in range(n + 1):
            if g != h:
                rest += marginals[m, g]
        odds = -far if marginals[m, h] <= 0.0 else far if rest <= 0.0 else np.log(marginals[m, h]) - np.log(rest)
        out[p] = clipped(odds - clipped(scores[p], far), far)
    return total
