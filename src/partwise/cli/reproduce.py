"""``partwise reproduce``: a table or figure of a paper, with intervals, as one command that can be interrupted and goes on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from partwise.cli.clusters import working_on
from partwise.cli.common import in_words, print_json
from partwise.cli.options import JSON, QUIET, Parameter, Verb, as_parameters, filled
from partwise.cli.progress import ProgressLines
from partwise.tasks.common.command_options import Refusal, option

HELP = "A table or figure of a paper: numbers with intervals, a plot, JSON. Interrupted, it goes on where it was."


@dataclass
class Options:
    """Of ``reproduce``."""

    data: Path | None = option(None, "Folder of corpora. (default: PARTWISE_DATA)")
    setting: str = option(
        None, "quick: fewer folds, sentences, epochs, minutes. full: the paper's protocol, an hour or so.", default="quick"
    )
    out: Path | None = option(None, "Folder for results. (default: reproduction/NAME)", "--out", "-o")
    jobs: int = option(None, "Processes.", "--jobs", "-j", min=1, default=1)
    cluster: str | None = option(
        None, "Run cells on a dask cluster, whose workers see data and results: tcp://scheduler:8786, or local[4]."
    )
    fresh: bool = option(None, "Start over; by default cells that are done are not run again.", "--fresh", default=False)
    known: Path | None = option(
        None, "Results of another run, say docs/results/NAME.json: cells in that file are not run again.", "--from"
    )
    list_all: bool = option(None, "What there is, and how long it takes.", "--list", default=False)


def verb() -> Verb:
    """The verb."""
    name = Parameter("name", str | None, "Which one; see --list.", default=None)
    return Verb("reproduce", HELP, [name, *as_parameters(Options), JSON, QUIET], run)


@in_words
def run(name: str | None, as_json: bool, quiet: bool, **given: Any) -> None:
    """Run what is not done yet, and sum up."""
    o = filled(Options, given)
    if o.setting not in ("quick", "full"):
        raise Refusal(f"--setting must be quick or full. Got {o.setting!r}.")
    if o.list_all:
        list_experiments(as_json)
        return
    if name is None:
        raise Refusal("which experiment? partwise reproduce --list shows them.")
    from partwise.experiments import runner

    report = ProgressLines(quiet).say
    out = Path("reproduction") / name if o.out is None else o.out
    if out.exists() and not out.is_dir():
        raise Refusal(f"{out} is not a folder.")
    if o.known is not None and not o.known.is_file():
        raise Refusal(f"there are no results to go on from: {o.known} is not a file.")
    how: dict[str, Any] = {"jobs": o.jobs, "fresh": o.fresh, "known": o.known, "report": report}
    if o.cluster is not None:  # workers are in folders of their own
        out, o.data = out.absolute(), None if o.data is None else o.data.absolute()
    with working_on(o.cluster):
        summary, tables = runner.reproduce(name, o.setting, o.data, out, **how)
    text = "\n\n".join([f"{summary['about']} ({o.setting})", *(table.markdown() for table in tables)])
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
