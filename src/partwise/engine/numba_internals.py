"""All that this package takes from inside numba and llvmlite; nothing else in it touches what they keep to themselves.

Two things come of it:

*Helpers are optimised once, within the loop that calls them* (`HelperCompiler`). numba optimises every function it meets, with
all that it calls, and turns it into machine code, before it links it into its caller, where all of that is done again: code at
the bottom of ten calls is optimised ten times, and nine of the ten are thrown away. Here helpers stay as they were written until
the loop is complete. Compiling takes half the time; the code is the same.

*Compiled loops are kept in files of our own* (`FileCache`; what may be read and written is up to `code_cache`). numba's own cache
keeps an index per function that two processes can scramble, watches one source file only, and makes everything ready to compile
before it loads what need not be compiled.

None of this is documented by numba, and any release may change it. `TESTED` are the versions that our tests were run with. With
others it is used as well, as long as everything is where we look for it (`lacking`); where it is not, or with
``PARTWISE_PLAIN_NUMBA=1`` in the environment, `PLAIN` is true: numba compiles as it is, and keeps nothing. The same results, but
each process compiles for itself, and longer.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import hashlib
import io
import os
import pickle
import sys
import warnings
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numba
from numba.extending import overload

from partwise.engine.borrowed import without_counting
from partwise.engine.code_cache import CodeFiles

try:
    from llvmlite import binding
    from numba.core import serialize
    from numba.core.caching import _Cache
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import Compiler, CompileResult
    from numba.core.environment import Environment, lookup_environment
except ImportError:  # what is below stands on nothing then, and nobody uses it
    binding = serialize = lookup_environment = None
    _Cache = JITCodeLibrary = Compiler = CompileResult = Environment = object

TESTED = {
    "numba": ("0.60.0", "0.61.2", "0.62.1", "0.63.1", "0.64.0", "0.65.1", "0.66.0", "0.67.0", "0.68.1"),
    "llvmlite": ("0.43.0", "0.44.0", "0.45.1", "0.46.0", "0.46.0", "0.47.0", "0.48.0", "0.49.0", "0.50.0"),
}

EXPECTED: tuple[tuple[Any, str], ...] = (
    (binding, "add_symbol address_of_symbol parse_assembly parse_bitcode"),
    (serialize, "dumps"),
    (_Cache, "cache_path disable enable flush load_overload save_overload"),
    (
        JITCodeLibrary,
        "_ensure_finalized _finalize_dynamic_globals _finalize_final_module _finalized _optimize_final_module codegen "
        "get_pointer_to_function has_dynamic_globals serialize_using_object_code",
    ),
    (Compiler, "define_pipelines compile_extra"),
    (CompileResult, "_rebuild _reduce codegen library"),
    (Environment, "_memo can_cache"),
)


def lacking(expected: Iterable[tuple[Any, str]]) -> list[str]:
    """The attributes that are not where they are expected."""
    return [name for owner, names in expected for name in names.split() if not hasattr(owner, name)]


#: whether numba compiles as it is
PLAIN = os.environ.get("PARTWISE_PLAIN_NUMBA", "") not in ("", "0") or bool(lacking(EXPECTED))


def compile_loop(function: Callable, first: type, stamp: Callable[..., str]) -> Any:
    """What numba makes of a loop whose first argument has type `first`; kept in files.

    ``stamp(*types)`` is the state of the sources that it is compiled from, for arguments of these types.
    """
    dispatcher = numba.njit(nogil=True, **LOOP)(function)
    if PLAIN:
        _tell_why()
    elif hasattr(dispatcher, "_cache"):
        dispatcher._cache = FileCache(CodeFiles(function, first, stamp(first)), stamp)
    return dispatcher


def overloads(function: Callable, implementation: Callable) -> None:
    """Tell numba which function stands for `function` in compiled code: ``implementation(types of the arguments)``."""
    overload(function, jit_options=HELPER, strict=False)(implementation)


@functools.cache
def _tell_why() -> None:
    missing = lacking(EXPECTED)
    if missing:
        warnings.warn(
            f"numba {numba.__version__} is not as partwise knows it (there is no {missing[0]}): every process compiles for "
            f"itself. Known versions: {', '.join(TESTED['numba'])}.",
            RuntimeWarning,
            stacklevel=4,
        )


# ---------------------------------------------------------------------------------------------------------------------
# Helpers
# ---------------------------------------------------------------------------------------------------------------------


class NoEnvironments:
    """What a helper sees of the machine-code generator: its environment has no address yet (`place_environments`)."""

    def set_env(self, name: str, environment: Any) -> None:
        """Nothing to write to."""


class HelperLibrary(JITCodeLibrary):
    """Code that is only ever linked into other code: not optimised, not turned into machine code."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """None: Python does not call helpers."""
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> NoEnvironments:
        """See there."""
        return NoEnvironments()


class HelperCompiler(Compiler):
    """numba's compiler, writing into a `HelperLibrary`."""

    def define_pipelines(self) -> list:
        """Those of numba."""
        if self.state.library is None:
            self.state.library = HelperLibrary(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        return super().define_pipelines()


class LoopLibrary(JITCodeLibrary):
    """A loop with all that it calls: what need not be counted is not, before anything is optimised (`borrowed`)."""

    _final_module: Any

    def _optimize_final_module(self) -> None:
        if hasattr(binding, "create_new_module_pass_manager"):  # since LLVM 16; before, everything is counted
            passes = binding.create_new_module_pass_manager()
            passes.add_sroa_pass()  # variables become values, so that one can see what is an argument
            passes.add_instruction_combine_pass()
            passes.run(self._final_module, self._codegen._pass_builder())
            name = self._final_module.name
            self._final_module = binding.parse_assembly(without_counting(str(self._final_module)))
            self._final_module.name = name
        JITCodeLibrary._optimize_final_module(self)


class LoopCompiler(Compiler):
    """numba's compiler, writing into a `LoopLibrary`."""

    def define_pipelines(self) -> list:
        """Those of numba."""
        if self.state.library is None:
            self.state.library = LoopLibrary(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
            self.state.library.enable_object_caching()
        return super().define_pipelines()

    def compile_extra(self, func: Callable) -> Any:
        """That of numba, without looking for garbage on the way: millions of objects are made here, and nearly all are kept."""
        collecting = gc.isenabled()
        gc.disable()
        try:
            return super().compile_extra(func)
        finally:
            if collecting:
                gc.enable()


# Never "ninf": real -inf marks what is forbidden. "nnan" is safe because no code path subtracts two infinities.
FASTMATH = {"nnan", "nsz", "arcp", "contract", "reassoc"}
ALL: dict[str, Any] = {"fastmath": FASTMATH, "error_model": "numpy", **({} if PLAIN else {"no_cfunc_wrapper": True})}
#: options of loops, and of what loops call; numba does not document those that are left out if it is PLAIN
LOOP: dict[str, Any] = {**ALL, **({} if PLAIN else {"pipeline_class": LoopCompiler})}
HELPER: dict[str, Any] = {**ALL, **({} if PLAIN else {"pipeline_class": HelperCompiler})}


# ---------------------------------------------------------------------------------------------------------------------
# Code for other processes
# ---------------------------------------------------------------------------------------------------------------------


class OutsideLibrary(HelperLibrary):
    """A loop that will run in another process: optimised as all are, but not loaded into this one."""

    _optimize_final_module = LoopLibrary._optimize_final_module


class OutsideCompiler(LoopCompiler):
    """numba's compiler, writing into an `OutsideLibrary`."""

    def define_pipelines(self) -> list:
        """Those of numba."""
        if self.state.library is None:
            self.state.library = OutsideLibrary(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        return Compiler.define_pipelines(self)


class MachineCode(NamedTuple):
    """A loop for arguments of certain types, as code that can lie anywhere in memory."""

    code: bytes  #: an object file that defines one symbol
    arguments: list[str]  #: LLVM's types of the arguments that the loop's own become
    result: Any  #: numba's type of it
    needs: list[str]  #: symbols that must come from elsewhere


def machine_code(function: Callable, types: tuple[Any, ...], symbol: str) -> MachineCode:
    """Compile a loop for arguments of these types, to be called `symbol`, for the processor that numba compiles for."""
    dispatcher = numba.njit(nogil=True, no_cpython_wrapper=True, **{**LOOP, "pipeline_class": OutsideCompiler})(function)
    dispatcher.compile(types)
    (result,) = dispatcher.overloads.values()
    module = result.library._final_module
    module.get_function(result.fndesc.llvm_func_name).name = symbol
    for value in (*module.functions, *module.global_variables):
        if not value.is_declaration and value.name != symbol:
            value.linkage = "internal"
    codegen = result.library._codegen
    machine = binding.Target.from_triple(binding.get_process_triple()).create_target_machine(
        cpu=codegen._get_host_cpu_name(), features=codegen._tm_features, opt=3, reloc="pic", codemodel="large"
    )
    passes = binding.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.add_strip_dead_prototype_pass()
    passes.run(module, binding.create_pass_builder(machine, binding.create_pipeline_tuning_options()))
    arguments = [str(a.type) for a in module.get_function(symbol).arguments]
    needs = [v.name for v in (*module.functions, *module.global_variables) if v.is_declaration and not v.name.startswith("llvm.")]
    return MachineCode(machine.emit_object(module), arguments[2:], result.signature.return_type, sorted(needs))


def place_environments(library: Any) -> None:
    """Tell a finished loop where the environments of its helpers are: printing from compiled code looks at them."""
    engine = library.codegen._engine
    for variable in library._final_module.global_variables:
        environment = lookup_environment(variable.name)
        address = 0 if environment is None else engine.get_global_value_address(variable.name)
        if address:
            ctypes.c_void_p.from_address(address).value = id(environment)


# ---------------------------------------------------------------------------------------------------------------------
# Code from disk
# ---------------------------------------------------------------------------------------------------------------------


class FileCache(_Cache):
    """What numba asks for compiled code; one for each loop and structure."""

    def __init__(self, files: CodeFiles, stamp: Callable[..., str]):
        self.files, self.stamp, self.enabled = files, stamp, True

    @property
    def cache_path(self):
        return str(self.files.path)

    def enable(self):
        self.enabled = True

    def disable(self):
        self.enabled = False

    def flush(self):
        self.files.clear()

    def key(self, sig: Any, codegen: Any) -> str:
        """Of a signature, on this kind of processor, the sources being what they are."""
        classes = sorted(classes_in(sig), key=lambda cls: (cls.__module__, cls.__qualname__))
        return hashlib.sha256(repr((sig, codegen.magic_tuple(), self.stamp(*classes))).encode()).hexdigest()[:16]

    def load_overload(self, sig, target_context):
        with contextlib.suppress(Exception):  # written by another numba than we know: compile, and overwrite it
            data = self.files.read(self.key(sig, target_context.codegen())) if self.enabled else None
            if data is not None:
                return rebuild(data, target_context)
        self.files.announce()
        return None

    def save_overload(self, sig, data):
        with contextlib.suppress(Exception):  # another numba than we know: works, only slower next time
            place_environments(data.library)
            if self.enabled and not data.library.has_dynamic_globals:
                self.files.write(self.key(sig, data.codegen), reduced(data))


def classes_in(types: Iterable[Any]) -> set[type]:
    """The NamedTuples among numba's types, and within them."""
    found: set[type] = set()
    for t in types:
        if isinstance(t, numba.types.BaseTuple):
            found |= classes_in(t)
        if isinstance(t, numba.types.BaseNamedTuple):
            found.add(t.instance_class)
    return found


def reduced(result: Any) -> bytes:
    """A finished loop as bytes, with the symbols it needs."""
    code, *rest = result._reduce()
    return serialize.dumps((external_symbols(result.library), (object_code_only(code), *rest)))


def rebuild(data: bytes, target_context: Any) -> Any:
    """The loop that `reduced` made bytes of."""
    symbols, payload = CompiledCode(io.BytesIO(data)).load()
    if not linkable(symbols):
        target_context.refresh()
    return CompileResult._rebuild(target_context, *payload)


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
        """Our own way to make the environment of a function; else what numba makes code of, and nothing but that.

        Who can write such a file can write machine code into it: it is the folder that has to be safe (`code_cache`). This
        keeps a file of another kind, or of another numba, from running what it was never meant to.
        """
        if (module, name) == ("copyreg", "_reconstructor"):
            return super().find_class(module, name)
        if (module, name) == ("numba.core.environment", "_rebuild_env"):
            return _environment
        found = super().find_class(module, name)
        root = module.partition(".")[0]
        if root == "numba" or (
            root == "numpy" and (isinstance(found, type) or name in ("_reconstruct", "scalar", "_frombuffer"))
        ):
            return found
        if isinstance(found, type) and (module == "builtins" or issubclass(found, tuple)):
            return found  # plain types, and records of arrays: problems, feature rows, losses
        raise pickle.UnpicklingError(f"compiled code has no use for {module}.{name}")
