"""The cases that users of pytorch-crf rely on, and what is new.

The cases of pytorch-crf 0.7's own tests, and which test here is the same case:

    init: minimal, full, repr, tags that are not positive       a_new_layer, batch_first
    forward: without mask, reductions none, mean, token mean    log_likelihood_by_enumeration
    forward: with mask                                          masked_tokens_do_not_count
    forward: batched loss                                       batches_are_single_sequences_added_up
    forward and decode: batch first                             batch_first
    forward: dimensions, sizes of tags and mask, number of      bad_input_is_named
        tags, unknown reduction
    decode: with and without mask                               decoding_by_enumeration, without_a_mask_all_tokens_count
    decode: batched                                             a_batch_is_decoded_as_its_sequences_are
    decode: dimensions, number of tags, size of mask            bad_input_of_decoding_is_named
    forward and decode: first timestep masked                   the_first_token_must_not_be_masked
"""

from __future__ import annotations

import itertools
import math

import pytest

pytest.importorskip("torch.nn", reason="torch is not installed: make test-torch")
import numpy as np
import torch

from partwise import SequenceLabeler
from partwise.torch import CRF


@pytest.fixture
def layer():
    torch.manual_seed(0)
    return CRF(5)


def emissions_of(layer, T=3, B=2):
    torch.manual_seed(1)
    shape = (B, T, layer.num_tags) if layer.batch_first else (T, B, layer.num_tags)
    return torch.randn(*shape, requires_grad=True)


def tags_of(layer, T=3, B=2):
    torch.manual_seed(2)
    return torch.randint(0, layer.num_tags, (B, T) if layer.batch_first else (T, B))


def score(layer, emission, tags):
    """Of one sequence, (T, L), by its definition."""
    total = layer.start_transitions[tags[0]] + layer.end_transitions[tags[-1]]
    total = total + sum(emission[t, y] for t, y in enumerate(tags))
    return total + sum(layer.transitions[a, b] for a, b in itertools.pairwise(tags))


def log_likelihood(layer, emission, tags):
    everything = [score(layer, emission, ys) for ys in itertools.product(range(layer.num_tags), repeat=len(tags))]
    return score(layer, emission, tags) - torch.logsumexp(torch.stack(everything), 0)


def test_a_new_layer():
    layer = CRF(10)
    assert layer.num_tags == 10 and not layer.batch_first and repr(layer) == "CRF(num_tags=10)"
    assert layer.start_transitions.shape == layer.end_transitions.shape == (10,) and layer.transitions.shape == (10, 10)
    assert set(layer.state_dict()) == {"start_transitions", "end_transitions", "transitions"}
    assert all(p.abs().max() <= 0.1 for p in layer.parameters())
    with pytest.raises(ValueError, match="invalid number of tags: 0"):
        CRF(0)


def test_log_likelihood_by_enumeration(layer):
    emissions, tags = emissions_of(layer), tags_of(layer)
    wanted = [log_likelihood(layer, emissions[:, i], tags[:, i].tolist()) for i in range(2)]
    torch.testing.assert_close(layer(emissions, tags), sum(wanted))
    torch.testing.assert_close(layer(emissions, tags, reduction="none"), torch.stack(wanted))
    torch.testing.assert_close(layer(emissions, tags, reduction="mean"), sum(wanted) / 2)
    torch.testing.assert_close(layer(emissions, tags, reduction="token_mean"), sum(wanted) / 6)


def test_masked_tokens_do_not_count(layer):
    emissions, tags = emissions_of(layer), tags_of(layer)
    mask = torch.tensor([[1, 1], [1, 1], [1, 0]], dtype=torch.uint8)
    wanted = [log_likelihood(layer, emissions[:n, i], tags[:n, i].tolist()) for i, n in enumerate((3, 2))]
    torch.testing.assert_close(layer(emissions, tags, mask=mask), sum(wanted))
    torch.testing.assert_close(layer(emissions, tags, mask=mask.bool(), reduction="token_mean"), sum(wanted) / 5)


def test_batches_are_single_sequences_added_up(layer):
    emissions, tags = emissions_of(layer), tags_of(layer)
    one_by_one = sum(layer(emissions[:, i : i + 1], tags[:, i : i + 1]) for i in range(2))
    torch.testing.assert_close(layer(emissions, tags), one_by_one)


def test_batch_first(layer):
    emissions, tags = emissions_of(layer), tags_of(layer)
    first = CRF(5, batch_first=True)
    first.load_state_dict(layer.state_dict())
    mask = torch.tensor([[1, 1], [1, 1], [1, 0]], dtype=torch.bool)
    torch.testing.assert_close(first(emissions.transpose(0, 1), tags.T, mask.T), layer(emissions, tags, mask))
    assert first.decode(emissions.transpose(0, 1), mask.T) == layer.decode(emissions, mask)


def test_parameters_get_gradients(layer):
    layer(emissions_of(layer), tags_of(layer)).backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in layer.parameters())


def test_decoding_by_enumeration(layer):
    emissions = emissions_of(layer)
    mask = torch.tensor([[1, 1], [1, 1], [1, 0]], dtype=torch.bool)
    for i, (best, T) in enumerate(zip(layer.decode(emissions, mask), (3, 2), strict=True)):
        every = list(itertools.product(range(5), repeat=T))
        every.sort(key=lambda ys, i=i: -float(score(layer, emissions[:, i], ys).detach()))
        assert best == list(every[0])
        assert layer.decode(emissions, mask, k=4)[i] == [list(ys) for ys in every[:4]]


