"""n-slack cutting planes: one slack variable per example, constraints added where they are violated (Tsochantaridis et al. 2005).

Problem: ``min_w 1/2 ||w||^2 + sum_i C_i xi_i  subject to  w . v_i(y) >= o_i(y) - xi_i  for all i and y`` (that of
t_i is xi_i >= o_i(t_i), zero where the target is the truth), for max-margin losses, whose pieces o_i(y) - w . v_i(y) are those of
`linear_pieces`. Of these constraints, exponentially many, only those in working sets S_i are looked at: Algorithm 1 of Acharya
(2011), whose C/n is our C.

    S_i = {t_i} for all i
    repeat
        for each example i:
            H(y) = o_i(y) - w . v_i(y);  y^ = argmax_y H(y);  xi_i = max_{y in S_i} H(y)
            if H(y^) > xi_i + epsilon:
                S_i <- S_i + {y^}
                (a)  solve the dual over all S = S_1, .., S_n          (b)  solve it over S_i, the rest of lambda fixed
    until no S_i has changed

The dual and the steps that solve it, two multipliers of one example at a time, are those of `sdm`. Variant (a) sweeps over all S
from the last solution, until the gap of the dual restricted to S is `INNER` of the violation seen; to the letter, after each new
constraint, which is a pass over all working sets each time. SVM-struct's habit is to wait for `every` = 100 of them.

Variant (b) to the letter ends too early. When w moves, the multipliers of S_i are not optimal any more, but y^ may be in S_i.
Then nothing is violated, nothing is solved, and the method stops with the right working sets and the wrong multipliers (on OCR
words at C = 0.1, 4 % above the optimum). Here a visit also solves over S_i where its gap is more than C_i epsilon. That is nearly
SDM without its cached passes.

Outputs that lose all their mass leave S_i and come back if they are violated again; the theorem below counts them each time.
Nothing in its proof needs them: an output without mass does not change D.

By Theorem 4.1, with R = max ||v_i(y)|| and l the highest cost, at most

    max { 2 n l / epsilon,  8 n C l R^2 / epsilon^2 }

constraints are added before no output violates its constraint by more than epsilon; then P - D <= epsilon sum_i C_i, and as much
again for the tolerance of the inner solver. Without an `epsilon` of its own a pass takes a tenth of the mean violation that the
last one saw, so it goes down with the gap, and the run ends at its tolerance, P - D <= tol P.

Cost of an epoch: one oracle call per example; (a) besides N / every solutions of the restricted dual, each a few sweeps of
O(|S_i|) sparse differences per example. Memory: as for `sdm`.

References
----------
I. Tsochantaridis, T. Joachims, T. Hofmann, Y. Altun (2005). Large margin methods for structured and interdependent output
variables. JMLR 6.
A. Acharya (2011). Optimization methods in structural SVMs. Algorithm 1, Theorem 4.1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from partwise import kernels
from partwise.engine.compilation import compiled_loop
from partwise.losses.linear_pieces import PIECEWISE, best_piece, piece_value, score_pieces
from partwise.losses.records import Loss
from partwise.objective import SLICE, Value
from partwise.solvers.active import drop_inactive, find, gather, reserve, weights_of
from partwise.solvers.base import Progress, Solver, Task
from partwise.solvers.sdm import EXAMPLES, LEFT, MAX_MARGIN, REFRESH, SDM, SDMState
from partwise.solvers.smo import INEXACT, include, keep, move, rounding, smo

SHARE = 0.1  # of the mean violation of the last pass: epsilon of the next one
INNER = 0.5  # of the mean gap of an example: what the restricted dual may leave of it
SWEEPS = 100  # over all working sets, at most, for one solution of the restricted dual
FEW = 10  # sweeps over the examples that are not solved yet, between two over all of them


@compiled_loop
def violation_pass(problem, loss, order, C, sets, weights, block, work, second, losses, gaps, epsilon, most, alone):
    """Visit the examples in `order` until `most` constraints are added; returns how many visits that took, and how many it were.

    With `alone`, the dual over S_i is solved at once (variant b), also where its gap has become more than C_i epsilon since.
    """
    head, following, start, outputs, slot, weight = sets.head, sets.next, sets.start, sets.outputs, sets.slot, sets.weight
    records, slots, all_ys, gradient, before, mass, change = block
    added = 0
    for place in range(len(order)):
        i = order[place]
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
        tiny, lowest = rounding(weights.v, abs(reference)), min(low, steepest)
        losses[i] = -lowest
        gaps[i] = max(total - C[i] * lowest, 0.0)
        if steepest < low - max(epsilon, tiny) and find(sets, i, y) < 0:
            include(problem, loss, i, sets, block, n, y, work, second)
            added += 1
            gradient[n], mass[n], low = steepest, 0.0, steepest
            n += 1
        if alone and gaps[i] > C[i] * epsilon and high - low > tiny:
            for k in range(n):
                before[k], slots[k] = gradient[k], slot[records[k]]
            tau = max(INEXACT * (high - low), tiny)
            smo(sets.products, sets.square[i], sets.room[i], slots, gradient, mass, n, tau, tiny, -1, 0.0)
            emptied = keep(weight, records, before, gradient, mass, change, n)[1]
            move(problem, loss, i, ys, change, n, weights)
            if emptied:
                drop_inactive(sets, i)
        if added == most:
            return place + 1, added
    return len(order), added


@dataclass
class NSlackState(SDMState):
    """Besides: how many constraints were added since the start, and in the last pass, with which epsilon."""

    constraints: int = 0
    last: int = -1
    epsilon: float = 0.0
    done: bool = False  #: a pass with the `epsilon` asked for has found nothing to add, nor much to solve


@dataclass(frozen=True)
class NSlack(Solver):
    """The n-slack cutting plane method (see the module); one epoch is one pass over the examples.

    Parameters
    ----------
    variant : {"a", "b"}
        Solve the dual over all working sets after new constraints, or over that of the example at hand.
    every : int
        Constraints that variant (a) waits for before it solves; 1 is the paper to the letter.
    epsilon : float, optional
        Violations up to this size are tolerated, in units of the loss of an example, and the run ends when there are no larger
        ones, whatever its tolerance (but a tolerance of 0 runs all epochs, as ever). None: as the tolerance of the run asks for.

    Examples
    --------
    >>> from partwise import multiclass_problem, solve
    >>> problem = multiclass_problem([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0, 1, 0])
    >>> result = solve(problem, "hinge", NSlack(), C=1.0, max_epochs=20)
    >>> result.solver.name, result.w.shape
    ('nslack', (4,))
    """

    name = "nslack"
    default_epochs = 200
    accepted = MAX_MARGIN
    fixed_targets = True
    inside: ClassVar[SDM] = SDM()  #: whose dual, and whose state it is

    variant: str = "a"
    every: int = 100
    epsilon: float | None = None

    def __post_init__(self):
        if self.variant not in ("a", "b"):
            raise ValueError(f"The 'variant' parameter of NSlack must be 'a' or 'b'. Got {self.variant!r} instead.")
        if not isinstance(self.every, int | np.integer) or isinstance(self.every, bool) or self.every < 1:
            raise ValueError(f"The 'every' parameter of NSlack must be an int in the range [1, inf). Got {self.every!r} instead.")
        number = isinstance(self.epsilon, int | float | np.number) and not isinstance(self.epsilon, bool)
        if self.epsilon is not None and not (number and 0 < self.epsilon < math.inf):
            raise ValueError(
                f"The 'epsilon' parameter of NSlack must be a float in the range (0, inf) or None. Got {self.epsilon!r} instead."
            )

    def accepts(self, loss: Loss) -> bool:
        return isinstance(loss.kernel, PIECEWISE)

    def init(self, task: Task, start: np.ndarray | None = None) -> NSlackState:
        state = NSlackState(**vars(self.inside.init(task, start)))
        state.gaps[:] = np.nan  # not seen yet
        return state

    def epoch(self, task: Task, state: NSlackState) -> Progress:
        if state.epochs % REFRESH == REFRESH - 1:
            state.weights.v[:] = weights_of(task.problem, state.sets, task.loss.kernel)
        state.sets = reserve(state.sets, task.problem)
        epsilon = self.epsilon if self.epsilon is not None else state.epsilon
        state.last, pending, alone = 0, 0, self.variant == "b"
        for order in task.slices(state.epochs):
            order = order[task.C[order] > 0.0]
            state.oracle_calls += len(order)
            while len(order):
                most = SLICE if alone else self.every - pending
                visits, added = violation_pass(
                    task.problem, task.loss.kernel, order, task.C, state.sets, state.weights, self.inside.block(state),
                    state.work, state.second, state.losses, state.gaps, epsilon, most, alone,
                )  # fmt: skip
                order, pending, state.last = order[visits:], pending + added, state.last + added
                if not alone and pending >= self.every:
                    self.solve_restricted(task, state)
                    pending = 0
        if not alone:  # also where nothing is new: what is seen now is less than what the last solution was content with
            self.solve_restricted(task, state)
        state.constraints += state.last
        used = task.C > 0.0
        seen, loss, w = float(state.gaps[used].sum()), float(task.C @ state.losses), state.weights.v
        state.epsilon = SHARE * seen / max(float(task.C.sum()), 1e-300)
        # most violations were removed after they were seen: what is left is about what the next pass would see
        estimate = seen * min(1.0, seen / state.seen) if state.seen > 0.0 else seen
        state.seen = seen
        state.epochs += 1
        if self.epsilon is not None:
            state.done = state.last == 0 and seen <= 2.0 * self.epsilon * float(task.C.sum())
            estimate = 0.0 if state.done else math.inf
        return Progress(loss, estimate, loss + 0.5 * float(w @ w))

    def solve_restricted(self, task: Task, state: NSlackState) -> None:
        """Maximise the dual over all S from where it is, until the mean gap of the working sets is small (variant a)."""
        seen = state.gaps[~np.isnan(state.gaps)]
        small = INNER * float(seen.mean()) if len(seen) else 0.0
        for _ in range(SWEEPS):
            some = np.flatnonzero(state.sets.size > 1)
            at = np.array([1, len(some), 0, 0, 0])
            self.inside.sweep(task, state, some, at, -math.inf, small)
            if not at[EXAMPLES]:
                return
            at[LEFT] = FEW
            self.inside.sweep(task, state, some, at, -math.inf, small)

    def retarget(self, before: Task, task: Task, state: NSlackState, changed: np.ndarray) -> NSlackState:
        """The multipliers stay and stay feasible, as in SDM; what was seen of the gaps does not."""
        self.inside.retarget(before, task, state, changed)
        state.gaps[:], state.last, state.epsilon, state.done = np.nan, -1, 0.0, False
        return state

    def weights(self, state: NSlackState) -> np.ndarray:
        return self.inside.weights(state)

    def bounds(self, task: Task, state: NSlackState) -> Value:
        return self.inside.bounds(task, state)

    def verdict(self, state: NSlackState, value: Value, tol: float) -> str:
        if self.epsilon is None:
            return super().verdict(state, value, tol)
        return f"no constraint is violated by more than epsilon = {self.epsilon:g}" if state.done else ""
