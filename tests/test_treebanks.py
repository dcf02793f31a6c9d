"""Treebank files, attachment scores, and features of arcs made on the way."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
import scipy.sparse

import partwise
from partwise import kernels, solve
from partwise.datasets import data_folder
from partwise.features.arc_rows import FIRST_ORDER, MOST, arc_features, arc_rows, compile_arc_templates
from partwise.metrics import attachment_scores
from partwise.objective import best_outputs
from partwise.structures import tree_problem
from partwise.tasks.dependency.files import COLUMNS, read_treebank

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered")  # hashes wrap around

TEXT = """# sent_id = 1
# text = They don't buy books.
1\tThey\tthey\tPRON\tPRP\tCase=Nom\t4\tnsubj\t_\t_
2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
2\tdo\tdo\tAUX\tVBP\t_\t4\taux\t_\t_
3\tn't\tnot\tPART\tRB\t_\t4\tadvmod\t_\t_
4\tbuy\tbuy\tVERB\tVB\t_\t0\troot\t_\t_
4.1\tsold\tsell\tVERB\t_\t_\t_\t_\t4:conj\t_
5\tbooks\tbook\tNOUN\tNNS\tNumber=Plur\t4\tobj\t_\tSpaceAfter=No
6\t.\t.\tPUNCT\t.\t_\t4\tpunct\t_\t_

1\tYes\tyes\tINTJ\tUH\t_\t0\troot\t_\t_
"""


def treebank(text=TEXT):
    return read_treebank(text.encode())


def word(number, form, head, relation="dep"):
    return "\t".join([str(number), form, form, "X", "X", "_", str(head), relation, "_", "_"])


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


def test_attachment_scores():
    gold, answers = [2, 0, 2, -1, 0], [2, 0, 1, 3, 0]
    scores = attachment_scores(
        gold, answers, ["a:x", "b", "c", "d", "e"], ["a:y", "b", "c", "d", "f"], starts=np.array([0, 4, 5])
    )
    assert scores.uas == 0.75 and scores.las == 0.25 and scores.label_accuracy == 0.5
    assert scores.complete == 0.5 and scores.words == 4 and scores.sentences == 2
    assert attachment_scores(gold, answers, ["a:x"] * 5, ["a:y"] * 5, subtypes=False).las == 0.75
    assert attachment_scores(gold, answers, ignore=np.array([False, False, True, False, False])).uas == 1.0
    assert np.isnan(attachment_scores([-1], [0]).uas) and np.isnan(attachment_scores([0], [0]).las)
    with pytest.raises(ValueError, match="as long as each other"):
        attachment_scores([0], [0, 1])


def stored(rows):
    """The same features as sparse rows, two that fall together counted twice."""
    index, entries = np.zeros(MOST, np.int64), []
    for r in range(len(rows.head)):
        n = arc_features(rows, r, index)
        entries += [(r, int(j)) for j in index[:n]]
    r, j = np.array(entries).T
    return scipy.sparse.csr_matrix((np.ones(len(r)), (r, j)), shape=(len(rows.head), rows.n_features))


@pytest.mark.parametrize("n_labels", [1, 3])
def test_arcs_made_on_the_way_are_like_stored_ones(n_labels):
    with partwise.interpret():  # compiled, they are what the parser's tests are about
        compare_arcs(n_labels)


def compare_arcs(n_labels):
    found = treebank()
    rows = arc_rows(found.words, COLUMNS, bits=7)  # so few that features fall together
    assert len(rows.head) == 6 * 7 + 1 * 2
    labels = np.arange(7) % n_labels
    made = tree_problem(rows, found.lengths, found.heads, labels, n_labels)
    kept = tree_problem(stored(rows), found.lengths, found.heads, labels, n_labels)
    w = np.random.default_rng(0).normal(size=kernels.n_weights(made))
    for loss, solver in (("hinge", "dca"), ("softmax_margin", "dca")):
        one, two = (solve(p, loss, solver, 0.1, max_epochs=2, tol=0) for p in (made, kept))
        np.testing.assert_allclose(one.w, two.w, atol=1e-10)
        assert one.primal == pytest.approx(two.primal, rel=1e-10)
    for i in range(2):
        scores = [np.zeros(kernels.n_parts(p, i)) for p in (made, kept)]
        for problem, theta in zip((made, kept), scores, strict=True):
            kernels.score(problem, i, w, theta)
        possible = scores[0] > -np.inf
        np.testing.assert_allclose(scores[0][possible], scores[1][possible], atol=1e-10)


def test_some_sentences_of_a_problem_are_those_sentences():
    found = treebank()
    whole = tree_problem(arc_rows(found.words, COLUMNS, bits=10), found.lengths, found.heads)
    second = kernels.take(whole, np.array([1]))
    w = np.random.default_rng(1).normal(size=kernels.n_weights(whole))
    theirs, ours = np.zeros(kernels.n_parts(whole, 1)), np.zeros(kernels.n_parts(second, 0))
    kernels.score(whole, 1, w, theirs)
    kernels.score(second, 0, w, ours)
    np.testing.assert_array_equal(ours, theirs)
    assert kernels.n_examples(second) == 1 and second.gold.tolist() == [0]


def test_every_file_hashes_alike():
    """Cells are numbered anew in each file; features are not."""
    one = arc_rows(treebank().words, COLUMNS, bits=20)
    two = arc_rows(treebank("\n\n".join(reversed(TEXT.strip().split("\n\n")))).words, COLUMNS, bits=20)
    a, b = np.zeros(MOST, np.int64), np.zeros(MOST, np.int64)
    n, m = arc_features(one, 42, a), arc_features(two, 0, b)  # the arc root -> Yes
    assert n == m and (a[:n] == b[:n]).all() and a[:n].max() < 1 << 20
    assert len(set(a[:n].tolist())) > 0.95 * n


def test_words_between_and_missing_columns():
    found = treebank()
    far = arc_rows(found.words, COLUMNS, ["h.upos|b.upos|m.upos"], bits=20)
    index = np.zeros(MOST, np.int64)
    counts = [arc_features(far, r, index) for r in range(7)]  # heads 0 .. 6 of the first word
    assert counts == [0, 0, 0, 2, 4, 6, 8]
    few = arc_rows(found.words, ["form", "lemma"], FIRST_ORDER)
    assert 0 < len(few.seed) < len(FIRST_ORDER)
    with pytest.raises(ValueError, match="No arc template can be used"):
        compile_arc_templates(["h.upos"], ["form"])
    for wrong in ("x.form", "h.form[9]", "h", "b.form[1]", "b.form|b.form"):
        with pytest.raises(ValueError, match="arc template"):
            compile_arc_templates([wrong], ["form"])


def test_a_parser_learns_its_treebank():
    lines = []
    for subject, verb, thing in (("dogs", "eat", "meat"), ("cats", "chase", "mice"), ("we", "read", "books")):
        lines += [word(1, subject, 2), word(2, verb, 0), word(3, thing, 2), word(4, ".", 2), ""]
    found = treebank("\n".join(lines))
    problem = tree_problem(arc_rows(found.words, COLUMNS, bits=12), found.lengths, found.heads)
    w = solve(problem, "hinge", "dca", 1.0, max_epochs=5, tol=0, evaluate="never").w
    assert (best_outputs(problem, w)[0] == found.heads).all()


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
