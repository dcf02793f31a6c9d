"""``partwise export``: a model in a form that needs no partwise."""

from __future__ import annotations

import sys
from pathlib import Path

from partwise.cli.common import in_words, show
from partwise.cli.model_verbs import load
from partwise.cli.options import QUIET, Parameter, Verb
from partwise.cli.paths import check_paths
from partwise.tasks.common.command_options import OUTPUT, Refusal

HELP = """Write a tagger as one Python file that needs nothing but numpy.

    partwise export model --numpy -o tagger.py
    python tagger.py < test.txt

The file labels as the model does, only slower. It can be read before it is run: code above, numbers below.
"""


def verb() -> Verb:
    """The verb."""
    return Verb(
        "export",
        HELP,
        [
            Parameter("model", Path, "Model file of a tagger."),
            Parameter("output", Path, "Where to write it: a name that ends in .py.", ("--output", "-o"), panel=OUTPUT),
            Parameter(
                "numpy", bool, "A Python file that needs nothing but numpy (the only form so far).", ("--numpy",), False, OUTPUT
            ),
            QUIET,
        ],
        run,
    )


@in_words
def run(model: Path, output: Path, numpy: bool, quiet: bool) -> None:
    """Load and write."""
    from partwise.bridges.numpy_predictor import export_numpy

    if not numpy:
        raise Refusal("Say which form: --numpy writes a Python file that needs nothing but numpy.")
    check_paths({"the model": model}, {"--output": output})
    loaded, task = load(model)
    if task.verb != "tag":
        raise Refusal(f"export --numpy is for a model that labels sequences; {model} {task.does}.")
    size = export_numpy(loaded, output)
    if not quiet:
        show(f"{output}: {size / 1e6:.2f} MB; python {output} < FILE labels a column file", sys.stdout)
