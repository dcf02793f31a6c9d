"""Files that are corrected in a few places and keep every other byte.

Places are counted in bytes of the text in UTF-8, after a byte order mark if there is one: the same for a browser, which has the
text in the page, and here, whatever the encoding of the file.
"""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from partwise.files.text_source import GZIP, NEWLINE, UTF8_MARK, to_text


class TextEdit(NamedTuple):
    """One place and what is to stand there."""

    begin: int  #: byte of the text
    old: str  #: what is there
    new: str


@dataclass(frozen=True)
class EditableText:
    """A file as it is, and its text."""

    name: str
    original: bytes
    encoding: str
    mark: bytes  #: the byte order mark of UTF-8, or nothing
    text: bytes  #: UTF-8, without the mark

    @classmethod
    def read(cls, path: str, encoding: str = "utf-8") -> EditableText:
        """Read a file.

        Raises
        ------
        ValueError
            If it could not be written again byte by byte: standard input, gzip, text that is not in that encoding, or that the
            encoding writes in several ways.
        """
        if path == "-":
            raise ValueError("standard input cannot be corrected: give the name of a file.")
        with open(path, "rb") as file:
            return cls.of(file.read(), os.path.basename(path), encoding)

    @classmethod
    def of(cls, original: bytes, name: str, encoding: str = "utf-8") -> EditableText:
        """The same from its bytes."""
        if original.startswith(GZIP):
            raise ValueError(f"{name} is compressed, and cannot be corrected byte by byte: unpack it first (gunzip).")
        if original.startswith(b"PK\x03\x04"):
            raise ValueError(
                f"{name} is an archive of arrays (.npz), which cannot be corrected byte by byte: write its pictures as JSON "
                "lines first (partwise.datasets.read_graphs, write_graphs)."
            )
        if original.startswith(b"PAR1"):
            raise ValueError(f"{name} is a parquet file, which cannot be corrected byte by byte: write it as CSV first.")
        text = to_text(original, encoding, name).encode()
        mark = UTF8_MARK if original.startswith(UTF8_MARK) and original == UTF8_MARK + text else b""
        made = cls(name, original, encoding, mark, text)
        if made.edited([]) != original:
            raise ValueError(
                f"{name}: read as {encoding} and written again, it would not be the same, byte by byte. Convert it to utf-8."
            )
        return made

    @property
    def sha256(self) -> str:
        """The digest of the file's bytes."""
        return hashlib.sha256(self.original).hexdigest()

    @functools.cached_property
    def newlines(self) -> np.ndarray:
        """Where lines end."""
        return np.flatnonzero(np.frombuffer(self.text, np.uint8) == ord(NEWLINE))

    def line(self, begin: int) -> int:
        """The number of the line of a place, from 1."""
        return int(np.searchsorted(self.newlines, begin)) + 1

    def line_begin(self, line: int) -> int:
        """Where a line begins, lines being numbered from 1."""
        return int(self.newlines[line - 2]) + 1 if line > 1 else 0

    def holds(self, edit: TextEdit) -> bool:
        """Whether the text has there what the edit says that it has."""
        old = edit.old.encode()
        return 0 <= edit.begin and self.text[edit.begin : edit.begin + len(old)] == old

    def edited(self, edits: Iterable[TextEdit]) -> bytes:
        """The bytes of the file after all edits; those places must be apart, and hold what is said."""
        pieces, after = [], 0
        for edit in sorted(edits):
            if edit.begin < after or not self.holds(edit):
                raise ValueError(f"{self.name}, line {self.line(edit.begin)}: there is no {edit.old!r} at byte {edit.begin}.")
            pieces += [self.text[after : edit.begin], edit.new.encode()]
            after = edit.begin + len(edit.old.encode())
        text = b"".join([*pieces, self.text[after:]])
        if self.mark or self.encoding.lower().replace("_", "-") in ("utf-8", "utf8", "utf-8-sig"):
            return self.mark + text
        try:
            return text.decode().encode(self.encoding)
        except UnicodeEncodeError as error:
            strange = error.object[error.start : error.end]
            raise ValueError(f"{self.name}: {strange!r} cannot be written in {self.encoding}.") from None
