"""Files that appear under their name when they are complete, or not at all.

Writing goes to an unnamed file in the same folder (where the system has them, else a temporary one), is flushed to disk and put
in place by one rename: a full disk or a kill leaves what was there before as it was.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def whole_file(path: Any) -> Iterator[Any]:
    """A binary file to write to. What is no regular file (a pipe, /dev/null) is written to as it is."""
    path = os.path.realpath(os.fspath(path))
    folder, name = os.path.split(path)
    if os.path.isdir(path):
        raise IsADirectoryError(f"{path!r} is a folder; give the name of a file.")
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"There is no folder {folder!r} to write to.")
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as file:
            yield file
        return
    temporary = os.path.join(folder, f".{name}.{os.getpid()}.{os.urandom(4).hex()}.tmp")
    try:
        with _new_file(folder, temporary) as fd, os.fdopen(fd, "wb", buffering=1 << 20, closefd=False) as file:
            yield file
            file.flush()
            os.fsync(fd)
        os.replace(temporary, path)
    except OSError as error:
        _remove(temporary)
        if error.filename is None and error.strerror:  # a full disk does not say whose
            raise OSError(error.errno, error.strerror, path) from None
        raise
    except BaseException:
        _remove(temporary)
        raise
    with contextlib.suppress(OSError):  # make the rename itself durable, where folders can be opened
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)


@contextlib.contextmanager
def _new_file(folder: str, path: str) -> Iterator[int]:
    """A file descriptor to write to, called `path` when done. Unnamed until then where the system can: a kill leaves no trace."""
    fd = -1
    if hasattr(os, "O_TMPFILE") and os.path.isdir("/proc/self/fd"):  # which names it; a bare chroot has none
        with contextlib.suppress(OSError):
            fd = os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o666)
    named = fd < 0
    if named:
        fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0), 0o666)
    try:
        yield fd
        if not named:
            into = os.open(folder, os.O_RDONLY)
            try:
                os.link(f"/proc/self/fd/{fd}", os.path.basename(path), dst_dir_fd=into)
            finally:
                os.close(into)
    finally:
        os.close(fd)
