"""``partwise shrink``: a smaller file of a model, and what that does to its answers."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any

from partwise.cli.common import in_words, print_json, show
from partwise.cli.model_verbs import load
from partwise.cli.options import JOBS, JSON, QUIET, Parameter, Verb
from partwise.cli.paths import check_paths
from partwise.cli.repair import METRICS
from partwise.tasks.common.command import Seconds
from partwise.tasks.common.command_options import OUTPUT, Refusal

HELP = """Write a model to a smaller file: its weights with fewer digits, or without the smallest ones.

    partwise shrink model -o small --float16 --check dev.txt

Weights that are zero are never kept: without options the answers stay the same to the byte. With --int8 neighbouring weights
share a scale; a file is then about a quarter of its size. --check scores both models by a file, as evaluate would. Small files
are read as any other; in memory weights have their former type.
"""


def verb() -> Verb:
    """The verb."""
    return Verb(
        "shrink",
        HELP,
        [
            Parameter("model", Path, "Model file."),
            Parameter("output", Path, "Where to write the smaller model.", ("--output", "-o"), panel=OUTPUT),
            Parameter("float16", bool, "Two bytes a weight: about three digits.", ("--float16",), False, OUTPUT),
            Parameter("int8", bool, "One byte a weight, and a scale for each 64.", ("--int8",), False, OUTPUT),
            Parameter(
                "cut",
                float | None,
                "Make weights zero whose absolute value is less than this.",
                ("--cut",),
                None,
                OUTPUT,
                {"min": 0.0},
            ),
            Parameter("check", str | None, "File with the truth: score the model before and after.", ("--check",), None),
            JOBS,
            JSON,
            QUIET,
        ],
        run,
    )


@in_words
def run(
    model: Path,
    output: Path,
    float16: bool,
    int8: bool,
    cut: float | None,
    check: str | None,
    jobs: int,
    as_json: bool,
    quiet: bool,
) -> None:
    """Load, write, and compare."""
    from partwise.tasks.common import model_file

    if float16 and int8:
        raise Refusal("--float16 and --int8 do not go together: choose one.")
    check_paths({"the model": model, "--check": check}, {"--output": output})
    seconds = Seconds()
    loaded, task = load(model, jobs)
    before = None if check is None else scores(task.command, loaded, check)
    n_cut = model_file.save(loaded, output, "float16" if float16 else "int8" if int8 else None, cut or 0.0)
    size, new_size = model.stat().st_size, output.stat().st_size
    found = {"model": str(model), "output": str(output), "bytes": size, "bytes_now": new_size, "cut": n_cut}
    text = [f"{output}: {new_size / 1e6:.2f} MB, of {size / 1e6:.2f}" + (f"; {n_cut} weights cut" if cut is not None else "")]
    if before is not None:
        after = scores(task.command, load(output, jobs)[0], str(check))
        found |= {"check": check, "before": before, "now": after}
        text += [f"{name}: {before[name]:.6f}, now {after[name]:.6f} ({after[name] - before[name]:+.6f})" for name in before]
    if not quiet:
        show("\n".join(text), sys.stderr if as_json else sys.stdout)
    if as_json:
        print_json({**found, "seconds": seconds.total()})


def scores(command: Any, model: Any, file: str) -> dict[str, float]:
    """What ``evaluate`` says of a model, without intervals."""
    options = command.evaluate_options()
    if "intervals" in {field.name for field in dataclasses.fields(options)}:
        options.intervals = False
    told = command.evaluate(model, file, options, Seconds()).found
    return {name: float(told[name]) for name in METRICS if isinstance(told.get(name), int | float)}
