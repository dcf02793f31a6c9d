"""What training means on the command line, whatever is trained: settings, checkpoints, progress, the model, a summary."""

from __future__ import annotations

import contextlib
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import typer

from partwise.cli.common import check_writable, print_json
from partwise.cli.progress import Progress, draw_history, write_history

train = typer.Typer(help="Train a model.", no_args_is_help=True)

SMOOTH = ("crf", "softmax_margin", "soft_ramp")
STEADY = ("ramp", "ramp_do", "slack")  # losses for which the quick online solver is too rash: it learns wrong labels by heart


@dataclass
class Settings:
    """How to learn, in the words of the options; what is not said gets its default here.

    C and epochs of the hinge were chosen by F1 and accuracy on held-out parts of CoNLL-2000, CoNLL-2002, WNUT-17 and Brown (see
    benchmarks/choose_settings.py).
    """

    loss: str
    C: float | None
    solver: str
    max_epochs: int | None
    tol: float
    patience: int | None
    average: bool | None
    random_state: int
    dtype: str
    n_jobs: int
    streamed: bool = False
    l1_ratio: float = 0.0

    def __post_init__(self) -> None:
        smooth = self.loss in SMOOTH
        if self.C is None:
            self.C = 1.0 if smooth or self.l1_ratio > 0.0 else 0.05
        if self.solver == "auto":
            self.solver = self.quick_solver(smooth)
        if self.max_epochs is None and self.solver in ("dca", "mira", "perceptron"):
            self.max_epochs = 10
        elif self.max_epochs is None and self.solver == "pegasos":
            self.max_epochs = 20
        if self.patience is None:  # an epoch of a batch solver is a small step
            self.patience = 20 if self.certified else 5

    def quick_solver(self, smooth: bool) -> str:
        """Quick where a model is good long before the optimum; for probabilities, the optimum."""
        if self.l1_ratio > 0.0:
            return "owlqn" if smooth else "admm"
        if self.loss == "perceptron":
            return "perceptron"
        if self.loss == "summed":  # whose outputs only two solvers can search
            return "sdcd"
        if self.streamed:
            return "dca"
        if self.loss == "ramp_2":
            return "perceptron"
        return "lbfgs" if smooth else "pegasos" if self.loss in STEADY else "dca"

    @property
    def certified(self) -> bool:
        """Whether the duality gap costs the solver little."""
        from partwise.solvers import SOLVERS

        return self.solver == "pegasos" or (self.solver in SOLVERS and SOLVERS[self.solver]().certified)  # it adds up a bound

    def parameters(self) -> dict[str, Any]:
        """For an estimator."""
        return {key: value for key, value in vars(self).items() if key != "streamed"}


