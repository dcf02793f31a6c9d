"""The loss of a chain in one loop, and quick decoding, against the oracles in float64 and the plain-torch twin."""

from __future__ import annotations

import pytest

pytest.importorskip("torch.nn", reason="torch is not installed: make test-torch")
import torch

from partwise.torch import CRF, LinearChain, chain_ops, reference_only, structured_loss
from partwise.torch.chain_ops import chain_loss_operator, shares, whole_batch


def batch(lengths=(5, 0, 1, 3), L=3, spread=1.0, seed=0):
    """Emissions, transitions, start, stop, tags, lengths."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape):
        return (spread * torch.randn(*shape, generator=generator)).requires_grad_()

    T = max(lengths, default=0)
    tags = torch.randint(0, L, (len(lengths), T), generator=generator)
    return (draw(len(lengths), T, L), draw(L, L), draw(L), draw(L)), tags, torch.tensor(lengths, dtype=torch.int64)


def value_of(scores, tags, lengths, weight=None):
    return structured_loss(LinearChain(*scores, lengths=lengths), tags, "crf", weight=weight, reduction="sum")


@pytest.mark.parametrize("L", [1, 3, 16, 17, 300])
@pytest.mark.parametrize("spread", [1.0, 40.0])
def test_losses_and_gradients_are_those_of_float64(L, spread):
    scores, tags, lengths = batch(L=L, spread=spread)
    weight = torch.tensor([1.0, 2.0, 0.5, 0.0])
    found = value_of(scores, tags, lengths, weight)
    double = [s.detach().double().requires_grad_() for s in scores]
    wanted = value_of(double, tags, lengths, weight.double())
    torch.testing.assert_close(found.double(), wanted, rtol=1e-5, atol=1e-4)
    for a, b in zip(torch.autograd.grad(found, scores), torch.autograd.grad(wanted, double), strict=True):
        torch.testing.assert_close(a.double(), b, rtol=1e-4, atol=5e-5)


@pytest.mark.parametrize("spread", [1.0, 1e4])
def test_forbidden_scores(spread):
    scores, tags, lengths = batch((6, 4), spread=spread)
    with torch.no_grad():
        scores[1][0, 1] = scores[2][2] = scores[0][0, 3, 0] = -torch.inf
    tags[0] = torch.tensor([0, 2, 1, 1, 0, 0])
    tags[1, :4] = torch.tensor([1, 0, 0, 2])
    double = [s.detach().double().requires_grad_() for s in scores]
    found, wanted = value_of(scores, tags, lengths), value_of(double, tags, lengths)
    torch.testing.assert_close(found.double(), wanted, rtol=1e-5, atol=1e-3)
    for a, b in zip(torch.autograd.grad(found, scores), torch.autograd.grad(wanted, double), strict=True):
        assert a.isfinite().all()
        torch.testing.assert_close(a.double(), b, rtol=1e-4, atol=5e-5)
    tags[0, 0] = 2  # may not be the first
    impossible = value_of(scores, tags, lengths)
    assert impossible.item() == torch.inf and all(g.isfinite().all() for g in torch.autograd.grad(impossible, scores))


def test_derivatives_of_the_gradient_come_from_the_twin():
    def twice():
        scores, tags, lengths = batch()
        first = torch.autograd.grad(value_of(scores, tags, lengths), scores, create_graph=True)
        return torch.autograd.grad(sum((g**2).sum() for g in first), scores)

    quick = twice()
    with reference_only():
        for a, b in zip(quick, twice(), strict=True):
            torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("alone", range(4))
def test_each_input_can_be_the_only_one_with_a_gradient(alone):
    scores, tags, lengths = batch()
    every = torch.autograd.grad(value_of(scores, tags, lengths), scores)
    given = [s if k == alone else s.detach() for k, s in enumerate(scores)]
    torch.testing.assert_close(torch.autograd.grad(value_of(given, tags, lengths), given[alone])[0], every[alone])


def test_the_operator_is_what_torch_expects():
    scores, tags, lengths = batch()
    begins, _ = whole_batch(4, 5)
    torch.library.opcheck(chain_loss_operator, (*scores, begins, lengths, tags, torch.ones(4)))


@pytest.mark.parametrize("masked", [False, True])
def test_one_graph_for_the_compiler(masked):
    torch._dynamo.reset()
    layer = CRF(3, batch_first=True)
    scores, tags, _ = batch((4, 2))
    mask = torch.tensor([[True] * 4, [True, True, False, False]]) if masked else None

    def loss(emissions):
        return layer(emissions, tags, mask)

    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    of = (scores[0], *layer.parameters())
    torch.testing.assert_close(compiled(scores[0]), loss(scores[0]))
    for a, b in zip(torch.autograd.grad(compiled(scores[0]), of), torch.autograd.grad(loss(scores[0]), of), strict=True):
        torch.testing.assert_close(a, b)


def test_threads_change_nothing(monkeypatch):
    monkeypatch.setattr(chain_ops, "WORK", 20)
    scores, tags, lengths = batch((5, 0, 3, 4, 1, 2, 5, 5))
    assert len(shares(lengths.numpy(), 3)) == 8
    threads, found = torch.get_num_threads(), []
    try:
        for n in (1, 2, 2):
            torch.set_num_threads(n)
            value = value_of(scores, tags, lengths)
            best = LinearChain(*scores, lengths=lengths).argmax
            found.append((value, *torch.autograd.grad(value, scores), best))
    finally:
        torch.set_num_threads(threads)
    for other in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], other, strict=True))


@pytest.mark.parametrize("view", ["transposed", "expanded"])
def test_any_memory_order(view):
    scores, tags, lengths = batch((4, 4, 4, 4), L=4)
    emissions = scores[0].transpose(0, 1) if view == "transposed" else scores[0][:, :1].expand(4, 4, 4)
    given, plain = (emissions, *scores[1:]), (emissions.contiguous(), *scores[1:])
    torch.testing.assert_close(value_of(given, tags, lengths), value_of(plain, tags, lengths))
    a, b = (torch.autograd.grad(value_of(s, tags, lengths), scores[0])[0] for s in (given, plain))
    torch.testing.assert_close(a, b)


def test_empty_batches():
    layer = CRF(3, batch_first=True)
    for shape in ((0, 4, 3), (2, 0, 3), (0, 0, 3)):
        emissions = torch.zeros(shape, requires_grad=True)
        value = layer(emissions, torch.zeros(shape[:2], dtype=torch.int64))
        value.backward()
        assert value.item() == 0 and layer.decode(emissions) == [[] for _ in range(shape[0])]


def test_best_labels_are_those_of_the_oracle():
    for L in (1, 3, 33):
        scores, _, lengths = batch((7, 0, 1, 4), L=L)
        with torch.no_grad():
            scores[1][0] = -torch.inf
        quick = LinearChain(*scores, lengths=lengths)
        slow = LinearChain(*(s.detach().double() for s in scores), lengths=lengths)
        assert torch.equal(quick.argmax, slow.argmax)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s, tags: tags[3].fill_(3), r"sequence 3, token 0: labels must be in \[0, 3\). Got 3"),
        (lambda s, tags: tags[0, 4:].fill_(-1), r"sequence 0, token 4: labels must be in \[0, 3\). Got -1"),
        (lambda s, tags: s[0].data[3, 2].fill_(torch.nan), "sequence 3: its emissions have NaN or"),
        (lambda s, tags: s[0].data[0, 0].fill_(torch.inf), "sequence 0: its emissions have NaN or"),
        (lambda s, tags: s[1].data[0].fill_(torch.nan), "'transitions', 'start' or 'stop' have NaN"),
    ],
)
def test_bad_input_is_named(change, message):
    scores, tags, lengths = batch()
    change(scores, tags)
    layer = CRF(3, batch_first=True)
    with torch.no_grad():
        layer.transitions.copy_(scores[1])
    keep = lengths > 0
    mask = torch.arange(5) < lengths[keep][:, None]
    message = message.replace("sequence 3", "sequence 2")  # the empty one is left out
    with pytest.raises(ValueError, match=message):
        layer(scores[0][keep], tags[keep], mask)


def test_vmap_is_refused():
    layer = CRF(3, batch_first=True)
    for ask in (lambda e: layer(e[None], torch.zeros(1, 2, dtype=torch.int64)), lambda e: LinearChain(e[None]).log_partition):
        with pytest.raises(ValueError, match=r"torch.vmap is not supported"):
            torch.vmap(ask)(torch.zeros(4, 2, 3))
