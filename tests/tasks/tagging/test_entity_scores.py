"""seqeval's functions: the same names, the same results; and ours where theirs are wrong."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partwise import metrics as ours
from partwise.metrics import classification_report, f1_score, get_entities, precision_recall_fscore_support
from partwise.text.chunk_schemes import convert

TRUE = [["O", "O", "B-MISC", "I-MISC", "B-MISC", "O", "O"], ["B-PER", "I-PER", "O"]]
FOUND = [["O", "O", "B-MISC", "I-MISC", "B-MISC", "I-MISC", "O"], ["B-PER", "I-PER", "O"]]
SCORES = ("precision_score", "recall_score", "f1_score")
REPORT = """\
              precision    recall  f1-score   support

        MISC       0.50      0.50      0.50         2
         PER       1.00      1.00      1.00         1

   micro avg       0.67      0.67      0.67         3
   macro avg       0.75      0.75      0.75         3
weighted avg       0.67      0.67      0.67         3
"""


@pytest.fixture(scope="module")
def theirs():
    return pytest.importorskip("seqeval.metrics", reason="seqeval is not installed")


def outputs(prefixes, kinds=("X", "Y")):
    labels = st.sampled_from(["O", *(f"{p}-{kind}" for p in prefixes for kind in kinds)])
    token = st.tuples(labels, labels, st.booleans()).map(lambda t: (t[0], t[0] if t[2] else t[1]))
    sentences = st.lists(st.lists(token, min_size=1, max_size=7), min_size=1, max_size=3)
    return sentences.map(lambda s: ([[a for a, _ in x] for x in s], [[b for _, b in x] for x in s]))


def quietly(function, *args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args, **options)


def check_against(theirs, y_true, y_pred, **options):
    if not (get_entities(y_true) or get_entities(y_pred)):
        return  # seqeval raises
    for division in ("warn", 0, 1):
        same = {"zero_division": division, **options}
        for name in SCORES:
            for average in (None, "micro", "macro", "weighted"):
                expected = quietly(getattr(theirs, name), y_true, y_pred, average=average, **same)
                if np.size(expected) == 0 or np.isnan(expected).any():
                    continue
                found = quietly(getattr(ours, name), y_true, y_pred, average=average, **_named(same))
                np.testing.assert_allclose(found, expected, atol=1e-15, err_msg=f"{name} {average} {same}")
        try:
            expected = quietly(theirs.classification_report, y_true, y_pred, output_dict=True, **same)
            text = quietly(theirs.classification_report, y_true, y_pred, digits=3, **same)
        except (ValueError, ZeroDivisionError):  # no spans
            continue
        found = quietly(classification_report, y_true, y_pred, output_dict=True, **_named(same))
        assert found.keys() == expected.keys()
        for kind, row in expected.items():
            assert found[kind] == pytest.approx({name: float(value) for name, value in row.items()}), kind
        assert quietly(classification_report, y_true, y_pred, digits=3, **_named(same)) == text


def _named(options):
    return {**options, "scheme": options["scheme"].__name__} if options.get("scheme") else options


@given(st.sampled_from(["BI", "IE", "BIES"]).flatmap(outputs))
@settings(max_examples=25, deadline=None)
def test_default_mode_is_that_of_seqeval(theirs, case):
    check_against(theirs, *case)
    assert ours.accuracy_score(*case) == theirs.accuracy_score(*case)
    assert ours.performance_measure(*case) == theirs.performance_measure(*case)
    assert [e for y in case for e in get_entities(y)] == [e for y in case for e in theirs.sequence_labeling.get_entities(y)]


@given(st.sampled_from([("IOB2", "BI"), ("IOE2", "IE"), ("IOBES", "BIES"), ("BILOU", "BILU")]), st.data())
@settings(max_examples=25, deadline=None)
def test_strict_mode_is_that_of_seqeval(theirs, scheme, data):
    import seqeval.scheme

    check_against(theirs, *data.draw(outputs(scheme[1])), mode="strict", scheme=getattr(seqeval.scheme, scheme[0]))


@given(outputs("BI"))
@settings(max_examples=15, deadline=None)
def test_iob1_well_formed_is_as_in_seqeval(theirs, case):
    import seqeval.scheme

    check_against(theirs, *(convert(y, "iob1", "iob2") for y in case), mode="strict", scheme=seqeval.scheme.IOB1)


@given(outputs("BI"))
@settings(max_examples=15, deadline=None)
def test_labels_with_suffixes_are_as_in_seqeval(theirs, case):
    y_true, y_pred = ([["-".join(label.split("-")[::-1]) for label in labels] for labels in y] for y in case)
    if any(get_entities(y, suffix=True) for y in (y_true, y_pred)):
        for average in ("micro", "macro", "weighted"):
            found, expected = (
                quietly(of.f1_score, y_true, y_pred, average=average, suffix=True, zero_division=0) for of in (ours, theirs)
            )
            assert found == pytest.approx(expected)


@given(outputs("BI"), st.sampled_from(["iob1", "iob2", "ioe1", "ioe2", "iobes", "bilou"]))
@settings(max_examples=25, deadline=None)
def test_well_formed_labels_have_the_same_scores_in_every_scheme_and_mode(case, scheme):
    y_true, y_pred = case
    expected = quietly(classification_report, y_true, y_pred, output_dict=True)
    written = [convert(y, scheme, "iob2") for y in case]
    assert quietly(classification_report, *written, output_dict=True) == expected
    assert quietly(classification_report, *written, output_dict=True, mode="strict", scheme=scheme.upper()) == expected


def test_by_hand():
    assert classification_report(TRUE, FOUND) == REPORT
    row = classification_report(TRUE, FOUND, output_dict=True)["macro avg"]
    assert row == {"precision": 0.75, "recall": 0.75, "f1-score": 0.75, "support": 3}
    assert f1_score(TRUE, FOUND) == pytest.approx(2 / 3) and f1_score(TRUE, FOUND, average=None).tolist() == [0.5, 1.0]
    found = precision_recall_fscore_support([["B-A", "B-A", "O"]], [["B-A", "O", "O"]], average="micro", beta=2.0)
    assert found == pytest.approx((1.0, 0.5, 5 * 0.5 / 4.5, 2))
    assert precision_recall_fscore_support([["B-A", "B-A"]], [["B-A", "O"]], average="micro", beta=np.inf)[2] == 0.5
    assert get_entities(["B", "I", "O", "B-X"]) == [("_", 0, 1), ("X", 3, 3)]
    assert ours.accuracy_score(["O", "B-A"], ["O", "O"]) == 0.5


def test_ioe1_and_bilou_are_read_whole():
    assert f1_score([["E-A", "I-A"]], [["E-A", "I-A"]], mode="strict", scheme="IOE1") == 1.0
    report = classification_report([["E-A", "I-A"]], [["E-A", "I-A"]], mode="strict", scheme="ioe1", output_dict=True)
    assert report["A"]["support"] == 2
    assert get_entities(["U-A", "U-A", "B-A", "L-A", "B-A", "L-A"]) == [("A", 0, 0), ("A", 1, 1), ("A", 2, 3), ("A", 4, 5)]


@pytest.mark.parametrize(
    "scheme, labels, support",
    [
        ("IOB2", ["O", "I-A", "I-A"], 0),
        ("IOB2", ["B-A", "I-B"], 1),
        ("IOB1", ["B-A", "I-A"], 0),
        ("IOB1", ["I-A", "B-A"], 2),
        ("IOE2", ["I-A", "O", "E-A"], 1),
        ("IOBES", ["B-A", "I-A", "S-A", "B-A", "E-A"], 2),
        ("BILOU", ["B-A", "O", "U-A"], 1),
    ],
)
def test_strict_spans(scheme, labels, support):
    report = quietly(classification_report, [labels], [["O"] * len(labels)], mode="strict", scheme=scheme, output_dict=True)
    assert report["micro avg"]["support"] == support


def test_strict_mode_recognises_the_scheme():
    assert f1_score([["B-A", "E-A"]], [["B-A", "E-A"]], mode="strict") == 1.0
    assert f1_score([["B-A", "I-A"]], [["I-A", "I-A"]], mode="strict") == 0.0
    with pytest.warns(UserWarning, match="for mode='strict'"):
        assert f1_score([["B-A", "I-A"]], [["I-A", "I-A"]], scheme="IOB2") == 1.0


def test_weights_of_sequences():
    assert f1_score(TRUE, FOUND, sample_weight=[0, 1]) == 1.0
    assert ours.recall_score([["B-A"], ["B-A"]], [["O"], ["B-A"]], sample_weight=[1, 3]) == 0.75


def test_nothing_found_and_nothing_there():
    from sklearn.exceptions import UndefinedMetricWarning

    with pytest.warns(UndefinedMetricWarning, match="Precision is ill-defined"):
        assert ours.precision_score([["B-A"]], [["O"]]) == 0.0
    assert f1_score([["O"]], [["O"]], zero_division=1) == 1.0
    assert f1_score([["O"]], [["O"]], zero_division=0, average="macro") == 0.0
    assert "micro avg" in classification_report([["O"]], [["O"]], zero_division=0)
    assert f1_score([], [], zero_division=0) == 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f1_score([["B-A"]], [["O"]])  # recall is defined


def test_messages_say_what_is_wrong():
    with pytest.raises(ValueError, match="Sequence 0, token 1 of y_true: the label 'NOUN' is not of the form"):
        f1_score([["O", "NOUN"]], [["O", "O"]])
    with pytest.raises(ValueError, match="Sequence 1: y_true has 1 labels, y_pred has 2"):
        f1_score([["O"], ["O"]], [["O"], ["O", "O"]])
    with pytest.raises(ValueError, match="'average' parameter must be one of None, 'micro'.*Got 'samples'"):
        f1_score(TRUE, FOUND, average="samples")
    with pytest.raises(ValueError, match="'mode' parameter must be None or 'strict'"):
        f1_score(TRUE, FOUND, mode="strikt")
    with pytest.raises(ValueError, match="'scheme' parameter must be one of iob2.*Got 'IOB3'"):
        f1_score(TRUE, FOUND, mode="strict", scheme="IOB3")
    with pytest.raises(ValueError, match="token 0: the scheme 'iob2' has the prefixes B, I and 'O'. Got the label 'E-A'"):
        f1_score([["E-A"]], [["O"]], mode="strict", scheme="IOB2")
    with pytest.raises(ValueError, match="sample_weight must have a number for each of the 2 sequences"):
        f1_score(TRUE, FOUND, sample_weight=[1])
    with pytest.raises(ValueError, match="zero_division"):
        f1_score(TRUE, FOUND, zero_division=2)
