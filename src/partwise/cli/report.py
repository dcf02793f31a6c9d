"""``partwise report``: all there is to tell of a model's answers to a file that has the truth, as a page and as numbers."""

from __future__ import annotations

import datetime
import math
import re
import sys
from pathlib import Path
from typing import Any

from partwise.cli.common import in_words, print_json, show, write
from partwise.cli.model_verbs import all_options, load, options_for
from partwise.cli.options import JOBS, JSON, QUIET, Parameter, Verb
from partwise.cli.paths import check_paths, is_file
from partwise.cli.progress import ProgressLines, spinner, warnings_as_notes
from partwise.cli.report_page import made_report, require_extra
from partwise.cli.tables import text_of
from partwise.files.parquet import is_parquet
from partwise.tasks.common.command import Seconds, fitted
from partwise.tasks.common.command_options import LEARNING, OUTPUT, Refusal, percent
from partwise.tasks.common.registry import RegisteredTask

SHARES = (8, 4, 2, 1)  #: of a learning curve: an eighth of the examples, a quarter, ...
MOST_NAMES = 12  # of a list of labels, say
HELP = """How good is a model on a file that has the truth, and where is it wrong? As a page for the browser, and as numbers.

Scores with intervals, labels and what they are taken for, mistakes with examples, drawings of wrong answers, calibration where
the model has probabilities, how the training went, the strongest weights:

    partwise report model test.txt --html report.html

It is one file, and needs neither a server nor the network. Without --html the scores are printed; --json prints all numbers. With
an option more, models are trained anew on an eighth, a quarter, half and all of the training file: would more data help?

    partwise report model test.txt --html report.html --train train.txt --learning-curve
"""


def verb() -> Verb:
    """The verb."""
    curve = "Train on parts of --train, and score by the file."
    training = "With --learning-curve: the file to train on."
    parameters = [
        Parameter("model", Path, "Model file."),
        Parameter("file", str, "File with the truth; gz; '-' is stdin."),
        Parameter("html", Path | None, "Write the page here; needs partwise[html].", ("--html",), None, OUTPUT),
        Parameter("learning_curve", bool, curve, ("--learning-curve",), False, LEARNING),
        Parameter("train", str | None, training, ("--train",), None, LEARNING),
        *all_options("report"),
        JOBS,
        JSON,
        QUIET,
    ]
    return Verb("report", HELP, parameters, run)


@in_words
def run(
    model: Path,
    file: str,
    html: Path | None,
    learning_curve: bool,
    train: str | None,
    jobs: int,
    as_json: bool,
    quiet: bool,
    **given: Any,
) -> None:
    """Load, answer, compare, tell."""
    seconds = Seconds()
    if learning_curve != (train is not None):
        raise Refusal("--learning-curve and --train go together: the file to train on, and the wish to do so.")
    if learning_curve and "-" in (file, train):
        raise Refusal("--learning-curve reads its files several times, and standard input can be read only once.")
    check_paths({"the model": model, "the file to read": file, "--train": train}, {"--html": html})
    if html is not None:
        if not is_file(html):
            raise Refusal("--html is a file for a browser: give it a name.")
        require_extra()
    loaded, task = load(model, jobs)
    options = options_for(task, "report", given, model)
    seconds("load")
    say = ProgressLines(quiet).say
    if learning_curve and any(map(is_parquet, (file, train))):
        raise Refusal("--learning-curve reads its files several times, and parquet files only once: write them as text.")
    say(f"{model} answers {file}")
    with warnings_as_notes(say), spinner("comparing with the truth", quiet):
        report = task.command.report(loaded, text_of(task, file, options), options)
    seconds("answer")
    facts, history = facts_of(model, loaded, task), history_of(loaded)
    points: list[dict[str, Any]] = []
    if train is not None:
        with warnings_as_notes(say), spinner(f"training on parts of {train}", quiet):
            points = curve_of(task, loaded, file, train, options, report.scores[0].name, say)
    seconds("train")
    about = {"model": str(model), "file": file, "task": task.verb, "level": options.level}
    if html is not None:
        write(html, made_report(report, {**about, "does": task.does, "facts": facts, "history": history, "points": points}))
        seconds("draw")
    if not quiet:
        more = [] if html is None else [f"wrote {html}: open it in a browser"]
        show([*said(report, options.level), *more], sys.stderr if as_json else sys.stdout)
    if as_json:
        told = {**about, **report.as_dict(), "about": facts, "history": history, "learning_curve": points}
        print_json({**told, **({} if html is None else {"html": str(html)}), "seconds": seconds.total()})


