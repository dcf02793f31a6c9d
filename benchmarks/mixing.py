"""Mixing: F1 on the test set after each epoch of solvers that visit one example at a time, on parts of CoNLL-2000.

One process, two parts and 24 parts of the training text, packed; default features and C, eight epochs. Nothing is chosen by these
figures. With --short three epochs on 1,000 sentences; ``--only dca``: one solver.
"""

from __future__ import annotations

import math
import warnings

import partwise
from benchmarks.datasets import CONLL2000
from benchmarks.race import Options
from benchmarks.report import Report, Row
from partwise.text.columns import read_columns

SOLVERS = {"dca": "hinge", "pegasos": "hinge", "sgd": "hinge", "perceptron": "perceptron", "mira": "hinge"}
EPOCHS, PARTS = 8, (2, 24)


def run(options: Options) -> Report:
    """A row for each solver and number of parts, beside one process after as many epochs."""
    files = CONLL2000.load(options.folder)
    train, epochs = str(files.train), EPOCHS
    if options.short:
        train, epochs = str(options.folder / "first.txt"), 3
        text = read_text(files.train)
        (options.folder / "first.txt").write_text("\n\n".join(text.split("\n\n")[:1000]))
    corpus = partwise.pack("tag", train, options.folder / "mixing.packed", shard_megabytes=0.1)
    test, report = read_columns(str(files.test)), Report("mixing")
    for solver, loss in SOLVERS.items():
        if options.only and solver not in options.only:
            continue
        alone = curve(corpus, test, solver, loss, epochs)
        report.notes.append(f"{solver}, one process: {in_words(alone)}")
        for parts in PARTS:
            found = curve(corpus, test, solver, loss, epochs, engine="parts", mixing_parts=parts)
            what = f"{solver}, {parts} parts, F1 after {epochs} epochs"
            row = Row("CoNLL-2000", what, "%", found[-1], alone[-1], "one process", in_words(found), higher_is_better=True)
            report.rows.append(row)
    return report


def curve(corpus, test, solver: str, loss: str, epochs: int, **where) -> list[float]:
    """F1 in percent after each epoch."""
    labeler = partwise.SequenceLabeler(loss=loss, solver=solver, max_epochs=epochs, tol=0.0, patience=epochs + 1, **where)
    labeler.evaluate = "never"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        labeler.fit(partwise.PackedCorpus(corpus.path, verify=False), validation=test)
    return [100.0 * (1.0 - record.validation) for record in labeler.result_.history]


def in_words(curve: list[float]) -> str:
    """For a note."""
    return " ".join("-" if math.isnan(value) else f"{value:.2f}" for value in curve)


def read_text(path) -> str:
    """The text of a file, packed or not."""
    import gzip

    data = path.read_bytes()
    return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode()
