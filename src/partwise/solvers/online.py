"""What the solvers that visit one example at a time have in common."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np

from partwise import kernels
from partwise.engine.accumulator import compact
from partwise.losses.in_loops import Workspace, workspace
from partwise.objective import Value
from partwise.solvers.base import Progress, Solver, State, Task
from partwise.solvers.weights import STEPS, SUM, Weights, averaged, current, make_weights


@dataclass
class OnlineState(State):
    """Weights in the making and scratch memory."""

    weights: Weights | None = None
    work: Workspace | None = None


@dataclass(frozen=True)
class OnlineSolver(Solver):
    """An epoch is one visit to every example, in an order drawn from the seed.

    Parameters
    ----------
    average : bool
        Return the average of all iterates rather than the last one.
    average_power : float >= 0
        The average takes w_t with weight t^average_power: 0 is the plain average, which remembers its bad beginnings; a positive
        power forgets them sooner (Shamir and Zhang 2013) and costs nothing more.
    """

    model_suffices = True
    scheduled: ClassVar[bool] = False  #: whether steps follow a schedule for all examples, rather than each its own loss

    average: bool = True
    average_power: float = 0.0

    def __post_init__(self):
        if not (isinstance(self.average_power, int | float) and 0 <= self.average_power < math.inf):
            raise ValueError(
                f"The 'average_power' parameter of {type(self).__name__} must be a float in the range [0, inf). "
                f"Got {self.average_power!r} instead."
            )

    def visit(self, task: Task, state: Any, order: np.ndarray) -> float:
        """Visit the examples in `order`; returns sum_i C_i L_i as seen on the way."""
        raise NotImplementedError

    def visit_slice(self, task: Task, state: Any, order: np.ndarray) -> float:
        """`visit` them by whoever is there: one thread."""
        return self.visit(task, state, order)

    def init(self, task: Task, start: np.ndarray | None = None) -> Any:
        size = kernels.n_weights(task.problem)
        weights = make_weights(size, task.dtype, self.average, start, self.average_power, task.lists)
        return OnlineState(weights=weights, work=self.workspace(task))

    def going_on(self, task: Task, start: np.ndarray, numbers: dict[str, Any]) -> Any:
        """A state at `start` with these numbers, without what only a beginning needs."""
        state = self.init(task, start)
        for name, value in numbers.items():
            setattr(state, name, value)
        return state

    def workspace(self, task: Task) -> Any:
        """Scratch memory for the examples of a task."""
        work = workspace(task.problem, task.dtype)
        return work._replace(gradient=cast(Any, compact(work.gradient)))

    def epoch(self, task: Task, state: Any) -> Progress:
        loss = 0.0
        for order in task.slices(state.epochs):
            order = order[task.C[order] > 0.0]  # an example of no weight is not there: it moves neither w nor the average
            loss += self.visit_slice(task, state, order)
            state.oracle_calls += len(order)
        state.epochs += 1
        return Progress(loss)

    def retarget(self, before: Task, task: Task, state: Any, changed: np.ndarray) -> Any:
        """Weights and learning rates go on; the average begins anew, without the iterates of another problem."""
        if self.average:
            state.weights.u[:] = 0.0
            state.weights.numbers[[SUM, STEPS]] = 0.0
        return state

    def weights(self, state: Any) -> np.ndarray:
        return averaged(state.weights) if self.average else current(state.weights)

    def bounds(self, task: Task, state: Any) -> Value:
        return self.value_at(task, state, self.weights(state))

    def current(self, state: Any) -> np.ndarray:
        return current(state.weights)

    def finish(self, state: Any) -> np.ndarray:
        weights, state.weights, state.work = state.weights, None, None
        return averaged(weights, out=weights.u) if self.average else current(weights, out=weights.v)
