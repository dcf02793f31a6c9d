"""Pegasos: stochastic subgradient steps of length 1 / (lambda t), with and without projection, for every L(beta, gamma).

Problem: (P) divided by ``sum_i C_i = 1 / lambda``: ``min_w lambda / 2 ||w||^2 + 1/N sum_i c_i L_i(w)``, ``c_i = C_i N
lambda``.

    repeat for t = 1, 2, ..., example i:
        w <- (1 - 1/t) w - c_i / (lambda t) dL_i(w)                                 c_i / (lambda t) = C_i N / t
        if project:  w <- min{ 1, r / ||w|| } w
    return the average of all w, w_t with weight t^average_power

The ball. P is 1-strongly convex and w* its minimum, so ``P(0) >= P(w*) + 1/2 ||w*||^2 >= ||w*||^2`` as losses are not negative.
Hence

    r^2 = P(0) = sum_i C_i L_i(0)              ball="duality"
    r^2 = 1 / lambda = sum_i C_i               ball="paper"

The first holds the optimum for every loss here. (For the perceptron loss L_i(0) = 0 and w* = 0, a ball of no use: there is no
projection then. Where P is not convex, P(0) >= P(w*) alone gives r^2 = 2 P(0).) The second is that of Shalev-Shwartz et al.,
which Mančev (2015) took for structures, too. It was stated for the binary hinge, and holds the optimum where L_i(0) <= 1: for the
hinge, where no cost is above 1. Where costs grow with the length L_i(0) is the largest cost, for `crf` it is the logarithm of the
number of outputs, and the optimum may lie outside: then w goes to the best point of the ball, and the gap stays open. (On
CoNLL-2000 with lambda = 2e-3 the radii are 109 and 22.) Projection tames the first steps, which are as long as N C ||dL||; Mančev
found the variant without it at least as good in the end.

The certificate. After E whole epochs from w = 0 every example has been stepped on E times with weight C_i / E at most, so w
itself is a dual point (mass C_i per example; what projections took away lies on the target): with q_s the output, or the
distribution over outputs, found in step s,

    w = -sum_s m_s dL_s,    D >= -1/2 ||w||^2 + sum_s m_s (L_s(w_s) - w_s . dL_s),

where the bracket is gamma E_q[l] + H(q) / beta. That holds for every loss that is convex and not negative, rescaled ones
too: L_i(v) >= L_s(w_s) + (v - w_s) . dL_s for each step on i, and L_i(v) >= 0 for what is left of its mass; the right-hand
side is the least value over v of 1/2 ||v||^2 plus these bounds, at v = w. The sum follows the same recursion as w, in one
number. So there is a duality gap at every epoch, for the price of one sparse inner product per step. It needs a start at
zero, and full labels.

Cost of an epoch: one oracle call per example and O(touched weights); with ball="duality" one more pass at the start, for P(0).
Memory: w and its average.

References
----------
S. Shalev-Shwartz, Y. Singer, N. Srebro, A. Cotter (2011). Pegasos: primal estimated sub-gradient solver for SVM. Math.
Programming 127.
W. Xu (2011). Towards optimal one pass large scale learning with averaged stochastic gradient descent. arXiv:1107.2490.
D. Mančev (2015). A sequential dual method for the structured ramp loss minimization. Facta Universitatis 30.
O. Shamir, T. Zhang (2013). Stochastic gradient descent for non-smooth optimization. ICML (polynomial-decay averaging).
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field

import numpy as np

from partwise import kernels
from partwise.engine.accumulator import dot, squared_norm
from partwise.engine.compilation import compiled_loop
from partwise.losses.in_loops import add_gradient, evaluate
from partwise.losses.penalty import squared_length
from partwise.objective import is_convex, losses_at
from partwise.solvers.base import Progress
from partwise.solvers.online import OnlineSolver
from partwise.solvers.sgd import StochasticSolver, StochasticState
from partwise.solvers.weights import NORM, SCALE, add, enter, no_weights, shrink

BALLS = ("duality", "paper")


@compiled_loop
def pegasos_pass(problem, loss, order, C, weights, work, n, t, radius, power, dual):
    """Visit the examples in `order` as steps t + 1, t + 2, ..; returns sum_i C_i L_i as seen. dual[0] is the sum over s above."""
    total, numbers = 0.0, weights.numbers
    for i in order:
        t += 1
        step = C[i] * n / t
        value = max(evaluate(loss, problem, i, weights.v, numbers[SCALE], work), 0.0)
        total += C[i] * value
        if value > 0.0:  # below zero it was the error of an approximate oracle
            add_gradient(loss, problem, i, work, 1.0, work.gradient)
        product = numbers[SCALE] * dot(work.gradient, weights.v)
        dual[0] = (1.0 - 1.0 / t) * dual[0] + step * (value - product)
        if t > 1:  # at t = 1, w is zero
            shrink(weights, 1.0 - 1.0 / t)
        # ||w + delta||^2 = ||w||^2 + 2 w . delta + ||delta||^2, in units of v
        a = numbers[SCALE]
        product *= 1.0 - 1.0 / t
        numbers[NORM] = max(numbers[NORM] + (step * step * squared_norm(work.gradient) - 2.0 * step * product) / (a * a), 0.0)
        add(weights, -step, work.gradient)
        length = a * np.sqrt(numbers[NORM])
        if radius > 0.0 and length > radius:
            shrink(weights, radius / length)
            dual[0] *= radius / length
        enter(weights, (t / n) ** power)
    return total


@dataclass
class PegasosState(StochasticState):
    """A StochasticState with the radius of the ball and the dual sum; `steps` counts those of the schedule."""

    radius: float = 0.0
    dual: np.ndarray = field(default_factory=lambda: np.zeros(1))
    is_dual: bool = True  #: whether w is a dual point after whole epochs
    best_dual: float = -math.inf  #: highest lower bound so far


@dataclass(frozen=True)
class Pegasos(StochasticSolver):
    """Pegasos (see the module).

    Parameters
    ----------
    project : bool
        Whether to keep w in a ball.
    ball : {"duality", "paper"}
        Its radius: the one that is known to hold the optimum, or that of the paper, which does so for costs of at most 1.

    Notes
    -----
    Weights to start from would be forgotten in the first step: they count as the result of one epoch.

    Examples
    --------
    >>> from partwise import multiclass_problem, solve
    >>> problem = multiclass_problem([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0, 1, 0])
    >>> result = solve(problem, "hinge", Pegasos(), C=1.0, max_epochs=20)
    >>> result.solver.name, result.w.shape
    ('pegasos', (4,))
    """

    name = "pegasos"
    default_epochs = 50

    project: bool = True
    ball: str = "duality"

    def __post_init__(self):
        super().__post_init__()
        if self.ball not in BALLS:
            raise ValueError(f"The 'ball' parameter of Pegasos must be 'duality' or 'paper'. Got {self.ball!r} instead.")

    @property
    def adds_up_bound(self) -> bool:
        """Its bound is an average of what it has seen on the way."""
        return True

    def suits_lists(self, loss, evaluate):
        return not loss.is_smooth and loss.is_convex and evaluate in ("primal", "never", "end")  # its bound comes along

    def init(self, task, start=None):
        state = PegasosState(**vars(super().init(task, start)), is_dual=is_convex(task.problem, task.loss))
        if start is not None and np.any(start):
            state.steps, state.is_dual = np.count_nonzero(task.C), False
        self.set_radius(task, state)
        return state

    def going_on(self, task, start, numbers):
        plain = dataclasses.replace(self, project=False)  # the radius is among the numbers
        return OnlineSolver.going_on(plain, task, start, numbers)

    def set_radius(self, task, state):
        """That of the ball; 0: there is none."""
        if self.project and self.ball == "paper":
            state.radius = math.sqrt(task.C.sum())
        elif self.project:
            zero = no_weights(kernels.n_weights(task.problem), task.dtype, task.lists)
            losses = losses_at(task.problem, task.loss, zero, task.n_jobs)
            convex = is_convex(task.problem, task.loss)
            state.radius = math.sqrt(max(float(task.C @ losses), 0.0) * (1.0 if convex else 2.0))
            state.oracle_calls += task.n

    def visit(self, task, state, order):
        n, power = float(np.count_nonzero(task.C)), float(self.average_power)
        schedule = (n, state.steps, state.radius, power, state.dual)
        loss = pegasos_pass(task.problem, task.loss.kernel, order, task.C, state.weights, state.work, *schedule)
        state.steps += len(order)
        return loss

    def epoch(self, task, state):
        v = state.weights.v
        state.weights.numbers[NORM] = float(v @ v)  # afresh: rounding does not add up over epochs
        loss = super().epoch(task, state).loss
        scale = float(state.weights.numbers[SCALE])
        norm = scale * scale * squared_length(v)  # infinite, and no OverflowError, for one that is somebody's nonsense
        # after Ctrl-C in mid-epoch some examples have had more steps than others, and w is no dual point
        if state.is_dual and state.steps == state.epochs * np.count_nonzero(task.C):
            state.best_dual = max(state.best_dual, float(state.dual[0]) - 0.5 * norm)
        return Progress(loss, 0.5 * norm + loss - state.best_dual)

    def retarget(self, before, task, state, changed):
        state = super().retarget(before, task, state, changed)
        # the steps of earlier rounds were taken against other targets: w is no dual point of this problem
        state.is_dual, state.best_dual = False, -math.inf
        self.set_radius(task, state)
        return state

    def value_at(self, task, state, w, dual=True):
        """The bound of the run holds for all weights; that of `objective` is tight for smooth losses alone, and takes memory."""
        if not (dual and math.isfinite(state.best_dual)):
            return super().value_at(task, state, w, dual)
        if not task.loss.is_smooth:
            return super().value_at(task, state, w, dual=False)._replace(dual=state.best_dual)
        value = super().value_at(task, state, w)
        return value._replace(dual=max(value.dual, state.best_dual))
