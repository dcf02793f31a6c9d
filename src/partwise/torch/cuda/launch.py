"""How kernels written in Triton are launched, and the few device functions that they share."""

from __future__ import annotations

import os
from typing import Any

import torch
import triton
import triton.language as tl

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"

LOG2E = tl.constexpr(1.4426950408889634)
LN2 = tl.constexpr(0.6931471805599453)

_compiled: dict[tuple, Any] = {}


def launch(
    kernel: Any, grid: tuple[int, ...], *arguments: Any, num_warps: int = 4, num_stages: int = 2, **constants: Any
) -> None:
    """Run a kernel on a grid of programs.

    From the second time on with arguments of one kind the compiled kernel is run directly: Triton's own way from Python to
    the device takes several times as long, longer than most of these kernels run.
    """
    if not all(grid):
        return
    if INTERPRETED:
        kernel[grid](*arguments, **constants)
        return
    device = arguments[0].device.index
    if device != torch.cuda.current_device():
        with torch.cuda.device(device):
            return launch(kernel, grid, *arguments, num_warps=num_warps, num_stages=num_stages, **constants)
    key = (id(kernel), device, num_warps, num_stages, *constants.values(), *map(_kind, arguments))
    ready = _compiled.get(key)
    if ready is None:
        _compiled[key] = kernel[grid](*arguments, num_warps=num_warps, num_stages=num_stages, **constants)
        return
    width, height, depth = (*grid, 1, 1)[:3]
    stream = torch._C._cuda_getCurrentRawStream(device)
    ready.run(
        width, height, depth, stream, ready.function, ready.packed_metadata, None, None, None, *arguments, *constants.values()
    )


def _kind(argument: Any) -> Any:
    """What Triton compiles a kernel anew for."""
    if isinstance(argument, torch.Tensor):
        return argument.dtype, argument.data_ptr() & 15
    if isinstance(argument, int):
        return argument == 1, argument % 16 == 0, argument > 2**31 - 1
    return type(argument)


_lengths: dict[tuple, torch.Tensor] = {}
MOST_KEPT = 256


def on_device(lengths: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Lengths on the device; those that came from the CPU are kept for the next time: a copy takes longer than some kernels."""
    if lengths.device == device or device.type != "cuda" or torch.compiler.is_compiling():
        return lengths.to(device)
    key = (lengths.shape, lengths.numpy().tobytes(), device)
    kept = _lengths.get(key)
    if kept is None:
        kept = lengths.to(device)
        if not torch.cuda.is_current_stream_capturing():
            if len(_lengths) >= MOST_KEPT:
                _lengths.clear()
            _lengths[key] = kept
    return kept


def power_of_2(n: int, least: int = 16) -> int:
    """The smallest power of 2 that is neither below n nor below `least`."""
    return max(least, 1 << max(n - 1, 0).bit_length())


if INTERPRETED:

    @triton.jit
    def lg2(x):
        return tl.log2(x)
else:

    @triton.jit
    def lg2(x):  # tl.log2 is a library call of twenty instructions; that of the hardware has an absolute error of 2^-22
        return tl.inline_asm_elementwise("lg2.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def add_pairs(a0, a1, b0, b1):
    """Two sums at once."""
    return a0 + b0, a1 + b1


@triton.jit
def ordered(x):
    """An int32 that is ordered as the float32: reductions of it are one instruction."""
    i = x.to(tl.int32, bitcast=True)
    return i ^ ((i >> 31) & 0x7FFFFFFF)


@triton.jit
def highest(x):
    """The largest entry, 0 if that is -inf: what scores are lowered by."""
    m = tl.max(ordered(x), axis=0)
    m = (m ^ ((m >> 31) & 0x7FFFFFFF)).to(tl.float32, bitcast=True)
    return tl.where(m == float("-inf"), 0.0, m)


@triton.jit
def finite(m):
    """0 instead of -inf: what may be subtracted without making NaN."""
    return tl.where(m == float("-inf"), 0.0, m)


@triton.jit
def gathered(top, total, v, k, BEST: tl.constexpr):
    """Take the columns k of v into running maxima and sums by row: of exponentials, or (BEST) the column of the maximum."""
    m = tl.max(v, axis=1)
    if BEST:
        first = tl.min(tl.where(v == m[:, None], k[None, :], 2**30), axis=1)
        total = tl.where(m > top, first.to(tl.float64), total)
        top = tl.maximum(top, m)
    else:
        new = tl.maximum(top, m)
        f = finite(new)
        total = total * tl.exp(top - f) + tl.sum(tl.exp(v - f[:, None]), axis=1)
        top = new
    return top, total


@triton.jit
def settled(top, total, BEST: tl.constexpr):
    """The log sum, or the maximum, that `gathered` has found."""
    if BEST:
        return top
    else:
        return tl.where(total > 0.0, finite(top) + tl.log(tl.where(total > 0.0, total, 1.0)), float("-inf"))


@triton.jit
def share(of, part, whole, split, k, BEST: tl.constexpr):
    """What of the probability `of` of a whole falls to the way k it was made by: exp(part - whole), or whether that was best."""
    if BEST:
        return tl.where(split == k, of, 0.0)
    else:
        some = whole > float("-inf")
        return tl.where(some, of * tl.exp(tl.where(some, part - whole, float("-inf"))), 0.0)
