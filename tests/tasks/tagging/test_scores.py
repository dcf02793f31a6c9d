"""Accuracies and scores of spans."""

import math
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partwise.metrics import (
    report,
    report_coded,
    sequence_accuracy,
    sequence_counts,
    sequence_counts_coded,
    span_f1,
    span_scores,
    span_scores_coded,
    spans,
    token_accuracy,
)

# conlleval's rules, as a machine that walks over both columns at once: the twin of the vector operations

ENDS = {"BB", "BO", "IB", "IO", "EE", "EI", "EO"}
BEGINS = {"BB", "IB", "OB", "OI", "EE", "EI", "OE"}
MORE_ENDS = {"EB", "BS", "IS", "ES", "SB", "SI", "SE", "SS", "SO"}
MORE_BEGINS = {"EB", "OS", "BS", "IS", "ES", "SB", "SI", "SE", "SS"}


def conlleval(y_true, y_pred, extended):
    ends, begins = (ENDS | MORE_ENDS, BEGINS | MORE_BEGINS) if extended else (ENDS, BEGINS)

    def split(label):
        prefix, _, kind = label.partition("-")
        return {"L": "E", "U": "S"}.get(prefix, prefix), kind

    def end(before, after):
        return before[0] + after[0] in ends or (before[0] != "O" and before[1] != after[1])

    def begin(before, after):
        return before[0] + after[0] in begins or (after[0] != "O" and before[1] != after[1])

    n_true, n_found, n_correct, right, tokens, agree = Counter(), Counter(), Counter(), 0, 0, False
    last_true = last_found = ("O", "")
    for true_labels, found_labels in zip(y_true, y_pred, strict=True):
        for true_label, found_label in [*zip(true_labels, found_labels, strict=True), (None, None)]:
            if true_label is None:  # between sentences
                true = found = ("O", "")
            else:
                true, found = split(true_label), split(found_label)
                tokens += 1
                right += true_label == found_label
            over = end(last_true, true), end(last_found, found)
            if agree and over == (True, True):
                n_correct[last_true[1]] += 1
            if any(over) or true[1] != found[1]:
                agree = False
            new = begin(last_true, true), begin(last_found, found)
            n_true[true[1]] += new[0]
            n_found[found[1]] += new[1]
            if new == (True, True) and true[1] == found[1]:
                agree = True
            last_true, last_found = true, found
    counts = {kind: (n_true[kind], n_found[kind], n_correct[kind]) for kind in n_true | n_found if n_true[kind] or n_found[kind]}
    return counts, right / tokens if tokens else None


def outputs(prefixes, kinds=("X", "Y", "X-Y", "")):
    """Pairs (y_true, y_pred) of equal lengths over these prefixes, well formed or not, often in agreement."""
    labels = st.sampled_from(["O", *(f"{p}-{kind}" if kind else p for p in prefixes for kind in kinds)])
    token = st.tuples(labels, labels, st.integers(0, 2)).map(lambda t: (t[0], t[0] if t[2] else t[1]))
    sentences = st.lists(st.lists(token, max_size=8), max_size=5)
    return sentences.map(lambda s: ([[a for a, _ in x] for x in s], [[b for _, b in x] for x in s]))


def as_counts(scores):
    return {kind: (s.n_true, s.n_predicted, s.n_correct) for kind, s in scores.by_type.items()}


def check_against_conlleval(y_true, y_pred, extended):
    counts, accuracy = conlleval(y_true, y_pred, extended)
    scores = span_scores(y_true, y_pred)
    assert as_counts(scores) == counts
    assert (scores.n_true, scores.n_predicted, scores.n_correct) == tuple(sum(c[k] for c in counts.values()) for k in range(3))
    if accuracy is not None:
        assert token_accuracy(y_true, y_pred) == pytest.approx(accuracy)
    # and every other way to the same numbers
    per_sequence = sequence_counts(y_true, y_pred)
    assert as_counts(report(y_true, y_pred).spans) == counts
    for name in ("precision", "recall", "f1"):
        assert per_sequence.measure(name) == pytest.approx(getattr(scores, name))


@given(outputs("BI"))
def test_iob_as_conlleval(case):
    check_against_conlleval(*case, extended=False)


@given(outputs("IE"))
def test_ioe_as_conlleval(case):
    check_against_conlleval(*case, extended=False)


@given(st.sampled_from(["BIES", "BILU"]).flatmap(outputs))
def test_iobes_and_bilou_as_conlleval_would(case):
    check_against_conlleval(*case, extended=True)


