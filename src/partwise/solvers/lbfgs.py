"""L-BFGS: limited-memory quasi-Newton descent on the whole training set, for every smooth loss (finite beta).

Problem: ``min_w P(w) = 1/2 ||w||^2 + sum_i C_i L_i(w)``. With g = grad P and the m last steps s = w' - w and gradient changes
y = g' - g,

    repeat:
        d = -H g                      H: the BFGS matrix of the pairs (s, y) and gamma D^-1, gamma = s.y / y.D^-1 y of the newest
        find t with  P(w + t d) <= P(w) + c1 t g.d  and  |g(w + t d).d| <= c2 |g.d|     (strong Wolfe; t = 1 nearly always)
        w <- w + t d; the new pair replaces the oldest

**The scale of weights** (D) is that of `partwise.solvers.weight_scale`, from one pass over the examples at w = 0: frequent
features have a thousand times the curvature of rare ones, and m pairs are few to learn that from. All below is L-BFGS with D = I
in the variables D^1/2 w. It is the curvature of the beginning, so it is let go of in two stages, once an iteration lowers P by
less than a hundredth and less than 0.3 % of P (`LATE`): D^1/2, then I. By then the pairs know more of the curvature. (Found on
the first 600 training sentences of CoNLL-2002 Spanish and Dutch, where keeping D takes 172 and 96 iterations to the optimum, and
this 110 and 61, and on WNUT-17; ``python -m benchmarks.crfsuite_curves`` has the objective, iteration by iteration.)

The stopping rule is a certificate, not a guess: P(w) - D = 1/2 ||g||^2 (see `partwise.objective`), known after every iteration
without another pass. A partially labelled problem is not convex: there 1/2 ||g||^2 certifies a stationary point only.

The pairs and the vector work with them are those of `partwise.solvers.quasi_newton`.

Cost of an iteration: one oracle call per example (more only if t = 1 fails) and about 2m + 5 vectors of length d read. Memory:
2m d floats of 4 bytes and 5 d of 8.

References
----------
J. Nocedal, S. J. Wright (2006). Numerical optimization, 2nd ed., algorithms 3.5, 3.6 and 7.4.
W. W. Hager, H. Zhang (2005). A new conjugate gradient method with guaranteed descent and an efficient line search. SIAM J. Optim.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from partwise.engine.compilation import compiled_loop
from partwise.engine.threads import in_threads
from partwise.objective import Value, is_convex, objective, spans
from partwise.solvers.base import Progress, Task
from partwise.solvers.quasi_newton import QuasiNewton, QuasiNewtonState, learn, move, told_anew
from partwise.solvers.weight_scale import scaled_square, scaling

DECREASE, CURVATURE = 1e-4, 0.9  # c1 and c2
#: stage: the fall of P, relative to it, at which the next one begins, and the power of D^-1/2 that is its scale
LATE = {0: (1e-2, 0.5), 1: (3e-3, 0.0)}
NEVER = (-math.inf, 1.0)


@compiled_loop
def rescale(to, w, ratio, first, last):
    """to = w + ratio * (to - w), for weights in [first, last)."""
    for j in range(first, last):
        to[j] = w[j] + ratio * (to[j] - w[j])


class Trial(NamedTuple):
    """A point of the line search: P(w + step d) and its derivative in `step`."""

    step: float
    value: float
    slope: float


class LineSearch:
    """Steps until one fulfils the strong Wolfe conditions; knows nothing of vectors.

    `low` is the lowest trial so far that decreases enough; the minimum lies between it and `high`, once there is one. Differences
    of values below `noise`, their rounding error, mean nothing: then slopes, which are far more exact, tell up from down.
    """

    def __init__(self, start: Trial, most: int, noise: float = 0.0):
        self.start = self.before = self.low = start
        self.high: Trial | None = None
        self.left, self.noise = most, noise

    def next(self, here: Trial) -> float:
        """What to try after the trial `here`: a step, `here.step` itself to accept it, or 0 to give up."""
        self.left -= 1
        if self.accepts(here):
            return here.step
        if not here.value <= min(self.enough(here.step), self.low.value) + self.noise:
            self.high = here
        else:
            if here.slope >= 0.0 if self.high is None else here.slope * (self.high.step - self.low.step) >= 0.0:
                self.high = self.low
            self.before, self.low = self.low, here
        if self.left <= 1:  # any decrease is better than none: go back to the lowest trial, or stay there
            return self.low.step if self.left == 1 or here.step == self.low.step else 0.0
        return self.guess()

    def enough(self, step: float) -> float:
        """The value that counts as a decrease."""
        return self.start.value + DECREASE * step * self.start.slope

    def accepts(self, here: Trial) -> bool:
        """Strong Wolfe; or, within the noise, Hager & Zhang's approximate Wolfe: the decrease of a parabola with these slopes."""
        start = self.start
        flat = abs(here.slope) <= -CURVATURE * start.slope
        close = here.value <= start.value + self.noise and here.slope <= (2.0 * DECREASE - 1.0) * start.slope
        return flat and (here.value <= self.enough(here.step) or close)

    def guess(self) -> float:
        """The minimum of the cubic through two trials, kept well inside the bracket; twice to ten times as far without one."""
        low, high = self.low, self.high
        guess = cubic_minimum(low, self.before if high is None else high)
        if high is None:
            return min(max(guess, 2.0 * low.step), 10.0 * low.step) if math.isfinite(guess) else 10.0 * low.step
        width = high.step - low.step
        if not math.isfinite(guess):
            return low.step + 0.1 * width  # beyond the range of numbers: come back quickly
        return low.step + min(max((guess - low.step) / width, 0.1), 0.9) * width


