"""Do et al. (2008), Table 2: pairwise alignment of proteins, recall by identity; CRF, max-margin and ramp, beside BLOSUM62.

The paper has 1785 pairs of structurally aligned domains in two folds. Ours are of three kinds (`partwise.experiments.proteins`):

    balibase    pairs from BAliBASE 3, the sets RV11 (below 20 % identity) and RV12 (20 to 40 %), homologous regions only
    homstrad    the two-member families of HOMSTRAD, superposed by US-align; columns count where Mustang and Matt agree with it
    tmalign     chains of the PDB with a TM-score above 0.5, superposed by TM-align; columns count where residues are close

Pairs of a family are alike, so families are split into two folds, each learnt from once and tested on once. Recall is counted on
core columns, and reported by the identity of the true alignment, as in the paper. C is chosen by recall on a quarter of the
training families that is held out; its grid grows while the best value lies at its end.

The cost is the paper's, 1 - recall; in the rows named "pairs" it is the number of pairs that were missed, so that long alignments
count for more. All learnt models look at the same features, the ready-made ones for proteins, and all answers but those of "crf,
mea" are the alignments of highest score. Ramps are minimised in rounds, the first of which is the hinge. BLOSUM62 has affine gaps
whose scores, within and at the ends, are those of highest recall on all training pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from partwise.experiments.choosing import choose_inside
from partwise.experiments.experiment import Experiment, Result, Table, groups, mean_interval
from partwise.experiments.proteins import FILES, parts_of, read_set

METHODS: dict[str, tuple[str, str, str, Any]] = {  # loss, solver, decode, what missing all pairs costs
    "hinge": ("hinge", "pegasos", "best", 1.0),
    "ramp_do": ("ramp_do", "pegasos", "best", 1.0),
    "crf": ("crf", "dca", "best", 1.0),
    "crf, mea": ("crf", "dca", "mea", 1.0),
    "ramp": ("ramp", "pegasos", "best", 1.0),
    "hinge, pairs": ("hinge", "pegasos", "best", "pairs"),
    "ramp_do, pairs": ("ramp_do", "pegasos", "best", "pairs"),
    "ramp, pairs": ("ramp", "pegasos", "best", "pairs"),
}
# with costs divided by n, the same weights but for their scale have C divided by n: an alignment has some hundred pairs
GRIDS = {"crf": (0.03, 0.1, 0.3), "recall": (1e-4, 3e-4, 1e-3), "pairs": (0.01, 0.03, 0.1)}
BASELINE = "blosum62"
ROUNDS = 3  # of CCCP
BINS = ("0-10 %", "11-20 %", "21-30 %", "31+ %")
EDGES = (10.5, 20.5, 30.5)
OPENS, EXTENDS, ENDS = (-6, -8, -10, -12, -14, -16), (-0.5, -1.0, -1.5, -2.0, -3.0), (1.0, 0.5, 0.25, 0.0)
LETTERS = "ARNDCQEGHILKMFPSTWYV"
BLOSUM62 = (  # Henikoff and Henikoff (1992), the lower triangle row by row
    "4 / -1 5 / -2 0 6 / -2 -2 1 6 / 0 -3 -3 -3 9 / -1 1 0 0 -3 5 / -1 0 0 2 -4 2 5 / 0 -2 0 -1 -3 -2 -2 6 / -2 0 1 "
    "-1 -3 0 0 -2 8 / -1 -3 -3 -3 -1 -3 -3 -4 -3 4 / -1 -2 -3 -4 -1 -2 -3 -4 -3 2 4 / -1 2 0 -1 -3 1 1 -2 -1 -3 -2 5 "
    "/ -1 -1 -2 -3 -1 0 -2 -3 -2 1 2 -1 5 / -2 -3 -3 -3 -2 -3 -3 -3 -1 0 0 -3 0 6 / -1 -2 -2 -1 -3 -1 -1 -2 -2 -3 -3 "
    "-1 -2 -4 7 / 1 -1 1 0 -1 0 0 0 -1 -2 -2 0 -1 -2 -1 4 / 0 -1 0 -1 -1 -1 -1 -2 -2 -1 -1 -1 -1 -2 -1 1 5 / -3 -3 -4 "
    "-4 -2 -2 -3 -2 -2 -3 -2 -3 -1 1 -4 -3 -2 11 / -2 -2 -2 -3 -2 -1 -2 -3 2 -1 -1 -2 -1 3 -3 -2 -2 2 7 / 0 -3 -3 -3 "
    "-1 -2 -2 -3 -3 3 1 -2 1 -1 -2 -2 0 -3 -1 4 "
)


@dataclass(frozen=True)
class Cell:
    """One method, tested on one half of the families."""

    dataset: str
    method: str
    fold: int
    pairs: int  #: of a family, at most
    grid: tuple[float, ...]  #: values of C to begin with
    epochs: int  #: of a round, where there are several


class Table2(Experiment):
    """See the module."""

    name = "do-table-2"
    about = "Protein alignment, recall by identity: CRF, max-margin, ramp and tuned BLOSUM62, families in two folds"
    source = "Do et al. 2008, Table 2"
    minutes = {"quick": 15, "full": 240}
    files = tuple(file for files in FILES.values() for file in files)
    together = ("dataset", "method")
    version = 2  # the cost is the paper's
    notes = {
        "quick": "quick: BAliBASE, at most 3 pairs of a family.",
        "full": "full: at most 10 pairs of a family of BAliBASE, all pairs of the two others.",
    }

    def cells(self, setting: str) -> list[Cell]:
        datasets, pairs, epochs = (("balibase",), 3, 15) if setting == "quick" else (tuple(FILES), 10, 20)
        return [
            Cell(dataset, method, fold, pairs, grid_of(method), epochs)
            for method in (BASELINE, *METHODS)  # a row of each table after the other
            for dataset in datasets
            for fold in range(2)
        ]

    def run(self, data: Path, cell: Cell) -> dict[str, Any]:
        import numpy as np

        pairs = read_set(data, cell.dataset, cell.pairs)
        held = parts_of(pairs, 2, seed=0) == cell.fold
        train, test = pairs.take(np.flatnonzero(~held)), pairs.take(np.flatnonzero(held))
        numbers: dict[str, Any] = {}
        if cell.method == BASELINE:
            recall, numbers["gaps"] = tuned_blosum(train, test)
        else:
            numbers["C"] = self.choose(train, cell)
            recall = learnt(train, test, cell, numbers["C"])
        numbers["recall"] = 100 * float(recall.mean())
        which = np.digitize(100 * test.identity(), EDGES)
        for k in range(len(BINS)):
            numbers[f"sum {k}"], numbers[f"count {k}"] = 100 * float(recall[which == k].sum()), int((which == k).sum())
        family = np.array(test.fields["family"])
        numbers["families"] = [100 * float(recall[family == name].mean()) for name in sorted(set(family.tolist()))]
        return numbers

    def choose(self, train: Any, cell: Cell) -> float:
        """The C of highest recall on a quarter of the training families; the smaller one of two that tie."""
        import numpy as np

        held = parts_of(train, 4, seed=1) == 0
        kept, out = train.take(np.flatnonzero(~held)), train.take(np.flatnonzero(held))
        return choose_inside(lambda C: float(learnt(kept, out, cell, C).mean()), cell.grid)

    def summarise(self, results: Sequence[Result]) -> list[Table]:
        return [self.table(dataset, some) for (dataset,), some in groups(results, "dataset").items()]

    def table(self, dataset: str, results: Sequence[Result]) -> Table:
        """Of one set of alignments."""
        by_method = {method: some for (method,), some in groups(results, "method").items()}
        counts = [sum(r.numbers[f"count {k}"] for r in next(iter(by_method.values()))) for k in range(len(BINS))]
        families = {method: [f for r in some for f in r.numbers["families"]] for method, some in by_method.items()}
        bins = tuple(f"{name} ({n})" for name, n in zip(BINS, counts, strict=True))
        title = (
            f"{dataset}: recall on core columns, %, over alignments by identity; difference of the mean recall of families [95 %]"
        )
        table = Table(title, ("method", *bins, "all", "to blosum62", "to hinge", "C"), differences=("to blosum62", "to hinge"))
        for method, some in by_method.items():
            sums = [sum(r.numbers[f"sum {k}"] for r in some) for k in range(len(BINS))]
            shown = [total / n if n else None for total, n in zip(sums, counts, strict=True)]
            gains = [
                mean_interval(a - b for a, b in zip(families[method], families[other], strict=True))
                if other != method and other in families
                else None
                for other in (BASELINE, "hinge")
            ]
            chosen = ", ".join(f"{r.numbers['C']:g}" for r in some if "C" in r.numbers) or "-"
            table.rows.append((method, *shown, sum(sums) / max(sum(counts), 1), *gains, chosen))
        return table

    def draw(self, figure: Any, results: Sequence[Result]) -> None:
        by_set = groups(results, "dataset")
        figure.set_size_inches(7, 3.4 * len(by_set))
        for axes, ((dataset,), found) in zip(figure.subplots(len(by_set), 1, squeeze=False)[:, 0], by_set.items(), strict=True):
            by_method = groups(found, "method")
            width = 0.8 / len(by_method)
            for k, ((method,), some) in enumerate(by_method.items()):
                totals = [[sum(r.numbers[f"{what} {b}"] for r in some) for b in range(len(BINS))] for what in ("sum", "count")]
                means = [total / max(n, 1) for total, n in zip(*totals, strict=True)]
                axes.bar([b + (k - len(by_method) / 2) * width for b in range(len(BINS))], means, width, label=method)
            axes.set_xticks(range(len(BINS)), BINS)
            axes.set(title=dataset, ylabel="recall, %")
            axes.legend(fontsize=7, ncols=2)
        axes.set(xlabel="identity of the true alignment")


def grid_of(method: str) -> tuple[float, ...]:
    """Values of C to begin with."""
    if method == BASELINE:
        return ()
    loss, _, _, scale = METHODS[method]
    return GRIDS["crf" if loss == "crf" else "pairs" if scale == "pairs" else "recall"]


def learnt(train: Any, test: Any, cell: Cell, C: float) -> Any:
    """Recall of each test pair by a model of the training pairs."""
    from partwise.solvers import CCCP
    from partwise.solvers.pegasos import Pegasos
    from partwise.tasks.alignment.estimator import Aligner
    from partwise.tasks.alignment.scores import recalls

    loss, solver, decode, scale = METHODS[cell.method]
    inside: Any = Pegasos() if solver == "pegasos" else solver
    epochs = cell.epochs
    if loss.startswith("ramp"):  # the first round is the hinge
        inside, epochs = CCCP(inside, epochs=cell.epochs), ROUNDS * cell.epochs
    how: dict[str, Any] = {"loss": loss, "C": C, "solver": inside, "decode": decode, "cost_scale": scale}
    aligner = Aligner(**how, alphabet=LETTERS, wildcard="X", max_epochs=epochs, tol=0.0, random_state=0)
    aligner.evaluate = "never"  # type: ignore[misc]
    return recalls(test.partners, [found.partners for found in aligner.fit(train).predict(test)], test.core)


def blosum_weights(letters: Sequence[str], opened: float, extended: float, ends: float) -> Any:
    """BLOSUM62 and gaps as weights of the templates ``a.letter|b.letter`` and ``g``."""
    import numpy as np

    n = len(letters)
    table = np.full((n + 1, n + 1), -1.0)  # of an unknown letter
    for a, row in enumerate(BLOSUM62.split("/")):
        for b, value in enumerate(row.split()):
            table[a, b] = table[b, a] = int(value)
    return np.concatenate([table.ravel(), [opened, extended, ends * opened, ends * extended]])


def tuned_blosum(train: Any, test: Any) -> tuple[Any, list[float]]:
    """Recall of each test pair, and the gap scores of highest recall on the training pairs: open, extend, share at the ends."""
    import itertools

    import numpy as np

    from partwise.objective import best_outputs
    from partwise.structures import alignment_problem
    from partwise.structures.alignment.pair_tables import pair_tables
    from partwise.tasks.alignment.data import letter_codes, read_pairs
    from partwise.tasks.alignment.scores import recalls

    letters = [*LETTERS, "X"]

    def packed(pairs: Any) -> Any:
        given = read_pairs(pairs)
        first = letter_codes(given.first, letters, "X", "first", given.places)
        second = letter_codes(given.second, letters, "X", "second", given.places)
        return alignment_problem(pair_tables(first, second, letters, ["a.letter|b.letter", "g"]), given.lengths)

    problems = {id(pairs): packed(pairs) for pairs in (train, test)}

    def recall(pairs: Any, gaps: tuple[float, ...]) -> Any:
        out, starts, _ = best_outputs(problems[id(pairs)], blosum_weights(letters, *gaps))
        return recalls(pairs.partners, np.split(out, starts[1:-1]), pairs.core)

    best = max(itertools.product(OPENS, EXTENDS, ENDS), key=lambda gaps: float(recall(train, gaps).mean()))
    return recall(test, best), list(best)
