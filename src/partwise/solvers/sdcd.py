"""SDCD: sequential dual coordinate descent for the summed error (Balamurugan et al., Algorithm 2).

Problem: ``min_w 1/2 ||w||^2 + sum_i C_i sum_y max(0, gamma l_i(y) - w . dF_i(y))``, dF_i(y) = F(x_i, t_i) - F(x_i, y), over the
outputs y in V_i (see `found`: all of them where the structure can list them, else those the oracle has named), through its dual:

    max_alpha  D(alpha) = -1/2 ||w||^2 + gamma sum_i sum_{y in V_i} alpha_i(y) l_i(y),    w = sum_i sum_y alpha_i(y) dF_i(y),
    subject to  0 <= alpha_i(y) <= C_i                                                                   (OP5 of the paper)

No constraint ties two variables together, as in the dual of the hinge (`sdm`): one at a time is enough.

    V_i = {}, w = 0
    repeat
        for each example i:                                                                                 (a type-I pass)
            V_i <- V_i + {argmax_y gamma l_i(y) - w . dF_i(y)};  VISIT(i)
        after the first kappa1 of these, kappa2 - 1 times, while it pays: for each example i:  VISIT(i)      (a type-II pass)

    VISIT(i):  a few sweeps over y in V_i:
        alpha = min{ C_i, max{ 0, alpha_i(y) - (w . dF_i(y) - gamma l_i(y)) / ||dF_i(y)||^2 } }                         (IV.6)
        w += (alpha - alpha_i(y)) dF_i(y);  alpha_i(y) = alpha                                                          (IV.7)

Squared (``Summed(squared=True)``), the loss has half the square of each positive part. Then alpha_i(y) has no upper bound and D
pays alpha_i(y)^2 / (2 C_i) for it (as in Hsieh et al. 2008): add 1 / C_i to ||dF_i(y)||^2, and alpha_i(y) / C_i to the gradient.

An output with the features of the target but a cost has no curvature: its alpha goes to C_i at once. The target itself is left
out; Algorithm 2 puts alpha_i(t_i) = C_i, which does nothing but divide by zero.

What makes it quick beyond the paper (``plain=True`` leaves all of it out): the products dF_i(y) . dF_i(z) are kept, so a visit
computes the margins of V_i once, sweeps until they are nearly settled and only then moves w. Type-II passes visit only examples
with a large gap, there only the outputs whose alpha the type-I pass did not leave content at one of its bounds, and end when they
gain too little. An example that has no new output and a small gap is left alone for some passes. None of this touches the
certificate, which is computed over all examples:

    P_V(w) - D(alpha) = sum_i sum_{y in V_i} C_i max(0, v) - alpha_i(y) v >= 0,    v = gamma l_i(y) - w . dF_i(y)

(squared: C_i/2 max(0, v)^2 - alpha_i(y) v + alpha_i(y)^2 / (2 C_i)).

It says how far w is from the optimum *over V*. D bounds the optimum over all outputs from below as well; how much higher P(w) is
than P_V(w), nobody knows, unless all outputs are listed. The method stops when the gap is small both over V and in a type-I
pass, in which the outputs just named count too; or, with a `threshold`, where the paper stops.

Cost of an epoch: at most one oracle call per example, and for each pass O(|V_i|) sparse margins and |V_i|^2 operations. Memory:
w, two vectors of scratch as long as w (only rows that were touched are resident), and for each example 48 |V_i| + 8 |V_i|^2
bytes and the outputs.

References
----------
P. Balamurugan, S. Shevade, T. Ravindra Babu. Efficient algorithms for linear summed error structural SVMs.
C.-J. Hsieh, K.-W. Chang, C.-J. Lin, S. S. Keerthi, S. Sundararajan (2008). A dual coordinate descent method for large-scale
linear SVM. ICML.
J. Weston, C. Watkins (1999). Support vector machines for multi-class pattern recognition. ESANN.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from partwise import kernels
from partwise.engine.accumulator import Accumulator
from partwise.engine.compilation import compiled_loop, helper
from partwise.losses.in_loops import score_augmented, workspace
from partwise.losses.slacks import charge, most, ridge
from partwise.objective import Value
from partwise.solvers.active import reserve, weights_of
from partwise.solvers.base import SLICE, Progress, Task
from partwise.solvers.dual_state import DualState, certified_dual
from partwise.solvers.found import (
    NOBODY,
    FoundSolver,
    admit,
    contains,
    first_sets,
    lists_outputs,
    look_up,
    make_visit,
    search,
    two_accumulators,
)
from partwise.solvers.smo import rounding
from partwise.solvers.weights import current, make_weights

SWEEPS = 5  # of a visit, at most
INEXACT = 0.1  # a visit ends when a sweep moves this much of what its first one did
LONGEST_REST = 8  # type-I passes
QUIET = 0.3  # part of the mean gap, below which an example without a new output may rest
PAYS = 0.2  # type-II passes go on while their visits gain this much of what visits of the type-I pass gained
SMALL = 0.5  # an example waits for the next type-I pass when its gap is this much of the mean
REFRESH = 32  # epochs between two fresh sums of w, against rounding


@helper
def descend(products, first, side, slots, g, mass, n, upper, diagonal, sweeps):
    """At most so many sweeps of coordinate steps over the n outputs of an example; returns the sum of the squared steps.

    `products` holds dF(y) . dF(z) as a square of that `side` from `first` on; output k has row and column slots[k] in it. The
    curvature of each is `diagonal` more than that.
    """
    changed, enough = 0.0, 0.0
    for sweep in range(sweeps):
        largest = 0.0
        for k in range(n):
            start = first + slots[k] * side
            row = products[start : start + side]
            curvature, old = row[slots[k]] + diagonal, mass[k]
            if curvature > 0.0:
                new = min(max(old - g[k] / curvature, 0.0), upper)
            else:  # the features of the target: only the cost counts
                new = upper if g[k] < 0.0 else old
            step = new - old
            if step != 0.0:
                mass[k] = new
                changed += step * step
                largest = max(largest, abs(step) * max(curvature, abs(g[k])))
                for j in range(n):
                    g[j] += step * row[slots[j]]
                g[k] += step * diagonal
        if largest <= enough:
            break
        if sweep == 0:
            enough = INEXACT * largest
    return changed


@helper
def settle(problem, loss, i, C, sets, visit, n, sweeps, tiny, w):
    """Coordinate steps for example i, whose n outputs are in `visit`, with minus their violations for gradients.

    Returns its gap before, how much D rises, and the sum of the squared steps.
    """
    records, slots, all_ys, g, before, mass, change = visit
    weight, gap, violation, upper, diagonal = sets.weight, 0.0, 0.0, most(loss, C), ridge(loss, C)
    for k in range(n):
        mass[k] = weight[records[k]]
        gap += mass[k] * g[k] + C * charge(loss, -g[k]) + 0.5 * diagonal * mass[k] * mass[k]
        g[k] += diagonal * mass[k]
        before[k] = g[k]
        violation = max(violation, -g[k] if mass[k] < upper else 0.0, g[k] if mass[k] > 0.0 else 0.0)
    if violation <= tiny:
        return max(gap, 0.0), 0.0, 0.0
    changed = descend(sets.products, sets.square[i], sets.room[i], slots, g, mass, n, upper, diagonal, sweeps)
    gain, total = 0.0, 0.0
    for k in range(n):
        change[k] = mass[k] - weight[records[k]]
        # D is quadratic, so its gain is minus the change times the mean of the gradients before and after
        gain -= 0.5 * change[k] * (before[k] + g[k])
        weight[records[k]] = mass[k]
        total += change[k]
    if changed > 0.0:  # sum_k change[k] dF(y_k): what the outputs gain, the target loses
        target = kernels.target(problem, i)
        ys = all_ys[:, : len(target)]
        ys[n] = target
        change[n] = -total
        kernels.move_mass(problem, i, ys, change, n + 1, 1.0, w)
    return max(gap, 0.0), gain, changed


@helper
def send_to_sleep(upper, visit, n, asleep):
    """asleep: the alpha of a record is at one of its bounds, and would rather be beyond."""
    for k in range(n):
        g, mass = visit.gradient[k], visit.mass[k]
        asleep[visit.records[k]] = (mass == 0.0 and g > 0.0) or (mass == upper and g < 0.0)


@compiled_loop
def oracle_pass(problem, loss, order, C, sets, w, visit, work, second, sweeps, quiet, losses, gaps, changes, rest, calm, asleep):
    """Visit the examples in `order` with the oracle; returns the gain in D and the number of calls.

    Written for each example: its loss over V_i, its gap, its squared steps, and which outputs are asleep, if that array
    is not empty. It may rest if its gap is below `quiet`.
    """
    records, slots, all_ys, gradient = visit.records, visit.slots, visit.ys, visit.gradient
    gained, calls = 0.0, 0
    for i in order:
        if C[i] == 0.0:
            continue
        if rest[i] > 0:
            rest[i] -= 1
            continue
        calls += 1
        length, theta = kernels.length(problem, i), work.theta[: kernels.n_parts(problem, i)]
        y, ys = work.y[:length], all_ys[:, :length]
        reference = score_augmented(problem, i, w, 1.0, loss.gamma, theta, work.t[:length])
        steepest = reference - float(kernels.best(problem, i, theta, y))
        n, total = look_up(sets, i, length, NOBODY, records, slots, ys), 0.0
        for k in range(n):
            gradient[k] = reference - float(kernels.value_of(problem, i, theta, ys[k]))
            total += charge(loss, -gradient[k])
        tiny = rounding(w, abs(reference))
        fresh = steepest < -tiny and not contains(ys, n, y)
        if fresh:
            admit(problem, i, y, sets, visit, n, work.gradient, second)
            gradient[n] = steepest
            total += charge(loss, -steepest)
            n += 1
        losses[i] = total
        gaps[i], gain, changes[i] = settle(problem, loss, i, C[i], sets, visit, n, sweeps, tiny, w)
        gained += gain
        if asleep.size:
            send_to_sleep(most(loss, C[i]), visit, n, asleep)
        if fresh or gaps[i] > quiet:
            calm[i] = 0
        else:
            rest[i] = calm[i]
            calm[i] = min(2 * calm[i] + 1, LONGEST_REST)
    return gained, calls


@compiled_loop
def cached_pass(problem, loss, order, C, sets, w, visit, second, sweeps, losses, gaps, changes, asleep, wake):
    """Visit the examples in `order` without the oracle; returns the gain in D.

    With `wake`, all outputs are looked at and the same is written as in `oracle_pass`, else only those that are not asleep.
    """
    records, slots, all_ys, gradient = visit.records, visit.slots, visit.ys, visit.gradient
    cost, gained = sets.cost, 0.0
    for i in order:
        target = kernels.target(problem, i)
        ys = all_ys[:, : len(target)]
        n, total, high = look_up(sets, i, len(target), NOBODY if wake else asleep, records, slots, ys), 0.0, 0.0
        kernels.margins(problem, i, w, target, ys, n, gradient, second)
        for k in range(n):
            gradient[k] -= loss.gamma * cost[records[k]]
            total += charge(loss, -gradient[k])
            high = max(high, abs(gradient[k]))
        losses[i] = total
        gaps[i], gain, changes[i] = settle(problem, loss, i, C[i], sets, visit, n, sweeps, rounding(w, high), w)
        gained += gain
        if wake and asleep.size:
            send_to_sleep(most(loss, C[i]), visit, n, asleep)
    return gained


@dataclass
class SDCDState(DualState):
    """Besides: what was last seen of each example, and how long it may rest."""

    listed: bool = False  #: whether V_i are all outputs
    second: Accumulator | None = None
    losses: np.ndarray | None = None
    gaps: np.ndarray | None = None
    changes: np.ndarray | None = None
    rest: np.ndarray | None = None
    calm: np.ndarray | None = None
    seen: float = 0.0  #: sum of the gaps in the last type-I pass
    changed: float = math.inf  #: largest sum of squared steps of an example in the last type-I pass


@dataclass(frozen=True)
class SDCD(FoundSolver):
    """Sequential dual coordinate descent for the summed error (see the module); an epoch is a type-I pass and what follows it.

    Parameters
    ----------
    kappa1 : int
        Epochs without type-II passes at the beginning.
    kappa2 : int
        Passes of an epoch after that, at most: one of type I, the others of type II.
    threshold : float, optional
        The stopping rule of the paper (its deltathresh, 1e-4): stop when in a type-I pass no example's squared steps sum to more.
        By default it is the duality gap that decides.
    plain : bool
        Algorithm 2 to the letter: one sweep a visit, all examples in every pass.

    Examples
    --------
    >>> from partwise import multiclass_problem, solve
    >>> problem = multiclass_problem([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0, 1, 0])
    >>> result = solve(problem, "squared_summed", SDCD(), C=1.0, max_epochs=20)
    >>> result.solver.name, result.w.shape
    ('sdcd', (4,))
    """

    name = "sdcd"
    default_epochs = 1000

    kappa1: int = 10
    kappa2: int = 5
    threshold: float | None = None
    plain: bool = False

    def __post_init__(self):
        for parameter, least in (("kappa1", 0), ("kappa2", 1)):
            value = getattr(self, parameter)
            if not isinstance(value, int | np.integer) or value < least:
                raise ValueError(
                    f"The {parameter!r} parameter of SDCD must be an int in the range [{least}, inf). Got {value!r} instead."
                )
        if self.threshold is not None and not (isinstance(self.threshold, int | float) and 0 <= self.threshold < math.inf):
            raise ValueError(
                f"The 'threshold' parameter of SDCD must be None or a float in the range [0, inf). Got {self.threshold!r} "
                "instead."
            )

    @property
    def sweeps(self) -> int:
        """Of a visit, at most."""
        return 1 if self.plain else SWEEPS

    @property
    def rehearsal(self) -> int:
        return self.kappa1 + 2  # type-II passes come late

    def init(self, task: Task, start: np.ndarray | None = None) -> SDCDState:
        problem, n = task.problem, task.n
        scratch, second = two_accumulators(problem, task.dtype)
        state = SDCDState(
            sets=first_sets(problem, products=True),
            listed=lists_outputs(problem),
            weights=make_weights(kernels.n_weights(problem), task.dtype, False),
            work=workspace(problem, task.dtype)._replace(gradient=scratch),
            second=second,
            losses=np.zeros(n),
            gaps=np.zeros(n),
            changes=np.zeros(n),
            rest=np.zeros(n, np.int8),
            calm=np.zeros(n, np.int8),
        )
        if start is not None and not state.listed:
            # a dual method cannot start at any w; but it can start from the outputs that w finds violated
            state.sets, _, _ = search(task, state.sets, np.asarray(start, task.dtype))
            state.oracle_calls += n
        return state

    def epoch(self, task: Task, state: SDCDState) -> Progress:
        if state.epochs % REFRESH == REFRESH - 1:
            state.weights.v[:] = weights_of(task.problem, state.sets, task.loss.kernel)
        if not state.listed:
            state.sets = reserve(state.sets, task.problem)
        asleep = NOBODY if self.plain or state.epochs < self.kappa1 else np.zeros(len(state.sets.next), np.bool_)
        gained, visits = self.first_pass(task, state, asleep)
        seen, loss, w = float(state.gaps.sum()), float(task.C @ state.losses), state.weights.v
        state.seen, state.changed = seen, float(state.changes.max(initial=0.0))
        if state.epochs >= self.kappa1:
            enough, small = PAYS * gained / max(visits, 1), SMALL * seen / task.n
            self.cached_passes(task, state, asleep, *((-math.inf, -1.0) if self.plain else (enough, small)))
        state.epochs += 1
        estimate = seen
        if self.threshold is not None:
            estimate = 0.0 if state.changed < self.threshold else math.inf
        return Progress(loss, estimate, loss + 0.5 * float(w @ w))

    def first_pass(self, task: Task, state: SDCDState, asleep: np.ndarray) -> tuple[float, int]:
        """The type-I pass, without an oracle where all outputs are listed; returns the gain in D and the number of visits."""
        gained, visits, w = 0.0, 0, state.weights.v
        quiet = -1.0 if self.plain else QUIET * state.seen / task.n
        visit = make_visit(int(state.sets.size.max(initial=0)), len(state.work.y))
        seen = (state.losses, state.gaps, state.changes)
        for order in task.slices(state.epochs):
            if state.listed:
                state.rest[order] -= 1
                some = order[(state.rest[order] < 0) & (task.C[order] > 0.0)]
                gain = cached_pass(
                    task.problem, task.loss.kernel, some, task.C, state.sets, w, visit, state.second, self.sweeps, *seen, asleep,
                    True,
                )  # fmt: skip
                calls = len(some)
                calm = state.gaps[some] <= quiet
                state.rest[order] = np.maximum(state.rest[order], 0)
                state.rest[some] = np.where(calm, state.calm[some], 0)
                state.calm[some] = np.where(calm, np.minimum(2 * state.calm[some] + 1, LONGEST_REST), 0)
            else:
                gain, calls = oracle_pass(
                    task.problem, task.loss.kernel, order, task.C, state.sets, w, visit, state.work, state.second, self.sweeps,
                    quiet, *seen, state.rest, state.calm, asleep,
                )  # fmt: skip
            state.oracle_calls += calls  # to score all outputs counts as a call
            gained, visits = gained + gain, visits + calls
        return gained, visits

    def cached_passes(self, task: Task, state: SDCDState, asleep: np.ndarray, enough: float, small: float) -> None:
        """Type-II passes, while a visit gains `enough`; examples whose gap is `small` leave."""
        visit = make_visit(int(state.sets.size.max(initial=0)), len(state.work.y))
        seen = (np.zeros(task.n), np.zeros(task.n), np.zeros(task.n))
        order = task.order(state.epochs)
        order = order[(task.C[order] > 0.0) & (state.sets.size[order] > 0)]
        for _ in range(self.kappa2 - 1):
            if not len(order):
                return
            gained = 0.0
            for first in range(0, len(order), SLICE):
                some = order[first : first + SLICE]
                gained += cached_pass(
                    task.problem, task.loss.kernel, some, task.C, state.sets, state.weights.v, visit, state.second, self.sweeps,
                    *seen, asleep, False,
                )  # fmt: skip
            if gained < enough * len(order):
                return
            order = order[seen[1][order] > small]

    def weights(self, state: SDCDState) -> np.ndarray:
        return current(state.weights)

    def lower_bound(self, task: Task, state: SDCDState) -> float:
        return certified_dual(task, state)

    def bounds(self, task: Task, state: SDCDState) -> Value:
        return self.value_at(task, state, self.weights(state))

    def verdict(self, state: SDCDState, value: Value, tol: float) -> str:
        if self.threshold is None:
            return super().verdict(state, value, tol)
        if not state.changed < self.threshold:
            return ""
        return f"no example's multipliers changed by {self.threshold:g} (sum of squares) in a pass with the oracle"
