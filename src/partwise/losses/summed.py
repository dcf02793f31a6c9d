"""The summed error loss inside compiled loops (formula and reasons: `losses.Summed`)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partwise import kernels
from partwise.losses.in_loops import add_gradient, evaluate


class SummedMaximum(NamedTuple):
    """Summed(gamma) as compiled loops see it."""

    gamma: float


@evaluate.implements(SummedMaximum)
def _(loss, problem, i, w, scale, work):
    """Leaves the parts of the subgradient, sum over violators of z(y) - z(t), in `work.parts`: one pass over the features."""
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
    total, violators = 0.0, 0
    for k in range(kernels.all_outputs(problem, i, ys)):
        y = ys[k]
        violation = loss.gamma * kernels.cost(problem, i, y) - (reference - float(kernels.value_of(problem, i, theta, y)))
        if violation > 0.0:
            total += violation
            violators += 1
            kernels.indicate(problem, i, y, 1.0, parts)
    if violators:
        kernels.indicate(problem, i, target, -float(violators), parts)
    return total


@add_gradient.implements(SummedMaximum)
def _(loss, problem, i, work, c, into):
    kernels.add_parts(problem, i, work.parts[: kernels.n_parts(problem, i)], c, into)
