"""What all verbs share: errors in words, reading column files, writing results, one JSON object for machines.

Modules of the command line import numba, rich and matplotlib only where they need them: ``partwise --help`` is quick.
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
from typing import Any

import typer


def separator_of(text: str | None) -> str | None:
    """What a user means by a separator; shells make it hard to type a tab."""
    return {"tab": "\t", "\\t": "\t", "space": " ", "blank": None}.get(text, text) if text else None


def read_file(path: str, separator: str | None, encoding: str, comment: str | None) -> Any:
    """A column file as `Columns`."""
    from partwise.text.columns import read_columns

    return read_columns(path, separator_of(separator), encoding=encoding, comment=comment)


# ---------------------------------------------------------------------------------------------------------------------
# Errors
# ---------------------------------------------------------------------------------------------------------------------


class Refusal(Exception):
    """Something the user can put right; its text is the whole message."""


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
            raise typer.Exit(1) from None
        except KeyboardInterrupt:
            print("partwise: interrupted", file=sys.stderr)
            raise typer.Exit(130) from None
        except MemoryError as error:
            if type(error) is MemoryError and error.args:  # ours, with what to do; others are of numpy, or say nothing
                fail(str(error))
            fail("there is not enough memory. Try --dtype float32, a larger --min-count, or --stream with --hash-bits.")
        except OSError as error:
            fail(f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error))
        except (Refusal, ValueError, TypeError, FloatingPointError) as error:
            fail(str(error))

    return wrapped


def fail(message: str) -> None:
    """End with a message and status 1."""
    print(f"partwise: error: {message}", file=sys.stderr)
    raise typer.Exit(1)


# ---------------------------------------------------------------------------------------------------------------------
# Output
# ---------------------------------------------------------------------------------------------------------------------


def print_json(value: dict[str, Any]) -> None:
    """One object on stdout; what is not a number is null."""
    print(json.dumps(finite(value), ensure_ascii=False))


def finite(value: Any) -> Any:
    """The same value with None for infinities and NaN, which JSON does not have."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def check_writable(path: Path | None) -> None:
    """Refuse a place that cannot be written to before hours of work, not after."""
    if path is None or str(path) == "-":
        return
    folder = path.resolve().parent
    if path.is_dir():
        raise Refusal(f"{path} is a folder; give the name of a file.")
    if not folder.is_dir():
        raise Refusal(f"{path}: there is no folder {folder}.")
    if not os.access(folder, os.W_OK):
        raise Refusal(f"{path}: the folder {folder} cannot be written to.")


def write(path: Path | str | None, content: bytes) -> None:
    """To a file, as a whole or not at all; to stdout if there is no path."""
    if path is None or str(path) == "-":
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    else:
        from partwise.files.whole_file import whole_file

        with whole_file(path) as file:
            file.write(content)


def kind_of(path: Path | str) -> str:
    """What a model file holds, without reading its weights; empty if it cannot be said."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(os.fspath(path), framework="numpy") as file:
            return str(json.loads((file.metadata() or {}).get("partwise", "{}")).get("estimator", ""))
    except (SafetensorError, OSError, ValueError, AttributeError, RecursionError):
        return ""  # whoever loads it says what is wrong


def load_tagger(path: Path, any_tokens: bool = False) -> Any:
    """A model made by ``partwise train tag`` or `SequenceLabeler.save`, without importing scikit-learn.

    `any_tokens`: also one whose tokens are not lines of column files; it can be looked at.
    """
    from partwise.tasks.common import model_file
    from partwise.tasks.tagging.estimator import Tagger

    model = model_file.load(path, plain=True)
    if not isinstance(model, Tagger):
        raise Refusal(f"{path} holds a {type(model).__name__}, which does not label sequences.")
    if not any_tokens and model.encoder_.kind != "columns":
        raise Refusal(
            f"{path} was trained on {model.encoder_.kind}, not on column files. Use it from Python: partwise.load({str(path)!r})."
        )
    return model
