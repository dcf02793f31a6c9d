"""Pairs of sequences, and all ways to say an alignment."""

from __future__ import annotations

from partwise.datasets import read_alignments
from partwise.tasks.alignment.data import Alignment, read_pairs
from partwise.tasks.alignment.files import partner_of
from small_alignments import as_table, pairs


def test_all_ways_to_say_an_alignment():
    X, y = pairs(6)
    partners = [partner_of(rows).tolist() for rows in y]
    places = [[(i, j) for i, j in enumerate(p) if j >= 0] or p for p in partners]
    objects = [Alignment(*x, p) for x, p in zip(X, partners, strict=True)]
    table = read_alignments(as_table(y).encode())
    want = [p.tolist() for p in read_pairs(X, y).partners]
    for some in (read_pairs(X, partners), read_pairs(X, places), read_pairs(X, objects), read_pairs(table)):
        assert [p.tolist() for p in some.partners] == want
    assert table.first == [a for a, _ in X] and table.second == [b for _, b in X]
