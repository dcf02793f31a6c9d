"""Checkpoints: the state of a run on disk, so that a killed process can go on exactly where it was.

What a solver remembers is a dataclass of numbers, arrays, and NamedTuples of these; scratch memory is left out and made anew. The
file is written like a model file (safetensors, checksums, atomically), and refused for another solver, loss, or problem. What is
in it must be what a fresh state of that solver has: the same names, types and shapes. Records that grow say which of their
fields do (`grows`), and check what they point at (`check`).
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import time
import warnings
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from partwise import kernels
from partwise.engine.accumulator import Accumulator
from partwise.features.stored import check_stored, is_known
from partwise.files.tensors import SEALED, ModelFileError, read_tensors, write_tensors
from partwise.losses.in_loops import Workspace
from partwise.solvers.active import ActiveSets
from partwise.solvers.base import Solver, State, Task
from partwise.solvers.checks import size_of
from partwise.solvers.loop import unfinished
from partwise.solvers.oneslack import Cache
from partwise.solvers.result import Best, Record, SolveResult
from partwise.solvers.weights import Weights, in_use, no_weights

FORMAT = "partwise-checkpoint"
VERSION = SEALED[FORMAT]


def is_scratch(value: Any) -> bool:
    """Whether it is memory to work in, made anew when a run goes on: workspaces, and pools of vectors or of workspaces."""
    return isinstance(value, Workspace | Accumulator) or (
        isinstance(value, list) and any(isinstance(v, np.ndarray | Workspace) for v in value)
    )


def is_states(value: Any) -> bool:
    """Whether it is a list of states, of solvers that run side by side."""
    return isinstance(value, list) and bool(value) and all(isinstance(v, State) for v in value)


class Checkpoint:
    """A file that follows a run.

    Parameters
    ----------
    path : path
    every : float
        Seconds between two of its versions, at least; and at least twenty times as long as writing one takes. 0: every epoch.
    """

    def __init__(self, path: Any, every: float):
        self.path, self.every = os.fspath(path), every
        self.last = time.monotonic()
        self.cost = 0.0
        self.failed = False  #: whether it could not be written once, and this was said
        self.run: tuple[Solver, Task] | None = None

    @functools.cached_property
    def fingerprint(self) -> dict[str, Any]:
        """Of the run; it goes through all data, so that a run that is over before the first version does without."""
        assert self.run is not None
        return fingerprint(*self.run)

    def load(self, solver: Solver, task: Task) -> SolveResult | None:
        """The run that the file is about, or None if there is no file; a file about another run is a ValueError."""
        self.run = solver, task
        if not os.path.exists(self.path):
            return None
        header, tensors = read_tensors(self.path, FORMAT, VERSION)
        found = header.get("fingerprint")
        if found != self.fingerprint:
            other = [key for key, value in self.fingerprint.items() if not isinstance(found, dict) or found.get(key) != value]
            raise ValueError(
                f"{self.path!r} belongs to another run: {', '.join(other)} differ. Remove it to start afresh, or train with the "
                "same data and settings to go on."
            )
        try:
            return restore(header, tensors, solver, task)
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError) as error:
            why = str(error) if type(error) is ValueError else f"{type(error).__name__}: {error}"
            raise ModelFileError(f"{self.path!r} is damaged or was altered: {why}. Remove it to start afresh.") from None

    def save(self, record: Record) -> None:
        """A callback: write the file if it is time. Where it cannot be written, a full disk say, training goes on."""
        now = time.monotonic()
        if self.every and now - self.last < max(self.every, 20 * self.cost):
            return
        result = record.result()
        header, tensors = describe(result)
        about = {"format": FORMAT, "format_version": VERSION, **header, "fingerprint": self.fingerprint}
        try:
            write_tensors(self.path, about, tensors)
        except OSError as error:
            if not self.failed:
                warnings.warn(f"No checkpoint: {error}. Training goes on; it is tried again.", stacklevel=2)
            self.failed = True
        self.last = time.monotonic()
        self.cost = self.last - now

    def remove(self) -> None:
        """The run is over."""
        with contextlib.suppress(FileNotFoundError):  # it was never written, or another process has removed it
            os.unlink(self.path)


def fingerprint(solver: Solver, task: Task) -> dict[str, Any]:
    """What must be the same for a state to make sense: solver, loss, penalty, C, order of examples, and the problem."""
    settings = {f.name: getattr(solver, f.name) for f in dataclasses.fields(solver) if not callable(getattr(solver, f.name))}
    checksum = task.digest or 0
    for array in arrays_of(task.problem) if task.digest is None else ():
        checksum = zlib.crc32(np.ascontiguousarray(array).view(np.uint8).data, checksum) if array.size else checksum
    return {
        "solver": f"{solver.name} {settings}",
        "loss": f"{task.loss}",
        **({"l1_ratio": task.l1_ratio} if task.l1_ratio else {}),
        **({"lists": list(task.lists)} if task.lists else {}),
        **({} if task.penalty_weight is None else {"penalty_weight": zlib.crc32(task.penalty_weight.tobytes())}),
        "C": zlib.crc32(task.C.tobytes()),
        "seed": [task.seed, task.shuffle],
        "dtype": np.dtype(task.dtype).name,
        "size": list(size_of(task.problem)),
        "data": checksum,
    }


def arrays_of(value: Any) -> list[np.ndarray]:
    """All arrays in nested tuples."""
    if isinstance(value, np.ndarray):
        return [value]
    return [array for item in value for array in arrays_of(item)] if isinstance(value, tuple) else []


def members_of(value: Any) -> dict[str, Any]:
    """The members of a NamedTuple or dataclass, by name."""
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return value._asdict() if isinstance(value, tuple) else {}  # type: ignore[attr-defined]


def describe(result: SolveResult) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Numbers for JSON, and arrays."""
    numbers: dict[str, Any] = {}
    tensors: dict[str, np.ndarray] = {}

    def put(name: str, value: Any) -> None:
        if isinstance(value, Weights):
            value = in_use(value)
        if isinstance(value, np.ndarray):
            tensors[name] = value
        elif isinstance(value, bool | int | float | np.generic):
            numbers[name] = _text(value)
        elif is_states(value):
            for k, item in enumerate(value):
                put(f"{name}.{k}", item)
        elif isinstance(value, list):
            tensors[name] = np.array(value, np.int64)
        elif members := members_of(value):
            for field, item in members.items():
                if not is_scratch(item):
                    put(f"{name}.{field}", item)
        elif value is not None:
            raise TypeError(f"A checkpoint cannot hold {name}, a {type(value).__name__}.")

    for field in dataclasses.fields(result.state):
        value = getattr(result.state, field.name)
        if not is_scratch(value):
            put(f"state.{field.name}", value)
    if result.best is not None:
        put("best", result.best)
    records = [[_text(getattr(record, f)) for f in RECORDED] for record in result.history]
    return {"numbers": numbers, "history": records}, tensors


