"""From verbs as they are declared (`partwise.cli.options`) to commands of typer."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer
import typer.main

from partwise.cli.options import REQUIRED, Parameter, Verb


def as_command(verb: Verb) -> Any:
    """The command that a verb declares."""

    def call(**given: Any) -> None:
        verb.run(**given)

    parameters = [for_typer(one) for one in verb.parameters]
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {one.name: one.annotation for one in parameters}
    call.__doc__ = text = flowing(verb.text)
    app = typer.Typer(add_completion=False)
    app.command(name=verb.name, help=text)(call)
    return typer.main.get_command(app)


def for_typer(one: Parameter) -> inspect.Parameter:
    """A parameter as typer wants to see it."""
    if one.names:
        about: Any = typer.Option(*one.names, help=one.text, rich_help_panel=one.panel, **one.limits)
    else:
        about = typer.Argument(help=one.text)
    default = inspect.Parameter.empty if one.default is REQUIRED else one.default
    return inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[one.kind, about])


def flowing(text: str) -> str:
    """Without line breaks in a paragraph, so that a terminal of any width breaks it; examples, which are indented, stay."""
    paragraphs = text.strip("\n").split("\n\n")
    return "\n\n".join(one if one.startswith(" ") else " ".join(one.split("\n")) for one in paragraphs)


def from_function(name: str, verb: Callable[..., Any]) -> Any:
    """A command whose options are those of a function, as typer reads them."""
    app = typer.Typer(add_completion=False)
    app.command(name=name)(verb)
    return typer.main.get_command(app)
