"""Sentences and a grammar packed end to end: what the kernels of constituency trees see.

Spans (i, j) of a sentence of n words, 0 <= i < j <= n, are numbered by their first word and then by their end, n (n + 1) / 2 of
them. An output is a binary tree, 2 n - 1 nodes in pre-order, each written as one integer ``symbol * n + split``: the split is
where the second child begins, and 0 for a word. So the first child of node t is node t + 1, the second one node t + 2 (split -
i).

The last symbol of every grammar is the *glue*: it has the rules ``GLUE -> A GLUE`` for every symbol A and may stand above the
last word. Where a problem allows it (to predict), every sentence has a tree: a list of pieces that the grammar knows, as few as
can be.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from partwise import kernels
from partwise.engine.ragged import taken
from partwise.features.rows import make_rows, n_rows, take_rows
from partwise.oracles.complete_all import complete_all
from partwise.structures.constituency.grammar import NO_RULE, AnyLabels, Grammar, rule_number

NOTHING, FREE = -1, -2  # of a span: no symbol is right; any is
ANY_TAG = -1  # of a word: it may have every tag
BEST_BYTES, SUMS_BYTES = 20, 40  # a pair of words and a symbol: charts of `best` and `sums`, scores, marginals


class GrammarProblem(NamedTuple):
    """N packed sentences."""

    rows: Any  #: feature rows, one per span, sentences end to end
    grammar: Grammar | AnyLabels
    starts: np.ndarray  #: (N + 1,) int64 first word of each sentence
    spans: np.ndarray  #: (N + 1,) int64 first span of each sentence
    nodes: np.ndarray  #: (N + 1,) int64 first node of each output
    tags: np.ndarray  #: (words,) int32, or ANY_TAG
    gold: np.ndarray  #: (nodes,) int32 the right trees
    targets: np.ndarray  #: (nodes,) int32 what margins are measured against
    glue: bool  #: whether the glue may be used
    partial: np.ndarray  #: (N,) bool, or empty: whether only some brackets of a sentence are known
    known: np.ndarray  #: (spans,) int32, or empty: NOTHING, or FREE - number of the set of symbols that are right; of those
    sets: np.ndarray  #: (sets, S) bool, the first of them all symbols


@kernels.partially_labelled
class PartialGrammarProblem(GrammarProblem):
    """The same where of some sentences only some brackets are known: every tree that has these is right."""


def grammar_problem(
    x: Any,
    lengths: Any,
    grammar: Grammar | AnyLabels,
    trees: Sequence[Any] | None = None,
    tags: Any = None,
    *,
    glue: bool = False,
    brackets: Sequence[Any] | None = None,
    dtype=np.float64,
) -> GrammarProblem:
    """Pack sentences.

    Parameters
    ----------
    x : array or sparse matrix (spans, n_features), or feature rows
        One row for each span: sentence by sentence, by first word, then by last word.
    lengths : integers (N,)
        Words of each sentence; zero is fine.
    grammar : Grammar or AnyLabels
    trees : list of integer arrays, optional
        The right output of each sentence; None where only some brackets are known. Left out for prediction.
    tags : integers (words,), optional
        What the tags of words are known to be; ANY_TAG for those that are not.
    glue : bool
        Whether a sentence may be glued together from pieces.
    brackets : list of lists of (begin, end, symbols), optional
        What is known of the sentences whose tree is None: spans that are in it, with the symbols that they may have.
    """
    lengths = np.asarray(lengths, np.int64)
    starts, spans, nodes = (
        np.concatenate([[0], np.cumsum(some)]).astype(np.int64)
        for some in (lengths, lengths * (lengths + 1) // 2, np.maximum(2 * lengths - 1, 0))
    )
    rows = make_rows(x, dtype) if isinstance(x, np.ndarray) or hasattr(x, "tocsr") else x
    if n_rows(rows) != spans[-1]:
        raise ValueError(f"These sentences have {spans[-1]} spans, but there are {n_rows(rows)} rows of features.")
    known = np.full(starts[-1], ANY_TAG, np.int32) if tags is None else np.asarray(tags, np.int32)
    if known.shape != (starts[-1],):
        raise ValueError(f"There must be a tag for each of {starts[-1]} words. Got {len(known)}.")
    gold = np.zeros(nodes[-1], np.int32)
    none = np.zeros(0, bool), np.zeros(0, np.int32), np.ones((1, grammar.n_symbols), bool)
    problem = GrammarProblem(rows, grammar, starts, spans, nodes, known, gold, gold, glue, *none)
    if trees is not None:
        if len(trees) != len(lengths):
            raise ValueError(f"There are {len(lengths)} sentences, but {len(trees)} trees.")
        for i, tree in enumerate(trees):
            if tree is None:
                continue
            if len(tree) != nodes[i + 1] - nodes[i]:
                raise ValueError(f"sentence {i}: its tree has {len(tree)} nodes, but {lengths[i]} words.")
            gold[nodes[i] : nodes[i + 1]] = tree
            wrong = first_wrong(problem, i, np.asarray(tree))
            if wrong:
                raise ValueError(f"sentence {i}: its tree is none of this grammar: {wrong}.")
        if any(tree is None for tree in trees):
            return with_brackets(problem, np.array([tree is None for tree in trees]), brackets or [()] * len(lengths))
    return problem


def with_brackets(problem: GrammarProblem, partial: np.ndarray, brackets: Sequence[Any]) -> PartialGrammarProblem:
    """The problem with the brackets that are known of the sentences marked in `partial`, and some tree with these for a target.

    A tree without any node that crosses a span (i, j) has a node (i, j): so what is known forbids, or makes wrong, single parts.
    """
    S, known, sets = problem.grammar.n_symbols, np.full(problem.spans[-1], FREE, np.int32), [problem.sets[0]]
    for i in np.flatnonzero(partial).tolist():
        begins, ends = np.triu_indices(int(problem.starts[i + 1] - problem.starts[i]))
        own, ends = known[problem.spans[i] : problem.spans[i + 1]], ends + 1
        for a, b, symbols in brackets[i]:
            own[((begins < a) & (a < ends) & (ends < b)) | ((a < begins) & (begins < b) & (b < ends))] = NOTHING
            here = (begins == a) & (ends == b)
            if not here.any() or own[here] != FREE:
                raise ValueError(
                    f"sentence {i}: the bracket ({a}, {b}) is outside the sentence, crosses another or is there twice."
                )
            own[here] = FREE - len(sets)
            sets.append(np.isin(np.arange(S), symbols))
    found = PartialGrammarProblem(*problem)._replace(partial=partial, known=known, sets=np.array(sets))
    targets, wrong = complete_all(found)
    if wrong >= 0:
        raise ValueError(
            f"sentence {wrong}: the grammar has no tree with the brackets that are known. Give the whole tree, "
            "or leave the sentence out."
        )
    return found._replace(targets=targets)


def memory_needed(n: int, grammar: Grammar | AnyLabels, sums: bool = False, k: int = 1) -> int:
    """Bytes that an oracle needs for a sentence of n words, at most: for the best tree, for sums over all, or for the k best.

    Without a grammar charts have one number for a span; scores, and marginals for sums, have one for every symbol.
    """
    S, best = grammar.n_symbols, 12 * k + 8  # the k best derivations of every entry, and scores of parts
    if isinstance(grammar, AnyLabels):
        return n * (n + 1) * ((8 if sums else 4) * S + 24 + best)
    return n * (n + 1) * S * (SUMS_BYTES if sums else max(BEST_BYTES, best))


def nodes_of(y: Any, n: int) -> list[tuple[int, int, int, int]]:
    """(begin, end, symbol, split) of every node of an output, in pre-order; in plain Python."""
    begin, end, found = [0] * len(y), [n] * len(y), []
    for t, code in enumerate(np.asarray(y).tolist()):
        symbol, split = divmod(code, n)
        i, j = begin[t], end[t]
        if split:
            if not i < split < j:
                raise ValueError(f"node {t} of {len(y)} above words {i + 1} to {j} is split at {split}")
            second = t + 2 * (split - i)
            begin[t + 1], end[t + 1], begin[second], end[second] = i, split, split, j
        elif j != i + 1:
            raise ValueError(f"node {t} of {len(y)} is above words {i + 1} to {j}, but has no split")
        found.append((i, j, symbol, split))
    return found


def first_wrong(problem: GrammarProblem, i: int, y: np.ndarray) -> str:
    """What is wrong with an output of sentence i, in words; empty if nothing is."""
    g, n = problem.grammar, int(problem.starts[i + 1] - problem.starts[i])
    try:
        nodes = nodes_of(y, n)
    except ValueError as error:
        return str(error)
    for t, (a, b, symbol, split) in enumerate(nodes):
        if not 0 <= symbol < g.n_symbols:
            return f"there is no symbol {symbol}"
        if t == 0 and not g.root[symbol]:
            return f"symbol {symbol} may not be above a sentence"
        if split:
            first, second = nodes[t + 1][2], nodes[t + 2 * (split - a)][2]
            if rule_number(g, symbol, first, second) == NO_RULE:
                return f"there is no rule {symbol} -> {first} {second}"
        elif g.tag[symbol] < 0 or problem.tags[problem.starts[i] + a] not in (ANY_TAG, g.tag[symbol]):
            return f"symbol {symbol} may not be above word {b}"
    return ""


@kernels.take.implements(GrammarProblem)
def take(problem: GrammarProblem, which: np.ndarray) -> GrammarProblem:
    """The sentences numbered `which`, as a problem of their own."""
    which = which if isinstance(which, slice) else np.asarray(which, np.int64)
    offsets = (problem.starts, problem.spans, problem.nodes)
    (starts, words), (spans, rows), (nodes, outputs) = (taken(some, which) for some in offsets)
    partial, known = problem.partial, problem.known
    if partial.size:
        partial, known = partial[which], known[rows]
    return (PartialGrammarProblem if kernels.is_partial(problem) and partial.any() else GrammarProblem)(*problem)._replace(
        rows=take_rows(problem.rows, rows),
        partial=partial,
        known=known,
        starts=starts,
        spans=spans,
        nodes=nodes,
        tags=problem.tags[words],
        gold=problem.gold[outputs],
        targets=problem.targets[outputs],
    )
