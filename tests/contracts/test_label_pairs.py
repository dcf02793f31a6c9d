"""Templates of label pairs, CRF++'s B with cells: what a token says of its label given the one before."""

import numpy as np
import pytest

import partwise
from partwise import SequenceLabeler
from partwise.crfsuite import CRF

pytestmark = pytest.mark.interpreted

TEMPLATES = ["U00:%x[0,0]", "B", "B01:%x[0,0]"]


def swapped(n, seed=0):
    """The label stays where the word says so, and changes where it says that: no sum of word and transition can tell."""
    rng = np.random.default_rng(seed)
    swap = rng.integers(0, 2, (n, 6))
    swap[:, 0] = 0
    labels = np.cumsum(swap, axis=1) % 2
    X = [[(("same", "other")[k],) for k in row] for row in swap.tolist()]
    return X, [["AB"[k] for k in row] for row in labels.tolist()]


@pytest.fixture(scope="module")
def model():
    return SequenceLabeler("crf", templates=TEMPLATES, columns=["w"], C=10.0, solver="lbfgs").fit(*swapped(20))


def test_only_label_pairs_can_learn_it(model):
    X, y = swapped(10, 1)
    assert model.score(X, y) == 1.0
    assert SequenceLabeler("crf", templates=TEMPLATES[:2], columns=["w"], C=10.0, solver="lbfgs").fit(X, y).score(X, y) < 0.9
    ptr, codes = model.encoder_.pair_table
    assert len(codes) == 4  # of eight: those that were observed


def test_the_model_file(model, tmp_path):
    X, y = swapped(5, 2)
    model.save(tmp_path / "model")
    again = partwise.load(tmp_path / "model")
    assert again.score(X, y) == 1.0 and again.encoder_.lines == ["U00:%x[0,0]", "B01:%x[0,0]", "B"]
    np.testing.assert_array_equal(again.predict_marginals(X)[0], model.predict_marginals(X)[0])
    assert [own[0][0] for own in again.predict_kbest(X, 2)] == y


def test_what_cannot_be_is_refused(model):
    X, y = swapped(3)
    with pytest.raises(ValueError, match="need order=1"):
        SequenceLabeler(templates=TEMPLATES, columns=["w"], order=2).fit(X, y)
    with pytest.raises(ValueError, match="extend: templates of label pairs"):
        SequenceLabeler(templates=TEMPLATES, columns=["w"]).partial_fit(X, y)
    with pytest.raises(ValueError, match="pairs=True: not for a model with features of label pairs"):
        model.predict_marginals(X, pairs=True)
    with pytest.raises(ValueError, match="SegmentLabeler: templates of label pairs"):
        partwise.SegmentLabeler(templates=TEMPLATES).fit([["a"]], [["B-X"]])


def as_attributes(X, strings):
    """Words as attributes of label pairs; one of the token, too."""
    return [[["bias", f"pair:{w}"] if strings else {"bias": 1.0, "pair:word": w} for (w,) in one] for one in X]


@pytest.mark.parametrize("strings", [False, True])
def test_attributes_make_transitions_look_at_the_input(strings, tmp_path):
    """The same as templates B, where features are attributes; the CRF of the face of sklearn-crfsuite has them, too."""
    X, y = swapped(20)
    X = as_attributes(X, strings)
    model = SequenceLabeler("crf", pair_attributes="pair:", C=10.0, solver="lbfgs").fit(X, y)
    assert model.score(X, y) == 1.0 and model.feature_names_ == ["bias"]
    assert list(model.encoder_.pairs.vocabulary) == ["pair:same", "pair:other"] or not strings
    assert SequenceLabeler("crf", C=10.0, solver="lbfgs").fit(X, y).score(X, y) < 0.9
    model.save(tmp_path / "model")
    again = partwise.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_marginals(X)[0], model.predict_marginals(X)[0])
    crf = CRF(c2=0.05, pair_attributes="pair:", max_iterations=100).fit(X, y)
    assert crf.score(X, y) == 1.0 and crf.attributes_ == ["bias"]


def test_all_pairs_on_request(tmp_path):
    """A weight for every pair of labels, seen or not: the same optimum where nothing else was to be learnt, and more weights."""
    X, y = swapped(20)
    few, all_ = (
        SequenceLabeler("crf", templates=TEMPLATES, columns=["w"], C=10.0, solver="lbfgs", label_pairs=which).fit(X, y)
        for which in ("observed", "all")
    )
    assert len(few.encoder_.pair_table[1]) == 4 and len(all_.encoder_.pair_table[1]) == 8
    assert all_.weights_.size == few.weights_.size + 4 and all_.result_.primal < few.result_.primal
    all_.save(tmp_path / "model")
    assert partwise.load(tmp_path / "model").predict(X) == y
    with pytest.raises(ValueError, match="'label_pairs' parameter .* Got 'some'"):
        SequenceLabeler(label_pairs="some").fit(X, y)


def test_attributes_of_pairs_that_cannot_be_are_refused():
    y = [["A", "B"]]
    with pytest.raises(ValueError, match="token 1 of sequence 0: .* they cannot have values"):
        SequenceLabeler(pair_attributes="pair:").fit([[{"a": 1}, {"pair:x": 0.5}]], y)
    with pytest.raises(ValueError, match="'pair_attributes' parameter .* is for attributes"):
        SequenceLabeler(pair_attributes="pair:", templates=TEMPLATES, columns=["w"]).fit([[("a",), ("b",)]], y)
    with pytest.raises(ValueError, match="need all training data at once"):
        SequenceLabeler(pair_attributes="pair:").partial_fit([[["a"], ["pair:b"]]], y)
    with pytest.raises(ValueError, match="'pair_attributes' parameter .* must be a string or None"):
        SequenceLabeler(pair_attributes=3).fit([[["a"], ["b"]]], y)
