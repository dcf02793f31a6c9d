"""Alignment of 300 x 300 letters: the best one beside Biopython and parasail, sums beside a plain log-sum-exp recursion.

Random proteins, BLOSUM62, gaps of 11 and 1, from end to end. Everybody gets two strings, or numbered letters, and gives an
alignment: for Biopython the first of ``PairwiseAligner.align`` with its coordinates, for parasail ``nw_trace`` (the scalar one)
and the fastest of its vectorised ones, ``nw_trace_scan_sat`` and ``nw_trace_scan_16``, each with its CIGAR, for us part scores
from tables, and the kernel `best`; "from part scores" is that kernel alone, as solvers meet it again and again.

parasail has one table of small integers in narrow lanes: ``_16`` has 16 bits and does not answer where scores leave them,
``_sat`` starts with 8 and starts again with more where they overflow, as they do here. Ours has floating point for any scores of
parts, in lanes of 32 or 64 bits.

Sums are the kernel `expected`, with the probability of every part, beside the forward and backward recursions
as one would write them in numba: three states, logarithms, one cell after another. One thread; million cells a CPU second, the
most of several calls, and of these the median over rounds in which all take turns. The notes tell whether all agree.
"""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from benchmarks.race import Options
from benchmarks.report import Report, Row
from partwise import kernels
from partwise.engine.compilation import compiled_loop
from partwise.experiments.do_table_2 import LETTERS, blosum_weights
from partwise.structures import alignment_problem
from partwise.structures.alignment.pair_tables import pair_tables

N, OPEN, EXTEND = 300, -11.0, -1.0
CALLS, TIMES = 7, 20  # calls, the quickest of which counts; alignments in a call
PARASAIL = {"parasail, scalar": "nw_trace", "parasail, SIMD": "nw_trace_scan_sat", "parasail, SIMD 16": "nw_trace_scan_16"}
DTYPES = {"float64": np.float64, "float32": np.float32}


@compiled_loop
def best_alignments(problem, w, theta, y, times, scored):
    """The same alignment again and again, with part scores or from them."""
    value = 0.0
    for _ in range(times):
        if not scored:
            kernels.score(problem, 0, w, theta)
        value = kernels.best(problem, 0, theta, y)
    return value


@compiled_loop
def sums(problem, theta, parts, times):
    """The same sum again and again."""
    value = 0.0
    for _ in range(times):
        value = kernels.expected(problem, 0, theta, parts)
    return value


@numba.njit
def log_add(a, b):
    """log(e^a + e^b), plainly."""
    if a < b:
        a, b = b, a
    return a if b == -np.inf else a + np.log1p(np.exp(b - a))


@numba.njit
def plain_sums(match, opened, extended, posterior, times):
    """Forward and backward in logarithms, cell by cell, as in the books; the same order of gaps as ours. Returns log Z."""
    n, m = match.shape
    log_z = 0.0
    for _ in range(times):
        forth, back = np.full((3, n + 1, m + 1), -np.inf), np.full((3, n + 2, m + 2), -np.inf)
        forth[0, 0, 0] = 0.0
        for i in range(n + 1):
            for j in range(m + 1):
                if i > 0 and j > 0:
                    before = log_add(log_add(forth[0, i - 1, j - 1], forth[1, i - 1, j - 1]), forth[2, i - 1, j - 1])
                    forth[0, i, j] = match[i - 1, j - 1] + before
                if i > 0:
                    forth[1, i, j] = log_add(forth[0, i - 1, j] + opened, forth[1, i - 1, j] + extended)
                if j > 0:
                    forth[2, i, j] = log_add(
                        log_add(forth[0, i, j - 1], forth[1, i, j - 1]) + opened, forth[2, i, j - 1] + extended
                    )
        log_z = log_add(log_add(forth[0, n, m], forth[1, n, m]), forth[2, n, m])
        for i in range(n, -1, -1):
            for j in range(m, -1, -1):
                on = match[i, j] + back[0, i + 1, j + 1] if i < n and j < m else -np.inf
                if i == n and j == m:
                    on = 0.0
                inserted, deleted = back[2, i, j + 1], back[1, i + 1, j]
                both = log_add(on, inserted + opened)
                back[0, i, j] = log_add(both, deleted + opened)
                back[1, i, j] = log_add(both, deleted + extended)
                back[2, i, j] = log_add(on, inserted + extended)
                if i > 0 and j > 0:
                    posterior[i - 1, j - 1] = np.exp(forth[0, i, j] + back[0, i, j] - log_z)
    return log_z


