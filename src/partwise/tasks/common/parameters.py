"""The parameters that all estimators share, what is said of them in docstrings, and their checks.

An estimator is a dataclass whose fields are its parameters, which is all that scikit-learn's contract asks for: they are kept as
they were given, and checked in `fit`.
"""

from __future__ import annotations

import dataclasses
import sys
import textwrap
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from partwise.engine.threads import n_threads
from partwise.losses.records import Loss, get_loss
from partwise.tasks.common.checks import Check, is_bool, is_callbacks, is_count, is_dtype, is_real, is_share, optional

if TYPE_CHECKING:  # solvers are imported by those who train: a model that only answers needs none
    from partwise.solvers import Record, Solver

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
engine : {"dask", "parts"} or dask.distributed.Client, optional
    Where passes over a `PackedCorpus` are made: by the workers of a cluster (see docs/cluster.md), or part by part in this
    process, which gives the same result as a cluster. By default in threads.
mixing_epochs : int, default=1
    With `engine`, for solvers that visit one example at a time: epochs between two mixings (`partwise.solvers.mixing`).
dtype : {"float64", "float32"}
    Of the weights.
callbacks : callable or list of callables, optional
    Each is called with a `partwise.Record` after every epoch; a true answer stops.
verbose : int, default=0
    Print a line per epoch to stderr.
"""

LOSS = """
loss : {"hinge", "crf", "softmax_margin", "perceptron", "squared_hinge", "slack", "summed", "squared_summed", "ramp", "ramp_do", \
"ramp_2", "soft_ramp"} or Loss
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
class Parameters:
    """The parameters that every estimator has."""

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
    engine: Any = None
    mixing_epochs: int = 1
    dtype: Any = "float64"
    callbacks: Any = None
    verbose: Any = 0

    cost: ClassVar[Any] = None  #: of mistakes; an estimator whose users may say has a parameter of that name

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
        "engine": (
            lambda value: value is None or value in ("dask", "parts") or hasattr(value, "submit"),
            "'dask', 'parts', a dask.distributed.Client or None",
        ),
        "mixing_epochs": (is_count(1), "an int in the range [1, inf)"),
        "verbose": (lambda value: is_bool(value) or is_count(0)(value), "a bool or an int in the range [0, inf)"),
        "callbacks": (is_callbacks, "a callable, a list of callables or None"),
    }

    def __init_subclass__(cls, **more: Any) -> None:
        """Fill in what the docstring leaves to this class."""
        super().__init_subclass__(**more)
        if cls.__doc__:
            for name, text in (("loss", LOSS), ("learning", LEARNING)):
                cls.__doc__ = cls.__doc__.replace(f"    %({name})s\n", textwrap.indent(text.strip("\n"), "    ") + "\n")

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
            from partwise.solvers import can_minimise, check, get_solver

            solver = get_solver(self.solver, None, loss)
            if solver.name not in can_minimise(loss, self.l1_ratio):
                check(solver, None, loss, self.l1_ratio)
            self._check_average(solver)
        n_threads(self.n_jobs)
        return loss

    def _check_average(self, solver: Solver) -> None:
        if self.average is not None and not _averages(type(cast(Any, getattr(solver, "solver", solver)))):
            from partwise.solvers import SOLVERS

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
