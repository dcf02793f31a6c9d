"""Command lines read without typer, which takes longer to load than a model takes to label some thousand words.

Only what is plainly right is read here, for the verbs that are called again and again: all else (``--help``, a mistake, a way to
write options that is seldom used) is left to typer, which reads the same declarations and finds the words for it. So nothing that
is read here is read differently there, and nobody but the clock can tell which of them it was.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, get_args, get_origin

from partwise.cli.options import REQUIRED, Parameter, Verb

NUMBERS: dict[Any, Callable[[str], bool]] = {
    int: lambda text: re.fullmatch(r"-?[0-9]{1,15}", text) is not None,
    float: lambda text: re.fullmatch(r"-?[0-9]{1,15}(\.[0-9]{1,15})?([eE][+-]?[0-9]{1,2})?", text) is not None,
}


def run(argv: Sequence[str]) -> bool:
    """Run the command, if it can be read; False: somebody else must read it."""
    if os.name == "nt" or any(name.endswith("_COMPLETE") for name in os.environ):  # patterns to expand; a shell that asks
        return False
    for verb, words in readings(argv):
        given = read(verb.parameters, words)
        if given is not None:
            verb.run(**given)
            return True
    return False


def readings(argv: Sequence[str]) -> Iterator[tuple[Verb, Sequence[str]]]:
    """The verb that is meant and what follows it; first without the options that only one task has, which it takes to import."""
    if not argv:
        return
    name, *words = argv
    if name == "predict":
        from partwise.cli.predict import verb as predict

        yield predict(tasks=()), words
        yield predict(), words
    elif name == "evaluate":
        from partwise.cli.evaluate import verb as evaluate

        yield evaluate(tasks=()), words
        yield evaluate(), words
    elif name == "train" and words:
        from partwise.cli.train import verb as train
        from partwise.tasks.common.registry import BY_VERB

        if words[0] in BY_VERB and "--help" not in words:
            yield train(BY_VERB[words[0]]), words[1:]


def read(parameters: Sequence[Parameter], words: Sequence[str]) -> dict[str, Any] | None:
    """Values of all parameters; None for what is not plainly right."""
    options = {spelling: one for one in parameters for spelling in one.spellings()}
    places = [one for one in parameters if not one.names]
    found: dict[str, Any] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        spelling, equals, attached = word.partition("=") if word.startswith("--") else (word, "", "")
        if word.startswith("-") and word != "-":
            if spelling not in options:
                return None
            one = options[spelling]
            if is_switch(one):
                value: Any = None if equals else not any(names.endswith(f"/{spelling}") for names in one.names)
            else:
                value = value_of(one, attached if equals else rest.pop(0) if rest else "")
            if is_list(one) and value is not None:
                found.setdefault(one.name, []).append(value)
                continue
        elif places:
            one = places[0] if is_list(places[0]) else places.pop(0)  # a list takes all words that are left
            value = value_of(one, word)
            if is_list(one) and value is not None:
                found.setdefault(one.name, []).append(value)
                continue
        else:
            return None
        if value is None or one.name in found:
            return None
        found[one.name] = value
    if any(one.default is REQUIRED and one.name not in found for one in parameters):
        return None
    return {one.name: found[one.name] if one.name in found else fresh(one.default) for one in parameters}


def value_of(one: Parameter, text: str) -> Any:
    """What a word stands for; None if that is not plain."""
    kind = plain_kind(one)
    if not text or (text.startswith("-") and text != "-" and kind not in NUMBERS):
        return None
    if kind in (str, Path):
        return kind(text)
    if kind not in NUMBERS or not NUMBERS[kind](text):
        return None
    value = kind(text)
    return value if one.limits.get("min", value) <= value <= one.limits.get("max", value) else None


def plain_kind(one: Parameter) -> Any:
    """The type of a value, without "or None" and "list of"."""
    kinds = [kind for kind in get_args(one.kind) or (one.kind,) if kind is not type(None)]
    return kinds[0] if len(kinds) == 1 else None


def is_switch(one: Parameter) -> bool:
    """Whether it takes no value."""
    return plain_kind(one) is bool


def is_list(one: Parameter) -> bool:
    """Whether it may be given more than once."""
    return get_origin(one.kind) is list


def fresh(default: Any) -> Any:
    """A default that may be changed."""
    return list(default) if isinstance(default, list) else default
