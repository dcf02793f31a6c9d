"""Do et al. (2008), Table 2: pairwise alignment of proteins, recall by identity; CRF, max-margin and ramp, beside BLOSUM62.

The paper has 1785 pairs of structurally aligned domains in two folds. Ours are pairs from BAliBASE 3, the sets RV11 (below 20 %
identity) and RV12 (20 to 40 %), homologous regions only; pairs of a family are alike, so families are split into two folds, each
learnt from once and tested on once. Recall is counted on core columns, and reported by the identity of the true alignment, as in
the paper. C is chosen by recall on a quarter of the training families that is held out.

All learnt models look at the same features, the ready-made ones for proteins, and all answers but those of "crf, mea" are the
alignments of highest score. Ramps are minimised in rounds, the first of which is the hinge. BLOSUM62 has affine gaps whose
scores, within and at the ends, are those of highest recall on all training pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from partwise.experiments.experiment import Experiment, Result, Table, groups, mean_interval

FILE = "protein_balibase3/pairs.tsv.gz"
METHODS: dict[str, tuple[str, str, str]] = {  # loss, solver, decode
    "crf": ("crf", "dca", "best"),
    "crf, mea": ("crf", "dca", "mea"),
    "hinge": ("hinge", "pegasos", "best"),
    "ramp_do": ("ramp_do", "pegasos", "best"),
    "ramp": ("ramp", "pegasos", "best"),
}
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

    method: str
    fold: int
    pairs: int  #: of a family, at most
    grid: tuple[float, ...]  #: values of C
    epochs: int  #: of a round, where there are several


class Table2(Experiment):
    """See the module."""

    name = "do-table-2"
    about = "Protein alignment, recall by identity: CRF, max-margin, ramp and tuned BLOSUM62, families in two folds"
    source = "Do et al. 2008, Table 2"
    minutes = {"quick": 6, "full": 60}
    files = (FILE,)
    notes = {
        "quick": "quick: at most 4 pairs of a family, three values of C.",
        "full": "full: at most 20 pairs of a family, four values of C.",
    }

    def cells(self, setting: str) -> list[Cell]:
        more: Any = (4, (0.01, 0.03, 0.1), 15) if setting == "quick" else (20, (0.003, 0.01, 0.03, 0.1), 20)
        return [Cell(method, fold, *more) for fold in range(2) for method in (BASELINE, *METHODS)]

    def run(self, data: Path, cell: Cell) -> dict[str, Any]:
        import numpy as np

        pairs = some_pairs(data, cell.pairs)
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
        found = {C: float(learnt(kept, out, cell, C).mean()) for C in sorted(cell.grid)}
        return max(found, key=found.__getitem__)

    def summarise(self, results: Sequence[Result]) -> list[Table]:
        by_method = {method: some for (method,), some in groups(results, "method").items()}
        sums = {
            method: [sum(r.numbers[f"sum {k}"] for r in some) for k in range(len(BINS))] for method, some in by_method.items()
        }
        counts = [sum(r.numbers[f"count {k}"] for r in by_method[BASELINE]) for k in range(len(BINS))]
        families = {method: [f for r in some for f in r.numbers["families"]] for method, some in by_method.items()}
        columns = tuple(f"{name} ({n})" for name, n in zip(BINS, counts, strict=True))
        table = Table(
            "recall on core columns, %: means over alignments by identity, both folds", ("method", *columns, "all", "C")
        )
        title = "difference of the mean recall of families, points [95 %]"
        better = Table(title, ("method", "to blosum62", "to hinge"), differences=("to blosum62", "to hinge"))
        for method, some in by_method.items():
            chosen = ", ".join(f"{r.numbers['C']:g}" for r in some if "C" in r.numbers) or "-"
            shown = [s / n if n else None for s, n in zip(sums[method], counts, strict=True)]
            table.rows.append((method, *shown, sum(sums[method]) / max(sum(counts), 1), chosen))
            gains = [
                mean_interval(a - b for a, b in zip(families[method], families[other], strict=True)) if other != method else None
                for other in (BASELINE, "hinge")
            ]
            better.rows.append((method, *gains))
        return [table, better]

    def draw(self, figure: Any, results: Sequence[Result]) -> None:
        figure.set_size_inches(7, 4)
        axes = figure.subplots()
        by_method = groups(results, "method")
        width = 0.8 / len(by_method)
        for k, ((method,), some) in enumerate(by_method.items()):
            totals = [[sum(r.numbers[f"{what} {b}"] for r in some) for b in range(len(BINS))] for what in ("sum", "count")]
            means = [total / max(n, 1) for total, n in zip(*totals, strict=True)]
            axes.bar([b + (k - len(by_method) / 2) * width for b in range(len(BINS))], means, width, label=method)
        axes.set_xticks(range(len(BINS)), BINS)
        axes.set(xlabel="identity of the true alignment", ylabel="recall, %")
        axes.legend(fontsize=8)


def some_pairs(data: Path, most: int) -> Any:
    """At most so many pairs of each family, homologous regions only, drawn once and for all."""
    import numpy as np

    from partwise.tasks.alignment.files import read_alignments

    pairs = read_alignments(data / FILE, aligned=True)
    kind, family = np.array(pairs.fields["kind"]), np.array(pairs.fields["family"])
    rng, kept = np.random.default_rng(0), []
    for name in sorted(set(family[kind == "BBS"].tolist())):
        own = np.flatnonzero((kind == "BBS") & (family == name))
        kept += sorted(rng.permutation(own)[:most].tolist())
    return pairs.take(kept)


def parts_of(pairs: Any, n: int, seed: int) -> Any:
    """(pairs,) which of n parts each pair is in; families stay together."""
    import numpy as np

    names = sorted(set(pairs.fields["family"]))
    part = {names[k]: place % n for place, k in enumerate(np.random.default_rng(seed).permutation(len(names)))}
    return np.array([part[name] for name in pairs.fields["family"]])


def learnt(train: Any, test: Any, cell: Cell, C: float) -> Any:
    """Recall of each test pair by a model of the training pairs."""
    from partwise.solvers import CCCP
    from partwise.solvers.pegasos import Pegasos
    from partwise.tasks.alignment.estimator import Aligner
    from partwise.tasks.alignment.scores import recalls

    loss, solver, decode = METHODS[cell.method]
    inside: Any = Pegasos() if solver == "pegasos" else solver
    epochs = cell.epochs
    if loss.startswith("ramp"):  # the first round is the hinge
        inside, epochs = CCCP(inside, epochs=cell.epochs), ROUNDS * cell.epochs
    aligner = Aligner(
        loss=loss, C=C, solver=inside, decode=decode, alphabet=LETTERS, wildcard="X", max_epochs=epochs, tol=0.0, random_state=0
    )
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
