"""Checkpoints: the state of a run on disk, so that a killed process can go on exactly where it was.

What a solver remembers is a dataclass of numbers, arrays, and NamedTuples of these; scratch memory is left out and made anew. The
file is written like a model file (safetensors, checksums, atomically), and refused for another solver, loss, or problem.
"""

from __future__ import annotations

import dataclasses
import os
import time
import zlib
from typing import Any

import numpy as np

from partwise.engine.accumulator import Accumulator
from partwise.losses.in_loops import Workspace
from partwise.solvers.base import Solver, State, Task
from partwise.solvers.checks import size_of
from partwise.solvers.loop import unfinished
from partwise.solvers.result import Best, Record, SolveResult

FORMAT, VERSION = "partwise-checkpoint", 1


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
        self.fingerprint: dict[str, Any] = {}

    def load(self, solver: Solver, task: Task) -> SolveResult | None:
        """The run that the file is about, or None if there is no file; a file about another run is a ValueError."""
        from partwise.files.tensors import read_tensors

        self.fingerprint = fingerprint(solver, task)
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
        return restore(header, tensors, solver, task)

    def save(self, record: Record) -> None:
        """A callback: write the file if it is time."""
        from partwise.files.tensors import write_tensors

        now = time.monotonic()
        if self.every and now - self.last < max(self.every, 20 * self.cost):
            return
        result = record.result()
        header, tensors = describe(result)
        write_tensors(self.path, {"format": FORMAT, **header, "fingerprint": self.fingerprint}, tensors)
        self.last = time.monotonic()
        self.cost = self.last - now

    def remove(self) -> None:
        """The run is over."""
        if os.path.exists(self.path):
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
    """The result that `describe` was given, but for scratch memory, which is made anew."""
    numbers = {name: _number(text) for name, text in header["numbers"].items()}

    def take(name: str, like: Any) -> Any:
        if is_scratch(like):
            return like
        if is_states(like):  # all of them, or none: a later stage needs them no more
            there = any(key.startswith(f"{name}.") for key in (*tensors, *numbers))
            return [take(f"{name}.{k}", item) for k, item in enumerate(like)] if there else []
        if name in tensors:
            return tensors[name].tolist() if isinstance(like, list) else np.array(tensors[name])
        if name in numbers:
            return numbers[name]
        if members := members_of(like):
            return type(like)(**{field: take(f"{name}.{field}", item) for field, item in members.items()})
        return like

    state = solver.init(task)
    for field in dataclasses.fields(state):
        value = getattr(state, field.name)
        if not is_scratch(value):
            setattr(state, field.name, take(f"state.{field.name}", value))
    history = [Record(*(_number(text) for text in record)) for record in header["history"]]
    best = None
    if "best.weights" in tensors:
        best = Best(np.array(tensors["best.weights"]), float(numbers["best.cost"]), int(numbers["best.epoch"]))
    return unfinished(solver, task, state, history, best, "read from a checkpoint")


def _text(value: Any) -> str:
    """A number as text: infinities and NaN are not JSON."""
    value = value.item() if isinstance(value, np.generic) else value
    return repr(float(value) if isinstance(value, float) else value)


def _number(text: str) -> Any:
    if text in ("True", "False"):
        return text == "True"
    return float(text) if any(c in text for c in ".einf") else int(text)
