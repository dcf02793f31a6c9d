"""``partwise suspects``: labels of a file that a model refuses to believe, likely mistakes, worst first."""

from __future__ import annotations

import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, cast

import typer

from partwise.cli import options
from partwise.cli.common import Refusal, check_writable, in_words, load_tagger, print_json, read_file, write
from partwise.cli.options import FILES, LABELS, LEARNING, OUTPUT, option

if TYPE_CHECKING:
    from partwise.tasks.common.suspects import Judged
    from partwise.text.columns import Columns

SHOWN = 20  # rows of the table, unless told otherwise
AROUND = 3  # words shown on either side of a word in doubt
SHOWN = 300  # characters of a sentence in the table; files and JSON have all of it
FOLDS = 5  # with --train


@in_words
def suspects(
    model: Annotated[Path, typer.Argument(help="Model file; or, with --train, the column file itself.")],
    file: Annotated[str | None, typer.Argument(help="Column file with labels; gz; '-' is stdin.")] = None,
    train: Annotated[bool, option(LEARNING, "Without a model: train on the file itself, with the ramp loss.", "--train")] = False,
    folds: Annotated[
        int | None,
        option(
            LEARNING,
            "Judge each of so many parts of the file by a model trained anew on the others, which has not learnt its mistakes; "
            "0: by one model. (default: 5 with --train, else 0)",
            min=0,
        ),
    ] = None,
    loss: Annotated[str, option(LEARNING, "With --train: the loss.")] = "ramp",
    c: options.C = None,
    seed: Annotated[int, option(LEARNING, "Of the parts and of the order of the examples.", min=0)] = 0,
    top: Annotated[int | None, option(OUTPUT, "At most so many. (default: all; 20 in the table)", min=1)] = None,
    tokens: Annotated[bool, option(OUTPUT, "Rank single tokens instead of sentences.", "--tokens")] = False,
    output: Annotated[
        Path | None, option(OUTPUT, "Write them here, tab-separated, a line each, '-': stdout.", "--output", "-o")
    ] = None,
    truth: Annotated[
        str | None, option(FILES, "The same file with correct labels: how many of the wrong ones are found?")
    ] = None,
    label_column: Annotated[
        int | None, option(FILES, "Column of the labels, from 0; negative: from the last. (default: as in training, or the last)")
    ] = None,
    unknown_label: Annotated[str | None, option(LABELS, "The cell that stands for an unknown label, say '?'.")] = None,
    separator: options.Separator = None,
    encoding: options.Encoding = "utf-8",
    comment: options.Comment = None,
    jobs: options.Jobs = 1,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Find labels that are probably wrong: those that a model refuses to believe.

    partwise suspects --train train.txt

    trains with the ramp loss, which gives up labels that it cannot make sense of, and lists them, worst first. With a model:

    partwise suspects model train.txt --folds 5
    """
    begun = time.perf_counter()
    if (file is None) != train:
        raise Refusal("Give a model and a file; or, with --train, a file alone.")
    if folds == 1:
        raise Refusal("--folds must be 0, or at least 2: a part is judged by what was learnt from the others.")
    if as_json and str(output) == "-":
        raise Refusal("--json prints on stdout: say with --output where to write the suspects.")
    check_writable(output)
    seconds: dict[str, float] = {}
    path = str(model) if train else str(file)
    if train:
        tagger, columns, labels = learner(path, separator, encoding, comment, label_column, unknown_label, loss, c, seed)
        column = labels.column
        seconds["read"] = time.perf_counter() - begun
        if folds == 0:
            tagger.fit(columns, labels)
        folds = FOLDS if folds is None else folds
    else:
        tagger = load_tagger(model)
        seconds["load"] = time.perf_counter() - begun
        columns = read_file(path, separator, encoding, comment)
        column = label_column_of(tagger, columns, label_column)
        labels = in_scheme_of(tagger, columns, column, unknown_label)
        seconds["read"] = time.perf_counter() - begun - sum(seconds.values())
        tagger.random_state = seed
    tagger.n_jobs = jobs
    judged = tagger._question(columns, labels, None, None, folds or None)
    seconds["judge"] = time.perf_counter() - begun - sum(seconds.values())
    listed = token_rows(columns, judged) if tokens else sentence_rows(columns, judged)
    numbers = None if truth is None else found_of(truth, columns, judged, tokens, column, (separator, encoding, comment))
    refused = len(listed)
    listed = listed[:top]
    if output is not None:
        write(output, as_text(listed, tokens))
    seconds["total"] = time.perf_counter() - begun
    about = {
        "file": columns.name,
        "model": None if train else str(model),
        "loss": str(getattr(tagger.loss, "name", tagger.loss)),
        "folds": folds or 0,
        "sequences": columns.n_sentences,
        "tokens": columns.n_tokens,
        "refused": refused,
    }
    if not quiet and str(output) != "-":
        show(listed if top else listed[:SHOWN], about, numbers, tokens, to_stderr=as_json)
    if as_json:
        found: dict[str, Any] = {**about, "suspects": [row.as_dict(columns, judged) for row in listed]}
        if numbers is not None:
            found["truth"] = numbers
        print_json({**found, "seconds": seconds})


# ---------------------------------------------------------------------------------------------------------------------
# Models and labels
# ---------------------------------------------------------------------------------------------------------------------


def learner(path, separator, encoding, comment, label_column, unknown, loss, c, seed) -> tuple[Any, Columns, Any]:
    """A tagger that is not trained yet, and the file to train it on."""
    from partwise.cli.train import Settings
    from partwise.tasks.tagging.estimator import Tagger
    from partwise.tasks.tagging.training_data import Source

    settings = Settings(loss, c, "auto", None, 1e-3, None, None, seed, "float32", 1)
    source = Source(separator, encoding, comment, label_column, unknown, None, None, 2000)
    data = source.read(path)
    tagger = Tagger(**settings.parameters(), templates=source.templates("auto", None, data))
    return tagger, data.columns, data.labels


def label_column_of(tagger: Any, columns: Columns, wanted: int | None) -> int:
    """The column of the labels: as wanted, as in training, or the last."""
    column = wanted if wanted is not None else -1 if tagger.label_column_ is None else tagger.label_column_
    if not -columns.n_columns <= column < columns.n_columns:
        raise Refusal(f"{columns.name}: --label-column {column}: there are {columns.n_columns} columns, counted from 0.")
    return column


def in_scheme_of(tagger: Any, columns: Columns, column: int, unknown: str | None) -> Any:
    """The labels of a column, in the scheme that the model labels in."""
    from partwise.tasks.tagging.answers import Answers

    if tagger.given_scheme_ is None:
        return columns.labels(column, unknown)
    if unknown is not None:
        raise Refusal("--unknown-label cannot go with a model that was trained with --scheme: labels have to be converted.")
    return Answers(tagger).truth(columns, column)


def found_of(truth: str, columns: Columns, judged: Judged, tokens: bool, column: int, how: tuple) -> dict[str, Any]:
    """How many of the labels that are really wrong are among the suspects: precision, recall, average precision."""
    import numpy as np

    from partwise.metrics import average_precision

    right = read_file(truth, *how)
    if not np.array_equal(right.starts, columns.starts) or right.n_columns != columns.n_columns:
        raise Refusal(f"--truth {truth}: it must have the sentences of {columns.name}, with other labels only.")
    cells, others = right.cells[column], columns.cells[column]
    number = {cell: k for k, cell in enumerate(cells)}
    codes = np.array([number.get(cell, -1) for cell in others], np.int64)[columns.codes[column]]
    wrong = codes != right.codes[column]
    found = judged.found
    suspicion, refused = found.token_margins, found.wrong
    if not tokens:
        wrong = np.diff(np.concatenate([[0], np.cumsum(wrong)])[columns.starts]) > 0
        suspicion, refused = found.margins, found.refused
    hits, n, total = (int(np.count_nonzero(x)) for x in (wrong & refused, refused, wrong))
    return {
        "wrong": total,
        "found": hits,
        "precision": hits / n if n else float("nan"),
        "recall": hits / total if total else float("nan"),
        "average_precision": average_precision(wrong, suspicion),
    }


# ---------------------------------------------------------------------------------------------------------------------
# Rows
# ---------------------------------------------------------------------------------------------------------------------


class SentenceRow(NamedTuple):
    """A sentence that is not believed."""

    example: int
    line: int
    margin: float
    text: str  #: with the words in doubt marked

    def as_dict(self, columns: Columns, judged: Judged) -> dict[str, Any]:
        """For JSON."""
        words = columns.take([self.example]).sentences()[0]
        return {**judged.suspect_sequence(self.example).as_dict(), "line": self.line, "words": [word[0] for word in words]}


class TokenRow(NamedTuple):
    """A token that is not believed."""

    example: int
    line: int
    margin: float
    text: str
    token: int
    word: str
    given: str
    believed: str

    def as_dict(self, columns: Columns, judged: Judged) -> dict[str, Any]:
        """For JSON."""
        return {key: value for key, value in self._asdict().items() if key != "text"}


Row = SentenceRow | TokenRow


def sentence_rows(columns: Columns, judged: Judged) -> list[Row]:
    """Sentences that are refused, largest margin first."""
    lines = line_numbers(columns)
    return [
        SentenceRow(i, lines(columns.starts[i]), float(judged.found.margins[i]), marked(columns, judged, i))
        for i in judged.ranked(None, None)
    ]


def token_rows(columns: Columns, judged: Judged) -> list[Row]:
    """Tokens that are refused, largest margin first."""
    import numpy as np

    from partwise.tasks.common.suspects import in_order

    found, lines = judged.found, line_numbers(columns)
    rows: list[Row] = []
    for t in in_order(found.token_margins, found.wrong).tolist():
        i = int(np.searchsorted(columns.starts, t, side="right")) - 1
        first, last = int(columns.starts[i]), int(columns.starts[i + 1])
        around = range(max(first, t - AROUND), min(last, t + AROUND + 1))
        text = " ".join(f"[{word(columns, k)}]" if k == t else word(columns, k) for k in around)
        given, believed = str(judged.given[t]), str(judged.believed[t])
        rows.append(TokenRow(i, lines(t), float(found.token_margins[t]), text, t - first, word(columns, t), given, believed))
    return rows


def line_numbers(columns: Columns) -> Any:
    """From the number of a token to that of its line."""
    import numpy as np

    breaks, ends = np.flatnonzero(np.frombuffer(columns.data, np.uint8) == ord("\n")), cast(np.ndarray, columns.ends)

    def line(token: int) -> int:
        return columns.first_line + int(np.searchsorted(breaks, ends[token], side="left"))

    return line


def word(columns: Columns, token: int) -> str:
    """The first cell of a token."""
    return columns.cells[0][int(columns.codes[0, token])]


def marked(columns: Columns, judged: Judged, i: int) -> str:
    """A sentence, its words in doubt with both labels, long stretches without any left out."""
    first, last = int(columns.starts[i]), int(columns.starts[i + 1])
    wrong = judged.found.wrong[first:last].tolist()
    pieces: list[str] = []
    for k, doubted in enumerate(wrong):
        if doubted:
            pieces.append(f"[{word(columns, first + k)} {judged.given[first + k]} > {judged.believed[first + k]}]")
        elif any(wrong[max(0, k - AROUND) : k + AROUND + 1]):
            pieces.append(word(columns, first + k))
        elif not pieces or pieces[-1] != "...":
            pieces.append("...")
    return " ".join(pieces)


def as_text(rows: list[Row], tokens: bool) -> bytes:
    """Tab-separated, a line each, after a line of titles."""
    lines = ["\t".join((TokenRow if tokens else SentenceRow)._fields)]
    for row in rows:
        cells = (f"{value:.6g}" if isinstance(value, float) else str(value) for value in row)
        lines.append("\t".join(cell.replace("\t", " ") for cell in cells))
    return ("\n".join(lines) + "\n").encode("utf-8", "surrogatepass")


def show(rows: list[Row], about: dict[str, Any], numbers: dict[str, Any] | None, tokens: bool, to_stderr: bool) -> None:
    """A table, on stdout unless that is for machines."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(stderr=to_stderr, highlight=False)
    what, of = ("tokens", about["tokens"]) if tokens else ("sentences", about["sequences"])
    how = f"judged in {about['folds']} parts by models of the others" if about["folds"] else "judged by one model"
    console.print(
        f"{about['refused']:,} of {of:,} {what} are not believed ({how}, loss {about['loss']})", markup=False, soft_wrap=True
    )
    if numbers is not None:
        parts = [f"{name.replace('_', ' ')} {100 * numbers[name]:.2f} %" for name in ("precision", "recall", "average_precision")]
        console.print(
            f"{numbers['wrong']:,} are wrong, {numbers['found']:,} of them found: {', '.join(parts)}",
            markup=False,
            soft_wrap=True,
        )
    if not rows:
        return
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("line", justify="right", no_wrap=True)
    table.add_column("margin", justify="right", no_wrap=True)
    if tokens:
        table.add_column("given", no_wrap=True)
        table.add_column("believed", no_wrap=True)
    table.add_column(Text("in context" if tokens else "words in doubt: [word given > believed]"))
    for row in rows:
        labels = [Text(row.given), Text(row.believed)] if isinstance(row, TokenRow) else []
        table.add_row(f"{row.line:,}", f"{row.margin:.2f}", *labels, Text(textwrap.shorten(row.text, SHOWN, placeholder=" ...")))
    console.print(table)
    if len(rows) < about["refused"]:
        console.print(f"the first {len(rows)} of {about['refused']:,}; --top N for more, -o FILE for all")
