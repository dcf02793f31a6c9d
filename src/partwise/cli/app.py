"""The verbs, put together; each is made when it is asked for, so that ``partwise --help`` is quick."""

from __future__ import annotations

import importlib
from typing import Any

import typer

from partwise.cli.lazy_group import lazy_group
from partwise.cli.typer_commands import as_command

#: verb: a line about it
VERBS = {
    "demo": "Words of handwritten digits, read three ways; or some sentences to practise on.",
    "train": "Train a model.",
    "pack": "Pack training files of any size on disk, to train on.",
    "predict": "What a model says about a file.",
    "evaluate": "Score a model by a file that has the truth.",
    "inspect": "What a model has learnt, and why it answers as it does.",
    "report": "All there is to tell of a model and a file, as a page for the browser.",
    "suspects": "Labels that are probably wrong, worst first.",
    "repair": "Correct a file, as decided in the page of its suspects.",
    "shrink": "Write a model to a smaller file.",
    "verify": "Whether a model file is whole, to the last byte.",
    "export": "Write a tagger as one file that needs nothing but numpy.",
    "convert": "Files of annotation tools to column files, and back.",
    "solve": "The best states of a factor graph in a file, and their probabilities.",
    "compare": "Solvers side by side on one problem.",
    "doctor": "What this installation is made of, and what will have to be compiled.",
    "reproduce": "The papers' tables and figures, each by one command.",
}


def load(verb: str) -> Any:
    """The command of a verb: each has a module, which declares it (`verb`) or makes it itself (`command`)."""
    module = importlib.import_module(f"partwise.cli.{verb}")
    return module.command() if hasattr(module, "command") else as_command(module.verb())


app = typer.Typer(
    name="partwise",
    cls=lazy_group(VERBS, load),
    help="Structured prediction: any output structure, any loss from perceptron to ramp, any solver.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,  # `quick` does without, and a traceback is for us, not for users
)


def show_version(asked: bool) -> None:
    """Which partwise, and on what it stands: the first line of a bug report."""
    if asked:
        import platform

        from partwise.cli.doctor import REQUIRED, version_of
        from partwise.files.version import __version__

        typer.echo(f"partwise {__version__}")
        typer.echo(f"Python {platform.python_version()}, " + ", ".join(f"{name} {version_of(name)}" for name in REQUIRED))
        raise typer.Exit


@app.callback()
def _partwise(
    version: bool = typer.Option(
        False, "--version", "-V", callback=show_version, is_eager=True, help="Versions of partwise and of what it stands on."
    ),
) -> None:
    """Structured prediction: any output structure, any loss from perceptron to ramp, any solver."""
