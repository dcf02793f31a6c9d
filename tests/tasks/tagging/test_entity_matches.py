"""Entities found in part."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partwise.metrics import entity_confusion, entity_matches, span_scores
from partwise.text.chunk_schemes import convert

TRUE = [["B-A", "I-A", "O", "B-B", "O", "B-A", "O"]]
FOUND = [["B-A", "O", "O", "B-A", "O", "O", "B-B"]]


def outputs():
    labels = st.sampled_from(["O", "B-X", "I-X", "B-Y", "I-Y"])
    token = st.tuples(labels, labels, st.booleans()).map(lambda t: (t[0], t[0] if t[2] else t[1]))
    sentences = st.lists(st.lists(token, min_size=1, max_size=9), min_size=1, max_size=3)
    pairs = sentences.map(lambda s: ([[a for a, _ in x] for x in s], [[b for _, b in x] for x in s]))
    return pairs.map(lambda pair: tuple(convert(y, "iob2", "iob2") for y in pair))


@given(outputs())
@settings(max_examples=30, deadline=None)
def test_counts_are_those_of_nervaluate(case):
    nervaluate = pytest.importorskip("nervaluate", reason="nervaluate is not installed")
    found = entity_matches(*case)
    theirs = nervaluate.Evaluator(*case, tags=["X", "Y"], loader="list").evaluate()
    for kind, one in found.items():
        name = {"type": "ent_type"}.get(kind, kind)
        check(one, theirs["overall"][name], kind)
        for tag, own in one.by_type.items():
            check(own, theirs["entities"][tag][name], (kind, tag))


def check(found, expected, what):
    for name in ("correct", "incorrect", "partial", "missed", "spurious", "actual", "possible"):
        assert getattr(found, name) == getattr(expected, name), (what, name)
    for name in ("precision", "recall", "f1"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name)), (what, name)


@given(outputs())
@settings(max_examples=30, deadline=None)
def test_they_fit_together(case):
    found, scores, confusion = entity_matches(*case), span_scores(*case), entity_confusion(*case)
    assert found["strict"].correct == scores.n_correct and found["strict"].f1 == pytest.approx(scores.f1)
    assert found["strict"].correct <= found["exact"].correct == found["partial"].correct
    for one in found.values():
        assert (one.possible, one.actual) == (scores.n_true, scores.n_predicted)
    assert confusion.counts[:-1].sum() == scores.n_true and confusion.counts[:, :-1].sum() == scores.n_predicted
    assert confusion.counts[:-1, -1].sum() == found["type"].missed and confusion.counts[-1, :-1].sum() == found["type"].spurious
    assert confusion.counts.diagonal()[:-1].sum() == found["type"].correct


def test_by_hand():
    found = entity_matches(TRUE, FOUND)
    assert (found["partial"].correct, found["partial"].partial) == (1, 1) and found["partial"].precision == 0.5
    assert (found["type"].correct, found["type"].incorrect, found["type"].missed, found["type"].spurious) == (1, 1, 1, 1)
    assert (found["strict"].correct, found["exact"].correct) == (0, 1)
    confusion = entity_confusion(TRUE, FOUND)
    assert confusion.rows == ["A", "B", "spurious"] and confusion.columns == ["A", "B", "missed"]
    assert confusion.counts.tolist() == [[1, 0, 1], [1, 0, 0], [0, 1, 0]]
    assert str(confusion).splitlines()[-1].split() == ["spurious", "0", "1", "0"]


def test_nothing_at_all():
    assert entity_matches([["O"]], [["O"]])["strict"].f1 == 0.0 and entity_matches([], [])["type"].precision == 0.0
    assert entity_confusion([["O"]], [["O"]]).counts.tolist() == [[0]]


def test_the_picture(tmp_path):
    pytest.importorskip("matplotlib")
    entity_confusion(TRUE, FOUND).save(tmp_path / "confusion.svg")
    assert b"spurious" in (tmp_path / "confusion.svg").read_bytes() or (tmp_path / "confusion.svg").stat().st_size > 1000
    axes = entity_confusion(TRUE, FOUND).plot()
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["A", "B", "missed"]
    assert sorted(text.get_text() for text in axes.texts) == ["1"] * 4
