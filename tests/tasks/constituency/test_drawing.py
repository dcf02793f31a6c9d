"""Constituency trees as text and as SVG."""

from __future__ import annotations

from partwise.datasets import Constituent
from partwise.tasks.constituency.drawing import as_svg, as_text

DOG = Constituent.read("(S (NP (D the) (N dog)) (VP (V barks)) (. .))")


def test_pictures():
    assert as_text(DOG).splitlines() == [
        "S", "├─ NP", "│  ├─ D the", "│  └─ N dog", "├─ VP", "│  └─ V barks", "└─ . .",
    ]  # fmt: skip
    picture = as_svg(Constituent.read("(S (NP <a>) b)"))
    assert picture.startswith("<svg") and "&lt;a&gt;" in picture and picture.count("<line") == 2
    assert as_text(Constituent.read("(E (E 1) + (E 2))")).splitlines()[2] == "├─ +"
    assert as_svg(Constituent("S", ())).startswith("<svg") and as_svg(Constituent("S", ("a",))).count("<text") == 2
