"""Segmentations on the device."""

from __future__ import annotations

import pytest

pytest.importorskip("torch.nn", reason="torch is not installed: make test-torch")
import torch


@pytest.mark.parametrize("each", [False, True])
def test_segmentations(agree, scalar_masks, each):
    torch.manual_seed(0)
    B, T, D, K = 3, 4, 2, 2
    n = B if each else 1
    shapes = ((B, T, 2 * K), (B, T, D, K), (n, K + 1, K), (n, K))
    tensors = [torch.randn(shape) * (1.0 if each else 20.0) for shape in shapes]
    agree("segments", tensors, torch.tensor([4, 0, 3]), [K, D], T)
