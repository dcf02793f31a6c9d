"""Before AD3: the bound of a graph of pairs, lowered one variable at a time.

AD3's bound is a function of the multipliers that every factor f adds to the scores of its ports,

    B(lambda) = sum_f max_c (table_f[c] + q_f . c),     q_f = theta / degree + lambda_f,     sum_f lambda_f = 0 for each literal.

Coordinate ascent in the dual lowers it exactly, variable by variable. For the factors f of variable v, with their max-marginals

    m_f(s) = max { table_f[c] + q_f . c :  c has v in state s },     M(s) = sum_f m_f(s),

new multipliers make the max-marginals of f a share omega_f of their sum, omega_f >= 0, sum_f omega_f = 1:

    q_f(v, s) += omega_f M(s) - m_f(s),      so that afterwards   sum_f max_s m_f(s) = max_s M(s) <= sum_f max_s m_f(s) before.

Variables are visited in their order and back. What a sweep knows is handed on in its direction: factors that lead on get
1 / max(leading on, leading back) each, what is left goes back: the weights of sequential tree-reweighted message passing, of
which this is the case of single pairs. On grids some dozen sweeps are as good as hundreds of iterations of AD3, and cheaper than
one each. But coordinate ascent may come to rest above the minimum, as AD3 does not: AD3 goes on from here. What is left for it
is little: states that no output has that is better than the best one seen (`forget_states`) are forbidden on the way, so that
most variables are settled. From then on the bound holds for what can still be better, and may fall below the linear program.

Only factors of two variables with states take part; the others keep their multipliers, and so does what they add to the bound.

Cost of a sweep: four passes over the tables. Memory: O(ports).

References
----------
V. Kolmogorov (2006). Convergent tree-reweighted message passing for energy minimization. IEEE PAMI 28(10).
A. Globerson, T. Jaakkola (2007). Fixing max-product: convergent message passing algorithms for MAP LP-relaxations. NIPS.
"""

from __future__ import annotations

import numpy as np

from partwise.engine.compilation import helper
from partwise.engine.numerics import copy, fill
from partwise.structures.factor_graph.layout import DENSE, write_states
from partwise.structures.factor_graph.rounding import improved, is_closed, value_of_output

TIED = 1e-3  # sums of max-marginals that are so near the highest count as highest
EVERY, FEW = 10, 4  # sweeps from one look at whole outputs to the next; where the bound rests
NEW = 0.01  # of all literals: if no more are forbidden at a look, and the bound rests, sweeps end
SLOW = 1e-3  # of what is known to be missing, or of `tol`: a sweep that lowers the bound by less is one of the last


@helper
def is_pair(graph, f):
    """Whether a factor scores the states of two variables."""
    a = graph.slots[f]
    if graph.kind[f] != DENSE or graph.slots[f + 1] - a != 2:
        return False
    return graph.states[graph.members[a]] > 1 and graph.states[graph.members[a + 1]] > 1


@helper
def best_of_pair(table, left, right):
    """max over both states."""
    top = -np.inf
    for s in range(len(left)):
        high = -np.inf
        for t in range(len(right)):
            high = max(high, table[s * len(right) + t] + right[t])
        top = max(top, high + left[s])
    return top


@helper
def max_marginals(table, left, right, of_left, out):
    """m(s) of the left variable, or of the right one."""
    n = len(right)
    if of_left:
        for s in range(len(left)):
            high = -np.inf
            for t in range(n):
                high = max(high, table[s * n + t] + right[t])
            out[s] = high + left[s]
        return
    for t in range(n):
        out[t] = -np.inf
    for s in range(len(left)):
        for t in range(n):
            out[t] = max(out[t], table[s * n + t] + left[s])
    for t in range(n):
        out[t] += right[t]


@helper
def visit(graph, v, theta, q, factors, forward, m, total):
    """Lower the bound by the multipliers of one variable, whose pairs are `factors`. `total` becomes M."""
    n, on = graph.states[v], 0
    fill(total[:n], 0.0)
    for j in range(len(factors)):
        f = factors[j]
        a, u, w = graph.ports[f], graph.members[graph.slots[f]], graph.members[graph.slots[f] + 1]
        middle = a + graph.states[u]
        table = theta[graph.table[f] : graph.table[f + 1]]
        max_marginals(table, q[a:middle], q[middle : graph.ports[f + 1]], u == v, m[j])
        for s in range(n):
            total[s] += m[j, s]
        on += ((w if u == v else u) > v) == forward
    back = len(factors) - on
    share = 1.0 / max(on, back)
    rest = (1.0 - share * on) / max(back, 1)
    if back == 0:
        share = 1.0 / on
    for j in range(len(factors)):
        f = factors[j]
        u, w = graph.members[graph.slots[f]], graph.members[graph.slots[f] + 1]
        a = graph.ports[f] + (0 if u == v else graph.states[u])
        omega = share if ((w if u == v else u) > v) == forward else rest
        for s in range(n):
            q[a + s] = q[a + s] + omega * total[s] - m[j, s] if total[s] > -np.inf else -np.inf


