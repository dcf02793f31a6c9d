"""Loops that came with the package as machine code: found, checked and called, without numba.

A folder holds one library for each structure and ``index.json``, which says what is in them (`partwise.freezing` makes both).
Nothing is run that is not what it was made from and for: the version of the package, the digest of the library, the kind of
processor, and, for each loop, the digests of all the sources it was compiled from. Whatever does not fit is compiled by numba as
if there were no such folder; one line says why, but for sources that were edited: ``partwise doctor`` tells these.

``PARTWISE_FROZEN=0`` in the environment turns it off; any other value is the folder to look into.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import json
import os
import pickle
import sys
import threading
import warnings
import weakref
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

FORMAT = 1  # of the index and of what libraries expect
PACKAGE = Path(__file__).parent.parent

#: functions of Python's stable interface that ``calls.c`` asks for, in its order
FUNCTIONS = (
    "PyObject_GetBuffer PyBuffer_Release PyObject_Type Py_DecRef Py_IncRef PyTuple_Size PyTuple_GetItem PyLong_AsLongLong "
    "PyFloat_AsDouble PyObject_IsTrue PyErr_Clear PyErr_Occurred PyEval_SaveThread PyEval_RestoreThread PyFloat_FromDouble "
    "PyLong_FromLongLong PyBool_FromLong PyTuple_New PyTuple_SetItem PyObject_CallFunctionObjArgs"
).split()

#: dtypes of returned arrays
DTYPES = {
    ord(letter): np.dtype(dtype)
    for letter, dtype in {
        "d": np.float64,
        "f": np.float32,
        "q": np.int64,
        "i": np.int32,
        "h": np.int16,
        "b": np.int8,
        "Q": np.uint64,
        "I": np.uint32,
        "H": np.uint16,
        "B": np.uint8,
        "?": np.bool_,
    }.items()
}


def folder() -> Path | None:
    """Where to look; None: nowhere."""
    named = os.environ.get("PARTWISE_FROZEN", "")
    if named == "0":
        return None
    return Path(named) if named else PACKAGE / "frozen_code"


def digest(file: Path) -> str:
    """Of a source."""
    return hashlib.sha256(file.read_bytes()).hexdigest()[:16]


class Unusable(Exception):
    """Why machine code cannot be used."""


# ---------------------------------------------------------------------------------------------------------------------
# What comes back
# ---------------------------------------------------------------------------------------------------------------------


class _Errors(pickle.Unpickler):
    """Reads what a loop raises: an exception of Python's own and its arguments, as numba has put them into the library."""

    def find_class(self, module: str, name: str) -> Any:
        found = getattr(sys.modules["builtins"], name, None) if module == "builtins" else None
        if not (isinstance(found, type) and issubclass(found, BaseException)):
            raise pickle.UnpicklingError(f"{module}.{name}")
        return found


def _raise(status: int, where: int) -> None:
    """Raise what a loop has raised: the error that its status means."""
    error: BaseException = RuntimeError(f"A compiled loop has failed, with status {status}.")
    if status > 0 and where:
        with contextlib.suppress(pickle.UnpicklingError, TypeError, ValueError):
            start, size = ctypes.c_void_p.from_address(where).value, ctypes.c_int32.from_address(where + 8).value
            kind, arguments, _ = _Errors(BytesIO(ctypes.string_at(start or 0, size))).load()
            error = kind(*(arguments or ()))
    raise error


def _array_from(release: Callable[[int], Any]) -> Callable[[tuple[int, ...]], np.ndarray]:
    """Makes arrays of what a library has allocated; it is given back when nobody has the array any more."""

    def array(fields: tuple[int, ...]) -> np.ndarray:
        owner, _, n, itemsize, data, *shape, dtype = fields
        if n == 0:
            release(owner)
            return np.empty(shape, DTYPES[dtype])
        memory: Any = (ctypes.c_char * (n * itemsize)).from_address(data)
        made = np.frombuffer(memory, DTYPES[dtype]).reshape(shape)
        if not owner:
            return made.copy()  # it lies in an argument
        weakref.finalize(memory, release, owner).atexit = False
        return made

    return array


# ---------------------------------------------------------------------------------------------------------------------
# Libraries
# ---------------------------------------------------------------------------------------------------------------------


def is_supported(library: ctypes.PyDLL) -> bool:
    """Whether this processor has the instructions that loops are made of; the library knows which these are."""
    return bool(library.pw_supported())


