"""Grammars from trees: made binary, there and back."""

from __future__ import annotations

import pytest

from partwise.datasets import Constituent, make_brackets
from partwise.tasks.constituency.grammar import binary_nodes, read_grammar

FLAT = Constituent.read("(A (B b) (C c) (D d) (E e))")


@pytest.mark.parametrize(
    ("markov", "symbols"),
    [
        (0, ["A", "B", "@A|", "C", "@A|", "D", "E"]),
        (1, ["A", "B", "@A|B", "C", "@A|C", "D", "E"]),
        (None, ["A", "B", "@A|B", "C", "@A|B,C", "D", "E"]),
    ],
)
def test_trees_are_made_binary(markov, symbols):
    assert [name for name, _ in binary_nodes(FLAT, markov)] == symbols
    assert [split for _, split in binary_nodes(FLAT, markov)] == [1, 0, 2, 0, 3, 0, 0]


@pytest.mark.parametrize("markov", [0, 1, None])
def test_there_and_back(markov):
    chains = [Constituent.read(text) for text in ("(S (VP (VP (V go))))", "(E (E 1) + (E (E 2)))", "(S (X (A a) (B b)))")]
    trees = [*make_brackets(20), *make_brackets(20, "arithmetic"), FLAT, *chains]
    grammar = read_grammar(trees, markov)
    for tree in trees:
        y = grammar.encode(tree, markov)
        assert len(y) == 2 * len(tree.leaves()) - 1
        assert grammar.decode(y, tree.words(), None) == tree
    assert "S+VP+VP+V" in grammar.symbols and "E" in grammar.labels() and "V" not in grammar.labels()
