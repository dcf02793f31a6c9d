"""Solvers side by side: one problem, one loss, one C; objective, gap and score against seconds, passes and oracle calls.

Every solver is run by its three verbs (`init`, `epoch`, `weights`) with the stopwatch stopped while it is judged, and judged by
one piece of code: the objective P(w) of its weights, its own dual bound, and a score of the caller's. What counts in the end is

    above = (P(w) - bound) / bound,    bound = the highest dual bound that any of the solvers has found,

an upper limit of how far w is from the optimum, the same yardstick for those who have a certificate and those who have none.
Where the objective is not convex there is no bound, and the lowest objective of all takes its place.

A solver is judged after its first epochs and then whenever its time has grown by `GROWTH`: some sixty points, evenly spaced on a
logarithmic axis. Compiling is done beforehand on a few examples, so nobody pays for it.

Cost: that of the solvers, and one or two passes over the data for every point.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from partwise import kernels
from partwise.losses.records import Loss, get_loss
from partwise.objective import is_convex
from partwise.solvers import SOLVERS, Solver, Task, can_minimise, check, get_solver, make_task

GROWTH = 1.15  # of the time between two points
FIRST = 3  # epochs that are all judged
LEVELS = (1e-2, 1e-3, 1e-4)  # of `above`: how long each takes is told

Score = Callable[[np.ndarray], dict[str, float]]


@dataclass(frozen=True)
class Moment:
    """What a solver had after some epochs."""

    epoch: int
    seconds: float  #: of its own, wall clock
    cpu: float  #: seconds of all threads
    oracle_calls: int
    primal: float
    dual: float  #: nan: it knows none
    scores: dict[str, float] = field(default_factory=dict)


@dataclass
class Trace:
    """The way of one solver."""

    solver: str
    points: list[Moment] = field(default_factory=list)
    status: str = "running"  #: converged, max_epochs, max_seconds, stalled, interrupted, failed
    message: str = ""
    unseen: float = 0.0  #: see `SolveResult.unseen`

    @property
    def last(self) -> Moment:
        """Where it ended."""
        return self.points[-1]

    @property
    def bound(self) -> float:
        """Its highest dual bound; nan if it has none."""
        return max((p.dual for p in self.points if not math.isnan(p.dual)), default=math.nan)

    @property
    def gap(self) -> float:
        """Relative gap between its lowest objective and its highest bound: what it can certify itself."""
        lowest = min((p.primal for p in self.points), default=math.nan)
        return (lowest - self.bound) / max(abs(lowest), 1e-300)


@dataclass
class SolverComparison:
    """What `compare` found."""

    loss: str
    C: float
    examples: int
    weights: int
    convex: bool
    tol: float
    traces: list[Trace]

    @property
    def bound(self) -> float:
        """The highest dual bound of all, or the lowest objective where there is none."""
        duals = [t.bound for t in self.traces if not math.isnan(t.bound)]
        primals = [p.primal for t in self.traces for p in t.points if math.isfinite(p.primal)]
        lowest = min(primals, default=math.nan)
        return min(max(duals), lowest) if duals else lowest  # rounding alone crosses

    def above(self, trace: Trace) -> list[float]:
        """(P - bound) / bound at every point."""
        bound = self.bound
        return [(p.primal - bound) / max(abs(bound), 1e-300) for p in trace.points]

    def reached(self, trace: Trace, level: float) -> Moment | None:
        """The first point whose objective is that near to the bound."""
        return next((p for p, a in zip(trace.points, self.above(trace), strict=True) if a <= level), None)

    def score_names(self) -> list[str]:
        """Names of the scores."""
        return list(next((t.last.scores for t in self.traces if t.points), {}))

    def rows(self) -> list[dict[str, Any]]:
        """One row per solver, the quickest at the finest level that anyone reached first."""
        found = []
        for trace in self.traces:
            row: dict[str, Any] = {"solver": trace.solver, "status": trace.status}
            if trace.points:
                p = trace.last
                passes = p.oracle_calls / max(self.examples, 1)
                row |= {"epochs": p.epoch, "passes": passes, "seconds": p.seconds, "cpu": p.cpu, "objective": p.primal}
                row |= {"above": self.above(trace)[-1], "gap": trace.gap if not math.isnan(trace.bound) else math.nan}
                for level in LEVELS:
                    point = self.reached(trace, level)
                    row[f"to {level:g}"] = math.nan if point is None else point.seconds
                row |= p.scores
            found.append(row)

        def rank(row: dict[str, Any]) -> tuple[float, ...]:
            times = [row.get(f"to {level:g}", math.nan) for level in reversed(LEVELS)]
            return (*(math.inf if math.isnan(s) else s for s in times), row.get("above", math.inf))

        return sorted(found, key=rank)

    def to_dict(self) -> dict[str, Any]:
        """All numbers, for JSON."""
        head = {k: getattr(self, k) for k in ("loss", "C", "examples", "weights", "convex", "tol", "bound")}
        traces = [{**asdict(t), "above": self.above(t)} for t in self.traces]
        return {**head, "rows": self.rows(), "traces": traces}


def compare(
    problem: Any,
    solvers: Sequence[str | Solver] | None = None,
    loss: str | Loss = "hinge",
    C: float = 1.0,
    *,
    score: Score | None = None,
    tol: float = 1e-4,
    max_seconds: float = 30.0,
    max_epochs: int | None = None,
    seed: int = 0,
    dtype: Any = np.float64,
    n_jobs: int | None = None,
    report: Callable[[str], Any] | None = None,
) -> SolverComparison:
    """Run solvers on the same problem and keep what each had after so many seconds, passes and oracle calls.

    Parameters
    ----------
    problem
        A packed problem.
    solvers : sequence of names or objects, optional
        Those that can minimise `loss`, if left out.
    loss, C, seed, dtype, n_jobs
        As for `solve`.
    score : function of the weights, optional
        Scores on held-out data by name, say ``{"accuracy": 93.1}``.
    tol : float
        A solver is done when its own relative duality gap is no larger.
    max_seconds, max_epochs
        What each solver gets at most; seconds are its own, without compiling and judging. No `max_epochs`: no such limit.
    report : function, optional
        Called with a line of text when a solver begins and when it is done.

    Examples
    --------
    >>> from partwise.datasets import make_digit_words
    >>> X, y = make_digit_words(20)                                                        # doctest: +SKIP
    >>> compare(problem, ["sdm", "bcfw"], "hinge", 0.1).rows()[0]["solver"]                # doctest: +SKIP
    'sdm'
    """
    loss = get_loss(loss)
    task = make_task(problem, loss, C, seed=seed, dtype=dtype, n_jobs=n_jobs)
    chosen = [get_solver(s, problem, loss) for s in (able(problem, loss) if solvers is None else solvers)]
    for solver in chosen:
        check(solver, problem, loss)  # all of them, before the first one works for an hour
    n, d = int(kernels.n_examples(problem)), int(kernels.n_weights(problem))
    found = SolverComparison(loss.name, float(C), n, d, is_convex(problem, loss), tol, [])
    for solver in chosen:
        trace = Trace(solver.name)
        found.traces.append(trace)
        if report is not None:
            report(f"{solver.name} ...")
        try:
            solver.rehearse(task)
            follow(solver, task, trace, tol, max_seconds, max_epochs, score)
        except KeyboardInterrupt:
            trace.status, trace.message = "interrupted", "interrupted; the solvers that were to follow did not run"
            break
        except FloatingPointError as error:
            trace.status, trace.message = "failed", str(error)
        finally:
            if report is not None and trace.points:
                report(describe(trace))
    return found


def able(problem: Any, loss: Loss) -> list[str]:
    """The solvers that can minimise `loss` over `problem`, but for those made for L1 penalties: else they are SDM and L-BFGS."""
    names = []
    for name in can_minimise(loss):
        if SOLVERS[name].sparse:
            continue
        try:
            check(get_solver(name, problem, loss), problem, loss)
        except (TypeError, ValueError):
            continue
        names.append(name)
    if not names:
        raise ValueError(f"No solver can minimise the loss {loss.name!r} over {type(problem).__name__}. There are: {[*SOLVERS]}.")
    return names


def describe(trace: Trace) -> str:
    """A line for people."""
    p = trace.last
    gap = "no certificate" if math.isnan(trace.bound) else f"relative gap {trace.gap:.2g}"
    return f"{trace.solver}: {p.seconds:.2f} s, {p.epoch} epochs, objective {p.primal:.6g}, {gap} ({trace.status})"


def follow(
    solver: Solver,
    task: Task,
    trace: Trace,
    tol: float,
    max_seconds: float,
    max_epochs: int | None,
    score: Score | None,
) -> None:
    """Run one solver and write down what it has, with the stopwatch stopped."""
    clock, cpu_clock = time.perf_counter(), time.process_time()
    task = dataclasses.replace(task, tol=tol)
    state = solver.init(task)
    seconds, cpu, due = 0.0, 0.0, 0.0
    while True:
        progress = solver.epoch(task, state)
        now, cpu_now = time.perf_counter(), time.process_time()
        seconds, cpu = seconds + now - clock, cpu + cpu_now - cpu_clock
        near = progress.estimate <= tol * max(abs(progress.loss), progress.primal)
        over = seconds >= max_seconds or (max_epochs is not None and state.epochs >= max_epochs) or progress.stuck
        if state.epochs <= FIRST or seconds >= due or near or over:
            value = solver.bounds(task, state)
            w = solver.weights(state)
            if not np.isfinite(w).all():
                raise FloatingPointError(f"{solver.name} diverged: its weights are not finite. Try a smaller C.")
            scores = {} if score is None else score(w)
            trace.points.append(Moment(state.epochs, seconds, cpu, state.oracle_calls, value.primal, value.dual, scores))
            due = GROWTH * seconds
            if solver.verdict(state, value, tol):
                trace.status, trace.message = "converged", solver.verdict(state, value, tol)
                break
        if over:
            stuck, out_of_time = progress.stuck, seconds >= max_seconds
            trace.status = "stalled" if stuck else "max_seconds" if out_of_time else "max_epochs"
            break
        clock, cpu_clock = time.perf_counter(), time.process_time()
    trace.unseen = solver.unseen(task, state, solver.weights(state))
