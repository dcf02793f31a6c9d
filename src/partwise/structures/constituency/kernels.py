"""Constituency trees: an output is a tree over the words whose nodes have symbols, by the rules of a binary grammar.

    s(y) = sum over nodes (i, j, A) of  x_ij . W[:, A]  +  sum over rules A -> B C in y of  v[A -> B C]

Parts: (span, symbol), in that order, and then the rules, as often as they are used. Which symbols a span may have: those above
one word have a tag that agrees with the word's, where that is known; that of the whole sentence is one of the grammar's roots;
others are parents of rules. What is read from trees of a treebank, with any number of children, are such rules: see
`partwise.tasks.constituency.grammar`. How spans and outputs are written down: `problem`; the recursions: `best`, `sums`.

Cost: the number of nodes that the right tree does not have, span and symbol. All trees of a sentence have as many nodes, so it is
the number of nodes missed, too. Where only some brackets are known (`PartialGrammarProblem`), it is the number of nodes that
cross one or have another symbol.

Cost of an oracle: O(n^3 R) time for n words and R rules, O(n^2 S) memory for S symbols.
"""

from __future__ import annotations

import numpy as np

from partwise import kernels
from partwise.engine.accumulator import row
from partwise.engine.compilation import helper
from partwise.engine.numerics import copy, fill
from partwise.features.rows import add_label, add_row, emit
from partwise.structures.constituency import any_labels, sums  # noqa: F401 - the oracles of `grammar`
from partwise.structures.constituency.best import span_number
from partwise.structures.constituency.grammar import (
    GLUE_TAG,
    NO_RULE,
    best_tree,
    has_weight,
    kbest_trees,
    n_rules,
    rule_of,
    rules_of,
    score_rules,
    tree_sums,
)
from partwise.structures.constituency.problem import (
    ANY_TAG,
    FREE,
    NOTHING,
    GrammarProblem,
    PartialGrammarProblem,
)

GLUE_COST = 1e4  # of a rule with glue, and of a word that is no sentence: no score of a tree without comes near it

# ---------------------------------------------------------------------------------------------------------------------
# Sizes
# ---------------------------------------------------------------------------------------------------------------------


@kernels.n_examples.implements(GrammarProblem)
def n_examples(problem):
    return problem.starts.size - 1


