"""The oracles on CUDA devices: kernels in Triton, one module for each structure, and how the operators find them.

The operators of `partwise.torch.operators` come here with CUDA tensors. What no kernel serves (float64 or more than 1,024
labels for chains) runs in plain torch; k best outputs and samples are found by compiled code on the CPU.
"""

from __future__ import annotations

import importlib.util
from typing import Any

from torch import Tensor

HAS_TRITON = importlib.util.find_spec("triton") is not None  # without it nothing is served


def serves(name: str, tensors: Any, sizes: Any) -> bool:
    """Whether there is a kernel for the sums over these scores."""
    if tensors[0].device.type != "cuda" or not HAS_TRITON:
        return False
    if name == "chain":
        from partwise.torch.cuda import chain

        return chain.is_served(tensors[0])
    if name == "alignment":
        from partwise.torch.cuda import alignment

        return tensors[0].shape[1] <= alignment.LONGEST
    return name in ("segments", "tree", "spans")


def serves_best(name: str, tensors: Any, sizes: Any) -> bool:
    """Whether the best output is found on the device."""
    if name == "chain" and HAS_TRITON:  # what has no kernel is done in plain torch
        return tensors[0].device.type == "cuda"
    return serves(name, tensors, sizes)


def module(name: str) -> Any:
    """Where `sums` and `best` of a structure are."""
    from partwise.torch.cuda import alignment, chain, constituency, segments, tree

    return {"chain": chain, "segments": segments, "tree": tree, "alignment": alignment, "spans": constituency}[name]


def sums(name: str, tensors: Any, lengths: Tensor, sizes: Any) -> tuple[Tensor, ...]:
    """log Z and marginals, by the structure's kernels."""
    return tuple(module(name).sums(tensors, lengths, sizes))


def best(name: str, tensors: Any, lengths: Tensor, sizes: Any, width: int) -> tuple[Tensor, Tensor]:
    """The best outputs and their scores, by the structure's kernels."""
    return module(name).best(tensors, lengths, sizes, width)
