"""The factor HEAD: all arcs at one word, with scores for grandparents and consecutive siblings (a head automaton).

Word h has a head g, and arcs out of it to modifiers m_1, m_2, .. on each side, from near to far. A configuration is a head and
any arcs out, and scores

    sum over arcs out of  grandparent[g, m]  +  sibling[s, m],     s the modifier just before m on its side, or none

The root has no head, and no grandparents. HEAD forbids nothing: that a word has one head is what its variable says, so that with
a table of zeros it says nothing to anyone, and belief propagation is as exact as without it. (If arcs were bits, and HEAD asked
for one arc in, as TREE does, Bethe's free energy would count that twice.)

Table: grandparent[g (L + R) + m] for the L + R arcs out, left ones first; then for each side sibling[j (j + 1) / 2 + s] of its
modifier j with the modifier s - 1 before it, s = 0 standing for none.

Given g, a side is a chain through its modifiers: best, or sum, up to m over those before it. O(G (L^2 + R^2)) time.

References
----------
T. Koo, A. Rush, M. Collins, T. Jaakkola, D. Sontag (2010). Dual decomposition for parsing with non-projective head
automata. EMNLP.
"""

from __future__ import annotations

import numpy as np

from partwise.engine.compilation import helper
from partwise.engine.lanes import largest, load, plus, spread, store
from partwise.engine.numerics import clipped, exp, fill, softplus
from partwise.structures.dependency.spanning import log_add

LANES = 8  # of float64
NOTHING = -40.0  # log of a probability whose share does not count


@helper
def n_entries(G, L, R):
    """Size of the table."""
    return G * (L + R) + L * (L + 1) // 2 + R * (R + 1) // 2


