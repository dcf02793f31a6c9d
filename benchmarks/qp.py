"""The master problem of bundle methods: our active set method beside maintained QP libraries, on problems from real runs.

    min_alpha 1/2 alpha . G alpha - b . alpha    subject to  alpha >= 0,  sum alpha = 1

G and b are those of BMRM on the words of fold 0 of the OCR letters (626 words, hinge), at C = 0.01, 0.1 and 1, when it has 20 to
500 cuts and none was dropped. Everybody's answer is made feasible and judged by one certificate, which bounds the distance to the
optimum: gap = alpha . g - min_j g_j with g = G alpha - b, given as a part of the optimum. Times are CPU seconds on one thread,
from arrays to alpha, the median of several calls. Ours runs from nothing, as the libraries do, and as bundle methods use it: from
the solution without the last cut. quadprog and daqp want a positive definite G, and get one: 1e-12 of the mean diagonal is added.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from benchmarks.race import Options
from benchmarks.report import Report, Row
from benchmarks.timing import side_by_side
from partwise.datasets import load_ocr
from partwise.solvers import base, make_task
from partwise.solvers.bmrm import BMRM
from partwise.solvers.bundle import BundleState
from partwise.solvers.qp import solve_master
from partwise.structures import chain_problem

SIZES = (20, 50, 100, 200, 300, 500)


class Problem(NamedTuple):
    """A master problem, and the solution without its last cut."""

    gram: np.ndarray
    offset: np.ndarray
    before: np.ndarray


@dataclass(frozen=True)
class Recorded(BMRM):
    """BMRM that keeps all cuts, and the master problems of some sizes."""

    found: list[Problem] = field(default_factory=list)

    def minimise_model(self, task: base.Task, state: BundleState, convex: bool = True) -> None:
        if state.cuts.n in SIZES:
            self.found.append(Problem(state.cuts.products.copy(), state.cuts.offset.copy(), state.cuts.alpha.copy()))
        super().minimise_model(task, state, convex)

    def forget(self, task: base.Task, state: BundleState) -> None:
        pass


def letters() -> Any:
    """Words of fold 0 of the OCR letters."""
    return chain_problem(*load_ocr([0]), 26)


def by_quadprog(problem: Problem) -> np.ndarray:
    """Goldfarb and Idnani's dual active set method."""
    import quadprog

    n = len(problem.offset)
    return quadprog.solve_qp(
        definite(problem.gram), problem.offset, np.vstack([np.ones(n), np.eye(n)]).T, np.eye(1, n + 1)[0], 1
    )[0]


def by_daqp(problem: Problem) -> np.ndarray:
    """A dual active set method for small problems of control."""
    import daqp

    n = len(problem.offset)
    upper, lower = np.ones(n + 1), np.append(np.zeros(n), 1.0)
    sense = np.append(np.zeros(n, np.int32), np.int32(5))
    return daqp.solve(definite(problem.gram), -problem.offset, np.ones((1, n)), upper, lower, sense.astype(np.int32))[0]


def by_clarabel(problem: Problem) -> np.ndarray:
    """An interior point method."""
    import clarabel
    from scipy import sparse

    n = len(problem.offset)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    rows = sparse.csc_matrix(np.vstack([np.ones((1, n)), -np.eye(n)]))
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(n)]
    hessian = sparse.csc_matrix(np.triu(problem.gram))
    return np.array(clarabel.DefaultSolver(hessian, -problem.offset, rows, np.eye(1, n + 1)[0], cones, settings).solve().x)


def by_osqp(problem: Problem) -> np.ndarray:
    """An operator splitting method."""
    import osqp
    from scipy import sparse

    n = len(problem.offset)
    solver = osqp.OSQP()
    solver.setup(
        sparse.csc_matrix(np.triu(problem.gram)),
        -problem.offset,
        sparse.csc_matrix(np.vstack([np.ones((1, n)), np.eye(n)])),
        np.eye(1, n + 1)[0],
        np.append(1.0, np.full(n, np.inf)),
        verbose=False,
        eps_abs=1e-9,
        eps_rel=1e-9,
        max_iter=20000,
    )
    return solver.solve().x


LIBRARIES: dict[str, Callable[[Problem], np.ndarray]] = {
    "quadprog": by_quadprog,
    "daqp": by_daqp,
    "clarabel": by_clarabel,
    "osqp": by_osqp,
}


def definite(gram: np.ndarray) -> np.ndarray:
    """With what makes it positive definite in spite of rounding."""
    return gram + 1e-12 * np.trace(gram) / len(gram) * np.eye(len(gram))


def certified(problem: Problem, alpha: np.ndarray) -> float:
    """The gap that a solution proves, as a part of the value; inf if it is none."""
    alpha = np.maximum(np.asarray(alpha, np.float64), 0.0)
    if not np.isfinite(alpha).all() or not alpha.sum() > 0:
        return np.inf
    alpha /= alpha.sum()
    slope = problem.gram @ alpha - problem.offset
    value = problem.offset @ alpha - 0.5 * alpha @ problem.gram @ alpha
    return float(alpha @ slope - slope.min()) / abs(float(value))


def problems(short: bool) -> Iterator[tuple[str, Problem]]:
    """Master problems by name."""
    words = letters()
    for C in (0.1,) if short else (0.01, 0.1, 1.0):
        solver = Recorded(max_cuts=10**6)
        base.run(solver, make_task(words, "hinge", C), max_epochs=200 if short else max(SIZES), tol=1e-9, evaluate="never")
        for problem in solver.found:
            yield f"C={C:g}, {len(problem.offset)} cuts", problem


def compare(name: str, problem: Problem, libraries: dict[str, Callable[[Problem], np.ndarray]], repeats: int) -> list[Row]:
    """Ours, cold and warm, beside each library."""
    answers: dict[str, np.ndarray] = {}

    def cold() -> None:
        answers["ours"] = solve_master(problem.gram, problem.offset).alpha

    def warm() -> None:
        answers["warm"] = solve_master(problem.gram, problem.offset, problem.before).alpha

    def library(key: str) -> Callable[[], None]:
        def call() -> None:
            try:
                answers[key] = libraries[key](problem)
            except (ValueError, RuntimeError, TypeError):  # "matrix is not positive definite", or no answer
                answers[key] = np.zeros(len(problem.offset))

        return call

    ours, again, *others = side_by_side(repeats, cold, warm, *map(library, libraries))
    gaps = {key: certified(problem, alpha) for key, alpha in answers.items()}
    support = int(np.count_nonzero(answers["ours"]))
    found = [
        Row("ocr", f"{name}, warm", "ms", 1e3 * again, 1e3 * ours, "ours, cold", f"{support} active; gap {gaps['warm']:.0e}")
    ]
    for key, seconds in zip(libraries, others, strict=True):
        note = f"gap: ours {gaps['ours']:.0e}, {key} {gaps[key]:.0e}"
        found.append(Row("ocr", name, "ms", 1e3 * ours, 1e3 * seconds, key, note))
    return found


def run_here(key: str) -> str:
    """Why a library cannot run here, or nothing."""
    try:
        importlib.import_module(key)
    except ImportError as error:
        return f"{key}: not compared: {error}"
    return ""


def run(options: Options) -> Report:
    """All libraries that are installed."""
    missing = {key: run_here(key) for key in LIBRARIES}
    libraries = {key: call for key, call in LIBRARIES.items() if not missing[key]}
    found = [row for name, problem in problems(options.short) for row in compare(name, problem, libraries, options.repeats)]
    return Report("qp", found, notes=[why for why in missing.values() if why])
