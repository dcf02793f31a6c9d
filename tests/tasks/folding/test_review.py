"""Suspects of RNA in a file: listed, shown, corrected."""

from __future__ import annotations

import numpy as np
import pytest

from judged_cases import Asked, accepted, made_up
from partwise import RnaFolder
from partwise.files.text_edits import EditableText
from partwise.tasks.common.command_options import Refusal
from partwise.tasks.common.suspects import Judged
from partwise.tasks.folding.command import COMMAND
from partwise.tasks.folding.files import read_dot_bracket, read_rna, write_dot_bracket
from partwise.tasks.folding.review import JudgedRna, with_left_out

FASTA = ">a\nGGGAAAACCC\n(((....)))  (-3.20)\n# a remark\n>b\nGCGAA\nAGCAA\n((...\n ..)).\n>c\nGGGAAACCCAAA\n((<..)).>...\n"
TABLE = "id\tstructure\tsequence\na\t (((....))) \tGGGAAAACCC\nb\t((....))..\tGCGAAAGCAA\n"


def judged(path, believed):
    """The file and a judgement of its structures: other ones are believed."""
    data = read_rna(path)
    found = made_up(data.partners, [read_dot_bracket(text)[0] for text in believed])
    texts = [(write_dot_bracket(p), text) for p, text in zip(data.partners, believed, strict=True)]

    def part(t):
        return tuple(None if j < 0 else int(j) for j in (np.concatenate(data.partners)[t], found.evidence.believed[t]))

    return JudgedRna(RnaFolder(), data, Judged(found, lambda i: texts[i], part))


def test_fasta_is_listed_and_corrected_in_place(tmp_path):
    path = tmp_path / "rna.fa"
    path.write_text(FASTA)
    file = judged(path, [".((....)).", "..........", "((...))....."])
    listing = file.listing(Asked())
    assert [row.cells[:2] for row in listing.rows] == [(1, 6), (0, 2)] and listing.judged == (3, "structures")
    assert listing.rows[1].cells[3] == "a: [1G 10 > unpaired] [10C 1 > unpaired]"
    assert listing.rows[0].as_dict()["parts"][0] == {
        "part": 0,
        "given": 8,
        "believed": None,
        "probability": pytest.approx(0.947, abs=0.01),
    }
    parts = file.listing(Asked(parts=True))
    assert parts.rows[0].cells[4:] == (0, "10", "unpaired") and parts.judged == (32, "bases")
    text = accepted(COMMAND, listing.review(EditableText.read(str(path)), None), "fold", path)
    assert text == FASTA.replace("(((....)))", ".((....)).").replace("((...\n ..)).", "..........")
    assert len(parts.review(EditableText.read(str(path)), None).items) == 2  # a base is shown with its whole structure
    truth = read_rna(path)
    assert file.listing(Asked(), truth).truth["wrong"] == 0
    with pytest.raises(Refusal, match="must have the sequences"):
        file.listing(Asked(), truth.take([0]))


def test_tables_are_corrected(tmp_path):
    path = tmp_path / "rna.tsv"
    path.write_text(TABLE)
    file = judged(path, [".((....)).", "((....)).."])
    text = accepted(COMMAND, file.listing(Asked()).review(EditableText.read(str(path)), None), "fold", path)
    assert text == TABLE.replace("(((....)))", ".((....)).")


def test_a_correction_that_is_no_structure_is_refused(tmp_path):
    before, options = FASTA.encode(), COMMAND.options()
    for wrong, why in ((b"(((....))", "9 characters"), (b"(((....)).", "never closed"), (b"(((.xx.)))", "closes none")):
        with pytest.raises(Refusal, match=why):
            COMMAND.check_repaired(before, before.replace(b"(((....)))", wrong), options)


@pytest.mark.parametrize(
    ("believed", "given", "judged", "found"),
    [
        ("((....))", "((<>..))", "((....))", "((<>..))"),  # a pseudoknot stays
        ("(......)", "((<>..))", "((....))", "(.<>...)"),
        ("((....))", "(.<..)>.", "(....)..", "((....))"),  # no room for it
        ("..(...).", "(.,....)", "........", "(.(...))"),
        ("........", "(.,....)", "........", "(.,....)"),  # a pair that may not be learnt
        ("(...)...", "..(...).", "........", "(...)..."),  # it would cross
    ],
)
def test_what_was_left_out_stays_where_there_is_room(believed, given, judged, found):
    assert with_left_out(believed, given, judged) == found
