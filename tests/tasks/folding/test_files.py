"""RNA in FASTA and in tables, and what dot-brackets mean."""

from __future__ import annotations

import pytest

from partwise import RnaFolder
from partwise.experiments.do_table_3 import Cell, split
from partwise.tasks.folding.data import read_sequences
from partwise.tasks.folding.files import read_dot_bracket, read_rna, write_dot_bracket

FASTA = b">one\nGGGAAAACCC\n(((....))) (-3.40)\n>two\nGGG\nAAACCC\n(((.\n..)))\n>three\nACGU\n"


def test_reading_fasta():
    data = read_rna(FASTA)
    assert data.names == ["one", "two", "three"] and data.sequences[1] == "GGGAAACCC" and data.lines == [2, 5, 10]
    assert data.partners[1].tolist() == [8, 7, 6, -1, -1, -1, 2, 1, 0] and data.partners[2] is None
    assert not data.has_structures and "3 sequences, 2 structures" in repr(data) and data.lengths.tolist() == [10, 9, 4]
    plain = read_rna(b"GGGAAACCC\n(((...)))\nGGGAAACC\n")
    assert plain.names == ["sequence-1", "sequence-2"] and plain.partners[0] is not None
    short = read_rna(b">none\n\n>one\nA\n.\n>two\nGC\n..\n")
    assert short.has_structures and short.lengths.tolist() == [0, 1, 2] and short.names == ["none", "one", "two"]
    wrapped = read_rna(b">a\nGGAACCAAA\n<<..>\n>...\n>b\nACGU\n")  # a structure goes on with a bracket that looks like a title
    assert wrapped.names == ["a", "b"] and wrapped.partners[0][:6].tolist() == [5, 4, -1, -1, 1, 0]
    again = read_rna(data.take([0, 1]).with_structures(["(((....)))", "(((...)))"]).encode())
    assert again.sequences == data.sequences[:2] and again.partners[1].tolist() == data.partners[1].tolist()


def test_reading_a_table():
    text = (
        b"id\tfamily\tfold\tsequence\tstructure\na\t5s\t2\tGGAAACC\t((...))\nb\t5s\t0\tGGAAACC\t(<...)>\nc\ttRNA\t1\tACGT\t....\n"
    )
    data = read_rna(text)
    assert data.families == ["5s", "5s", "tRNA"] and data.folds == ["2", "0", "1"] and data.pseudoknots.tolist() == [0, 1, 0]
    assert read_rna(b">a\nACGU\n>b\nacgt\n>c\nACG\n").distinct().names == ["a", "c"]
    assert data.take([1, 2]).pseudoknots.tolist() == [1, 0]
    assert data.distinct().names == ["a", "c"] and len(read_rna(text, first=1)) == 1
    with pytest.raises(ValueError, match="line 3: 1 pairs cross others"):
        read_rna(text, pseudoknots="refuse")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "there are no sequences"),
        (b">a\nACGU\n(..\n", "line 3: the structure has 3 characters, but its sequence has 4"),
        (b">a\nGGGAAAACCC\n(((....))\n>c\nACGU\n", "line 3: the structure has 9 characters, but its sequence has 10"),
        (b">a\nGGGAAACCC\n(((\n...)).\n", r"line 3: the bracket '\(' at 1 is never closed"),
        (b"sequence\tstructure\nACGUA\t.....\nACGUA\t(...(\n", r"line 3: the bracket '\(' at 5 is never closed"),
        (b">a\nACGU\n)...\n", r"line 3: the bracket '\)' at 1 closes none"),
        (b">a\nACGU\n(...\n", r"line 3: the bracket '\(' at 1 is never closed"),
        (b">a\nAC?U\n", "line 2, base 3: '\\?' is no base"),
        (b"sequence\tstructure\nACGU\n", "line 2: expected 2 cells"),
        (b"\xff\xff", "not valid utf-8"),
    ],
)
def test_files_with_errors(text, message):
    with pytest.raises(ValueError, match=message):
        read_rna(text)


def test_dot_brackets():
    partners, crossing = read_dot_bracket("((..[[))..]]{..}")
    assert crossing == 2 and partners[12] == 15 and write_dot_bracket(partners) == "((....))....(..)"
    assert read_dot_bracket("<<...>>")[0].tolist() == [6, 5, -1, -1, -1, 1, 0]  # other brackets that cross none are pairs too


@pytest.mark.data
def test_archive(corpora):
    data = read_rna(corpora / "rna_archiveii" / "archiveii.tsv.gz")
    assert len(data) == 3864 and len(data.distinct()) == 3353 and (data.pseudoknots > 0).sum() == 1007
    for cell in (("sequence", "0"), ("sequence", "1"), ("family", "tRNA")):
        train, test = split(corpora, Cell(*cell, "crf", 10**6, 10**6, 1, False))
        assert len(train) + len(test) == 3353 and not set(train.sequences) & set(test.sequences)
        assert cell[0] == "sequence" or not set(train.families) & set(test.families)
    given = read_sequences(data.take(range(50)))
    assert RnaFolder()._problem(given, labelled=True)[1] < 10
