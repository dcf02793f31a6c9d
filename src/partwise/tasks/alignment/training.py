"""``partwise train align``: from alignments to a model that aligns."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from partwise.cli import options
from partwise.cli.common import in_words
from partwise.cli.options import FEATURES, FILES, LABELS, LEARNING, option
from partwise.cli.train import SMOOTH, Run, Settings, train
from partwise.tasks.alignment.command import scores


class Mode(str, Enum):
    """Kinds of alignments."""

    all = "global"
    local = "local"


class Core(str, Enum):
    """What reliable columns are for."""

    cost = "cost"
    known = "known"
    ignore = "ignore"


@train.command()
@in_words
def align(
    file: Annotated[str, typer.Argument(help="Alignments: a table with two rows a line, or aligned FASTA; gz; '-' is stdin.")],
    output: options.Output,
    dev: Annotated[
        str | None, option(LEARNING, "Held-out alignments: stop when they get no better, and keep the best model.")
    ] = None,
    all_pairs: Annotated[bool, option(FILES, "Of FASTA: all pairs of its rows, not two by two.", "--all-pairs")] = False,
    first: Annotated[int | None, option(FILES, "Train on the first so many pairs only.", min=1)] = None,
    encoding: options.Encoding = "utf-8",
    mode: Annotated[Mode, option(LABELS, "From end to end, or without ends that do not belong together.")] = Mode.all,
    core: Annotated[
        Core, option(LABELS, "Where a column 'core' marks reliable columns: they alone count, are known, or are like all others.")
    ] = Core.cost,
    precision_weight: Annotated[
        float, option(LABELS, "Weight of wrong pairs against missed ones in the cost; hinge, ramp.", min=0.0, max=1.0)
    ] = 0.0,
    templates: Annotated[
        Path | None, option(FEATURES, "File of pair templates, one a line, say a.letter|b.letter. (default: a ready-made set)")
    ] = None,
    alphabet: Annotated[str | None, option(FEATURES, "The letters. (default: those of the file)")] = None,
    wildcard: Annotated[str | None, option(FEATURES, "The letter that letters outside the alphabet are read as.")] = None,
    symmetric: Annotated[bool, option(FEATURES, "Exchanging the two sequences changes nothing.")] = True,
    loss: options.Loss = "crf",
    c: Annotated[float | None, option(LEARNING, "Weight of the losses against the regulariser. (default: 0.01)", "-C")] = None,
    solver: Annotated[
        str, option(LEARNING, "As for tag; auto: dca; pegasos for ramp, ramp_do, slack; sdcd for summed.", "--solver")
    ] = "auto",
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
    """Learn to align pairs of sequences: what to put opposite each other, and where gaps are.

    The file has two aligned rows a line, with a tab between them; or columns row1, row2 and, if there are reliable columns, core:

        partwise train align pairs.tsv --dev more.tsv -o aligner.model
    """
    from partwise.tasks.alignment.estimator import PairAligner
    from partwise.tasks.alignment.files import read_alignments

    quick = "dca" if solver == "auto" and loss in SMOOTH else solver  # good long before the optimum
    settings = Settings(loss, 0.01 if c is None else c, quick, epochs, tol, patience, average, seed, dtype.value, jobs)
    run = Run("align", output, settings, resume, checkpoint_every, history, curve, as_json, quiet)
    run.metric = "recall"
    shape: dict[str, Any] = {
        "mode": mode.value, "core": core.value, "precision_weight": precision_weight, "alphabet": alphabet, "wildcard": wildcard,
        "symmetric": symmetric,
    }  # fmt: skip
    if templates is not None:
        text = templates.read_text(encoding="utf-8-sig").splitlines()
        shape["templates"] = [line.strip() for line in text if line.strip() and not line.startswith("#")]
    aligner = PairAligner(**settings.parameters(), **shape)
    aligner._check_parameters()
    pairs = read_alignments(file, encoding, aligned=True, all_pairs=all_pairs, first=first)
    held_out = None if dev is None else read_alignments(dev, encoding, aligned=True, all_pairs=all_pairs)
    places = int(pairs.lengths.sum())
    run.say(f"{pairs.name}: {len(pairs):,} pairs, {places:,} letters")
    with run.fitting(aligner, certify):
        aligner.fit(pairs, validation=held_out, checkpoint=run.checkpoint)
    about = {
        "examples": len(pairs),
        "tokens": places,
        "labels": len(aligner.classes_),
        "features": int(aligner.weights_.size),
        "alphabet": "".join(aligner.classes_.tolist()),
        "templates": len(aligner.templates_),
    }
    run.finish(aligner, about, None if held_out is None else lambda: scores(aligner, held_out))
