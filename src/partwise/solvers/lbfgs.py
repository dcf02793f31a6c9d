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

**The vector work is fused.** The textbook's two-loop recursion makes 4 m dependent passes over the weights. But d is a
combination of the basis s_1 y_1 .. s_m y_m g, and its 2m + 1 coefficients follow from the products of these vectors alone
(Chen, Wang & Zhou 2014). So an iteration reads each stored vector twice: `learn` takes all products with the new gradient and the
new y in one go, `move` adds up w + d. The recursion itself is on m x m numbers.

**Pairs are kept in float32**: half the memory and half the traffic. That is safe because the products are those of the pairs
*as stored*, in float64: H is the exact BFGS matrix of those pairs, and any pairs with s.y > 0 make a positive definite H.
Rounding perturbs the metric in the eighth digit, never the point, the gradient or the certificate. (Here s.y >= ||s||^2 by
the regulariser, so pairs hardly ever fail.)

Cost of an iteration: one oracle call per example (more only if t = 1 fails) and about 2m + 5 vectors of length d read. Memory:
2m d floats of 4 bytes and 5 d of 8.

References
----------
J. Nocedal, S. J. Wright (2006). Numerical optimization, 2nd ed., algorithms 3.5, 3.6 and 7.4.
W. Chen, Z. Wang, J. Zhou (2014). Large-scale L-BFGS using MapReduce. NIPS.
W. W. Hager, H. Zhang (2005). A new conjugate gradient method with guaranteed descent and an efficient line search. SIAM J. Optim.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from partwise import kernels
from partwise.engine.compilation import compiled_loop
from partwise.engine.threads import in_threads
from partwise.losses.records import Loss
from partwise.objective import BLOCK, Value, is_convex, objective, spans
from partwise.solvers.base import Progress, Solver, State, Task
from partwise.solvers.weight_scale import scaled_square, scaling

DECREASE, CURVATURE = 1e-4, 0.9  # c1 and c2
#: stage: the fall of P, relative to it, at which the next one begins, and the power of D^-1/2 that is its scale
LATE = {0: (1e-2, 0.5), 1: (3e-3, 0.0)}
NEVER = (-math.inf, 1.0)


@compiled_loop
def move(to, w, gradient, scale, c_gradient, pairs, rows, c, first, last):
    """to = w + scale * (c_gradient * scale * gradient + sum_k c[k] * pairs[rows[k]]), for weights in [first, last)."""
    sums = np.empty(BLOCK)
    for start in range(first, last, BLOCK):
        stop = min(start + BLOCK, last)
        total, to_block, w_block, g = sums[: stop - start], to[start:stop], w[start:stop], gradient[start:stop]
        r = scale[start:stop]
        for j in range(len(total)):
            total[j] = c_gradient * (float(r[j]) * g[j])
        for k in range(0, len(rows), 2):  # s and y at once: fewer visits to the sums
            s, y, c_s, c_y = pairs[rows[k], start:stop], pairs[rows[k + 1], start:stop], c[k], c[k + 1]
            for j in range(len(total)):
                total[j] += c_s * s[j] + c_y * y[j]
        for j in range(len(total)):
            to_block[j] = w_block[j] + float(r[j]) * total[j]


@compiled_loop
def rescale(to, w, ratio, first, last):
    """to = w + ratio * (to - w), for weights in [first, last)."""
    for j in range(first, last):
        to[j] = w[j] + ratio * (to[j] - w[j])


