"""ADMM: the alternating direction method of multipliers, for sparse max-margin models, with SDM inside.

Problem: ``min_w r ||w||_1 + (1 - r)/2 ||w||^2 + sum_i C_i max_y [o_i(y) - w . v_i(y)]`` for the losses that SDM takes (`sdm`),
r = l1_ratio in [0, 1]. With the hinge and r = 1 it is the L1-regularised structural SVM (Balamurugan et al., eq. II.5; Zhu, Xing
and Zhang 2009). Losses and penalty get weights of their own, w and u, which have to agree (Boyd et al. 2011, section 3.1.1):

    repeat:
        w <- argmin_w sum_i C_i L_i(w) + rho/2 ||w - z||^2,  z = u - a             an epoch of SDM, from where it was
        u <- argmin_u r ||u||_1 + (1 - r)/2 ||u||^2 + rho/2 ||w - u + a||^2        soft thresholding: exact zeros
        a <- a + w - u

(with 1.6 w - 0.6 u for w in the last two lines, over-relaxation). The first line is problem (P) around z instead of zero, so the
weights are w = z + sum_i sum_y lambda_i(y) v_i(y) with sum_y lambda_i(y) = C_i / rho. SDM works with the scores of w alone, so it
need not know of z: when z moves, w moves with it, the multipliers stay, and nothing that was found is lost.

**The certificate.** rho lambda is a point of the dual of the whole problem, and v = rho (w - z) its vector: for r = 1 feasible if
all |v_j| <= 1. It is made so by mixing it with the targets (`partwise.losses.penalty`). As v = rho (a + u - u before),
|rho a_j| <= 1, what is missing goes to zero with the steps of u.

**rho** decides the pace alone. It is set to `BALANCE` ||rho a|| / ||u||, the scale at which both halves move alike, a few times
in the beginning, and then stays.

Cost of an epoch: that of SDM, and one pass over four vectors of length d. Memory: that of SDM and 3 d floats of 8 bytes. The gap
falls quickly to a few 1e-3 and slowly from there.

References
----------
S. Boyd, N. Parikh, E. Chu, B. Peleato, J. Eckstein (2011). Distributed optimization and statistical learning via the alternating
direction method of multipliers. Foundations and Trends in Machine Learning 3.
J. Zhu, E. P. Xing, B. Zhang (2009). Primal sparse max-margin Markov networks. KDD.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from partwise import kernels
from partwise.engine.compilation import compiled_loop
from partwise.engine.threads import in_threads
from partwise.losses.penalty import mixed_bound, penalty
from partwise.losses.records import Loss
from partwise.objective import BLOCK, Value, losses_at, spans
from partwise.solvers.active import RECORDS, weights_of
from partwise.solvers.base import Progress, Solver, State, Task
from partwise.solvers.dual_state import slack_cost
from partwise.solvers.sdm import SDM, SDMState

BALANCE = 1.0  # rho ||u|| / ||rho a||
OFF = 1.5  # factor by which rho may be wrong
BALANCED_AT = (1, 2, 4, 8, 16, 32, 64)  # epochs after which rho is looked at
REFRESH = 32  # epochs between two fresh sums of w, against rounding


class Shifted(SDM):
    """SDM around a point that is not zero: only its owner knows how to sum w afresh."""

    def refresh(self, task: Task, state: SDMState) -> None:
        """Nothing."""


@compiled_loop
def split(w, u, a, z, rho, l1_ratio, relaxation, first, last):
    """Lines two and three of the method, for weights in [first, last), and w += the change of z.

    Returns, of that range: max_j |v_j|, sum_j max(|v_j| - r, 0)^2, ||rho a||^2, ||u||^2 and ||u||_1.
    """
    largest, excess, dual_square, square, norm = 0.0, 0.0, 0.0, 0.0, 0.0
    threshold, scale = l1_ratio / rho, 1.0 / (1.0 + (1.0 - l1_ratio) / rho)
    for start in range(first, last, BLOCK):
        excess_sum, dual_sum, square_sum, norm_sum = 0.0, 0.0, 0.0, 0.0
        for j in range(start, min(start + BLOCK, last)):
            before = z[j]
            v = abs(rho * (float(w[j]) - before))
            largest = max(largest, v)
            over = max(v - l1_ratio, 0.0)
            excess_sum += over * over
            mixed = relaxation * float(w[j]) + (1.0 - relaxation) * u[j] + a[j]
            new = scale * (max(mixed - threshold, 0.0) + min(mixed + threshold, 0.0))
            u[j] = new
            a[j] = mixed - new
            z[j] = new - a[j]
            w[j] += z[j] - before
            dual_sum += a[j] * a[j]
            square_sum += new * new
            norm_sum += abs(new)
        excess += excess_sum
        dual_square += dual_sum
        square += square_sum
        norm += norm_sum
    return largest, excess, rho * rho * dual_square, square, norm


@dataclass
class ADMMState(State):
    """Both halves, their multipliers, and the best bound."""

    inside: SDMState | None = None
    u: np.ndarray | None = None
    a: np.ndarray | None = None
    z: np.ndarray | None = None
    rho: float = 1.0
    dual: float = -math.inf  #: the best so far


@dataclass(frozen=True)
class ADMM(Solver):
    """Sparse max-margin models by ADMM with SDM inside (see the module); an epoch is one of SDM.

    Parameters
    ----------
    relaxation : float in [1, 2)
        1 is the plain method; 1.5 to 1.8 is usual, and quicker.

    Examples
    --------
    >>> from partwise import multiclass_problem, solve
    >>> problem = multiclass_problem([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0, 1, 0])
    >>> result = solve(problem, "hinge", ADMM(), C=1.0, max_epochs=20, l1_ratio=0.5)
    >>> result.solver.name, result.w.shape
    ('admm', (4,))
    """

    name = "admm"
    default_epochs = 500
    accepted = SDM.accepted
    fixed_targets = True
    sparse = True

    relaxation: float = 1.6

    def __post_init__(self):
        if not isinstance(self.relaxation, int | float) or not 1.0 <= self.relaxation < 2.0:
            raise ValueError(f"The 'relaxation' parameter of ADMM must be a float in [1, 2). Got {self.relaxation!r} instead.")

    def accepts(self, loss: Loss) -> bool:
        return SDM().accepts(loss)

    def around(self, task: Task, rho: float) -> Task:
        """What SDM has to solve, apart from its centre."""
        return dataclasses.replace(task, C=task.C / rho, l1_ratio=0.0)

    def init(self, task: Task, start: np.ndarray | None = None) -> ADMMState:
        inside = Shifted().init(self.around(task, 1.0), start)
        d = kernels.n_weights(task.problem)
        u = np.zeros(d) if start is None else np.array(start, np.float64)
        inside.weights.v[:] += u.astype(task.dtype)
        return ADMMState(inside=inside, u=u, a=np.zeros(d), z=u.copy(), oracle_calls=inside.oracle_calls)

    def weights(self, state: ADMMState) -> np.ndarray:
        return state.u.astype(state.inside.weights.v.dtype)

    def epoch(self, task: Task, state: ADMMState) -> Progress:
        inside, r = state.inside, task.l1_ratio
        if state.epochs % REFRESH == REFRESH - 1:
            inside.weights.v[:] = state.z + weights_of(task.problem, inside.sets, task.loss.kernel)
        rho = state.rho
        progress = Shifted().epoch(self.around(task, rho), inside)
        state.oracle_calls = inside.oracle_calls
        height = rho * self.height(task, state)
        numbers = (inside.weights.v, state.u, state.a, state.z, rho, r, float(self.relaxation))
        parts = in_threads(lambda span: split(*numbers, *span), spans(len(state.u)), task.n_jobs)
        largest = max(part[0] for part in parts)
        excess, dual_square, square, norm = (sum(column) for column in list(zip(*parts, strict=True))[1:])
        state.epochs += 1
        if state.epochs in BALANCED_AT and square > 0.0:
            self.balance(task, state, BALANCE * math.sqrt(dual_square / square))
        # as far as can be told without a pass: the losses were those of w, on its way
        low = height * (1.0 if largest <= r else r / largest)
        low = max(low, height - excess / (2.0 * (1.0 - r))) if r < 1.0 else low
        loss = rho * progress.loss
        primal = loss + r * norm + 0.5 * (1.0 - r) * square
        return Progress(loss, primal - max(low, state.dual), primal)

    def height(self, task: Task, state: ADMMState) -> float:
        """sum_i sum_y lambda_i(y) o_i(y), less what quadratic slacks take: concave in lambda, and zero at zero."""
        sets = state.inside.sets
        used = sets.used[RECORDS]
        return task.loss.gamma * float(sets.weight[:used] @ sets.cost[:used]) - slack_cost(self.around(task, state.rho), sets)

    def balance(self, task: Task, state: ADMMState, rho: float) -> None:
        """Go on with another rho, if it is very different: rho lambda and rho a stay."""
        factor, inside = rho / state.rho, state.inside
        if 1.0 / OFF <= factor <= OFF or not 0.0 < factor < math.inf:
            return
        state.rho = rho
        state.a /= factor
        np.subtract(state.u, state.a, out=state.z)
        inside.sets.weight[:] /= factor
        inside.weights.v[:] = state.z + weights_of(task.problem, inside.sets, task.loss.kernel)
        inside.rest[:], inside.calm[:], inside.seen = 0, 0, 0.0

    def bounds(self, task: Task, state: ADMMState) -> Value:
        """P(u), one pass over the examples, and the best bound; v is summed afresh for it."""
        v = np.abs(weights_of(task.problem, state.inside.sets, task.loss.kernel))
        v *= state.rho
        r, height = task.l1_ratio, state.rho * self.height(task, state)
        large = v[v > r] if r < 1.0 else v[:0]
        state.dual = max(state.dual, mixed_bound(height, None, large, float(v.max(initial=0.0)), r))
        return self.value_at(task, state, self.weights(state))

    def value_at(self, task: Task, state: ADMMState, w: np.ndarray, dual: bool = True) -> Value:
        losses = losses_at(task.problem, task.loss, w, task.n_jobs)
        primal = penalty(w.astype(np.float64, copy=False), task.l1_ratio) + float(task.C @ losses)
        return Value(primal, state.dual if dual else math.nan, np.zeros(0))

    def retarget(self, before: Task, task: Task, state: ADMMState, changed: np.ndarray) -> ADMMState:
        """As in SDM: the multipliers stay and stay feasible. The bound does not."""
        tasks = self.around(before, state.rho), self.around(task, state.rho)
        state.inside = Shifted().retarget(*tasks, state.inside, changed)
        state.dual = -math.inf
        return state
