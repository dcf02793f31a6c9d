"""The squared hinge: its record, and what compiled loops see of it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from partwise import kernels
from partwise.losses.in_loops import add_gradient, evaluate, score_augmented
from partwise.losses.loss import Loss, check_number
from partwise.losses.slacks import SquaredMaximum, charge, pull


@dataclass(frozen=True)
class SquaredHinge(Loss):
    """The squared hinge ``1/2 xi^2``, with the slack ``xi = max_y gamma l(y) - w·dF(y)`` of the hinge: quadratic max error.

    Large violations count for more than in the hinge, small ones for next to nothing; on two classes it is the L2-loss SVM.

    Parameters
    ----------
    gamma : float > 0
        Weight of the cost: how large a margin is asked for.

    Notes
    -----
    Subgradient: xi (F(y~) - F(t)), y~ being the most violated output. It jumps where two outputs tie, not where the slack
    vanishes. One oracle call, as for the hinge. (The factor 1/2 makes the subgradient that simple. scikit-learn's LinearSVC has
    none, but one vector for two classes, where there are two here: C is the same.) Costs enter by their squares: where they grow
    with the length of the output, so does the weight of long examples, and a good C is smaller than that of the hinge.

    The dual of (P) is that of the hinge without a bound on the multipliers, whose sum costs something instead:

        max_{alpha >= 0}  -1/2 ||w||^2 + sum_{i,y} alpha_i(y) gamma l_i(y) - sum_i 1/(2 C_i) (sum_y alpha_i(y))^2

    with w = sum_{i,y} alpha_i(y) dF_i(y), y != t_i, and sum_y alpha_i(y) = C_i xi_i at the optimum. SDM and BCFW solve it with a
    certificate (`solvers.sdm` says how), ADMM with an L1 penalty; bundle methods, SGD, Pegasos and DCA follow subgradients.

    Where the truth is a set of outputs, t is its best completion. 1/2 xi^2 rises with xi >= 0, so with the concave half of xi
    made linear it is still a bound, and CCCP works as for the hinge. The dual methods refuse targets that cost something.

    Examples
    --------
    >>> from partwise import multiclass_problem, solve
    >>> problem = multiclass_problem([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0, 1, 0])
    >>> solve(problem, SquaredHinge(), C=1.0).loss.name
    'squared_hinge'
    """

    gamma: float = 1.0
    beta = math.inf

    def __post_init__(self):
        check_number(self.gamma, "gamma", self)
        if self.gamma == 0:
            raise ValueError(f"{self!r} asks for no margin, and w = 0 is its minimum: gamma must be positive. Take 'perceptron'.")

    @property
    def is_squared(self) -> bool:
        return True

    @property
    def convex(self) -> SquaredHinge:
        return self

    @property
    def kernel(self) -> SquaredMaximum:
        return SquaredMaximum(float(self.gamma))


@evaluate.implements(SquaredMaximum)
def _(loss, problem, i, w, scale, work):
    theta, length = work.theta[: kernels.n_parts(problem, i)], kernels.length(problem, i)
    reference = score_augmented(problem, i, w, scale, loss.gamma, theta, work.t[:length])
    return charge(loss, float(kernels.best(problem, i, theta, work.y[:length])) - reference)


@add_gradient.implements(SquaredMaximum)
def _(loss, problem, i, work, c, into):
    """xi (F(y) - F(t)); the slack is read off the part scores again, which costs no features."""
    theta, length = work.theta[: kernels.n_parts(problem, i)], kernels.length(problem, i)
    t, y = work.t[:length], work.y[:length]
    reference = float(kernels.value_of(problem, i, theta, t)) - loss.gamma * kernels.cost(problem, i, t)
    if reference > -np.inf:  # else the target is forbidden, and no step is long enough
        slack = float(kernels.value_of(problem, i, theta, y)) - reference
        kernels.difference(problem, i, t, y, -c * pull(loss, slack), into)
