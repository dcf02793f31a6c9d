"""How one source runs both compiled and interpreted, and how the compiled form is kept on disk.

Three decorators are all the rest of the package uses:

``@kernel``
    declares a generic function with one implementation per type of its first argument (a structure's packed problem,
    a kind of feature rows, a kind of accumulator). Compiled code picks the implementation by *type* at compile time;
    plain Python picks it by class at run time.
``@helper``
    a plain function that compiled loops may call.
``@entry``
    a loop that Python calls: compiled on first use for the problem it is given, cached on disk, the global interpreter
    lock released. ``loop.interpreted(...)`` runs the very same source in the interpreter, for the debugger, for tests, and
    for structures written in plain Python.

Jitted functions are never passed as arguments and no jitclass is used: neither can be cached on disk.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import os
import pickle
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numba
import numpy as np
from llvmlite import binding
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.environment import Environment, lookup_environment
from numba.extending import overload, register_jitable

# Never "ninf": real -inf marks what is forbidden. "nnan" is safe because no code path subtracts two infinities.
FASTMATH = {"nnan", "nsz", "arcp", "contract", "reassoc"}
OPTIONS: dict[str, Any] = {"fastmath": FASTMATH, "error_model": "numpy"}

_kernels: list[Kernel] = []
_entries: list[Entry] = []
_interpret = os.environ.get("PARTWISE_INTERPRET", "") not in ("", "0")


class Kernel:
    """A generic function: one implementation per type of its first argument.

    Parameters
    ----------
    signature : function
        Gives the name, the parameters and the docstring. If ``has_default`` its body serves every type that brings no
        implementation of its own.
    """

    def __init__(self, signature: Callable, has_default: bool):
        self.__name__, self.__doc__ = signature.__name__, signature.__doc__
        self.signature = signature
        self.parameters = list(inspect.signature(signature).parameters)
        self.implementations: dict[type, Callable] = {}
        self.default = signature if has_default else None

        @functools.singledispatch
        def generic(*arguments):
            if self.default is not None:
                return self.default(*arguments)
            raise MissingKernel(self, type(arguments[0]))

        self.generic = generic

    def implements(self, *types: type) -> Callable:
        """Register the decorated function as this kernel's implementation for `types`."""

        def register(implementation: Callable) -> Callable:
            given = list(inspect.signature(implementation).parameters)
            if given != self.parameters:
                raise TypeError(
                    f"An implementation of the kernel {self.__name__!r} must take ({', '.join(self.parameters)}). "
                    f"Got ({', '.join(given)}) instead."
                )
            for t in types:
                self.implementations[t] = implementation
                self.generic.register(t, implementation)
            return helper(implementation)  # so that its neighbours may call it by its own name

        return register

    def find(self, t: type) -> Callable | None:
        """The implementation serving type `t`, or None."""
        for base in t.__mro__:
            if base in self.implementations:
                return self.implementations[base]
        return self.default


class MissingKernel(TypeError):
    """A solver or an oracle needs a kernel that the structure does not provide."""

    def __init__(self, kernel: Kernel, structure: type):
        have = sorted(k.__name__ for k in _kernels if any(t in k.implementations for t in structure.__mro__))
        super().__init__(
            f"{structure.__name__} does not implement the kernel {kernel.__name__!r}. It implements: {', '.join(have) or 'none'}."
        )


def kernel(signature: Callable | None = None, *, default: bool = False) -> Any:
    """Declare a generic function (see the module's docstring)."""
    if signature is None:
        return functools.partial(kernel, default=default)
    k = Kernel(signature, default)
    _kernels.append(k)

    def python_class(numba_type) -> type | None:
        if isinstance(numba_type, numba.types.Array):
            return np.ndarray
        return getattr(numba_type, "instance_class", None)

    def pick(first, *_):
        return k.find(python_class(first) or object)

    # numba wants the overload's parameters to match the generic's by name
    names = ", ".join(k.parameters)
    scope: dict[str, Any] = {"pick": pick}
    exec(f"def overload_{signature.__name__}({names}): return pick({names})", scope)

    # numba resolves a global by its Python object, so compiled code must see a plain function under the kernel's name
    @functools.wraps(signature)
    def generic(*arguments):
        return k.generic(*arguments)

    generic.kernel = k  # type: ignore[attr-defined]
    generic.implements = k.implements  # type: ignore[attr-defined]
    overload(generic, jit_options=OPTIONS)(scope[f"overload_{signature.__name__}"])
    return generic


