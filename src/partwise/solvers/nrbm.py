"""NRBM: the non-convex regularised bundle method, which minimises ramp and latent risks as they are (Do and Artieres 2009).

Problem: ``min_w J(w) = 1/2 ||w||^2 + R(w)``, R(w) = sum_i C_i L_i(w), for every loss, convex or not, and for partial labels. The
risk is modelled by cuts c_j(w) = a_j . w + b_j, tangents of R at points tried so far. Algorithm 7 of Acharya (2011), lambda = 1:

    repeat
        evaluate R(w_t), a in dR(w_t);  c_t(w) = R(w_t) + a . (w - w_t)
        w_b = the best point so far
        if c_t(w_b) > R(w_b):  c_t = SolveConflict(w_b, w_t, c_t)                                                         (27)
        w_{t+1} = argmin_w J_CP(w) = 1/2 ||w||^2 + max_j c_j(w)                                       a small QP, see `qp`
        gap = J(w_b) - J_CP(w_{t+1})
    until gap <= tolerance; return w_b

If R is convex, no cut is ever above it: then this is BMRM, J_CP(w_{t+1}) bounds the optimum from below, and the gap is a
certificate. If it is not, a cut may lie above the risk at w_b (a conflict) and hide it. SolveConflict (Algorithm 8) makes
another of it that does not, and that still lifts the model at w_t to J(w_b), so that the next point is another one:

    1/2 ||w_t||^2 + c_t(w_t) >= J(w_b)                                                                                    (28)
    L = J(w_b) - 1/2 ||w_t||^2 - a . w_t,    U = R(w_b) - a . w_b
    if L <= U:  b = L,    else:  a = -w_b,  b = J(w_b) - 1/2 ||w_t||^2 + w_b . w_t

**Plain, that works badly** (``line_search=False``). The first points lie far off, at -a_1. Where R is not convex, their cuts say
nothing about the surroundings of w_b, yet they close the gap, and the second repair closes it by fiat: the method stops, content,
at points that are not stationary. So by default an iteration searches the segment from w_b to w_t, in the spirit of Do and
Artieres (2012), for a point u = w_b + s (w_t - w_b)

    with J(u) <= J(w_b) - s gap / 10,    or whose cut fulfils (27) and, up to gap / 10, (28) without repair,

and w_b moves to any lower J that is met. There always is such a point: as s goes to 0, either J falls, or the cut at u becomes a
tangent at w_b in this direction, which lifts the model at w_t to J(w_b) + 1/2 ||w_t - w_b||^2. SolveConflict remains for
searches that run out of trials. And a cut loses height with the distance r_j of w_b from where it was taken: when w_b moves,

    b_j <- min{ b_j,  R(w_b) - a_j . w_b - 1/2 r_j^2 },

r_j being the length of the way that w_b has gone since (no point needs to be stored). Then the gap means something: with the
multipliers alpha of the master problem, g = sum_j alpha_j a_j and w_{t+1} = -g,

    gap >= 1/2 ||w_b + g||^2 + 1/2 sum_j alpha_j r_j^2:

a mean of subgradients of R, taken within about sqrt(2 gap) of w_b, nearly cancels w_b. That is a stationary point, up to the
tolerance. It need not be the global optimum, nor the local one that CCCP finds from the same start.

If R is convex, nothing is lowered, and every trial of a search leaves a cut.

Cost of an iteration: a pass over the examples for each trial (about two), two readings of the n cuts (n d), and the QP. Memory:
8 (n + 4) d bytes. Cuts go after `IDLE` iterations without a multiplier; `max_cuts` bounds n, at the price of more iterations.

References
----------
T.-M.-T. Do, T. Artieres (2009). Large margin training for hidden Markov models with partially observed states. ICML.
T.-M.-T. Do, T. Artieres (2012). Regularized bundle methods for convex and non-convex risks. JMLR 13.
A. Acharya (2011). Optimization methods in structural SVMs. Algorithms 7 and 8.
C. H. Teo, S. V. N. Vishwanathan, A. Smola, Q. Le (2010). Bundle methods for regularized risk minimization. JMLR 11.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from partwise import kernels
from partwise.objective import Value, is_convex
from partwise.solvers.base import Progress, Task
from partwise.solvers.bundle import Bundle, BundleState, Point
from partwise.solvers.cccp import FIRST, first_guess
from partwise.solvers.line_search import Tangent, between
from partwise.solvers.loop import run

SHARE = 0.1  # of the gap: what a step must gain, or a cut may lack
TRIALS = 10  # points that a search tries at most
ENOUGH = 2  # points after which it is content with a cut that lifts the model, without a lower J
WIDER = 2.0  # the next search begins at this multiple of the last step


def solve_conflict(a: np.ndarray, w: np.ndarray, best: np.ndarray, objective: float) -> tuple[np.ndarray, float]:
    """A cut (a, b) instead of one with slope `a`, taken at `w`, that is above the risk at `best`, where J is `objective`.

    Acharya's Algorithm 8 with lambda = 1: the result fulfils (27) and (28) of the module.
    """
    lower = objective - 0.5 * float(w @ w) - float(a @ w)
    upper = objective - 0.5 * float(best @ best) - float(a @ best)
    if lower <= upper:
        return a, lower
    return -best, objective - 0.5 * float(w @ w) + float(best @ w)


def first_weights(task: Task, state: NRBMState) -> np.ndarray:
    """Weights to begin with where the risk is not convex: near the optimum of its convex half."""
    if kernels.is_partial(task.problem):
        state.oracle_calls += task.n
        return first_guess(task)
    from partwise.solvers import get_solver

    convex = dataclasses.replace(task, loss=task.loss.convex)
    found = run(get_solver("auto", task.problem, convex.loss), convex, tol=FIRST, evaluate="never", keep_state=False)
    if found.status == "interrupted":
        raise KeyboardInterrupt
    state.oracle_calls += found.n_oracle_calls
    return found.w


@dataclass
class NRBMState(BundleState):
    """The best point and the model around it."""

    guess: bool = False  #: whether to look for better weights to begin with
    step: float = 1.0  #: of the last search
    repairs: int = 0  #: cuts that SolveConflict had to make


@dataclass(frozen=True)
class NRBM(Bundle):
    """The non-convex regularised bundle method (see the module); one epoch is one iteration.

    Parameters
    ----------
    line_search : bool
        Search between the best point and the model's minimiser, and trust cuts less that were taken far away. False: Algorithms 7
        and 8 to the letter, but for older cuts, which are lowered too where a new best point is in conflict with them.
    max_cuts, memory
        See `bundle.Bundle`.

    Notes
    -----
    Weights to begin with matter where the risk is not convex. Without them, the first epoch minimises the convex half of the loss
    (the hinge for ramp(1, .)) to the gap at which CCCP ends its first round; for partial labels it is an epoch of DCA, since at
    w = 0 all completions tie. From w = 0, ramps are often caught in a poor optimum nearby: they are flat a little farther away.

    Examples
    --------
    >>> from partwise import multiclass_problem, solve
    >>> problem = multiclass_problem([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0, 1, 0])
    >>> result = solve(problem, "ramp", NRBM(), C=1.0, max_epochs=20)
    >>> result.solver.name, result.w.shape
    ('nrbm', (4,))
    """

    name = "nrbm"
    default_epochs = 1000
    accepted = "every loss"
    takes = "differences"
    fixed_targets = False

    max_cuts: int = 1000
    line_search: bool = True

    def init(self, task: Task, start: np.ndarray | None = None) -> NRBMState:
        guess = start is None and not is_convex(task.problem, task.loss)
        return self.fill(NRBMState(guess=guess), task, start)

    def epoch(self, task: Task, state: NRBMState) -> Progress:
        convex = is_convex(task.problem, task.loss)
        if state.cuts.n == 0:
            if state.guess:
                state.best, state.guess = first_weights(task, state), False
            point = self.look(task, state, state.best)
            self.add(task, state, point, point.a, point.offset, 0.0)
            state.pool.append(point.a)
        elif state.gap > 1e-15 * abs(state.objective):
            step = self.search if self.line_search else self.plain
            step(task, state, convex)
        if not convex:
            self.reconcile(state)
        self.minimise_model(task, state, convex)
        state.epochs += 1
        return Progress(state.risk, state.gap, state.objective)

    def add(self, task: Task, state: NRBMState, point: Point, a: np.ndarray, offset: float, distance: float) -> None:
        """A cut taken at `point`, which becomes the best one if it is."""
        cuts = state.cuts
        products = cuts.add(a, offset, point.w, distance, task.n_jobs)
        if point.objective < state.objective:
            way = np.linalg.norm(point.w - state.best)
            cuts.distance[:-1] += way
            cuts.at_best[:] = products
            cuts.anchor = cuts.n - 1
            state.best, state.objective, state.risk = point.w.astype(state.best.dtype), point.objective, point.risk
        else:
            cuts.at_best[-1] = float(a @ state.best)

    def reconcile(self, state: NRBMState) -> None:
        """Lower the cuts that are above the risk at the best point, or nearer to it than their distance allows."""
        cuts = state.cuts
        below = 0.5 * np.square(cuts.distance) if self.line_search else 0.0
        np.minimum(cuts.offset, state.risk - cuts.at_best - below, out=cuts.offset)

    def plain(self, task: Task, state: NRBMState, convex: bool) -> None:
        """The cut at the model's minimiser, as in the paper."""
        point = self.look(task, state, state.candidate)
        if point.objective < state.objective:
            self.add(task, state, point, point.a, point.offset, 0.0)
        else:
            a, offset = point.a, point.offset
            if not convex and offset + float(a @ state.best) > state.risk:
                a, offset = solve_conflict(a, point.w, state.best.astype(np.float64), state.objective)
                state.repairs += 1
            self.add(task, state, point, a, offset, 0.0)
        state.pool.append(point.a)

    def search(self, task: Task, state: NRBMState, convex: bool) -> None:
        """A lower point between the best one and the model's minimiser, or a cut that lifts the model (see the module)."""
        cuts, end, level, gap = state.cuts, state.candidate, state.objective, state.gap
        origin = state.best.astype(np.float64)
        direction = end - origin
        along, square, top = float(origin @ direction), float(direction @ direction), 0.5 * float(end @ end)
        if square == 0.0:  # the model is minimal at the best point itself: what is left of the gap is rounding
            return
        slope = -float(cuts.gram[cuts.anchor, : cuts.n] @ cuts.alpha) - float(cuts.at_best[cuts.anchor])
        low, high, step = Tangent(0.0, state.risk, slope), 1.0, min(1.0, WIDER * state.step)
        found = 0.0
        for trial in range(1, TRIALS + 1):
            point = self.look(task, state, origin + step * direction)
            falls = point.objective < state.objective
            found = step if falls else found
            distance = 0.0 if falls else float(np.linalg.norm(point.w - state.best))
            lift = top + float(point.a @ end) + point.offset - min(state.objective, point.objective)
            if not (convex or falls):
                above = point.offset + float(point.a @ state.best) - state.risk  # > 0: a conflict
                lift -= max(above + 0.5 * distance**2, 0.0)
            lifts = lift >= -SHARE * gap
            if convex or falls or lifts:
                self.add(task, state, point, point.a, point.offset, distance)
            elif trial == TRIALS:
                a, offset = solve_conflict(point.a, end, state.best.astype(np.float64), state.objective)
                far = 0.0 if a is point.a else float(np.linalg.norm(end - state.best))
                self.add(task, state, point, a, offset, far)
                state.repairs += 1
            here = Tangent(step, point.risk, float(point.a @ direction))
            state.pool.append(point.a)
            if lifts and (point.objective <= level - SHARE * step * gap or trial >= ENOUGH):
                break
            if lifts or point.objective > level:
                high = step
            else:
                low = here
            if high < 1.0 or low.step == 0.0:
                width = high - low.step
                step = low.step + min(max(between(low, here, along, square) - low.step, 0.1 * width), 0.7 * width)
            else:
                step = min(1.0, 3.0 * low.step)
        state.step = found or max(step, 1e-3)

    def bounds(self, task: Task, state: NRBMState) -> Value:
        """J at the best point, known already, and the model's minimum, which is a lower bound if J is convex."""
        if state.cuts.n == 0:
            point = self.look(task, state, state.best)
            return Value(point.objective, math.nan, np.zeros(0))
        dual = min(state.model, state.objective) if is_convex(task.problem, task.loss) else math.nan  # rounding alone crosses
        return Value(state.objective, dual, np.zeros(0))

    def verdict(self, state: NRBMState, value: Value, tol: float) -> str:
        if not math.isnan(value.dual) or not state.gap <= tol * abs(value.primal) or tol <= 0:
            return super().verdict(state, value, tol)
        share = state.gap / max(value.primal, 1e-300)
        return (
            f"relative approximation gap {share:.2g} <= {tol:g}: the model of cuts is minimal at the best point, which is nearly "
            "stationary; the objective is not convex, and the gap no bound"
        )
