"""A tagger from what looks like a layer of torch; with torch itself: tests/torch/test_crf.py."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from partwise import SequenceLabeler


class Tensor:
    """What is asked of a tensor."""

    def __init__(self, values):
        self.values = np.asarray(values, float)

    def detach(self):
        return self

    cpu = double = detach

    def numpy(self):
        return self.values


def layer(**more):
    names = ("transitions", "start_transitions", "end_transitions")
    values = ([[0.0, 3.0], [0.0, 0.0]], [1.0, 0.0], [0.0, 0.5])
    return SimpleNamespace(**{name: Tensor(value) for name, value in zip(names, values, strict=True)}, **more)


def test_labels_of_any_order():
    x = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0]])
    by_number = SequenceLabeler.from_torch(layer(), dtype="float64")
    by_name = SequenceLabeler.from_torch(layer(), ["z", "a"], dtype="float64")
    assert by_name.classes_.tolist() == ["a", "z"]
    (numbers,), (names,) = by_number.predict([x]), by_name.predict([x])
    assert names == [["z", "a"][k] for k in numbers] and numbers == [0, 1, 0]
    np.testing.assert_allclose(by_name.transitions_, [[0.0, 0.0], [3.0, 0.0]])
    np.testing.assert_allclose(by_number.predict_marginals([x])[0], by_name.predict_marginals([x])[0][:, ::-1])


def test_the_bias_of_a_linear_map_is_in_every_token():
    linear = SimpleNamespace(weight=Tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]), bias=Tensor([0.0, 9.0]))
    model = SequenceLabeler.from_torch(layer(loss="hinge"), linear=linear)
    assert model.loss == "hinge" and model.coef_.shape == (2, 3)
    assert model.predict([np.zeros((3, 3))]) == [[1, 1, 1]]
    np.testing.assert_allclose(model.start_, [1.0, 9.0])
    np.testing.assert_allclose(model.transitions_, [[0.0, 12.0], [0.0, 9.0]])


def test_what_does_not_fit_is_named():
    for change, message in (
        ({"classes": ["a"]}, "'classes' must be as many different ones"),
        ({"classes": ["a", "a"]}, "'classes' must be as many different ones"),
        ({"linear": SimpleNamespace(weight=Tensor(np.zeros((3, 4))), bias=None)}, "'linear' must have 2 outputs"),
        ({"hidden": 2}, "order=1 and hidden=1"),
    ):
        with pytest.raises(ValueError, match=message):
            SequenceLabeler.from_torch(layer(), **change)
    broken = layer()
    broken.transitions = Tensor([[np.nan, 0.0], [0.0, 0.0]])
    with pytest.raises(ValueError, match="not all finite"):
        SequenceLabeler.from_torch(broken)
    with pytest.raises(ValueError, match="Got dict"):
        SequenceLabeler.from_torch({})
