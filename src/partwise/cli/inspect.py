"""``partwise inspect``: what a model is, what it has learnt, and why it answers as it does."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from partwise.cli.common import in_words, print_json, show
from partwise.cli.model_verbs import all_options, load, options_for
from partwise.cli.options import JSON, Parameter, Verb
from partwise.cli.paths import check_paths

HELP = """Look into a model: what it is, what it has learnt, why it labels a token as it does.

    partwise inspect model

    partwise inspect model --top 5 --label B-NP

    partwise inspect model --explain test.txt --line 17
"""


def verb() -> Verb:
    """The verb."""
    return Verb("inspect", HELP, [Parameter("model", Path, "Model file."), *all_options("inspect"), JSON], run)


@in_words
def run(model: Path, as_json: bool, **given: Any) -> None:
    """Load, and tell."""
    check_paths({"the model": model}, {"--picture": given["picture"]})
    loaded, task = load(model)
    options = options_for(task, "inspect", given, model)
    check_paths(task.command.inputs(options), {"--picture": options.picture})
    told = task.command.inspect(loaded, options)
    about = {"model": str(model), "bytes": model.stat().st_size, **told.found}
    if as_json:
        print_json(about)
    else:
        show(told.text, sys.stdout)
