"""k-best MIRA: at each example, stay as close to the current weights as the k most violated margins allow.

Problem: ``min_w 1/2 ||w||^2 + sum_i C_i L_i(w)`` with beta = inf, taken example by example:

    repeat for each example i:
        y_1 .. y_k = the k outputs of highest  w . F(x_i, y) + gamma l_i(y)
        w <- argmin_u  1/2 ||u - w||^2 + C_i xi    such that    u . dF_i(y_j) >= gamma l_i(y_j) - xi for all j,    xi >= 0
    return the average of all w

The inner problem is solved in its dual, over one multiplier per margin,

    max_alpha  b . alpha - 1/2 alpha' K alpha    such that    alpha >= 0,    sum_j alpha_j <= C_i,                           (D)
    b_j = gamma l_i(y_j) - w . dF_i(y_j),    K_jk = dF_i(y_j) . dF_i(y_k),    u = w + sum_j alpha_j dF_i(y_j).

Hildreth's method moves one multiplier at a time, which is right while the bound C_i is slack and stops short of the
solution once it is not. So the mass C_i - sum_j alpha_j not yet spent is a multiplier of its own (that of xi >= 0, whose
margin is 0), and a step moves mass from one multiplier to another, always between the pair that violates optimality most:

    repeat:  g = b - K alpha, and g = 0 for the unspent mass
             up = argmax g,  down = argmin g over multipliers with mass;  stop at  g_up - g_down <= tol max|b|
             move  min{ mass of down, (g_up - g_down) / ||dF(y_up) - dF(y_down)||^2 }  from down to up

Steps from and to the unspent mass are exactly Hildreth's. With k = 1 there is one step, and it is that of 1-best MIRA.

Cost of an epoch: one k-best oracle call per example, k (k + 1) / 2 inner products of sparse differences, O(k) per inner
step. Memory: w, its average, two sparse scratch vectors.

References
----------
R. McDonald, K. Crammer, F. Pereira (2005). Online large-margin training of dependency parsers. ACL.
Y. Censor, S. A. Zenios (1997). Parallel optimization, section 6.4 (Hildreth's algorithm).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from partwise import kernels
from partwise.engine.accumulator import Accumulator, accumulator
from partwise.engine.compilation import compiled_loop, helper
from partwise.losses.in_loops import Maximum, score_augmented
from partwise.solvers.online import OnlineSolver, OnlineState
from partwise.solvers.weights import add, count_step


class Margins(NamedTuple):
    """Scratch memory for the inner problem of one example."""

    ys: np.ndarray  #: (k, longest) outputs
    b: np.ndarray  #: (k,) violations
    products: np.ndarray  #: (k, k) K
    alpha: np.ndarray  #: (k,) multipliers
    g: np.ndarray  #: (k,) gradient of (D)
    second: Accumulator


@helper
def solve_margins(K, b, n, C, tol, max_steps, alpha, g):
    """Maximise (D) over the first n multipliers, into `alpha`."""
    scale = 0.0
    for j in range(n):
        alpha[j] = 0.0
        g[j] = b[j]
        scale = max(scale, abs(b[j]))
    unspent = C
    for _ in range(max_steps):
        # -1 stands for the unspent mass
        up, down, highest, lowest = -1, -1, 0.0, 0.0
        if unspent <= 0.0:
            lowest = np.inf
        for j in range(n):
            if g[j] > highest:
                up, highest = j, g[j]
            if alpha[j] > 0.0 and g[j] < lowest:
                down, lowest = j, g[j]
        if highest - lowest <= tol * scale:
            return
        curvature = 0.0
        if up >= 0:
            curvature += K[up, up]
        if down >= 0:
            curvature += K[down, down]
        if up >= 0 and down >= 0:
            curvature -= 2.0 * K[up, down]
        mass = alpha[down] if down >= 0 else unspent
        # equal features, unequal costs: a gain without curvature, so all the mass moves
        step = min(mass, (highest - lowest) / curvature) if curvature > 0.0 else mass
        if up >= 0:
            alpha[up] += step
        else:
            unspent += step
        if down >= 0:
            alpha[down] = mass - step
        else:
            unspent = mass - step
        for j in range(n):
            if up >= 0:
                g[j] -= step * K[j, up]
            if down >= 0:
                g[j] += step * K[j, down]


@compiled_loop
def kbest_mira_pass(problem, gamma, order, C, weights, work, margins, tol, max_steps):
    """Visit the examples in `order`; returns sum_i C_i L_i as seen."""
    total = 0.0
    for i in order:
        theta = work.theta[: kernels.n_parts(problem, i)]
        length = kernels.length(problem, i)
        ys, target = margins.ys[:, :length], work.t[:length]
        reference = score_augmented(problem, i, weights.v, 1.0, gamma, theta, target)
        n = kernels.kbest(problem, i, theta, ys, margins.b)
        for j in range(n):
            margins.b[j] -= reference
        if margins.b[0] > 0.0:
            kernels.gram(problem, i, target, ys, n, margins.products, margins.second, work.gradient)
            solve_margins(margins.products, margins.b, n, C[i], tol, max_steps, margins.alpha, margins.g)
            for j in range(n):
                if margins.alpha[j] > 0.0:
                    kernels.difference(problem, i, target, ys[j], margins.alpha[j], work.gradient)
            if work.gradient.count[0] > 0:
                total += C[i] * margins.b[0]
                add(weights, 1.0, work.gradient)
        count_step(weights)
    return total


@dataclass
class KBestState(OnlineState):
    """An OnlineState with memory for the inner problem."""

    margins: Margins | None = None


@dataclass(frozen=True)
class KBestMIRA(OnlineSolver):
    """k-best MIRA (see the module).

    Parameters
    ----------
    k : int
        Margins looked at per example. 1 is 1-best MIRA; 5 is what parsers use.
    tol : float
        Relative accuracy of the inner problem.
    max_steps : int
        Most steps of the inner problem per example.

    Examples
    --------
    >>> from partwise import multiclass_problem, solve
    >>> problem = multiclass_problem([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0, 1, 0])
    >>> result = solve(problem, "hinge", KBestMIRA(), C=1.0, max_epochs=20)
    >>> result.solver.name, result.w.shape
    ('kbest_mira', (4,))
    """

    name = "kbest_mira"
    default_epochs = 20
    needs = (kernels.kbest,)
    accepted = "max-margin losses L(inf, gamma)"

    k: int = 5
    tol: float = 1e-9
    max_steps: int = 1000

    def __post_init__(self):
        super().__post_init__()
        for parameter in ("k", "max_steps"):
            value = getattr(self, parameter)
            if not (isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= 1):
                raise ValueError(
                    f"The {parameter!r} parameter of KBestMIRA must be an int in the range [1, inf). Got {value!r} instead."
                )
        if not (isinstance(self.tol, int | float) and 0 < self.tol < 1):
            raise ValueError(f"The 'tol' parameter of KBestMIRA must be a float in the range (0, 1). Got {self.tol!r} instead.")

    def accepts(self, loss):
        return isinstance(loss.kernel, Maximum)

    def init(self, task, start=None):
        state = super().init(task, start)
        second = accumulator(kernels.n_weights(task.problem), kernels.width(task.problem), task.dtype)
        k, longest = int(self.k), len(state.work.y)
        margins = Margins(np.zeros((k, longest), np.int32), np.zeros(k), np.zeros((k, k)), np.zeros(k), np.zeros(k), second)
        return KBestState(**vars(state), margins=margins)

    def visit(self, task, state, order):
        gamma, tol, steps = float(task.loss.gamma), float(self.tol), int(self.max_steps)
        return kbest_mira_pass(task.problem, gamma, order, task.C, state.weights, state.work, state.margins, tol, steps)
