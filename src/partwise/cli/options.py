"""From options as dataclasses declare them (`partwise.tasks.common.command_options`) to what typer understands, and back."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeVar, get_type_hints

import typer
import typer.main

Kind = TypeVar("Kind")


def parameter(name: str, kind: Any, about: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    """One parameter of a verb."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, about])


def as_parameters(options: type, estimator: Any = None) -> list[inspect.Parameter]:
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
        made = typer.Option(*names, help=text, rich_help_panel=about["panel"], **about["limits"])
        default = field.default_factory() if field.default_factory is not dataclasses.MISSING else field.default
        found.append(parameter(field.name, hints[field.name], made, default))
    return found


def shown(value: Any) -> str:
    """A default as one would type it."""
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def filled(options: type[Kind], given: dict[str, Any]) -> Kind:
    """The dataclass, with what was given on the command line; values that are typed as text become what they stand for."""
    values = {}
    for field in dataclasses.fields(options):  # type: ignore[arg-type]
        value, read = given[field.name], field.metadata.get("read")
        values[field.name] = read(value) if read is not None and value is not None else value
    return options(**values)


def flowing(text: str) -> str:
    """Without line breaks in a paragraph, so that a terminal of any width breaks it; examples, which are indented, stay."""
    paragraphs = text.strip("\n").split("\n\n")
    return "\n\n".join(one if one.startswith(" ") else " ".join(one.split("\n")) for one in paragraphs)


def as_command(name: str, text: str, parameters: Sequence[inspect.Parameter], run: Callable[..., None]) -> Any:
    """A command with these parameters."""

    def verb(**given: Any) -> None:
        run(**given)

    verb.__signature__ = inspect.Signature(list(parameters))  # type: ignore[attr-defined]
    verb.__annotations__ = {one.name: one.annotation for one in parameters}
    verb.__doc__ = text = flowing(text)
    app = typer.Typer(add_completion=False)
    app.command(name=name, help=text)(verb)
    return typer.main.get_command(app)


def from_function(name: str, verb: Callable[..., Any]) -> Any:
    """A command whose options are those of a function, as typer reads them."""
    app = typer.Typer(add_completion=False)
    app.command(name=name)(verb)
    return typer.main.get_command(app)


JOBS = parameter(
    "jobs",
    int,
    typer.Option("--jobs", "-j", help="Threads for passes over all data; -1: all cores. Never changes the result."),
    1,
)
JSON = parameter(
    "as_json", bool, typer.Option("--json", help="Print one JSON object on stdout, and what is for people on stderr."), False
)
QUIET = parameter("quiet", bool, typer.Option("--quiet", "-q", help="Print nothing but errors and what was asked for."), False)
