"""The linear pieces of max-margin losses inside compiled loops: what dual methods and cutting planes are made of.

Every max-margin loss is a maximum of affine functions of w, one *piece* for each output,

    L_i(w) = max_y [ o_i(y) - w . v_i(y) ].

    Maximum              v(y) = F(t) - F(y)                                                    o(y) = gamma l(y)
    RescaledMaximum      v(y) = Gamma(l(y)) (F(r) - F(y)) - Gamma(l(t)) (F(r) - F(t))          o(y) = l(y)

t is the target and r what scores are measured against (`rescaled.refer_to_truth`); where the target is the truth, r = t
and v(y) = Gamma(l(y)) dF(y). The piece of the target itself is the constant o(t). The dual of (P) has a multiplier for each:

    max_lambda  -1/2 ||w||^2 + sum_i sum_y lambda_i(y) o_i(y),    w = sum_i sum_y lambda_i(y) v_i(y),    sum_y lambda_i(y) = C_i.

The squared hinge, 1/2 L_i(w)^2, has the pieces of `Maximum` and another dual: `slacks`.

These kernels are dispatched on the loss. For `Maximum` they are the kernels of the structure and nothing else.
"""

from __future__ import annotations

import numpy as np

from partwise import kernels
from partwise.engine.accumulator import clear
from partwise.engine.compilation import helper, kernel
from partwise.engine.numerics import copy
from partwise.losses.in_loops import Maximum, score_augmented
from partwise.losses.rescaled import (
    RescaledMaximum,
    add_rescaled,
    best_of_costs,
    highest,
    refer_to_truth,
    rescaling,
    score_against,
    shift_of,
)
from partwise.losses.slacks import SquaredMaximum, SummedMaximum, SummedSquares

PIECEWISE = (Maximum, RescaledMaximum)  #: losses that are the highest of their pieces
ONE_SLACK = (*PIECEWISE, SquaredMaximum)  #: losses that are a function of the highest of their pieces (`slacks`)


@kernel
def offset(loss, cost):
    """o(y) of an output of this cost."""


@kernel
def score_pieces(loss, problem, i, w, work):
    """Write part scores into ``work.theta``, the target into ``work.t``; returns two numbers, (reference, shift).

    With them, `piece_value` knows the value of every piece at w. The first is the score that outputs are compared with.
    """


@kernel
def piece_value(loss, problem, i, theta, reference, shift, y):
    """o(y) - w . v(y), from the part scores that `score_pieces` has written. No features are looked at."""


@kernel
def best_piece(loss, problem, i, theta, reference, shift, y):
    """Write the output of the highest piece into y and return its value, L_i(w). One call of the oracle."""


@kernel
def add_piece(loss, problem, i, t, y, c, into):
    """into += c v(y), for the target t."""


@kernel
def exchange(loss, problem, i, t, y, z, c, into):
    """into += c (v(y) - v(z)): what moving mass c from z to y does to w."""


@kernel
def piece_margins(loss, problem, i, w, t, ys, n, values, scratch):
    """values[k] = w . v(ys[k]) for k < n, touching only what differs; `scratch` is a cleared Accumulator."""


@kernel
def piece_products(loss, problem, i, t, y, ys, n, values, scratch, second):
    """values[k] = v(y) . v(ys[k]) for k < n."""


@kernel
def move_pieces(loss, problem, i, t, ys, changes, n, c, into):
    """into += c sum_k changes[k] v(ys[k]), for changes that sum to zero: what moving dual mass does to w."""


# -- margin rescaling -------------------------------------------------------------------------------------------------


@offset.implements(Maximum, SquaredMaximum)
def _(loss, cost):
    return loss.gamma * cost


@score_pieces.implements(Maximum, SquaredMaximum)
def _(loss, problem, i, w, work):
    theta, length = work.theta[: kernels.n_parts(problem, i)], kernels.length(problem, i)
    return score_augmented(problem, i, w, 1.0, loss.gamma, theta, work.t[:length]), 0.0


@piece_value.implements(Maximum, SquaredMaximum)
def _(loss, problem, i, theta, reference, shift, y):
    return kernels.value_of(problem, i, theta, y) - reference


