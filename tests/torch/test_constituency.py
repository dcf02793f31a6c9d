"""Trees of spans: how they are written, sets of them as targets, and what is wrong with others."""

from __future__ import annotations

import pytest

pytest.importorskip("torch.nn", reason="torch is not installed: make test-torch")
import torch

from partwise.torch import Constituency, structured_loss


def test_spans_of_outputs_and_back():
    torch.manual_seed(0)
    tree = Constituency(torch.randn(2, 6, 6, 3), lengths=[5, 2])
    best = tree.argmax
    begins, ends, labels = tree.spans_of(best)
    assert (begins[0, 0], ends[0, 0], begins[1, 0], ends[1, 0]) == (0, 5, 0, 2)
    assert torch.equal(tree.codes_of(begins, ends, labels), best)
    total = sum(tree.tensors[0][0, begins[0, t], ends[0, t], labels[0, t]] for t in range(9))
    torch.testing.assert_close(total, tree.max[0])
    mixed = torch.cat([best[:1].flip(1), best[1:]])
    torch.testing.assert_close(tree.score_of(mixed), tree.max)  # in any order


def test_padding_may_hold_anything():
    torch.manual_seed(0)
    spans = torch.randn(1, 4, 4, dtype=torch.float64)
    wide = torch.full((1, 6, 6), torch.nan, dtype=torch.float64)
    wide[:, :4, :4] = spans
    alone, padded = Constituency(spans), Constituency(wide, lengths=[3], validate=False)
    torch.testing.assert_close(alone.log_partition, padded.log_partition)
    torch.testing.assert_close(alone.marginals.triu(1), padded.marginals[:, :4, :4].triu(1))
    assert torch.equal(alone.argmax[0], padded.argmax[0, :5])  # the same spans, the same numbers


def test_a_tree_that_is_not_binary_is_a_set_of_binary_ones():
    """Over three words, (0, 3) has label 1; whatever is below it, words aside, has the label of no constituent, 0."""
    torch.manual_seed(0)
    spans = torch.randn(1, 4, 4, 2, dtype=torch.float64)
    labels = torch.zeros(1, 4, 4, dtype=torch.int64)
    labels[0, 0, 3] = 1
    s = spans[0]
    words = s[0, 1, 0] + s[1, 2, 0] + s[2, 3, 0] + s[0, 3, 1]
    wanted = torch.logsumexp(torch.stack([words + s[0, 2, 0], words + s[1, 3, 0]]), 0)
    tree = Constituency(spans)
    allowed = tree.trees_with(labels)
    torch.testing.assert_close(structured_loss(tree, allowed, "crf"), tree.log_partition[0] - wanted)
    assert structured_loss(tree, allowed, "hinge") >= 0


def test_what_crosses_a_constituent_is_in_no_tree():
    labels = torch.zeros(1, 7, 7, dtype=torch.int64)
    labels[0, 1, 4] = labels[0, 4, 6] = 1
    found = Constituency(torch.zeros(1, 7, 7, 2)).trees_with(labels)
    for a in range(6):
        for b in range(a + 1, 7):
            crosses = any(a < i < b < j or i < a < j < b for i, j in ((1, 4), (4, 6)))
            wanted = [False, False] if crosses else [(a, b) not in ((1, 4), (4, 6)), (a, b) in ((1, 4), (4, 6))]
            assert found[0, a, b].tolist() == wanted


def test_costs_of_labels():
    tree = Constituency(torch.zeros(1, 3, 3, 2))
    target = tree.codes_of(torch.tensor([[0, 0, 1]]), torch.tensor([[2, 1, 2]]), torch.tensor([[1, 0, 0]]))
    (costs,) = tree.cost_tensors(target, 0.25)
    assert costs[0, 0, 2].tolist() == [0.25, 0.0] and costs[0, 0, 1].tolist() == [0.0, 0.25]
    wide = Constituency(torch.zeros(1, 4, 4, 2))
    other = wide.codes_of(torch.tensor([[0, 0, 1, 1, 2]]), torch.tensor([[3, 1, 3, 2, 3]]))
    assert wide.cost_tensors(other, 0.25)[0][0, 0, 2].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("n", [1, 2, 40])
def test_as_many_trees_as_catalan_counts(n):
    count = 1
    for k in range(n - 1):
        count = count * 2 * (2 * k + 1) // (k + 2)
    found = Constituency(torch.zeros(1, n + 1, n + 1, dtype=torch.float64)).log_partition
    torch.testing.assert_close(found, torch.tensor([float(count)], dtype=torch.float64).log())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Constituency(torch.zeros(1, 3, 4)), r"\(B, n \+ 1, n \+ 1\)"),
        (lambda: Constituency(torch.zeros(1, 3, 3).long()), "floating-point"),
        (lambda: Constituency(torch.zeros(1, 3, 3), lengths=[3]), "sentence 0: its length must be between 0 and 2"),
        (lambda: Constituency(torch.zeros(1, 3, 3)).log_prob(torch.tensor([[1, 0]])), "twice as many spans as words"),
        (lambda: Constituency(torch.zeros(1, 3, 3)).log_prob(torch.tensor([[1, 0, 3]])), "sentence 0: its span number 2 must be"),
        (lambda: Constituency(torch.zeros(1, 3, 3)).log_prob(torch.tensor([[1, 0, 0]])), "cross, or are the same"),
        (lambda: Constituency(torch.zeros(1, 4, 4)).log_prob(torch.tensor([[3, 1, 4, 0, 2]])), r"\(0, 2\) and \(1, 3\) cross"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
