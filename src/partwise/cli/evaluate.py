"""``partwise evaluate``: how well a model answers a file whose answers are known."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from partwise.cli.common import in_words, print_json, show
from partwise.cli.model_verbs import all_options, alone, load, options_for
from partwise.cli.options import JOBS, JSON, QUIET, Parameter, Verb
from partwise.cli.tables import text_of
from partwise.tasks.common.command import Seconds
from partwise.tasks.common.command_options import Refusal
from partwise.tasks.common.registry import TASKS, RegisteredTask

HELP = """Score a model by a file that has the truth, in the measures of its task.

Accuracy, and precision, recall and F1 of chunks as conlleval counts them; UAS and LAS of parses; F1 of base pairs; NDCG.

    partwise evaluate model test.txt

Labels that the model has never seen count as labelled wrongly. Without a model, two columns of a file are compared:

    partwise evaluate labelled.txt --label-column 2 --predicted-column 3
"""


def verb(tasks: Sequence[RegisteredTask] = TASKS) -> Verb:
    """The verb, with the options of these tasks."""
    parameters = [
        Parameter("model", Path, "Model file; or, with --predicted-column, the column file itself."),
        Parameter("file", str | None, "File with the truth; gz; '-' is stdin.", default=None),
        *all_options("evaluate", tasks),
        JOBS,
        JSON,
        QUIET,
    ]
    return Verb("evaluate", HELP, parameters, run)


@in_words
def run(model: Path, file: str | None, jobs: int, as_json: bool, quiet: bool, **given: Any) -> None:
    """Load, read, answer, compare."""
    seconds, by_itself = Seconds(), alone("evaluate", given)
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
