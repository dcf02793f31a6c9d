"""`Command`: a task on the command line. What all tasks do alike is written here once; a task fills in what is its own.

Neither typer nor scikit-learn is imported here: `partwise.cli` makes verbs of the commands that the registry knows.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from partwise.tasks.common.command_options import Evaluate, Inspect, Options, Predict, Refusal, ReportOptions, Suspects, Training

DEV_FORMAT = ("encoding", "separator", "comment")  #: options that may be needed to read held-out data


class Seconds(dict[str, float]):
    """How long each stage took: call it at the end of one."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.clock, self.begun = clock, clock()
        self.marked = self.begun

    def __call__(self, stage: str) -> None:
        now = self.clock()
        self[stage] = self.get(stage, 0.0) + now - self.marked
        self.marked = now

    def total(self) -> dict[str, float]:
        """With the sum of all."""
        return {**self, "total": self.clock() - self.begun}


class Told(NamedTuple):
    """An answer twice: for machines, and for people."""

    found: dict[str, Any]
    text: Any  #: a string, or anything that rich can print


def fitted(training: Training, weight: Any = None) -> Any:
    """The estimator, trained: it knows how its file was read. An interruption is no model."""
    estimator = training.estimator
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*fit was interrupted")
        training.fit(checkpoint=None, weight=weight)
    if estimator.result_.status == "interrupted":
        raise KeyboardInterrupt
    estimator.training_ = training.about()
    return estimator


