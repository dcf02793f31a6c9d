"""AD3: the best output of a factor graph by alternating directions dual decomposition, with a bound at every iteration.

The linear program over local marginals, of which the best output is the best corner that is whole,

    max  sum_l theta_l p_l + sum_f table_f . mu_f     over distributions mu_f on the configurations of each factor
    such that every factor gives its ports u_f = M_f mu_f the probabilities p of their literals,

is split: each factor gets a copy of its literals, with an even share of their scores, and multipliers lambda, which sum to zero
over the copies of a literal, make the copies agree:

    repeat  for each factor:  u_f = argmax  table_f . mu + (theta / degree + lambda_f) . u  -  eta / 2 ||u - p||^2
            p_l        = mean of the copies of l
            lambda_f  -= eta (u_f - p)

Each quadratic problem is solved by an active set of configurations: solve for the weights of those in the set; drop one whose
weight would become negative; add the configuration of highest score against the residual, which is a call of the factor's own
search; stop when there is none better. Sets are kept from iteration to iteration, and mostly there is nothing to do.

**Bound.** For any multipliers that sum to zero, sum_f max_c (table_f[c] + (theta / degree + lambda_f) . c) is at least the value
of the linear program, and that is at least the score of the best output. It is evaluated as such, by one search of every factor,
so it holds at every iteration whether or not anything has converged. **Output.** p is rounded, trees as trees, and in the end
improved variable by variable; the best output seen is kept. If its score reaches the bound, it is the best of all, and that is a
proof.

Pairs of variables begin with coordinate ascent (`partwise.structures.factor_graph.dual_ascent`), which lowers the bound much
faster, proves most outputs, and forbids what no better output needs; AD3 goes on from its multipliers, with what is left.

Cost of an iteration: two or three searches of every factor. Memory: the active sets.

References
----------
A. F. T. Martins, M. A. T. Figueiredo, P. M. Q. Aguiar, N. A. Smith, E. P. Xing (2015). AD3: alternating directions dual
decomposition for MAP inference in graphical models. JMLR 16.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partwise.engine.compilation import helper, kernel
from partwise.engine.numerics import copy, fill
from partwise.structures.factor_graph.dual_ascent import ascend, is_pair, unsettled
from partwise.structures.factor_graph.factors import FAR, best_configuration
from partwise.structures.factor_graph.head import head_value
from partwise.structures.factor_graph.layout import DENSE, HEAD, TreeLayout, n_literals
from partwise.structures.factor_graph.rounding import improved, is_closed, rounded

MOST_ACTIVE = 24  # configurations that a factor keeps at most
INNER = 12  # configurations that are added or dropped at most, for one factor in one iteration
MOST_SWEEPS = 200  # of coordinate ascent, before
WINDOW = 100  # iterations in which the bound must have fallen, once residuals are small
IDLE = 2  # windows without gain are enough, where coordinate ascent was before
RIDGE = 1e-9  # configurations may depend on each other: then weights are not unique


@helper
def weigh(gram, b, n, mu, x, z, factor):
    """Weights mu, of sum one, that minimise 1/2 mu' G mu - b' mu; returns the multiplier of the sum.

    G mu = b - tau 1 twice over: with x = G^-1 b and z = G^-1 1, tau = (1' x - 1) / 1' z and mu = x - tau z.
    """
    if n == 1:
        mu[0] = 1.0
        return b[0] - gram[0, 0]
    for i in range(n):
        for j in range(i + 1):
            total = gram[i, j] + (RIDGE if i == j else 0.0)
            for k in range(j):
                total -= factor[i, k] * factor[j, k]
            factor[i, j] = np.sqrt(max(total, 1e-14)) if i == j else total / factor[j, j]
    for i in range(n):
        p, q = b[i], 1.0
        for k in range(i):
            p -= factor[i, k] * x[k]
            q -= factor[i, k] * z[k]
        x[i], z[i] = p / factor[i, i], q / factor[i, i]
    sum_x, sum_z = 0.0, 0.0
    for i in range(n - 1, -1, -1):
        p, q = x[i], z[i]
        for k in range(i + 1, n):
            p -= factor[k, i] * x[k]
            q -= factor[k, i] * z[k]
        x[i], z[i] = p / factor[i, i], q / factor[i, i]
        sum_x += x[i]
        sum_z += z[i]
    tau = (sum_x - 1.0) / sum_z
    for i in range(n):
        mu[i] = x[i] - tau * z[i]
    return tau


@helper
def entry_score(graph, f, theta, on):
    """The table's score of a configuration, given by its ports."""
    table = theta[graph.table[f] : graph.table[f + 1]]
    if graph.kind[f] != DENSE:
        return head_entry_score(graph, f, table, on)
    k, p = 0, 0
    for j in range(graph.slots[f], graph.slots[f + 1]):
        n, s = graph.states[graph.members[j]], 0
        if n == 1:
            k = 2 * k + on[p]
        else:
            while s < n - 1 and not on[p + s]:
                s += 1
            k = k * n + s
        p += n
    return table[k]


@kernel(default=True)
def head_entry_score(graph, f, table, on):
    """The same for a HEAD; others have no table."""
    return 0.0


@head_entry_score.implements(TreeLayout)
def head_score_of(graph, f, table, on):
    if graph.kind[f] != HEAD:
        return 0.0
    return head_value(graph.members[graph.slots[f] : graph.slots[f + 1]], table, on)


class Sets(NamedTuple):
    """The active configurations of all factors; `room[f]` of them at most, and where factor f has its own."""

    room: np.ndarray  #: (F,)
    used: np.ndarray  #: (F,) configurations now
    at: np.ndarray  #: (F + 1,) first configuration of each factor
    at_on: np.ndarray  #: (F + 1,) first entry in `on`: a row of ports for each configuration
    at_gram: np.ndarray  #: (F + 1,) first entry in `gram`
    on: np.ndarray  #: int8
    gram: np.ndarray  #: ports that two configurations share
    score: np.ndarray  #: of the table
    weight: np.ndarray
    scratch: np.ndarray  #: (MOST_ACTIVE + 6, MOST_ACTIVE)


@helper
def empty_sets(graph):
    """No active configurations yet."""
    F = len(graph.kind)
    room, count = np.empty(F, np.int64), np.zeros(F, np.int64)
    at, at_on, at_gram = np.zeros(F + 1, np.int64), np.zeros(F + 1, np.int64), np.zeros(F + 1, np.int64)
    for f in range(F):
        n = graph.ports[f + 1] - graph.ports[f]
        room[f] = min(MOST_ACTIVE, n + 2)
        at[f + 1] = at[f] + room[f]
        at_on[f + 1] = at_on[f] + room[f] * n
        at_gram[f + 1] = at_gram[f] + room[f] * room[f]
    on, gram = np.zeros(at_on[F], np.int8), np.zeros(at_gram[F], np.float32)
    scratch = np.empty((MOST_ACTIVE + 6, MOST_ACTIVE))
    return Sets(room, count, at, at_on, at_gram, on, gram, np.zeros(at[F]), np.zeros(at[F]), scratch)


@helper
def nearest(graph, f, theta, target, eta, sets, u, on, rest):
    """u = argmax table . mu / eta - 1/2 ||u - target||^2 over the factor's configurations, from its active set on."""
    n, room, count = len(u), sets.room[f], sets.used[f]
    rows = sets.on[sets.at_on[f] : sets.at_on[f + 1]].reshape((room, n))
    gram = sets.gram[sets.at_gram[f] : sets.at_gram[f + 1]].reshape((room, room))
    score, weight = sets.score[sets.at[f] : sets.at[f + 1]], sets.weight[sets.at[f] : sets.at[f + 1]]
    b, mu, x, z, factor = sets.scratch[0], sets.scratch[1], sets.scratch[2], sets.scratch[3], sets.scratch[4:]
    if count == 0:
        best_configuration(graph, f, theta, target, on)
        add_configuration(graph, f, theta, on, 0, rows, gram, score)
        weight[0], count = 1.0, 1
    for k in range(count):
        b[k] = score[k] / eta
        for p in range(n):
            if rows[k, p]:
                b[k] += target[p]
    for _ in range(INNER):
        tau = weigh(gram, b, count, mu, x, z, factor)
        worst, step = -1, 1.0
        for k in range(count):
            if mu[k] < 0.0:
                share = weight[k] / (weight[k] - mu[k])
                if share < step:
                    worst, step = k, share
        for k in range(count):
            weight[k] += step * (mu[k] - weight[k])
        if worst >= 0:  # it would become negative: leave it out
            count -= 1
            for k in range(worst, count):
                weight[k], score[k], b[k] = weight[k + 1], score[k + 1], b[k + 1]
                for p in range(n):
                    rows[k, p] = rows[k + 1, p]
                for j in range(count + 1):
                    gram[k, j] = gram[k + 1, j]
            for k in range(worst, count):
                for j in range(count):
                    gram[j, k] = gram[j, k + 1]
            continue
        average(rows, weight, count, u)
        if count == room:
            break
        for p in range(n):
            rest[p] = eta * (target[p] - u[p])
        value = best_configuration(graph, f, theta, rest, on) / eta
        if value <= tau + 1e-11 * (1.0 + abs(tau)):
            break
        for k in range(count):
            same = True
            for p in range(n):
                same = same and rows[k, p] == on[p]
            if same:
                value = tau
        if value == tau:  # it is there already: rounding
            break
        add_configuration(graph, f, theta, on, count, rows, gram, score)
        b[count], weight[count] = score[count] / eta, 0.0
        for p in range(n):
            if on[p]:
                b[count] += target[p]
        count += 1
    average(rows, weight, count, u)
    sets.used[f] = count


@helper
def add_configuration(graph, f, theta, on, k, rows, gram, score):
    """Make it number k of the active set."""
    for p in range(len(on)):
        rows[k, p] = on[p]
    for j in range(k + 1):
        shared = 0
        for p in range(len(on)):
            shared += rows[j, p] & on[p]
        gram[j, k] = shared
        gram[k, j] = shared
    score[k] = entry_score(graph, f, theta, on)


@helper
def average(rows, weight, count, u):
    """u = sum_k weight_k rows_k."""
    fill(u, 0.0)
    for k in range(count):
        for p in range(len(u)):
            if rows[k, p]:
                u[p] += weight[k]


# ---------------------------------------------------------------------------------------------------------------------
# The loop
# ---------------------------------------------------------------------------------------------------------------------


@helper
def ad3(graph, theta, y, p, max_iterations, tol, bounds):
    """Write the best output found into y, the relaxed solution into p.

    Returns the output's score (-inf: none was found that the hard factors allow), the lowest bound (-inf: there is none at all),
    and the number of iterations. The bound after each iteration is written into `bounds`, as far as it goes.
    """
    n, F, P = n_literals(graph), len(graph.kind), len(graph.literal)
    share, degree = np.zeros(n), np.zeros(n, np.int64)
    for k in range(P):
        degree[graph.literal[k]] += 1
    alone, scale, used = 0.0, 0.0, 0  # what no factor looks at is settled
    for k in range(n):
        p[k] = 0.0
        if degree[k]:
            share[k] = theta[k] / degree[k]
        elif theta[k] > 0.0:
            p[k] = 1.0
            alone += theta[k]
        if degree[k] and theta[k] > -np.inf:
            scale += abs(theta[k])
            used += 1
    multiplier, u, before = np.zeros(P), np.zeros(P), np.empty(n)
    widest = 0
    for f in range(F):
        widest = max(widest, graph.ports[f + 1] - graph.ports[f])
        for k in range(graph.table[f], graph.table[f + 1]):
            if theta[k] > -np.inf:
                scale += abs(theta[k])
                used += 1
    target, rest, on = np.empty(widest), np.empty(widest), np.zeros(widest, np.int8)
    eta = max(scale / max(used, 1), 1e-6)  # as large as scores are; changing it on the way measures worse
    tops, stale, moved, guess = np.zeros(F), np.ones(F, np.bool_), np.ones(n, np.bool_), np.empty(len(y), np.int32)
    sets = empty_sets(graph)
    round_at = 0
    for v in range(len(graph.states)):  # consensus to begin with: even
        for k in range(graph.first[v], graph.first[v + 1]):
            if degree[k]:
                p[k] = 0.5 if graph.states[v] == 1 else 1.0 / graph.states[v]
    q, others = np.empty(P), alone
    for f in range(F):  # is there any configuration without what is forbidden?
        a, b = graph.ports[f], graph.ports[f + 1]
        for k in range(a, b):
            q[k] = share[graph.literal[k]]
        top = best_configuration(graph, f, theta, q[a:b], on[: b - a])
        if top < -0.5 * FAR:
            return -np.inf, -np.inf, 0
        if not is_pair(graph, f):
            others += top
    value, bound, swept = ascend(graph, theta, q, others, y, guess, p, min(max_iterations, MOST_SWEEPS), tol, bounds)
    if bound == -np.inf or is_closed(value, bound) or swept == max_iterations:
        return value, bound, swept
    active = np.arange(F)
    if swept:
        for k in range(P):
            if q[k] == -np.inf:
                share[graph.literal[k]] = -np.inf
        for k in range(P):
            if share[graph.literal[k]] > -np.inf:
                multiplier[k] = q[k] - share[graph.literal[k]]
        added, active = unsettled(graph, theta, q, p, degree)
        alone += added
    milestone, idle = bound, 0
    for iteration in range(swept, max_iterations):
        for f in active:
            a, b = graph.ports[f], graph.ports[f + 1]
            if iteration > swept and not stale[f]:
                continue
            for k in range(b - a):
                literal = graph.literal[a + k]
                target[k] = p[literal] + (share[literal] + multiplier[a + k]) / eta
            nearest(graph, f, theta, target[: b - a], eta, sets, u[a:b], on[: b - a], rest[: b - a])
        copy(p[:n], before)
        for k in range(n):
            if degree[k]:
                p[k] = 0.0
        for f in active:
            for k in range(graph.ports[f], graph.ports[f + 1]):
                if degree[graph.literal[k]]:
                    p[graph.literal[k]] += u[k]
        dual, primal = 0.0, 0.0
        for k in range(n):
            if degree[k]:
                p[k] /= degree[k]
            moved[k] = p[k] != before[k]
            dual += degree[k] * (p[k] - before[k]) ** 2
        total, changed = alone, False
        for f in active:
            a, b = graph.ports[f], graph.ports[f + 1]
            stale[f] = False
            renewed = iteration == swept
            for k in range(a, b):
                literal = graph.literal[k]
                difference = u[k] - p[literal]
                primal += difference * difference
                if difference != 0.0:
                    multiplier[k] -= eta * difference
                    renewed = True
                stale[f] = stale[f] or moved[literal] or difference != 0.0
            changed = changed or stale[f]
            if renewed:
                for k in range(b - a):
                    rest[k] = share[graph.literal[a + k]] + multiplier[a + k]
                tops[f] = best_configuration(graph, f, theta, rest[: b - a], on[: b - a])
            total += tops[f]
        bound = min(bound, total)
        if iteration < len(bounds):
            bounds[iteration] = bound
        if bound == -np.inf:
            return -np.inf, bound, iteration + 1
        primal, dual = np.sqrt(primal / max(P, 1)), np.sqrt(dual / max(P, 1))
        done = not changed or (primal < tol and dual < tol) or iteration == max_iterations - 1
        if (iteration - swept) % WINDOW == WINDOW - 1:
            settled = max(primal, dual) < 30.0 * tol
            idle = idle + 1 if milestone - bound < 0.1 * tol * (1.0 + abs(bound)) else 0
            done = done or (settled and idle > 0) or (swept > 0 and idle == IDLE)
            milestone = bound
        if done or iteration >= round_at:
            round_at = iteration + 1 + iteration // 4
            score = rounded(graph, theta, p, guess, on)
            if done and score > -np.inf and not is_closed(score, bound):
                score = improved(graph, theta, guess)
            if score > value:
                value = score
                copy(guess, y)
        if done or is_closed(value, bound):
            return value, bound, iteration + 1
    return value, bound, max_iterations
