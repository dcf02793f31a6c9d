"""What benchmarks found, as tables, as JSON and as pictures."""

from __future__ import annotations

import importlib.metadata
import json
import math
import os
import platform
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.race import Outcome

RESULTS = Path(__file__).parent / "results"
STAGES = ("start", "read", "features", "append", "train", "save", "load", "tag", "write")


@dataclass
class Row:
    """One comparison: the same thing done by us and by a peer."""

    dataset: str
    what: str
    unit: str
    ours: float | None
    peer: float | None
    peer_name: str
    note: str = ""
    higher_is_better: bool = False

    @property
    def ratio(self) -> float | None:
        """How many times better we are."""
        if not self.ours or not self.peer:
            return None
        return self.ours / self.peer if self.higher_is_better else self.peer / self.ours


@dataclass
class Curve:
    """Quality against CPU seconds, from the start of the process; evaluation is not counted."""

    contender: str
    measure: str
    epochs: list[int]
    seconds: list[float]
    quality: list[float]

    def first_reaching(self, quality: float) -> float | None:
        """Seconds until the first point that is at least as good; None if there is none."""
        return next((s for s, q in zip(self.seconds, self.quality, strict=True) if q >= quality), None)


@dataclass
class Report:
    """All that one benchmark found."""

    name: str
    rows: list[Row] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    curves: list[Curve] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    failed: bool = False  #: whether a program failed that the benchmark cannot do without

    def publish(self, folder: Path = RESULTS) -> None:
        """Print tables; write ``folder/name.json`` and, if there is something to draw, ``folder/name.png``."""
        folder.mkdir(parents=True, exist_ok=True)
        content = {
            "name": self.name,
            "when": time.strftime("%Y-%m-%d %H:%M:%S"),
            **machine(),
            "notes": self.notes,
            "rows": [{**asdict(r), "ratio": r.ratio} for r in self.rows],
            "outcomes": [outcome.summary() for outcome in self.outcomes],
            "curves": [asdict(curve) for curve in self.curves],
        }
        (folder / f"{self.name}.json").write_text(json.dumps(content, indent=1))
        self.show()
        if self.curves or sum(bool(outcome.quality) for outcome in self.outcomes) > 1:
            self.draw(folder / f"{self.name}.png")

    def show(self) -> None:
        """The tables."""
        from rich.console import Console

        console = Console(width=160)
        for make in (outcome_table, curve_table, row_table):
            table = make(self)
            if table is not None:
                console.print(table)
        for note in self.notes:
            console.print(f"  {note}", highlight=False)

    def draw(self, path: Path) -> None:
        """Quality against seconds: a line per curve, a point per outcome."""
        try:
            import matplotlib
        except ImportError:
            self.notes.append("no picture: matplotlib is not installed")
            return
        matplotlib.use("Agg")
        from matplotlib import pyplot

        figure, axes = pyplot.subplots(figsize=(8, 5), layout="constrained")
        for curve in self.curves:
            style = {"linewidth": 2.5} if curve.contender.startswith("partwise") else {"linewidth": 1.2, "linestyle": "--"}
            axes.plot(curve.seconds, curve.quality, marker="o", markersize=3, label=curve.contender, **style)
        measure = self.curves[0].measure if self.curves else ""
        for outcome in self.outcomes:
            cpu = outcome.median("train", "cpu")
            if cpu and outcome.quality:
                measure, quality = next(iter(outcome.quality.items()))
                ours = outcome.contender.startswith("partwise")
                axes.plot(
                    cpu, quality, marker="*" if ours else "o", markersize=12 if ours else 6, linestyle="", label=outcome.contender
                )
        axes.set_xscale("log")
        end = "to this epoch, without saving" if self.curves else "to saved model, the whole process"
        axes.set_xlabel(f"CPU seconds from raw file {end}")
        axes.set_ylabel(f"{measure} on the test file, %")
        axes.set_title(self.name)
        if self.curves:  # the first epochs would hide what the later ones do
            best = max(max(curve.quality) for curve in self.curves)
            axes.set_ylim(max(min(min(curve.quality) for curve in self.curves), best - 3), best + 0.2)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
        figure.savefig(path, dpi=150)
        pyplot.close(figure)