def cubic_minimum(a: Trial, b: Trial) -> float:
    """Minimum of the cubic with the values and slopes of both trials; nan if it has none."""
    if a.step == b.step or not all(map(math.isfinite, (*a, *b))):
        return math.nan
    theta = a.slope + b.slope - 3.0 * (a.value - b.value) / (a.step - b.step)
    square = theta * theta - a.slope * b.slope
    if not 0.0 <= square < math.inf:
        return math.nan
    root = math.copysign(math.sqrt(square), b.step - a.step)
    below = b.slope - a.slope + 2.0 * root
    return b.step - (b.step - a.step) * (b.slope + root - theta) / below if below else math.nan


@dataclass
class LBFGSState(QuasiNewtonState):
    """Where it is, and how far the scale is let go of."""

    stage: int = 0


@dataclass(frozen=True)
class LBFGS(QuasiNewton):
    """Limited-memory BFGS with fused vector work (see the module); one epoch is one iteration.

    Parameters
    ----------
    memory : int
        Pairs (s, y) to remember; each costs 8 bytes per weight.
    max_evaluations : int
        Most points that one line search may try.

    Examples
    --------
    >>> from partwise import multiclass_problem, solve
    >>> problem = multiclass_problem([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0, 1, 0])
    >>> result = solve(problem, "crf", LBFGS(), C=1.0, max_epochs=20)
    >>> result.solver.name, result.w.shape
    ('lbfgs', (4,))
    """

    name = "lbfgs"
    default_epochs = 500
    state = LBFGSState

    def bounds(self, task: Task, state: LBFGSState) -> Value:
        """Value at the current point, known already; the gradient is the state's own, which the next epoch will overwrite."""
        if state.gradient is None:
            self.evaluate_start(task, state)
        dual = state.primal - state.residual if is_convex(task.problem, task.loss) else math.nan
        return Value(state.primal, dual, state.gradient, state.residual)

    def retarget(self, before: Task, task: Task, state: LBFGSState, changed: np.ndarray) -> LBFGSState:
        """The curvature that was seen is that of the convex half, which stays; the gradient does not."""
        state.gradient, state.fall, state.exhausted = None, math.inf, False
        return state

    def evaluate_start(self, task: Task, state: LBFGSState) -> None:
        """Value and gradient at the weights to start from; the scale, if there is none yet."""
        if not state.scale.any():
            state.scale = scaling(task, state.pool)
            state.oracle_calls += task.n
        value = objective(task.problem, task.loss, task.C, state.w, task.n_jobs, state.pool)
        loss = value.primal - 0.5 * float(state.w @ state.w)
        known = {"gradient": value.gradient, "primal": value.primal, "residual": value.residual, "loss": loss}
        known["scaled"] = scaled_square(value.gradient, state.scale)
        state.__dict__.update(known, oracle_calls=state.oracle_calls + task.n)

    def epoch(self, task: Task, state: LBFGSState) -> Progress:
        if state.gradient is None:
            self.evaluate_start(task, state)
        fall, power = LATE.get(state.stage, NEVER)
        if state.fall <= fall:
            known = told_anew(state.memory, state.scale, state.scale**power, state.gradient)
            state.__dict__.update(known, stage=state.stage + 1)
        self.iterate(task, state)
        state.epochs += 1
        return Progress(state.loss, state.residual)

    def descend(self, task: Task, state: LBFGSState) -> bool:
        w, to, memory, old = state.w, state.trial, state.memory, state.gradient
        direction = memory.direction(state.scaled, state.primal) if state.residual else None
        noise = 10.0 * float(np.finfo(w.dtype).eps) * abs(state.primal)
        if direction is None or not -direction.slope > 0.01 * noise:
            return False
        ranges = spans(len(w))

        def for_ranges(loop, *arguments):
            return in_threads(lambda span: loop(*arguments, *span), ranges, task.n_jobs)

        for_ranges(move, to, w, old, state.scale, direction.c_gradient, memory.pairs, direction.rows, direction.c)
        slot = memory.free()
        rows = np.array([*memory.rows(), 2 * slot, 2 * slot + 1], np.int64)
        search = LineSearch(Trial(0.0, state.primal, direction.slope), self.max_evaluations, noise)
        step = 1.0
        while step > 0.0:
            value = objective(task.problem, task.loss, task.C, to, task.n_jobs, state.pool)
            state.oracle_calls += task.n
            new = value.gradient
            # on the chance that the step is right: its products give the slope too
            found = for_ranges(learn, to, w, new, old, new, state.scale, memory.pairs, slot, rows)
            norms, squares, products = zip(*found, strict=True)
            total = sum(products)
            wanted = search.next(Trial(step, value.primal, total[-2, 0] / step))
            if wanted == step:
                # in one stroke: an interrupt must not find a new point beside an old gradient
                state.__dict__.update(
                    w=to,
                    trial=w,
                    gradient=value.gradient,
                    pool=[*state.pool, old],
                    primal=value.primal,
                    residual=value.residual,
                    fall=(state.primal - value.primal) / max(abs(value.primal), 1e-300),
                    loss=value.primal - 0.5 * sum(norms),
                    scaled=sum(squares),
                    memory=memory.after(slot, rows, total),
                )
                return True
            state.pool.append(value.gradient)
            for_ranges(rescale, to, w, wanted / step)
            step = wanted
        return False
