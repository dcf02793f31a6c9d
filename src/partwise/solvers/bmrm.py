"""BMRM: the bundle method for regularised risk minimisation, plain and with a line search (Teo et al. 2010).

Problem: ``min_w J(w) = 1/2 ||w||^2 + R(w)``, R(w) = sum_i C_i L_i(w), for every convex loss: hinge, L(beta, gamma), slack
rescaling. The bound and the model J_CP are those of `bundle`. Algorithm 4 of Acharya (2011), lambda = 1:

    repeat
        a_t in dR(w_{t-1}),  b_t = R(w_{t-1}) - a_t . w_{t-1}
        w_t = argmin_w J_CP(w) = 1/2 ||w||^2 + max_{j <= t} (a_j . w + b_j)
        gap = min_{j < t} J(w_j) - J_CP(w_t)
    until gap <= tolerance; return the w_j with the smallest J(w_j)

(The paper returns the last w_t, which may be far worse than the best one: J goes up and down.) From w_0 = 0, after

    8 G^2 / gap - 14

iterations at most, G bounding ||a||, the gap is reached. (Theorem 6.3, with lambda = 1 / (N C), J and the gap divided by N C, has
log2( J(0) / G^2 ) + 8 G^2 / gap - 1. It begins with a gap of J(0), which the method does not have unless zero is a cut: the first
one is 1/2 ||a_1||^2, which may be larger or smaller.) Where J has a second derivative, the gap falls at a linear rate.

**With a line search** (Algorithm 6) the best point goes down in every iteration, and cuts are taken near it, where they matter:

    repeat
        a_t in dR(w^c),  b_t = R(w^c) - a_t . w^c
        w_t = argmin_w J_CP(w)
        w_b <- the minimiser of J on {w_b + eta (w_t - w_b), eta >= 0}
        w^c = (1 - theta) w_b + theta w_t
    until J(w_b) - J_CP(w_t) <= tolerance; return w_b

The search (`line_search.minimise`) makes a pass for each trial, and stops when it is exact to a hundredth of the gap. It begins a
little beyond where the last one ended. The pass at the new w_b has found a subgradient too: that tangent joins the model, and its
slope is known when the next search begins.

**Other regularisers** (Acharya's Omega): both take 1/2 sum_j lambda_j w_j^2 with any lambda_j > 0, which is the `penalty_weight`
of `solve`: see `bundle`. Theorem 6.3 holds with H* = 1 / min_j lambda_j, the curvature of its conjugate.

Cost of an iteration: one pass over the examples (two or three with a line search), two readings of the cuts, and the QP. Memory:
see `bundle`.

References
----------
C. H. Teo, S. V. N. Vishwanathan, A. Smola, Q. Le (2010). Bundle methods for regularized risk minimization. JMLR 11.
A. Acharya (2011). Optimization methods in structural SVMs. Algorithms 4 and 6.
V. Franc, S. Sonnenburg (2008). Optimized cutting plane algorithm for support vector machines. ICML.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from partwise.losses.penalty import inner
from partwise.solvers.base import Progress, Task
from partwise.solvers.bundle import Bundle, BundleState, Point, check_share
from partwise.solvers.line_search import Tangent, minimise

SHARE = 0.01  # of the gap: how exact a search is
AHEAD = 1.5  # times the last step: where the next search looks first


@dataclass
class BMRMLSState(BundleState):
    """The best point, the model around it, and how far the last search went."""

    step: float = 1.0


@dataclass(frozen=True)
class BMRM(Bundle):
    """The bundle method for regularised risk minimisation, Algorithm 4 (see the module); one epoch is one iteration.

    Parameters
    ----------
    max_cuts, memory
        See `bundle.Bundle`.

    Examples
    --------
    >>> from partwise import multiclass_problem, solve
    >>> problem = multiclass_problem([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0, 1, 0])
    >>> result = solve(problem, "hinge", BMRM(), C=1.0, max_epochs=20)
    >>> result.solver.name, result.w.shape
    ('bmrm', (4,))
    """

    name = "bmrm"
    weighted = True

    def epoch(self, task: Task, state: BundleState) -> Progress:
        point = self.look(task, state, state.candidate if state.cuts.n else state.best)
        if point.objective < state.objective:
            self.add_best(task, state, point)
        else:
            self.add_cut(task, state, point)
        self.minimise_model(task, state)
        return self.progress(state)


@dataclass(frozen=True)
class BMRMLS(Bundle):
    """BMRM with a line search, Algorithm 6 (see the module); one epoch is one iteration.

    Parameters
    ----------
    max_cuts, memory
        See `bundle.Bundle`.
    theta : float in (0, 1]
        Cuts are taken at (1 - theta) w_b + theta w_t.

    Examples
    --------
    >>> from partwise import multiclass_problem, solve
    >>> problem = multiclass_problem([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0, 1, 0])
    >>> result = solve(problem, "hinge", BMRMLS(), C=1.0, max_epochs=20)
    >>> result.solver.name, result.w.shape
    ('bmrm_ls', (4,))
    """

    name = "bmrm_ls"
    weighted = True

    theta: float = 0.1

    def __post_init__(self):
        super().__post_init__()
        check_share(self, "theta", self.theta)

    def init(self, task: Task, start: np.ndarray | None = None) -> BMRMLSState:
        return self.fill(BMRMLSState(), task, start)

    def epoch(self, task: Task, state: BMRMLSState) -> Progress:
        if state.cuts.n == 0:
            self.add_best(task, state, self.look(task, state, state.best))
        elif state.gap > state.noise:
            self.search(task, state)
        self.minimise_model(task, state)
        return self.progress(state)

    def search(self, task: Task, state: BMRMLSState) -> None:
        """The best point on the line to the model's minimiser, and a cut between the two."""
        cuts, origin = state.cuts, state.best.astype(np.float64)
        direction = state.candidate - origin
        along, square = (inner(u, direction, task.penalty_weight) for u in (origin, direction))
        if square == 0.0:  # the model is minimal at the best point itself: what is left of the gap is rounding
            return
        # the slope of the cut at w_b, from products that are known
        slope = -float(cuts.gram[cuts.anchor, : cuts.n] @ cuts.alpha) - float(cuts.at_best[cuts.anchor])
        lowest: list[Point] = []

        def evaluate(step: float) -> Tangent:
            point = self.look(task, state, origin + step * direction)
            if not lowest or point.objective < lowest[0].objective:
                lowest.insert(0, point)
            for rejected in lowest[1:] if point is lowest[0] else [point]:
                state.pool.append(rejected.a)
            del lowest[1:]
            return Tangent(step, point.risk, float(point.a @ direction))

        found = minimise(evaluate, Tangent(0.0, state.risk, slope), along, square, SHARE * state.gap, AHEAD * state.step)
        state.step = found.step or 0.5 * state.step
        for point in lowest:
            if point.objective < state.objective:
                self.add_best(task, state, point)
            else:
                state.pool.append(point.a)
        self.add_cut(task, state, self.look(task, state, (1.0 - self.theta) * state.best + self.theta * state.candidate))
