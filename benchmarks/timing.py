"""Timing inside one process: functions in turn, epochs, peak memory of a child.

Rules: one thread, so times are CPU seconds and neighbours on the machine matter little; we and the peer in one run;
compilation is warmed away; medians of several repeats; values of objectives are computed by one piece of code for everybody.
"""

from __future__ import annotations

import json
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


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
    """Most memory this process has ever held, in 10^6 bytes.

    Linux's ru_maxrss starts from what the parent held when it forked; VmHWM belongs to this program alone.
    """
    status = Path("/proc/self/status")
    if status.exists():
        return next(float(line.split()[1]) * 1024 / 1e6 for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e6 if platform.system() == "Darwin" else 1e6 / 1024)


def child(*arguments: str) -> Any:
    """Run ``python arguments...`` on one thread and return the JSON object it prints on its last line."""
    run = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, cwd=Path(__file__).parent.parent)
    if run.returncode:
        raise RuntimeError(f"{' '.join(arguments)} failed:\n{run.stderr[-2000:]}")
    return json.loads(run.stdout.strip().splitlines()[-1])
