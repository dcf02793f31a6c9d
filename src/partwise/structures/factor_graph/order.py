"""In which order the factors of a graph are visited, and whether it is a forest."""

from __future__ import annotations

import numpy as np

from partwise.engine.compilation import helper


@helper
def factors_at(graph):
    """The factors at each variable, each once: those of variable v are ``at[count[v] : count[v + 1]]``. O(ports)."""
    V = len(graph.states)
    count, last = np.zeros(V + 1, np.int64), np.full(V, -1, np.int64)
    for f in range(len(graph.kind)):
        for p in range(graph.ports[f], graph.ports[f + 1]):
            v = graph.owner[graph.literal[p]]
            if last[v] != f:
                last[v] = f
                count[v + 1] += 1
    for v in range(V):
        count[v + 1] += count[v]
        last[v] = -1
    at, free = np.empty(count[V], np.int64), count[:V].copy()
    for f in range(len(graph.kind)):
        for p in range(graph.ports[f], graph.ports[f + 1]):
            v = graph.owner[graph.literal[p]]
            if last[v] != f:
                last[v] = f
                at[free[v]] = f
                free[v] += 1
    return count, at


@helper
def plan(graph, left_out, order, parents):
    """Fill `order` with the factors breadth first, each after the one above it; returns whether there is no cycle.

    A variable above each factor is written into `parents`. Variables and factors that share a literal are neighbours; a cycle is
    one in that graph. Factors marked in `left_out` do not count. O(ports).
    """
    V = len(graph.states)
    count, at = factors_at(graph)
    seen, placed, queue = np.zeros(V, np.bool_), left_out.copy(), np.empty(V, np.int64)
    n, forest = 0, True
    for root in range(V):
        if seen[root]:
            continue
        head, tail = 0, 1
        queue[0], seen[root] = root, True
        while head < tail:
            v = queue[head]
            head += 1
            for j in range(count[v], count[v + 1]):
                f = at[j]
                if placed[f]:
                    continue
                placed[f], order[n], parents[f] = True, f, v
                n += 1
                for p in range(graph.ports[f], graph.ports[f + 1]):
                    u = graph.owner[graph.literal[p]]
                    if u == v:
                        continue
                    if not seen[u]:
                        seen[u], queue[tail] = True, u
                        tail += 1
                    elif p == graph.ports[f] or graph.owner[graph.literal[p - 1]] != u:
                        forest = False
    return forest
