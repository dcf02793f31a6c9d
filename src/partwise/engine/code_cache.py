"""Compiled code on disk: one file per loop, structure, signature and state of the sources it was compiled from."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import pickle
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from llvmlite import binding
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.environment import Environment, lookup_environment

from partwise.engine.linking import place_environments


def cache_directory() -> Path | None:
    """Where compiled code is kept: ``$PARTWISE_CACHE_DIR``, else ``$NUMBA_CACHE_DIR``, else the user's cache folder."""
    named = os.environ.get("PARTWISE_CACHE_DIR") or numba.config.CACHE_DIR
    if named:
        return Path(named)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or tempfile.gettempdir()
    elif sys.platform == "darwin":
        base = os.path.expanduser("~/Library/Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base) / "partwise"


@functools.cache
def _file_hash(path: str, mtime: int) -> bytes:
    try:
        return hashlib.sha256(Path(path).read_bytes()).digest()
    except OSError:  # typed at a prompt: no file, so nothing to keep between processes
        return os.urandom(16)


def digest_of(files: set[str]) -> str:
    """A digest of these sources, and of the compiler."""
    digest = hashlib.sha256(f"{numba.__version__} {sys.version_info[:2]}".encode())
    for path in sorted(files):
        digest.update(_file_hash(path, os.stat(path).st_mtime_ns if os.path.exists(path) else 0))
    return digest.hexdigest()[:16]


def external_symbols(library: Any) -> list[str]:
    """What compiled code takes from outside: the allocator, the C interface of Python, mathematics."""
    module = library._final_module
    declared = (v.name for v in (*module.functions, *module.global_variables) if v.is_declaration)
    return sorted(name for name in declared if not name.startswith("llvm."))


def object_code_only(library: tuple) -> tuple:
    """A library, in the form numba keeps it in, without the bitcode that only inlining it elsewhere would need.

    What is left of the bitcode are the names it defines: numba asks for them before it looks anything up.
    """
    name, kind, data = library
    if kind != "object":
        return library
    machine_code, bitcode = data
    module = binding.parse_bitcode(bitcode)
    names = [f'define void @"{f.name}"() {{ ret void }}' for f in module.functions if not f.is_declaration]
    names += [f'@"{g.name}" = global i8 0' for g in module.global_variables if not g.is_declaration]
    return name, kind, (machine_code, binding.parse_assembly("\n".join(names)).as_bitcode())


@functools.cache
def _register_allocator() -> None:
    from numba.core.runtime import _nrt_python

    for name, address in _nrt_python.c_helpers.items():
        binding.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


def linkable(symbols: list[str]) -> bool:
    """Whether code that needs `symbols` can run in this process as it is.

    Where it cannot, numba's ``refresh`` makes everything known that any code could need, and makes ready to compile: a quarter
    of a second and 60 MB that code from disk hardly ever needs.
    """
    _register_allocator()
    return all(binding.address_of_symbol(name) for name in symbols)


def _environment(module: str, constants: list, name: str) -> Environment:
    environment = lookup_environment(name)
    if environment is None:
        environment = Environment(vars(sys.modules[module]) if module in sys.modules else {"__name__": module})
        environment.consts[:] = constants
        environment.env_name = name
        Environment._memo[name] = environment
    return environment


class CompiledCode(pickle.Unpickler):
    """Reads compiled code without importing the module of every function in it.

    numba does that for the sake of their globals, which code that was compiled without Python objects never looks at; with the
    first slice of an array come all of numba's implementations of arrays, a tenth of a second and 30 MB.
    """

    def find_class(self, module: str, name: str) -> Any:
        """Our own way to make the environment of a function; all else as it is."""
        return _environment if (module, name) == ("numba.core.environment", "_rebuild_env") else super().find_class(module, name)


class DiskCache(_Cache):
    """One file per loop, structure, signature and state of the sources; written atomically, safe between processes.

    numba's own cache keeps an index per function that two processes can scramble, and watches one source file only.
    """

    def __init__(self, function: Callable, first: type, stamp: str):
        self.label = f"{function.__module__.removeprefix('partwise.')}.{function.__name__}"
        self.structure = first.__name__
        digest = hashlib.sha256(f"{first.__module__}.{first.__qualname__}".encode()).hexdigest()[:8]
        self.prefix = f"{self.label}-{self.structure}-{digest}"
        self.stamp = stamp
        self.enabled = True

    @property
    def cache_path(self):
        return str(cache_directory())

    def enable(self):
        self.enabled = True

    def disable(self):
        self.enabled = False

    def flush(self):
        for path in self._directory().glob(f"{self.prefix}-*"):
            path.unlink(missing_ok=True)

    def _directory(self) -> Path:
        return cache_directory() or Path(tempfile.gettempdir())

    def _path(self, sig, codegen) -> Path:
        key = hashlib.sha256(repr((sig, codegen.magic_tuple())).encode()).hexdigest()[:16]
        return self._directory() / f"{self.prefix}-{self.stamp}-{key}.bin"

    def load_overload(self, sig, target_context):
        try:
            with self._path(sig, target_context.codegen()).open("rb") as f:
                symbols, payload = CompiledCode(f).load()
            if not linkable(symbols):
                target_context.refresh()
            return CompileResult._rebuild(target_context, *payload)
        except FileNotFoundError:
            pass
        except Exception:  # a damaged or foreign file is no reason to fail: compile again and overwrite it
            pass
        announce(self.label, self.structure)
        return None

    def save_overload(self, sig, data):
        place_environments(data.library)
        if not self.enabled or data.library.has_dynamic_globals:
            return
        path = self._path(sig, data.codegen)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            for stale in path.parent.glob(f"{self.prefix}-*"):
                # another checkout may be using its own compiled form: remove only what has not been touched for a month
                if self.stamp not in stale.name and time.time() - stale.stat().st_mtime > 30 * 86400:
                    stale.unlink(missing_ok=True)
            with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as f:
                code, *rest = data._reduce()
                f.write(numba.core.serialize.dumps((external_symbols(data.library), (object_code_only(code), *rest))))
            os.replace(f.name, path)
        except Exception:  # read-only home, full disk, another numba than we know: works, only slower next time
            with contextlib.suppress(OSError, UnboundLocalError):
                os.unlink(f.name)


_announced = False


def announce(loop: str, structure: str) -> None:
    """Tell a waiting person, once per process, that compiled code was not found on disk."""
    global _announced
    if _announced or os.environ.get("PARTWISE_QUIET") or not sys.stderr.isatty():
        return
    _announced = True
    print(f"partwise: compiling for first use ({loop}, {structure}); kept on disk, next time is quick", file=sys.stderr)
