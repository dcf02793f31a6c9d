"""Losses inside compiled loops: their value and their subgradient for one example, dispatched on the type of the loss.

A loss is a NamedTuple here, and `evaluate` and `add_gradient` are kernels like those of structures: a loop for the hinge never
compiles forward-backward. Formulas: `losses`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from partwise import kernels
from partwise.engine.accumulator import Accumulator, accumulator
from partwise.engine.compilation import helper, kernel
from partwise.engine.numerics import copy

TIE = 1e-9  # part of a score within which two outputs are as good as each other


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
    longest, parts, _ = kernels.extent(problem)
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


class RampMaximum(NamedTuple):
    """Ramp(a, b) as compiled loops see it."""

    gamma: float
    b: float


class RampSoftmax(NamedTuple):
    """Ramp(a, b, beta) for finite beta as compiled loops see it."""

    beta: float
    gamma: float
    b: float


class SoftDifference(NamedTuple):
    """SoftRamp(beta, gamma, b) as compiled loops see it."""

    beta: float
    gamma: float
    b: float


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


@add_gradient.implements(Maximum, RampMaximum)
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
        copy(theta, augmented)
        kernels.add_cost(problem, i, beta * loss.gamma, augmented)
    value = kernels.expected(problem, i, augmented, work.parts)
    return (value - float(kernels.expected_completion(problem, i, theta, -1.0, work.parts))) / beta


@add_gradient.implements(Softmax, RampSoftmax, SoftDifference)
def _(loss, problem, i, work, c, into):
    kernels.add_parts(problem, i, work.parts, c, into)


@helper
def refer(problem, i, w, scale, b, theta, diminished, t, second):
    """Part scores of scale * w into `theta`, argmax_y s(y) - b l(y) into `t`; returns its value.

    A tie goes to the truth, so that t differs from it only where the model is sure: then at w = 0 every ramp loss has the
    subgradient of its convex half. A truth that is forbidden is never believed. `second` is an output to work in.
    """
    kernels.score(problem, i, w, theta)
    if scale != 1.0:
        theta *= scale
    truth = float(kernels.complete(problem, i, theta, t))
    copy(theta, diminished)
    if b != 0.0:
        kernels.add_cost(problem, i, -b, diminished)
    value = float(kernels.best(problem, i, diminished, second))
    if truth == -np.inf or value > truth + TIE * (1.0 + abs(truth)):
        copy(second, t)
        return value
    return truth


@evaluate.implements(RampMaximum)
def _(loss, problem, i, w, scale, work):
    parts, length = kernels.n_parts(problem, i), kernels.length(problem, i)
    theta, y = work.theta[:parts], work.y[:length]
    reference = refer(problem, i, w, scale, loss.b, theta, work.augmented[:parts], work.t[:length], y)
    if loss.gamma != 0.0:
        kernels.add_cost(problem, i, loss.gamma, theta)
    return max(float(kernels.best(problem, i, theta, y)) - reference, 0.0)  # rounding alone can make it negative


@evaluate.implements(RampSoftmax)
def _(loss, problem, i, w, scale, work):
    parts, length, beta = kernels.n_parts(problem, i), kernels.length(problem, i), loss.beta
    theta, t = work.theta[:parts], work.t[:length]
    reference = refer(problem, i, w, scale, loss.b, theta, work.augmented[:parts], t, work.y[:length])
    if loss.gamma != 0.0:
        kernels.add_cost(problem, i, loss.gamma, theta)
    theta *= beta
    value = float(kernels.expected(problem, i, theta, work.parts)) / beta
    kernels.indicate(problem, i, t, -1.0, work.parts)
    return value - reference


@evaluate.implements(SoftDifference)
def _(loss, problem, i, w, scale, work):
    theta, beta = work.theta[: kernels.n_parts(problem, i)], loss.beta
    kernels.score(problem, i, w, theta)
    if scale * beta != 1.0:
        theta *= scale * beta
    plain, diminished = np.empty(len(theta)), theta
    if loss.b != 0.0:
        diminished = work.augmented[: len(theta)]
        copy(theta, diminished)
        kernels.add_cost(problem, i, -beta * loss.b, diminished)
    reference = float(kernels.expected(problem, i, diminished, plain))
    kernels.add_cost(problem, i, beta * loss.gamma, theta)
    value = float(kernels.expected(problem, i, theta, work.parts))
    for k in range(len(theta)):
        work.parts[k] -= plain[k]
    return (value - reference) / beta
