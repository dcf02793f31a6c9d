"""All scores of a labelling at once."""

import json

import pytest

from partwise.metrics import report


def test_report_of_chunk_tags():
    true = [["B-NP", "I-NP", "O", "B-VP"], ["B-NP", "O"]]
    predicted = [["B-NP", "I-NP", "O", "B-NP"], ["O", "O"]]
    found = report(true, predicted, n_resamples=20, level=0.9)
    assert found.conlleval() == (
        "processed 6 tokens with 3 phrases; found: 2 phrases; correct: 1.\n"
        "accuracy:  66.67%; precision:  50.00%; recall:  33.33%; FB1:  40.00\n"
        "               NP: precision:  50.00%; recall:  50.00%; FB1:  50.00  2\n"
        "               VP: precision:   0.00%; recall:   0.00%; FB1:   0.00  0\n"
    )
    assert (found.accuracy, found.inside_accuracy, found.sequence_accuracy) == pytest.approx((2 / 3, 1 / 2, 0))
    table = str(found).splitlines()
    assert table[0] == "6 tokens in 2 sequences" and "90 % bootstrap intervals" in table[-1]
    assert table[-5].split()[:7] == ["all", "50.00", "33.33", "40.00", "3", "2", "1"] and "[" in table[-5]
    data = json.loads(json.dumps(found.to_dict()))
    assert data["f1"] == pytest.approx(0.4) and data["types"]["NP"]["recall"] == 0.5 and data["types"]["VP"]["true"] == 1
    assert set(data["intervals"]) == {"accuracy", "sequence_accuracy", "precision", "recall", "f1"} and data["level"] == 0.9
    assert len(data["types"]["NP"]["intervals"]["f1"]) == 2
    assert "intervals" not in report(true, predicted).to_dict()


def test_report_of_other_labels_and_of_nothing():
    found = report([["DET", "NOUN"]], [["DET", "VERB"]], n_resamples=10)
    assert found.spans is None and found.accuracy == 0.5 and "F1" not in str(found)
    assert set(found.to_dict()) == {"sequences", "tokens", "accuracy", "sequence_accuracy", "level", "intervals"}
    with pytest.raises(ValueError, match="these labels are not chunk tags"):
        found.conlleval()
    nothing = report([], [], n_resamples=10)
    assert nothing.conlleval() == "processed 0 tokens with 0 phrases; found: 0 phrases; correct: 0.\n"
    assert json.loads(json.dumps(nothing.to_dict(), allow_nan=False))["accuracy"] is None and "nan" in str(nothing)
