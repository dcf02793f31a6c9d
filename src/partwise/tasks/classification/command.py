"""``partwise train classify`` and what follows: from a table or an svmlight file to a model that classifies its rows."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from partwise.tasks.common import command_options as common
from partwise.tasks.common.command import Command, Seconds, Told, json_lines
from partwise.tasks.common.command_options import FEATURES, FILES, LABELS, OUTPUT, WEIGHTS, Refusal, Training, option, percent

MOST_ROWS = 40  # classes of the table for people, and confusions
LARGE = 10.0  # root mean square of a feature
TINY = """length,colour,class
5.1,red,rose
4.9,red,rose
1.2,white,daisy
1.4,yellow,daisy
3.0,red,tulip
3.1,yellow,tulip
"""


def read_separator(text: str) -> str:
    """What a user means by a separator; shells make it hard to type a tab."""
    return {"tab": "\t", "\\t": "\t", "space": " ", "blank": " "}.get(text, text)


def read_missing(text: str) -> str:
    """What to do about missing values."""
    from partwise.tasks.classification.table_form import FILLS

    if text not in FILLS:
        raise Refusal(f"--missing must be one of {', '.join(FILLS)}. Got {text}.")
    return text


@dataclass
class TableFormat:
    """How a table is written: of all verbs."""

    separator: str | None = option(
        FILES, "What stands between columns; 'tab' for a tab. (default: found out)", "--separator", "-s", read=read_separator
    )


@dataclass
class Options(TableFormat, common.Options):
    """Of ``train classify``."""

    label_column: str | None = option(
        FILES,
        "Column of the classes: its title, or its number from 0; negative: from the last. (default: the one called label, class, "
        "target or y; else the last)",
    )
    header: bool | None = option(FILES, "Whether the first line holds titles. (default: found out)")
    drop: list[str] = option(FILES, "Leave out a column, by title or number. May be given again.", default=[])
    missing: str = option(
        FILES, "Missing values: refuse; zero; or mean, that of the column.", default="refuse", read=read_missing
    )
    scale: bool | None = option(
        FEATURES, "Divide features by their standard deviation, dense ones less their mean; the model remembers it."
    )
    hidden: int | None = option(FEATURES, "Components of each class, for classes that are not one lump.", min=1)
    fit_intercept: bool | None = option(FEATURES, "A constant feature.", "--intercept/--no-intercept")
    intercept_scaling: float | None = option(FEATURES, "Its value: the larger, the less it is regularised.", min=0.0)
    class_weight: bool | None = option(
        LABELS, "Make examples of rare classes count more.", "--balanced", read=lambda on: "balanced" if on else None
    )
    unknown_label: str | None = option(LABELS, "The cell that stands for an unknown class, say '?'.")


@dataclass
class Predict(TableFormat, common.Predict):
    """Of ``predict``."""

    marginals: bool = option(OUTPUT, "Append the probability of the answer too.", "--marginals", default=False)
    all_marginals: bool = option(OUTPUT, "Append the probabilities of all classes too.", "--all-marginals", default=False)
    calibrate: str | None = option(
        OUTPUT, "Held-out file with labels to fit probabilities to, for models trained with a margin loss."
    )


@dataclass
class Evaluate(TableFormat, common.Evaluate):
    """Of ``evaluate``."""

    intervals: bool = option(None, "Bootstrap confidence intervals.", default=True)
    resamples: int = option(None, "Draws for intervals and tests.", min=1, default=1000)
    level: float = option(None, "Of the intervals.", min=0.01, max=0.9999, default=0.95)
    seed: int = option(None, "Of the draws.", min=0, default=0)
    confusion: bool = option(None, "Which labels are taken for which.", "--confusion", default=False)


@dataclass
class Inspect(common.Inspect):
    """Of ``inspect``."""

    label: str | None = option(WEIGHTS, "With --top: of this label only.")


@dataclass
class Suspects(TableFormat, common.Suspects):
    """Of ``suspects``."""


@dataclass
class ReportOptions(TableFormat, common.ReportOptions):
    """Of ``report``."""


# -- examples ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Examples:
    """A file as a model sees it."""

    table: Any
    X: Any
    labels: list[str] | None  #: cells of the column of classes

    def __len__(self) -> int:
        return len(self.table)

    def truth(self, classes: Iterable[Any]) -> list[Any]:
        """The class of each, of the type that these classes are; what is none of them stays as it is written."""
        if self.labels is None:
            raise Refusal(f"{self.table.name}: there is no column of classes to compare with.")
        known = {str(label): label for label in classes}
        return [known.get(plain(cell, known), cell) for cell in self.labels]


def plain(cell: str, known: dict[str, Any]) -> str:
    """A class as the model writes it: "+1" and "1.0" are 1, if that is one."""
    from partwise.tasks.classification.table_form import whole_numbers

    if cell in known:
        return cell
    number = whole_numbers([cell])
    return cell if number is None else str(number[0])


def read_for(model: Any, file: str, options: Any) -> Examples:
    """Read a file as the model was trained to."""
    from partwise.tasks.classification.files import Table, read_examples
    from partwise.tasks.classification.table_form import TableForm, from_dict

    if model.table_ is None:
        raise Refusal("The model was trained on a matrix in Python, not on a file. Use it from Python: partwise.load(...).")
    form: Any = from_dict(model.table_)
    columns = isinstance(form, TableForm)
    table = read_examples(file, options.encoding, options.separator, form.titled if columns else None)
    if columns != isinstance(table, Table):
        kinds = ("a table", "svmlight")
        raise Refusal(f"{table.name} is {kinds[columns]}; the model was trained on {kinds[not columns]}.")
    return Examples(table, form.matrix(table), form.labels(table))


# -- answers ----------------------------------------------------------------------------------------------------------


def as_text(model: Any, data: Examples, options: Any) -> str:
    """The file with one more column, the answers; of svmlight, they take the place of the classes."""
    from partwise.tasks.classification.files import with_columns

    titles, columns = ["predicted"], [model.predict(data.X).tolist()]
    if options.marginals or options.all_marginals:
        p = model.predict_marginals(data.X)
        if options.marginals:
            titles.append("probability")
            columns.append([f"{value:.6f}" for value in p.max(axis=1)])
        if options.all_marginals:
            titles += [f"P({label})" for label in model.classes_.tolist()]
            columns += [[f"{value:.6f}" for value in column] for column in p.T]
    return with_columns(data.table, titles, columns)


def as_jsonl(model: Any, data: Examples, options: Any) -> str:
    """One JSON object a row."""
    rows = [
        {"line": line, "label": label}
        for line, label in zip(data.table.lines.tolist(), model.predict(data.X).tolist(), strict=True)
    ]
    if options.marginals or options.all_marginals:
        names = [str(label) for label in model.classes_.tolist()]
        for row, p in zip(rows, model.predict_marginals(data.X).tolist(), strict=True):
            row["probability"] = max(p)
            if options.all_marginals:
                row["probabilities"] = dict(zip(names, p, strict=True))
    return json_lines(rows)


def as_labels(model: Any, data: Examples, options: Any) -> str:
    """The answers alone, a line each."""
    return "".join(f"{label}\n" for label in model.predict(data.X).tolist())


class Classify(Command):
    """Rows of tables."""

    file = "CSV, TSV or parquet, a row for each example; or svmlight (LIBSVM); gz; '-' is stdin."
    details = (
        "One column holds the classes: the one called label, class, target or y, else the last; --label-column says otherwise. "
        "Columns that do not hold numbers become a feature for each word in them. Features of different units want --scale."
    )
    example = "partwise train classify train.csv --dev dev.csv -o model"
    options = Options
    predict_options = Predict
    evaluate_options = Evaluate
    inspect_options = Inspect
    suspects_options = Suspects
    report_options = ReportOptions
    reading = ("separator", "encoding", "header", "label_column", "drop", "missing")
    forms = {"text": as_text, "jsonl": as_jsonl, "labels": as_labels}  # type: ignore[dict-item]  # they look at the options too
    tiny = "flowers.csv", TINY
    usual = ("--hidden", "2"), ("--scale",), ("--balanced",), ("--unknown-label", "setosa")

    def inputs(self, options: Any) -> dict[str, Any]:
        return {f"--{name}": getattr(options, name, None) for name in ("calibrate", "truth")}

    def start(self, file: str, dev: str | None, options: Options, make: Callable[..., Any]) -> Training:
        from partwise.tasks.classification.files import read_examples
        from partwise.tasks.classification.table_form import as_classes, as_dict, check_classes, from_dict, learn_form

        model = make()
        table = read_examples(file, options.encoding, options.separator, options.header)
        form: Any  # that of a model to go on from, if there is one
        if model.table_ is None:
            form = learn_form(table, options.label_column, options.drop, options.missing)
        else:
            form = from_dict(model.table_)
        X, labels, chosen = form.matrix(table), form.labels(table), options.label_column is not None
        if labels is None:
            raise Refusal(f"{table.name}: there is no column {form.label!r} of classes to learn from.")
        check_classes(labels, table, form, chosen)
        y = as_classes(labels, table, options.unknown_label)
        model.table_ = as_dict(form)
        held_out = None if dev is None else read_for(model, dev, options)
        classes = {label for label in (y if isinstance(y, list) else y.tolist()) if label is not None}
        n_classes = len(classes)
        require_room(X.shape[1], n_classes, model)

        def fit(checkpoint: Any, weight: Any = None) -> None:
            validation = None if held_out is None else known_part(held_out, classes)
            model.fit(X, y, weight, validation=validation, checkpoint=checkpoint)

        def about() -> dict[str, Any]:
            return {
                "examples": len(table),
                "labels": len(model.classes_),
                "features": model.n_features_in_,
                "label_column": getattr(form, "label", None),
            }

        said = f"{table.name}: {len(table):,} rows, {X.shape[1]:,} features, {n_classes:,} classes; {form.said(chosen)}"
        said += " (--label-column says otherwise)" if said.endswith("the last") else ""
        for column in getattr(form, "columns", []):
            if column.words is not None and 2 * len(column.words) > len(table) > 20:
                name = repr(column.name) if form.titled else column.number
                said += f"\nnote: there are {len(column.words):,} different words in column {name}; --drop {name} leaves it out"
        said += "" if model.scale else scale_advice(X)
        score = None if held_out is None else lambda: self.scores(model, held_out)
        return Training(model, fit, said, about, score, n_examples=len(table))

    def like(self, model: Any, more: dict[str, Any]) -> Any:
        made = super().like(model, more)
        made.table_ = model.table_
        return made

    def count(self, data: Examples) -> dict[str, int]:
        return {"examples": len(data)}

    def read_for(self, model: Any, file: str, options: Any) -> Examples:
        return read_for(model, file, options)

    def validation_of(self, model: Any, held_out: Any) -> Any:
        return known_part(held_out, set(model.classes_.tolist()))

    def form(self, options: Any) -> Callable[[Any, Any], str | bytes]:
        form: Any = super().form(options)
        return functools.partial(form, options=options)

    def predict(self, model: Any, file: str, options: Any, write: Callable[[bytes], Any], seconds: Seconds) -> dict[str, Any]:
        self.form(options)
        if options.calibrate is not None:
            held_out = read_for(model, options.calibrate, options)
            model.calibrate(held_out.X, held_out.truth(model.classes_.tolist()))
        return super().predict(model, file, options, write, seconds)

    def evaluate(self, model: Any, file: str, options: Any, seconds: Seconds) -> Told:
        data = read_for(model, file, options)
        seconds("read")
        found = self.scores(model, data, options)
        seconds("label")
        return Told({**self.count(data), **found}, self.table(found))

    def scores(self, model: Any, data: Examples, options: Any = None) -> dict[str, Any]:
        from partwise.tasks.classification.scores import class_scores

        scores = class_scores(data.truth(model.classes_.tolist()), model.predict(data.X))
        found: dict[str, Any] = {
            "accuracy": scores.accuracy,
            "f1": scores.f1,
            "precision": scores.precision,
            "recall": scores.recall,
        }
        if options is None:
            return found
        if options.intervals:
            found["level"] = options.level
            found["intervals"] = scores.intervals(options.resamples, options.level, options.seed)
        found["by_class"] = {str(label): one._asdict() for label, one in scores.classes.items()}
        if options.confusion:
            found["confusion"] = [{"true": label, "answered": other, "examples": n} for label, other, n in confusions(scores)]
        return found

    def table(self, found: dict[str, Any]) -> str:
        intervals = found.get("intervals", {})
        lines = []
        for name, title in (
            ("accuracy", "accuracy"),
            ("f1", "F1, mean over classes"),
            ("precision", "precision"),
            ("recall", "recall"),
        ):
            between = f"   ({100 * intervals[name][0]:.2f} - {100 * intervals[name][1]:.2f})" if name in intervals else ""
            lines.append(f"{title:24}{percent(found[name]):>10}{between}")
        if intervals:
            lines.append(f"({100 * found['level']:g} % bootstrap intervals)")
        each = sorted(found["by_class"].items(), key=lambda item: -item[1]["examples"])
        lines += ["", f"{'class':24}{'examples':>10}{'precision':>11}{'recall':>10}{'F1':>10}"]
        for label, one in each[:MOST_ROWS]:
            shares = [percent(one[name]) for name in ("precision", "recall", "f1")]
            lines.append(f"{label:24}{one['examples']:>10,}{shares[0]:>11}{shares[1]:>10}{shares[2]:>10}")
        if len(each) > MOST_ROWS:
            lines.append(f"... {len(each):,} classes in all; --json tells of all")
        if "confusion" in found:
            wrong = [row for row in found["confusion"] if row["true"] != row["answered"]]
            lines += ["", f"{'true':24}{'answered':24}{'examples':>10}"]
            lines += [f"{row['true']!s:24}{row['answered']!s:24}{row['examples']:>10,}" for row in wrong[:MOST_ROWS]]
        return "\n".join(lines)

    def inspect(self, model: Any, options: Any) -> Told:
        from partwise.tasks.classification.inspection import look

        found, text = look(model, options.top, options.label, options.picture)
        return Told(found if options.picture is None else {**found, "picture": str(options.picture)}, text)

    def suspects(self, model: Any, file: str, options: Any, seconds: Seconds) -> Any:
        from partwise.tasks.classification.suspects import list_suspects

        data = read_for(model, file, options)
        truth = None if options.truth is None else read_for(model, options.truth, options)
        seconds("read")
        model.random_state = options.random_state
        return list_suspects(model, data, truth, options)

    def read_labels(self, file: bytes, options: Any) -> tuple[Any, Any]:
        from partwise.tasks.classification.files import SvmlightTable, read_examples
        from partwise.tasks.classification.table_form import TableForm

        table = read_examples(file, options.encoding, options.separator, options.header)
        if isinstance(table, SvmlightTable):
            rows = table.rows
            return (rows.queries, rows.counts.tolist(), rows.index.tolist(), rows.value.tolist()), rows.labels
        column = TableForm.learn(table, options.label_column, options.drop, options.missing).label_number
        cells = [table.cells(k) for k in range(len(table.columns))]
        return (table.titles, cells[:column], cells[column + 1 :]), cells[column]


def known_part(held_out: Examples, classes: set[Any]) -> tuple[Any, list[Any]]:
    """The held-out examples whose class is one that there is to learn: the others cannot be answered rightly anyway."""
    truth = held_out.truth(classes)
    which = [i for i, label in enumerate(truth) if label in classes]
    if not which:
        raise Refusal(f"{held_out.table.name}: none of its classes is one of the training file.")
    return held_out.X[which], [truth[i] for i in which]


def confusions(scores: Any) -> list[tuple[Any, Any, int]]:
    """(true, answered, how often), the most frequent first."""
    import numpy as np

    classes, order = list(scores.classes), np.argsort(-scores.counts, kind="stable").tolist()
    return [(classes[scores.pairs[k, 0]], classes[scores.pairs[k, 1]], int(scores.counts[k])) for k in order]


def scale_advice(X: Any) -> str:
    """What to say of features that are far from the size of one, where the usual C is too large and solvers are slow."""
    import numpy as np

    squares = X.multiply(X) if hasattr(X, "multiply") else np.square(X)
    size = float(np.sqrt(np.asarray(squares.mean(axis=0)).max()))
    if size < LARGE:
        return ""
    return f"\nnote: some features are of size {size:,.0f}; --scale makes all alike, which mostly learns better, and sooner"


def require_room(n_features: int, n_classes: int, model: Any) -> None:
    """Say so before the weights take all memory there is."""
    from partwise.engine.memory import require_memory

    states = n_classes * model.hidden
    weights = (n_features + 1) * states
    what = f"To learn {n_classes:,} classes of {n_features:,} features, {weights:,} weights,"
    advice = "Is that the column of classes (--label-column)? Take fewer features"
    require_memory(8.0 * (4 * weights + 2 * states**2), model.n_jobs, what, advice)  # what mistakes cost is a table of pairs


COMMAND = Classify()
