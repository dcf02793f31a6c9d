"""The table of every option, from the options themselves: ``python -m partwise.cli.reference > docs/command-line.md``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

HEAD = """# The command line: every verb and option

Made by `python -m partwise.cli.reference` from the options themselves; a test compares them. `partwise VERB --help` shows the
same. Files may be gzipped; `-` is standard input.

Every verb ends with status 0, or prints one line that begins with `partwise: error:` and ends with status 1 (2 for options that
do not exist, 130 after Ctrl-C); then nothing was written. `PARTWISE_DEBUG=1` shows where an error came from.
"""


def commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """All verbs below a command, with their full names."""
    if hasattr(command, "loaded"):
        for sub_name, sub in command.loaded().items():
            yield from commands(sub, f"{name} {sub_name}")
    else:
        yield name, command


def table(command: Any) -> Iterator[str]:
    """Rows of Markdown, one per parameter."""
    yield "| option | default | meaning |"
    yield "|---|---|---|"
    for parameter in command.params:
        if parameter.name == "help":
            continue
        is_option = parameter.param_type_name == "option"
        names = [*parameter.opts, *parameter.secondary_opts] if is_option else [parameter.name.upper()]
        silent = parameter.default is None or parameter.default is False or not is_option
        default = "" if silent else f"`{_plain(parameter.default)}`"
        required = "required" if parameter.required else default
        text = (parameter.help or "").replace("|", "\\|")
        yield f"| {' '.join(f'`{name}`' for name in names)} | {required} | {text} |"


def _plain(value: Any) -> Any:
    return getattr(value, "value", value)


def page() -> str:
    """The whole page."""
    import typer.main

    from partwise.cli.app import app

    lines = [HEAD]
    for name, command in commands(typer.main.get_command(app), "partwise"):
        first = (command.help or "").strip().splitlines()[0]
        lines += [f"## `{name}`", "", first, "", *table(command), ""]
    return "\n".join(lines)


if __name__ == "__main__":
    print(page(), end="")
