"""Streamed: an online solver over examples that come in parts, none of which stays in memory.

An epoch is one pass over the parts, in their order, and over the examples of a part, in theirs::

    repeat for each part:  pack it;  repeat for each of its examples i:  one step of the solver

A step depends on the weights and on its example alone, so the result is the same, bit for bit, however the examples are cut into
parts. The price is that examples are not shuffled: if a file is sorted (by source, by date), shuffle it once.

Cost: that of the solver and of packing every part anew in each epoch; memory: the weights and one part.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from partwise import kernels
from partwise.losses.records import Loss
from partwise.objective import SLICE, Value
from partwise.solvers.base import Progress, Solver, Task
from partwise.solvers.dca import DCA
from partwise.solvers.mira import MIRA
from partwise.solvers.online import OnlineSolver
from partwise.solvers.perceptron import Perceptron

STEPWISE = (DCA, MIRA, Perceptron)  # solvers whose steps need to know nothing of the other examples, not even their number


@dataclass(frozen=True)
class Streamed(Solver):
    """`solver` over the problems that `parts()` gives, all of the same model (see the module).

    Parameters
    ----------
    solver : OnlineSolver
        dca, mira or perceptron. Others have learning rates or memory that depend on all examples.
    parts : function
        Called once an epoch; returns the parts, packed problems.
    C : float
    """

    solver: OnlineSolver
    parts: Callable[[], Iterable[Any]]
    C: float

    def __post_init__(self):
        if not isinstance(self.solver, STEPWISE):
            able = ", ".join(repr(kind.name) for kind in STEPWISE)
            raise ValueError(f"Solver {self.solver.name!r} cannot train on a stream. Solvers that can: {able}.")

    @property
    def name(self) -> str:  # type: ignore[override]
        """That of the solver."""
        return self.solver.name

    @property
    def default_epochs(self) -> int:  # type: ignore[override]
        """Those of the solver."""
        return self.solver.default_epochs

    def accepts(self, loss: Loss) -> bool:
        return self.solver.accepts(loss)

    def init(self, task: Task, start: np.ndarray | None = None) -> Any:
        return self.solver.init(task, start)

    def epoch(self, task: Task, state: Any) -> Progress:
        loss = 0.0
        for problem in self.parts():
            n = kernels.n_examples(problem)
            part = dataclasses.replace(task, problem=problem, C=np.full(n, self.C))
            state.work = self.solver.workspace(part)
            for first in range(0, n, SLICE):
                loss += self.solver.visit(part, state, np.arange(first, min(first + SLICE, n)))
            state.oracle_calls += n
        state.epochs += 1
        return Progress(loss)

    def weights(self, state: Any) -> np.ndarray:
        return self.solver.weights(state)

    def finish(self, state: Any) -> np.ndarray:
        return self.solver.finish(state)

    def bounds(self, task: Task, state: Any) -> Value:
        """Not known: that would be a pass of its own."""
        return Value(math.nan, math.nan, np.zeros(0))