RECORDED = tuple(f.name for f in dataclasses.fields(Record) if not f.name.startswith("_"))


def restore(header: dict[str, Any], tensors: dict[str, np.ndarray], solver: Solver, task: Task) -> SolveResult:
    """The result that `describe` was given, but for scratch memory, which is made anew. What does not fit is a ValueError."""
    numbers = {name: _number(text) for name, text in header["numbers"].items()}
    left = {*tensors, *numbers}
    n_weights = size_of(task.problem)[1]

    def array(name: str, like: np.ndarray, grows: bool) -> np.ndarray:
        left.discard(name)
        found = np.array(tensors[name])
        if found.dtype != like.dtype or found.ndim != like.ndim or (found.shape != like.shape and not grows):
            raise ValueError(f"{name!r} is {found.dtype} of shape {found.shape}, not {like.dtype} of shape {like.shape}")
        return found

    def pool(name: str, like: np.ndarray) -> np.ndarray:  # its beginning is there; the room behind it stays
        found = array(name, like[: len(tensors[name])], False)
        like[: len(found)] = found
        return like

    def number(name: str, like: Any) -> Any:
        left.discard(name)
        found, kind = numbers[name], type(like.item() if isinstance(like, np.generic) else like)
        if type(found) is not kind or (kind is int and not -1 <= found < 2**62):
            raise ValueError(f"{name!r} is {found!r}, which is no {kind.__name__} that it can be")
        return found

    def take(name: str, like: Any, grows: bool = False) -> Any:
        if is_scratch(like):
            return like
        if is_states(like):  # all of them, or none: a later stage needs them no more
            left.discard(name)  # no states, as an empty list
            there = any(key.startswith(f"{name}.") for key in left)
            return [take(f"{name}.{k}", item) for k, item in enumerate(like)] if there else []
        if like is None:  # what a run makes later: a vector of weights, or something of each position
            if name in tensors:
                return array(name, later(tensors[name], task, n_weights, name), False)
            return None
        if isinstance(like, np.ndarray):
            return array(name, like, grows)
        if isinstance(like, list):  # of numbers, or pools that are empty yet
            return array(name, np.zeros(0, np.int64), True).tolist() if name in tensors else like
        if members := members_of(like):
            growing, pools = getattr(like, "grows", ()), getattr(like, "pools", ())
            made = type(like)(
                **{
                    field: pool(f"{name}.{field}", item) if field in pools else take(f"{name}.{field}", item, field in growing)
                    for field, item in members.items()
                }
            )
            if hasattr(made, "check"):
                made.check(like, task)
            if is_known(task.problem):
                for outputs in stored_outputs(made, task.problem):
                    check_stored(kernels.with_targets(task.problem, outputs))
            return made
        return number(name, like)

    state = take("state", solver.init(task))
    history = [recorded(row) for row in header["history"]]
    best = None
    if any(name.startswith("best.") for name in left):
        weights = take("best.weights", no_weights(n_weights, task.dtype, task.lists))
        best = Best(weights, number("best.cost", 0.0), number("best.epoch", 0))
    if left:
        raise ValueError(f"there is {min(left)!r}, which the solver {solver.name!r} does not have")
    if state.epochs < 0 or state.oracle_calls < 0:
        raise ValueError(f"the run is {state.epochs} epochs old, after {state.oracle_calls} calls")
    return unfinished(solver, task, state, history, best, "read from a checkpoint")


