"""Features of spans."""

from __future__ import annotations

from partwise.features.arc_rows import hash_text
from partwise.features.span_rows import span_rows
from partwise.tasks.constituency.data import read_constituents


def test_features_are_those_of_first_and_last_words():
    given = read_constituents([[(word, "T") for word in words] for words in ("abc", "", "d", "ef")])
    columns, names = given.columns(True)
    rows = span_rows(columns, names, ["f.form", "l.form[1]"], 10)
    word = {int(hash_text(f"={letter}")): letter for letter in "abcdef"}
    form = [word.get(int(cell), "-") for cell in rows.cells[0]]
    spans = [form[a] + form[b] + form[b + 1] for a, b in zip(rows.head, rows.word, strict=True)]
    assert spans == ["aab", "abc", "ac-", "bbc", "bc-", "cc-", "dd-", "eef", "ef-", "ff-"]
