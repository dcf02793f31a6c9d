"""n-slack against 1-slack cutting planes as the training set grows (Joachims et al. 2009, section 5; Acharya 2011).

One constraint set for each example, or one joint cut for all of them: the 1-slack formulation needs a number of iterations that
does not grow with the training set, and a dual with few variables; n-slack needs fewer calls of the oracle, and a dual that grows
with the data. Handwritten words (OCR letters), chains, hinge loss, C per example fixed; all stop at the same relative duality
gap. SDM, which solves the same dual as n-slack without ever solving it completely, beside them.

Constraints: added to working sets (n-slack), joint cuts (1-slack). CPU seconds are those of one thread, compiling left out; they
depend on the machine, the other numbers do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from partwise.experiments.experiment import Experiment, Result, Table, groups

METHODS = ("n-slack (a)", "n-slack (b)", "1-slack", "1-slack, no cache", "1-slack, to the letter", "sdm")
TOLERANCE = 1e-3


@dataclass(frozen=True)
class Cell:
    """One training."""

    method: str
    folds: int  #: of ten, about 690 words each
    C: float
    tol: float = TOLERANCE


class NAgainstOneSlack(Experiment):
    """See the module."""

    name = "joachims-n-vs-1-slack"
    about = "n-slack against 1-slack cutting planes over the size of the training set (OCR letters)"
    source = "Joachims, Finley, Yu 2009, section 5"
    minutes = {"quick": 1, "full": 10}
    files = ("ocr_letters/letters.npz",)
    together = ("C", "folds")
    notes = {
        "quick": "quick: 1, 2 and 4 folds, C = 0.01.",
        "full": "full: 1, 2, 4 and 8 folds, C = 0.01 and 0.1.",
    }

    def cells(self, setting: str) -> list[Cell]:
        sizes, Cs = ((1, 2, 4), (0.01,)) if setting == "quick" else ((1, 2, 4, 8), (0.01, 0.1))
        return [Cell(method, folds, C) for C in Cs for folds in sizes for method in METHODS]

    def run(self, data: Path, cell: Cell) -> dict[str, Any]:
        import time

        from scipy.sparse import csr_matrix

        from partwise.datasets import load_ocr
        from partwise.solvers import make_task, solve
        from partwise.structures import chain_problem

        x, lengths, y = load_ocr(range(cell.folds), data)
        problem, solver = chain_problem(csr_matrix(x), lengths, y, 26), make_method(cell.method)
        solver.rehearse(make_task(problem, "hinge", cell.C))
        start = time.process_time()
        result = solve(problem, "hinge", solver, C=cell.C, tol=cell.tol, max_epochs=5000, n_jobs=1)
        seconds = time.process_time() - start
        state = result.state
        return {
            "words": len(lengths),
            "seconds": seconds,
            "epochs": result.n_epochs,
            "oracle_calls": result.n_oracle_calls,
            "constraints": getattr(state, "constraints", getattr(state, "passes", None)),
            "primal": result.primal,
            "gap": result.gap / result.primal,
        }

    def summarise(self, results: Sequence[Result]) -> list[Table]:
        columns = ("method", "words", "CPU s", "epochs", "oracle calls", "per word", "constraints", "objective", "relative gap")
        tables = []
        for (C,), some in groups(results, "C").items():
            table = Table(f"OCR letters, hinge, C = {C:g}, to a relative gap of {some[0].cell.tol:g}", columns)
            for _, ones in groups(some, "method").items():
                for r in sorted(ones, key=lambda r: r.cell.folds):
                    n = r.numbers
                    table.rows.append(
                        (
                            r.cell.method,
                            n["words"],
                            n["seconds"],
                            n["epochs"],
                            n["oracle_calls"],
                            n["oracle_calls"] / n["words"],
                            n["constraints"],
                            n["primal"],
                            f"{n['gap']:.1e}",
                        )
                    )
            tables.append(table)
        return tables

    def draw(self, figure: Any, results: Sequence[Result]) -> None:
        by_C = groups(results, "C")
        figure.set_size_inches(8, 3.6 * len(by_C))
        axes = figure.subplots(len(by_C), 2, squeeze=False)
        for row, ((C,), some) in zip(axes, by_C.items(), strict=True):
            for (method,), ones in groups(some, "method").items():
                ones = sorted(ones, key=lambda r: r.cell.folds)
                words = [r.numbers["words"] for r in ones]
                for axis, number, label in zip(row, ("seconds", "oracle_calls"), ("CPU seconds", "oracle calls"), strict=True):
                    axis.loglog(words, [r.numbers[number] for r in ones], "o-", label=method)
                    axis.set(title=f"C = {C:g}", xlabel="training words", ylabel=label)
        axes[0][0].legend(fontsize="small")


def make_method(name: str) -> Any:
    """The solver of that name."""
    from partwise.solvers.nslack import NSlack
    from partwise.solvers.oneslack import OneSlack
    from partwise.solvers.sdm import SDM

    return {
        "n-slack (a)": NSlack("a"),
        "n-slack (b)": NSlack("b"),
        "1-slack": OneSlack(polish=False),
        "1-slack, no cache": OneSlack(cache=0),
        "1-slack, to the letter": OneSlack(step=1.0, cache=0),
        "sdm": SDM(),
    }[name]
