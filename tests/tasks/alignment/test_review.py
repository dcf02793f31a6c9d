"""Suspects of alignments in a file: listed, shown, corrected."""

from __future__ import annotations

import numpy as np
import pytest

from judged_cases import Asked, accepted, made_up
from partwise import Aligner
from partwise.files.text_edits import EditableText
from partwise.tasks.alignment.command import COMMAND
from partwise.tasks.alignment.files import read_alignments
from partwise.tasks.alignment.review import JudgedPairs, marks_of
from partwise.tasks.common.command_options import Refusal
from partwise.tasks.common.suspects import Judged

TABLE = "id1\trow2\trow1\tcore\tnote\r\na\tGA-TTA\tGACTTA\t110111\té\r\nb\tAC\tAC\t11\t-\r\n"
FASTA = ">a one\nGAC\nTTA\n>b two\n\nGA.TTA\n>c\nAC\n>d\nAC\n"


def judged(path, believed):
    """The file and a judgement of its alignments: other partners are believed."""
    data = read_alignments(path)
    found = made_up(data.partners, believed)

    def part(t):
        return tuple(None if j < 0 else int(j) for j in (np.concatenate(data.partners)[t], found.evidence.believed[t]))

    return JudgedPairs(Aligner(), data, Judged(found, lambda i: (None, None), part))


@pytest.mark.parametrize(
    ("text", "line", "after"),
    [
        (TABLE, 2, TABLE.replace("GA-TTA\tGACTTA\t110111", "G-ATTA\tGACTTA\t110111")),
        (FASTA, 1, FASTA.replace("GAC\nTTA\n", "GACTTA\n").replace("GA.TTA", "G-ATTA")),
    ],
)
def test_tables_and_fasta_are_corrected(text, line, after, tmp_path):
    path = tmp_path / "pairs.txt"
    path.write_bytes(text.encode())
    file = judged(path, [[0, -1, 1, 2, 3, 4], [0, 1]])
    listing = file.listing(Asked())
    assert [row.cells[:2] for row in listing.rows] == [(0, line)] and listing.rows[0].cells[3].endswith(
        "[2A 2 > gap] [3C gap > 2]"
    )
    review = listing.review(EditableText.read(str(path)), None)
    if "\r" not in text:  # what stays is written as it was: only rows that change are put in one line
        after = after.replace("GACTTA\n", "GAC\nTTA\n")
    assert accepted(COMMAND, review, "align", path) == after
    assert file.listing(Asked(), read_alignments(path)).truth["wrong"] == 0
    with pytest.raises(Refusal, match="must have the pairs"):
        file.listing(Asked(parts=True), read_alignments(path).take([0]))


def test_marks_go_with_the_letters():
    assert marks_of(["GAC-TA", "G-ACTA"], ["GACT-A", "GACTTA", "110101"]) == "110" + "0" + "11"
    assert marks_of(["AC--", "--AC"], ["A-C", "AA-", "101"]) == "1100"


def test_a_correction_with_other_letters_is_refused():
    before, options = TABLE.encode(), COMMAND.options()
    with pytest.raises(Refusal, match="more than labels"):
        COMMAND.check_repaired(before, before.replace(b"GA-TTA", b"GA-TTC"), options)
    with pytest.raises(Refusal, match="as long as each other"):
        COMMAND.check_repaired(before, before.replace(b"GA-TTA", b"GATTA"), options)
