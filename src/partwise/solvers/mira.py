"""MIRA: the 1-best margin-infused relaxed algorithm, also known as passive-aggressive (PA-I).

Problem: ``min_w 1/2 ||w||^2 + sum_i C_i L_i(w)`` with beta = inf, taken example by example. At each one, stay as close to
the current weights as its most violated margin allows, at the price C_i of a slack:

    min_w  1/2 ||w - w_t||^2 + C_i xi    such that    w . dF_i(y) >= gamma l_i(y) - xi,    xi >= 0,

    repeat for each example i:
        y   = argmax_y w . F(x_i, y) + gamma l_i(y)
        tau = min{ C_i, (gamma l_i(y) - w . dF_i(y)) / ||dF_i(y)||^2 }
        w  <- w + tau dF_i(y)                                            dF_i(y) = F(x_i, t_i) - F(x_i, y)
    return the average of all w

(Crammer et al. 2006, sections 3 and 7; Martins et al. 2010, eq. 15.) That is the *max-loss* update. The *prediction-based* one
(Crammer et al., section 8; Martins et al., footnote 7) keeps the margin of another output, the one that the model would answer:

        y   = argmax_y w . F(x_i, y)                                     tau and the step as above

Its violation is at most the hinge loss. An example with a right answer is left alone, however small its margin: when all answers
are right, w rests, and losses may be left. (Crammer et al. ask for a margin of the root of the cost; here as in Martins et al. it
is gamma times the cost.)

DCA with beta = inf takes exactly the max-loss steps; DCA also does finite beta, k-best MIRA looks at more than one margin at a
time. Like DCA it is an online method, whose limit is not exactly the optimum of (P).

Cost of an epoch: one oracle call per example and O(touched weights). Memory: w and its average.

References
----------
K. Crammer, O. Dekel, J. Keshet, S. Shalev-Shwartz, Y. Singer (2006). Online passive-aggressive algorithms. JMLR 7.
A. F. T. Martins et al. (2010). Aggressive online learning of structured classifiers. CMU-ML-10-109.
R. McDonald, K. Crammer, F. Pereira (2005). Online large-margin training of dependency parsers. ACL.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from partwise import kernels
from partwise.engine.accumulator import squared_norm
from partwise.engine.compilation import compiled_loop
from partwise.losses.in_loops import Maximum, score_augmented
from partwise.solvers.lock_free import LockFreeSolver
from partwise.solvers.weights import add, count_step

UPDATES = ("max_loss", "prediction")


@compiled_loop
def mira_pass(problem, gamma, order, C, weights, work, max_loss):
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
            norm = squared_norm(work.gradient)
            if norm > 0.0:
                total += C[i] * violation
                add(weights, min(C[i], violation / norm), work.gradient)
        count_step(weights)
    return total


@dataclass(frozen=True)
class MIRA(LockFreeSolver):
    """1-best MIRA (see the module).

    Parameters
    ----------
    update : {"max_loss", "prediction"}
        Whose margin a step restores: that of the output with the largest loss, or of the prediction.
    n_jobs : int >= 1
        Threads that step on the same weights without locks (`partwise.solvers.lock_free`). More than one: nearly as many times
        as quick, and another model in each run.

    Examples
    --------
    >>> from partwise import multiclass_problem, solve
    >>> problem = multiclass_problem([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0, 1, 0])
    >>> result = solve(problem, "hinge", MIRA(), C=1.0, max_epochs=20)
    >>> result.solver.name, result.w.shape
    ('mira', (4,))
    """

    name = "mira"
    default_epochs = 20
    accepted = "max-margin losses L(inf, gamma)"

    update: str = "max_loss"

    def __post_init__(self):
        super().__post_init__()
        if self.update not in UPDATES:
            raise ValueError(f"The 'update' parameter of MIRA must be 'max_loss' or 'prediction'. Got {self.update!r} instead.")

    def accepts(self, loss):
        return isinstance(loss.kernel, Maximum)

    def visit(self, task, state, order):
        max_loss = self.update == "max_loss"
        return mira_pass(task.problem, float(task.loss.gamma), order, task.C, state.weights, state.work, max_loss)

    def epoch(self, task, state):
        progress = super().epoch(task, state)
        if progress.loss == 0.0 and self.update == "prediction" and task.loss.gamma > 0.0:
            # no answer was wrong, so nothing will move any more; but margins may be violated: nobody has looked for them
            return progress._replace(estimate=math.inf, stuck=True)
        return progress

    def why_stuck(self, task, state):
        return "every prediction is right, and only wrong ones move the weights"