def proteins() -> tuple[str, str]:
    """Two related sequences of N letters."""
    rng = np.random.default_rng(0)
    first = rng.choice(list(LETTERS), N)
    second = np.where(rng.random(N) < 0.4, first, rng.choice(list(LETTERS), N))
    return "".join(first), "".join(np.roll(second, 7))


def packed(first: str, second: str) -> Any:
    """A problem of one pair, with one table and one kind of gap."""
    sides = [(np.array([LETTERS.index(letter) for letter in text]), np.array([0, len(text)])) for text in (first, second)]
    return alignment_problem(pair_tables(*sides, LETTERS, ("a.letter|b.letter", "g")), [(len(first), len(second))])


def by_biopython(first: str, second: str) -> Callable[[], float]:
    """Its score, after the traceback."""
    from Bio.Align import PairwiseAligner, substitution_matrices

    aligner = PairwiseAligner(mode="global")
    aligner.substitution_matrix = substitution_matrices.load("BLOSUM62")
    aligner.open_gap_score, aligner.extend_gap_score = OPEN, EXTEND

    def align() -> float:
        for _ in range(TIMES):
            found = aligner.align(first, second)[0]
            assert found.coordinates.size
        return found.score

    return align


def by_parasail(name: str, first: str, second: str) -> Callable[[], float]:
    """Its score, after the traceback."""
    import parasail

    function = getattr(parasail, name)

    def align() -> float:
        for _ in range(TIMES):
            found = function(first, second, int(-OPEN), int(-EXTEND), parasail.blosum62)
            assert found.cigar.seq is not None
        return float(found.score)

    return align


def speed(function: Callable[[], Any]) -> float:
    """Million cells a CPU second of the quickest of several calls."""
    times = []
    for _ in range(CALLS):
        clock = time.process_time()
        function()
        times.append(time.process_time() - clock)
    return TIMES * N * N / min(times) / 1e6


def run(options: Options) -> Report:
    """Rounds in which all take turns."""
    report = Report("alignment")
    first, second = proteins()
    problem = packed(first, second)
    w = blosum_weights(LETTERS, OPEN, EXTEND, 1.0)
    parts = np.zeros(kernels.n_parts(problem, 0))
    calls: dict[str, Callable[[], Any]] = {}
    for name, dtype in DTYPES.items():
        weights, theta, y = w.astype(dtype), np.zeros(len(parts), dtype), np.zeros(N, np.int32)
        kernels.score(problem, 0, weights, theta)
        for scored in (False, True):
            arguments = (problem, weights, theta, y, TIMES, scored)
            calls[f"{name}{', from part scores' if scored else ''}"] = lambda arguments=arguments: best_alignments(*arguments)
    peers = {"Biopython": by_biopython} | {name: functools.partial(by_parasail, call) for name, call in PARASAIL.items()}
    for name, make in peers.items():
        try:
            calls[name] = make(first, second)
        except ImportError as error:
            report.notes.append(f"{name}: not compared: {error}")
    theta = np.zeros(len(parts))
    kernels.score(problem, 0, w, theta)
    soft, posterior = 0.3 * theta, np.zeros((N, N))
    match = np.ascontiguousarray(soft[: N * N].reshape(N, N))
    calls["sums"] = lambda: sums(problem, soft, parts, TIMES)
    calls["plain sums"] = lambda: plain_sums(match, 0.3 * OPEN, 0.3 * EXTEND, posterior, TIMES)
    values = {name: call() for name, call in calls.items()}  # compiles
    rounds = [{name: speed(call) for name, call in calls.items()} for _ in range(options.repeats)]
    median = {name: statistics.median(r[name] for r in rounds) for name in calls}
    size = f"{N} x {N}"
    for peer in peers:
        for name in [name for name in calls if name.startswith("float")]:
            row = Row(size, f"best, {name}", "M cells/s", median[name], median.get(peer), peer, "with traceback")
            row.higher_is_better = True
            report.rows.append(row)
    row = Row(size, "sums", "M cells/s", median["sums"], median["plain sums"], "plain numba", "with marginals")
    row.higher_is_better = True
    report.rows.append(row)
    scores = {name: value for name, value in values.items() if "sums" not in name}
    report.notes.append(f"scores of the best alignment: {', '.join(f'{name} {value:g}' for name, value in scores.items())}")
    gap = float(np.abs(parts[: N * N].reshape(N, N) - posterior).max())
    report.notes.append(
        f"log Z {values['sums']:.9f}, plainly {values['plain sums']:.9f}; probabilities of pairs differ by {gap:.0e}"
    )
    return report
