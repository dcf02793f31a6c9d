"""Training on wrong labels: how much of what they cost each method wins back.

Errors of several kinds and shares are planted in the training parts of several tasks; test parts stay as they are. Every model
has its default parameters. The share that a method *recovers* is

    (its score - the hinge's on the wrong labels) / (the oracle's - the hinge's on the wrong labels),

the *oracle* being the hinge that knows which labels are wrong, and leaves those examples out, or takes those labels as unknown.

Methods
-------
    hinge       what all of them start from
    ramp        `loss="ramp"` as it comes: out-of-fold refusal (`partwise.solvers.out_of_fold`)
    cccp        the ramp by Mancev's procedure: CCCP around Pegasos, which chooses targets by itself
    dropping    five folds, and what differs from the out-of-fold prediction in more than half of its positions is left out
    crf         the CRF, for those who would have begun with it

The method was chosen on other data (`noisy_sets.CHOSEN_ON`: ``partwise reproduce`` has them too, as the setting "quick").
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from partwise.experiments.experiment import Experiment, MeanInterval, Result, Table, groups, mean_interval, paired, values
from partwise.experiments.noisy_sets import CHOSEN_ON, FILES

METHODS = ("hinge", "oracle", "ramp", "cccp", "dropping", "crf")
SENTENCES, TOKENS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4), (0.1, 0.2)
BOTH = (("sentence", SENTENCES), ("token", TOKENS))
SHUFFLED = (("shuffle", (0.0, 0.1, 0.2, 0.4)),)
FIRST = (0.2, 0.0, 0.4)  # shares of errors, in the order in which they are run; then the others
SLOW = ("news20", "trees", "rna")  # data sets to be run last
#: data set: examples to train on, and the errors
REPORTED: dict[str, tuple[int, tuple[tuple[str, tuple[float, ...]], ...]]] = {
    "chunking": (3000, BOTH),
    "usps": (6000, SHUFFLED),
    "letter": (6000, SHUFFLED),
    "news20": (12000, SHUFFLED),
    "spanish": (4000, BOTH),
    "trees": (1500, (("near", (0.0, 0.1, 0.2)),)),
    "rna": (300, (("swapped", (0.0, 0.2)),)),
    "ohsumed": (84, (("queries", (0.0, 0.2, 0.4)),)),
}
CHOSEN: dict[str, tuple[int, tuple[tuple[str, tuple[float, ...]], ...]]] = {
    "dutch": (4000, (("sentence", (0.0, 0.2)), ("token", (0.2,)))),
    "satimage": (6000, (("shuffle", (0.0, 0.2)),)),
    "segment": (6000, (("shuffle", (0.0, 0.2)),)),
    "dna": (6000, (("shuffle", (0.0, 0.2)),)),
}


@dataclass(frozen=True)
class Cell:
    """One training."""

    dataset: str
    how: str  #: the kind of the errors
    level: float  #: their share
    method: str
    seed: int
    size: int  #: examples to train on, at most


class RobustTraining(Experiment):
    """See the module."""

    name = "robust-training"
    about = "Wrong labels of several kinds and shares in several tasks: what the ramp wins back of what they cost"
    source = "our own; Mancev 2015 and Do et al. 2008 for the losses"
    minutes = {"quick": 10, "full": 240}
    together = ("dataset", "how", "level")
    files = tuple(file for files in {**FILES, **CHOSEN_ON}.values() for file in files)
    notes = {
        "quick": "quick: the data that the method was chosen on, two seeds.",
        "full": "full: data that nothing was chosen on, five seeds.",
    }

    def cells(self, setting: str) -> list[Cell]:
        sets, seeds = (CHOSEN, 2) if setting == "quick" else (REPORTED, 5)
        kinds = [(name, size, how, level) for name, (size, all_of) in sets.items() for how, levels in all_of for level in levels]
        kinds.sort(key=lambda kind: (kind[0] in SLOW, FIRST.index(kind[3]) if kind[3] in FIRST else len(FIRST)))
        return [
            Cell(name, how, level, method, seed, size)
            for name, size, how, level in kinds
            for method in methods_for(name, level)
            for seed in range(seeds)
        ]

    def run(self, data: Path, cell: Cell) -> dict[str, Any]:
        from partwise.experiments.noisy_sets import noisy_set

        noisy = noisy_set(data, cell.dataset, cell.size, cell.how, cell.level, cell.seed)
        found: dict[str, Any] = {}
        if cell.method == "dropping":
            model = dropping(noisy)
        else:
            loss = {"cccp": "ramp", "oracle": "hinge"}.get(cell.method, cell.method)
            model = noisy.make(loss=loss, **({"solver": "pegasos"} if cell.method == "cccp" else {}))
            model.fit(*(noisy.without_errors if cell.method == "oracle" else noisy.train))
        if model.result_.status == "interrupted":
            raise KeyboardInterrupt  # half a training is no result
        if cell.method == "ramp" and model.result_.rounds:
            found["refused"] = 100 * model.result_.rounds[-1].refused / noisy.n
        return {"score": noisy.score(model), "wrong": 100 * float(noisy.wrong.mean()), **found}

    def summarise(self, results: Sequence[Result]) -> list[Table]:
        columns = (
            "data",
            "errors",
            "share",
            "hinge",
            "oracle",
            "ramp",
            "recovered, %",
            "cccp",
            "dropping",
            "crf",
            "ramp - hinge",
        )
        title = (
            "score on true labels, % (F1 of spans, accuracy, UAS, F1 of base pairs, NDCG@10): mean over seeds; "
            "difference, paired [95 %]"
        )
        table = Table(title, columns, differences=columns[-1:])
        order = list({**REPORTED, **CHOSEN})
        in_order = sorted(results, key=lambda r: (order.index(r.cell.dataset), r.cell.how, r.cell.level))
        for (name, how, level), some in groups(in_order, "dataset", "how", "level").items():
            by = {method: ones for (method,), ones in groups(some, "method").items()}
            mean = {method: mean_interval(values(ones, "score")).value for method, ones in by.items()}
            shown = [mean.get(method) for method in METHODS]
            row: list[Any] = [name, how if level else "none", f"{100 * level:g} %", *shown[:3], recovered(mean), *shown[3:]]
            table.rows.append((*row, difference(by)))
        return [table]

    def draw(self, figure: Any, results: Sequence[Result]) -> None:
        by_set = groups(results, "dataset", "how")
        figure.set_size_inches(2.6 * len(by_set), 3.2)
        axes = figure.subplots(1, len(by_set), squeeze=False)[0]
        for axis, ((name, how), some) in zip(axes, by_set.items(), strict=True):
            for (method,), ones in groups(some, "method").items():
                points = {100 * level: mean_interval(values(r, "score")).value for (level,), r in groups(ones, "level").items()}
                if method in ("hinge", "oracle", "ramp"):
                    axis.plot(list(points), list(points.values()), marker="o", label=method)
            axis.set(title=f"{name}, {how}", xlabel="wrong, %")
        axes[0].set_ylabel("score on true labels, %")
        axes[0].legend()


def methods_for(name: str, level: float) -> list[str]:
    """All of them at one level of noise; without noise, the oracle is the hinge."""
    if not level:
        return ["hinge", "ramp"]
    if name in ("trees", "rna", "ohsumed"):
        return ["hinge", "oracle", "ramp"]
    return list(METHODS) if level == 0.2 else ["hinge", "oracle", "ramp"]


def recovered(mean: dict[str, float]) -> float | None:
    """The share of what the errors cost that the ramp wins back; None without errors, or where they cost nothing."""
    lost = mean.get("oracle", math.nan) - mean["hinge"]
    return 100 * (mean["ramp"] - mean["hinge"]) / lost if lost > 0.1 else None


def difference(by: dict[str, list[Result]]) -> MeanInterval:
    """Of the ramp to the hinge, paired over the seeds."""
    return mean_interval(paired(by["ramp"], by["hinge"], "score", "seed"))


def dropping(noisy: Any) -> Any:
    """The crude way: leave out what its out-of-fold prediction mostly contradicts, and fit again."""
    import numpy as np

    X, y = noisy.train
    part = np.random.default_rng(0).permutation(noisy.n) % 5
    kept = np.ones(noisy.n, bool)
    for fold in range(5):
        mine, others = np.flatnonzero(part == fold), np.flatnonzero(part != fold)
        answers = noisy.make(loss="hinge").fit(*taken(X, y, others)).predict(taken(X, y, mine)[0])
        for i, answer in zip(mine.tolist(), answers, strict=True):
            given, found = np.atleast_1d(np.asarray(y[i], object)), np.atleast_1d(np.asarray(answer, object))
            kept[i] = np.count_nonzero(given != found) <= 0.5 * len(given)
    return noisy.make(loss="hinge").fit(*taken(X, y, np.flatnonzero(kept)))


def taken(X: Any, y: Any, which: Any) -> tuple[Any, Any]:
    """Some of the examples."""
    some = y[which] if hasattr(y, "shape") else [y[i] for i in which.tolist()]
    return (X.take(which) if hasattr(X, "take") and not hasattr(X, "shape") else X[which]), some
