"""What all estimators share: parameters and their checks, solving, going on with new data, probabilities, the model file.

An estimator is thin. It validates what users give, packs it into a problem, calls a solver, and unpacks weights and outputs;
nothing numerical happens here.

Nothing here imports scikit-learn: see `partwise.tasks.common.sklearn_face`. An estimator is a dataclass whose fields are its
parameters, which is all that scikit-learn's contract asks for: they are kept as they were given, and checked in `fit`.
"""

from __future__ import annotations

import dataclasses
import math
import sys
import textwrap
import warnings
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from partwise import kernels
from partwise.engine.threads import n_threads
from partwise.losses.records import Family, Loss, get_loss
from partwise.objective import losses_at
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
from partwise.solvers.checkpoint import Checkpoint
from partwise.solvers.defaults import Choice, Defaults, choose
from partwise.solvers.online import OnlineSolver
from partwise.solvers.weights import Weights
from partwise.tasks.common.checks import Check, is_bool, is_callbacks, is_count, is_dtype, is_real, is_share, optional

#: what the docstring of every estimator says of the parameters they all have, where it says "%(learning)s"
LEARNING = """
max_epochs : int, optional
    At most so many; by default what `partwise.solvers.defaults` says of the solver.
tol : float, default=1e-3
    Stop at this relative duality gap, where the solver has a certificate.
average : bool, optional
    Whether to return the average of the iterates, for solvers that can.
early_stopping : bool, default=False
    Hold out `validation_fraction` of the examples, stop when they have not been answered better for `patience` epochs, and keep
    the best model seen.
validation_fraction : float, default=0.1
patience : int, optional
    By default 5, and 20 for solvers that go to the optimum, whose epochs are small steps.
warm_start : bool, default=False
    Start from the weights of the previous fit.
random_state : int, RandomState or None, default=0
    Decides the order of the examples and what is held out; None: another one every time.
n_jobs : int, optional
    Threads for passes over all examples. Never changes the answer.
dtype : {"float64", "float32"}
    Of the weights.
callbacks : callable or list of callables, optional
    Each is called with a `partwise.Record` after every epoch; a true answer stops.
verbose : int, default=0
    Print a line per epoch to stderr.
"""

LOSS = """
loss : {"hinge", "crf", "softmax_margin", "perceptron", "slack", "summed", "ramp", "ramp_do", "ramp_2", "soft_ramp"} or Loss
    ``"hinge"`` is the structural SVM, ``"crf"`` the conditional random field; ``"crf"`` and ``"softmax_margin"`` give
    probabilities, the ramp losses are robust against wrong labels. With parameters: ``"family(beta=1, gamma=3)"``.
C : float, optional
    Weight of the losses against the regulariser: the smaller, the stronger the regularisation. By default it depends on the
    loss (`partwise.solvers.defaults`); `C_` says which it was.
solver : str or Solver, default="auto"
    A name from `partwise.SOLVERS`, with parameters (``"nslack(variant='b')"``) or without, or an object; `solver_` says what
    ``"auto"`` picked.
l1_ratio : float in [0, 1], default=0.0
    Share of the L1 norm in the penalty, l1_ratio ||w||_1 + (1 - l1_ratio)/2 ||w||^2. Above 0 many weights become exactly zero
    (``result_.n_nonzero`` are not); 1 makes the sparsest models. Choose C anew: it means something else then.
"""


