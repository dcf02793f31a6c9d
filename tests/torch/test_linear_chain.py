from __future__ import annotations

import pytest

pytest.importorskip("torch.nn", reason="torch is not installed: make test-torch")
import torch

from partwise.torch import LinearChain, structured_loss


def test_sequences_end_to_end_are_the_same_as_padded_ones():
    torch.manual_seed(0)
    lengths, L = [2, 0, 3], 4
    padded, transitions = torch.randn(3, 3, L, dtype=torch.float64), torch.randn(L, L, dtype=torch.float64)
    flat = torch.cat([padded[i, :n] for i, n in enumerate(lengths)]).requires_grad_()
    a, b = LinearChain(padded, transitions, lengths=lengths), LinearChain(flat, transitions, cu_seqlens=[0, 2, 2, 5])
    torch.testing.assert_close(a.log_partition, b.log_partition)
    torch.testing.assert_close(a.entropy, b.entropy)
    assert torch.equal(a.argmax, b.argmax)
    target = torch.tensor([1, 0, 3, 2, 1])
    full = torch.zeros(3, 3, dtype=torch.int64)
    full[0, :2], full[2] = target[:2], target[2:]
    for loss in ("crf", "hinge", "ramp"):
        torch.testing.assert_close(
            structured_loss(a, full, loss, reduction="none"), structured_loss(b, target, loss, reduction="none")
        )
    gradient = torch.autograd.grad(b.log_partition.sum(), flat)[0]
    torch.testing.assert_close(gradient, b.marginals[0])
    torch.testing.assert_close(gradient.sum(1), torch.ones(5, dtype=torch.float64))


def test_scores_of_each_sequence():
    torch.manual_seed(0)
    emissions = torch.randn(2, 3, 2, dtype=torch.float64)
    transitions, start, stop = (torch.randn(2, *shape, dtype=torch.float64) for shape in ((2, 2), (2,), (2,)))
    both = LinearChain(emissions, transitions, start, stop)
    for i in range(2):
        alone = LinearChain(emissions[i : i + 1], transitions[i], start[i], stop[i])
        torch.testing.assert_close(both.log_partition[i : i + 1], alone.log_partition)
        assert torch.equal(both.argmax[i], alone.argmax[0])


def test_transitions_of_each_step():
    torch.manual_seed(0)
    emissions, transitions, start = torch.randn(2, 4, 3).double(), torch.randn(3, 3).double(), torch.randn(3).double()
    steps = transitions.expand(2, 3, 3, 3).contiguous()
    steps[1, 2] = torch.nan  # behind the end
    same = LinearChain(emissions, transitions, start, lengths=[4, 3])
    each = LinearChain(emissions, steps, start, lengths=[4, 3], validate=False)
    torch.testing.assert_close(same.log_partition, each.log_partition)
    torch.testing.assert_close(same.entropy[:1], each.entropy[:1])
    torch.testing.assert_close(same.marginals[1], each.marginals[1].sum(1))
    assert torch.equal(same.argmax, each.argmax)
    target = torch.tensor([[0, 1, 2, 0], [2, 2, 1, 0]])
    for loss in ("crf", "hinge"):
        torch.testing.assert_close(structured_loss(same, target, loss), structured_loss(each, target, loss))
    with pytest.raises(ValueError, match="'transitions' for each step must have shape"):
        LinearChain(emissions, steps[:, :2])
    with pytest.raises(ValueError, match="over the same outputs"):
        same.kl(each)


@pytest.mark.parametrize("view", ["transposed", "expanded"])
def test_any_memory_order(view):
    torch.manual_seed(0)
    emissions = torch.randn(3, 2, 4, dtype=torch.float64)
    given = emissions.transpose(0, 1) if view == "transposed" else emissions[:1].transpose(0, 1).expand(2, 5, 4)
    torch.testing.assert_close(LinearChain(given).log_partition, LinearChain(given.contiguous()).log_partition)


def test_one_graph_for_the_compiler():
    torch._dynamo.reset()

    def loss(emissions, transitions, target):
        return structured_loss(LinearChain(emissions, transitions), target, "crf")

    torch.manual_seed(0)
    emissions, transitions = torch.randn(2, 3, 4, requires_grad=True), torch.randn(4, 4, requires_grad=True)
    target = torch.tensor([[0, 1, 2], [3, 0, 1]])
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(emissions, transitions, target), loss(emissions, transitions, target))
    for a, b in zip(
        torch.autograd.grad(compiled(emissions, transitions, target), [emissions, transitions]),
        torch.autograd.grad(loss(emissions, transitions, target), [emissions, transitions]),
        strict=True,
    ):
        torch.testing.assert_close(a, b)
