"""SDM: the sequential dual method for max-margin losses (Balamurugan et al. 2011; Mancev 2015, section 4).

Problem: ``min_w 1/2 ||w||^2 + sum_i C_i max_y [o_i(y) - w . v_i(y)]`` through its dual:

    max_lambda  D(lambda) = -1/2 ||w||^2 + sum_i sum_y lambda_i(y) o_i(y),    w = sum_i sum_y lambda_i(y) v_i(y),
    subject to  lambda_i(y) >= 0,  sum_y lambda_i(y) = C_i

with o_i(y) = gamma l_i(y), v_i(y) = dF_i(y) = F(x_i, t_i) - F(x_i, y) for L(inf, gamma), and o_i(y) = l_i(y), v_i(y) =
Gamma(l_i(y)) dF_i(y) for rescaled losses (`losses.linear_pieces`).

    S_i = {t_i}, lambda_i(t_i) = C_i, w = 0
    repeat
        for each example i:                                                                        (a full pass)
            y~ = argmax_y o_i(y) - w . v_i(y)
            S_i <- S_i + {y~};  SMO(i, S_i);  S_i <- S_i - {y : lambda_i(y) = 0}
        a few times, while it pays: for each example i with |S_i| > 1:  SMO(i, S_i)                (a cached pass: no oracle)

    SMO(i, S):  lambda_i moves so that D rises, two outputs at a time
        g(y) = w . v_i(y) - o_i(y)  for y in S;  K(y, z) = v_i(y) . v_i(z)
        repeat
            y' = argmin_S g(y),  y'' = argmax over {y in S : lambda_i(y) > 0} of g(y);  stop if g(y'') - g(y') <= tau
            delta = min{ lambda_i(y''), (g(y'') - g(y')) / (K(y', y') - 2 K(y', y'') + K(y'', y'')) }
            lambda_i(y') += delta, lambda_i(y'') -= delta, g += delta (K(., y') - K(., y''))
        w += sum_y (change of lambda_i(y)) v_i(y)

The squared hinge, 1/2 (max_y [o_i(y) - w . v_i(y)])^2, has the same pieces; its multipliers lambda_i(y), y other than t_i, may
sum to anything, and D pays 1/(2 C_i) (their sum)^2. With lambda_i(t_i) = C_i - (their sum), of either sign, the sum is C_i as
before, and all of the above holds with 1 / C_i more at K(t_i, t_i), -(C_i - lambda_i(t_i)) / C_i more at g(t_i), and t_i always
among those that can give (`smo`).

What keeps the passes short. Gradients of cached outputs are read off the part scores in a full pass, and cost only what differs
from the target in a cached one. K is kept in the active set: one row is computed when an output enters it. And four heuristics:

    inexact          SMO stops when a tenth of the violation it found is left: the next visit has a better w anyway
    shrinking        an example at rest, the target alone in S_i and no other output violated, is visited again only after a
                     number of passes that grows each time it is found so; and within the cached passes of an epoch, an example
                     whose own gap has become small waits for the next full pass
    cached_passes    see above; they end when they gain too little
    seed, shuffle    examples come in another order in each epoch

None of this touches the certificate: P - D is computed over all examples. **Algorithm 1 of Mancev (2015) to the letter** is
``SDM(tau=tau, inexact=0, shrinking=False, cached_passes=0)`` with ``shuffle=False``, inside ``CCCP(.., epochs=T)`` for ramp
losses (but for its line 10, which is put right: see `cccp`).

Every step raises D, so there is no learning rate, and P - D certifies the result. Cost of an epoch: at most one oracle call per
example, then at most `cached_passes` passes of O(|S_i|) sparse differences each. Memory: w, two vectors of scratch as long as w
(only rows that were touched are resident), the outputs that carry mass, a few per example, and 8 |S_i|^2 bytes of products each.

References
----------
P. Balamurugan, S. Shevade, S. Sundararajan, S. S. Keerthi (2011). A sequential dual method for structural SVMs. SDM.
D. Mancev (2015). A sequential dual method for the structured ramp loss minimization. Facta Universitatis 30(1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from partwise import kernels
from partwise.engine.accumulator import Accumulator, accumulator
from partwise.engine.compilation import compiled_loop
from partwise.losses.in_loops import evaluate, workspace
from partwise.losses.linear_pieces import ONE_SLACK, best_piece, offset, piece_margins, piece_value, score_pieces
from partwise.losses.records import Loss
from partwise.losses.slacks import charge, ridge
from partwise.objective import Value
from partwise.solvers.active import (
    RECORDS,
    active_sets,
    drop_inactive,
    find,
    follow_targets,
    free_of,
    gather,
    refresh_products,
    reserve,
    start_at_targets,
    weights_of,
)
from partwise.solvers.base import SLICE, Progress, Solver, Task
from partwise.solvers.dual_state import DualState, certified_dual, primal_value
from partwise.solvers.smo import INEXACT, LONGEST_REST, Block, Rules, extremes, include, keep, make_block, move, rounding, smo
from partwise.solvers.weights import averaged, count_step, current, make_weights

PAYS = 0.4  # cached passes go on while their visits gain this much of what visits with the oracle gained
SMALL = 0.15  # an example waits for the next full pass when its gap is this much of the mean
MAX_MARGIN = "max-margin losses, L(inf, gamma) or rescaled"  # those that have a dual over simplices, in words
ONE_MARGIN = "max-margin losses, L(inf, gamma), rescaled or squared"  # those that have one of the kind above
LEFT, EXAMPLES, PLACE, AGAIN, VISITS = range(5)  # of what `cached_passes` remembers
REFRESH = 32  # epochs between two fresh sums of w, against rounding


@compiled_loop
def full_pass(problem, loss, order, C, sets, weights, block, work, second, losses, gaps, rest, calm, rules):
    """Visit the examples in `order` with the oracle; returns the gain in D and the number of calls."""
    head, following, start, outputs, slot, weight = sets.head, sets.next, sets.start, sets.outputs, sets.slot, sets.weight
    records, slots, all_ys, gradient, before, mass, change = block
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
        reference, shift = score_pieces(loss, problem, i, weights.v, work)
        steepest = -best_piece(loss, problem, i, theta, reference, shift, y)
        n, low, high, total = gather(head, following, start, outputs, i, length, records, ys), np.inf, -np.inf, 0.0
        for k in range(n):
            mass[k] = weight[records[k]]
            gradient[k] = -piece_value(loss, problem, i, theta, reference, shift, ys[k])
            low, high = min(low, gradient[k]), max(high, gradient[k])
            total += mass[k] * gradient[k]
        tiny, diagonal = rounding(weights.v, abs(reference)), ridge(loss, C[i])
        free = free_of(loss, C[i], ys, n, kernels.target(problem, i))
        if steepest < low - tiny and find(sets, i, y) < 0:
            include(problem, loss, i, sets, block, n, y, work, second)
            gradient[n], mass[n] = steepest, 0.0
            low = steepest
            n += 1
        losses[i] = charge(loss, -min(steepest, low))
        taken = C[i] - mass[free] if free >= 0 else 0.0
        gaps[i] = max(total + C[i] * charge(loss, -low) + 0.5 * diagonal * taken * taken, 0.0)
        if free >= 0:
            gradient[free] -= diagonal * taken
            low, high = extremes(gradient, n)
        if high - low > tiny:
            for k in range(n):
                before[k], slots[k] = gradient[k], slot[records[k]]
            tau = max(rules.tau, rules.inexact * (high - low), tiny)
            smo(sets.products, sets.square[i], sets.room[i], slots, gradient, mass, n, tau, tiny, free, diagonal)
            gain, emptied = keep(weight, records, before, gradient, mass, change, n)
            move(problem, loss, i, ys, change, n, weights)
            if emptied:
                drop_inactive(sets, i, records[free] if free >= 0 else -1)
            gained += gain
            calm[i] = 0
        elif n == 1:
            rest[i] = calm[i]
            calm[i] = min(2 * calm[i] + 1, rules.longest_rest)
        if weights.u.size:
            count_step(weights)
    return gained, calls


@compiled_loop
def cached_passes(problem, loss, order, C, sets, weights, block, second, enough, small, rules, at, gained):
    """Passes without the oracle over the examples in `order`; those whose gap, as far as S_i shows it, is `small` leave it.

    at : passes left, examples of this pass, the next one, examples of the next pass so far, and visits in all. The loop comes
    back before it is done, so that Ctrl-C is heard. Passes are over when an eighth of one has `gained` less than `enough` for
    each visit: with a cheap oracle they may not pay. All in one loop: where examples are few and small, calling it takes as long
    as a pass.
    """
    head, following, start, outputs, slot, weight = sets.head, sets.next, sets.start, sets.outputs, sets.slot, sets.weight
    size, cost, products, square, room = sets.size, sets.cost, sets.products, sets.square, sets.room
    records, slots, all_ys, gradient, before, mass, change = block
    visits = 0
    while at[LEFT] > 0 and visits < SLICE:
        if at[PLACE] == 0:
            at[AGAIN], gained[0], n = 0, 0.0, 0
            for place in range(at[EXAMPLES]):
                if size[order[place]] > 1:
                    order[n] = order[place]
                    n += 1
            at[EXAMPLES] = n
        stop = min(at[PLACE] + min(max(at[EXAMPLES] // 8, 256), SLICE), at[EXAMPLES])
        for place in range(at[PLACE], stop):
            i = order[place]
            target = kernels.target(problem, i)
            ys = all_ys[:, : len(target)]
            n, low, high, total = gather(head, following, start, outputs, i, len(target), records, ys), np.inf, -np.inf, 0.0
            piece_margins(loss, problem, i, weights.v, target, ys, n, gradient, second)
            for k in range(n):
                mass[k] = weight[records[k]]
                gradient[k] -= offset(loss, cost[records[k]])
                low, high = min(low, gradient[k]), max(high, gradient[k])
                total += mass[k] * gradient[k]
            tiny, diagonal, free = (
                rounding(weights.v, max(abs(low), abs(high))),
                ridge(loss, C[i]),
                free_of(loss, C[i], ys, n, target),
            )
            taken = C[i] - mass[free] if free >= 0 else 0.0
            gap = total + C[i] * charge(loss, -low) + 0.5 * diagonal * taken * taken
            if free >= 0:
                gradient[free] -= diagonal * taken
                low, high = extremes(gradient, n)
            if high - low > tiny:
                for k in range(n):
                    before[k], slots[k] = gradient[k], slot[records[k]]
                tau = max(rules.tau, rules.inexact * (high - low), tiny)
                smo(products, square[i], room[i], slots, gradient, mass, n, tau, tiny, free, diagonal)
                gain, emptied = keep(weight, records, before, gradient, mass, change, n)
                move(problem, loss, i, ys, change, n, weights)
                if emptied:
                    drop_inactive(sets, i, records[free] if free >= 0 else -1)
                gained[0] += gain
            if size[i] > 1 and gap > small:
                order[at[AGAIN]] = i
                at[AGAIN] += 1
            if weights.u.size:
                count_step(weights)
        visits += stop - at[PLACE]
        at[VISITS] += stop - at[PLACE]
        at[PLACE] = stop
        if at[EXAMPLES] == 0 or gained[0] < enough * stop:
            at[LEFT] = 0
        elif stop == at[EXAMPLES]:
            at[LEFT], at[EXAMPLES], at[PLACE] = at[LEFT] - 1, at[AGAIN], 0


@compiled_loop
def seed_pass(problem, loss, w, sets, block, work, second):
    """Put into every S_i the output that w finds most violated, with no mass yet."""
    for i in range(len(sets.head)):
        evaluate(loss, problem, i, w, 1.0, work)
        y = work.y[: kernels.length(problem, i)]
        if find(sets, i, y) < 0:
            n = gather(sets.head, sets.next, sets.start, sets.outputs, i, len(y), block.records, block.ys)
            include(problem, loss, i, sets, block, n, y, work, second)


@dataclass
class SDMState(DualState):
    """Besides: what was last seen of each example, and how long it may rest."""

    second: Accumulator | None = None
    losses: np.ndarray | None = None
    gaps: np.ndarray | None = None
    rest: np.ndarray | None = None
    calm: np.ndarray | None = None
    seen: float = 0.0  #: sum of the gaps in the last full pass


@dataclass(frozen=True)
class SDM(Solver):
    """The sequential dual method for max-margin losses (see the module).

    Parameters
    ----------
    cached_passes : int
        At most this many passes without the oracle follow each pass with it.
    average : bool
        Return the average of all iterates rather than the last one. Better early, worse later.
    tau : float >= 0
        SMO stops when no pair of outputs violates the optimality conditions by more, g(y'') <= g(y') + tau. That is an absolute
        number, in units of the cost: the optimum is not reached beyond C_i tau for each example.
    inexact : float in [0, 1)
        SMO also stops when this part of the violation that it found is left; 0: only `tau` counts.
    shrinking : bool
        Leave examples alone for some passes that have nothing to gain (see the module). False: every pass visits all of them.

    Notes
    -----
    ``SDM(tau=tau, inexact=0, shrinking=False, cached_passes=0)``, with ``shuffle=False``, is Algorithm 1 of Mancev (2015).

    Examples
    --------
    >>> from partwise import multiclass_problem, solve
    >>> problem = multiclass_problem([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0, 1, 0])
    >>> result = solve(problem, "hinge", SDM(), C=1.0, max_epochs=20)
    >>> result.solver.name, result.w.shape
    ('sdm', (4,))
    """

    name = "sdm"
    default_epochs = 200
    accepted = ONE_MARGIN
    fixed_targets = True
    cached_passes: int = 30
    average: bool = False
    tau: float = 0.0
    inexact: float = INEXACT
    shrinking: bool = True

    def __post_init__(self):
        passes = self.cached_passes
        if not isinstance(passes, int | np.integer) or isinstance(passes, bool) or passes < 0:
            raise ValueError(
                f"The 'cached_passes' parameter of SDM must be an int in the range [0, inf). Got {passes!r} instead."
            )
        for parameter, end in (("tau", math.inf), ("inexact", 1.0)):
            value = getattr(self, parameter)
            if not isinstance(value, int | float | np.number) or isinstance(value, bool) or not 0 <= value < end:
                raise ValueError(
                    f"The {parameter!r} parameter of SDM must be a float in the range [0, {end:g}). Got {value!r} instead."
                )
        if not isinstance(self.shrinking, bool):
            raise ValueError(f"The 'shrinking' parameter of SDM must be True or False. Got {self.shrinking!r} instead.")

    @property
    def rules(self) -> Rules:
        """What compiled loops see of the parameters."""
        return Rules(float(self.tau), float(self.inexact), LONGEST_REST if self.shrinking else 0)

    def accepts(self, loss: Loss) -> bool:
        return isinstance(loss.kernel, ONE_SLACK)

    def init(self, task: Task, start: np.ndarray | None = None) -> SDMState:
        n, problem = task.n, task.problem
        sets = reserve(active_sets(n, products=True), problem)
        start_at_targets(problem, sets, task.C)
        if task.loss.is_squared and sets.cost[: sets.used[RECORDS]].any():
            raise ValueError(f"Solver {self.name!r} takes the loss {task.loss.name!r} only with targets that cost nothing.")
        state = SDMState(
            sets=sets,
            weights=make_weights(kernels.n_weights(problem), task.dtype, self.average),
            work=workspace(problem, task.dtype),
            second=accumulator(kernels.n_weights(problem), kernels.width(problem), task.dtype),
            losses=np.zeros(n),
            gaps=np.zeros(n),
            rest=np.zeros(n, np.int8),
            calm=np.zeros(n, np.int8),
        )
        if start is not None:
            # a dual method cannot start at any w; but it can start from the outputs that w finds violated
            state.sets = reserve(sets, problem)
            w = np.asarray(start, task.dtype)
            seed_pass(problem, task.loss.kernel, w, state.sets, self.block(state), state.work, state.second)
            state.oracle_calls += n
            self.cached_passes_over(task, state, task.order(0), 0.0, 0.0)
        return state

    def epoch(self, task: Task, state: SDMState) -> Progress:
        if state.epochs % REFRESH == REFRESH - 1 and not self.average:
            self.refresh(task, state)
        state.sets = reserve(state.sets, task.problem)
        order, block, gained, visits = task.order(state.epochs), self.block(state), 0.0, 0
        for some in (order[first : first + SLICE] for first in range(0, len(order), SLICE)):  # Ctrl-C is heard between two
            gain, calls = full_pass(
                task.problem, task.loss.kernel, some, task.C, state.sets, state.weights, block, state.work, state.second,
                state.losses, state.gaps, state.rest, state.calm, self.rules,
            )  # fmt: skip
            gained, visits = gained + gain, visits + calls
        state.oracle_calls += visits
        seen, loss, w = float(state.gaps.sum()), float(task.C @ state.losses), state.weights.v
        enough, small = PAYS * gained / max(visits, 1), SMALL * seen / task.n if self.shrinking else -1.0
        self.cached_passes_over(task, state, order, enough, small)
        # each example's gap was seen just before it was closed: what is left is about what the next pass would see
        estimate = seen * min(1.0, seen / state.seen) if state.seen > 0.0 else seen
        state.seen = seen
        state.epochs += 1
        return Progress(loss, estimate, loss + 0.5 * float(w @ w))

    def refresh(self, task: Task, state: SDMState) -> None:
        """Sum w afresh, against rounding."""
        state.weights.v[:] = weights_of(task.problem, state.sets, task.loss.kernel)

    def block(self, state: SDMState) -> Block:
        """Scratch memory for the largest S_i and one more output."""
        return make_block(int(state.sets.size.max()) + 1, len(state.work.y))

    def cached_passes_over(self, task: Task, state: SDMState, order: np.ndarray, enough: float, small: float) -> None:
        """Passes without the oracle, while a visit gains `enough`; examples whose gap is `small` leave."""
        self.sweep(task, state, order.copy(), np.array([self.cached_passes, len(order), 0, 0, 0]), enough, small)

    def sweep(self, task: Task, state: Any, order: np.ndarray, at: np.ndarray, enough: float, small: float) -> None:
        """Passes without the oracle, as `at` has it (see `cached_passes`); the beginning of `order` is what stays."""
        block, rules, gained = self.block(state), self.rules, np.zeros(1)
        while at[LEFT] > 0:
            cached_passes(
                task.problem, task.loss.kernel, order, task.C, state.sets, state.weights, block, state.second,
                enough, small, rules, at, gained,
            )  # fmt: skip

    def retarget(self, before: Task, task: Task, state: SDMState, changed: np.ndarray) -> SDMState:
        """The multipliers stay and stay feasible; w and the products of the outputs follow the targets (Mancev's w = u - v)."""
        state.sets = follow_targets(before, task, state.sets, changed, state.weights)
        block = self.block(state)
        scratch = (block.records, block.ys, block.change, state.work.gradient, state.second)
        refresh_products(task.problem, task.loss.kernel, state.sets, changed, *scratch)
        state.rest[changed], state.calm[changed], state.seen = 0, 0, 0.0  # the others may rest on: the certificate sees them all
        return state

    def weights(self, state: SDMState) -> np.ndarray:
        return averaged(state.weights) if self.average else current(state.weights)

    def current(self, state: SDMState) -> np.ndarray:
        return current(state.weights)

    def bounds(self, task: Task, state: SDMState) -> Value:
        return Value(primal_value(task, state, self.weights(state)), certified_dual(task, state), np.zeros(0))
