"""Do et al. (2008), Table 3: RNA secondary structure, a CRF against the convex and the ramp loss, by length.

The paper's data, 1359 sequences from Rfam, are not to be had; here are the distinct sequences of ArchiveII. Two ways to split
them:

    sequence    two-fold cross-validation, as in the paper: no sequence is in both parts, but its relatives are
    family      train on all families but one, test on that one (the small ones are one family): how well the model generalises

The cost is the paper's, 1 - sensitivity; the features are those of `RnaFolder`; all are trained by DCA, and the ramp goes on from
the weights of the hinge, as the paper's algorithm does. crf: structures of maximum expected accuracy. ``vienna`` is ViennaRNA's
minimum free energy with default parameters, which were measured, not learnt, where it is installed. Sensitivity and selectivity
are means over sequences, pairs of pseudoknots are not counted.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from partwise.experiments.choosing import choose_inside
from partwise.experiments.experiment import Experiment, Result, Table, groups

FILE = "rna_archiveii/archiveii.tsv.gz"
METHODS = ("crf", "hinge", "ramp_do", "vienna")
LARGE = ("5s", "srp", "tRNA", "tmRNA", "RNaseP")  #: families that are tested on their own; the others together
BINS = ((1, 50), (51, 100), (101, 200), (201, 10**6))
USUAL = {"crf": 0.1, "hinge": 1.0, "ramp_do": 1.0}  #: C, where it is not chosen
GRID = {"crf": (0.03, 0.1, 0.3), "hinge": (0.1, 1.0, 10.0), "ramp_do": (0.1, 1.0, 10.0)}
HELD_OUT = 150  #: training sequences that choose C
CHOOSING = 400  #: and those that are learnt from while it is chosen, at most


@dataclass(frozen=True)
class Cell:
    """One method on one split."""

    split: str
    part: str  #: fold 0 or 1, or the family that is tested on
    method: str
    train: int  #: sequences, at most
    test: int
    epochs: int
    chosen: bool  #: whether C is chosen on held-out training sequences


class Table3(Experiment):
    """See the module."""

    name = "do-table-3"
    about = "RNA secondary structure by length: CRF, hinge, ramp and ViennaRNA, by sequence and by family"
    source = "Do et al. 2008, Table 3"
    minutes = {"quick": 8, "full": 120}
    files = (FILE,)
    together = ("split",)
    version = 2  # the grid of C grows
    notes = {
        "quick": "quick: 200 sequences to learn from and 100 to test on in each split, three families, fewer epochs, C given."
    }

    def cells(self, setting: str) -> list[Cell]:
        sizes = (200, 100, 3, False) if setting == "quick" else (10**6, 10**6, 5, True)
        families = LARGE[:3] if setting == "quick" else (*LARGE, "others")
        splits = [("sequence", fold) for fold in ("0", "1")] + [("family", family) for family in families]
        return [Cell(split, part, method, *sizes) for split, part in splits for method in METHODS]

    def run(self, data: Path, cell: Cell) -> dict[str, Any]:
        import warnings

        from partwise.tasks.folding.scores import base_pair_counts, sequence_scores

        train, test = split(data, cell)
        C = None
        if cell.method == "vienna":
            answers = by_vienna(test.sequences)
            if answers is None:
                return {"sequences": 0}
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # pseudoknots are left out, and the gap is not closed
                C = choose(train, cell) if cell.chosen else USUAL[cell.method]
                answers = fit(train, cell, C).predict_partners(test)
        each = sequence_scores(base_pair_counts(test.partners, answers))
        lengths = test.lengths
        bins = [each[(lengths >= low) & (lengths <= high)] for low, high in BINS]
        return {
            **dict(zip(("sensitivity", "selectivity", "f1"), (100 * each.mean(0)).tolist(), strict=True)),
            "sequences": len(each),
            "bins": [[len(some), *(100 * some.sum(0)).tolist()] for some in bins],
            "C": C,
        }

    def summarise(self, results: Sequence[Result]) -> list[Table]:
        columns = ("method", *(f"{low}-{high}" if high < 10**6 else f"{low}+" for low, high in BINS), "all", "F1")
        tables = []
        for kind in ("sequence", "family"):
            table = Table(f"by {kind}: sensitivity / selectivity, %, by length (sequences), and mean F1", columns)
            for (method,), some in groups([r for r in results if r.cell.split == kind], "method").items():
                some = [r for r in some if r.numbers["sequences"]]
                if some:
                    sums = [
                        [sum(column) for column in zip(*row, strict=True)]
                        for row in zip(*(r.numbers["bins"] for r in some), strict=True)
                    ]
                    total = [sum(column) for column in zip(*sums, strict=True)]
                    table.rows.append((method, *map(shown, sums), shown(total), total[3] / total[0]))
            tables.append(table)
        families = Table("by family: F1, %, of the family that was left out", ("family", "sequences", *METHODS))
        for (part,), some in groups([r for r in results if r.cell.split == "family"], "part").items():
            by_method = {r.cell.method: r.numbers for r in some}
            values = [by_method[m]["f1"] if by_method.get(m, {}).get("sequences") else None for m in METHODS]
            families.rows.append((part, max(n["sequences"] for n in by_method.values()), *values))
        return [*tables, families]

    def draw(self, figure: Any, results: Sequence[Result]) -> None:
        figure.set_size_inches(10, 3.6)
        axes = figure.subplots(1, 2, sharey=True)
        for axis, kind in zip(axes, ("sequence", "family"), strict=True):
            for (method,), some in groups([r for r in results if r.cell.split == kind], "method").items():
                some = [r for r in some if r.numbers["sequences"]]
                axis.plot([r.cell.part for r in some], [r.numbers["f1"] for r in some], marker="o", ls="", label=method)
            axis.set(title=f"by {kind}", xlabel="fold" if kind == "sequence" else "family left out")
        axes[0].set_ylabel("F1, %")
        axes[1].legend()


def shown(sums: Sequence[float]) -> str:
    """Mean sensitivity and selectivity of so many sequences."""
    n = sums[0]
    return f"{sums[1] / n:.1f} / {sums[2] / n:.1f} ({n})" if n else "-"


@functools.lru_cache(maxsize=1)
def everything(data: Path) -> Any:
    """The distinct sequences, in an order of our own: relatives are neighbours in the file."""
    import numpy as np

    from partwise.tasks.folding.files import read_rna

    found = read_rna(data / FILE).distinct()
    return found.take(np.random.default_rng(0).permutation(len(found)))


def split(data: Path, cell: Cell) -> tuple[Any, Any]:
    """Sequences to learn from and to test on."""
    rna = everything(data)
    groups_of = [str(i % 2) if cell.split == "sequence" else f if f in LARGE else "others" for i, f in enumerate(rna.families)]
    test = [i for i, group in enumerate(groups_of) if group == cell.part]
    train = [i for i, group in enumerate(groups_of) if group != cell.part]
    return rna.take(train[: cell.train]), rna.take(test[: cell.test])


def fit(train: Any, cell: Cell, C: float) -> Any:
    """A trained model."""
    from partwise.tasks.folding.estimator import RnaFolder

    convex = "hinge" if cell.method == "ramp_do" else cell.method
    folder: Any = RnaFolder(convex, C, "dca", trade_off=0.0, relative_cost=True, max_epochs=cell.epochs, random_state=0)
    folder.evaluate = "never"
    folder.fit(train)
    if cell.method == "ramp_do":
        folder.loss, folder.warm_start = "ramp_do", True
        folder.fit(train)
    return folder


def choose(train: Any, cell: Cell) -> float:
    """The C with the highest F1 on held-out sequences of the training part; of a whole family, if those are split.

    The grid grows while the best value lies at its end.
    """
    import numpy as np

    if cell.split == "sequence":
        held = np.arange(len(train)) < HELD_OUT
    else:
        held = np.array([family == max(set(train.families), key=train.families.count) for family in train.families])
    inner, outer = train.take(np.flatnonzero(~held)[:CHOOSING]), train.take(np.flatnonzero(held)[:HELD_OUT])
    return choose_inside(lambda C: fit(inner, cell, C).score(outer), GRID[cell.method])


def by_vienna(sequences: Sequence[str]) -> list[Any] | None:
    """Structures of minimum free energy; None where ViennaRNA is not installed."""
    import importlib

    try:
        RNA: Any = importlib.import_module("RNA")
    except ImportError:
        return None
    from partwise.tasks.folding.files import read_dot_bracket

    return [read_dot_bracket(RNA.fold(sequence)[0])[0] for sequence in sequences]