@dataclass(eq=False, repr=False)
class Structured:
    """Base of all estimators: the parameters that each of them has."""

    loss: Any = "hinge"
    C: float | None = None
    solver: Any = "auto"
    _: KW_ONLY
    l1_ratio: float = 0.0
    max_epochs: int | None = None
    tol: float = 1e-3
    average: bool | None = None
    early_stopping: bool = False
    validation_fraction: float = 0.1
    patience: int | None = None
    warm_start: bool = False
    random_state: Any = 0
    n_jobs: int | None = None
    dtype: Any = "float64"
    callbacks: Any = None
    verbose: Any = 0

    cost: ClassVar[Any] = None  #: of mistakes; an estimator whose users may say has a parameter of that name
    defaults: ClassVar[Defaults] = Defaults()  #: where the task differs from the rule for what users leave open
    sklearn_mixins: ClassVar[tuple[str, ...]] = ()  #: of scikit-learn's, besides `BaseEstimator`
    checkpoint_seconds: ClassVar[float] = 10.0  #: at least so long between two checkpoints
    evaluate: ClassVar[str] = "end"  #: see `partwise.solve`; "auto": the dual bound only where the solver has it for little
    training_: dict[str, Any] | None = field(init=False, default=None)  #: notes about the training, for people

    #: parameter: (what is fine, in words)
    _checks: ClassVar[dict[str, Check]] = {
        "C": (optional(is_real(0.0)), "a float in the range (0, inf) or None"),
        "l1_ratio": (is_share, "a float in the range [0, 1]"),
        "max_epochs": (is_count(1, optional=True), "an int in the range [1, inf) or None"),
        "tol": (is_real(0.0, closed=True), "a float in the range [0, inf)"),
        "average": (optional(is_bool), "a bool or None"),
        "early_stopping": (is_bool, "a bool"),
        "validation_fraction": (is_real(0.0, 1.0), "a float in the range (0, 1)"),
        "patience": (is_count(1, optional=True), "an int in the range [1, inf) or None"),
        "warm_start": (is_bool, "a bool"),
        "dtype": (is_dtype, "'float64' or 'float32'"),
        "verbose": (lambda value: is_bool(value) or is_count(0)(value), "a bool or an int in the range [0, inf)"),
        "callbacks": (is_callbacks, "a callable, a list of callables or None"),
    }

    if TYPE_CHECKING:

        def __sklearn_tags__(self) -> Any:
            """What scikit-learn's face adds (`partwise.tasks.common.sklearn_face`)."""

    def __init_subclass__(cls, **more: Any) -> None:
        """Fill in what the docstring leaves to this class."""
        super().__init_subclass__(**more)
        if cls.__doc__:
            for name, text in (("loss", LOSS), ("learning", LEARNING)):
                cls.__doc__ = cls.__doc__.replace(f"    %({name})s\n", textwrap.indent(text.strip("\n"), "    ") + "\n")

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
        return [field.name for field in dataclasses.fields(cast(Any, cls)) if field.init]

    def parameters(self) -> dict[str, Any]:
        """The parameters and their values."""
        return {name: getattr(self, name) for name in self.parameter_names()}

    def check_parameters(self) -> None:
        """Raise ValueError for the first parameter that is not as it must be; `fit` does so too, before any work."""
        self._check_parameters()

    def _loss(self) -> Loss:
        """The loss that is meant."""
        return get_loss(self.loss)

    def _check_parameters(self) -> Loss:
        """Check every parameter before any work is done; returns the loss."""
        for name, (fine, words) in self._checks.items():
            value = getattr(self, name)
            if not fine(value):
                raise ValueError(f"The {name!r} parameter of {self._who} must be {words}. Got {value!r} instead.")
        loss = self._loss()
        if self.cost is not None and not loss.uses_cost:
            raise ValueError(
                f"The loss {loss.name!r} does not look at costs, so the 'cost' parameter of {self._who} would do nothing. "
                "Use 'hinge', 'softmax_margin' or another Family(beta, gamma) with gamma > 0."
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
        chosen, solver = self._choose(loss, problem, weight=sample_weight)
        task = make_task(problem, loss, chosen.C, sample_weight, seed, True, self._dtype, self.n_jobs, self.l1_ratio)
        if start is not None:
            self._check_size(problem, start)
        self._check_average(solver)
        solver = with_average(solver, self.average)
        self.C_ = chosen.C
        self._say(f"solver {SPELLING.spell(solver)!r}, loss {loss.name!r}, {task.n} examples")
        start = self._start(task, solver) if start is None else start
        self._run(solver, task, loss, validation, start, checkpoint, chosen.epochs)

    def _choose(
        self, loss: Loss, problem: Any, solver: Any = None, streamed: bool = False, weight: Any = None
    ) -> tuple[Choice, Solver]:
        """What users leave open, filled in by the one rule for all tasks (`partwise.solvers.defaults`), and the solver."""
        given = self.solver if solver is None else solver
        is_open = isinstance(given, str) and given == "auto"
        choice = choose(
            loss,
            self.l1_ratio,
            task=self.defaults,
            solver=given if is_open else get_solver(given).name,
            C=self.C,
            epochs=self.max_epochs,
            spread=self._spread(problem, weight),
            examples=kernels.n_examples(problem),
            streamed=streamed,
        )
        return choice, get_solver(choice.solver if is_open else given, problem, loss, self.l1_ratio)

    def _spread(self, problem: Any, weight: np.ndarray | None) -> float | None:
        """The mean squared distance of the features from their mean, where they are numbers of any scale; None elsewhere."""
        return None

    def _start(self, task: Task, solver: Solver) -> np.ndarray | None:
        """Weights to begin at; None: zero."""
        return None

    def _run(self, solver, task, loss, validation, start, checkpoint, max_epochs, evaluate=None) -> None:
        saver = None if checkpoint is None else Checkpoint(checkpoint, self.checkpoint_seconds)
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
        self._keep(result, loss)
        self._stream: dict[str, Any] | None = None  # what partial_fit remembers between calls
        if saver and result.status != "interrupted":
            saver.remove()

    def _evaluate(self, solver: Solver) -> str:
        """When to compute the objective and its bound."""
        if self.evaluate != "auto":
            return self.evaluate
        return "end" if solver.adds_up_bound else "primal"

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
            f"This {self._who} was trained with the loss {self._loss().name!r}, which fits scores, not probabilities. "
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

    # -- the model file -----------------------------------------------------------------------------------------------

    def save(self, path: Any) -> None:
        """Write the model to one file, atomically (see `partwise.tasks.common.model_file`). No pickle."""
        from partwise.tasks.common import model_file

        self._require_fitted()
        model_file.save(self, path)

    @classmethod
    def load(cls, path: Any) -> Any:
        """Read a model written by `save`. Never executes code from the file."""
        from partwise.tasks.common import model_file

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
