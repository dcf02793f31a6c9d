"""Records spelled as text, for command lines and parameters: ``"family(beta=1, gamma=3)"``; and text made of records.

A record is a dataclass of a few parameters, known by a name. Its text is that name, with parameters in brackets where they differ
from their defaults: by name, or in the order of the record. A parameter is a number, a string, True, False, None, inf, or another
record, spelled in the same way::

    ramp_do    ramp(a=1, b=0)    ramp(1, 0)    nslack(variant='b')    cccp(sdm(cached_passes=3), epochs=5)

The text may come from anywhere, so nothing in it is ever evaluated. It is parsed into a syntax tree, and the tree is walked by
rules that know the forms above and refuse all others. Names are looked up in the tables of a `Spelling`, and values are checked
against the types of the record's fields before the record, which checks them itself, sees them.
"""

from __future__ import annotations

import ast
import dataclasses
import math
import re
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

LONGEST = 300  # characters, far more than any record needs: it keeps the parser's work, and the depth of the tree, small
WRITTEN = re.compile(r"[\w .,=()'\"+-]*", re.ASCII)  # all that the forms above are written with
LARGEST = 2**63 - 1  # int: compiled code has no larger ones
KINDS = {bool: "True or False", int: "an int", float: "a number", str: "a string", type(None): "None"}


@dataclass(frozen=True)
class Spelling:
    """The names of some records, and how to read and write them.

    Parameters
    ----------
    what : str
        What they are, in one word: that is also what the parameter is called that takes them.
    kinds : mapping
        Names of dataclasses, each of which makes a record of parameters.
    known : mapping
        Names of records without parameters of their own. They come before `kinds`, where a name is in both.
    example : str
        One with parameters, for messages.
    others : tuple of str
        Names that mean something to the reader's caller, for messages.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Square:
    ...     side: float
    ...     filled: bool = False
    >>> shapes = Spelling("shape", {"square": Square}, {"unit": Square(1.0)}, "square(2)")
    >>> shapes.read("square(2, filled=True)"), shapes.read("unit")
    (Square(side=2, filled=True), Square(side=1.0, filled=False))
    >>> shapes.spell(Square(2.0, True))
    'square(side=2, filled=True)'
    >>> shapes.read("squar(2)")
    Traceback (most recent call last):
    ValueError: The 'shape' parameter must be one of 'unit', 'square', with or without parameters, as in 'square(2)', or such an \
object. Got 'squar(2)' instead. Did you mean 'square'?
    """

    what: str
    kinds: Mapping[str, type]
    known: Mapping[str, Any] = field(default_factory=dict)
    example: str = ""
    others: tuple[str, ...] = ()

    # -- reading ------------------------------------------------------------------------------------------------------

    def read(self, text: Any) -> Any:
        """The record that `text` spells; raises a ValueError that says what is wrong with it."""
        if not isinstance(text, str):
            raise ValueError(self.no_such(text))
        if len(text) > LONGEST:
            raise ValueError(f"The {self.what!r} parameter must have at most {LONGEST} characters. Got {len(text)}.")
        if not WRITTEN.fullmatch(text):
            odd = next(c for c in text if not WRITTEN.fullmatch(c))
            raise ValueError(f"{self.no_such(text)} Nothing is spelled with {odd!r}.")
        source = text.strip(" ")
        try:
            tree = ast.parse(source, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise ValueError(f"{self.no_such(text)} It is not of the form name(parameter=value, ..).") from None
        return self._record(tree, source)

    def _record(self, tree: ast.expr, source: str) -> Any:
        """The record of a name, or of a name with parameters."""
        text = part_of(source, tree)
        call = tree if isinstance(tree, ast.Call) else None
        name = tree if call is None else call.func
        if not isinstance(name, ast.Name) or (name.id not in self.kinds and name.id not in self.known):
            raise ValueError(self.no_such(text, name.id if isinstance(name, ast.Name) else text))
        if name.id in self.known and call is None:
            return self.known[name.id]
        if name.id not in self.kinds:
            same = spell(self.known[name.id], self.kinds)
            raise self._wrong(text, f"{name.id!r} has no parameters of its own; it is {same}.")
        kind = self.kinds[name.id]
        given = {} if call is None else self._arguments(call, name.id, source)
        missing = [f.name for f in parameters(kind) if not has_default(f) and f.name not in given]
        if missing:
            raise self._wrong(text, f"it needs {' and '.join(missing)}: {signature(name.id, kind, self.kinds)}.")
        try:
            return kind(**given)
        except (TypeError, ValueError, OverflowError) as error:
            raise self._wrong(text, str(error)) from None

    def _wrong(self, text: str, why: str) -> ValueError:
        return ValueError(f"{self.what} {text!r}: {why}")

    def _arguments(self, call: ast.Call, name: str, source: str) -> dict[str, Any]:
        """The parameters that are given, by name, each of the type that its field has."""
        kind, text = self.kinds[name], part_of(source, call)
        names, hints = [f.name for f in parameters(kind)], typing.get_type_hints(kind)
        form = signature(name, kind, self.kinds)
        if len(call.args) > len(names):
            raise self._wrong(text, f"there are {len(call.args)} parameters, but {name} has {len(names)}: {form}.")
        given: dict[str, Any] = {}
        pairs = [*zip(names, call.args, strict=False), *((k.arg, k.value) for k in call.keywords)]
        for key, tree in pairs:
            if key not in names:  # None: of a dictionary
                raise self._wrong(text, f"{name} has no parameter {key!r}.{close(str(key), names)} It is {form}.")
            if key in given:
                raise self._wrong(text, f"the parameter {key!r} is given twice.")
            if records_in(hints[key]) and isinstance(tree, ast.Name | ast.Call):
                value = self._record(tree, source)
            else:
                value = self._value(tree, source)
            if records_in(hints[key]) and isinstance(value, str):
                value = self.read(value)
            if not fits(value, hints[key]):
                raise self._wrong(text, f"{key} must be {in_words(hints[key])}, got {value!r}: {form}.")
            given[key] = value
        return given

    def _value(self, tree: ast.expr, source: str) -> Any:
        """A number, a string, True, False, None or inf."""
        sign, inner = 1, tree
        if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub | ast.UAdd):
            sign, inner = -1 if isinstance(tree.op, ast.USub) else 1, tree.operand
        if isinstance(inner, ast.Name) and inner.id == "inf":
            return sign * math.inf
        if isinstance(inner, ast.Constant):
            if isinstance(inner.value, int | float) and not isinstance(inner.value, bool):
                if isinstance(inner.value, int) and inner.value > LARGEST:
                    raise self._wrong(source, f"{inner.value} is too large.")
                return sign * inner.value
            if inner is tree and (inner.value is None or isinstance(inner.value, bool | str)):
                return inner.value
        what = "a number, a string in quotes, True, False, None or inf"
        raise self._wrong(source, f"{part_of(source, tree)!r} is no value for a parameter, which is {what}.")

    def no_such(self, got: Any, name: str = "") -> str:
        """What there is, and what was meant, perhaps."""
        names = [*self.others, *self.known, *(name for name in self.kinds if name not in self.known)]
        return (
            f"The {self.what!r} parameter must be one of {', '.join(map(repr, names))}, with or without parameters, as in "
            f"{self.example!r}, or such an object. Got {got!r} instead.{close(name, names)}"
        )

    # -- writing ------------------------------------------------------------------------------------------------------

    def spell(self, record: Any) -> str:
        """The text that `read` makes `record` of."""
        return spell(record, self.kinds)


