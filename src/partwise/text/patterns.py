r"""Regular expressions of templates: the part of Python's that ends in reasonable time, whatever the text is.

Python's engine tries one way after the other in which an expression could match. Most expressions have few ways; some, as
``(a+)+$``, have more of them than a text of forty letters allows anybody to wait for. A model file brings expressions along, and
so must not bring such ones. `check_pattern` bounds the ways before anything is matched, as a product over the expression:

========================================  ==========================================================
a character, a set, ``^``, ``$``, ``\b``   1
``xy``                                    ways of x times ways of y
``x|y``                                   ways of x plus ways of y
``c*`` of a character or set, followed    1: at one place only can what follows begin
by what no ``c`` can be, or by the end
``x{a,b}``, any other                     b - a + 1; times (ways of x)^b, where x has more than one
========================================  ==========================================================

with b no larger than the `LONGEST` characters that are looked at. Ways times places to begin at must not exceed `MOST_STEPS`.
Backreferences, conditions and looking ahead or behind are refused. This is stricter than it would have to be; `REFUSED` says what
can be written instead.
"""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Sequence
from typing import Any

try:
    from re import _constants as codes  # type: ignore[attr-defined]
    from re import _parser as parser  # type: ignore[attr-defined]
except ImportError:  # Python 3.10
    import sre_constants as codes  # type: ignore[no-redef]
    import sre_parse as parser  # type: ignore[no-redef]

LONGEST = 250  #: characters of a cell that tests look at
MOST_STEPS = 1_000_000  #: of one test of one cell
MOST_CHARACTERS = 1000  #: of an expression
MANY = 10**12  # ways; more are as many

SINGLE = (codes.LITERAL, codes.NOT_LITERAL, codes.IN, codes.ANY)
REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT)
END = (codes.AT, codes.AT_END)
CATEGORIES = {
    codes.CATEGORY_WORD: codes.CATEGORY_NOT_WORD,
    codes.CATEGORY_DIGIT: codes.CATEGORY_NOT_DIGIT,
    codes.CATEGORY_SPACE: codes.CATEGORY_NOT_SPACE,
}
APART = {frozenset(pair) for pair in CATEGORIES.items()}  #: kinds of characters that have none in common
APART |= {frozenset((codes.CATEGORY_SPACE, kind)) for kind in (codes.CATEGORY_WORD, codes.CATEGORY_DIGIT)}
REFUSED = "Repeat single characters or sets, not what repeats itself; or write several tests, as search('a', w)|search('b', w)."


class TooManyWays(ValueError):
    """An expression that may take too long, or that is no expression; the message says what can be done."""


@functools.lru_cache(maxsize=1024)
def check_pattern(pattern: str) -> None:
    """Raise `TooManyWays` unless the expression can be used."""
    if len(pattern) > MOST_CHARACTERS:
        raise TooManyWays(f"it has more than {MOST_CHARACTERS} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of sets that other versions of Python read otherwise
            tree = parser.parse(pattern)
            re.compile(pattern)
    except (re.error, OverflowError, RecursionError, MemoryError) as error:
        raise TooManyWays(str(error)) from None
    try:
        n_ways = ways(list(tree), [END], bool(tree.state.flags & re.IGNORECASE))
    except RecursionError:
        raise TooManyWays("it is nested too deeply") from None
    if n_ways * LONGEST > MOST_STEPS:
        raise TooManyWays(f"there are too many ways in which it could match. {REFUSED}")


def ways(items: Sequence[Any], following: list[Any], any_case: bool) -> int:
    """A bound on the ways to match a sequence, before what may follow it."""
    total = 1
    for k, (code, about) in enumerate(items):
        rest = [items[k + 1]] if k + 1 < len(items) else following
        if code in SINGLE or code is codes.AT:
            continue
        if code in REPEATS:
            found = of_repeat(about, rest, any_case)
        elif code is codes.SUBPATTERN:
            found = ways(list(about[3]), rest, any_case or bool(about[1] & re.IGNORECASE))
        elif code is codes.BRANCH:
            found = sum(ways(list(branch), rest, any_case) for branch in about[1])
        else:
            raise TooManyWays(f"{str(code).lower().replace('_', ' ')} is not supported. {REFUSED}")
        total = min(total * found, MANY)
    return total


def of_repeat(about: Any, following: list[Any], any_case: bool) -> int:
    """The same of a repetition."""
    least, most, body = int(about[0]), min(int(about[1]), LONGEST), list(about[2])
    counts = max(most - least + 1, 1)
    if len(body) == 1 and body[0][0] in SINGLE:
        return 1 if counts == 1 or all(is_apart(body[0], item, any_case) for item in following) else counts
    own = ways(body, [*body[:1], *following] if most > 1 else following, any_case)
    if own > 1 and most > 1:
        return MANY if most * (own - 1).bit_length() > 40 else min(own**most * counts, MANY)
    return min(own * counts, MANY)


def is_apart(one: Any, after: Any, any_case: bool) -> bool:
    """Whether what comes after a run of one kind of characters can begin nowhere within the run."""
    if after == END:
        return True
    code, about = after
    if code is codes.SUBPATTERN and about[3]:
        return is_apart(one, about[3][0], any_case or bool(about[1] & re.IGNORECASE))
    if code in REPEATS and about[0] > 0 and len(about[2]):
        return is_apart(one, about[2][0], any_case)
    if code is codes.LITERAL:
        return not has_character(one, about, any_case)
    if code is codes.IN:
        kinds = kind_of(one), kind_of(after)
        if None not in kinds:
            return frozenset(kinds) in APART
        literals = [value for kind, value in about if kind is codes.LITERAL]
        return len(literals) == len(about) and not any(has_character(one, value, any_case) for value in literals)
    return False


def kind_of(item: Any) -> Any:
    r"""The category that a set is, such as ``\d``; None if it is another set."""
    code, about = item
    return about[0][1] if code is codes.IN and len(about) == 1 and about[0][0] is codes.CATEGORY else None


def has_character(item: Any, number: int, any_case: bool) -> bool:
    """Whether a character, as it is or in another case, is one of those that an item stands for."""
    c = chr(number)
    cases = {c, c.lower(), c.upper(), c.swapcase()} if any_case else {c}
    code, about = item
    if code is codes.ANY:
        return True
    if code is codes.LITERAL:
        return any(other.lower() == chr(about).lower() if any_case else other == chr(about) for other in cases)
    if code is codes.NOT_LITERAL:
        return number != about or any_case
    return any_case or in_set(about, c)


def in_set(about: Any, c: str) -> bool:
    """Whether a set has a character."""
    tests = {
        codes.CATEGORY_DIGIT: str.isdecimal,
        codes.CATEGORY_SPACE: str.isspace,
        codes.CATEGORY_WORD: lambda c: c.isalnum() or c == "_",
    }
    negated, found = False, False
    for kind, value in about:
        if kind is codes.NEGATE:
            negated = True
        elif kind is codes.LITERAL:
            found |= ord(c) == value
        elif kind is codes.RANGE:
            found |= value[0] <= ord(c) <= value[1]
        elif kind is codes.CATEGORY and value in tests:
            found |= tests[value](c)
        elif kind is codes.CATEGORY:
            found |= not tests[next(of for of, other in CATEGORIES.items() if other is value)](c)
        else:
            return True
    return found != negated


def matcher(pattern: str, name: str) -> Any:
    """The test ``match``, ``search`` or ``fullmatch`` of an expression that was checked, on the first `LONGEST` characters."""
    check_pattern(pattern)
    test = getattr(re.compile(pattern), name)
    return lambda cell: test(cell[:LONGEST]) is not None
