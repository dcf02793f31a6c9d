"""Martins et al. (2010), Table 1: losses between CRF and SVM, L(beta, gamma), learnt by DCA.

For each loss C is the one of the grid that does best on the held-out part; the test part is looked at with that C. DCA is that of
the paper: the plain average of all iterates, ten epochs (the paper has 50 for entities). One seed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from partwise.experiments.experiment import Experiment, Result, Table, groups
from partwise.experiments.martins import ENTITIES, TREES, files_of, read_parts

LOSSES = {  #: beta, gamma
    "CRF": (1.0, 0.0),
    "(1, 1)": (1.0, 1.0),
    "(1, 3)": (1.0, 3.0),
    "(1, 5)": (1.0, 5.0),
    "(3, 1)": (3.0, 1.0),
    "(5, 1)": (5.0, 1.0),
    "SVM": (math.inf, 1.0),
}
FULL = ("danish", "turkish", "english", "basque", "greek", "wnut17", "spanish", "dutch")  #: trees first: of entities we know more
REPORTED = {  #: in the paper, test part
    "entities, paper": (85.48, 85.54, 85.65, 85.72, 85.55, 85.48, 85.41),
    "english trees, paper": (90.76, 90.95, 91.04, 91.01, 90.94, 90.91, 90.75),
}


@dataclass(frozen=True)
class Cell:
    """One training."""

    corpus: str
    loss: str
    C: float
    epochs: int
    sentences: int | None = None  #: of each part, at most
    bits: int = 22
    seed: int = 0


class Table1(Experiment):
    """See the module."""

    name = "martins-table-1"
    about = "Losses between CRF and SVM by DCA: F1 of entities in three corpora, UAS of trees in five"
    source = "Martins et al. 2010, Table 1"
    minutes = {"quick": 3, "full": 300}
    files = files_of(*ENTITIES, *TREES)
    together = ("corpus",)
    notes = {
        "quick": "quick: two corpora of each kind, 400 sentences of each part, 5 epochs, three values of C.",
        "full": "full: all sentences, 10 epochs, four values of C for trees, six for entities.",
    }

    def cells(self, setting: str) -> list[Cell]:
        plan: dict[str, tuple[float, ...]]
        if setting == "quick":
            plan = dict.fromkeys(("spanish", "wnut17", "english", "turkish"), (0.01, 0.1, 1.0))
            more: Any = (5, 400, 20)
        else:
            plan = {
                corpus: (0.01, 0.03, 0.1, 0.3, 1.0, 10.0) if corpus in ENTITIES else (0.001, 0.01, 0.1, 1.0) for corpus in FULL
            }
            more = (10, None, 22)
        return [Cell(corpus, loss, C, *more) for corpus, grid in plan.items() for loss in LOSSES for C in grid]

    def run(self, data: Path, cell: Cell) -> dict[str, Any]:
        from partwise.experiments.tagging import train
        from partwise.losses.records import Family
        from partwise.solvers.dca import DCA

        parts = read_parts(data, cell.corpus, cell.sentences, cell.bits)
        solver = DCA(average_power=0.0)
        w = train(parts.train, Family(*LOSSES[cell.loss]), solver, cell.C, cell.epochs, cell.seed).w
        return {"dev": parts.dev(w), "test": parts.test(w)}

    def summarise(self, results: Sequence[Result]) -> list[Table]:
        title = "test part, F1 of entities or UAS without punctuation, %, with the C that is best on the held-out part (below)"
        table = Table(title, ("corpus", *LOSSES))
        for (corpus,), some in groups(results, "corpus").items():
            best = {loss: chosen(ones) for (loss,), ones in groups(some, "loss").items()}
            table.rows.append((corpus, *(best[loss].numbers["test"] for loss in LOSSES)))
            table.rows.append(("", *(f"C = {best[loss].cell.C:g}" for loss in LOSSES)))
        table.rows += [(name, *figures) for name, figures in REPORTED.items()]
        return [table]

    def draw(self, figure: Any, results: Sequence[Result]) -> None:
        by_corpus = groups(results, "corpus")
        figure.set_size_inches(3.2 * len(by_corpus), 3.2)
        axes = figure.subplots(1, len(by_corpus), squeeze=False)[0]
        for axis, ((corpus,), some) in zip(axes, by_corpus.items(), strict=True):
            best = {loss: chosen(ones).numbers for (loss,), ones in groups(some, "loss").items()}
            for part, marker in (("dev", "o"), ("test", "s")):
                axis.plot(list(LOSSES), [best[loss][part] for loss in LOSSES], marker=marker, label=part)
            axis.set(title=corpus)
            axis.tick_params(axis="x", rotation=60)
        axes[0].set_ylabel("F1 or UAS, %")
        axes[0].legend()


def chosen(results: Sequence[Result]) -> Result:
    """The one that does best on the held-out part; of two that tie, the one with the smaller C."""
    return max(sorted(results, key=lambda r: r.cell.C), key=lambda r: r.numbers["dev"])
