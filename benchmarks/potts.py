"""Potts grids: AD3's bound and exact answers beside HiGHS.

20 x 20 variables of five states with normal scores; neighbours get 0.5, or 1, if they agree. For each coupling several seeds.
Relaxed: AD3 to its end (residuals of 1e-6, a proof, nothing gained for long, or 1000 iterations) beside HiGHS's linear program;
and AD3 until its bound is within 1e-6 of that. Its iterations begin with sweeps of coordinate ascent, which forbid what no better
output needs: from then on the bound may be lower than the linear program. Exact: the best output, proven, by AD3 and branch and
bound, beside HiGHS's mixed-integer program. All has one thread; times are CPU milliseconds, of AD3 the least of several calls;
packing a graph or writing down a program does not count. Medians over seeds are shown, and the range in the note.

The AD3 package does not install on a current Python. Its C++ library can be built, though, and takes part then (the same
iterations and residuals at most, AD3's own steps); the notes tell what it took beside us, grid by grid:

    pip download ad3==2.2.1 --no-deps --no-binary :all: && tar xzf ad3-2.2.1.tar.gz && cd ad3-2.2.1
    g++ -O3 -march=native -std=c++11 -w -I. -I./ad3 .../benchmarks/peers/ad3_grid.cpp ad3/*.cpp -o grid
    PARTWISE_BENCH_AD3=$PWD/grid python -m benchmarks potts

The notes tell whether the bound was above the best output's score at every iteration, as a bound must be, how near it came to the
linear program, and whether both whole answers agree.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.race import Options
from benchmarks.report import Report, Row
from partwise import FactorGraph, graph_problem
from partwise.structures.factor_graph.answers import find_best, scores_of
from partwise.structures.factor_graph.kernels import view
from partwise.structures.factor_graph.programs import linear_program, solve_program

SIDE, STATES, SEEDS = 20, 5, 5
COUPLINGS = (0.5, 1.0)
LIBRARY = "PARTWISE_BENCH_AD3"  # where the program is that runs the AD3 library
CALLS = 3  # the least of which counts
NEAR = 1e-6  # relative distance of the bound from the optimum


def potts(seed: int, coupling: float, side: int = SIDE) -> FactorGraph:
    """A grid."""
    graph = FactorGraph()
    x = graph.variables((side, side), states=STATES)
    graph.unary(x, np.random.default_rng(seed).normal(size=(side, side, STATES)))
    graph.pairwise(x[:-1], x[1:], coupling * np.eye(STATES))
    graph.pairwise(x[:, :-1], x[:, 1:], coupling * np.eye(STATES))
    return graph


def least(function: Callable[[], Any], calls: int) -> tuple[float, Any]:
    """CPU milliseconds of the quickest call, and what it found."""
    times, found = [], None
    for _ in range(calls):
        clock = time.process_time()
        found = function()
        times.append(time.process_time() - clock)
    return 1e3 * min(times), found


def one(seed: int, coupling: float, calls: int, side: int = SIDE) -> dict[str, float]:
    """Times and values of everybody on one grid."""
    problem = graph_problem([potts(seed, coupling, side)])
    program = linear_program(view(problem, 0), scores_of(problem, 0, None))
    found: dict[str, float] = {}
    found["ad3"], answer = least(lambda: find_best(problem, 0, None, "ad3"), calls)
    found["exact"], whole = least(lambda: find_best(problem, 0, None, "exact"), 1)
    found["lp"], (optimum, _) = least(lambda: solve_program(program, False), 1)
    found["milp"], (best, _) = least(lambda: solve_program(program, True), 1)
    gaps = (answer.bounds - optimum) / (1.0 + abs(optimum))
    near = np.flatnonzero(gaps <= NEAR)
    enough = int(near[0]) + 1 if len(near) else answer.n_iterations
    found["near"], _ = least(lambda: find_best(until(problem, enough), 0, None, "ad3"), calls)
    found["iterations"], found["to near"], found["is near"] = answer.n_iterations, enough, float(len(near) > 0)
    found["above"] = float((answer.bounds - best).min())  # of a true bound, not negative
    found["gap"] = float(gaps[-1])
    found["proven"], found["whole proven"] = float(answer.proven), float(whole.proven)
    found["agree"] = float(abs(whole.value - best) <= 1e-6 * (1.0 + abs(best)))
    return found


def by_library(seed: int, coupling: float, side: int = SIDE) -> tuple[float, float] | None:
    """CPU milliseconds of the AD3 library on one grid, and the value it ends at; None if it is not there."""
    if LIBRARY not in os.environ:
        return None
    scores = np.random.default_rng(seed).normal(size=(side, side, STATES))
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as grid:
        grid.write(f"{side} {STATES} {coupling}\n" + "\n".join(map(repr, scores.ravel().tolist())))
        grid.flush()
        written = subprocess.run([os.environ[LIBRARY], grid.name], capture_output=True, text=True, check=True).stdout
    milliseconds, value, _ = written.split()
    return float(milliseconds), float(value)


def until(problem: Any, iterations: int) -> Any:
    """The same problem, with no more iterations than that."""
    return problem._replace(search=problem.search._replace(iterations=iterations))


def run(options: Options) -> Report:
    """Both couplings, all seeds."""
    report = Report("potts")
    seeds, calls = (2, 1) if options.short else (SEEDS, CALLS)
    one(0, 0.5, 1, side=4)  # compiles
    for coupling in COUPLINGS:
        found = [one(seed, coupling, calls) for seed in range(seeds)]

        def middle(name: str, found: list[dict[str, float]] = found) -> float:
            return statistics.median(f[name] for f in found)

        def span(name: str, found: list[dict[str, float]] = found) -> str:
            return f"{min(f[name] for f in found):.0f}-{max(f[name] for f in found):.0f}"

        name = f"coupling {coupling:g}"
        for what, ours, theirs in (("relaxed", "ad3", "lp"), ("relaxed, to 1e-6", "near", "lp"), ("exact", "exact", "milp")):
            note = f"ours {span(ours)}, HiGHS {span(theirs)}"
            report.rows.append(Row(name, what, "ms", middle(ours), middle(theirs), "HiGHS", note))
        bound = all(f["above"] >= -1e-6 for f in found)
        report.notes.append(
            f"{name}: {span('iterations')} iterations, {span('to near')} until the bound is within 1e-6 "
            f"({sum(f['is near'] for f in found):.0f} of {seeds} get there); the bound is "
            + ("a bound at every iteration" if bound else f"NOT a bound: {min(f['above'] for f in found):.1e} below the best")
            + f", at the end at most {max(f['gap'] for f in found):.1e} (relative) above HiGHS's linear program; "
            f"{sum(f['proven'] for f in found):.0f} of {seeds} outputs proven by AD3 alone, "
            f"{sum(f['whole proven'] for f in found):.0f} by branch and bound, "
            f"{sum(f['agree'] for f in found):.0f} agree with HiGHS's mixed-integer program"
        )
        library = [by_library(seed, coupling) for seed in range(seeds)]
        told = [f"{f['ad3']:.0f} against {its[0]:.0f}" for f, its in zip(found, library, strict=True) if its is not None]
        report.notes.append(f"{name}: relaxed, we against the AD3 library, ms: " + (", ".join(told) or f"not run; set {LIBRARY}"))
        report.failed |= not bound
    return report
