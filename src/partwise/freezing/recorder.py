"""Which loops the usual commands call, and with arguments of which types.

Every task of the registry is tried on its tiny workload: training by every solver and loss there is, in both precisions, then all
verbs on some of the models. Loops run in the interpreter, so nothing is compiled to find out what will have to be. A new task,
solver or loss is recorded by being registered.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import itertools
import pickle
import tempfile
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from partwise.engine import compilation
from partwise.engine.frozen import PACKAGE
from partwise.losses.records import LOSSES
from partwise.solvers import SOLVERS
from partwise.tasks.common.registry import BY_VERB, RegisteredTask

DTYPES = ("float32", "float64")
EPOCHS = ("--epochs", "2")
PARTS = 16  # of the trainings of a task: some take minutes in the interpreter
OUT_OF_FOLD = ("--folds", "2")


class Call(NamedTuple):
    """A loop, and the types of its arguments as numba sees them."""

    module: str
    name: str
    first: type
    types: tuple[Any, ...]


def as_compiled(value: Any) -> Any:
    """What compiled code would have returned: Python's numbers, not numpy's."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple):
        made = [as_compiled(v) for v in value]
        return type(value)(*made) if hasattr(value, "_fields") else tuple(made)
    return value


@contextlib.contextmanager
def recording(calls: dict[Call, None]) -> Iterator[None]:
    """Within this block loops over structures run in the interpreter, and each call of any loop is added to `calls`."""
    from numba import typeof

    of_arrays: dict[Any, Callable] = {}

    def observe(loop: Any, arguments: tuple[Any, ...]) -> Any:
        function = loop.interpreted
        if compilation.compilable(type(arguments[0])):
            types = tuple(typeof(a) for a in arguments)
            calls[Call(function.__module__, function.__name__, type(arguments[0]), types)] = None
        if type(arguments[0]) is np.ndarray:  # few loops, and quick to compile; but all weights there are may pass through them
            if loop not in of_arrays:
                of_arrays[loop] = loop.compile(np.ndarray)
            return of_arrays[loop](*arguments)
        return as_compiled(function(*arguments))

    with compilation.interpret(observe):
        yield


def run(*words: Any) -> bool:
    """Whether a command was carried out; what is refused is none of the usual ones. ImportError if something is not installed."""
    from partwise.cli.app import app

    with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO())), contextlib.redirect_stderr(io.StringIO()):
        try:
            app([str(word) for word in words], standalone_mode=True)
        except SystemExit as end:
            if isinstance(end.__context__, ImportError):
                raise end.__context__ from None
            return end.code in (0, None)
    return True


def trainings(task: RegisteredTask, thorough: bool) -> Iterator[tuple[str, ...]]:
    """Options of ``train``: none; or also what a task is usually asked for, and every solver and loss."""
    yield ()
    if not thorough:
        return
    for more in ((), *task.command.usual):
        for dtype in DTYPES:
            yield (*more, "--dtype", dtype)
    for loss, solver in itertools.product(LOSSES, (None, *SOLVERS)):
        for dtype in DTYPES:
            yield ("--loss", loss, *(() if solver is None else ("--solver", solver)), "--dtype", dtype)


def verbs(task: RegisteredTask, model: Path, file: Path, out: Path) -> Iterator[tuple[Any, ...]]:
    """What is done with a model."""
    command = task.command
    yield "predict", model, file
    for form in command.forms:
        yield "predict", model, file, "--format", form, "-o", out
    for more in (("--kbest", "2"), ("--marginals",), ("--all-marginals",)):
        yield "predict", model, file, *more, "-o", out
    if "jsonl" in command.forms:  # some tasks write several answers in this form only
        yield "predict", model, file, "--kbest", "2", "--format", "jsonl", "-o", out
    yield "evaluate", model, file
    yield "inspect", model
    yield "report", model, file, "--json", "--resamples", "2"
    yield "suspects", model, file, *OUT_OF_FOLD
    yield "suspects", model, file, "--parts", *OUT_OF_FOLD


def record(verb: str, thorough: bool = True, part: int = 0, parts: int = 1) -> list[Call]:
    """All calls of a task's usual commands; if not `thorough`, of those that set nothing.

    Several processes share the work: each takes one `part` of the trainings.
    """
    task = BY_VERB[verb]
    calls: dict[Call, None] = {}
    with tempfile.TemporaryDirectory() as name, recording(calls), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(name)
        file, model, out = task.command.workload(folder), folder / "model", folder / "out"
        for options in itertools.islice(trainings(task, thorough), part, None, parts):
            done = run("train", verb, file, "-o", model, *EPOCHS, *options)
            if done and ("--solver" not in options):
                for words in verbs(task, model, file, out):
                    # it takes four fifths of all the time in the interpreter, and calls the same loops whatever the loss was
                    if words[0] != "suspects" or "--loss" not in options:
                        run(*words)
    return list(calls)


@functools.cache
def state() -> str:
    """A digest of all sources of the package: what was recorded holds as long as none of them is edited."""
    made = hashlib.sha256()
    for file in sorted(PACKAGE.rglob("*.py")):
        made.update(str(file.relative_to(PACKAGE)).encode() + file.read_bytes())
    return made.hexdigest()[:16]


def recorded(verb: str, thorough: bool, part: int, parts: int, kept: Path) -> list[Call]:
    """What `record` finds, from a file of that folder if it was found before."""
    name = f"{verb}-{part}-of-{parts}" if thorough else f"{verb}-defaults"
    file = kept / f"{name}-{state()}.calls"
    if file.exists():
        return pickle.loads(file.read_bytes())  # noqa: S301  (our own, of an earlier run of this command)
    calls = record(verb, thorough, part, parts)
    for old in kept.glob(f"{name}-*.calls"):
        old.unlink()
    unfinished = file.with_suffix(".part")
    unfinished.write_bytes(pickle.dumps(calls))
    unfinished.replace(file)
    return calls


def record_all(names: list[str], thorough: bool, pool: Executor, kept: Path, tell: Callable[[str], Any]) -> list[Call]:
    """The same of several tasks, by several processes; what was recorded is kept, so that a run that was ended goes on."""
    kept.mkdir(parents=True, exist_ok=True)
    parts = PARTS if thorough else 1
    units = [(verb, thorough, part, parts, kept) for part in range(parts) for verb in names]
    calls: dict[Call, None] = {}
    for n, (unit, those) in enumerate(zip(units, pool.map(recorded, *zip(*units, strict=True)), strict=True), 1):
        calls.update(dict.fromkeys(those))
        tell(f"recorded {n}/{len(units)}: {unit[0]}, {len(calls)} specialisations so far")
    return list(calls)
