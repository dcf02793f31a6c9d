"""Labels made of states that nobody sees, for the estimators that have a parameter `hidden`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from partwise.losses.records import LOSSES, Loss
from partwise.structures.common.hidden import States, small_weights

if TYPE_CHECKING:
    from partwise.solvers.base import Solver, Task


class HiddenStates:
    """What `Structured` does not know: where training begins, and what states are called."""

    hidden: int
    classes_: np.ndarray

    def _check_parameters(self) -> Loss:
        """Besides the rest: whether the loss goes with sets of states."""
        loss = super()._check_parameters()  # type: ignore[misc]
        if self.hidden > 1 and not loss.takes_sets:
            able = ", ".join(repr(name) for name, other in LOSSES.items() if other.takes_sets)
            raise ValueError(
                f"The loss {loss.name!r} needs one true output per example, but with hidden={self.hidden} that is a set: all "
                f"states of the true labels. Losses that go with hidden states: {able}. Or set hidden=1."
            )
        return loss

    @property
    def _states(self) -> States:
        return States(len(self.classes_), self.hidden)

    @property
    def states_(self) -> list[Any]:
        """What the rows of `coef_` are about: the labels, or with ``hidden > 1`` their states, "NP/1", "NP/2"."""
        self._require_fitted("states_")  # type: ignore[attr-defined]
        return self._states.names(self.classes_.tolist())

    def _start(self, task: Task, solver: Solver) -> np.ndarray | None:
        """Weights to begin at: states of one label must not be alike, or they would stay so. None: zero."""
        if self.hidden == 1:
            return None
        start = small_weights(task.problem, task.seed, task.dtype)
        if solver.takes != "differences":
            return start
        from partwise.solvers.cccp import first_guess

        return first_guess(task, start)  # completions by random weights are bad ones to solve a whole convex problem for
