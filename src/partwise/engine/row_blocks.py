"""Sums and maxima over rows of a matrix that stay in registers: what scoring a token and a step of Viterbi are made of.

    add_rows    out += sum_k W[index[k]]                    rows chosen by their numbers, four at a time
    max_rows    out = max(out, max_k a[k] + M[k])           a vector times a matrix in the semiring (max, +)

A compiler that does not know the width reads and writes `out` again for every few rows, and does what is left over of a row one
by one. Rows here are one to four whole vectors of 64 bytes (`in_vectors`): `out` is read once, kept in registers over all rows,
and written once. The order of additions is that of the Python below, so the numbers are the same; maxima have no order.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from partwise.engine.compilation import OPTIONS, helper
from partwise.engine.prefetch import AHEAD, PREFETCH

BYTES = 64  # of a vector
MOST = 4  # vectors in a row
QUARTET = 4  # rows that are summed before they are added: one dependent addition for four of them


@helper
def in_vectors(n, itemsize):
    """Whether a row of n numbers of this size is one to four whole vectors."""
    return n * itemsize % BYTES == 0 and 0 < n * itemsize <= MOST * BYTES


def add_rows(w, width, index, begin, end, out):
    """out += the sum of w[index[k] * width :] over k in [begin, end), each as long as `out`; there must be room for all of it."""
    n, k = len(out), begin
    while k + QUARTET <= end:
        p, q, x, y = (w[r * width : r * width + n] for r in index[k : k + QUARTET].astype(np.int64))
        out += (p + q) + (x + y)
        k += QUARTET
    for r in index[k:end].astype(np.int64):
        out += w[r * width : r * width + n]


def max_rows(a, matrix, n, out):
    """out[c] = max(out[c], max_{k < n} a[k] + matrix[k, c]), for rows as long as `out`."""
    for k in range(n):
        np.maximum(out, a[k] + matrix[k * len(out) : (k + 1) * len(out)], out=out)


class _Rows:
    """Emits the code of one row operation for every number of vectors, and the choice between them."""

    def __init__(self, context: Any, builder: Any, number: Any, itemsize: int, out: Any):
        self.builder, self.out, self.itemsize = builder, out, itemsize
        self.vector = ir.VectorType(context.get_value_type(number), BYTES // itemsize)
        self.name = f"v{BYTES // itemsize}{'f32' if itemsize == 4 else 'f64'}"

    def load(self, data: Any, offset: Any, which: int) -> Any:
        """Vector number `which` of what begins at data[offset]."""
        address = self.builder.gep(data, [self.builder.add(offset, self.integer(which * BYTES // self.itemsize))])
        return self.builder.load(self.builder.bitcast(address, self.vector.as_pointer()), align=self.itemsize)

    def integer(self, value: int) -> Any:
        return ir.Constant(ir.IntType(64), value)

    @contextlib.contextmanager
    def steps(self, start: Any, stop: Any, step: int) -> Iterator[Any]:
        """for k in range(start, stop, step)."""
        builder, before = self.builder, self.builder.block
        head, body, after = (builder.append_basic_block() for _ in range(3))
        builder.branch(head)
        builder.position_at_end(head)
        k = builder.phi(ir.IntType(64))
        k.add_incoming(start, before)
        builder.cbranch(builder.icmp_signed("<", k, stop), body, after)
        builder.position_at_end(body)
        yield k
        k.add_incoming(builder.add(k, self.integer(step)), builder.block)
        builder.branch(head)
        builder.position_at_end(after)

    def each(self, n: Any, body: Any) -> None:
        """Run ``body(kept, count)`` for the number of vectors in n numbers; `kept` are the vectors of `out`, read and written."""
        builder = self.builder
        vectors = builder.udiv(builder.mul(n, self.integer(self.itemsize)), self.integer(BYTES))
        for count in range(1, MOST + 1):
            with builder.if_then(builder.icmp_unsigned("==", vectors, self.integer(count))):
                with builder.goto_entry_block():
                    kept = [builder.alloca(self.vector) for _ in range(count)]
                for v in range(count):
                    builder.store(self.load(self.out, self.integer(0), v), kept[v])
                body(kept, count)
                for v in range(count):
                    address = builder.gep(self.out, [self.integer(v * BYTES // self.itemsize)])
                    address = builder.bitcast(address, self.vector.as_pointer())
                    builder.store(builder.load(kept[v]), address, align=self.itemsize)


def _data(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    return context.make_array(kind)(context, builder, value)


@intrinsic
def _add_rows(typing_context, w, width, index, begin, end, out):
    def codegen(context, builder, signature, arguments):
        weights, numbers, into = (_data(context, builder, signature.args[k], arguments[k]) for k in (0, 2, 5))
        size = builder.extract_value(numbers.shape, 0)
        width, begin, end = arguments[1], arguments[3], arguments[4]
        itemsize = signature.args[0].dtype.bitwidth // 8
        rows = _Rows(context, builder, signature.args[0].dtype, itemsize, into.data)
        byte, i32, one = ir.IntType(8).as_pointer(), ir.IntType(32), rows.integer

        def add(a, b):  # with a flag of its own numba gives it no others, and the order stays as it is written
            return builder.fadd(a, b, flags=("nsz",))

        def start(k):  # of the row that is number k in the list
            return builder.mul(builder.sext(builder.load(builder.gep(numbers.data, [k])), ir.IntType(64)), width)

        def request(address):
            kind = ir.FunctionType(ir.VoidType(), [byte, i32, i32, i32])
            call = builder.module.globals.get(PREFETCH) or ir.Function(builder.module, kind, PREFETCH)
            builder.call(call, [builder.bitcast(address, byte), i32(0), i32(3), i32(1)])

        def body(kept, count):
            whole = builder.sub(end, builder.srem(builder.sub(end, begin), one(QUARTET)))
            with rows.steps(begin, whole, QUARTET) as k:
                ahead = builder.add(k, one(AHEAD))
                with builder.if_then(builder.icmp_signed("<=", builder.add(ahead, one(QUARTET)), size)):
                    for j in range(QUARTET):
                        soon = start(builder.add(ahead, one(j)))
                        for v in range(count):
                            request(builder.gep(weights.data, [builder.add(soon, one(v * BYTES // itemsize))]))
                        request(builder.gep(weights.data, [builder.add(soon, builder.sub(width, one(1)))]))
                four = [start(builder.add(k, one(j))) for j in range(QUARTET)]
                for v in range(count):
                    p, q, x, y = (rows.load(weights.data, first, v) for first in four)
                    quartet = add(add(p, q), add(x, y))
                    builder.store(add(builder.load(kept[v]), quartet), kept[v])
            with rows.steps(whole, end, 1) as k:
                first = start(k)
                for v in range(count):
                    builder.store(add(builder.load(kept[v]), rows.load(weights.data, first, v)), kept[v])

        rows.each(builder.extract_value(into.shape, 0), body)
        return context.get_dummy_value()

    return types.void(w, types.int64, index, types.int64, types.int64, out), codegen


@intrinsic
def _max_rows(typing_context, a, matrix, n, out):
    def codegen(context, builder, signature, arguments):
        added, table, into = (_data(context, builder, signature.args[k], arguments[k]) for k in (0, 1, 3))
        rows = _Rows(context, builder, signature.args[1].dtype, signature.args[1].dtype.bitwidth // 8, into.data)
        length, i32, vector = builder.extract_value(into.shape, 0), ir.IntType(32), rows.vector
        largest = ir.FunctionType(vector, [vector, vector])
        name = f"llvm.maxnum.{rows.name}"
        largest = builder.module.globals.get(name) or ir.Function(builder.module, largest, name)

        def body(kept, count):
            with rows.steps(rows.integer(0), arguments[2], 1) as k:
                one = builder.insert_element(
                    ir.Constant(vector, ir.Undefined), builder.load(builder.gep(added.data, [k])), i32(0)
                )
                zeros = ir.Constant(ir.VectorType(i32, vector.count), None)
                same, first = builder.shuffle_vector(one, one, zeros), builder.mul(k, length)
                for v in range(count):
                    entry = builder.fadd(rows.load(table.data, first, v), same, flags=("nnan", "nsz"))
                    higher = builder.call(largest, [builder.load(kept[v]), entry], fastmath=("nnan", "nsz"))
                    builder.store(higher, kept[v])

        rows.each(length, body)
        return context.get_dummy_value()

    return types.void(a, matrix, types.int64, out), codegen


@overload(add_rows, jit_options=OPTIONS)
def _add_rows_compiled(w, width, index, begin, end, out):
    return lambda w, width, index, begin, end, out: _add_rows(w, width, index, begin, end, out)


@overload(max_rows, jit_options=OPTIONS)
def _max_rows_compiled(a, matrix, n, out):
    return lambda a, matrix, n, out: _max_rows(a, matrix, n, out)
