"""The best tree of a sentence, and the k best, by a binary grammar: the algorithm of Cocke, Kasami and Younger.

Scores of spans with a symbol, and of rules, give for every span (i, j) and symbol A, from short spans to long ones,

    in(i, j, A) = span(i, j, A) + max_{A -> B C, k} rule(A -> B C) + in(i, k, B) + in(k, j, C)

The chart is kept twice, once by the first word of spans and once by their end, so that the loop over splits k reads both
children side by side: it is a vector operation. Rules with the same two children share it. Sums over trees: `sums`.

Costs: O(n^3 R) time for n words and R rules, 16 n^2 S bytes for S symbols. The k best trees: k log k times as much time,
12 k n^2 S bytes.

References
----------
D. H. Younger (1967). Recognition and parsing of context-free languages in time n^3. Information and Control 10.
L. Huang, D. Chiang (2005). Better k-best parsing. IWPT.
"""

from __future__ import annotations

import numpy as np

from partwise.engine.compilation import helper
from partwise.engine.numerics import fill, larger
from partwise.structures.constituency.grammar import Grammar, best_tree, kbest_trees


@helper
def span_number(i, j, n):
    """Number of the span (i, j) among those of a sentence of n words."""
    return i * n - i * (i - 1) // 2 + j - i - 1


@helper
def windows_of(n, S):
    """[i, A] the first end of spans that begin at i with symbol A, and the last and one more; [j, A] the same of their begins.

    Splits lie between these. They are unsigned: indices that might be negative cost as much as the rest of a loop over splits.
    """
    ends, begun = np.zeros((n, S, 2), np.uint64), np.zeros((n + 1, S, 2), np.uint64)
    for a in range(S):
        for i in range(n):
            ends[i, a, 0], begun[i + 1, a, 0] = n + 1, n + 1
    return ends, begun


@helper
def widen(ends, begun, i, j, a):
    """Note that span (i, j) may have symbol a."""
    ends[i, a, 0], ends[i, a, 1] = min(ends[i, a, 0], np.uint64(j)), max(ends[i, a, 1], np.uint64(j + 1))
    begun[j, a, 0], begun[j, a, 1] = min(begun[j, a, 0], np.uint64(i)), max(begun[j, a, 1], np.uint64(i + 1))


@helper
def window(ends, begun, i, j, b, c):
    """Where splits of (i, j) with children B and C begin and end."""
    return max(ends[i, b, 0], begun[j, c, 0]), min(ends[i, b, 1], begun[j, c, 1])


@helper
def inside(grammar, n, theta, by_begin, by_end):
    """Fill the chart: by_begin[i, A, j] = by_end[j, A, i] = in(i, j, A).

    Pairs of children whose first one begins nowhere at i, or whose splits do not meet, are passed over: with tags that are known
    these are most.
    """
    S, base = grammar.n_symbols, n * (n + 1) // 2 * grammar.n_symbols
    rules, tops = theta[base : base + grammar.pair.size], np.empty(S)
    pairs_of, second, uses, by_pair, parent = grammar.pairs_of, grammar.pair_second, grammar.uses, grammar.by_pair, grammar.parent
    ends, begun = windows_of(n, S)
    for size in range(1, n + 1):
        for i in range(n - size + 1):
            j = i + size
            own = theta[span_number(i, j, n) * S : (span_number(i, j, n) + 1) * S]
            left, right = by_begin[i], by_end[j]
            fill(tops, 0.0 if size == 1 else -np.inf)
            for b in range(np.uint64(S if size > 1 else 0)):
                first, last = ends[i, b, 0], ends[i, b, 1]
                if first >= last:
                    continue
                for p in range(pairs_of[b], pairs_of[np.uint64(b) + np.uint64(1)]):
                    c = second[p]
                    low, high = max(first, begun[j, c, 0]), min(last, begun[j, c, 1])
                    if low >= high:
                        continue
                    top = -np.inf
                    for k in range(low, high):
                        top = larger(top, left[b, k] + right[c, k])
                    for u in range(uses[p], uses[p + 1]):
                        r = by_pair[u]
                        tops[parent[r]] = larger(tops[parent[r]], top + rules[r])
            for a in range(S):
                value = own[a] + tops[a]
                by_begin[i, a, j], by_end[j, a, i] = value, value
                if value > -np.inf:
                    widen(ends, begun, i, j, a)


@helper
def chart_of(grammar, n):
    """Room for a chart."""
    S = grammar.n_symbols
    return np.empty((n, S, n + 1)), np.empty((n + 1, S, n + 1))


@helper
def best_root(by_begin, n):
    """The symbol of highest score above the whole sentence."""
    top = 0
    for a in range(by_begin.shape[1]):
        if by_begin[0, a, n] > by_begin[0, top, n]:
            top = a
    return top


