"""How training goes, while it goes: a line per epoch, the time left, and afterwards the history as JSON and as a picture."""

from __future__ import annotations

import contextlib
import json
import math
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from partwise.cli.common import visible

COLUMNS = (("epoch", 9), ("loss", 12), ("objective", 12), ("gap", 10), ("dev", 10), ("seconds", 9), ("left <=", 9))
MOST_KEPT = 200  # epochs


@contextlib.contextmanager
def spinner(text: str, quiet: bool) -> Iterator[Callable[[str], Any]]:
    """Something that turns while long work goes on, where a person is watching; what is yielded changes the text beside it."""
    if quiet or not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.console import Console

    with Console(stderr=True).status(text) as status:
        yield status.update


@contextlib.contextmanager
def warnings_as_notes(say: Callable[[str], Any]) -> Iterator[None]:
    """Warnings become lines for people, without the place in our sources; the same words are said once."""
    said = set()

    def note(message: Any, *more: Any, **further: Any) -> None:
        if str(message) not in said:
            said.add(str(message))
            say(f"note: {message}")

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = note
        yield


class ProgressLines:
    """A callback for solvers.

    Parameters
    ----------
    quiet : bool
        Print nothing.
    metric : str
        What `Record.validation` is one minus of: "f1" or "accuracy".
    """

    def __init__(self, quiet: bool, metric: str = "accuracy"):
        self.quiet, self.metric = quiet, metric
        self.update: Callable[[str], Any] = lambda text: None
        self.shown = 0

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """A spinner while it runs, where a person is watching."""
        with spinner("reading and encoding", self.quiet) as self.update:
            yield

    def say(self, text: str) -> None:
        """A line for people."""
        if not self.quiet:
            print(visible(text), file=sys.stderr, flush=True)

    def __call__(self, record: Any) -> None:
        if self.quiet:
            return
        if not self.shown:
            names = {"dev": {"f1": "dev F1", "uas": "dev UAS", "ndcg": "dev NDCG"}.get(self.metric.split("@")[0], "dev acc")}
            self.say("".join(names.get(name, name).rjust(width) for name, width in COLUMNS))
        self.shown += 1
        left = record.seconds / record.epoch * (record.max_epochs - record.epoch)
        gap = record.gap if record.gap == record.gap else record.estimate
        cells = (
            f"{record.epoch}/{record.max_epochs}",
            f"{record.loss:.6g}",
            _or_dash(record.primal, "{:.6g}"),
            _or_dash(gap if math.isfinite(gap) else math.nan, "{:.3g}"),
            _or_dash(100 * (1 - record.validation), "{:.2f}"),
            f"{record.seconds:.2f}",
            f"{left:.1f}",
        )
        self.say("".join(cell.rjust(width) for cell, (_, width) in zip(cells, COLUMNS, strict=True)))
        self.update(f"epoch {record.epoch + 1}, at most {left:.0f} s left")


def _or_dash(value: float, form: str) -> str:
    return form.format(value) if value == value else "-"


def write_history(path: Path, history: list[Any], metric: str, about: dict[str, Any]) -> None:
    """The records of all epochs as JSON; `dev` is F1 or accuracy."""
    from partwise.cli.common import finite, write

    records = [{**r.as_dict(), f"dev_{metric}": 1 - r.validation} for r in history]
    write(path, json.dumps(finite({**about, "history": records}), indent=1).encode())


def kept_history(history: list[Any], metric: str) -> dict[str, Any]:
    """What a model file keeps of its training, a list for each number that was known: `dev` is F1, accuracy or the like.

    Of more than 200 epochs, some are left out. There are no times in it: the same training gives the same file.
    """
    step = max(1, -(-len(history) // MOST_KEPT))
    some = [record for k, record in enumerate(history) if k % step == 0 or k == len(history) - 1]
    columns = {
        "loss": [record.loss for record in some],
        "primal": [record.primal for record in some],
        "dual": [record.dual for record in some],
        "dev": [1 - record.validation for record in some],
    }
    known = {name: values for name, values in columns.items() if any(map(math.isfinite, values))}
    shown = {name: [float(f"{x:.6g}") if math.isfinite(x) else None for x in values] for name, values in known.items()}
    return {"metric": metric, "epoch": [int(record.epoch) for record in some], **shown}


def draw_history(path: Path, history: list[Any], metric: str, title: str) -> None:
    """A learning curve: the loss (or the objective and its bound, where there is one) and the score on held-out data."""
    try:
        from matplotlib.figure import Figure  # no pyplot: no window, no global state
    except ImportError:
        from partwise.cli.common import Refusal

        raise Refusal('--curve needs matplotlib: pip install "partwise[plot]". The model was saved.') from None

    import io

    from partwise.cli.common import write

    held_out = any(r.validation == r.validation for r in history)
    figure = Figure(figsize=(10 if held_out else 5.5, 4), layout="constrained")
    axes = figure.subplots(1, 2 if held_out else 1, squeeze=False)[0]
    epochs = [r.epoch for r in history]
    certified = any(r.primal == r.primal for r in history[:-1])
    if certified:
        axes[0].plot(epochs, [r.primal for r in history], label="objective")
        axes[0].plot(epochs, [r.dual for r in history], label="lower bound")
        axes[0].legend()
    else:
        axes[0].plot(epochs, [r.loss for r in history], marker=".")
    axes[0].set(xlabel="epoch", ylabel="objective" if certified else "training loss, as seen on the way", title=title)
    if held_out:
        axes[1].plot(epochs, [100 * (1 - r.validation) for r in history], marker=".", color="#55a868")
        axes[1].set(
            xlabel="epoch",
            ylabel=f"{dict(f1='F1', uas='UAS', ndcg='NDCG').get(metric.split('@')[0], 'accuracy')} on held-out data, %",
        )
    picture = io.BytesIO()
    figure.savefig(picture, format=path.suffix.lstrip(".") or "png", dpi=150)
    write(path, picture.getvalue())
