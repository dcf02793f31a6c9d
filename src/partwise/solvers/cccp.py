"""CCCP: the concave-convex procedure, for ramp losses, hidden parts and partial labels, with any convex solver inside.

Problem: ``min_w J(w) = 1/2 ||w||^2 + sum_i C_i (convex_i(w) - max_{y in G_i} [s(y) - b l_i(y)])``, where convex_i is a member of
the family L(beta, gamma) without its target. The choice of G_i and b is that of the loss and the labels:

    ramp(a, b)                      G_i = all outputs           target: the cost-diminished best (Mancev b = 1, Do b = 0)
    partial labels, hidden parts    G_i = what the labels allow, b = 0    target: the best completion (Yu and Joachims 2009)

The second half is concave. Its tangent at the current w is w . F(x_i, t_i), t_i being the maximiser, so what is left is the
convex problem (P) with that target, and it bounds J from above:

    t_i = the truth for all i  (or the maximisers at weights to start from)
    repeat                                                                            a round
        w   <- argmin_w 1/2 ||w||^2 + sum_i C_i L_i(w; t_i),  from where the last round ended, by the solver inside
        t_i <- argmax_{y in G_i} s(y) - b l_i(y)  for all i
    until no target changes, or J falls by less than the tolerance

J(w_new) <= bound(w_new) <= bound(w_old) = J(w_old): J never rises, if the solver inside gets below where it started. As
solvers are stopped before the optimum, that is checked: weights that raise J are not taken, and the round goes on with a tighter
tolerance. With the truth for first targets, the first round minimises the convex loss, the hinge for ramp(1, .).

A warm start is exact in the dual: multipliers stay feasible, only w follows, w += C_i (F(x_i, t_new) - F(x_i, t_old)). With SDM
inside this is Algorithm 1 of Mancev (2015), whose line 10 subtracts the old v again in each round; w must be u - v.

Where the solver inside returns an average of its iterates, there are two weights to choose targets at. The tangent at the model,
which is the average, touches J there, so that is the default (``targets_at="model"``). Algorithm 1 of Mancev chooses them at the
last iterate w, whatever is returned in the end: ``targets_at="current"``, for one more pass per round. J is still that of the
model.

Rounds end early at first: a relative duality gap of `FIRST`, then a third of that each, down to the tolerance of the run. Solvers
without a certificate get a number of epochs, and nobody knows how far they are from the optimum of their round: when `PATIENCE`
rounds have lowered J by less than the tolerance the run ends, but it does not claim to have converged.

Cost of a round: that of the solver inside, and a pass of two oracle calls per example (one for partial labels) for J and the new
targets. Memory: that of the solver inside, the targets, and the best w.

References
----------
A. L. Yuille, A. Rangarajan (2003). The concave-convex procedure. Neural Computation 15.
C. B. Do, Q. Le, C. H. Teo, O. Chapelle, A. Smola (2008). Tighter bounds for structured estimation. NIPS.
C.-N. Yu, T. Joachims (2009). Learning structural SVMs with latent variables. ICML.
D. Mancev (2015). A sequential dual method for the structured ramp loss minimization. Facta Universitatis 30(1).
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from partwise import kernels
from partwise.engine.compilation import compiled_loop
from partwise.engine.numerics import copy
from partwise.engine.threads import in_threads, parts_elsewhere
from partwise.kernels import chunks
from partwise.losses.in_loops import evaluate, workspace
from partwise.losses.penalty import penalty
from partwise.losses.records import Loss
from partwise.objective import Value
from partwise.solvers.base import Progress, Solver, State, Task
from partwise.solvers.dca import DCA
from partwise.solvers.result import Round
from partwise.solvers.sdm import SDM

FIRST = 0.1  # relative gap at which the first round ends: a loss known by heart is not refused any more
TIGHTER = 1.0 / 3.0  # of the tolerance, from round to round
LONGEST = 50  # epochs of a round of a solver with a certificate, whatever its gap
SHORT = 2  # epochs of a round of a solver without one: long first rounds learn wrong labels by heart
PLACES = ("model", "current")  # to choose targets at
BY_HEART, MANY = 0.02, 100  # mean loss below which examples are known by heart, and how many of them that takes
PATIENCE = 2  # rounds that lower J by less than the tolerance, after which a solver without a certificate gives up


@compiled_loop
def target_pass(problem, loss, first, last, w, work, starts, losses, targets, costs):
    """losses[i] = L_i(w), the maximiser of its concave half into `targets`, and its cost, for first <= i < last."""
    for i in range(first, last):
        losses[i] = evaluate(loss, problem, i, w, 1.0, work)
        target = targets[starts[i] : starts[i + 1]]
        copy(work.t[: len(target)], target)
        costs[i] = kernels.cost(problem, i, target)


def choose_targets(problem: Any, loss: Loss, w: np.ndarray, starts: Any = None, n_jobs: Any = None) -> tuple[np.ndarray, ...]:
    """Losses of all examples, the costs of the targets that `w` chooses, and these, end to end; in threads."""
    n, starts = int(kernels.n_examples(problem)), kernels.sizes(problem)[0] if starts is None else starts
    losses, costs, targets = np.zeros(n), np.zeros(n), np.zeros(starts[-1], np.int32)

    def run(chunk):
        target_pass(problem, loss.kernel, *chunk, w, workspace(problem, w.dtype), starts, losses, targets, costs)

    in_threads(run, chunks(problem), n_jobs)
    return losses, costs, targets


def retargeted(part: Any, targets: np.ndarray) -> Any:
    """Some of the examples with other targets, where they are."""
    return kernels.with_targets(part, np.ascontiguousarray(targets))


@compiled_loop
def different(starts, some, others, changed):
    """changed[i]: whether example i has another output in `others` than in `some`."""
    for i in range(len(changed)):
        changed[i] = False
        for k in range(starts[i], starts[i + 1]):
            if some[k] != others[k]:
                changed[i] = True


class View(NamedTuple):
    """What weights make of the problem: the objective, and the targets they would choose."""

    objective: float
    targets: np.ndarray  #: outputs end to end
    refused: int  #: targets that differ from the truth


@dataclass
class CCCPState(State):
    """The state of the solver inside, the targets of its problem, and the best weights so far."""

    grows: ClassVar[tuple[str, ...]] = ("record",)

    inside: Any = None
    targets: np.ndarray | None = None
    starts: np.ndarray | None = None  #: offsets of the targets
    best: np.ndarray | None = None
    objective: float = math.inf  #: J(best)
    tolerance: float = FIRST
    begun: int = 0  #: epochs before this round
    idle: int = 0  #: rounds in a row that lowered J by less than the tolerance
    looks: int = 0  #: oracle calls for objectives and targets
    record: np.ndarray = field(default_factory=lambda: np.zeros((0, len(Round._fields))))
    done: bool = False
    at_best: bool = False  #: whether `best` is better than where the solver inside is

    def check(self, like: CCCPState, task: Task) -> None:
        """Raise a ValueError, unless the targets that were read from a file are those of the problem's outputs."""
        if (self.starts != like.starts).any() or self.record.shape[1:] != like.record.shape[1:]:
            raise ValueError("the targets do not begin where they should, or the rounds are no rounds")


