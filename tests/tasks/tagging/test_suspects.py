"""Labels of sequences that are probably wrong: records, cuts, folds."""

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
    probabilities = [suspect.probability for suspect in found]
    assert probabilities == sorted(probabilities, reverse=True) and min(probabilities) > 0.5
    suspicion = tagger.suspicion(X, planted.y)
    assert [suspicion[suspect.example] for suspect in found] == probabilities
    assert average_precision(planted.changed, suspicion) > 0.95
    assert average_precision(planted.tokens, tagger.suspicion(X, planted.y, parts=True)) > 0.9


def test_records_of_sequences(noisy_tagger):
    tagger, X, planted = noisy_tagger
    for suspect in tagger.suspects(X, planted.y, top=5):
        assert suspect.given == planted.y[suspect.example] and len(suspect.believed) == len(suspect.given)
        differ = [t for t, (a, b) in enumerate(zip(suspect.given, suspect.believed, strict=True)) if a != b]
        assert sorted(part.part for part in suspect.parts) == differ and differ
        for part in suspect.parts:
            assert (part.given, part.believed) == (suspect.given[part.part], suspect.believed[part.part])
        said = suspect.as_dict()
        assert set(said) == {"example", "given", "believed", "probability", "parts"}
        assert set(said["parts"][0]) == {"part", "given", "believed", "probability"}
        json.dumps(said)
        with pytest.raises(dataclasses.FrozenInstanceError):
            suspect.probability = 0.0


def test_cuts(noisy_tagger):
    tagger, X, planted = noisy_tagger
    found, p = tagger.suspects(X, planted.y), np.sort(tagger.suspicion(X, planted.y))[::-1]
    assert tagger.suspects(X, planted.y, top=2) == found[:2] and tagger.suspects(X, planted.y, top=0) == []
    longer = tagger.suspects(X, planted.y, precision=0.5)
    n = len(longer)
    assert longer[: len(found)] == found and p[:n].mean() >= 0.5 > p[: n + 1].mean()


@pytest.mark.parametrize("loss", ["hinge", "crf"])
def test_other_losses_judge_what_they_have_not_seen(loss):
    X, y = make_tagged_sequences(60, 1, ambiguity=0.1)
    planted = plant_errors(y, 0.1, seed=1)
    tagger = SequenceLabeler(loss=loss, C=0.1, solver="dca", random_state=0, max_epochs=5).fit(X, planted.y)
    assert average_precision(planted.changed, tagger.suspicion(X, planted.y)) > 0.8
    np.testing.assert_array_equal(tagger.suspicion(X, planted.y), tagger.suspicion(X, planted.y, folds=5))


@pytest.mark.interpreted
def test_a_token_without_a_label_is_never_in_doubt(noisy_tagger):
    tagger, X, planted = noisy_tagger
    i = int(np.flatnonzero(planted.changed)[0])
    X, y = X[i : i + 4], planted.y[i : i + 4]
    worst = tagger.judge(X, y).suspect(0)
    t = worst.parts[0].part
    judged = tagger.judge(X, [[None if k == t else label for k, label in enumerate(worst.given)], *y[1:]])
    assert judged.found.parts[t] < -30 and t not in [part.part for part in judged.suspect(0).parts]
    assert judged.suspect(0).given[t] is None
    assert tagger.suspicion(X, [[None] * len(y[0]), *y[1:]])[0] < 1e-12
    either = [{label, other} for label, other in zip(worst.given, worst.believed, strict=True)]
    assert tagger.suspicion(X, [either, *y[1:]])[0] < 0.5 < worst.probability


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
    for wrong in ({"top": -1}, {"precision": 2}, {"folds": 1}, {"folds": True}):
        with pytest.raises(ValueError, match=f"The '{next(iter(wrong))}' parameter"):
            tagger.suspects(X, planted.y, **wrong)
    with pytest.raises(ValueError, match="not fitted"):
        SequenceLabeler().suspects(X, planted.y, folds=None)


def test_folds_do_not_believe_what_was_learnt_by_heart():
    rng = np.random.default_rng(0)
    X = [[[f"word{rng.integers(20)}", f"only{i}-{t}"] for t in range(4)] for i in range(60)]  # every token has a name of its own
    y = [[f"L{int(token[0][4:]) % 3}" for token in x] for x in X]
    planted = plant_errors(y, 0.1, seed=0)
    tagger = SequenceLabeler(loss="hinge", C=100.0, solver="dca", random_state=0, max_epochs=20).fit(X, planted.y)
    assert tagger.suspects(X, planted.y, folds=None) == []
    folded = tagger.suspicion(X, planted.y)
    assert average_precision(planted.changed, folded) > 0.9
    before = tagger.weights_.copy()
    fresh = SequenceLabeler(loss="hinge", C=100.0, solver="dca", random_state=0, max_epochs=20)
    assert average_precision(planted.changed, fresh.suspicion(X, planted.y, folds=5)) > 0.9
    assert not hasattr(fresh, "weights_") and np.array_equal(before, tagger.weights_)
    with pytest.raises(ValueError, match="there are 3 examples only"):
        tagger.suspicion(X[:3], planted.y[:3], folds=5)