@helper
def siblings_from(G, L, R, side):
    """Where the siblings of a side begin in the table."""
    return G * (L + R) + (0 if side == 0 else L * (L + 1) // 2)


@helper
def arc_value(table, scores, G, L, R, g, m):
    """Score of arc out m if the head is g."""
    value = scores[G + m]
    if G:
        value += table[g * (L + R) + m]
    return value


@helper
def best_head(members, table, scores, on):
    """The best configuration."""
    G, L, R = members[0], members[1], members[2]
    widest = max(L, R)
    best, back = np.empty(widest), np.empty(widest, np.int32)
    totals = best_by_head(table, scores, G, L, R)
    top, top_g = -np.inf, -1
    for g in range(max(G, 1)):
        if totals[g] > top:
            top, top_g = totals[g], g
    fill(on, 0)
    if top_g < 0:
        return top
    if G:
        on[top_g] = 1
    for side in range(2):
        m = best_side(table, scores, G, L, R, top_g, side, best, back)[1]
        while m >= 0:
            on[G + (0 if side == 0 else L) + m] = 1
            m = back[m]
    return top


@helper
def best_by_head(table, scores, G, L, R):
    """The score of the best configuration with each head: `best_side` for as many heads at once as a vector has lanes."""
    pick, widest = max(G, 1), max(L, R)
    best = np.zeros((widest + 1) * LANES)
    arcs, totals = np.zeros(widest * LANES), np.full((pick + LANES - 1) // LANES * LANES, -np.inf)
    for g0 in range(0, pick, LANES):
        some = min(LANES, pick - g0)
        for g in range(some):
            totals[g0 + g] = scores[g0 + g] if G else 0.0
        total = load(totals, g0)
        for side in range(2):
            n, first = (L, 0) if side == 0 else (R, L)
            pairs, top = table[siblings_from(G, L, R, side) :], spread(best, 0.0)
            for m in range(n):
                for g in range(some):
                    arcs[m * LANES + g] = arc_value(table, scores, G, L, R, g0 + g, first + m)
            for m in range(n):
                line = pairs[m * (m + 1) // 2 : m * (m + 1) // 2 + m + 1]
                high = spread(best, line[0])
                for s in range(m):
                    high = largest(high, plus(load(best, s * LANES), spread(best, line[s + 1])))
                high = plus(high, load(arcs, m * LANES))
                store(best, m * LANES, high)
                top = largest(top, high)
            total = plus(total, top)
        store(totals, g0, total)
    return totals


@helper
def best_side(table, scores, G, L, R, g, side, best, back):
    """Best sum of a side's arcs, and the last of them or -1."""
    n, first = (L, 0) if side == 0 else (R, L)
    pairs, top, last = table[siblings_from(G, L, R, side) :], 0.0, -1
    for m in range(n):
        line = pairs[m * (m + 1) // 2 : m * (m + 1) // 2 + m + 1]
        high, before = line[0], -1
        for s in range(m):
            value = best[s] + line[s + 1]
            if value > high:
                high, before = value, s
        best[m], back[m] = high + arc_value(table, scores, G, L, R, g, first + m), before
        if best[m] > top:
            top, last = best[m], m
    return top, last


@helper
def head_value(members, table, on):
    """What the table gives to a configuration."""
    G, L, R = members[0], members[1], members[2]
    total, g = 0.0, 0
    while g < G - 1 and not on[g]:
        g += 1
    for side in range(2):
        n, first, before = (L, 0, 0) if side == 0 else (R, L, 0)
        for m in range(n):
            if on[G + first + m]:
                total += table[siblings_from(G, L, R, side) + m * (m + 1) // 2 + before]
                if G:
                    total += table[g * (L + R) + first + m]
                before = m + 1
    return total


@helper
def head_messages(members, table, scores, out, parts, far):
    """What the word's head and each arc out of it hear, and log Z; marginals of the table into `parts`, unless it is empty.

    `scores`: log-weights of the heads (log-odds of the head's arc where there is but one), log-odds of arcs out; `out` alike.
    """
    G, L, R = members[0], members[1], members[2]
    widest, arcs, pick = max(L, R), L + R, max(G, 1)
    forward, backward = np.empty(widest), np.empty(widest)
    weight, sides, on, total = np.empty(pick), np.empty((2, pick)), np.full(arcs, -np.inf), -np.inf
    for g in range(pick):
        for side in range(2):
            sides[side, g] = sum_side(table, scores, G, L, R, g, side, -1, forward)
        weight[g] = (scores[g] if G > 1 else 0.0) + sides[0, g] + sides[1, g]
        total = log_add(total, weight[g])
    if len(parts):
        fill(parts, 0.0)
    for g in range(pick):
        if weight[g] - total < NOTHING:
            continue
        for side in range(2):
            n, first = (L, 0) if side == 0 else (R, L)
            start, log_z = siblings_from(G, L, R, side), sum_side(table, scores, G, L, R, g, side, -1, forward)
            for m in range(n - 1, -1, -1):  # backward: what follows m, m itself left out
                backward[m] = 0.0
                for t in range(m + 1, n):
                    pair = table[start + t * (t + 1) // 2 + m + 1]
                    backward[m] = log_add(backward[m], pair + arc_value(table, scores, G, L, R, g, first + t) + backward[t])
            rest = weight[g] - log_z
            for m in range(n):
                here = forward[m] + backward[m] + rest
                on[first + m] = log_add(on[first + m], here)
                if len(parts):
                    if G:
                        parts[g * arcs + first + m] += exp(min(here - total, 0.0))
                    here = arc_value(table, scores, G, L, R, g, first + m) + backward[m] + rest - total
                    line = start + m * (m + 1) // 2
                    parts[line] += exp(min(table[line] + here, 0.0))
                    for s in range(m):
                        parts[line + s + 1] += exp(min(forward[s] + table[line + s + 1] + here, 0.0))
    for g in range(G):
        out[g] = sides[0, g] + sides[1, g] if G > 1 else 0.0
    for m in range(arcs):
        if on[m] - total < -1e-6:
            off = total + np.log1p(-np.exp(on[m] - total))
        else:  # nearly certain: what is left must be summed, not subtracted
            side, off = (0, -np.inf) if m < L else (1, -np.inf)
            for g in range(pick):
                left_out = sum_side(table, scores, G, L, R, g, side, m - (0 if side == 0 else L), forward)
                off = log_add(off, weight[g] - sides[side, g] + left_out)
        out[G + m] = clipped(max(-far, on[m] - max(-far, scores[G + m])) - max(-far, off), far)
    return total + softplus(scores[0]) if G == 1 else total  # an only arc in is TREE's affair


@helper
def sum_side(table, scores, G, L, R, g, side, without, ahead):
    """log of the sum over a side's arcs, none of them included; ahead[m] sums those whose last arc is m. One may be left out."""
    n, first = (L, 0) if side == 0 else (R, L)
    pairs, total = table[siblings_from(G, L, R, side) :], 0.0
    for m in range(n):
        line = pairs[m * (m + 1) // 2 : m * (m + 1) // 2 + m + 1]
        value = line[0]
        for s in range(m):
            value = log_add(value, ahead[s] + line[s + 1])
        ahead[m] = -np.inf if m == without else value + arc_value(table, scores, G, L, R, g, first + m)
        total = log_add(total, ahead[m])
    return total
