"""What every solver returns."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from partwise.features.sparse_weights import n_not_zero


@dataclass(frozen=True)
class Record:
    """One epoch of a solver's history.

    Attributes
    ----------
    epoch : int
        Epochs done, from 1.
    seconds : float
        Since the start, certificates included.
    loss : float
        sum_i C_i L_i as seen on the way (each example's loss before its own update).
    oracle_calls : int
        Since the start, those for certificates not counted.
    primal, dual, gap : float
        nan where they were not computed.
    validation : float
        Mean cost on held-out data; nan without.

    Examples
    --------
    >>> from partwise import multiclass_problem, solve
    >>> problem = multiclass_problem([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0, 1, 0])
    >>> record = solve(problem, "hinge", "sdm", C=1.0).history[0]
    >>> record.epoch, record.oracle_calls
    (1, 3)
    """

    epoch: int
    seconds: float
    loss: float
    oracle_calls: int
    primal: float = math.nan
    dual: float = math.nan
    estimate: float = math.nan
    validation: float = math.nan
    max_epochs: int = field(default=0, repr=False, compare=False)  #: how many there will be at most (within a callback only)
    _weights: Callable[[], np.ndarray] | None = field(default=None, repr=False, compare=False)
    _result: Callable[[], SolveResult] | None = field(default=None, repr=False, compare=False)

    @property
    def gap(self) -> float:
        """primal - dual."""
        return self.primal - self.dual

    def with_access(self, max_epochs: int, weights: Callable[[], np.ndarray], result: Callable[[], SolveResult]) -> Record:
        """The same record for a callback, which may ask for the weights, and for what it takes to go on from here."""
        return replace(self, max_epochs=max_epochs, _weights=weights, _result=result)

    def weights(self) -> np.ndarray:
        """The model at this epoch (within a callback only)."""
        if self._weights is None:
            raise RuntimeError("The weights of an epoch can be read only within its callback.")
        return self._weights()

    def result(self) -> SolveResult:
        """What ``resume=`` needs to go on from this epoch (within a callback only; later epochs change it)."""
        if self._result is None:
            raise RuntimeError("What an epoch can be resumed from can be read only within its callback.")
        return self._result()

    def as_dict(self) -> dict[str, float | None]:
        """The numbers, with None for what was not computed, for JSON."""
        names = ("epoch", "seconds", "loss", "oracle_calls", "primal", "dual", "gap", "estimate", "validation")
        values = {name: getattr(self, name) for name in names}
        return {name: value if math.isfinite(value) else None for name, value in values.items()}


class Best(NamedTuple):
    """The best model on held-out data so far."""

    weights: np.ndarray
    cost: float
    epoch: int


class Round(NamedTuple):
    """One convex problem of a non-convex solver (CCCP), at the end of its round."""

    epochs: int  #: epochs done since the start
    objective: float  #: of the non-convex problem at the best weights so far: it never rises
    changed: int  #: examples that get another target in the next round
    refused: int  #: examples whose next target is not their truth
    primal: float  #: of the convex problem
    dual: float  #: its lower bound; nan where the solver inside has none
    tolerance: float  #: relative gap that the round was asked for

    @property
    def gap(self) -> float:
        """primal - dual of the convex problem."""
        return self.primal - self.dual


@dataclass(frozen=True)
class SolveResult:
    """Weights and how good they are.

    Attributes
    ----------
    w : array (d,)
        The weights.
    primal, dual, gap : float
        P(w), a lower bound of the optimum, and their difference; nan where not computed.
    n_nonzero : int
        How many weights are not zero.
    converged : bool
        Whether the tolerance was reached.
    status : str
        ``converged``, ``max_epochs``, ``early_stopping``, ``stalled`` (rounding errors keep the tolerance from being reached, or
        nothing changes any more and there is no certificate), ``approximate`` (it would be called converged, but for losses below
        zero, which an exact oracle cannot give), ``callback`` or ``interrupted``; `message` says it in words.
    n_epochs, n_oracle_calls, seconds, cpu_seconds
        What it cost; the CPU time is that of this process since it started or resumed.
    history : list of Record
    solver, loss
        What was run, with all parameters.
    size
        Examples, weights and parts of the problem.
    rounds : list of Round
        The convex problems that were solved in turn, where the loss is not convex (CCCP).
    unseen : float
        How much higher than `primal` the objective may be, because not all outputs could be looked at: 0 where the oracle is
        exact, as it nearly always is; inf where nobody knows; nan where `primal` was not computed.
    caution : str
        What is not plausible about what came out, in words; empty if nothing is.
    n_skipped : int
        Examples whose loss at `w` comes out below zero because the oracle is approximate (Martins et al. 2010, footnote 9): they
        count as nothing, and the objective says nothing about them.
    state
        The solver's memory: hand the result to ``solve(..., resume=result)`` to go on exactly where it stopped.
    best : Best or None
        The best model on held-out data, if there were any; `w` is its weights.

    Examples
    --------
    >>> from partwise import multiclass_problem, solve
    >>> problem = multiclass_problem([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0, 1, 0])
    >>> result = solve(problem, "hinge", "sdm", C=1.0)
    >>> result.converged, result.dual <= result.primal, result.w.shape
    (True, True, (4,))
    """

    w: np.ndarray
    primal: float
    dual: float
    converged: bool
    status: str
    message: str
    n_epochs: int
    n_oracle_calls: int
    seconds: float
    history: list[Record]
    solver: Any
    loss: Any
    size: tuple[int, int, int] = (0, 0, 0)
    rounds: list[Round] = field(default_factory=list, repr=False)
    unseen: float = 0.0
    n_skipped: int = 0
    caution: str = ""
    cpu_seconds: float = math.nan
    state: Any = field(default=None, repr=False)
    best: Best | None = field(default=None, repr=False)

    @property
    def gap(self) -> float:
        """primal - dual: how far at most `w` is from the optimum."""
        return self.primal - self.dual

    @property
    def n_nonzero(self) -> int:
        """How many weights are not zero: with an L1 penalty, the size of the model."""
        return n_not_zero(self.w)

    def __repr__(self) -> str:
        return (
            f"SolveResult(solver={self.solver.name!r}, loss={self.loss.name!r}, status={self.status!r}, "
            f"primal={self.primal:.6g}, gap={self.gap:.3g}, n_epochs={self.n_epochs}, "
            f"n_oracle_calls={self.n_oracle_calls}, seconds={self.seconds:.3g})"
        )
