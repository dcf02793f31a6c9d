"""Templates of label pairs, CRF++'s B with cells: what a token says of its label given the one before."""

import numpy as np
import pytest

import partwise
from partwise import SequenceLabeler

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
    with pytest.raises(ValueError, match="pairs=True: not for a model with templates"):
        model.predict_marginals(X, pairs=True)
    with pytest.raises(ValueError, match="SegmentLabeler: templates of label pairs"):
        partwise.SegmentLabeler(templates=TEMPLATES).fit([["a"]], [["B-X"]])
