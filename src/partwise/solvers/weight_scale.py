"""The scale of weights that `lbfgs` and `owlqn` begin with: frequent features have more curvature than rare ones.

    F = sum_i C_i (grad L_i)^2 at w = 0, entry by entry,    D_j = (1 + F_j)^(1/3)

F tells frequent from rare; of it a root, for it is the curvature of the beginning, which fades as the model becomes sure of what
is frequent. On WNUT-17 anything from a quarter to a half does about as well; two thirds begin well and end late. A smaller root
is slower at first and quicker at last; so `lbfgs` takes a smaller one later, and `owlqn`, whose weights are to become zero, a
larger one.

Cost: one pass over the examples, with gradients. Memory: 8 bytes a weight while it is found, 4 for good.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from partwise import kernels
from partwise.engine.accumulator import clear, row, touched
from partwise.engine.compilation import compiled_loop
from partwise.engine.threads import parts_elsewhere
from partwise.losses.in_loops import add_gradient, evaluate, workspace
from partwise.losses.records import Loss
from partwise.objective import SLICE, spans, summed
from partwise.solvers.base import Task

ROOT = 1.0 / 3.0  # of the curvature at w = 0, for D
SMALLEST = 1e-12  # scale, of features whose squares are beyond the range of numbers


@compiled_loop
def squares_pass(problem, loss, first, last, C, w, work, squares):
    """squares += sum_i C_i grad L_i(w)^2, entry by entry, for first <= i < last."""
    for i in range(first, last):
        if C[i] > 0.0 and evaluate(loss, problem, i, w, 1.0, work) > 0.0:
            add_gradient(loss, problem, i, work, 1.0, work.gradient)
            a = work.gradient
            for k in range(a.count[0]):
                value, into = touched(a, k), row(squares, a.rows[k], a.width)
                for j in range(a.width):
                    into[j] += C[i] * value[j] * value[j]
            clear(a)


def squares_of_part(part: Any, C: np.ndarray, loss: Loss, w: np.ndarray) -> np.ndarray:
    """What `squares_pass` finds in some of the examples, where they are."""
    return squared_gradients(part, loss, np.ascontiguousarray(C), w, None, [])


def squared_gradients(problem: Any, loss: Loss, C: np.ndarray, w: np.ndarray, n_jobs: Any, pool: list[np.ndarray]) -> np.ndarray:
    """sum_i C_i grad L_i(w)^2, entry by entry."""
    if (parts := parts_elsewhere(n_jobs, problem)) is not None:
        return parts.total(np.add, squares_of_part, loss, w, pieces=n_jobs.cut(C))

    def add(first: int, last: int, squares: np.ndarray) -> None:
        work = workspace(problem, w.dtype)
        for start in range(first, last, SLICE):
            squares_pass(problem, loss.kernel, start, min(start + SLICE, last), C, w, work, squares)

    return summed(problem, add, n_jobs, pool)


def scaling(task: Task, pool: list[np.ndarray]) -> np.ndarray:
    """D^-1/2 of the module, float32."""
    zero = np.zeros(kernels.n_weights(task.problem), task.dtype)
    squares = squared_gradients(task.problem, task.loss, task.C, zero, task.n_jobs, pool)
    pool.append(squares)
    return np.maximum((1.0 + squares) ** (-0.5 * ROOT), SMALLEST).astype(np.float32)


def scaled_square(gradient: np.ndarray, scale: np.ndarray) -> float:
    """||scale * gradient||^2."""
    return sum(float(np.square(gradient[a:b] * scale[a:b]).sum()) for a, b in spans(len(gradient)))
