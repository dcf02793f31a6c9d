"""Where text comes from: a path, standard input or an open file, gzipped or not, in any encoding. What comes out is UTF-8."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import re
import sys
import zlib
from collections.abc import Iterator
from typing import Any

NEWLINE, GZIP = b"\n", b"\x1f\x8b"
UTF8_MARK, UTF16_MARKS = b"\xef\xbb\xbf", (b"\xff\xfe", b"\xfe\xff")


class NamedText(bytes):
    """Text in memory that is called something in messages, and can be read again and again."""

    name: str

    def __new__(cls, data: bytes, name: str) -> NamedText:
        made = super().__new__(cls, data)
        made.name = name
        return made


@contextlib.contextmanager
def open_bytes(source: Any) -> Iterator[tuple[Any, str]]:
    """A binary stream, decompressed if it begins like a gzip file, and its name. What was opened here is closed here."""
    with contextlib.ExitStack() as stack:
        name = str(getattr(source, "name", "<stream>"))
        if isinstance(source, bytes | bytearray | memoryview):
            source, name = io.BytesIO(source), getattr(source, "name", "<bytes>")
        elif isinstance(source, str) and source == "-":
            if sys.stdin is None:
                raise ValueError("There is nothing to read: standard input is closed.")
            source, name = sys.stdin.buffer, "<stdin>"
        elif isinstance(source, str | os.PathLike):
            name = os.fspath(source)
            source = stack.enter_context(open(source, "rb"))
        elif isinstance(source, io.TextIOBase) or not hasattr(source, "read"):
            raise TypeError(
                f"Text must come from a path, bytes or a file opened in binary mode. Got {type(source).__name__} instead."
            )
        stream = source
        if not hasattr(source, "peek"):
            stream = io.BufferedReader(source)
            stack.callback(stream.detach)  # or it would close what is not ours
        yield (gzip.GzipFile(fileobj=stream) if stream.peek(2)[:2] == GZIP else stream), name


def read_bytes(stream: Any, size: int, name: str) -> bytes:
    """Up to `size` bytes, all of them if it is -1; a damaged gzip file is a ValueError."""
    try:
        return stream.read(size)
    except EOFError:
        raise ValueError(f"{name}: the compressed file ends too early.") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{name}: the compressed file is damaged ({error}).") from None


def to_utf8(data: bytes, encoding: str, name: str) -> bytes:
    """The beginning of a text, or all of it, in UTF-8 and without a byte order mark. UTF-8 itself is not checked here."""
    if encoding.lower().replace("_", "-") not in ("utf-8", "utf8", "utf-8-sig"):
        try:
            data = data.decode(encoding).encode()
        except LookupError:
            raise ValueError(f"{name}: there is no encoding {encoding!r}.") from None
        except UnicodeError as error:
            line = data.count(NEWLINE, 0, getattr(error, "start", 0)) + 1
            raise ValueError(f"{name}, line {line}: not valid {encoding} text ({error}). Pass the file's `encoding`.") from None
    elif data[:2] in UTF16_MARKS:
        raise ValueError(f"{name}, line 1: not valid utf-8 text but, by its first bytes, utf-16. Pass the file's `encoding`.")
    if NEWLINE not in data and re.search(rb"\r[^\n]", data):
        raise ValueError(f"{name}: its lines end with CR alone, as on old Macintoshes. Convert them to LF, by: tr '\\r' '\\n'")
    return data.removeprefix(UTF8_MARK)


def to_text(data: bytes, encoding: str, name: str) -> str:
    """A whole text, without a byte order mark; an error says in which line it is none."""
    data = to_utf8(data, encoding, name)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(NEWLINE, 0, error.start) + 1
        raise ValueError(f"{name}, line {line}: not valid utf-8 text ({error.reason}). Pass the file's `encoding`.") from None


def read_text(source: Any, encoding: str) -> tuple[str, str]:
    """The text of a file, and its name."""
    with open_bytes(source) as (stream, name):
        return to_text(read_bytes(stream, -1, name), encoding, name), name


def read_lines(source: Any, encoding: str) -> tuple[list[str], str]:
    """The lines of a file, and its name; what else a text may be broken at, a form feed say, is text."""
    text, name = read_text(source, encoding)
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")], name


def last_blank_line(data: bytes) -> int:
    """Just after the last blank line that ends in `data`, or 0."""
    cut = max(data.rfind(b"\n\n") + 2, data.rfind(b"\n\r\n") + 3)
    if cut > 2:
        return cut
    return max((match.end() for match in re.finditer(rb"\n[ \t\r]*\n", data)), default=0)