def number(value: float | None) -> str:
    """A figure as people read it."""
    if value is None or math.isnan(value):
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _table(title: str, *columns: str) -> Any:
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    words = ("dataset", "what", "unit", "which", "note", "contender", "settings")
    for column in columns:
        table.add_column(column, justify="left" if column in words else "right", no_wrap=column == "contender")
    return table


def row_table(report: Report) -> Any:
    """Comparisons; None if there are none."""
    if not report.rows:
        return None
    table = _table(report.name, "dataset", "what", "unit", "partwise", "peer", "which", "times better", "note")
    for r in report.rows:
        table.add_row(r.dataset, r.what, r.unit, number(r.ours), number(r.peer), r.peer_name, number(r.ratio), r.note)
    return table


def outcome_table(report: Report) -> Any:
    """Contenders: whole process, stages, memory, quality; None if there are none."""
    if not report.outcomes:
        return None
    measures = list(dict.fromkeys(name for outcome in report.outcomes for name in outcome.quality))
    used = {stage for outcome in report.outcomes for stage in outcome.stages("train")}
    stages = [stage for stage in STAGES if stage in used]
    title = f"{report.name}: raw file to model, medians; stages in seconds"
    table = _table(title, "contender", "CPU s", "wall s", "peak MB", *stages, *measures, "model MB", "tag CPU s", "runs", "note")
    for outcome in report.outcomes:
        if outcome.note.startswith("skipped"):
            report.notes.append(f"{outcome.contender}: {outcome.note}")
            continue
        spent = outcome.stages("train")
        table.add_row(
            outcome.contender,
            *(number(outcome.median("train", what)) for what in ("cpu", "wall", "peak_mb")),
            *(number(spent.get(stage)) for stage in stages),
            *(f"{outcome.quality[name]:.2f}" if name in outcome.quality else "-" for name in measures),
            number(outcome.model_mb or None),
            number(outcome.median("tag", "cpu")),
            str(len(outcome.train)),
            outcome.note,
        )
    return table


def curve_table(report: Report) -> Any:
    """Seconds until a curve first reaches round figures; None if there are no curves."""
    if not report.curves:
        return None
    best = max(max(curve.quality) for curve in report.curves)
    levels = [math.floor(best * 10) / 10 - step for step in (0.9, 0.6, 0.3, 0.2, 0.1, 0.0)]
    table = _table(
        f"{report.name}: CPU seconds until {report.curves[0].measure} is first",
        "contender",
        *(f"{x:.1f}" for x in levels),
        "best",
    )
    for curve in report.curves:
        reached = (number(curve.first_reaching(level)) for level in levels)
        table.add_row(curve.contender, *reached, f"{max(curve.quality):.2f}")
    return table


def machine() -> dict[str, Any]:
    """What the figures depend on."""
    packages = (
        "numpy",
        "numba",
        "python-crfsuite",
        "sklearn-crfsuite",
        "scikit-learn",
        "chaine",
        "vowpalwabbit",
        "nltk",
        "ufal.chu_liu_edmonds",
    )
    versions = {}
    for package in packages:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = None
    return {
        "machine": platform.platform(),
        "processor": processor(),
        "cores": os.cpu_count(),
        "memory_mb": memory_megabytes(),
        "load": os.getloadavg() if hasattr(os, "getloadavg") else None,
        "python": platform.python_version(),
        "packages": versions,
        "threads": 1,
    }


def processor() -> str:
    """The processor's name, where the system tells."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.processor())


def memory_megabytes() -> float | None:
    """Of the machine, where the system tells."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e6
    except (ValueError, OSError, AttributeError):
        return None
