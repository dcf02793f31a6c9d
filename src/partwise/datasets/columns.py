"""Column files, one token a line and a blank line after each sentence (CoNLL and its many relatives), and attributes for them."""

from __future__ import annotations

import gzip
import io
import os
from collections.abc import Iterable, Iterator, Sequence

Token = tuple[str, ...]


def open_text(path: str | os.PathLike[str], encoding: str = "utf-8") -> io.TextIOBase:
    """Open a text file for reading, decompressing it if it starts like a gzip file (whatever its name)."""
    with open(path, "rb") as f:
        is_gzip = f.read(2) == b"\x1f\x8b"
    if is_gzip:
        return gzip.open(path, "rt", encoding=encoding, newline=None)  # type: ignore[return-value]
    return open(path, encoding=encoding, newline=None)


def read_columns(
    source: str | os.PathLike[str] | Iterable[str],
    separator: str | None = None,
    *,
    encoding: str = "utf-8",
    skip: Sequence[str] = ("-DOCSTART-",),
) -> list[list[Token]]:
    """Read sentences from a column file.

    Parameters
    ----------
    source : path or iterable of lines
        A file, gzipped or not, or its lines.
    separator : str, optional
        What stands between two columns; any run of blanks and tabs by default.
    encoding : str
    skip : sequence of str
        Lines whose first column is one of these are left out (document marks).

    Returns
    -------
    list of sentences, each a list of tuples, one tuple of columns per token

    Raises
    ------
    ValueError
        If a line has another number of columns than the lines before it; the message names the file and the line.

    Examples
    --------
    >>> read_columns(["He PRP B-NP", "runs VBZ B-VP", "", "Yes UH O"])
    [[('He', 'PRP', 'B-NP'), ('runs', 'VBZ', 'B-VP')], [('Yes', 'UH', 'O')]]
    """
    if isinstance(source, str | os.PathLike):
        with open_text(source, encoding) as lines:
            return list(_sentences(lines, os.fspath(source), separator, skip))
    return list(_sentences(source, "<lines>", separator, skip))


def _sentences(lines: Iterable[str], name: str, separator: str | None, skip: Sequence[str]) -> Iterator[list[Token]]:
    sentence: list[Token] = []
    width = 0
    number = 0
    try:
        for number, line in enumerate(lines, 1):
            line = line.rstrip("\r\n")
            if not line.strip():
                if sentence:
                    yield sentence
                    sentence = []
                continue
            token = tuple(line.split(separator))
            if token[0] in skip:
                continue
            width = width or len(token)
            if len(token) != width:
                what = "any blank" if separator is None else repr(separator)
                raise ValueError(
                    f"{name}, line {number}: expected {width} columns as in the lines before, got {len(token)}: {line[:80]!r}. "
                    f"Columns are split at {what}; pass `separator` if that is wrong."
                )
            sentence.append(token)
    except UnicodeDecodeError as error:
        raise ValueError(f"{name}, after line {number}: not valid {error.encoding} text. Pass the file's `encoding`.") from error
    except EOFError as error:
        raise ValueError(f"{name}, after line {number}: the compressed file ends too early.") from error
    if sentence:
        yield sentence


# The templates of CRFsuite's chunking tutorial: (column, offset) pairs joined into one attribute.
_W, _POS = 0, 1
CHUNKING_TEMPLATES: tuple[tuple[tuple[int, int], ...], ...] = (
    *(((_W, t),) for t in (-2, -1, 0, 1, 2)),
    ((_W, -1), (_W, 0)),
    ((_W, 0), (_W, 1)),
    *(((_POS, t),) for t in (-2, -1, 0, 1, 2)),
    *(((_POS, t), (_POS, t + 1)) for t in (-2, -1, 0, 1)),
    *(((_POS, t), (_POS, t + 1), (_POS, t + 2)) for t in (-2, -1, 0)),
)
_NAMES = tuple("|".join(f"{('w', 'pos')[c]}[{t}]" for c, t in template) + "=" for template in CHUNKING_TEMPLATES)


def chunking_attributes(sentence: Sequence[Sequence[str]]) -> list[list[str]]:
    """Attributes of every token by the 19 templates of CRFsuite's chunking tutorial, with ``__BOS__`` and ``__EOS__``.

    Words in a window of five, two word pairs, part-of-speech tags in the same window, and their pairs and triples. A template
    that reaches outside the sentence gives no attribute.

    Parameters
    ----------
    sentence : sequence of tokens
        The first column is the word, the second its part-of-speech tag; further columns are not looked at.

    Returns
    -------
    list of lists of str

    References
    ----------
    Okazaki (2007), CRFsuite, tutorial "Chunking".

    Examples
    --------
    >>> chunking_attributes([("He", "PRP"), ("runs", "VBZ")])[1][:3]
    ['w[-1]=He', 'w[0]=runs', 'w[-1]|w[0]=He|runs']
    """
    n = len(sentence)
    result = []
    for i in range(n):
        attributes = []
        for name, template in zip(_NAMES, CHUNKING_TEMPLATES, strict=True):
            if 0 <= i + template[0][1] and i + template[-1][1] < n:
                attributes.append(name + "|".join(sentence[i + t][c] for c, t in template))
        if i == 0:
            attributes.append("__BOS__")
        if i == n - 1:
            attributes.append("__EOS__")
        result.append(attributes)
    return result
