"""Column files as integers: one pass over the bytes, one number per distinct cell and column, no Python object per token.

A column file has one token a line and a blank line after each sentence (CoNLL and its many relatives)::

    He      PRP  B-NP
    runs    VBZ  B-VP

    Yes     UH   O

The compiled scan finds cell boundaries and looks every cell up in an open-addressing table whose entries point back into the
buffer; a hit is confirmed byte by byte, so the coding is exact. Strings are made of the distinct cells only, which is also
where UTF-8 is checked. Reading takes O(bytes) time and, beside the text itself, 4 bytes per cell and 8 per token.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, BinaryIO

import numpy as np

from partwise.engine.ragged import taken
from partwise.features.given_labels import GivenLabels
from partwise.files.text_source import NEWLINE, last_blank_line, open_bytes, read_bytes, to_utf8
from partwise.text.column_scan import FULL, RAGGED, Layout, code_cells, insert_cells
from partwise.text.vocabulary import EMPTY

BLANKS = b" \t"
DOCUMENT_MARKS = ("-DOCSTART-",)
NO_TOKENS = "there are no tokens in it; expected one token a line and a blank line after each sentence."


@dataclasses.dataclass(frozen=True, eq=False)
class Columns:
    r"""Sentences whose cells are numbered, column by column, in the order they are first met.

    Examples
    --------
    >>> columns = read_columns(b"the D\ndog N\n\nthe D\n")
    >>> columns.n_sentences, columns.n_tokens, columns.cells
    (2, 3, [['the', 'dog'], ['D', 'N']])
    >>> columns[1]
    [('the', 'D')]
    """

    codes: np.ndarray  #: (columns, tokens) int32: the cell of a token is ``cells[column][codes[column, token]]``
    starts: np.ndarray  #: (sentences + 1,) int64: first token of each sentence, and the end
    cells: list[list[str]]  #: the distinct cells of each column
    name: str = "<tokens>"  #: where it came from, for messages
    data: bytes = b""  #: the text, if it came from one
    ends: np.ndarray | None = None  #: (tokens,) int64: where in `data` the last cell of a token ends
    first_line: int = 1  #: number of the first line of `data`

    def __repr__(self) -> str:
        return f"<Columns: {self.n_sentences} sentences, {self.n_tokens} tokens, {self.n_columns} columns from {self.name}>"

    @property
    def n_columns(self) -> int:
        return len(self.cells)

    @property
    def n_tokens(self) -> int:
        return self.codes.shape[1]

    @property
    def n_sentences(self) -> int:
        return len(self.starts) - 1

    def place(self, token: int) -> str:
        """Where a token is, in words."""
        if self.ends is not None:
            return f"{self.name}, line {self.first_line + self.data.count(NEWLINE, 0, int(self.ends[token]))}"
        sentence = int(np.searchsorted(self.starts, token, side="right")) - 1
        return f"sequence {sentence}, token {token - int(self.starts[sentence])}"

    def take(self, sentences: Any) -> Columns:
        """The sentences numbered `sentences`, in that order (to hold some out); cells keep their numbers."""
        which = np.asarray(sentences, np.int64)
        starts, tokens = taken(self.starts, which)
        ends = None if self.ends is None else self.ends[tokens]
        return dataclasses.replace(self, codes=np.ascontiguousarray(self.codes[:, tokens]), starts=starts, ends=ends)

    def sentences(self) -> list[list[tuple[str, ...]]]:
        """The sentences as lists of tuples of strings, as `partwise.datasets.read_columns` gives them."""
        columns = [list(map(cells.__getitem__, codes.tolist())) for cells, codes in zip(self.cells, self.codes, strict=True)]
        tokens = list(zip(*columns, strict=True))
        edges = self.starts.tolist()
        return [tokens[a:b] for a, b in zip(edges[:-1], edges[1:], strict=True)]

    def __len__(self) -> int:
        return self.n_sentences

    def __getitem__(self, sentence: int) -> list[tuple[str, ...]]:
        return self.take([range(self.n_sentences)[sentence]]).sentences()[0]

    def labels(self, column: int = -1, unknown: str | None = None, either: str | None = None) -> GivenLabels:
        """A column as labels.

        Parameters
        ----------
        column : int
            Which one; negative numbers count from the last.
        unknown : str, optional
            The cell that stands for a label that is not known.
        either : str, optional
            What stands between several labels in a cell, any of which may be right: ``NN|VB`` with ``"|"``.
        """
        if not -self.n_columns <= column < self.n_columns:
            raise ValueError(f"{self.name}: there is no column {column}: there are {self.n_columns} columns, counted from 0.")

        def read(cell: str) -> Any:
            if cell == unknown:
                return None
            return frozenset(cell.split(either)) if either and either in cell else cell

        return GivenLabels(self.codes[column], [read(cell) for cell in self.cells[column]], range(self.n_columns)[column])

    def append_column(self, codes: np.ndarray, cells: Sequence[str], separator: str | None = None) -> bytes:
        r"""The text with one more column, say of predictions: token t gets ``cells[codes[t]]``; all else stays as it was.

        Parameters
        ----------
        codes : int array (tokens,)
        cells : sequence of str
        separator : str, optional
            What to put before the new cell; by default a tab if the first token's line has one, else a blank.
        """
        if self.ends is None:
            raise ValueError("A column can be appended to what was read from a column file, not to lists of tokens.")
        if separator is None:
            end = int(self.ends[0]) if self.n_tokens else 0
            separator = "\t" if b"\t" in self.data[self.data.rfind(NEWLINE, 0, end) + 1 : end] else " "
        added = [(separator + cell).encode("utf-8", "surrogatepass") for cell in cells]
        edges = np.cumsum([0, *map(len, added)], dtype=np.int64)
        codes = np.ascontiguousarray(codes, np.int64)
        if codes.shape != (self.n_tokens,) or (codes.size and not 0 <= codes.min() <= codes.max() < len(added)):
            raise ValueError(f"There must be one code below {len(added)} for each of the {self.n_tokens} tokens.")
        out = np.empty(len(self.data) + int(np.diff(edges)[codes].sum()), np.uint8)
        insert_cells(_bytes(self.data), self.ends, codes, _bytes(b"".join(added)), edges, out)
        return out.tobytes()


# ---------------------------------------------------------------------------------------------------------------------
# Reading
# ---------------------------------------------------------------------------------------------------------------------


def read_columns(
    source: str | os.PathLike[str] | bytes | BinaryIO,
    separator: str | None = None,
    *,
    encoding: str = "utf-8",
    skip: Sequence[str] = DOCUMENT_MARKS,
    comment: str | None = None,
    usecols: Sequence[int] | slice | None = None,
    name: str | None = None,
) -> Columns:
    r"""Read a column file, its cells numbered.

    Parameters
    ----------
    source : path, bytes or binary file
        Gzipped or not, recognised by content; ``"-"`` is standard input.
    separator : str, optional
        What stands between two columns; any run of blanks and tabs by default.
    encoding : str
        Text in another encoding than UTF-8 is translated first. A byte order mark is left out.
    skip : sequence of str
        Lines whose first column is one of these are left out (document marks).
    comment : str, optional
        Lines that begin with it are left out. There is none by default: ``#`` is a word in many corpora.
    usecols : sequence of int or slice, optional
        Which columns to keep, in this order; negative ones count from the last. ``slice(2)``: the first two, if there are two.
    name : str, optional
        What to call the source in messages.

    Returns
    -------
    Columns

    Raises
    ------
    ValueError
        With file and line: lines of different width, bytes that are not text, a file without tokens, a damaged gzip file.

    Examples
    --------
    >>> columns = read_columns(b"the D\ndog N\n\nthe D\n")
    >>> columns.codes.tolist(), columns.cells, columns.starts.tolist()
    ([[0, 1, 0], [0, 1, 0]], [['the', 'dog'], ['D', 'N']], [0, 2, 3])
    """
    reader = Reader(separator, skip, comment, usecols)
    with open_bytes(source) as (stream, found):
        name = name or found
        columns = reader.code(to_utf8(read_bytes(stream, -1, name), encoding, name), name)
    if columns is None:
        raise ValueError(f"{name}: {NO_TOKENS}")
    return columns


def stream_columns(
    source: str | os.PathLike[str] | BinaryIO,
    separator: str | None = None,
    *,
    chunk_bytes: int = 1 << 24,
    skip: Sequence[str] = DOCUMENT_MARKS,
    comment: str | None = None,
    usecols: Sequence[int] | slice | None = None,
    name: str | None = None,
    all_text: bool = False,
) -> Iterator[Columns]:
    """Read a column file of any size, in UTF-8, as parts of whole sentences, about `chunk_bytes` of text each.

    Every part numbers its own cells; to an encoder only their strings count. With `all_text`, text without tokens (comments at
    the end, say) comes as a part without columns, so that the `data` of all parts are the whole text. Other parameters and errors
    are those of `read_columns`.
    """
    if not (isinstance(chunk_bytes, int) and chunk_bytes >= 1):
        raise ValueError(f"The 'chunk_bytes' parameter must be an int in the range [1, inf). Got {chunk_bytes!r} instead.")
    reader, some = Reader(separator, skip, comment, usecols), False
    for data, found, line in text_parts(source, chunk_bytes, name):
        name = found
        columns = reader.code(data, name, line)
        if columns is not None:
            some = True
            yield columns
        elif all_text and data:
            none: np.ndarray = np.zeros(0, np.int64)
            yield Columns(np.zeros((0, 0), np.int32), np.zeros(1, np.int64), [], name, data, none, line)
    if not some:
        raise ValueError(f"{name}: {NO_TOKENS}")


def text_parts(source: Any, chunk_bytes: int, name: str | None = None) -> Iterator[tuple[bytes, str, int]]:
    """Text in UTF-8 as parts of whole sentences, about `chunk_bytes` each: the bytes, the name, the number of the first line."""
    with open_bytes(source) as (stream, found):
        name = name or found
        line, size = 1, chunk_bytes
        pending = to_utf8(read_bytes(stream, 4, name), "utf-8", name)
        while True:
            more = read_bytes(stream, size, name)
            pending += more
            cut = len(pending) if not more else last_blank_line(pending)
            if cut or not more:
                yield pending[:cut], name, line
                line += pending.count(NEWLINE, 0, cut)
                pending, size = pending[cut:], chunk_bytes
            else:
                size *= 2  # a sentence longer than a part
            if not more:
                break


class ColumnFile:
    r"""A column file to go through again and again, part by part: what ``SequenceLabeler.fit_stream`` takes.

    Parameters
    ----------
    source : path
    **options
        Those of `stream_columns`.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("some.txt").write_text("the D\ndog N\n\nit P\n")
    >>> [part.n_sentences for part in ColumnFile("some.txt", chunk_bytes=8)]
    [1, 1]
    """

    def __init__(self, source: str | os.PathLike[str], separator: str | None = None, **options: Any):
        if not isinstance(source, str | os.PathLike) or source == "-":
            raise TypeError(f"A ColumnFile must be a file that can be read again. Got {source!r}.")
        self.source, self.separator, self.options = source, separator, options

    def __iter__(self) -> Iterator[Columns]:
        return stream_columns(self.source, self.separator, **self.options)


def code_tokens(sentences: Sequence[Sequence[Any]]) -> Columns:
    """Number the cells of sentences given as lists of tokens, each a tuple or list of strings."""
    for s, sentence in enumerate(sentences):
        if isinstance(sentence, str | bytes) or not isinstance(sentence, Sequence):
            raise TypeError(f"A sentence must be a list of tokens. Got {type(sentence).__name__} as sequence {s}.")
    starts = np.concatenate([[0], np.cumsum([len(sentence) for sentence in sentences])]).astype(np.int64)
    tokens = list(chain.from_iterable(sentences))
    place = Columns(np.zeros((0, len(tokens)), np.int32), starts, []).place
    for kind in set(map(type, tokens)):
        if not issubclass(kind, list | tuple):
            t = next(t for t, token in enumerate(tokens) if isinstance(token, kind))
            advice = f"; write ({tokens[t]!r},) if that is its only column" if issubclass(kind, str) else ""
            raise TypeError(f"A token must be a tuple or list of strings. Got {kind.__name__} as {place(t)}{advice}.")
    width = len(tokens[0]) if tokens else 0
    if set(map(len, tokens)) - {width}:
        t = next(t for t, token in enumerate(tokens) if len(token) != width)
        raise ValueError(f"Expected {width} columns as in the tokens before, got {len(tokens[t])} in {place(t)}: {tokens[t]!r}.")
    codes, cells = np.empty((width, len(tokens)), np.int32), []
    for c in range(width):
        numbers: Any = defaultdict(None)
        numbers.default_factory = numbers.__len__
        try:
            codes[c] = np.fromiter(map(numbers.__getitem__, [token[c] for token in tokens]), np.int32, len(tokens))
            strange = any(not isinstance(cell, str) for cell in numbers)
        except TypeError:  # not hashable
            strange = True
        if strange:
            t = next(t for t, token in enumerate(tokens) if not isinstance(token[c], str))
            raise TypeError(f"The cells of a token must be strings. Got {tokens[t][c]!r} as column {c} of {place(t)}.")
        cells.append(list(numbers))
    return Columns(codes, starts, cells)


class Reader:
    """Cuts and codes text; the number of columns is that of the first token line it meets, from then on."""

    def __init__(self, separator: str | None, skip: Sequence[str], comment: str | None, usecols: Sequence[int] | slice | None):
        if separator is not None and (not isinstance(separator, str) or separator in ("", "\n", "\r")):
            raise ValueError(
                f"The 'separator' parameter must be None or a string, not empty or a line end. Got {separator!r} instead."
            )
        if isinstance(skip, str):
            raise ValueError(f"The 'skip' parameter must be a list of strings. Got {skip!r} instead.")
        self.separator, self.usecols = separator, usecols
        self.layout: Layout | None = None
        self.comment, self.marks = (comment or "").encode(), [mark.encode() for mark in skip]

    def code(self, data: bytes, name: str, first_line: int = 1) -> Columns | None:
        """Columns of the whole sentences in `data`, or None if there are no tokens."""
        if self.layout is None:
            first = self._first_token(data)
            if first is None:
                return None
            self.layout = self._layout(first, name)
        layout = self.layout
        width, kept = len(layout.target), int(layout.target.max(initial=-1)) + 1
        lines = data.count(NEWLINE) + 1
        room = min(lines, len(data) // width + 1)  # a cell and what follows it take a byte at least
        codes: np.ndarray = np.empty((kept, room), np.int32)
        starts, ends = np.zeros(lines // 2 + 2, np.int64), np.empty(room, np.int64)
        state, counts = np.zeros(6, np.int64), np.zeros(kept, np.int64)
        found: np.ndarray = np.empty((0, 4), np.int64)
        status = FULL
        while status == FULL:
            n = int(state[4])
            found = np.concatenate([found[:n], np.empty((3 * n + kept + 1024, 4), np.int64)])
            slots = np.full(1 << (2 * len(found)).bit_length(), EMPTY, np.int64)
            with np.errstate(over="ignore"):  # hashes wrap around
                status = code_cells(_bytes(data), layout, codes, starts, ends, found, slots, counts, state)
        if status == RAGGED:
            begin = int(state[0])
            text = data[begin : begin + 80].split(NEWLINE)[0].decode("utf-8", "replace").rstrip("\r")
            what = "any blank" if self.separator is None else repr(self.separator)
            where = f"{name}, line {first_line + state[1]}"
            raise ValueError(
                f"{where}: expected {width} columns as in the lines before, got {state[5]}: {text!r}. "
                f"Columns are split at {what}; pass `separator` if that is wrong."
            )
        _, _, tokens, sentences, n, _ = state.tolist()
        if not tokens:
            return None
        cells: list[list[str]] = [[] for _ in range(kept)]
        a = b = 0
        try:
            for a, b, column in zip(*found[:n, :3].T.tolist(), strict=True):
                cells[column].append(str(data[a:b], "utf-8"))
        except UnicodeDecodeError as error:
            where = f"{name}, line {first_line + data.count(NEWLINE, 0, a)}"
            raise ValueError(
                f"{where}: not valid utf-8 text: {data[a:b][:80]!r} ({error.reason}). Pass the file's `encoding`."
            ) from None
        codes = np.ascontiguousarray(codes[:, :tokens])
        return Columns(codes, starts[: sentences + 1].copy(), cells, name, data, ends[:tokens].copy(), first_line)

    def _first_token(self, data: bytes) -> list[bytes] | None:
        begin = 0
        while begin < len(data):
            end = data.find(NEWLINE, begin)
            end = len(data) if end < 0 else end
            line = data[begin:end].rstrip(b"\r")
            begin = end + 1
            if not line.strip(BLANKS) or (self.comment and line.lstrip(BLANKS).startswith(self.comment)):
                continue
            fields = re.split(rb"[ \t]+", line.strip(BLANKS)) if self.separator is None else line.split(self.separator.encode())
            if fields[0] not in self.marks:
                return fields
        return None

    def _layout(self, first: list[bytes], name: str) -> Layout:
        width = len(first)
        target = np.arange(width)
        if self.usecols is not None:
            target = np.full(width, -1)
            for k, c in enumerate(range(width)[self.usecols] if isinstance(self.usecols, slice) else self.usecols):
                if not -width <= c < width:
                    raise ValueError(f"{name}: there is no column {c}: there are {width} columns, counted from 0.")
                if target[c] >= 0:
                    raise ValueError(f"{name}: column {c} is asked for twice.")
                target[c] = k
        edges = np.cumsum([0, *map(len, self.marks)], dtype=np.int64)
        separator = (self.separator or "").encode()
        return Layout(_bytes(separator), _bytes(self.comment), _bytes(b"".join(self.marks)), edges, target.astype(np.int64))


def _bytes(data: bytes) -> np.ndarray:
    return np.frombuffer(data, np.uint8)
