"""Threads over examples: compiled loops release the interpreter's lock, so threads are all that is needed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np


class Elsewhere:
    """What may stand for a number of threads: the examples are worked on in other places (`partwise.engine.places`)."""

    n_jobs: int | None = None  #: threads for what is done here

    def parts_of(self, problem: Any) -> Any:
        """The parts of a problem that are elsewhere, or None."""
        return None


def parts_elsewhere(n_jobs: Any, problem: Any) -> Any:
    """The parts of `problem`, if passes over it are made elsewhere than in threads of this process; else None."""
    return n_jobs.parts_of(problem) if isinstance(n_jobs, Elsewhere) else None


def n_threads(n_jobs: Any) -> int:
    """Threads meant by `n_jobs`: None is 1, negative counts from the number of cores as in joblib."""
    if isinstance(n_jobs, Elsewhere):
        n_jobs = n_jobs.n_jobs
    if n_jobs is None:
        return 1
    if not isinstance(n_jobs, int | np.integer) or n_jobs == 0:
        raise ValueError(f"The 'n_jobs' parameter must be None or a non-zero integer. Got {n_jobs!r} instead.")
    cores = os.cpu_count() or 1
    return int(n_jobs) if n_jobs > 0 else max(1, cores + 1 + int(n_jobs))


def in_threads(function: Callable[[Any], Any], items: Iterable[Any], n_jobs: int | None) -> list[Any]:
    """[function(item) for item in items], in order, on `n_jobs` threads."""
    items = list(items)
    threads = min(n_threads(n_jobs), len(items))
    if threads <= 1:
        return [function(item) for item in items]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, items))
