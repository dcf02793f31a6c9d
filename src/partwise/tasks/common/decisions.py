"""Decisions about suspects, as the page in the browser hands them out (JSON): read, checked against a file, and applied."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from partwise.files.text_edits import EditableText, TextEdit
from partwise.files.text_source import NEWLINE
from partwise.tasks.common.command_options import Refusal

FORMAT, NEWEST = "partwise decisions", 1
CHOICES = ("accept", "keep", "edit")


@dataclass(frozen=True)
class Change:
    """One cell that is to be replaced."""

    line: int
    at: int  #: the byte of the text where the cell begins
    old: str  #: as the file has it
    new: str

    @property
    def beginning(self) -> str:
        """What the file has of it in the line where it begins: a tree may take several."""
        return self.old.partition("\n")[0].removesuffix("\r")

    @property
    def edit(self) -> TextEdit:
        """What is to be done."""
        return TextEdit(self.at, self.old, self.new)


@dataclass(frozen=True)
class Decisions:
    """What somebody has decided about the suspects of a file."""

    name: str  #: of the file that holds the decisions
    task: str
    file: str  #: the name of the file that they are about
    sha256: str
    encoding: str
    reading: dict[str, Any]  #: how the file was read
    choices: dict[str, int]  #: how many of each kind
    changes: list[Change]

    @classmethod
    def read(cls, path: str | Path) -> Decisions:
        """From the file that the page makes."""
        name = str(path)
        try:
            said = json.loads(Path(path).read_text(encoding="utf-8-sig"))
        except UnicodeDecodeError:
            raise Refusal(f"{name} is not a file of decisions: it is not text.") from None
        except (ValueError, RecursionError) as error:
            raise Refusal(f"{name} is not a file of decisions: it is no JSON ({error}).") from None
        if not isinstance(said, dict) or said.get("format") != FORMAT:
            raise Refusal(f"{name} is not a file of decisions, as 'download decisions' of a page of suspects makes it.")
        if said.get("version") != NEWEST:
            raise Refusal(f"{name} is of version {said.get('version')!r}; this partwise reads version {NEWEST}.")
        try:
            about, choices, changes = said["file"], dict.fromkeys(CHOICES, 0), []
            for one in said["decisions"]:
                choices[one["choice"]] += 1
                changes += [change(each) for each in one["changes"]]
            texts = said["task"], about["name"], about["sha256"], about["encoding"]
            if not all(isinstance(text, str) for text in texts) or not isinstance(said["reading"], dict):
                raise TypeError
        except (KeyError, TypeError, AttributeError, UnicodeError):
            raise Refusal(f"{name} is damaged or was altered: something is missing in it, or is not what it should be.") from None
        return cls(name, *texts, said["reading"], choices, without_repeats(changes, name))

    def apply(self, source: EditableText) -> bytes:
        """The corrected file; refuses, naming the line, what does not fit."""
        if source.sha256 != self.sha256:
            raise Refusal(self.misfit(source))
        for one in self.changes:
            if not source.holds(one.edit) or source.line(one.at) != one.line:
                raise Refusal(
                    f"{self.name} does not fit {source.name}: line {one.line} does not have {one.old!r} at byte {one.at}."
                )
        return source.edited(one.edit for one in self.changes)

    def counted(self) -> str:
        """How many decisions of each kind, in words."""
        names = {"accept": "accepted", "keep": "kept", "edit": "edited"}
        return ", ".join(f"{self.choices[choice]:,} {name}" for choice, name in names.items())

    def misfit(self, source: EditableText) -> str:
        """Why decisions are not about a file whose digest is another."""
        if self.is_applied(source):
            return f"{source.name} has these corrections already: {self.name} was applied to it before. Nothing is to be done."
        lines = source.text.split(NEWLINE)
        gone = [one for one in self.changes if one.line > len(lines) or one.beginning.encode() not in lines[one.line - 1]]
        if source.name != self.file:
            text = f"{self.name} is about a file called {self.file}, and {source.name} is another one (its sha256 differs)."
        else:
            text = f"{source.name} has changed since the page was made (its sha256 differs)."
        if gone:
            text += f" In line {gone[0].line}, say, there is no {gone[0].beginning!r} any more."
        return f"{text} Nothing was written. Give the file as it was, or make the page anew."

    def is_applied(self, source: EditableText) -> bool:
        """Whether the file is what applying the decisions once gives."""
        back, shift = [], 0
        for one in sorted(self.changes, key=lambda change: change.at):
            back.append(TextEdit(one.at + shift, one.new, one.old))
            shift += len(one.new.encode()) - len(one.old.encode())
        if not back or not all(source.holds(edit) for edit in back):
            return False
        try:
            return EditableText.of(source.edited(back), source.name, source.encoding).sha256 == self.sha256
        except ValueError:
            return False


def change(said: Any) -> Change:
    """One change, from JSON."""
    line, at, old, new = said["line"], said["at"], said["from"], said["to"]
    numbers = all(isinstance(value, int) and not isinstance(value, bool) and value >= 0 for value in (line, at))
    if not numbers or not isinstance(old, str) or not isinstance(new, str):
        raise TypeError
    (old + new).encode()  # half a character is no text
    return Change(line, at, old, new)


def without_repeats(changes: list[Change], name: str) -> list[Change]:
    """Each once; two that want different things of one place are refused."""
    found: dict[int, Change] = {}
    for one in changes:
        before = found.setdefault(one.at, one)
        if before != one:
            raise Refusal(
                f"{name} decides twice about line {one.line}: {before.old!r} is to become {before.new!r}, and {one.new!r}. "
                "Take one of them out."
            )
    return list(found.values())
