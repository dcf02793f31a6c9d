"""Dual solvers in several places by block-wise averaging (CoCoA+), which partwise does not offer: rounds to a gap, beside OCAS.

Examples are in K parts. In a round each part k is visited by SDM, from common weights w and its own multipliers, and minimises

    max over changes a of lambda_k:  sum a o - w . A_k a - K/2 ||A_k a||^2,        then  w += sum_k A_k a

(Ma et al. 2015, adding, sigma' = K). SDM does that as it is: with multipliers and C that are K times theirs, and weights that
begin at w, its steps count their own curvature K times, and what they move w by is K times A_k a. The certificate is that of the
whole. OCAS, which is exact on a cluster, has one pass for a round, too. CoNLL-2000's first 2,000 sentences, hinge, C = 0.01;
60 rounds at most. ``--only 4``: four parts alone.

References
----------
C. Ma, V. Smith, M. Jaggi, M. I. Jordan, P. Richtarik, M. Takac (2015). Adding vs. averaging in distributed primal-dual
optimization. ICML.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.conll2000 import ENCODED, encode, our_problem
from benchmarks.race import Options
from benchmarks.report import Report, Row
from partwise import kernels
from partwise.objective import losses_at
from partwise.solvers import make_task, solve
from partwise.solvers.active import RECORDS
from partwise.solvers.sdm import SDM

C, GAPS, PARTS = 0.01, (1e-1, 1e-2, 1e-3), (1, 2, 4, 8)


def run(options: Options) -> Report:
    """Rounds of each number of parts, beside passes of OCAS."""
    if not ENCODED.exists():
        encode()
    problem = compressed(kernels.take(our_problem("train")[0], slice(0, 200 if options.short else 2000)))
    most = 10 if options.short else 60
    report, alone = Report("block_averaging"), passes_of_ocas(problem, most)
    wanted = [k for k in PARTS if str(k) in options.only] or (PARTS[1:2] if options.short else PARTS)
    for k in wanted:
        found = averaged(problem, k, most)
        note = "rounds to gaps of " + ", ".join(f"{gap:g}: {first(found, gap)} ({first(alone, gap)})" for gap in GAPS)
        what = f"{k} parts, relative gap after {len(found)} rounds"
        report.rows.append(Row("CoNLL-2000, 2,000 sentences", what, "", found[-1], alone[-1], f"OCAS, {len(alone)} passes", note))
    return report


def compressed(problem: Any) -> Any:
    """The same without features that do not occur, whose weights stay zero."""
    used, index = np.unique(problem.rows.index, return_inverse=True)
    return problem._replace(rows=problem.rows._replace(index=index.astype(np.int32), n_features=len(used)))


def first(gaps: list[float], gap: float) -> str:
    """The round in which a gap is reached."""
    return next((str(k + 1) for k, value in enumerate(gaps) if value <= gap), f"more than {len(gaps)}")


def passes_of_ocas(problem: Any, most: int) -> list[float]:
    """The relative gap after each pass, between the best bounds so far."""
    gaps: list[float] = []
    best = [np.inf, -np.inf]

    def see(record: Any) -> bool:
        best[:] = np.fmin(best[0], record.primal), np.fmax(best[1], record.dual)
        gaps.append(float((best[0] - best[1]) / best[0]))
        return gaps[-1] <= GAPS[-1]

    solve(problem, "hinge", "ocas", C, max_epochs=most, tol=0.0, evaluate="epoch", callbacks=[see])
    return gaps


def averaged(problem: Any, k: int, most: int, C: float = C) -> list[float]:
    """The relative gap after each round of k parts."""
    whole = make_task(problem, "hinge", C)
    edges = np.linspace(0, whole.n, k + 1).astype(int)
    tasks = [make_task(kernels.take(problem, slice(a, b)), "hinge", k * C) for a, b in zip(edges[:-1], edges[1:], strict=True)]
    solver = SDM()
    states, w = [solver.init(task) for task in tasks], np.zeros(kernels.n_weights(problem))
    gaps: list[float] = []
    while len(gaps) < most and not (gaps and gaps[-1] <= GAPS[-1]):
        change, costs = np.zeros_like(w), 0.0
        for task, state in zip(tasks, states, strict=True):
            state.weights.v[:] = w
            state.epochs = len(gaps) % 31  # SDM sums w afresh in each 32nd epoch, from its own multipliers alone
            solver.epoch(task, state)
            change += (state.weights.v - w) / k
            used = state.sets.used[RECORDS]
            costs += float(state.sets.weight[:used] @ state.sets.cost[:used]) / k
        w += change
        half = 0.5 * float(w @ w)
        primal = half + float(whole.C @ losses_at(problem, whole.loss, w))
        gaps.append((primal - (costs - half)) / primal)
    return gaps
