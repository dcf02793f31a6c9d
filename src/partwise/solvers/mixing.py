"""Mixing: an online solver on several parts of the examples at once, whose weights are averaged again and again.

    repeat
        for each part k, at the same time:  w_k = the weights after an epoch of the solver over part k, from w
        w = sum_k mu_k w_k,    mu_k = the share of the examples that part k has

(iterative parameter mixing, McDonald, Hall and Mann 2010). The perceptron separates what can be separated, as it does alone. For
other solvers, and data that cannot be separated, it is another algorithm than theirs with another result: a good model, usually
after somewhat more epochs; the more parts, the more. Examples are always in the same part and within it in an order drawn from
the seed, so the result depends on the parts and the seed, and not on who does the work.

A solver whose steps follow a schedule (sgd, pegasos) minimises on each part what the part would stand for: the losses of its
examples are multiplied by 1 / mu_k, so that the regulariser has the weight it has in the whole.

The model is the average of those that the parts find, those of later epochs weighing more (as `average_power` says).

Cost of an epoch: that of the solver, divided among the places; two vectors of weights from each part. Memory: three vectors here.

References
----------
R. McDonald, K. Hall, G. Mann (2010). Distributed training strategies for the structured perceptron. NAACL.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from partwise import kernels
from partwise.engine.threads import parts_elsewhere
from partwise.losses.records import Loss
from partwise.solvers.base import Progress, Solver, State, Task
from partwise.solvers.online import OnlineSolver


@dataclass
class MixedState(State):
    """Where the next epoch begins, the average so far, and what each part's solver counts."""

    w: np.ndarray | None = None
    average: np.ndarray | None = None
    entered: float = 0.0  #: the sum of what models weigh in the average
    counts: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))


def counted(state: Any) -> list[str]:
    """The fields of a state that are numbers."""
    return [one.name for one in fields(state) if isinstance(getattr(state, one.name), int | float)]


def mix_part(part: Any, C: np.ndarray, share: float, counts: np.ndarray, solver: Any, w: np.ndarray, how: dict[str, Any]) -> Any:
    """Epochs over one part, from `w`: its weights and its model times its share, the losses seen, and what it counts."""
    task = Task(
        part, how["loss"], np.ascontiguousarray(C) / (share if solver.scheduled else 1.0), how["seed"], True, how["dtype"]
    )
    state = solver.init(task, w) if not counts.size else solver.going_on(task, w, {})
    for name, value in zip(counted(state), counts, strict=False):
        setattr(state, name, type(getattr(state, name))(value))
    loss = 0.0
    for _ in range(how["epochs"]):
        loss = solver.epoch(task, state).loss * (share if solver.scheduled else 1.0)
    current, model = (share * one.astype(np.float64) for one in (solver.current(state), solver.weights(state)))
    return current, model, loss, [np.array([float(getattr(state, name)) for name in counted(state)])]


def add_mixed(left: Any, right: Any) -> Any:
    """What two ranges of parts found, together."""
    return tuple(a + b for a, b in zip(left, right, strict=True))


@dataclass(frozen=True)
class Mixed(Solver):
    """An online solver on parts of the examples (see the module); an epoch ends with a mixing.

    Parameters
    ----------
    solver : OnlineSolver
        perceptron, mira, kbest_mira, dca, sgd or pegasos.
    epochs : int
        Of the solver between two mixings.
    """

    solver: OnlineSolver = field(default_factory=OnlineSolver)
    epochs: int = 1

    everywhere = True

    def __post_init__(self):
        if not isinstance(self.epochs, int | np.integer) or self.epochs < 1:
            raise ValueError(f"The 'epochs' parameter of Mixed must be an int in [1, inf). Got {self.epochs!r} instead.")

    @property
    def name(self) -> str:  # type: ignore[override]
        """That of the solver."""
        return self.solver.name

    @property
    def takes(self) -> str:  # type: ignore[override]
        """What the solver takes."""
        return self.solver.takes

    @property
    def default_epochs(self) -> int:  # type: ignore[override]
        """Those of the solver."""
        return self.solver.default_epochs

    @property
    def needs(self) -> tuple[Any, ...]:  # type: ignore[override]
        """Kernels that the solver needs."""
        return self.solver.needs

    def accepts(self, loss: Loss) -> bool:
        return self.solver.accepts(loss)

    def needs_of(self, loss: Loss) -> tuple[Any, ...]:
        return self.solver.needs_of(loss)

    def init(self, task: Task, start: np.ndarray | None = None) -> MixedState:
        d = kernels.n_weights(task.problem)
        return MixedState(w=np.zeros(d, task.dtype) if start is None else np.array(start, task.dtype), average=np.zeros(d))

    def epoch(self, task: Task, state: MixedState) -> Progress:
        parts, places = parts_elsewhere(task.n_jobs, task.problem), task.n_jobs
        if parts is None:
            raise ValueError("Mixed works on examples in several places: there are none.")
        C, n = [piece for (piece,) in places.cut(task.C)], len(places)
        counts = list(state.counts) if len(state.counts) else [np.zeros(0)] * n
        shares = [len(own) / task.n for own in C]
        how = {"loss": task.loss, "seed": task.seed, "dtype": task.dtype, "epochs": self.epochs}
        pieces = list(zip(C, shares, counts, strict=True))
        w, model, loss, counted_now = parts.total(add_mixed, mix_part, self.solver, state.w.copy(), how, pieces=pieces)
        weight = float(state.epochs + 1) ** self.solver.average_power
        if self.solver.average:
            state.average += weight * model
            state.entered += weight
        state.w, state.counts = w.astype(task.dtype), np.array(counted_now)
        state.epochs += 1
        state.oracle_calls += self.epochs * int(np.count_nonzero(task.C))
        return Progress(loss)

    def weights(self, state: MixedState) -> np.ndarray:
        if not state.entered:
            return state.w.copy()
        return (state.average / state.entered).astype(state.w.dtype)

    def current(self, state: MixedState) -> np.ndarray:
        return state.w.copy()

    def retarget(self, before: Task, task: Task, state: MixedState, changed: np.ndarray) -> MixedState:
        """Weights go on; the average begins anew."""
        state.average[:], state.entered = 0.0, 0.0
        return state
