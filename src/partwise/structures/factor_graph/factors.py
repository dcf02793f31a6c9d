"""One factor on its own: its best configuration, and whether an output has one.

Every port of the factor has a score, which a configuration gets if it turns the port on:

    max_c  table[c] + sum over ports on in c of scores[port]

Costs: dense factors the size of their table, XOR, AT_MOST_ONE, OR, AND_OUT, IMPLY and ONE_OF_K O(ports), BUDGET O(ports^2),
KNAPSACK O(ports x number), TREE O(n^2), HEAD O(arcs in x arcs out^2).
"""

from __future__ import annotations

import numpy as np

from partwise.engine.compilation import helper, kernel
from partwise.engine.numerics import fill
from partwise.structures.dependency.projective import best_projective_tree
from partwise.structures.dependency.spanning import best_tree
from partwise.structures.factor_graph.head import best_head, head_value
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
    WRITTEN,
    XOR,
    TreeLayout,
    choices,
    entry_of,
    is_on,
)

FAR = 1e9  # what forbids a port whose literal is negated: finite, so that it can be taken off again


@helper
def best_configuration(graph, f, theta, scores, on):
    """Turn ports on so that the score is highest, and return it; -inf if no configuration is left."""
    kind, n = graph.kind[f], len(scores)
    if kind == DENSE:
        return best_entry(graph, f, theta, scores, on)
    if kind == TREE or kind == HEAD or kind == WRITTEN:
        return best_of_tree_kind(graph, f, theta, scores, on)
    mark, total = graph.mark[graph.ports[f] : graph.ports[f + 1]], 0.0
    value = np.empty(n)
    for p in range(n):
        value[p] = scores[p]
        if mark[p]:  # "not this literal" scores nothing, and the literal that much less
            value[p] = -max(-FAR, scores[p])
            total -= value[p]
    total += best_logic(graph, f, kind, value, on)
    for p in range(n):
        if mark[p]:
            on[p] = 1 - on[p]
    return total


@kernel(default=True)
def best_of_tree_kind(graph, f, theta, scores, on):
    """The same for a TREE, a HEAD or a WRITTEN factor, which a plain `FactorLayout` never has."""
    return -np.inf


@best_of_tree_kind.implements(TreeLayout)
def best_tree_or_head(graph, f, theta, scores, on):
    if graph.kind[f] == TREE:
        return best_arcs(graph, f, scores, on)
    members = graph.members[graph.slots[f] : graph.slots[f + 1]]
    return best_head(members, theta[graph.table[f] : graph.table[f + 1]], scores, on)


@helper
def best_logic(graph, f, kind, scores, on):
    """The same for the hard factors of logic."""
    n, total = len(scores), 0.0
    fill(on, 0)
    if kind == KNAPSACK:
        return best_knapsack(scores, graph.members[graph.slots[f] : graph.slots[f + 1]], graph.number[f], on)
    if kind == ONE_OF_K:
        k, top = n // 2, 0
        for s in range(1, k):
            if scores[s] + scores[k + s] > scores[top] + scores[k + top]:
                top = s
        on[top], on[k + top] = 1, 1
        return scores[top] + scores[k + top]
    if kind == AND_OUT or kind == IMPLY:
        out, low = scores[n - 1], 0
        for p in range(n - 1):
            if scores[p] < scores[low]:
                low = p
            if scores[p] > 0.0:
                on[p] = 1
                total += scores[p]
        every, free = out, total  # all conditions on; or any of them but not all
        for p in range(n - 1):
            every += scores[p]
        full = n < 2 or scores[low] > 0.0  # the free choice is all of them: leave out the cheapest
        if full and n > 1:
            free -= scores[low]
        if n < 2:
            free = -np.inf
        if kind == IMPLY and out > 0.0:
            free += out
        if every > free:
            fill(on, 1)
            return every
        if full and n > 1:
            on[low] = 0
        if kind == IMPLY and out > 0.0:
            on[n - 1] = 1
        return free
    top = 0
    for p in range(1, n):
        if scores[p] > scores[top]:
            top = p
    if kind == XOR or (kind == AT_MOST_ONE and scores[top] > 0.0):
        on[top] = 1
        return scores[top]
    if kind == AT_MOST_ONE:
        return 0.0
    for p in range(n):
        if scores[p] > 0.0:
            on[p] = 1
            total += scores[p]
    if kind == OR and scores[top] <= 0.0:
        on[top] = 1
        return scores[top]
    if kind == BUDGET:
        most, used = graph.number[f], 0
        for p in range(n):
            used += on[p]
        while used > most:  # drop the least of those taken
            low = -1
            for p in range(n):
                if on[p] and (low < 0 or scores[p] < scores[low]):
                    low = p
            on[low] = 0
            total -= scores[low]
            used -= 1
    return total


