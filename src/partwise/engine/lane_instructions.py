"""What vectors as values (`lanes`) are compiled to: LLVM's own vectors. Imported when there is something to compile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, register_model

from partwise.engine import lanes
from partwise.engine.numba_internals import overloads


class Lanes(types.Type):
    """The type of a vector: of numbers, of bytes, or of truths."""

    def __init__(self, dtype: Any, n: int):
        self.dtype, self.n = dtype, n
        super().__init__(name=f"Lanes({dtype}, {n})")


@register_model(Lanes)
class LanesModel(models.PrimitiveModel):
    """A vector is LLVM's vector; a truth is one bit."""

    def __init__(self, manager, kind):
        element = ir.IntType(1) if kind.dtype == types.boolean else manager[kind.dtype].get_value_type()
        super().__init__(manager, kind, ir.VectorType(element, kind.n))


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
    overloads(python, forms[python.__code__.co_argcount - 1])


def of_array(array: Any) -> Lanes:
    """The vectors that an array is read in."""
    return Lanes(array.dtype, lanes.BYTES // (array.dtype.bitwidth // 8))


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


def _lanes_of(a):
    n = of_array(a).n
    return lambda a: n


overloads(lanes.lanes_of, _lanes_of)


def _load(context, builder, args, values):
    vector = context.get_value_type(of_array(args[0]))
    return builder.load(vector_at(context, builder, args[0], values[0], values[1], vector), align=args[0].dtype.bitwidth // 8)


compiled_by(lanes.load, lambda a, b: of_array(a), _load)


def _store(context, builder, args, values):
    address = vector_at(context, builder, args[0], values[0], values[1], values[2].type)
    builder.store(values[2], address, align=args[0].dtype.bitwidth // 8)
    return context.get_dummy_value()


compiled_by(lanes.store, lambda a, b, c: types.void, _store)


def _transpose(context, builder, args, values):
    kind = of_array(args[0])
    vector, n, size = context.get_value_type(kind), kind.n, args[0].dtype.bitwidth // 8
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


compiled_by(lanes.transpose, lambda a, b, c: types.void, _transpose)


def _spread(context, builder, args, values):
    vector = context.get_value_type(of_array(args[0]))
    number = context.cast(builder, values[1], args[1], args[0].dtype)
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), number, ir.IntType(32)(0))
    mask = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), [0] * vector.count)
    return builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), mask)


compiled_by(lanes.spread, lambda a, b: of_array(a), _spread)


compiled_by(lanes.first_lane, lambda a: a.dtype, lambda c, builder, args, v: builder.extract_element(v[0], ir.IntType(32)(0)))


# ---------------------------------------------------------------------------------------------------------------------
# Arithmetic, lane by lane
# ---------------------------------------------------------------------------------------------------------------------


compiled_by(lanes.plus, lambda a, b: a, lambda c, builder, args, v: builder.fadd(*v))


def _largest(context, builder, args, values):
    vector = values[0].type
    name = f"llvm.maxnum.v{vector.count}{'f32' if isinstance(vector.element, ir.FloatType) else 'f64'}"
    function = builder.module.globals.get(name)
    if function is None:
        function = ir.Function(builder.module, ir.FunctionType(vector, [vector, vector]), name)
    return builder.call(function, values, fastmath=("nnan", "nsz"))


compiled_by(lanes.largest, lambda a, b: a, _largest)


compiled_by(lanes.above, lambda a, b: Lanes(types.boolean, a.n), lambda c, builder, args, v: builder.fcmp_ordered(">", *v))


compiled_by(lanes.at_least, lambda a, b: Lanes(types.boolean, a.n), lambda c, builder, args, v: builder.fcmp_ordered(">=", *v))


compiled_by(lanes.chosen, lambda a, b, c: b, lambda context, builder, args, v: builder.select(*v))


def _moved_down(context, builder, args, values):
    vector = values[0].type
    number = context.cast(builder, values[1], args[1], args[0].dtype)
    after = builder.insert_element(ir.Constant(vector, ir.Undefined), number, ir.IntType(32)(0))
    down = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), list(range(1, vector.count + 1)))
    return builder.shuffle_vector(values[0], after, down)


compiled_by(lanes.moved_down, lambda a, b: a, _moved_down)


# ---------------------------------------------------------------------------------------------------------------------
# Bits: one byte a lane
# ---------------------------------------------------------------------------------------------------------------------


def _with_bit(context, builder, args, values):
    vector = ir.VectorType(ir.IntType(8), args[1].n)
    number = builder.trunc(values[2], ir.IntType(8))
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), number, ir.IntType(32)(0))
    mask = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), [0] * vector.count)
    bits = builder.select(values[1], builder.shuffle_vector(one, one, mask), constant(vector, 0))
    return builder.or_(values[0], bits) if isinstance(args[0], Lanes) else bits


compiled_by(lanes.with_bit, lambda a, b, c: Lanes(types.uint8, b.n), _with_bit)
