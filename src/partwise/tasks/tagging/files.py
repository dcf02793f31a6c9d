"""Column files with labels: which column holds them, in which chunking scheme they are, which templates suit them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from partwise.features.given_labels import GivenLabels
from partwise.tasks.common.command_options import Refusal
from partwise.tasks.tagging.model import default_templates
from partwise.text.chunk_schemes import SCHEMES, convert_coded, recognise, recognise_coded
from partwise.text.columns import ColumnFile, Columns, read_columns
from partwise.text.templates import SETS


@dataclass(frozen=True)
class LabelledColumns:
    """Sentences with labels."""

    columns: Columns
    column: int  #: of the labels, from 0
    labels: GivenLabels
    scheme: str | None  #: of the labels as they were given; None: they are no chunk labels
    repaired: int = 0  #: tokens whose label was not as its scheme would have it, and was read as conlleval reads it

    @property
    def n_sentences(self) -> int:
        return self.columns.n_sentences

    @property
    def n_tokens(self) -> int:
        return self.columns.n_tokens

    def describe(self) -> str:
        """A line for people."""
        kind = f"chunk labels in {self.scheme}" if self.scheme else "labels"
        line = f"{self.columns.name}: {self.n_sentences:,} sentences, {self.n_tokens:,} tokens, {kind} in column {self.column}"
        if self.repaired:
            line += f"\nnote: {self.repaired:,} labels were not as {self.scheme} has them, and were read as conlleval reads them"
        return line


class Parts:
    """A file to be read again and again, part by part."""

    def __init__(self, source: Source, path: str, megabytes: float):
        options = {"chunk_bytes": max(1, int(megabytes * 1e6)), "comment": source.comment}
        self.file = ColumnFile(path, source.separator, **options)
        self.first = source.labelled(next(iter(self.file)))
        self.column = self.first.column
        self.n_sentences = self.n_tokens = 0  #: of the last pass

    def __iter__(self) -> Iterator[Columns]:
        self.n_sentences = self.n_tokens = 0
        for part in self.file:
            self.n_sentences += part.n_sentences
            self.n_tokens += part.n_tokens
            yield part

    def describe(self) -> str:
        """A line for people."""
        return f"{self.first.columns.name}: read in parts, labels in column {self.column}"


@dataclass(frozen=True)
class Source:
    """How to read column files, and what to make of their labels: what options of the command line say."""

    separator: str | None = None
    encoding: str = "utf-8"
    comment: str | None = None
    label_column: int | None = None
    unknown_label: str | None = None
    either: str | None = None
    scheme: str | None = None  #: to convert to
    max_labels: int = 2000

    def __post_init__(self):
        if self.scheme is not None and self.scheme not in SCHEMES:
            raise Refusal(f"--scheme must be one of {', '.join(SCHEMES)}. Got {self.scheme!r}.")

    @classmethod
    def of(cls, options: Any) -> Source:
        """As options ask for; what they do not have is as usual."""
        names = [field.name for field in dataclasses.fields(cls) if hasattr(options, field.name)]
        return cls(**{name: getattr(options, name) for name in names})

    def columns(self, path: str | bytes) -> Columns:
        """A file, or its bytes, whatever is in it."""
        return read_columns(path, self.separator, encoding=self.encoding, comment=self.comment)

    def read(self, path: str, like: LabelledColumns | None = None) -> LabelledColumns:
        """A file with labels; `like`: read as this one was."""
        return self.labelled(self.columns(path), like)

    def stream(self, path: str, megabytes: float) -> Parts:
        """A file to be read in parts."""
        for option, value, fine in (("--encoding", self.encoding, "utf-8"), ("--scheme", self.scheme, None)):
            if value != fine:
                raise Refusal(f"{option} cannot go with --stream. Convert the file first.")
        return Parts(self, path, megabytes)

    def labels(self, columns: Columns, column: int) -> GivenLabels:
        """The labels in a column, partial ones understood."""
        return columns.labels(column, self.unknown_label, self.either)

    def labelled(self, columns: Columns, like: LabelledColumns | None = None) -> LabelledColumns:
        """Find the labels, convert them if asked to, and refuse what cannot be labels."""
        n = columns.n_columns
        column = column_called("--label-column", -1 if self.label_column is None else self.label_column, columns)
        if n < 2:
            raise Refusal(
                f"{columns.name}: there is one column only, and training takes two: tokens and their labels. Columns are split "
                f"at {'blanks' if self.separator is None else repr(self.separator)}; see --separator."
            )
        if like is not None and n != like.columns.n_columns:
            raise Refusal(
                f"{columns.name} has {n} columns, but {like.columns.name} has {like.columns.n_columns}; they must be alike."
            )
        labels = self.labels(columns, column)
        found = len(labels.distinct)
        if found > self.max_labels:
            examples = ", ".join(map(repr, columns.cells[column][:3]))
            raise Refusal(
                f"{columns.name}: column {column} has {found:,} different values in {columns.n_tokens:,} tokens ({examples}...), "
                "which are too many for labels. Choose another --label-column, or raise --max-labels."
            )
        return self.in_scheme(LabelledColumns(columns, column, labels, None))

    def in_scheme(self, data: LabelledColumns) -> LabelledColumns:
        """The same data with the scheme recognised, and converted to another if asked to."""
        labels, starts = data.labels, data.columns.starts
        if labels.is_partial:
            scheme = recognise([label for label in labels.distinct if isinstance(label, str)])
            if self.scheme is not None:
                raise Refusal("--scheme needs a label for every token: it cannot go with --unknown-label or --either.")
            return LabelledColumns(data.columns, data.column, labels, scheme)
        scheme = recognise_coded(labels.codes, starts, labels.distinct)
        if self.scheme is None or self.scheme == scheme:
            return LabelledColumns(data.columns, data.column, labels, scheme)
        if scheme is None:
            raise Refusal(
                f"{data.columns.name}: --scheme {self.scheme}: the labels in column {data.column} are no chunk labels like B-X, "
                f"I-X, O (e.g. {labels.distinct[0]!r})."
            )
        codes, names, repaired = convert_coded(labels.codes, starts, labels.distinct, self.scheme, scheme)
        return LabelledColumns(data.columns, data.column, GivenLabels(codes, names, data.column), scheme, repaired)

    def constraints(
        self, wanted: str | None, forbid: Sequence[str], force: Sequence[str], data: LabelledColumns
    ) -> dict[str, Any] | None:
        """What is to be obeyed: the rules of a scheme, and transitions that are forbidden or forced."""
        found: dict[str, Any] = {}
        if wanted is not None and wanted != "none":
            found["scheme"] = (self.scheme or data.scheme) if wanted == "auto" else wanted
            if found["scheme"] is None:
                raise Refusal(f"--constraints auto: the labels in {data.columns.name} are no chunk labels.")
        for key, given in (("forbid", forbid), ("force", force)):
            if given:
                found[key] = [self.transition(key, text) for text in given]
        return found or None

    def transition(self, option: str, text: str) -> tuple[str | None, str | None]:
        """A pair of labels, as it is typed."""
        words = text.split()
        if len(words) != 2:
            raise Refusal(f"--{option} takes two labels with a blank between them, say 'O I-NP'. Got {text!r}.")
        return None if words[0] == "(begin)" else words[0], None if words[1] == "(end)" else words[1]


def column_called(option: str, column: int, columns: Columns) -> int:
    """The number of a column, counted from 0, that a user may count from the last."""
    n = columns.n_columns
    if not -n <= column < n:
        raise Refusal(f"{columns.name}: {option} {column}: there are {n} columns, counted from 0.")
    return range(n)[column]


def with_more_templates(wanted: str | None, more: Sequence[str], data: LabelledColumns) -> Any:
    """A list that holds those of a set, or of a file, and more."""
    if wanted is None or wanted == "auto":
        wanted = default_templates(data.columns.n_columns - 1, data.labels)
    if wanted in SETS:
        return [wanted, *more]
    with open(wanted, encoding="utf-8-sig") as file:
        return [*file.read().splitlines(), *more]


def line_numbers(columns: Columns) -> np.ndarray:
    """The number of the line of each token, from 1."""
    newlines = np.flatnonzero(np.frombuffer(columns.data, np.uint8) == ord("\n"))
    return columns.first_line + np.searchsorted(newlines, columns.ends)  # type: ignore[arg-type]