@helper
def best_knapsack(scores, costs, most, on):
    """The best ports that cost no more than `most` together: ``best[p, c]`` is what the first p ports give for at most c."""
    n = len(scores)
    most = min(most, costs.sum())
    best = np.zeros((n + 1, most + 1))
    for p in range(n):
        for c in range(most + 1):
            best[p + 1, c] = best[p, c]
            if costs[p] <= c:
                best[p + 1, c] = max(best[p, c], best[p, c - costs[p]] + scores[p])
    left = most
    for p in range(n - 1, -1, -1):
        if best[p + 1, left] > best[p, left]:
            on[p] = 1
            left -= costs[p]
    return best[n, most]


@helper
def best_entry(graph, f, theta, scores, on):
    """The best configuration of a dense factor."""
    a, b = graph.slots[f], graph.slots[f + 1]
    table = theta[graph.table[f] : graph.table[f + 1]]
    top, best = -np.inf, 0
    if b - a == 2 and graph.states[graph.members[a]] > 1 and graph.states[graph.members[a + 1]] > 1:
        K, L = graph.states[graph.members[a]], graph.states[graph.members[a + 1]]
        right = scores[K : K + L]
        for s in range(K):
            line, here, high = table[s * L : (s + 1) * L], scores[s], -np.inf
            for t in range(L):
                high = max(high, line[t] + right[t])
            if here + high > top:
                top, best = here + high, s
        fill(on, 0)
        on[best] = 1
        line, high, k = table[best * L : (best + 1) * L], -np.inf, 0
        for t in range(L):
            if line[t] + right[t] > high:
                high, k = line[t] + right[t], t
        on[K + k] = 1
        return top
    state, where, count = np.zeros(b - a, np.int64), np.zeros(b - a, np.int64), np.empty(b - a, np.int64)
    for j in range(b - a):
        count[j] = choices(graph, graph.members[a + j])
        where[j] = 0 if j == 0 else where[j - 1] + graph.states[graph.members[a + j - 1]]
    for entry in range(len(table)):
        value = table[entry]
        for j in range(b - a):
            value += port_score(graph, a + j, scores, where[j], state[j])
        if value > top:
            top, best = value, entry
        advance(state, count)
    fill(on, 0)
    for j in range(b - a - 1, -1, -1):
        s = best % count[j]
        best //= count[j]
        if graph.states[graph.members[a + j]] > 1:
            on[where[j] + s] = 1
        else:
            on[where[j]] = s
    return top


@helper
def port_score(graph, slot, scores, where, s):
    """What state s of a variable of a dense factor adds, its ports beginning at `where`."""
    if graph.states[graph.members[slot]] > 1:
        return scores[where + s]
    return scores[where] if s else 0.0


@helper
def advance(state, count):
    """The next configuration, the last variable running fastest."""
    for j in range(len(state) - 1, -1, -1):
        state[j] += 1
        if state[j] < count[j]:
            return
        state[j] = 0


