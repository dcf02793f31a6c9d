"""Column files with chunk labels, and files of phrases."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from partwise.files.text_source import open_bytes, read_bytes, to_utf8
from partwise.tasks.segments.data import SegmentedText, checked
from partwise.text.columns import read_columns

UNLABELLED = "there is one column only: tokens, and no labels."


def read_segments(
    source: Any,
    encoding: str = "utf-8",
    separator: str | None = None,
    comment: str | None = None,
    label_column: int | None = -1,
    unknown_label: str | None = None,
) -> SegmentedText:
    r"""Read a column file: a token a line, a blank line after each sentence.

    Parameters
    ----------
    source : path, bytes or binary file
        Gzipped or not; ``"-"`` is standard input.
    encoding, separator, comment
        As in `partwise.text.columns.read_columns`.
    label_column : int or None
        The column of the chunk labels, negative: from the last; None: there are none, or they do not matter.
    unknown_label : str, optional
        The cell that stands for a label that is not known.

    Examples
    --------
    >>> len(read_segments(b"Ann B-PER\nleft O\n\nUlm B-LOC\n"))
    2
    """
    columns = read_columns(source, separator, encoding=encoding, comment=comment)
    if label_column is None:
        return SegmentedText(columns)
    if columns.n_columns < 2:
        raise ValueError(f"{columns.name}: {UNLABELLED}")
    return SegmentedText(columns, checked(columns.labels(label_column, unknown_label), columns))


def read_dictionary(path: Any, encoding: str = "utf-8") -> dict[str, list[tuple[str, ...]]]:
    r"""Phrases, one a line, words with blanks between them; or a name, a tab, a phrase. Without names, the file's is taken.

    Parameters
    ----------
    path : path, bytes or binary file
    encoding : str

    Examples
    --------
    >>> read_dictionary(b"city\tNew York\ncity\tUlm\n")
    {'city': [('New', 'York'), ('Ulm',)]}
    """
    with open_bytes(path) as (stream, name):
        text = to_utf8(read_bytes(stream, -1, name), encoding, name).decode()
    found: dict[str, list[tuple[str, ...]]] = {}
    stem = re.sub(r"\W+", "_", Path(str(path)).name.removesuffix(".gz").rsplit(".", 1)[0]) or "dictionary"
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        kind, _, phrase = line.rpartition("\t")
        words = tuple(phrase.split())
        if not words or kind.count("\t"):
            raise ValueError(f"{name}, line {number}: expected a phrase, or a name, a tab and a phrase. Got {line[:60]!r}.")
        found.setdefault(kind.strip() or stem, []).append(words)
    if not found:
        raise ValueError(f"{name}: there are no phrases in it.")
    return found
