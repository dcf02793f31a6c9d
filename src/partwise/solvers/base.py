"""What every solver is.

A solver is a frozen record of hyper-parameters with three verbs: ``init`` makes a state, ``epoch`` advances it in place,
``weights`` reads the model off it. `loop` adds everything users expect around that: tolerance, certificates, callbacks, early
stopping, Ctrl-C, resuming. Whoever wants to own the loop calls the three verbs directly.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from partwise import kernels
from partwise.losses.penalty import penalty
from partwise.losses.records import Loss
from partwise.objective import SLICE, Value, losses_at, objective
from partwise.solvers.result import Round

FEW = 20  # examples of a rehearsal


@dataclass(frozen=True)
class Task:
    """What is to be minimised: (P) over one packed problem, and how examples are visited."""

    problem: Any
    loss: Loss
    C: np.ndarray  #: (N,) one C_i per example
    seed: int = 0
    shuffle: bool = True
    dtype: Any = np.float64
    n_jobs: Any = None  #: threads, or other places (`partwise.engine.places`)
    tol: float = 0.0  #: relative tolerance that the run is asked for; what a solver solves on its way needs no more
    l1_ratio: float = 0.0  #: r in the penalty r ||w||_1 + (1 - r)/2 ||w||^2
    lists: tuple[int, int] | None = None  #: (features, labels) of weights to be kept as lists of what is not zero; None: arrays
    penalty_weight: np.ndarray | None = None  #: (d,) lambda_j in the penalty 1/2 sum_j lambda_j w_j^2; None: all are 1
    digest: int | None = None  #: a checksum of the problem, where it is known
    shards: np.ndarray | None = None  #: (S + 1,) first example of each shard, and the end: examples that lie together on disk

    @property
    def n(self) -> int:
        """Number of examples."""
        return len(self.C)

    def order(self, epoch: int) -> np.ndarray:
        """The order in which `epoch` (from 0) visits the examples: a function of seed and epoch, so resuming is exact.

        Where there are shards, one is visited after the other, in an order drawn anew in each epoch, and so within each.
        """
        if not self.shuffle:
            return np.arange(self.n)
        rng = np.random.default_rng((self.seed, epoch))
        if self.shards is None or len(self.shards) == 2:
            return rng.permutation(self.n)
        begin, end = self.shards[:-1], self.shards[1:]
        return np.concatenate([begin[s] + rng.permutation(end[s] - begin[s]) for s in rng.permutation(len(begin))])

    def slices(self, epoch: int) -> Iterator[np.ndarray]:
        """`order(epoch)` in pieces: between two of them Ctrl-C is heard."""
        order = self.order(epoch)
        for first in range(0, len(order), SLICE):
            yield order[first : first + SLICE]


@dataclass
class State:
    """What a solver remembers between epochs. Solvers extend it; copying it is enough to resume exactly."""

    epochs: int = 0
    oracle_calls: int = 0


class Progress(NamedTuple):
    """What an epoch saw on its way.

    Parameters
    ----------
    loss : float
        sum_i C_i L_i(w) with each example's loss taken when it was visited.
    estimate : float
        The duality gap as far as the epoch itself can tell (nan: it cannot). The exact gap, a pass of its own, is
        computed only when this falls below the tolerance.
    primal : float
        P(w) as far as the epoch itself can tell; the loss stands in for it where it cannot.
    stuck : bool
        Whether further epochs would change nothing, as far as the solver can tell: `Solver.why_stuck` says why.
    settled : bool
        Whether the weights are those of the problem yet; while they are only on the way there, no held-out data judge them.
    """

    loss: float
    estimate: float = math.nan
    primal: float = 0.0
    stuck: bool = False
    settled: bool = True


@dataclass(frozen=True)
class Solver:
    """Base of all solvers; subclasses state their optimisation problem and pseudo-code.

    Examples
    --------
    >>> from partwise.solvers import get_solver, make_task
    >>> from partwise import multiclass_problem
    >>> task = make_task(multiclass_problem([[1.0, 0.0], [0.0, 1.0]], [0, 1]), "hinge", C=1.0)
    >>> solver = get_solver("dca")
    >>> state = solver.init(task)
    >>> progress = solver.epoch(task, state)
    >>> solver.weights(state).shape
    (4,)
    """

    name: ClassVar[str] = ""
    default_epochs: ClassVar[int] = 50
    needs: ClassVar[tuple[Any, ...]] = ()  #: kernels needed besides those of the loss
    accepted: ClassVar[str] = "every L(beta, gamma)"  #: in words, for the error message
    fixed_targets: ClassVar[bool] = False  #: whether it needs one target per example, as dual methods do
    takes: ClassVar[str] = "convex"  #: which losses: convex ones, any by their "gradients", or "differences", made for ramps
    model_suffices: ClassVar[bool] = False  #: whether `bounds` is `value_at` the model, so that `finish` may come before it
    free_bounds: ClassVar[bool] = False  #: whether `bounds` costs nothing, so that every record can have them
    sparse: ClassVar[bool] = False  #: whether it takes an L1 penalty
    everywhere: ClassVar[bool] = False  #: whether it sees examples by passes over all of them alone, which may be made elsewhere
    weighted: ClassVar[bool] = False  #: whether it takes a penalty of its own for each weight

    @property
    def adds_up_bound(self) -> bool:
        """Whether a lower bound comes along for little, certificate or not."""
        return self.certified

    @property
    def certified(self) -> bool:
        """Whether it can tell how far it is from the optimum: dual methods can, and those whose bounds are free."""
        return self.fixed_targets or self.free_bounds

    def accepts(self, loss: Loss) -> bool:
        """Whether this solver can minimise `loss`."""
        return True

    def needs_of(self, loss: Loss) -> tuple[Any, ...]:
        """Kernels this solver needs for `loss`: those by which the loss is evaluated, unless it has a way of its own."""
        return loss.needs

    def suits_lists(self, loss: Loss, evaluate: str) -> bool:
        """Whether it can keep weights as lists of what is not zero (``Task.lists``), and gives what is asked for in the end."""
        return False

    def check_size(self, problem: Any) -> None:
        """Raise a ValueError if `problem` is larger than what this solver is made for."""

    def within(self, max_epochs: int) -> Solver:
        """The same for a run of so many epochs, where it divides them among several problems."""
        return self

    def init(self, task: Task, start: np.ndarray | None = None) -> Any:
        """A fresh state, at the weights `start` or at zero."""
        raise NotImplementedError

    def epoch(self, task: Task, state: Any) -> Progress:
        """Advance `state` by one epoch, in place."""
        raise NotImplementedError

    def weights(self, state: Any) -> np.ndarray:
        """The model: a vector that further epochs will not change."""
        raise NotImplementedError

    def current(self, state: Any) -> np.ndarray:
        """The weights that the next epoch goes on from, where the model is their average over the epochs so far."""
        return self.weights(state)

    def finish(self, state: Any) -> np.ndarray:
        """The model, when `state` is not needed any more: its memory may be used for it."""
        return self.weights(state)

    def bounds(self, task: Task, state: Any) -> Value:
        """Primal value of the model, and the best dual bound the solver knows. One pass over the examples."""
        return Solver.value_at(self, task, state, self.weights(state))

    def value_at(self, task: Task, state: Any, w: np.ndarray, dual: bool = True) -> Value:
        """The objective at weights that need not be those of `state`; without a bound, and the memory for it, if not `dual`."""
        if dual:
            return objective(
                task.problem, task.loss, task.C, w, task.n_jobs, l1_ratio=task.l1_ratio, penalty_weight=task.penalty_weight
            )
        losses = losses_at(task.problem, task.loss, w, task.n_jobs)
        return Value(penalty(w, task.l1_ratio, task.penalty_weight) + float(task.C @ losses), math.nan, np.zeros(0))

    def unseen(self, task: Task, state: Any, w: np.ndarray) -> float:
        """How much higher than its value the objective at `w` may be: 0 if oracles are exact, inf if nobody knows.

        There are losses whose outputs are searched rather than all seen: see ``SolveResult.unseen``.
        """
        if not kernels.is_exact(task.problem):
            return math.inf
        return task.loss.unseen(task.problem, task.C, w, task.n_jobs)

    def verdict(self, state: Any, value: Value, tol: float) -> str:
        """Why `value`, just computed by `bounds`, is good enough, in words; empty if it is not, or if nobody knows."""
        return verdict(value, tol)

    def caution(self, task: Task, state: Any, loss: float) -> str:
        """What is not plausible about what came out, in words, `loss` being that of the last epoch; empty if nothing is."""
        return ""

    def why_stuck(self, task: Task, state: Any) -> str:
        """Why further epochs would change nothing, in words, where `epoch` says so without reaching the tolerance."""
        return "rounding errors are all that is left to remove"

    def rehearse(self, task: Task) -> None:
        """Run all of it on a few examples, so that what is timed afterwards finds compiled code."""
        few = kernels.take(task.problem, np.arange(min(FEW, task.n)))
        small = dataclasses.replace(task, problem=few, C=task.C[:FEW].copy())
        state = self.init(small)
        for _ in range(self.rehearsal):
            self.epoch(small, state)
        self.bounds(small, state)

    @property
    def rehearsal(self) -> int:
        """Epochs after which every loop has been run."""
        return 3

    def retarget(self, before: Task, task: Task, state: Any, changed: np.ndarray) -> Any:
        """The state to go on from after the targets of the examples `changed` are no longer those in `before` (CCCP).

        Solvers override it to keep what stays true; here nothing does but the weights.
        """
        fresh = self.init(task, self.weights(state))
        fresh.epochs, fresh.oracle_calls = state.epochs, state.oracle_calls + fresh.oracle_calls
        return fresh

    def rounds(self, state: Any) -> list[Round]:
        """The convex problems solved so far, for solvers that solve several (CCCP)."""
        return []


def verdict(value: Value, tol: float) -> str:
    """Why `value` is good enough, in words; empty if it is not, or if nobody knows."""
    scale = tol * abs(value.primal)
    if tol <= 0 or not math.isfinite(value.primal):
        return ""
    if value.gap <= scale:
        return f"relative duality gap {value.gap / max(value.primal, 1e-300):.2g} <= {tol:g}"
    if math.isnan(value.dual) and value.residual <= scale:
        share = value.residual / max(value.primal, 1e-300)
        return f"a stationary point: 1/2 ||gradient||^2 is {share:.2g} <= {tol:g} of the objective, which is not convex"
    return ""
