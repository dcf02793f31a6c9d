"""Vectors of 64 bytes as values: where a recursion runs along diagonals, what one step hands to the next stays in registers.

LLVM vectorises loops over arrays by itself. But a value that moves to the neighbouring lane from one step to the next would go
through memory there, and a load that straddles two stores just made waits for both. Here a vector is a variable. In plain Python
the same functions work on small arrays of numpy, so that a recursion is written once.

The number of lanes follows from the type of the numbers: 8 of float64, 16 of float32 (`lanes_of`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, overload, register_model

from partwise.engine.compilation import OPTIONS

BYTES = 64


class Lanes(types.Type):
    """The type of a vector: of numbers, of bytes, or of truths."""

    def __init__(self, dtype: Any, n: int):
        self.dtype, self.n = dtype, n
        super().__init__(name=f"Lanes({dtype}, {n})")


@register_model(Lanes)
class LanesModel(models.PrimitiveModel):
    """A vector is LLVM's vector; a truth is one bit."""

    def __init__(self, manager, lanes):
        element = ir.IntType(1) if lanes.dtype == types.boolean else manager[lanes.dtype].get_value_type()
        super().__init__(manager, lanes, ir.VectorType(element, lanes.n))


def compiled_by(python: Callable, result: Callable, build: Callable) -> None:
    """Give `python` a compiled form: `result(*types)` is what type it returns, `build(context, builder, types, values)` how."""

    @intrinsic
    def one(typing_context, a):
        return result(a)(a), lambda c, b, s, v: build(c, b, s.args, v)

    @intrinsic
    def two(typing_context, a, b):
        return result(a, b)(a, b), lambda c, b, s, v: build(c, b, s.args, v)

    @intrinsic
    def three(typing_context, a, b, c):
        return result(a, b, c)(a, b, c), lambda c, b, s, v: build(c, b, s.args, v)

    forms = (lambda a: lambda a: one(a)), (lambda a, b: lambda a, b: two(a, b)), (lambda a, b, c: lambda a, b, c: three(a, b, c))
    overload(python, jit_options=OPTIONS, strict=False)(forms[python.__code__.co_argcount - 1])


def of_array(array: Any) -> Lanes:
    """The vectors that an array is read in."""
    return Lanes(array.dtype, BYTES // (array.dtype.bitwidth // 8))


def vector_at(context, builder, array, value, k, vector):
    """The address of the vector that begins at array[k]."""
    data = context.make_array(array)(context, builder, value).data
    return builder.bitcast(builder.gep(data, [k]), vector.as_pointer())


def constant(vector, value):
    """The same number in all lanes."""
    return ir.Constant(vector, [ir.Constant(vector.element, value)] * vector.count)


# ---------------------------------------------------------------------------------------------------------------------
# From and to arrays
# ---------------------------------------------------------------------------------------------------------------------


def lanes_of(a):
    """How many lanes the vectors of an array's numbers have."""
    return BYTES // a.itemsize


@overload(lanes_of, jit_options=OPTIONS)
def _(a):
    n = of_array(a).n
    return lambda a: n


def load(a, b):
    """The vector that begins at a[b]."""
    return a[b : b + lanes_of(a)].copy()


def _load(context, builder, args, values):
    vector = context.get_value_type(of_array(args[0]))
    return builder.load(vector_at(context, builder, args[0], values[0], values[1], vector), align=args[0].dtype.bitwidth // 8)


compiled_by(load, lambda a, b: of_array(a), _load)


def store(a, b, c):
    """a[b:] = vector c."""
    a[b : b + len(c)] = c


def _store(context, builder, args, values):
    address = vector_at(context, builder, args[0], values[0], values[1], values[2].type)
    builder.store(values[2], address, align=args[0].dtype.bitwidth // 8)
    return context.get_dummy_value()


compiled_by(store, lambda a, b, c: types.void, _store)


def transpose(a, b, c):
    """The vectors that begin at a[b[0]], a[b[1]], ..., as many as they have lanes, as the columns of matrix c (flat)."""
    c.reshape(len(b), len(b))[:] = np.stack([load(a, k) for k in b], axis=1)


def _transpose(context, builder, args, values):
    lanes = of_array(args[0])
    vector, n, size = context.get_value_type(lanes), lanes.n, args[0].dtype.bitwidth // 8
    places = context.make_array(args[1])(context, builder, values[1]).data
    rows = []
    for k in range(n):
        at = builder.load(builder.gep(places, [ir.IntType(64)(k)]))
        rows.append(builder.load(vector_at(context, builder, args[0], values[0], at, vector), align=size))
    d = n // 2
    while d:  # exchange the off-diagonal blocks of d x d, of matrices half as large each time
        left = [k if k & d == 0 else n + k - d for k in range(n)]
        right = [k + d if k & d == 0 else n + k for k in range(n)]
        masks = [ir.Constant(ir.VectorType(ir.IntType(32), n), mask) for mask in (left, right)]
        for k in range(n):
            if k & d == 0:
                both = rows[k], rows[k + d]
                rows[k], rows[k + d] = (builder.shuffle_vector(*both, mask) for mask in masks)
        d //= 2
    for k in range(n):
        at = ir.IntType(64)(k * n)
        builder.store(rows[k], vector_at(context, builder, args[2], values[2], at, vector), align=size)
    return context.get_dummy_value()


compiled_by(transpose, lambda a, b, c: types.void, _transpose)


def spread(a, b):
    """The number b in all lanes of a vector as those of array a."""
    return np.full(lanes_of(a), b, a.dtype)


def _spread(context, builder, args, values):
    vector = context.get_value_type(of_array(args[0]))
    number = context.cast(builder, values[1], args[1], args[0].dtype)
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), number, ir.IntType(32)(0))
    mask = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), [0] * vector.count)
    return builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), mask)


