"""``partwise reproduce``: a table or figure of a paper, with intervals, as one command that can be interrupted and goes on."""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from partwise.cli.common import Refusal, in_words, print_json
from partwise.cli.options import Json, Quiet, option


class Setting(str, Enum):
    """How much of it."""

    quick = "quick"
    full = "full"


@in_words
def reproduce(
    name: Annotated[str | None, typer.Argument(help="Which one; see --list.")] = None,
    data: Annotated[Path | None, option(None, "Folder of corpora. (default: PARTWISE_DATA)")] = None,
    setting: Annotated[
        Setting, option(None, "quick: fewer folds, sentences, epochs, minutes. full: the paper's protocol, an hour or so.")
    ] = Setting.quick,
    out: Annotated[Path | None, option(None, "Folder for results. (default: reproduction/NAME)", "--out", "-o")] = None,
    jobs: Annotated[int, option(None, "Processes.", "--jobs", "-j", min=1)] = 1,
    fresh: Annotated[bool, option(None, "Start over; by default cells that are done are not run again.", "--fresh")] = False,
    list_all: Annotated[bool, option(None, "What there is, and how long it takes.", "--list")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """A table or figure of a paper: numbers with intervals, a plot, JSON. Interrupted, it goes on where it was."""
    if list_all:
        list_experiments(as_json)
        return
    if name is None:
        raise Refusal("which experiment? partwise reproduce --list shows them.")
    from partwise.experiments import runner

    def report(text: str) -> None:
        if not quiet:
            print(text, file=sys.stderr, flush=True)

    out = Path("reproduction") / name if out is None else out
    if out.exists() and not out.is_dir():
        raise Refusal(f"{out} is not a folder.")
    summary, tables = runner.reproduce(name, setting.value, data, out, jobs=jobs, fresh=fresh, report=report)
    text = "\n\n".join([f"{summary['about']} ({setting.value})", *(table.markdown() for table in tables)])
    if summary["note"]:
        text += f"\n\n{summary['note']}"
    if as_json:
        report(text)
        print_json(summary)
    else:
        print(text)
    for file in summary["files"]:
        report(f"wrote {file}")


def list_experiments(as_json: bool) -> None:
    """One line each."""
    from partwise.experiments import EXPERIMENTS, get_experiment

    found = [get_experiment(name) for name in EXPERIMENTS]
    if as_json:
        keys = ("name", "about", "source", "minutes", "files")
        print_json({"experiments": [{key: getattr(e, key) for key in keys} for e in found]})
        return
    width = max(len(e.name) for e in found)
    for e in found:
        print(f"{e.name.ljust(width)}  {e.about}")
        print(f"{' ' * width}  quick {e.minutes['quick']:g} min, full {e.minutes['full']:g} min on two cores; {e.source}")
