"""Mancev (2015), Figure 4.1: F and accuracy on held-out data, epoch by epoch, for hinge and ramp.

One fold of five held out, the parameters of Table 5.1. For the ramp the epochs of all rounds of CCCP are counted, as in the
paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from partwise.experiments.experiment import Experiment, Result, Table, groups
from partwise.experiments.tagging import BROWN, CONLL2000, METHODS, every, fold_split, make_solver, method_of, train

FOLDS = 5


@dataclass(frozen=True)
class Cell:
    """One training, watched."""

    corpus: str
    solver: str
    loss: str
    epochs: int
    T: int | None  #: epochs of a round of the ramp
    every: int  #: epochs between two looks
    sentences: int | None = None


class Figure41(Experiment):
    """See the module."""

    name = "mancev-figure-4.1"
    about = "Held-out F1 and accuracy after each epoch, hinge and ramp, on CoNLL-2000 and Brown"
    source = "Mancev 2015, Figure 4.1"
    minutes = {"quick": 2, "full": 30}
    files = (CONLL2000[0], BROWN)
    together = ("corpus", "solver")
    notes = {
        "quick": "quick: 2000 sentences of CoNLL-2000, 600 of Brown, 20 and 8 epochs.",
        "full": "full: all of CoNLL-2000, 100 epochs as in the paper; 3,000 sentences of Brown, spread over all genres, and 20 "
        "epochs (the paper: 57,340 and 200).",
    }

    def cells(self, setting: str) -> list[Cell]:
        quick = setting == "quick"
        plan = {"conll2000": (2000, 20, 5) if quick else (None, 100, 10), "brown": (600, 8, 2) if quick else (3000, 20, 5)}
        return [
            Cell(corpus, m.name, loss, epochs, None if loss == "hinge" else min(m.T, T), 1 if quick else 5, sentences)
            for corpus, (sentences, epochs, T) in plan.items()
            for m in METHODS[corpus]
            for loss in ("hinge", "ramp")
        ]

    def run(self, data: Path, cell: Cell) -> dict[str, Any]:
        split = fold_split(data, cell.corpus, 0, FOLDS, cell.sentences)
        C = method_of(cell.corpus, cell.solver).C
        curve: dict[str, list[float]] = {"epoch": []}

        def note(record: Any) -> None:
            curve["epoch"].append(record.epoch)
            for name, value in split.scores(record.weights()).items():
                curve.setdefault(name, []).append(value)

        solver = make_solver(cell.solver, cell.loss, cell.T)
        train(split.train, cell.loss, solver, C, cell.epochs, callbacks=[every(cell.every, note)])
        return curve

    def summarise(self, results: Sequence[Result]) -> list[Table]:
        tables = []
        for (corpus,), some in groups(results, "corpus").items():
            measure = measure_of(some[0])
            epochs = some[0].numbers["epoch"]
            shown = sorted({min(range(len(epochs)), key=lambda k: abs(epochs[k] - e)) for e in (1, 5, 10, 20, 50, 100)})
            table = Table(
                f"{corpus}: {measure} on the held-out fold, %, after so many epochs",
                ("solver", "loss", *map(str, (epochs[k] for k in shown))),
            )
            for r in some:
                table.rows.append((r.cell.solver, r.cell.loss, *(r.numbers[measure][k] for k in shown)))
            tables.append(table)
        return tables

    def draw(self, figure: Any, results: Sequence[Result]) -> None:
        by_corpus = groups(results, "corpus")
        figure.set_size_inches(11, 3.4 * len(by_corpus))
        rows = figure.subplots(len(by_corpus), len(groups(results, "solver")), sharey="row", squeeze=False)
        for axes, ((corpus,), some) in zip(rows, by_corpus.items(), strict=True):
            for axis, ((solver,), ones) in zip(axes, groups(some, "solver").items(), strict=False):
                for r in ones:
                    axis.plot(r.numbers["epoch"], r.numbers[measure_of(r)], label=r.cell.loss)
                axis.set(title=f"{corpus}, {solver}", xlabel="epochs")
            axes[0].set_ylabel(f"{measure_of(some[0])}, %")
            axes[0].legend()


def measure_of(result: Result) -> str:
    """F1 where labels are chunks, else accuracy."""
    return "f1" if "f1" in result.numbers else "accuracy"