@kernels.n_weights.implements(GrammarProblem)
def n_weights(problem):
    S, R = problem.grammar.n_symbols, n_rules(problem.grammar)
    return (problem.rows.n_features + (R + S - 1) // S) * S  # those of rules fill rows of S, too


@kernels.width.implements(GrammarProblem)
def width(problem):
    return problem.grammar.n_symbols


@kernels.n_parts.implements(GrammarProblem)
def n_parts(problem, i):
    return (problem.spans[i + 1] - problem.spans[i]) * problem.grammar.n_symbols + n_rules(problem.grammar)


@kernels.length.implements(GrammarProblem)
def length(problem, i):
    return problem.nodes[i + 1] - problem.nodes[i]


@kernels.target.implements(GrammarProblem)
def target(problem, i):
    return problem.targets[problem.nodes[i] : problem.nodes[i + 1]]


@helper
def n_words(problem, i):
    """Words of sentence i."""
    return problem.starts[i + 1] - problem.starts[i]


# ---------------------------------------------------------------------------------------------------------------------
# Walking through outputs
# ---------------------------------------------------------------------------------------------------------------------


@helper
def walk(y, n, begin, end):
    """Write where the words of every node of an output begin and end."""
    if n > 0:
        begin[0], end[0] = 0, n
    for t in range(len(y)):
        split = np.int64(y[t] % n)
        if split > 0:
            second = t + 2 * (split - begin[t])
            begin[t + 1], end[t + 1], begin[second], end[second] = begin[t], split, split, end[t]


@helper
def symbols_of_spans(y, n):
    """The symbol of every span of an output, NOTHING for spans that it does not have."""
    found = np.full(n * (n + 1) // 2, NOTHING, np.int32)
    begin, end = np.empty(len(y), np.int64), np.empty(len(y), np.int64)
    walk(y, n, begin, end)
    for t in range(len(y)):
        found[span_number(begin[t], end[t], n)] = y[t] // n
    return found


@helper
def right_of_spans(problem, i):
    """What is right for every span of sentence i: a symbol, NOTHING, or FREE - number of a set of symbols."""
    if problem.partial.size > 0 and problem.partial[i]:
        return problem.known[problem.spans[i] : problem.spans[i + 1]]
    return symbols_of_spans(problem.gold[problem.nodes[i] : problem.nodes[i + 1]], n_words(problem, i))


@helper
def is_right(problem, right, s):
    """Whether symbol s is."""
    return s == right if right > FREE else problem.sets[FREE - right, s]


# ---------------------------------------------------------------------------------------------------------------------
# Scores and oracles
# ---------------------------------------------------------------------------------------------------------------------


@helper
def may_be(problem, n, i, j, a, known):
    """Whether span (i, j) of n words may have symbol a; `known` is the tag of its word, if it is one."""
    g = problem.grammar
    tag, whole = g.tag[a], i == 0 and j == n
    if tag == GLUE_TAG:
        return problem.glue and j == n and n > 1
    if j == i + 1:
        fits = tag >= 0 and (known == ANY_TAG or known == tag)
        return fits and (not whole or g.root[a] or problem.glue)
    return g.inner[a] and (not whole or g.root[a])


@helper
def forbid_symbols(problem, n, i, j, known, out):
    """out = -inf for symbols that span (i, j) may not have, else 0; as `may_be` says of each.

    Arrays are taken out of the grammar once: one look at a time takes longer than all scores of a sentence.
    """
    g, whole, is_word = problem.grammar, i == 0 and j == n, j == i + 1
    tag, root, inner = g.tag, g.root, g.inner
    for s in range(len(out)):
        fits = (tag[s] >= 0 and (known == ANY_TAG or known == tag[s])) if is_word else inner[s]
        fits = fits and (not whole or root[s] or (is_word and problem.glue))
        if tag[s] == GLUE_TAG:
            fits = problem.glue and j == n and n > 1
        out[s] = 0.0 if fits else -np.inf


@kernels.score.implements(GrammarProblem)
def score(problem, i, w, theta):
    g, n = problem.grammar, n_words(problem, i)
    S, span, within = g.n_symbols, 0, np.empty(g.n_symbols)
    forbid_symbols(problem, n + 1, 0, 2, ANY_TAG, within)  # of spans of several words that do not end the sentence
    for a in range(n):
        known = problem.tags[problem.starts[i] + a]
        for b in range(a + 1, n + 1):
            out = row(theta, span, S)
            if b == a + 1 or b == n:
                forbid_symbols(problem, n, a, b, known, out)
            else:
                copy(within, out)
            emit(problem.rows, problem.spans[i] + span, w, S, out)
            span += 1
    if n == 1:
        for s in range(S):
            if not g.root[s]:
                theta[s] -= GLUE_COST  # one word that is no sentence: no better than glue
    glue_cost = GLUE_COST if problem.glue else np.inf
    score_rules(g, w[problem.rows.n_features * S :], glue_cost, theta[span * S : span * S + n_rules(g)])


@kernels.add_cost.implements(GrammarProblem)
def add_cost(problem, i, c, theta):
    S, right = problem.grammar.n_symbols, right_of_spans(problem, i)
    for span in range(len(right)):
        out = row(theta, span, S)
        for s in range(S):
            if not is_right(problem, right[span], s):
                out[s] += c


@kernels.value_of.implements(GrammarProblem)
def value_of(problem, i, theta, y):
    g, n, total = problem.grammar, n_words(problem, i), 0.0
    S = g.n_symbols
    base = n * (n + 1) // 2 * S
    begin, end = np.empty(len(y), np.int64), np.empty(len(y), np.int64)
    walk(y, n, begin, end)
    for t in range(len(y)):
        total += theta[span_number(begin[t], end[t], n) * S + y[t] // n]
        if y[t] % n > 0:
            r = rule_of(g, y, n, begin, t)
            if r >= 0:
                total += theta[base + r]
            elif r == NO_RULE:
                total = -np.inf
    return total


@kernels.cost.implements(GrammarProblem)
def cost(problem, i, y):
    n, total, right = n_words(problem, i), 0.0, right_of_spans(problem, i)
    begin, end = np.empty(len(y), np.int64), np.empty(len(y), np.int64)
    walk(y, n, begin, end)
    for t in range(len(y)):
        if not is_right(problem, right[span_number(begin[t], end[t], n)], y[t] // n):
            total += 1.0
    return total


@kernels.truth.implements(GrammarProblem)
def truth(problem, i, y):
    for t in range(len(y)):
        y[t] = problem.gold[problem.nodes[i] + t]


@kernels.is_labelled.implements(PartialGrammarProblem)
def is_labelled(problem, i):
    return not problem.partial[i]


@kernels.restrict.implements(PartialGrammarProblem)
def restrict(problem, i, theta):
    S, right = problem.grammar.n_symbols, right_of_spans(problem, i)
    for span in range(len(right)):
        for s in range(S):
            if not is_right(problem, right[span], s):
                theta[span * S + s] = -np.inf


@kernels.with_targets.implements(PartialGrammarProblem)
def with_targets(problem, targets):
    return GrammarProblem(*problem)._replace(targets=targets)


@kernels.best.implements(GrammarProblem)
def best(problem, i, theta, y):
    n = n_words(problem, i)
    if n == 0:
        return 0.0
    return best_tree(problem.grammar, n, theta, y)


@kernels.kbest.implements(GrammarProblem)
def kbest(problem, i, theta, ys, values):
    n = n_words(problem, i)
    if n == 0:
        values[0] = 0.0
        return 1
    return kbest_trees(problem.grammar, n, theta, ys, values)


@kernels.expected.implements(GrammarProblem)
def expected(problem, i, theta, parts):
    n = n_words(problem, i)
    if n == 0:
        fill(parts, 0.0)
        return 0.0
    return tree_sums(problem.grammar, n, theta, parts)


@kernels.agreement.implements(GrammarProblem)
def agreement(problem, i, parts, given):
    """Position t is node t of the truth, or of the target where only some brackets are known: all of them are in it."""
    S, n, right = problem.grammar.n_symbols, n_words(problem, i), right_of_spans(problem, i)
    partial = problem.partial.size > 0 and problem.partial[i]
    first, last = problem.nodes[i], problem.nodes[i + 1]
    y = problem.targets[first:last] if partial else problem.gold[first:last]
    begin, end = np.empty(len(y), np.int64), np.empty(len(y), np.int64)
    walk(y, n, begin, end)
    for t in range(len(y)):
        span = span_number(begin[t], end[t], n)
        p = row(parts, span, S)
        if right[span] == FREE:
            given[t] = 1.0
        elif right[span] > FREE:
            given[t] = p[right[span]]
        else:
            given[t] = 0.0
            for s in range(S):
                if is_right(problem, right[span], s):
                    given[t] += p[s]


@kernels.outputs.implements(GrammarProblem)
def outputs(problem, i):
    g, n = problem.grammar, int(n_words(problem, i))
    tags = problem.tags[problem.starts[i] : problem.starts[i + 1]]

    def below(a, b, s):
        """All trees of a span with a symbol, as lists of codes."""
        if not may_be(problem, n, a, b, s, tags[a]):
            return
        if b == a + 1:
            yield [s * n]
            return
        for first, second in rules_of(g, s):
            for k in range(a + 1, b):
                for left in below(a, k, first):
                    for right in below(k, b, second):
                        yield [s * n + k, *left, *right]

    if n == 0:
        yield np.zeros(0, np.int32)
    for s in range(g.n_symbols if n else 0):
        for codes in below(0, n, s):
            yield np.array(codes, np.int32)


# ---------------------------------------------------------------------------------------------------------------------
# Features
# ---------------------------------------------------------------------------------------------------------------------


@kernels.indicate.implements(GrammarProblem)
def indicate(problem, i, y, c, parts):
    g, n = problem.grammar, n_words(problem, i)
    base = n * (n + 1) // 2 * g.n_symbols
    begin, end = np.empty(len(y), np.int64), np.empty(len(y), np.int64)
    walk(y, n, begin, end)
    for t in range(len(y)):
        parts[span_number(begin[t], end[t], n) * g.n_symbols + y[t] // n] += c
        if y[t] % n > 0:
            r = rule_of(g, y, n, begin, t)
            if r >= 0:
                parts[base + r] += c


@helper
def add_nodes(problem, i, y, other, c, into):
    """into += c * features of the nodes of y that are not among the symbols of spans `other`, and of its rules."""
    g, n, first = problem.grammar, n_words(problem, i), problem.spans[i]
    S = g.n_symbols
    begin, end = np.empty(len(y), np.int64), np.empty(len(y), np.int64)
    walk(y, n, begin, end)
    for t in range(len(y)):
        span = span_number(begin[t], end[t], n)
        if len(other) == 0 or other[span] != y[t] // n:
            add_label(problem.rows, first + span, S, y[t] // n, c, into)
        if y[t] % n > 0:
            add_rule(problem, rule_of(g, y, n, begin, t), c, into)


@helper
def add_rule(problem, r, c, into):
    """into += c for the weight of rule r, if it has one."""
    S = problem.grammar.n_symbols
    if r >= 0 and has_weight(problem.grammar, r):
        row(into, problem.rows.n_features + r // S, S)[r % S] += c


@kernels.add_features.implements(GrammarProblem)
def add_features(problem, i, y, c, into):
    add_nodes(problem, i, y, np.empty(0, np.int32), c, into)


@kernels.add_parts.implements(GrammarProblem)
def add_parts(problem, i, parts, c, into):
    g, first = problem.grammar, problem.spans[i]
    S, spans = g.n_symbols, problem.spans[i + 1] - problem.spans[i]
    for span in range(spans):
        p, used = row(parts, span, S), False
        for s in range(S):
            used = used or p[s] != 0.0
        if used:
            add_row(problem.rows, first + span, S, p, c, into)
    for r in range(n_rules(g)):
        if parts[spans * S + r] != 0.0:
            add_rule(problem, r, c * parts[spans * S + r], into)


@kernels.difference.implements(GrammarProblem)
def difference(problem, i, t, y, c, into):
    n = n_words(problem, i)
    add_nodes(problem, i, t, symbols_of_spans(y, n), c, into)
    add_nodes(problem, i, y, symbols_of_spans(t, n), -c, into)
