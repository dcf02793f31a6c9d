"""Weights of layers go to taggers of the library and back, and to pytorch-crf and back."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

pytest.importorskip("torch.nn", reason="torch is not installed: make test-torch")
import torch

from partwise import SequenceLabeler
from partwise.torch import CRF


def test_a_tagger_says_what_the_layer_says():
    torch.manual_seed(0)
    layer, linear = CRF(3, batch_first=True, constraints=[(0, 2), (None, 1)]), torch.nn.Linear(4, 3)
    torch.nn.init.normal_(layer.transitions)
    states = torch.randn(2, 5, 4)
    emissions = linear(states).detach()
    names = ["noun", "verb", "adjective"]
    wanted = [[names[k] for k in y] for y in layer.decode(emissions)]
    by_states = SequenceLabeler.from_torch(layer, names, linear, dtype="float64")
    by_emissions = SequenceLabeler.from_torch(layer, names, dtype="float64")
    assert by_states.predict(list(states.numpy())) == wanted
    assert by_emissions.predict(list(emissions.numpy())) == wanted
    order = [names.index(name) for name in by_states.classes_]
    for i, p in enumerate(by_states.predict_marginals(list(states.numpy()))):
        np.testing.assert_allclose(p, layer.marginals(emissions)[i][:, order].detach().numpy(), atol=1e-5)


def test_and_back(tmp_path):
    torch.manual_seed(0)
    layer, linear = CRF(3, batch_first=True, loss="hinge", constraints=[(0, 2)]), torch.nn.Linear(4, 3, bias=False)
    model = SequenceLabeler.from_torch(layer, linear=linear)
    model.save(tmp_path / "model")
    model = SequenceLabeler.load(tmp_path / "model")
    again = CRF.from_labeler(model)
    for name, value in layer.state_dict().items():
        torch.testing.assert_close(again.state_dict()[name], value)
    assert again.loss == "hinge" and torch.equal(again.wall, layer.wall) and again.batch_first
    np.testing.assert_allclose(model.coef_, linear.weight.detach().numpy(), rtol=1e-6)
    states = torch.randn(1, 6, 4)
    assert again.decode(linear(states))[0] == model.predict([states[0].numpy()])[0]


def test_what_does_not_fit_is_named():
    layer = CRF(3)
    with pytest.raises(ValueError, match="'classes' must be as many different ones"):
        SequenceLabeler.from_torch(layer, ["a", "b"])
    with pytest.raises(ValueError, match="'linear' must have 3 outputs"):
        SequenceLabeler.from_torch(layer, linear=torch.nn.Linear(3, 2))
    with pytest.raises(ValueError, match="Got Linear"):
        SequenceLabeler.from_torch(torch.nn.Linear(2, 2))
    with pytest.raises(ValueError, match="order=1 and hidden=1"):
        SequenceLabeler.from_torch(layer, order=2)
    with pytest.raises(ValueError, match="needs labels="):
        CRF(3, constraints="iob2")


def test_constraints_by_the_name_of_a_scheme():
    labels = ["O", "B-X", "I-X"]
    layer = CRF(3, batch_first=True, constraints="iob2", labels=labels)
    for y in layer.decode(torch.randn(1, 5, 3, generator=torch.Generator().manual_seed(0)), k=50)[0]:
        assert y[0] != 2 and (0, 2) not in itertools.pairwise(y)


def test_state_dicts_of_pytorch_crf():
    peer = pytest.importorskip("torchcrf")
    torch.manual_seed(0)
    ours, theirs = CRF(4), peer.CRF(4)
    ours.load_state_dict(theirs.state_dict())
    assert all(torch.equal(a, b) for a, b in zip(ours.state_dict().values(), theirs.state_dict().values(), strict=True))
    theirs.load_state_dict(CRF(4).state_dict())
    assert SequenceLabeler.from_torch(theirs).classes_.tolist() == [0, 1, 2, 3]
