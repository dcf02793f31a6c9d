"""What every solver is, and the loop that runs them all.

A solver is a frozen record of hyper-parameters with three verbs: ``init`` makes a state, ``epoch`` advances it in place,
``weights`` reads the model off it. `run` adds everything users expect around that: tolerance, certificates, callbacks, early
stopping, Ctrl-C, resuming. Whoever wants to own the loop calls the three verbs directly.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from partwise import kernels
from partwise.losses.penalty import penalty
from partwise.losses.records import LOSSES, Loss
from partwise.objective import SLICE, Value, completions, count_skipped, losses_at, mean_cost, objective
from partwise.solvers.result import Best, Record, Round, SolveResult

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
    n_jobs: int | None = None
    tol: float = 0.0  #: relative tolerance that the run is asked for; what a solver solves on its way needs no more
    l1_ratio: float = 0.0  #: r in the penalty r ||w||_1 + (1 - r)/2 ||w||^2
    penalty_weight: np.ndarray | None = None  #: (d,) lambda_j in the penalty 1/2 sum_j lambda_j w_j^2; None: all are 1

    @property
    def n(self) -> int:
        """Number of examples."""
        return len(self.C)

    def order(self, epoch: int) -> np.ndarray:
        """The order in which `epoch` (from 0) visits the examples: a function of seed and epoch, so resuming is exact."""
        if not self.shuffle:
            return np.arange(self.n)
        return np.random.default_rng((self.seed, epoch)).permutation(self.n)

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
    """

    loss: float
    estimate: float = math.nan
    primal: float = 0.0
    stuck: bool = False


@dataclass(frozen=True)
class Solver:
    """Base of all solvers; subclasses state their optimisation problem and pseudo-code."""

    name: ClassVar[str] = ""
    default_epochs: ClassVar[int] = 50
    needs: ClassVar[tuple[Any, ...]] = ()  #: kernels needed besides those of the loss
    accepted: ClassVar[str] = "every L(beta, gamma)"  #: in words, for the error message
    fixed_targets: ClassVar[bool] = False  #: whether it needs one target per example, as dual methods do
    takes: ClassVar[str] = "convex"  #: which losses: convex ones, any by their "gradients", or "differences", made for ramps
    free_bounds: ClassVar[bool] = False  #: whether `bounds` costs nothing, so that every record can have them
    sparse: ClassVar[bool] = False  #: whether it takes an L1 penalty
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

    def check_size(self, problem: Any) -> None:
        """Raise a ValueError if `problem` is larger than what this solver is made for."""

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


def check(solver: Solver, problem: Any, loss: Loss, l1_ratio: float = 0.0, weighted: bool = False) -> None:
    """Raise unless `solver` can minimise `loss` with that penalty and `problem` has the kernels both need."""
    if weighted and not solver.weighted:
        from partwise.solvers import can_minimise

        others = ", ".join(can_minimise(loss, l1_ratio, weighted=True)) or "none for this loss and penalty"
        raise ValueError(
            f"Solver {solver.name!r} has one penalty for all weights, and takes no penalty_weight. Solvers that can: {others}. "
            "Or divide each feature by the root of its penalty_weight, and so the weights that are found."
        )
    if l1_ratio > 0.0 and not solver.sparse:
        from partwise.solvers import can_minimise

        others = ", ".join(can_minimise(loss, l1_ratio)) or "none for this loss"
        raise ValueError(
            f"Solver {solver.name!r} takes no L1 penalty (l1_ratio={l1_ratio:g}) with the loss {loss.name!r}. "
            f"Solvers that can: {others}. Or set l1_ratio=0."
        )
    if not solver.accepts(loss) or (solver.takes == "convex" and not loss.is_convex):
        from partwise.solvers import can_minimise

        raise ValueError(
            f"Solver {solver.name!r} minimises {solver.accepted}, not the loss {loss.name!r} "
            f"(beta={loss.beta:g}, gamma={loss.gamma:g}). Solvers that can: {', '.join(can_minimise(loss))}. "
            f"Losses that {solver.name!r} can: {', '.join(n for n, f in LOSSES.items() if solver.name in can_minimise(f))}."
        )
    loss.check(problem)
    if solver.fixed_targets and kernels.is_partial(problem):
        from partwise.solvers import SOLVERS

        able = [name for name, make in SOLVERS.items() if make().accepts(loss) and not make.fixed_targets]
        raise ValueError(
            f"Solver {solver.name!r} works in the dual, with one target per example, but the problem is partially labelled: the "
            f"truth of some examples is a set of outputs, and the objective is not convex. Put it into CCCP, as `solve` does, or "
            f"take one of: {', '.join(able)}."
        )
    basic = (kernels.score, kernels.value_of, kernels.add_features, kernels.n_weights, kernels.n_parts, kernels.target)
    who = f"The loss {loss.name!r}"
    if loss.found_by and solver.name not in loss.found_by:
        who += f" (with any solver but {' and '.join(map(repr, loss.found_by))}, which search outputs instead of listing them)"
    kernels.require(problem, (*basic, *solver.needs_of(loss)), who)
    kernels.require(problem, solver.needs, f"The solver {solver.name!r}")
    solver.check_size(problem)


