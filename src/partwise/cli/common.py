"""What all verbs share: errors in words, writing results, one JSON object for machines.

Modules of the command line import numba, typer, rich and matplotlib only where they need them: ``partwise --help`` is quick.
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from partwise.cli.process import end_interrupted
from partwise.tasks.common.command_options import Refusal

ROOM = 10_000  # characters in a line of a file
JSON_CONTROLS = {code: f"\\u{code:04x}" for code in range(127, 160)}  # those that JSON leaves as they are
#: control characters, by which a text could tell a terminal what to do, and what is written for them
SHOWN_AS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}

# ---------------------------------------------------------------------------------------------------------------------
# Errors
# ---------------------------------------------------------------------------------------------------------------------


def in_words(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Make a verb end with a message and status 1 where it would end with a traceback (``PARTWISE_DEBUG=1`` shows it all)."""

    @functools.wraps(verb)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if os.environ.get("PARTWISE_DEBUG"):
            return verb(*args, **kwargs)
        try:
            return verb(*args, **kwargs)
        except BrokenPipeError:  # the reader of our output has seen enough
            with contextlib.suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise SystemExit(1) from None
        except KeyboardInterrupt:
            end_interrupted()
        except MemoryError as error:
            if type(error) is MemoryError and error.args:  # ours, with what to do; others are of numpy, or say nothing
                fail(str(error))
            fail("there is not enough memory. Try --dtype float32, a larger --min-count, or --stream with --hash-bits.")
        except OSError as error:
            fail(f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error))
        except (Refusal, ValueError, TypeError, FloatingPointError, OverflowError, ImportError) as error:
            fail(str(error))

    return wrapped


def fail(message: str) -> NoReturn:
    """End with a message and status 1."""
    with contextlib.suppress(OSError):  # nobody hears us
        print(f"partwise: error: {visible(message)}", file=sys.stderr)
    with contextlib.suppress(OSError, AttributeError, ValueError):  # what could not be written is not tried again at the end
        sys.stdout.flush()
    raise SystemExit(1)


# ---------------------------------------------------------------------------------------------------------------------
# Output
# ---------------------------------------------------------------------------------------------------------------------


def print_json(value: dict[str, Any]) -> None:
    """One object on stdout; what is not a number is null."""
    print(json.dumps(finite(value), ensure_ascii=False).translate(JSON_CONTROLS), flush=True)


def finite(value: Any) -> Any:
    """The same value with None for infinities and NaN, which JSON does not have."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write(path: Path | str | None, content: bytes) -> None:
    """To a file, as a whole or not at all; to stdout if there is no path."""
    if path is None or str(path) == "-":
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    else:
        from partwise.files.whole_file import whole_file

        with whole_file(path) as file:
            file.write(content)


def visible(text: str) -> str:
    r"""The same with control characters written out, but for line ends and tabs: words and labels may be a stranger's.

    >>> visible("B-X\x1b[2J")
    'B-X\\x1b[2J'
    """
    return text if text.isprintable() else text.translate(SHOWN_AS)


def show(text: Any, where: Any) -> None:
    """For people: a string, something that rich can print, or a list of these and of functions.

    A function is given the number of characters in a line, and what it returns may use all of them: a terminal has some, a file
    has room.
    """
    console: Any = None
    for one in text if isinstance(text, list) else [text]:
        if isinstance(one, str):
            print(visible(one), file=where)
            continue
        if console is None:
            from rich.console import Console

            console = Console(file=where, highlight=False)
            room = console if console.is_terminal else Console(file=where, highlight=False, width=ROOM)
        if callable(one):
            print_visible(room, one(room.width))
        else:
            print_visible(console, one)


def print_visible(console: Any, one: Any) -> None:
    """Print something that rich can, control characters in its texts written out: those that are left are rich's own."""
    from rich.segment import Segment, Segments

    found = console.render(console.render_str(one) if isinstance(one, str) else one)
    parts = (part if part.control else Segment(visible(part.text), part.style) for part in found)
    console.print(Segments(parts), end="")
