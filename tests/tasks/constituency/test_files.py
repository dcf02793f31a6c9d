"""Trees in brackets: reading and writing."""

from __future__ import annotations

import gzip

import pytest

from partwise.datasets import Constituent, make_brackets, read_brackets
from partwise.tasks.constituency.files import from_heads, read_brackets_or_lines

DOG = Constituent.read("(S (NP (D the) (N dog)) (VP (V barks)) (. .))")


def test_trees_over_lines_and_several_on_one():
    text = b"\n( (S\n   (NP (D the)\n (N dog)) (VP (V barks)))) (NP (N cats))\n(X a)(Y (Z b) c)\n"
    found = read_brackets(text)
    assert [str(tree) for tree in found.trees] == [
        "(S (NP (D the) (N dog)) (VP (V barks)))",
        "(NP (N cats))",
        "(X a)",
        "(Y (Z b) c)",
    ]
    assert found.lines == [2, 4, 5, 5] and found.n_words == 7 and found.place(1) == "<bytes>, line 4"
    assert found.trees[3].leaves() == [("b", "Z"), ("c", "")]
    assert read_brackets(gzip.compress(text), first=2).trees == found.trees[:2]
    assert read_brackets("(X Größe)".encode("latin-1"), "latin-1").trees[0].words() == ["Größe"]


def test_traces_and_functions():
    text = b"( (S (NP-SBJ-1 (-NONE- *T*-1)) (NP=2 (NP-TMP (CD 3)) (-LRB- -LRB-)) (VP (VB go) (S (-NONE- *)))))"
    assert str(read_brackets(text).trees[0]) == "(S (NP (NP (CD 3)) (-LRB- -LRB-)) (VP (VB go)))"
    kept = read_brackets(text, traces=True, functions=True).trees[0]
    assert kept.children[0].label == "NP-SBJ-1" and "*T*-1" in kept.words()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(S (NP a)\n\n(VP b)", "<bytes>, line 1: this bracket is never closed"),
        ("(S a)\n)", r"<bytes>, line 2: '\)' closes no bracket"),
        ("(S a)\nword (S b)", "<bytes>, line 2: 'word' is outside all brackets"),
        ("(S a)\n(S\n())", "<bytes>, line 3: there is nothing in the bracket"),
        ("()", "line 1: there is nothing in the bracket"),
        ("(S (NP) a)", r"nothing in the bracket \(NP\)"),
        ("(S a ((X b)))", "must have a label"),
        ("((X a) (Y b))", "above several trees, must have a label"),
        ("(A " * 301, "deeper than 300"),
        (" \n", "there are no trees in it"),
        (b"(S a)\n(S \xff)", "line 2: not valid utf-8"),
    ],
)
def test_bad_brackets(text, message):
    with pytest.raises(ValueError, match=message):
        read_brackets(text if isinstance(text, bytes) else text.encode())


def test_text_without_brackets():
    assert read_brackets_or_lines(b"the dog barks\n\ncats \n") == [["the", "dog", "barks"], ["cats"]]
    assert len(read_brackets_or_lines(b"\n (S a)")) == 1
    with pytest.raises(ValueError, match="Expected one tree"):
        Constituent.read("(S a) (S b)")


@pytest.mark.parametrize("kind", ["english", "arithmetic"])
def test_generated_trees_are_read_as_written(kind):
    trees = make_brackets(30, kind, seed=1)
    assert read_brackets("\n".join(map(str, trees)).encode()).trees == trees
    assert make_brackets(30, kind, seed=1) == trees != make_brackets(30, kind, seed=2)
    with pytest.raises(ValueError, match="'kind' parameter of make_brackets must be"):
        make_brackets(1, "french")


def test_spans_and_heads():
    assert DOG.spans() == [("S", 0, 4), ("NP", 0, 2), ("VP", 2, 3)]
    tree = from_heads(["the", "dog", "barks", "!"], ["D", "N", "V", "."], [2, 3, 0, 3])
    assert str(tree) == "(VP (NP (D the) (N dog)) (V barks) (. !))"
    assert str(from_heads(["a", "b"], ["X", "Y"], [0, 0])) == "(S (X a) (Y b))"
    with pytest.raises(ValueError, match="arcs cross"):
        from_heads(list("abcd"), list("abcd"), [3, 4, 0, 3])
