"""``python -m campaign.faulty N ERRNO WORDS``: ``partwise WORDS``, whose writes to files fail from the N-th on."""

from __future__ import annotations

import os
import sys
from typing import Any

from partwise.files import whole_file


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
    """One write, or one flush to disk, less."""
    Failing.left -= 1
    if Failing.left < 0:
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


def main() -> None:
    """Run the command."""
    Failing.left, Failing.number = int(sys.argv[1]), int(sys.argv[2])
    sys.argv[1:3] = []
    whole_file.os = FaultyOs()  # type: ignore[attr-defined]
    from partwise.cli import main as command

    command()


if __name__ == "__main__":
    main()
