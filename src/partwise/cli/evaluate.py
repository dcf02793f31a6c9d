"""``partwise evaluate``: how well a model answers a file whose answers are known."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from partwise.cli.clusters import working_on
from partwise.cli.common import in_words, print_json, show
from partwise.cli.model_verbs import all_options, alone, load, loaded_once, options_for
from partwise.cli.options import CLUSTER, JOBS, JSON, QUIET, Parameter, Verb
from partwise.cli.tables import text_of
from partwise.engine.cluster_map import mapped
from partwise.tasks.common.command import Seconds
from partwise.tasks.common.command_options import Refusal
from partwise.tasks.common.registry import TASKS, RegisteredTask

HELP = """Score a model by a file that has the truth, in the measures of its task.

Accuracy, and precision, recall and F1 of chunks as conlleval counts them; UAS and LAS of parses; F1 of base pairs; NDCG.

    partwise evaluate model test.txt

Of several files, each is scored by itself; with --cluster, by its workers.

Labels that the model has never seen count as labelled wrongly. Without a model, two columns of a file are compared:

    partwise evaluate labelled.txt --label-column 2 --predicted-column 3
"""


def verb(tasks: Sequence[RegisteredTask] = TASKS) -> Verb:
    """The verb, with the options of these tasks."""
    parameters = [
        Parameter("model", Path, "Model file; or, with --predicted-column, the column file itself."),
        Parameter("files", list[str], "File with the truth; gz; '-' is stdin. Or several, each scored by itself.", default=[]),
        *all_options("evaluate", tasks),
        JOBS,
        CLUSTER,
        JSON,
        QUIET,
    ]
    return Verb("evaluate", HELP, parameters, run)


@in_words
def run(model: Path, files: list[str], jobs: int, cluster: str | None, as_json: bool, quiet: bool, **given: Any) -> None:
    """Load, read, answer, compare."""
    seconds, by_itself = Seconds(), alone("evaluate", given)
    if len(files) > 1 or cluster is not None:
        evaluate_files(model, files, jobs, cluster, as_json, quiet, given, by_itself is not None, seconds)
        return
    file = files[0] if files else None
    if (file is None) == (by_itself is None):
        raise Refusal("Give a model and a file; or, with --predicted-column, a file alone.")
    if by_itself is not None:
        loaded, (task, options) = None, by_itself
    else:
        loaded, task = load(model, jobs)
        options = options_for(task, "evaluate", given, model)
    seconds("load")
    told = task.command.evaluate(loaded, text_of(task, str(model) if file is None else file, options), options, seconds)
    seconds("score")
    if not (quiet and as_json):
        show(told.text, sys.stderr if as_json else sys.stdout)
    if as_json:
        print_json(
            {"model": None if file is None else str(model), "file": file or str(model), **told.found, "seconds": seconds.total()}
        )


def evaluate_files(
    model: Path,
    files: list[str],
    jobs: int,
    cluster: str | None,
    as_json: bool,
    quiet: bool,
    given: dict[str, Any],
    by_itself: bool,
    seconds: Seconds,
) -> None:
    """Several files, here or on a cluster, each scored by itself."""
    if by_itself or not files or "-" in files:
        raise Refusal("To score several files, or to do it on a cluster, give a model and the names of files.")
    for file in files:
        if not os.path.isfile(file):
            raise Refusal(f"{file}: there is no such file.")
    _, task = load(model, jobs)
    options = options_for(task, "evaluate", given, model)
    seconds("load")
    found = []
    with working_on(cluster):
        for file, told in zip(
            files, mapped(score_file, map(os.path.abspath, files), os.path.abspath(model), options, jobs), strict=True
        ):
            found.append({"file": file, **told.found})
            if not (quiet and as_json):
                show([f"{file}:", told.text], sys.stderr if as_json else sys.stdout)
    seconds("score")
    if as_json:
        print_json({"model": str(model), "files": found, "seconds": seconds.total()})


def score_file(file: str, model: str, options: Any, jobs: int) -> Any:
    """How well a model answers one of many files."""
    loaded, task = loaded_once(model, os.stat(model).st_mtime_ns, jobs)
    return task.command.evaluate(loaded, text_of(task, file, options), options, Seconds())
