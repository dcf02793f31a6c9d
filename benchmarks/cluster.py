"""Rounds on a dask cluster of processes on this machine, beside threads: seconds and bytes.

A round sends weights to 32 parts and adds up as many numbers as there are weights along the tree, as a batch solver does for a
gradient, but without examples: what it takes is what a cluster adds to the work. On 1, 2 and 4 workers, for 10^4, 10^6 and
10^7 weights, beside two threads of one process. Then with a delay for each message that this process sends (an asynchronous
sleep in the transport), which stands for a network.
"""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.race import Options
from benchmarks.report import Report, Row
from partwise.engine.dask_places import DaskPlaces
from partwise.engine.places import Places

PARTS, ROUNDS = 32, 5


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


def rounds(places: Any, w: np.ndarray, n: int) -> float:
    """Seconds of a round, the median of several."""
    times = []
    for _ in range(n + 1):
        clock = time.perf_counter()
        places.root.total(add, vector, w)
        times.append(time.perf_counter() - clock)
    return statistics.median(times[1:])


def run(options: Options) -> Report:
    """Rounds on clusters of several sizes."""
    import distributed

    report, n = Report("cluster"), 2 if options.short else ROUNDS
    edges = list(range(PARTS + 1))
    for d in (10_000, 1_000_000) if options.short else (10_000, 1_000_000, 10_000_000):
        w = np.ones(d, np.float32)
        here = rounds(Places(None, edges, nothing, 2), w, n)
        for workers in (1, 2, 4):
            how = {"n_workers": workers, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
            with distributed.LocalCluster(**how, silence_logs=50) as cluster, distributed.Client(cluster) as client:
                places = DaskPlaces(client, None, edges, nothing)
                seconds = rounds(places, w, n)
                sent = places.bytes_sent / max(places.rounds, 1)
                note = f"{sent / 1e6:.1f} MB of weights to each worker, {8 * d / 1e6:.1f} MB back"
                report.rows.append(Row(f"{d:,} weights", f"a round, {workers} workers", "s", seconds, here, "two threads", note))
                if workers == 2 and d <= 1_000_000:
                    with delayed(0.01):
                        slow = rounds(places, w, n)
                    note = "10 ms for each message that client or scheduler send"
                    report.rows.append(Row(f"{d:,} weights", "a round, 2 workers, delayed", "s", slow, seconds, "no delay", note))
    return report