@helper
def arc_scores(graph, f, scores):
    """The scores of a tree's ports as a matrix (words, words + 1)."""
    n = graph.members[graph.slots[f]]
    matrix = np.full((n, n + 1), -np.inf)
    for p in range(len(scores)):
        arc = graph.mark[graph.ports[f] + p]
        matrix[arc // (n + 1), arc % (n + 1)] = scores[p]
    return matrix


@helper
def best_arcs(graph, f, scores, on):
    """The best tree."""
    n, kind = graph.members[graph.slots[f]], graph.members[graph.slots[f] + 1]
    matrix, heads = arc_scores(graph, f, scores), np.zeros(n, np.int32)
    single = (kind & SINGLE_ROOT) > 0
    if kind & PROJECTIVE:
        value = best_projective_tree(matrix, n, single, heads)
    else:
        value = best_tree(matrix, n, single, heads)
    for p in range(len(scores)):
        arc = graph.mark[graph.ports[f] + p]
        on[p] = 1 if heads[arc // (n + 1)] == arc % (n + 1) else 0
    return value


# ---------------------------------------------------------------------------------------------------------------------
# A given output
# ---------------------------------------------------------------------------------------------------------------------


@helper
def allows(graph, f, y):
    """Whether a factor has a configuration for this output."""
    kind, a, b = graph.kind[f], graph.ports[f], graph.ports[f + 1]
    if kind == DENSE:
        return True
    used, conditions = 0, 0
    for p in range(a, b):
        yes = is_on(graph, graph.literal[p], y) != (graph.mark[p] == 1 and kind != TREE)
        used += yes
        if p < b - 1:
            conditions += yes
    last = used > conditions
    if kind == XOR:
        return used == 1
    if kind == AT_MOST_ONE:
        return used <= 1
    if kind == OR:
        return used >= 1
    if kind == AND_OUT:
        return last == (conditions == b - a - 1)
    if kind == IMPLY:
        return last or conditions < b - a - 1
    if kind == BUDGET:
        return used <= graph.number[f]
    if kind == KNAPSACK:
        spent = 0
        for p in range(a, b):
            if is_on(graph, graph.literal[p], y) != (graph.mark[p] == 1):
                spent += graph.members[graph.slots[f] + p - a]
        return spent <= graph.number[f]
    if kind == ONE_OF_K:
        k, s = (b - a) // 2, y[graph.members[graph.slots[f]]]
        return used == 2 and is_on(graph, graph.literal[a + k + s], y)
    return tree_kind_allows(graph, f, y, used)


@kernel(default=True)
def tree_kind_allows(graph, f, y, used):
    """The same for a TREE or a HEAD; so many of its literals hold."""
    return False


@tree_kind_allows.implements(TreeLayout)
def tree_or_head_allows(graph, f, y, used):
    a, b = graph.ports[f], graph.ports[f + 1]
    scores, on = np.empty(b - a), np.zeros(b - a, np.int8)
    for p in range(b - a):
        scores[p] = 0.0 if is_on(graph, graph.literal[a + p], y) else -np.inf
    if graph.kind[f] == HEAD:
        into = 0
        for p in range(graph.members[graph.slots[f]]):
            into += scores[p] == 0.0
        return into == min(1, graph.members[graph.slots[f]])
    n = graph.members[graph.slots[f]]
    return used == n and best_arcs(graph, f, scores, on) > -np.inf


@helper
def table_value(graph, f, theta, y):
    """The table's score of an output that the factor allows."""
    if graph.kind[f] == DENSE:
        return theta[graph.table[f] + entry_of(graph, f, y)]
    return head_table_value(graph, f, theta, y)


@kernel(default=True)
def head_table_value(graph, f, theta, y):
    """The same for a HEAD; others have no table."""
    return 0.0


@head_table_value.implements(TreeLayout)
def head_value_of(graph, f, theta, y):
    if graph.kind[f] != HEAD:
        return 0.0
    a, b = graph.ports[f], graph.ports[f + 1]
    members = graph.members[graph.slots[f] : graph.slots[f + 1]]
    on = np.zeros(b - a, np.int8)
    for p in range(b - a):
        on[p] = is_on(graph, graph.literal[a + p], y)
    return head_value(members, theta[graph.table[f] : graph.table[f + 1]], on)
