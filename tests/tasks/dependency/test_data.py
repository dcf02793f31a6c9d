"""What a parser is given: sentences of every kind become numbered words."""

from __future__ import annotations

import numpy as np
import pytest

from partwise.tasks.dependency.data import one_root, read_sentences, several_roots
from small_treebanks import as_conllu, sentences, treebank


def test_dicts_tuples_strings_and_treebanks_say_the_same():
    X, y = sentences(3)
    bare = [[word["form"] for word in words] for words in X]
    forms = [form for words in bare for form in words]
    for given in (X, bare, [[(form,) for form in words] for words in bare], treebank(as_conllu(X, y))):
        found = read_sentences(given, y, None, ["form"])
        assert found.names == ("form",) and [found.words.cells[0][k] for k in found.words.codes[0]] == forms
        assert found.heads.tolist() == [head for heads, _ in y for head in heads] and found.lengths.tolist() == list(map(len, X))


def test_some_of_them():
    found = read_sentences(*sentences(4), None).take(np.array([2, 0]))
    X, y = sentences(4)
    assert found.lengths.tolist() == [len(X[2]), len(X[0])] and found.relations == [*y[2][1], *y[0][1]]


def test_words_below_the_root():
    found = read_sentences([["a", "b"], ["c"], [], ["d", "e"]], [[0, 0], [0], [], [None, 1]], None)
    assert one_root(found).tolist() == [False, True, True, True]
    assert several_roots(found, 0, None).startswith("sentence 0: words 1, 2 hang from the root, but there may be one only.")


def test_columns_and_cells():
    with pytest.raises(ValueError, match="2 cells, but 1 columns are named"):
        read_sentences([[("a", "b")]], None, ["form"])
    with pytest.raises(ValueError, match="looks at the column 'upos'"):
        read_sentences([["a"]], None, None, ["form", "upos"])