def test_marginals(layer):
    emissions = emissions_of(layer)
    marginals = layer.marginals(emissions)
    assert marginals.shape == emissions.shape
    torch.testing.assert_close(marginals.sum(-1), torch.ones(3, 2))
    torch.testing.assert_close(torch.autograd.grad(layer.distribution(emissions).log_partition.sum(), emissions)[0], marginals)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda layer: layer(torch.zeros(1, 2), torch.zeros(1, 2).long()), "emissions must have dimension of 3, got 2"),
        (lambda layer: layer(torch.zeros(1, 2, 4), torch.zeros(1, 2).long()), "expected last dimension of emissions is 5, got 4"),
        (lambda layer: layer(torch.zeros(1, 2, 5), torch.zeros(2, 2).long()), "emissions and tags must match"),
        (lambda layer: layer(torch.zeros(1, 2, 5), torch.zeros(1, 2).long(), torch.ones(1, 1)), "emissions and mask must match"),
        (
            lambda layer: layer(torch.zeros(1, 2, 5), torch.zeros(1, 2).long(), torch.tensor([[1, 0]])),
            "first timestep must all be on",
        ),
        (lambda layer: layer(torch.zeros(1, 2, 5), torch.zeros(1, 2).long(), reduction="avg"), "invalid reduction: avg"),
        (lambda layer: layer.decode(torch.zeros(1, 2)), "emissions must have dimension of 3"),
    ],
)
def test_bad_input_is_named(layer, call, message):
    with pytest.raises(ValueError, match=message):
        call(layer)


def test_a_batch_is_decoded_as_its_sequences_are(layer):
    emissions, mask = emissions_of(layer), torch.tensor([[1, 1], [1, 1], [1, 0]], dtype=torch.uint8)
    together = layer.decode(emissions, mask=mask)
    assert together == [layer.decode(emissions[:, i : i + 1], mask=mask[:, i : i + 1])[0] for i in range(2)]
    assert [len(y) for y in together] == [3, 2] and all(isinstance(k, int) for y in together for k in y)


def test_without_a_mask_all_tokens_count(layer):
    emissions, tags = emissions_of(layer), tags_of(layer)
    mask = torch.ones(3, 2, dtype=torch.uint8)
    torch.testing.assert_close(layer(emissions, tags), layer(emissions, tags, mask))
    assert layer.decode(emissions) == layer.decode(emissions, mask)


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize(
    ("emissions", "mask", "message"),
    [
        ((1, 2), None, "emissions must have dimension of 3, got 2"),
        ((1, 2, 4), None, "expected last dimension of emissions is 5, got 4"),
        ((1, 2, 5), [[1], [0]], r"the first two dimensions of emissions and mask must match, got \(1, 2\) and \(2, 1\)"),
    ],
)
def test_bad_input_of_decoding_is_named(batch_first, emissions, mask, message):
    with pytest.raises(ValueError, match=message):
        CRF(5, batch_first).decode(torch.zeros(emissions), None if mask is None else torch.tensor(mask))


@pytest.mark.parametrize("batch_first", [False, True])
def test_the_first_token_must_not_be_masked(batch_first):
    layer, mask = CRF(5, batch_first), torch.tensor([[0, 1], [1, 1]])
    emissions, tags = torch.zeros(2, 2, 5), torch.zeros(2, 2, dtype=torch.int64)
    for ask in (lambda m: layer(emissions, tags, m), lambda m: layer.decode(emissions, m)):
        with pytest.raises(ValueError, match="mask of the first timestep must all be on"):
            ask(mask)


def test_masks_end_once():
    layer, holes = CRF(5, batch_first=True), torch.tensor([[1, 1, 1], [1, 0, 1]])
    with pytest.raises(ValueError, match="'mask', row 1: it must be true up to the end"):
        layer(torch.zeros(2, 3, 5), torch.zeros(2, 3, dtype=torch.int64), holes)


def test_losses_constraints_and_sets_of_labels():
    torch.manual_seed(0)
    layer = CRF(3, batch_first=True, loss="hinge", constraints=[(None, 1), (0, 1), (2, None)])
    emissions, tags = torch.randn(2, 4, 3), torch.tensor([[0, 0, 2, 1], [2, 1, 1, 0]])
    assert layer(emissions, tags) <= 0
    for ys in layer.decode(emissions, k=5):
        for y in ys:
            assert y[0] != 1 and y[-1] != 2 and (0, 1) not in itertools.pairwise(y)
    plain = CRF(3, batch_first=True)
    sets = torch.zeros(2, 4, 3, dtype=torch.bool).scatter(2, tags[..., None], True)
    torch.testing.assert_close(plain(emissions, sets), plain(emissions, tags))
    assert plain(emissions, torch.ones_like(sets)).item() == pytest.approx(0.0, abs=1e-5)
    assert math.isfinite(float(plain(emissions, sets | (torch.rand(2, 4, 3) > 0.5))))


def test_it_is_pytorch_crf():
    peer = pytest.importorskip("torchcrf")
    torch.manual_seed(0)
    ours, theirs = CRF(7, batch_first=True), peer.CRF(7, batch_first=True)
    theirs.load_state_dict(ours.state_dict())
    emissions, tags = torch.randn(4, 6, 7), torch.randint(0, 7, (4, 6))
    mask = torch.arange(6) < torch.tensor([6, 4, 1, 3])[:, None]
    for reduction in ("none", "sum", "mean", "token_mean"):
        torch.testing.assert_close(ours(emissions, tags, mask, reduction), theirs(emissions, tags, mask, reduction))
    assert ours.decode(emissions, mask) == theirs.decode(emissions, mask)


# Weights go to taggers of the library and back, and to pytorch-crf and back


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
