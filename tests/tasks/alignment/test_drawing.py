"""Alignments as text."""

from __future__ import annotations

from partwise.tasks.alignment.drawing import as_text


def test_pictures():
    text = as_text("HEAGAWGHEE", "PAWHEAE", [-1, -1, 0, -1, 1, 2, -1, 3, 4, 6], ("first", "b"), width=8)
    assert text.splitlines() == [
        "first  1 HEAGAWGH 8",
        "           . || |",
        "b      1 --P-AW-H 4",
        "",
        "first  9 E-E 10",
        "         | |",
        "b      5 EAE 7",
    ]
    assert as_text("", "", []).splitlines() == ["0  0", "", "0  0"]