class Command:
    """What a task can do on the command line; each has one, called ``COMMAND``, in its module ``command``."""

    file: ClassVar[str]  #: what ``train`` is given, in words
    details: ClassVar[str]  #: a paragraph for ``--help``
    example: ClassVar[str]  #: a command to show there
    options: ClassVar[type[Options]] = Options  #: of ``train``
    predict_options: ClassVar[type[Predict]] = Predict
    evaluate_options: ClassVar[type[Evaluate]] = Evaluate
    inspect_options: ClassVar[type[Inspect]] = Inspect
    suspects_options: ClassVar[type[Suspects] | None] = None  #: None: it cannot
    report_options: ClassVar[type[ReportOptions]] = ReportOptions
    reading: ClassVar[tuple[str, ...]] = ()  #: those of `options` that say how to read a file whose labels can be corrected
    judged_file: ClassVar[str]  #: the `JudgedFile` in the task's module ``review``
    reader: ClassVar[str]  #: the function of the task's module ``files`` that `read` calls
    tiny: ClassVar[tuple[str, str]]  #: name and text of `workload`, made up
    usual: ClassVar[tuple[tuple[str, ...], ...]] = ()  #: options of ``train`` that wheels bring compiled code for, beside none
    between: ClassVar[bytes | None] = None  #: what goes between the texts of two files that are read as one; None: they cannot
    forms: ClassVar[Mapping[str, Callable[[Any, Any], str | bytes]]]  #: formats of answers; the first is the usual one

    def module(self, role: str) -> Any:
        """Another module of the task: imported when it is needed, so that ``partwise --help`` is quick."""
        return importlib.import_module(f"{type(self).__module__.rpartition('.')[0]}.{role}")

    # -- training -----------------------------------------------------------------------------------------------------

    def start(self, file: str, dev: str | None, options: Any, make: Callable[..., Any]) -> Training:
        """Read the files, and make the estimator: ``make(**parameters)`` adds all that was asked for."""
        raise NotImplementedError

    def start_packed(self, file: str, dev: str | None, options: Any, make: Callable[..., Any]) -> Training:
        """`start`, where the file is a packed corpus: how it was read was decided when it was packed."""
        from partwise.tasks.common.packed_corpus import PackedCorpus

        corpus = PackedCorpus(file)
        if corpus.task.command is not self:
            raise Refusal(f"{file} was packed for 'partwise train {corpus.task.verb}'.")
        model = make()
        for field in dataclasses.fields(options):
            plain = field.default_factory() if field.default_factory is not dataclasses.MISSING else field.default
            if field.name not in (*model.parameter_names(), *DEV_FORMAT) and getattr(options, field.name) != plain:
                name = field.name.replace("_", "-")
                raise Refusal(f"--{name} was decided when {file} was packed: leave it out, or pack again with it.")
        held_out = None if dev is None else self.read_to_judge(corpus.model(), dev, options)
        about = {key: value for key, value in corpus.manifest["about"].items() if key != "describe"}
        said = f"{corpus.manifest['about'].get('describe', '')}, packed in {corpus.in_shards}".lstrip(", ")
        metric = getattr(self, "metric", "accuracy")
        made = self.training(model, corpus, held_out, said, lambda: about, metric=metric)
        if held_out is None:
            return made
        validation = self.validation_of(corpus.model(), held_out)

        def fit(checkpoint: Any, weight: Any = None) -> None:
            model.fit(corpus, sample_weight=weight, validation=validation, checkpoint=checkpoint)

        return made._replace(fit=fit, score=lambda: self.scores_held_out(model, held_out))

    def validation_of(self, model: Any, held_out: Any) -> Any:
        """Held-out data as the estimator takes them."""
        return held_out

    def scores_held_out(self, model: Any, held_out: Any) -> dict[str, Any]:
        """Scores of held-out data that were read as training data are."""
        return self.scores(model, held_out)

    def packing(self, files: Sequence[str], options: Any, make: Callable[..., Any], jobs: int, say: Callable[[str], Any]) -> Any:
        """How to pack files part by part, a `Packing`; None: they are packed as `start` reads them, in memory."""
        return None

    def joined(self, files: Sequence[str]) -> Any:
        """Several files as one, for `start`: their texts one after the other."""
        if len(files) == 1:
            return files[0]
        if self.between is None:
            raise Refusal(f"Files of this task cannot be read one after the other as one. Give one file, not {len(files)}.")
        from partwise.files.text_source import open_bytes, read_bytes

        texts = []
        for file in files:
            with open_bytes(file) as (stream, name):
                texts.append(read_bytes(stream, -1, name))
        return self.between.join(texts)

    def inputs(self, options: Any) -> dict[str, Any]:
        """Files that the options name."""
        return {"--templates": getattr(options, "template_file", None)}

    def training(
        self, model: Any, data: Any, held_out: Any, describe: str, about: Callable[[], dict[str, Any]], **more: Any
    ) -> Training:
        """What `start` returns where the estimator takes the data as they were read, and the held-out data likewise."""
        return Training(
            model,
            lambda checkpoint, weight=None: model.fit(data, sample_weight=weight, validation=held_out, checkpoint=checkpoint),
            describe,
            about,
            None if held_out is None else lambda: self.scores(model, held_out),
            **{"n_examples": len(data), **more},
        )

    def train_again(self, model: Any, file: str, reading: Mapping[str, Any]) -> Training:
        """What it takes to train another model as this one was, on a file; `reading`: options that say how it is read."""
        own = {field.name for field in dataclasses.fields(self.options)}
        given = {name: value for name, value in reading.items() if name in own and value is not None}
        return self.start(
            file, None, self.options(**{**self.reading_like(model), **given}), lambda **more: self.like(model, more)
        )

    def like(self, model: Any, more: dict[str, Any]) -> Any:
        """An estimator with the parameters of the model, where it has any, and more."""
        return type(model)(**{**more, **{name: value for name, value in model.parameters().items() if value is not None}})

    def reading_like(self, model: Any) -> dict[str, Any]:
        """Options of ``train`` that a model remembers: how its file was read."""
        return {}

    def workload(self, folder: Path) -> Path:
        """A tiny file to train on, written there: what tests of all tasks use."""
        name, text = self.tiny
        path = folder / name
        path.write_text(text)
        return path

    # -- reading ------------------------------------------------------------------------------------------------------

    def read(self, file: str, options: Any) -> Any:
        """The data in a file."""
        return getattr(self.module("files"), self.reader)(file, options.encoding)

    def read_for(self, model: Any, file: str, options: Any) -> Any:
        """The data in a file, for a model to answer."""
        return self.read(file, options)

    def count(self, data: Any) -> dict[str, int]:
        """How much it is: ``{"sequences": ..., "tokens": ...}``, or what they are called there."""
        raise NotImplementedError

    # -- the other verbs ----------------------------------------------------------------------------------------------

    def form(self, options: Any) -> Callable[[Any, Any], str | bytes]:
        """The format that is asked for."""
        wanted = options.form or next(iter(self.forms))
        if wanted not in self.forms:
            raise Refusal(f"--format {wanted}: the answers of this model are written as {', '.join(self.forms)}.")
        return self.forms[wanted]

    def predict(self, model: Any, file: str, options: Any, write: Callable[[bytes], Any], seconds: Seconds) -> dict[str, Any]:
        """Write the model's answers; returns how much it was."""
        form = self.form(options)
        data = self.read_for(model, file, options)
        seconds("read")
        made = form(model, data)
        seconds("label")
        write(made if isinstance(made, bytes) else made.encode(options.encoding))
        seconds("write")
        counts = self.count(data)
        name, number = list(counts.items())[-1]  # of the smallest things that are counted
        return {**counts, f"{name}_per_second": number / max(seconds["label"], 1e-9)}

    def scores(self, model: Any, data: Any) -> dict[str, Any]:
        """The task's metrics under their usual names."""
        raise NotImplementedError

    def table(self, found: dict[str, Any]) -> str:
        """The same for people."""
        raise NotImplementedError

    def evaluate(self, model: Any, file: str, options: Any, seconds: Seconds) -> Told:
        """Score a model by a file that has the truth."""
        data = self.read_for(model, file, options)
        seconds("read")
        found = self.scores(model, data)
        seconds("label")
        return Told({**self.count(data), **found}, self.table(found))

    def stands_alone(self, options: Any) -> bool:
        """Whether ``evaluate`` or ``suspects`` can do what the options ask for with a file alone, without a model."""
        return False

    def look(self, model: Any, top: int | None, picture: Path | None) -> tuple[dict[str, Any], str]:
        """What the model is and has learnt: for machines, for people; and drawn, if there is a name for the picture."""
        return self.module("inspection").look(model, top, picture)

    def inspect(self, model: Any, options: Any) -> Told:
        """What the model is, and what it has learnt."""
        found, text = self.look(model, options.top, options.picture)
        return Told(found if options.picture is None else {**found, "picture": str(options.picture)}, text)

    def read_to_judge(self, model: Any, file: str, options: Any) -> Any:
        """The data in a file whose labels are to be judged."""
        return self.read_for(model, file, options)

    def suspects(self, model: Any, file: str, options: Any, seconds: Seconds) -> Any:
        """Labels of a file that are probably wrong, worst first."""
        from partwise.tasks.common.judged_file import list_suspects

        data = self.read_to_judge(model, file, options)
        truth = None if options.truth is None else self.read_to_judge(model, options.truth, options)
        seconds("read")
        return list_suspects(getattr(self.module("review"), self.judged_file), model, data, truth, options)

    def report(self, model: Any, file: str, options: Any) -> Any:
        """All there is to tell of a model's answers to a file that has the truth: a `ModelReport`."""
        try:
            module = self.module("model_report")
        except ModuleNotFoundError:
            raise Refusal("report: this task does not say yet what there is to tell of its models.") from None
        return module.report(model, self.read_for(model, file, options), options)

    def read_labels(self, file: bytes, options: Any) -> tuple[Any, Any]:
        """What ``repair`` may not change in a file, and what it may: each comparable by ``==``."""
        raise NotImplementedError

    def check_repaired(self, before: bytes, after: bytes, options: Any) -> None:
        """Refuse a corrected file that is not the same but for its labels."""
        kept, _ = self.read_labels(before, options)
        try:
            left, _ = self.read_labels(after, options)
        except ValueError as error:  # heads in a circle, brackets that do not match
            told = str(error).removeprefix("<bytes>, ")
            raise Refusal(f"With these decisions the file could not be read: {told} Nothing was written.") from None
        if kept != left:
            raise Refusal("These decisions would change more than labels. Nothing was written.")


def json_lines(rows: Iterable[dict[str, Any]]) -> str:
    """One JSON object a line."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def written_lines(path: Path) -> list[str]:
    """The lines of a file of templates, say, without blank ones and comments."""
    lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
    found = [line for line in lines if line and not line.startswith("#")]
    if not found:
        raise Refusal(f"{path}: there is nothing in it but blank lines and comments.")
    return found
