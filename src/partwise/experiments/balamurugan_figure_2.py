"""Balamurugan et al., Figure 2: the dual objective and the accuracy on test data as time goes by, for two solvers and C = 0.01.

The paper's data are POS and WSJPOS, parts of the Penn treebank, which is not free, and Brown. Ours are Brown, of which a part is
taken, and in place of POS the words of CoNLL-2000, which are of the same newspaper, with the parts of speech that come with
them: those of a tagger. Features are the template set "words"; one fold of five is the test part.

Shown is |f* - f| / |f*|, where f is the dual objective over the outputs found so far and f* the highest value that the method
itself reaches, as in the paper: what is maximised depends on the outputs that a method finds. Seconds are CPU seconds, compiling
and the looks at the test part left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from partwise.experiments.experiment import Experiment, Result, Table, groups
from partwise.experiments.tagging import BROWN, CONLL2000, fold_split

C, FOLDS = 0.01, 5
METHODS = ("sdcd", "lse_cutting_plane")
LEVELS = (1e-1, 1e-2)  #: of the relative difference of the dual objective
NEAR = 0.5  #: points of accuracy from that of the end
SIZES = {"quick": {"conll2000-pos": 200, "brown": 100}, "full": {"conll2000-pos": 1000, "brown": 300}}


@dataclass(frozen=True)
class Cell:
    """One training, watched."""

    corpus: str
    method: str
    sentences: int | None  #: of the corpus; None: all
    tol: float  #: relative gap over the outputs found
    epochs: int  #: at most


class Figure2(Experiment):
    """See the module."""

    name = "balamurugan-figure-2"
    about = "Parts of speech, the summed error: dual objective and test accuracy against time, SDCD and cutting plane"
    source = "Balamurugan et al., Figure 2"
    minutes = {"quick": 3, "full": 30}
    files = (CONLL2000[0], BROWN)
    together = ("corpus",)
    notes = {
        "quick": "quick: 200 sentences of CoNLL-2000, 100 of Brown.",
        "full": "full: 1,000 of CoNLL-2000's 8,936 sentences, 300 of Brown's 57,340, spread over all genres.",
    }

    def cells(self, setting: str) -> list[Cell]:
        return [Cell(corpus, method, n, 0.01, 200) for corpus, n in SIZES[setting].items() for method in METHODS]

    def run(self, data: Path, cell: Cell) -> dict[str, Any]:
        import time

        from partwise.solvers import SOLVERS, make_task, solve

        split = fold_split(data, cell.corpus, 0, FOLDS, cell.sentences)
        SOLVERS[cell.method]().rehearse(make_task(split.train, "summed", C))
        found: dict[str, list[float]] = {"seconds": [], "dual": [], "accuracy": []}
        begin, looking = time.process_time(), 0.0

        def note(record: Any) -> None:
            nonlocal looking
            now = time.process_time()
            found["seconds"].append(now - begin - looking)
            found["dual"].append(record.dual)
            found["accuracy"].append(split.scores(record.weights())["accuracy"])
            looking += time.process_time() - now

        settings: dict[str, Any] = {"tol": cell.tol, "max_epochs": cell.epochs, "evaluate": "epoch", "callbacks": [note]}
        if solve(split.train, "summed", cell.method, C, **settings).status == "interrupted":
            raise KeyboardInterrupt
        return found

    def summarise(self, results: Sequence[Result]) -> list[Table]:
        columns = ("data", "method", "epochs", "seconds", *(f"to {level:g} of f*" for level in LEVELS), "accuracy")
        table = Table(
            f"CPU seconds, until the dual objective is near its end, and until accuracy is within {NEAR:g} points of its own end",
            (*columns, f"to within {NEAR:g}", "after the first epoch"),
        )
        for r in results:
            seconds, accuracy = r.numbers["seconds"], r.numbers["accuracy"]
            times = [first(seconds, [distance <= level for distance in distances(r)]) for level in LEVELS]
            near = first(seconds, [abs(value - accuracy[-1]) <= NEAR for value in accuracy])
            row = (r.cell.corpus, r.cell.method, len(seconds), seconds[-1], *times, accuracy[-1], near, accuracy[0])
            table.rows.append(row)
        return [table]

    def draw(self, figure: Any, results: Sequence[Result]) -> None:
        by_corpus = groups(results, "corpus")
        figure.set_size_inches(8, 3.2 * len(by_corpus))
        rows = figure.subplots(len(by_corpus), 2, squeeze=False)
        for (dual, quality), ((corpus,), some) in zip(rows, by_corpus.items(), strict=True):
            for r in some:
                dual.plot(r.numbers["seconds"], [max(d, 1e-6) for d in distances(r)], label=r.cell.method)
                quality.plot(r.numbers["seconds"], r.numbers["accuracy"], label=r.cell.method)
            dual.set(title=corpus, xscale="log", yscale="log", xlabel="CPU seconds", ylabel="|f* - f| / |f*|")
            quality.set(title=corpus, xscale="log", xlabel="CPU seconds", ylabel="accuracy on the test part, %")
            dual.legend()


def distances(result: Result) -> list[float]:
    """How far the dual objective is from the highest that this method reached, relatively."""
    best = max(result.numbers["dual"])
    return [abs(best - value) / abs(best) if best else 0.0 for value in result.numbers["dual"]]


def first(seconds: Sequence[float], reached: Sequence[bool]) -> float | None:
    """When something was reached for the first time."""
    return next((s for s, there in zip(seconds, reached, strict=True) if there), None)
