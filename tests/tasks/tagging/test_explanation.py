"""Explanations add up."""

import math

import numpy as np
import pytest
import scipy.sparse

from partwise.tasks.tagging.explanation import explain
from partwise.text.columns import read_columns
from small_taggers import TEST, VALUE_LABELS, VALUES, tagger, value_labeler

pytestmark = pytest.mark.interpreted


def as_matrices(kind=np.asarray):
    return [kind(np.array([[token.get(name, 0.0) for name in "abc"] for token in x])) for x in VALUES]


def test_bad_requests():
    model = tagger()
    columns = read_columns(TEST)
    for place, message in (((10**6, 0), "no sequence 1000000"), ((0, 10**6), "no token 1000000 in sequence 0")):
        with pytest.raises(ValueError, match=message):
            explain(model, columns, *place)
    label = explain(model, columns, 0, 0).label
    with pytest.raises(ValueError, match="that is its label"):
        explain(model, columns, 0, 0, against=label)


def check(model, X, sentence, token, **options):
    """All that an explanation promises."""
    why = explain(model, X, sentence, token, **options)
    one = X.take([sentence]) if hasattr(X, "take") else [X[sentence]]
    assert why.label != why.against and why.label == why.labels[token] and why.against == why.other_labels[token]
    assert why.labels == model.predict(one)[0]
    scores = [float(model.decision_value(one, [y])[0]) for y in (why.labels, why.other_labels)]
    close = {"rel": 1e-9, "abs": 1e-9} if model.weights_.dtype == np.float64 else {"rel": 1e-4, "abs": 1e-4}
    assert [why.score, why.other_score] == pytest.approx(scores, **close)
    assert why.difference == pytest.approx(why.score - why.other_score, rel=1e-9, abs=1e-9)
    assert math.fsum(c.chosen - c.other for c in [*why.features, *why.transitions, *why.elsewhere]) == why.difference >= 0
    # no labelling with the other label is better, and no other label has a better one
    known = [[None] * len(why.labels)]
    rivals = {}
    for label in model.classes_.tolist():
        known[0][token] = label
        y = model.predict(one, known=known)
        rivals[label] = float(model.decision_value(one, y)[0])
    assert rivals[why.against] == pytest.approx(scores[1], **close)
    if "against" not in options:
        assert rivals[why.against] == pytest.approx(max(v for label, v in rivals.items() if label != why.label), **close)
    return why


def test_explanations_add_up():
    model, columns = tagger(), read_columns(TEST)
    far = 0
    for sentence in range(3):
        for token in range(len(columns[sentence])):
            why = check(model, columns, sentence, token)
            assert len(why.features) <= 3 and len(why.transitions) == 2
            sizes = [abs(c.difference) for c in why.features]
            assert sizes == sorted(sizes, reverse=True)
            far += bool(why.elsewhere)
    assert far  # where a label changes, its neighbours often have to follow
    assert "rather than" in str(why) and f"{why.difference:+.4f}" in str(why)
    names = {c.name for c in explain(model, columns, 0, 1).features}
    word, pos, _ = columns[0][1]
    assert f"w[0]={word}" in names and f"pos[0]={pos}" in names


def test_against_a_label_of_choice():
    model, columns = tagger(), read_columns(TEST)
    label = explain(model, columns, 1, 0).label
    for against in model.classes_.tolist():
        if against != label:
            assert check(model, columns, 1, 0, against=against).against == against


@pytest.mark.parametrize(
    "data, parameters",
    [
        (VALUES, {}),
        (VALUES, {"order": 2}),
        (as_matrices(), {}),
        (as_matrices(scipy.sparse.csr_array), {}),
    ],
    ids=["attributes", "order 2", "dense", "sparse"],
)
def test_explanations_of_any_tokens_and_orders_add_up(data, parameters):
    model = value_labeler(data, **parameters)
    for sentence in range(3):
        for token in range(len(VALUE_LABELS[sentence])):
            check(model, data, sentence, token)
    assert check(model, data, -1, 3).sentence == 2


def test_weights_that_are_not_used_are_not_counted():
    model = value_labeler(order=2)
    model.use_start = model.use_stop = False  # after training: there are weights, but they do not count
    for token in range(4):
        check(model, VALUES, 2, token)
    model.use_transitions = False
    assert not any(one.difference for one in check(model, VALUES, 2, 1).transitions)


def test_values_of_features_are_shown():
    names = [c.name for c in explain(value_labeler(), VALUES, 0, 0).features]
    assert sorted(names) == ["a", "b (0.5)"]


def test_an_answer_without_alternative():
    model = value_labeler()
    model.constraints = {"allow_labels": ["P"]}
    with pytest.raises(ValueError, match="can have no other label than 'P'"):
        explain(model, VALUES, 0, 1)
    with pytest.raises(ValueError, match="no labelling with it obeys the constraints"):
        explain(model, VALUES, 0, 1, against="Q")


def test_with_known_labels():
    known = ["R", None, None]
    why = explain(value_labeler(), VALUES, 0, 1, known=known)
    assert why.labels[0] == why.other_labels[0] == "R"
    with pytest.raises(ValueError, match="known has 1 labels, but sequence 0 has 3"):
        explain(value_labeler(), VALUES, 0, 1, known=["R"])
