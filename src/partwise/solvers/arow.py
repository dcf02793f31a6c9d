"""AROW: adaptive regularisation of weights, a MIRA that remembers how sure it is of every weight.

The weights are a Gaussian with mean w and diagonal covariance S, at first ``variance`` times the identity. At each example, stay
as close to it as its most violated margin allows, where what has been seen often may move less:

    min_w  1/2 (w - w_t)' S^-1 (w - w_t) + C_i / 2  xi^2    such that    w . dF_i(y) >= gamma l_i(y) - xi

    repeat for each example i:
        y     = argmax_y w . F(x_i, y) + gamma l_i(y)
        alpha = (gamma l_i(y) - w . dF_i(y)) / (1 / C_i + dF' S dF)          dF = F(x_i, t_i) - F(x_i, y)
        w    <- w + alpha S dF
        S_jj <- 1 / (1 / S_jj + C_i dF_j^2)

(Crammer, Kulesza & Dredze 2009, with r = 1 / C and S kept diagonal; sequences: Crammer, Dredze & Pereira 2012.) Unlike in MIRA
no step is cut short; steps of noisy features die out by themselves, so the last weights are returned, not an average. With
``update="prediction"`` y is what the model would answer, and right answers move nothing: that is CRFsuite's ``arow``, where
gamma = 1 / C.

It is an online method: its limit is not exactly the optimum of a regularised loss, and it has no certificate of its own.

Cost of an epoch: one oracle call per example and O(touched weights). Memory: w and S.

References
----------
K. Crammer, A. Kulesza, M. Dredze (2009). Adaptive regularization of weight vectors. NIPS.
K. Crammer, M. Dredze, F. Pereira (2012). Confidence-weighted linear classification for text categorization. JMLR 13.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from partwise import kernels
from partwise.engine.accumulator import row, touched
from partwise.engine.compilation import compiled_loop, helper
from partwise.losses.in_loops import Maximum, score_augmented
from partwise.solvers.mira import UPDATES
from partwise.solvers.online import OnlineSolver, OnlineState
from partwise.solvers.weights import add, count_step


@helper
def uncertainty(a, covariance):
    """a' S a."""
    total = 0.0
    for k in range(a.count[0]):
        value, variance = touched(a, k), row(covariance, a.rows[k], a.width)
        for j in range(a.width):
            total += value[j] * value[j] * variance[j]
    return total


@helper
def grow_surer(a, covariance, C):
    """a <- S a, and S_jj <- 1 / (1 / S_jj + C a_j^2)."""
    for k in range(a.count[0]):
        value, variance = touched(a, k), row(covariance, a.rows[k], a.width)
        for j in range(a.width):
            before = value[j]
            value[j] = before * variance[j]
            variance[j] = variance[j] / (1.0 + C * before * before * variance[j])


@compiled_loop
def arow_pass(problem, gamma, order, C, weights, covariance, work, max_loss):
    """Visit the examples in `order`; returns the sum of C_i times the violations seen, the losses if `max_loss`."""
    total = 0.0
    for i in order:
        theta = work.theta[: kernels.n_parts(problem, i)]
        length = kernels.length(problem, i)
        y, target = work.y[:length], work.t[:length]
        reference = score_augmented(problem, i, weights.v, 1.0, gamma if max_loss else 0.0, theta, target)
        violation = kernels.best(problem, i, theta, y) - reference
        if not max_loss:
            violation += gamma * kernels.cost(problem, i, y)
        if violation > 0.0:
            kernels.difference(problem, i, target, y, 1.0, work.gradient)
            unsure = uncertainty(work.gradient, covariance)
            if unsure > 0.0:
                total += C[i] * violation
                grow_surer(work.gradient, covariance, C[i])
                add(weights, violation / (1.0 / C[i] + unsure), work.gradient)
            else:
                add(weights, 0.0, work.gradient)
        count_step(weights)
    return total


@dataclass
class AROWState(OnlineState):
    """An OnlineState that knows how sure each weight is."""

    covariance: np.ndarray | None = None  #: (d,) the diagonal of S


@dataclass(frozen=True)
class AROW(OnlineSolver):
    """Adaptive regularisation of weights (see the module).

    Parameters
    ----------
    variance : float > 0
        How unsure the weights are at first: the larger, the longer the first steps.
    update : {"max_loss", "prediction"}
        Whose margin a step restores: that of the output with the largest loss, or of the prediction.

    Examples
    --------
    >>> from partwise import multiclass_problem, solve
    >>> problem = multiclass_problem([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0, 1, 0])
    >>> result = solve(problem, "hinge", AROW(), C=1.0, max_epochs=20)
    >>> result.solver.name, result.w.shape
    ('arow', (4,))
    """

    name = "arow"
    default_epochs = 20
    accepted = "max-margin losses L(inf, gamma)"

    average: bool = False
    variance: float = 1.0
    update: str = "max_loss"

    def __post_init__(self):
        super().__post_init__()
        if not (isinstance(self.variance, int | float) and 0 < self.variance < math.inf):
            raise ValueError(
                f"The 'variance' parameter of AROW must be a float in the range (0, inf). Got {self.variance!r} instead."
            )
        if self.update not in UPDATES:
            raise ValueError(f"The 'update' parameter of AROW must be 'max_loss' or 'prediction'. Got {self.update!r} instead.")

    def accepts(self, loss):
        return isinstance(loss.kernel, Maximum)

    def init(self, task, start=None):
        state = AROWState(**vars(super().init(task, start)))
        state.covariance = np.full(len(state.weights.v), self.variance, state.weights.v.dtype)
        return state

    def visit(self, task, state: Any, order):
        max_loss, loss = self.update == "max_loss", task.loss
        return arow_pass(task.problem, float(loss.gamma), order, task.C, state.weights, state.covariance, state.work, max_loss)

    def epoch(self, task, state):
        progress = super().epoch(task, state)
        if progress.loss == 0.0 and self.update == "prediction" and task.loss.gamma > 0.0:
            return progress._replace(estimate=math.inf, stuck=True)
        return progress

    def why_stuck(self, task, state):
        return "every prediction is right, and only wrong ones move the weights"

    def finish(self, state):
        state.covariance = None
        return super().finish(state)
