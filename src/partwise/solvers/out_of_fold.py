"""Out-of-fold refusal: what is given is not believed where models that have not seen it, and the likeliest noise, say otherwise.

Ramp losses give up examples that are too far from what the model thinks. CCCP lets the model judge its own training data, and it
begins with the hinge, which has learnt the wrong labels as well as the right ones: with many features they stay believed. Here
the targets are chosen by *judges* instead:

    deal the examples out into K parts
    repeat                                                                                    a round, `repeats` of them
        w_k <- argmin_w 1/2 ||w||^2 + sum_{i not in part k} C_i J_i(w)                        for all k
        fit the noise by the likelihood of what is given in part k under w_k, all k together  (`partwise.solvers.noise`)
        t_i <- argmax_y beta s_k(y) - tau l_i(y)                                              w_k not having seen example i
        refused: positions of t_i that are not what is given, and are more probably wrong than right
    w <- argmin_w 1/2 ||w||^2 + sum_i C_i L_i(w; t_i) over what is not refused

The judges of the first round believe what is given: J_i is the convex loss L_i, by the solver inside. Those of later rounds know
of the noise that was found, and learn by the likelihood that what is given has come through it (`SoftRamp`, with b = tau),

    J_i(w) = log sum_y exp(s(y) + l_i(y)) - log sum_y exp(s(y) - tau l_i(y)),

by Pegasos. They refuse nothing outright: what is given at a position is evidence, the weaker the noisier the data are, and a
thousand uncertain labels still say something together. (Judges who learn only from what others have not refused repeat what these
got wrong.) C_i is `SOFTER` times as large here, since a sum over outputs pulls less than a maximum, times the probability that
example i is not random as a whole. The last problem is the hinge again: by itself J is not safe, for a model that takes most
labels of a rare kind for mistakes may end up predicting none of them.

The target is that of a ramp loss, with b = tau / beta: but how much a label has to cost to be believed (b) is not decreed, it
follows from how noisy the data are, part by part. A position that is refused becomes *unknown* (`kernels.forget`): no answer
costs anything there, and margins are measured against the best of the acceptable outputs, as wherever labels are unknown: what
is believed may be wrong, too, and as a target it would pull at the weights. (Solvers that need one target each, those of the
dual, measure against t_i.) Where more than half of an example is refused, or structures do not know unknown positions, the
example is left out: C_i = 0, as Mancev's set A has no pull on the weights. If next to nothing is refused (`NEGLIGIBLE`), nothing
is: rounds end, and the last line is the convex problem of the hinge, so clean data are learnt from as ever.

Refusing can do harm: where judges are often mistaken, they refuse what is hard rather than what is wrong, and judges who have
learnt from the rest know less. So they are compared: those of later rounds, who learnt from what was not refused, with those of
the first, who learnt from all, by how often they predict what is given to others. Wrong labels there spare neither. If later ones
are worse by more than `ERRORS` standard errors (of the difference of paired counts), and by more than a share `HARM` of what they
refuse, nothing is refused. (The second condition: they learn by another loss than the first ones, which makes a difference, too,
of one position in a thousand, say; with enough data that is many standard errors.)

An epoch is one of the solver inside, for all judges at once (in threads) or for the last problem. Cost of a round: K - 1 epochs'
work for each epoch, and the noise's. Memory: K times that of the solver inside.

References
----------
D. Mancev (2015). A sequential dual method for the structured ramp loss minimization. Facta Universitatis 30(1).
C. Northcutt, L. Jiang, I. Chuang (2021). Confident learning: estimating uncertainty in dataset labels. JAIR 70.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from partwise import kernels
from partwise.engine.ragged import totals
from partwise.engine.threads import in_threads
from partwise.losses.records import Loss, SoftRamp
from partwise.objective import Value, likeliest_beta
from partwise.solvers.base import Progress, Solver, State, Task
from partwise.solvers.noise import Judge, Judgement, dealt, fit_noise, judged
from partwise.solvers.pegasos import Pegasos
from partwise.solvers.result import Round

MOST_REFUSED = 0.5  # of an example's positions: one with more of them is left out
MOST_LEFT_OUT = 0.5  # of all examples: more is not plausible
ERRORS = 2.0  # standard errors by which judges must be worse for refusing to have done harm
HARM = 0.1  # of what is refused must be lost: where it does harm it is half (segment), else a fiftieth at most (Dutch)
NEGLIGIBLE = 0.002  # of all positions: so much is wrong in every corpus that people have made, and harms nobody
LEAST = 1e-6  # of all positions are taken to be wrong
SOFTER = 3.0  # times C: for judges who sum over outputs
EXAMPLES = 500  # that the noise is fitted to: more of them take longer and decide alike
FEW = 300  # examples that a first guess of a judge's temperature takes


@dataclass
class OutOfFoldState(State):
    """States of the solver inside, what is refused, and how far the run is."""

    grows: ClassVar[tuple[str, ...]] = ("record",)

    judges: list[Any] = field(default_factory=list)
    inside: Any = None  #: of the last problem, once judging is over
    begun: int = 0  #: epochs before this stage
    is_judged: bool = False
    refused: np.ndarray | None = None  #: (positions,) bool
    targets: np.ndarray | None = None  #: (positions,) int32
    left_out: np.ndarray | None = None  #: (N,) bool
    contradicted: np.ndarray | None = None  #: (positions,) bool: what the judges of the first round predict is not what is given
    trust: float = 0.0  #: tau, as the last round has found it; 0: there was none
    random: np.ndarray | None = None  #: (N,) how probably each example is random, likewise
    harmed: bool = False  #: whether refusing made judges worse
    record: np.ndarray = field(default_factory=lambda: np.zeros((0, len(Round._fields))))

    def check(self, like: OutOfFoldState, task: Task) -> None:
        """Raise a ValueError, unless a state that was read from a file has rounds, and judges where it needs them."""
        if self.record.shape[1:] != like.record.shape[1:] or (like.judges and not self.judges and not self.is_judged):
            raise ValueError("the rounds are no rounds, or there are no judges")


@dataclass(frozen=True)
class OutOfFold(Solver):
    """Out-of-fold refusal around a convex solver (see the module).

    Parameters
    ----------
    solver : Solver
        Of the convex problems.
    folds : int
        Parts that the examples are dealt out into. With fewer examples than twice as many, nothing is judged.
    repeats : int
        Rounds of judging, at most: judges of the second round know what noise the first has found.
    epochs : int
        Of each round, and of the last problem. A run of another number of epochs divides them evenly (`within`).
    """

    name = "out_of_fold"
    takes = "differences"
    needs = (
        kernels.expected,
        kernels.add_cost,
        kernels.add_parts,
        kernels.agreement,
        kernels.indicate,
        kernels.truth,
        kernels.take,
    )

    solver: Solver = field(default_factory=Pegasos)
    folds: int = 5
    repeats: int = 2
    epochs: int = 10

    def __post_init__(self):
        if not isinstance(self.solver, Solver) or self.solver.takes == "differences":
            raise ValueError(
                f"The 'solver' parameter of OutOfFold must be a solver of convex problems. Got {self.solver!r} instead."
            )
        for name, least in (("folds", 2), ("repeats", 1), ("epochs", 1)):
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
                raise ValueError(f"The {name!r} parameter of OutOfFold must be an int in [{least}, inf). Got {value!r} instead.")

    @property
    def accepted(self) -> str:  # type: ignore[override]
        """In words."""
        return f"ramp losses with a convex half that {self.solver.name!r} takes"

    @property
    def default_epochs(self) -> int:  # type: ignore[override]
        """Those of all stages."""
        return (self.repeats + 1) * self.epochs

    def within(self, max_epochs: int) -> OutOfFold:
        return dataclasses.replace(self, epochs=max(1, max_epochs // (self.repeats + 1)))

    @classmethod
    def suits(cls, problem: Any) -> bool:
        """Whether a structure has what judges need: sums that can be trusted, and a truth to compare with."""
        return kernels.is_exact(problem) and kernels.implements(problem, *cls.needs)

    def check_size(self, problem: Any) -> None:
        if self.solver.fixed_targets and kernels.is_partial(problem):
            raise ValueError(
                f"The solver {self.solver.name!r} inside 'out_of_fold' needs one target per example, but the problem is "
                "partially labelled. Take 'out_of_fold(pegasos)'."
            )
        self.solver.check_size(problem)

    def accepts(self, loss: Loss) -> bool:
        return loss.uses_target and not loss.is_convex and self.solver.accepts(loss.convex)

    # -- the problems -------------------------------------------------------------------------------------------------

    def convex(self, task: Task, state: OutOfFoldState) -> Task:
        """The problem without what is refused."""
        assert state.refused is not None and state.left_out is not None and state.targets is not None
        problem = task.problem
        if state.refused.any() and kernels.implements(problem, kernels.forget):
            partial = kernels.is_partial(problem)
            problem = kernels.forget(problem, state.refused, state.targets)
            if self.solver.fixed_targets and not partial:  # one target each, as dual methods need it
                problem = kernels.with_targets(problem, problem.targets)
        return dataclasses.replace(task, problem=problem, loss=task.loss.convex, C=np.where(state.left_out, 0.0, task.C))

    def judging(self, task: Task, state: OutOfFoldState) -> tuple[Solver, Task]:
        """Who trains the judges of this round, and on what: that of all parts."""
        if not state.trust:
            return self.solver, self.convex(task, state)
        assert state.random is not None
        return Pegasos(), dataclasses.replace(task, loss=SoftRamp(b=state.trust), C=SOFTER * task.C * (1.0 - state.random))

    def others(self, task: Task, fold: int) -> Task:
        """What the judge of a part learns from."""
        return dataclasses.replace(task, C=np.where(dealt(task.n, self.folds, task.seed) == fold, 0.0, task.C))

    # -- the run ------------------------------------------------------------------------------------------------------

    def init(self, task: Task, start: np.ndarray | None = None) -> OutOfFoldState:
        starts, _ = kernels.sizes(task.problem)
        n = int(starts[-1])
        state = OutOfFoldState(refused=np.zeros(n, np.bool_), targets=np.zeros(n, np.int32), left_out=np.zeros(task.n, np.bool_))
        state.random = np.zeros(task.n)
        state.is_judged = bool(np.count_nonzero(task.C) < 2 * self.folds)
        convex = self.convex(task, state)
        if not state.is_judged:
            state.judges = [self.solver.init(self.others(convex, k), start) for k in range(self.folds)]
        state.inside = self.solver.init(convex, start) if state.is_judged else state.judges[0]
        return state

    def epoch(self, task: Task, state: OutOfFoldState) -> Progress:
        state.epochs += 1
        if state.is_judged:
            progress = self.solver.epoch(self.convex(task, state), state.inside)
            state.oracle_calls += task.n
            state.judges = []
            return Progress(progress.loss, math.inf, progress.primal)

        solver, whole = self.judging(task, state)

        def advance(fold: int) -> float:
            return solver.epoch(self.others(whole, fold), state.judges[fold]).loss

        loss = float(np.mean(in_threads(advance, range(self.folds), task.n_jobs)))
        state.oracle_calls += (self.folds - 1) * task.n
        if state.epochs - state.begun >= self.epochs:
            self.finish_round(task, state)
        return Progress(loss, math.inf, settled=False)

    def finish_round(self, task: Task, state: OutOfFoldState) -> None:
        """Judge, refuse, and set up the next round or the last problem."""
        before, found = state.refused, self.judgement(task, state)
        evidence = found.evidence
        state.refused = evidence.disputed & (found.parts > 0.0)
        state.refused &= np.count_nonzero(state.refused) > NEGLIGIBLE * len(state.refused)
        if state.contradicted is None:
            state.contradicted = found.contradicted
        lost = np.count_nonzero(found.contradicted & ~state.contradicted)
        won = np.count_nonzero(state.contradicted & ~found.contradicted)
        least = max(ERRORS * math.sqrt(lost + won), HARM * np.count_nonzero(state.refused))
        state.harmed = bool(lost - won > least)
        state.refused &= not state.harmed
        state.targets = evidence.believed
        refused, changed = (totals(where, evidence.starts) for where in (state.refused, state.refused != before))
        state.left_out = refused > MOST_REFUSED * np.diff(evidence.starts)
        numbers = (math.nan, np.count_nonzero(changed), np.count_nonzero(refused), math.nan, math.nan, math.nan)
        state.record = np.vstack([state.record, [state.epochs, *numbers]])
        left = self.repeats - len(state.record)
        state.is_judged = left == 0 or state.harmed or not changed.any()
        if state.is_judged:
            state.epochs += left * self.epochs  # what is left of the rounds would change nothing
        state.begun, state.trust, state.random = state.epochs, found.noise.trust, found.random
        if state.is_judged:
            state.inside = self.solver.init(self.convex(task, state))
        else:
            solver, whole = self.judging(task, state)
            state.judges = [solver.init(self.others(whole, k)) for k in range(self.folds)]

    def judgement(self, task: Task, state: OutOfFoldState) -> Judgement:
        """What the judges make of all that is given."""
        (solver, _), part, judges = self.judging(task, state), dealt(task.n, self.folds, task.seed), []
        for fold, inside in enumerate(state.judges):
            which = np.flatnonzero((part == fold) & (task.C > 0.0))
            w = solver.weights(inside).astype(np.float64, copy=False)
            few = kernels.take(task.problem, which[:FEW])
            judges.append(Judge(kernels.take(task.problem, which), which, w, likeliest_beta(few, w, task.n_jobs)))
        state.oracle_calls += 2 * task.n
        # who looks for mistakes takes it that there are some; who learns does not. And one opinion: a second one, of each
        # position by itself, believes more of what is random, which all of them together find
        noise = fit_noise(judges, task.seed, task.n_jobs, LEAST, EXAMPLES)
        return judged(task.problem, judges, noise, task.n_jobs, second_opinion=False)

    # -- what came out ------------------------------------------------------------------------------------------------

    def weights(self, state: OutOfFoldState) -> np.ndarray:
        if state.judges:  # the last problem is not begun
            solver = Pegasos() if state.trust else self.solver
            found = [solver.weights(judge) for judge in state.judges]
            return np.mean(found, axis=0).astype(found[0].dtype, copy=False)
        return self.solver.weights(state.inside)

    def caution(self, task: Task, state: OutOfFoldState, loss: float) -> str:
        """Judges who know less for having refused; or most of the data left out."""
        assert state.left_out is not None
        if state.harmed:
            return (
                "nothing is refused, for models that refused what they took for wrong predicted others' labels worse than models "
                "that did not. What came out is that of the convex loss, the hinge"
            )
        left_out, n = np.count_nonzero(state.left_out & (task.C > 0.0)), np.count_nonzero(task.C)
        if left_out <= MOST_LEFT_OUT * n:
            return ""
        return (
            f"{left_out} of {n} examples are refused as a whole. Either most of them are wrong, or these features cannot explain "
            "them: look at some (suspects), and compare with loss='hinge' on held-out data"
        )

    def bounds(self, task: Task, state: OutOfFoldState) -> Value:
        """The ramp objective at the weights; nothing is known of its minimum."""
        return self.value_at(task, state, self.weights(state), dual=False)

    def rounds(self, state: OutOfFoldState) -> list[Round]:
        return [Round(int(e), j, int(c), int(r), p, d, t) for e, j, c, r, p, d, t in state.record.tolist()]
