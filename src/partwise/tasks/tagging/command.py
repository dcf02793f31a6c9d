"""``partwise train tag``: from a column file to a model that labels sequences."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from partwise.cli import options
from partwise.cli.common import in_words, load_tagger
from partwise.cli.options import FEATURES, LABELS, LEARNING, option
from partwise.cli.train import Run, Settings, train

Templates = Annotated[
    str,
    option(
        FEATURES,
        "How features are made: 'phrases' or 'chunking' (for words and parts of speech), 'words', 'ner', a template file (ours "
        "or of CRF++), or 'auto': by the columns there are.",
        "--templates",
        "-t",
    ),
]
Either = Annotated[str | None, option(LABELS, "What stands in a cell between labels any of which may be right, say '|'.")]
Stream = Annotated[
    bool, option(LEARNING, "Read the file anew in every epoch, part by part: for files larger than memory.", "--stream")
]


@train.command()
@in_words
def tag(
    file: Annotated[str, typer.Argument(help="Column file, a token a line, a blank line after each sentence; gz; '-' is stdin.")],
    output: options.Output,
    dev: options.Dev = None,
    templates: Templates = "auto",
    add_template: Annotated[list[str] | None, option(FEATURES, "One more, say 'suffix3(w[0])'. May be given again.")] = None,
    columns: Annotated[str | None, option(FEATURES, "Names of the columns, for templates. (default: w,pos)")] = None,
    min_count: Annotated[int, option(FEATURES, "Leave out features that occur fewer times.", min=1)] = 1,
    hash_bits: Annotated[
        int | None, option(FEATURES, "Number features by hashing, into 2^bits, instead of keeping a vocabulary.", min=1, max=30)
    ] = None,
    order: Annotated[int, option(FEATURES, "How many previous labels a transition looks at.", min=1)] = 1,
    hidden: Annotated[int, option(FEATURES, "Hidden states of each label, for labels that behave in several ways.", min=1)] = 1,
    loss: options.Loss = "hinge",
    c: options.C = None,
    l1_ratio: options.L1Ratio = 0.0,
    solver: options.SolverName = "auto",
    epochs: options.Epochs = None,
    tol: options.Tol = 1e-3,
    patience: options.Patience = None,
    average: options.Average = None,
    seed: options.Seed = 0,
    dtype: options.Dtype = options.Number.float32,
    start_from: options.StartFrom = None,
    stream: Stream = False,
    chunk_megabytes: Annotated[
        float, option(LEARNING, "With --stream: size of a part. Never changes the result.", min=0.000001)
    ] = 16.0,
    scheme: Annotated[
        str | None,
        option(LABELS, "Learn chunk labels in this scheme: iob1, iob2, iobes or bilou. Predictions are converted back."),
    ] = None,
    constraints: Annotated[
        str | None, option(LABELS, "Forbid what this scheme does not have, in training and later; auto: the labels' own.")
    ] = None,
    forbid: Annotated[
        list[str] | None,
        option(LABELS, "Forbid a transition, 'O I-NP', from '(begin)', or to '(end)'. May be given again."),
    ] = None,
    force: Annotated[
        list[str] | None, option(LABELS, "After this label only that one: 'B-NP I-NP'. Given again, any of those.")
    ] = None,
    unknown_label: Annotated[str | None, option(LABELS, "The cell that stands for an unknown label, say '?'.")] = None,
    either: Either = None,
    max_labels: Annotated[int, option(LABELS, "Refuse a column with more of them: it is probably not one of labels.")] = 2000,
    label_column: options.LabelColumn = None,
    separator: options.Separator = None,
    encoding: options.Encoding = "utf-8",
    comment: options.Comment = None,
    resume: options.Resume = False,
    checkpoint_every: options.CheckpointEvery = 10.0,
    history: options.History = None,
    curve: options.Curve = None,
    certify: options.Certify = False,
    jobs: options.Jobs = 1,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Learn to label sequences: chunks, entities, parts of speech, segments.

    The last column holds the labels, the others what is known about a token:

        partwise train tag train.txt --dev dev.txt -o model
    """
    from partwise.tasks.tagging.estimator import Tagger
    from partwise.tasks.tagging.training_data import Parts, Source

    settings = Settings(loss, c, solver, epochs, tol, patience, average, seed, dtype.value, jobs, stream, l1_ratio)
    run = Run("tag", output, settings, resume, checkpoint_every, history, curve, as_json, quiet)
    source = Source(separator, encoding, comment, label_column, unknown_label, either, scheme, max_labels)
    tagger: Any
    if start_from is None:
        names = columns.split(",") if columns else None
        shape = {"order": order, "hidden": hidden, "min_count": min_count, "hash_bits": hash_bits, "columns": names}
        tagger = Tagger(**settings.parameters(), **shape)
    else:
        tagger = warm(load_tagger(start_from), settings)
    tagger._check_parameters()

    data = source.stream(file, chunk_megabytes) if stream else source.read(file)
    first = data.first if isinstance(data, Parts) else data
    held_out = None if dev is None else source.read(dev, like=first)
    if start_from is None:
        tagger.templates = source.templates(templates, add_template, first)
    tagger.constraints = source.constraints(constraints, forbid, force, first)
    run.metric = "f1" if first.scheme else "accuracy"
    tagger.validation_metric = "f1" if first.scheme else "error"
    run.say(data.describe())
    with run.fitting(tagger, certify):
        follow: dict[str, Any] = {
            "validation": None if held_out is None else (held_out.columns, held_out.labels),
            "checkpoint": run.checkpoint,
        }
        if isinstance(data, Parts):
            tagger.fit_stream(data, data.column, labels=source.labels, **follow)
        else:
            tagger.fit(data.columns, data.labels, **follow)
    tagger.given_scheme_ = first.scheme if scheme not in (None, first.scheme) else None
    tagger.templates = None  # the encoder knows; a path would mean nothing on another machine
    about = {
        "examples": data.n_sentences,
        "tokens": data.n_tokens,
        "labels": len(tagger.classes_),
        "features": tagger.n_features_in_,
        "scheme": first.scheme,
    }
    run.finish(tagger, about, None if held_out is None else lambda: score(tagger, held_out))


def warm(tagger: Any, settings: Settings) -> Any:
    """A trained model, to go on from with these settings."""
    for name, value in settings.parameters().items():
        setattr(tagger, name, value)
    tagger.warm_start = True
    return tagger


def score(tagger: Any, held_out: Any) -> dict[str, Any]:
    """Scores of the finished model on held-out data."""
    from partwise.metrics import report_coded

    truth = held_out.labels
    if truth.is_partial:
        return {"accuracy": tagger.score(held_out.columns, truth)}
    codes = tagger.predict_codes(held_out.columns)
    report = report_coded(truth.codes, codes, held_out.columns.starts, truth.distinct, tagger.classes_.tolist())
    return {key: value for key, value in report.to_dict().items() if key != "types"}
