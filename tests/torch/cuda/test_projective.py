"""Projective trees on the device."""

from __future__ import annotations

import pytest

pytest.importorskip("torch.nn", reason="torch is not installed: make test-torch")
import torch


@pytest.mark.parametrize(("single_root", "spread"), [(0, 40.0), (1, 1.0)])
def test_projective_trees(agree, single_root, spread):
    torch.manual_seed(0)
    arcs = torch.randn(3, 4, 5, 1) * spread
    arcs[2, 0, 2] = -torch.inf
    agree("tree", [arcs], torch.tensor([4, 0, 3]), [1, 1, single_root], 4)
