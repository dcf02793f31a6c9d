"""Tensors that do not fit, found by the campaign: each is a message, and none reaches a loop that reads beyond it."""

from __future__ import annotations

import math

import pytest

pytest.importorskip("torch.nn", reason="torch is not installed: make test-torch")
import torch

import partwise
from partwise.torch import CRF, Alignment, Assignment, Constituency, DependencyTree, LinearChain, SemiMarkov, structured_loss

pytestmark = pytest.mark.interpreted


@pytest.fixture(autouse=True)
def interpreted():
    with partwise.interpret():
        yield


@pytest.mark.parametrize(
    ("made", "allowed"),
    [
        (lambda: SemiMarkov(torch.zeros(1, 1, 1, 4), lengths=[1]), (0, 1, 8)),
        (lambda: SemiMarkov(torch.zeros(1, 2, 1, 4)), (3, 1, 2, 8)),
        (lambda: LinearChain(torch.zeros(3, 2, 1), lengths=[1, 1, 1]), (3, 2, 4)),
        (lambda: DependencyTree(torch.zeros(1, 2, 3)), (5, 2, 3)),
        (lambda: Constituency(torch.zeros(1, 3, 3)), (2, 3, 3)),
        (lambda: Alignment(torch.zeros(1, 2, 2), 0.0, 0.0), (0, 2, 2)),
        (lambda: Assignment(torch.zeros(1, 2, 2)), (2, 2, 2)),
    ],
)
def test_what_is_allowed_does_not_make_scores_larger_or_smaller(made, allowed):
    """Broadcast, a set of another shape would leave loops with fewer scores than their lengths say."""
    with pytest.raises(ValueError, match="shape"):
        _ = made().restricted(torch.ones(allowed, dtype=torch.bool)).argmax


def test_costs_do_not_make_scores_larger():
    found = DependencyTree(torch.zeros(1, 2, 3))
    with pytest.raises(ValueError, match="must have the shape of the scores"):
        structured_loss(found, torch.tensor([[0, 1]]), "hinge", cost=torch.ones(4, 1, 1, 1))


def test_an_empty_batch_has_empty_answers():
    assert LinearChain(torch.zeros(0, 3, 4), torch.zeros(4, 4), torch.zeros(4), torch.zeros(0, 4)).argmax.shape == (0, 3)
    none = SemiMarkov(torch.zeros(1, 3, 0, 2), lengths=[0])
    assert none.score_of(torch.zeros(1, 3, dtype=torch.int64)).tolist() == [0.0]


def test_targets_and_masks_that_are_none():
    chain = LinearChain(torch.zeros(1, 2, 3))
    assert float(structured_loss(chain, [[0, 1]], "hinge")) == 2.0  # type: ignore[arg-type]
    with pytest.raises((ValueError, TypeError, RuntimeError)):
        structured_loss(chain, None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="a label for each token"):
        chain.score_of(torch.zeros(1, 2, 1, dtype=torch.int64))
    with pytest.raises(ValueError, match="Sets of labels must have the shape of the emissions"):
        structured_loss(LinearChain(torch.zeros(1, 2, 2)), torch.ones(2, dtype=torch.bool), "hinge")
    with pytest.raises(ValueError, match="'mask' must be a tensor"):
        SemiMarkov(torch.zeros(1, 2, 1, 2), mask=[[1, 1]])
    with pytest.raises(TypeError, match="tags must be a tensor, got list"):
        CRF(3, batch_first=True)(torch.zeros(1, 2, 3), [[0, 1]])
    with pytest.raises(ValueError, match="is no segment"):
        SemiMarkov(torch.zeros(1, 2, 2, 3)).score_of(torch.tensor([[2**31, 2**31 - 3]]))
    with pytest.raises(ValueError, match="Sets of columns must have the shape"):
        structured_loss(Assignment(torch.zeros(1, 2, 2)), torch.ones(1, 2, dtype=torch.bool), "hinge")


@pytest.mark.parametrize(
    "made", [lambda: LinearChain(torch.zeros(1, 2, 3), stop=0.0), lambda: SemiMarkov(torch.zeros(1, 2, 1, 2), stop=0.0)]
)
def test_scores_that_are_no_tensors(made):
    with pytest.raises(ValueError, match="'stop' must be a floating-point tensor"):
        made()


def test_gaps_of_one_sequence_only():
    with pytest.raises(ValueError, match="a pair. Got 1"):
        Alignment(torch.zeros(1, 2, 2), [torch.zeros(1, 2)], 0.0)


@pytest.mark.parametrize("transition", [(0, 99), (-1, 0), (3, None)])
def test_constraints_on_labels_that_are_not_there(transition):
    with pytest.raises(ValueError, match="is not one of 3 labels"):
        CRF(3, constraints=[transition])


