"""Sums over spanning trees on the device, against all trees one by one: right at any spread of scores."""

from __future__ import annotations

import itertools

import pytest

pytest.importorskip("torch.nn", reason="torch is not installed: make test-torch")
import torch


def every_tree(n, single_root):
    for heads in itertools.product(range(n + 1), repeat=n):
        above = list(heads)
        for _ in range(n):
            above = [heads[h - 1] if h else 0 for h in above]
        if not any(above) and (heads.count(0) == 1 or not single_root):
            yield heads


def by_hand(scores, single_root):
    n = len(scores)
    trees = torch.tensor(list(every_tree(n, single_root)))
    of = scores.double()[torch.arange(n), trees].sum(1)
    log_z, marginals = of.logsumexp(0), torch.zeros(scores.shape, dtype=torch.float64)
    for m in range(n):
        marginals[m].index_add_(0, trees[:, m], (of - log_z).exp() if log_z > -torch.inf else of * 0 + 0)
    return log_z, marginals if log_z > -torch.inf else torch.zeros(scores.shape, dtype=torch.float64)


@pytest.mark.parametrize("single_root", [False, True])
@pytest.mark.parametrize("spread", [1.0, 40.0])
def test_spanning_trees(device, single_root, spread):
    from partwise.torch.cuda import spanning

    torch.manual_seed(1)
    scores, lengths = torch.randn(5, 4, 5) * spread, torch.tensor([4, 1, 0, 3, 2], dtype=torch.int32)
    scores[0, 1, 1:] = -torch.inf  # a word that only the root can have
    scores[3] = -torch.inf  # no tree at all
    values, found = spanning.trees(scores.to(device), lengths.to(device), single_root, torch.float64)
    for b, n in enumerate(lengths.tolist()):
        if n:
            log_z, marginals = by_hand(scores[b, :n, : n + 1], single_root)
            torch.testing.assert_close(values[b].cpu(), log_z, rtol=1e-12, atol=1e-12)
            torch.testing.assert_close(found[b, :n, : n + 1].cpu(), marginals, rtol=0, atol=1e-12)
        assert found[b].sum().item() == pytest.approx(n if values[b] > -torch.inf else 0)
    assert values[2] == 0


@pytest.mark.parametrize("single_root", [False, True])
def test_long_sentences_go_through_a_factorisation(device, single_root, monkeypatch):
    from partwise.torch.cuda import spanning

    torch.manual_seed(2)
    scores, lengths = torch.randn(3, 4, 5), torch.tensor([4, 0, 2], dtype=torch.int32)
    wanted = spanning.trees(scores.to(device), lengths.to(device), single_root, torch.float64)
    monkeypatch.setattr(spanning, "MOST", 3)
    found = spanning.trees(scores.to(device), lengths.to(device), single_root, torch.float64)
    for a, b in zip(found, wanted, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)


def test_only_trees_with_two_words_of_the_root(device):
    from partwise.torch.cuda import spanning

    scores = torch.full((1, 3, 4), -torch.inf)
    scores[0, 0, 0], scores[0, 1, 0], scores[0, 2, 1] = 1.0, 2.0, 3.0
    lengths = torch.tensor([3], dtype=torch.int32, device=device)
    for single_root in (False, True):
        values, found = spanning.trees(scores.to(device), lengths, single_root, torch.float64)
        assert values.item() == pytest.approx(-torch.inf if single_root else 6.0)
        assert found.sum().item() == pytest.approx(0.0 if single_root else 3.0)