@helper
def decode(graph, v, theta, q, factors, forward, y, m, total):
    """The state of a variable, those before it being settled: what they say is certain, of others there are max-marginals."""
    n = graph.states[v]
    fill(total[:n], 0.0)
    for j in range(len(factors)):
        f = factors[j]
        a, u, w = graph.ports[f], graph.members[graph.slots[f]], graph.members[graph.slots[f] + 1]
        middle = a + graph.states[u]
        table, right = theta[graph.table[f] : graph.table[f + 1]], graph.states[w]
        other = w if u == v else u
        settled = (other < v) == forward
        if not settled:
            max_marginals(table, q[a:middle], q[middle : graph.ports[f + 1]], u == v, m[j])
        for s in range(n):
            if not settled:
                total[s] += m[j, s]
            elif u == v:
                total[s] += q[a + s] + table[s * right + y[w]]
            else:
                total[s] += q[middle + s] + table[y[u] * right + s]
    top = 0
    for s in range(1, n):
        if total[s] > total[top]:
            top = s
    y[v] = top


@helper
def pairs_at(graph):
    """The pairs at each variable, as `factors_at` has them, and the most of one variable."""
    V, most = len(graph.states), 0
    count = np.zeros(V + 1, np.int64)
    for f in range(len(graph.kind)):
        if is_pair(graph, f):
            for j in range(graph.slots[f], graph.slots[f + 1]):
                count[graph.members[j] + 1] += 1
    for v in range(V):
        most = max(most, count[v + 1])
        count[v + 1] += count[v]
    at, free = np.empty(count[V], np.int64), count[:V].copy()
    for f in range(len(graph.kind)):
        if is_pair(graph, f):
            for j in range(graph.slots[f], graph.slots[f + 1]):
                v = graph.members[j]
                at[free[v]] = f
                free[v] += 1
    return count, at, most


@helper
def bound_of_pairs(graph, theta, q):
    """What pairs add to the bound."""
    total = 0.0
    for f in range(len(graph.kind)):
        if is_pair(graph, f):
            a, b = graph.ports[f], graph.ports[f + 1]
            middle = a + graph.states[graph.members[graph.slots[f]]]
            total += best_of_pair(theta[graph.table[f] : graph.table[f + 1]], q[a:middle], q[middle:b])
    return total


@helper
def forget_states(graph, theta, q, count, at, surplus, fixed, m, total):
    """Forbid states that no output has that is better than the best seen; returns how many.

    The bound of outputs in which v has state s is lower by ``sum_f (max m_f - m_f(s))``: if that is more than the `surplus` of
    the bound over the best output seen, s is not needed. The output seen keeps its states. `fixed` are variables with one state
    left, which need no more visits.
    """
    n = 0
    for v in range(len(graph.states)):
        factors, k, left = at[count[v] : count[v + 1]], graph.states[v], 0
        if fixed[v] or len(factors) == 0:
            continue
        fill(total[:k], 0.0)
        for j in range(len(factors)):
            f = factors[j]
            a, u = graph.ports[f], graph.members[graph.slots[f]]
            middle, top = a + graph.states[u], -np.inf
            table = theta[graph.table[f] : graph.table[f + 1]]
            max_marginals(table, q[a:middle], q[middle : graph.ports[f + 1]], u == v, m[0])
            for s in range(k):
                top = max(top, m[0, s])
            for s in range(k):
                total[s] += top - m[0, s]
        for s in range(k):
            left += total[s] <= surplus
            if surplus < total[s] < np.inf:
                for j in range(len(factors)):
                    f = factors[j]
                    a, u = graph.ports[f], graph.members[graph.slots[f]]
                    q[a + s if u == v else a + graph.states[u] + s] = -np.inf
                n += 1
        fixed[v] = left == 1
    return n


