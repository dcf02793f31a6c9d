"""Looking into models: what is shown are the weights."""

import json

import numpy as np
import pytest

from partwise.tasks.tagging.weights import find_features, summary, top_features, transitions
from small_taggers import tagger, value_labeler


def test_top_features_are_the_largest_and_smallest_weights():
    model = tagger()
    found = top_features(model, 4)
    assert list(found) == model.classes_.tolist()
    for k, label in enumerate(model.classes_.tolist()):
        order = np.sort(model.coef_[k].astype(float))
        np.testing.assert_array_equal([f.weight for f in found[label].positive], order[::-1][:4])
        np.testing.assert_array_equal([f.weight for f in found[label].negative], order[:4])
        assert all(model.coef_[k, f.number] == np.float32(f.weight) for f in found[label].positive + found[label].negative)
        assert all(f.name == model.feature_name(f.number) for f in found[label].positive)
    one = top_features(model, 10**6, "O")
    assert list(one) == ["O"] and len(one["O"].positive) == (model.coef_[-1] > 0).sum()


def test_only_what_is_shown_is_named(monkeypatch):
    model, named = tagger(), []
    real = model.feature_name
    monkeypatch.setattr(model, "feature_name", lambda j: named.append(j) or real(j), raising=False)
    top_features(model, 2, "O")
    assert len(named) == 4
    named.clear()
    assert len(find_features(model, "^w", 3)) == 3 and len(named) < model.n_features_in_ / 2


def test_find_features():
    model = tagger()
    found = find_features(model, r"^pos\[0\]=")
    assert {f.name for f in found} == {f"pos[0]={c}" for c in "DNVX."}
    assert all((f.weights == model.coef_[:, f.number]).all() for f in found)
    size = [np.abs(f.weights).max() for f in found]
    assert size == sorted(size, reverse=True)
    with pytest.raises(ValueError, match="not a regular expression"):
        find_features(model, "(")


def test_transitions():
    model = tagger()
    found = transitions(model)
    np.testing.assert_array_equal(found.weights[:-1, :-1], model.transitions_)
    np.testing.assert_array_equal(found.weights[-1, :-1], model.start_)
    np.testing.assert_array_equal(found.weights[:-1, -1], model.stop_)
    assert found.weights[-1, -1] == 0 and found.rows[-1] == "(begin)" and found.columns[-1] == "(end)"


def test_forbidden_transitions_are_minus_infinity():
    model = value_labeler()
    model.constraints = [("P", "R"), (None, "R"), ("Q", None)]
    weights = transitions(model).weights
    assert np.argwhere(weights == -np.inf).tolist() == [[0, 2], [1, 3], [3, 2]]
    model.use_transitions = False
    assert not transitions(model).weights[np.isfinite(weights)].any()


def test_summary():
    found = summary(tagger())
    assert found["labels"] == tagger().classes_.tolist() and found["features"] == tagger().n_features_in_
    assert found["templates"] == ["w[0]", "pos[0]", "pos[-1]|pos[0]"] and found["loss"] == "hinge" and found["label_column"] == 2
    json.dumps(found)
    assert "templates" not in summary(value_labeler())


def test_bad_requests():
    with pytest.raises(ValueError, match="'XX' is not one of the labels 'B-NP'"):
        top_features(tagger(), 3, "XX")
    with pytest.raises(ValueError, match="'n' parameter"):
        top_features(tagger(), 0)
