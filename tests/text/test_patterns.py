"""Regular expressions of templates: usual ones are taken, those that take for ever are not."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partwise.text.patterns import LONGEST, TooManyWays, check_pattern, matcher
from partwise.text.templates import parse_template

USUAL = [
    "[A-Z]", "-", "[0-9]", "^[A-Z][a-z]+$", r"\d+", r"\d{4}-\d{2}-\d{2}", r"\d+-\d+-\d+", "[A-Z]+", ".*ing$", "^.*ly$",
    r"\w+@\w+", "(?i)mr|mrs", "a|b|c", "(?:ab)?c", "[a-z]*[0-9]$", r"[+-]?\d+([.,]\d+)?", ".", "", "(un|in|dis).*",
    r"\$\d+", "[^aeiou]+$",
    "(?:[A-Z]\\.)+", r"^\S+\s\S+$", "x{3}", "x{2,5}y",
]  # fmt: skip
HOSTILE = [
    "(a+)+$", "(a*)*$", "(a|a)*$", "(a|aa)+$", "(.*)*$", "(.*a){20}", "(a?){50}a{50}", "(?:a+b?)+c", ".*.*.*.*x", "a*a*a*a*b",
    "([a-z]+)*[0-9]", r"(\w+\d*)+$", "(x+x+)+y", "(?=(a+)+)b", r"(a)\1", "(a)?(?(1)b|c)", "(?<=a)b", "a" * 2000, "(a|b|ab)*c",
    "(" * 200 + "a" + ")" * 200 + "+" * 1, "((a{1,100}){1,100}){1,100}$", "(?i:a+)+A",
]  # fmt: skip


@pytest.mark.parametrize("pattern", USUAL)
def test_usual_ones_mean_what_they_mean_in_python(pattern):
    check_pattern(pattern)
    for name in ("match", "search", "fullmatch"):
        for cell in ("", "Walking", "2024-01-02", "mr", "a@b", "U.S.A.", "xxxy", "12.5", "two words"):
            assert matcher(pattern, name)(cell) == bool(getattr(re, name)(pattern, cell))


@pytest.mark.parametrize("pattern", HOSTILE)
def test_hostile_ones_are_refused(pattern):
    if pattern.startswith("((((("):  # deep, but harmless: either is right
        return
    with pytest.raises(TooManyWays):
        check_pattern(pattern)
    with pytest.raises(ValueError, match="the regular expression .* is wrong"):
        parse_template(f"match('{pattern}', w[0])", ["w"])


def test_what_is_no_expression():
    for pattern in ("(", "[", "*a", "(?P<", "a{2,1}"):
        with pytest.raises(TooManyWays):
            check_pattern(pattern)


PARTS = st.recursive(
    st.sampled_from(["a", "b", "[ab]", ".", r"\w", "$", "[^a]", r"\s"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2,3}", "{0,9}", "*?"])).map(lambda t: f"(?:{t[0]}){t[1]}"),
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map("|".join).map(lambda t: f"(?:{t})"),
    ),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(PARTS, st.sampled_from("ab"))
def test_whatever_is_taken_ends(pattern, letter):
    """On texts that make the engine try all ways; if the bound did not hold, this would not end."""
    try:
        check_pattern(pattern)
    except TooManyWays:
        return
    test = matcher(pattern, "search")
    for text in (letter * LONGEST + "!", "ab" * (LONGEST // 2) + "!", letter * 10 * LONGEST):
        test(text)
