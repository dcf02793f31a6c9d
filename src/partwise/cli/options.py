"""Parameters of verbs: from options as dataclasses declare them (`partwise.tasks.common.command_options`) to a list, and back.

Nothing here needs the library that parses command lines: `quick` reads most of them without it, `typer_commands` makes commands
of the same list for all others, for ``--help`` and for errors.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar, get_type_hints

Kind = TypeVar("Kind")
REQUIRED: Any = object()  #: the default of what must be given


class Parameter(NamedTuple):
    """An option of a verb; or an argument, which has no names and is told by its place."""

    name: str
    kind: Any  #: str, int, float, bool or Path, that or None, or a list of str
    text: str  #: for ``--help``
    names: tuple[str, ...] = ()  #: as one types it; "--x/--no-x" for what can be switched on and off
    default: Any = REQUIRED
    panel: str | None = None  #: of ``--help``
    limits: Mapping[str, Any] = {}  #: `min` and `max` of numbers

    def spellings(self) -> list[str]:
        """All that an option is called on the command line."""
        return [name for names in self.names for name in names.split("/")]


class Verb(NamedTuple):
    """A command: what it takes and what it does."""

    name: str
    text: str  #: for ``--help``
    parameters: Sequence[Parameter]
    run: Callable[..., None]  #: called with the values of the parameters


def as_parameters(options: type, estimator: Any = None) -> list[Parameter]:
    """The fields of a dataclass; where one is a parameter of the estimator, its default is the estimator's."""
    hints = get_type_hints(options)
    known = {} if estimator is None else {field.name: field.default for field in dataclasses.fields(estimator)}
    found = []
    for field in dataclasses.fields(options):
        about = field.metadata
        text = about["help"]
        own = known.get(field.name)
        if field.default is None and own is not None and (own != "auto" or "(default:" not in text):
            text = f"{text.partition(' (default:')[0]} (default: {shown(own)})"
        name = field.name.replace("_", "-")
        names = about["names"] or (f"--{name}/--no-{name}" if hints[field.name] in (bool, bool | None) else f"--{name}",)
        default = field.default_factory() if field.default_factory is not dataclasses.MISSING else field.default
        found.append(Parameter(field.name, hints[field.name], text, names, default, about["panel"], about["limits"]))
    return found


def shown(value: Any) -> str:
    """A default as one would type it."""
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def filled(options: type[Kind], given: dict[str, Any]) -> Kind:
    """The dataclass, with what was given on the command line; values that are typed as text become what they stand for."""
    values = {}
    for field in dataclasses.fields(options):  # type: ignore[arg-type]
        if field.name in given:
            value, read = given[field.name], field.metadata.get("read")
            values[field.name] = read(value) if read is not None and value is not None else value
    return options(**values)


JOBS = Parameter("jobs", int, "Threads for passes over all data; -1: all cores. Never changes the result.", ("--jobs", "-j"), 1)
JSON = Parameter("as_json", bool, "Print one JSON object on stdout, and what is for people on stderr.", ("--json",), False)
CLUSTER = Parameter(
    "cluster",
    str | None,
    "Do it on a dask cluster, whose workers see the files: tcp://scheduler:8786, or local[4]: four processes here.",
    ("--cluster",),
    None,
)
QUIET = Parameter("quiet", bool, "Print nothing but errors and what was asked for.", ("--quiet", "-q"), False)