@dataclass(frozen=True)
class CCCP(Solver):
    """The concave-convex procedure around a convex solver (see the module); an epoch is one of the solver inside.

    Parameters
    ----------
    solver : Solver
        Of the convex problems. `solve` puts a solver into CCCP by itself where the loss is not convex.
    epochs : int, optional
        Of each round (Mancev's T). None: until the gap of the round is below its tolerance, which is `tol` in the end.
    targets_at : {"model", "current"}
        Where targets are chosen, if the solver inside averages its iterates: at the model of the round, which is the average, or
        at its last iterate, as in Mancev's Algorithm 1 (see the module).

    Examples
    --------
    >>> from partwise import multiclass_problem, solve
    >>> problem = multiclass_problem([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0, 1, 0])
    >>> result = solve(problem, "ramp", CCCP(DCA()), C=1.0)
    >>> len(result.rounds) >= 1, result.rounds[-1].objective == result.primal
    (True, True)
    """

    takes = "differences"

    solver: Solver = field(default_factory=SDM)
    epochs: int | None = None
    targets_at: str = "model"

    def __post_init__(self):
        if not isinstance(self.solver, Solver) or isinstance(self.solver, CCCP) or self.solver.takes == "differences":
            raise ValueError(f"The 'solver' parameter of CCCP must be a solver of convex problems. Got {self.solver!r} instead.")
        if self.epochs is not None and (not isinstance(self.epochs, int | np.integer) or self.epochs < 1):
            raise ValueError(f"The 'epochs' parameter of CCCP must be an int in [1, inf) or None. Got {self.epochs!r} instead.")

        if self.targets_at not in PLACES:
            raise ValueError(f"The 'targets_at' parameter of CCCP must be 'model' or 'current'. Got {self.targets_at!r} instead.")

    @property
    def name(self) -> str:  # type: ignore[override]
        """That of the solver, as its users know it: for a loss that is not convex, it cannot mean anything else."""
        return self.solver.name

    @property
    def accepted(self) -> str:  # type: ignore[override]
        """In words: what it minimises is up to the solver inside."""
        return f"{self.solver.accepted}, and ramp losses with such a convex half"

    @property
    def default_epochs(self) -> int:  # type: ignore[override]
        """Those of the solver inside, but enough for a few rounds."""
        return max(self.solver.default_epochs, 4 * (self.epochs or SHORT))

    @property
    def needs(self) -> tuple[Any, ...]:  # type: ignore[override]
        """Kernels that the solver inside needs."""
        return self.solver.needs

    @property
    def sparse(self) -> bool:  # type: ignore[override]
        """Whether the solver inside takes an L1 penalty."""
        return self.solver.sparse

    @property
    def weighted(self) -> bool:  # type: ignore[override]
        """Whether the solver inside takes a penalty of its own for each weight."""
        return self.solver.weighted

    @property
    def everywhere(self) -> bool:  # type: ignore[override]
        """Whether the solver inside can work on examples that are elsewhere."""
        return self.solver.everywhere

    @property
    def adds_up_bound(self) -> bool:
        """That of the solver inside."""
        return self.solver.adds_up_bound

    @property
    def certified(self) -> bool:
        """Whether the solver inside can tell how far it is from the optimum of its problem."""
        return self.solver.certified

    def check_size(self, problem: Any) -> None:
        self.solver.check_size(problem)

    def accepts(self, loss: Loss) -> bool:
        return loss.uses_target and self.solver.accepts(loss.convex)

    def init(self, task: Task, start: np.ndarray | None = None) -> CCCPState:
        starts, _ = kernels.sizes(task.problem)
        state = CCCPState(starts=starts)
        if start is None and kernels.is_partial(task.problem):
            start = first_guess(task)  # at w = 0 all completions tie, and the first of them means nothing
        else:
            state.best = None if start is None else np.array(start, task.dtype)
        w = np.zeros(kernels.n_weights(task.problem), task.dtype) if start is None else start
        view = self.look(task, state, np.asarray(w, task.dtype))
        state.targets, state.looks = view.targets, task.n
        if state.best is not None:
            state.objective = view.objective
        state.inside = self.solver.init(self.convex(task, state.targets), start)
        return state

    def convex(self, task: Task, targets: np.ndarray) -> Task:
        """The convex problem with these targets."""
        problem = kernels.with_targets(task.problem, targets)
        if parts_elsewhere(task.n_jobs, task.problem) is not None:
            task.n_jobs.remember(problem, targets, kernels.sizes(task.problem)[0], retargeted)
        return dataclasses.replace(task, problem=problem, loss=task.loss.convex)

    def look(self, task: Task, state: CCCPState, w: np.ndarray) -> View:
        """J(w) and the targets that w chooses: one pass over the examples, in threads."""
        if (parts := parts_elsewhere(task.n_jobs, task.problem)) is not None:
            losses, costs, targets = map(np.concatenate, zip(*parts.each(choose_targets, task.loss, w), strict=True))
        else:
            losses, costs, targets = choose_targets(task.problem, task.loss, w, state.starts, task.n_jobs)
        value = penalty(w.astype(np.float64, copy=False), task.l1_ratio, task.penalty_weight) + float(task.C @ losses)
        return View(value, targets, int(np.count_nonzero(costs[task.C > 0])))

    def epoch(self, task: Task, state: CCCPState) -> Progress:
        problem = self.convex(task, state.targets)
        progress = self.solver.epoch(problem, state.inside)
        state.epochs, state.at_best, state.done = state.inside.epochs, False, False
        scale = max(abs(progress.loss), progress.primal)
        in_round = state.epochs - state.begun
        if self.epochs is not None:
            over, value = in_round >= self.epochs, None
        elif not self.certified:
            over, value = in_round >= SHORT, None
        else:
            tolerance = max(state.tolerance, task.tol)
            over, value = in_round >= LONGEST, None
            if over or progress.estimate <= tolerance * scale:
                value = self.solver.bounds(problem, state.inside)
                over = over or bool(self.solver.verdict(state.inside, value, tolerance))
        if over:
            self.finish_round(task, state, problem, value or self.solver.bounds(problem, state.inside))
        state.oracle_calls = state.inside.oracle_calls + state.looks
        if not self.certified:
            return Progress(progress.loss, math.inf, progress.primal, stuck=state.done)
        return Progress(progress.loss, 0.0 if state.done else max(progress.estimate, scale), progress.primal)

    def finish_round(self, task: Task, state: CCCPState, problem: Task, value: Value) -> None:
        """Take the weights if J is lower, and choose the next targets."""
        w = self.solver.weights(state.inside)
        view = chosen = self.look(task, state, w)
        state.looks += task.n
        if self.targets_at == "current" and not np.array_equal(last := self.solver.current(state.inside), w):
            chosen = self.look(task, state, last)
            state.looks += task.n
        changed = np.zeros(task.n, np.bool_)
        different(state.starts, state.targets, chosen.targets, changed)
        changed &= task.C > 0
        fall = state.objective - view.objective
        solved = not self.certified or bool(self.solver.verdict(state.inside, value, task.tol))
        state.idle = state.idle + 1 if fall <= task.tol * abs(view.objective) else 0
        if fall > 0:
            state.best, state.objective = w, view.objective
        state.at_best = True
        numbers = (state.objective, changed.sum(), chosen.refused, value.primal, value.dual, max(state.tolerance, task.tol))
        state.record = np.vstack([state.record, [state.epochs, *numbers]])
        enough = (state.idle > 0 or not changed.any()) if self.certified else state.idle >= PATIENCE
        state.done = task.tol > 0 and solved and enough
        state.begun = state.epochs
        state.tolerance *= TIGHTER
        if fall > 0 or not self.certified:
            after = self.convex(task, chosen.targets)
            state.targets = chosen.targets
            state.inside = self.solver.retarget(problem, after, state.inside, np.flatnonzero(changed))

    def weights(self, state: CCCPState) -> np.ndarray:
        if state.at_best and state.best is not None:
            return state.best.copy()
        return self.solver.weights(state.inside)

    def bounds(self, task: Task, state: CCCPState) -> Value:
        """J at the weights; they are the best so far where the solver inside has not got below them."""
        if not state.at_best:
            w = self.solver.weights(state.inside)
            value = self.look(task, state, w).objective
            state.at_best = value >= state.objective
            if not state.at_best:
                return Value(value, math.nan, np.zeros(0))
        return Value(state.objective, math.nan, np.zeros(0))

    def verdict(self, state: CCCPState, value: Value, tol: float) -> str:
        if not self.certified or not state.done or not state.at_best:
            return ""
        last, which = self.rounds(state)[-1], f"round {len(state.record)}"
        fall = f"{which} lowered the objective by less than {tol:g} of it"
        words = fall if last.changed else f"no target changes after {which}"
        return f"{words}, relative duality gap {last.gap / max(last.primal, 1e-300):.2g}"

    def why_stuck(self, task: Task, state: CCCPState) -> str:
        if self.rounds(state)[-1].changed:
            words = f"the last {PATIENCE} rounds lowered the objective by less than {task.tol:g} of it each"
        else:
            words = "no target changed in the last round"
        return f"{words}; the inner solver has no certificate"

    def caution(self, task: Task, state: CCCPState, loss: float) -> str:
        """A ramp that has refused nothing, because all labels were learnt by heart."""
        n = np.count_nonzero(task.C)
        rounds = self.rounds(state)
        if task.loss.is_convex or n < MANY or not rounds or rounds[-1].refused or loss >= BY_HEART * float(task.C.sum()):
            return ""
        return (
            "the ramp has refused nothing: nearly all labels were learnt by heart, wrong ones too. Decrease C, or take "
            "solver='out_of_fold', by which models that have not seen an example refuse it"
        )

    def rounds(self, state: CCCPState) -> list[Round]:
        return [Round(int(e), j, int(c), int(r), p, d, t) for e, j, c, r, p, d, t in state.record.tolist()]


def first_guess(task: Task, start: np.ndarray | None = None) -> np.ndarray:
    """Weights to choose first completions by: an epoch of DCA, which completes as it goes, from `start` (or zero)."""
    solver, task = DCA(), dataclasses.replace(task, loss=task.loss.convex)
    state = solver.init(task, start)
    solver.epoch(task, state)
    return solver.weights(state)
