"""A folder of arrays too large for memory, with a manifest: written part by part, whole or not at all, and mapped.

    corpus.packed/
        manifest.json       what is in it: sizes and types of the arrays, shards and their checksums, and a checksum of itself
        model               an estimator that has learnt its vocabulary and labels, but no weights
        main.rows.index.npy an array each, in numpy's own format: `numpy.load(..., mmap_mode="r")` reads it, too

While it is written the folder is called ``corpus.packed.partial``. It has a journal, a line for each part that is safely on disk;
who is killed goes on after the last of them. One process at a time may write there. The last step is one rename.
"""

from __future__ import annotations

import contextlib
import errno
import json
import mmap
import os
import shutil
import sys
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from partwise.files.named_arrays import dtype_called
from partwise.files.version import __version__
from partwise.files.whole_file import whole_file

FORMAT, FORMAT_VERSION = "partwise-packed", 1
HEADER = 128  # bytes of numpy's format before the array itself
MANIFEST, JOURNAL, LOCK = "manifest.json", "journal.jsonl", "lock"

#: of a mapping: memory for pages that are written to is not to be set aside. Else Linux refuses an array larger than its memory
RESERVE_NOTHING = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)


class PackedError(ValueError):
    """A packed corpus cannot be written or read; the message names it and says why."""


def npy_header(dtype: np.dtype, shape: tuple[int, ...]) -> bytes:
    """The first bytes of a file in numpy's format, always the same number of them."""
    described = {"descr": dtype.str, "fortran_order": False, "shape": shape}
    text = repr(described).encode()
    return b"\x93NUMPY\x01\x00" + (HEADER - 10).to_bytes(2, "little") + text + b" " * (HEADER - 11 - len(text)) + b"\n"


# ---------------------------------------------------------------------------------------------------------------------
# Writing
# ---------------------------------------------------------------------------------------------------------------------


