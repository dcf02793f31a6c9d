"""Batches whose examples lie end to end, and nested tensors, against the same examples padded."""

from __future__ import annotations

import pytest

pytest.importorskip("torch.nn", reason="torch is not installed: make test-torch")
import torch

from partwise.torch import Alignment, Constituency, DependencyTree, LinearChain, SemiMarkov, structured_loss

LENGTHS = torch.tensor([3, 0, 4, 1])
ENDS = torch.tensor([0, 3, 3, 7, 8])
INSIDE = torch.arange(4) < LENGTHS[:, None]


def pair(name):
    """The same distribution from padded scores and from scores that lie end to end; the scores; how marginals compare."""
    torch.manual_seed(0)
    if name == "segments":
        padded = torch.randn(4, 4, 3, 2)
        make = SemiMarkov
    elif name == "chain":
        padded = torch.randn(4, 4, 3)
        make = LinearChain
    elif name == "tree":
        padded = torch.randn(4, 4, 5, 2)
        make = DependencyTree
    else:
        padded = torch.randn(4, 4, 5)
        whole = torch.cat([padded, torch.zeros(4, 1, 5)], 1)
        packed = padded[INSIDE].requires_grad_()
        return Constituency(whole, lengths=LENGTHS), Constituency(packed, cu_seqlens=ENDS), packed, Constituency
    packed = padded[INSIDE].requires_grad_()
    return make(padded, lengths=LENGTHS), make(packed, cu_seqlens=ENDS), packed, make


@pytest.mark.parametrize("name", ["chain", "segments", "tree", "spans"])
def test_end_to_end_is_as_padded(name):
    padded, packed, scores, make = pair(name)
    torch.testing.assert_close(packed.log_partition, padded.log_partition)
    torch.testing.assert_close(packed.entropy, padded.entropy)
    assert torch.equal(packed.argmax, padded.argmax)
    one, other = packed.marginals, padded.marginals
    one, other = (one[0], other[0]) if isinstance(one, tuple) else (one, other)
    torch.testing.assert_close(one, other[:, :4][INSIDE])
    (gradient,) = torch.autograd.grad(packed.log_partition.sum(), scores, retain_graph=True)
    torch.testing.assert_close(gradient, one)
    target = packed.argmax
    rows = target[:, :4][INSIDE] if name != "spans" else target
    torch.testing.assert_close(packed.log_prob(rows), padded.log_prob(target))
    structured_loss(packed, rows, "hinge").backward()
    nested = torch.nested.nested_tensor_from_jagged(scores.detach(), ENDS)
    torch.testing.assert_close(make(nested).log_partition, padded.log_partition)
    allowed = torch.ones(scores.shape if name != "segments" else (8, 4), dtype=torch.bool)
    torch.testing.assert_close(packed.restricted(allowed).log_partition, padded.log_partition)


@pytest.mark.parametrize("local", [False, True])
def test_alignments_end_to_end(local):
    torch.manual_seed(1)
    others = torch.tensor([2, 3, 5, 0])
    ends = torch.tensor([0, 2, 5, 10, 10])
    match, gaps = torch.randn(4, 4, 5), (torch.randn(4, 4), torch.randn(4, 5))
    inside = torch.arange(5) < others[:, None]
    padded = Alignment(match, gaps, -0.5, lengths=torch.stack([LENGTHS, others], 1), local=local)
    rows = match[INSIDE].requires_grad_()
    packed = Alignment(rows, (gaps[0][INSIDE], gaps[1][inside]), -0.5, cu_seqlens=(ENDS, ends), local=local)
    torch.testing.assert_close(packed.log_partition, padded.log_partition)
    assert torch.equal(packed.argmax, padded.argmax)
    for one, other, there in zip(packed.marginals, padded.marginals, (INSIDE, INSIDE, inside), strict=True):
        torch.testing.assert_close(one, (other if other.shape[1] != 4 or other is padded.marginals[0] else other.mT)[there])
    torch.testing.assert_close(packed.log_prob(packed.argmax[INSIDE]), padded.log_prob(padded.argmax))
    packed.log_partition.sum().backward()
    torch.testing.assert_close(rows.grad, packed.marginals[0])


def test_no_examples_and_bad_ends():
    assert DependencyTree(torch.zeros(0, 1), cu_seqlens=[0, 0]).log_partition.tolist() == [0.0]
    assert Constituency(torch.zeros(0, 1), cu_seqlens=[0]).argmax.shape == (0, 0)
    with pytest.raises(ValueError, match="number of words, 3"):
        DependencyTree(torch.zeros(3, 4), cu_seqlens=[0, 2])
    with pytest.raises(ValueError, match="not both"):
        SemiMarkov(torch.zeros(3, 2, 1), cu_seqlens=[0, 3], lengths=[3])
    with pytest.raises(ValueError, match="5 columns"):
        Alignment(torch.zeros(8, 4), 0.0, 0.0, cu_seqlens=(ENDS, [0, 5, 5, 5, 5]))