def stored_outputs(value: Any, problem: Any) -> Iterator[np.ndarray]:
    """The outputs in a part of a state, end to end, as often as there are some; where an example has none, its target."""
    if isinstance(value, Cache):
        for row, used in zip(value.outputs, value.used, strict=True):
            there = np.repeat(used > 0, np.diff(value.starts))
            yield np.where(there, row, targets_of(problem)).astype(np.int32)
    elif isinstance(value, ActiveSets) and len(value.outputs):
        starts, records = kernels.sizes(problem)[0].tolist(), value.head.copy()
        while (records >= 0).any():
            outputs = targets_of(problem)
            for i in np.flatnonzero(records >= 0).tolist():
                first, length = int(value.start[records[i]]), starts[i + 1] - starts[i]
                outputs[starts[i] : starts[i + 1]] = value.outputs[first : first + length]
            yield outputs
            records = np.where(records >= 0, value.next[records], -1)
    elif isinstance(getattr(value, "targets", None), np.ndarray) and isinstance(value, State):
        yield value.targets  # type: ignore[attr-defined]


def targets_of(problem: Any) -> np.ndarray:
    """Of all examples, end to end."""
    found = [kernels.target(problem, i) for i in range(kernels.n_examples(problem))]
    return np.concatenate([np.zeros(0, np.int32), *found]).astype(np.int32)


def later(found: np.ndarray, task: Task, n_weights: int, name: str) -> np.ndarray:
    """What an array should be like that a fresh state does not have yet."""
    if found.dtype == np.bool_:
        return np.zeros(int(kernels.sizes(task.problem)[0][-1]), np.bool_)
    if found.dtype not in (np.float64, np.float32):
        raise ValueError(f"{name!r} is of type {found.dtype}")
    return np.zeros(n_weights, found.dtype)


def recorded(row: Any) -> Record:
    """What is known of an epoch."""
    record = Record(*map(_number, row))
    for field in RECORDED:
        if isinstance(getattr(record, field), bool):
            raise ValueError(f"the history has {field} {getattr(record, field)!r}")
    return record


def _text(value: Any) -> str:
    """A number as text: infinities and NaN are not JSON."""
    value = value.item() if isinstance(value, np.generic) else value
    return repr(float(value) if isinstance(value, float) else value)


def _number(text: str) -> Any:
    if text in ("True", "False"):
        return text == "True"
    return float(text) if any(c in text for c in ".einf") else int(text)
