"""Machine code of recorded calls, kept between runs: what no source has changed of is not compiled again."""

from __future__ import annotations

import functools
import hashlib
import importlib
import json
import multiprocessing
import os
import pkgutil
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from partwise.engine.frozen import PACKAGE, digest
from partwise.freezing.recorder import Call
from partwise.freezing.targets import native, target
from partwise.freezing.types import MOST_RESULTS, NotWritten, argument, name_of, result, room

TRIPLE = "PARTWISE_FREEZING_FOR"  # in the environment: the system to compile for, if it is another than this
LAYERS = "features", "losses", "oracles", "structures", "solvers"  # packages that implement kernels
BATCH = 200  # loops that a process compiles before another takes over: numba forgets nothing


@dataclass
class CompiledCall:
    """A call, and where its code is."""

    label: str  #: module and name of the loop
    first: str  #: class of its first argument
    symbol: str
    types: str  #: of its arguments, see ``calls.c``; classes by their numbers in `classes`
    classes: list[str]
    arguments: list[str]  #: LLVM's types of what these become
    result: str
    needs: list[str]
    sources: dict[str, str]  #: files it was compiled from, below the package, and their digests
    refused: str = ""  #: why it cannot be called from outside, if it cannot

    def object_file(self, folder: Path) -> Path:
        """Its machine code."""
        return folder / f"{self.symbol}.o"


@functools.cache
def import_kernels() -> None:
    """Import whatever implements kernels: a process that was sent a recorded call has imported only the classes in it.

    A kernel that is not there would be compiled as its default, which is something else.
    """
    for layer in LAYERS:
        package = importlib.import_module(f"partwise.{layer}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)


def compiled(call: Call, folder: Path) -> CompiledCall:
    """The machine code of a call, from the folder if it is there."""
    from partwise.engine.compilation import compiler, sources, stamp

    if os.environ.get(TRIPLE):
        from partwise.freezing.cross import compile_for

        compile_for(os.environ[TRIPLE])
    import_kernels()
    numba = compiler()
    function = getattr(importlib.import_module(call.module), call.name).interpreted
    kinds = sorted(numba.classes_in(call.types) | {call.first}, key=name_of)
    state = stamp(function, *kinds)
    machine = os.environ.get("NUMBA_CPU_NAME"), os.environ.get(TRIPLE)
    key = repr((state, call.module, call.name, name_of(call.first), call.types, machine))
    symbol = "pw_" + hashlib.sha256(key.encode()).hexdigest()[:16]
    about = folder / f"{symbol}.json"
    if about.exists():
        return CompiledCall(**json.loads(about.read_text()))
    classes: list[str] = []
    files = {os.path.relpath(f, PACKAGE).replace(os.sep, "/"): digest(Path(f)) for f in sorted(sources(function, *kinds))}
    made = CompiledCall(f"{call.module}.{call.name}", name_of(call.first), symbol, "", classes, [], "", [], files)
    try:
        made.types = "".join(argument(t, classes) for t in call.types)
        code = numba.machine_code(function, call.types, symbol)
        made.arguments, made.result, made.needs = code.arguments, result(code.result), code.needs
        if room(code.result) > MOST_RESULTS:
            raise NotWritten(f"it returns {room(code.result)} fields")
        made.object_file(folder).write_bytes(code.code)
    except NotWritten as why:
        made.refused = str(why)
    unfinished = about.with_suffix(".part")
    unfinished.write_text(json.dumps(asdict(made)))
    unfinished.replace(about)
    return made


def processes(jobs: int) -> ProcessPoolExecutor:
    """So many, each a Python of its own that knows nothing yet."""
    return ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"))


def compile_all(calls: Iterable[Call], machine: str, folder: Path, jobs: int, tell: Callable[[str], Any]) -> list[CompiledCall]:
    """All of them, in several processes, for a machine that `targets` names."""
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.update(NUMBA_CPU_NAME=target(machine).cpu, NUMBA_CPU_FEATURES="", PARTWISE_FROZEN="0")  # of the processes to come
    os.environ[TRIPLE] = "" if machine == native() else target(machine).triple
    ordered = sorted(calls, key=lambda c: (name_of(c.first), c.module, c.name))
    found: list[CompiledCall] = []
    for start in range(0, len(ordered), jobs * BATCH):
        with processes(jobs) as pool:
            for made in pool.map(functools.partial(compiled, folder=folder), ordered[start : start + jobs * BATCH]):
                found.append(made)
                tell(f"{len(found)}/{len(ordered)} {made.label} {made.first.rpartition(':')[2]} {made.refused}")
    return found
