"""SGD: stochastic (sub)gradient descent for every L(beta, gamma), with Martins' schedule and an automatic learning rate.

Problem: (P) divided by ``sum_i C_i = 1 / lambda``, which is the form in which learning rates are usually given,

    min_w  lambda / 2 ||w||^2 + 1/N sum_i c_i L_i(w),    c_i = C_i N lambda    (lambda = 1 / (N C), c_i = 1 if all C_i = C),

    repeat for t = 1, 2, ..., example i:
        eta_t = eta / (1 + (t - 1) / N)
        w <- (1 - eta_t lambda) w - eta_t c_i dL_i(w)
    return the average of all w, w_t with weight t^average_power

(Martins et al. 2010, section 5; the schedule is LeCun's.) With ``eta="auto"``, eta is chosen as there: one epoch for each
eta on a grid of powers of ten, on nine tenths of the examples, judged by the loss on the last tenth; the grid goes on while
its end is best. Only the seed decides which tenth. Fewer than 1000 examples are gone through until there have been 1000
steps, and the objective on all of them judges: a tenth of few examples is noise, and after several epochs held-out data
would prefer a rate that stops short of the optimum.

SGD has no certificate of its own: it stops after `max_epochs` or on held-out data. For finite beta the gap that `objective`
computes is tight, so ``evaluate="epoch"`` can stop it at a tolerance. It converges like t^-min(1, 2 eta / C): an eta far
below C fits quickly and then creeps.

Cost of an epoch: one oracle call per example and O(touched weights); the choice of eta costs about seven epochs. Memory: w
and its average.

References
----------
A. F. T. Martins et al. (2010). Aggressive online learning of structured classifiers. CMU-ML-10-109.
Y. LeCun, L. Bottou, Y. Bengio, P. Haffner (1998). Gradient-based learning applied to document recognition. Proc. IEEE 86.
O. Shamir, T. Zhang (2013). Stochastic gradient descent for non-smooth optimization. ICML (polynomial-decay averaging).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from partwise.engine.compilation import compiled_loop
from partwise.losses.in_loops import add_gradient, evaluate
from partwise.solvers.base import SLICE, Task
from partwise.solvers.online import OnlineSolver, OnlineState
from partwise.solvers.weights import SCALE, add, averaged, enter, make_weights, shrink

GRID = (-3, 2)  # exponents of ten that are tried, first and last: those of Martins et al.
FARTHEST = 6  # how many more, at each end
FEW = 1000  # examples, below which a tenth of them and a single epoch tell too little
TINY = 1e-300


@compiled_loop
def sgd_pass(problem, loss, order, C, weights, work, n, decay, eta, t, power):
    """Visit the examples in `order` as steps t + 1, t + 2, .. with lambda = `decay`; returns sum_i C_i L_i as seen."""
    total = 0.0
    for i in order:
        step = eta / (1.0 + t / n)
        t += 1
        value = evaluate(loss, problem, i, weights.v, weights.numbers[SCALE], work)
        if value >= 0.0:  # below zero it is the error of an approximate oracle
            total += C[i] * value
            add_gradient(loss, problem, i, work, 1.0, work.gradient)
        shrink(weights, 1.0 - step * decay)
        add(weights, -step * C[i] * n * decay, work.gradient)
        enter(weights, (t / n) ** power)
    return total


@dataclass
class StochasticState(OnlineState):
    """An OnlineState that counts steps, and the learning rate in use (nan: not chosen yet)."""

    steps: int = 0
    eta: float = math.nan


@dataclass(frozen=True)
class StochasticSolver(OnlineSolver):
    """What SGD and Pegasos have in common: the plain average forgets bad beginnings only like log(t) / t, a power like 1 / t."""

    takes = "gradients"
    scheduled = True

    average_power: float = 2.0

    def epoch(self, task, state):
        # an epoch without losses settles nothing: the regulariser goes on shrinking w, so claim no convergence
        return super().epoch(task, state)._replace(estimate=math.inf)


@dataclass(frozen=True)
class SGD(StochasticSolver):
    """Stochastic gradient descent (see the module).

    Parameters
    ----------
    eta : "auto" or float
        Initial learning rate, below 1 / lambda = sum_i C_i.

    Examples
    --------
    >>> from partwise import multiclass_problem, solve
    >>> problem = multiclass_problem([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0, 1, 0])
    >>> result = solve(problem, "crf", SGD(), C=1.0, max_epochs=20)
    >>> result.solver.name, result.w.shape
    ('sgd', (4,))
    """

    name = "sgd"
    default_epochs = 50

    eta: Any = "auto"

    def __post_init__(self):
        super().__post_init__()
        if self.eta != "auto" and not (isinstance(self.eta, int | float) and 0 < self.eta < math.inf):
            raise ValueError(
                f"The 'eta' parameter of SGD must be 'auto' or a float in the range (0, inf). Got {self.eta!r} instead."
            )

    def init(self, task, start=None):
        if self.eta != "auto" and self.eta >= task.C.sum() > 0:
            raise ValueError(
                f"The 'eta' parameter of SGD must be below the sum of all C, {task.C.sum():g}. Got {self.eta!r} instead."
            )
        eta = math.nan if self.eta == "auto" else float(self.eta)
        return StochasticState(**vars(super().init(task, start)), eta=eta)

    def epoch(self, task, state):
        if math.isnan(state.eta):
            state.eta = self.choose_eta(task, state)
        return super().epoch(task, state)

    def visit(self, task, state, order):
        loss = self.advance(task, order, state.weights, state.work, state.eta, state.steps)
        state.steps += len(order)
        return loss

    def advance(self, task, order, weights, work, eta, t):
        """Steps t + 1, t + 2, .. of the algorithm on `weights`; returns the losses seen. With eta = 0 the weights stay."""
        n, decay, power = float(np.count_nonzero(task.C)), 1.0 / max(task.C.sum(), TINY), float(self.average_power)
        return sgd_pass(task.problem, task.loss.kernel, order, task.C, weights, work, n, decay, eta, t, power)

    def choose_eta(self, task: Task, state: StochasticState) -> float:
        """The eta on the grid whose first epoch ends lowest on held-out examples (see the module)."""
        total = task.C.sum()
        if total == 0.0:
            return 1.0
        shuffled = np.random.default_rng((task.seed, len(GRID))).permutation(np.flatnonzero(task.C))
        few = len(shuffled) < FEW
        held = shuffled if few else shuffled[: len(shuffled) // 10]
        kept = shuffled if few else shuffled[len(held) :]
        kept = np.tile(kept if task.shuffle else np.sort(kept), -(-FEW // len(kept)) if few else 1)

        def value(eta: float) -> float:
            weights = make_weights(len(state.weights.v), task.dtype, self.average, state.weights.v)
            for t in range(0, len(kept), SLICE):
                self.advance(task, kept[t : t + SLICE], weights, state.work, eta, t)
            w = averaged(weights)
            loss = self.advance(task, held, make_weights(len(w), task.dtype, False, w), state.work, 0.0, 0)
            state.oracle_calls += len(kept) + len(held)
            result = loss / task.C[held].sum() + (0.5 * float(w @ w) / total if few else 0.0)
            return result if math.isfinite(result) else math.inf

        low, high = GRID
        high = min(high, math.ceil(math.log10(total)) - 1)  # eta lambda < 1
        low = min(low, high)
        with np.errstate(over="ignore", invalid="ignore"):
            values = {a: value(10.0**a) for a in range(low, high + 1)}
            while min(values, key=values.__getitem__) == low and low > GRID[0] - FARTHEST:
                low -= 1
                values[low] = value(10.0**low)
            while min(values, key=values.__getitem__) == high and 10.0 ** (high + 1) < total and high < GRID[1] + FARTHEST:
                high += 1
                values[high] = value(10.0**high)
        return 10.0 ** min(values, key=values.__getitem__)
