"""``partwise train tag`` and what follows: from a column file to a model that labels sequences."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from partwise.tasks.common import command_options as common
from partwise.tasks.common.command import Command, Seconds, Told
from partwise.tasks.common.command_options import FEATURES, FILES, LABELS, LEARNING, OUTPUT, WEIGHTS, Refusal, Training, option

COMPARING, WHY = "Comparing", "Why a token got its label"


def read_separator(text: str) -> str | None:
    """What a user means by a separator; shells make it hard to type a tab."""
    return {"tab": "\t", "\\t": "\t", "space": " ", "blank": None, "": None}.get(text, text)


@dataclass
class ColumnFormat:
    """How a column file is written: of all verbs."""

    separator: str | None = option(
        FILES,
        "What stands between columns; 'tab' for a tab. (default: any run of blanks and tabs)",
        "--separator",
        "-s",
        read=read_separator,
    )
    comment: str | None = option(FILES, "Lines that begin with it are left out.")


@dataclass
class Options(ColumnFormat, common.Grouped, common.Options):
    """Of ``train tag``."""

    label_column: int | None = option(FILES, "Column of the labels, from 0; negative: from the last. (default: the last one)")
    templates: str | None = option(
        FEATURES,
        "How features are made: 'phrases' or 'chunking' (for words and parts of speech), 'words', 'ner', a template file (ours "
        "or of CRF++), or 'auto': by the columns there are. (default: auto)",
        "--templates",
        "-t",
    )
    add_template: list[str] = option(FEATURES, "One more, say 'suffix3(w[0])'. May be given again.", default=[])
    columns: str | None = option(
        FEATURES, "Names of the columns, for templates. (default: w,pos)", read=lambda text: text.split(",")
    )
    min_count: int | None = option(FEATURES, "Leave out features that occur fewer times.", min=1)
    hash_bits: int | None = option(
        FEATURES, "Number features by hashing, into 2^bits, instead of keeping a vocabulary.", min=1, max=30
    )
    order: int | None = option(FEATURES, "How many previous labels a transition looks at.", min=1)
    hidden: int | None = option(FEATURES, "Hidden states of each label, for labels that behave in several ways.", min=1)
    use_start: bool | None = option(FEATURES, "Whether the first label has weights of its own.")
    use_stop: bool | None = option(FEATURES, "Whether the last label has weights of its own.")
    use_transitions: bool | None = option(FEATURES, "Whether pairs of labels have weights.")
    label_pairs: str | None = option(
        FEATURES, "Pairs of labels that templates B with %x have weights for: those observed in the training data, or all."
    )
    stream: bool = option(
        LEARNING, "Read the file anew in every epoch, part by part: for files larger than memory.", "--stream", default=False
    )
    chunk_megabytes: float = option(
        LEARNING, "With --stream: size of a part. Never changes the result.", min=0.000001, default=16.0
    )
    validation_metric: str | None = option(
        LEARNING, "What --dev judges by: f1 (of chunks), error (of tokens), or auto: f1 where labels are those of chunks."
    )
    class_weight: bool | None = option(
        LABELS, "Make mistakes with rare labels count more.", "--balanced", read=lambda on: "balanced" if on else None
    )
    scheme: str | None = option(
        LABELS, "Learn chunk labels in this scheme: iob1, iob2, iobes or bilou. Predictions are converted back."
    )
    constraints: str | None = option(
        LABELS, "Forbid what this scheme does not have, in training and later; auto: the labels' own."
    )
    forbid: list[str] = option(
        LABELS, "Forbid a transition, 'O I-NP', from '(begin)', or to '(end)'. May be given again.", default=[]
    )
    force: list[str] = option(LABELS, "After this label only that one: 'B-NP I-NP'. Given again, any of those.", default=[])
    unknown_label: str | None = option(LABELS, "The cell that stands for an unknown label, say '?'.")
    either: str | None = option(LABELS, "What stands in a cell between labels any of which may be right, say '|'.")
    max_labels: int = option(LABELS, "Refuse a column with more of them: it is probably not one of labels.", default=2000)


@dataclass
class Predict(ColumnFormat, common.Grouped, common.Predict):
    """Of ``predict``: lines that are comments are written as they are."""

    kbest: int | None = option(OUTPUT, "The k best labellings, as crf_test -n prints them.", min=1)
    marginals: bool = option(OUTPUT, "Append label/probability too.", "--marginals", default=False)
    all_marginals: bool = option(OUTPUT, "Append label/probability of every label too.", "--all-marginals", default=False)
    calibrate: str | None = option(
        OUTPUT, "Held-out file with labels to fit probabilities to, for models trained with a margin loss."
    )
    known_column: int | None = option(LABELS, "Column of labels that are known already: they are kept.")
    known_unknown: str | None = option(LABELS, "The cell in --known-column that stands for an unknown label.")
    scheme: str | None = option(LABELS, "Write chunk labels in this scheme. (default: that of the training data)")


@dataclass
class Evaluate(ColumnFormat, common.Grouped, common.Evaluate):
    """Of ``evaluate``."""

    label_column: int | None = option(
        FILES, "Column of the true labels, from 0; negative: from the last. (default: as in training)"
    )
    predicted_column: int | None = option(FILES, "Score this column of the file instead of a model's answers.")
    intervals: bool = option(None, "Bootstrap confidence intervals, over sentences.", default=True)
    resamples: int = option(None, "Draws for intervals and tests.", min=1, default=1000)
    level: float = option(None, "Of the intervals.", min=0.01, max=0.9999, default=0.95)
    seed: int = option(None, "Of the draws.", min=0, default=0)
    baseline: Path | None = option(COMPARING, "Another model: is the difference significant?")
    baseline_column: int | None = option(COMPARING, "A column with another system's labels, likewise.")
    test: str = option(COMPARING, "randomisation (approximate) or bootstrap (paired).", default="randomisation")
    conlleval: bool = option(None, "Print what conlleval prints, to the letter.", "--conlleval", default=False)
    confusion: bool = option(None, "Which labels, and entities, are taken for which.", "--confusion", default=False)
    partial: bool = option(None, "Entities found in part: strict, exact, partial, type.", "--partial", default=False)
    picture: Path | None = option(None, "Draw which entities are taken for which, as SVG, PNG or PDF.")
    scheme: str | None = option(LABELS, "Chunk labels of the file are in this scheme. (default: that of the training data)")


@dataclass
class Inspect(ColumnFormat, common.Inspect):
    """Of ``inspect``."""

    label: str | None = option(WEIGHTS, "With --top: of this label only.")
    features: str | None = option(WEIGHTS, "Features whose name this regular expression finds.")
    most: int = option(WEIGHTS, "With --features: at most so many, those of largest weights.", min=1, default=20)
    transitions: bool = option(WEIGHTS, "Weights of a label after another.", "--transitions", default=False)
    explain: str | None = option(WHY, "Column file that holds the token.")
    line: int | None = option(WHY, "The line of the token, from 1.", min=1)
    sentence: int | None = option(WHY, "Its sentence, from 0, if not --line.", min=0)
    token: int | None = option(WHY, "Its place in the sentence, from 0.", min=0)
    against: str | None = option(WHY, "The label to compare with. (default: the runner-up)")
    encoding: str = option(FILES, "Of the text.", default="utf-8")


@dataclass
class Suspects(ColumnFormat, common.Suspects):
    """Of ``suspects``."""

    train: bool = option(
        LEARNING, "Without a model, of a column file: train on the file itself, in folds.", "--train", default=False
    )
    loss: str = option(LEARNING, "With --train: the loss.", default="crf")
    C: float | None = option(LEARNING, "With --train: weight of the losses against the regulariser.", "-C")
    label_column: int | None = option(
        FILES, "Column of the labels, from 0; negative: from the last. (default: as in training, or the last)"
    )
    unknown_label: str | None = option(LABELS, "The cell that stands for an unknown label, say '?'.")


@dataclass
class ReportOptions(ColumnFormat, common.Grouped, common.ReportOptions):
    """Of ``report``."""

    label_column: int | None = option(
        FILES, "Column of the true labels, from 0; negative: from the last. (default: as in training)"
    )


class Tag(Command):
    """Chunks, entities, parts of speech, segments."""

    file = "Column file, a token a line, a blank line after each sentence; gz; '-' is stdin."
    details = "The last column holds the labels, the others what is known about a token."
    example = "partwise train tag train.txt --dev dev.txt -o model"
    options = Options
    predict_options = Predict
    evaluate_options = Evaluate
    inspect_options = Inspect
    suspects_options = Suspects
    report_options = ReportOptions
    reading = ("separator", "comment", "encoding", "label_column", "unknown_label")
    forms = dict.fromkeys(("columns", "jsonl"))  # type: ignore[assignment]  # written part by part
    between = b"\n\n"
    tiny = "chunks.txt", "the D B-NP\ndog N I-NP\nbarks V B-VP\n\na D B-NP\ncat N I-NP\n\nit P B-NP\nsleeps V B-VP\n. . O\n"
    usual = (
        ("--templates", "words"),
        ("--order", "2"),
        ("--hidden", "2"),
        ("--constraints", "auto"),
        ("--scheme", "iobes"),
        ("--hash-bits", "10"),
        ("--min-count", "2"),
        ("--balanced",),
        ("--unknown-label", "O"),
        ("--loss", "crf", "--unknown-label", "O"),
        ("--stream",),
        ("--hidden", "8", "--l1-ratio", "1", "-C", "0.001"),  # next to nothing but zeros: weights that are read as lists
    )

    def inputs(self, options: Any) -> dict[str, Any]:
        from partwise.text.templates import SETS

        names = ("templates", "calibrate", "baseline", "explain", "truth")
        given = {f"--{name}": getattr(options, name, None) for name in names}
        return {name: path for name, path in given.items() if path not in (*SETS, "auto")}

    def start(self, file: str, dev: str | None, options: Options, make: Callable[..., Any]) -> Training:
        from partwise.tasks.tagging.files import Source, with_more_templates
        from partwise.tasks.tagging.held_out import metric_for

        tagger, source = make(), Source.of(options)
        tagger.validation_metric = options.validation_metric or "auto"  # a score: not what an older model was judged by
        if tagger.validation_metric not in ("auto", "f1", "error"):
            raise Refusal(f"--validation-metric must be auto, f1 or error. Got {tagger.validation_metric!r}.")
        data: Any = source.stream(file, options.chunk_megabytes) if options.stream else source.read(file)
        first = data.first if options.stream else data
        held_out = None if dev is None else source.read(dev, like=first)
        if options.add_template:
            tagger.templates = with_more_templates(options.templates, options.add_template, first)
        if options.constraints or options.forbid or options.force:
            tagger.constraints = source.constraints(options.constraints, options.forbid, options.force, first)
        names = first.labels.distinct if held_out is None else held_out.labels.distinct
        metric = metric_for(tagger.validation_metric, first.labels.learn(first.columns.place), names)

        def fit(checkpoint: Any, weight: Any = None) -> None:
            validation = None if held_out is None else (held_out.columns, held_out.labels)
            tagger.keep_held_out = True  # it is scored in the end, without being encoded again
            if options.stream:
                tagger.fit_stream(data, data.column, labels=source.labels, validation=validation, checkpoint=checkpoint)
            else:
                tagger.fit(data.columns, data.labels, weight, validation=validation, checkpoint=checkpoint)
            tagger.given_scheme_ = first.scheme if options.scheme not in (None, first.scheme) else None
            tagger.templates = None  # the encoder knows; a path would mean nothing on another machine

        def about() -> dict[str, Any]:
            return {
                "examples": data.n_sentences,
                "tokens": data.n_tokens,
                "labels": len(tagger.classes_),
                "features": tagger.n_features_in_,
                "scheme": first.scheme,
            }

        score = None if held_out is None else lambda: scores_of(tagger, held_out)
        judged_by = "f1" if metric == "f1" else "accuracy"
        return Training(tagger, fit, data.describe(), about, score, judged_by, n_examples=data.n_sentences)

    def packing(self, files: Any, options: Options, make: Callable[..., Any], jobs: int, say: Callable[[str], Any]) -> Any:
        from partwise.tasks.tagging.packing import packing

        return packing(files, options, make, jobs, say)

    def read(self, file: str, options: Any) -> Any:
        from partwise.tasks.tagging.files import Source

        return Source.of(options).columns(file)

    def count(self, data: Any) -> dict[str, int]:
        return {"sequences": data.n_sentences, "tokens": data.n_tokens}

    def read_to_judge(self, model: Any, file: str, options: Any) -> Any:
        from partwise.tasks.tagging.files import Source

        return dataclasses.replace(Source.of(options), label_column=model.label_column_).read(file)

    def validation_of(self, model: Any, held_out: Any) -> Any:
        return held_out.columns, held_out.labels

    def scores_held_out(self, model: Any, held_out: Any) -> dict[str, Any]:
        model.keep_held_out = True
        model._judge_by((held_out.columns, held_out.labels), model._pack_columns(held_out.columns.take([]), None))
        return scores_of(model, held_out)

    def like(self, model: Any, more: dict[str, Any]) -> Any:
        made = super().like(model, more)
        made.templates = getattr(model.encoder_, "lines", None)
        return made

    def reading_like(self, model: Any) -> dict[str, Any]:
        from partwise.tasks.tagging.answers import Answers

        found = {} if model.label_column_ is None else {"label_column": model.label_column_}
        return found if model.given_scheme_ is None else {**found, "scheme": Answers(model).own}

    def predict(self, model: Any, file: str, options: Any, write: Callable[[bytes], Any], seconds: Seconds) -> dict[str, Any]:
        from partwise.tasks.tagging.labelled_text import label_file

        self.form(options)
        require_columns(model)
        counts = label_file(model, file, options, write, seconds)
        took = sum(seconds[stage] for stage in ("read", "label", "write"))  # text to text, once the model is loaded
        return {**counts, "tokens_per_second": counts["tokens"] / max(took, 1e-9)}

    def evaluate(self, model: Any, file: str, options: Any, seconds: Seconds) -> Told:
        from partwise.tasks.tagging.evaluation import evaluate

        if options.baseline is not None and options.baseline_column is not None:
            raise Refusal("--baseline and --baseline-column: give one of them.")
        baseline = None if options.baseline is None else load_baseline(options.baseline, model)
        if model is not None:
            require_columns(model)
        return evaluate(model, baseline, file, options, seconds)

    def stands_alone(self, options: Any) -> bool:
        return getattr(options, "predicted_column", None) is not None or getattr(options, "train", False)

    def inspect(self, model: Any, options: Any) -> Told:
        from partwise.tasks.tagging.inspection import inspect

        if options.explain is not None:
            require_columns(model)
        return inspect(model, options)

    def suspects(self, model: Any, file: str, options: Any, seconds: Seconds) -> Any:
        from partwise.tasks.common.command_options import parameters_of
        from partwise.tasks.tagging.estimator import SequenceLabeler
        from partwise.tasks.tagging.suspect_list import list_suspects

        if model is None:
            model = SequenceLabeler(**parameters_of(options, SequenceLabeler))
        require_columns(model)
        return list_suspects(model, file, options, seconds)

    def report(self, model: Any, file: str, options: Any) -> Any:
        from partwise.tasks.tagging.model_report import report

        require_columns(model)
        return report(model, file, options)

    def read_labels(self, file: bytes, options: Any) -> tuple[Any, Any]:
        from partwise.tasks.tagging.files import Source, column_called

        columns = Source.of(options).columns(file)
        column = column_called("the column of labels,", options.label_column, columns)
        cells = [[cells[k] for k in codes.tolist()] for cells, codes in zip(columns.cells, columns.codes, strict=True)]
        return (columns.starts.tolist(), cells[:column], cells[column + 1 :]), cells[column]


def require_columns(model: Any) -> None:
    """Refuse a model whose tokens are not lines of column files."""
    encoder = getattr(model, "encoder_", None)
    if encoder is not None and encoder.kind != "columns":
        raise Refusal(f"The model was trained on {encoder.kind}, not on column files. Use it from Python: partwise.load(...).")


def load_baseline(path: Path, model: Any) -> Any:
    """Another model of the same kind."""
    from partwise.tasks.common import model_file
    from partwise.tasks.tagging.estimator import SequenceLabeler

    baseline = model_file.load(path, plain=True)
    if not isinstance(baseline, SequenceLabeler):
        raise Refusal(f"--baseline {path} holds a {type(baseline).__name__}, which does not label sequences.")
    require_columns(baseline)
    baseline.n_jobs = getattr(model, "n_jobs", None)
    return baseline


def scores_of(tagger: Any, data: Any) -> dict[str, Any]:
    """Scores of the finished model on the data that it was stopped by."""
    from partwise.tasks.tagging.report import report_coded
    from partwise.tasks.tagging.scores import acceptable_share

    held_out, truth = tagger.held_out_, data.labels
    del tagger.held_out_
    codes = held_out.answers(tagger._kept_weights, tagger.n_jobs)
    if truth.is_partial:
        return {"accuracy": acceptable_share(truth, codes, tagger.classes_)}
    report = report_coded(truth.codes, codes, data.columns.starts, truth.distinct, tagger.classes_.tolist())
    return {key: value for key, value in report.to_dict().items() if key != "types"}


COMMAND = Tag()
