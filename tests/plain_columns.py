"""Column files read the plain way, line by line and string by string: the twin that tests compare the compiled reader with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

Token = tuple[str, ...]


def read_lines(lines: Iterable[str], separator: str | None = None, skip: Sequence[str] = ("-DOCSTART-",)) -> list[list[Token]]:
    return list(_sentences(lines, "<lines>", separator, skip))


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
