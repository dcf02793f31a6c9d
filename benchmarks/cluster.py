"""Rounds on a dask cluster of processes on this machine, beside threads: seconds and bytes.

A round sends weights to 128 parts and adds up as many numbers as there are weights along the tree, as a batch solver does for a
gradient, but without examples: what it takes is what a cluster adds to the work. On 1, 2 and 4 workers, for 10^4, 10^6 and
10^7 weights, beside two threads of one process. Then with a delay for each message that this process, client and scheduler,
sends (an asynchronous sleep in the transport), which stands for a network: what a round gains, divided by the delay, is how many
messages wait for each other. And what is sent of the weights of real runs, where only those that are not zero are sent.

CPU seconds are those of a round in this process, which is client and scheduler, and in all workers together; on a machine that
has other work they tell more than seconds.

``--only 1000000`` measures rounds of so many weights alone, ``--only runs`` the real runs.

    python -m benchmarks.cluster 0.5        # the model of docs/cluster.md on paper, for so many milliseconds a task
"""

from __future__ import annotations

import contextlib
import math
import statistics
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.conll2000 import ENCODED, encode, our_problem
from benchmarks.race import Options
from benchmarks.report import Report, Row
from partwise import kernels
from partwise.engine.dask_places import GROUPS, DaskPlaces, thin
from partwise.engine.places import PlacedParts, Places, along_tree
from partwise.solvers import solve
from partwise.tasks.common.packed_corpus import LEAVES

PARTS, ROUNDS = LEAVES, 5
SIZES = (10_000, 1_000_000, 10_000_000)
DELAYS = (0.05, 0.2)  # seconds for each message
TOKENS, WEIGHTS, SPEED, BYTES = 1e10, 1e7, 2e6, 1e9  # of the model: data, weights, tokens and bytes each second (10 Gbit/s)


def vector(part: Any, w: np.ndarray) -> np.ndarray:
    """A round without work: as many numbers as there are weights."""
    return w.astype(np.float64)


