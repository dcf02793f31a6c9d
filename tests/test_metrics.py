"""Accuracies, span scores, intervals, paired tests, scorers and reports."""

import itertools
import json
import math
import pickle
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partwise import metrics
from partwise.metrics import (
    Scorer,
    bootstrap_intervals,
    compare,
    report,
    report_coded,
    sequence_accuracy,
    sequence_counts,
    sequence_counts_coded,
    span_f1,
    span_f1_scorer,
    span_scores,
    span_scores_coded,
    spans,
    token_accuracy,
)

# ---------------------------------------------------------------------------------------------------------------------
# conlleval's rules, as a machine that walks over both columns at once: the twin of the vector operations
# ---------------------------------------------------------------------------------------------------------------------

# Pairs of neighbouring prefixes, of the same type, between which a chunk ends; and between which one begins.
ENDS = {"BB", "BO", "IB", "IO", "EE", "EI", "EO"}
BEGINS = {"BB", "IB", "OB", "OI", "EE", "EI", "OE"}
# What conlleval does not know: S, and a B after an E. L and U are other names of E and S.
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


# ---------------------------------------------------------------------------------------------------------------------
# By hand
# ---------------------------------------------------------------------------------------------------------------------


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


# ---------------------------------------------------------------------------------------------------------------------
# Resampling
# ---------------------------------------------------------------------------------------------------------------------

LABELS = ["O", "B-X", "I-X", "B-Y"]


def noisy(n, seed, errors):
    """Random sentences, and a prediction that is wrong at that share of tokens."""
    rng = np.random.default_rng(seed)
    lengths = np.random.default_rng(99).integers(1, 9, n)
    draw = np.random.default_rng(99)
    true = [[LABELS[k] for k in draw.integers(4, size=length)] for length in lengths]
    return true, [[LABELS[rng.integers(4)] if rng.random() < errors else label for label in s] for s in true]


def test_intervals_against_a_plain_loop():
    true, predicted = noisy(30, 1, 0.3)
    found = bootstrap_intervals(sequence_counts(true, predicted), types=[None, "X"], n_resamples=50, level=0.8, random_state=5)
    draws = np.random.default_rng(5).integers(30, size=(50, 30))
    for kind, name, measure in (
        (None, "f1", span_f1),
        (None, "accuracy", token_accuracy),
        (None, "sequence_accuracy", sequence_accuracy),
        (None, "precision", lambda a, b: span_scores(a, b).precision),
        ("X", "recall", lambda a, b: span_scores(a, b).by_type["X"].recall),
    ):
        values = [measure([true[i] for i in draw], [predicted[i] for i in draw]) for draw in draws]
        interval = found[kind][name]
        assert interval.value == pytest.approx(measure(true, predicted))
        assert interval[1:] == pytest.approx(np.quantile(values, [0.1, 0.9]))
    assert set(found["X"]) == {"precision", "recall", "f1"}


def test_intervals_are_seeded_and_do_not_need_all_the_memory(monkeypatch):
    counts = sequence_counts(*noisy(40, 2, 0.3))
    first = bootstrap_intervals(counts, n_resamples=200)
    assert bootstrap_intervals(counts, n_resamples=200) == first
    assert bootstrap_intervals(counts, n_resamples=200, random_state=1) != first
    drawn = []
    monkeypatch.setattr(metrics.resampling, "BLOCK", 100)
    original = metrics.resampling._sums
    monkeypatch.setattr(metrics.resampling, "_sums", lambda *a: drawn.append(original(*a)) or drawn[-1])
    blocked = bootstrap_intervals(counts, n_resamples=199)[None]["f1"]
    assert drawn[0].shape == (199, 7) and (drawn[0][:, 0] == 40).all()
    assert blocked.low < blocked.value < blocked.high


