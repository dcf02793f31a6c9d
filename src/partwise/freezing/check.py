"""``python -m partwise.freezing.check FOLDER``: whether machine code is what numba makes, and as quick.

Every call of a loop runs twice, on copies of the same arguments: as machine code from the folder, and compiled by numba for the
same kind of processor. All bytes of results and changed arguments must be equal. The default is what the tasks' usual commands
call on tiny files; ``--command`` runs one of your own, on files that are worth timing.
"""

from __future__ import annotations

import argparse
import collections
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from partwise.engine import compilation, frozen
from partwise.freezing.recorder import run, verbs
from partwise.freezing.targets import native, target
from partwise.tasks.common.registry import BY_VERB

SHORTEST = 0.02  # CPU seconds of a loop in all, for its speed to mean something


@dataclass
class Tally:
    """Of a loop and a type of its first argument."""

    calls: int = 0
    equal: int = 0
    frozen: float = 0.0  #: CPU seconds
    compiled: float = 0.0  #: the same, by numba, without compiling

    @property
    def ratio(self) -> float | None:
        """How many times as fast as numba's; None where that took too little to say."""
        return self.compiled / max(self.frozen, 1e-9) if self.compiled >= SHORTEST else None


def copied(value: Any, seen: dict[int, np.ndarray]) -> Any:
    """The same arguments once more; arrays that are one stay one."""
    if isinstance(value, np.ndarray):
        if id(value) not in seen:
            seen[id(value)] = np.copy(value, order="K")
            seen[id(value)].flags.writeable = value.flags.writeable
        return seen[id(value)]
    if isinstance(value, tuple):
        fields = [copied(field, seen) for field in value]
        return type(value)(*fields) if hasattr(value, "_fields") else tuple(fields)
    return value


def same(a: Any, b: Any) -> bool:
    """Whether all types and bytes are equal."""
    if isinstance(a, tuple):
        return isinstance(b, tuple) and len(a) == len(b) and all(map(same, a, b))
    x, y = np.asarray(a), np.asarray(b)
    return type(a) is type(b) and x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()


class Check:
    """Runs loops twice, and counts."""

    def __init__(self) -> None:
        self.tallies: dict[tuple[str, str], Tally] = collections.defaultdict(Tally)
        self.not_here: collections.Counter[str] = collections.Counter()
        self.compiled: dict[tuple[Any, type], Any] = {}

    def __call__(self, loop: Any, arguments: tuple[Any, ...]) -> Any:
        """In place of the loop."""
        first = type(arguments[0])
        if not compilation.compilable(first):
            return loop.interpreted(*arguments)
        key = loop, first
        if key not in self.compiled:
            self.compiled[key] = loop.compile(first)
        by_numba, label = self.compiled[key], frozen.label_of(loop.interpreted)

        def elsewhere() -> Any:
            raise LookupError

        mine, other = copied(arguments, {}), copied(arguments, {})
        found = frozen.find(loop.interpreted, first, elsewhere)
        try:  # once without a clock: neither finds its memory touched before, or its code loaded
            if found is not None:
                found(*copied(arguments, {}))
                clock = time.process_time()
                answer = found(*mine)
                took = time.process_time() - clock
        except LookupError:
            found = None
        if found is None:
            self.not_here[f"{label} {first.__name__}"] += 1
            return by_numba(*arguments)
        by_numba(*copied(arguments, {}))
        tally = self.tallies[label, first.__name__]
        clock = time.process_time()
        wanted = by_numba(*other)
        tally.compiled += time.process_time() - clock
        tally.frozen += took
        tally.calls += 1
        tally.equal += same(answer, wanted) and same(mine, other)
        return by_numba(*arguments)


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(prog="python -m partwise.freezing.check", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tasks", default=",".join(BY_VERB), help="which, by their verbs (default: all)")
    parser.add_argument("--command", action="append", default=[], help="a command to run instead, say 'train tag FILE -o MODEL'")
    options = parser.parse_args()
    cpu = target(native()).cpu
    if os.environ.get("NUMBA_CPU_NAME") != cpu:  # numba reads it when it is imported
        environment = {
            **os.environ,
            "NUMBA_CPU_NAME": cpu,
            "NUMBA_CPU_FEATURES": "",
            "PARTWISE_FROZEN": str(options.folder.resolve()),
        }
        again = [sys.executable, "-m", "partwise.freezing.check", *sys.argv[1:]]
        sys.exit(subprocess.run(again, env=environment, check=False).returncode)
    check = Check()
    with tempfile.TemporaryDirectory() as name, compilation.interpret(check):
        folder = Path(name)
        commands: list[tuple[Any, ...]] = [tuple(shlex.split(words)) for words in options.command]
        for verb in () if commands else options.tasks.split(","):
            task = BY_VERB[verb]
            file, model = task.command.workload(folder), folder / "model"
            commands.append(("train", verb, file, "-o", model, "--epochs", "2"))
            commands += verbs(task, model, file, folder / "out")
        for words in commands:
            if not run(*words) and options.command:
                sys.exit(f"{' '.join(map(str, words))}: refused")
    for (label, first), t in sorted(check.tallies.items()):
        equal = "equal" if t.equal == t.calls else f"DIFFERENT in {t.calls - t.equal}"
        speed = "" if t.ratio is None else f", {t.ratio:.2f} times as fast"
        print(f"{label} {first}: {t.calls} calls, {equal}; {t.frozen:.3f} CPU s, numba {t.compiled:.3f}{speed}")
    for label, n in check.not_here.items():
        print(f"{label}: {n} calls, NOT FROZEN")
    bad = sum(t.equal < t.calls for t in check.tallies.values())
    print(f"{len(check.tallies)} loops, {bad} different; {len(check.not_here)} not frozen")
    ratios = sorted(t.ratio for t in check.tallies.values() if t.ratio is not None)
    if ratios:
        spread = f"{ratios[0]:.2f} to {ratios[-1]:.2f} times as fast as numba's, median {statistics.median(ratios):.2f}"
        print(f"{len(ratios)} of them took {SHORTEST} CPU s or more: {spread}")
    sys.exit(bool(bad or check.not_here))


if __name__ == "__main__":
    main()
