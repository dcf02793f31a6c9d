"""Sums over all structures, and how often each entry is expected: from the outside in (McCaskill 1990).

What is outside a span is kept divided by the sum over all structures, so that inside times outside is a probability. Each span
gives what is outside it to those it is made of, the outermost first; the recursions are those of `inside`, read
backwards.

Sums are formed with plain numbers, multiplications only, where none leaves a safe range (`in_range`), and in logarithms where one
does: `sum_over_structures`. In between, bases are charged a rate that makes the sum about one: sequences of thousands of bases,
whose sums are beyond the floats, stay with plain numbers.

Cost: O(n^2 30^2 / 2 + n^3 / 6) time, about three times that of the best structure, and fourteen squares of n^2 numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partwise.engine.compilation import helper
from partwise.engine.numerics import fill
from partwise.structures.common.semirings import (
    LARGEST,
    LOG_SUM,
    SUM,
    add_to,
    as_number,
    divide,
    log_inner_counted,
    log_plus,
    make_semiring,
    plus,
    share,
    sum_of_products_counted,
    times,
)
from partwise.structures.folding.inside import (
    SMALLEST,
    SPAN,
    external_pair,
    fill_inside,
    hairpin,
    hairpin_bases,
    inner_end,
    multi_loop,
    one_by_one,
    outer_end,
    prepare,
    reach,
    row_of,
    stack,
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
    STACK,
)

FEW = 1e-130  # sums stay between this and its inverse: then no product of two of them and some entries leaves the floats
NEVER = 1e-15  # what is less probable gives nothing to what is in it: n^2 / 2 such errors are still below 1e-9
FLAT = 30.0  # and every score between this and its negative
LONG, SAMPLE = 400, 200  # of a sequence with more bases than this, so many are summed over first


class Outside(NamedTuple):
    """What is outside the spans of `Inside`, by the same indices."""

    closed: np.ndarray
    one_by_end: np.ndarray
    giving: np.ndarray  #: what a pair gives to those across internal loops
    in_bulge: np.ndarray
    in_bulge_by_end: np.ndarray
    some: np.ndarray
    two: np.ndarray
    later: np.ndarray
    suffix: np.ndarray  #: (n + 1,) sums over the bases from j on, under no pair


class Counts(NamedTuple):
    """How often each entry is expected; lengths of bulges in the order of `Scores`."""

    entries: np.ndarray
    internal: np.ndarray  #: by [l1, l2]
    bulges: np.ndarray
    bulges_back: np.ndarray


@helper
def fill_suffix(scores, table, out):
    """out.suffix: like `Inside.prefix`, from the other end."""
    s, b, e, closed, suffix = scores.semiring, scores.bases, scores.entries, table.closed, out.suffix
    n = len(b)
    suffix[n] = s.one
    for i in range(n - 1, -1, -1):
        value = times(s, scores.external[i], suffix[i + 1])
        for j in range(i + SPAN, n):
            if closed[i, j] != s.zero:
                value = plus(s, value, times(s, external_pair(s, e, b, closed[i, j], i, j), suffix[j + 1]))
        suffix[i] = value


@helper
def take_from_loops(s, lengths, giving, counts, i, j, most, free, inside):
    """What the pairs outside internal loops give to (i, j): like `inner_over_loops`, from the other side.

    most, free : bases before i and after j that may be unpaired
    inside : of the pair (i, j), with what its end gives
    """
    total, plainly = s.zero, s.kind == SUM
    for left in range(1, min(most, i - 1) + 1):
        right = min(min(LONGEST - left, free), len(giving) - 2 - j)
        if right < 1:
            break
        here, own = slice(j + 2, j + 2 + right), slice(1, right + 1)
        if plainly:
            total += sum_of_products_counted(inside, giving[i - 1 - left, here], lengths[left, own], counts[left, own])
        else:
            value = log_inner_counted(inside, giving[i - 1 - left, here], lengths[left, own], counts[left, own])
            total = log_plus(total, value)
    return total


@helper
def take_row(scores, table, out, all_counts, lengths, i, before):
    """What is outside the spans that begin at i, and how often the ends of their pairs are expected.

    lengths : (31, 31) of internal loops, by [l1, l2]
    before : what the bases before i give when no pair encloses i, divided by the sum over all structures
    """
    s, b, e, c, multi, zero = (
        scores.semiring,
        scores.bases,
        scores.entries,
        all_counts.entries,
        scores.multi,
        scores.semiring.zero,
    )
    most = min(scores.before[i], LONGEST)
    closed, some, two, later = table.closed[i], row_of(table.some, len(b), i), table.two[i], table.later
    one_by_end = table.one_by_end
    out_some, out_two, out_later, out_one = out.some[i], out.two[i], out.later, out.one_by_end
    for j in range(len(b) - 1, i + SPAN - 1, -1):
        with_two, with_one = plus(s, out_two[j], out_some[j]), plus(s, out_later[i, j], out_some[j])
        one = plus(s, out_one[j, i], with_one)
        if as_number(s, times(s, with_two, two[j])) > NEVER:
            left, right = slice(i + SPAN, j - SPAN), slice(i + SPAN + 1, j - SPAN + 1)
            add_to(s, out_some[left], with_two, one_by_end[j, right])
            add_to(s, out_one[j, right], with_two, some[left])
        if with_one != zero:
            given = times(s, with_one, multi[i])
            out_later[i + 1, j] = plus(s, out_later[i + 1, j], given)
            c[MULTI_UNPAIRED] += as_number(s, times(s, given, later[i + 1, j]))
        out_one[j, i] = one
        if one != zero:
            given = times(s, one, multi[j])
            out_one[j - 1, i] = plus(s, out_one[j - 1, i], given)
            c[MULTI_UNPAIRED] += as_number(s, times(s, given, one_by_end[j - 1, i]))
        if closed[j] != zero:
            total = out.closed[i, j]
            in_bulge = plus(s, out.in_bulge[i, j], out.in_bulge_by_end[j, i])
            under_none = times(s, before, out.suffix[j + 1])
            in_loop = zero
            if most >= 1 and scores.after[j] >= 1 and i >= 2 and j + 2 < len(b):
                free, inside = scores.after[j], table.in_loop[i, j]
                in_loop = take_from_loops(s, lengths, out.giving, all_counts.internal, i, j, most, free, inside)
                smallest = times(s, out.giving[i - 2, j + 2], times(s, e[SMALLEST], e[ONE_BY_ONE + 5 * b[i - 1] + b[j + 1]]))
                in_loop = plus(s, in_loop, smallest)
                probability = as_number(s, times(s, smallest, inside))
                c[SMALLEST] += probability
                c[ONE_BY_ONE + 5 * b[i - 1] + b[j + 1]] += probability
            for k, given in (
                (outer_end(b, INTERNAL_END, i, j), in_loop),
                (BULGE_END + 4 * b[j] + b[i], in_bulge),
                (outer_end(b, MULTI_END, i, j), one),
                (outer_end(b, EXTERNAL_END, i, j), under_none),
            ):
                part = times(s, given, e[k])
                total = plus(s, total, part)
                c[k] += as_number(s, times(s, part, closed[j]))
            out.closed[i, j] = total


@helper
def give_to_stacks(s, e, b, c, closed, out_closed, i, j, outside, after, before):
    """The pair (i, j) gives what is outside it to the pair stacked on it, and to those across a bulge of one base."""
    row = STACK + 16 * (4 * b[i] + b[j])
    for left in range(2):
        for right in range(2 - left):
            p, q = i + 1 + left, j - 1 - right
            if q - p >= SPAN and after >= left and before >= right:
                given = times(s, outside, stack(s, e, b, i, j, p, q))
                out_closed[p, q] = plus(s, out_closed[p, q], given)
                probability = as_number(s, times(s, given, closed[p, q]))
                c[row + 4 * b[p] + b[q]] += probability
                if left + right:
                    c[BULGE + 1] += probability
                    c[BULGE_BASE + (b[i + 1] if left else b[j - 1])] += probability


@helper
def give_row(scores, table, out, counts, i):
    """The pairs that begin at i give what is outside them to all that they may enclose."""
    s, b, e, c, hairpins = scores.semiring, scores.bases, scores.entries, counts.entries, scores.hairpins
    bulges, bulges_back, loops, giving = scores.bulges, scores.bulges_back, table.loops, out.giving
    closed, in_loop, in_bulge, by_end, two = table.closed, table.in_loop, table.in_bulge, table.in_bulge_by_end, table.two
    out_closed, out_bulge, out_by_end, out_two = out.closed, out.in_bulge, out.in_bulge_by_end, out.two
    free, most = scores.after[i], min(scores.after[i], LONGEST)
    for j in range(i + SPAN, len(b)):
        if closed[i, j] == s.zero:
            continue
        probability = as_number(s, times(s, out_closed[i, j], closed[i, j]))
        if probability <= NEVER:
            continue
        c[PAIR + 4 * b[i] + b[j]] += probability
        outside, span, before = times(s, out_closed[i, j], scores.pairs[i, j]), j - i, scores.before[j]
        probability = as_number(s, times(s, outside, hairpin(s, e, b, hairpins, free, i, j)))
        c[inner_end(b, HAIRPIN_END, i, j)] += probability
        c[HAIRPIN + min(span - 1, LONGEST)] += probability
        if span <= 5:
            k = hairpin_bases(b, i, span - 1)
            if k >= 0:
                c[k] += probability
        if span - 2 < SPAN:
            continue
        give_to_stacks(s, e, b, c, closed, out_closed, i, j, outside, most, before)
        given = times(s, outside, multi_loop(s, e, b, i, j))
        out_two[i + 1, j - 1] = plus(s, out_two[i + 1, j - 1], given)
        probability = as_number(s, times(s, given, two[i + 1, j - 1]))
        c[MULTI_BASE] += probability
        c[inner_end(b, MULTI_END, i, j)] += probability
        if span - 4 < SPAN:
            continue
        end, left, right = BULGE_END + 4 * b[i] + b[j], min(most, span - 2 - SPAN), reach(before, span, 0)
        given = times(s, outside, e[end])
        if right >= 2:
            here, lengths = slice(j - 1 - right, j - 2), slice(LONGEST - right, LONGEST - 1)
            c[end] += share(
                s, given, bulges_back[lengths], in_bulge[i + 1, here], out_bulge[i + 1, here], counts.bulges_back[lengths]
            )
        if left >= 2:
            here, lengths = slice(i + 3, i + 2 + left), slice(2, left + 1)
            c[end] += share(s, given, bulges[lengths], by_end[j - 1, here], out_by_end[j - 1, here], counts.bulges[lengths])
        if most >= 1 and before >= 1:
            end = inner_end(b, INTERNAL_END, i, j)
            giving[i, j] = times(s, outside, e[end])
            smallest = times(s, one_by_one(s, e, b, i, j), in_loop[i + 2, j - 2])
            c[end] += as_number(s, times(s, outside, plus(s, smallest, loops[i, j])))


@helper
def fill_outside(scores, table, counts):
    """What is outside every span, and how often each entry is expected."""
    s, n, zero = scores.semiring, len(scores.bases), scores.semiring.zero
    shape = (n, n)
    closed, in_bulge = np.full(shape, zero), np.full(shape, zero)  # with those by [j, i] in their other halves
    out = Outside(
        closed,
        closed,
        np.full(shape, zero),
        in_bulge,
        in_bulge,
        np.full(shape, zero),
        np.full(shape, zero),
        np.full(shape, zero),
        np.full(n + 1, zero),
    )
    fill_suffix(scores, table, out)
    lengths = np.full((LONGEST + 1, LONGEST + 1), zero)
    for left in range(1, LONGEST):
        for right in range(1, LONGEST + 1 - left):
            lengths[left, right] = scores.internal[left, LONGEST - right]
    c, all_structures = counts.entries, table.prefix[n]
    for i in range(n):
        before = divide(s, table.prefix[i], all_structures)
        c[EXTERNAL_UNPAIRED] += as_number(s, times(s, times(s, before, scores.external[i]), out.suffix[i + 1]))
        take_row(scores, table, out, counts, lengths, i, before)
        give_row(scores, table, out, counts, i)
    return out


@helper
def safe_scores(scores, entries):
    """Whether plain numbers have a chance: no entry, and no pair, is far from one."""
    low, high = np.exp(-FLAT), np.exp(FLAT)
    for e in range(N_ENTRIES):
        if not -FLAT < entries[e] < FLAT:
            return False
    for i in range(len(scores.bases)):
        for value in scores.pairs[i]:
            if value != 0.0 and not low < value < high:
                return False
    return True


@helper
def in_range(values):
    """Whether all numbers that are not zero are in the safe range."""
    low, high = 1.0, 1.0
    for value in values.ravel():
        low = min(low, value if value > 0.0 else 1.0)
        high = max(high, value)
    return low > FEW and high < 1.0 / FEW


@helper
def is_safe(table):
    """Whether plain numbers were enough."""
    return (
        in_range(table.prefix)
        and table.prefix[-1] > FEW
        and in_range(table.closed)
        and in_range(table.some)
        and in_range(table.two)
        and in_range(table.later)
    )


@helper
def finish(scores, table, entries, probabilities):
    """Outside; expected entries into `entries`, probabilities of pairs into `probabilities` (n, n)."""
    s, n = scores.semiring, len(scores.bases)
    internal, bulges = np.zeros((LONGEST + 1, LONGEST + 1)), np.zeros(LONGEST + 1)
    counts = Counts(entries, internal, bulges, np.zeros(LONGEST + 1))
    fill(entries, 0.0)
    out = fill_outside(scores, table, counts)
    for left in range(1, LONGEST):
        for right in range(1, LONGEST + 1 - left):
            entries[INTERNAL + left * (LONGEST + 1) + right] += internal[left, right]
    for length in range(2, LONGEST + 1):
        entries[BULGE + length] += bulges[length] + counts.bulges_back[LONGEST - length]
    for i in range(n):
        for j in range(i + SPAN, n):
            p = as_number(s, times(s, out.closed[i, j], table.closed[i, j])) if table.closed[i, j] != s.zero else 0.0
            probabilities[i, j] = min(p, 1.0)


@helper
def growth(prefix):
    """By how much the logarithm of a sum grows with each base, from the longest beginning whose sum is in the safe range."""
    n = len(prefix) - 1
    while n > 1 and not FEW < prefix[n] < 1.0 / FEW:
        n -= 1
    return np.log(prefix[n]) / n if FEW < prefix[n] < 1.0 / FEW else 0.0


@helper
def sum_over_structures(bases, tied, theta, K, longest, entries, probabilities):
    """log sum over structures of exp(score), expected entries, and probabilities of pairs; see `inside.prepare`.

    In plain numbers; if they are not enough, once more at the rate at which sums grew; then at that which the best structure
    tells; else in logarithms. Of a long sequence the first bases tell a rate to begin with.
    """
    n, kind, rate = len(bases), SUM, 0.0
    size, retries = (SAMPLE if n > LONG else n), 1
    while True:  # one call of each function: every further one would be compiled again
        scores, constant = prepare(make_semiring(kind), bases, size, tied, theta, K, longest, rate)
        if kind != SUM or safe_scores(scores, tied):
            table = fill_inside(scores, False)
            whole = table.prefix[size]
            if size < n:
                rate, size = growth(table.prefix), n
                continue
            if kind == LARGEST:
                if whole == -np.inf:
                    fill(entries, 0.0)
                    return -np.inf
                rate = whole / n if 0.0 < whole < FLAT * n else 0.0
                kind = SUM if rate > 0.0 else LOG_SUM
                continue
            if kind == LOG_SUM or is_safe(table):
                finish(scores, table, entries, probabilities)
                return constant + (np.log(whole) if kind == SUM else whole)
            if retries == 1:
                rate, retries = rate + growth(table.prefix), 0
                continue
        size = n
        kind, rate, retries = LARGEST if retries >= 0 else LOG_SUM, 0.0, -1