helper = register_jitable(**OPTIONS)


class Entry:
    """A compiled loop, one specialisation per type of its first argument, each cached on disk."""

    def __init__(self, function: Callable):
        functools.update_wrapper(self, function)
        self.interpreted = function
        self.compiled: dict[type, Any] = {}
        _entries.append(self)

    def __call__(self, first, *arguments):
        t = type(first)
        if _interpret or not compilable(t):
            return self.interpreted(first, *arguments)
        if t not in self.compiled:
            dispatcher = numba.njit(nogil=True, **OPTIONS)(self.interpreted)
            dispatcher._cache = DiskCache(self.interpreted, t)
            self.compiled[t] = dispatcher
        return self.compiled[t](first, *arguments)


def entry(function: Callable) -> Entry:
    """Make a loop callable from Python, compiled (see the module's docstring)."""
    return Entry(function)


def compilable(t: type) -> bool:
    """Whether values of type `t` can enter compiled code: arrays, numbers, and NamedTuples of them.

    A structure whose problem is any other Python class runs interpreted, under every solver.
    """
    if issubclass(t, tuple):
        return hasattr(t, "_fields") and not getattr(t, "interpreted_only", False)
    return issubclass(t, np.ndarray | int | float | np.generic)


@contextlib.contextmanager
def interpret() -> Iterator[None]:
    """Within this block every loop runs in the interpreter (slow): set breakpoints in any kernel or solver."""
    global _interpret
    before, _interpret = _interpret, True
    try:
        yield
    finally:
        _interpret = before


def cache_stats() -> dict[str, int]:
    """How many compiled specialisations this process took from disk (`hits`) and compiled itself (`misses`)."""
    stats = [d.stats for e in _entries for d in e.compiled.values()]
    return {
        "hits": sum(sum(s.cache_hits.values()) for s in stats),
        "misses": sum(sum(s.cache_misses.values()) for s in stats),
    }


# ---------------------------------------------------------------------------------------------------------------------
# The disk cache
# ---------------------------------------------------------------------------------------------------------------------


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


def _is_helper_type(t: type) -> bool:
    return t is np.ndarray or (t.__module__.startswith("partwise.") and ".structures" not in t.__module__)


def sources(function: Callable, first: type) -> set[str]:
    """Files whose text decides what `function` compiles to when its first argument has type `first`.

    numba itself watches only the outer function's file. Here: every module of functions reachable from it, and the files that
    implement kernels for `first` or for the helper types (feature rows, accumulators) of this package.
    """
    found: set[str] = set()
    queue: list[Any] = [function]
    for k in _kernels:
        queue += [f for t, f in k.implementations.items() if issubclass(first, t) or _is_helper_type(t)] + [k.signature]
    while queue:
        file = inspect.getsourcefile(queue[-1])
        module = inspect.getmodule(queue.pop())
        if file is None or file in found:
            continue
        found.add(file)
        for value in vars(module).values() if isinstance(module, ModuleType) else ():
            if isinstance(value, FunctionType) and value.__module__.startswith(("partwise", function.__module__)):
                queue.append(value)
    return found


@functools.cache
def _file_hash(path: str, mtime: int) -> bytes:
    try:
        return hashlib.sha256(Path(path).read_bytes()).digest()
    except OSError:  # typed at a prompt: no file, so nothing to keep between processes
        return os.urandom(16)


def stamp(function: Callable, first: type) -> str:
    """A digest of all the sources that `function` compiles from."""
    digest = hashlib.sha256(f"{numba.__version__} {sys.version_info[:2]} {sorted(FASTMATH)}".encode())
    for path in sorted(sources(function, first)):
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

    def __init__(self, function: Callable, first: type):
        self.label = f"{function.__module__.removeprefix('partwise.')}.{function.__name__}"
        self.structure = first.__name__
        digest = hashlib.sha256(f"{first.__module__}.{first.__qualname__}".encode()).hexdigest()[:8]
        self.prefix = f"{self.label}-{self.structure}-{digest}"
        self.stamp = stamp(function, first)
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
