"""Compiled code on disk: one file per loop, structure, signature and state of the sources it was compiled from.

Reading compiled code is running it. So a file is read only if nobody but its owner can have written it, the owner being the user
who runs this, or the administrator; and only from a directory of which the same is true. A file begins with a digest of the rest:
what is damaged is not run. Whatever cannot be read is compiled again; nothing here ever fails. What cannot be written is not
kept, and one line says so.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

HEAD = b"partwise code 1\n"  # of every file; then the digest
STALE = 30 * 86400  # seconds after which code from other sources is removed: until then another checkout may be using it


def default_directory() -> Path:
    """``partwise`` in the user's cache folder."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or tempfile.gettempdir()
    elif sys.platform == "darwin":
        base = os.path.expanduser("~/Library/Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base) / "partwise"


def cache_directory() -> Path:
    """Where compiled code is kept: ``$PARTWISE_CACHE_DIR``, else ``$NUMBA_CACHE_DIR``, else `default_directory`."""
    named = os.environ.get("PARTWISE_CACHE_DIR") or os.environ.get("NUMBA_CACHE_DIR")
    return Path(named) if named else default_directory()


# ---------------------------------------------------------------------------------------------------------------------
# Digests
# ---------------------------------------------------------------------------------------------------------------------


@functools.cache
def _file_hash(path: str, mtime: int) -> bytes:
    try:
        return hashlib.sha256(Path(path).read_bytes()).digest()
    except OSError:  # typed at a prompt: no file, so nothing to keep between processes
        return os.urandom(16)


def digest_of(files: set[str]) -> str:
    """A digest of these sources, and of the compiler."""
    import numba

    digest = hashlib.sha256(f"{numba.__version__} {sys.version_info[:2]}".encode())
    for path in sorted(files):
        digest.update(_file_hash(path, os.stat(path).st_mtime_ns if os.path.exists(path) else 0))
    return digest.hexdigest()[:16]


def sealed(data: bytes) -> bytes:
    """The contents of a file that holds `data`."""
    return HEAD + hashlib.sha256(data).digest() + data


def opened(content: bytes) -> bytes | None:
    """What is in a file; None if it is damaged, or none of ours."""
    digest, data = content[len(HEAD) : len(HEAD) + 32], content[len(HEAD) + 32 :]
    return data if content.startswith(HEAD) and hashlib.sha256(data).digest() == digest else None


# ---------------------------------------------------------------------------------------------------------------------
# Who may have written it
# ---------------------------------------------------------------------------------------------------------------------


def is_ours_alone(info: os.stat_result) -> bool:
    """Whether no other user can have written a file, or into a directory. The administrator can write anything anyway.

    Windows keeps the folders of users apart by itself, and has no such modes.
    """
    return sys.platform == "win32" or (info.st_uid in (os.geteuid(), 0) and not info.st_mode & 0o022)


def is_safe(directory: Path) -> bool:
    """Whether code may be read from a directory that is there, and written to it.

    Our own folder we make so, if it is this user's. One that somebody named is left as it is.
    """
    info = directory.stat()
    if is_ours_alone(info):
        return True
    if info.st_uid != os.geteuid() or directory != default_directory() or directory.is_symlink():
        return False
    directory.chmod(0o700)
    return is_ours_alone(directory.stat())


def _without_links(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0))


@functools.cache
def _warn_of(directory: str) -> None:
    """Say, once, that a directory is not used."""
    warnings.warn(
        f"Compiled code is neither read from {directory} nor kept there, since others can write to it (or it is not yours). Make "
        f"it yours alone, by chmod 700, or name another one in PARTWISE_CACHE_DIR.",
        RuntimeWarning,
        stacklevel=2,
    )


class CodeFiles:
    """The files of one loop, compiled for one structure. Each is written at once: processes do not get into each other's way."""

    def __init__(self, function: Callable, first: type, stamp: str):
        self.label = f"{function.__module__.removeprefix('partwise.')}.{function.__name__}"
        self.structure = first.__name__
        digest = hashlib.sha256(f"{first.__module__}.{first.__qualname__}".encode()).hexdigest()[:8]
        self.prefix = f"{self.label}-{self.structure}-{digest}"
        self.stamp = stamp

    @property
    def path(self) -> Path:
        """The directory."""
        return cache_directory()

    def file(self, key: str) -> Path:
        """The file of a signature."""
        return self.path / f"{self.prefix}-{self.stamp}-{key}.bin"

    def read(self, key: str) -> bytes | None:
        """What is kept, if it is there and sound."""
        with contextlib.suppress(OSError):
            if is_safe(self.path):
                with open(self.file(key), "rb", opener=_without_links) as file:
                    return opened(file.read()) if is_ours_alone(os.fstat(file.fileno())) else None
            _warn_of(str(self.path))
        return None

    def write(self, key: str, data: bytes) -> None:
        """Keep it; not with a read-only home or a full disk, and not where others may write: slower next time, that is all."""
        path, unfinished = self.file(key), None
        try:
            path.parent.parent.mkdir(parents=True, exist_ok=True)
            path.parent.mkdir(mode=0o700, exist_ok=True)
            if not is_safe(path.parent):
                return
            self._remove_stale()
            with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
                unfinished = file.name
                file.write(sealed(data))
            os.replace(file.name, path)
        except OSError as error:
            with contextlib.suppress(OSError):
                if unfinished is not None:
                    os.unlink(unfinished)
            _tell_not_kept(self.path, error.strerror or str(error))

    def _remove_stale(self) -> None:
        for file in self.path.glob(f"{self.prefix}-*"):
            if self.stamp not in file.name and time.time() - file.stat().st_mtime > STALE:
                file.unlink(missing_ok=True)

    def clear(self) -> None:
        """Remove all files of this loop and structure."""
        with contextlib.suppress(OSError):
            for file in self.path.glob(f"{self.prefix}-*") if is_safe(self.path) else ():
                file.unlink(missing_ok=True)

    def announce(self) -> None:
        """Tell a waiting person, once per process, that compiled code was not found on disk."""
        global _announced
        if _announced or os.environ.get("PARTWISE_QUIET") or not sys.stderr.isatty():
            return
        _announced = True
        why_not = why_not_kept(self.path)
        after = f"not kept, for {why_not}" if why_not else "kept on disk, next time is quick"
        print(f"partwise: compiling for first use ({self.label}, {self.structure}); {after}", file=sys.stderr)


_announced = False


def why_not_kept(directory: Path) -> str:
    """Why compiled code would not be kept in a directory; empty if it would."""
    with contextlib.suppress(OSError):
        there = next((path for path in (directory, *directory.parents) if path.exists()), directory)
        if there.is_dir() and os.access(there, os.W_OK):
            return "" if there != directory or is_safe(directory) else f"others may write to {directory}"
    return f"{directory} cannot be written to"


@functools.cache
def _tell_not_kept(directory: Path, why: str) -> None:
    warnings.warn(
        f"partwise: compiled code cannot be kept in {directory} ({why}): every process compiles for itself. "
        "PARTWISE_CACHE_DIR names another folder.",
        RuntimeWarning,
        stacklevel=2,
    )
