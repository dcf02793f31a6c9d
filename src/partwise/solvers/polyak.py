"""Subgradient descent with Polyak's step: a pass over all examples, then a step as long as the distance to a level asks for.

Problem: ``min_w P(w) = 1/2 ||w||^2 + sum_i C_i L_i(w)``, with g in dP(w):

    repeat
        w <- w - eta g,    eta = (P(w) - level) / ||g||^2
    return the best w seen

If the level is the optimum P*, every step gets nearer to w* (Polyak 1969): ``||w - w*||^2`` falls by ``(P(w) - P*)^2 / ||g||^2``.
P is 1-strongly convex, so eta is never above 1/2 then.

**Nobody knows P*.** What is known is P_b, the best value seen, and a lower bound D. The level is halfway between,
``l = (P_b + D) / 2``, as in level methods (Lemarechal et al. 1995). The bound is a by-product of the steps. A convex risk lies
above all its tangents ``a_k . u + b_k``, and above their average A . u + B with the steps eta_k for weights, so
``D = B - 1/2 ||A||^2``. With S = sum_k eta_k and v where the average began,

    B + A . u + 1/2 ||u||^2 >= (P_b + l) / 2 - ||u - v||^2 / (2 S)    for all u,

which follows from ``||w_k+1 - u||^2 = ||w_k - u||^2 - 2 eta_k g_k . (w_k - u) + eta_k^2 ||g_k||^2`` and the choice of eta_k. So
while P_b stays, S grows and D rises, beyond l in the end: the gap P_b - D goes to zero, whichever side of P* the level is on.
The average begins anew when the gap has halved, and forgets tangents from far away. The bound of `objective` counts as well, and
zero, without which first steps would be as long as gradients are steep.

(On classes and chains that gets as near to the optimum in a hundred passes as the optimum itself for a level; the path-based rule
of Nedic and Bertsekas (2001), which has no bound to go by, is far behind.)

**Where P is not convex** (soft ramps, partial labels) there is no bound. The level is ``P_b - delta`` then; delta, half of P at
first, is halved when `PATIENCE` steps have not lowered P_b by half of it, as in the dynamic rule of Nedic and Bertsekas, and eta
is 1/2 at most. Ramp losses come inside CCCP, one linearisation after the other, as in Do et al. (2008), who trained alignment
and RNA folding so.

Cost of an epoch: one oracle call per example, in threads. Memory: w, the best w, a subgradient and the average of tangents.

References
----------
B. T. Polyak (1969). Minimization of unsmooth functionals. USSR Computational Mathematics and Mathematical Physics 9.
C. Lemarechal, A. Nemirovskii, Y. Nesterov (1995). New variants of bundle methods. Math. Programming 69.
A. Nedic, D. P. Bertsekas (2001). Incremental subgradient methods for nondifferentiable optimization. SIAM J. Optim. 12.
C. B. Do, Q. Le, C. H. Teo, O. Chapelle, A. Smola (2008). Tighter bounds for structured estimation. NIPS. Section 5.3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from partwise import kernels
from partwise.objective import Value, is_convex
from partwise.solvers.base import Progress, Solver, State, Task
from partwise.solvers.bundle import look_at

LEVEL = 0.5  # of the way from the best value down to the bound
FRESH = 0.5  # share of the gap at which the average of tangents begins anew
LONGEST = 0.5  # step: P is 1-strongly convex, or treated so
PATIENCE = 10  # steps without progress, after which delta is halved
DIGITS = 8.0  # last digits of a sum that may be wrong


@dataclass
class PolyakState(State):
    """Where the next epoch looks, the best point so far, and the average of tangents."""

    w: np.ndarray | None = None
    best: np.ndarray | None = None
    primal: float = math.inf  #: P(best)
    residual: float = math.nan  #: 1/2 ||g||^2 there
    optimum: float = math.nan  #: the one that was given
    dual: float = -math.inf  #: the best bound so far
    slope: np.ndarray | None = None  #: A
    offset: float = 0.0  #: B
    steps: float = 0.0  #: S
    begun: float = math.inf  #: the gap when the average began
    noise: float = 0.0  #: what rounding may hide of the gap
    delta: float = math.nan
    reference: float = math.inf  #: the best value when delta was chosen, or was last kept
    idle: int = 0  #: steps since
    pool: list[np.ndarray] = field(default_factory=list)

    @property
    def gap(self) -> float:
        """P(best) minus the bound."""
        return max(self.primal - self.dual, 0.0)


@dataclass(frozen=True)
class Polyak(Solver):
    """Subgradient descent with Polyak's step (see the module); one epoch is one step.

    Parameters
    ----------
    optimum : float, optional
        P(w*), where it is known. None: the level of the module. One that is too low makes steps too long, and the run does not
        come near it; at one that is too high the run ends.

    Notes
    -----
    Inside CCCP, `optimum` is that of the first round: later ones minimise something else, and are not told.

    Examples
    --------
    >>> from partwise import multiclass_problem, solve
    >>> problem = multiclass_problem([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0, 1, 0])
    >>> result = solve(problem, "hinge", Polyak(), C=1.0, max_epochs=20)
    >>> result.solver.name, result.w.shape
    ('polyak', (4,))
    """

    name = "polyak"
    everywhere = True
    default_epochs = 1000
    accepted = "every loss"
    free_bounds = True
    takes = "gradients"

    optimum: float | None = None

    def __post_init__(self):
        number = isinstance(self.optimum, int | float | np.number) and not isinstance(self.optimum, bool)
        if self.optimum is not None and not (number and 0 <= self.optimum < math.inf):
            raise ValueError(
                f"The 'optimum' parameter of Polyak must be a float in the range [0, inf) or None. Got {self.optimum!r} instead."
            )

    def init(self, task: Task, start: np.ndarray | None = None) -> PolyakState:
        w = np.zeros(kernels.n_weights(task.problem), task.dtype) if start is None else np.array(start, task.dtype)
        return PolyakState(w=w, best=w, optimum=math.nan if self.optimum is None else float(self.optimum))

    def weights(self, state: PolyakState) -> np.ndarray:
        return state.best.copy()

    def finish(self, state: PolyakState) -> np.ndarray:
        return state.best

    def retarget(self, before: Task, task: Task, state: PolyakState, changed: np.ndarray) -> PolyakState:
        """Begin anew at the best point: tangents, bound and optimum were those of another problem."""
        fresh = super().retarget(before, task, state, changed)
        fresh.optimum, fresh.pool = math.nan, state.pool
        return fresh

    def epoch(self, task: Task, state: PolyakState) -> Progress:
        w, convex, point = state.w, is_convex(task.problem, task.loss), look_at(task, state.pool, state.w)
        exact, risk, a, primal, offset = point.w, point.risk, point.a, point.objective, point.offset
        g = a + exact
        residual = 0.5 * float(g @ g)
        state.epochs, state.oracle_calls = state.epochs + 1, state.oracle_calls + task.n
        if primal < state.primal:
            state.best, state.primal, state.residual = w, primal, residual
        if convex:
            state.dual = max(state.dual, primal - residual, 0.0)  # no objective is below zero
        eta = 0.0
        if residual > 0.0:
            eta = min(max(primal - self.level(state, convex), 0.0) / (2.0 * residual), LONGEST)
        terms = primal
        if convex:
            terms += self.average_tangents(state, a, offset, eta)
        state.noise = DIGITS * float(np.finfo(task.dtype).eps) * terms
        state.pool.append(a)
        state.w = (exact - eta * g).astype(task.dtype, copy=False)
        small = state.gap if convex else state.delta
        stuck = small <= state.noise or bool(np.array_equal(state.w, w))
        return Progress(risk, self.estimate(state, convex), state.primal, stuck)

    def level(self, state: PolyakState, convex: bool) -> float:
        """The value that a step aims at."""
        if not math.isnan(state.optimum):
            return state.optimum
        if convex:
            return state.primal - LEVEL * state.gap
        if math.isnan(state.delta):
            state.delta, state.reference = 0.5 * state.primal, state.primal
        elif state.primal <= state.reference - 0.5 * state.delta:
            state.reference, state.idle = state.primal, 0
        else:
            state.idle += 1
            if state.idle >= PATIENCE:
                state.delta, state.reference, state.idle = 0.5 * state.delta, state.primal, 0
        return state.primal - state.delta

    def average_tangents(self, state: PolyakState, a: np.ndarray, offset: float, eta: float) -> float:
        """Enter the tangent a . u + offset of the risk into the average with weight eta; the bound follows.

        Returns how large the terms of the bound are.
        """
        if state.slope is None or state.gap < FRESH * state.begun:
            state.slope, state.offset, state.steps, state.begun = a.copy(), offset, eta, state.gap
        elif eta > 0.0:
            state.steps += eta
            share = eta / state.steps
            state.slope += share * (a - state.slope)
            state.offset += share * (offset - state.offset)
        half = 0.5 * float(state.slope @ state.slope)
        state.dual = max(state.dual, state.offset - half)
        return abs(state.offset) + half

    def estimate(self, state: PolyakState, convex: bool) -> float:
        """How far from the optimum, or from a stationary point, the best point is at most."""
        far = state.gap if convex else state.residual
        return far if math.isnan(state.optimum) else min(far, max(state.primal - state.optimum, 0.0))

    def bounds(self, task: Task, state: PolyakState) -> Value:
        """P at the best point, known already, and the best bound, less what rounding may have added."""
        if state.epochs == 0 or not math.isfinite(state.primal):
            return super().bounds(task, state)
        convex = is_convex(task.problem, task.loss)
        dual = min(state.dual - state.noise, state.primal) if convex else math.nan
        return Value(state.primal, dual, np.zeros(0), state.residual)

    def verdict(self, state: PolyakState, value: Value, tol: float) -> str:
        near = tol > 0 and value.primal - state.optimum <= tol * abs(value.primal)
        return super().verdict(state, value, tol) or (
            f"the objective is within {tol:g} of the optimum that was given" if near else ""
        )

    def why_stuck(self, task: Task, state: PolyakState) -> str:
        if state.primal <= state.optimum:
            return "the objective is not above the optimum that was given"
        return super().why_stuck(task, state)
