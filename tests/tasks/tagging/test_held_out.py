"""What early stopping judges by."""

import numpy as np
import pytest

from column_cases import sentences, text
from partwise.metrics import span_f1
from partwise.tasks.tagging.estimator import SequenceLabeler
from partwise.tasks.tagging.held_out import metric_for
from partwise.text.columns import read_columns

DATA = sentences()
LABELS = [[token[2] for token in sentence] for sentence in DATA]
COLUMNS = read_columns(text(DATA).encode(), name="train.txt")
TEST = read_columns(text(sentences(20, seed=1)).encode(), name="test.txt")


def tagger(**parameters):
    return SequenceLabeler(**{"C": 1.0, "solver": "dca", "max_epochs": 3, **parameters})


@pytest.mark.parametrize("metric", ["cost", "error", "f1"])
def test_what_early_stopping_judges_by(metric):
    model = tagger(max_epochs=30, patience=2, validation_metric=metric).fit(COLUMNS, validation=TEST)
    best = min(r.validation for r in model.result_.history)
    truth = [[token[2] for token in TEST[i]] for i in range(len(TEST))]
    answers = model.predict(TEST)
    wrong = sum(a != b for t, p in zip(truth, answers, strict=True) for a, b in zip(t, p, strict=True))
    expected = {"cost": wrong / 20, "error": wrong / TEST.n_tokens, "f1": 1 - span_f1(truth, answers)}[metric]
    assert best == pytest.approx(expected)
    assert model.result_.status == "early_stopping" or "best on held-out data, is kept" in model.result_.message


def test_labels_that_training_never_saw_are_simply_missed():
    held = read_columns(b"bnp1 N B-NEW\nonp N O\n")
    model = tagger(validation_metric="error").fit(COLUMNS, validation=held)
    assert all(r.validation >= 0.5 for r in model.result_.history)
    tagger(validation_metric="f1").fit(COLUMNS, validation=held)
    with pytest.raises(ValueError, match="not of the form"):
        nouns = [["N"] * len(TEST[i]) for i in range(20)]
        tagger(validation_metric="f1").fit(COLUMNS, [["N"] * len(y) for y in LABELS], validation=(TEST, nouns))


def test_what_auto_stands_for():
    chunks = tagger(validation_metric="auto").fit(COLUMNS, validation=TEST)
    f1 = tagger(validation_metric="f1").fit(COLUMNS, validation=TEST)
    assert [r.validation for r in chunks.result_.history] == [r.validation for r in f1.result_.history]
    assert SequenceLabeler().validation_metric == "auto"
    assert metric_for("auto", ["B-X", "I-X", "O"], ["B-X", "O"]) == "f1" and metric_for("cost", ["B-X"], ["O"]) == "cost"
    for classes, names in ((["N", "V"], ["N"]), (["B-X", "O"], ["B-X", None]), (["B-X", "O"], ["N"]), (["O"], [])):
        assert metric_for("auto", classes, names) == "error"


def test_held_out_data_stay_where_they_are_asked_for():
    model = tagger(max_epochs=1).fit(COLUMNS, validation=TEST)
    assert model.held_out_ is None
    model.keep_held_out = True
    model.fit(COLUMNS, validation=TEST)
    np.testing.assert_array_equal(model.held_out_.answers(model.weights_, None), model.predict_codes(TEST))
