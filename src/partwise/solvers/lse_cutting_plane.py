"""LSE cutting plane: the 1-slack cutting-plane method for the summed error (Balamurugan et al., Algorithm 1).

Problem: ``min_w 1/2 ||w||^2 + R_V(w)``, R_V(w) = sum_i C_i sum_{y in V_i} max(0, gamma l_i(y) - w . dF_i(y)), over the outputs
found so far (see `found`). A sum of positive parts is a maximum over subsets S_i of V_i, so with one slack for all examples,

    min_{w, xi >= 0} 1/2 ||w||^2 + xi    subject to    xi >= sum_i C_i sum_{y in S_i} gamma l_i(y) - w . dF_i(y)    for all S_i

(OP2-1-slack). Each constraint is a cut, a tangent of R_V: that with S_i = {} says xi >= 0, that with all violators at w touches
R_V there. Squared (``Summed(squared=True)``), R_V has tangents as well, where each violator counts by its violation.

    cuts = {0}, V_i = {}, w = 0
    repeat
        V_i <- V_i + {argmax_y gamma l_i(y) - w . dF_i(y)}  for all i                                            (type I only)
        S_i = {y in V_i : w . dF_i(y) < gamma l_i(y)},  afresh;  add the cut of (S_1 .. S_n)
        w, xi = the minimiser over the cuts                                                          a small QP, see `qp`
    until P_V(w) is no more than the tolerance above the minimum over the cuts

(Algorithm 1 never empties S_i. The cut with what was violated once but no longer is would not be a tangent.) Type-I iterations
call the oracle for every example. Each is followed by up to kappa2 - 1 iterations of type II, which only look at V, until most of
the gap it has seen is closed.

**What is certified.** A cut made of outputs in V stays a lower bound of R_V when V grows, and bounds the sum over all outputs.
So the minimum over the cuts, the highest so far, bounds from below the optimum over V, that over every later V, and that over
all outputs. The value at the best point w_b is one over the V of the moment: when V grows it rises, so it is computed anew, and
w_b may no longer be the best. The gap is one over V; the method stops when it is small, and a type-I iteration has seen a small
one too. What outputs that nobody has named would add is not known (``SolveResult.unseen``), unless all are listed.

Cost of an iteration: n oracle calls (type I), O(sum_i |V_i|) sparse margins, one reading of the cuts, and the QP. The oracle and
the margins run in threads. Memory: the cuts, at most 8 bytes per weight each, and for each example 48 |V_i| bytes and the
outputs.

References
----------
P. Balamurugan, S. Shevade, T. Ravindra Babu. Efficient algorithms for linear summed error structural SVMs.
T. Joachims, T. Finley, C.-N. J. Yu (2009). Cutting-plane training of structural SVMs. Machine Learning 77.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from partwise import kernels
from partwise.objective import Value
from partwise.solvers.active import ActiveSets
from partwise.solvers.base import Progress, State, Task
from partwise.solvers.cuts import Cuts
from partwise.solvers.found import FoundSolver, first_sets, found_risk, lists_outputs, search
from partwise.solvers.qp import solve_master

IDLE = 50  # iterations without a multiplier, after which a cut goes
ENOUGH = 0.1  # part of the gap that a type-I iteration has seen, below which type II is done
PATIENCE = 100  # iterations without a smaller gap or a new output, after which rounding errors must be all that is left


@dataclass
class CuttingPlaneState(State):
    """The outputs found, the cuts, and the best point."""

    sets: ActiveSets | None = None
    listed: bool = False  #: whether V_i are all outputs
    cuts: Cuts | None = None
    candidate: np.ndarray | None = None  #: w, the minimiser over the cuts
    best: np.ndarray | None = None  #: w_b
    objective: float = math.inf  #: P_V(w_b)
    model: float = 0.0  #: the highest minimum over the cuts so far
    seen: float = math.inf  #: gap at w in the last type-I iteration, with the outputs it has found
    smallest: float = math.inf  #: gap since V has changed
    still: int = 0  #: iterations since it became so small

    @property
    def gap(self) -> float:
        """P_V(w_b) less the lower bound."""
        return max(self.objective - self.model, 0.0)


@dataclass(frozen=True)
class LSECuttingPlane(FoundSolver):
    """The 1-slack cutting-plane method for the summed error (see the module); an epoch is a type-I iteration and what follows it.

    Parameters
    ----------
    kappa2 : int
        Iterations of an epoch, at most: one of type I, the others of type II.
    max_cuts : int
        Cuts to keep from one epoch to the next at most.
    epsilon : float, optional
        The stopping rule of the paper: stop when a type-I iteration sees a gap of at most so much, whatever the objective (its
        epsilon times C). By default it is the relative gap that decides.

    Examples
    --------
    >>> from partwise import multiclass_problem, solve
    >>> problem = multiclass_problem([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0, 1, 0])
    >>> result = solve(problem, "summed", LSECuttingPlane(), C=1.0, max_epochs=20)
    >>> result.solver.name, result.w.shape
    ('lse_cutting_plane', (4,))
    """

    name = "lse_cutting_plane"
    default_epochs = 2000
    free_bounds = True

    kappa2: int = 5
    max_cuts: int = 1000
    epsilon: float | None = None

    def __post_init__(self):
        for parameter, least in (("kappa2", 1), ("max_cuts", 3)):
            value = getattr(self, parameter)
            if not isinstance(value, int | np.integer) or value < least:
                raise ValueError(
                    f"The {parameter!r} parameter of LSECuttingPlane must be an int in the range [{least}, inf). Got {value!r} "
                    "instead."
                )
        if self.epsilon is not None and not (isinstance(self.epsilon, int | float) and 0 <= self.epsilon < math.inf):
            raise ValueError(
                f"The 'epsilon' parameter of LSECuttingPlane must be None or a float in the range [0, inf). Got {self.epsilon!r} "
                "instead."
            )

    def init(self, task: Task, start: np.ndarray | None = None) -> CuttingPlaneState:
        d = kernels.n_weights(task.problem)
        w = np.zeros(d) if start is None else np.array(start, np.float64)
        cuts = Cuts.empty(d)
        cuts.add(np.zeros(d), 0.0, w, 0.0)  # xi >= 0
        cuts.set_multipliers(np.ones(1))
        sets = first_sets(task.problem, products=False)
        return CuttingPlaneState(sets=sets, listed=lists_outputs(task.problem), cuts=cuts, candidate=w, best=w.astype(task.dtype))

    def epoch(self, task: Task, state: CuttingPlaneState) -> Progress:
        if not state.listed:
            self.search(task, state)
        level = state.model
        value, risk = self.cut(task, state)
        state.seen = max(value - level, 0.0)
        self.minimise_model(task, state)
        for _ in range(0 if state.listed else self.kappa2 - 1):
            if state.gap <= ENOUGH * state.seen:
                break
            self.cut(task, state)
            self.minimise_model(task, state)
        state.still = 0 if state.gap < state.smallest else state.still + 1
        state.smallest = min(state.smallest, state.gap)
        state.epochs += 1
        return Progress(risk, max(state.seen, state.gap), state.objective, stuck=state.still >= PATIENCE)

    def search(self, task: Task, state: CuttingPlaneState) -> None:
        """V with what the oracle names at the minimiser of the model, and P_V(w_b) over that."""
        state.sets, added, _ = search(task, state.sets, state.candidate.astype(task.dtype))
        state.oracle_calls += task.n
        if added:
            state.smallest, state.still = math.inf, 0
            if math.isfinite(state.objective):
                state.objective = self.value_at(task, state, state.best, dual=False).primal

    def cut(self, task: Task, state: CuttingPlaneState) -> tuple[float, float]:
        """The cut of the violators at the minimiser w of the model; returns P_V(w) and R_V(w)."""
        w = state.candidate.astype(task.dtype).astype(np.float64)
        state.oracle_calls += task.n if state.listed else 0  # to score all outputs counts as a call
        risk, a = found_risk(task, state.sets, w.astype(task.dtype, copy=False), slope=True)
        state.cuts.add(a, risk - float(a @ w), w, 0.0, task.n_jobs)
        value = 0.5 * float(w @ w) + risk
        if value < state.objective:
            state.objective, state.best = value, w.astype(task.dtype)
        return value, risk

    def minimise_model(self, task: Task, state: CuttingPlaneState) -> None:
        """The next w, and the bound."""
        cuts = state.cuts
        cuts.set_multipliers(solve_master(cuts.products, cuts.offset, cuts.alpha).alpha)
        w = cuts.minimiser(state.candidate, task.n_jobs)
        bound = float(cuts.alpha @ cuts.offset) - 0.5 * float(w @ w)  # of any multipliers it is one, of w as it is
        state.model = max(state.model, bound)
        cuts.drop_idle(IDLE)
        cuts.aggregate(self.max_cuts, task.n_jobs)

    def weights(self, state: CuttingPlaneState) -> np.ndarray:
        return state.best.copy()

    def lower_bound(self, task: Task, state: CuttingPlaneState) -> float:
        return state.model

    def bounds(self, task: Task, state: CuttingPlaneState) -> Value:
        """What the epoch has computed already."""
        if math.isinf(state.objective):
            return self.value_at(task, state, state.best)
        return Value(state.objective, min(state.model, state.objective), np.zeros(0))  # rounding alone crosses

    def verdict(self, state: CuttingPlaneState, value: Value, tol: float) -> str:
        if self.epsilon is None:
            return super().verdict(state, value, tol)
        return "" if state.seen > self.epsilon else f"the most violated cut is violated by {state.seen:.2g} <= {self.epsilon:g}"