LAYER = lambda: CRF(3, batch_first=True)  # noqa: E731
ZEROS = torch.zeros


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: LAYER()(ZEROS(1, 2, 3), ZEROS(1, 2)), "tags must be integers, or sets of labels; got torch.float32"),
        (lambda: LAYER()(ZEROS(1, 2, 3), torch.zeros(1, 2, device="meta").long()), "'tags' is on meta, but 'emissions' on cpu"),
        (lambda: LAYER()(ZEROS(1, 1, 3), torch.zeros(1, 1).long(), torch.ones(1, 1, device="meta")), "'mask' is on meta"),
        (lambda: CRF("3"), "invalid number of tags: 3"),
        (lambda: CRF(3.0), "invalid number of tags: 3.0"),
        (lambda: LinearChain(ZEROS(1, 2, 3), lengths=[1], mask=torch.ones(1, 2)), "'lengths' or 'mask', not both"),
        (lambda: SemiMarkov(ZEROS(1, 2, 1, 3), lengths=[1], mask=torch.ones(1, 2)), "'lengths' or 'mask', not both"),
        (lambda: LinearChain(ZEROS(1, 2, 3), lengths=[1.5]), "'lengths' must be integers. Got torch.float32"),
        (lambda: Alignment(ZEROS(1, 2, 2), 0.0, 0.0, lengths=[[1.5, 1.0]]), "'lengths' must be integers"),
        (lambda: Assignment(ZEROS(1, 2, 2), lengths=[[1.5, 1.0]]), "'lengths' must be integers"),
        (lambda: LinearChain(ZEROS(1, 2, 0)), "'emissions' must have at least one label"),
        (lambda: SemiMarkov(ZEROS(1, 2, 1, 0)), "'segments' must have at least one label"),
        (lambda: DependencyTree(ZEROS(1, 2, 3, 0)), "'arcs' must have at least one label"),
        (lambda: Constituency(ZEROS(1, 3, 3, 0)), "'spans' must have at least one label"),
        (lambda: LinearChain(ZEROS(1, 2, 3)).log_prob(ZEROS(1, 2)), "'outputs' must be integers"),
        (lambda: SemiMarkov(ZEROS(1, 2, 1, 3)).log_prob(ZEROS(1, 2)), "'outputs' must be integers"),
        (lambda: DependencyTree(ZEROS(1, 2, 3)).log_prob(ZEROS(1, 2)), "'outputs' must be integers"),
        (lambda: Constituency(ZEROS(1, 2, 2)).log_prob(ZEROS(1, 1)), "'outputs' must be integers"),
        (lambda: Alignment(ZEROS(1, 2, 2), 0.0, 0.0).log_prob(ZEROS(1, 2)), "'outputs' must be integers"),
        (lambda: Assignment(ZEROS(1, 2, 2)).score_of(ZEROS(1, 2)), "'outputs' must be integers"),
        (lambda: LinearChain(ZEROS(1, 2, 3)).topk(2.5), "must be an integer, at least 1. Got 2.5"),
        (lambda: LinearChain(ZEROS(1, 2, 3)).sample(-1), "must be an integer, at least 0. Got -1"),
        (lambda: SemiMarkov(ZEROS(1, 2, 1, 3), stop=torch.zeros(3, device="meta")), "'stop' is on meta"),
        (lambda: DependencyTree(ZEROS(1, 2, 3)).log_prob(torch.tensor([[2, 1]])), "sentence 0: its words are each other's heads"),
        (lambda: DependencyTree(ZEROS(1, 2, 3)).log_prob(torch.tensor([[0, 0]])), "several words hang from the root"),
        (
            lambda: structured_loss(DependencyTree(ZEROS(1, 4, 5), projective=True), torch.tensor([[0, 1, 1, 2]]), "hinge"),
            "its arcs cross",
        ),
        (
            lambda: structured_loss(LinearChain(ZEROS(1, 1, 2)), torch.tensor([[0]]), allowed=ZEROS(1, 1, 2)),
            "'allowed' must be a bool",
        ),
        (lambda: DependencyTree(ZEROS(1, 2, 3)).restricted(torch.ones(1, 2, 3).long()), "'allowed' must be a bool tensor"),
        (
            lambda: structured_loss(LinearChain(ZEROS(1, 1, 1)), torch.tensor([[0]]), "hinge", cost=[[math.nan]]),
            "'cost' must be finite",
        ),
    ],
)
def test_each_is_named(ask, message):
    with pytest.raises(ValueError, match=message):
        ask()


def test_what_is_no_distribution_or_no_tensor():
    with pytest.raises(TypeError, match="Expected the scores of a batch as LinearChain"):
        structured_loss(torch.zeros(1, 2, 3), torch.tensor([[0, 1]]))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="emissions must be a tensor, got list"):
        LAYER()([[[0.0, 0.0, 0.0]]], torch.tensor([[0]]))


def test_trees_that_are_some_are_not_refused():
    for heads in ([0, 1, 1, 3], [2, 0, 2, 3], [4, 1, 2, 0]):
        assert DependencyTree(torch.zeros(1, 4, 5), projective=True).log_prob(torch.tensor([heads])).isfinite()
    tree = DependencyTree(torch.zeros(2, 4, 5), lengths=[2, 4], single_root=False)
    assert tree.log_prob(torch.tensor([[0, 0, 3, 3], [3, 4, 0, 1]])).isfinite().all()


def test_the_best_of_nothing_is_minus_infinity():
    arcs = torch.full((1, 2, 3), -torch.inf)
    arcs[..., 0] = 0.0  # both words below the root, or none
    tree = DependencyTree(arcs.requires_grad_())
    assert tree.max.item() == tree.log_partition.item() == -torch.inf
    assert DependencyTree(arcs, single_root=False).max.item() == 0.0
    tree.max.sum().backward()
    assert not arcs.grad.any()


@pytest.mark.parametrize("pair", [[[0, 2]], 3, [None, [0, 2]], [[0, 2], []], [[0, 2], [0, 1, 2]], [[0, 2], None]])
def test_pairs_of_sequences_end_to_end_need_two_lists_of_ends(pair):
    with pytest.raises((ValueError, TypeError, RuntimeError), match=r"cu_seqlens|None"):
        Alignment(torch.zeros(2, 2), 0.5, 0.5, cu_seqlens=pair)
    both = Alignment(torch.zeros(2, 2), 0.5, 0.5, cu_seqlens=torch.tensor([[0, 2], [0, 2]]))  # a tensor is a pair, too
    assert both.argmax.shape == (1, 2)
