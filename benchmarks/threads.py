"""Threads for solvers that visit one example at a time: common weights without locks.

Two threads take half of the examples each and step on the same weights (Hogwild). What they do to each other's sums is left to
chance, so the model is another one in each run. `dca` and `mira` offer it (``n_jobs``); `sgd` and `pegasos` do not: their scale,
one number that shrinks all weights, would be common too, and here it is tried what that does.
Seconds of an epoch of two threads beside one, CPU seconds of all threads, and what the test data say after each epoch: F1 of
chunks on CoNLL-2000, accuracy of tags on Brown, where epochs are long and there are two of them. It takes two idle cores.

References
----------
F. Niu, B. Recht, C. Re, S. J. Wright (2011). Hogwild: a lock-free approach to parallelizing stochastic gradient descent. NIPS.
"""

from __future__ import annotations

import dataclasses
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

import partwise
from benchmarks.datasets import BROWN, CONLL2000, Dataset, last_column
from benchmarks.race import Options
from benchmarks.report import Report, Row
from partwise.objective import SLICE
from partwise.solvers import get_solver, make_task
from partwise.solvers.lock_free import LockFreeSolver
from partwise.text.columns import read_columns

SOLVERS = ("dca", "mira", "sgd", "pegasos")
C = {"dca": 0.01, "mira": 0.01, "sgd": 0.1, "pegasos": 0.1}  # what the default rule takes on CoNLL-2000


def run(options: Options) -> Report:
    """Both corpora, ``--only conll2000`` or ``--only brown`` one of them; ``--only dca`` one solver."""
    report = Report("threads")
    names = [solver for solver in SOLVERS if not options.only or solver in options.only] or list(SOLVERS)
    for dataset, epochs in ((CONLL2000, 2 if options.short else 5), (BROWN, 0 if options.short else 2)):
        if epochs and (not {"conll2000", "brown"} & set(options.only) or dataset.name in options.only):
            report.rows += on(dataset, epochs, names, options)
    return report


def on(dataset: Dataset, epochs: int, solvers: list[str], options: Options) -> list[Row]:
    """Rows of one corpus."""
    files, rows = dataset.load(options.folder), []
    path = options.folder / f"{dataset.name}.packed"
    corpus = partwise.pack("tag", str(files.train), path, shard_megabytes=1e5, templates=dataset.features)
    judged = files.test, dataset.objective.measures[0][1]
    for solver in solvers:
        one, two = [], []
        visit(corpus, solver, 1, 1), visit(corpus, solver, 2, 1)  # what is timed finds compiled code and mapped pages
        for k in range(1 if dataset is BROWN else 3):
            one.append(visit(corpus, solver, 1, epochs, *(judged if k == 0 else ())))
            two.append(visit(corpus, solver, 2, epochs, *(judged if k == 0 else ())))
        for unit, place in (("s", 0), ("CPU s", 1)):
            mine, theirs = (statistics.median(found[place] for found in each) for each in (two, one))
            note = f"{dataset.objective.name} after each epoch: one thread {' '.join(one[0][2])}, two {' '.join(two[0][2])}"
            rows.append(Row(dataset.name, f"{solver}, an epoch, two threads", unit, mine, theirs, "one thread", note))
    return rows


def visit(corpus: Any, name: str, threads: int, epochs: int, *judged: Any) -> tuple[float, float, list[str]]:
    """Seconds and CPU seconds of an epoch, and how good the model is after each."""
    task, solver = make_task(corpus.problem, "hinge", C[name], dtype=np.float32), get_solver(name)
    offered = isinstance(solver, LockFreeSolver)
    if offered:
        solver = dataclasses.replace(solver, n_jobs=threads)
    state: Any = solver.init(task)
    if name == "sgd":
        state.eta = 1.0  # as it chooses on CoNLL-2000: the choice is no epoch
    works = [state.work, *(solver.workspace(task) for _ in range(threads - 1))]
    wall = cpu = 0.0
    said = []
    with ThreadPoolExecutor(threads) as pool:
        for epoch in range(epochs):
            order, clock, cpu_clock = task.order(epoch), time.perf_counter(), time.process_time()
            if offered:
                solver.epoch(task, state)
            for first in range(0, 0 if offered else len(order), threads * SLICE):
                some = order[first : first + threads * SLICE]
                states = [dataclasses.replace(state, work=work) for work in works]  # the same weights
                list(pool.map(solver.visit, [task] * threads, states, np.array_split(some, threads)))
                if hasattr(state, "steps"):
                    state.steps += len(some)
            wall, cpu = wall + time.perf_counter() - clock, cpu + time.process_time() - cpu_clock
            if judged:
                said.append(f"{score(corpus, solver.weights(state), *judged):.2f}")
    return wall / epochs, cpu / epochs, said


def score(corpus: Any, w: np.ndarray, test: Any, measure: Any) -> float:
    """What counts on the corpus, in percent."""
    model = corpus.model()
    model._keep_weights(w)
    return 100.0 * measure(last_column(test), [list(one) for one in model.predict(read_columns(str(test)))])
