"""The proximal bundle method: the model is trusted near the best point only (Kiwiel 1990; Acharya 2011, Algorithm 3).

Problem: ``min_w J(w) = 1/2 ||w||^2 + R(w)``, R(w) = sum_i C_i L_i(w), for every convex loss. J_CP, cuts and bounds are those of
`bundle`: the regulariser is kept as it is and only R is modelled by cuts. w^ is the centre, the last serious iterate:

    repeat
        w_t = argmin_w J_CP(w) + zeta/2 ||w - w^||^2
        expected = J(w^) - J_CP(w_t)
        evaluate J(w_t), add the cut at w_t
        if J(w^) - J(w_t) >= rho expected:    w^ <- w_t          a serious step
        else:                                 w^ stays           a null step: the cut makes the model better
        zeta <- after Kiwiel (1990): less if a step went better than expected, more if the model was far off
    until J(w^) - bound <= tolerance; return w^

(The paper writes w-bar and w-hat for the centre by turns: it is the last serious iterate in steps 4, 5, 7, 9 and 12. Its line
search, step 7, is optional and left out: a step that is too long shows in zeta.) BMRM is this method with zeta = 0 and every step
a null step. J is strongly convex already; what the centre adds is that w_t does not jump to and fro between far-away corners of a
poor model, which is what takes BMRM so long for large C.

**The master problem** is that of `qp`: with v = sqrt(1 + zeta) (w - c) and c = zeta w^ / (1 + zeta),

    1/2 ||w||^2 + zeta/2 ||w - w^||^2 = 1/2 ||v||^2 + constant,        a_j . w + b_j = a_j . v / sqrt(1 + zeta) + (b_j + a_j . c),

so that G / (1 + zeta) and b_j + a_j . c take the places of G and b. Its multipliers bound the optimum as any do; the bound is
tight when w_t is close to w^.

**zeta** (Kiwiel 1990, Procedure 2.2) follows the curvature that J shows between w^ and w_t, if it were a parabola there,

    zeta' = 2 zeta (1 - (J(w^) - J(w_t)) / expected).

After a serious step that gained more than half of what was expected, the second in a row, zeta becomes zeta', or half of itself
after four of them; after four null steps in a row whose tangents are far below J at w^, zeta'. Never more than ten times up or
down at once. It begins such that the first step is that of Polyak for a minimum of zero. One rule more, since here a bound of the
optimum is known: zeta is halved after a serious step that promised less than `MODEST` of the gap, because then the centre holds
the iterates back. On OCR words at C = 1 that saves half of the iterations.

**Variants that were considered.** All keep w_t near w^; they differ in what is given instead of zeta. A *trust region* (Schramm
and Zowe 1992) gives a radius, ||w - w^|| <= r. Its multiplier is a zeta: it makes the same steps by another rule, at the price of
a search for the multiplier in each master problem. A *level* method (Lemarechal, Nemirovskii and Nesterov 1995) projects w^ onto
{w : J_CP(w) <= level}, the level between the bound and J(w^). That needs the bound from a problem of its own, and the projection
is no quadratic program here, since the regulariser is part of J_CP: two problems an iteration, one of them harder. Its advantage,
that the step is tied to a known bound, is what the rule of `MODEST` takes from it. So neither was built.

Cost of an iteration: one pass over the examples, two readings of the cuts, and the QP. Memory: see `bundle`.

References
----------
K. C. Kiwiel (1990). Proximity control in bundle methods for convex nondifferentiable minimization. Mathematical Programming 46.
A. Acharya (2011). Optimization methods in structural SVMs. Algorithm 3.
H. Schramm, J. Zowe (1992). A version of the bundle idea for minimizing a nonsmooth function. SIAM J. Optimization 2.
C. Lemarechal, A. Nemirovskii, Y. Nesterov (1995). New variants of bundle methods. Mathematical Programming 69.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from partwise.solvers.base import Progress, Task
from partwise.solvers.bundle import Bundle, BundleState, Point, check_share
from partwise.solvers.qp import solve_master

LEAST = 1e-6  # zeta: the regulariser has curvature 1
MODEST = 0.2  # part of the gap below which what the model promises shows that zeta is too large
GOOD = 0.5  # part of the expected decrease above which a serious step asks for a smaller zeta


@dataclass
class ProximalState(BundleState):
    """The centre is `best`."""

    zeta: float = 0.0
    expected: float = 0.0  #: J(w^) - J_CP(w_t)
    run: int = 0  #: serious steps in a row since zeta changed, or minus the null steps
    variation: float = math.inf  #: Kiwiel's estimate of how much J varies around the centre
    serious: int = 0  #: steps since the start
    null: int = 0


@dataclass(frozen=True)
class Proximal(Bundle):
    """The proximal bundle method (see the module); one epoch is one iteration.

    Parameters
    ----------
    max_cuts, memory
        See `bundle.Bundle`.
    rho : float in (0, 1]
        Part of the expected decrease that makes a step a serious one.

    Examples
    --------
    >>> from partwise import multiclass_problem, solve
    >>> problem = multiclass_problem([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0, 1, 0])
    >>> result = solve(problem, "hinge", Proximal(), C=1.0, max_epochs=20)
    >>> result.solver.name, result.w.shape
    ('proximal', (4,))
    """

    name = "proximal"

    rho: float = 0.1

    def __post_init__(self):
        super().__post_init__()
        check_share(self, "rho", self.rho)

    def init(self, task: Task, start: np.ndarray | None = None) -> ProximalState:
        return self.fill(ProximalState(), task, start)

    def epoch(self, task: Task, state: ProximalState) -> Progress:
        if state.cuts.n == 0:
            point = self.look(task, state, state.best)
            norm = float(point.a @ point.a) + 2.0 * point.product + point.square  # ||dJ||^2
            state.zeta = max(norm / max(point.objective, 1e-300) - 1.0, LEAST) if norm > 0 else LEAST
            self.add_best(task, state, point)
        elif state.gap > state.noise:
            self.step(task, state)
        self.minimise_near(task, state)
        return self.progress(state)

    def step(self, task: Task, state: ProximalState) -> None:
        """A serious or a null step, and the next zeta."""
        point = self.look(task, state, state.candidate)
        gain, gap = state.objective - point.objective, state.gap
        ratio = gain / max(state.expected, 1e-300)
        zeta = min(max(2.0 * state.zeta * (1.0 - ratio), 0.1 * state.zeta), 10.0 * state.zeta)
        if ratio >= self.rho:
            self.add_best(task, state, point)
            state.serious += 1
            state.variation = max(state.variation, 2.0 * state.expected) if math.isfinite(state.variation) else state.expected
            smaller = zeta if ratio >= GOOD and state.run > 0 else 0.5 * state.zeta if state.run > 3 else state.zeta
            if state.expected < MODEST * gap:
                smaller = min(smaller, 0.5 * state.zeta)
            smaller = max(smaller, LEAST)
            state.run = max(state.run + 1, 1) if smaller == state.zeta else 1
            state.zeta = smaller
            return
        distance = float(np.linalg.norm(point.w - state.best))
        below = self.below(state, point)
        self.add_null(task, state, point)
        state.null += 1
        norm = state.zeta * distance
        state.variation = min(state.variation, norm + max(state.expected - norm * distance, 0.0))
        larger = zeta if below > max(state.variation, 10.0 * state.expected) and state.run < -3 else state.zeta
        larger = max(larger, state.zeta)
        state.run = min(state.run - 1, -1) if larger == state.zeta else -1
        state.zeta = larger

    def below(self, state: ProximalState, point: Point) -> float:
        """How far below J(w^) the tangent of J at `point` is at the centre."""
        step = state.best.astype(np.float64) - point.w
        return state.objective - point.objective - float(step @ point.a) - float(step @ point.w)

    def add_null(self, task: Task, state: ProximalState, point: Point) -> None:
        """The cut at a point that does not become the centre."""
        at_centre = float(point.a @ state.best)
        self.add_cut(task, state, point)
        state.cuts.at_best[-1] = at_centre

    def minimise_near(self, task: Task, state: ProximalState) -> None:
        """The minimiser of the model near the centre, what it promises, and the bound."""
        cuts, share = state.cuts, state.zeta / (1.0 + state.zeta)
        gram, offset = cuts.products / (1.0 + state.zeta), cuts.offset + share * cuts.at_best
        cuts.set_multipliers(solve_master(gram, offset, cuts.alpha).alpha)
        w = cuts.minimiser(state.candidate, task.n_jobs)
        self.set_bound(task, state, w)
        slopes = share * cuts.at_best - cuts.products @ cuts.alpha / (1.0 + state.zeta)  # a_j . w_t
        w /= 1.0 + state.zeta
        w += share * state.best
        state.expected = state.objective - 0.5 * float(w @ w) - float(np.max(slopes + cuts.offset))
        self.forget(task, state)
