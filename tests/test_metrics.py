"""Token accuracy and span scores."""

import math

import pytest

from partwise.metrics import sequence_accuracy, span_f1, span_scores, spans, token_accuracy


def test_accuracies():
    true, predicted = [["a", "b"], ["c"], []], [["a", "x"], ["c"], []]
    assert token_accuracy(true, predicted) == pytest.approx(2 / 3)
    assert sequence_accuracy(true, predicted) == pytest.approx(2 / 3)
    assert math.isnan(token_accuracy([], [])) and math.isnan(token_accuracy([[]], [[]])) and math.isnan(sequence_accuracy([], []))


@pytest.mark.parametrize(
    "labels, expected",
    [
        ([], []),
        (["O", "O"], []),
        (["B-NP"], [("NP", 0, 1)]),
        (["B-NP", "I-NP", "I-NP"], [("NP", 0, 3)]),
        (["B-NP", "B-NP"], [("NP", 0, 1), ("NP", 1, 2)]),
        (["I-NP", "I-NP", "O", "I-NP"], [("NP", 0, 2), ("NP", 3, 4)]),  # IOB1, or a model that forgot the B
        (["B-NP", "I-VP", "I-VP"], [("NP", 0, 1), ("VP", 1, 3)]),
        (["O", "B-A-B", "I-A-B"], [("A-B", 1, 3)]),
        (["B-X", "E-X", "S-X", "S-X", "E-X"], [("X", 0, 2), ("X", 2, 3), ("X", 3, 4), ("X", 4, 5)]),
    ],
)
def test_spans_are_read_as_conlleval_reads_them(labels, expected):
    assert spans(labels) == expected


def test_span_scores_by_hand():
    true = [["B-NP", "I-NP", "O", "B-VP"], ["B-NP", "O"]]
    predicted = [["B-NP", "I-NP", "O", "B-NP"], ["O", "O"]]
    scores = span_scores(true, predicted)
    assert (scores.n_true, scores.n_predicted, scores.n_correct) == (3, 2, 1)
    assert (scores.precision, scores.recall, scores.f1) == pytest.approx((1 / 2, 1 / 3, 2 / 5))
    assert (scores.by_type["NP"].precision, scores.by_type["NP"].recall) == (0.5, 0.5)
    assert (scores.by_type["VP"].precision, scores.by_type["VP"].f1) == (0.0, 0.0)
    assert span_f1(true, predicted) == scores.f1
    assert span_f1(true, true) == 1.0
    assert span_f1([["O"]], [["O"]]) == 0.0


def test_a_span_at_the_right_place_with_the_wrong_end_is_wrong():
    assert span_scores([["B-X", "I-X"]], [["B-X", "O"]]).n_correct == 0
    assert span_scores([["B-X", "I-X"]], [["B-X", "B-X"]]).n_correct == 0


def test_messages_say_where():
    with pytest.raises(ValueError, match="y_true has 1 sequences, y_pred has 2"):
        token_accuracy([["a"]], [["a"], ["b"]])
    with pytest.raises(ValueError, match="Sequence 1: y_true has 2 labels, y_pred has 1"):
        span_f1([["O"], ["O", "O"]], [["O"], ["O"]])
    with pytest.raises(ValueError, match="Sequence 0: Token 1: the label 'NOUN' is not of the form B-type"):
        span_f1([["O", "NOUN"]], [["O", "O"]])
