"""Tables of aligned rows, and FASTA."""

from __future__ import annotations

import gzip

import pytest

from partwise.datasets import read_alignments


def test_readers():
    plain = read_alignments(b"AC-G\tA.TG\n\nA\tA\r\n")
    assert (
        plain.first == ["ACG", "A"] and plain.second == ["ATG", "A"] and [p.tolist() for p in plain.partners] == [[0, -1, 2], [0]]
    )
    assert plain.names(1) == ("1.1", "1.2") and plain.place(1) == "<bytes>, line 3" and "2 pairs, aligned" in repr(plain)
    assert plain.identity().tolist() == [1.0, 1.0]
    fasta = b">a one\nAC\n-G\n>b\nA-TG\n>c\nA\n\n>d\nT\n"
    both = read_alignments(gzip.compress(fasta))
    assert both.first == ["ACG", "A"] and both.fields == {"id1": ["a", "c"], "id2": ["b", "d"]} and both.lines == [1, 6]
    assert len(read_alignments(fasta, all_pairs=True)) == 6 and read_alignments(fasta, all_pairs=True).partners is None
    assert len(read_alignments(fasta, first=1)) == 1 and both.take([1]).second == ["T"]
    table = read_alignments(b"family\trow1\trow2\tcore\nf\tA-C\tAGC\t101\n", aligned=True)
    assert table.core[0].tolist() == [True, True] and table.fields == {"family": ["f"]}
    assert read_alignments(b"AC\tA\n").partners is None and read_alignments(b"AC\tA-\n", aligned=False).partners is None


@pytest.mark.data
def test_real_tables(corpora):
    core = read_alignments(corpora / "protein_balibase3/pairs.tsv.gz", aligned=True, first=300)
    assert len(core) == 300 and core.fields["family"][0] == "BB11001" and all(c.any() for c in core.core)
    assert all(len(p) == len(a) == len(c) for p, a, c in zip(core.partners, core.first, core.core, strict=True))
    for name in ("protein_homstrad/pairs.tsv.gz", "protein_tmalign/pairs_valid.tsv.gz"):
        found = read_alignments(corpora / name, aligned=True, first=50)
        assert len(found) == 50 and found.core is None and (found.lengths > 0).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "there are no pairs in it"),
        (b"AC\n", "line 1: expected two rows with a tab between. Got 1: 'AC'"),
        (b"AC\tAC\nACG\tAC\n", "line 2: aligned rows must be as long as each other. Got 3 and 2 columns"),
        (b"row1\trow2\tcore\nAC\tAC\t1\n", "line 2: core must have 0 or 1 for each of 2 columns. Got '1'"),
        (b"row1\trow2\tid1\nAC\tAC\n", "line 2: expected 3 cells with tabs between, as in the first line. Got 2"),
        (b">a\nAC\n>b\nAC\n>c\nA\n", "line 5: the sequence 'c' has no partner"),
        (b"A\xff\tA\n", "line 1: not valid utf-8"),
    ],
)
def test_files_that_cannot_be_read(text, message):
    with pytest.raises(ValueError, match=message):
        read_alignments(text, aligned=True)
