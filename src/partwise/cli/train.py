"""``partwise train TASK``: from a file to a model, whatever the task is.

The commands are made of the registry: each task declares the options that only it has (`partwise.tasks.common.command_options`);
those that all share are added here, once. An option that is not given is left to the estimator, so that the class and the
command have the same defaults, and train the same model.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from partwise.cli.clusters import cluster_client
from partwise.cli.common import in_words, print_json
from partwise.cli.options import Parameter, Verb, as_parameters, filled
from partwise.cli.paths import check_paths
from partwise.cli.process import hear_signals
from partwise.cli.progress import ProgressLines, draw_history, kept_history, warnings_as_notes, write_history
from partwise.cli.tables import text_of
from partwise.files.packed_arrays import is_packed
from partwise.tasks.common.command import Seconds
from partwise.tasks.common.command_options import LEARNING, OUTPUT, Learning, Refusal, Run, Training, parameters_of
from partwise.tasks.common.registry import BY_VERB, TASKS, RegisteredTask

DEV = "Held-out file: stop when it gets no better, and keep the best model."


def command() -> Any:
    """``partwise train``, a command for each task."""
    import typer
    import typer.main

    from partwise.cli.lazy_group import lazy_group
    from partwise.cli.typer_commands import as_command

    group = lazy_group({task.verb: task.about for task in TASKS}, lambda name: as_command(verb(BY_VERB[name])))
    app = typer.Typer(cls=group, help="Train a model.", no_args_is_help=True, add_completion=False)
    app.callback()(lambda: None)
    return typer.main.get_command(app)


def verb(task: RegisteredTask) -> Verb:
    """What trains it."""
    own = task.command
    core = task.core

    @in_words
    def run(**given: Any) -> None:
        fit_file(
            task,
            given["file"],
            given["output"],
            given["dev"],
            filled(own.options, given),
            filled(Learning, given),
            filled(Run, given),
        )

    parameters = [
        Parameter("file", str, own.file),
        Parameter("output", Path, "Where to save the model.", ("--output", "-o"), panel=OUTPUT),
        Parameter("dev", str | None, DEV, ("--dev",), None, LEARNING),
        *(one for options in (own.options, Learning, Run) for one in as_parameters(options, core)),
    ]
    return Verb(task.verb, f"{task.about}\n\n{own.details}\n\n    {own.example}\n", parameters, run)


def fit_file(task: RegisteredTask, file: str, output: Path, dev: str | None, options: Any, learning: Learning, how: Run) -> None:
    """Train on a file, and keep what came of it."""
    check_paths(
        inputs={"the file to learn from": file, "--dev": dev, "--start-from": how.start_from, **task.command.inputs(options)},
        outputs={
            "--output": output,
            "--history": how.history,
            "--curve": how.curve,
            "the checkpoint": output.with_name(output.name + ".checkpoint"),
        },
    )
    session = Session(task, output, how)
    if how.start_from is not None and is_packed(file):
        raise Refusal(f"--start-from: {file} has a vocabulary of its own, and cannot go on from another model.")
    core = task.core
    given = {**learning.parameters(), **parameters_of(options, core)}
    core(**given).check_parameters()  # before hours of reading, not after

    def make(**more: Any) -> Any:
        if how.start_from is None:
            return core(**{**more, **given})
        return going_on(task, how.start_from, given)

    if how.cluster is not None and not is_packed(file):
        raise Refusal(
            f"--cluster: workers load their examples themselves. Pack them first: partwise pack {task.verb} {file} -o ..."
        )
    file, dev = (text_of(task, one, options) for one in (file, dev))
    training = (task.command.start_packed if is_packed(file) else task.command.start)(file, dev, options, make)
    with cluster_client(how.cluster) as client:
        training.estimator.engine = client
        training.estimator.mixing_epochs, training.estimator.mixing_parts = how.mixing_epochs or 1, how.mixing_parts
        session.fit(training)
    training.estimator.engine = None
    session.finish(training)


def going_on(task: RegisteredTask, path: Path, given: dict[str, Any]) -> Any:
    """A trained model, to go on from with what was asked for."""
    from partwise.tasks.common import model_file

    model = model_file.load(path, plain=True)
    if not isinstance(model, task.core):
        raise Refusal(f"--start-from {path}: it {task_of(model).does}, and this is to be a model that {task.does}.")
    for name, value in given.items():
        setattr(model, name, value)
    model.warm_start = True
    return model


def task_of(model: Any) -> RegisteredTask:
    """The task of a model."""
    return next(task for task in TASKS if isinstance(model, task.core))


class Session:
    """One training from beginning to end: what it says on the way, and what it leaves behind."""

    def __init__(self, task: RegisteredTask, output: Path, how: Run):
        self.task, self.output, self.how = task, output, how
        self.seconds, self.cpu = Seconds(), Seconds(time.process_time)
        self.cpu["start"] = self.cpu.begun
        self.progress = ProgressLines(how.quiet or (how.as_json and not sys.stderr.isatty()))
        self.checkpoint = output.with_name(output.name + ".checkpoint")

    def fit(self, training: Training) -> None:
        """Train: interruptions are heard, warnings become notes, time is taken."""
        self.say(training.describe)
        self.mark("read")
        estimator = training.estimator
        estimator.evaluate = "end" if self.how.certify else "auto"
        estimator.checkpoint_seconds = self.how.checkpoint_every
        self.progress.metric = training.metric
        estimator.callbacks = [self.progress]
        if self.checkpoint.exists() and not self.how.resume:
            self.say(f"note: {self.checkpoint} of an interrupted run is thrown away; --resume would have gone on from it")
            self.checkpoint.unlink(missing_ok=True)
        elif self.how.resume and not self.checkpoint.exists():
            self.say(f"note: there is no {self.checkpoint}: starting from the beginning")
        hear_signals()
        with warnings_as_notes(self.say), self.progress.running():
            training.fit(checkpoint=self.checkpoint if self.how.checkpoint_every > 0 or self.how.resume else None)
        estimator.callbacks = None
        self.mark("features")
        result = estimator.result_
        for clock, spent in ((self.seconds, result.seconds), (self.cpu, result.cpu_seconds)):
            clock["features"], clock["train"] = max(clock["features"] - spent, 0.0), spent

    def finish(self, training: Training) -> None:
        """Score, save, draw, and say how it went."""
        estimator = training.estimator
        result = estimator.result_
        about = {
            "task": self.task.verb,
            **training.about(),
            "epochs": result.n_epochs,
            "loss": result.loss.name,
            "solver": result.solver.name,
            "C": estimator.C_,
            "l1_ratio": estimator.l1_ratio,
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
            if training.refusals and not result.loss.is_convex:  # of partial labels, nothing is refused
                about["refused"] = result.rounds[-1].refused
        if training.score is not None:
            about["dev"] = training.score()
        estimator.training_ = {k: v for k, v in about.items() if isinstance(v, str | int | float) and v == v}
        estimator.training_["history"] = kept_history(result.history, training.metric)
        self.mark("score")
        estimator.save(self.output)
        self.mark("save")
        if self.how.history is not None:
            write_history(self.how.history, result.history, training.metric, about)
        if self.how.curve is not None:
            draw_history(self.how.curve, result.history, training.metric, f"{result.loss.name}, {result.solver.name}")
        cpu = {**self.cpu, "total": time.process_time()}
        about |= {"model": str(self.output), "seconds": self.seconds.total(), "cpu": cpu}
        self.say(summary(about))
        if self.how.as_json:
            print_json(about)
        if result.status == "interrupted":
            self.say("interrupted: the model so far was saved; --resume goes on from the last checkpoint, if there is one")
            raise SystemExit(130)

    def mark(self, stage: str) -> None:
        """A stage is over: note how long it took."""
        self.seconds(stage)
        self.cpu(stage)

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
