"""What experiments on classes share: the Statlog and USPS sets, folds, standardised features."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

#: data set: its files below the data folder
SETS = {
    "dna": ("multiclass/dna.train.csv.gz", "multiclass/dna.test.csv.gz"),
    "letter": ("multiclass/letter.csv.gz",),
    "satimage": ("multiclass/satimage.train.csv.gz", "multiclass/satimage.test.csv.gz"),
    "segment": ("multiclass/segment.csv.gz",),
    "shuttle": ("multiclass/shuttle.train.csv.gz", "multiclass/shuttle.test.csv.gz"),
    "usps": ("multiclass/usps.train.csv.gz", "multiclass/usps.test.csv.gz"),
}


@functools.lru_cache(maxsize=2)
def read_set(data: Path, name: str, most: int | None = None) -> tuple[Any, Any]:
    """All rows of a set, training and test parts together, and classes 0, 1, ...; at most so many rows, drawn at random."""
    import numpy as np

    table = np.concatenate([np.loadtxt(data / file, delimiter=",", ndmin=2) for file in SETS[name]])
    if most is not None and len(table) > most:
        table = table[np.sort(np.random.default_rng(2008).permutation(len(table))[:most])]
    return np.ascontiguousarray(table[:, 1:]), np.unique(table[:, 0], return_inverse=True)[1].astype(np.int32)


def stratified_folds(y: Any, n_folds: int, seed: int) -> Any:
    """(N,) the fold of each example: every class is spread evenly over the folds."""
    import numpy as np

    fold = np.empty(len(y), int)
    order = np.random.default_rng(seed).permutation(len(y))
    fold[order[np.argsort(y[order], kind="stable")]] = np.arange(len(y)) % n_folds
    return fold


def standardise(train: Any, *others: Any) -> list[Any]:
    """Mean 0 and deviation 1 in the training part, a constant feature 1 at the end; features that do not vary become 0."""
    import numpy as np

    mean, deviation = train.mean(0), train.std(0)
    scale = np.where(deviation > 0, 1.0 / np.where(deviation > 0, deviation, 1.0), 0.0)
    return [np.column_stack([(x - mean) * scale, np.ones(len(x))]) for x in (train, *others)]


def fit_classes(x: Any, y: Any, n_classes: int, loss: str, C: float, epochs: int, tol: float) -> Any:
    """Weights (features, classes) of a linear classifier, by SDM."""
    from partwise.experiments.tagging import train
    from partwise.structures import multiclass_problem

    result = train(multiclass_problem(x, y, n_classes), loss, "sdm", C, epochs, tol=tol)
    return result.w.reshape(-1, n_classes)


def accuracy(x: Any, y: Any, W: Any) -> float:
    """Per cent."""
    return 100 * float(((x @ W).argmax(1) == y).mean())
