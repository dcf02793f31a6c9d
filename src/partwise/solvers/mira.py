"""MIRA: the 1-best margin-infused relaxed algorithm, also known as passive-aggressive (PA-I with the max-loss update).

Problem: ``min_w 1/2 ||w||^2 + sum_i C_i L_i(w)`` with beta = inf, taken example by example. At each one, stay as close to
the current weights as its most violated margin allows, at the price C_i of a slack:

    min_w  1/2 ||w - w_t||^2 + C_i xi    such that    w . dF_i(y) >= gamma l_i(y) - xi,    xi >= 0,

    repeat for each example i:
        y   = argmax_y w . F(x_i, y) + gamma l_i(y)
        tau = min{ C_i, (gamma l_i(y) - w . dF_i(y)) / ||dF_i(y)||^2 }
        w  <- w + tau dF_i(y)                                            dF_i(y) = F(x_i, t_i) - F(x_i, y)
    return the average of all w

(Crammer et al. 2006, sections 3 and 7; Martins et al. 2010, eq. 15.) DCA with beta = inf takes exactly these steps; DCA
also does finite beta, k-best MIRA looks at more than one margin at a time. Like DCA it is an online method, whose limit is
not exactly the optimum of (P).

Cost of an epoch: one oracle call per example and O(touched weights). Memory: w and its average.

References
----------
K. Crammer, O. Dekel, J. Keshet, S. Shalev-Shwartz, Y. Singer (2006). Online passive-aggressive algorithms. JMLR 7.
R. McDonald, K. Crammer, F. Pereira (2005). Online large-margin training of dependency parsers. ACL.
"""

from __future__ import annotations

from dataclasses import dataclass

from partwise import kernels
from partwise.engine.accumulator import squared_norm
from partwise.engine.compilation import compiled_loop
from partwise.losses.in_loops import Maximum, score_augmented
from partwise.solvers.online import OnlineSolver
from partwise.solvers.weights import add, count_step


@compiled_loop
def mira_pass(problem, gamma, order, C, weights, work):
    """Visit the examples in `order`; returns sum_i C_i L_i as seen."""
    total = 0.0
    for i in order:
        theta = work.theta[: kernels.n_parts(problem, i)]
        length = kernels.length(problem, i)
        y, target = work.y[:length], work.t[:length]
        reference = score_augmented(problem, i, weights.v, 1.0, gamma, theta, target)
        violation = kernels.best(problem, i, theta, y) - reference
        if violation > 0.0:
            kernels.difference(problem, i, target, y, 1.0, work.gradient)
            norm = squared_norm(work.gradient)
            if norm > 0.0:
                total += C[i] * violation
                add(weights, min(C[i], violation / norm), work.gradient)
        count_step(weights)
    return total


@dataclass(frozen=True)
class MIRA(OnlineSolver):
    """1-best MIRA (see the module)."""

    name = "mira"
    default_epochs = 20
    accepted = "max-margin losses L(inf, gamma)"

    def accepts(self, loss):
        return isinstance(loss.kernel, Maximum)

    def visit(self, task, state, order):
        return mira_pass(task.problem, float(task.loss.gamma), order, task.C, state.weights, state.work)
