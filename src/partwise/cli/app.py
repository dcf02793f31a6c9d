"""The verbs, put together."""

from __future__ import annotations

import typer

from partwise.cli.demo import demo

app = typer.Typer(
    name="partwise",
    help="Structured prediction: any output structure, any loss from perceptron to CRF, any solver.",
    no_args_is_help=True,
    add_completion=False,
)


@app.callback()
def _partwise() -> None:
    """Keep `partwise demo` a verb: with one command and no callback typer would drop its name."""


app.command()(demo)
