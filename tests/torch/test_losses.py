"""Losses of the layers against those of the library, and against enumeration."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("torch.nn", reason="torch is not installed: make test-torch")
import torch

from partwise import Family, Ramp, SoftRamp
from partwise.losses.records import get_loss
from partwise.objective import losses_at
from partwise.structures.chain import chain_problem
from partwise.torch import LinearChain, structured_loss
from torch_cases import CASES, enumerated

NAMES = ["crf", "hinge", "softmax_margin", "perceptron", "ramp", "ramp_do", "ramp_2", "soft_ramp", Family(2.0, 0.5), Ramp(1, 0.5)]


@pytest.mark.parametrize("loss", NAMES, ids=str)
@pytest.mark.parametrize("partial", [False, True])
def test_chains_lose_what_the_library_says(loss, partial):
    rng = np.random.default_rng(0)
    L, lengths = 3, np.array([4, 1, 2])
    n = int(lengths.sum())
    x, w = np.eye(n), rng.normal(size=(n + L + 2) * L)
    cost = rng.uniform(0.5, 2, (L, L)) * (1 - np.eye(L))
    gold, known, sets = rng.integers(0, L, n), None, np.zeros((n, L), bool)
    sets[np.arange(n), gold] = True
    if partial:
        sets[1], sets[4] = True, [True, True, False]
        known = np.array([[True] * 3, [True, True, False]])
        gold[1], gold[4] = L, L + 1
    problem = chain_problem(x, lengths, gold, L, costs=cost, known=known)
    wanted = losses_at(problem, get_loss(loss), w)
    table = w[n * L :].reshape(-1, L)
    scores = LinearChain(
        torch.tensor(w[: n * L].reshape(n, L)),
        torch.tensor(table[:L]),
        torch.tensor(table[L]),
        torch.tensor(table[L + 1]),
        cu_seqlens=np.concatenate([[0], np.cumsum(lengths)]),
    )
    target = torch.tensor(sets) if partial else torch.tensor(gold)
    found = structured_loss(scores, target, loss, cost=cost, reduction="none")
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("loss", ["crf", "hinge", "ramp", Family(2.0, 0.5)], ids=str)
@pytest.mark.parametrize("kind", CASES)
def test_every_structure_by_enumeration(kind, loss):
    scores, target = CASES[kind](), CASES[kind](seed=5).argmax
    record = get_loss(loss)
    costs = scores.cost_tensors(target)
    free = scores._with([torch.zeros_like(t) if t.is_floating_point() else t for t in scores.tensors])
    of = free.augmented(costs, 1.0)
    found = structured_loss(scores, target, loss, reduction="none")
    for i, ((ys, s), (_, c)) in enumerate(zip(enumerated(scores), enumerated(of), strict=True)):
        n = int(scores._inside()[i].sum())
        t = next(k for k, y in enumerate(ys.tolist()) if y[:n] == target[i].tolist()[:n])
        a, beta = (record.a if isinstance(record, Ramp) else record.gamma), record.beta
        first = (s + a * c).max() if math.isinf(beta) else torch.logsumexp(beta * (s + a * c), 0) / beta
        second = (s - record.b * c).max() if isinstance(record, Ramp) else s[t]
        torch.testing.assert_close(found[i], first - second)
        assert c[t] == 0


def test_gradients_of_losses():
    torch.manual_seed(0)
    emissions = torch.randn(2, 3, 3, dtype=torch.float64, requires_grad=True)
    target = torch.tensor([[0, 1, 2], [1, 1, 0]])
    for loss in ("crf", "hinge", "softmax_margin", "ramp", "soft_ramp"):

        def value(e, loss=loss):
            return structured_loss(LinearChain(e, validate=False), target, loss)

        assert torch.autograd.gradcheck(value, emissions)


def test_weights_constraints_and_reductions():
    torch.manual_seed(0)
    scores, target = LinearChain(torch.randn(2, 3, 3)), torch.tensor([[0, 1, 2], [1, 1, 0]])
    each = structured_loss(scores, target, reduction="none")
    torch.testing.assert_close(structured_loss(scores, target), each.mean())
    torch.testing.assert_close(structured_loss(scores, target, reduction="sum"), each.sum())
    weight = torch.tensor([1.0, 3.0])
    torch.testing.assert_close(structured_loss(scores, target, weight=weight), (each * weight).sum() / 4)
    allowed = torch.ones(2, 3, 3, dtype=torch.bool)
    allowed[0, 0, 1:] = False  # only the truth is left there
    assert structured_loss(scores, target, allowed=allowed, reduction="none")[0] < each[0]
    with pytest.raises(ValueError, match="reduction"):
        structured_loss(scores, target, reduction="max")
    with pytest.raises(ValueError, match="weight for each of the 2"):
        structured_loss(scores, target, weight=torch.ones(3))
    with pytest.raises(ValueError, match="'slack' is not one of those"):
        structured_loss(scores, target, "slack")
    assert SoftRamp(1.0, 1.0) == get_loss("soft_ramp")
