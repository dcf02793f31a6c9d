"""Active sets: the outputs that carry dual mass, for every example, in a handful of flat arrays.

Dual solvers of max-margin losses, L_i(w) = max_y [o_i(y) - w . v_i(y)] (`linear_pieces`; v_i(y) = F(x_i, t_i) - F(x_i, y) for the
hinge), write the weights as

    w = sum_i sum_{y in S_i} lambda_i(y) v_i(y),

and S_i, the outputs the oracle has found for example i, grows and shrinks while they run. Here S_i is a linked list of
*records*; a record is an output, its multiplier lambda_i(y) and its cost l_i(y) against the gold output. A solver that optimises
inside S_i also keeps the products K(y, z) = v_i(y) . v_i(z) of its outputs: a small square per example, one row of it computed
when an output is inserted, so that later visits need no features to know how outputs interact.

Margins are against the target t_i of the problem at hand, which is not stored: if targets change (CCCP), the multipliers stay
valid and only w and the products are to be computed again (`weights_of`, `refresh_products`).

For the hinge the multipliers of an example sum to C_i. For the squared hinge (`losses.slacks`) those of the other outputs may sum
to anything, and what they take from C_i is 1/(2 C_i) (their sum)^2. Here the target still gets the rest of C_i, and may get less
than nothing: then the sum is C_i for both, the price is a function of lambda_i(t_i) alone, one number on the diagonal of the
products, and dual methods need not tell the two losses apart. Such a target stays in its set, whatever its multiplier.

Compiled loops never allocate. A pass that visits every example once inserts at most one record per example, so Python calls
`reserve` before it; arrays grow geometrically and pages that were never written cost no memory. A removed record is kept for the
next insertion of the same example (its outputs have the same length, its row of products the same place); `reserve` drops those
that stay unused.

Memory of a record: 48 bytes, 4 bytes per integer of the output, and its row of products, 8 |S_i| bytes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from partwise import kernels
from partwise.engine.compilation import compiled_loop, helper
from partwise.engine.numerics import copy
from partwise.losses.in_loops import Maximum
from partwise.losses.linear_pieces import add_piece, piece_products
from partwise.losses.slacks import ridge
from partwise.solvers.base import Task
from partwise.solvers.weights import STEPS, SUM, Weights

RECORDS, INTEGERS, PRODUCTS = range(3)
HINGE = Maximum(1.0)


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
    weight: np.ndarray  #: (records,) lambda_i(y) >= 0 (but for targets of squared losses), zero for removed records
    cost: np.ndarray  #: (records,) l_i(y)
    outputs: np.ndarray  #: int32, the outputs of all records, end to end
    products: np.ndarray  #: the squares of all examples, end to end
    used: np.ndarray  #: (3,) how many records, integers of `outputs` and entries of `products` are taken

    @property
    def grows(self) -> tuple[str, ...]:
        """Fields that are longer later."""
        return ("next", "slot", "start", "weight", "cost", "outputs", "products")

    def check(self, like: ActiveSets, task: Task) -> None:
        """Raise a ValueError, unless sets that were read from a file point at what is there, and at each record once."""
        starts, _ = kernels.sizes(task.problem)
        lengths, (records, integers, products) = np.diff(starts), self.used.tolist()
        per_record = (self.next, self.slot, self.start, self.weight, self.cost)
        if len({len(array) for array in per_record}) > 1 or not 0 <= records <= len(self.next):
            raise ValueError("the records of the active sets are not of one size")
        if not (0 <= integers <= len(self.outputs) and 0 <= products <= len(self.products)):
            raise ValueError("the active sets have used more than there is")
        seen = np.zeros(records, np.bool_)
        following, slot, start = self.next.tolist(), self.slot.tolist(), self.start.tolist()
        rooms, squares = self.room.tolist(), self.square.tolist()
        for i, (head, spare, size, slots) in enumerate(
            zip(*(array.tolist() for array in (self.head, self.spare, self.size, self.slots)), strict=True)
        ):
            rows = set()
            for first, most in ((head, size), (spare, slots - size)):
                record, n = first, 0
                while record >= 0:
                    if record >= records or seen[record] or not 0 <= start[record] <= integers - lengths[i]:
                        raise ValueError(f"the active set of example {i} points at what is not there")
                    seen[record] = True
                    rows.add(slot[record])
                    record, n = following[record], n + 1
                if n != most:
                    raise ValueError(f"the active set of example {i} has {n} outputs where {most} are counted")
            side = rooms[i] if rooms else slots
            if not rows <= set(range(min(slots, side))):
                raise ValueError(f"the active set of example {i} has outputs without a row of products")
            if rooms and not (0 <= side and 0 <= squares[i] <= products - side * side):
                raise ValueError(f"the products of example {i} are not there")


def active_sets(n_examples: int, products: bool = False) -> ActiveSets:
    """Empty sets, with products or without."""

    def numbers(n, value=0):
        return np.full(n, value, np.int64)

    n, kept = n_examples, n_examples if products else 0
    return ActiveSets(
        numbers(n, -1), numbers(n, -1), numbers(n), numbers(n), numbers(kept), numbers(kept),
        numbers(0), numbers(0), numbers(0), np.zeros(0), np.zeros(0), np.zeros(0, np.int32), np.zeros(0), numbers(3),
    )  # fmt: skip


def reserve(sets: ActiveSets, problem: Any, more: np.ndarray | int = 1) -> ActiveSets:
    """The same sets with room for one more record of every example, or so many; packed first if most of it is unused."""
    starts, _ = kernels.sizes(problem)
    more = np.broadcast_to(np.asarray(more, np.int64), len(sets.head))
    n, live, squares = len(sets.head), int(sets.size.sum()), int(sets.size @ sets.size)
    if sets.used[RECORDS] > 2 * live + n or sets.used[PRODUCTS] > 8 * squares + 16 * n:
        sets = packed(sets, np.diff(starts))
    full = np.flatnonzero(sets.slots + more > sets.room) if len(sets.room) else np.zeros(0, np.int64)
    wider = np.maximum(2, sets.slots[full] + sets.slots[full] // 2 + more[full])
    sets = with_room(sets, int(more.sum()), int(more @ np.diff(starts)), int(wider @ wider))
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


@compiled_loop
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


@compiled_loop
def copy_records(old, lengths, new):
    """Copy every S_i, in the order of its list, into empty sets that have room for it."""
    for i in range(len(old.head)):
        record, last = old.head[i], -1
        while record >= 0:
            to, start = new.used[RECORDS], new.used[INTEGERS]
            new.used[RECORDS] += 1
            new.used[INTEGERS] += lengths[i]
            copy(output_of(old, record, lengths[i]), new.outputs[start : start + lengths[i]])
            new.weight[to], new.cost[to] = old.weight[record], old.cost[record]
            new.start[to], new.slot[to], new.next[to] = start, new.slots[i], -1
            new.slots[i] += 1
            new.size[i] += 1
            if last >= 0:
                new.next[last] = to
            else:
                new.head[i] = to
            if old.room.size:
                row, other = products_of(old, i, record), old.head[i]
                for k in range(old.size[i]):
                    new.products[new.square[i] + new.slot[to] * new.room[i] + k] = row[old.slot[other]]
                    other = old.next[other]
            record, last = old.next[record], to


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
def drop_inactive(sets, i, kept=-1):
    """S_i <- S_i - {y : lambda_i(y) = 0}, but for the record `kept`."""
    record, before = sets.head[i], -1
    while record >= 0:
        following = sets.next[record]
        if sets.weight[record] == 0.0 and record != kept:
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
def free_of(loss, C, ys, n, target):
    """Which of the n outputs is the target, if the loss puts no bound on its multiplier; else -1."""
    for k in range(n if ridge(loss, C) > 0.0 else 0):
        same = True
        for j in range(len(target)):
            if ys[k, j] != target[j]:
                same = False
                break
        if same:
            return k
    return -1


@helper
def set_products(sets, i, records, n, k, values):
    """Enter the products of records[k] with the first n records, as they were computed into `values`."""
    row = products_of(sets, i, records[k])
    for j in range(n):
        row[sets.slot[records[j]]] = values[j]
        products_of(sets, i, records[j])[sets.slot[records[k]]] = values[j]


@compiled_loop
def start_at_targets(problem, sets, C):
    """Begin with w = 0: S_i = {t_i}, lambda_i(t_i) = C_i. `reserve` must have made room."""
    for i in range(len(C)):
        t = kernels.target(problem, i)
        record = insert(sets, i, t, kernels.cost(problem, i, t))
        sets.weight[record] = C[i]
        if sets.room.size:
            products_of(sets, i, record)[sets.slot[record]] = 0.0  # v_i(t_i) = 0


@compiled_loop
def refresh_products(problem, loss, sets, examples, records, ys, values, scratch, second):
    """Compute the products of `examples` again. Scratch: the next three for the largest S_i, two cleared Accumulators."""
    head, following, start, outputs = sets.head, sets.next, sets.start, sets.outputs
    for i in examples:
        target = kernels.target(problem, i)
        n = gather(head, following, start, outputs, i, len(target), records, ys)
        for k in range(n):
            y = ys[k, : len(target)]
            piece_products(loss, problem, i, target, y, ys[:, : len(target)], k + 1, values, scratch, second)
            set_products(sets, i, records, k + 1, k, values)


@compiled_loop
def shift_by_targets(before, problem, loss, sets, examples, w):
    """w += sum_i sum_y lambda_i(y) (v_i(y) - v_i(y) before) over `examples`."""
    for i in examples:
        t, record = kernels.target(problem, i), sets.head[i]
        while record >= 0:
            if sets.weight[record] > 0.0:
                y = output_of(sets, record, len(t))
                add_piece(loss, problem, i, t, y, sets.weight[record], w)
                add_piece(loss, before, i, kernels.target(before, i), y, -sets.weight[record], w)
            record = sets.next[record]


@compiled_loop
def release_targets(problem, sets, examples):
    """Take all mass off the targets of `examples`."""
    for i in examples:
        record = find(sets, i, kernels.target(problem, i))
        if record >= 0:
            sets.weight[record] = 0.0


@compiled_loop
def bind_targets(problem, sets, C, examples):
    """Give the targets of `examples` what the other outputs leave of C_i. `reserve` must have made room."""
    for i in examples:
        t = kernels.target(problem, i)
        target, record, rest = find(sets, i, t), sets.head[i], C[i]
        if target < 0:
            target = insert(sets, i, t, kernels.cost(problem, i, t))
        while record >= 0:
            if record != target:
                rest -= sets.weight[record]
            record = sets.next[record]
        sets.weight[target] = rest
        drop_inactive(sets, i, target)


def follow_targets(before: Task, task: Task, sets: ActiveSets, examples: np.ndarray, weights: Weights) -> ActiveSets:
    """The sets, and the weights of their multipliers, against new targets; an average begins anew. Products are not looked at.

    The multipliers are feasible for any target. Where that of the old target only stood for what others have not, it goes.
    """
    squared = task.loss.is_squared
    if squared:
        sets = reserve(sets, task.problem)
        release_targets(before.problem, sets, examples)
    shift_by_targets(before.problem, task.problem, task.loss.kernel, sets, examples, weights.v)
    if squared:
        bind_targets(task.problem, sets, task.C, examples)
    if weights.u.size:
        weights.u[:] = 0.0
        weights.numbers[[SUM, STEPS]] = 0.0
    return sets


@compiled_loop
def add_weights_of(problem, loss, sets, w):
    """w += sum_i sum_y lambda_i(y) v_i(y)."""
    for i in range(len(sets.head)):
        t = kernels.target(problem, i)
        record = sets.head[i]
        while record >= 0:
            if sets.weight[record] > 0.0:
                add_piece(loss, problem, i, t, output_of(sets, record, len(t)), sets.weight[record], w)
            record = sets.next[record]


def weights_of(problem: Any, sets: ActiveSets, loss: Any = HINGE) -> np.ndarray:
    """The weights that the multipliers stand for, summed afresh in float64; `loss` is what compiled loops see of it."""
    w = np.zeros(kernels.n_weights(problem))
    add_weights_of(problem, loss, sets, w)
    return w
