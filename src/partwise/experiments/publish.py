"""Results in the docs: ``python -m partwise.experiments.publish`` puts finished cells there, and makes tables and plots.

    docs/results/NAME.json          all finished cells of the full setting (NAME.quick.json: of the quick one), rounded
    docs/results/NAME.png           the plot of these
    docs/reproduction.md            whatever stands between two markers is replaced

A block of the page begins with a marker and ends with ``<!-- end of results -->``::

    <!-- results: NAME full 1 -->           the first table of the experiment's summary
    <!-- results: NAME full plot -->        its plot
    <!-- results: all full status -->       which experiments have been run, and how much of them

Cells count if they are of the present version of the experiment. Where some are missing, rows that need them are left out and
the page says so. A test compares the page with the files, so no number of a table can be edited by hand. No data are needed.

Where one method of an experiment has changed, ``--forget method=ramp`` takes its cells out; ``partwise reproduce NAME --from``
the file of the others then runs these alone. (A new `Experiment.version` is for what changes all of them.)
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from partwise.experiments import EXPERIMENTS, get_experiment
from partwise.experiments.experiment import SETTINGS, Experiment, Result, Table, settings_of
from partwise.experiments.runner import draw, summary_of, versions
from partwise.experiments.stored import Stamp, match, rounded, shown_results, what_is_missing, write_results

PAGE = "reproduction.md"
DIGITS = 7  #: significant ones of published numbers
DPI = 80
BLOCK = re.compile(r"(<!-- results: (\S+) (\S+) (\S+) -->\n).*?(<!-- end of results -->)", re.DOTALL)


class Published(NamedTuple):
    """Finished cells of one setting of an experiment."""

    experiment: Experiment
    setting: str
    results: list[Result]
    stamp: Stamp
    versions: list[dict[str, str]]

    @property
    def shown(self) -> list[Result]:
        """What tables and plots are made of."""
        return shown_results(self.experiment, self.setting, self.results)

    def tables(self) -> list[Table]:
        """The summary; empty as long as no group of cells is complete."""
        return self.experiment.summarise(self.shown) if self.shown else []


def file_in(docs: Path, name: str, setting: str, ending: str = "json") -> Path:
    """Where results are kept."""
    return docs / "results" / f"{name}{'' if setting == 'full' else f'.{setting}'}.{ending}"


def is_current(experiment: Experiment, stamp: Any) -> bool:
    """Whether cells with that stamp are of the present version, and made from the same files."""
    names = [name for name, _ in stamp[1:]] if isinstance(stamp, list) else None
    return names == list(experiment.files) and stamp[0] == ["version", experiment.version]


def read_published(docs: Path, name: str, setting: str) -> Published:
    """What the docs have; cells of another version, and cells that the experiment no longer has, are left out."""
    experiment, path = get_experiment(name), file_in(docs, name, setting)
    stored: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"stamp": None}
    if not is_current(experiment, stored["stamp"]):
        return Published(experiment, setting, [], [], [])
    found = match(experiment.cells(setting), stored["cells"])
    return Published(experiment, setting, found, stored["stamp"], stored["versions"])


def collect(folder: Path, name: str, setting: str, before: Published) -> Published:
    """The finished cells of a run's folder, and those that were published before if they are of the same version and data."""
    experiment = get_experiment(name)
    stored = [json.loads(path.read_text(encoding="utf-8")) for path in sorted((folder / "cells" / setting).glob("*.json"))]
    stored = [one for one in stored if is_current(experiment, one["stamp"])]
    if not stored:
        return before
    # cells of other data are left out: those of most cells are the ones
    text = Counter(json.dumps(one["stamp"]) for one in stored).most_common(1)[0][0]
    stored = [one for one in stored if json.dumps(one["stamp"]) == text]
    found = {r.cell: r for r in (before.results if before.stamp == json.loads(text) else [])}
    found |= {r.cell: r for r in match(experiment.cells(setting), stored)}
    results = [rounded_result(found[cell]) for cell in experiment.cells(setting) if cell in found]
    used = [*before.versions, *(one.get("versions", versions()) for one in stored)]
    distinct = [json.loads(text) for text in dict.fromkeys(json.dumps(v, sort_keys=True) for v in used)]
    return Published(experiment, setting, results, json.loads(text), distinct)


def without(published: Published, settings: Sequence[str]) -> Published:
    """What is left when cells with all of these settings, each as NAME=VALUE, are forgotten."""
    wanted = dict(one.split("=", 1) for one in settings)
    known = settings_of(published.experiment.cells(published.setting)[0])
    if wrong := set(wanted) - set(known):
        raise ValueError(f"Cells of {published.experiment.name} have the settings {', '.join(known)}. Got {', '.join(wrong)}.")
    kept = [r for r in published.results if any(str(settings_of(r.cell)[name]) != value for name, value in wanted.items())]
    return published._replace(results=kept)


