"""The summed error, linear and squared: its record, and what compiled loops see of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from partwise import kernels
from partwise.losses.in_loops import add_gradient, evaluate
from partwise.losses.loss import Loss, check_number
from partwise.losses.slacks import SummedMaximum, SummedSquares, charge, pull


@dataclass(frozen=True)
class Summed(Loss):
    """The summed error ``sum_y max(0, gamma l(y) - w·dF(y))`` of Balamurugan et al. (LSE): every violated output counts.

    On classes it is the multiclass SVM of Weston and Watkins (1999), where the hinge is that of Crammer and Singer. Squared
    (``"squared_summed"``), it is the quadratic summed error (QSE), ``sum_y 1/2 max(0, gamma l(y) - w . dF(y))^2``.

    Parameters
    ----------
    gamma : float >= 0
        Weight of the cost: how large a margin is asked for.
    squared : bool
        Whether a violation counts by half its square.

    Notes
    -----
    Subgradient: sum over the violators, the y with w . dF(y) < gamma l(y), of F(y) - F(t). Squared, each counts by its violation,
    and the sum is a gradient: L-BFGS can follow it. Dual: a multiplier 0 <= alpha_i(y) <= C_i for each output; squared,
    alpha_i(y) >= 0 and alpha_i(y)^2 / (2 C_i) to pay.

    **Where outputs can be listed** (the kernels `kernels.all_outputs` and `kernels.n_outputs`: classes), the loss is exact, O(K)
    once the scores are known, and every solver that follows (sub)gradients takes it.

    **Where they cannot** (chains and all other structures), nobody evaluates the sum: at w = 0 all outputs violate, exponentially
    many. The solvers ``"sdcd"`` and ``"lse_cutting_plane"`` minimise the sum over the outputs V_i that their oracle has found,

        P_V(w) = 1/2 ||w||^2 + sum_i C_i sum_{y in V_i} max(0, gamma l_i(y) - w . dF_i(y))  <=  P(w)

    (or the same with squares), and the optimum over V is a lower bound of that over all outputs. (An output that violates, but
    never more than any other, is never found.) Results say so: ``SolveResult.unseen`` is inf. The more outputs are found, the
    larger the loss term at the same C: it is not comparable with that of the hinge.

    The truth has to be one output: partial labels are refused.

    Examples
    --------
    >>> from partwise import multiclass_problem, solve
    >>> problem = multiclass_problem([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0, 1, 0])
    >>> solve(problem, Summed(squared=True), C=1.0).loss.name
    'squared_summed'
    """

    gamma: float = 1.0
    squared: bool = False
    beta = math.inf
    takes_sets = False
    found_by = ("sdcd", "lse_cutting_plane")

    def __post_init__(self):
        check_number(self.gamma, "gamma", self)
        if not isinstance(self.squared, bool):
            raise ValueError(f"The 'squared' parameter of Summed must be True or False. Got {self.squared!r} instead.")

    @property
    def has_gradient(self) -> bool:
        return self.squared

    @property
    def is_squared(self) -> bool:
        return self.squared

    @property
    def convex(self) -> Summed:
        return self

    @property
    def kernel(self) -> SummedMaximum | SummedSquares:
        return SummedSquares(float(self.gamma)) if self.squared else SummedMaximum(float(self.gamma))

    @property
    def needs(self) -> tuple[Any, ...]:
        return (kernels.n_outputs, kernels.all_outputs, kernels.indicate, kernels.add_parts)

    def check(self, problem: Any) -> None:
        if kernels.is_partial(problem):
            raise ValueError(
                f"The loss {self.name!r} needs one true output per example, but {type(problem).__name__} is partially labelled: "
                "the sum against a set of acceptable outputs would not be convex. Use 'hinge' or 'crf'."
            )


@evaluate.implements(SummedMaximum, SummedSquares)
def _(loss, problem, i, w, scale, work):
    """Leaves the parts of the subgradient, sum over violators of (slope) (z(y) - z(t)), in `work.parts`: one pass."""
    length, theta = kernels.length(problem, i), work.theta[: kernels.n_parts(problem, i)]
    parts, target = work.parts[: len(theta)], kernels.target(problem, i)
    kernels.score(problem, i, w, theta)
    if scale != 1.0:
        theta *= scale
    parts[:] = 0.0
    reference = float(kernels.value_of(problem, i, theta, target))
    if reference == -np.inf:  # a target that is forbidden
        return np.inf
    ys = np.empty((kernels.n_outputs(problem, i), length), np.int32)
    total, slopes = 0.0, 0.0
    for k in range(kernels.all_outputs(problem, i, ys)):
        y = ys[k]
        violation = loss.gamma * kernels.cost(problem, i, y) - (reference - float(kernels.value_of(problem, i, theta, y)))
        if violation > 0.0:
            slope = pull(loss, violation)
            total += charge(loss, violation)
            slopes += slope
            kernels.indicate(problem, i, y, slope, parts)
    if slopes > 0.0:
        kernels.indicate(problem, i, target, -slopes, parts)
    return total


@add_gradient.implements(SummedMaximum, SummedSquares)
def _(loss, problem, i, work, c, into):
    kernels.add_parts(problem, i, work.parts[: kernels.n_parts(problem, i)], c, into)
