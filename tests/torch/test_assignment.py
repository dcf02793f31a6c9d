"""Assignments by enumeration, and what they refuse."""

from __future__ import annotations

import itertools

import pytest

pytest.importorskip("torch.nn", reason="torch is not installed: make test-torch")
import torch

from partwise.losses.records import get_loss
from partwise.torch import Assignment, structured_loss

LENGTHS = [[2, 4], [3, 3], [0, 2], [1, 1]]


def every(scores, n, m):
    """All assignments of one example, the best first."""
    found = [(sum(float(scores[i, j]) for i, j in enumerate(y)), list(y)) for y in itertools.permutations(range(m), n)]
    return sorted(found, key=lambda pair: -pair[0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_best_and_k_best_by_enumeration(dtype):
    torch.manual_seed(0)
    match = torch.randn(4, 3, 4).to(dtype)
    match[0, 1, 2] = -torch.inf
    assignment = Assignment(match, lengths=LENGTHS)
    outputs, values = assignment.topk(5)
    for b, (n, m) in enumerate(LENGTHS):
        wanted = [(value, y) for value, y in every(match[b].double(), n, m) if value > -torch.inf][:5]
        assert outputs[b, : len(wanted), :n].tolist() == [y for _, y in wanted]
        assert values[b].tolist()[: len(wanted)] == pytest.approx([value for value, _ in wanted], abs=1e-5)
        assert (values[b, len(wanted) :] == -torch.inf).all()
        assert assignment.argmax[b, :n].tolist() == wanted[0][1]


@pytest.mark.parametrize("loss", ["hinge", "perceptron", "ramp"])
def test_losses_by_enumeration(loss):
    torch.manual_seed(0)
    match = torch.randn(1, 3, 4, dtype=torch.float64, requires_grad=True)
    target = torch.tensor([[3, 0, 1]])
    found = structured_loss(Assignment(match), target, loss)
    rows = [(s, sum(a != b for a, b in zip(y, [3, 0, 1], strict=True))) for s, y in every(match[0].detach(), 3, 4)]
    gold = sum(float(match.detach()[0, i, j]) for i, j in enumerate([3, 0, 1]))
    high = max(s + (c if loss != "perceptron" else 0) for s, c in rows)
    low = gold if loss != "ramp" else max(s - get_loss(loss).b * c for s, c in rows)
    assert float(found.detach()) == pytest.approx(high - low)
    assert torch.autograd.gradcheck(lambda m: structured_loss(Assignment(m, validate=False), target, loss), match)


def test_what_needs_sums_is_refused():
    assignment = Assignment(torch.zeros(1, 2, 2))
    for ask in (
        lambda: assignment.log_partition,
        lambda: assignment.marginals,
        lambda: assignment.entropy,
        lambda: assignment.kl(assignment),
        lambda: assignment.log_prob(torch.tensor([[0, 1]])),
        lambda: assignment.sample(2),
        lambda: structured_loss(assignment, torch.tensor([[0, 1]]), "crf"),
    ):
        with pytest.raises(ValueError, match="permanents, which cannot be computed"):
            ask()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Assignment(torch.zeros(1, 3, 2)), "example 0: it must have at most 3 rows"),
        (lambda: Assignment(torch.zeros(1, 2, 2), lengths=[1]), "rows and columns of each of the 1"),
        (lambda: Assignment(torch.zeros(1, 2, 2)).score_of(torch.tensor([[0, 0]])), "example 0, row 1: its column"),
        (lambda: Assignment(torch.zeros(1, 2, 2)).score_of(torch.tensor([[0, 2]])), "example 0, row 1: its column"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
