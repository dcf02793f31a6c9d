"""``partwise evaluate``: how well a model labels a file whose labels are known, and whether another system does better."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from partwise.cli import options, tasks
from partwise.cli.common import Refusal, in_words, load_tagger, print_json, read_file
from partwise.cli.options import FILES, LABELS, option

if TYPE_CHECKING:
    import numpy as np

    from partwise.metrics import Comparison, Report, SequenceCounts
    from partwise.text.columns import Columns

COMPARING = "Comparing"
MOST_SHOWN = 20  # confusions in the table


@in_words
def evaluate(
    model: Annotated[Path, typer.Argument(help="Model file; or, with --predicted-column, the column file itself.")],
    file: Annotated[str | None, typer.Argument(help="Column file with labels; gz; '-' is stdin.")] = None,
    label_column: Annotated[
        int | None, option(FILES, "Column of the true labels, from 0; negative: from the last. (default: as in training)")
    ] = None,
    predicted_column: Annotated[int | None, option(FILES, "Score this column of the file instead of a model's answers.")] = None,
    intervals: Annotated[bool, option(None, "Bootstrap confidence intervals, over sentences.")] = True,
    resamples: Annotated[int, option(None, "Draws for intervals and tests.", min=1)] = 1000,
    level: Annotated[float, option(None, "Of the intervals.", min=0.01, max=0.9999)] = 0.95,
    seed: Annotated[int, option(None, "Of the draws.", min=0)] = 0,
    baseline: Annotated[Path | None, option(COMPARING, "Another model: is the difference significant?")] = None,
    baseline_column: Annotated[int | None, option(COMPARING, "A column with another system's labels, likewise.")] = None,
    test: Annotated[str, option(COMPARING, "randomisation (approximate) or bootstrap (paired).")] = "randomisation",
    conlleval: Annotated[bool, option(None, "Print what conlleval prints, to the letter.", "--conlleval")] = False,
    confusion: Annotated[bool, option(None, "Which labels are taken for which.", "--confusion")] = False,
    scheme: Annotated[
        str | None, option(LABELS, "Chunk labels of the file are in this scheme. (default: that of the training data)")
    ] = None,
    separator: options.Separator = None,
    encoding: options.Encoding = "utf-8",
    comment: options.Comment = None,
    jobs: options.Jobs = 1,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Score a model: accuracy, and precision, recall and F1 of chunks as conlleval counts them; UAS and LAS of parses.

    partwise evaluate model test.txt

    Labels that the model has never seen count as labelled wrongly. Without a model, two columns of a file are compared:

    partwise evaluate labelled.txt --label-column 2 --predicted-column 3
    """
    begun = time.perf_counter()
    if baseline is not None and baseline_column is not None:
        raise Refusal("--baseline and --baseline-column: give one of them.")
    if (file is None) == (predicted_column is None):
        raise Refusal("Give a model and a file; or, with --predicted-column, a file alone.")

    if file is not None and (kind := tasks.kind_for(model)):
        tasks.refuse(kind, model, baseline=baseline, conlleval=conlleval, confusion=confusion, scheme=scheme)
        tasks.evaluate_file(kind, model, file, encoding, jobs, as_json, quiet)
        return

    from partwise.metrics import report_coded, sequence_counts_coded

    seconds: dict[str, float] = {}
    tagger = load_tagger(model) if file is not None else None
    other = load_tagger(baseline) if baseline is not None else None
    seconds["load"] = time.perf_counter() - begun
    columns = read_file(str(model) if file is None else file, separator, encoding, comment)
    seconds["read"] = time.perf_counter() - begun - sum(seconds.values())
    if label_column is None:
        label_column = -1 if tagger is None or tagger.label_column_ is None else tagger.label_column_
    truth = column_labels(columns, label_column, "--label-column")
    if tagger is not None:
        tagger.predict_codes(columns.take([0]))  # compiled code is loaded when first used: not what tokens_per_second is about
    seconds["start"] = time.perf_counter() - begun - sum(seconds.values())
    predicted = (
        column_labels(columns, predicted_column, "--predicted-column")
        if tagger is None
        else model_labels(columns, tagger, scheme, jobs)
    )
    seconds["label"] = time.perf_counter() - begun - sum(seconds.values())
    draws: dict[str, Any] = {"n_resamples": resamples, "level": level, "random_state": seed}
    coded = (truth.codes, predicted.codes, columns.starts, truth.names, predicted.names)
    report = report_coded(*coded, **{**draws, "n_resamples": resamples if intervals else 0})
    comparisons: list[Comparison] = []
    if other is not None or baseline_column is not None:
        rival = (
            model_labels(columns, other, scheme, jobs)
            if other is not None
            else column_labels(columns, baseline_column, "--baseline-column")
        )
        counts = sequence_counts_coded(*coded)
        against = sequence_counts_coded(truth.codes, rival.codes, columns.starts, truth.names, rival.names)
        comparisons = compare_all(counts, against, test, draws)
    mistakes = confusions(truth, predicted) if confusion else []
    seconds["score"] = time.perf_counter() - begun - sum(seconds.values())
    seconds["total"] = time.perf_counter() - begun
    if not quiet or not as_json:
        show(report, comparisons, mistakes, conlleval, as_json)
    if as_json:
        found: dict[str, Any] = dict.fromkeys(("accuracy", "f1", "precision", "recall"))
        found |= {"model": None if tagger is None else str(model), "file": columns.name, **report.to_dict()}
        if comparisons:
            name = str(baseline) if baseline is not None else f"column {baseline_column}"
            found["baseline"] = {"name": name, "measures": {c.measure: comparison_dict(c) for c in comparisons}}
        if confusion:
            found["confusion"] = [{"true": a, "predicted": b, "tokens": n} for a, b, n in mistakes]
        speed = columns.n_tokens / max(seconds["label"], 1e-9) if tagger is not None else None
        print_json({**found, "seconds": seconds, "tokens_per_second": speed})


