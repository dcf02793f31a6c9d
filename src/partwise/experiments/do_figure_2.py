"""Do et al. (2008), Figure 2: how tight the bounds are while the ramp loss is minimised, and at the end for several C.

Three means over the training examples, after every epoch of CCCP around SDM, or BMRM with its line search for RNA, where SDM
takes long to get over a change of targets:

    actual      l(y^), the cost of the prediction
    ramp        max_y [s(y) + l(y)] - max_y s(y), the non-convex bound that is minimised
    convex      max_y [s(y) + l(y)] - s(y_i), the hinge

actual <= ramp <= convex always. RNA folding is what the paper shows: sequences of ArchiveII of at most 200 bases, the cost is 1 -
sensitivity. Beside it chains (handwritten words, one fold of the OCR set) and classes (satimage), both with 10 % shuffled labels,
so that some examples cannot be fitted. Curves for two C; the final bounds for all of them.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from partwise.experiments import do_table_3
from partwise.experiments.experiment import Experiment, Result, Table, groups
from partwise.experiments.multiclass import SETS, read_set, standardise
from partwise.experiments.tagging import train

OCR = "ocr_letters/letters.npz"
GRID = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
GRIDS = {"rna": (1e-2, 1e-1, 1.0, 10.0, 100.0), "ocr_letters": GRID, "satimage": GRID}  #: a cost of RNA is at most 1
CURVES = {"rna": (1e-1, 10.0), "ocr_letters": (1e-3, 1e-1), "satimage": (1e-3, 1e-1)}  #: the C that get a panel of their own
PLANS = {  #: by setting: data, epochs, epochs between two choices of targets, examples
    "quick": {"rna": (60, 20, 20), "ocr_letters": (20, 5, 300), "satimage": (20, 5, 1000)},
    "full": {"rna": (120, 40, 100), "ocr_letters": (60, 10, 700), "satimage": (60, 10, 5000)},
}
SHUFFLED = 0.1
LONGEST = 200  #: bases


@dataclass(frozen=True)
class Cell:
    """One training, watched."""

    dataset: str
    C: float
    epochs: int
    T: int  #: epochs between two choices of targets
    examples: int  #: at most


class Figure2(Experiment):
    """See the module."""

    name = "do-figure-2"
    about = "Actual cost, ramp bound and convex bound while the ramp is minimised, for several C"
    source = "Do et al. 2008, Figure 2"
    minutes = {"quick": 2, "full": 20}
    files = (OCR, *SETS["satimage"], do_table_3.FILE)
    together = ("dataset",)
    notes = {
        "quick": "quick: 20 RNA sequences and 60 epochs, at most 300 words or 1000 rows and 20 epochs.",
        "full": "full: 100 RNA sequences and 120 epochs, at most 700 words or 5000 rows and 60 epochs.",
    }

    def cells(self, setting: str) -> list[Cell]:
        return [Cell(name, C, *plan) for name, plan in PLANS[setting].items() for C in GRIDS[name]]

    def run(self, data: Path, cell: Cell) -> dict[str, Any]:
        from partwise.losses.records import get_loss
        from partwise.objective import losses_at, mean_cost
        from partwise.solvers import CCCP
        from partwise.solvers.bmrm import BMRMLS
        from partwise.solvers.sdm import SDM

        problem = make_problem(data, cell.dataset, cell.examples)
        inside: Any = BMRMLS() if cell.dataset == "rna" else SDM()
        found: dict[str, list[float]] = {"epoch": [], "actual": [], "ramp": [], "convex": []}

        def note(record: Any) -> None:
            w = record.weights()
            found["epoch"].append(record.epoch)
            found["actual"].append(mean_cost(problem, w))
            for name, loss in (("ramp", "ramp_do"), ("convex", "hinge")):
                found[name].append(float(losses_at(problem, get_loss(loss), w).mean()))

        train(problem, "ramp_do", CCCP(inside, epochs=cell.T), cell.C, cell.epochs, callbacks=[note])
        return found

    def summarise(self, results: Sequence[Result]) -> list[Table]:
        table = Table(
            "mean over the training examples: after the first round, in which the convex loss is minimised, and at the end",
            ("data", "C", "actual", "ramp", "convex", "actual, end", "ramp, end", "convex, end"),
        )
        for r in results:
            moments = [[f"{r.numbers[name][k]:.3f}" for name in ("actual", "ramp", "convex")] for k in (r.cell.T - 1, -1)]
            table.rows.append((r.cell.dataset, f"{r.cell.C:g}", *moments[0], *moments[1]))
        return [table]

    def draw(self, figure: Any, results: Sequence[Result]) -> None:
        by_set = groups(results, "dataset")
        figure.set_size_inches(12, 3.4 * len(by_set))
        rows = figure.subplots(len(by_set), 3, squeeze=False)
        for axes, ((name,), some) in zip(rows, by_set.items(), strict=True):
            for axis, C in zip(axes, CURVES[name], strict=False):
                numbers = next(r.numbers for r in some if r.cell.C == C)
                for bound in ("convex", "ramp", "actual"):
                    axis.plot(numbers["epoch"], numbers[bound], label=bound)
                axis.set(title=f"{name}, C = {C:g}", xlabel="epochs", ylim=(0, None))
            for bound in ("convex", "ramp", "actual"):
                axes[-1].plot([r.cell.C for r in some], [r.numbers[bound][-1] for r in some], marker="o", label=bound)
            axes[-1].set(title=f"{name}, at the end", xlabel="C", xscale="log", ylim=(0, None))
            axes[0].set_ylabel("mean over the training examples")
            axes[0].legend()


@functools.lru_cache(maxsize=1)
def make_problem(data: Path, name: str, examples: int) -> Any:
    """Training data with shuffled labels, packed."""
    from scipy.sparse import csr_matrix

    from partwise.datasets.loaders import load_ocr
    from partwise.datasets.planted import plant_errors
    from partwise.structures import chain_problem, multiclass_problem

    if name == "rna":
        return rna_problem(data, examples)
    if name == "satimage":
        x, y = read_set(data, name, examples)
        noisy = plant_errors(y, SHUFFLED, how="shuffle").y
        return multiclass_problem(standardise(x)[0], noisy, int(y.max()) + 1)
    pixels, lengths, letters = load_ocr([0], data)
    lengths = lengths[:examples]
    mine = slice(int(lengths.sum()))
    noisy = plant_errors(letters[mine], SHUFFLED, how="shuffle").y
    return chain_problem(csr_matrix(pixels[mine]), lengths, noisy, 26)  # ones only: rows of indices


def rna_problem(data: Path, examples: int) -> Any:
    """Sequences drawn from all families; what missing a pair costs is one over the number of true ones."""
    import numpy as np

    from partwise.structures.folding.loops import LONGEST as LOOP
    from partwise.structures.folding.problem import CANONICAL, folding_problem, possible_structure, which_pair
    from partwise.tasks.folding.data import read_sequences

    rna = do_table_3.everything(data)
    given = read_sequences(rna.take(np.flatnonzero(rna.lengths <= LONGEST)[:examples]))
    pairable, truth = which_pair(CANONICAL), given.partners or []
    structures = [possible_structure(b, p, pairable, LOOP)[0] for b, p in zip(given.bases, truth, strict=True)]
    per_pair = 1.0 / np.maximum([int((p >= 0).sum()) // 2 for p in structures], 1)
    return folding_problem(given.bases, structures, missed=per_pair, wrong=0.0)
