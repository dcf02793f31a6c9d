"""`Aligner`: from pairs in Python and from files; decoding, probabilities, model files, errors."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import partwise
from partwise import Aligner, interpret, kernels
from partwise.datasets import AlignedPairs, read_alignments
from partwise.tasks.alignment import estimator
from partwise.tasks.alignment.data import letter_codes, read_pairs
from partwise.tasks.alignment.files import partner_of
from small_alignments import as_table, pairs


@pytest.fixture(autouse=True, scope="module")
def interpreted():
    """These sequences are short: compiling would take far longer than running."""
    with interpret():
        yield


@pytest.fixture(scope="module")
def aligner(interpreted):
    return Aligner(random_state=0, C=0.1, max_epochs=4).fit(*pairs())


def test_learns_and_answers(aligner):
    X, y = pairs(8, seed=1)
    found = aligner.predict(X)
    assert all(tuple(row.replace("-", "") for row in alignment.rows()) == pair for alignment, pair in zip(found, X, strict=True))
    assert aligner.score(X, y) > 0.8 and aligner.accuracy(X, y).pairs == sum((partner_of(rows) >= 0).sum() for rows in y)
    assert "".join(aligner.classes_) == "ACGT"
    matrix, gaps = aligner.substitution_matrix(), aligner.gap_scores()
    assert (matrix == matrix.T).all() and np.diag(matrix).min() > (matrix - 9 * np.eye(4)).max()
    assert gaps.keys() == {"open", "extend", "end_open", "end_extend"}


def test_short_sequences(aligner):
    assert aligner.predict([]) == []
    found = aligner.predict([("", ""), ("", "AC"), ("A", ""), ("A", "A")])
    assert [a.rows() for a in found] == [("", ""), ("--", "AC"), ("A", "-"), ("A", "A")]
    for mode in ("global", "local"):
        model = Aligner(mode=mode, loss="hinge", max_epochs=1, random_state=0).fit(
            [("", ""), ("AC", "AC"), ("A", "")], [[], [0, 1], [-1]]
        )
        assert [len(a.partners) for a in model.predict([("", "A"), ("A", "")])] == [0, 1]


def test_lists_of_letters_of_any_length():
    X = [(["th", "e", "n"], ["d", "e", "n"]), (["th", "a", "t"], ["d", "a", "s"]), (["e"], ["e", "n"])] * 3
    y = [[0, 1, 2], [0, 1, 2], [0]] * 3
    model = Aligner(symmetric=False, random_state=0, C=0.3).fit(X, y)
    found = model.predict([(["th", "e"], ["d", "e"])])[0]
    assert found.partners == [0, 1] and model.classes_.tolist() == ["a", "d", "e", "n", "s", "t", "th"]
    assert found.draw().splitlines() == ["1 th e  2", "  .  |", "1 d  e  2"]
    matrix = model.substitution_matrix()
    assert matrix[6, 1] > matrix[1, 6]  # th opposite d, not d opposite th


def test_probabilities_kbest_and_decoding(aligner):
    X, y = pairs(4, seed=2)
    for p, (a, b) in zip(aligner.predict_marginals(X), X, strict=True):
        assert p.shape == (len(a), len(b)) and p.min() >= 0.0 and p.sum(1).max() <= 1.0 + 1e-9 and p.sum(0).max() <= 1.0 + 1e-9
    best = clone(aligner).set_params(decode="best").fit(*pairs())
    listed = best.predict_kbest(X, k=3)
    assert [some[0][0] for some in listed] == best.predict(X)
    assert all(some[0][1] >= some[1][1] >= some[2][1] and some[1][0] != some[0][0] for some in listed)
    margin = Aligner(loss="hinge", random_state=0, max_epochs=2).fit(*pairs())
    with pytest.raises(ValueError, match="fits scores, not probabilities"):
        margin.predict_marginals(X)
    with pytest.raises(ValueError, match="fits scores, not probabilities"):
        clone(margin).set_params(decode="mea").fit(*pairs()).predict(X)
    plain = margin.predict(X)
    margin.calibrate(X, y)
    assert 0 < margin.temperature_ < np.inf and len(margin.predict_marginals(X)) == len(margin.predict(X)) == len(plain)
    with pytest.raises(ValueError, match="k must be an int"):
        margin.predict_kbest(X, k=0)
    with pytest.raises(ValueError, match="places need about 2.4e-06 GB"):
        margin.set_params(memory=2e-6).predict_kbest([("ACGT", "ACGTA")], k=12)


def test_files(aligner, tmp_path):
    X, _ = pairs(5, seed=3)
    aligner.save(tmp_path / "model")
    again = partwise.load(tmp_path / "model")
    assert isinstance(again, Aligner) and again.predict(X) == aligner.predict(X)
    model = Aligner(
        templates=["a.p|b.p", "g.h"], properties={"p": {"A": "r", "G": "r", "C": "y", "T": "y"}, "h": {"A": 1.0, "C": 2}}, C=0.1
    )
    model.fit(*pairs()).save(tmp_path / "own")
    assert partwise.load(tmp_path / "own").predict(X) == model.predict(X)
    with pytest.raises(ValueError, match="no template a.letter"):
        model.substitution_matrix()


def test_grids_early_stopping_and_local_mode():
    X, y = pairs(12)
    search = GridSearchCV(Aligner(loss="hinge", max_epochs=1, random_state=0), {"C": [0.01, 0.1]}, cv=2).fit(X, y)
    assert search.best_params_["C"] in (0.01, 0.1) and search.best_score_ > 0.3
    held = Aligner(
        early_stopping=True, random_state=0, max_epochs=3, mode="local", precision_weight=0.3, loss="softmax_margin"
    ).fit(X, y)
    assert held.result_.history[0].validation >= 0.0 and len(held.predict(X)) == 12
    apart = Aligner(random_state=0, max_epochs=1).fit(X, y, validation=pairs(3, seed=5), sample_weight=[0, *[1] * 11])
    more = apart.set_params(warm_start=True, dtype="float64").fit(X, y)
    single = Aligner(dtype="float32", max_epochs=2, random_state=0, n_jobs=2).fit(X, y)
    assert single.weights_.dtype == np.float32 and single.score(X, y) > 0.5
    assert more.weights_.size == apart.weights_.size


def test_reliable_columns():
    X, y = pairs(8)
    data = read_alignments(as_table(y, core=True).encode(), aligned=True)
    core = [np.array([k % 2 == 0 for k in range(len(a))]) for a in data.first]
    data = AlignedPairs(data.first, data.second, data.partners, core)
    for how in ("cost", "known", "ignore"):
        model = Aligner(core=how, random_state=0, max_epochs=2, loss="hinge").fit(data)
        assert kernels.is_partial(model._problem(read_pairs(data))) == (how == "known")
        total = sum(((p >= 0) & (True if how == "ignore" else c)).sum() for p, c in zip(data.partners, core, strict=True))
        assert model.accuracy(data).pairs == total


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mode": "both"}, "'mode' parameter of Aligner must be 'global' or 'local'. Got 'both'"),
        ({"decode": 3}, "'decode' parameter"),
        ({"memory": 0}, "'memory' parameter"),
        ({"precision_weight": 1.5}, r"'precision_weight' parameter of Aligner must be a float in the range \[0, 1\]"),
        ({"cost_scale": "none"}, "'cost_scale' parameter"),
        ({"templates": ["a.colour|b.colour", "g"]}, "There is no column 'colour'"),
        ({"memory": 1e-9}, "pair 1: sequences of .* need about"),
        ({"alphabet": "ACG"}, "pair 0, first sequence, place .*: the letter 'T' is not in the alphabet 'ACG'"),
    ],
)
def test_bad_parameters(change, message):
    with pytest.raises(ValueError, match=message):
        Aligner(**change).fit([("AT", "AT"), *pairs(3)[0]], [[0, 1], *pairs(3)[1]])


def test_bad_data(aligner):
    X, y = pairs(3)
    for wrong, message in (
        (lambda: Aligner().fit(X), "no alignments to learn from"),
        (lambda: Aligner().fit(X, y[:2]), "3 pairs, but 2 alignments"),
        (lambda: Aligner().fit([("AC", "A")], [("AC", "A")]), "pair 0: aligned rows must be as long as each other. Got 2 and 1"),
        (lambda: Aligner().fit([("AC", "A")], [("AG", "A-")]), "pair 0: the row 'AG' is not the sequence 'AC'"),
        (lambda: Aligner().fit([("AC", "A")], [[0]]), "the first sequence has 2 letters, but its alignment 1 partners"),
        (lambda: Aligner().fit([("AC", "A")], [[(0, 3)]]), "there are no places 0 and 3"),
        (lambda: Aligner().fit([("A-C", "A")], [[0, -1, -1]]), "pair 0: a sequence has a gap '-'"),
        (lambda: Aligner().fit([("", "")], [[]]), "no letter in any sequence"),
        (
            lambda: aligner.predict([("ACB", "A")]),
            "pair 0, first sequence, place 2: the letter 'B' is not in the alphabet 'ACGT'",
        ),
        (lambda: aligner.predict(["ACB"]), "pair 0 must be two sequences"),
        (lambda: aligner.accuracy(X), "no alignments to compare with"),
    ):
        with pytest.raises(ValueError, match=message):
            wrong()
    with pytest.raises(TypeError, match="AlignedPairs or a list"):
        aligner.predict("text")
    wild = Aligner(wildcard="N", max_epochs=1, random_state=0).fit(*pairs())
    assert (
        wild.classes_.tolist() == ["A", "C", "G", "T", "N"]
        and wild.predict([("AXC", "AC")])[0].rows()[0].replace("-", "") == "AXC"
    )


def test_proteins_get_their_own_features():
    letters = "ACDEFGHIKLMNPQRSTVWY"
    model = Aligner(max_epochs=1, random_state=0).fit(
        [(letters[:4], letters[:4]), (letters[4:], letters[4:])], [list(range(4)), list(range(16))]
    )
    assert "a.hydropathy|b.hydropathy" in model.templates_ and "class" in model.properties_


def test_letters_become_numbers_once(monkeypatch):
    sides = []

    def counted(sequences, letters, wildcard, side, places):
        sides.append(side)
        return letter_codes(sequences, letters, wildcard, side, places)

    monkeypatch.setattr(estimator, "letter_codes", counted)
    model = Aligner(alphabet="ACGT", max_epochs=1).fit(*pairs())
    assert sides == ["first", "second"]
    model.score(*pairs(3, seed=1))
    model.set_params(warm_start=True).fit(*pairs(5, seed=2))
    assert sides == ["first", "second"] * 3


def test_messages_name_the_pair_that_was_given():
    """Also where pairs of weight zero are left out, and held-out ones apart."""
    X, y = [("A", "A"), ("ACGT", "ACG"), ("CG", "CGT")], [[0], [0, 1, -1, 2], [1, 0]]
    with pytest.raises(ValueError, match="pair 2, place 1: its partner 0 is not after"):
        Aligner().fit(X, y, sample_weight=[0, 1, 1])
    table = read_alignments(b"A\tA\nACGT\tAC-G\n")
    with pytest.raises(ValueError, match="<bytes>, line 2: sequences of 4 and 3 places need about"):
        Aligner(memory=1e-7).fit(table, sample_weight=[0, 1])
    with pytest.raises(ValueError, match="<bytes>, line 2, first sequence, place 1: the letter 'C'"):
        Aligner(alphabet="AGT").fit(table, sample_weight=[0, 1])


def test_held_out_pairs_must_be_aligned():
    X, y = pairs(4)
    for held in ((X, None), (X, [[-1] * len(first) for first, _ in X])):
        with pytest.raises(ValueError, match="cannot tell when to stop: no places of the held-out pairs"):
            Aligner(max_epochs=1).fit(X, y, validation=held)


def test_notes_about_the_training_are_kept(aligner, tmp_path):
    aligner.training_ = {"examples": 14}
    try:
        aligner.save(tmp_path / "model")
    finally:
        del aligner.training_
    assert Aligner.load(tmp_path / "model").training_ == {"examples": 14}
