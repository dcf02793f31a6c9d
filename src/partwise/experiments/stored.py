"""Results of many cells in one file: what ``reproduce`` writes at the end, what docs/results keeps, what ``--from`` goes on from.

One JSON object, one line for each cell::

    summary     tables for machines, and which cells are missing
    stamp       version of the experiment and sizes of its data files: cells with another stamp are none of ours
    versions    of what the numbers were computed with
    cells       settings, numbers and seconds of each
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from partwise.experiments.experiment import Experiment, Result, complete, groups, settings_of
from partwise.files.whole_file import whole_file

Stamp = list[list[Any]]
MOST_NAMED = 8  #: groups of missing cells that are named


def write_json(path: Path, value: Any) -> None:
    """A JSON file, whole or not at all."""
    with whole_file(path) as file:
        file.write(json.dumps(finite(value), indent=1).encode())


def finite(value: Any) -> Any:
    """The same value in plain Python types, with None for infinities and NaN, which JSON does not have."""
    if isinstance(value, dict):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    value = value.item() if hasattr(value, "item") else value  # numpy's numbers
    return None if isinstance(value, float) and not math.isfinite(value) else value


def rounded(value: Any, digits: int | None) -> Any:
    """The same value with so many significant digits; None: all of them."""
    if isinstance(value, dict):
        return {key: rounded(item, digits) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item, digits) for item in value]
    return float(f"{value:.{digits}g}") if isinstance(value, float) and digits is not None else value


def write_results(
    path: Path, summary: dict[str, Any], stamp: Stamp, versions: Any, results: Sequence[Result], digits: int | None = None
) -> None:
    """The file described above."""
    head = {"summary": rounded(finite(summary), digits), "stamp": finite(stamp), "versions": versions}
    cells = [{"cell": settings_of(r.cell), "numbers": r.numbers, "seconds": round(r.seconds, 2)} for r in results]
    lines = [json.dumps(rounded(finite(cell), digits)) for cell in cells]
    with whole_file(path) as file:
        file.write((json.dumps(head, indent=1)[:-2] + ',\n "cells": [\n' + ",\n".join(lines) + "\n ]\n}\n").encode())


def read_results(path: Path, cells: Iterable[Any], stamp: Stamp) -> list[Result]:
    """Those of these cells that the file has, in their order; none if its stamp is another one."""
    stored = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(stored, dict) or not isinstance(stored.get("cells"), list):
        raise ValueError(f"{path} has no results of an experiment: expected a JSON object with cells.")
    if stored.get("stamp") != stamp:
        return []
    return match(cells, stored["cells"])


def match(cells: Iterable[Any], stored: Iterable[dict[str, Any]]) -> list[Result]:
    """Results of these cells among stored ones, in the order of the cells."""
    by_settings = {key(one["cell"]): one for one in stored}
    found = ((cell, by_settings.get(key(settings_of(cell)))) for cell in cells)
    return [Result(cell, one["numbers"], one["seconds"]) for cell, one in found if one is not None]


def key(settings: dict[str, Any]) -> str:
    """What tells cells apart."""
    return json.dumps(finite(settings), sort_keys=True)


def shown_results(experiment: Experiment, setting: str, results: Sequence[Result]) -> list[Result]:
    """Those that tables and plots may show: of groups of cells that are complete."""
    return complete(experiment.cells(setting), results, experiment.together)


def what_is_missing(experiment: Experiment, setting: str, results: Sequence[Result]) -> str:
    """A sentence; empty if all cells are there."""
    cells, there = experiment.cells(setting), {r.cell for r in results}
    missing = [Result(cell, {}, 0.0) for cell in cells if cell not in there]
    if not missing:
        return ""
    names = experiment.together
    named = [f"{', '.join(f'{n} {v}' for n, v in zip(names, values, strict=True))}" for values in groups(missing, *names)]
    text = f"{len(cells) - len(missing)} of {len(cells)} cells are there"
    if names:
        text += f"; left out until theirs are: {'; '.join(named[:MOST_NAMED])}"
        text += f" and {len(named) - MOST_NAMED} more" if len(named) > MOST_NAMED else ""
    return text + "."
