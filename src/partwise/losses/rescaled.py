"""Rescaled losses inside compiled loops (formulas and the reasons: `losses.Rescaled`, `losses.RescaledRamp`).

Both halves of Lemma 2 of Do et al. (2008) are maxima of functions of score and cost that do not fall with the score, so one call
of ``kernels.best_at_costs`` serves both.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partwise import kernels
from partwise.engine.compilation import compiled_loop, helper
from partwise.engine.numerics import copy
from partwise.losses.in_loops import TIE, add_gradient, evaluate
from partwise.oracles.by_cost import envelope_bound, search_costs


class RescaledMaximum(NamedTuple):
    """Rescaled(power) as compiled loops see it."""

    power: float


class RescaledDifference(NamedTuple):
    """RescaledRamp(power) as compiled loops see it."""

    power: float


@helper
def rescaling(cost, power):
    """Gamma(l) = l^power, with 0^0 = 1."""
    if power == 0.0:
        return 1.0
    return cost if power == 1.0 else cost**power


@helper
def refer_to_truth(problem, i, t, out):
    """Write the output r that scores are measured against into `out`: the target t if it costs nothing, else the truth."""
    if kernels.cost(problem, i, t) > 0.0:
        kernels.truth(problem, i, out)
    else:
        copy(t, out)


@helper
def score_against(problem, i, w, scale, theta, t):
    """Part scores into `theta`, the target (or best completion) into `t`; returns s(r)."""
    kernels.score(problem, i, w, theta)
    if scale != 1.0:
        theta *= scale
    kernels.complete(problem, i, theta, t)
    r = np.empty(len(t), np.int32)
    refer_to_truth(problem, i, t, r)
    return float(kernels.value_of(problem, i, theta, r))


@helper
def best_of_costs(problem, i, theta, length):
    """The best outputs of every cost, their scores, their costs, and how many there are."""
    most = kernels.n_costs(problem, i)
    ys, values, costs = np.empty((most, length), np.int32), np.empty(most), np.empty(most)
    n = kernels.best_at_costs(problem, i, theta, ys, values, costs)
    return ys, values, costs, n


@helper
def highest(values, costs, n, reference, power):
    """max_y Gamma(l(y)) (s(y) - s(r)) + l(y) over the first n candidates, and which it is; inf if r is forbidden."""
    if reference == -np.inf:
        return np.inf, 0
    top, which = -np.inf, 0
    for k in range(n):
        value = rescaling(costs[k], power) * (values[k] - reference) + costs[k]
        if value > top:
            top, which = value, k
    return top, which


@helper
def shift_of(problem, i, theta, t, reference, power):
    """Gamma(l(t)) (s(t) - s(r)): zero but for targets of CCCP."""
    cost = kernels.cost(problem, i, t)
    return rescaling(cost, power) * (float(kernels.value_of(problem, i, theta, t)) - reference) if cost > 0.0 else 0.0


@helper
def add_rescaled(problem, i, t, y, power, c, into):
    """into += c (Gamma(l(y)) (F(r) - F(y)) - Gamma(l(t)) (F(r) - F(t)))."""
    of_t, of_y = rescaling(kernels.cost(problem, i, t), power), rescaling(kernels.cost(problem, i, y), power)
    if of_t == of_y:  # the reference cancels
        if of_y > 0.0:
            kernels.difference(problem, i, t, y, c * of_y, into)
        return
    r = np.empty(len(t), np.int32)
    refer_to_truth(problem, i, t, r)
    if of_y > 0.0:
        kernels.difference(problem, i, r, y, c * of_y, into)
    if of_t > 0.0:
        kernels.difference(problem, i, r, t, -c * of_t, into)


@evaluate.implements(RescaledMaximum)
def _(loss, problem, i, w, scale, work):
    theta, length = work.theta[: kernels.n_parts(problem, i)], kernels.length(problem, i)
    t = work.t[:length]
    reference = score_against(problem, i, w, scale, theta, t)
    ys, values, costs, n = best_of_costs(problem, i, theta, length)
    top, which = highest(values, costs, n, reference, loss.power)
    copy(ys[which], work.y[:length])
    return max(top - shift_of(problem, i, theta, t, reference, loss.power), 0.0)  # rounding alone can make it negative


@evaluate.implements(RescaledDifference)
def _(loss, problem, i, w, scale, work):
    theta, length = work.theta[: kernels.n_parts(problem, i)], kernels.length(problem, i)
    t = work.t[:length]
    reference = score_against(problem, i, w, scale, theta, t)
    ys, values, costs, n = best_of_costs(problem, i, theta, length)
    top, which = highest(values, costs, n, reference, loss.power)
    copy(ys[which], work.y[:length])
    # a tie goes to the truth, as in every ramp loss
    second, rival = 0.0, -1
    for k in range(n if top < np.inf else 0):
        lead = values[k] - reference
        value = rescaling(costs[k], loss.power) * lead
        if lead > TIE * (1.0 + abs(reference)) and value > second:
            second, rival = value, k
    if rival >= 0:
        copy(ys[rival], t)
    else:
        refer_to_truth(problem, i, t.copy(), t)
    return max(top - second, 0.0)


@add_gradient.implements(RescaledMaximum, RescaledDifference)
def _(loss, problem, i, work, c, into):
    length = kernels.length(problem, i)
    add_rescaled(problem, i, work.t[:length], work.y[:length], loss.power, -c, into)


@compiled_loop
def is_searched(problem):
    """Whether the outputs of some example are searched rather than all seen."""
    for i in range(kernels.n_examples(problem)):
        if not kernels.counts_costs(problem, i):
            return True
    return False


@compiled_loop
def unseen_pass(problem, power, first, last, w, work, extra):
    """extra[i] = by how much max_y Gamma(l(y)) (s(y) - s(r)) + l(y) may be higher at w than was found, for first <= i < last."""
    for i in range(first, last):
        extra[i] = 0.0
        if kernels.counts_costs(problem, i):
            continue
        theta, length = work.theta[: kernels.n_parts(problem, i)], kernels.length(problem, i)
        reference = score_against(problem, i, w, 1.0, theta, work.t[:length])
        most = kernels.n_costs(problem, i)
        ys, values, costs = np.empty((most, length), np.int32), np.empty(most), np.empty(most)
        lines = np.empty((2 * most, 2))
        n, queries = search_costs(problem, i, theta, ys, values, costs, lines)
        top, _ = highest(values, costs, n, reference, power)
        if n > 0 and top < np.inf:
            extra[i] = max(envelope_bound(lines, queries, reference, costs[:n].max(), power) - top, 0.0)
