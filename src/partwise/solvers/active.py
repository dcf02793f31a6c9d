"""Active sets: the outputs that carry dual mass, for every example, in a handful of flat arrays.

Dual solvers of max-margin losses write the weights as

    w = sum_i sum_{y in S_i} lambda_i(y) dF_i(y),    dF_i(y) = F(x_i, t_i) - F(x_i, y),

and S_i, the outputs the oracle has found for example i, grows and shrinks while they run. Here S_i is a linked list of
*records*; a record is an output, its multiplier lambda_i(y) and its cost l_i(y) against the gold output. A solver that optimises
inside S_i also keeps the products K(y, z) = dF_i(y) . dF_i(z) of its outputs: a small square per example, one row of it computed
when an output is inserted, so that later visits need no features to know how outputs interact.

Margins are against the target t_i of the problem at hand, which is not stored: if targets change (CCCP), the multipliers stay
valid and only w and the products are to be computed again (`weights_of`, `refresh_products`).

Compiled loops never allocate. A pass that visits every example once inserts at most one record per example, so Python calls
`reserve` before it; arrays grow geometrically and pages that were never written cost no memory. A removed record is kept for the
next insertion of the same example (its outputs have the same length, its row of products the same place); `reserve` drops those
that stay unused.

Memory of a record: 48 bytes, 4 bytes per integer of the output, and its row of products, 8 |S_i| bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from partwise import kernels
from partwise.compilation import entry, helper
from partwise.loss_kernels import Workspace
from partwise.objective import losses_at
from partwise.solvers.base import State, Task
from partwise.solvers.weights import STEPS, SUM, Weights

RECORDS, INTEGERS, PRODUCTS = range(3)


class ActiveSets(NamedTuple):
    """The sets S_i of all examples. Lists end with -1."""

    head: np.ndarray  #: (N,) first record of S_i
    spare: np.ndarray  #: (N,) first of the removed records of example i
    size: np.ndarray  #: (N,) |S_i|
    slots: np.ndarray  #: (N,) number of its records, removed ones included
    room: np.ndarray  #: (N,) side of its square of products; empty where no products are kept
    square: np.ndarray  #: (N,) where the square begins in `products`
    next: np.ndarray  #: (records,) the record after this one
    slot: np.ndarray  #: (records,) its row and column in the square
    start: np.ndarray  #: (records,) where the output begins in `outputs`
    weight: np.ndarray  #: (records,) lambda_i(y) >= 0, zero for removed records
    cost: np.ndarray  #: (records,) l_i(y)
    outputs: np.ndarray  #: int32, the outputs of all records, end to end
    products: np.ndarray  #: the squares of all examples, end to end
    used: np.ndarray  #: (3,) how many records, integers of `outputs` and entries of `products` are taken


def active_sets(n_examples: int, products: bool = False) -> ActiveSets:
    """Empty sets, with products or without."""

    def numbers(n, value=0):
        return np.full(n, value, np.int64)

    n, kept = n_examples, n_examples if products else 0
    return ActiveSets(
        numbers(n, -1), numbers(n, -1), numbers(n), numbers(n), numbers(kept), numbers(kept),
        numbers(0), numbers(0), numbers(0), np.zeros(0), np.zeros(0), np.zeros(0, np.int32), np.zeros(0), numbers(3),
    )  # fmt: skip


def reserve(sets: ActiveSets, problem: Any) -> ActiveSets:
    """The same sets with room for one more record of every example; if most of what they hold is unused, packed first."""
    starts, _ = kernels.sizes(problem)
    n, live, squares = len(sets.head), int(sets.size.sum()), int(sets.size @ sets.size)
    if sets.used[RECORDS] > 2 * live + n or sets.used[PRODUCTS] > 8 * squares + 16 * n:
        sets = packed(sets, np.diff(starts))
    full = np.flatnonzero(sets.slots >= sets.room) if len(sets.room) else np.zeros(0, np.int64)
    wider = np.maximum(2, sets.slots[full] + sets.slots[full] // 2 + 1)
    sets = with_room(sets, n, int(starts[-1]), int(wider @ wider))
    if len(full):
        move_squares(sets.products, full, wider, sets.square, sets.room, sets.used)
    return sets


def packed(sets: ActiveSets, lengths: np.ndarray) -> ActiveSets:
    """The same sets without removed records, each S_i in one piece; `lengths` are those of the outputs of each example."""
    fresh = active_sets(len(sets.head), products=len(sets.room) > 0)
    squares = 0
    if len(sets.room):
        fresh.room[:] = sets.size
        fresh.square[:] = np.cumsum(sets.size**2) - sets.size**2
        squares = int(sets.size @ sets.size)
    fresh = with_room(fresh, int(sets.size.sum()), int(sets.size @ lengths), squares)
    fresh.used[PRODUCTS] = squares
    copy_records(sets, lengths, fresh)
    return fresh


def with_room(sets: ActiveSets, records: int, integers: int, products: int) -> ActiveSets:
    """The same sets with room for so many more."""

    def grown(name, used, more):
        array = getattr(sets, name)
        if used + more <= len(array):
            return array
        longer = np.empty(max(used + more, 3 * len(array) // 2), array.dtype)
        longer[:used] = array[:used]
        return longer

    used = [int(u) for u in sets.used]
    arrays = {name: grown(name, used[RECORDS], records) for name in ("next", "slot", "start", "weight", "cost")}
    arrays["outputs"] = grown("outputs", used[INTEGERS], integers)
    arrays["products"] = grown("products", used[PRODUCTS], products)
    return sets._replace(**arrays)


@entry
def move_squares(products, examples, wider, square, room, used):
    """Give the squares of `examples` the sides `wider`, at the end of `products`."""
    for k in range(len(examples)):
        i, side = examples[k], wider[k]
        start = used[PRODUCTS]
        used[PRODUCTS] += side * side
        for a in range(room[i]):
            for b in range(room[i]):
                products[start + a * side + b] = products[square[i] + a * room[i] + b]
        square[i], room[i] = start, side


@entry
def copy_records(old, lengths, new):
    """Copy every S_i, in the order of its list, into empty sets that have room for it."""
    for i in range(len(old.head)):
        record, last = old.head[i], -1
        while record >= 0:
            copy, start = new.used[RECORDS], new.used[INTEGERS]
            new.used[RECORDS] += 1
            new.used[INTEGERS] += lengths[i]
            new.outputs[start : start + lengths[i]] = output_of(old, record, lengths[i])
            new.weight[copy], new.cost[copy] = old.weight[record], old.cost[record]
            new.start[copy], new.slot[copy], new.next[copy] = start, new.slots[i], -1
            new.slots[i] += 1
            new.size[i] += 1
            if last >= 0:
                new.next[last] = copy
            else:
                new.head[i] = copy
            if old.room.size:
                row, other = products_of(old, i, record), old.head[i]
                for k in range(old.size[i]):
                    new.products[new.square[i] + new.slot[copy] * new.room[i] + k] = row[old.slot[other]]
                    other = old.next[other]
            record, last = old.next[record], copy


@helper
def output_of(sets, record, length):
    """The output of a record of an example whose outputs have `length` integers."""
    return sets.outputs[sets.start[record] : sets.start[record] + length]


@helper
def products_of(sets, i, record):
    """K(y, .) of a record of example i, by slot."""
    start = sets.square[i] + sets.slot[record] * sets.room[i]
    return sets.products[start : start + sets.room[i]]


@helper
def find(sets, i, y):
    """The record of output y in S_i, or -1."""
    record = sets.head[i]
    while record >= 0:
        start, same = sets.start[record], True
        for k in range(len(y)):
            if sets.outputs[start + k] != y[k]:
                same = False
                break
        if same:
            return record
        record = sets.next[record]
    return record


@helper
def insert(sets, i, y, cost):
    """Put y, with no mass yet, at the head of S_i and return its record. `reserve` must have made room."""
    record = sets.spare[i]
    if record >= 0:
        sets.spare[i] = sets.next[record]
    else:
        record = sets.used[RECORDS]
        sets.start[record], sets.slot[record] = sets.used[INTEGERS], sets.slots[i]
        sets.slots[i] += 1
        sets.used[RECORDS] += 1
        sets.used[INTEGERS] += len(y)
    start = sets.start[record]
    for k in range(len(y)):
        sets.outputs[start + k] = y[k]
    sets.weight[record] = 0.0
    sets.cost[record] = cost
    sets.next[record] = sets.head[i]
    sets.head[i] = record
    sets.size[i] += 1
    return record


@helper
def remove(sets, i, record, before):
    """Take `record` out of S_i, where it follows the record `before` (-1: it is the first)."""
    if before >= 0:
        sets.next[before] = sets.next[record]
    else:
        sets.head[i] = sets.next[record]
    sets.weight[record] = 0.0
    sets.next[record] = sets.spare[i]
    sets.spare[i] = record
    sets.size[i] -= 1


@helper
def drop_inactive(sets, i):
    """S_i <- S_i - {y : lambda_i(y) = 0}."""
    record, before = sets.head[i], -1
    while record >= 0:
        following = sets.next[record]
        if sets.weight[record] == 0.0:
            remove(sets, i, record, before)
        else:
            before = record
        record = following


@helper
def gather(head, following, start, outputs, i, length, records, ys):
    """Copy S_i, its records and its outputs, in the order of its list; returns |S_i|.

    Takes the arrays of the sets one by one: taking them out of the tuple counts references, which a loop should do once, not
    in every visit.
    """
    n, record = 0, head[i]
    while record >= 0:
        records[n] = record
        for j in range(length):
            ys[n, j] = outputs[start[record] + j]
        n += 1
        record = following[record]
    return n


@helper
def set_products(sets, i, records, n, k, values):
    """Enter the products of records[k] with the first n records, as they were computed into `values`."""
    row = products_of(sets, i, records[k])
    for j in range(n):
        row[sets.slot[records[j]]] = values[j]
        products_of(sets, i, records[j])[sets.slot[records[k]]] = values[j]


@entry
def start_at_targets(problem, sets, C):
    """Begin with w = 0: S_i = {t_i}, lambda_i(t_i) = C_i. `reserve` must have made room."""
    for i in range(len(C)):
        t = kernels.target(problem, i)
        record = insert(sets, i, t, kernels.cost(problem, i, t))
        sets.weight[record] = C[i]
        if sets.room.size:
            products_of(sets, i, record)[sets.slot[record]] = 0.0  # dF_i(t_i) = 0


@entry
def refresh_products(problem, sets, examples, records, ys, values, scratch, second):
    """Compute the products of `examples` again. Scratch: the next three for the largest S_i, two cleared Accumulators."""
    head, following, start, outputs = sets.head, sets.next, sets.start, sets.outputs
    for i in examples:
        target = kernels.target(problem, i)
        n = gather(head, following, start, outputs, i, len(target), records, ys)
        for k in range(n):
            y = ys[k, : len(target)]
            kernels.products(problem, i, target, y, ys[:, : len(target)], k + 1, values, scratch, second)
            set_products(sets, i, records, k + 1, k, values)


@entry
def shift_by_targets(before, problem, examples, C, w):
    """w += sum_i C_i (F(x_i, t_i) - F(x_i, t_i before)) over `examples`."""
    for i in examples:
        if C[i] > 0.0:
            kernels.difference(problem, i, kernels.target(problem, i), kernels.target(before, i), C[i], w)


def follow_targets(before: Any, problem: Any, examples: np.ndarray, C: np.ndarray, weights: Weights) -> None:
    """The weights of the same multipliers against new targets; an average begins anew."""
    shift_by_targets(before, problem, examples, C, weights.v)
    if weights.u.size:
        weights.u[:] = 0.0
        weights.numbers[[SUM, STEPS]] = 0.0


@entry
def add_weights_of(problem, sets, w):
    """w += sum_i sum_y lambda_i(y) dF_i(y)."""
    for i in range(len(sets.head)):
        t = kernels.target(problem, i)
        record = sets.head[i]
        while record >= 0:
            if sets.weight[record] > 0.0:
                kernels.difference(problem, i, t, output_of(sets, record, len(t)), sets.weight[record], w)
            record = sets.next[record]


def weights_of(problem: Any, sets: ActiveSets, dtype: Any = np.float64) -> np.ndarray:
    """The weights that the multipliers stand for, summed afresh in float64."""
    w = np.zeros(kernels.n_weights(problem))
    add_weights_of(problem, sets, w)
    return w.astype(dtype, copy=False)


def dual_value(sets: ActiveSets, w: np.ndarray, gamma: float) -> float:
    """D(lambda) = -1/2 ||w||^2 + gamma sum_i sum_y lambda_i(y) l_i(y), for the weights w of these sets."""
    used = sets.used[RECORDS]
    w = w.astype(np.float64, copy=False)
    return gamma * float(sets.weight[:used] @ sets.cost[:used]) - 0.5 * float(w @ w)


@dataclass
class DualState(State):
    """What dual solvers remember: the multipliers in their active sets, the weights they stand for, and scratch memory."""

    sets: ActiveSets | None = None
    weights: Weights | None = None
    work: Workspace | None = None


def primal_value(task: Task, w: np.ndarray) -> float:
    """P(w). One oracle call per example."""
    losses = losses_at(task.problem, task.loss, w, task.n_jobs)
    w = w.astype(np.float64, copy=False)
    return 0.5 * float(w @ w) + float(task.C @ losses)


def certified_dual(task: Task, state: DualState) -> float:
    """D(lambda), with weights summed afresh where those at hand are rounded to less than float64."""
    w = state.weights.v
    return dual_value(state.sets, w if w.dtype == np.float64 else weights_of(task.problem, state.sets), task.loss.gamma)
