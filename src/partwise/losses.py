"""The losses: what each example pays, and what its subgradient is made of.

The family of Martins et al. 2010 (eq. 3), with temperature 1 / beta and cost weight gamma,

    L_i(w) = 1/beta log sum_y exp beta( s(y) - s(t_i) + gamma l_i(y) ),    dL_i = E[F(x_i, y)] - F(x_i, t_i),

holds the structured perceptron (beta = inf, gamma = 0), the structural SVM (inf, 1), the conditional random field (1, 0), the
softmax-margin CRF (1, 1) and everything between. For beta = inf the sum is a maximum and the expectation a best output.

Where example i is only partially labelled, its truth is a set G_i of acceptable outputs and takes the place of the target,

    L_i(w) = 1/beta log sum_y exp beta( s(y) + gamma l_i(y) )  -  1/beta log sum_{y in G_i} exp beta s(y),

with l_i(y) the cost against the set: the latent structural SVM for beta = inf (Yu and Joachims 2009), minus the marginal
likelihood for (1, 0) (Quattoni et al. 2007). It is a difference of convex functions, >= 0 as before, and has no dual bound.
For one acceptable output it is the loss above. Both references come from the structure (`kernels.complete` and
`kernels.expected_completion`).

A public loss (`Family`) is a small record of parameters. Inside compiled loops it is a NamedTuple, and the two kernels below are
dispatched on its type: a loop for the hinge never compiles forward-backward.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from partwise import kernels
from partwise.accumulator import Accumulator, accumulator
from partwise.compilation import helper, kernel


class Workspace(NamedTuple):
    """Scratch memory for one example at a time, as large as the largest one needs."""

    theta: np.ndarray  #: part scores
    augmented: np.ndarray  #: part scores with cost, where both are needed
    parts: np.ndarray  #: part marginals
    y: np.ndarray  #: an output
    t: np.ndarray  #: the target, or the best acceptable output
    gradient: Accumulator  #: a sparse vector in feature space


def workspace(problem: Any, dtype=np.float64) -> Workspace:
    """Allocate a Workspace for `problem`."""
    starts, parts = kernels.sizes(problem)
    longest = int(np.diff(starts).max(initial=0))
    return Workspace(
        np.zeros(parts, dtype),
        np.zeros(parts, dtype),
        np.zeros(parts),
        np.zeros(longest, np.int32),
        np.zeros(longest, np.int32),
        accumulator(kernels.n_weights(problem), kernels.width(problem), dtype),
    )


class Maximum(NamedTuple):
    """L(inf, gamma) as compiled loops see it."""

    gamma: float


class Softmax(NamedTuple):
    """L(beta, gamma) for finite beta as compiled loops see it."""

    beta: float
    gamma: float


@kernel
def evaluate(loss, problem, i, w, scale, work):
    """L_i(scale * w); leaves in `work` what `add_gradient` needs. One call of the oracle."""


@kernel
def add_gradient(loss, problem, i, work, c, into):
    """into += c * (subgradient of L_i at the point where it was last evaluated)."""


@helper
def score_augmented(problem, i, w, scale, gamma, theta, t):
    """Part scores of scale * w plus gamma times the cost into `theta`, the target (or best completion) into `t`.

    Returns the score of `t`, without cost.
    """
    kernels.score(problem, i, w, theta)
    if scale != 1.0:
        theta *= scale
    reference = kernels.complete(problem, i, theta, t)
    if gamma != 0.0:
        kernels.add_cost(problem, i, gamma, theta)
    return float(reference)


@evaluate.implements(Maximum)
def _(loss, problem, i, w, scale, work):
    theta, length = work.theta[: kernels.n_parts(problem, i)], kernels.length(problem, i)
    reference = score_augmented(problem, i, w, scale, loss.gamma, theta, work.t[:length])
    return kernels.best(problem, i, theta, work.y[:length]) - reference


@add_gradient.implements(Maximum)
def _(loss, problem, i, work, c, into):
    length = kernels.length(problem, i)
    kernels.difference(problem, i, work.t[:length], work.y[:length], -c, into)


@evaluate.implements(Softmax)
def _(loss, problem, i, w, scale, work):
    theta, beta = work.theta[: kernels.n_parts(problem, i)], loss.beta
    kernels.score(problem, i, w, theta)
    if scale * beta != 1.0:
        theta *= scale * beta
    augmented = theta
    if loss.gamma != 0.0:
        augmented = work.augmented[: len(theta)]
        augmented[:] = theta
        kernels.add_cost(problem, i, beta * loss.gamma, augmented)
    value = kernels.expected(problem, i, augmented, work.parts)
    return (value - float(kernels.expected_completion(problem, i, theta, -1.0, work.parts))) / beta


@add_gradient.implements(Softmax)
def _(loss, problem, i, work, c, into):
    kernels.add_parts(problem, i, work.parts, c, into)


# ---------------------------------------------------------------------------------------------------------------------
# The public records
# ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Family:
    """The loss L(beta, gamma) of Martins et al. 2010.

    Parameters
    ----------
    beta : float in (0, inf]
        Inverse temperature: 1 sums over outputs like a CRF, inf takes the best one like an SVM.
    gamma : float >= 0
        Weight of the cost: how large a margin is asked for.

    Examples
    --------
    >>> Family(1, 0).name, Family(float("inf"), 1).name, Family(3, 1).name
    ('crf', 'hinge', 'family(3, 1)')
    """

    beta: float
    gamma: float

    def __post_init__(self):
        if not (isinstance(self.beta, int | float) and self.beta > 0):
            raise ValueError(f"The 'beta' parameter of Family must be a float in (0, inf]. Got {self.beta!r} instead.")
        if not (isinstance(self.gamma, int | float) and 0 <= self.gamma < math.inf):
            raise ValueError(f"The 'gamma' parameter of Family must be a float in [0, inf). Got {self.gamma!r} instead.")

    @property
    def name(self) -> str:
        """The name it is known by, or its parameters."""
        for name, loss in LOSSES.items():
            if loss == self:
                return name
        return f"family({self.beta:g}, {self.gamma:g})"

    @property
    def is_smooth(self) -> bool:
        """Whether the loss has a gradient everywhere (finite beta) and its model defines probabilities."""
        return math.isfinite(self.beta)

    @property
    def kernel(self) -> Maximum | Softmax:
        """The record compiled loops take."""
        return Softmax(float(self.beta), float(self.gamma)) if self.is_smooth else Maximum(float(self.gamma))

    @property
    def needs(self) -> tuple[Any, ...]:
        """Kernels a structure must have for this loss."""
        oracle = (kernels.expected, kernels.indicate, kernels.add_parts) if self.is_smooth else (kernels.best,)
        return (*oracle, kernels.add_cost) if self.gamma else oracle


LOSSES: dict[str, Family] = {
    "perceptron": Family(math.inf, 0.0),
    "hinge": Family(math.inf, 1.0),
    "crf": Family(1.0, 0.0),
    "softmax_margin": Family(1.0, 1.0),
}


def get_loss(loss: str | Family) -> Family:
    """The loss of that name, or `loss` itself if it is one already."""
    if isinstance(loss, Family):
        return loss
    if isinstance(loss, str) and loss in LOSSES:
        return LOSSES[loss]
    choices = ", ".join(repr(name) for name in LOSSES)
    raise ValueError(f"The 'loss' parameter must be one of {choices}, or a Family(beta, gamma). Got {loss!r} instead.")
