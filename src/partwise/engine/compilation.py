"""How one source runs both compiled and interpreted, and how the compiled form is kept on disk.

Three decorators are all the rest of the package uses:

``@kernel``
    declares a generic function with one implementation per type of its first argument (a structure's packed problem,
    a kind of feature rows, a kind of accumulator). Compiled code picks the implementation by *type* at compile time;
    plain Python picks it by class at run time.
``@helper``
    a plain function that compiled loops may call.
``@compiled_loop``
    a loop that Python calls: compiled on first use for the problem it is given, cached on disk, the global interpreter
    lock released. ``name.interpreted(...)`` runs the very same source in the interpreter, for the debugger, for tests, and
    for structures written in plain Python.

Jitted functions are never passed as arguments and no jitclass is used: neither can be cached on disk.

numba is imported when there is something to compile, and told then what it has to know (`when_compiling`): loops that come with
the package as machine code (`frozen`) run without it.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import threading
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from partwise.engine import frozen

_kernels: list[Kernel] = []
_loops: list[CompiledLoop] = []
_interpret: Callable | None = None  # how loops are run instead of what was compiled
_untold: list[Callable[[Any], object]] | None = []  # what numba is to be told; None once it has been
_telling = threading.RLock()


def when_compiling(tell: Callable[[Any], object]) -> Callable[[Any], object]:
    """Call ``tell(numba_internals)`` before anything is compiled; at once if something has been."""
    with _telling:
        if _untold is not None:
            _untold.append(tell)
            return tell
    from partwise.engine import numba_internals

    tell(numba_internals)
    return tell


def compiler() -> Any:
    """The module `numba_internals`, numba knowing all kernels and helpers."""
    global _untold
    try:
        from partwise.engine import numba_internals
    except ImportError as error:
        raise ImportError(
            f"partwise has to compile something, and cannot import numba ({error}). Install it: pip install numba."
        ) from error
    with _telling:
        while _untold:
            _untold.pop(0)(numba_internals)
        _untold = None
    return numba_internals


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

    def pick(first, *_):
        # numba's type of a NamedTuple knows its class; that of an array has none
        return k.find(getattr(first, "instance_class", np.ndarray if hasattr(first, "layout") else object))

    # numba resolves a global by its Python object, so compiled code must see a plain function under the kernel's name
    @functools.wraps(signature)
    def generic(*arguments):
        return k.generic(*arguments)

    generic.kernel = k  # type: ignore[attr-defined]
    generic.implements = k.implements  # type: ignore[attr-defined]
    when_compiling(lambda numba: numba.overloads(generic, pick))
    return generic


def helper(function: Callable) -> Any:
    """A plain function that compiled loops may call (see the module's docstring)."""
    when_compiling(lambda numba: numba.overloads(function, lambda *_, **__: function))
    return function


class CompiledLoop:
    """A compiled loop, one specialisation per type of its first argument, each cached on disk."""

    def __init__(self, function: Callable):
        functools.update_wrapper(self, function)
        self.interpreted = function
        self.compiled: dict[type, Any] = {}
        _loops.append(self)

    def __call__(self, first, *arguments):
        t = type(first)
        if _interpret is not None or not compilable(t):
            return (_interpret or as_written)(self, (first, *arguments))
        if t not in self.compiled:
            self.compiled[t] = frozen.find(self.interpreted, t, functools.partial(self.compile, t)) or self.compile(t)
        return self.compiled[t](first, *arguments)

    def compile(self, t: type) -> Any:
        """What numba makes of it for problems of type `t`, or made of it before."""
        numba = compiler()
        return numba.compile_loop(self.interpreted, t, functools.partial(stamp, self.interpreted))


def compiled_loop(function: Callable) -> CompiledLoop:
    """Make a loop callable from Python, compiled (see the module's docstring)."""
    return CompiledLoop(function)


def compilable(t: type) -> bool:
    """Whether values of type `t` can enter compiled code: arrays, numbers, and NamedTuples of them.

    A structure whose problem is any other Python class runs interpreted, under every solver.
    """
    if issubclass(t, tuple):
        return hasattr(t, "_fields") and not getattr(t, "interpreted_only", False)
    return issubclass(t, np.ndarray | int | float | np.generic)


def as_written(loop: CompiledLoop, arguments: tuple[Any, ...]) -> Any:
    """What a loop returns, by the interpreter."""
    return loop.interpreted(*arguments)


@contextlib.contextmanager
def interpret(run: Callable[[CompiledLoop, tuple[Any, ...]], Any] = as_written) -> Iterator[None]:
    """Within this block every loop runs in the interpreter (slow): set breakpoints in any kernel or solver.

    `run` is called with a loop and its arguments, and returns what the loop does.

    Parameters
    ----------
    run : callable, optional
        Called with a loop and its arguments; does what the loop does.

    Examples
    --------
    >>> import numpy as np
    >>> from partwise import multiclass_problem, solve
    >>> with interpret():
    ...     solve(multiclass_problem(np.eye(2), [0, 1]), "hinge", "sdm", C=1.0).converged
    True
    """
    global _interpret
    before, _interpret = _interpret, run
    try:
        yield
    finally:
        _interpret = before


if os.environ.get("PARTWISE_INTERPRET", "") not in ("", "0"):
    _interpret = as_written


def cache_stats() -> dict[str, int]:
    """How many compiled specialisations this process took from disk (`hits`) and compiled itself (`misses`).

    `frozen` counts the loops that came with the package as machine code.

    Examples
    --------
    >>> import partwise
    >>> sorted(partwise.cache_stats())
    ['frozen', 'hits', 'misses']
    """
    loops = [loop for one in _loops for loop in one.compiled.values()]
    came = [loop for loop in loops if isinstance(loop, frozen.FrozenLoop)]
    made = [getattr(loop, "compiled", loop) for loop in loops]
    stats = [dispatcher.stats for dispatcher in made if dispatcher is not None]
    return {
        "frozen": len(came),
        "hits": sum(sum(s.cache_hits.values()) for s in stats),
        "misses": sum(sum(s.cache_misses.values()) for s in stats),
    }


def sources(function: Callable, *types: type) -> set[str]:
    """Files whose text decides what `function` compiles to for arguments of these types.

    numba itself watches only the outer function's file. Here: every module of functions reachable from it, and the files that
    implement kernels for the types. What else was imported does not matter, so that all processes find the same.
    """
    found: set[str] = set()
    queue: list[Any] = [function]
    for k in _kernels:
        own = [f for t, f in k.implementations.items() if any(issubclass(given, t) for given in (np.ndarray, *types))]
        queue += [*own, k.signature] if own else []
    while queue:
        written = inspect.unwrap(queue.pop())  # what is wrapped, say a kernel, is said to be in the file of the wrapper
        file, module = inspect.getsourcefile(written), inspect.getmodule(written)
        if file is None or file in found:
            continue
        found.add(file)
        for value in vars(module).values() if isinstance(module, ModuleType) else ():
            if isinstance(value, FunctionType) and value.__module__.startswith(("partwise", function.__module__)):
                queue.append(value)
    return found


def stamp(function: Callable, *types: type) -> str:
    """A digest of all the sources that `function` compiles from, for arguments of these types."""
    from partwise.engine import borrowed, code_cache, instructions, lane_instructions, numba_internals

    compilers = (numba_internals, borrowed, instructions, lane_instructions)
    return code_cache.digest_of(sources(function, *types) | {__file__, *(str(module.__file__) for module in compilers)})