@compiled_loop
def learn(to, w, new, old, aim, scale, pairs, slot, rows, first, last):
    """Store s = (to - w) / scale, y = scale * (new - old) in rows 2 slot, 2 slot + 1 of `pairs`, for weights in [first, last).

    Returns ||to||^2, ||scale * aim||^2 and the products (pairs[rows[k]] . scale * aim, pairs[rows[k]] . y) of the vectors as
    stored, in that range. `aim` is what H will be applied to: the new gradient, or what stands for it where P has none.
    """
    differences, aims, products = np.empty(BLOCK), np.empty(BLOCK), np.zeros((len(rows), 2))
    norm, square = 0.0, 0.0
    for start in range(first, last, BLOCK):
        stop = min(start + BLOCK, last)
        s_stored, y_stored = pairs[2 * slot, start:stop], pairs[2 * slot + 1, start:stop]
        y, g_new, g_old = differences[: stop - start], new[start:stop], old[start:stop]
        g, aim_block, r = aims[: stop - start], aim[start:stop], scale[start:stop]
        to_block, w_block = to[start:stop], w[start:stop]
        total, total_g = 0.0, 0.0
        for j in range(len(y)):
            v = float(to_block[j])
            s_stored[j] = (v - w_block[j]) / r[j]
            total += v * v
        norm += total
        for j in range(len(y)):
            g[j] = float(r[j]) * aim_block[j]
        for j in range(len(y)):
            total_g += g[j] * g[j]
        square += total_g
        for j in range(len(y)):
            y_stored[j] = float(r[j]) * (g_new[j] - g_old[j])
        for j in range(len(y)):  # as stored
            y[j] = y_stored[j]
        for k in range(0, len(rows), 2):
            s, z = pairs[rows[k], start:stop], pairs[rows[k + 1], start:stop]
            s_new, s_y, z_new, z_y = 0.0, 0.0, 0.0, 0.0
            for j in range(len(y)):
                s_new += float(s[j]) * g[j]
                s_y += float(s[j]) * y[j]
                z_new += float(z[j]) * g[j]
                z_y += float(z[j]) * y[j]
            products[k, 0] += s_new
            products[k, 1] += s_y
            products[k + 1, 0] += z_new
            products[k + 1, 1] += z_y
    return norm, square, products


class Direction(NamedTuple):
    """A combination of stored vectors and the scaled gradient, and its slope g . d."""

    rows: np.ndarray
    c: np.ndarray
    c_gradient: float
    slope: float


