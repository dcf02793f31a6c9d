"""Runs the cells of an experiment: several at a time, each once, across interruptions.

A folder per experiment::

    cells/quick/noise=0.1,loss=ramp,...json     one file per finished cell, written whole or not at all
    results.quick.json                          all cells and the summary (`partwise.experiments.stored`)
    plot.quick.png

A cell counts as done if its file holds the same settings, the same version of the experiment and the same data (files by
size). The process that ran a cell writes its file, so whatever is killed, and however, finished cells stay finished. Cells may
also come from one file with the results of another run, by the same rule: docs/results has such files.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from pathlib import Path
from typing import Any

from partwise.engine.cluster_map import CLIENT, mapped
from partwise.experiments import get_experiment
from partwise.experiments.experiment import SETTINGS, Experiment, Result, Table, settings_of
from partwise.experiments.stored import finite, read_results, write_json, write_results
from partwise.files.whole_file import whole_file

LONGEST_NAME = 120


class MissingData(FileNotFoundError):
    """What an experiment needs is not in the data folder."""


def find_data(experiment: Experiment, folder: Path | None) -> Path:
    """The data folder, given or from PARTWISE_DATA; raises unless it has the files of the experiment."""
    given = folder if folder is not None else os.environ.get("PARTWISE_DATA")
    if not given:
        raise MissingData(
            f"{experiment.name} needs data: give the folder with --data, or set PARTWISE_DATA. "
            f"It must hold {', '.join(experiment.files)}."
        )
    folder = Path(given)
    if not folder.is_dir():
        raise MissingData(f"The data folder {folder} does not exist. It must hold {', '.join(experiment.files)}.")
    missing = [name for name in experiment.files if not (folder / name).is_file()]
    if missing:
        raise MissingData(f"{experiment.name} needs {', '.join(missing)}, which the data folder {folder} does not have.")
    return folder


def fingerprint(experiment: Experiment, data: Path) -> list[list[Any]]:
    """What the numbers depend on besides the cell."""
    return [["version", experiment.version], *([name, (data / name).stat().st_size] for name in experiment.files)]


def file_of(out: Path, setting: str, cell: Any) -> Path:
    """Where the numbers of a cell are: the settings, readable, and a hash that tells apart what the name does not."""
    settings = settings_of(cell)
    text = ",".join(f"{name}={value}" for name, value in settings.items())
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode()).hexdigest()[:10]
    return out / "cells" / setting / f"{re.sub(r'[^A-Za-z0-9=,._+-]', '_', text)[:LONGEST_NAME]}-{digest}.json"


def read_done(path: Path, cell: Any, stamp: list[list[Any]]) -> Result | None:
    """The result in `path`, if it is of that cell and of these data."""
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        if stored["cell"] == json.loads(json.dumps(settings_of(cell))) and stored["stamp"] == stamp:
            return Result(cell, stored["numbers"], stored["seconds"])
    except (OSError, ValueError, KeyError, TypeError):
        pass  # not there, or written by somebody else: to be run
    return None


def run_cell(experiment: Experiment, data: Path, path: Path, cell: Any, stamp: list[list[Any]]) -> Result:
    """Run one cell and keep its numbers."""
    clock = time.perf_counter()
    numbers = experiment.run(data, cell)
    seconds = time.perf_counter() - clock
    stored = {"experiment": experiment.name, "cell": settings_of(cell), "stamp": stamp, "numbers": numbers, "seconds": seconds}
    write_json(path, {**stored, "versions": versions()})
    return Result(cell, json.loads(json.dumps(finite(numbers))), seconds)


def run_cells(
    experiment: Experiment,
    setting: str,
    data: Path,
    out: Path,
    *,
    jobs: int = 1,
    fresh: bool = False,
    known: Path | None = None,
    report: Callable[[str], None] = lambda text: None,
) -> list[Result]:
    """All results of a setting, in the order of the cells; what was done before is read, the rest is run, `jobs` at a time.

    `known`: a file with results of another run (`partwise.experiments.stored`); its cells are not run again.
    """
    cells, stamp = experiment.cells(setting), fingerprint(experiment, data)
    paths = [file_of(out, setting, cell) for cell in cells]
    (out / "cells" / setting).mkdir(parents=True, exist_ok=True)
    if fresh:
        for path in (out / "cells" / setting).glob("*.json"):
            path.unlink()
    done = {k: found for k, cell in enumerate(cells) if (found := read_done(paths[k], cell, stamp)) is not None}
    if known is not None:
        elsewhere = {result.cell: result for result in read_results(known, cells, stamp)}
        report(f"{len(elsewhere)} of {len(cells)} cells are in {known}")
        done = {k: elsewhere[cell] for k, cell in enumerate(cells) if cell in elsewhere} | done
    todo = [k for k in range(len(cells)) if k not in done]
    if done:
        report(f"{len(done)} of {len(cells)} cells were done before (--fresh starts over)")
    clock, ran = time.perf_counter(), 0
    for k, result in each_done(experiment, data, cells, paths, stamp, todo, jobs):
        done[k], ran = result, ran + 1
        spent = time.perf_counter() - clock
        left = spent / ran * (len(todo) - ran)
        text = ", ".join(f"{name} {value}" for name, value in settings_of(cells[k]).items())
        report(f"[{len(done)}/{len(cells)}] {text}: {shown(result.numbers)} ({result.seconds:.1f} s; {duration(left)} left)")
    return [done[k] for k in range(len(cells))]


def each_done(experiment, data, cells, paths, stamp, todo, jobs) -> Iterator[tuple[int, Result]]:
    """(number, result) of each cell in `todo` as it ends; on a cluster, in their order."""
    if CLIENT.get() is not None:
        pieces = [(paths[k], cells[k]) for k in todo]
        yield from zip(todo, mapped(run_piece, pieces, experiment, data, stamp), strict=True)
        return
    if jobs <= 1 or len(todo) <= 1:
        for k in todo:
            yield k, run_cell(experiment, data, paths[k], cells[k], stamp)
        return
    import multiprocessing

    # a fresh interpreter for each worker: numba's threads do not survive a fork
    pool = ProcessPoolExecutor(min(jobs, len(todo)), mp_context=multiprocessing.get_context("spawn"), initializer=watch_parent)
    try:
        numbers = {pool.submit(run_cell, experiment, data, paths[k], cells[k], stamp): k for k in todo}
        waiting = set(numbers)
        while waiting:
            ended, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in ended:
                yield numbers[future], future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def run_piece(piece: tuple[Path, Any], experiment: Experiment, data: Path, stamp: list[list[Any]]) -> Result:
    """A cell, on a cluster."""
    return run_cell(experiment, data, *piece, stamp)


def watch_parent() -> None:
    """In a worker: end with the process that started it, however that ended."""
    import multiprocessing

    parent = multiprocessing.parent_process()

    def wait_for_end():
        if parent is not None:
            parent.join()
            os._exit(1)

    if parent is not None:
        threading.Thread(target=wait_for_end, daemon=True).start()


def reproduce(
    name: str,
    setting: str,
    data: Path | None,
    out: Path,
    *,
    jobs: int = 1,
    fresh: bool = False,
    known: Path | None = None,
    report: Callable[[str], None] = lambda text: None,
) -> tuple[dict[str, Any], list[Table]]:
    """Run an experiment, write ``results.<setting>.json`` and ``plot.<setting>.png``; returns the summary and its tables."""
    experiment = get_experiment(name)
    if setting not in SETTINGS:
        raise ValueError(f"The setting of an experiment is one of {', '.join(SETTINGS)}. Got {setting!r} instead.")
    data = find_data(experiment, data)
    out.mkdir(parents=True, exist_ok=True)
    clock = time.perf_counter()
    results = run_cells(experiment, setting, data, out, jobs=jobs, fresh=fresh, known=known, report=report)
    tables = experiment.summarise(results)
    summary = summary_of(experiment, setting, results, tables)
    summary["seconds"]["total"] = time.perf_counter() - clock
    summary["files"] = [str(out / f"results.{setting}.json")]
    picture = draw(experiment, results, out / f"plot.{setting}.png", report)
    if picture is not None:
        summary["files"].append(str(picture))
    write_results(out / f"results.{setting}.json", summary, fingerprint(experiment, data), versions(), results)
    return finite(summary), tables


def summary_of(experiment: Experiment, setting: str, results: Sequence[Result], tables: Sequence[Table]) -> dict[str, Any]:
    """For machines."""
    return {
        "experiment": experiment.name,
        "about": experiment.about,
        "source": experiment.source,
        "setting": setting,
        "note": experiment.notes.get(setting, ""),
        "cells": len(results),
        "tables": [table.to_json() for table in tables],
        "seconds": {"cells": sum(r.seconds for r in results)},
    }


def draw(
    experiment: Experiment, results: Sequence[Result], path: Path, report: Callable[[str], None], dpi: int = 150
) -> Path | None:
    """The plot, where matplotlib is installed."""
    try:
        from matplotlib.figure import Figure  # no pyplot: no window, no global state
    except ImportError:
        report('for a plot install matplotlib (pip install "partwise[plot]") and repeat the command: cells are kept')
        return None
    figure = Figure(layout="constrained")
    experiment.draw(figure, results)
    with whole_file(path) as file:
        figure.savefig(file, format="png", dpi=dpi)
    return path


def versions() -> dict[str, str]:
    """Of what the numbers were computed with."""
    import platform

    import numba
    import numpy

    import partwise

    return {
        "partwise": getattr(partwise, "__version__", ""),
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "numba": numba.__version__,
    }


def shown(numbers: dict[str, Any]) -> str:
    """The single numbers of a result, in a line."""
    return ", ".join(f"{name} {value:.4g}" for name, value in numbers.items() if isinstance(value, int | float))


def duration(seconds: float) -> str:
    """For people."""
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