class PackedWriter:
    """Arrays that grow on disk, each by its name.

    Parameters
    ----------
    path : path
        What the folder will be called.
    origin : dict
        What the arrays are made of, as JSON. A folder that was left unfinished is gone on with if its origin is the same; else
        it is cleared.
    """

    def __init__(self, path: Any, origin: Mapping[str, Any]):
        self.path = os.path.abspath(os.fspath(path))
        self.folder = self.path + ".partial"
        if os.path.lexists(self.path):
            raise PackedError(f"{self.path!r} is there already. Remove it, or choose another name.")
        os.makedirs(self.folder, exist_ok=True)
        self.lock = self._take_lock()
        self.origin = json.loads(json.dumps({**origin, "format_version": FORMAT_VERSION, "partwise_version": __version__}))
        self.rows: dict[str, int] = {}
        self.kinds: dict[str, tuple[np.dtype, tuple[int, ...]]] = {}
        self.notes: list[dict[str, Any]] = []  #: of each part that is on disk, what its writer wanted to remember
        if not self._go_on():
            self._clear()
            self._write_down({"origin": self.origin})

    def _take_lock(self) -> int:
        fd = os.open(os.path.join(self.folder, LOCK), os.O_RDWR | os.O_CREAT, 0o644)
        try:
            import fcntl

            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:  # a system without: two at once are not noticed there
            pass
        except OSError as error:
            os.close(fd)
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                raise
            raise PackedError(f"Another process is packing into {self.path!r}. Wait for it, or choose another name.") from None
        return fd

    def _go_on(self) -> bool:
        """Read the journal, if it is about the same; cut off what was written after its last line."""
        path = os.path.join(self.folder, JOURNAL)
        lines: list[dict[str, Any]] = []
        try:
            with open(path, "rb") as file:
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    lines.append(json.loads(line))
        except (OSError, ValueError):
            return False
        if not lines or lines[0].get("origin") != self.origin:
            return False
        for done in lines[1:]:
            self.notes.append(done["note"])
            self.rows = {str(name): int(n) for name, n in done["rows"].items()}
            self.kinds = {str(name): (dtype_called(kind), tuple(tail)) for name, (kind, tail) in done["kinds"].items()}
        for name, n in self.rows.items():
            size = HEADER + n * self._bytes_of_row(name)
            file_path = self._place(name)
            if not os.path.exists(file_path) or os.path.getsize(file_path) < size:
                return False
            os.truncate(file_path, size)
        with open(path, "wb") as file:
            file.writelines(json.dumps(line).encode() + b"\n" for line in lines)
        for name in os.listdir(self.folder):  # arrays of a part that did not get into the journal, whole files without a name yet
            if (name.endswith(".npy") and name.removesuffix(".npy") not in self.rows) or name.endswith(".tmp"):
                os.unlink(os.path.join(self.folder, name))
        return True

    def _clear(self) -> None:
        self.rows, self.kinds, self.notes = {}, {}, []
        for name in os.listdir(self.folder):
            if name != LOCK:
                os.unlink(os.path.join(self.folder, name))

    def _place(self, name: str) -> str:
        return os.path.join(self.folder, f"{name}.npy")

    def _bytes_of_row(self, name: str) -> int:
        kind, tail = self.kinds[name]
        return kind.itemsize * int(np.prod(tail, dtype=np.int64))

    def append(self, arrays: Mapping[str, np.ndarray], note: dict[str, Any] | None = None) -> None:
        """Add the rows of these arrays to those of the same name; when it returns, they are on disk."""
        kinds = dict(self.kinds)
        for name, array in arrays.items():
            kind = array.dtype.newbyteorder("<") if array.dtype.byteorder == ">" else array.dtype
            if kinds.setdefault(name, (kind, array.shape[1:])) != (kind, array.shape[1:]):
                raise PackedError(f"{self.path!r}: the array {name!r} changes its type or shape from one part to the next.")
        rows = dict(self.rows)
        with self._named_errors():
            for name, array in arrays.items():
                with open(self._place(name), "ab") as file:
                    if file.tell() < HEADER:
                        file.truncate(0)
                        file.write(npy_header(kinds[name][0], (0, *array.shape[1:])))
                    if array.size:
                        file.write(np.ascontiguousarray(array, kinds[name][0]).reshape(-1).view(np.uint8).data)
                    file.flush()
                    os.fsync(file.fileno())
                rows[name] = rows.get(name, 0) + len(array)
            self.rows, self.kinds = rows, kinds
            self.notes.append(note or {})
            described = {name: [kind.str, list(tail)] for name, (kind, tail) in kinds.items()}
            self._write_down({"rows": rows, "kinds": described, "note": note or {}})

    @contextlib.contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:  # a full disk does not say whose; what is there is kept to go on from
            raise OSError(error.errno, error.strerror, self.folder) from None

    def _write_down(self, line: dict[str, Any]) -> None:
        with open(os.path.join(self.folder, JOURNAL), "ab") as file:
            file.write(json.dumps(line).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays so far."""
        return sum(n * self._bytes_of_row(name) for name, n in self.rows.items())

    def arrays(self) -> dict[str, np.ndarray]:
        """All arrays so far, mapped."""
        self._head()
        return {name: map_array(self._place(name), *self._described(name)) for name in self.rows}

    def _described(self, name: str) -> tuple[np.dtype, tuple[int, ...]]:
        kind, tail = self.kinds[name]
        return kind, (self.rows[name], *tail)

    def _head(self) -> None:
        for name in self.rows:
            with open(self._place(name), "r+b") as file:
                file.write(npy_header(*self._described(name)))
                os.fsync(file.fileno())

    def finish(self, manifest: Mapping[str, Any]) -> None:
        """Write the manifest, and give the folder its name."""
        self._head()
        about = {name: {"dtype": kind.str, "shape": list(shape)} for name, (kind, shape) in self._all_described()}
        whole = {"format": FORMAT, **self.origin, **manifest, "arrays": about}
        whole["crc32"] = checksum(whole)
        with self._named_errors(), whole_file(os.path.join(self.folder, MANIFEST)) as file:
            file.write(json.dumps(whole, indent=1, allow_nan=False).encode())
        os.unlink(os.path.join(self.folder, JOURNAL))
        os.rename(self.folder, self.path)
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(self.path, LOCK))
        self.close()

    def _all_described(self) -> list[tuple[str, tuple[np.dtype, tuple[int, ...]]]]:
        return [(name, self._described(name)) for name in self.rows]

    def close(self) -> None:
        """Let others write there."""
        if self.lock >= 0:
            os.close(self.lock)
        self.lock = -1

    def discard(self) -> None:
        """Leave nothing behind."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.close()


def checksum(value: Any) -> int:
    """Of JSON, whatever the order of its keys."""
    return zlib.crc32(json.dumps(value, sort_keys=True, allow_nan=False).encode())


# ---------------------------------------------------------------------------------------------------------------------
# Reading
# ---------------------------------------------------------------------------------------------------------------------


def is_packed(path: Any) -> bool:
    """Whether it is a folder that holds a packed corpus, by its manifest; or one left unfinished, as reading it will say."""
    try:
        name = os.fspath(path)
        unfinished = isinstance(name, str) and os.path.isdir(f"{name}.partial") and not os.path.lexists(name)
        return unfinished or os.path.isfile(os.path.join(name, MANIFEST))
    except TypeError:
        return False


def read_manifest(path: Any) -> dict[str, Any]:
    """The manifest of a packed corpus, after checking that it is one, whole, and of a version that is known."""
    path = os.fspath(path)
    if not os.path.isdir(path):
        unfinished = os.path.isdir(path + ".partial")
        more = f" {path + '.partial'!r} was left unfinished: run `partwise pack` again to go on." if unfinished else ""
        raise PackedError(f"There is no packed corpus {path!r}.{more}")
    try:
        with open(os.path.join(path, MANIFEST), "rb") as file:
            manifest = json.loads(file.read())
    except FileNotFoundError:
        raise PackedError(f"{path!r} is a folder without {MANIFEST}: no packed corpus.") from None
    except (ValueError, RecursionError) as error:
        raise PackedError(f"{path!r} is damaged: {MANIFEST} is no JSON ({error}).") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise PackedError(f"{path!r}: {MANIFEST} is not that of a packed corpus.")
    version = manifest.get("format_version")
    if not isinstance(version, int) or version < 1:
        raise PackedError(f"{path!r} is damaged or was altered: its format version is {version!r}.")
    if version > FORMAT_VERSION:
        raise PackedError(
            f"{path!r} was packed by partwise {manifest.get('partwise_version')} in format version {version}; this is partwise "
            f"{__version__}, which reads versions up to {FORMAT_VERSION}. Upgrade with: pip install --upgrade partwise"
        )
    rest = {key: value for key, value in manifest.items() if key != "crc32"}
    if checksum(rest) != manifest.get("crc32"):
        raise PackedError(f"{path!r} is damaged or was altered: the checksum of {MANIFEST} does not match.")
    return manifest


def map_arrays(path: str, manifest: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The arrays that a manifest speaks of, mapped; one that is missing or of another size is a PackedError."""
    found = {}
    for name, about in manifest["arrays"].items():
        place = os.path.join(path, f"{name}.npy")
        try:
            kind, shape = dtype_called(about["dtype"]), tuple(int(n) for n in about["shape"])
            if kind.kind not in "biuf" or min(shape, default=0) < 0 or os.sep in name:
                raise TypeError
        except (TypeError, KeyError, ValueError):
            raise PackedError(f"{path!r} is damaged or was altered: what it says of the array {name!r} is no type.") from None
        try:
            found[name] = map_array(place, kind, shape)
        except FileNotFoundError:
            raise PackedError(f"{path!r} is not whole: {name}.npy is missing.") from None
    return found


def map_array(place: str, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """An array in a file, as it must be; it may be written to, which leaves the file as it is."""
    size = HEADER + dtype.itemsize * int(np.prod(shape, dtype=np.int64))
    if not os.path.isfile(place):  # a pipe would be waited for
        raise FileNotFoundError(place)
    with open(place, "rb") as file:
        there = os.fstat(file.fileno()).st_size
        if there != size:
            raise PackedError(f"{place!r} has {there:,} bytes where its manifest has {size:,}: it is damaged or was altered.")
        if file.read(HEADER) != npy_header(dtype, shape):
            raise PackedError(f"{place!r} is damaged or was altered: its first bytes do not say what its manifest says.")
        if size == HEADER:
            return np.zeros(shape, dtype)
        memory = mapped(file.fileno(), size)
    return np.frombuffer(memory, dtype, offset=HEADER).reshape(shape)


def mapped(fd: int, size: int) -> mmap.mmap:
    """A file mapped so that what is written to it stays in this process."""
    if not hasattr(mmap, "MAP_PRIVATE"):
        return mmap.mmap(fd, size, access=mmap.ACCESS_COPY)
    return mmap.mmap(fd, size, flags=mmap.MAP_PRIVATE | RESERVE_NOTHING, prot=mmap.PROT_READ | mmap.PROT_WRITE)