def size_of(problem: Any) -> tuple[int, int, int]:
    """Examples, weights, parts: what a state can only be resumed with."""
    return int(kernels.n_examples(problem)), int(kernels.n_weights(problem)), kernels.total_parts(problem)


def check_sizes(task: Task, validation: Any, start: np.ndarray | None, resume: SolveResult | None) -> None:
    """Compiled loops do not check indices: refuse weights, states and held-out data of another problem."""
    d = kernels.n_weights(task.problem)
    if start is not None and np.shape(start) != (d,):
        raise ValueError(f"start must have one number per weight, shape ({d},). Got shape {np.shape(start)}.")
    if validation is not None and not callable(validation) and kernels.n_weights(validation) != d:
        raise ValueError(f"The validation problem has {kernels.n_weights(validation)} weights, the training problem {d}.")
    if resume is not None and (resume.state is None or resume.size != size_of(task.problem)):
        raise ValueError(
            "This result cannot be resumed: it "
            + ("was stored without its state." if resume.state is None else "belongs to a problem of another size.")
            + " Pass start=result.w to start from its weights."
        )


def check_completions(task: Task) -> None:
    """Raise, naming the example, if the labels of a partially labelled one cannot be completed."""
    if kernels.is_partial(task.problem):
        values = completions(task.problem, np.zeros(kernels.n_weights(task.problem), task.dtype), task.n_jobs)[2]
        if values.min(initial=0.0) == -np.inf:
            raise ValueError(
                f"No output of example {int(np.argmin(values))} agrees with its partial labels and obeys the constraints."
            )


def verdict(value: Value, tol: float) -> str:
    """Why `value` is good enough, in words; empty if it is not, or if nobody knows."""
    scale = tol * abs(value.primal)
    if tol <= 0:
        return ""
    if value.gap <= scale:
        return f"relative duality gap {value.gap / max(value.primal, 1e-300):.2g} <= {tol:g}"
    if math.isnan(value.dual) and value.residual <= scale:
        share = value.residual / max(value.primal, 1e-300)
        return f"a stationary point: 1/2 ||gradient||^2 is {share:.2g} <= {tol:g} of the objective, which is not convex"
    return ""


