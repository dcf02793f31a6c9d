"""What ``partwise evaluate`` tells: scores with intervals, whether another system does better, which labels are confused."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from partwise.tasks.common.command import Seconds, Told
from partwise.tasks.common.command_options import Refusal
from partwise.tasks.tagging.answers import Answers
from partwise.tasks.tagging.counts import SequenceCounts, sequence_counts_coded
from partwise.tasks.tagging.entity_matches import Entities, EntityConfusion, EntityMatches
from partwise.tasks.tagging.files import Source, column_called
from partwise.tasks.tagging.report import Report, report_coded
from partwise.tasks.tagging.resampling import Comparison, compare
from partwise.tasks.tagging.scores import SpanScores
from partwise.text.columns import Columns

MOST_SHOWN = 20  # confusions in the table


class Labelled(NamedTuple):
    """The labels of all tokens, numbered."""

    codes: np.ndarray
    names: list[str]


Confusion = tuple[str, str, int]  #: true label, predicted label, tokens


def evaluate(model: Any, baseline: Any, file: str, options: Any, seconds: Seconds) -> Told:
    """Compare a model's answers, or a column, with the truth; and both with those of a baseline."""
    columns = Source.of(options).columns(file)
    seconds("read")
    trained_on = -1 if model is None or model.label_column_ is None else model.label_column_
    truth = in_column(columns, "--label-column", trained_on if options.label_column is None else options.label_column)
    if model is not None:
        model.predict_codes(columns.take([0]))  # compiled code is loaded when first used: not what tokens_per_second is about
    seconds("start")
    if model is None:
        predicted = in_column(columns, "--predicted-column", options.predicted_column)
    else:
        predicted = by_model(columns, model, options.scheme)
    seconds("label")
    draws: dict[str, Any] = {"n_resamples": options.resamples, "level": options.level, "random_state": options.seed}
    coded = (truth.codes, predicted.codes, columns.starts, truth.names, predicted.names)
    report = report_coded(*coded, **{**draws, "n_resamples": options.resamples if options.intervals else 0})
    found: dict[str, Any] = {**dict.fromkeys(("accuracy", "f1", "precision", "recall")), **report.to_dict()}
    matches: dict[str, EntityMatches] = {}
    entities: EntityConfusion | None = None
    if report.spans is not None:
        both = Entities.coded(*coded)
        matches, entities = both.matches(), both.confusion()
        found |= {"averages": averages(report.spans), "matches": {kind: one.to_dict() for kind, one in matches.items()}}
        found["entity_confusion"] = entities.to_dict()
        if options.picture is not None:
            entities.save(options.picture)
    elif options.picture is not None:
        raise Refusal("--picture shows entities, and these labels are not chunk tags.")
    comparisons: list[Comparison] = []
    if baseline is not None or options.baseline_column is not None:
        rival = (
            by_model(columns, baseline, options.scheme)
            if baseline is not None
            else in_column(columns, "--baseline-column", options.baseline_column)
        )
        against = sequence_counts_coded(truth.codes, rival.codes, columns.starts, truth.names, rival.names)
        comparisons = compare_all(sequence_counts_coded(*coded), against, options.test, draws)
        name = str(options.baseline) if baseline is not None else f"column {options.baseline_column}"
        found["baseline"] = {"name": name, "measures": {one.measure: comparison_dict(one) for one in comparisons}}
    mistakes = confusions(truth, predicted) if options.confusion else []
    if options.confusion:
        found["confusion"] = [{"true": a, "predicted": b, "tokens": n} for a, b, n in mistakes]
    found["tokens_per_second"] = columns.n_tokens / max(seconds["label"], 1e-9) if model is not None else None
    told = said(report, comparisons, mistakes, options.conlleval)
    if options.confusion and entities is not None:
        told.append(f"entities: true (rows), answered (columns)\n\n{entities}\n")
    return Told(found, [*told, *([matches_table(matches)] if options.partial and matches else [])])


def averages(spans: SpanScores) -> dict[str, dict[str, float]]:
    """Means of the types' scores, plain ("macro") and weighted by the number of true spans ("weighted"); 0 without types."""
    names, types = ("precision", "recall", "f1"), list(spans.by_type.values())
    table = np.array([[getattr(one, name) for name in names] for one in types]).reshape(len(types), 3)
    support = np.array([one.n_true for one in types], float)
    weights = {"macro": np.ones(len(types)), "weighted": support}
    means = {key: (own @ table / own.sum()).tolist() if own.sum() else [0.0] * 3 for key, own in weights.items()}
    return {key: dict(zip(names, values, strict=True)) for key, values in means.items()}


def in_column(columns: Columns, option: str, column: int) -> Labelled:
    """Those in a column."""
    column = column_called(option, column, columns)
    return Labelled(columns.codes[column], columns.cells[column])


def by_model(columns: Columns, model: Any, scheme: str | None) -> Labelled:
    """Those that a model gives."""
    return Labelled(*Answers(model, scheme).written(model.predict_codes(columns), columns.starts))


