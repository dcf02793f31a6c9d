"""What bundle methods share: the model of the risk by cuts, its minimiser, the bound that it gives, and the memory it may take.

Problem: ``min_w J(w) = 1/2 ||w||^2 + R(w)``, R(w) = sum_i C_i L_i(w). A subgradient a of R at any point u makes a cut,
c(w) = R(u) + a . (w - u), and if R is convex, R is nowhere below it. So with the cuts c_j at the points tried so far,

    J_CP(w) = 1/2 ||w||^2 + max_j c_j(w) <= J(w),        min_w J_CP(w) <= min_w J(w) <= J(w_b),   w_b the best point so far,

and J(w_b) - min J_CP is a duality gap. The minimum is that of a small quadratic program (`qp`), in which w has no part: its
multipliers alpha in the simplex give w_t = -sum_j alpha_j a_j, and any alpha in the simplex gives a bound,

    sum_j alpha_j b_j - 1/2 ||sum_j alpha_j a_j||^2  <=  min_w J(w).

**With a penalty of its own for each weight**, 1/2 sum_j lambda_j w_j^2, BMRM works in the variables u_j = sqrt(lambda_j) w_j
without writing them down: the Gram matrix has a_j . L^-1 a_k instead of a_j . a_k, L = diag(lambda), the minimiser is
w_t = -L^-1 sum_j alpha_j a_j, and nothing else changes. The master problem is as small as before.

The papers have lambda/2 ||w||^2 plus the mean loss: lambda = 1 / (N C), and their objective and gap are ours divided by N C.

What differs from method to method is where the next cut is taken (Acharya 2011, section 6):

    bmrm        at w_t                                                          Algorithm 4
    bmrm_ls     near the minimum of J on the line from w_b through w_t          Algorithm 6
    ocas        the same for L(inf, gamma), where that minimum is cheap         Algorithm 5
    proximal    at the minimiser of J_CP plus zeta/2 ||w - w_b||^2              Algorithm 3
    nrbm        on the segment from w_b to w_t, for risks that are not convex   Algorithms 7 and 8

**Rounding** ends what theory says goes on for ever: when the gap is no larger than what the last digits of its terms can hide, or
has not fallen for long, the state is stuck. Bounds are lowered by that much, which matters for float32 weights.

**Memory**: the cuts (see `cuts`), and about ten vectors of 8 bytes per weight. A limit is kept by aggregation: with it the method
still converges, more slowly.

References
----------
A. Acharya (2011). Optimization methods in structural SVMs.
C. H. Teo, S. V. N. Vishwanathan, A. Smola, Q. Le (2010). Bundle methods for regularized risk minimization. JMLR 11.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import numpy as np

from partwise import kernels
from partwise.engine.memory import available_memory
from partwise.losses.penalty import inner
from partwise.objective import Value, loss_gradient, losses_at
from partwise.solvers.base import Progress, Solver, State, Task
from partwise.solvers.cuts import Cuts
from partwise.solvers.qp import solve_master

IDLE = 30  # iterations without a multiplier, after which a cut goes
PATIENCE = 100  # iterations without a smaller gap, after which rounding errors must be all that is left
DIGITS = 8.0  # last digits of a sum that may be wrong
LEAST_CUTS, WORK = 4, 10  # vectors of 8 bytes per weight that a bundle method cannot do without: slopes, and those to work with


class Point(NamedTuple):
    """A point that was tried: the risk there, a subgradient of it, and their products."""

    w: np.ndarray
    risk: float
    a: np.ndarray
    square: float  #: ||w||^2, or sum_j lambda_j w_j^2
    product: float  #: a . w

    @property
    def objective(self) -> float:
        """J(w)."""
        return 0.5 * self.square + self.risk

    @property
    def offset(self) -> float:
        """b of the cut that touches the risk here."""
        return self.risk - self.product


@dataclass
class BundleState(State):
    """The best point and the model around it."""

    best: np.ndarray | None = None  #: w_b
    objective: float = math.inf  #: J(w_b)
    risk: float = math.nan  #: R(w_b)
    candidate: np.ndarray | None = None  #: w_t, the minimiser of the model
    model: float = -math.inf  #: J_CP(w_t); if J is convex, the highest so far
    noise: float = 0.0  #: what rounding may hide of the gap
    smallest: float = math.inf  #: gap so far
    still: int = 0  #: iterations since it became so small
    limit: float = math.inf  #: bytes that the cuts may take
    cuts: Cuts | None = None
    pool: list[np.ndarray] = field(default_factory=list)

    @property
    def gap(self) -> float:
        """J(w_b) - J_CP(w_t)."""
        return max(self.objective - self.model, 0.0)


S = TypeVar("S", bound=BundleState)


def look_at(task: Task, pool: list[np.ndarray], w: np.ndarray) -> Point:
    """R and a subgradient at `w`, in memory from the pool: one pass over the examples."""
    w = w.astype(task.dtype, copy=False)
    losses = np.zeros(task.n)
    a, risk = loss_gradient(task.problem, task.loss, task.C, w, losses, task.n_jobs, pool, each=False)
    exact = w.astype(np.float64, copy=False)
    if not math.isfinite(risk):
        losses = losses_at(task.problem, task.loss, w, task.n_jobs)
        worst = int(np.argmin(np.isfinite(losses)))
        raise ValueError(f"The loss of example {worst} is infinite: the constraints forbid its target.")
    return Point(exact, risk, a, inner(exact, exact, task.penalty_weight), float(a @ exact))


def check_share(who: Solver, name: str, value: float) -> None:
    """Raise unless a parameter is a number in (0, 1]."""
    if not (isinstance(value, int | float | np.number) and not isinstance(value, bool) and 0 < value <= 1):
        raise ValueError(
            f"The {name!r} parameter of {type(who).__name__} must be a float in the range (0, 1]. Got {value!r} instead."
        )


@dataclass(frozen=True)
class Bundle(Solver):
    """Base of the bundle methods.

    Parameters
    ----------
    max_cuts : int
        Cuts to keep from one iteration to the next at most.
    memory : float, optional
        Bytes that the method may take, cuts and work vectors together; half of what is free by default.
    """

    default_epochs = 5000
    accepted = "every convex loss"
    fixed_targets = True
    free_bounds = True
    everywhere = True

    max_cuts: int = 1000
    memory: float | None = None

    def __post_init__(self):
        who = type(self).__name__
        if not isinstance(self.max_cuts, int | np.integer) or self.max_cuts < 3:
            raise ValueError(
                f"The 'max_cuts' parameter of {who} must be an int in the range [3, inf). Got {self.max_cuts!r} instead."
            )
        number = isinstance(self.memory, int | float | np.number) and not isinstance(self.memory, bool)
        if self.memory is not None and not (number and self.memory > 0):
            raise ValueError(
                f"The 'memory' parameter of {who} must be a number of bytes > 0 or None. Got {self.memory!r} instead."
            )

    def allowance(self, task: Task) -> float:
        """Bytes for cuts; a MemoryError, before anything is allocated, where the least that is needed is not there."""
        d = kernels.n_weights(task.problem)
        total = 0.5 * available_memory() if self.memory is None else float(self.memory)
        work = self.work(task)
        needed = 8.0 * d * LEAST_CUTS + work
        if total < needed:
            whence = "half of what is free" if self.memory is None else "the 'memory' parameter"
            raise MemoryError(
                f"Solver {self.name!r} needs at least {needed / 1e6:,.1f} MB for {d:,} weights ({LEAST_CUTS} cuts of 8 bytes per "
                f"weight, and {work / 1e6:,.1f} MB to work in), and may take {total / 1e6:,.1f} MB ({whence}). Use fewer "
                "features, allow it more memory, or take a solver without cuts, such as 'sdm', 'dca' or 'sgd'."
            )
        return total - work

    def work(self, task: Task) -> float:
        """Bytes of memory that it needs besides the cuts."""
        return 8.0 * kernels.n_weights(task.problem) * (WORK + (0 if task.penalty_weight is None else 3))

    def common_scale(self, task: Task) -> float:
        """The number of which slopes may be whole multiples: the smallest C_i, if the others are multiples of it."""
        C = task.C[task.C > 0]
        least = float(C.min(initial=math.inf))
        return least if len(C) and np.array_equal(C, np.rint(C / least) * least) else 0.0

    def init(self, task: Task, start: np.ndarray | None = None) -> BundleState:
        return self.fill(BundleState(), task, start)

    def fill(self, state: S, task: Task, start: np.ndarray | None) -> S:
        """`state` at the weights `start`, or zero, without a cut."""
        d = kernels.n_weights(task.problem)
        state.limit = self.allowance(task)
        state.best = np.zeros(d, task.dtype) if start is None else np.array(start, task.dtype)
        inverse = None if task.penalty_weight is None else 1.0 / task.penalty_weight
        state.candidate, state.cuts = np.zeros(d), Cuts.empty(d, self.common_scale(task), inverse)
        return state

    def weights(self, state: BundleState) -> np.ndarray:
        return state.best.copy()

    def finish(self, state: BundleState) -> np.ndarray:
        return state.best

    def look(self, task: Task, state: BundleState, w: np.ndarray) -> Point:
        """R and a subgradient at `w`: one pass over the examples."""
        state.oracle_calls += task.n
        return look_at(task, state.pool, w)

    def move(self, state: BundleState, w: np.ndarray, objective: float, risk: float) -> None:
        """A new best point."""
        state.best, state.objective, state.risk = w.astype(state.best.dtype), objective, risk

    def add_cut(self, task: Task, state: BundleState, point: Point) -> np.ndarray:
        """The cut at `point`, whose memory goes back to the pool; returns the products of all cuts with it."""
        products = state.cuts.add(point.a, point.offset, point.w, 0.0, task.n_jobs)
        state.pool.append(point.a)
        return products

    def add_best(self, task: Task, state: BundleState, point: Point) -> None:
        """The cut at a new best point: the anchor of the bundle."""
        products = self.add_cut(task, state, point)
        state.cuts.at_best[:], state.cuts.anchor = products, state.cuts.n - 1
        self.move(state, point.w, point.objective, point.risk)

    def minimise_model(self, task: Task, state: BundleState, convex: bool = True) -> None:
        """The next candidate, and the gap."""
        cuts = state.cuts
        cuts.set_multipliers(solve_master(cuts.products, cuts.offset, cuts.alpha).alpha)
        self.set_bound(task, state, cuts.minimiser(state.candidate, task.n_jobs), convex)
        self.forget(task, state)

    def set_bound(self, task: Task, state: BundleState, w: np.ndarray, convex: bool = True) -> None:
        """The bound that the multipliers give, w being the `minimiser` of the cuts."""
        cuts, half = state.cuts, 0.5 * inner(w, w, task.penalty_weight)
        model = float(cuts.alpha @ cuts.offset) - half  # of any multipliers it is a bound, of w as it is
        state.model = max(state.model, model) if convex else model
        terms = float(cuts.alpha @ np.abs(cuts.offset)) + half + abs(state.objective)
        state.noise = DIGITS * float(np.finfo(task.dtype).eps) * terms

    def forget(self, task: Task, state: BundleState) -> None:
        """Keep no more cuts than are useful, asked for, and fit into memory."""
        cuts = state.cuts
        cuts.drop_idle(IDLE)
        cuts.aggregate(min(self.max_cuts, cuts.fitting(state.limit - 8.0 * cuts.d)), task.n_jobs)  # room for the next one

    def progress(self, state: BundleState) -> Progress:
        """What an iteration has seen; it is stuck when only rounding can be the reason for the gap."""
        state.epochs += 1
        if state.gap < state.smallest - state.noise:
            state.smallest, state.still = state.gap, 0
        else:
            state.still += 1
        tiny = state.gap <= math.sqrt(state.noise * abs(state.objective))  # half of the digits are right
        return Progress(state.risk, state.gap, state.objective, state.gap <= state.noise or (tiny and state.still >= PATIENCE))

    def bounds(self, task: Task, state: Any) -> Value:
        """J at the best point, known already, and the minimum of the model, less what rounding may have added."""
        if state.cuts.n == 0:
            point = self.look(task, state, state.best)
            return Value(point.objective, math.nan, np.zeros(0))
        return Value(state.objective, min(state.model - state.noise, state.objective), np.zeros(0))
