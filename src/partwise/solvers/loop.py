"""The loop that runs every solver: tolerance, certificates, callbacks, early stopping, Ctrl-C, resuming."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from partwise import kernels
from partwise.features.sparse_weights import written_out
from partwise.objective import Value, count_skipped, mean_cost
from partwise.solvers.base import Solver, Task
from partwise.solvers.checks import check, check_completions, check_sizes, size_of
from partwise.solvers.result import Best, Record, SolveResult


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
    """Run epochs until the tolerance, the patience, a callback, the user or `max_epochs` ends it (see `partwise.solve`).

    Without `keep_state`, that of `resume` is used up as well: nothing is copied.
    """
    task = dataclasses.replace(task, tol=tol)
    check(solver, task.problem, task.loss, task.l1_ratio, task.penalty_weight is not None)
    check_sizes(task, validation, start, resume)
    check_completions(task)
    solver, max_epochs = (solver, solver.default_epochs) if max_epochs is None else (solver.within(max_epochs), max_epochs)
    if resume is None:
        state = solver.init(task, start)
    else:
        state = copy.deepcopy(resume.state) if keep_state else resume.state
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
            if validation is not None and progress.settled:
                weights = solver.weights(state)
                held_out = validation(weights) if callable(validation) else mean_cost(validation, weights, task.n_jobs)
                record = dataclasses.replace(record, validation=held_out)
                if best is None or held_out < best.cost:
                    best = Best(weights, held_out, state.epochs)
            history.append(record)
            resumable = functools.partial(unfinished, solver, task, state, history, best)
            seen = record.with_access(max_epochs, lambda: written_out(solver.weights(state)), resumable)
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
    caution = solver.caution(task, state, history[-1].loss) if history and status != "interrupted" else ""
    rounds = solver.rounds(state)  # before `finish` takes the state apart
    if best is not None:
        w = best.weights
    elif not keep_state and (evaluate in ("primal", "never") or solver.model_suffices):
        w = solver.finish(state)
    else:
        w = solver.weights(state)
    if not (math.isfinite(w.min(initial=0.0)) and math.isfinite(w.max(initial=0.0))):  # NaN shows in both; no memory
        raise FloatingPointError(
            f"Solver {solver.name!r} diverged: the weights are not finite. Try a smaller C or scale the features."
        )
    if evaluate != "never" and status != "interrupted" and (evaluated_at != state.epochs or best is not None):
        with contextlib.suppress(KeyboardInterrupt):  # impatience with the certificate must not cost the model
            if evaluate == "primal":
                last = solver.value_at(task, state, w, dual=False)
            elif best is None:
                if solver.model_suffices:
                    last = solver.value_at(task, state, w)
                else:
                    last = solver.bounds(task, state)
                    w = solver.weights(state)  # bounds may have found which of its iterates is best
                if why := solver.verdict(state, last, tol):
                    status, message = "converged", why
            else:
                last = solver.value_at(task, state, w)
    if math.isinf(last.primal):
        raise FloatingPointError(
            f"Solver {solver.name!r} diverged: the objective is infinite. Try a smaller C or scale the features."
        )
    unseen, skipped = solver.unseen(task, state, w) if math.isfinite(last.primal) else math.nan, 0
    if evaluate != "never" and status != "interrupted" and not kernels.is_exact(task.problem):
        with contextlib.suppress(KeyboardInterrupt):
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
        caution=caution,
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
    if status == "converged":
        return "approximate", f"{said}, so that nothing is known of the optimum"
    return status, f"{message}; {said}"


def _has_moved(history: list[Record], best: Best) -> bool:
    """Whether the held-out score has changed since the first epoch, or cannot get better.

    F1 stays at zero while a batch solver warms up; patience is for models that have begun to answer.
    """
    return best.cost <= 0.0 or len({record.validation for record in history if record.validation == record.validation}) > 1


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
