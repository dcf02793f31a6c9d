"""Dependency trees as text and as SVG."""

from __future__ import annotations

import pytest

from partwise.tasks.dependency.data import Tree
from partwise.tasks.dependency.drawing import MARKED, as_svg, as_text


def test_pictures():
    words, heads, relations = ["They", "buy", "<books>"], [2, 0, 2], ["nsubj", "root", "obj"]
    text = as_text(words, heads, relations)
    assert text.splitlines() == ["┌─> They     nsubj", "├── buy      root", "└─> <books>  obj"]
    assert Tree(heads, relations).draw(words) == text
    picture = as_svg(words, heads, relations)
    assert picture.startswith("<svg") and "&lt;books&gt;" in picture and picture.count("<path") == 6
    assert as_text([], []) == "" and as_text(["Yes"], [0]).strip() == "Yes"
    with pytest.raises(ValueError, match="from 0 to 3"):
        as_text(words, [2, 0, 9])
    with pytest.raises(ValueError, match="for each of 3 words"):
        as_svg(words, [0])


def test_marked_arcs_are_red():
    plain, marked = (as_svg(["a", "b", "c"], [2, 0, 2], None, words) for words in ((), [1, 2]))
    assert plain.count(MARKED) == 0 and marked.count(MARKED) == 4  # an arc and an arrowhead each
