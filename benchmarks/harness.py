"""What every benchmark shares: timing, peak memory in a process of its own, a table and a JSON file.

Rules: one thread, so times are CPU seconds and neighbours on the machine matter little; we and the peer in one run;
compilation is warmed away; medians of several repeats; values of objectives are computed by one piece of code for everybody.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


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


def seconds(function: Callable[[], Any]) -> float:
    """CPU seconds of one call."""
    clock = time.process_time()
    function()
    return time.process_time() - clock


def side_by_side(repeats: int, *functions: Callable[[], Any]) -> list[float]:
    """Median seconds of each function, called in turn so that a busy minute of the machine hits all of them."""
    times = [[seconds(f) for f in functions] for _ in range(repeats)]
    return [statistics.median(column) for column in zip(*times, strict=True)]


class Stopwatch:
    """A callback for `solve` that notes the CPU seconds of every epoch."""

    def __init__(self):
        self.clock = [time.process_time()]

    def __call__(self, record) -> None:
        self.clock.append(time.process_time())

    @property
    def epochs(self) -> list[float]:
        """Seconds of every epoch but the first, which allocates."""
        return [b - a for a, b in zip(self.clock[1:-1], self.clock[2:], strict=True)]


def peak_megabytes() -> float:
    """Most memory this process has ever held.

    Linux's ru_maxrss starts from what the parent held when it forked; VmHWM belongs to this program alone.
    """
    status = Path("/proc/self/status")
    if status.exists():
        return next(float(line.split()[1]) / 1e3 for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e6 if platform.system() == "Darwin" else 1e3)


def child(*arguments: str) -> Any:
    """Run ``python arguments...`` on one thread and return the JSON object it prints on its last line."""
    run = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, cwd=Path(__file__).parent.parent)
    if run.returncode:
        raise RuntimeError(f"{' '.join(arguments)} failed:\n{run.stderr[-2000:]}")
    return json.loads(run.stdout.strip().splitlines()[-1])


def arguments(description: str | None) -> argparse.ArgumentParser:
    """The options that all benchmarks take."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--short", action="store_true", help="fewer repeats")
    return parser


def report(name: str, rows: list[Row]) -> None:
    """Print a table and write ``results/name.json``."""
    from rich.console import Console
    from rich.table import Table

    def number(value: float | None) -> str:
        return "-" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"

    table = Table(title=name, title_justify="left")
    for title in ("dataset", "what", "unit", "partwise", "peer", "which", "times better", "note"):
        table.add_column(title, justify="right" if title in ("partwise", "peer", "times better") else "left")
    for r in rows:
        table.add_row(r.dataset, r.what, r.unit, number(r.ours), number(r.peer), r.peer_name, number(r.ratio), r.note)
    Console(width=150).print(table)
    RESULTS.mkdir(exist_ok=True)
    content = {
        "name": name,
        "when": time.strftime("%Y-%m-%d %H:%M:%S"),
        "machine": platform.platform(),
        "processor": processor(),
        "python": platform.python_version(),
        "rows": [{**asdict(r), "ratio": r.ratio} for r in rows],
    }
    (RESULTS / f"{name}.json").write_text(json.dumps(content, indent=1))


def processor() -> str:
    """The processor's name, where the system tells."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.processor())
