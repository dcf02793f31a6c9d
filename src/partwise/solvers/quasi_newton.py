"""What quasi-Newton solvers share: pairs of steps and changes of the gradient, and the vector work with them, fused.

With the m last steps s = w' - w and changes y = g' - g of the gradient, H is the BFGS matrix of the pairs (s, y) and gamma D^-1,
gamma = s.y / y.D^-1 y of the newest. The textbook's two-loop recursion for H g makes 4 m dependent passes over the weights. But
H g is a combination of the basis s_1 y_1 .. s_m y_m g, and its 2m + 1 coefficients follow from the products of these vectors
alone (Chen, Wang & Zhou 2014). So an iteration reads each stored vector twice: `learn` takes all products with the new gradient
and the new y in one go, `move` adds up w + d. The recursion itself is on m x m numbers.

**Pairs are kept in float32**: half the memory and half the traffic. That is safe because the products are those of the pairs
*as stored*, in float64: H is the exact BFGS matrix of those pairs, and any pairs with s.y > 0 make a positive definite H.
Rounding perturbs the metric in the eighth digit, never the point, the gradient or the certificate. (Here s.y >= ||s||^2 by
the regulariser, so pairs hardly ever fail.)

All that is in the variables D^1/2 w (`partwise.solvers.weight_scale`); `told_anew` tells the pairs in others.

References
----------
J. Nocedal, S. J. Wright (2006). Numerical optimization, 2nd ed., algorithm 7.4.
W. Chen, Z. Wang, J. Zhou (2014). Large-scale L-BFGS using MapReduce. NIPS.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from partwise import kernels
from partwise.engine.compilation import compiled_loop
from partwise.losses.records import Loss
from partwise.objective import BLOCK, spans
from partwise.solvers.base import Solver, State, Task
from partwise.solvers.weight_scale import scaled_square


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


@dataclass
class QuasiNewtonState(State):
    """The point, its gradient and value, the pairs, and scratch memory."""

    w: np.ndarray | None = None
    gradient: np.ndarray | None = None  #: of what has one
    primal: float = math.nan
    residual: float = math.nan  #: 1/2 ||gradient||^2, or of what stands for it
    loss: float = math.nan
    memory: Memory | None = None
    scale: np.ndarray | None = None  #: D^-1/2, float32
    scaled: float = 0.0  #: ||D^-1/2 gradient||^2; 0.0 before there is one
    fall: float = math.inf  #: by what share of it the last iteration lowered P
    exhausted: bool = False  #: no step decreases P any more: rounding errors are larger than what is left to gain
    trial: np.ndarray | None = None
    pool: list[np.ndarray] = field(default_factory=list)


@dataclass(frozen=True)
class QuasiNewton(Solver):
    """A solver that goes down along -H g (see the module); one epoch is one iteration.

    Parameters
    ----------
    memory : int
        Pairs (s, y) to remember; each costs 8 bytes per weight.
    max_evaluations : int
        Most points that one line search may try.
    """

    everywhere = True
    accepted = "smooth losses (finite beta, or squared and summed)"
    free_bounds = True
    takes = "gradients"
    state: ClassVar[type[QuasiNewtonState]] = QuasiNewtonState

    memory: int = 6
    max_evaluations: int = 20

    def __post_init__(self):
        for name in ("memory", "max_evaluations"):
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or value < 1:
                raise ValueError(
                    f"The {name!r} parameter of {type(self).__name__} must be an int in the range [1, inf). "
                    f"Got {value!r} instead."
                )

    def accepts(self, loss: Loss) -> bool:
        return loss.has_gradient

    def init(self, task: Task, start: np.ndarray | None = None) -> Any:
        d, m = kernels.n_weights(task.problem), self.memory
        w = np.zeros(d, task.dtype) if start is None else np.array(start, task.dtype)
        memory = Memory(np.zeros((2 * m, d), np.float32), [], np.zeros((2 * m, 2 * m)), np.zeros(2 * m))
        return self.state(w=w, trial=np.zeros(d, task.dtype), memory=memory, scale=np.zeros(d, np.float32))

    def weights(self, state: Any) -> np.ndarray:
        return state.w.copy()

    def descend(self, task: Task, state: Any) -> bool:
        """One line search along -H g; False if no lower point was found, and then the point has not moved."""
        raise NotImplementedError

    def iterate(self, task: Task, state: Any) -> None:
        """One line search that finds a lower point, unless there is none."""
        while not state.exhausted:
            along_gradient = not state.memory.slots
            if self.descend(task, state):
                break
            # rounding errors, or pairs from far away, have spoilt H: begin again along the gradient, and if that fails too, rest
            state.memory.slots, state.exhausted = [], along_gradient
