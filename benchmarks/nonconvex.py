"""NRBM beside CCCP-SDM on ramp losses: the objective each ends at, and its CPU time.

    J(w) = 1/2 ||w||^2 + C sum_i ramp_i(w),   USPS digits and OCR words with wrong labels planted in 10 % of the training examples

Both stop at a tolerance of 1e-3, but by different rules, since neither has a bound of the optimum: CCCP when a round that was
solved to that duality gap lowers J by less, NRBM when its approximation gap is below it. Each runs from weights of its own
choice, and from the same hinge solution (whose time is not counted). J is computed by `partwise.objective` for both.

Besides, what the ramp costs: CCCP-SDM against SDM on the hinge, to the same tolerance, also on CoNLL-2000 (features "chunking",
C = 0.05), clean and with random labels in 10 % of the sentences.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.race import Options
from benchmarks.report import Report, Row
from benchmarks.timing import side_by_side
from partwise import kernels
from partwise.datasets import data_folder, load_ocr, load_usps
from partwise.experiments.tagging import official_split, with_outliers
from partwise.losses.records import get_loss
from partwise.objective import objective
from partwise.solvers import SolveResult, solve
from partwise.structures import chain_problem, multiclass_problem

TOLERANCE = 1e-3
NOISE = 0.1


def noisy_usps() -> Any:
    """USPS digits (7,291 x 256); the labels of a tenth of them are exchanged among each other."""
    x, y, *_ = load_usps()
    rng = np.random.default_rng(0)
    chosen = rng.permutation(len(y))[: int(NOISE * len(y))]
    y = y.copy()
    y[chosen] = y[rng.permutation(chosen)]
    return multiclass_problem(x, y, 10)


def noisy_letters() -> Any:
    """Words of fold 0 of the OCR letters (626 words, 128 pixels, 26 letters); a tenth of them get letters drawn at random."""
    pixels, lengths, y = load_ocr([0])
    starts = np.concatenate([[0], np.cumsum(lengths)])
    rng = np.random.default_rng(0)
    for i in rng.permutation(len(lengths))[: int(NOISE * len(lengths))]:
        y[starts[i] : starts[i + 1]] = rng.integers(0, 26, lengths[i])
    return chain_problem(pixels, lengths, y, 26)


def compare(dataset: str, problem: Any, loss: str, C: float, repeats: int) -> list[Row]:
    """Both methods, from their own beginning and from the hinge solution."""
    n = int(kernels.n_examples(problem))
    common = dict(C=C, tol=TOLERANCE, n_jobs=1, max_epochs=2000)
    hinge = solve(problem, "hinge", "sdm", **common)
    found = []
    for words, start in (("own start", None), ("from the hinge solution", hinge.w)):
        results: dict[str, SolveResult] = {}

        def train(solver: str, start=start, results=results) -> None:
            results[solver] = solve(problem, loss, solver, start=start, **common)

        for solver in ("nrbm", "sdm"):  # compiles
            solve(problem, loss, solver, start=start, **{**common, "max_epochs": 2})
        seconds = side_by_side(repeats, lambda train=train: train("nrbm"), lambda train=train: train("sdm"))
        values = [objective(problem, get_loss(loss), np.full(n, C), results[s].w).primal for s in ("nrbm", "sdm")]
        what = f"{loss}, C={C:g}, {words}"
        note = "; ".join(
            f"{name}: {r.n_epochs} epochs, {r.n_oracle_calls / n:.0f} calls per example, {r.status}"
            for name, r in (("NRBM", results["nrbm"]), ("CCCP", results["sdm"]))
        )
        found.append(Row(dataset, f"objective, {what}", "J", values[0], values[1], "CCCP-SDM", note))
        found.append(Row(dataset, f"CPU, {what}", "s", seconds[0], seconds[1], "CCCP-SDM"))
    return found


def price(dataset: str, problem: Any, C: float, repeats: int) -> Row:
    """CCCP-SDM on the ramp, with SDM on the hinge as the peer."""
    results: dict[str, SolveResult] = {}

    def train(loss: str, **more: Any) -> None:
        results[loss] = solve(problem, loss, "sdm", C=C, tol=TOLERANCE, n_jobs=1, evaluate="never", **more)

    for loss in ("ramp", "hinge"):  # compiles
        train(loss, max_epochs=2)
    seconds = side_by_side(repeats, lambda: train("ramp"), lambda: train("hinge"))
    rounds = len(results["ramp"].rounds)
    note = f"ramp: {results['ramp'].n_epochs} epochs in {rounds} rounds; hinge: {results['hinge'].n_epochs}"
    return Row(dataset, f"CPU to gap {TOLERANCE:g}, C={C:g}", "s", *seconds, "hinge, SDM", note)


def run(options: Options) -> Report:
    """NRBM, or CCCP-SDM, beside CCCP-SDM, or the hinge."""
    repeats = min(options.repeats, 3)
    prices = [price("usps, noisy", noisy_usps(), 0.01, repeats), price("letters, noisy", noisy_letters(), 0.1, repeats)]
    if not options.short:
        clean = official_split(Path(data_folder()))
        prices.append(price("conll2000, clean", clean.train, 0.05, 1))
        prices.append(price("conll2000, noisy", with_outliers(clean, NOISE, 0).train, 0.05, 1))
    found = compare("usps", noisy_usps(), "ramp", 0.01, repeats)
    found += compare("letters", noisy_letters(), "ramp", 0.1, repeats)
    if not options.short:
        found += compare("usps", noisy_usps(), "ramp_do", 0.01, repeats)
        found += compare("letters", noisy_letters(), "ramp_do", 0.1, repeats)
    notes = ["ours is CCCP-SDM on the ramp in the rows beside the hinge, NRBM in the others; a ratio above 1 speaks for it"]
    return Report("nonconvex", [*prices, *found], notes=notes)