@dataclass
class Run:
    """One training from beginning to end: what it says on the way, and what it leaves behind."""

    task: str
    output: Path
    settings: Settings
    resume: bool
    checkpoint_every: float
    history: Path | None
    curve: Path | None
    as_json: bool
    quiet: bool
    seconds: dict[str, float] = field(default_factory=dict)
    cpu: dict[str, float] = field(default_factory=dict)
    metric: str = "accuracy"  #: what the held-out score is called
    refusals: bool = True  #: whether an output that a ramp loss gives up on may be a wrong label

    def __post_init__(self) -> None:
        self.begun, self.marked, self.cpu_marked = (*[time.perf_counter()] * 2, time.process_time())
        self.cpu["start"] = self.cpu_marked
        for path in (self.output, self.history, self.curve):
            check_writable(path)
        self.progress = Progress(self.settings.max_epochs, self.quiet or (self.as_json and not sys.stderr.isatty()))

    @property
    def checkpoint(self) -> Path | None:
        """The file to follow the run with."""
        return self._checkpoint if self.checkpoint_every > 0 or self.resume else None

    @property
    def _checkpoint(self) -> Path:
        return self.output.with_name(self.output.name + ".checkpoint")

    @contextlib.contextmanager
    def fitting(self, estimator: Any, certify: bool) -> Iterator[None]:
        """Within this block `estimator` is trained: interruptions are heard, warnings become notes, time is taken."""
        self.mark("read")
        estimator.evaluate = "end" if certify or self.settings.certified else "primal"
        estimator.checkpoint_seconds = self.checkpoint_every
        self.progress.metric = self.metric
        estimator.callbacks = [self.progress]
        if self._checkpoint.exists() and not self.resume:
            self.say(f"note: {self._checkpoint} of an interrupted run is thrown away; --resume would have gone on from it")
            self._checkpoint.unlink()
        elif self.resume and not self._checkpoint.exists():
            self.say(f"note: there is no {self._checkpoint}: starting from the beginning")
        with contextlib.suppress(ValueError):  # not in the main thread: a test
            signal.signal(signal.SIGTERM, signal.default_int_handler)  # a polite kill is an interruption: what was learnt is kept
        with warnings.catch_warnings(), self.progress.running():
            warnings.simplefilter("always")
            warnings.showwarning = lambda message, *more, **further: self.say(f"note: {message}")
            yield
        estimator.callbacks = None
        self.mark("features")
        result = estimator.result_
        for clock, spent in ((self.seconds, result.seconds), (self.cpu, result.cpu_seconds)):
            clock["features"], clock["train"] = max(clock["features"] - spent, 0.0), spent

    def finish(self, estimator: Any, about: dict[str, Any], score: Callable[[], dict[str, Any]] | None) -> None:
        """Score, save, draw, and say how it went; `about` is what machines are told besides what every run tells."""
        result = estimator.result_
        about = {
            "task": self.task,
            **about,
            "epochs": result.n_epochs,
            "loss": result.loss.name,
            "solver": result.solver.name,
            "C": self.settings.C,
            "l1_ratio": self.settings.l1_ratio,
            "weights": int(result.w.size),
            "nonzero": result.n_nonzero,
            "primal": result.primal,
            "gap": result.gap,
            "converged": result.converged,
            "status": result.status,
            "message": result.message,
        }
        if result.rounds:
            about |= {"rounds": len(result.rounds), "objective": result.rounds[-1].objective}
            if self.refusals and not result.loss.is_convex:  # of partial labels, nothing is refused
                about["refused"] = result.rounds[-1].refused
        if score is not None:
            about["dev"] = score()
        estimator.training_ = {k: v for k, v in about.items() if isinstance(v, str | int | float) and v == v}
        self.mark("score")
        estimator.save(self.output)
        self.mark("save")
        if self.history is not None:
            write_history(self.history, result.history, self.metric, about)
        if self.curve is not None:
            draw_history(self.curve, result.history, self.metric, f"{result.loss.name}, {result.solver.name}")
        self.seconds["total"] = time.perf_counter() - self.begun
        self.cpu["total"] = time.process_time()
        about |= {"model": str(self.output), "seconds": self.seconds, "cpu": self.cpu}
        self.say(summary(about))
        if self.as_json:
            print_json(about)
        if result.status == "interrupted":
            self.say("interrupted: the model so far was saved; --resume goes on from the last checkpoint, if there is one")
            raise typer.Exit(130)

    def mark(self, stage: str) -> None:
        """A stage is over: note how long it took."""
        now, cpu_now = time.perf_counter(), time.process_time()
        self.seconds[stage], self.cpu[stage] = now - self.marked, cpu_now - self.cpu_marked
        self.marked, self.cpu_marked = now, cpu_now

    def say(self, text: str) -> None:
        """A line for people."""
        self.progress.say(text)


def summary(about: dict[str, Any]) -> str:
    """The end of the story, in a few lines."""
    seconds = ", ".join(f"{name} {about['seconds'][name]:.2f}" for name in ("read", "features", "train", "save"))
    lines = [about["message"], f"{about['features']:,} features, {about['labels']} labels; seconds: {seconds}"]
    if about["l1_ratio"] > 0.0:
        share = 100.0 * about["nonzero"] / max(about["weights"], 1)
        lines.append(f"{about['nonzero']:,} of {about['weights']:,} weights are not zero ({share:.2f} %)")
    if "refused" in about:
        share = f"{about['refused']:,} of {about['examples']:,} examples have labels that the model refuses"
        lines.append(f"{about['rounds']} rounds; {share}" + (": see partwise suspects" if about["refused"] else ""))
    if "dev" in about:
        shown = [
            key
            for key in ("uas", "las", "f1", "precision", "recall", "accuracy", "ndcg@10", "map")
            if about["dev"].get(key) is not None
        ]
        lines.append("dev: " + ", ".join(f"{key} {100 * about['dev'][key]:.2f} %" for key in shown))
    return "\n".join([*lines, f"wrote {about['model']}"])
