"""Which symbols may be above which: a binary grammar, or labels that may be above any others; and what kernels ask either.

The last symbol of every grammar is the *glue*: it has the rules ``GLUE -> A GLUE`` for every symbol A and may stand above the
last word. Labels need none: every sentence has a tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from partwise.engine.compilation import helper, kernel

NO_TAG, GLUE_TAG = -1, -2  # of a symbol: it is above no single word; it is the glue
NO_RULE, FREE_RULE = -1, -2  # in place of the number of a rule: there is none; none is needed


class Grammar(NamedTuple):
    """S symbols, the glue last, and R rules with two symbols on the right."""

    parent: np.ndarray  #: (R,) int32
    first: np.ndarray  #: (R,) int32
    second: np.ndarray  #: (R,) int32
    keys: np.ndarray  #: (R,) int64 ``(parent S + first) S + second``, increasing
    begins: np.ndarray  #: (S + 1,) int64 the rules of each parent
    tag: np.ndarray  #: (S,) int32 the tag of a symbol that may be above one word, else NO_TAG
    root: np.ndarray  #: (S,) bool: may be above a whole sentence
    inner: np.ndarray  #: (S,) bool: may be above several words
    n_symbols: int
    pair: np.ndarray  #: (R,) int64 the number of its pair of children among those of all rules
    pair_first: np.ndarray  #: (pairs,) uint64 (see `best.windows_of`)
    pair_second: np.ndarray  #: (pairs,) uint64
    pairs_of: np.ndarray  #: (S + 1,) int64 the pairs of each first child
    by_pair: np.ndarray  #: (R,) int64 rules, pair by pair
    uses: np.ndarray  #: (pairs + 1,) int64 those of each pair


class AnyLabels(NamedTuple):
    """S symbols that may be above any others: no grammar, and no glue, for every sentence has a tree."""

    tag: np.ndarray  #: as in `Grammar`
    root: np.ndarray
    inner: np.ndarray
    n_symbols: int


def make_grammar(n_symbols: int, rules: Any, tags: Any, roots: Any) -> Grammar:
    """A grammar of `n_symbols` symbols, and the glue.

    Parameters
    ----------
    n_symbols : int
    rules : integers (rules, 3)
        Parent, first and second child; in any order, without repetition.
    tags : integers (n_symbols,)
        The tag of a symbol that may be above one word; NO_TAG for others.
    roots : integers
        Symbols that may be above a whole sentence.
    """
    given = np.asarray(rules, np.int64).reshape(-1, 3)
    if given.size and not (0 <= given.min() and given.max() < n_symbols):
        raise ValueError(f"Symbols of rules must be numbers from 0 to {n_symbols - 1}.")
    if len(tags) != n_symbols:
        raise ValueError(f"There must be a tag, or {NO_TAG}, for each of {n_symbols} symbols. Got {len(tags)}.")
    S, glue = n_symbols + 1, n_symbols
    gluing = np.array([(glue, a, glue) for a in range(n_symbols)], np.int64).reshape(-1, 3)
    table = np.concatenate([given, gluing])
    keys = (table[:, 0] * S + table[:, 1]) * S + table[:, 2]
    if len(np.unique(keys)) != len(keys):
        raise ValueError("A grammar must not have the same rule twice.")
    order = np.argsort(keys)
    table = table[order].astype(np.int32)
    pairs, pair = np.unique(table[:, 1].astype(np.int64) * S + table[:, 2], return_inverse=True)
    root = np.zeros(S, bool)
    root[np.asarray(roots, np.int64)] = True
    return Grammar(
        parent=np.ascontiguousarray(table[:, 0]),
        first=np.ascontiguousarray(table[:, 1]),
        second=np.ascontiguousarray(table[:, 2]),
        keys=keys[order],
        begins=np.searchsorted(table[:, 0], np.arange(S + 1)).astype(np.int64),
        tag=np.array([*tags, GLUE_TAG], np.int32),
        root=root,
        inner=np.isin(np.arange(S), given[:, 0]),
        n_symbols=S,
        pair=pair.reshape(-1).astype(np.int64),
        pair_first=(pairs // S).astype(np.uint64),
        pair_second=(pairs % S).astype(np.uint64),
        pairs_of=np.searchsorted(pairs, np.arange(S + 1) * S).astype(np.int64),
        by_pair=np.argsort(pair.reshape(-1), kind="stable").astype(np.int64),
        uses=np.searchsorted(np.sort(pair.reshape(-1)), np.arange(len(pairs) + 1)).astype(np.int64),
    )


def make_labels(tags: Sequence[int], inner: Sequence[int], roots: Sequence[int]) -> AnyLabels:
    """Labels without a grammar.

    Parameters
    ----------
    tags : integers (n_symbols,)
        The tag of a symbol that may be above one word; NO_TAG for others.
    inner : integers
        Symbols that may be above several words.
    roots : integers
        Symbols that may be above a whole sentence.
    """
    S = len(tags)
    return AnyLabels(np.array(tags, np.int32), np.isin(np.arange(S), roots), np.isin(np.arange(S), inner), S)


@kernel
def n_rules(grammar):
    """How many parts rules are."""


@kernel
def score_rules(grammar, weights, glue_cost, rules):
    """The scores of rules from their weights; those with glue have this cost."""


@kernel
def rule_number(grammar, a, b, c):
    """Number of the rule a -> b c, NO_RULE, or FREE_RULE."""


@kernel
def has_weight(grammar, r):
    """Whether this number is that of a rule with a weight: those with glue are no part of the model."""


@kernel
def rules_of(grammar, a):
    """(first, second) of the rules with parent a. Called from Python only."""


@kernel
def best_tree(grammar, n, theta, y):
    """Write the best tree of n > 0 words and return its score; -inf if there is none."""


@kernel
def kbest_trees(grammar, n, theta, ys, out):
    """Write the k best trees of n > 0 words into ys and their scores into out; returns how many there are."""


@kernel
def tree_sums(grammar, n, theta, parts):
    """Write the probabilities of parts and return the logarithm of the sum over all trees of n > 0 words."""


@n_rules.implements(Grammar)
def _(grammar):
    return grammar.keys.size


@n_rules.implements(AnyLabels)
def _(grammar):
    return 0


@score_rules.implements(Grammar)
def _(grammar, weights, glue_cost, rules):
    parent, glue = grammar.parent, grammar.n_symbols - 1
    for r in range(parent.size):
        rules[r] = weights[r] if parent[r] < glue else -glue_cost


@score_rules.implements(AnyLabels)
def _(grammar, weights, glue_cost, rules):
    pass


@rule_number.implements(Grammar)
def _(grammar, a, b, c):
    key = (int(a) * grammar.n_symbols + int(b)) * grammar.n_symbols + int(c)
    low, high = int(grammar.begins[a]), int(grammar.begins[a + 1])
    while low < high:
        middle = (low + high) // 2
        if grammar.keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low if low < grammar.begins[a + 1] and grammar.keys[low] == key else NO_RULE


@rule_number.implements(AnyLabels)
def _(grammar, a, b, c):
    return FREE_RULE if grammar.inner[a] else NO_RULE


@has_weight.implements(Grammar)
def _(grammar, r):
    return grammar.parent[r] < grammar.n_symbols - 1


@has_weight.implements(AnyLabels)
def _(grammar, r):
    return False


@rules_of.implements(Grammar)
def _(grammar, a):
    own = slice(grammar.begins[a], grammar.begins[a + 1])
    return [(int(b), int(c)) for b, c in zip(grammar.first[own], grammar.second[own], strict=True)]


@rules_of.implements(AnyLabels)
def _(grammar, a):
    return [(b, c) for b in range(grammar.n_symbols) for c in range(grammar.n_symbols)] if grammar.inner[a] else []


@helper
def rule_of(grammar, y, n, begin, t):
    """`rule_number` of node t of an output."""
    split = int(y[t] % n)
    return rule_number(grammar, y[t] // n, y[t + 1] // n, y[t + 2 * (split - begin[t])] // n)
