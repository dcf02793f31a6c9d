"""Labels of sequences that a model refuses to believe: records, thresholds, cross-validation."""

import dataclasses
import json

import numpy as np
import pytest

from partwise.datasets import make_tagged_sequences, plant_errors
from partwise.metrics import average_precision
from partwise.tasks.tagging.estimator import SequenceLabeler


@pytest.fixture(scope="module")
def noisy_tagger():
    X, y = make_tagged_sequences(200, 0, ambiguity=0.1)
    planted = plant_errors(y, 0.1, seed=0)
    return SequenceLabeler(loss="ramp", C=0.1, solver="dca", random_state=0).fit(X, planted.y), X, planted


def test_threads_change_nothing(noisy_tagger):
    tagger, X, planted = noisy_tagger
    alone = tagger.suspicion(X, planted.y)
    tagger.n_jobs = 2
    np.testing.assert_array_equal(alone, tagger.suspicion(X, planted.y))
    tagger.n_jobs = None


def test_planted_sentences_are_found(noisy_tagger):
    tagger, X, planted = noisy_tagger
    found = tagger.suspects(X, planted.y)
    hits = sum(planted.changed[suspect.example] for suspect in found)
    assert hits >= 0.9 * len(found) and hits >= 0.8 * planted.changed.sum()
    margins = [suspect.margin for suspect in found]
    assert margins == sorted(margins, reverse=True) and min(margins) > 0
    suspicion = tagger.suspicion(X, planted.y)
    assert [suspicion[suspect.example] for suspect in found] == margins
    assert average_precision(planted.changed, suspicion) > 0.95
    assert average_precision(planted.tokens, tagger.suspicion(X, planted.y, tokens=True)) > 0.9


def test_records_of_sequences(noisy_tagger):
    tagger, X, planted = noisy_tagger
    for suspect in tagger.suspects(X, planted.y, top=5):
        assert suspect.given == planted.y[suspect.example] and len(suspect.believed) == len(suspect.given)
        differ = [t for t, (a, b) in enumerate(zip(suspect.given, suspect.believed, strict=True)) if a != b]
        assert sorted(token.token for token in suspect.tokens) == differ and differ
        for token in suspect.tokens:
            assert (token.given, token.believed) == (suspect.given[token.token], suspect.believed[token.token])
        said = suspect.as_dict()
        assert set(said) == {"example", "given", "believed", "margin", "tokens"}
        assert set(said["tokens"][0]) == {"token", "given", "believed", "margin"}
        json.dumps(said)
        with pytest.raises(dataclasses.FrozenInstanceError):
            suspect.margin = 0.0


def test_threshold_and_top(noisy_tagger):
    tagger, X, planted = noisy_tagger
    refused, predicted = tagger.suspects(X, planted.y), tagger.suspects(X, planted.y, threshold=0.0)
    answers = tagger.predict(X)
    assert {s.example for s in predicted} == {i for i, (a, b) in enumerate(zip(answers, planted.y, strict=True)) if a != b}
    assert {s.example for s in refused} <= {s.example for s in predicted}  # the ramp gives up only what it is sure of
    assert all(s.believed == answers[s.example] for s in predicted)
    border = predicted[3].margin
    assert [s.example for s in tagger.suspects(X, planted.y, threshold=border)] == [s.example for s in predicted[:3]]
    assert tagger.suspects(X, planted.y, top=2) == refused[:2] and tagger.suspects(X, planted.y, top=0) == []


@pytest.mark.parametrize("loss", ["hinge", "crf"])
def test_other_losses_believe_their_prediction(loss):
    X, y = make_tagged_sequences(60, 1, ambiguity=0.1)
    planted = plant_errors(y, 0.1, seed=1)
    tagger = SequenceLabeler(loss=loss, C=0.1, solver="dca", random_state=0, max_epochs=5).fit(X, planted.y)
    answers = tagger.predict(X)
    found = tagger.suspects(X, planted.y)
    assert {s.example for s in found} == {i for i, (a, b) in enumerate(zip(answers, planted.y, strict=True)) if a != b}
    assert all(s.believed == answers[s.example] for s in found)


def test_a_token_without_a_label_is_never_in_doubt(noisy_tagger):
    tagger, X, planted = noisy_tagger
    worst = tagger.suspects(X, planted.y)[0]
    i, t = worst.example, worst.tokens[0].token
    labels = [None if k == t else label for k, label in enumerate(worst.given)]
    margins = tagger.suspicion([X[i]], [labels], tokens=True)
    assert margins[t] == -np.inf and np.isfinite(np.delete(margins, t)).all()
    for suspect in tagger.suspects([X[i]], [labels]):
        assert t not in [token.token for token in suspect.tokens] and suspect.given == labels
    assert tagger.suspects([X[i]], [[None] * len(labels)]) == []
    assert tagger.suspicion([X[i]], [[None] * len(labels)]).tolist() == [-np.inf]
    either = [{label, other} for label, other in zip(worst.given, worst.believed, strict=True)]
    assert tagger.suspects([X[i]], [either], threshold=0.0) == tagger.suspects([X[i]], [either]) == []


def test_forms_of_input(noisy_tagger):
    tagger, X, planted = noisy_tagger
    lengths, flat = [len(x) for x in X], [token for x in X for token in x]
    labels = [label for sequence in planted.y for label in sequence]
    assert tagger.suspects(flat, labels, lengths=lengths) == tagger.suspects(X, planted.y)
    assert tagger.suspects([], []) == [] and tagger.suspects([[]], [[]]) == [] and tagger.suspicion([[]], [[]]).shape == (1,)
    with pytest.raises(ValueError, match="Sequence 1 has 1 tokens, but 2 labels"):
        tagger.suspects([[["a"]], [["a"]]], [["O"], ["O", "O"]])
    with pytest.raises(ValueError, match=r"Label 'B-XYZ' \(token 1 of sequence 1\)"):
        tagger.suspects([[["a"]], [["a"], ["b"]]], [["O"], ["O", "B-XYZ"]])
    for wrong in ({"top": -1}, {"threshold": -0.5}, {"cv": 1}, {"cv": True}):
        with pytest.raises(ValueError, match=f"The '{next(iter(wrong))}' parameter"):
            tagger.suspects(X, planted.y, **wrong)
    with pytest.raises(ValueError, match="not fitted"):
        SequenceLabeler().suspects(X, planted.y)


def test_cross_validation_does_not_believe_what_was_learnt_by_heart():
    rng = np.random.default_rng(0)
    X = [[[f"word{rng.integers(20)}", f"only{i}-{t}"] for t in range(4)] for i in range(60)]  # every token has a name of its own
    y = [[f"L{int(token[0][4:]) % 3}" for token in x] for x in X]
    planted = plant_errors(y, 0.1, seed=0)
    tagger = SequenceLabeler(loss="hinge", C=100.0, solver="dca", random_state=0, max_epochs=20).fit(X, planted.y)
    assert tagger.suspects(X, planted.y) == []
    folded = tagger.suspicion(X, planted.y, cv=5)
    assert average_precision(planted.changed, folded) > 0.9
    before = tagger.weights_.copy()
    fresh = SequenceLabeler(loss="hinge", C=100.0, solver="dca", random_state=0, max_epochs=20)
    assert average_precision(planted.changed, fresh.suspicion(X, planted.y, cv=5)) > 0.9
    assert not hasattr(fresh, "weights_") and np.array_equal(before, tagger.weights_)
    with pytest.raises(ValueError, match="there are 3 examples only"):
        tagger.suspicion(X[:3], planted.y[:3], cv=5)
