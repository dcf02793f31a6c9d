"""Alignments on the device, global and local."""

from __future__ import annotations

import pytest

pytest.importorskip("torch.nn", reason="torch is not installed: make test-torch")
import torch


@pytest.mark.parametrize(("local", "spread"), [(0, 20.0), (1, 1.0)])
def test_alignments(agree, scalar_masks, local, spread):
    torch.manual_seed(0)
    tensors = [torch.randn(shape) * spread for shape in ((3, 3, 2), (3, 4, 3), (3, 4, 2))]
    agree("alignment", tensors, torch.tensor([[3, 2], [0, 2], [1, 1]]), [local], 3)