@given(outputs("BIES"), st.randoms(use_true_random=False))
def test_numbered_labels_agree_with_lists(case, random):
    y_true, y_pred = case
    names = sorted({label for s in (*y_true, *y_pred) for label in s} | {"NOUN"})  # one that never occurs
    others = list(names)
    random.shuffle(others)
    starts = np.concatenate([[0], np.cumsum([len(s) for s in y_true], dtype=int)])
    true = np.array([names.index(label) for s in y_true for label in s], np.int32)
    same = np.array([names.index(label) for s in y_pred for label in s], np.int64)
    own = np.array([others.index(label) for s in y_pred for label in s], np.int16)
    expected = span_scores(y_true, y_pred)
    assert span_scores_coded(true, same, starts, names) == expected
    assert span_scores_coded(true, own, starts, np.array(names), np.array(others)) == expected
    if len(true):  # without tokens, 'NOUN' among the labels decides that they are no chunk tags
        a, b = sequence_counts(y_true, y_pred), sequence_counts_coded(true, own, starts, names, others)
        for kind in (None, *expected.by_type):
            np.testing.assert_array_equal(a.table(kind), b.table(kind))
        assert str(report(y_true, y_pred)) == str(report_coded(true, own, starts, names, others))


def test_accuracies():
    true, predicted = [["a", "b"], ["c"], []], [["a", "x"], ["c"], []]
    assert token_accuracy(true, predicted) == pytest.approx(2 / 3)
    assert sequence_accuracy(true, predicted) == pytest.approx(2 / 3)
    assert math.isnan(token_accuracy([], [])) and math.isnan(token_accuracy([[]], [[]])) and math.isnan(sequence_accuracy([], []))
    assert sequence_accuracy([[]], [[]]) == 1.0
    assert token_accuracy(np.array([[1, 2]]), [(1, 3)]) == 0.5


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
        (["B-X", "E-X", "B-X", "E-X"], [("X", 0, 2), ("X", 2, 4)]),  # conlleval, which knows E from IOE only, sees one
        (["B-X", "L-X", "U-X", "I-X"], [("X", 0, 2), ("X", 2, 3), ("X", 3, 4)]),
        (["I-X", "E-X", "E-X", "I-X"], [("X", 0, 2), ("X", 2, 3), ("X", 3, 4)]),
        (["B", "I", "O", "I", "B-"], [("", 0, 2), ("", 3, 4), ("", 4, 5)]),  # without types
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
    assert span_f1([["O"]], [["O"]]) == 0.0 and span_f1([], []) == 0.0 and span_f1([[]], [[]]) == 0.0


def test_a_span_at_the_right_place_with_the_wrong_end_is_wrong():
    assert span_scores([["B-X", "I-X"]], [["B-X", "O"]]).n_correct == 0
    assert span_scores([["B-X", "I-X"]], [["B-X", "B-X"]]).n_correct == 0


def test_a_span_does_not_reach_into_the_next_sequence():
    assert span_scores([["B-X"], ["I-X"]], [["B-X"], ["I-X"]]).n_true == 2
    assert span_scores([["B-X"], [], ["I-X"]], [["B-X"], [], ["O"]]).n_correct == 1


def test_messages_say_where():
    with pytest.raises(ValueError, match="y_true has 1 sequences, y_pred has 2"):
        token_accuracy([["a"]], [["a"], ["b"]])
    with pytest.raises(ValueError, match="Sequence 1: y_true has 2 labels, y_pred has 1"):
        span_f1([["O"], ["O", "O"]], [["O"], ["O"]])
    with pytest.raises(ValueError, match="Sequence 0, token 1 of y_true: the label 'NOUN' is not of the form B-type.*accuracies"):
        span_f1([["O", "NOUN"]], [["O", "O"]])
    with pytest.raises(ValueError, match="Sequence 1, token 0 of y_pred: the label 'O-X' is not"):
        span_f1([["O"], ["O"]], [["O"], ["O-X"]])
    with pytest.raises(ValueError, match="Token 2: the label None is not of the form"):
        spans(["O", "B-X", None])
    with pytest.raises(TypeError, match="y_true must be a list of label sequences. Sequence 0 is 'B-X'"):
        token_accuracy(["B-X"], ["B-X"])
    with pytest.raises(ValueError, match="true_codes has 1 labels, pred_codes has 2"):
        span_scores_coded([0], [0, 0], [0, 1], ["O"])
    with pytest.raises(ValueError, match="Sequence 0, token 1: the code -1 of pred_codes is not one of the 1 labels"):
        span_scores_coded([0, 0], [0, -1], [0, 2], ["O"])


def test_import_needs_numpy_only():
    code = "import sys, partwise.metrics; print([m for m in ('numba', 'sklearn', 'scipy') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
