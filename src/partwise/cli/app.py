"""The verbs, put together."""

from __future__ import annotations

import typer

from partwise.cli.compare import compare
from partwise.cli.demo import demo
from partwise.cli.evaluate import evaluate
from partwise.cli.inspect import inspect
from partwise.cli.predict import predict
from partwise.cli.reproduce import reproduce
from partwise.cli.suspects import suspects
from partwise.tasks.alignment.training import train as _align  # noqa: F401 - registers its verb
from partwise.tasks.constituency.training import train as _constituency  # noqa: F401 - registers its verb
from partwise.tasks.dependency.training import train as _parse  # noqa: F401 - registers its verb
from partwise.tasks.folding.training import train as _fold  # noqa: F401 - registers its verb
from partwise.tasks.graphs.training import train as _graph  # noqa: F401 - registers its verb
from partwise.tasks.ranking.training import train as _rank  # noqa: F401 - registers its verb
from partwise.tasks.tagging.command import train

app = typer.Typer(
    name="partwise",
    help="Structured prediction: any output structure, any loss from perceptron to ramp, any solver.",
    no_args_is_help=True,
    add_completion=False,
)


@app.callback()
def _partwise() -> None:
    """Keep `partwise demo` a verb: with one command and no callback typer would drop its name."""


app.command()(demo)
app.add_typer(train, name="train")
app.command()(predict)
app.command()(evaluate)
app.command()(inspect)
app.command()(suspects)
app.command()(compare)
app.command()(reproduce)
