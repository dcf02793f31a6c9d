"""What is learnt with when the user says nothing: C, the solver and the number of epochs, one rule for every task."""

from __future__ import annotations

from typing import Any, NamedTuple

from partwise.losses.records import Loss
from partwise.solvers import Solver, get_solver


class Choice(NamedTuple):
    """How to learn."""

    C: float
    solver: Solver
    max_epochs: int | None  #: None: the solver's habit


def choose(
    loss: Loss, problem: Any, l1_ratio: float = 0.0, C: float | None = None, solver: Any = "auto", max_epochs: int | None = None
) -> Choice:
    """Fill in what was not said."""
    if C is None:
        C = 1.0
    return Choice(C, get_solver(solver, problem, loss, l1_ratio), max_epochs)
