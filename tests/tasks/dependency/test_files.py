"""Treebank files: read, written as they were, refused by line."""

from __future__ import annotations

import gzip

import pytest

from partwise.datasets import data_folder
from partwise.tasks.dependency.files import COLUMNS, read_treebank
from small_treebanks import TEXT, treebank, word


def test_words_heads_and_relations():
    found = treebank()
    assert len(found) == 2 and found.words.n_tokens == 7 and found.lengths.tolist() == [6, 1]
    assert found.forms(0) == ["They", "do", "n't", "buy", "books", "."] and found.forms(1) == ["Yes"]
    assert found.heads.tolist() == [4, 4, 4, 0, 4, 4, 0]
    assert [found.names[k] for k in found.relations] == ["nsubj", "aux", "advmod", "root", "obj", "punct", "root"]
    assert found.words.cells[COLUMNS.index("feats")] == ["Case=Nom", "_", "Number=Plur"]
    assert found.is_punctuation().tolist() == [False] * 5 + [True, False]
    assert found.place(3) == "<bytes>, line 7"
    assert "7 words" in repr(found)


def test_what_is_not_predicted_is_written_as_it_was():
    found = treebank()
    names = [found.names[k] for k in found.relations]
    assert found.with_trees(found.heads, names) == TEXT
    other = found.with_trees([2, 0, 2, 2, 2, 2, 0], ["x"] * 7)
    assert "1\tThey\tthey\tPRON\tPRP\tCase=Nom\t2\tx\t_\t_" in other and "4.1\tsold" in other and "2-3\tdon't" in other
    assert found.with_trees(found.heads).count("nsubj") == 1
    with pytest.raises(ValueError, match="for each of 7 words"):
        found.with_trees([0])


def test_the_first_sentences_windows_files_and_gzip(tmp_path):
    path = tmp_path / "trees.conllu.gz"
    path.write_bytes(gzip.compress(TEXT.replace("\n", "\r\n").encode()))
    assert len(read_treebank(path)) == 2
    first = read_treebank(path, first=1)
    assert len(first) == 1 and first.with_trees(first.heads).rstrip("\n").endswith("4\tpunct\t_\t_")
    latin = word(1, "señor", 0).encode("latin-1")
    assert read_treebank(latin, "latin-1").forms(0) == ["señor"]
    with pytest.raises(ValueError, match="line 1: not valid utf-8"):
        read_treebank(latin)


def test_unknown_heads_and_relations():
    found = treebank("\n".join([word(1, "a", "_", "_"), word(2, "b", 0)]))
    assert found.heads.tolist() == [-1, 0] and found.relations.tolist() == [-1, 0]
    assert "1 heads not known" in repr(found)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "there are no sentences"),
        (["1 a b"], "line 1, sentence 0: expected 10 cells"),
        ([word(2, "a", 0)], "line 1, sentence 0: expected word number 1, got '2'"),
        ([word(1, "a", "x")], "line 1, sentence 0: the head must be one number"),
        ([word(1, "a", "²")], "line 1, sentence 0: the head must be one number"),
        ([word(1, "a", 0), word(2, "b", 5)], "line 2, sentence 0: the head of word 2 is word 5, but the sentence has 2"),
        ([word(1, "a", "2|3"), word(2, "b", 0)], r"line 1, sentence 0: the head must be one number.* Got '2\|3'"),  # two heads
        ([word(1, "a", 0), word(1, "a", 2), word(2, "b", 1)], "line 2, sentence 0: expected word number 2, got '1'"),
        ([word(1, "a", 2), word(2, "b", 1)], "line 1, sentence 0: the heads of the words 1, 2 go in a circle"),  # so no root
        ([word(1, "a", "")], "line 1, sentence 0: the head must be one number"),
        ([word(1, "a", 1)], "line 1, sentence 0: the head of word 1 is itself"),
        ([word(1, "a", 0), word(2, "b", 3), word(3, "c", 2)], "line 2, sentence 0: the heads of the words 2, 3 go in a circle"),
        (
            [word(1, "a", 0), "", "# x", word(1, "b", 2), word(2, "c", 1)],
            "<bytes>, line 4, sentence 1: the heads of the words 1, 2",
        ),
    ],
)
def test_bad_files_name_the_line(lines, message):
    with pytest.raises(ValueError, match=message):
        treebank("\n".join(lines))


@pytest.mark.data
@pytest.mark.parametrize(
    ("file", "encoding", "sentences", "words"),
    [
        ("ud_turkish_imst/tr_imst-ud-dev.conllu.gz", "utf-8", 1100, 10542),
        ("conll2007/eus.test.conll.gz", "iso-8859-1", 580, 10096),
        ("ud_arabic_padt/ar-ud-dev.conllu.gz", "utf-8", 786, 28263),
    ],
)
def test_real_treebanks_come_back_as_they_were(file, encoding, sentences, words):
    try:
        path = data_folder(file)
    except FileNotFoundError as error:
        pytest.skip(str(error))
    found = read_treebank(path, encoding)
    assert len(found) == sentences and found.words.n_tokens == words
    names = [*found.names, "_"]
    with gzip.open(path, "rt", encoding=encoding, newline="") as original:
        assert found.with_trees(found.heads, [names[k] for k in found.relations]).rstrip() == original.read().rstrip()
