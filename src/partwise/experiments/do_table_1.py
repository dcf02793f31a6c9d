"""Do et al. (2008), Table 1: multiclass with shuffled labels, the convex loss against the ramp.

0, 10, 20 % of each class are drawn and the labels of what was drawn permuted (stratified, as in the paper). Linear
classifiers; nested cross-validation: the outer folds give the accuracy, the inner ones, on the training part with its wrong
labels, choose C. All losses see the same folds and the same wrong labels. Features are standardised on the training part; the
intercept is a constant feature.

The paper does not say whether the test labels were shuffled too. We train on shuffled labels and report the accuracy on the
true labels of the test folds; ``noisy_accuracy`` in the results is that on the shuffled ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from partwise.experiments.experiment import Experiment, MeanInterval, Result, Table, groups, mean_interval, paired, values
from partwise.experiments.multiclass import SETS, accuracy, fit_classes, read_set, standardise, stratified_folds

LEVELS = (0.0, 0.1, 0.2)
LOSSES = ("hinge", "ramp_do", "ramp")
TOLERANCE = 1e-2


@dataclass(frozen=True)
class Cell:
    """One outer fold."""

    dataset: str
    shuffled: float
    loss: str
    fold: int
    folds: int
    inner: int  #: folds that choose C
    grid: tuple[float, ...]
    epochs: int  #: at most
    rows: int  #: at most, of the whole set


class Table1(Experiment):
    """See the module."""

    name = "do-table-1"
    about = "Six multiclass sets with 0, 10, 20 % shuffled labels: convex loss against ramp, nested cross-validation"
    source = "Do et al. 2008, Table 1"
    minutes = {"quick": 3, "full": 60}
    together = ("dataset", "shuffled")
    files = tuple(file for files in SETS.values() for file in files)
    notes = {
        "quick": "quick: at most 1000 rows of a set, 5 outer and 3 inner folds, three values of C.",
        "full": "full: at most 5000 rows of a set (letter, satimage, shuttle, usps are larger), 10 outer and 5 inner folds, "
        "four values of C.",
    }

    def cells(self, setting: str) -> list[Cell]:
        if setting == "quick":
            more: Any = (5, 3, (1e-2, 1e-1, 1.0), 30, 1000)
        else:
            more = (10, 5, (1e-3, 1e-2, 1e-1, 1.0), 50, 5000)
        return [
            Cell(name, level, loss, fold, *more)
            for name in SETS
            for level in LEVELS
            for fold in range(more[0])
            for loss in LOSSES
        ]

    def run(self, data: Path, cell: Cell) -> dict[str, Any]:
        import numpy as np

        from partwise.datasets.planted import plant_errors

        x, y = read_set(data, cell.dataset, cell.rows)
        k = int(y.max()) + 1
        noisy = np.asarray(plant_errors(y, cell.shuffled, seed=cell.folds, how="shuffle").y, np.int32)
        held = stratified_folds(y, cell.folds, seed=0) == cell.fold
        C = self.choose(x[~held], noisy[~held], k, cell)
        train, test = standardise(x[~held], x[held])
        W = fit_classes(train, noisy[~held], k, cell.loss, C, cell.epochs, TOLERANCE)
        return {"accuracy": accuracy(test, y[held], W), "noisy_accuracy": accuracy(test, noisy[held], W), "C": C}

    def choose(self, x: Any, y: Any, k: int, cell: Cell) -> float:
        """The C of the grid that does best in a cross-validation of the training part; the smaller one of two that tie."""
        fold = stratified_folds(y, cell.inner, seed=1 + cell.fold)
        right = dict.fromkeys(cell.grid, 0.0)
        for held in (fold == f for f in range(cell.inner)):
            train, test = standardise(x[~held], x[held])
            for C in cell.grid:
                right[C] += accuracy(test, y[held], fit_classes(train, y[~held], k, cell.loss, C, cell.epochs, TOLERANCE))
        return max(sorted(cell.grid), key=right.__getitem__)

    def summarise(self, results: Sequence[Result]) -> list[Table]:
        title = (
            "accuracy on true labels, %: mean +- standard deviation over the outer folds; difference to the hinge, paired [95 %]"
        )
        columns = ("data", "shuffled", "hinge", "ramp_do", "ramp", "ramp_do - hinge", "ramp - hinge")
        table = Table(title, columns, differences=columns[5:])
        for (name, level), some in groups(results, "dataset", "shuffled").items():
            by_loss = {loss: ones for (loss,), ones in groups(some, "loss").items()}
            cells: list[Any] = [mean_and_deviation(values(by_loss[loss], "accuracy")) for loss in LOSSES]
            cells += [difference(by_loss[loss], by_loss["hinge"]) for loss in LOSSES[1:]]
            table.rows.append((name, f"{100 * level:g} %", *cells))
        return [table]

    def draw(self, figure: Any, results: Sequence[Result]) -> None:
        figure.set_size_inches(12, 3.2)
        by_set = groups(results, "dataset")
        axes = figure.subplots(1, len(by_set), squeeze=False)[0]
        for axis, ((name,), some) in zip(axes, by_set.items(), strict=True):
            for (loss,), ones in groups(some, "loss").items():
                points = {
                    100 * level: mean_interval(values(r, "accuracy")).value for (level,), r in groups(ones, "shuffled").items()
                }
                axis.plot(list(points), list(points.values()), marker="o", label=loss)
            axis.set(title=name, xlabel="shuffled, %")
        axes[0].set_ylabel("accuracy on true labels, %")
        axes[0].legend()


def mean_and_deviation(accuracies: list[float]) -> str:
    """As the paper prints it."""
    interval = mean_interval(accuracies)
    return f"{interval.value:.1f} +- {interval.sd:.1f}"


def difference(some: Sequence[Result], others: Sequence[Result]) -> MeanInterval:
    """Paired over the folds, whose training parts overlap."""
    return mean_interval(paired(some, others, "accuracy", "fold"), overlap=1.0 / (some[0].cell.folds - 1))
