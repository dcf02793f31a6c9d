"""``partwise compare``: which solver to take, seen on your data."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from partwise.cli.common import finite, in_words, print_json, write
from partwise.cli.options import JOBS, JSON, QUIET, Parameter, Verb, as_parameters, filled
from partwise.cli.paths import check_paths
from partwise.cli.progress import ProgressLines
from partwise.tasks.common.command_options import FILES, LEARNING, OUTPUT, Refusal, option

SCORES = {"accuracy": "accuracy %", "f1": "F1 %"}
DATA = (
    "A file, recognised by its content: column file (sequences), svmlight, CSV with the class first; or a data set by name: "
    "digits comes with partwise; ocr, conll2000, usps, news20 are looked for in the folder PARTWISE_DATA."
)
HELP = """Which solver? All of them on the same data, loss and C: objective, gap and score against seconds and oracle calls.

The first solver in the table is the one to take:

    partwise compare train.txt --test test.txt --loss hinge -C 0.05 --solvers sdm,dca,pegasos -o comparison
"""


@dataclass
class Options:
    """Of ``compare``."""

    test: str | None = option(FILES, "File to judge by. (default: a fifth of the data, held out)")
    first: int | None = option(FILES, "Train on the first so many examples only.", min=1)
    loss: str = option(LEARNING, "Any loss, with parameters or without: see train.", default="hinge")
    C: float = option(LEARNING, "Weight of the losses against the regulariser.", "-C", default=0.1)
    solvers: str | None = option(LEARNING, "Names with commas between them. (default: all that can minimise the loss)")
    tol: float = option(LEARNING, "A solver is done at this relative duality gap.", min=0.0, default=1e-4)
    seconds: float = option(LEARNING, "Each solver gets so many at most, compiling not counted.", min=0.0, default=10.0)
    epochs: int | None = option(LEARNING, "And so many epochs at most. (default: no limit)", min=1)
    seed: int = option(LEARNING, "Of the order of the examples.", min=0, default=0)
    dtype: str = option(LEARNING, "Of the weights: float64 or float32.", default="float64")
    templates: str = option(FILES, "Feature templates for column files: a ready-made set, or a file.", default="auto")
    label_column: int | None = option(FILES, "Column of the labels, from 0; negative: from the last. (default: the last one)")
    out: Path | None = option(OUTPUT, "Folder for compare.png, compare.md and compare.json.", "--out", "-o")


def verb() -> Verb:
    """The verb."""
    return Verb("compare", HELP, [Parameter("data", str, DATA), *as_parameters(Options), JOBS, JSON, QUIET], run)


@in_words
def run(data: str, jobs: int, as_json: bool, quiet: bool, **given: Any) -> None:
    """Read, race, tell."""
    from partwise.cli.compare_data import load

    o, report = filled(Options, given), ProgressLines(quiet).say
    names = None if o.solvers is None else [name.strip() for name in o.solvers.split(",") if name.strip()]
    if names is not None and not names:
        raise Refusal("--solvers: name at least one, say --solvers sdm,dca.")
    if o.out is not None:
        if o.out.exists() and not o.out.is_dir():
            raise Refusal(f"{o.out} is not a folder.")
        o.out.mkdir(parents=True, exist_ok=True)
        files = {f"compare.{end}": o.out / f"compare.{end}" for end in ("json", "md", "png")}
        check_paths({"the data": data, "--test": o.test}, files)
    contest = load(data, o.test, o.first, o.seed, o.templates, o.label_column)
    report(contest.about)
    from partwise.solvers.comparison import compare as race

    found = race(
        contest.problem,
        names,
        o.loss,
        o.C,
        score=contest.score,
        tol=o.tol,
        max_seconds=o.seconds,
        max_epochs=o.epochs,
        seed=o.seed,
        dtype=o.dtype,
        n_jobs=jobs,
        report=report,
    )
    text = as_markdown(found, contest.about)
    about = {"data": data, "about": contest.about, "jobs": jobs, **found.to_dict()}
    if o.out is not None:
        write(o.out / "compare.json", json.dumps(finite(about), indent=1).encode())
        write(o.out / "compare.md", text.encode())
        report(f"wrote {o.out / 'compare.json'}\nwrote {o.out / 'compare.md'}")
        if draw(o.out / "compare.png", found, contest.about):
            report(f"wrote {o.out / 'compare.png'}")
        else:
            report('for a plot install matplotlib: pip install "partwise[plot]"')
    if as_json:
        report(text)
        print_json(about)
    else:
        print(text, end="")
    if any(trace.status == "interrupted" for trace in found.traces):
        raise SystemExit(130)


def as_markdown(found: Any, about: str) -> str:
    """The table, the quickest first, and what its columns are."""
    from partwise.experiments.experiment import Table
    from partwise.solvers.comparison import LEVELS

    scores = found.score_names()
    levels = [f"to {level:g}" for level in LEVELS]
    names = ["solver", *(f"s to {level:g}" for level in LEVELS), "seconds", "epochs", "passes", "objective", "above", "own gap"]
    table = Table(f"{about}; loss {found.loss}, C = {found.C:g}", (*names, *(SCORES.get(s, s) for s in scores), "ended"))
    for row in found.rows():
        times = [shown(row.get(level), ".2f") for level in levels]
        ends = [shown(row.get("seconds"), ".2f"), str(row.get("epochs", "-")), shown(row.get("passes"), ".1f")]
        quality = [shown(row.get("objective"), ".6g"), shown(row.get("above"), ".1e"), shown(row.get("gap"), ".1e")]
        table.rows.append((row["solver"], *times, *ends, *quality, *(shown(row.get(s), ".2f") for s in scores), row["status"]))
    bound = f"the highest lower bound that any solver found, {found.bound:.8g}"
    if not found.convex:
        bound = f"the lowest objective that any solver found, {found.bound:.8g} (the problem is not convex)"
    lines = [
        table.markdown(),
        "",
        f"above: (objective - B) / B, B being {bound}. s to X: seconds until above <= X, judged at some sixty moments. passes: "
        "oracle calls per example. own gap: relative gap between the solver's lowest objective and its own bound. Seconds are "
        "wall clock, without compiling and judging; compare them within this table only.",
    ]
    if any(trace.unseen == math.inf for trace in found.traces):
        lines += ["", "The objective of this loss is summed over the outputs that a solver has found: values differ in meaning."]
    lines += [f"\n{trace.solver}: {trace.message}" for trace in found.traces if trace.status in ("failed", "interrupted")]
    return "\n".join(lines) + "\n"


def shown(value: float | None, form: str) -> str:
    """A number, or a dash where there is none."""
    return "-" if value is None or math.isnan(value) else format(value, form)


def draw(path: Path, found: Any, about: str) -> bool:
    """Distance from the optimum against seconds and passes, own gap and score against seconds; False without matplotlib."""
    try:
        from matplotlib.figure import Figure  # no pyplot: no window, no global state
    except ImportError:
        return False
    from partwise.tasks.common.plots import save

    scores = found.score_names()
    figure = Figure(figsize=(11, 8), layout="constrained")
    (top, calls), (certified, quality) = figure.subplots(2, 2)
    order = [row["solver"] for row in found.rows()]
    for place, trace in enumerate(sorted((t for t in found.traces if t.points), key=lambda t: order.index(t.solver))):
        style = {"label": trace.solver, "lw": 1.6, "marker": ".", "ms": 4, "ls": ("-", "--", ":")[place // 10 % 3]}
        times = [p.seconds for p in trace.points]
        above = [max(a, 1e-9) for a in found.above(trace)]
        top.plot(times, above, **style)
        calls.plot([max(p.oracle_calls, 1) / found.examples for p in trace.points], above, **style)
        best, low, gaps = -math.inf, math.inf, []
        for p in trace.points:
            low = min(low, p.primal)
            best = best if math.isnan(p.dual) else max(best, p.dual)
            gaps.append(max((low - best) / abs(low), 1e-9) if math.isfinite(best) and low else math.nan)
        certified.plot(times, gaps, **style)
        if scores:
            quality.plot(times, [p.scores[scores[-1]] for p in trace.points], **style)
    above_words = "(objective - B) / B" if found.convex else "(objective - lowest) / lowest"
    top.set(xlabel="seconds", ylabel=above_words, xscale="log", yscale="log", title="distance from the optimum")
    calls.set(xlabel="oracle calls per example", ylabel=above_words, xscale="log", yscale="log", title="the same, in passes")
    certified.set(xlabel="seconds", ylabel="relative duality gap", xscale="log", yscale="log", title="own certificate")
    name = SCORES.get(scores[-1], scores[-1]) if scores else ""
    quality.set(xlabel="seconds", ylabel=f"{name}, held out", xscale="log", title="score on held-out data")
    for axes in (top, calls, certified):
        axes.set_ylim(found.tol / 10 if found.tol else 1e-8, 3)
        axes.grid(color="0.92")
    if scores:  # the beginning of a bad start would hide the rest
        ends = [t.last.scores[scores[-1]] for t in found.traces if t.points]
        quality.set_ylim(min(ends) - 5, max(ends) + 2)
        quality.grid(color="0.92")
    figure.legend(*top.get_legend_handles_labels(), loc="outside right upper", frameon=False)
    figure.suptitle(f"{about}; loss {found.loss}, C = {found.C:g}", fontsize=10)
    save(figure, path, dpi=130)
    return True
