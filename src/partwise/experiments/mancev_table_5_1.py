"""Mancev (2015), Table 5.1: hinge against ramp on clean data, chunking (CoNLL-2000) and part-of-speech tagging (Brown).

Cross-validation with the parameters he selected: SDM and Pegasos, with and without projection, the ramp in P rounds of T
epochs. His F of chunking, about 96, can only be per token: both that and F1 of chunks are given. His features are not
described; ours are the template sets "chunking" (CRFsuite's tutorial) and "words".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from partwise.experiments.experiment import Experiment, Result, Table, groups, mean_interval, paired, values
from partwise.experiments.tagging import BROWN, CONLL2000, METHODS, fold_split, make_solver, method_of, train

FOLDS = 5


@dataclass(frozen=True)
class Cell:
    """One training."""

    corpus: str
    solver: str
    loss: str
    fold: int
    epochs: int
    T: int | None  #: epochs of a round of the ramp
    sentences: int | None = None  #: of the corpus; None: all


class Table51(Experiment):
    """See the module."""

    name = "mancev-table-5.1"
    about = "Clean CoNLL-2000 and Brown, 5-fold cross-validation: hinge against ramp, SDM and Pegasos"
    source = "Mancev 2015, Table 5.1"
    minutes = {"quick": 3, "full": 60}
    files = (CONLL2000[0], BROWN)
    together = ("corpus", "fold")
    notes = {
        "quick": "quick: 2000 sentences of CoNLL-2000 and 600 of Brown, a fifth and a twentieth of the epochs.",
        "full": "full: CoNLL-2000 as in the paper. Of Brown's 57,340 sentences 3,000, spread over all genres, and a tenth of the "
        "epochs (20 instead of 200; rounds of 5 instead of 20).",
    }

    def cells(self, setting: str) -> list[Cell]:
        quick = setting == "quick"
        plan = {
            "conll2000": (2000 if quick else None, 5 if quick else 1),
            "brown": (600 if quick else 3000, 20 if quick else 10),
        }
        found = []
        for corpus, (sentences, shorter) in plan.items():  # Brown takes by far the longest
            for fold in range(FOLDS):
                for m in METHODS[corpus]:
                    hinge = max(m.hinge_epochs // shorter, 5)
                    T = m.T if shorter == 1 else max(m.T // 4, 2)
                    found.append(Cell(corpus, m.name, "hinge", fold, hinge, None, sentences))
                    found.append(Cell(corpus, m.name, "ramp", fold, max(m.T * m.P // shorter // T, 2) * T, T, sentences))
        return found

    def run(self, data: Path, cell: Cell) -> dict[str, Any]:
        split = fold_split(data, cell.corpus, cell.fold, FOLDS, cell.sentences)
        C = method_of(cell.corpus, cell.solver).C
        result = train(split.train, cell.loss, make_solver(cell.solver, cell.loss, cell.T), C, cell.epochs)
        return {**split.scores(result.w), "C": C}

    def summarise(self, results: Sequence[Result]) -> list[Table]:
        tables = []
        for (corpus,), some in groups(results, "corpus").items():
            measures = [m for m in ("accuracy", "f1") if m in some[0].numbers]
            names = {"accuracy": "accuracy", "f1": "chunk F1"}
            columns = [
                "solver",
                "loss",
                "epochs",
                "folds",
                *(names[m] for m in measures),
                *(f"{names[m]}, ramp - hinge" for m in measures),
            ]
            title = f"{corpus}, %: means over the folds, paired differences [95 %]; beside the accuracy that the paper reports"
            table = Table(title, (*columns, "paper"), differences=tuple(columns[-len(measures) :]))
            for (solver,), ones in groups(some, "solver").items():
                by_loss = {loss: r for (loss,), r in groups(ones, "loss").items()}
                for k, (loss, r) in enumerate(by_loss.items()):
                    means = (mean_interval(values(r, m)).value for m in measures)
                    against = (mean_interval(paired(r, by_loss["hinge"], m, "fold"), overlap=1 / (FOLDS - 1)) for m in measures)
                    differences = against if loss == "ramp" else [None] * len(measures)
                    reported = f"{method_of(corpus, solver).reported[k]:.3f}"
                    table.rows.append((solver, loss, r[0].cell.epochs, len(r), *means, *differences, reported))
            tables.append(table)
        return tables

    def draw(self, figure: Any, results: Sequence[Result]) -> None:
        by_corpus = groups(results, "corpus")
        figure.set_size_inches(5 * len(by_corpus), 3.6)
        axes = figure.subplots(1, len(by_corpus), squeeze=False)[0]
        for axis, ((corpus,), some) in zip(axes, by_corpus.items(), strict=True):
            for shift, ((loss,), ones) in enumerate(groups(some, "loss").items()):
                found = {
                    solver: mean_interval(values(r, "accuracy"), 1 / (FOLDS - 1))
                    for (solver,), r in groups(ones, "solver").items()
                }
                places = [k + 0.15 * shift for k in range(len(found))]
                means, half = [i.value for i in found.values()], [i.high - i.value for i in found.values()]
                axis.errorbar(places, means, half, fmt="o", capsize=3, label=loss)
                axis.set_xticks(range(len(found)), list(found))
            axis.set(title=corpus, ylabel="accuracy of tokens, %")
        axes[0].legend()
