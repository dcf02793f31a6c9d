"""The averaged structured perceptron (Collins 2002).

Problem: find w with ``s(t_i) > s(y)`` for every other output y of every example i, that is, with no perceptron loss
``L_i(w) = max_y s(y) - s(t_i)``. There is no regulariser in it:

    repeat for each example i:
        y  = argmax_y w . F(x_i, y)
        if y != t_i:  w <- w + C_i (F(x_i, t_i) - F(x_i, y))
    return the average of all w

A C that is the same for all examples only scales w; sample weights scale the steps. A tie with the target counts as a
mistake although its loss is zero, otherwise nothing would ever happen at w = 0. On separable data the number of mistakes is
at most (R / margin)^2, and the solver stops after the first epoch without one; on other data it never settles, and the
average is what generalises.

Cost of an epoch: one oracle call per example and O(touched weights) per mistake. Memory: w and its average.

References
----------
M. Collins (2002). Discriminative training methods for hidden Markov models: theory and experiments with perceptron
algorithms. EMNLP.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from partwise import kernels
from partwise.engine.compilation import compiled_loop, helper
from partwise.losses.in_loops import score_augmented
from partwise.solvers.online import OnlineSolver, OnlineState
from partwise.solvers.weights import add, count_step


@helper
def differ(a, b):
    """Whether two outputs differ. Their scores cannot tell: sums in another order round differently."""
    for k in range(len(a)):
        if a[k] != b[k]:
            return True
    return False


@compiled_loop
def perceptron_pass(problem, order, C, weights, work):
    """Visit the examples in `order`; returns sum_i C_i L_i as seen, and the number of mistakes."""
    total, mistakes = 0.0, 0
    for i in order:
        theta = work.theta[: kernels.n_parts(problem, i)]
        length = kernels.length(problem, i)
        y, target = work.y[:length], work.t[:length]
        reference = score_augmented(problem, i, weights.v, 1.0, 0.0, theta, target)
        value = kernels.best(problem, i, theta, y)
        if differ(y, target):
            mistakes += 1
            total += C[i] * max(value - reference, 0.0)
            kernels.difference(problem, i, target, y, 1.0, work.gradient)
            add(weights, C[i], work.gradient)
        count_step(weights)
    return total, mistakes


@dataclass
class PerceptronState(OnlineState):
    """An OnlineState that counts mistakes, ties included."""

    mistakes: int = 0


@dataclass(frozen=True)
class Perceptron(OnlineSolver):
    """Averaged perceptron (see the module).

    Parameters
    ----------
    average : bool
        Return the average of all iterates rather than the last one.
    average_power : float >= 0
        The average takes w_t with weight t^average_power.

    Examples
    --------
    >>> from partwise import multiclass_problem, solve
    >>> problem = multiclass_problem([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0, 1, 0])
    >>> result = solve(problem, "perceptron", Perceptron(), C=1.0, max_epochs=20)
    >>> result.solver.name, result.w.shape
    ('perceptron', (4,))
    """

    name = "perceptron"
    default_epochs = 20
    accepted = "the perceptron loss L(inf, 0)"

    def accepts(self, loss):
        return math.isinf(loss.beta) and loss.gamma == 0.0

    def init(self, task, start=None):
        return PerceptronState(**vars(super().init(task, start)))

    def visit(self, task, state, order):
        loss, mistakes = perceptron_pass(task.problem, order, task.C, state.weights, state.work)
        state.mistakes += int(mistakes)
        return loss

    def epoch(self, task, state):
        before = state.mistakes
        progress = super().epoch(task, state)
        # mistakes that were ties cost nothing, but w has moved since: an epoch with any of them settles nothing
        return progress._replace(estimate=np.nan if state.mistakes == before else np.inf)