def test_intervals_of_nothing():
    nothing = bootstrap_intervals(sequence_counts([], []))[None]
    assert math.isnan(nothing["accuracy"].value) and math.isnan(nothing["accuracy"].low)
    assert nothing["f1"] == (0.0, 0.0, 0.0)
    empty = bootstrap_intervals(sequence_counts([[], []], [[], []]))[None]
    assert math.isnan(empty["accuracy"].high) and empty["sequence_accuracy"] == (1.0, 1.0, 1.0)


def test_randomisation_against_all_swaps():
    true, a = noisy(9, 3, 0.5)
    _, b = noisy(9, 4, 0.45)
    observed = span_f1(true, a) - span_f1(true, b)
    as_large = []
    for swap in itertools.product([False, True], repeat=9):
        first = [y if s else x for s, x, y in zip(swap, a, b, strict=True)]
        second = [x if s else y for s, x, y in zip(swap, a, b, strict=True)]
        as_large.append(abs(span_f1(true, first) - span_f1(true, second)) >= abs(observed) - 1e-12)
    found = compare(sequence_counts(true, a), sequence_counts(true, b), n_resamples=20_000)
    assert found.difference == pytest.approx(observed)
    assert (found.a, found.b) == pytest.approx((span_f1(true, a), span_f1(true, b)))
    assert 0.05 < np.mean(as_large) < 0.95
    assert found.p_value == pytest.approx(np.mean(as_large), abs=0.02)  # more than five standard deviations


def test_paired_bootstrap_against_a_plain_loop():
    true, a = noisy(20, 3, 0.5)
    _, b = noisy(20, 4, 0.4)
    found = compare(
        sequence_counts(true, a), sequence_counts(true, b), "accuracy", test="bootstrap", n_resamples=60, random_state=2
    )
    differences = []
    for draw in np.random.default_rng(2).integers(20, size=(60, 20)):
        drawn, in_a, in_b = ([labels[i] for i in draw] for labels in (true, a, b))
        differences.append(token_accuracy(drawn, in_a) - token_accuracy(drawn, in_b))
    assert found.difference < 0
    assert found.p_value == pytest.approx(2 * (1 + sum(d >= 0 for d in differences)) / 61)
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(differences, [0.025, 0.975])))


@pytest.mark.parametrize("test", ["randomisation", "bootstrap"])
def test_comparisons(test):
    true, good = noisy(150, 5, 0.1)
    _, bad = noisy(150, 6, 0.4)
    a, b = sequence_counts(true, good), sequence_counts(true, bad)
    for measure, kind in (("f1", None), ("precision", "X"), ("recall", "Y"), ("accuracy", None), ("sequence_accuracy", None)):
        better, worse = compare(a, b, measure, kind, test=test), compare(b, a, measure, kind, test=test)
        assert better.difference == -worse.difference > 0 and better.p_value == worse.p_value < 0.01
        assert 0 < better.low < better.difference < better.high and worse.high == pytest.approx(-better.low)
    same = compare(a, a, test=test)
    assert (same.difference, same.low, same.high, same.p_value) == (0, 0, 0, 1)
    none_found = sequence_counts([["B-X"]], [["O"]])
    assert compare(none_found, sequence_counts([["B-X"]], [["B-Z"]]), "precision", "Z").b == 0
    nothing = sequence_counts([], [])
    assert math.isnan(compare(nothing, nothing, "accuracy", test=test).p_value)
    assert "difference" in str(better) and test in str(better)