compiled_by(spread, lambda a, b: of_array(a), _spread)


def first_lane(a):
    """The number in lane 0."""
    return a[0]


compiled_by(first_lane, lambda a: a.dtype, lambda c, builder, args, v: builder.extract_element(v[0], ir.IntType(32)(0)))

# ---------------------------------------------------------------------------------------------------------------------
# Arithmetic, lane by lane
# ---------------------------------------------------------------------------------------------------------------------


def plus(a, b):
    """a + b."""
    return a + b


compiled_by(plus, lambda a, b: a, lambda c, builder, args, v: builder.fadd(*v))


def largest(a, b):
    """max(a, b) of numbers that are not NaN."""
    return np.maximum(a, b)


def _largest(context, builder, args, values):
    vector = values[0].type
    name = f"llvm.maxnum.v{vector.count}{'f32' if isinstance(vector.element, ir.FloatType) else 'f64'}"
    function = builder.module.globals.get(name)
    if function is None:
        function = ir.Function(builder.module, ir.FunctionType(vector, [vector, vector]), name)
    return builder.call(function, values, fastmath=("nnan", "nsz"))


compiled_by(largest, lambda a, b: a, _largest)


def above(a, b):
    """Where a > b."""
    return a > b


compiled_by(above, lambda a, b: Lanes(types.boolean, a.n), lambda c, builder, args, v: builder.fcmp_ordered(">", *v))


def at_least(a, b):
    """Where a >= b."""
    return a >= b


compiled_by(at_least, lambda a, b: Lanes(types.boolean, a.n), lambda c, builder, args, v: builder.fcmp_ordered(">=", *v))


def chosen(a, b, c):
    """b where a is true, c elsewhere."""
    return np.where(a, b, c)


compiled_by(chosen, lambda a, b, c: b, lambda context, builder, args, v: builder.select(*v))


def moved_down(a, b):
    """Lane k gets what lane k + 1 of a had; the last one gets the number b."""
    return np.append(a[1:], a.dtype.type(b))


def _moved_down(context, builder, args, values):
    vector = values[0].type
    number = context.cast(builder, values[1], args[1], args[0].dtype)
    after = builder.insert_element(ir.Constant(vector, ir.Undefined), number, ir.IntType(32)(0))
    lanes = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), list(range(1, vector.count + 1)))
    return builder.shuffle_vector(values[0], after, lanes)


compiled_by(moved_down, lambda a, b: a, _moved_down)


# ---------------------------------------------------------------------------------------------------------------------
# Bits: one byte a lane
# ---------------------------------------------------------------------------------------------------------------------


def with_bit(a, b, c):
    """Bytes a, with bit c set where b is true; a is such bytes, or 0 for none."""
    return a | np.where(b, c, 0).astype(np.uint8)


def _with_bit(context, builder, args, values):
    vector = ir.VectorType(ir.IntType(8), args[1].n)
    number = builder.trunc(values[2], ir.IntType(8))
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), number, ir.IntType(32)(0))
    mask = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), [0] * vector.count)
    bits = builder.select(values[1], builder.shuffle_vector(one, one, mask), constant(vector, 0))
    return builder.or_(values[0], bits) if isinstance(args[0], Lanes) else bits


compiled_by(with_bit, lambda a, b, c: Lanes(types.uint8, b.n), _with_bit)
