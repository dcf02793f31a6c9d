"""Kelley's cutting plane method: the whole objective is modelled by cuts, the regulariser too (Kelley 1960). For comparison only.

Problem: ``min_w J(w) = 1/2 ||w||^2 + R(w)``, R(w) = sum_i C_i L_i(w), for every convex loss. Acharya (2011), section 6.1:

    repeat
        g_t = w_{t-1} + a,  a in dR(w_{t-1})                                       a subgradient of J, not of R alone
        J_CP(w) = max_{j <= t} J(w_{j-1}) + g_j . (w - w_{j-1})                                                   (17)
        w_t = argmin J_CP(w) over w in a box                                                          a linear program
        gap = min_{j < t} J(w_j) - J_CP(w_t)
    until gap <= tolerance; return the w_j with the smallest J(w_j)

`bundle` has the same cuts without their quadratic part, which its master problem keeps as it is. That is the whole difference,
and it is a large one: here the model is flat where J is curved, its minimiser is a corner, and iterates jump to and fro in a box
that is far too large. With d weights it takes in the order of (1/gap)^(d/2) iterations in the worst case (Nesterov 2004, section
3.3.2), where BMRM needs 1/gap whatever d is. On twenty examples with 12 weights it takes about ten times as many iterations as
BMRM; with 24 weights, the gap is still a third of J after 300, when BMRM has been done for long (the tests count them). **Nobody
should learn a model with it**: it is here because the papers begin with it, and to see what the others gain. Take `bmrm`, or
`proximal`.

**The box.** A piecewise linear model has no minimum until d + 1 cuts surround one ("one has to be careful", says the paper), so
the method needs a compact set that holds the optimum w*. Let u be the weights to start from. J has curvature 1 and R >= 0, so

    J(u) >= J(w*) + 1/2 ||u - w*||^2,    J(w*) >= 1/2 ||w*||^2.

The sum of the two says that w* is in the ball

    ||w* - u/2||^2 <= J(u) - 1/4 ||u||^2,                                         from u = 0:  ||w*||^2 <= J(0),

and the box is the one around this ball.

**The bound** is taken from the multipliers of the program, not from its value, which is right up to the tolerance of HiGHS only:
any alpha in the simplex bounds the optimum, with g = sum_j alpha_j g_j and b_j = J(w_{j-1}) - g_j . w_{j-1}, c the centre of the
box and r its half width, by

    min over the box of sum_j alpha_j (g_j . w + b_j) = sum_j alpha_j b_j + g . c - r ||g||_1.

Cost of iteration t: one pass over the examples, and a linear program in d + 1 variables with t dense rows, solved from scratch.
Memory: 8 t d bytes, all cuts are kept. More than `MOST_WEIGHTS` weights are refused.

References
----------
J. E. Kelley (1960). The cutting-plane method for solving convex programs. J. SIAM 8.
A. Acharya (2011). Optimization methods in structural SVMs. Section 6.1.
Y. Nesterov (2004). Introductory lectures on convex optimization. Kluwer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from partwise import kernels
from partwise.objective import Value
from partwise.solvers.base import Progress, Solver, State, Task
from partwise.solvers.bundle import DIGITS, look_at

MOST_WEIGHTS = 1000  # a program of a thousand dense columns takes a second, and there is one in each iteration
FINEST = 1e-10  # tolerances of HiGHS, the smallest it takes; the program is scaled such that coefficients are at most 1
PATIENCE = 100  # iterations without a smaller gap, after which a gap of the size of these tolerances will stay


class Corner(NamedTuple):
    """The minimiser of the model over the box, and multipliers of the cuts; `found` is false where HiGHS gave up."""

    w: np.ndarray
    alpha: np.ndarray
    found: bool = True


def lowest_corner(slopes: np.ndarray, offsets: np.ndarray, centre: np.ndarray, width: float) -> Corner:
    """argmin over |w_k - centre_k| <= width of max_j (slopes[j] . w + offsets[j]), by HiGHS.

    Parameters
    ----------
    slopes : array (n, d)
    offsets : array (n,)
    centre : array (d,)
    width : float >= 0
    """
    from scipy.optimize import linprog

    n, d = slopes.shape
    values = slopes @ centre + offsets
    scale = width * float(np.abs(slopes).max(initial=0.0))
    if scale == 0.0:  # flat, or a box without an inside
        return Corner(centre.copy(), np.eye(n)[int(np.argmax(values))])
    rows = np.column_stack([slopes * (width / scale), np.full(n, -1.0)])
    found = linprog(
        np.append(np.zeros(d), 1.0),
        rows,
        (values.max() - values) / scale,
        bounds=[(-1.0, 1.0)] * d + [(None, None)],
        method="highs-ds",
        options={"primal_feasibility_tolerance": FINEST, "dual_feasibility_tolerance": FINEST},
    )
    alpha = np.zeros(n) if found.x is None else np.maximum(-found.ineqlin.marginals, 0.0)
    if found.x is None or not alpha.sum() > 0.0:
        return Corner(centre.copy(), np.eye(n)[-1], found=False)
    return Corner(centre + width * np.clip(found.x[:d], -1.0, 1.0), alpha / alpha.sum())


@dataclass
class KelleyState(State):
    """All cuts, the box, and the best point so far."""

    grows: ClassVar[tuple[str, ...]] = ("slopes", "offsets")

    best: np.ndarray | None = None
    objective: float = math.inf  #: J(best)
    risk: float = math.nan  #: R(best)
    candidate: np.ndarray | None = None  #: the minimiser of the model
    model: float = -math.inf  #: the highest bound so far
    noise: float = 0.0  #: what rounding may hide of the gap
    finest: float = 0.0  #: what the tolerances of HiGHS may hide of it
    smallest: float = math.inf  #: gap so far
    still: int = 0  #: iterations since it became so small
    failed: bool = False  #: HiGHS gave up
    slopes: np.ndarray | None = None  #: (n, d)
    offsets: np.ndarray = field(default_factory=lambda: np.zeros(0))
    centre: np.ndarray | None = None  #: of the box
    width: float = 0.0  #: half of its
    pool: list[np.ndarray] = field(default_factory=list)

    def check(self, like: KelleyState, task: Task) -> None:
        """Raise a ValueError, unless the cuts that were read from a file have the size of the problem."""
        if self.slopes.shape != (len(self.offsets), like.slopes.shape[1]):
            raise ValueError(f"there are {len(self.offsets)} cuts with slopes of shape {self.slopes.shape}")

    @property
    def gap(self) -> float:
        """J(best) less the bound."""
        return max(self.objective - self.model, 0.0)


@dataclass(frozen=True)
class Kelley(Solver):
    """Kelley's cutting planes (see the module); one epoch is one iteration. Slow and unstable: for comparison only.

    Examples
    --------
    >>> from partwise import multiclass_problem, solve
    >>> problem = multiclass_problem([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0, 1, 0])
    >>> result = solve(problem, "hinge", Kelley(), C=1.0, max_epochs=20)
    >>> result.solver.name, result.w.shape
    ('kelley', (4,))
    """

    name = "kelley"
    everywhere = True
    default_epochs = 5000
    accepted = "every convex loss"
    fixed_targets = True
    free_bounds = True

    def check_size(self, problem: Any) -> None:
        d = kernels.n_weights(problem)
        if d > MOST_WEIGHTS:
            raise ValueError(
                f"Solver {self.name!r} solves a linear program over all weights in each iteration, and takes {MOST_WEIGHTS:,} "
                f"weights at most; the problem has {d:,}. Take 'bmrm', which needs far fewer iterations, or another solver."
            )

    def init(self, task: Task, start: np.ndarray | None = None) -> KelleyState:
        self.check_size(task.problem)
        d = kernels.n_weights(task.problem)
        best = np.zeros(d, task.dtype) if start is None else np.array(start, task.dtype)
        return KelleyState(best=best, candidate=best.astype(np.float64), slopes=np.zeros((0, d)), centre=np.zeros(d))

    def weights(self, state: KelleyState) -> np.ndarray:
        return state.best.copy()

    def epoch(self, task: Task, state: KelleyState) -> Progress:
        if not len(state.offsets) or state.gap > state.noise:
            self.add_cut(task, state)
            self.minimise_model(task, state)
        state.epochs += 1
        if state.gap < state.smallest - state.noise:
            state.smallest, state.still = state.gap, 0
        else:
            state.still += 1
        hidden = state.gap <= 10.0 * state.finest and state.still >= PATIENCE
        return Progress(state.risk, state.gap, state.objective, state.gap <= state.noise or hidden or state.failed)

    def add_cut(self, task: Task, state: KelleyState) -> None:
        """The tangent of J at the candidate, which may be the best point."""
        point = look_at(task, state.pool, state.candidate)
        state.oracle_calls += task.n
        if not len(state.offsets):
            state.centre = 0.5 * point.w
            state.width = math.sqrt(max(point.risk, 0.0) + 0.25 * point.square)
        state.slopes = np.vstack([state.slopes, point.a + point.w])
        state.offsets = np.append(state.offsets, point.offset - 0.5 * point.square)
        state.pool.append(point.a)
        if point.objective < state.objective:
            state.best, state.objective, state.risk = point.w.astype(task.dtype), point.objective, point.risk

    def minimise_model(self, task: Task, state: KelleyState) -> None:
        """The next candidate, and the bound that the multipliers give."""
        corner = lowest_corner(state.slopes, state.offsets, state.centre, state.width)
        slope = corner.alpha @ state.slopes
        offset, middle, half = corner.alpha @ state.offsets, slope @ state.centre, state.width * np.abs(slope).sum()
        state.model = max(state.model, float(offset + middle - half))
        terms = float(corner.alpha @ np.abs(state.offsets) + abs(middle) + half) + abs(state.objective)
        state.noise = DIGITS * float(np.finfo(task.dtype).eps) * terms
        state.finest = FINEST * state.width * float(np.abs(state.slopes).max())
        state.candidate, state.failed = corner.w, not corner.found

    def bounds(self, task: Task, state: KelleyState) -> Value:
        """J at the best point, known already, and the bound, less what rounding may have added."""
        if not len(state.offsets):
            state.oracle_calls += task.n
            return Value(look_at(task, state.pool, state.best).objective, math.nan, np.zeros(0))
        return Value(state.objective, min(state.model - state.noise, state.objective), np.zeros(0))

    def why_stuck(self, task: Task, state: KelleyState) -> str:
        if state.failed:
            return "the linear program over the cuts could not be solved"
        return "the linear program over the cuts is solved to its last digits, and the gap is no larger than these"
