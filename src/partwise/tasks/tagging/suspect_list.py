"""What ``partwise suspects`` lists of a column file: sentences, or single tokens, whose labels are probably wrong."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from partwise.engine.ragged import totals
from partwise.features.given_labels import GivenLabels
from partwise.tasks.common.command import Seconds
from partwise.tasks.common.command_options import Refusal
from partwise.tasks.common.suspect_list import Listed, Listing, about_judgement, found_among
from partwise.tasks.tagging.answers import Answers
from partwise.tasks.tagging.files import Source, column_called, line_numbers
from partwise.tasks.tagging.review import JudgedColumns
from partwise.tasks.tagging.suspects import JudgedSequences
from partwise.text.columns import Columns

AROUND = 3  # words shown on either side of a word in doubt
SENTENCE = ("example", "line", "probability", "text")
TOKEN = (*SENTENCE, "token", "word", "given", "believed")


def list_suspects(model: Any, file: str, options: Any, seconds: Seconds) -> Listing:
    """Judge the labels of a file by a trained model, or, with --train, by one that learns from the file itself."""
    source, folds = Source.of(options), options.folds_to_judge()
    if options.train:
        data = source.read(file)
        columns, labels, column = data.columns, data.labels, data.column
        seconds("read")
        if folds is None:
            model.fit(columns, labels)
    else:
        columns = source.columns(file)
        trained_on = -1 if model.label_column_ is None else model.label_column_
        wanted = trained_on if options.label_column is None else options.label_column
        column = column_called("--label-column", wanted, columns)
        labels = in_scheme_of(model, columns, column, options.unknown_label)
        seconds("read")
        model.random_state = options.random_state
    judges: list[Any] | None = None if options.html is None else []
    judged = model.judge(columns, labels, folds=folds, judges=judges)
    ranked = judged.ranked_parts(options.precision) if options.parts else judged.ranked(options.precision)
    shown = JudgedColumns(model, columns, judged, column, source, judges or [])
    truth = None if options.truth is None else found_of(options.truth, source, columns, judged, options.parts, column, ranked)
    return Listing(
        TOKEN if options.parts else SENTENCE,
        token_rows(columns, judged, ranked) if options.parts else sentence_rows(columns, judged, ranked),
        (columns.n_tokens, "tokens") if options.parts else (columns.n_sentences, "sentences"),
        {
            **about_judgement(model, folds, judged.found, options.parts),
            "sequences": columns.n_sentences,
            "tokens": columns.n_tokens,
        },
        "in context" if options.parts else "words in doubt: [word given > believed]",
        truth,
        lambda _, top: shown.review(options.parts, ranked[:top]),
    )


def in_scheme_of(model: Any, columns: Columns, column: int, unknown: str | None) -> GivenLabels:
    """The labels of a column, in the scheme that the model labels in."""
    if model.given_scheme_ is None:
        return columns.labels(column, unknown)
    if unknown is not None:
        raise Refusal("--unknown-label cannot go with a model that was trained with --scheme: labels have to be converted.")
    return Answers(model).truth(columns, column)


def found_of(
    truth: str, source: Source, columns: Columns, judged: JudgedSequences, parts: bool, column: int, listed: list[int]
) -> dict[str, Any]:
    """How many of the labels that are not those of another file are among the suspects."""
    right = source.columns(truth)
    if not np.array_equal(right.starts, columns.starts) or right.n_columns != columns.n_columns:
        raise Refusal(f"--truth {truth}: it must have the sentences of {columns.name}, with other labels only.")
    number = {cell: k for k, cell in enumerate(right.cells[column])}
    codes = np.array([number.get(cell, -1) for cell in columns.cells[column]], np.int64)[columns.codes[column]]
    wrong = codes != right.codes[column]
    if parts:
        return found_among(wrong, listed, judged.found.parts)
    in_sentences = totals(wrong, columns.starts) > 0
    return found_among(in_sentences, listed, judged.found.examples)


# ---------------------------------------------------------------------------------------------------------------------
# Rows
# ---------------------------------------------------------------------------------------------------------------------


def sentence_rows(columns: Columns, judged: JudgedSequences, ranked: list[int]) -> list[Listed]:
    """Sentences that are probably wrong, worst first."""
    lines = line_numbers(columns)

    def as_dict(i: int, line: int) -> dict[str, Any]:
        words = [cells[0] for cells in columns[i]]
        return {**judged.suspect(i).as_dict(), "line": line, "words": words}

    rows = []
    for i in ranked:
        line = int(lines[columns.starts[i]])
        cells = (i, line, judged.wrong(i), marked(columns, judged, i))
        rows.append(Listed(cells, functools.partial(as_dict, i, line)))
    return rows


def token_rows(columns: Columns, judged: JudgedSequences, ranked: list[int]) -> list[Listed]:
    """Tokens that are probably wrong, worst first."""
    lines = line_numbers(columns)
    rows = []
    for t in ranked:
        i = int(np.searchsorted(columns.starts, t, side="right")) - 1
        first, last = int(columns.starts[i]), int(columns.starts[i + 1])
        around = range(max(first, t - AROUND), min(last, t + AROUND + 1))
        text = " ".join(f"[{word(columns, k)}]" if k == t else word(columns, k) for k in around)
        labels = (str(judged.given[t]), str(judged.believed[t]))
        cells = (i, int(lines[t]), judged.wrong_part(t), text, t - first, word(columns, t), *labels)
        said = {title: cell for title, cell in zip(TOKEN, cells, strict=True) if title != "text"}
        rows.append(Listed(cells, functools.partial(dict, said)))
    return rows


def word(columns: Columns, token: int) -> str:
    """The first cell of a token."""
    return columns.cells[0][int(columns.codes[0, token])]


def marked(columns: Columns, judged: JudgedSequences, i: int) -> str:
    """A sentence, its words in doubt with both labels, long stretches without any left out."""
    first, last = int(columns.starts[i]), int(columns.starts[i + 1])
    wrong = judged.found.evidence.disputed[first:last].tolist()
    pieces: list[str] = []
    for k, doubted in enumerate(wrong):
        if doubted:
            pieces.append(f"[{word(columns, first + k)} {judged.given[first + k]} > {judged.believed[first + k]}]")
        elif any(wrong[max(0, k - AROUND) : k + AROUND + 1]):
            pieces.append(word(columns, first + k))
        elif not pieces or pieces[-1] != "...":
            pieces.append("...")
    return " ".join(pieces)
