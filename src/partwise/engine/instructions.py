"""Single instructions that Python has no word for, written in LLVM's own. Imported when there is something to compile."""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

PREFETCH = "llvm.prefetch.p0"


def extreme(name: str, otherwise: Callable) -> Callable:
    """Which function stands for the larger or smaller of two numbers: one instruction if they are floats of one kind.

    A loop over LLVM's own maximum or minimum is known to be a reduction and vectorises, one over comparisons is not.
    """

    @intrinsic
    def of_floats(typing_context, a, b):
        def codegen(context, builder, signature, arguments):
            number = arguments[0].type
            function = builder.module.declare_intrinsic(name, [number], ir.FunctionType(number, [number, number]))
            return builder.call(function, arguments, fastmath=("nnan", "nsz"))

        return a(a, a), codegen

    def pick(a, b):
        return (lambda a, b: of_floats(a, b)) if isinstance(a, types.Float) and a == b else otherwise

    return pick


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
    """Which function stands for the request of an entry: an instruction if there are addresses to compute."""
    if isinstance(array, types.Array) and array.ndim == 1:
        return lambda array, index: _prefetch(array, index)
    return lambda array, index: None
