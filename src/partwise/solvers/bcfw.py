"""BCFW: the block-coordinate Frank-Wolfe method for max-margin losses (Lacoste-Julien et al. 2013).

Problem: ``min_w 1/2 ||w||^2 + sum_i C_i max_y [gamma l_i(y) - w . dF_i(y)]``, through the same dual as SDM (see `sdm`). The feasible set
is a product of simplices, one per example; each visit takes one Frank-Wolfe step in one of them, with the exact line search:

    S_i = {t_i}, lambda_i(t_i) = C_i, w = 0
    repeat for each example i:
        y~   = argmax_y gamma l_i(y) + w . F(x_i, y)
        gap  = C_i [gamma l_i(y~) - w . dF_i(y~)] - sum_y lambda_i(y) [gamma l_i(y) - w . dF_i(y)]
        d    = C_i dF_i(y~) - sum_y lambda_i(y) dF_i(y)
        step = min{ 1, gap / ||d||^2 }
        lambda_i <- (1 - step) lambda_i + step C_i [y~];  w <- w + step d
    return sum_t t w_t / sum_t t,  or the last w, whichever has the lower P

The average weighs the t-th iterate by t, as in the paper (w-bar <- k/(k+2) w-bar + 2/(k+2) w), and is kept lazily: with A_t = t (t + 1) / 2,
sum_s s w_s = A_t w_t + u_t, where a change of w by delta before step t is counted changes u by -A_{t-1} delta only.

The multipliers are kept in active sets rather than one vector w_i per example: a few outputs take less memory than a sparse vector.
P - D certifies the result; D belongs to the last iterate, not to the average.

Cost of an epoch: one oracle call per example and O(|S_i|) sparse differences. Memory: w, its average, scratch as long as w, and the outputs
with mass. SDM does more with each oracle call and reaches high accuracy sooner; BCFW is the simplest method with a certificate.

References
----------
S. Lacoste-Julien, M. Jaggi, M. Schmidt, P. Pletscher (2013). Block-coordinate Frank-Wolfe optimization for structural SVMs. ICML.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from partwise import kernels
from partwise.accumulator import squared_norm
from partwise.compilation import entry
from partwise.losses import Family
from partwise.objective import Value
from partwise.solvers.active import (
    DualState,
    certified_dual,
    drop_inactive,
    find,
    insert,
    output_of,
    primal_value,
    reserve,
)
from partwise.solvers.base import Progress, Solver, Task
from partwise.solvers.sdm import SDM, rounding
from partwise.solvers.weights import STEPS, SUM, Weights, add, averaged, current

CRUMB = 1e-12  # a part of C_i too small to keep an output for: it joins the step


@entry
def bcfw_pass(problem, loss, order, C, sets, weights, work, step_number):
    """Visit the examples in `order`; returns sum_i C_i L_i and the sum of the gaps, as seen."""
    losses, gaps = 0.0, 0.0
    for i in order:
        length, theta = kernels.length(problem, i), work.theta[: kernels.n_parts(problem, i)]
        y = work.y[:length]
        kernels.score(problem, i, weights.v, theta)
        reference = float(kernels.value_of(problem, i, theta, kernels.target(problem, i)))
        if loss.gamma != 0.0:
            kernels.add_cost(problem, i, loss.gamma, theta)
        value = float(kernels.best(problem, i, theta, y)) - reference
        gap, record = C[i] * value, sets.head[i]
        while record >= 0:
            gap -= sets.weight[record] * (kernels.value_of(problem, i, theta, output_of(sets, record, length)) - reference)
            record = sets.next[record]
        losses += C[i] * value
        gaps += max(gap, 0.0)
        if gap > C[i] * rounding(weights, abs(reference)):
            gap_closed_by(problem, i, C[i], y, gap, sets, weights, work)
        step_number += 1.0
        weights.numbers[SUM] += step_number
        weights.numbers[STEPS] += step_number
    return losses, gaps