class Labelled(NamedTuple):
    """The labels of all tokens, numbered."""

    codes: np.ndarray
    names: list[str]


def column_labels(columns: Columns, column: int | None, option_name: str) -> Labelled:
    """Those in a column."""
    if column is None or not -columns.n_columns <= column < columns.n_columns:
        raise Refusal(f"{columns.name}: {option_name} {column}: there are {columns.n_columns} columns, counted from 0.")
    return Labelled(columns.codes[column], columns.cells[column])


def model_labels(columns: Columns, tagger: Any, scheme: str | None, jobs: int) -> Labelled:
    """Those that a model gives."""
    from partwise.tasks.tagging.answers import Answers

    tagger.n_jobs = jobs
    return Labelled(*Answers(tagger, scheme).predict(columns))


def compare_all(counts: SequenceCounts, against: SequenceCounts, test: str, draws: dict[str, Any]) -> list[Comparison]:
    """Every measure that both have, ours less the other's."""
    from partwise.metrics import compare

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


def confusions(truth: Labelled, predicted: Labelled) -> list[tuple[str, str, int]]:
    """What was taken for what, and how often, most often first."""
    import numpy as np

    n = len(predicted.names)
    count = np.bincount(truth.codes.astype(np.int64) * n + predicted.codes, minlength=len(truth.names) * n)
    pairs = [(truth.names[cell // n], predicted.names[cell % n], int(count[cell])) for cell in np.flatnonzero(count).tolist()]
    return sorted((pair for pair in pairs if pair[0] != pair[1]), key=lambda pair: (-pair[2], pair))


# ---------------------------------------------------------------------------------------------------------------------
# For people
# ---------------------------------------------------------------------------------------------------------------------


def show(
    report: Report, comparisons: list[Comparison], mistakes: list[tuple[str, str, int]], conlleval: bool, to_stderr: bool
) -> None:
    """Tables, on stdout unless that is for machines."""
    import sys

    from rich.console import Console

    console = Console(stderr=to_stderr, highlight=False, soft_wrap=True)
    if conlleval:
        print(report.conlleval(), end="", file=sys.stderr if to_stderr else sys.stdout)
    else:
        console.print(f"{report.n_tokens:,} tokens in {report.n_sequences:,} sentences")
        console.print(measures_table(report))
    for comparison in comparisons:
        console.print(str(comparison), markup=False)
    if mistakes:
        console.print(confusion_table(mistakes))


def measures_table(report: Report) -> Any:
    """A row for each measure of all tokens, then one for each type of span."""
    from rich import box
    from rich.table import Table

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
        filled = [name, *cells, *(f"{count:,}" for count in counts)]
        table.add_row(*filled, *[""] * (width - len(filled)))

    if report.spans is None:
        add("tokens right", [report.accuracy], whole.get("accuracy"), [])
        add("sentences right", [report.sequence_accuracy], whole.get("sequence_accuracy"), [])
        return table
    rows = [("all", report.spans, whole)]
    rows += [(kind or "-", scores, report.intervals.get(kind, {})) for kind, scores in report.spans.by_type.items()]
    for name, scores, limits in rows:
        add(
            name,
            [scores.precision, scores.recall, scores.f1],
            limits.get("f1"),
            [scores.n_true, scores.n_predicted, scores.n_correct],
        )
    interval = whole.get("accuracy")
    between = f" ({100 * interval.low:.2f} - {100 * interval.high:.2f})" if interval is not None else ""
    table.caption = f"tokens right: {100 * report.accuracy:.2f}{between}; sentences right: {100 * report.sequence_accuracy:.2f}"
    table.caption_justify = "left"
    return table


def confusion_table(mistakes: list[tuple[str, str, int]]) -> Any:
    """The most frequent mistakes."""
    from rich import box
    from rich.table import Table

    shown = mistakes[:MOST_SHOWN]
    title = f"{len(shown)} most frequent of {len(mistakes)} kinds of mistakes"
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left")
    table.add_column("true", no_wrap=True)
    table.add_column("labelled", no_wrap=True)
    table.add_column("tokens", justify="right")
    for true, predicted, n in shown:
        table.add_row(true, predicted, f"{n:,}")
    return table
