"""Martins et al. (2010), Figures 3 and 4: DCA, SGD and L-BFGS for the CRF, pass by pass, for several C.

SGD has the schedule of the paper, eta / (1 + (t - 1) / m), and its eta is the one of a grid that is best on the held-out part
after one epoch; these epochs are not shown. DCA returns the average of its iterates, SGD its last one. A pass is as many calls of
the oracle as there are training examples: L-BFGS needs more than one for some iterations. The objective is

    P(w) = 1/2 ||w||^2 + C sum_i L_i(w)

divided by C and the number of training examples, and computed by the same code for everybody. Figure 3 of the paper is on
entities; Figure 4 on trees, and has no L-BFGS. Here both have all three for models of first order. Scores are those on the test
part; nothing but eta is chosen, and that on the held-out part.

In models of second order sums are those of belief propagation, and losses may come out below zero: such examples are skipped, and
how many there are is noted (the paper: about 15 %). Its authors suggest bounds of log Z from above instead: "dca, trw" has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from partwise.experiments.experiment import Experiment, Result, Table, groups
from partwise.experiments.martins import files_of, read_parts

SHOWN = (1, 2, 5, 10, 20, 30)  # passes in the table


@dataclass(frozen=True)
class Cell:
    """One training, watched."""

    corpus: str
    solver: str
    C: float
    passes: int
    sentences: int | None = None  #: of each part, at most
    bits: int = 22
    seed: int = 0


@dataclass(frozen=True)
class TreeCell(Cell):
    """One training of a parser."""

    order: int = 1
    sums: str = "bethe"


def name_of(cell: Cell) -> str:
    """The solver, and how sums are taken if that is not as usual."""
    if not isinstance(cell, TreeCell) or cell.order == 1:
        return cell.solver
    return f"{cell.solver}, second order" + (f", {cell.sums}" if cell.sums != "bethe" else "")


class Curves(Experiment):
    """What both figures do."""

    together: ClassVar[tuple[str, ...]] = ("corpus", "C")
    solvers: ClassVar[tuple[str, ...]] = ("dca", "sgd", "lbfgs")
    measure: ClassVar[str] = ""
    etas: ClassVar[tuple[float, ...]] = ()
    plan: ClassVar[dict[str, Any]] = {}  #: by setting: corpora, values of C, passes, sentences, bits

    def cells(self, setting: str) -> list[Cell]:
        corpora, grid, *more = self.plan[setting]
        return [Cell(corpus, solver, C, *more) for corpus in corpora for C in grid for solver in self.solvers]

    def run(self, data: Path, cell: Cell) -> dict[str, Any]:
        import numpy as np

        from partwise import kernels
        from partwise.experiments.tagging import train
        from partwise.losses.records import get_loss
        from partwise.objective import count_skipped, objective
        from partwise.solvers.dca import DCA
        from partwise.solvers.lbfgs import LBFGS
        from partwise.solvers.sgd import SGD

        kind = (cell.order, cell.sums) if isinstance(cell, TreeCell) else ()
        parts = read_parts(data, cell.corpus, cell.sentences, cell.bits, *kind)
        n, loss = int(kernels.n_examples(parts.train)), get_loss("crf")
        found: dict[str, Any] = {"passes": [], "objective": [], "dev": [], "test": []}

        def note(record: Any) -> bool:
            w, passes = record.weights(), record.oracle_calls / n
            found["passes"].append(passes)
            found["objective"].append(objective(parts.train, loss, np.full(n, cell.C), w).primal / (cell.C * n))
            if not kernels.is_exact(parts.train):
                found.setdefault("skipped", []).append(100 * count_skipped(parts.train, loss, w) / n)
            found["dev"].append(parts.dev(w))
            found["test"].append(parts.test(w))
            return passes >= cell.passes

        solver: Any = DCA(average_power=0.0) if cell.solver == "dca" else LBFGS()
        if cell.solver == "sgd":
            possible = [eta for eta in self.etas if eta < cell.C * n]
            after_one = {
                eta: parts.dev(train(parts.train, "crf", SGD(eta=eta, average=False), cell.C, 1, cell.seed).w) for eta in possible
            }
            found["eta"] = max(after_one, key=after_one.__getitem__)
            found["passes before"] = len(possible)
            solver = SGD(eta=found["eta"], average=False)
        train(parts.train, "crf", solver, cell.C, cell.passes, cell.seed, callbacks=[note])
        return found

    def summarise(self, results: Sequence[Result]) -> list[Table]:
        return [self.table(results, "test", f"{self.measure} on the test part, %"), self.table(results, "objective", "objective")]

    def table(self, results: Sequence[Result], what: str, title: str) -> Table:
        """After so many passes, or the last look before."""
        last = max(r.cell.passes for r in results)
        shown = [k for k in SHOWN if k <= last]
        table = Table(f"{title}, after so many passes", ("corpus", "C", "solver", "eta", *map(str, shown)))
        for r in results:
            at = [sum(p <= k for p in r.numbers["passes"]) - 1 for k in shown]
            cells = [r.numbers[what][k] if k >= 0 else None for k in at]
            eta = f"{r.numbers['eta']:g}" if "eta" in r.numbers else "-"
            table.rows.append((r.cell.corpus, f"{r.cell.C:g}", name_of(r.cell), eta, *cells))
        return table

    def draw(self, figure: Any, results: Sequence[Result]) -> None:
        panels = groups(results, "corpus", "C")
        figure.set_size_inches(3.4 * len(panels), 6)
        rows = figure.subplots(2, len(panels), squeeze=False, sharex=True)
        for k, ((corpus, C), some) in enumerate(panels.items()):
            for r in some:
                for axis, what in zip(rows[:, k], ("test", "objective"), strict=True):
                    axis.plot(r.numbers["passes"], r.numbers[what], marker=".", label=name_of(r.cell))
            rows[0, k].set(title=f"{corpus}, C = {C:g}")
            rows[1, k].set(xlabel="passes", yscale="log")
        rows[0, 0].set_ylabel(f"{self.measure} on the test part, %")
        rows[1, 0].set_ylabel("objective")
        rows[0, 0].legend()


class Figure3(Curves):
    """Entities."""

    name = "martins-figure-3"
    about = "DCA, SGD and L-BFGS for the CRF, pass by pass, on entities"
    source = "Martins et al. 2010, Figure 3"
    minutes = {"quick": 1, "full": 40}
    files = files_of("spanish", "wnut17")
    notes = {"quick": "quick: Spanish, 1000 sentences of each part, 10 passes.", "full": "full: WNUT-17 and Spanish, 30 passes."}
    measure = "F1"
    etas = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)
    plan = {
        "quick": (("spanish",), (0.1, 1.0, 10.0), 10, 1000),
        "full": (("spanish", "wnut17"), (0.1, 1.0, 10.0), 30, None),
    }


class Figure4(Curves):
    """Trees, of first order and of second."""

    name = "martins-figure-4"
    about = "DCA, SGD and L-BFGS for the CRF, pass by pass, on trees; DCA and SGD on trees of second order"
    source = "Martins et al. 2010, Figure 4"
    minutes = {"quick": 6, "full": 300}
    files = files_of("danish", "english", "turkish")
    together = ("corpus", "C", "order")
    notes = {
        "quick": "quick: Turkish, 400 sentences of each part, 10 passes, 2^20 features; second order with C = 0.1 alone.",
        "full": "full: Turkish, Danish and English, 10 passes; second order with C = 0.1 alone.",
    }
    measure = "UAS"
    etas = (0.001, 0.01, 0.1, 1.0)
    plan = {
        "quick": (("turkish",), (0.01, 0.1, 1.0), 10, 400, 20),
        "full": (("turkish", "danish", "english"), (0.01, 0.1, 1.0), 10, None, 22),
    }

    def cells(self, setting: str) -> list[Cell]:
        corpora, grid, passes, sentences, bits = self.plan[setting]
        second = [("dca", "bethe"), ("sgd", "bethe"), ("dca", "trw")]
        found: list[Cell] = []
        for corpus in corpora:
            found += [TreeCell(corpus, solver, 0.1, passes, sentences, bits, 0, 2, sums) for solver, sums in second]
            found += [TreeCell(corpus, solver, C, passes, sentences, bits) for C in grid for solver in self.solvers]
        return found

    def summarise(self, results: Sequence[Result]) -> list[Table]:
        second = [r for r in results if r.cell.order == 2]
        skipped = (
            [self.table(second, "skipped", "examples of the training part whose loss comes out below zero, %")] if second else []
        )
        return [*super().summarise(results), *skipped]
