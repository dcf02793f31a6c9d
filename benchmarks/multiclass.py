"""Multiclass hinge beside scikit-learn's LinearSVC(multi_class="crammer_singer"), to the same value of the same objective.

    P(w) = 1/2 ||w||^2 + C sum_i max_y ( [y != y_i] + w_y . x_i - w_{y_i} . x_i )

We run SDM to a relative duality gap of 1e-3. The peer runs with the loosest tolerance whose solution has an objective value no
higher than ours, as computed by `partwise.objective` for both.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.sparse import csr_matrix

from benchmarks.race import Options
from benchmarks.report import Report, Row
from benchmarks.timing import seconds, side_by_side
from partwise.datasets import data_folder, load_news20, load_usps
from partwise.experiments.multiclass import standardise
from partwise.losses.records import get_loss
from partwise.objective import objective
from partwise.solvers import solve
from partwise.structures import multiclass_problem

TOLERANCES = tuple(10.0 ** (-k / 2) for k in range(-2, 13))  # 10, 3.2, 1, 0.32, ... 1e-6
GAP = 1e-3


def loosest(reaches: Callable[[float], bool]) -> float | None:
    """The largest tolerance with which the peer gets as low as we did: on a grid of half powers of ten, then by bisection."""
    k = next((k for k, tol in enumerate(TOLERANCES) if reaches(tol)), None)
    if k is None:
        return None
    low, high = TOLERANCES[k], TOLERANCES[max(k - 1, 0)]
    for _ in range(4):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if reaches(middle) else (low, middle)
    return low


def compare(dataset: str, x, y, C: float, repeats: int) -> list[Row]:
    """SDM against LinearSVC on one data set."""
    from sklearn.svm import LinearSVC

    problem = multiclass_problem(x, y, int(y.max()) + 1)
    note = f"C={C:g}, {x.shape[0]} x {x.shape[1]}, {problem.n_classes} classes"
    what = f"hinge to relative gap {GAP:g}"
    run = dict(loss="hinge", solver="sdm", C=C, tol=GAP, max_epochs=1000, n_jobs=1)
    solve(problem, **{**run, "max_epochs": 1})  # compiles
    result = solve(problem, **run)
    if not result.converged:
        return [Row(dataset, what, "s", None, None, "LinearSVC", f"{note}; {result.message}")]

    def value(model) -> float:
        w = np.ascontiguousarray(model.coef_.T).ravel()
        return objective(problem, get_loss("hinge"), np.full(len(y), C), w).primal

    def peer(tol: float):
        return LinearSVC(multi_class="crammer_singer", fit_intercept=False, C=C, tol=tol, max_iter=100_000, random_state=0).fit(
            x, y
        )

    reached = loosest(lambda tol: value(peer(tol)) <= result.primal)
    if reached is None:
        ours = seconds(lambda: solve(problem, **run))
        return [Row(dataset, what, "s", ours, None, "LinearSVC", f"{note}; the peer never reached {result.primal:.6g}")]
    ours, theirs = side_by_side(repeats, lambda: solve(problem, **run), lambda: peer(reached))
    note += f"; P = {result.primal:.6g} at tol {reached:.2g}"
    return [Row(dataset, what, "s", ours, theirs, "LinearSVC crammer_singer", note)]


def statlog(name: str):
    """The training part of a Statlog set: features and classes 0, 1, ..."""
    table = np.loadtxt(data_folder(f"multiclass/{name}.train.csv.gz"), delimiter=",")
    return np.ascontiguousarray(table[:, 1:]), np.unique(table[:, 0], return_inverse=True)[1].astype(np.int32)


def run(options: Options) -> Report:
    """All comparisons."""
    found = []
    for C in (0.1, 1.0):
        x, y = statlog("satimage")
        found += compare("satimage", standardise(x)[0], y, C, options.repeats)
        x, y = statlog("dna")  # three quarters are zeros: sparse rows for both
        found += compare("dna", csr_matrix(x), y, C, options.repeats)
        x, y, *_ = load_news20()
        found += compare("news20", x, y, C, options.repeats)
    x, y, *_ = load_usps()
    for C in (0.01,) if options.short else (0.01, 0.1):
        found += compare("usps", x, y, C, options.repeats)
    return Report("multiclass", found)
