"""``partwise train segment`` and what follows: from a column file with chunk labels to a model of segments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from partwise.tasks.common import command_options as common
from partwise.tasks.common.command import Command, Seconds, json_lines
from partwise.tasks.common.command_options import FEATURES, FILES, LABELS, OUTPUT, Refusal, Training, option, percent


def read_separator(text: str) -> str | None:
    """What a user means by a separator; shells make it hard to type a tab."""
    return {"tab": "\t", "\\t": "\t", "space": " ", "blank": None, "": None}.get(text, text)


@dataclass
class ColumnReading:
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
class Options(ColumnReading, common.Grouped, common.Options):
    """Of ``train segment``."""

    label_column: int | None = option(FILES, "Column of the labels, from 0; negative: from the last. (default: the last one)")
    unknown_label: str | None = option(LABELS, "The cell that stands for an unknown label, say '?'.")
    templates: str | None = option(
        FEATURES,
        "How features of tokens are made: 'phrases' or 'chunking' (for words and parts of speech), 'words', 'ner', a template "
        "file (ours or of CRF++), or 'auto': by the columns there are. (default: auto)",
        "--templates",
        "-t",
    )
    columns: str | None = option(
        FEATURES, "Names of the columns, for templates. (default: w,pos)", read=lambda text: text.split(",")
    )
    min_count: int | None = option(FEATURES, "Leave out features that occur fewer times.", min=1)
    dictionary_file: list[str] = option(
        FEATURES,
        "Phrases, one a line, or a name, a tab and a phrase: segments that are one of them have a feature. May be given again.",
        "--dictionary",
        default=[],
    )
    learn_phrases: bool | None = option(FEATURES, "Whether segments of the training data make a dictionary, too.")
    use_ends: bool | None = option(FEATURES, "Whether the last token of a segment has weights of its own.")
    max_length: int | None = option(LABELS, "The longest segment there may be. (default: as in the training data)", min=1)
    hidden: int | None = option(FEATURES, "Hidden states of each label, for labels whose segments come in several kinds.", min=1)
    cost: str | None = option(
        LABELS, "Of losses with a cost: what is counted, tokens (label or beginning wrong), labels or boundaries."
    )


@dataclass
class Predict(ColumnReading, common.Grouped, common.Predict):
    """Of ``predict``."""

    kbest: int | None = option(OUTPUT, "With --format jsonl: the k best segmentations.", min=1)


@dataclass
class Evaluate(ColumnReading, common.Grouped, common.Evaluate):
    """Of ``evaluate``."""

    label_column: int | None = option(
        FILES, "Column of the true labels, from 0; negative: from the last. (default: as in training)"
    )


@dataclass
class Suspects(ColumnReading, common.Suspects):
    """Of ``suspects``."""

    label_column: int | None = option(
        FILES, "Column of the labels, from 0; negative: from the last. (default: as in training, or the last)"
    )
    unknown_label: str | None = option(LABELS, "The cell that stands for an unknown label, say '?'.")


@dataclass
class ReportOptions(ColumnReading, common.Grouped, common.ReportOptions):
    """Of ``report``."""

    label_column: int | None = option(
        FILES, "Column of the true labels, from 0; negative: from the last. (default: as in training)"
    )


# -- answers ----------------------------------------------------------------------------------------------------------


def as_columns(model: Any, text: Any) -> bytes:
    """The text with one more column, of labels."""
    found = model.predict_labels(text)
    return text.columns.append_column(found.codes, [str(label) for label in found.distinct])


def segment_of(text: Any, i: int, segment: tuple[str, int, int]) -> dict[str, Any]:
    """For JSON."""
    label, a, b = segment
    return {"label": label, "begin": a, "end": b, "words": text.words(i)[a:b]}


def as_jsonl(model: Any, text: Any) -> str:
    """One JSON object a sentence: its words, and segments."""
    found = model.predict_segments(text)
    return json_lines(
        {"words": text.words(i), "segments": [segment_of(text, i, one) for one in own]} for i, own in enumerate(found)
    )


def as_candidates(model: Any, text: Any, k: int) -> str:
    """The same with the k best."""
    found = model.predict_kbest(text, k)
    return json_lines(
        {
            "words": text.words(i),
            "best": [{"score": value, "segments": [segment_of(text, i, one) for one in own]} for own, value in ranked],
        }
        for i, ranked in enumerate(found)
    )


class SegmentCommand(Command):
    """Segments: entities, chunks."""

    file = "Column file with chunk labels, a token a line, a blank line after each sentence; gz; '-' is stdin."
    details = "The last column holds chunk labels (B-X, I-X, O, or another scheme); segments are scored as wholes."
    example = "partwise train segment train.txt --dev dev.txt -o model"
    options = Options
    predict_options = Predict
    evaluate_options = Evaluate
    suspects_options = Suspects
    report_options = ReportOptions
    reading = ("separator", "comment", "encoding", "label_column", "unknown_label")
    reader = "read_segments"
    forms = {"columns": as_columns, "jsonl": as_jsonl}
    tiny = (
        "segments.txt",
        "the D B-NP\ndog N I-NP\nbarks V B-VP\n\na D B-NP\ncat N I-NP\n\nthe D B-NP\ncat N I-NP\nsleeps V B-VP\n. . O\n",
    )
    usual = (
        ("--templates", "ner"),
        ("--no-use-ends",),
        ("--unknown-label", "O"),
        ("--hidden", "2"),
        ("--loss", "crf", "--unknown-label", "O"),
    )

    def inputs(self, options: Any) -> dict[str, Any]:
        from partwise.text.templates import SETS

        given = {"--templates": getattr(options, "templates", None), "--truth": getattr(options, "truth", None)}
        return {name: path for name, path in given.items() if path not in (*SETS, "auto")}

    def start(self, file: str, dev: str | None, options: Options, make: Callable[..., Any]) -> Training:
        from partwise.tasks.segments.files import read_dictionary

        model = make()
        if options.dictionary_file:
            model.dictionary = {}
            for path in options.dictionary_file:
                for name, phrases in read_dictionary(path, options.encoding).items():
                    model.dictionary.setdefault(name, []).extend(phrases)
        data, held_out = self.read(file, options), None if dev is None else self.read(dev, options)

        def about() -> dict[str, Any]:
            model.templates = model.dictionary = None  # the model knows; a path would mean nothing on another machine
            return {
                "examples": len(data),
                "tokens": data.n_tokens,
                "labels": len(model.classes_),
                "features": model.n_features_in_,
                "phrases": 0 if model.phrases_ is None else len(model.phrases_),
                "longest": int(model.limits_.max()),
                "scheme": model.scheme_,
            }

        describe = f"{data.name}: {len(data):,} sentences, {data.n_tokens:,} tokens, labels in column {data.label_column}"
        return self.training(model, data, held_out, describe, about, metric="f1")

    def like(self, model: Any, more: dict[str, Any]) -> Any:
        from partwise.tasks.segments.lexicon import dictionaries_of

        made = super().like(model, more)
        made.templates = model.encoder_.lines
        made.dictionary = dictionaries_of(model.phrases_)
        return made

    def reading_like(self, model: Any) -> dict[str, Any]:
        return {} if model.label_column_ is None else {"label_column": model.label_column_}

    def read(self, file: str, options: Any) -> Any:
        from partwise.tasks.segments.files import read_segments

        wanted = options.label_column
        return read_segments(
            file, options.encoding, options.separator, options.comment, -1 if wanted is None else wanted,
            getattr(options, "unknown_label", None),
        )  # fmt: skip

    def read_for(self, model: Any, file: str, options: Any) -> Any:
        from partwise.tasks.segments.files import read_segments

        how = (file, options.encoding, options.separator, options.comment)
        if not hasattr(options, "label_column"):  # to predict: what labels there may be are not looked at
            return read_segments(*how, None)
        trained_on = -1 if model.label_column_ is None else model.label_column_
        wanted = trained_on if options.label_column is None else options.label_column
        return read_segments(*how, wanted, getattr(options, "unknown_label", None))

    def form(self, options: Any) -> Any:
        made = super().form(options)
        if options.kbest is None:
            return made
        if options.form != "jsonl":
            raise Refusal("--kbest writes several answers to a sentence: it goes with --format jsonl.")
        return lambda model, text: as_candidates(model, text, options.kbest)

    def count(self, data: Any) -> dict[str, int]:
        return {"sequences": len(data), "tokens": data.n_tokens}

    def scores(self, model: Any, data: Any) -> dict[str, Any]:
        counts = model.counts(data)
        types = {kind: {"true": a, "found": b, "right": c} for kind, (a, b, c) in counts.by_kind().items()}
        return {**counts.scores(), "types": types}

    def table(self, found: dict[str, Any]) -> str:
        lines = [f"{found['segments']:,} segments", ""]
        lines += [f"{name:24}{percent(found[name]):>10}" for name in ("precision", "recall", "f1", "accuracy")]
        lines += ["", f"{'label':16}{'precision':>10}{'recall':>10}{'F1':>10}{'segments':>10}"]
        for kind, counts in found["types"].items():
            true, answered, right = counts["true"], counts["found"], counts["right"]
            shares = (right / answered if answered else 0.0, right / true if true else 0.0, 2 * right / max(true + answered, 1))
            lines.append(f"{kind:16}" + "".join(f"{percent(share):>10}" for share in shares) + f"{true:>10,}")
        return "\n".join(lines)

    def suspects(self, model: Any, file: str, options: Any, seconds: Seconds) -> Any:
        from partwise.tasks.common.judged_file import list_suspects
        from partwise.tasks.segments.review import JudgedSegmentFile

        data = self.read_for(model, file, options)
        truth = None if options.truth is None else self.read_for(model, options.truth, options)
        seconds("read")
        reading = {name: getattr(options, name) for name in self.reading} | {"label_column": data.label_column}
        model.dictionary = self.like(model, {}).dictionary
        model.templates = model.encoder_.lines
        return list_suspects(JudgedSegmentFile, model, data, truth, options, reading=reading)

    def read_labels(self, file: bytes, options: Any) -> tuple[Any, Any]:
        data = self.read(file, options)  # type: ignore[arg-type]
        columns, column = data.columns, data.label_column
        cells = [[cells[k] for k in codes.tolist()] for cells, codes in zip(columns.cells, columns.codes, strict=True)]
        return (columns.starts.tolist(), cells[:column], cells[column + 1 :]), cells[column]


COMMAND = SegmentCommand()