class Library:
    """The loops of a structure."""

    def __init__(self, path: Path, about: dict[str, Any]):
        if hashlib.sha256(path.read_bytes()).hexdigest() != about["sha256"]:
            raise Unusable(f"{path.name} is damaged")
        lib = ctypes.PyDLL(str(path))  # keeps the interpreter's lock: the library gives it up itself
        if not is_supported(lib):
            raise Unusable(f"it was made for processors with more instructions than this one ({about['cpu']})")
        self.numbers = {label: n for n, label in enumerate(about["loops"])}
        self.call = lib.pw_call
        self.call.argtypes, self.call.restype = [ctypes.c_int, ctypes.py_object], ctypes.py_object
        lib.pw_release.argtypes, lib.pw_release.restype = [ctypes.c_void_p], None
        lib.pw_class.argtypes = [ctypes.c_int, ctypes.c_void_p]
        self._objects: list[Any] = [None, NotImplemented, _raise, _array_from(lib.pw_release)]
        self._objects += [int, float, bool, np.ndarray, np.memmap, np.int64, np.float64, np.bool_]
        addresses = [ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value for name in FUNCTIONS]
        table = (ctypes.c_void_p * (len(addresses) + len(self._objects)))(*addresses, *map(id, self._objects))
        lib.pw_init(table, len(table))
        self._set_class, self._unknown = lib.pw_class, dict(enumerate(about["classes"]))
        self._classes: list[type] = []  # what the library has addresses of stays where it is
        self.learn()

    def learn(self) -> bool:
        """Tell the library where the classes are that were imported since; returns whether there were any."""
        found = {}
        for number, name in self._unknown.items():
            module, _, path = name.partition(":")
            cls = getattr(sys.modules.get(module), path, None) if name else tuple
            if isinstance(cls, type):
                found[number] = cls
        for number, cls in found.items():
            self._classes.append(cls)
            self._set_class(number, id(cls))
            del self._unknown[number]
        return bool(found)


class FrozenLoop:
    """A loop for one type of its first argument; what it was not compiled for is compiled by numba."""

    def __init__(self, library: Library, number: int, elsewhere: Callable[[], Any]):
        self.library, self.call, self.number = library, library.call, number
        self.elsewhere = functools.cache(elsewhere)
        self.compiled: Any = None  #: what numba has made, if it had to

    def __call__(self, *arguments: Any) -> Any:
        answer = self.call(self.number, arguments)
        if answer is NotImplemented and self.library.learn():
            answer = self.call(self.number, arguments)
        if answer is NotImplemented:
            self.compiled = self.elsewhere()
            answer = self.compiled(*arguments)
        return answer


class Shelf:
    """All that is in a folder."""

    def __init__(self, path: Path):
        self.path, self.reasons = path, dict[str, str]()
        try:
            self.index = json.loads((path / "index.json").read_bytes())
            made = {"format": FORMAT, "version": sys.modules["partwise"].__version__}
            for name, here in made.items():
                if self.index[name] != here:
                    raise Unusable(f"it was made for {name} {self.index[name]}, not {here}")
            self.sources: list[tuple[str, str]] = [(file, made_from) for file, made_from in self.index["sources"]]
            self.needs: dict[str, list[int]] = self.index["needs"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise Unusable(f"{path / 'index.json'} cannot be read ({error})") from None
        self._libraries: dict[str, Library | None] = {}
        self._lock = threading.Lock()
        self._as_made: dict[int, bool] = {}

    def group_of(self, label: str, first: str) -> str | None:
        """Which library has a loop for this type of first argument, if any has."""
        for group, about in self.index["libraries"].items():
            if f"{label} {first}" in about["pairs"]:
                return group
        return None

    def is_as_made(self, number: int) -> bool:
        """Whether a source is still what loops were compiled from."""
        if number not in self._as_made:
            file, made_from = self.sources[number]
            with contextlib.suppress(OSError):
                self._as_made[number] = digest(PACKAGE / file) == made_from
        return self._as_made.get(number, False)

    def edited(self, label: str, first: str) -> list[str]:
        """The sources of a loop that are not any more what they were."""
        return [self.sources[n][0] for n in self.needs[f"{label} {first}"] if not self.is_as_made(n)]

    def library(self, group: str) -> Library | None:
        """Loaded, if that can be done."""
        with self._lock:
            if group not in self._libraries:
                self._libraries[group] = None
                about = self.index["libraries"][group]
                try:
                    self._libraries[group] = Library(self.path / about["file"], about)
                except (OSError, AttributeError, KeyError, Unusable) as error:
                    self.reasons[group] = str(error)
                    _tell(str(error))
            return self._libraries[group]


def _tell(why: str) -> None:
    warnings.warn(
        f"partwise: machine code that came with the package is not used: {why}. Compiling instead.", RuntimeWarning, stacklevel=2
    )


@functools.cache
def shelf(path: Path | None) -> Shelf | None:
    """What is in a folder; None if there is nothing that can be used."""
    # a folder that somebody has named should be there, ours need not
    if path is None or (path == PACKAGE / "frozen_code" and not path.is_dir()):
        return None
    try:
        return Shelf(path)
    except Unusable as error:
        _tell(str(error))
        return None


def label_of(function: Callable) -> str:
    """What a loop is called in the index."""
    return f"{function.__module__}.{function.__name__}"


def find(function: Callable, first: type, elsewhere: Callable[[], Any]) -> FrozenLoop | None:
    """The loop as machine code for this type of first argument, if there is any, and it is what numba would make."""
    found, label, name = shelf(folder()), label_of(function), f"{first.__module__}:{first.__qualname__}"
    if found is None:
        return None
    try:
        group = found.group_of(label, name)
        library = None if group is None or found.edited(label, name) else found.library(group)
        return None if library is None else FrozenLoop(library, library.numbers[label], elsewhere)
    except (LookupError, TypeError, AttributeError, ValueError) as error:  # what a damaged index says makes no sense
        if "index" not in found.reasons:
            found.reasons["index"] = f"{found.path / 'index.json'} is damaged ({error!r})"
            _tell(found.reasons["index"])
        return None
