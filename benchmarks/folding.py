"""RNA folding: the best structure, and the partition function with pair probabilities, beside ViennaRNA.

Random sequences of 100 to 2,000 bases. Ours is measured as solvers and predictions meet it: the kernels `best` and `expected`
in one compiled loop over a packed problem, `expected` with the expectations of all 2,400 weights, which learning needs, besides
the probabilities. ViennaRNA's is the minimum free energy (``RNA.fold``) and ``pf`` with ``bpp``, with default parameters. Both
have one thread; times are CPU milliseconds a sequence, the least of several calls, and of these the median over rounds in which
all take turns. Of the longest, one sequence, and one call. Memory is what a process of its own holds at most while it folds,
above what it held before: tables, not programs, inputs and part scores.

Energy models differ: ViennaRNA has more entries (1 x 1, 1 x 2 and 2 x 2 internal loops by all their bases), ours are learnt.
Both look at internal loops of up to 30 bases, and dangling bases on both sides of every helix.
"""

from __future__ import annotations

import importlib
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.race import Options
from benchmarks.report import Report, Row
from benchmarks.timing import child, peak_megabytes
from partwise import kernels
from partwise.engine.compilation import compiled_loop
from partwise.structures import folding_problem

SIZES = (100, 200, 400, 1000, 2000)
LONG = 1000  # bases, from which on memory counts, too
CALLS = 5  # the least of which counts
SEQUENCES = 3  # of each size


@compiled_loop
def fold_all(problem, w, theta, y):
    """The best structure of every sequence."""
    for i in range(kernels.n_examples(problem)):
        kernels.score(problem, i, w, theta)
        kernels.best(problem, i, theta, y)


@compiled_loop
def sum_all(problem, w, theta, parts):
    """The probabilities of all pairs, and how often each weight is expected, of every sequence."""
    for i in range(kernels.n_examples(problem)):
        kernels.score(problem, i, w, theta)
        kernels.expected(problem, i, theta, parts)


def random_sequences(n: int) -> list[str]:
    """As many as are measured, of n bases each."""
    rng = np.random.default_rng(n)
    return ["".join(rng.choice(list("ACGU"), n)) for _ in range(1 if n >= LONG else SEQUENCES)]


def ours(n: int) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Best structures, and sums over all."""
    problem = folding_problem(random_sequences(n))
    w = 0.3 * np.random.default_rng(0).normal(size=kernels.n_weights(problem))
    parts = int(kernels.n_parts(problem, 0))
    theta, out, y = np.zeros(parts), np.zeros(parts), np.zeros(n, np.int32)
    return lambda: fold_all(problem, w, theta, y), lambda: sum_all(problem, w, theta, out)


def by_vienna(n: int) -> tuple[Callable[[], Any], Callable[[], Any]] | None:
    """The same; None if it is not installed."""
    try:
        RNA: Any = importlib.import_module("RNA")
    except ImportError:
        return None
    sequences = random_sequences(n)

    def sums() -> None:
        for sequence in sequences:
            folded = RNA.fold_compound(sequence)
            folded.pf()
            folded.bpp()

    return lambda: [RNA.fold(sequence) for sequence in sequences], sums


def least(function: Callable[[], Any], n: int) -> float:
    """CPU milliseconds a sequence of the quickest of several calls."""
    times = []
    for _ in range(1 if n >= LONG else CALLS):
        clock = time.process_time()
        function()
        times.append(time.process_time() - clock)
    return 1e3 * min(times) / len(random_sequences(n))


def memory(who: str, n: int, k: int) -> float:
    """MB that folding (k = 0) or summing (1) takes, in a process of its own."""
    return child("-m", "benchmarks.folding", who, str(n), str(k))


def measured(who: str, n: int, k: int) -> float:
    """The same, in this process."""
    calls = {"partwise": ours, "ViennaRNA": by_vienna}[who]
    for size in (20, n):  # what is loaded and compiled does not count
        made = calls(size)
        assert made is not None
        Path("/proc/self/clear_refs").write_text("5")  # the peak is what there is now
        before = peak_megabytes()
        made[k]()
    return peak_megabytes() - before


def run(options: Options) -> Report:
    """All sizes, in turn."""
    rows = []
    notes = [] if by_vienna(10) else ["ViennaRNA: not compared: pip install ViennaRNA"]
    for n in SIZES[:3] if options.short else SIZES:
        mine, peer = ours(n), by_vienna(n)
        for function in mine:
            function()  # compiled
        rounds = [[least(f, n) for f in (*mine, *(peer or ()))] for _ in range(options.repeats)]
        medians = [statistics.median(column) for column in zip(*rounds, strict=True)]
        for k, what in enumerate(("best structure", "sums, probabilities")):
            other = medians[2 + k] if peer else None
            rows.append(Row(f"{n} bases", what, "ms", medians[k], other, "ViennaRNA"))
            if n >= LONG:
                held = [memory(who, n, k) for who in ("partwise", *(("ViennaRNA",) if peer else ()))]
                rows.append(Row(f"{n} bases", f"{what}, memory", "MB", held[0], held[1] if peer else None, "ViennaRNA"))
    return Report("folding", rows, notes=notes)


if __name__ == "__main__":
    print(measured(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
