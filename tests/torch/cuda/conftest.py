"""Where the kernels in Triton are tested: on a CUDA device if there is one, else by Triton's interpreter, on the CPU."""

from __future__ import annotations

import contextlib
import importlib.util
import os

import pytest

with contextlib.suppress(ImportError):
    import torch.nn

    if importlib.util.find_spec("triton") and not torch.cuda.is_available():
        os.environ["TRITON_INTERPRET"] = "1"  # before Triton is imported


@pytest.fixture
def device():
    pytest.importorskip("torch.nn", reason="torch is not installed: make test-torch")
    import torch

    if torch.cuda.is_available():
        return torch.device("cuda", 0)
    pytest.importorskip("triton", reason="triton is not installed")
    from partwise.torch.cuda import launch

    if not launch.INTERPRETED:
        pytest.skip("triton was imported before these tests, to compile")
    return torch.device("cpu")


@pytest.fixture
def scalar_masks(device):
    """What Triton's interpreter does not read with NumPy 2.3 and later."""
    import numpy as np

    if device.type == "cpu" and tuple(map(int, np.__version__.split(".")[:2])) >= (2, 3):
        pytest.skip("Triton's interpreter takes no scalar masks with NumPy 2.3 and later")


@pytest.fixture
def agree(device):
    """Compare log Z, marginals and the best score of a structure's kernels with the plain-torch twin in float64."""

    def compare(name, tensors, lengths, sizes, width, exact=1e-5):
        import torch

        from partwise.torch import cuda, operators

        structure, module = operators.STRUCTURES[name], cuda.module(name)
        tensors = [t.to(device) for t in tensors]
        doubled = [t.double() if t.is_floating_point() else t for t in tensors]
        wanted = [t.detach() for t in operators._sums_by_reference(structure, doubled, lengths, sizes)]
        found = module.sums(tensors, lengths, sizes)
        assert len(found) == len(wanted)
        for a, b in zip(found, wanted, strict=True):
            torch.testing.assert_close(a.double(), b, atol=exact, rtol=exact)
        values, outputs = module.best(tensors, lengths, sizes, width)
        sharp = [t * 1e4 if t.is_floating_point() else t for t in doubled]
        top = structure.log_partition(operators._expanded(structure, sharp, lengths), lengths, sizes) / 1e4
        torch.testing.assert_close(values.double(), top, atol=1e-3, rtol=1e-5)
        return values, outputs

    return compare
