"""The process of a command: who may interrupt it, and what it writes to where there is nothing to write to."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import signal
import sys
from typing import Any, NoReturn

_interrupted = False


def hear_signals() -> None:
    """From now on SIGTERM is what Ctrl-C is: an interruption, after which what was learnt is kept."""
    with contextlib.suppress(ValueError, AttributeError):  # not in the main thread: a test
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup, say
                signal.signal(number, interrupt)


def interrupt(*_: Any) -> None:
    """Somebody wants us to end."""
    global _interrupted
    _interrupted = True
    raise KeyboardInterrupt


def was_interrupted() -> bool:
    """Whether somebody wanted us to end: modules that are interrupted while they are imported raise all sorts of errors."""
    return _interrupted


def end_interrupted() -> NoReturn:
    """Say so, and end with the status of Ctrl-C."""
    with contextlib.suppress(OSError, ValueError):
        print("partwise: interrupted", file=sys.stderr)
    raise SystemExit(130)


class Closed(io.BufferedIOBase):
    """A stream that was closed before we were started: the first thing that is written to it is an error with a name."""

    said = False

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        if self.said:  # and not again, when all streams are flushed at the end
            return len(data)
        self.said = True
        raise OSError(errno.EBADF, "it is closed, and there is something to write", "standard output")


def fill_streams() -> None:
    """Put something in the place of standard streams that are closed.

    Their numbers must not be given to files that are opened later. Errors go nowhere, then; results are an error.
    """
    if None not in (sys.stdin, sys.stdout, sys.stderr):
        return
    while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(fd)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")
    if sys.stdout is None:
        sys.stdout = io.TextIOWrapper(Closed(), write_through=True)
