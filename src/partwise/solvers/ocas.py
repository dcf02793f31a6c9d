"""OCAS: the optimised cutting plane algorithm, with an exact line search (Franc and Sonnenburg 2008), for any structure.

Problem: ``min_w J(w) = 1/2 ||w||^2 + sum_i C_i max_y [gamma l_i(y) - w . dF_i(y)]``, where dF_i(y) = F(x_i, t_i) - F(x_i, y): the
hinge of structural SVMs (gamma = 1), of which that of binary classification, for which the method was made, is a special case.
The model J_CP and the bound are those of `bundle`. Algorithm 5 of Acharya (2011):

    w_b = 0
    repeat
        w_t = argmin_w J_CP(w)
        w_b <- argmin of J on {(1 - k) w_b + k w_t, k >= 0}                                  exact, see `line_search`
        add the cut at w_c = (1 - theta) w_b + theta w_t
    until J(w_b) - J_CP(w_t) <= tolerance; return w_b

It is BMRM with a line search (Algorithm 6). What is special about L(inf, gamma) is that on a line each example is a maximum of
lines of its own, so that the search costs little more than one pass, where the general one takes one for each trial.

Cost of an iteration: a pass over the examples for the cut, two scorings and two to three calls of `best` per example for the
search, two readings of the cuts, and the QP. Memory: see `bundle`, and 16 bytes for each part of all examples.

References
----------
V. Franc, S. Sonnenburg (2008). Optimized cutting plane algorithm for support vector machines. ICML.
A. Acharya (2011). Optimization methods in structural SVMs. Algorithm 5.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from partwise import kernels
from partwise.losses.in_loops import Maximum
from partwise.losses.records import Loss
from partwise.objective import losses_at
from partwise.solvers.base import Progress, Task
from partwise.solvers.bundle import Bundle, BundleState, check_share
from partwise.solvers.line_search import Ray, search_maxima

AHEAD = 1.5  # times the last step: where the next search looks first


@dataclass
class OCASState(BundleState):
    """The best point, the model around it, and how far the last search went."""

    step: float = 1.0


@dataclass(frozen=True)
class OCAS(Bundle):
    """The optimised cutting plane algorithm, Algorithm 5 (see the module); one epoch is one iteration.

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
    >>> result = solve(problem, "hinge", OCAS(), C=1.0, max_epochs=20)
    >>> result.solver.name, result.w.shape
    ('ocas', (4,))
    """

    name = "ocas"
    accepted = "max-margin losses L(inf, gamma)"

    theta: float = 0.1

    def __post_init__(self):
        super().__post_init__()
        check_share(self, "theta", self.theta)

    def accepts(self, loss: Loss) -> bool:
        return isinstance(loss.convex.kernel, Maximum) and loss.is_convex

    def work(self, task: Task) -> float:
        """Besides the vectors, the part scores of all examples by two weight vectors."""
        return super().work(task) + 16.0 * kernels.total_parts(task.problem)

    def init(self, task: Task, start: np.ndarray | None = None) -> OCASState:
        return self.fill(OCASState(), task, start)

    def epoch(self, task: Task, state: OCASState) -> Progress:
        if state.cuts.n == 0:
            self.add_best(task, state, self.look(task, state, state.best))
            state.cuts.anchor = -1  # the best point moves without a cut
        elif state.gap > state.noise:
            self.search(task, state)
            w = (1.0 - self.theta) * state.best + self.theta * state.candidate
            self.add_cut(task, state, self.look(task, state, w))
        self.minimise_model(task, state)
        return self.progress(state)

    def search(self, task: Task, state: OCASState) -> None:
        """The best point on the ray through the model's minimiser."""
        origin = state.best.astype(np.float64)
        direction = state.candidate - origin
        along, square = float(origin @ direction), float(direction @ direction)
        if square == 0.0:
            return
        ray = Ray(task.problem, task.loss.gamma, origin, direction, task.n_jobs)
        found = search_maxima(ray, task.C, along, square, AHEAD * state.step)
        state.oracle_calls += found.calls
        state.step = found.step or 0.5 * state.step
        origin += found.step * direction
        risk = found.risk
        if task.dtype != np.float64:  # the weights are rounded: what was found does not hold for them
            origin = origin.astype(task.dtype)
            risk = float(task.C @ losses_at(task.problem, task.loss, origin, task.n_jobs))
            state.oracle_calls += task.n
            origin = origin.astype(np.float64)
        objective = 0.5 * float(origin @ origin) + risk
        if objective < state.objective:
            self.move(state, origin, objective, risk)
