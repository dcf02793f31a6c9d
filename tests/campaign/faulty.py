"""Disks that fail at the N-th write, and processes that die there."""

from __future__ import annotations

import os
import signal
from typing import Any

from partwise.files import packed_arrays, whole_file

DEATH = -1  #: in the place of an error number: kill -9


class Failing:
    """A file that takes so many writes, and no more."""

    left = 0
    number = 0

    def __init__(self, file: Any):
        self.file = file

    def write(self, data: Any) -> int:
        fail_if_due()
        return self.file.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)

    def __enter__(self) -> Failing:
        self.file.__enter__()
        return self

    def __exit__(self, *error: Any) -> Any:
        return self.file.__exit__(*error)


def fail_if_due() -> None:
    """One write, one flush to disk or one rename less."""
    Failing.left -= 1
    if Failing.left < 0:
        if Failing.number == DEATH:
            os.kill(os.getpid(), signal.SIGKILL)
        raise OSError(Failing.number, os.strerror(Failing.number))


class FaultyOs:
    """The module `os`, as files that appear whole see it."""

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def fdopen(self, *words: Any, **more: Any) -> Any:
        return Failing(os.fdopen(*words, **more))

    def fsync(self, fd: int) -> None:
        fail_if_due()
        os.fsync(fd)

    def replace(self, old: Any, new: Any) -> None:
        fail_if_due()
        os.replace(old, new)

    rename = replace


def after(writes: int, number: int) -> None:
    """From now on, so many writes go well in this process."""
    Failing.left, Failing.number = writes, number
    whole_file.os = FaultyOs()  # type: ignore[attr-defined]
    packed_arrays.os = FaultyOs()  # type: ignore[attr-defined]