@helper
def ascend(graph, theta, q, others, y, guess, p, sweeps, tol, bounds):
    """Sweep until a sweep is not worth its price; q are scores of ports with multipliers, `others` the rest of the bound.

    Returns the score of the best output seen (in y), the bound, and the number of sweeps; the bound after each goes to `bounds`.
    In q what no better output needs is forbidden, and p are literals of highest sums of max-marginals, evenly.
    """
    V = len(graph.states)
    count, at, most = pairs_at(graph)
    if most < 2:
        return -np.inf, np.inf, 0
    widest = 0
    for v in range(V):
        widest = max(widest, graph.states[v])
    m, total, fixed = np.empty((most, widest)), np.empty(widest), np.zeros(V, np.bool_)
    write_states(graph, theta, guess)  # for what has no pairs
    for v in range(V):
        if graph.states[v] == 1:
            guess[v] = 1 if theta[graph.first[v]] > 0.0 else 0
    value, bound, looked = -np.inf, np.inf, 0
    for sweep in range(sweeps):
        for v in range(V):
            if count[v + 1] > count[v] and not fixed[v]:
                visit(graph, v, theta, q, at[count[v] : count[v + 1]], True, m, total)
        for v in range(V - 1, -1, -1):
            if count[v + 1] > count[v] and not fixed[v]:
                visit(graph, v, theta, q, at[count[v] : count[v + 1]], False, m, total)
        before, bound = bound, min(bound, others + bound_of_pairs(graph, theta, q))
        if sweep < len(bounds):
            bounds[sweep] = bound
        if bound == -np.inf:  # no output is allowed
            return value, bound, sweep + 1
        resting = before - bound < max(SLOW * min(bound - value, 1.0), tol * (1.0 + abs(bound)))
        last = sweep == sweeps - 1
        if not last and sweep - looked < (FEW if resting else EVERY):
            continue
        looked = sweep
        for back in range(2):
            for k in range(V):
                v = V - 1 - k if back else k
                if count[v + 1] > count[v]:
                    decode(graph, v, theta, q, at[count[v] : count[v + 1]], back == 0, guess, m, total)
            score = value_of_output(graph, theta, guess)
            if (last or resting) and score > -np.inf and not is_closed(score, bound):
                score = improved(graph, theta, guess)
            if score > value:
                value = score
                copy(guess, y)
        if is_closed(value, bound):
            return value, bound, sweep + 1
        dead = 0
        if value > -np.inf:
            surplus = bound - value + 1e-9 * (1.0 + abs(bound))
            dead = forget_states(graph, theta, q, count, at, surplus, fixed, m, total)
        if last or (resting and dead <= NEW * len(p)):
            break
    likely(graph, theta, q, count, at, p, m, total)
    return value, bound, sweep + 1


@helper
def likely(graph, theta, q, count, at, p, m, total):
    """p: for each variable with pairs, evenly the states whose sum of max-marginals is the highest."""
    for v in range(len(graph.states)):
        factors, n, a = at[count[v] : count[v + 1]], graph.states[v], graph.first[v]
        if not len(factors):
            continue
        fill(total[:n], 0.0)
        for j in range(len(factors)):
            f = factors[j]
            b, u = graph.ports[f], graph.members[graph.slots[f]]
            middle, table = b + graph.states[u], theta[graph.table[f] : graph.table[f + 1]]
            max_marginals(table, q[b:middle], q[middle : graph.ports[f + 1]], u == v, m[0])
            for s in range(n):
                total[s] += m[0, s]
        top, ties = -np.inf, 0
        for s in range(n):
            top = max(top, total[s])
        for s in range(n):
            ties += total[s] >= top - TIED
        for s in range(n):
            p[a + s] = 1.0 / ties if total[s] >= top - TIED else 0.0


@helper
def unsettled(graph, theta, q, p, degree):
    """What is left for AD3: the factors that have a choice, and the sum of what the others add to the bound.

    A variable that only pairs look at, and of which one state is left, is settled: p says which, and its literals no longer count
    (`degree` 0). A pair of two such variables is settled, too.
    """
    count, at, most = pairs_at(graph)
    fixed, total, n = np.zeros(len(graph.states), np.bool_), 0.0, 0
    for v in range(len(graph.states)):
        a, b, left, only = graph.first[v], graph.first[v + 1], 0, 0
        pairs = count[v + 1] - count[v]
        if pairs == 0:
            continue
        f = at[count[v]]
        at_f = graph.ports[f] + (0 if graph.members[graph.slots[f]] == v else graph.states[graph.members[graph.slots[f]]])
        for s in range(b - a):
            if q[at_f + s] > -np.inf:
                left, only = left + 1, s
        fixed[v] = left == 1
        for k in range(a, b):
            fixed[v] = fixed[v] and degree[k] == pairs
        if fixed[v]:
            for k in range(a, b):
                degree[k] = 0
                p[k] = 1.0 if k == a + only else 0.0
    active = np.empty(len(graph.kind), np.int64)
    for f in range(len(graph.kind)):
        slot = graph.slots[f]
        if is_pair(graph, f) and fixed[graph.members[slot]] and fixed[graph.members[slot + 1]]:
            a, b = graph.ports[f], graph.ports[f + 1]
            middle = a + graph.states[graph.members[slot]]
            total += best_of_pair(theta[graph.table[f] : graph.table[f + 1]], q[a:middle], q[middle:b])
        else:
            active[n] = f
            n += 1
    return total, active[:n]