def run(
    solver: Solver,
    task: Task,
    *,
    max_epochs: int | None = None,
    tol: float = 1e-3,
    validation: Any = None,
    patience: int = 5,
    callbacks: Sequence[Callable[[Record], Any]] = (),
    evaluate: str = "end",
    start: np.ndarray | None = None,
    resume: SolveResult | None = None,
    keep_state: bool = True,
) -> SolveResult:
    """Run epochs until the tolerance, the patience, a callback, the user or `max_epochs` ends it (see `partwise.solve`)."""
    task = dataclasses.replace(task, tol=tol)
    check(solver, task.problem, task.loss, task.l1_ratio, task.penalty_weight is not None)
    check_sizes(task, validation, start, resume)
    check_completions(task)
    max_epochs = solver.default_epochs if max_epochs is None else max_epochs
    state = solver.init(task, start) if resume is None else copy.deepcopy(resume.state)
    history = [] if resume is None else list(resume.history)
    before = history[-1].seconds if history else 0.0
    clock, cpu_clock = time.perf_counter(), time.process_time()
    status, message = "max_epochs", f"stopped after {max_epochs} epochs"
    best = None if resume is None or validation is None else resume.best
    last = Value(math.nan, math.nan, np.zeros(0))
    evaluated_at = -1
    try:
        while state.epochs < max_epochs:
            progress = solver.epoch(task, state)
            seconds = before + time.perf_counter() - clock
            record = Record(state.epochs, seconds, progress.loss, state.oracle_calls, estimate=progress.estimate)
            near = tol > 0 and progress.estimate <= tol * max(abs(progress.loss), progress.primal)
            if evaluate == "epoch" or solver.free_bounds or near:
                last, evaluated_at = solver.bounds(task, state), state.epochs
                record = dataclasses.replace(record, primal=last.primal, dual=last.dual)
            if validation is not None:
                weights = solver.weights(state)
                held_out = validation(weights) if callable(validation) else mean_cost(validation, weights, task.n_jobs)
                record = dataclasses.replace(record, validation=held_out)
                if best is None or held_out < best.cost:
                    best = Best(weights, held_out, state.epochs)
            history.append(record)
            resumable = functools.partial(unfinished, solver, task, state, history, best)
            seen = record.with_access(max_epochs, lambda: solver.weights(state), resumable)
            asked = [c(seen) for c in callbacks]
            if evaluated_at == state.epochs and (why := solver.verdict(state, last, tol)):
                status, message = "converged", why
                break
            if progress.loss == 0.0 and math.isnan(progress.estimate):
                status, message = "converged", "no example had a loss in the last epoch"
                if task.loss.is_smooth and not kernels.is_exact(task.problem):  # a sum over outputs is above the score of one
                    status, message = "approximate", "approximate oracle: no example has a loss above zero, as no sum can tell"
                break
            if progress.stuck:
                status, message = "stalled", f"after {state.epochs} epochs {solver.why_stuck(task, state)}"
                break
            if any(asked):
                status, message = "callback", "a callback asked to stop"
                break
            if best is not None and state.epochs - best.epoch >= patience and _has_moved(history, best):
                status = "early_stopping"
                message = f"no better on held-out data for {patience} epochs; the model of epoch {best.epoch} is kept"
                break
    except KeyboardInterrupt:
        status, message = "interrupted", f"interrupted in epoch {state.epochs + 1}; the model so far is kept"
    if status == "max_epochs" and tol > 0 and solver.certified and history and math.isfinite(history[-1].estimate):
        message += f", the tolerance {tol:g} was not reached"
    if status == "max_epochs" and best is not None:
        message += f"; the model of epoch {best.epoch}, the best on held-out data, is kept"
    rounds = solver.rounds(state)  # before `finish` takes the state apart
    if best is not None:
        w = best.weights
    elif keep_state or evaluate not in ("primal", "never"):
        w = solver.weights(state)
    else:
        w = solver.finish(state)
    if not (math.isfinite(w.min(initial=0.0)) and math.isfinite(w.max(initial=0.0))):  # NaN shows in both; no memory
        raise FloatingPointError(
            f"Solver {solver.name!r} diverged: the weights are not finite. Try a smaller C or scale the features."
        )
    if evaluate != "never" and status != "interrupted" and (evaluated_at != state.epochs or best is not None):
        with contextlib.suppress(KeyboardInterrupt):  # impatience with the certificate must not cost the model
            if evaluate == "primal":
                last = solver.value_at(task, state, w, dual=False)
            elif best is None:
                last = solver.bounds(task, state)
                w = solver.weights(state)  # bounds may have found which of its iterates is best
                if why := solver.verdict(state, last, tol):
                    status, message = "converged", why
            else:
                last = solver.value_at(task, state, w)
    unseen, skipped = solver.unseen(task, state, w) if math.isfinite(last.primal) else math.nan, 0
    if evaluate != "never" and status != "interrupted" and not kernels.is_exact(task.problem):
        skipped = count_skipped(task.problem, task.loss, w, task.n_jobs)
        status, message = of_approximate(status, message, skipped, task.n)
    return SolveResult(
        w=w,
        primal=last.primal,
        dual=last.dual,
        converged=status == "converged",
        status=status,
        message=message,
        n_epochs=state.epochs,
        n_oracle_calls=state.oracle_calls,
        seconds=before + time.perf_counter() - clock,
        cpu_seconds=time.process_time() - cpu_clock,
        history=history,
        solver=solver,
        loss=task.loss,
        size=size_of(task.problem),
        rounds=rounds,
        unseen=unseen,
        n_skipped=skipped,
        state=state if keep_state else None,
        best=best,
    )


def of_approximate(status: str, message: str, skipped: int, n: int) -> tuple[str, str]:
    """How a run ended, where the oracle is approximate: what it says of the optimum holds for what the oracle found."""
    if not skipped:
        return status, f"{message} (approximate oracle: as far as it sees)" if status == "converged" else message
    said = f"approximate oracle: the loss of {skipped} of {n} examples comes out below zero; they were skipped"
    return (
        ("approximate", f"{said}, so that nothing is known of the optimum")
        if status == "converged"
        else (status, f"{message}; {said}")
    )


def _has_moved(history: list[Record], best: Best) -> bool:
    """Whether the held-out score has changed since the first epoch, or cannot get better.

    F1 stays at zero while a batch solver warms up; patience is for models that have begun to answer.
    """
    return best.cost <= 0.0 or any(record.validation != history[0].validation for record in history)


def unfinished(
    solver: Solver, task: Task, state: Any, history: list[Record], best: Best | None, message: str = "not finished"
) -> SolveResult:
    """All that `resume` needs of a run that is not over. The state is the one in use, not a copy: to be written down at once."""
    return SolveResult(
        w=np.zeros(0),
        primal=math.nan,
        dual=math.nan,
        converged=False,
        status="running",
        message=message,
        n_epochs=state.epochs,
        n_oracle_calls=state.oracle_calls,
        seconds=history[-1].seconds if history else 0.0,
        history=history,
        solver=solver,
        loss=task.loss,
        size=size_of(task.problem),
        state=state,
        best=best,
    )
