"""Features of arcs made on the way: like stored ones, alike in every file."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

import partwise
from partwise import kernels, solve
from partwise.features.arc_rows import FIRST_ORDER, MOST, MOST_TEMPLATES, arc_features, arc_rows, compile_arc_templates
from partwise.objective import best_outputs
from partwise.structures import tree_problem
from partwise.tasks.dependency.files import COLUMNS
from small_treebanks import TEXT, treebank, word

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered")  # hashes wrap around


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


@pytest.mark.interpreted
def test_a_parser_learns_its_treebank():
    lines = []
    for subject, verb, thing in (("dogs", "eat", "meat"), ("cats", "chase", "mice"), ("we", "read", "books")):
        lines += [word(1, subject, 2), word(2, verb, 0), word(3, thing, 2), word(4, ".", 2), ""]
    found = treebank("\n".join(lines))
    problem = tree_problem(arc_rows(found.words, COLUMNS, bits=12), found.lengths, found.heads)
    w = solve(problem, "hinge", "dca", 1.0, max_epochs=5, tol=0, evaluate="never").w
    assert (best_outputs(problem, w)[0] == found.heads).all()


@pytest.mark.compiled
def test_there_is_room_for_every_template():
    """Of many words between, those that fit are taken: templates that come later are not left out, and nothing overflows."""
    long = treebank("\n".join(word(k, f"w{k}", k - 1) for k in range(1, 602)))
    index = np.zeros(MOST, np.int64)
    rows = arc_rows(long.words, COLUMNS, ["b.form", "h.form", "b.upos|m.upos", "m.form"], bits=20)
    alone = arc_rows(long.words, COLUMNS, ["m.form"], bits=20)
    assert arc_features(rows, 601, index) == MOST  # the arc from the last word to the first
    last = index[-2:].tolist()
    assert arc_features(alone, 601, index) == 2 and index[:2].tolist() == last
    full = arc_rows(long.words, COLUMNS, ["h.upos|b.upos"] + ["h.form"] * (MOST_TEMPLATES - 1), bits=20)
    assert arc_features(full, 601, index) == MOST
    for used in (arc_rows(long.words, COLUMNS, ["b.form", *FIRST_ORDER], bits=10), full):
        assert np.isfinite(
            best_outputs(tree_problem(used._replace(bits=10, n_features=1024), long.lengths), np.ones(1024))[0]
        ).all()


def test_too_many_templates_are_refused():
    many = ["h.form|m.upos"] * 300
    with pytest.raises(ValueError, match="At most 256 templates of arcs or spans can be used. Got 300 instead"):
        arc_rows(treebank().words, COLUMNS, many)
    assert len(compile_arc_templates([*many[:MOST_TEMPLATES], *["h.nothing"] * 99], COLUMNS)[3]) == MOST_TEMPLATES
