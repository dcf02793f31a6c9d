"""Spans on the device: sums, best trees and their numbers, with labels and forbidden spans."""

from __future__ import annotations

import pytest

pytest.importorskip("torch.nn", reason="torch is not installed: make test-torch")
import torch

from partwise.torch import Constituency


@pytest.mark.parametrize(("labels", "spread"), [(1, 40.0), (2, 1.0)])
def test_spans(agree, device, labels, spread):
    torch.manual_seed(0)
    scores = torch.randn(4, 5, 5, labels) * spread
    scores[0, 1, 3] = -torch.inf
    scores[1, 2:] = torch.nan  # padding may hold anything
    lengths = torch.tensor([4, 1, 0, 3])
    values, outputs = agree("spans", [torch.where(scores.isnan(), 0.0, scores)], lengths, [labels], 7)
    tree = Constituency(scores, lengths=lengths, validate=False)
    torch.testing.assert_close(tree.score_of(outputs.cpu()), values.float().cpu(), rtol=1e-5, atol=1e-4)


def test_no_words(device):
    from partwise.torch.cuda import constituency

    for shape in ((0, 3, 3, 2), (2, 1, 1, 2)):
        lengths = torch.zeros(shape[0], dtype=torch.int64)
        width = max(2 * shape[1] - 3, 0)
        log_z, found = constituency.sums([torch.zeros(shape, device=device)], lengths, [2])
        values, outputs = constituency.best([torch.zeros(shape, device=device)], lengths, [2], width)
        assert not log_z.any() and not values.any() and not found.any()
        assert found.shape == shape and outputs.shape == (shape[0], width)
