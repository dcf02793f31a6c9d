"""``partwise train parse``: from a treebank to a model that parses."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from partwise.cli import options
from partwise.cli.common import in_words
from partwise.cli.options import FEATURES, FILES, LABELS, option
from partwise.cli.train import Run, Settings, train
from partwise.tasks.dependency.command import scores


@train.command()
@in_words
def parse(
    file: Annotated[str, typer.Argument(help="Treebank, CoNLL-U or CoNLL-X; gz; '-' is stdin.")],
    output: options.Output,
    dev: Annotated[
        str | None, option("Learning", "Held-out treebank: stop when it gets no better, and keep the best model.")
    ] = None,
    templates: Annotated[
        Path | None, option(FEATURES, "File of arc templates, one a line, say h.upos|m.upos. (default: a ready-made set)")
    ] = None,
    hash_bits: Annotated[int, option(FEATURES, "There are 2^bits weights of arcs.", min=8, max=30)] = 22,
    projective: Annotated[bool, option(LABELS, "Trees without crossing arcs.", "--projective")] = False,
    single_root: Annotated[
        bool | None, option(LABELS, "One word alone hangs from the root. (default: if it is so in all training trees)")
    ] = None,
    relations: Annotated[bool, option(LABELS, "Learn the relations of arcs too.")] = True,
    order: Annotated[
        int, option(FEATURES, "2: score siblings and grandparents too; better, and several times slower.", min=1, max=2)
    ] = 1,
    candidates: Annotated[int, option(FEATURES, "With --order 2: heads that are looked at for each word, at most.", min=1)] = 10,
    first: Annotated[int | None, option(FILES, "Train on the first so many sentences only.", min=1)] = None,
    encoding: options.Encoding = "utf-8",
    loss: options.Loss = "hinge",
    c: options.C = None,
    solver: options.SolverName = "auto",
    epochs: options.Epochs = None,
    tol: options.Tol = 1e-3,
    patience: options.Patience = None,
    average: options.Average = None,
    seed: options.Seed = 0,
    dtype: options.Dtype = options.Number.float32,
    resume: options.Resume = False,
    checkpoint_every: options.CheckpointEvery = 10.0,
    history: options.History = None,
    curve: options.Curve = None,
    certify: options.Certify = False,
    jobs: options.Jobs = 1,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Learn to parse: the head of every word, and the relation to it.

    The treebank has its trees in the columns HEAD and DEPREL:

        partwise train parse en-train.conllu --dev en-dev.conllu -o parser.model
    """
    from partwise.tasks.dependency.estimator import TreeParser
    from partwise.tasks.dependency.files import read_treebank

    settings = Settings(loss, c, solver, epochs, tol, patience, average, seed, dtype.value, jobs)
    run = Run("parse", output, settings, resume, checkpoint_every, history, curve, as_json, quiet)
    run.metric = "uas"
    shape: dict[str, Any] = {"hash_bits": hash_bits, "projective": projective, "single_root": single_root, "relations": relations}
    shape |= {"order": order, "candidates": candidates}
    if templates is not None:
        text = templates.read_text(encoding="utf-8-sig").splitlines()
        shape["templates"] = [line.strip() for line in text if line.strip() and not line.startswith("#")]
    parser = TreeParser(**settings.parameters(), **shape)
    parser._check_parameters()
    treebank = read_treebank(file, encoding, first)
    held_out = None if dev is None else read_treebank(dev, encoding)
    run.say(f"{treebank.name}: {len(treebank):,} sentences, {treebank.words.n_tokens:,} words, {len(treebank.names)} relations")
    with run.fitting(parser, certify):
        parser.fit(treebank, validation=held_out, checkpoint=run.checkpoint)
    about = {
        "examples": len(treebank),
        "tokens": treebank.words.n_tokens,
        "labels": len(parser.classes_),
        "features": 1 << hash_bits,
        "single_root": parser.single_root_,
    }
    run.finish(parser, about, None if held_out is None else lambda: scores(parser, held_out))
