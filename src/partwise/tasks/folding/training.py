"""``partwise train fold``: from RNA sequences with structures to a model that folds."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from partwise.cli import options
from partwise.cli.common import in_words
from partwise.cli.options import FILES, LABELS, LEARNING, option
from partwise.cli.train import Run, Settings, train
from partwise.tasks.folding.command import require_structures, scores

QUICK = ("hinge", "perceptron", "crf", "softmax_margin")  # losses for which a few epochs of the online solver are enough


@train.command()
@in_words
def fold(
    file: Annotated[str, typer.Argument(help="FASTA with dot-brackets, or a table with the columns sequence and structure; gz.")],
    output: options.Output,
    dev: Annotated[
        str | None, option(LEARNING, "Held-out file of the same kind: stop when it gets no better, and keep the best model.")
    ] = None,
    pairs: Annotated[str, option(LABELS, "Which bases pair: names with commas between them, or 'all'.")] = "AU,CG,GU",
    max_loop: Annotated[int, option(LABELS, "Unpaired bases of an internal loop or bulge, at most.", min=0, max=30)] = 30,
    trade_off: Annotated[
        float, option(LABELS, "Of losses with a cost: 0 counts missed pairs only, 1 wrong pairs only.", min=0.0, max=1.0)
    ] = 0.5,
    decode: Annotated[str, option(LABELS, "best: highest score; mea: maximum expected accuracy; auto: mea if it can.")] = "auto",
    gamma: Annotated[float, option(LABELS, "Of mea: the higher, the more pairs.")] = 1.0,
    pseudoknots: Annotated[str, option(LABELS, "Pairs that cross others: drop or refuse.")] = "drop",
    first: Annotated[int | None, option(FILES, "Train on the first so many sequences only.", min=1)] = None,
    distinct: Annotated[bool, option(FILES, "Leave out sequences that came before, letter by letter.", "--distinct")] = False,
    encoding: options.Encoding = "utf-8",
    loss: options.Loss = "crf",
    c: options.C = None,
    solver: options.SolverName = "auto",
    epochs: options.Epochs = None,
    tol: options.Tol = 1e-3,
    patience: options.Patience = None,
    average: options.Average = None,
    seed: options.Seed = 0,
    dtype: options.Dtype = options.Number.float64,
    resume: options.Resume = False,
    checkpoint_every: options.CheckpointEvery = 10.0,
    history: options.History = None,
    curve: options.Curve = None,
    certify: options.Certify = False,
    jobs: options.Jobs = 1,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Learn to fold RNA: the base pairs of its secondary structure.

    Structures are dot-brackets below their sequences, or in a column of a table:

        partwise train fold train.fasta --dev dev.fasta -o folder.model
    """
    from partwise.tasks.folding.estimator import Folder
    from partwise.tasks.folding.files import read_rna

    if solver == "auto" and loss in QUICK:
        solver, epochs = "dca", epochs or 5
    settings = Settings(loss, 0.1 if c is None else c, solver, epochs, tol, patience, average, seed, dtype.value, jobs)
    run = Run("fold", output, settings, resume, checkpoint_every, history, curve, as_json, quiet)
    run.metric = "f1"
    shape: dict[str, Any] = {"max_loop": max_loop, "trade_off": trade_off, "decode": decode, "gamma": gamma}
    shape["pairs"] = None if pairs == "all" else tuple(pairs.split(","))
    folder = Folder(**settings.parameters(), **shape, pseudoknots=pseudoknots)
    folder._check_parameters()
    data = read_rna(file, encoding, first, pseudoknots)
    data = data.distinct() if distinct else data
    require_structures(data, "to learn from")
    held_out = None if dev is None else read_rna(dev, encoding)
    if held_out is not None:
        require_structures(held_out, "to compare with")
    run.say(f"{data.name}: {len(data):,} sequences, {int(data.lengths.sum()):,} bases, longest {int(data.lengths.max()):,}")
    with run.fitting(folder, certify):
        folder.fit(data, validation=held_out, checkpoint=run.checkpoint)
    about = {
        "examples": len(data),
        "tokens": int(data.lengths.sum()),
        "labels": 0 if folder.pairs is None else len(folder.pairs),
        "features": int(folder.weights_.size),
        "pseudoknot_pairs": int(data.pseudoknots.sum()),
    }
    run.finish(folder, about, None if held_out is None else lambda: scores(folder, held_out))
