"""Balamurugan et al., Table V: the summed error (SDCD, C = 0.01) against the hinge (SDM, C = 0.1) on part-of-speech tagging.

Seconds, accuracy, and the size of the working set: sum_i |V_i| outputs found by SDCD, sum_i |S_i| outputs with mass kept by SDM.
The corpus is Brown with all of its tags, 472 of them (the paper has 185 and does not say how), and the template set "words"; five
folds as in the other experiments on Brown, so numbers compare within the table. Both methods run to the same relative gap, that
of SDCD being one over the outputs it has found. Seconds are CPU seconds of training, compilation apart; they are noisy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from partwise.experiments.experiment import Experiment, Result, Table, groups, mean_interval, values
from partwise.experiments.tagging import BROWN, fold_split

FOLDS = 5
METHODS = {"sdcd": ("summed", 0.01), "sdm": ("hinge", 0.1)}
REPORTED = {"sdcd": (10832, 97.46, 395130), "sdm": (1836, 97.56, 146127)}  #: seconds, accuracy, working set on Brown


@dataclass(frozen=True)
class Cell:
    """One training."""

    method: str
    fold: int
    sentences: int
    tol: float  #: relative gap
    epochs: int  #: at most


class Table5(Experiment):
    """See the module."""

    name = "balamurugan-table-5"
    about = "Part-of-speech tagging (Brown): SDCD and the summed error against SDM and the hinge"
    source = "Balamurugan et al., Table V"
    minutes = {"quick": 3, "full": 40}
    files = (BROWN,)
    together = ("fold",)
    notes = {
        "quick": "quick: 300 sentences of Brown, two folds, relative gaps of 0.03.",
        "full": "full: 2,000 of Brown's 57,340 sentences, spread over all genres, five folds, relative gaps of 0.01.",
    }

    def cells(self, setting: str) -> list[Cell]:
        folds, sentences, tol = (2, 300, 0.03) if setting == "quick" else (FOLDS, 2000, 0.01)
        return [Cell(method, fold, sentences, tol, 300) for fold in range(folds) for method in METHODS]

    def run(self, data: Path, cell: Cell) -> dict[str, Any]:
        from partwise.solvers import SOLVERS, make_task, solve

        split = fold_split(data, "brown", cell.fold, FOLDS, cell.sentences)
        loss, C = METHODS[cell.method]
        SOLVERS[cell.method]().rehearse(make_task(split.train, loss, C))
        result = solve(split.train, loss, cell.method, C, tol=cell.tol, max_epochs=cell.epochs)
        if result.status == "interrupted":
            raise KeyboardInterrupt
        return {
            "seconds": result.cpu_seconds,
            **split.scores(result.w),
            "outputs": int(result.state.sets.size.sum()),
            "epochs": result.n_epochs,
            "oracle_calls": result.n_oracle_calls,
            "relative_gap": result.gap / result.primal,
        }

    def summarise(self, results: Sequence[Result]) -> list[Table]:
        columns = ("method", "loss", "C", "folds", "seconds", "accuracy", "outputs", "oracle calls", "relative gap")
        paper = ("paper: seconds", "paper: accuracy", "paper: outputs")
        table = Table("Brown: means over the folds; the paper's numbers are those of the whole corpus", (*columns, *paper))
        for (method,), some in groups(results, "method").items():
            numbers = [
                mean_interval(values(some, n)).value for n in ("seconds", "accuracy", "outputs", "oracle_calls", "relative_gap")
            ]
            seconds, accuracy, outputs, calls, gap = numbers
            loss, C = METHODS[method]
            row = (len(some), seconds, accuracy, round(outputs), round(calls), f"{gap:.1e}", *REPORTED[method])
            table.rows.append((method, loss, f"{C:g}", *row))
        return [table]

    def draw(self, figure: Any, results: Sequence[Result]) -> None:
        figure.set_size_inches(8, 3.2)
        axes = figure.subplots(1, 3)
        by_method = groups(results, "method")
        for axis, number in zip(axes, ("seconds", "accuracy", "outputs"), strict=True):
            axis.bar([m for (m,) in by_method], [mean_interval(values(r, number)).value for r in by_method.values()])
            axis.set_title(number)
        axes[1].set_ylim(0, 100)
