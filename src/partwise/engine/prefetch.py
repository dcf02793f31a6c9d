"""Ask for weights before they are needed: sparse rows of weights lie all over memory, and waiting for them is most of scoring."""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from partwise.engine.compilation import OPTIONS, helper

AHEAD = 32  # non-zeros between the request and the use (measured: 8 is too late, 64 no better)
PREFETCH = "llvm.prefetch.p0"
LINES = 4  # cache lines asked for per row of weights; longer rows are streamed by the hardware


@intrinsic
def _prefetch(typing_context, array, index):
    def codegen(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        byte = ir.IntType(8).as_pointer()
        i32 = ir.IntType(32)
        function = ir.FunctionType(ir.VoidType(), [byte, i32, i32, i32])
        call = builder.module.globals.get(PREFETCH) or ir.Function(builder.module, function, PREFETCH)
        address = builder.bitcast(builder.gep(data, [arguments[1]]), byte)
        builder.call(call, [address, i32(0), i32(3), i32(1)])  # for reading, keep in all caches, data
        return context.get_dummy_value()

    return types.void(array, index), codegen


def request(array, index):
    """Hint that array[index] will soon be read. Does nothing in the interpreter."""


@overload(request, jit_options=OPTIONS)
def _request(array, index):
    if isinstance(array, types.Array) and array.ndim == 1:
        return lambda array, index: _prefetch(array, index)
    return lambda array, index: None


@helper
def request_row(w, r, width):
    """Hint that row r of the weights will soon be read."""
    lanes = 64 // w.itemsize
    start, last = r * width, r * width + width - 1
    for _ in range(LINES - 1):
        request(w, min(start, last))
        start += lanes
    request(w, np.int64(last))