@dataclass
class Memory:
    """The last pairs (s, y) in scaled variables, interleaved, and what the recursion needs of them: their products."""

    pairs: np.ndarray  #: (2m, d) float32: s of slot k in row 2k, y in row 2k + 1
    slots: list[int]  #: filled slots, oldest first
    products: np.ndarray  #: (2m, 2m) s_i . y_j for i no younger than j, and y_i . y_j
    against: np.ndarray  #: (2m,) each vector times the current gradient, scaled

    def check(self, like: Memory, task: Task) -> None:
        """Raise a ValueError, unless the slots of a memory that was read from a file are there, each once."""
        if len(set(self.slots)) != len(self.slots) or not set(self.slots) <= set(range(len(self.pairs) // 2)):
            raise ValueError(f"the memory has the slots {self.slots}")

    def rows(self) -> np.ndarray:
        """Rows of `pairs` in use."""
        return np.array([2 * k + j for k in self.slots for j in (0, 1)], np.int64)

    def free(self) -> int:
        """A slot for the next pair; the oldest pair goes if there is none."""
        m = len(self.pairs) // 2
        if len(self.slots) == m:
            self.slots = self.slots[1:]
        return next(k for k in range(m) if k not in self.slots)

    def direction(self, norm: float, value: float) -> Direction:
        """d = -H g by the two-loop recursion on coefficients, where norm = ||g||^2, scaled, and value = P(w); O(m^2).

        Without pairs: along -g, not farther than -g itself (the Hessian is at least I), than a step of length one, and than a
        parabola would need to fall to zero, since P >= 0.
        """
        c = np.zeros(len(self.pairs))
        if not self.slots:
            c_gradient = -min(1.0, 1.0 / math.sqrt(norm), 2.0 * value / norm)
            return Direction(self.rows(), c[:0], c_gradient, c_gradient * norm)
        alpha = np.zeros(len(self.pairs) // 2)
        for k in reversed(self.slots):  # q = g + sum c y
            s, y = 2 * k, 2 * k + 1
            alpha[k] = (self.against[s] + c @ self.products[s]) / self.products[s, y]
            c[y] -= alpha[k]
        newest = 2 * self.slots[-1]
        gamma = self.products[newest, newest + 1] / self.products[newest + 1, newest + 1]
        c *= gamma
        for k in self.slots:  # r = gamma g + sum c (s and y)
            s, y = 2 * k, 2 * k + 1
            beta = (gamma * self.against[y] + c @ self.products[y]) / self.products[s, y]
            c[s] += alpha[k] - beta
        slope = -(gamma * norm + c @ self.against)
        return Direction(self.rows(), -c[self.rows()], -gamma, float(slope))

    def after(self, slot: int, rows: np.ndarray, products: np.ndarray) -> Memory:
        """The memory once the pair in `slot` has been accepted, given its products with `rows` (see `learn`)."""
        s, y = 2 * slot, 2 * slot + 1
        table, against = self.products.copy(), np.zeros(len(self.pairs))
        table[[s, y]], table[:, [s, y]] = 0.0, 0.0
        product, norm = products[-2, 1], products[-1, 1]  # s.y and y.y
        if not product > np.finfo(float).eps * norm:  # no curvature, or out of the range of float32: forget the pair
            against[rows[:-2]] = products[:-2, 0]
            return Memory(self.pairs, self.slots, table, against)
        against[rows] = products[:, 0]
        table[rows, y] = table[y, rows] = products[:, 1]
        return Memory(self.pairs, [*self.slots, slot], table, against)


def told_anew(memory: Memory, scale: np.ndarray, new: np.ndarray, aim: np.ndarray) -> dict[str, Any]:
    """What a state will know with the scale `new` instead of `scale`: pairs told in the new variables. `aim`: the gradient."""
    factor = new.astype(np.float64) / scale
    pairs, products, against = memory.pairs.copy(), np.zeros_like(memory.products), np.zeros_like(memory.against)
    for a, b in spans(len(scale)):
        pairs[0::2, a:b] = pairs[0::2, a:b] / factor[a:b]
        pairs[1::2, a:b] = pairs[1::2, a:b] * factor[a:b]
        some = pairs[:, a:b].astype(np.float64)
        products += some @ some.T
        against += some @ (new[a:b] * aim[a:b])
    return {"scale": new, "memory": Memory(pairs, memory.slots, products, against), "scaled": scaled_square(aim, new)}


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
class LBFGSState(State):
    """The point, its gradient and value, the pairs, and scratch memory."""

    w: np.ndarray | None = None
    gradient: np.ndarray | None = None
    primal: float = math.nan
    residual: float = math.nan  #: 1/2 ||gradient||^2
    loss: float = math.nan
    memory: Memory | None = None
    scale: np.ndarray | None = None  #: D^-1/2, float32
    scaled: float = 0.0  #: ||D^-1/2 gradient||^2; 0.0 before there is one
    fall: float = math.inf  #: by what share of it the last iteration lowered P
    stage: int = 0  #: of letting go of the scale
    exhausted: bool = False  #: no step decreases P any more: rounding errors are larger than what is left to gain
    trial: np.ndarray | None = None
    pool: list[np.ndarray] = field(default_factory=list)


@dataclass(frozen=True)
class LBFGS(Solver):
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
    everywhere = True
    default_epochs = 500
    accepted = "smooth losses (finite beta, or squared and summed)"
    free_bounds = True
    takes = "gradients"

    memory: int = 6
    max_evaluations: int = 20

    def __post_init__(self):
        for name in ("memory", "max_evaluations"):
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or value < 1:
                raise ValueError(f"The {name!r} parameter of LBFGS must be an int in the range [1, inf). Got {value!r} instead.")

    def accepts(self, loss: Loss) -> bool:
        return loss.has_gradient

    def init(self, task: Task, start: np.ndarray | None = None) -> LBFGSState:
        d, m = kernels.n_weights(task.problem), self.memory
        w = np.zeros(d, task.dtype) if start is None else np.array(start, task.dtype)
        memory = Memory(np.zeros((2 * m, d), np.float32), [], np.zeros((2 * m, 2 * m)), np.zeros(2 * m))
        return LBFGSState(w=w, trial=np.zeros(d, task.dtype), memory=memory, scale=np.zeros(d, np.float32))

    def weights(self, state: LBFGSState) -> np.ndarray:
        return state.w.copy()

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
        while not state.exhausted:
            along_gradient = not state.memory.slots
            if self.descend(task, state):
                break
            # rounding errors, or pairs from far away, have spoilt H: begin again along the gradient, and if that fails too, rest
            state.memory.slots, state.exhausted = [], along_gradient
        state.epochs += 1
        return Progress(state.loss, state.residual)

    def descend(self, task: Task, state: LBFGSState) -> bool:
        """One line search along -H g; False if no lower point was found, and then the point has not moved."""
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
