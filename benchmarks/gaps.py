"""Solvers with a certificate, to a relative duality gap: CRFs one example at a time beside L-BFGS, pairwise BCFW beside SDM."""

from __future__ import annotations

import time

import numpy as np

from benchmarks.conll2000 import ENCODED, encode, our_problem
from benchmarks.race import Options
from benchmarks.report import Report, Row
from partwise import solve
from partwise.datasets import load_ocr
from partwise.kernels import take
from partwise.solvers.bcfw import BCFW
from partwise.structures import chain_problem

OF_2013 = BCFW(pairwise=False, gap_sampling=False, cached_passes=0)


def run(options: Options) -> Report:
    """CPU seconds of single runs, after one on a few examples that compiles; who stops before the gap says where."""
    if not ENCODED.exists():
        encode()
    chunks, _ = our_problem("train")
    first = take(chunks, np.arange(500))
    letters = ocr_fold()
    rows = [race("CoNLL-2000, crf, C = 1, gap 1e-3", chunks, "crf", 1.0, 1e-3, "eg", "lbfgs")] if not options.short else []
    rows.append(race("its first 500 sentences", first, "crf", 1.0, 1e-3, "eg", "lbfgs"))
    rows.append(race("OCR, fold 0, hinge, C = 0.1, gap 1e-4", letters, "hinge", 0.1, 1e-4, "bcfw", "sdm"))
    rows.append(race("the same, BCFW of 2013", letters, "hinge", 0.1, 1e-4, OF_2013, "sdm"))
    return Report("gaps", rows)


def race(what: str, problem, loss: str, C: float, tol: float, ours, peer) -> Row:
    """One solver beside another, to the same gap."""
    found = []
    for solver in (ours, peer):
        solve(take(problem, np.arange(5)), loss, solver, C, tol=tol, max_epochs=2)
        clock = time.process_time()
        result = solve(problem, loss, solver, C, tol=tol, max_epochs=400, n_jobs=1)
        found.append((time.process_time() - clock, result))
    note = "; ".join(f"{r.solver.name}: {r.n_epochs} epochs, gap {r.gap / r.primal:.1e}" for _, r in found)
    return Row(what, "until the gap", "CPU s", found[0][0], found[1][0], str(peer), note)


def ocr_fold():
    """The words of fold 0."""
    pixels, lengths, labels = load_ocr([0])
    return chain_problem(pixels, lengths, labels, 26)
