"""Trees on the device: labels of arcs, and best projective trees."""

from __future__ import annotations

import pytest

pytest.importorskip("torch.nn", reason="torch is not installed: make test-torch")
import torch


def test_labels_of_arcs(device):
    from partwise.torch import operators
    from partwise.torch.cuda import tree

    torch.manual_seed(0)
    arcs, lengths = torch.randn(3, 3, 4, 2), torch.tensor([3, 2, 0])
    for projective in (0, 1):
        wanted = operators._sums_by_reference(operators.TREE, [arcs.double()], lengths, [2, projective, 1])
        for a, b in zip(tree.sums([arcs.to(device)], lengths, [2, projective, 1]), wanted, strict=True):
            torch.testing.assert_close(a.double().cpu(), b.detach(), atol=1e-5, rtol=1e-5)


def test_best_projective_trees(agree):
    torch.manual_seed(0)
    agree("tree", [torch.randn(3, 3, 4, 2) * 10], torch.tensor([3, 1, 2]), [2, 1, 1], 3)
