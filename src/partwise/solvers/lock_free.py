"""Threads that step on the same weights, without locks.

    each slice of the examples is dealt out to the threads
    each thread, for each of its examples:  w <- w + step(example, w as it finds it)

Where examples touch few weights, two threads seldom write the same one at the same time; when they do, one of the steps is lost,
in part (Niu et al. 2011). So the weights are nearly those of one thread, the order of visits being another, and they are never
the same twice: that is the price. It suits solvers whose step depends on the example and the weights alone. A scale that shrinks
all weights at every visit (sgd, pegasos) is written by all threads all the time, and what is lost of it is not made up for.

Weights are arrays: lists of what is not zero grow, and cannot grow in two places at once.

References
----------
F. Niu, B. Recht, C. Re, S. J. Wright (2011). Hogwild: a lock-free approach to parallelizing stochastic gradient descent. NIPS.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from partwise.engine.threads import in_threads
from partwise.losses.in_loops import Workspace
from partwise.solvers.base import Task
from partwise.solvers.online import OnlineSolver, OnlineState


@dataclass
class LockFreeState(OnlineState):
    """An OnlineState with scratch memory for more threads than one."""

    others: list[Workspace] | None = None


@dataclass(frozen=True)
class LockFreeSolver(OnlineSolver):
    """An online solver whose steps threads may take side by side (see the module).

    Parameters
    ----------
    average : bool
        Return the average of all iterates rather than the last one.
    average_power : float >= 0
        The average takes w_t with weight t^average_power.
    n_jobs : int >= 1
        Threads that step on the same weights. With more than one, two runs find two models, and neither is that of one thread.
    """

    n_jobs: int = 1

    def __post_init__(self):
        super().__post_init__()
        if not isinstance(self.n_jobs, int | np.integer) or isinstance(self.n_jobs, bool) or self.n_jobs < 1:
            raise ValueError(
                f"The 'n_jobs' parameter of {type(self).__name__} must be an int in the range [1, inf): threads that step on "
                f"the same weights. Got {self.n_jobs!r} instead."
            )

    def init(self, task: Task, start: np.ndarray | None = None) -> Any:
        state = LockFreeState(**vars(super().init(task, start)))
        if self.n_jobs > 1:
            state.others = [self.workspace(task) for _ in range(self.n_jobs - 1)]
        return state

    def visit_slice(self, task: Task, state: Any, order: np.ndarray) -> float:
        if not state.others:
            return self.visit(task, state, order)
        pieces = np.array_split(order, self.n_jobs)
        states = [state, *(dataclasses.replace(state, work=work) for work in state.others)]  # the same weights
        return sum(in_threads(lambda k: self.visit(task, states[k], pieces[k]), range(self.n_jobs), self.n_jobs))
