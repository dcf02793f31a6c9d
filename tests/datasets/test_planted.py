"""Planted errors: how many, where, and in which form they come back."""

from __future__ import annotations

import numpy as np
import pytest

from partwise.datasets import plant_errors


def sequences(n=200, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.choice(list("abcde"), rng.integers(1, 9)).tolist() for _ in range(n)]


def differences(old, new):
    return np.array([a != b for x, z in zip(old, new, strict=True) for a, b in zip(x, z, strict=True)])


@pytest.mark.parametrize("how", ["sentence", "token", "shuffle", "confusion"])
def test_masks_say_what_changed(how):
    y = sequences()
    noisy = plant_errors(y, 0.2, 1, how)
    np.testing.assert_array_equal(noisy.tokens, differences(y, noisy.y))
    np.testing.assert_array_equal(noisy.changed, [a != b for a, b in zip(y, noisy.y, strict=True)])
    assert noisy.changed.any() and {label for x in noisy.y for label in x} == set("abcde")
    again, other = plant_errors(y, 0.2, 1, how), plant_errors(y, 0.2, 2, how)
    assert again.y == noisy.y != other.y
    assert y == sequences()  # the given labels stay as they were


def test_sentences_are_drawn_and_their_labels_uniform():
    y = [["a"] * 50 for _ in range(200)]
    noisy = plant_errors(y, 0.1, 0, "sentence", labels="abcde")
    assert noisy.changed.sum() == 20
    drawn = np.array([noisy.y[i] for i in np.flatnonzero(noisy.changed)])
    shares = [np.mean(drawn == label) for label in "abcde"]
    assert min(shares) > 0.15 and max(shares) < 0.25  # 1000 draws, a fifth each: five standard deviations


def test_tokens_get_another_label():
    y = np.repeat([0, 1, 2, 3], 250)
    noisy = plant_errors(y, 0.05, 0, "token")
    assert noisy.tokens.sum() == 50 and (noisy.y != y).sum() == 50 and noisy.y.dtype == y.dtype


def test_shuffling_keeps_the_classes_as_frequent_as_they_were():
    y = np.repeat(["x", "y", "long name"], [300, 100, 40])
    noisy = plant_errors(y, 0.25, 0, "shuffle")
    assert sorted(noisy.y) == sorted(y) and noisy.y.dtype == y.dtype
    for label, n in (("x", 75), ("y", 25), ("long name", 10)):
        assert 0 < np.count_nonzero(noisy.changed & (y == label)) <= n


def test_annotators_confuse_few_pairs_of_labels():
    rng = np.random.default_rng(0)
    y = rng.choice(list("abcdefgh"), 4000)
    noisy = plant_errors(y, 0.05, 0, "confusion")
    assert noisy.tokens.sum() == 200
    pairs = set(zip(y[noisy.changed].tolist(), np.array(noisy.y)[noisy.changed].tolist(), strict=True))
    assert len(pairs) <= 10 < 56  # two of each of five annotators
    everything = plant_errors(y, 1.0, 0, "confusion")  # what nobody confuses stays
    assert 200 < everything.tokens.sum() < 4000
    assert len(set(zip(y[everything.changed].tolist(), np.array(everything.y)[everything.changed].tolist(), strict=True))) <= 10


def test_forms():
    y = sequences(50)
    flat, lengths = np.array([label for x in y for label in x]), [len(x) for x in y]
    joined = plant_errors(flat, 0.3, 5, lengths=lengths)
    split = plant_errors(y, 0.3, 5)
    assert joined.y.tolist() == [label for x in split.y for label in x] and isinstance(joined.y, np.ndarray)
    np.testing.assert_array_equal(joined.changed, split.changed)
    arrays = plant_errors([np.array(x) for x in y], 0.3, 5)
    assert all(isinstance(x, np.ndarray) for x in arrays.y) and [x.tolist() for x in arrays.y] == split.y
    assert plant_errors(["a", "b", "a", "b"], 1.0, 0, "token").y == ["b", "a", "b", "a"]
    assert plant_errors((1, 2), 1.0, 0, "token").y == (2, 1)
    longer = plant_errors(np.array(["a", "b"]), 1.0, 3, "token", labels=["a", "b", "longer"]).y
    assert set(longer) <= {"a", "b", "longer"}


def test_unknown_labels_and_sets_stay():
    y = [["a", None, {"a", "b"}, "b"], [None]]
    noisy = plant_errors(y, 1.0, 0, "token")
    assert noisy.y == [["b", None, {"a", "b"}, "a"], [None]] and noisy.changed.tolist() == [True, False]
    assert plant_errors([[None], ["a"], ["b"]], 1.0, 0, "sentence").y[0] == [None]


def test_nothing_to_do():
    for y in ([], [[]], [["a"]], ["a", "a"]):
        noisy = plant_errors(y, 1.0)
        assert noisy.y == y and not noisy.changed.any() and not noisy.tokens.any() and len(noisy.changed) == len(y)
    assert plant_errors(sequences(), 0.0).y == sequences()


def test_refusals():
    for fraction in (-0.1, 1.5, "a", True):
        with pytest.raises(ValueError, match=r"The 'fraction' parameter of plant_errors must be a float in the range \[0, 1\]"):
            plant_errors(["a"], fraction)
    with pytest.raises(ValueError, match="The 'how' parameter of plant_errors must be one of 'sentence', 'token', 'shuffle'"):
        plant_errors(["a"], 0.1, how="tokens")
    with pytest.raises(ValueError, match="sum to the 2 labels"):
        plant_errors(["a", "b"], 0.1, lengths=[3])
    with pytest.raises(ValueError, match="'c', which is not one of `labels`"):
        plant_errors(["a", "c"], 0.1, labels=["a", "b"])
    with pytest.raises(TypeError, match="Example 1 is 'b'"):
        plant_errors([["a"], "b"], 0.1)
    with pytest.raises(TypeError, match="Got a str"):
        plant_errors("abc", 0.1)
