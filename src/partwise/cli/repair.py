"""``partwise repair``: labels of a file, corrected as was decided in the page of its suspects; every other byte stays."""

from __future__ import annotations

import dataclasses
import functools
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from partwise.cli.common import in_words, print_json, show, write
from partwise.cli.model_verbs import load
from partwise.cli.options import JSON, QUIET, Parameter, Verb
from partwise.cli.paths import check_paths
from partwise.cli.progress import ProgressLines, spinner, warnings_as_notes
from partwise.files.text_edits import EditableText
from partwise.tasks.common.command import Seconds, fitted
from partwise.tasks.common.command_options import LEARNING, OUTPUT, Refusal, Training, parameters_of, percent
from partwise.tasks.common.decisions import Decisions
from partwise.tasks.common.registry import BY_VERB, RegisteredTask

METRICS = ("accuracy", "f1", "precision", "recall", "uas", "las", "ndcg@10", "map")  #: those that are shown, where there are any
HELP = """Correct labels of a file, as decided in the page that partwise suspects --html has made.

Its button "Download decisions" gives the second file:

    partwise repair train.txt train.txt.decisions.json -o corrected.txt

Every other byte stays as it is. Decisions that do not fit the file are refused: it must be the one that the page was made of.

    partwise repair train.txt train.txt.decisions.json -o new.txt --retrain test.txt --like model

also trains a model on the file as it was and another on the corrected one, as that model was trained, and scores both by a
held-out file: has it helped?
"""


def verb() -> Verb:
    """The verb."""
    where = "Where to write the corrected file; '-': stdout."
    held_out = "Held-out file to score by: train on the file before and after."
    like = "With --retrain: with the features, loss, C and so on of this model. (default: as train by itself)"
    parameters = [
        Parameter("file", str, "The file that the page of suspects was made of."),
        Parameter("decisions", Path, "What 'Download decisions' of the page has made, JSON."),
        Parameter("output", Path, where, ("--output", "-o"), panel=OUTPUT),
        Parameter("retrain", str | None, held_out, ("--retrain",), None, LEARNING),
        Parameter("like", Path | None, like, ("--like",), None, LEARNING),
        JSON,
        QUIET,
    ]
    return Verb("repair", HELP, parameters, run)


@in_words
def run(file: str, decisions: Path, output: Path, retrain: str | None, like: Path | None, as_json: bool, quiet: bool) -> None:
    """Read, check, write; and train."""
    seconds = Seconds()
    if as_json and str(output) == "-":
        raise Refusal("--json prints on stdout, and so does the file: say with --output where to write it.")
    if like is not None and retrain is None:
        raise Refusal("--like goes with --retrain: the file to score by.")
    inputs: dict[str, str | Path | None] = {
        "the file to correct": file,
        "the file of decisions": decisions,
        "--retrain": retrain,
        "--like": like,
    }
    check_paths(inputs, {"--output": output})
    decided = Decisions.read(decisions)
    task, options = reading_of(decided)
    source = EditableText.read(file, decided.encoding)
    corrected = decided.apply(source)
    try:
        task.command.check_repaired(source.original, corrected, options)
    except (TypeError, AttributeError):
        raise Refusal(f"{decided.name} is damaged or was altered: it does not say how {file} is to be read.") from None
    start = functools.partial(training_on, task, decided, options, load_like(task, like))
    seconds("repair")
    scores: dict[str, Any] = {}

    def score(when: str, content: bytes) -> None:
        if retrain is not None:
            with warnings_as_notes(ProgressLines(quiet).say), spinner("reading", quiet) as update:
                update(f"training on the file {when} the corrections")
                scores[when] = scored(task, content, retrain, options, start, seconds)

    score("before", source.original)  # a held-out file that is no good is noticed before anything is written
    write(output, corrected)
    seconds("write")
    score("after", corrected)
    labels, lines = len(decided.changes), len({one.line for one in decided.changes})
    told = f"{labels:,} label{'s' * (labels != 1)} of {file} corrected in {lines:,} line{'s' * (lines != 1)}"
    said: list[Any] = [f"{told}: {decided.counted()}"]
    found: dict[str, Any] = {
        "file": file,
        "output": str(output),
        "task": task.verb,
        **decided.choices,
        "changes": len(decided.changes),
    }
    if retrain is not None:
        found |= scores
        said += table(scores["before"], scores["after"], retrain)
    if not quiet:
        show(said, sys.stderr if as_json or str(output) == "-" else sys.stdout)
    if as_json:
        print_json({**found, "seconds": seconds.total()})


def reading_of(decided: Decisions) -> tuple[RegisteredTask, Any]:
    """The task whose file it is, and how to read it."""
    task = BY_VERB.get(decided.task)
    if task is None or not task.command.reading:
        raise Refusal(f"{decided.name}: there is no task {decided.task!r} whose files can be corrected.")
    strange = sorted(set(decided.reading) - set(task.command.reading))
    if strange:
        raise Refusal(f"{decided.name} is damaged or was altered: files of this task are not read with {strange[0]!r}.")
    return task, task.command.options(**decided.reading)


def scored(
    task: RegisteredTask, content: bytes, held_out: str, options: Any, start: Callable[[str], Training], seconds: Seconds
) -> dict[str, float]:
    """Scores of a model of a file with that content."""
    names = {field.name for field in dataclasses.fields(task.command.evaluate_options)}
    reading = {name: value for name, value in vars(options).items() if name in names and name in task.command.reading}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_bytes(content)
        model = fitted(start(str(path)))
        seconds("train")
        told = task.command.evaluate(model, held_out, task.command.evaluate_options(**reading), seconds)
        seconds("score")
    return {name: told.found[name] for name in METRICS if told.found.get(name) is not None}


def training_on(task: RegisteredTask, decided: Decisions, options: Any, like: Any, file: str) -> Training:
    """A file and what is to learn from it: an estimator like that model, or as ``train`` makes it by itself."""
    if like is not None:
        return task.command.train_again(like, file, decided.reading)
    made = parameters_of(options, task.core)
    return task.command.start(file, None, options, lambda **more: task.core(**{**more, **made}))


def load_like(task: RegisteredTask, path: Path | None) -> Any:
    """The model to train others like, of the same task; None: there is none."""
    if path is None:
        return None
    model, own = load(path)
    if own is not task:
        raise Refusal(f"--like {path}: it {own.does}, and the file is for a model that {task.does}.")
    return model


def table(before: dict[str, float], after: dict[str, float], held_out: str) -> list[str]:
    """The scores, for people."""
    lines = [f"{held_out + ':':24}{'before':>10}{'after':>10}{'difference':>12}"]
    for name, value in before.items():
        lines.append(f"{name:24}{percent(value):>10}{percent(after[name]):>10}{100 * (after[name] - value):>+12.2f}")
    return lines
