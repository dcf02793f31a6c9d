"""Labels as users give them."""

import pytest

from partwise.features.given_labels import label_array, number_labels


def test_labels_as_given():
    given = number_labels(["a", None, {"a", "b"}, frozenset("ab"), "b"], str)
    assert given.distinct == ["a", None, frozenset("ab"), "b"] and given.codes.tolist() == [0, 1, 2, 2, 3]
    classes = given.learn(str)
    assert classes.tolist() == ["a", "b"] and given.is_partial
    gold, known = given.encode(classes, lambda t, label: ValueError(f"{t} {label}"))
    assert gold.tolist() == [0, 2, 3, 3, 1] and known.tolist() == [[True, True], [True, True]]
    with pytest.raises(ValueError, match="^3 c$"):
        number_labels(["a", "a", "b", {"b", "c"}], str).encode(classes, lambda t, label: ValueError(f"{t} {label}"))
    with pytest.raises(ValueError, match="every token's is None"):
        number_labels([None, None], str).learn(str)
    with pytest.raises(TypeError, match=r"Labels must be hashable. Got \[1\] \(list; 1\)"):
        number_labels([1, [1]], str)


def test_label_array_keeps_labels_as_they_are():
    assert label_array(["a\0", "b"]).dtype == object and label_array(["x" * 1000, "y"]).dtype == object
    assert label_array([(1, 2), (3, 4)]).shape == (2,) and label_array([2**70, 1]).tolist() == [2**70, 1]
