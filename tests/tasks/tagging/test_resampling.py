"""Intervals and paired tests."""

import itertools
import math

import numpy as np
import pytest

from partwise.metrics import (
    bootstrap_intervals,
    compare,
    sequence_accuracy,
    sequence_counts,
    span_f1,
    span_scores,
    token_accuracy,
)
from partwise.tasks.common import resampling as chance
from partwise.tasks.tagging import resampling

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
    monkeypatch.setattr(chance, "BLOCK", 100)
    original = resampling.sums_over
    monkeypatch.setattr(resampling, "sums_over", lambda *a: drawn.append(original(*a)) or drawn[-1])
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
