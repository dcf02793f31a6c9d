"""``partwise train constituency``: from trees in brackets to a model that parses into such trees."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from partwise.cli import options
from partwise.cli.common import in_words
from partwise.cli.options import FEATURES, FILES, LABELS, LEARNING, option
from partwise.cli.train import Run, Settings, train
from partwise.tasks.constituency.command import scores


@train.command()
@in_words
def constituency(
    file: Annotated[str, typer.Argument(help="Trees in brackets, as in the Penn Treebank; gz; '-' is stdin.")],
    output: options.Output,
    dev: Annotated[str | None, option(LEARNING, "Held-out trees: stop when it gets no better, and keep the best model.")] = None,
    tags: Annotated[
        str, option(LABELS, "given: tags are part of the input; predicted: they are looked for with the tree.")
    ] = "given",
    markov: Annotated[int, option(LABELS, "Children that a node with more than two remembers; -1: all of them.", min=-1)] = 0,
    traces: Annotated[bool, option(FILES, "Keep empty elements, -NONE-.", "--traces")] = False,
    functions: Annotated[bool, option(FILES, "Keep what follows - or = in a label: NP-SBJ.", "--functions")] = False,
    templates: Annotated[
        Path | None, option(FEATURES, "File of span templates, one a line, say f.tag|l.tag. (default: a ready-made set)")
    ] = None,
    hash_bits: Annotated[int, option(FEATURES, "There are 2^bits features, with a weight for every symbol.", min=8, max=30)] = 16,
    first: Annotated[int | None, option(FILES, "Train on the first so many trees only.", min=1)] = None,
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
    """Learn to parse into constituents: brackets with labels.

    The grammar is read from the trees:

        partwise train constituency train.mrg --dev dev.mrg -o constituents.model
    """
    from partwise.tasks.constituency.estimator import BracketParser
    from partwise.tasks.constituency.files import read_brackets

    settings = Settings(loss, 0.1 if c is None else c, solver, epochs, tol, patience, average, seed, dtype.value, jobs)
    run = Run("constituency", output, settings, resume, checkpoint_every, history, curve, as_json, quiet)
    run.metric = "f1"
    shape: dict[str, Any] = {"tags": tags, "markov": None if markov < 0 else markov, "hash_bits": hash_bits}
    if templates is not None:
        text = templates.read_text(encoding="utf-8-sig").splitlines()
        shape["templates"] = [line.strip() for line in text if line.strip() and not line.startswith("#")]
    parser = BracketParser(**settings.parameters(), **shape)
    parser._check_parameters()
    data = read_brackets(file, encoding, first, traces=traces, functions=functions)
    held_out = None if dev is None else read_brackets(dev, encoding, traces=traces, functions=functions)
    run.say(f"{data.name}: {len(data):,} trees, {data.n_words:,} words")
    with run.fitting(parser, certify):
        parser.fit(data, validation=held_out, checkpoint=run.checkpoint)
    about = {
        "examples": len(data),
        "tokens": data.n_words,
        "labels": len(parser.classes_),
        "symbols": len(parser.grammar_.symbols),
        "rules": len(parser.grammar_.rules),
        "features": 1 << hash_bits,
    }
    run.finish(parser, about, None if held_out is None else lambda: scores(parser, held_out))