def test_refusals_of_resampling():
    a = sequence_counts([["B-X", "O"], ["O"]], [["B-X", "O"], ["O"]])
    with pytest.raises(ValueError, match="'n_resamples' parameter must be an int in the range"):
        bootstrap_intervals(a, n_resamples=0)
    with pytest.raises(ValueError, match=r"'level' parameter must be a float in the range \(0, 1\). Got 95 instead"):
        bootstrap_intervals(a, level=95)
    with pytest.raises(ValueError, match="'measure' parameter must be one of 'accuracy'.* Got 'F'"):
        bootstrap_intervals(a, ["F"])
    with pytest.raises(ValueError, match="There are no spans of type 'Z'; the types are 'X'"):
        bootstrap_intervals(a, types=["Z"])
    with pytest.raises(ValueError, match="'test' parameter must be one of 'randomisation', 'bootstrap'"):
        compare(a, a, test="t")
    with pytest.raises(ValueError, match="Got 2 and 0 sequences"):
        compare(a, sequence_counts([], []))
    with pytest.raises(ValueError, match="Sequence 1 has 1 tokens in one and 2 in the other"):
        compare(a, sequence_counts([["B-X", "O"], ["O", "O"]], [["B-X", "O"], ["O", "O"]]))
    with pytest.raises(ValueError, match="Sequence 0 has 1 true spans in one and 2 in the other"):
        compare(a, sequence_counts([["B-X", "B-X"], ["O"]], [["B-X", "O"], ["O"]]))
    with pytest.raises(ValueError, match="not chunk tags"):
        compare(sequence_counts([["N"]], [["N"]]), sequence_counts([["N"]], [["V"]]))


# ---------------------------------------------------------------------------------------------------------------------
# Scorers and reports
# ---------------------------------------------------------------------------------------------------------------------


class Parrot:
    def predict(self, X):
        return X


def test_scorers_by_hand():
    true, predicted = [["B-X", "I-X", "B-Y"], ["O"]], [["B-X", "I-X", "B-X"], ["O"]]
    values = {name: getattr(metrics, name)(Parrot(), predicted, true) for name in metrics.__all__ if name.endswith("_scorer")}
    assert values == {
        "span_f1_scorer": 0.5,
        "span_precision_scorer": 0.5,
        "span_recall_scorer": 0.5,
        "token_accuracy_scorer": 0.75,
        "sequence_accuracy_scorer": 0.5,
    }
    assert Scorer("recall", "X")(Parrot(), predicted, true) == 1.0 and Scorer("f1", "Z")(Parrot(), predicted, true) == 0.0
    assert Scorer("accuracy")(Parrot(), [["N"]], [["N"]]) == 1.0
    assert pickle.loads(pickle.dumps(span_f1_scorer)) == span_f1_scorer
    with pytest.raises(ValueError, match="is not of the form"):
        span_f1_scorer(Parrot(), [["N"]], [["N"]])
    with pytest.raises(ValueError, match="'measure' parameter of Scorer must be one of 'accuracy'.* Got 'F' instead"):
        Scorer("F")
    with pytest.raises(ValueError, match="'type' parameter of Scorer is for precision, recall, f1"):
        Scorer("accuracy", "X")


def test_scorers_in_scikit_learn():
    from sklearn.model_selection import GridSearchCV, cross_val_score

    from partwise import SequenceLabeler

    y, _ = noisy(12, 7, 0)
    x = [[[label] for label in labels] for labels in y]
    labeler = SequenceLabeler(solver="dca", max_epochs=2, random_state=0)
    scoring = {"f1": span_f1_scorer, "accuracy": metrics.token_accuracy_scorer, "X": Scorer("f1", "X")}
    search = GridSearchCV(labeler, {"C": [1e-6, 1.0]}, scoring=scoring, refit="f1", cv=2).fit(x, y)
    assert search.best_params_ == {"C": 1.0} and search.score(x, y) == span_f1(y, search.predict(x))
    assert np.isfinite(search.cv_results_["mean_test_X"]).all()
    scores = cross_val_score(labeler, x, y, scoring=metrics.sequence_accuracy_scorer, cv=2)
    assert scores.shape == (2,) and (0 <= scores).all() and (scores <= 1).all()


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


def test_import_needs_numpy_only():
    code = "import sys, partwise.metrics, partwise.text.chunk_schemes; print([m for m in ('numba', 'sklearn', 'scipy') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
