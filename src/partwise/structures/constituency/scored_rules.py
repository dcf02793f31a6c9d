"""Binary trees whose spans and rules have any scores, and no features: `free` with a grammar.

    s(y) = sum over the spans (i, j) of a tree of span(i, j, label)  +  sum of rule[A, B, C] where B and C are the children of A

The first labels are those that rules are for; the others stand above single words only. Oracles are those of `best` and `sums`,
over a grammar of all rules. Spans and outputs are numbered as in `free`. Parts: (span, label), then the rules, as often as they
are used.

Cost: O(n^3 R) time for R rules and O(n^2 L) memory for L labels, beside the scores.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partwise import kernels
from partwise.engine.compilation import helper
from partwise.engine.numerics import fill
from partwise.structures.constituency.best import span_number
from partwise.structures.constituency.free import number_of
from partwise.structures.constituency.grammar import NO_TAG, Grammar, best_tree, kbest_trees, make_grammar, tree_sums
from partwise.structures.constituency.kernels import walk


class ScoredRuleProblem(NamedTuple):
    """N sentences whose spans and rules have any scores."""

    starts: np.ndarray  #: (N + 1,) int64 first word of each sentence
    n_labels: int
    n_parents: int
    grammar: Grammar  #: all rules


def scored_rule_problem(lengths: np.ndarray, n_labels: int, n_parents: int) -> ScoredRuleProblem:
    """Sentences of these lengths; rules of the first `n_parents` of `n_labels` labels."""
    rules = np.stack(np.meshgrid(np.arange(n_parents), np.arange(n_labels), np.arange(n_labels), indexing="ij"), -1)
    grammar = make_grammar(n_labels, rules.reshape(-1, 3), [NO_TAG] * n_labels, [])
    return ScoredRuleProblem(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64), n_labels, n_parents, grammar)


@kernels.n_examples.implements(ScoredRuleProblem)
def n_examples(problem):
    return problem.starts.size - 1


@helper
def n_words(problem, i):
    """Words of sentence i."""
    return problem.starts[i + 1] - problem.starts[i]


@helper
def n_spans(problem, i):
    """Spans of sentence i."""
    n = n_words(problem, i)
    return n * (n + 1) // 2


@kernels.n_parts.implements(ScoredRuleProblem)
def n_parts(problem, i):
    return n_spans(problem, i) * problem.n_labels + problem.n_parents * problem.n_labels * problem.n_labels


@kernels.length.implements(ScoredRuleProblem)
def length(problem, i):
    return max(2 * n_words(problem, i) - 1, 0)


@helper
def as_in_grammar(problem, i, theta):
    """Scores in the order of `kernels`, where spans are numbered by their first word, and the glue, which is never used."""
    n, L = n_words(problem, i), problem.n_labels
    spans, given = n_spans(problem, i), np.full(n_spans(problem, i) * (L + 1) + problem.grammar.keys.size, -np.inf)
    for b in range(1, n + 1):
        for a in range(b):
            own, other = number_of(a, b) * L, span_number(a, b, n) * (L + 1)
            for c in range(L):
                given[other + c] = theta[own + c]
    for r in range(problem.n_parents * L * L):
        given[spans * (L + 1) + r] = theta[spans * L + r]
    return given


@helper
def as_spans(y, n, L):
    """Replace the codes of an output of a grammar by those of `free`."""
    begin, end = np.empty(len(y), np.int64), np.empty(len(y), np.int64)
    walk(y, n, begin, end)
    for t in range(len(y)):
        y[t] = number_of(begin[t], end[t]) * L + y[t] // n


@helper
def rule_below(problem, y, t):
    """The number of the rule by which span y[t] of an output in pre-order has its children; -1 for words, -2 if there is none."""
    L, span = problem.n_labels, y[t] // problem.n_labels
    end = 1
    while end * (end + 1) // 2 <= span:
        end += 1
    begin = span - end * (end - 1) // 2
    if end == begin + 1:
        return -1
    first = y[t + 1] // L
    middle = 1
    while middle * (middle + 1) // 2 <= first:
        middle += 1
    second = t + 2 * (middle - begin)
    return (y[t] % L * L + y[t + 1] % L) * L + y[second] % L if y[t] % L < problem.n_parents else -2


@kernels.value_of.implements(ScoredRuleProblem)
def value_of(problem, i, theta, y):
    total, base = 0.0, n_spans(problem, i) * problem.n_labels
    for t in range(len(y)):
        r = rule_below(problem, y, t)
        total += theta[y[t]]
        if r >= 0:
            total += theta[base + r]
        elif r == -2:
            total = -np.inf
    return total


@kernels.indicate.implements(ScoredRuleProblem)
def indicate(problem, i, y, c, parts):
    base = n_spans(problem, i) * problem.n_labels
    for t in range(len(y)):
        r = rule_below(problem, y, t)
        parts[y[t]] += c
        if r >= 0:
            parts[base + r] += c


@kernels.best.implements(ScoredRuleProblem)
def best(problem, i, theta, y):
    n = n_words(problem, i)
    if n == 0:
        return 0.0
    value = best_tree(problem.grammar, n, as_in_grammar(problem, i, theta), y)
    if value > -np.inf:
        as_spans(y, n, problem.n_labels)
    return value


@kernels.kbest.implements(ScoredRuleProblem)
def kbest(problem, i, theta, ys, values):
    n = n_words(problem, i)
    if n == 0:
        values[0] = 0.0
        return 1
    found = kbest_trees(problem.grammar, n, as_in_grammar(problem, i, theta), ys, values)
    for k in range(found):
        as_spans(ys[k], n, problem.n_labels)
    return found


@kernels.expected.implements(ScoredRuleProblem)
def expected(problem, i, theta, parts):
    n, L = n_words(problem, i), problem.n_labels
    fill(parts, 0.0)
    if n == 0:
        return 0.0
    spans, given = n_spans(problem, i), as_in_grammar(problem, i, theta)
    found = np.empty(len(given))
    log_z = tree_sums(problem.grammar, n, given, found)
    for b in range(1, n + 1):
        for a in range(b):
            own, other = number_of(a, b) * L, span_number(a, b, n) * (L + 1)
            for c in range(L):
                parts[own + c] = found[other + c]
    for r in range(problem.n_parents * L * L):
        parts[spans * L + r] = found[spans * (L + 1) + r]
    return log_z


@kernels.outputs.implements(ScoredRuleProblem)
def outputs(problem, i):
    n, L = int(n_words(problem, i)), problem.n_labels

    def below(a, b):
        """All trees of a span, as lists of codes."""
        for c in range(L if b == a + 1 else problem.n_parents):
            code = number_of(a, b) * L + c
            if b == a + 1:
                yield [code]
            for k in range(a + 1, b):
                for left in below(a, k):
                    for right in below(k, b):
                        yield [code, *left, *right]

    if n == 0:
        yield np.zeros(0, np.int32)
    else:
        for codes in below(0, n):
            yield np.array(codes, np.int32)
