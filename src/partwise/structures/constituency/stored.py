"""What must hold of stored sentences, their grammar and their trees."""

from __future__ import annotations

import numpy as np

from partwise.features.stored import (
    check_array,
    check_arrays,
    check_flags,
    check_int,
    check_numbers,
    check_offsets,
    check_rows,
    check_sizes,
    expect,
)
from partwise.structures.constituency.grammar import NO_TAG, AnyLabels, Grammar, make_grammar
from partwise.structures.constituency.problem import ANY_TAG, FREE, GrammarProblem

MOST_SYMBOLS = 2**20


@check_arrays.register
def _(problem: GrammarProblem) -> None:
    starts, n = problem.starts, len(problem.tags)
    N, lengths = len(starts) - 1, np.diff(starts)
    check_grammar(problem.grammar)
    check_offsets("starts", starts, N, n)
    check_sizes("spans", problem.spans, lengths * (lengths + 1) // 2)
    check_sizes("nodes", problem.nodes, np.maximum(2 * lengths - 1, 0))
    check_rows(problem.rows, int(problem.spans[-1]))
    check_flags(problem, "glue")
    check_numbers("tags", problem.tags, n, ANY_TAG, 2**31)
    S, partial = problem.grammar.n_symbols, problem.partial
    check_array("partial", partial, (N if partial.size else 0,), "b")
    check_array("sets", problem.sets, (len(problem.sets), S), "b")
    check_numbers("known", problem.known, int(problem.spans[-1]) if partial.size else 0, FREE + 1 - len(problem.sets), 0)
    every = np.arange(N)
    check_trees("targets", problem, problem.targets, every)
    check_trees("gold", problem, problem.gold, every[~partial] if partial.size else every)


def check_grammar(grammar: Grammar | AnyLabels) -> None:
    """Symbols and rules, and all that is worked out of them."""
    expect(isinstance(grammar, Grammar | AnyLabels), f"{type(grammar).__name__} is no grammar")
    check_int("n_symbols", grammar.n_symbols, 0, MOST_SYMBOLS)
    S = grammar.n_symbols
    check_numbers("tag", grammar.tag, S, -2, 2**31)
    check_array("root", grammar.root, (S,), "b")
    check_array("inner", grammar.inner, (S,), "b")
    if isinstance(grammar, AnyLabels):
        return
    expect(S > 0, "a grammar has a glue at least")
    for name in ("parent", "first", "second"):
        check_numbers(name, getattr(grammar, name), len(grammar.keys), 0, S)
    own = grammar.parent < S - 1
    rules = np.stack([grammar.parent, grammar.first, grammar.second], axis=1)[own]
    again = make_grammar(S - 1, rules, grammar.tag[:-1], np.flatnonzero(grammar.root))
    for name, array in zip(Grammar._fields, again, strict=True):
        found, wanted = np.asarray(getattr(grammar, name)), np.asarray(array)
        fits = name == "n_symbols" or (np.array_equal(found, wanted) and found.dtype == wanted.dtype)
        expect(fits, f"{name} does not fit the rules")


def check_trees(name: str, problem: GrammarProblem, codes: np.ndarray, which: np.ndarray) -> None:
    """What `partwise.structures.constituency.problem.first_wrong` asks of one tree, of these all at once, level by level.

    O(nodes), in as many passes as the deepest of them has levels.
    """
    g = problem.grammar
    lengths = np.diff(problem.starts)
    check_numbers(name, codes, int(problem.nodes[-1]), 0, max(int(lengths.max(initial=0)) * g.n_symbols, 1))
    which = which[lengths[which] > 0]
    n, begin, end, node = lengths[which], np.zeros(len(which), np.int64), lengths[which], problem.nodes[which]
    words = problem.starts[which]
    expect((codes[node] // n < g.n_symbols).all() and g.root[codes[node] // n].all(), f"{name} has a wrong root")
    while len(node):
        symbol, split = codes[node] // n, codes[node] % n
        leaf = split == 0
        fine = np.where(leaf, end == begin + 1, (begin < split) & (split < end))
        expect(fine.all(), f"{name} has nodes that do not divide their words")
        tags = problem.tags[(words + begin)[leaf]]
        own = g.tag[symbol[leaf]]
        expect(
            ((own > NO_TAG) & ((tags == ANY_TAG) | (tags == own))).all(), f"{name} has words below symbols that are not theirs"
        )
        n, begin, end, node, words, symbol, split = (x[~leaf] for x in (n, begin, end, node, words, symbol, split))
        second = node + 2 * (split - begin)
        below = codes[node + 1] // n, codes[second] // n
        expect(all((s < g.n_symbols).all() for s in below), f"{name} has symbols that are not there")
        expect(has_rules(g, symbol, *below).all(), f"{name} has a rule that is not there")
        n, words = np.concatenate([n, n]), np.concatenate([words, words])
        node = np.concatenate([node + 1, second])
        begin, end = np.concatenate([begin, split]), np.concatenate([split, end])


def has_rules(g: Grammar | AnyLabels, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Whether there is a rule a -> b c, for many at once."""
    if isinstance(g, AnyLabels):
        return g.inner[a]
    keys = (a * g.n_symbols + b) * g.n_symbols + c
    at = np.minimum(np.searchsorted(g.keys, keys), len(g.keys) - 1)
    return g.keys[at] == keys if len(g.keys) else np.zeros(len(keys), bool)