def add(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A sum of the tree."""
    return a + b


def nothing(first: int, last: int) -> int:
    """A part of no examples."""
    return first


@contextlib.contextmanager
def delayed(seconds: float) -> Iterator[None]:
    """Each message of this process takes longer: that of client and scheduler, and what passes through them."""
    import asyncio

    from distributed.comm.tcp import TCP

    plain = TCP.write

    async def write(self: Any, *given: Any, **more: Any) -> Any:
        await asyncio.sleep(seconds)
        return await plain(self, *given, **more)

    TCP.write = write
    try:
        yield
    finally:
        TCP.write = plain


def rounds(places: Any, w: np.ndarray, n: int) -> tuple[float, float, float]:
    """Seconds of a round, the median of several; CPU seconds here and on the workers, the mean."""
    times, here, there = [], 0.0, 0.0
    for k in range(n + 1):
        if k == 1:  # the first loads code and parts
            here, there = time.process_time(), on_workers(places)
        clock = time.perf_counter()
        places.root.total(add, vector, w)
        times.append(time.perf_counter() - clock)
    return statistics.median(times[1:]), (time.process_time() - here) / n, (on_workers(places) - there) / n


def on_workers(places: Any) -> float:
    """CPU seconds of all workers so far."""
    return sum(places.client.run(time.process_time).values()) if isinstance(places, DaskPlaces) else 0.0


def itself(part: Any) -> Any:
    """A part as it is."""
    return part


class Counting(Places):
    """Parts here, and the bytes that a cluster would be sent of the weights of each pass."""

    def __init__(self, *given: Any):
        self.thin = self.dense = 0
        super().__init__(*given)

    def parts_of(self, problem: Any) -> Any:
        parts = super().parts_of(problem)
        return None if parts is None else CountingParts(self, parts, itself, (), None)


class CountingParts(PlacedParts):
    """Passes over them."""

    def each(self, function: Any, *shared: Any, **more: Any) -> list[Any]:
        for value in shared:
            if isinstance(value, np.ndarray):
                self.places.dense += value.nbytes
                self.places.thin += thin(value).nbytes
        return super().each(function, *shared, **more)


def sent_of_runs(short: bool) -> list[Row]:
    """Megabytes of weights that a round sends to a worker, in real runs on CoNLL-2000's first 2,000 sentences."""
    if not ENCODED.exists():
        encode()
    problem = kernels.take(our_problem("train")[0], slice(0, 200 if short else 2000))
    n, rows = int(kernels.n_examples(problem)), []
    for solver, loss, ratio in (("lbfgs", "crf", 0.0), ("owlqn", "crf", 0.5), ("bmrm", "hinge", 0.0), ("ocas", "hinge", 0.0)):
        places = Counting(problem, list(np.linspace(0, n, 5).astype(int)), lambda a, b: kernels.take(problem, slice(a, b)))
        how = {"l1_ratio": ratio, "max_epochs": 5 if short else 30, "tol": 0.0, "evaluate": "never", "dtype": np.float32}
        result = solve(problem, loss, solver, 1.0, n_jobs=places, **how)
        each = [size / 1e6 / max(result.n_epochs, 1) for size in (places.thin, places.dense)]
        rows.append(Row("CoNLL-2000, 2,000 sentences", f"{solver}, weights of an epoch", "MB", each[0], each[1], "all weights"))
    return rows


def run(options: Options) -> Report:
    """Rounds on clusters of several sizes."""
    report, n = Report("cluster"), 2 if options.short else ROUNDS
    for d in SIZES[:2] if options.short else SIZES:
        if not options.only or str(d) in options.only:
            report.rows += rounds_of(d, n)
    if not options.only or "runs" in options.only:
        report.rows += sent_of_runs(options.short)
    return report


def rounds_of(d: int, n: int) -> list[Row]:
    """Rounds of d weights: threads, workers, and workers whose messages are late."""
    import distributed

    w, edges, rows = np.ones(d, np.float32), list(range(PARTS + 1)), []
    n = 2 if d > SIZES[1] else n
    here, cpu_here, _ = rounds(Places(None, edges, nothing, 2), w, n)
    for workers in (1, 2, 4):
        how = {"n_workers": workers, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
        with distributed.LocalCluster(**how, silence_logs=50) as cluster, distributed.Client(cluster) as client:
            places = DaskPlaces(client, None, edges, nothing)
            seconds, cpu, cpu_there = rounds(places, w, n)
            sent = places.bytes_sent / max(places.rounds, 1)
            what, tasks = f"a round, {workers} workers", 2 * len(places.groups()) - 1
            note = f"{tasks} tasks; {sent / 1e6:.2f} MB of weights to each worker, {8 * d / 1e6:.2f} MB back"
            rows.append(Row(f"{d:,} weights", what, "s", seconds, here, "two threads", note))
            note = f"{cpu:.3f} of them client and scheduler, {1000 * cpu / tasks:.2f} ms a task"
            rows.append(Row(f"{d:,} weights", what, "CPU s", cpu + cpu_there, cpu_here, "two threads", note))
            for delay in DELAYS if d == SIZES[0] else ():
                with delayed(delay):
                    slow = rounds(places, w, n)[0]
                least = messages(workers)
                note = f"{(slow - seconds) / delay:.1f} messages wait for each other, {least:.0f} to {2 * least:.0f} in the model"
                rows.append(
                    Row(f"{d:,} weights", f"{what}, {1000 * delay:.0f} ms a message", "s", slow, seconds, "no delay", note)
                )
    return rows


def groups_of(workers: int) -> int:
    """Tasks of a pass, for so many workers of one thread: see `DaskPlaces`."""
    found: list[int] = []
    along_tree(0, PARTS, lambda a, b: found.append(a), lambda a, b: None, max(1, PARTS // (GROUPS * workers)))
    return len(found)


def messages(workers: int) -> float:
    """Messages of client and scheduler that wait for each other in a round.

    The work to the scheduler; weights to a worker; tasks to the workers; a level of additions each; that the sum is there to the
    client; the question for it, and the sum. Where a connection sends one message at a time, as it does while one of `delayed`
    sleeps, each may wait for another that is under way (results that are to be forgotten): twice as many, at most.
    """
    return 6.0 + math.log2(groups_of(workers))


def on_paper(workers: int, task: float, latency: float = 0.0) -> list[float]:
    """Seconds of a round: work, weights, gradients, tasks, messages; and all of it. `task`: of the scheduler, for each task."""
    n, depth = groups_of(workers), 1.0 + math.log2(workers)
    work = math.ceil(n / workers) * TOKENS / SPEED / n
    each = [work, 4.0 * WEIGHTS / BYTES * depth, 8.0 * WEIGHTS / BYTES * depth, 2.0 * n * task, messages(workers) * latency]
    return [*each, sum(each)]


if __name__ == "__main__":
    print("| workers | work | weights | gradients | tasks | messages of 1 ms | round |\n|---|---|---|---|---|---|---|")
    for w in (1, 10, 32, 100, 128):
        print(f"| {w} | " + " | ".join(f"{value:.3g} s" for value in on_paper(w, float(sys.argv[1]) / 1000.0, 0.001)) + " |")
