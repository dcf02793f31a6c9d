"""Active sets: the outputs that carry dual mass, for every example, in a handful of flat arrays.

Dual solvers of max-margin losses write the weights as

    w = sum_i sum_{y in S_i} lambda_i(y) dF_i(y),    dF_i(y) = F(x_i, t_i) - F(x_i, y),

and S_i, the outputs the oracle has found for example i, grows and shrinks while they run. Here S_i is a linked list of *records*; a
record is an output, its multiplier lambda_i(y) and its cost l_i(y) against the gold output. Margins are against the target t_i of
the problem at hand, which is not stored: if targets change (CCCP), the sets stay valid and only w moves.

Compiled loops never allocate. A pass that visits every example once inserts at most one record per example, so Python calls `reserve`
before it; arrays grow geometrically and pages that were never written cost no memory. A removed record is kept for the next
insertion of the same example (its outputs have the same length); `compact` drops those that stayed unused.

Memory: 40 bytes plus 4 bytes per integer of the output, for each record.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from partwise import kernels
from partwise.compilation import entry, helper

RECORDS, INTEGERS = range(2)


class ActiveSets(NamedTuple):
    """The sets S_i of all examples. Lists end with -1."""

    head: np.ndarray  #: (N,) first record of S_i
    spare: np.ndarray  #: (N,) first of the removed records of example i
    size: np.ndarray  #: (N,) |S_i|
    next: np.ndarray  #: (records,) the record after this one
    weight: np.ndarray  #: (records,) lambda_i(y) >= 0, zero for removed records
    cost: np.ndarray  #: (records,) l_i(y)
    start: np.ndarray  #: (records,) where the output begins in `outputs`
    outputs: np.ndarray  #: int32, the outputs of all records, end to end
    used: np.ndarray  #: (2,) how many records and how many integers of `outputs` are taken


def active_sets(n_examples: int) -> ActiveSets:
    """Empty sets."""
    none = np.zeros(0, np.int64)
    lists = [np.full(n_examples, -1, np.int64), np.full(n_examples, -1, np.int64), np.zeros(n_examples, np.int64)]
    return ActiveSets(*lists, none, np.zeros(0), np.zeros(0), none, np.zeros(0, np.int32), np.zeros(2, np.int64))


def reserve(sets: ActiveSets, problem: Any) -> ActiveSets:
    """The same sets with room for one more record of every example; compacted first if most of them are removed ones."""
    starts, _ = kernels.sizes(problem)
    records, integers = (int(n) for n in sets.used)
    if records > 2 * int(sets.size.sum()) + len(sets.head):
        sets = compact(sets, np.diff(starts))
        records, integers = (int(n) for n in sets.used)
    need = records + len(sets.head), integers + int(starts[-1])
    if need[RECORDS] > len(sets.next):
        room = max(need[RECORDS], 3 * len(sets.next) // 2)
        sets = sets._replace(**{name: grown(getattr(sets, name), room, records) for name in ("next", "weight", "cost", "start")})
    if need[INTEGERS] > len(sets.outputs):
        sets = sets._replace(outputs=grown(sets.outputs, max(need[INTEGERS], 3 * len(sets.outputs) // 2), integers))
    return sets


def grown(a: np.ndarray, room: int, used: int) -> np.ndarray:
    """A longer array with the same first `used` entries."""
    longer = np.empty(room, a.dtype)
    longer[:used] = a[:used]
    return longer


def compact(sets: ActiveSets, lengths: np.ndarray) -> ActiveSets:
    """The same sets without removed records, every S_i in one piece and in the order of its list."""
    n = len(sets.head)
    owner = np.repeat(np.arange(n), sets.size)
    first = np.cumsum(sets.size) - sets.size
    old = np.empty(len(owner), np.int64)
    at = sets.head.copy()
    for depth in range(int(sets.size.max(initial=0))):
        live = np.flatnonzero(sets.size > depth)
        old[first[live] + depth] = at[live]
        at[live] = sets.next[at[live]]
    each = lengths[owner]
    start = np.cumsum(each) - each
    integers = int(each.sum())
    follow = np.arange(1, len(owner) + 1)
    follow[first[sets.size > 0] + sets.size[sets.size > 0] - 1] = -1
    outputs = sets.outputs[np.repeat(sets.start[old] - start, each) + np.arange(integers)]
    return ActiveSets(
        np.where(sets.size > 0, first, -1), np.full(n, -1, np.int64), sets.size.copy(),
        follow, sets.weight[old], sets.cost[old], start, outputs, np.array([len(owner), integers], np.int64),
    )  # fmt: skip


@helper
def output_of(sets, record, length):
    """The output of a record of an example whose outputs have `length` integers."""
    return sets.outputs[sets.start[record] : sets.start[record] + length]


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
        sets.start[record] = sets.used[INTEGERS]
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


@entry
def start_at_targets(problem, sets, C):
    """Begin with w = 0: S_i = {t_i}, lambda_i(t_i) = C_i. `reserve` must have made room."""
    for i in range(len(C)):
        t = kernels.target(problem, i)
        sets.weight[insert(sets, i, t, kernels.cost(problem, i, t))] = C[i]


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