@helper
def read_best(grammar, n, theta, by_begin, by_end, y):
    """Write the best tree of a chart of maxima, from the root down: its rules and splits are looked for again."""
    base = n * (n + 1) // 2 * grammar.n_symbols
    begin, end, symbol = np.empty(2 * n - 1, np.int64), np.empty(2 * n - 1, np.int64), np.empty(2 * n - 1, np.int64)
    begin[0], end[0], symbol[0] = 0, n, best_root(by_begin, n)
    for t in range(2 * n - 1):
        i, j, a = begin[t], end[t], symbol[t]
        top, rule, split = -np.inf, 0, 0
        if j > i + 1:
            for r in range(grammar.begins[a], grammar.begins[a + 1]):
                left, right, own = by_begin[i, grammar.first[r]], by_end[j, grammar.second[r]], theta[base + r]
                for k in range(i + 1, j):
                    value = left[k] + right[k] + own
                    if value > top:
                        top, rule, split = value, r, k
            second = t + 2 * (split - i)
            begin[t + 1], end[t + 1], symbol[t + 1] = i, split, grammar.first[rule]
            begin[second], end[second], symbol[second] = split, j, grammar.second[rule]
        y[t] = a * n + split


@best_tree.implements(Grammar)
def _(grammar, n, theta, y):
    by_begin, by_end = chart_of(grammar, n)
    inside(grammar, n, theta, by_begin, by_end)
    value = by_begin[0, best_root(by_begin, n), n]
    if value > -np.inf:
        read_best(grammar, n, theta, by_begin, by_end, y)
    return value


@helper
def insert(values, how, size, most, value, r, k, left, right):
    """Put a derivation into a list that is sorted and no longer than `most`; returns how long it is then."""
    if size == most and not value > values[most - 1]:
        return size
    at = size if size < most else most - 1
    while at > 0 and values[at - 1] < value:
        values[at] = values[at - 1]
        for f in range(4):
            how[at, f] = how[at - 1, f]
        at -= 1
    values[at] = value
    how[at, 0], how[at, 1], how[at, 2], how[at, 3] = r, k, left, right
    return min(size + 1, most)


@kbest_trees.implements(Grammar)
def _(grammar, n, theta, ys, out):
    # every entry of the chart has its k best derivations
    S, most, base = grammar.n_symbols, len(out), n * (n + 1) // 2 * grammar.n_symbols
    cells = n * (n + 1) // 2 * S
    values, how, found = np.empty((cells, most)), np.empty((cells, most, 4), np.int32), np.zeros(cells, np.int64)
    for size in range(1, n + 1):
        for i in range(n - size + 1):
            j = i + size
            for a in range(S):
                cell = span_number(i, j, n) * S + a
                own = theta[cell]
                if own == -np.inf:
                    continue
                if size == 1:
                    values[cell, 0], found[cell] = own, 1
                    continue
                count = 0
                for r in range(grammar.begins[a], grammar.begins[a + 1]):
                    rule = theta[base + r]
                    if rule == -np.inf:
                        continue
                    for k in range(i + 1, j):
                        b = span_number(i, k, n) * S + grammar.first[r]
                        c = span_number(k, j, n) * S + grammar.second[r]
                        for p in range(found[b]):
                            for q in range(min(found[c], most // (p + 1))):  # (p + 1)(q + 1) - 1 others are no worse
                                value = own + rule + values[b, p] + values[c, q]
                                if count == most and not value > values[cell, most - 1]:
                                    break
                                count = insert(values[cell], how[cell], count, most, value, r, k, p, q)
                found[cell] = count
    # the best of all roots together
    top = np.empty(most)
    which, count, whole = np.empty((most, 4), np.int32), 0, span_number(0, n, n) * S
    for a in range(S):
        for p in range(found[whole + a]):
            count = insert(top, which, count, most, values[whole + a, p], a, p, 0, 0)
    begin, end = np.empty(2 * n - 1, np.int64), np.empty(2 * n - 1, np.int64)
    symbol, rank = np.empty(2 * n - 1, np.int64), np.empty(2 * n - 1, np.int64)
    for m in range(count):
        out[m] = top[m]
        begin[0], end[0], symbol[0], rank[0] = 0, n, which[m, 0], which[m, 1]
        for t in range(2 * n - 1):
            i, j, a, split = begin[t], end[t], symbol[t], 0
            if j > i + 1:
                cell = span_number(i, j, n) * S + a
                r, split = np.int64(how[cell, rank[t], 0]), np.int64(how[cell, rank[t], 1])
                second = t + 2 * (split - i)
                begin[t + 1], end[t + 1], symbol[t + 1] = i, split, grammar.first[r]
                begin[second], end[second], symbol[second] = split, j, grammar.second[r]
                rank[t + 1], rank[second] = how[cell, rank[t], 2], how[cell, rank[t], 3]
            ys[m, t] = a * n + split
    return count
