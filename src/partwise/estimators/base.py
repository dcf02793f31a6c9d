"""What all estimators share: parameters and their checks, solving, going on with new data, probabilities, the model file.

An estimator is thin. It validates what users give, packs it into a problem, calls a solver, and unpacks weights and outputs;
nothing numerical happens here.

Nothing here imports scikit-learn, which takes longer than training a small model: the faces add its `BaseEstimator` as a second
base, and the command line uses the classes below them as they are.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import sys
import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, cast

import numpy as np

from partwise import kernels
from partwise.losses import LOSSES, Family, Loss, get_loss
from partwise.objective import losses_at, n_threads
from partwise.solvers import (
    SOLVERS,
    SPELLING,
    Record,
    Solver,
    SolveResult,
    can_minimise,
    check,
    get_solver,
    make_task,
    with_average,
)
from partwise.solvers.base import Task, run, size_of
from partwise.solvers.cccp import first_guess
from partwise.solvers.checkpoint import Checkpoint
from partwise.solvers.online import OnlineSolver
from partwise.solvers.weights import Weights
from partwise.structures.hidden import States, small_weights


def _is_real(low: float, high: float = math.inf, closed: bool = False) -> Callable[[Any], bool]:
    def test(value: Any) -> bool:
        number = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
        return number and (low <= value if closed else low < value) and value < high

    return test


def _is_count(low: int, optional: bool = False) -> Callable[[Any], bool]:
    def test(value: Any) -> bool:
        return (optional and value is None) or (isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= low)

    return test


def _one_of(*names: str) -> tuple[Callable[[Any], bool], str]:
    words = ", ".join(repr(name) for name in names[:-1])
    return (lambda value: isinstance(value, str) and value in names), f"{words} or {names[-1]!r}"


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool | np.bool_)


def _is_dtype(value: Any) -> bool:
    try:
        return np.dtype(value) in (np.float32, np.float64)
    except TypeError:
        return False


class Structured:
    """Base of all estimators."""

    loss: Any
    cost: Any = None
    solver: Any
    C: float
    l1_ratio: float
    hidden: int = 1
    classes_: np.ndarray
    tol: float
    max_epochs: int | None
    patience: int
    early_stopping: bool
    validation_fraction: float
    average: bool | None
    random_state: Any
    n_jobs: int | None
    dtype: Any
    callbacks: Any
    verbose: Any

    checkpoint_seconds: ClassVar[float] = 10.0  #: at least so long between two checkpoints
    evaluate: ClassVar[str] = "end"  #: see `partwise.solve`

    #: parameter: (what is fine, in words)
    _checks: ClassVar[dict[str, tuple[Callable[[Any], bool], str]]] = {
        "C": (_is_real(0.0), "a float in the range (0, inf)"),
        "l1_ratio": (lambda value: _is_real(0.0, closed=True)(value) and value <= 1.0, "a float in the range [0, 1]"),
        "max_epochs": (_is_count(1, optional=True), "an int in the range [1, inf) or None"),
        "tol": (_is_real(0.0, closed=True), "a float in the range [0, inf)"),
        "average": (lambda value: value is None or _is_bool(value), "a bool or None"),
        "early_stopping": (_is_bool, "a bool"),
        "validation_fraction": (_is_real(0.0, 1.0), "a float in the range (0, 1)"),
        "patience": (_is_count(1), "an int in the range [1, inf)"),
        "warm_start": (_is_bool, "a bool"),
        "dtype": (_is_dtype, "'float64' or 'float32'"),
        "verbose": (lambda value: _is_bool(value) or _is_count(0)(value), "a bool or an int in the range [0, inf)"),
        "callbacks": (
            lambda value: value is None or callable(value) or (isinstance(value, list | tuple) and all(map(callable, value))),
            "a callable, a list of callables or None",
        ),
    }

    # -- parameters ---------------------------------------------------------------------------------------------------

    @property
    def _who(self) -> str:
        return type(self).__name__

    @property
    def _dtype(self) -> Any:
        return np.dtype(self.dtype).type

    @classmethod
    def parameter_names(cls) -> list[str]:
        """The names of the parameters, in the order of ``__init__``."""
        return list(inspect.signature(cls.__init__).parameters)[1:]

    def parameters(self) -> dict[str, Any]:
        """The parameters and their values."""
        return {name: getattr(self, name) for name in self.parameter_names()}

    def _check_parameters(self) -> Loss:
        """Check every parameter before any work is done; returns the loss."""
        for name, (fine, words) in self._checks.items():
            value = getattr(self, name)
            if not fine(value):
                raise ValueError(f"The {name!r} parameter of {self._who} must be {words}. Got {value!r} instead.")
        loss = get_loss(self.loss)
        if self.cost is not None and not loss.uses_cost:
            raise ValueError(
                f"The loss {loss.name!r} does not look at costs, so the 'cost' parameter of {self._who} would do nothing. "
                "Use 'hinge', 'softmax_margin' or another Family(beta, gamma) with gamma > 0."
            )
        if self.hidden > 1 and not loss.takes_sets:
            able = ", ".join(repr(name) for name, other in LOSSES.items() if other.takes_sets)
            raise ValueError(
                f"The loss {loss.name!r} needs one true output per example, but with hidden={self.hidden} that is a set: all "
                f"states of the true labels. Losses that go with hidden states: {able}. Or set hidden=1."
            )
        if self.solver != "auto":
            solver = get_solver(self.solver, None, loss)
            if solver.name not in can_minimise(loss, self.l1_ratio):
                check(solver, None, loss, self.l1_ratio)
            self._check_average(solver)
        n_threads(self.n_jobs)
        return loss

    def _check_average(self, solver: Solver) -> None:
        if self.average is not None and not _averages(type(cast(Solver, getattr(solver, "solver", solver)))):
            able = ", ".join(name for name, kind in SOLVERS.items() if _averages(kind))
            raise ValueError(
                f"The 'average' parameter of {self._who} must be None for the solver {solver.name!r}, which does not average its "
                f"iterates. Solvers that can: {able}."
            )

    def _refuse_l1(self, what: str) -> None:
        """Learning bit by bit is for online solvers, and none of them takes an L1 penalty."""
        if self.l1_ratio > 0.0:
            raise ValueError(
                f"{what} goes on one example at a time, and no solver that can takes an L1 penalty: the 'l1_ratio' parameter of "
                f"{self._who} must be 0 for it. Got {self.l1_ratio!r} instead. Use fit, or set l1_ratio=0."
            )

    def _seed(self) -> int:
        if isinstance(self.random_state, Integral):
            return int(self.random_state)
        if self.random_state is None:
            return int(np.random.randint(np.iinfo(np.int32).max))
        from sklearn.utils import check_random_state

        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _callbacks(self) -> list[Callable[[Record], Any]]:
        given = [] if self.callbacks is None else [self.callbacks] if callable(self.callbacks) else list(self.callbacks)
        return [print_progress, *given] if self.verbose else given

    def _say(self, words: str) -> None:
        if self.verbose:
            print(f"{self._who}: {words}", file=sys.stderr)

    # -- solving ------------------------------------------------------------------------------------------------------

    def _solve(
        self, problem: Any, loss: Loss, sample_weight: Any, validation: Any, start: Any, seed: int, checkpoint: Any = None
    ) -> None:
        """Minimise over `problem` and keep what came out."""
        task = make_task(problem, loss, self.C, sample_weight, seed, True, self._dtype, self.n_jobs, self.l1_ratio)
        if start is not None:
            self._check_size(problem, start)
        solver = get_solver(self.solver, problem, loss, self.l1_ratio)
        self._check_average(solver)
        solver = with_average(solver, self.average)
        self._say(f"solver {SPELLING.spell(solver)!r}, loss {loss.name!r}, {task.n} examples")
        if start is None and self.hidden > 1:
            start = self._start(task)
            if solver.takes == "differences":  # completions by random weights are bad ones to solve a whole convex problem for
                start = first_guess(task, start)
        self._run(solver, task, loss, validation, start, checkpoint)

    def _start(self, task: Task) -> np.ndarray | None:
        """Weights to begin at: hidden states must not be alike, or they would stay so. None: zero."""
        return small_weights(task.problem, task.seed, task.dtype) if self.hidden > 1 else None

    def _run(self, solver, task, loss, validation, start, checkpoint, evaluate=None) -> None:
        saver = None if checkpoint is None else Checkpoint(checkpoint, self.checkpoint_seconds)
        result = run(
            solver,
            task,
            max_epochs=self.max_epochs,
            tol=self.tol,
            validation=validation,
            patience=self.patience,
            callbacks=[*self._callbacks(), *([saver.save] if saver else [])],
            evaluate=evaluate or self.evaluate,
            start=start,
            resume=saver.load(solver, task) if saver else None,
            keep_state=False,
        )
        self._keep(result, loss)
        self._stream: dict[str, Any] | None = None  # what partial_fit remembers between calls
        if saver and result.status != "interrupted":
            saver.remove()

    def _advance(self, problem: Any, loss: Loss, sample_weight: Any) -> None:
        """One epoch of an online solver over new data, from the current weights."""
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
        task = make_task(problem, loss, self.C, sample_weight, self._stream_seed, False, self._dtype, self.n_jobs)
        check(solver, problem, loss)
        start = getattr(self, "weights_", None)
        if start is not None:
            self._check_size(problem, start)
        else:
            start = self._start(task)
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
        self.weights_ = result.w
        self.result_ = dataclasses.replace(result, state=None, best=cast(Any, None))  # scratch memory is no part of the model
        self.solver_ = result.solver.name
        self.temperature_ = 1.0 / loss.beta if loss.is_smooth else None
        self._say(result.message)
        if result.status == "interrupted":
            warnings.warn(f"{self._who}: fit was {result.message}. The fitted estimator can be used.", UserWarning, stacklevel=4)
        certified = bool(result.history) and math.isfinite(result.history[-1].estimate)
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

    def _check_size(self, problem: Any, w: np.ndarray) -> None:
        """Compiled loops do not check indices: never let them see weights of another shape."""
        if w.size != kernels.n_weights(problem):
            raise ValueError(
                f"This {self._who} has {w.size} weights, but its parameters ask for {kernels.n_weights(problem)}: a parameter "
                "that decides the shape of the model ('order', 'hidden', 'fit_intercept') was changed after fitting. Change it "
                "back, or fit again."
            )

    def _hold_out(self, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of the examples to train on and of those to stop by."""
        held = max(1, round(self.validation_fraction * n))
        if held >= n:
            raise ValueError(f"early_stopping=True needs at least two examples to hold one out. Got {n}.")
        order = np.random.default_rng((seed, 1)).permutation(n)
        return np.sort(order[held:]), np.sort(order[:held])

    def _parts(self, given: Any, weight: np.ndarray, validation: Any, read: Callable, seed: int) -> tuple[Any, np.ndarray, Any]:
        """Examples to train on, without those of weight zero, their weights, and examples to stop by, or None."""
        held = None
        if validation is not None:
            held = read(*(validation if isinstance(validation, tuple) else (validation, None)))
        elif self.early_stopping:
            kept, out = self._hold_out(len(weight), seed)
            held, given, weight = given.take(out), given.take(kept), weight[kept]
        if (weight == 0).any():
            given, weight = given.take(np.flatnonzero(weight)), weight[weight > 0]
        return given, weight, held

    # -- probabilities ------------------------------------------------------------------------------------------------

    def _beta(self) -> float:
        """The inverse temperature of the model's distribution p(y | x) ~ exp(beta s(y))."""
        self._require_fitted()
        if self.temperature_ is None:
            raise ValueError(self._no_probabilities())
        return 1.0 / self.temperature_

    def _no_probabilities(self) -> str:
        return (
            f"This {self._who} was trained with the loss {get_loss(self.loss).name!r}, which fits scores, not probabilities. "
            "Call calibrate(X, y) with held-out data first, or train with loss='crf' or 'softmax_margin'."
        )

    def _calibrate(self, problem: Any) -> None:
        """The temperature of highest likelihood: minimise the convex beta -> sum_i log sum_y exp beta (s(y) - s(y_i))."""
        import scipy.optimize

        def negative_log_likelihood(log_beta: float) -> float:
            beta = math.exp(log_beta)
            return beta * float(losses_at(problem, Family(beta, 0.0), self.weights_, self.n_jobs).sum())

        # the right temperature depends on the scale of the scores: look around the one where typical scores are of order one
        scale = float(np.abs(losses_at(problem, Family(math.inf, 1.0), self.weights_, self.n_jobs)).mean())
        centre = -math.log(scale) if scale > 0 else 0.0
        found = scipy.optimize.minimize_scalar(
            negative_log_likelihood, bounds=(centre - 12.0, centre + 12.0), method="bounded", options={"xatol": 1e-4}
        )
        self.temperature_ = math.exp(-float(found.x))

    # -- hidden states ------------------------------------------------------------------------------------------------

    @property
    def _states(self) -> States:
        return States(len(self.classes_), self.hidden)

    @property
    def states_(self) -> list[Any]:
        """What the rows of `coef_` are about: the labels, or with ``hidden > 1`` their states, "NP/1", "NP/2"."""
        self._require_fitted("states_")
        return self._states.names(self.classes_.tolist())

    # -- the model file -----------------------------------------------------------------------------------------------

    def save(self, path: Any) -> None:
        """Write the model to one file, atomically (see `partwise.model_file`). No pickle."""
        from partwise import model_file

        self._require_fitted()
        model_file.save(self, path)

    @classmethod
    def load(cls, path: Any) -> Any:
        """Read a model written by `save`. Never executes code from the file."""
        from partwise import model_file

        estimator = model_file.load(path)
        if not isinstance(estimator, cls):
            raise model_file.ModelFileError(f"{path} holds a {type(estimator).__name__}, not a {cls.__name__}.")
        return estimator

    def _require_fitted(self, attribute: str = "weights_") -> np.ndarray:
        """The weights, or the error that scikit-learn expects of a fitted attribute asked for too early."""
        weights = self.__dict__.get("weights_")
        if weights is None:
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(f"This {self._who} instance is not fitted yet: it has no {attribute!r}. Call 'fit' first.")
        return weights


def _averages(kind: type[Solver]) -> bool:
    return "average" in {field.name for field in dataclasses.fields(kind)}


def print_progress(record: Record) -> None:
    """A line on stderr after each epoch: what `verbose` means."""
    line = f"epoch {record.epoch:4d}  loss {record.loss:.6g}"
    if record.gap == record.gap:
        line += f"  objective {record.primal:.6g}  gap {record.gap:.3g}"
    elif record.estimate == record.estimate:
        line += f"  gap about {record.estimate:.3g}"
    if record.validation == record.validation:
        line += f"  held-out cost {record.validation:.5g}"
    print(f"{line}  {record.seconds:.2f} s", file=sys.stderr)
