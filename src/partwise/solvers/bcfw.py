"""BCFW: the block-coordinate Frank-Wolfe method for max-margin losses (Lacoste-Julien et al. 2013).

Problem: ``min_w 1/2 ||w||^2 + sum_i C_i max_y [o_i(y) - w . v_i(y)]``, through the same dual as SDM (see `sdm`). The
feasible set is a product of simplices, one per example; each visit takes one Frank-Wolfe step in one of them, with the exact line
search:

    S_i = {t_i}, lambda_i(t_i) = C_i, w = 0
    repeat for each example i:
        y~   = argmax_y o_i(y) - w . v_i(y)
        gap  = C_i [o_i(y~) - w . v_i(y~)] - sum_y lambda_i(y) [o_i(y) - w . v_i(y)]
        d    = C_i v_i(y~) - sum_y lambda_i(y) v_i(y)
        step = min{ 1, gap / ||d||^2 }
        lambda_i <- (1 - step) lambda_i + step C_i [y~];  w <- w + step d
    return sum_t t w_t / sum_t t,  or the last w, whichever has the lower P

The multipliers of quadratic slacks (the squared hinge; see `sdm`) are not bounded, so what the linear part of D alone asks for is
infinite. Together with what they pay, the best there is is mass U = C_i xi_i on y~, xi_i the slack at w (that is C_i for the
hinge), and a step towards it is one of the generalised Frank-Wolfe method (Bach 2015). With T the sum of the multipliers but that
of the target,

    gap  = C_i phi(xi_i) - sum_y lambda_i(y) [o_i(y) - w . v_i(y)] + T^2 / (2 C_i)
    step = min{ 1, (gap + (U - T)^2 / (2 C_i)) / (||d||^2 + (U - T)^2 / C_i) },    d = U v_i(y~) - sum_y lambda_i(y) v_i(y).

**Pairwise steps, gap sampling, caching** (Osokin et al. 2016) are what makes it converge linearly rather than like 1 / t. They
are on by default; ``BCFW(pairwise=False, gap_sampling=False, cached_passes=0)`` is the method of 2013.

    pairwise       mass moves to y~ from the one output that deserves it least, z = argmin over {lambda_i(z) > 0} of
                   o_i(z) - w . v_i(z), rather than from all in proportion:
                   step = min{ lambda_i(z), [o_i(y~) - w . v_i(y~) - o_i(z) + w . v_i(z)] / ||v_i(y~) - v_i(z)||^2 }
    gap sampling   an epoch visits N examples drawn with probabilities proportional to their gaps, as last seen; every few epochs
                   all examples are visited once, so that no gap gets too old
    cached passes  between two epochs, pairwise steps among the outputs that S_i has already: no oracle

Quadratic slacks keep the steps from all outputs.

The average weighs the t-th iterate by t, as in the paper (w-bar <- k/(k+2) w-bar + 2/(k+2) w), and is kept lazily: with
A_t = t (t + 1) / 2, sum_s s w_s = A_t w_t + u_t, where a change of w by delta before step t is counted changes u by
-A_{t-1} delta only.

The multipliers are kept in active sets rather than as one vector w_i per example: a few outputs take less memory than a sparse
vector. P - D certifies the result; D belongs to the last iterate, not to the average.

Cost of an epoch: one oracle call per example and O(|S_i|) sparse differences. Memory: w, its average, two vectors of scratch as
long as w, and the outputs with mass.

References
----------
F. Bach (2015). Duality between subgradient and conditional gradient methods. SIAM J. Optimization 25.
S. Lacoste-Julien, M. Jaggi, M. Schmidt, P. Pletscher (2013). Block-coordinate Frank-Wolfe optimization for structural SVMs. ICML.
A. Osokin, J.-B. Alayrac, I. Lukasewitz, P. K. Dokania, S. Lacoste-Julien (2016). Minding the gaps for block Frank-Wolfe
optimization of structured SVMs. ICML.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from partwise import kernels
from partwise.engine.accumulator import Accumulator, squared_norm
from partwise.engine.compilation import compiled_loop, helper
from partwise.losses.linear_pieces import ONE_SLACK, best_piece, exchange, offset, piece_margins, piece_value, score_pieces
from partwise.losses.records import Loss
from partwise.losses.slacks import charge, pull, ridge
from partwise.objective import Value
from partwise.solvers.active import PRODUCTS, drop_inactive, find, follow_targets, gather, insert, output_of, reserve
from partwise.solvers.base import SLICE, Progress, Solver, Task
from partwise.solvers.dual_state import DualState, certified_dual, primal_value
from partwise.solvers.sdm import ONE_MARGIN, SDM
from partwise.solvers.smo import rounding
from partwise.solvers.weights import STEPS, SUM, add, averaged, current, make_weights

CRUMB = 1e-12  # a part of C_i too small to keep an output for: it goes with the step
ALL = 5  # epochs, of which the first visits all examples once
FLOOR = 0.1  # share of the visits that are dealt out evenly, whatever the gaps


@helper
def step_towards(problem, loss, i, C, y, gap, mass, free, sets, weights, work):
    """One Frank-Wolfe step from lambda_i towards so much mass on y, whose gap is known.

    `free` is the record of the target if its multiplier only stands for what the others leave of C (-1: it does not).
    """
    t, target_record, more = kernels.target(problem, i), find(sets, i, y), 0.0
    if target_record < 0:
        target_record = insert(sets, i, y, kernels.cost(problem, i, y))
    record = sets.head[i]
    while record >= 0:  # the multipliers sum to C, so d = sum_z lambda(z) (v(y) - v(z)), with mass - C more for a free target
        if record != target_record:
            whole = sets.weight[record] + (mass - C if record == free else 0.0)
            exchange(loss, problem, i, t, y, output_of(sets, record, len(y)), whole, work.gradient)
        record = sets.next[record]
    if free >= 0:
        more = ridge(loss, C) * (mass - C + sets.weight[free]) ** 2
    norm = squared_norm(work.gradient) + more
    step = min(1.0, (gap + 0.5 * more) / norm) if norm > 0.0 else 1.0
    add(weights, step, work.gradient)
    moved, record = 0.0, sets.head[i]
    while record >= 0:
        if record != target_record:
            left = (1.0 - step) * sets.weight[record]
            if record == free:
                left -= step * (mass - C)
            elif left < CRUMB * C:
                if left > 0.0:
                    z = output_of(sets, record, len(y))
                    exchange(loss, problem, i, t, y, z, left, weights.v)
                    if weights.u.size:
                        exchange(loss, problem, i, t, y, z, -left * weights.numbers[SUM], weights.u)
                left = 0.0
            moved += sets.weight[record] - left
            sets.weight[record] = left
        record = sets.next[record]
    sets.weight[target_record] += moved
    drop_inactive(sets, i, free)


@helper
def step_between(problem, loss, i, C, giver, taker, steepness, sets, weights, gradient):
    """Move mass from one record to another whose value is higher by `steepness`: the exact line search."""
    length = kernels.length(problem, i)
    y, z = output_of(sets, taker, length), output_of(sets, giver, length)
    exchange(loss, problem, i, kernels.target(problem, i), y, z, 1.0, gradient)
    norm, whole = squared_norm(gradient), sets.weight[giver]
    step = min(whole, steepness / norm) if norm > 0.0 else whole
    step = whole if whole - step < CRUMB * C else step
    add(weights, step, gradient)
    sets.weight[taker] += step
    sets.weight[giver] = whole - step if step < whole else 0.0


@compiled_loop
def cached_steps(problem, loss, order, C, sets, weights, ys, records, margins, work, second):
    """A pairwise step within S_i for each example in `order`, without the oracle."""
    for i in order:
        target = kernels.target(problem, i)
        own = ys[:, : len(target)]
        n = gather(sets.head, sets.next, sets.start, sets.outputs, i, len(target), records, own)
        piece_margins(loss, problem, i, weights.v, target, own, n, margins, second)
        taker, giver = -1, -1
        for k in range(n):
            margins[k] -= offset(loss, sets.cost[records[k]])
            if taker < 0 or margins[k] < margins[taker]:
                taker = k
            if sets.weight[records[k]] > 0.0 and (giver < 0 or margins[k] > margins[giver]):
                giver = k
        if taker >= 0 and giver >= 0 and taker != giver:
            steepness = margins[giver] - margins[taker]
            if steepness > rounding(weights.v, max(abs(margins[giver]), abs(margins[taker]))):
                step_between(problem, loss, i, C[i], records[giver], records[taker], steepness, sets, weights, work.gradient)
                drop_inactive(sets, i, -1)


@compiled_loop
def bcfw_pass(problem, loss, order, C, sets, weights, work, step_number, pairwise, seen):
    """Visit the examples in `order`, after `step_number` steps; returns sum_i C_i L_i and the sum of the gaps, as seen.

    seen[:, i] are the loss and the gap of example i when it was last visited.
    """
    losses, gaps = 0.0, 0.0
    for i in order:
        length, theta = kernels.length(problem, i), work.theta[: kernels.n_parts(problem, i)]
        y = work.y[:length]
        reference, shift = score_pieces(loss, problem, i, weights.v, work)
        slack = best_piece(loss, problem, i, theta, reference, shift, y)
        value = charge(loss, slack)
        gap, record, free, giver, least = C[i] * value, sets.head[i], -1, -1, np.inf
        while record >= 0:
            z = output_of(sets, record, length)
            own = piece_value(loss, problem, i, theta, reference, shift, z)
            gap -= sets.weight[record] * own
            if sets.weight[record] > 0.0 and own < least:
                giver, least = record, float(own)
            record = sets.next[record]
        if ridge(loss, C[i]) > 0.0:
            free = find(sets, i, kernels.target(problem, i))
            gap += 0.5 * ridge(loss, C[i]) * (C[i] - sets.weight[free]) ** 2
        losses += C[i] * value
        gaps += max(gap, 0.0)
        seen[0, i], seen[1, i] = C[i] * value, max(gap, 0.0)
        if gap > C[i] * rounding(weights.v, abs(reference)) and pairwise and free < 0:
            taker = find(sets, i, y)
            if taker < 0:
                taker = insert(sets, i, y, kernels.cost(problem, i, y))
            if taker != giver:
                step_between(problem, loss, i, C[i], giver, taker, slack - least, sets, weights, work.gradient)
                drop_inactive(sets, i, -1)
        elif gap > C[i] * rounding(weights.v, abs(reference)):
            step_towards(problem, loss, i, C[i], y, gap, C[i] * pull(loss, slack), free, sets, weights, work)
        step_number += 1.0
        weights.numbers[SUM] += step_number
        weights.numbers[STEPS] += step_number
    return losses, gaps


@dataclass
class BCFWState(DualState):
    """Besides: the number of steps, which weighs the average, and whether the last w was found better than it."""

    steps: int = 0
    last_is_better: bool = False
    second: Accumulator | None = None
    seen: np.ndarray | None = None  #: (2, N) C_i L_i and the gap of each example when it was last visited


@dataclass(frozen=True)
class BCFW(Solver):
    """Block-coordinate Frank-Wolfe for max-margin losses (see the module).

    Parameters
    ----------
    average : bool
        Return the weighted average of all iterates, unless the last one is found to have the lower objective.
    pairwise : bool
        Move mass to the best output from the worst one rather than from all.
    gap_sampling : bool
        Visit examples in proportion to their gaps, but for every fifth epoch; not with ``shuffle=False``.
    cached_passes : int
        Passes of pairwise steps without the oracle after each epoch.

    Examples
    --------
    >>> from partwise import multiclass_problem, solve
    >>> problem = multiclass_problem([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0, 1, 0])
    >>> result = solve(problem, "hinge", BCFW(), C=1.0, max_epochs=20)
    >>> result.solver.name, result.w.shape
    ('bcfw', (4,))
    """

    name = "bcfw"
    default_epochs = 200
    accepted = ONE_MARGIN
    fixed_targets = True
    average: bool = True
    pairwise: bool = True
    gap_sampling: bool = True
    cached_passes: int = 5

    def __post_init__(self):
        passes = self.cached_passes
        if not isinstance(passes, int | np.integer) or isinstance(passes, bool) or passes < 0:
            raise ValueError(
                f"The 'cached_passes' parameter of BCFW must be an int in the range [0, inf). Got {passes!r} instead."
            )

    def accepts(self, loss: Loss) -> bool:
        return isinstance(loss.kernel, ONE_SLACK)

    def init(self, task: Task, start: np.ndarray | None = None) -> BCFWState:
        found = SDM().init(task, start)  # a start only offers outputs: see there
        weights = make_weights(kernels.n_weights(task.problem), task.dtype, self.average, found.weights.v)
        sets = found.sets._replace(room=found.sets.room[:0], square=found.sets.square[:0], products=found.sets.products[:0])
        sets.used[PRODUCTS] = 0
        return BCFWState(
            oracle_calls=found.oracle_calls,
            sets=sets,
            weights=weights,
            work=found.work,
            second=found.second,
            seen=np.zeros((2, task.n)),
        )

    def epoch(self, task: Task, state: BCFWState) -> Progress:
        order = self.visits(task, state)
        state.sets = reserve(state.sets, task.problem, np.bincount(order, minlength=task.n))
        state.last_is_better = False
        for some in (order[first : first + SLICE] for first in range(0, len(order), SLICE)):
            bcfw_pass(
                task.problem, task.loss.kernel, some, task.C, state.sets, state.weights, state.work, float(state.steps),
                self.pairwise, state.seen,
            )  # fmt: skip
            state.steps += len(some)
            state.oracle_calls += len(some)
        self.cached(task, state)
        state.epochs += 1
        w, (loss, gap) = state.weights.v, state.seen.sum(axis=1)
        return Progress(float(loss), float(gap), float(loss) + 0.5 * float(w @ w))

    def visits(self, task: Task, state: BCFWState) -> np.ndarray:
        """The examples of an epoch, in order: all of them, or as many, drawn by their gaps."""
        order = np.concatenate(list(task.slices(state.epochs)))
        order = order[task.C[order] > 0.0]
        gaps = state.seen[1, order]
        if not (self.gap_sampling and task.shuffle) or state.epochs % ALL == 0 or not gaps.any():
            return order
        share = FLOOR / len(order) + (1.0 - FLOOR) * gaps / gaps.sum()
        return np.random.default_rng((task.seed, state.epochs, 1)).choice(order, len(order), p=share / share.sum())

    def cached(self, task: Task, state: BCFWState) -> None:
        """Passes without the oracle, over examples that have outputs to choose from."""
        if not self.pairwise or task.loss.is_squared:
            return
        most = int(state.sets.size.max()) + 1
        ys, records, margins = np.empty((most, len(state.work.y)), np.int32), np.empty(most, np.int64), np.empty(most)
        for _ in range(self.cached_passes):
            order = task.order(state.epochs)
            order = order[state.sets.size[order] > 1]
            for some in (order[first : first + SLICE] for first in range(0, len(order), SLICE)):
                cached_steps(
                    task.problem, task.loss.kernel, some, task.C, state.sets, state.weights, ys, records, margins, state.work,
                    state.second,
                )  # fmt: skip

    def retarget(self, before: Task, task: Task, state: BCFWState, changed: np.ndarray) -> BCFWState:
        """The multipliers stay and stay feasible; w follows the targets, the average begins anew."""
        state.sets = follow_targets(before, task, state.sets, changed, state.weights)
        state.steps, state.last_is_better = 0, False
        state.seen[:] = 0.0  # all examples are visited next: nothing is known of their gaps
        return state

    def weights(self, state: BCFWState) -> np.ndarray:
        return averaged(state.weights) if self.average and not state.last_is_better else current(state.weights)

    def current(self, state: BCFWState) -> np.ndarray:
        return current(state.weights)

    def bounds(self, task: Task, state: BCFWState) -> Value:
        primal = primal_value(task, state, current(state.weights))
        if self.average:
            mean = primal_value(task, state, averaged(state.weights))
            state.last_is_better = primal < mean
            primal = min(primal, mean)
        return Value(primal, certified_dual(task, state), np.zeros(0))
