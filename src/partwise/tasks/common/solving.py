"""From a problem to weights: what users leave open is chosen, a solver runs, and what came out is kept."""

from __future__ import annotations

import dataclasses
import math
import os
import sys
import warnings
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from partwise import kernels
from partwise.features.rows import n_emitted
from partwise.losses.records import Loss
from partwise.tasks.common.parameters import Parameters

if TYPE_CHECKING:  # solvers are imported by those who train: a model that only answers needs none
    from partwise.solvers import Solver, SolveResult
    from partwise.solvers.base import Task
    from partwise.solvers.defaults import Choice, Defaults


MANY = 64  # labels, from which on lists are the quicker way to score, too


class Solving(Parameters):
    """Minimises over all examples, or goes on with new ones."""

    checkpoint_seconds: ClassVar[float] = 10.0  #: at least so long between two checkpoints
    listed_from: ClassVar[int] = 1 << 28  #: bytes of weights, from which on training keeps lists of those that are not zero
    packer: ClassVar[list[Any] | None] = None  #: where problems go instead of to a solver, while a corpus is packed
    evaluate: ClassVar[str] = "end"  #: see `partwise.solve`; "auto": the dual bound only where the solver has it for little

    @classmethod
    def defaults(cls) -> Defaults:
        """Where the task differs from the rule for what users leave open."""
        from partwise.solvers.defaults import Defaults

        return Defaults()

    def _own_defaults(self) -> Defaults:
        """The same, where it depends on parameters."""
        return self.defaults()

    def _solve(
        self,
        problem: Any,
        loss: Loss,
        sample_weight: Any,
        validation: Any,
        start: Any,
        seed: int,
        checkpoint: Any = None,
        corpus: Any = None,
        shards: np.ndarray | None = None,
    ) -> None:
        """Minimise over `problem` and keep what came out; `corpus` and `shards`: whose it is, if it is on disk."""
        if self.packer is not None:
            self.packer.append(("", problem, sample_weight))
            self._keep_nothing(kernels.n_weights(problem), loss)
            return
        from partwise.solvers import SPELLING, make_task, with_average

        chosen, solver = self._choose(loss, problem, weight=sample_weight)
        task = make_task(problem, loss, chosen.C, sample_weight, seed, True, self._dtype, self.n_jobs, self.l1_ratio)
        if corpus is not None:
            task = dataclasses.replace(task, shards=cast(Any, shards), digest=corpus.digest)
        if self.engine is not None:
            solver, task = self._elsewhere(solver, task, corpus)
        if start is not None:
            self._check_size(problem, start)
        self._check_average(solver)
        solver = with_average(solver, self.average)
        self.C_ = chosen.C
        self._say(f"solver {SPELLING.spell(solver)!r}, loss {loss.name!r}, {task.n} examples")
        start = self._start(task, solver) if start is None else start
        if start is None:
            task = dataclasses.replace(task, lists=cast(Any, self._listed(task, solver)))
        self._run(solver, task, loss, validation, start, checkpoint, chosen.epochs)

    def _elsewhere(self, solver: Solver, task: Task, corpus: Any) -> tuple[Solver, Task]:
        """The solver and the task for examples that are worked on in several places."""
        from partwise.solvers import CCCP, SOLVERS
        from partwise.solvers.mixing import Mixed
        from partwise.solvers.online import OnlineSolver

        if corpus is None or corpus.problem is not task.problem:
            what = "early_stopping=True needs validation=" if corpus is not None else "fit needs a PackedCorpus (partwise pack)"
            raise ValueError(f"With engine={self.engine!r}, {what}: workers load their examples themselves.")
        inside = solver.solver if isinstance(solver, CCCP) else solver
        leaves = None
        if isinstance(inside, OnlineSolver):
            leaves = self.mixing_parts or 0
            mixed = Mixed(inside, self.mixing_epochs)
            solver = dataclasses.replace(solver, solver=mixed) if isinstance(solver, CCCP) else mixed
        elif not inside.everywhere:
            able = [name for name, kind in SOLVERS.items() if kind.everywhere is True or issubclass(kind, OnlineSolver)]
            raise ValueError(
                f"Solver {inside.name!r} keeps something for every example, which would have to be where the example is, and its "
                f"steps depend on each other: it cannot work in several places. Solvers that can: {', '.join(able)}."
            )
        return solver, dataclasses.replace(task, n_jobs=corpus.places(self.engine, self.n_jobs, leaves))

    def _solve_beside(self, name: str, problem: Any, loss: Loss, sample_weight: Any, seed: int) -> np.ndarray:
        """Weights of a second problem of the task, by DCA. They are to be kept as the attribute ``<name>_weights_``."""
        from partwise.solvers import solve

        if self.packer is not None:
            self.packer.append((name, problem, sample_weight))
            return np.zeros(kernels.n_weights(problem), self._dtype)
        loss = self._loss_beside(loss)
        chosen, solver = self._choose(loss, problem, "dca")
        how: dict[str, Any] = {"max_epochs": chosen.epochs, "seed": seed, "dtype": self._dtype}
        return solve(problem, loss, solver, chosen.C, sample_weight=sample_weight, tol=0.0, evaluate="never", **how).w

    def _loss_beside(self, loss: Loss) -> Loss:
        """The loss of a second problem, where that of the first is `loss`."""
        return loss

    def _keep_nothing(self, n_weights: int, loss: Loss) -> None:
        """What a model has that has learnt all but its weights."""
        self.weights_ = np.zeros(n_weights, self._dtype)
        self.solver_, self.C_ = "none", 1.0 if self.C is None else self.C
        self.temperature_ = 1.0 / loss.beta if loss.is_smooth else None

    def _choose(
        self, loss: Loss, problem: Any, solver: Any = None, streamed: bool = False, weight: Any = None
    ) -> tuple[Choice, Solver]:
        """What users leave open, filled in by the one rule for all tasks (`partwise.solvers.defaults`), and the solver."""
        from partwise.solvers import OutOfFold, get_solver
        from partwise.solvers.defaults import choose

        given = self.solver if solver is None else solver
        is_open = isinstance(given, str) and given == "auto"
        choice = choose(
            loss,
            self.l1_ratio,
            task=self._own_defaults(),
            solver=given if is_open else get_solver(given).name,
            C=self.C,
            epochs=self.max_epochs,
            spread=self._spread(problem, weight),
            examples=kernels.n_examples(problem),
            streamed=streamed,
            can_judge=OutOfFold.suits(problem),
        )
        return choice, get_solver(choice.solver if is_open else given, problem, loss, self.l1_ratio)

    def _spread(self, problem: Any, weight: np.ndarray | None) -> float | None:
        """The mean squared distance of the features from their mean, where they are numbers of any scale; None elsewhere."""
        return None

    def _start(self, task: Task, solver: Solver) -> np.ndarray | None:
        """Weights to begin at; None: zero."""
        return None

    def _run(self, solver, task, loss, validation, start, checkpoint, max_epochs, evaluate=None) -> None:
        from partwise.engine.dask_places import ClusterLost
        from partwise.solvers.checkpoint import Checkpoint
        from partwise.solvers.loop import run
        from partwise.solvers.online import OnlineSolver

        saver = None if checkpoint is None else Checkpoint(checkpoint, self.checkpoint_seconds)
        try:
            result = run(
                solver,
                task,
                max_epochs=max_epochs,
                tol=self.tol,
                validation=validation,
                patience=self.patience or (20 if solver.certified or not isinstance(solver, OnlineSolver) else 5),
                callbacks=[*self._callbacks(), *([saver.save] if saver else [])],
                evaluate=evaluate or self._evaluate(solver),
                start=start,
                resume=saver.load(solver, task) if saver else None,
                keep_state=False,
            )
        except ClusterLost as error:
            there = saver is not None and os.path.exists(saver.path)
            more = f"What was learnt is in {saver.path!r}: the same call (--resume) goes on from it." if there and saver else ""
            raise ClusterLost(f"{error} {more or 'There is no checkpoint yet.'}") from error
        self._keep(result, loss)
        self._stream: dict[str, Any] | None = None  # what partial_fit remembers between calls
        if saver and result.status != "interrupted":
            saver.remove()

    def _listed(self, task: Task, solver: Solver) -> tuple[int, int] | None:
        """(features, labels), if the weights are so many that lists of what is not zero are better; None: arrays."""
        features, labels = n_emitted(task.problem), kernels.width(task.problem)
        large = features * labels * np.dtype(task.dtype).itemsize >= self.listed_from and labels >= MANY
        return (features, labels) if large and solver.suits_lists(task.loss, self._evaluate(solver)) else None

    def _evaluate(self, solver: Solver) -> str:
        """When to compute the objective and its bound."""
        if self.evaluate != "auto":
            return self.evaluate
        return "end" if solver.adds_up_bound else "primal"

    def _advance(self, problem: Any, loss: Loss, sample_weight: Any) -> None:
        """One epoch of an online solver over new data, from the current weights."""
        from partwise.solvers import SOLVERS, can_minimise, check, get_solver, make_task, with_average
        from partwise.solvers.checks import size_of
        from partwise.solvers.loop import run
        from partwise.solvers.online import OnlineSolver
        from partwise.solvers.weights import Weights

        self._refuse_l1("partial_fit")
        solver = get_solver("dca" if self.solver == "auto" else self.solver)
        if not isinstance(solver, OnlineSolver):
            solver = get_solver("dca")  # what a batch solver found is a good place to go on from
        if solver.name == "dca" and not solver.accepts(loss):
            able = " or ".join(f"solver={name!r}" for name in can_minimise(loss) if issubclass(SOLVERS[name], OnlineSolver))
            raise ValueError(f"partial_fit goes on by 'dca', which cannot minimise the loss {loss.name!r}. Use fit, or {able}.")
        solver = with_average(solver, self.average)
        stream = getattr(self, "_stream", None)
        if stream is None:
            self._stream_seed = self._seed()
        if stream is None or not hasattr(self, "C_"):
            self.C_ = self._choose(loss, problem, solver, weight=sample_weight)[0].C
        task = make_task(problem, loss, self.C_, sample_weight, self._stream_seed, False, self._dtype, self.n_jobs)
        check(solver, problem, loss)
        start = getattr(self, "weights_", None)
        if start is not None:
            self._check_size(problem, start)
        else:
            start = self._start(task, solver)
        state = solver.init(task, start)
        resume = None
        if stream is not None:
            # numbers and weights go on from one call to the next; scratch memory is as large as the new examples need
            for name, value in stream.items():
                setattr(state, name, value)
            resume = dataclasses.replace(self.result_, state=state, solver=solver, size=size_of(problem))
        result = run(
            solver,
            task,
            max_epochs=state.epochs + 1,
            tol=0.0,
            callbacks=self._callbacks(),
            evaluate="never",
            start=start,
            resume=resume,
        )
        if result.status != "interrupted":
            result = dataclasses.replace(result, status="partial_fit", message=f"{result.n_epochs} calls of partial_fit")
        self._stream = {
            field.name: value
            for field in dataclasses.fields(result.state)
            if isinstance(value := getattr(result.state, field.name), int | float | Weights)
        }
        self._keep(result, loss)

    def _keep(self, result: SolveResult, loss: Loss) -> None:
        cast(Any, self)._keep_weights(result.w)
        self.result_ = dataclasses.replace(result, state=None, best=cast(Any, None))  # scratch memory is no part of the model
        self.solver_ = result.solver.name
        self.temperature_ = 1.0 / loss.beta if loss.is_smooth else None
        self._say(result.message)
        if result.status == "interrupted":
            warnings.warn(f"{self._who}: fit was {result.message}. The fitted estimator can be used.", UserWarning, stacklevel=4)
        if result.caution:
            warnings.warn(f"{self._who}: {result.caution}.", UserWarning, stacklevel=5)
        # a solver that is good long before the optimum, and takes few epochs, is not asked to reach it
        certified = result.solver.certified and bool(result.history) and math.isfinite(result.history[-1].estimate)
        if result.status in ("max_epochs", "stalled") and certified and self.tol > 0:
            gap = (
                f" (relative duality gap {result.gap / abs(result.primal):.2g})"
                if result.gap == result.gap and result.primal
                else ""
            )
            # scikit-learn's class, where anyone can know it: not worth importing otherwise
            category = getattr(sys.modules.get("sklearn.exceptions"), "ConvergenceWarning", UserWarning)
            stalled = result.status == "stalled"
            longer = "Increase tol, take dtype='float64'" if stalled else "Increase max_epochs, increase tol"
            warnings.warn(
                f"{self._who}: solver {result.solver.name!r} {result.message}{gap}. {longer}, decrease C, or scale the features.",
                category,
                stacklevel=4,
            )

    def _how_learnt(self) -> dict[str, Any]:
        """For those who look into a model."""
        return {"loss": self._loss().name, "C": self.C_, "solver": self.solver_}

    def _check_size(self, problem: Any, w: np.ndarray) -> None:
        """Compiled loops do not check indices: never let them see weights of another shape."""
        if w.size != kernels.n_weights(problem):
            raise ValueError(
                f"This {self._who} has {w.size} weights, but its parameters ask for {kernels.n_weights(problem)}: a parameter "
                "that decides the shape of the model ('order', 'hidden', 'fit_intercept') was changed after fitting. Change it "
                "back, or fit again."
            )
