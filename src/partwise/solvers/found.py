"""The outputs found so far: what the solvers of the summed error share (`sdcd`, `lse_cutting_plane`).

    P_V(w) = 1/2 ||w||^2 + sum_i C_i sum_{y in V_i} max(0, gamma l_i(y) - w . dF_i(y)),    dF_i(y) = F(x_i, t_i) - F(x_i, y)

(squared: half the square of each violation; phi in what follows, see `losses.slacks`). V_i is a cache of outputs, an active set
(`active`) from which nothing is ever removed: all outputs of example i where the structure can list them
(``kernels.all_outputs``; then P_V is P), else those that the oracle has named so far. V only grows, so P_V and its minimum only
rise, towards P and the minimum of P. A lower bound of min P_V is a lower bound of min P; the value P_V(w) is a lower bound of
P(w), and nobody knows by how much: ``SolveResult.unseen`` is inf.

The target itself is left out of V_i: its violation is its cost, zero, whatever w is. (As dF_i(t_i) = 0, Algorithm 2 of
Balamurugan et al. would divide by zero there.) A target that costs something, as CCCP may choose it, adds that constant.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from partwise import kernels
from partwise.engine.accumulator import Accumulator, accumulator
from partwise.engine.compilation import compiled_loop, helper
from partwise.engine.numerics import copy
from partwise.engine.threads import in_threads
from partwise.kernels import chunks
from partwise.losses.in_loops import evaluate, workspace
from partwise.losses.records import Family, Loss, Summed
from partwise.losses.slacks import charge, pull
from partwise.objective import SLICE, Value
from partwise.solvers.active import ActiveSets, active_sets, insert, reserve, set_products
from partwise.solvers.base import Solver, Task, verdict

LISTING = (kernels.n_outputs, kernels.all_outputs)
NOBODY = np.zeros(0, np.bool_)  # is asleep


def lists_outputs(problem: Any) -> bool:
    """Whether all outputs of an example can be listed, so that nothing is left to be found."""
    return all(k.kernel.find(type(problem)) is not None for k in LISTING)


class Visit(NamedTuple):
    """Scratch memory for one V_i and two outputs more."""

    records: np.ndarray  #: (n,) in the sets
    slots: np.ndarray  #: (n,) of these records
    ys: np.ndarray  #: (n, longest) the outputs
    gradient: np.ndarray  #: (n,) w . dF_i(y) - gamma l_i(y): minus the violation
    before: np.ndarray  #: (n,) the same, before the visit
    mass: np.ndarray  #: (n,) alpha_i(y)
    change: np.ndarray  #: (n,) of alpha_i(y); also a row of products in the making


def make_visit(largest: int, longest: int) -> Visit:
    """Scratch memory for so many outputs of that length."""
    capacity = largest + 2
    records, slots = np.zeros((2, capacity), np.int64)
    return Visit(records, slots, np.zeros((capacity, longest), np.int32), *np.zeros((4, capacity)))


@helper
def look_up(sets, i, length, asleep, records, slots, ys):
    """Copy V_i, its records and its outputs, but for records that are `asleep` (if it is not empty); returns how many."""
    following, slot, start, outputs = sets.next, sets.slot, sets.start, sets.outputs
    n, record = 0, sets.head[i]
    while record >= 0:
        if not asleep.size or not asleep[record]:
            records[n], slots[n] = record, slot[record]
            for j in range(length):
                ys[n, j] = outputs[start[record] + j]
            n += 1
        record = following[record]
    return n


@helper
def contains(ys, n, y):
    """Whether y is one of the first n outputs."""
    for k in range(n):
        same = True
        for j in range(len(y)):
            if ys[k, j] != y[j]:
                same = False
                break
        if same:
            return True
    return False


@helper
def admit(problem, i, y, sets, visit, n, scratch, second):
    """V_i <- V_i + {y}, with alpha_i(y) = 0, as the last of the n + 1 in `visit`; with its products, if they are kept."""
    length = len(y)
    record = insert(sets, i, y, kernels.cost(problem, i, y))
    visit.records[n], visit.slots[n] = record, sets.slot[record]
    copy(y, visit.ys[n, :length])
    if sets.room.size:
        target, ys = kernels.target(problem, i), visit.ys[:, :length]
        kernels.products(problem, i, target, y, ys, n + 1, visit.change, scratch, second)
        set_products(sets, i, visit.records, n + 1, n, visit.change)


@compiled_loop
def count_outputs(problem, counts):
    """counts[i] = how many outputs `kernels.all_outputs` may write."""
    for i in range(len(counts)):
        counts[i] = kernels.n_outputs(problem, i)


@compiled_loop
def list_pass(problem, sets, visit, ys, scratch, second):
    """V_i = all outputs of example i but the target, if it costs nothing."""
    for i in range(len(sets.head)):
        target, n = kernels.target(problem, i), 0
        rows = ys[:, : len(target)]
        for k in range(kernels.all_outputs(problem, i, rows)):
            if not contains(rows[k:], 1, target) or kernels.cost(problem, i, target) > 0.0:
                admit(problem, i, rows[k], sets, visit, n, scratch, second)
                n += 1


def first_sets(problem: Any, products: bool) -> ActiveSets:
    """V_i: all outputs, if they can be listed, else none yet."""
    n = kernels.n_examples(problem)
    sets = active_sets(n, products)
    if not lists_outputs(problem):
        return sets
    counts = np.zeros(n, np.int64)
    count_outputs(problem, counts)
    sets = reserve(sets, problem, counts)
    most, longest = int(counts.max(initial=0)), longest_output(problem)
    visit = make_visit(most, longest)
    list_pass(problem, sets, visit, np.zeros((most, longest), np.int32), *two_accumulators(problem, np.float64))
    return sets


@compiled_loop
def name_pass(problem, loss, first, last, w, work, starts, out, values):
    """The outputs that `loss`, a hinge, finds most violated at w, first <= i < last, end to end in `out`; and by how much."""
    for i in range(first, last):
        values[i] = evaluate(loss, problem, i, w, 1.0, work)
        copy(work.y[: starts[i + 1] - starts[i]], out[starts[i] : starts[i + 1]])


@compiled_loop
def admit_pass(problem, loss, starts, out, values, C, sets, visit, scratch, second):
    """V_i <- V_i + {y_i} for the outputs in `out` that are new and violated; returns how many, and what they add to R_V."""
    added, total = 0, 0.0
    for i in range(len(values)):
        y = out[starts[i] : starts[i + 1]]
        if values[i] > 0.0 and C[i] > 0.0:
            n = look_up(sets, i, len(y), NOBODY, visit.records, visit.slots, visit.ys)
            if not contains(visit.ys, n, y):
                admit(problem, i, y, sets, visit, n, scratch, second)
                added += 1
                total += C[i] * charge(loss, values[i])
    return added, total


def search(task: Task, sets: ActiveSets, w: np.ndarray) -> tuple[ActiveSets, int, float]:
    """V with what the oracle names at w; how many outputs are new, and what they add to R_V(w). One oracle call per example."""
    problem = task.problem
    starts, _ = kernels.sizes(problem)
    out, values = np.zeros(starts[-1], np.int32), np.zeros(task.n)
    hinge = Family(math.inf, task.loss.gamma).kernel

    def run(chunk):
        work = workspace(problem, w.dtype)
        for first in range(*chunk, SLICE):
            name_pass(problem, hinge, first, min(first + SLICE, chunk[1]), w, work, starts, out, values)

    in_threads(run, chunks(problem), task.n_jobs)
    sets = reserve(sets, problem)
    visit = make_visit(int(sets.size.max(initial=0)), longest_output(problem))
    added, total = admit_pass(
        problem, task.loss.kernel, starts, out, values, task.C, sets, visit, *two_accumulators(problem, np.float64)
    )
    return sets, int(added), float(total)


def longest_output(problem: Any) -> int:
    """Integers that write down the longest output."""
    return kernels.extent(problem)[0]


def two_accumulators(problem: Any, dtype: Any) -> tuple[Accumulator, Accumulator]:
    """Scratch memory in feature space."""
    d, width = kernels.n_weights(problem), kernels.width(problem)
    return accumulator(d, width, dtype), accumulator(d, width, dtype)


@compiled_loop
def found_pass(problem, loss, first, last, C, sets, w, visit, scratch, losses, gradient):
    """losses[i] = sum over V_i of phi(violation at w), first <= i < last; gradient += sum_i C_i (subgradient), if not empty."""
    records, slots, all_ys, values = visit.records, visit.slots, visit.ys, visit.gradient
    for i in range(first, last):
        target = kernels.target(problem, i)
        ys = all_ys[:, : len(target)]
        n, total = look_up(sets, i, len(target), NOBODY, records, slots, ys), 0.0
        kernels.margins(problem, i, w, target, ys, n, values, scratch)
        for k in range(n):
            violation = loss.gamma * sets.cost[records[k]] - values[k]
            if violation > 0.0:
                total += charge(loss, violation)
                if gradient.size and C[i] > 0.0:
                    kernels.difference(problem, i, target, ys[k], -C[i] * pull(loss, violation), gradient)
        losses[i] = total


def found_risk(task: Task, sets: ActiveSets, w: np.ndarray, slope: bool = False) -> tuple[float, np.ndarray]:
    """R_V(w) = sum_i C_i sum_{V_i} phi(gamma l - w . dF), and a subgradient if its `slope` is asked for (else empty).

    No oracle. Every chunk of examples has a vector of its own and they are added in their order: threads change nothing.
    """
    losses, plan = np.zeros(task.n), chunks(task.problem)
    largest, longest = int(sets.size.max(initial=0)), longest_output(task.problem)
    d, width = kernels.n_weights(task.problem), kernels.width(task.problem)

    def run(chunk):
        gradient, scratch, visit = np.zeros(d if slope else 0), accumulator(d, width, w.dtype), make_visit(largest, longest)
        for first in range(*chunk, SLICE):
            found_pass(
                task.problem, task.loss.kernel, first, min(first + SLICE, chunk[1]), task.C, sets, w, visit, scratch,
                losses, gradient,
            )  # fmt: skip
        return gradient

    gradients = in_threads(run, plan, task.n_jobs)
    total = gradients[0]
    for gradient in gradients[1:]:
        total += gradient
    return float(task.C @ losses), total


@dataclass(frozen=True)
class FoundSolver(Solver):
    """What solvers over the outputs found so far have in common. Their states have `sets`, `listed` and `seen`."""

    accepted = "the summed error"
    fixed_targets = True

    def accepts(self, loss: Loss) -> bool:
        return isinstance(loss, Summed)

    def needs_of(self, loss: Loss) -> tuple[Any, ...]:
        return (kernels.best, kernels.add_cost)

    def lower_bound(self, task: Task, state: Any) -> float:
        """Of the minimum over V, and so over all outputs."""
        raise NotImplementedError

    def value_at(self, task: Task, state: Any, w: np.ndarray, dual: bool = True) -> Value:
        """P_V at any weights; the bound is that of the state, which holds for all of them."""
        exact = w.astype(np.float64, copy=False)
        primal = 0.5 * float(exact @ exact) + found_risk(task, state.sets, w)[0]
        return Value(primal, min(self.lower_bound(task, state), primal) if dual else math.nan, np.zeros(0))

    def unseen(self, task: Task, state: Any, w: np.ndarray) -> float:
        return 0.0 if state.listed else math.inf

    def verdict(self, state: Any, value: Value, tol: float) -> str:
        """The gap over V, once a pass with the oracle has found no violation beyond the tolerance either."""
        why = verdict(value, tol)
        if not why or state.listed:
            return why
        if not state.seen <= tol * abs(value.primal):
            return ""
        return why + f", over the {int(state.sets.size.sum())} outputs found: what others would add to the sum is not known"
