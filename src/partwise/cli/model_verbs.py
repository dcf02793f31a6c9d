"""What the verbs that work with a model share: their options are those of all tasks together, and the model says whose.

A task declares the options that its ``predict``, ``evaluate``, ``inspect``, ``suspects`` and ``report`` have
(`partwise.tasks.common.command`). A verb shows them all; given a model, it refuses those of other tasks.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from partwise.cli.options import Parameter, as_parameters, filled
from partwise.tasks.common.command_options import Refusal
from partwise.tasks.common.registry import BY_ESTIMATOR, TASKS, RegisteredTask


def options_of(task: RegisteredTask, verb: str) -> Any:
    """The dataclass of a task's options for a verb; None: it cannot do that."""
    return getattr(task.command, f"{verb}_options")


def all_options(verb: str, tasks: Sequence[RegisteredTask] = TASKS) -> list[Parameter]:
    """The options of all these tasks, each once."""
    found: dict[str, Parameter] = {}
    for task in tasks:
        if options := options_of(task, verb):
            found = {one.name: one for one in as_parameters(options)} | found
    return list(found.values())


def options_for(task: RegisteredTask, verb: str, given: dict[str, Any], what: Any) -> Any:
    """The task's own options, filled in; says so if another's were given."""
    own = options_of(task, verb)
    if own is None:
        able = ", ".join(other.does for other in TASKS if options_of(other, verb))
        raise Refusal(f"{verb} is for a model that {able}; {what} {task.does}.")
    names = {field.name for field in dataclasses.fields(own)}
    others = given.keys() - names
    for one in all_options(verb) if others else ():  # which asks every task for its own
        if one.name in others and given[one.name] != one.default:
            whose = " or ".join(other.does for other in TASKS if has_option(other, verb, one.name))
            flag = max(one.spellings(), key=lambda name: name.startswith("--"))
            raise Refusal(f"{flag} is for a model that {whose}; {what} {task.does}.")
    return filled(own, given)


def has_option(task: RegisteredTask, verb: str, name: str) -> bool:
    """Whether a task's verb has an option."""
    own = options_of(task, verb)
    return own is not None and name in {field.name for field in dataclasses.fields(own)}


def load(path: Path, jobs: int | None = None) -> tuple[Any, RegisteredTask]:
    """A model, without importing scikit-learn, and its task."""
    from partwise.tasks.common import model_file

    model = model_file.load(path, plain=True)
    if jobs is not None:
        model.n_jobs = jobs
    return model, BY_ESTIMATOR[type(model).__name__]


@functools.lru_cache(maxsize=1)
def loaded_once(model: str, age: int, jobs: int) -> tuple[Any, RegisteredTask]:
    """A model, once for each process."""
    return load(Path(model), jobs)


def alone(verb: str, given: dict[str, Any]) -> tuple[RegisteredTask, Any] | None:
    """The task that can do without a model what the options ask for, and those options."""
    for task in TASKS if given else ():  # nothing is asked for, then
        if (own := options_of(task, verb)) and task.command.stands_alone(filled(own, given)):
            return task, filled(own, given)
    return None