def rounded_result(result: Result) -> Result:
    """As it is written."""
    return Result(result.cell, rounded(result.numbers, DIGITS), round(result.seconds, 2))


def write(docs: Path, published: Published) -> Path:
    """The file in the docs."""
    experiment, setting, results = published.experiment, published.setting, published.results
    summary = summary_of(experiment, setting, results, published.tables())
    summary["of"] = len(experiment.cells(setting))
    summary["missing"] = what_is_missing(experiment, setting, results)
    path = file_in(docs, experiment.name, setting)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_results(path, summary, published.stamp, published.versions, results, DIGITS)
    return path


def block(docs: Path, name: str, setting: str, what: str) -> str:
    """What stands between two markers."""
    if what == "status":
        return status(docs, setting)
    published = read_published(docs, name, setting)
    missing = what_is_missing(published.experiment, setting, published.results)
    if what == "plot":
        picture = file_in(docs, name, setting, "png").relative_to(docs).as_posix()
        return (
            f"![{published.experiment.source}: {published.experiment.about}]({picture})" if published.shown else "*No plot yet.*"
        )
    tables = published.tables()
    if int(what) > len(tables):
        return f"*Not run yet in this version: {missing}*" if what == "1" else "*Not run yet in this version.*"
    note = f"\n\n*{missing}*" if missing and what == "1" else ""
    return tables[int(what) - 1].markdown() + note


def status(docs: Path, setting: str) -> str:
    """How much of each experiment there is."""
    columns = ("experiment", "cells", "minutes of these", "what is missing")
    table = Table(f"the {setting} setting: cells that have been run, and how long they took", columns)
    for name in EXPERIMENTS:
        published = read_published(docs, name, setting)
        there, total = len(published.results), len(published.experiment.cells(setting))
        minutes = f"{sum(r.seconds for r in published.results) / 60:.0f}" if there else None
        missing = what_is_missing(published.experiment, setting, published.results).partition("are: ")[2] if there else "all"
        table.rows.append((name, f"{there} of {total}", minutes, missing.rstrip(".") or ("-" if there == total else "some")))
    return table.markdown()


def renewed(text: str, docs: Path) -> str:
    """The page with all of its blocks made anew."""

    def replace(found: re.Match[str]) -> str:
        begin, name, setting, what, end = found.groups()
        if setting not in SETTINGS:
            raise ValueError(f"The marker of {name} must name a setting, {' or '.join(SETTINGS)}. Got {setting!r}.")
        return f"{begin}\n{block(docs, name, setting, what)}\n\n{end}"

    return BLOCK.sub(replace, text)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; 1 if the page was to be checked and is not what the files give."""
    parser = argparse.ArgumentParser(
        prog="python -m partwise.experiments.publish", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="experiments whose cells are collected (default: all)")
    parser.add_argument("--runs", type=Path, default=Path("reproduction"), help="folder with a folder for each experiment")
    parser.add_argument("--docs", type=Path, default=Path("docs"))
    parser.add_argument("--setting", choices=SETTINGS, default="full")
    forget = "cells with all of these settings, as published so far, are out of date: method=ramp, say"
    parser.add_argument("--forget", nargs="+", metavar="NAME=VALUE", help=forget)
    parser.add_argument("--check", action="store_true", help="write nothing; end with status 1 if the page is out of date")
    given = parser.parse_args(arguments)
    if given.forget and (len(given.names) != 1 or not all("=" in one for one in given.forget)):
        parser.error("--forget takes settings as NAME=VALUE, of one experiment that is named before it")
    page = given.docs / PAGE
    text = page.read_text(encoding="utf-8")
    if given.check:
        if renewed(text, given.docs) != text:
            print(f"{page} is not what {given.docs / 'results'} gives: run python -m partwise.experiments.publish")
            return 1
        return 0
    for name in given.names or EXPERIMENTS:
        before = read_published(given.docs, name, given.setting)
        kept = without(before, given.forget) if given.forget else before
        published = collect(given.runs / name, name, given.setting, kept)
        if not published.results:
            continue
        if published != before:
            path = write(given.docs, published)
            total = len(published.experiment.cells(given.setting))
            print(f"{path}: {len(published.results)} of {total} cells, {path.stat().st_size / 1000:.0f} kB")
        if published.shown:
            draw(published.experiment, published.shown, file_in(given.docs, name, given.setting, "png"), print, DPI)
    page.write_text(renewed(text, given.docs), encoding="utf-8")
    print(f"{page}: {len(BLOCK.findall(text))} blocks")
    return 0


if __name__ == "__main__":
    sys.exit(main())
