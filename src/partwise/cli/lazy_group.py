"""Groups of commands that are made when they are asked for: a list of them needs a line about each, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import typer
import typer.core
import typer.main


def lazy_group(lines: Mapping[str, str], load: Callable[[str], Any]) -> type[typer.core.TyperGroup]:
    """A group of the commands named in `lines`, which says something about each; `load` makes one."""

    class Lazy(typer.core.TyperGroup):
        wanted: str | None = None  #: the command that is to run

        def list_commands(self, ctx: Any) -> list[str]:
            return list(lines)

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            if cmd_name not in lines:
                return None
            return load(cmd_name) if cmd_name == self.wanted else stand_in(cmd_name, lines[cmd_name])

        def resolve_command(self, ctx: Any, args: list[str]) -> Any:
            self.wanted = args[0]
            return super().resolve_command(ctx, args)

        def loaded(self) -> dict[str, Any]:
            """All of them, as they are."""
            return {name: load(name) for name in lines}

    return Lazy


def stand_in(name: str, line: str) -> Any:
    """What a list shows of a command."""
    app = typer.Typer(add_completion=False)
    app.command(name=name, help=line)(lambda: None)
    return typer.main.get_command(app)