def said(report: Any, level: float) -> list[str]:
    """The scores, for people."""
    width = max(len(row.title) for row in report.scores) + 2
    lines = []
    for row in report.scores:
        between = f"   ({percent(row.low)} to {percent(row.high)})" if row.low == row.low else ""
        lines.append(f"{row.title:{width}}{percent(row.value):>10}{between}")
    if any(row.low == row.low for row in report.scores):
        lines.append(f"({100 * level:g} % bootstrap intervals over {report.unit})")
    return [*lines, *(f"note: {note}" for note in report.notes)]


# ---------------------------------------------------------------------------------------------------------------------
# What the model is
# ---------------------------------------------------------------------------------------------------------------------


def facts_of(path: Path, model: Any, task: RegisteredTask) -> dict[str, str]:
    """What ``inspect`` knows of a model that can be said in a line each, and of its file."""
    found = task.command.inspect(model, task.command.inspect_options()).found
    file = path.stat()
    written = datetime.datetime.fromtimestamp(file.st_mtime, datetime.timezone.utc)
    facts = {"file": f"{path}, {file.st_size:,} bytes, of {written:%Y-%m-%d %H:%M} UTC"}
    facts |= {name: text for name, value in found.items() if (text := in_a_line(value))}
    training = {name: value for name, value in (found.get("training") or {}).items() if name not in found}
    return facts | {f"training: {name}": text for name, value in training.items() if (text := in_a_line(value))}


def in_a_line(value: Any) -> str:
    """A value for people; nothing for what is no value or list of values."""
    if isinstance(value, bool) or value is None:
        return "" if value is None else ("yes" if value else "no")
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple) and value and not any(isinstance(one, list | tuple | dict) for one in value):
        more = ", …" if len(value) > MOST_NAMES else ""
        return f"{len(value):,}: {', '.join(map(str, value[:MOST_NAMES]))}{more}"
    return ""


def history_of(model: Any) -> dict[str, Any] | None:
    """The epochs of its training, if its file has them as `partwise.cli.progress.kept_history` makes them."""
    found = (model.training_ or {}).get("history")
    if not isinstance(found, dict):
        return None
    metric, epochs = found.get("metric"), found.get("epoch")
    if not (isinstance(metric, str) and re.fullmatch(r"[\w@]+", metric) and isinstance(epochs, list) and epochs):
        return None
    columns = {name: found[name] for name in ("loss", "primal", "dual", "dev") if name in found}
    for values in (epochs, *columns.values()):
        if not isinstance(values, list) or len(values) != len(epochs) or not all(map(is_number, values)):
            return None
    return {"metric": metric, "epoch": epochs, **columns} if "loss" in columns else None


def is_number(value: Any) -> bool:
    """Whether it is one, or stands for one that is not known."""
    return value is None or (isinstance(value, int | float) and math.isfinite(value))


# ---------------------------------------------------------------------------------------------------------------------
# Would more data help?
# ---------------------------------------------------------------------------------------------------------------------


def curve_of(
    task: RegisteredTask, model: Any, file: str, train: str, options: Any, measure: str, say: Any
) -> list[dict[str, Any]]:
    """The score of models that were trained like this one, on ever more of a training file."""
    import numpy as np

    own = task.command
    names = set(vars(own.evaluate_options()))
    reading = {name: value for name, value in vars(options).items() if name in names - {"resamples", "level", "seed"}}
    judging = own.evaluate_options(**reading, **({"intervals": False} if "intervals" in names else {}))
    points: list[dict[str, Any]] = []
    for share in SHARES:
        training = own.train_again(model, train, vars(options))
        n = training.n_examples
        if n < 2 * SHARES[0]:
            raise Refusal(f"{train}: a learning curve takes at least {2 * SHARES[0]} examples. Got {n}.")
        order = np.random.default_rng((options.seed, 5)).permutation(n)  # the same each time: each part is in the next
        weight = np.zeros(n)
        weight[order[: n // share]] = 1.0
        training.estimator.n_jobs = model.n_jobs
        made = fitted(training, None if share == 1 else weight)
        value = own.evaluate(made, file, judging, Seconds()).found[measure]
        points.append({"examples": n // share, "measure": measure, "value": value})
        say(f"trained on {n // share:,} of {n:,} examples: {measure} {percent(value)}")
    return points
