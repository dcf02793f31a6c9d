"""Chains on the device: sums, best labels, the fused loss, chunks of long chains, and what has no kernel."""

from __future__ import annotations

import pytest

pytest.importorskip("torch.nn", reason="torch is not installed: make test-torch")
import torch

from partwise.torch.reference import chain_log_partition


def batch(T, L, spread, each=False, packed=False):
    torch.manual_seed(0)
    lengths = torch.tensor([T, 1, 0, T - 1])
    n = 4 if each else 1
    rows = int(lengths.sum()) if packed else 4 * T
    begins = lengths.cumsum(0) - lengths if packed else torch.arange(4) * T
    tensors = [torch.randn(rows, L) * spread, begins, torch.randn(n, L + 1, L) * spread, torch.randn(n, L) * spread]
    return tensors, lengths, [L, T, int(not packed)]


@pytest.mark.parametrize(
    ("L", "spread", "options"), [(3, 1.0, {}), (17, 40.0, {}), (3, 3.0, {"each": True}), (1, 1.0, {"packed": True})]
)
def test_chains(agree, scalar_masks, L, spread, options):
    tensors, lengths, sizes = batch(6, L, spread, **options)
    agree("chain", tensors, lengths, sizes, 6, exact=5e-5)


def test_long_chains_in_chunks(agree, scalar_masks, monkeypatch):
    from partwise.torch.cuda import chain

    monkeypatch.setattr(chain, "LONG", 4)
    monkeypatch.setattr(chain, "CHUNK", 4)
    tensors, lengths, sizes = batch(9, 3, 3.0)
    agree("chain", tensors, lengths, sizes, 9, exact=5e-5)


@pytest.mark.parametrize(("each", "packed"), [(False, True), (True, False)])
def test_many_labels_in_tiles(agree, monkeypatch, each, packed):
    from partwise.torch.cuda import chain

    monkeypatch.setattr(chain, "FEW_LABELS", 4)
    monkeypatch.setattr(chain, "TILE", {"BI": 4, "BJ": 8})
    tensors, lengths, sizes = batch(6, 11, 20.0, each=each, packed=packed)
    agree("chain", tensors, lengths, sizes, 6, exact=5e-5)


@pytest.mark.parametrize(("packed", "few"), [(False, 128), (True, 128), (False, 2)])
def test_the_loss_in_one_operator(device, scalar_masks, monkeypatch, packed, few):
    from partwise.torch.cuda import chain

    monkeypatch.setattr(chain, "FEW_LABELS", few)
    tensors, lengths, (L, T, _) = batch(7, 3, 2.0, packed=packed)
    emissions, begins, table, stop = tensors
    gold, weights = torch.randint(0, L, emissions.shape[:1]), torch.tensor([0.5, 1.0, 2.0, -1.0])
    given = [t.to(device).requires_grad_() for t in (emissions, table[0, :L], table[0, L], stop[0])]
    rest = (gold.to(device), begins.to(device), lengths.to(device, torch.int32), T)
    (chain.chain_loss(*given, *rest)[0] * weights.to(device)).sum().backward()
    twins = [t.detach().double().cpu().requires_grad_() for t in given]
    e, w, s, f = twins
    whole = [e, begins, torch.cat([w, s[None]])[None].expand(4, L + 1, L), f[None].expand(4, L)]
    total = (chain_log_partition(whole, lengths, [L, T, int(not packed)]) * weights).sum()
    for b, n in enumerate(lengths.tolist()):
        y, x = gold[begins[b] : begins[b] + n], e[begins[b] : begins[b] + n]
        if n:
            path = x[torch.arange(n), y].sum() + s[y[0]] + f[y[-1]] + w[y[:-1], y[1:]].sum()
            total = total - weights[b] * path
    total.backward()
    for a, b in zip(given, twins, strict=True):
        torch.testing.assert_close(a.grad.double().cpu(), b.grad, rtol=1e-5, atol=1e-5)


def test_labels_as_lists(device, scalar_masks):
    from partwise.torch import CRF
    from partwise.torch.cuda import chain

    torch.manual_seed(0)
    layer, emissions = CRF(5, batch_first=True), torch.randn(3, 6, 5)
    mask = torch.arange(6) < torch.tensor([6, 1, 4])[:, None]
    transitions, start, stop = (t.detach().to(device) for t in layer._scores())
    found = chain.best_lists(emissions.to(device), mask.sum(1), transitions, start, stop)
    assert found == layer.decode(emissions, mask)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_what_has_no_kernel_goes_step_by_step(dtype):
    pytest.importorskip("triton", reason="triton is not installed")
    from partwise.torch import operators
    from partwise.torch.cuda import chain

    tensors, lengths, sizes = batch(6, 3, 3.0, each=True)
    tensors = [t.to(dtype) if t.is_floating_point() else t for t in tensors]
    values, outputs = chain.best_by_steps(*tensors, lengths, 6)
    wanted, of_wanted = operators._best(operators.CHAIN, tensors, lengths, sizes, 6)
    torch.testing.assert_close(values, wanted)
    assert torch.equal(outputs, of_wanted)


def test_which_chains_have_a_kernel():
    pytest.importorskip("triton", reason="triton is not installed")
    from partwise.torch.cuda import chain

    assert chain.is_served(torch.zeros(2, 1000)) and chain.is_served(torch.zeros(2, 3, dtype=torch.float16))
    assert not chain.is_served(torch.zeros(2, 3000)) and not chain.is_served(torch.zeros(2, 3, dtype=torch.float64))
