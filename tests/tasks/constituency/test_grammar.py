"""Grammars from trees: made binary, there and back."""

from __future__ import annotations

import pytest

from partwise.datasets import Constituent, make_brackets
from partwise.tasks.constituency.grammar import binary_nodes, read_grammar, read_labels

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


TREES = [Constituent.read(f"({rest}") for rest in ("S (NP (N dogs)) (VP (V see) (NP (D a) (J big) (N cat))))", "S (VP (V go)))")]


def test_labels_without_a_grammar_and_back():
    """Words without a bracket have no name, those with one have its label; made-up nodes are all the same one."""
    found = read_labels(TREES, tagged=True)
    assert found.symbols == ("@", "", "S", "NP+", "VP", "NP", "S+VP+") and found.tags == ("",)
    assert found.labels() == ["NP", "S", "VP"] and not len(found.rules) and found.main_root == "S"
    for tree in TREES:
        words, tags = zip(*tree.leaves(), strict=True)
        assert found.decode(found.encode(tree, None), words, tags) == tree
    assert found.tags_of(["N", "never seen"]) == [0, 0]


def test_labels_with_tags_that_are_looked_for():
    found = read_labels(TREES, tagged=False)
    assert found.symbols == ("@", "S", "NP+N", "VP", "V", "NP", "D", "J", "N", "S+VP+V") and found.tags == ("D", "J", "N", "V")
    tree = TREES[0]
    assert found.decode(found.encode(tree, None), tree.words(), None) == tree
    brackets = {
        (begin, end): symbols for begin, end, symbols in found.known_brackets(Constituent.read("(S (N dogs) (? (V go)))"))
    }
    assert brackets[0, 2] == [1, 9] and brackets[0, 1] == [2, 8] and brackets[1, 2] == [4, 9]


def test_single_words_alone_leave_a_root_for_longer_sentences():
    found = read_labels([Constituent.read("(N dogs)")], tagged=True)
    assert found.packed.root.tolist() == [True, True] and found.main_root == "S"
    assert str(found.decode([0 * 2 + 1, 1 * 2, 1 * 2], ["a", "b"], ["D", "N"])) == "(S (D a) (N b))"