@best_piece.implements(Maximum, SquaredMaximum)
def _(loss, problem, i, theta, reference, shift, y):
    return float(kernels.best(problem, i, theta, y)) - reference


@add_piece.implements(Maximum, SquaredMaximum, SummedMaximum, SummedSquares)  # sums are those of terms with the same pieces
def _(loss, problem, i, t, y, c, into):
    kernels.difference(problem, i, t, y, c, into)


@exchange.implements(Maximum, SquaredMaximum)
def _(loss, problem, i, t, y, z, c, into):
    kernels.difference(problem, i, z, y, c, into)


@piece_margins.implements(Maximum, SquaredMaximum)
def _(loss, problem, i, w, t, ys, n, values, scratch):
    kernels.margins(problem, i, w, t, ys, n, values, scratch)


@piece_products.implements(Maximum, SquaredMaximum)
def _(loss, problem, i, t, y, ys, n, values, scratch, second):
    kernels.products(problem, i, t, y, ys, n, values, scratch, second)


@move_pieces.implements(Maximum, SquaredMaximum)
def _(loss, problem, i, t, ys, changes, n, c, into):
    kernels.move_mass(problem, i, ys, changes, n, c, into)


# -- rescaling by the cost --------------------------------------------------------------------------------------------


@helper
def rescaled_by(loss, problem, i, y):
    """Gamma(l(y))."""
    return rescaling(kernels.cost(problem, i, y), loss.power)


@offset.implements(RescaledMaximum)
def _(loss, cost):
    return cost


@score_pieces.implements(RescaledMaximum)
def _(loss, problem, i, w, work):
    theta, t = work.theta[: kernels.n_parts(problem, i)], work.t[: kernels.length(problem, i)]
    reference = score_against(problem, i, w, 1.0, theta, t)
    return reference, shift_of(problem, i, theta, t, reference, loss.power)


@piece_value.implements(RescaledMaximum)
def _(loss, problem, i, theta, reference, shift, y):
    cost = kernels.cost(problem, i, y)
    return rescaling(cost, loss.power) * (float(kernels.value_of(problem, i, theta, y)) - reference) + cost - shift


@best_piece.implements(RescaledMaximum)
def _(loss, problem, i, theta, reference, shift, y):
    ys, values, costs, n = best_of_costs(problem, i, theta, len(y))
    top, which = highest(values, costs, n, reference, loss.power)
    copy(ys[which], y)
    return top - shift


@add_piece.implements(RescaledMaximum)
def _(loss, problem, i, t, y, c, into):
    add_rescaled(problem, i, t, y, loss.power, c, into)


@exchange.implements(RescaledMaximum)
def _(loss, problem, i, t, y, z, c, into):
    add_piece(loss, problem, i, t, y, c, into)
    add_piece(loss, problem, i, t, z, -c, into)


@piece_margins.implements(RescaledMaximum)
def _(loss, problem, i, w, t, ys, n, values, scratch):
    r, shift = np.empty(len(t), np.int32), 0.0
    refer_to_truth(problem, i, t, r)
    if kernels.cost(problem, i, t) > 0.0:
        shift = rescaled_by(loss, problem, i, t) * float(kernels.margin(problem, i, w, r, t, scratch))
    kernels.margins(problem, i, w, r, ys, n, values, scratch)
    for k in range(n):
        values[k] = rescaled_by(loss, problem, i, ys[k]) * values[k] - shift


@piece_products.implements(RescaledMaximum)
def _(loss, problem, i, t, y, ys, n, values, scratch, second):
    add_piece(loss, problem, i, t, y, 1.0, scratch)
    piece_margins(loss, problem, i, scratch.value, t, ys, n, values, second)
    clear(scratch)


@move_pieces.implements(RescaledMaximum)
def _(loss, problem, i, t, ys, changes, n, c, into):
    r = np.empty(len(t), np.int32)
    refer_to_truth(problem, i, t, r)
    for k in range(n):  # what belongs to the target is the same for all of them, and the changes sum to zero
        if changes[k] != 0.0:
            scale = rescaled_by(loss, problem, i, ys[k])
            if scale > 0.0:
                kernels.difference(problem, i, r, ys[k], c * changes[k] * scale, into)
