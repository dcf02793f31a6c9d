"""DCA: dual coordinate ascent, the passive-aggressive algorithm for every L(beta, gamma) (Martins et al. 2010, Alg. 1, 2).

Problem: ``min_w 1/2 ||w||^2 + sum_i C_i L_i(w)``, taken example by example. Each step increases the dual of the examples seen
so far, in closed form, without a learning rate:

    repeat for each example i:
        L_i(w), dL_i(w)  from one call of the oracle
        eta = min{ C_i, L_i(w) / ||dL_i(w)||^2 }
        w  <- w - eta dL_i(w)
    return the average of all w, w_t with weight t^average_power

For beta = inf, gamma = 1 this is 1-best MIRA step for step; for beta = 1, gamma = 0 it is a passive-aggressive CRF. It is an
online method: excellent after a few epochs, but it never takes back what an example once added, so its limit is not exactly
the optimum of (P); for that, use SDM or L-BFGS.

The step is that of a convex loss which can become zero. Ramp losses have one in each round of CCCP, whose targets hold still. The
soft ramp has no target and never becomes zero: every visit would add C_i dL_i and nothing would take it back, until the objective
is above that of w = 0. It is refused. For the squared hinge eta is min{ C_i, 1 / (2 ||dF||^2) }, at least half and at most one
and a half times the step 1 / (1 / C_i + ||dF||^2) of PA-II, the best one for an example that is seen first.

Cost of an epoch: one oracle call per example and O(touched weights). Memory: w and its average.

References
----------
A. F. T. Martins, K. Gimpel, N. A. Smith, E. P. Xing, M. A. T. Figueiredo, P. M. Q. Aguiar (2010). Aggressive online learning
of structured classifiers. CMU-ML-10-109.
"""

from __future__ import annotations

from dataclasses import dataclass

from partwise.engine.accumulator import squared_norm
from partwise.engine.compilation import compiled_loop
from partwise.losses.in_loops import add_gradient, evaluate
from partwise.solvers.lock_free import LockFreeSolver
from partwise.solvers.weights import add, count_step


@compiled_loop
def dca_pass(problem, loss, order, C, weights, work):
    """Visit the examples in `order`; returns sum_i C_i L_i as seen."""
    total = 0.0
    for i in order:
        value = evaluate(loss, problem, i, weights.v, 1.0, work)
        if value > 0.0:  # with approximate inference it may be negative: then skip (footnote 9)
            add_gradient(loss, problem, i, work, 1.0, work.gradient)
            norm = squared_norm(work.gradient)
            if norm > 0.0:  # else the best output is the target, and the loss a rounding error
                total += C[i] * value
                add(weights, -min(C[i], value / norm), work.gradient)
        count_step(weights)
    return total


@dataclass(frozen=True)
class DCA(LockFreeSolver):
    """Dual coordinate ascent for every L(beta, gamma); no learning rate (see the module).

    Parameters
    ----------
    average : bool
        Return the average of all iterates rather than the last one.
    average_power : float >= 0
        The average takes w_t with weight t^average_power.
    n_jobs : int >= 1
        Threads that step on the same weights without locks (`partwise.solvers.lock_free`). More than one: nearly as many times
        as quick, and another model in each run.

    Examples
    --------
    >>> from partwise import multiclass_problem, solve
    >>> problem = multiclass_problem([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0, 1, 0])
    >>> result = solve(problem, "hinge", DCA(), C=1.0, max_epochs=20)
    >>> result.solver.name, result.w.shape
    ('dca', (4,))
    """

    name = "dca"
    default_epochs = 20
    accepted = "losses with a target: every L(beta, gamma), and ramps of them"
    takes = "gradients"

    average_power: float = 2.0  # as published it is 0; on held-out parts of CoNLL-2000, 2 gets as far in half the epochs

    def accepts(self, loss):
        return loss.uses_target

    def suits_lists(self, loss, evaluate):
        return self.n_jobs == 1 and not loss.is_smooth and evaluate in ("primal", "never")

    def visit(self, task, state, order):
        return dca_pass(task.problem, task.loss.kernel, order, task.C, state.weights, state.work)
