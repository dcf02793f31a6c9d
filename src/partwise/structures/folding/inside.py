"""The recursions over nested structures, from the inside out (Zuker and Stiegler 1981; McCaskill 1990).

For bases i .. j of one sequence, over a semiring (`semirings`), so that a value is the score of the best structure or a sum
over all:

    closed(i, j)   i and j pair: the sum over the loop that they close
                     hairpin + sum over (p, q) [stack, bulge or internal loop] closed(p, q) + multi-loop two(i + 1, j - 1)
    one(i, j)      part of a multi-loop with one branch, which begins at i:     one(i, j - 1) unpaired + closed(i, j)
    some(i, j)     part of a multi-loop with one branch or more:                two(i, j) + later(i, j)
    two(i, j)      with two or more, by where the last begins:                  sum_k some(i, k - 1) one(k, j)
    later(i, j)    with one, after any number of unpaired bases:                one(i, j) + unpaired later(i + 1, j)
    prefix(j)      the bases before j, under no pair:   prefix(j - 1) unpaired + sum_i prefix(i) closed(i, j - 1)

Every structure is counted once. Internal loops have at most 30 unpaired bases; their score is the length's (l1, l2) times what
either pair gives, so the sum over inner pairs is, for every l1, an inner product of a row of `internal` with a row of the table
below it: that vectorises, and it is quicker to multiply by zero than to ask which pairs are possible.

What a base gives for being unpaired has been moved to the pairs (see `prepare`), so that loops need not ask which bases they
have.

Cost: O(n^2 30^2 / 2 + n^3 / 6) time, seven squares of n^2 numbers; for the best structure alone one and a half.

References
----------
M. Zuker, P. Stiegler (1981). Optimal computer folding of large RNA sequences using thermodynamics and auxiliary information. NAR.
J. S. McCaskill (1990). The equilibrium partition function and base pair binding probabilities for RNA secondary structure.
Biopolymers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from partwise.engine.compilation import helper
from partwise.engine.numerics import fill, larger
from partwise.structures.common.semirings import (
    LARGEST,
    SUM,
    highest_sum,
    inner,
    lift,
    log_inner,
    log_plus,
    plus,
    sum_of_products,
    times,
)
from partwise.structures.folding.loops import (
    BULGE,
    BULGE_BASE,
    BULGE_END,
    EXTERNAL_END,
    EXTERNAL_UNPAIRED,
    HAIRPIN,
    HAIRPIN_END,
    INTERNAL,
    INTERNAL_END,
    LONGEST,
    MULTI_BASE,
    MULTI_END,
    MULTI_UNPAIRED,
    N_ENTRIES,
    ONE_BY_ONE,
    PAIR,
    SHORTEST,
    STACK,
    TETRALOOP,
    TRILOOP,
    N,
)

SPAN = SHORTEST + 1  # of a pair, at least
SMALLEST = INTERNAL + LONGEST + 2  # the entry of 1 x 1
WINDOW = LONGEST + 2  # rows that a loop may reach


class Scores(NamedTuple):
    """What the recursions see of one sequence, in a semiring."""

    semiring: Any
    bases: np.ndarray  #: (n,) int64
    entries: np.ndarray  #: see `loops`
    pairs: np.ndarray  #: (n, n) of i and j pairing, i < j; zero where they may not
    hairpins: np.ndarray  #: (n,) by the number of unpaired bases
    internal: np.ndarray  #: (31, 31) by [l1, 30 - l2]; zero for 1 x 1, which is no plain product
    bulges: np.ndarray  #: (31,) by l; zero for one base, likewise
    bulges_back: np.ndarray  #: (31,) the same by 30 - l
    after: np.ndarray  #: (n,) how many bases after this one may be unpaired, one after the other
    before: np.ndarray  #: (n,) and before it
    multi: np.ndarray  #: (n,) of each base when it is unpaired in a multi-loop
    external: np.ndarray  #: (n,) and under no pair


class Inside(NamedTuple):
    """The tables; see the module. Those by [i, j] have i < j, those by [j, i] are the other half of the same square.

    Where the best structure is all that is wanted, most tables have the last `WINDOW` rows only (`fill_inside`); each row is in
    it twice, so that any WINDOW rows stand one below the other: base, or i % WINDOW, is where row i is, and base + k row i + k.
    """

    closed: np.ndarray
    one_by_end: np.ndarray  #: one, by [j, i]
    in_loop: np.ndarray  #: closed, with what its end gives within an internal loop
    in_bulge: np.ndarray  #: and within a bulge
    in_bulge_by_end: np.ndarray  #: the same by [j, i]
    loops: np.ndarray  #: the sum over the internal loops that i and j close, but 1 x 1
    some: np.ndarray  #: (n (n + 1) / 2,) see `row_of`
    two: np.ndarray
    later: np.ndarray
    prefix: np.ndarray  #: (n + 1,)
    rolls: bool  #: whether only the last rows are kept


@helper
def pair_part(n, i, j):
    """Number of the pair i < j among all pairs of n bases."""
    return i * (2 * n - i - 1) // 2 + j - i - 1


@helper
def prepare(semiring, bases, size, entries, theta, K, longest, rate):
    """The `Scores` of the first `size` bases, from the entries and from the part scores theta of all bases and pairs.

    Each base is either unpaired or in one pair. So s(y) = sum_i u_i + sum_pairs (s_ij - u_i - u_j) + loops: what bases give for
    being unpaired becomes a constant, and u_i = -inf, a base that must pair, a limit to loops. Every base is charged `rate`, too,
    which keeps sums of long sequences within the range of floats. Internal loops and bulges have at most `longest` unpaired
    bases. Returns the scores and the constant.
    """
    n, zero = size, semiring.zero
    letters = np.empty(n, np.int64)
    constant, unpaired = rate * n, np.zeros(n)
    after, before = np.zeros(n, np.int64), np.zeros(n, np.int64)
    for i in range(n):
        letters[i] = bases[i]
        if theta[K + i] > -np.inf:
            unpaired[i] = theta[K + i]
            constant += unpaired[i]
        if i > 0:
            before[i] = before[i - 1] + 1 if theta[K + i - 1] > -np.inf else 0
    for i in range(n - 2, -1, -1):
        after[i] = after[i + 1] + 1 if theta[K + i + 1] > -np.inf else 0
    pairs = np.full((n, n), zero)
    for i in range(n):
        first = K + len(bases) + pair_part(len(bases), i, i + 1) - (i + 1)
        for j in range(i + SPAN, n):
            if theta[first + j] > -np.inf:
                code = 4 * letters[i] + letters[j]
                pairs[i, j] = lift(semiring, entries[PAIR + code] + theta[first + j] - unpaired[i] - unpaired[j] - 2.0 * rate)
    hairpins = np.full(n, zero)
    for length in range(SHORTEST, n):
        hairpins[length] = lift(semiring, entries[HAIRPIN + min(length, LONGEST)] - rate * length)
    internal = np.full((LONGEST + 1, LONGEST + 1), zero)
    bulges, bulges_back = np.full(LONGEST + 1, zero), np.full(LONGEST + 1, zero)
    for left in range(1, longest + 1):
        if left > 1:
            bulges[left] = lift(semiring, entries[BULGE + left] - rate * left)
            bulges_back[LONGEST - left] = bulges[left]
        for right in range(1, longest + 1 - left):
            if left + right > 2:
                score = entries[INTERNAL + left * (LONGEST + 1) + right] - rate * (left + right)
                internal[left, LONGEST - right] = lift(semiring, score)
    lifted = np.empty(N_ENTRIES)
    for e in range(N_ENTRIES):
        lifted[e] = lift(semiring, entries[e])
    lifted[BULGE + 1] = lift(semiring, entries[BULGE + 1] - rate) if longest >= 1 else zero
    lifted[SMALLEST] = lift(semiring, entries[SMALLEST] - 2.0 * rate) if longest >= 2 else zero
    multi, external = np.full(n, zero), np.full(n, zero)
    for i in range(n):
        if theta[K + i] > -np.inf:
            multi[i] = lift(semiring, entries[MULTI_UNPAIRED] - rate)
            external[i] = lift(semiring, entries[EXTERNAL_UNPAIRED] - rate)
    scores = Scores(semiring, letters, lifted, pairs, hairpins, internal, bulges, bulges_back, after, before, multi, external)
    return scores, constant


@helper
def end_entry(block, pair, right, left):
    """Number of the entry of a pair that ends a helix, and its neighbours in the loop."""
    return block + 25 * pair + 5 * right + left


@helper
def inner_end(bases, block, i, j):
    """The entry of the pair (i, j) in the loop that it closes."""
    return end_entry(block, 4 * bases[i] + bases[j], bases[i + 1], bases[j - 1])


@helper
def outer_end(bases, block, i, j):
    """The entry of the pair (i, j) in the loop outside; beyond the ends of the sequence is no base."""
    right = bases[j + 1] if j + 1 < len(bases) else N
    left = bases[i - 1] if i > 0 else N
    return end_entry(block, 4 * bases[j] + bases[i], right, left)


@helper
def hairpin_bases(bases, i, length):
    """The entry of the bases of a hairpin of three or four after base i, or -1 if one of them is not known."""
    code = 0
    for k in range(i + 1, i + 1 + length):
        if bases[k] == N:
            return -1
        code = 4 * code + bases[k]
    return (TRILOOP if length == 3 else TETRALOOP) + code


@helper
def hairpin(s, e, b, hairpins, after, i, j):
    """Of the hairpin that i and j close, without the pair itself; `after`: bases after i that may be unpaired."""
    length = j - i - 1
    if after < length:
        return s.zero
    value = times(s, hairpins[length], e[inner_end(b, HAIRPIN_END, i, j)])
    if length <= 4:
        k = hairpin_bases(b, i, length)
        if k >= 0:
            value = times(s, value, e[k])
    return value


@helper
def stack(s, e, b, i, j, p, q):
    """Of the pair (p, q) on (i, j), next to it or across a bulge of one base."""
    value = e[STACK + 16 * (4 * b[i] + b[j]) + 4 * b[p] + b[q]]
    if p - i + j - q > 2:
        base = b[i + 1] if p - i > 1 else b[j - 1]
        value = times(s, value, times(s, e[BULGE + 1], e[BULGE_BASE + base]))
    return value


@helper
def one_by_one(s, e, b, i, j):
    """Of the internal loop of one base on each side between (i, j) and (i + 2, j - 2), without the end of the latter."""
    value = times(s, e[SMALLEST], e[ONE_BY_ONE + 5 * b[i + 1] + b[j - 1]])
    return times(s, value, e[inner_end(b, INTERNAL_END, i, j)])


@helper
def reach(before, span, left):
    """How many bases may be unpaired before j where `left` after i are, in a loop closed by i and j = i + span.

    before : bases before j that may be unpaired
    """
    return min(min(LONGEST - left, before), span - 2 - left - SPAN)


@helper
def multi_loop(s, e, b, i, j):
    """Of the multi-loop that i and j close, without what is in it."""
    return times(s, e[MULTI_BASE], e[inner_end(b, MULTI_END, i, j)])


@helper
def external_pair(s, e, b, closed, i, j):
    """Of the pair (i, j) under no other, and all in it."""
    return times(s, closed, e[outer_end(b, EXTERNAL_END, i, j)])


@helper
def loop_end(s, e, b, closed, i, j):
    """Of the pair (i, j) in an internal loop outside it, and all in it."""
    return times(s, closed, e[outer_end(b, INTERNAL_END, i, j)])


@helper
def bulge_end(s, e, b, closed, i, j):
    """The same in a bulge."""
    return times(s, closed, e[BULGE_END + 4 * b[j] + b[i]])


@helper
def row_of(table, n, i):
    """Row i of a table that has entries (i, j), i <= j, only: to be read from i on."""
    start = i * n - i * (i + 1) // 2
    return table[start : start + n]


@helper
def with_two_or_more(s, some, one_by_end, i, j):
    """two(i, j), from row i of `some`."""
    if j - i < 2 * SPAN + 1:
        return s.zero
    return inner(s, some[i + SPAN : j - SPAN], one_by_end[j, i + SPAN + 1 : j - SPAN + 1])


@helper
def inner_over_loops(s, internal, in_loop, base, i, j, most, before):
    """Sum over the internal loops that (i, j) closes, without their ends at (i, j). Here is where the time goes."""
    total = s.zero
    if s.kind == SUM:
        for left in range(1, most + 1):
            right = reach(before, j - i, left)
            if right < 1:
                break
            total += sum_of_products(in_loop[base + 1 + left, j - 1 - right : j - 1], internal[left, LONGEST - right : LONGEST])
    elif s.kind == LARGEST:
        for left in range(1, most + 1):
            right = reach(before, j - i, left)
            if right < 1:
                break
            top = highest_sum(in_loop[base + 1 + left, j - 1 - right : j - 1], internal[left, LONGEST - right : LONGEST])
            total = larger(total, top)
    else:
        for left in range(1, most + 1):
            right = reach(before, j - i, left)
            if right < 1:
                break
            value = log_inner(in_loop[base + 1 + left, j - 1 - right : j - 1], internal[left, LONGEST - right : LONGEST])
            total = log_plus(total, value)
    return total


@helper
def close_row(scores, table, i, base):
    """closed(i, j) for all j, from the rows below; a row at a time, for passing tables to a function takes its time."""
    s, b, e, pairs, hairpins = scores.semiring, scores.bases, scores.entries, scores.pairs[i], scores.hairpins
    internal, bulges, bulges_back = scores.internal, scores.bulges, scores.bulges_back
    closed, in_loop, in_bulge, by_end, two = table.closed, table.in_loop, table.in_bulge, table.in_bulge_by_end, table.two
    loops, free, most = table.loops[base], scores.after[i], min(scores.after[i], LONGEST)
    for j in range(i + SPAN, len(b)):
        if pairs[j] == s.zero:
            continue
        total, span, before = hairpin(s, e, b, hairpins, free, i, j), j - i, scores.before[j]
        if span - 2 >= SPAN:
            total = plus(s, total, times(s, stack(s, e, b, i, j, i + 1, j - 1), closed[i + 1, j - 1]))
            total = plus(s, total, times(s, multi_loop(s, e, b, i, j), two[base + 1, j - 1]))
        if span - 3 >= SPAN:
            if most >= 1:
                total = plus(s, total, times(s, stack(s, e, b, i, j, i + 2, j - 1), closed[i + 2, j - 1]))
            if before >= 1:
                total = plus(s, total, times(s, stack(s, e, b, i, j, i + 1, j - 2), closed[i + 1, j - 2]))
        if span - 4 >= SPAN:
            bulge, left, right = s.zero, min(most, span - 2 - SPAN), reach(before, span, 0)
            if right >= 2:
                bulge = inner(s, in_bulge[base + 1, j - 1 - right : j - 2], bulges_back[LONGEST - right : LONGEST - 1])
            if left >= 2:
                bulge = plus(s, bulge, inner(s, by_end[j - 1, base + 3 : base + 2 + left], bulges[2 : left + 1]))
            total = plus(s, total, times(s, bulge, e[BULGE_END + 4 * b[i] + b[j]]))
            if most >= 1 and before >= 1:
                total = plus(s, total, times(s, one_by_one(s, e, b, i, j), in_loop[base + 2, j - 2]))
                inside = inner_over_loops(s, internal, in_loop, base, i, j, most, before)
                inside = times(s, inside, e[inner_end(b, INTERNAL_END, i, j)])
                loops[j] = inside
                total = plus(s, total, inside)
        total = times(s, total, pairs[j])
        closed[i, j] = total
        loop, bulge = loop_end(s, e, b, total, i, j), bulge_end(s, e, b, total, i, j)
        in_loop[base, j], in_bulge[base, j], by_end[j, base] = loop, bulge, bulge
        if table.rolls:
            in_loop[base + WINDOW, j], in_bulge[base + WINDOW, j], by_end[j, base + WINDOW] = loop, bulge, bulge


@helper
def join_row(scores, table, i, base):
    """What may be in a multi-loop, from i to any j."""
    s, b, e, multi = scores.semiring, scores.bases, scores.entries, scores.multi
    closed, some, one_by_end = table.closed[i], row_of(table.some, len(b), i), table.one_by_end
    two, later, above, zero = table.two, table.later, table.later[base + 1], s.zero
    for j in range(i + SPAN, len(b)):
        one = times(s, one_by_end[j - 1, i], multi[j])
        if closed[j] != zero:
            one = plus(s, one, times(s, closed[j], e[outer_end(b, MULTI_END, i, j)]))
        one_by_end[j, i] = one
        with_one = plus(s, one, times(s, multi[i], above[j]))
        with_two = with_two_or_more(s, some, one_by_end, i, j)
        later[base, j], two[base, j] = with_one, with_two
        if table.rolls:
            later[base + WINDOW, j], two[base + WINDOW, j] = with_one, with_two
        some[j] = plus(s, with_two, with_one)


@helper
def fill_prefix(scores, table):
    """What is under no pair, from the left."""
    s, b, e, closed, prefix = scores.semiring, scores.bases, scores.entries, table.closed, table.prefix
    prefix[0] = s.one
    for j in range(len(b)):
        value = times(s, prefix[j], scores.external[j])
        for i in range(j - SPAN + 1):
            if closed[i, j] != s.zero:
                value = plus(s, value, times(s, prefix[i], external_pair(s, e, b, closed[i, j], i, j)))
        prefix[j + 1] = value


@helper
def fill_inside(scores, rolls):
    """All tables. If it `rolls`, of most the last rows only, and `scores.pairs` becomes the first: for the best structure."""
    n, zero = len(scores.bases), scores.semiring.zero
    rows = 2 * WINDOW if rolls else n
    closed = scores.pairs if rolls else np.full((n, n), zero)
    in_bulge = np.full((rows, n), zero)
    table = Inside(
        closed,
        closed,
        np.full((rows, n), zero),
        in_bulge,
        np.full((n, rows), zero) if rolls else in_bulge,
        np.full((rows, n), zero),
        np.full(n * (n + 1) // 2, zero),
        np.full((rows, n), zero),
        np.full((rows, n), zero),
        np.full(n + 1, zero),
        rolls,
    )
    for i in range(n - 1 - SPAN, -1, -1):
        base = i % WINDOW if rolls else i
        if rolls:
            for k in range(base, base + WINDOW + 1, WINDOW):
                fill(table.in_loop[k], zero)
                fill(table.in_bulge[k], zero)
                fill(table.later[k], zero)
                for j in range(n):
                    table.in_bulge_by_end[j, k] = zero
        close_row(scores, table, i, base)
        join_row(scores, table, i, base)
    fill_prefix(scores, table)
    return table