def spell(record: Any, kinds: Mapping[str, type]) -> str:
    """`record` as text: its name in `kinds`, and the parameters that do not have their defaults."""
    name = next((name for name, kind in kinds.items() if kind is type(record)), type(record).__name__.lower())
    values = ((f.name, getattr(record, f.name), default_of(f)) for f in parameters(type(record)))
    given = [f"{key}={written(v, kinds)}" for key, v, default in values if default is dataclasses.MISSING or v != default]
    return f"{name}({', '.join(given)})" if given else name


def written(value: Any, kinds: Mapping[str, type]) -> str:
    """A value of a parameter."""
    if dataclasses.is_dataclass(value):
        return spell(value, kinds)
    value = value.item() if hasattr(value, "item") else value  # a number of numpy's
    if isinstance(value, float):
        return short if float(short := f"{value:g}") == value else repr(value)
    return repr(value)


def signature(name: str, kind: type, kinds: Mapping[str, type]) -> str:
    """A record with all its parameters and their defaults."""
    form = (f"{f.name}={written(default_of(f), kinds)}" if has_default(f) else f.name for f in parameters(kind))
    return f"{name}({', '.join(form)})"


def part_of(source: str, tree: ast.expr) -> str:
    """The text that a part of the syntax tree was made of; trees may be too deep to be written anew."""
    return ast.get_source_segment(source, tree) or source


def parameters(kind: type) -> list[dataclasses.Field]:
    """The fields that make a record."""
    return [f for f in dataclasses.fields(kind) if f.init]


def default_of(f: dataclasses.Field) -> Any:
    """The value of a field that is not given, or MISSING."""
    return f.default if f.default_factory is dataclasses.MISSING else f.default_factory()


def has_default(f: dataclasses.Field) -> bool:
    """Whether a field need not be given."""
    return default_of(f) is not dataclasses.MISSING


def options_of(hint: Any) -> tuple[Any, ...]:
    """The types that a field may have."""
    return typing.get_args(hint) if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union else (hint,)


def records_in(hint: Any) -> bool:
    """Whether a field may hold a record."""
    return any(dataclasses.is_dataclass(option) for option in options_of(hint))


def fits(value: Any, hint: Any) -> bool:
    """Whether a field of that type can hold `value`. A number is one where True is none, and an int is a float, too."""
    for option in options_of(hint):
        if option is Any or (option is float and type(value) in (int, float)) or (option is int and type(value) is int):
            return True
        if option not in (int, float) and isinstance(value, option):
            return True
    return False


def in_words(hint: Any) -> str:
    """What a field can hold."""
    return " or ".join(KINDS.get(option, f"a {option.__name__.lower()}") for option in options_of(hint))


def close(name: str, names: list[str]) -> str:
    """The question whether a name like `name` was meant, if there is one."""
    import difflib

    found = difflib.get_close_matches(name.lower(), names, 1)
    return f" Did you mean {found[0]!r}?" if found else ""