def compare_all(counts: SequenceCounts, against: SequenceCounts, test: str, draws: dict[str, Any]) -> list[Comparison]:
    """Every measure that both have, ours less the other's."""
    measures = [name for name in counts.measures if name in against.measures]
    return [compare(counts, against, name, test=test, **draws) for name in measures]


def comparison_dict(comparison: Comparison) -> dict[str, Any]:
    """For JSON."""
    return {
        "value": comparison.a,
        "baseline": comparison.b,
        "difference": comparison.difference,
        "interval": [comparison.low, comparison.high],
        "p_value": comparison.p_value,
        "test": comparison.test,
    }


def confusions(truth: Labelled, predicted: Labelled) -> list[Confusion]:
    """What was taken for what, and how often, most often first."""
    n = len(predicted.names)
    count = np.bincount(truth.codes.astype(np.int64) * n + predicted.codes, minlength=len(truth.names) * n)
    pairs = [(truth.names[cell // n], predicted.names[cell % n], int(count[cell])) for cell in np.flatnonzero(count).tolist()]
    return sorted((pair for pair in pairs if pair[0] != pair[1]), key=lambda pair: (-pair[2], pair))


# ---------------------------------------------------------------------------------------------------------------------
# For people
# ---------------------------------------------------------------------------------------------------------------------


def said(report: Report, comparisons: list[Comparison], mistakes: list[Confusion], conlleval: bool) -> list[Any]:
    """Lines and tables."""
    if conlleval:
        shown: list[Any] = [report.conlleval().removesuffix("\n")]
    else:
        shown = [f"{report.n_tokens:,} tokens in {report.n_sequences:,} sentences", measures_table(report)]
    return [*shown, *map(str, comparisons), *([confusion_table(mistakes)] if mistakes else [])]


def measures_table(report: Report) -> Any:
    """A row for each measure of all tokens, then one for each type of span."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    whole = report.intervals.get(None, {})
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)  # all of it in 80 columns
    table.add_column("", no_wrap=True)
    titles = ["precision", "recall", "F1"] if report.spans is not None else ["%"]
    if report.intervals:
        titles.append(f"{100 * report.level:g} % interval")
    for title in [*titles, *(["true", "found", "correct"] if report.spans is not None else [])]:
        table.add_column(title, justify="right", no_wrap=True)
    width = len(table.columns)

    def add(name: str, numbers: list[float], interval: Any, counts: list[int]) -> None:
        cells = [f"{100 * number:.2f}" for number in numbers]
        if report.intervals:
            cells.append(f"{100 * interval.low:.2f} - {100 * interval.high:.2f}" if interval is not None else "")
        filled = [*cells, *(f"{count:,}" for count in counts)]
        table.add_row(Text(name), *filled, *[""] * (width - 1 - len(filled)))

    if report.spans is None:
        add("tokens right", [report.accuracy], whole.get("accuracy"), [])
        add("sentences right", [report.sequence_accuracy], whole.get("sequence_accuracy"), [])
        return table
    rows = [("all", report.spans, whole)]
    rows += [(kind or "-", scores, report.intervals.get(kind, {})) for kind, scores in report.spans.by_type.items()]
    for name, scores, limits in rows:
        counts = [scores.n_true, scores.n_predicted, scores.n_correct]
        add(name, [scores.precision, scores.recall, scores.f1], limits.get("f1"), counts)
    interval = whole.get("accuracy")
    between = f" ({100 * interval.low:.2f} - {100 * interval.high:.2f})" if interval is not None else ""
    table.caption = f"tokens right: {100 * report.accuracy:.2f}{between}; sentences right: {100 * report.sequence_accuracy:.2f}"
    table.caption_justify = "left"
    return table


def confusion_table(mistakes: list[Confusion]) -> Any:
    """The most frequent mistakes."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    shown = mistakes[:MOST_SHOWN]
    title = f"{len(shown)} most frequent of {len(mistakes)} kinds of mistakes"
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left")
    table.add_column("true", no_wrap=True)
    table.add_column("labelled", no_wrap=True)
    table.add_column("tokens", justify="right")
    for true, predicted, n in shown:
        table.add_row(Text(true), Text(predicted), f"{n:,}")
    return table


def matches_table(matches: dict[str, EntityMatches]) -> Any:
    """Entities found in part, counted in each of the four ways."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, title="entities found in part", title_justify="left", padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("counted", no_wrap=True)
    for title in ("precision", "recall", "F1", "correct", "incorrect", "partial", "missed", "spurious"):
        table.add_column(title, justify="right", no_wrap=True)
    for kind, one in matches.items():
        counts = (one.correct, one.incorrect, one.partial, one.missed, one.spurious)
        table.add_row(kind, *(f"{100 * x:.2f}" for x in (one.precision, one.recall, one.f1)), *(f"{n:,}" for n in counts))
    return table
