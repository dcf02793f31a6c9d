"""Suspects of rankings in a file: listed, shown, corrected."""

from __future__ import annotations

import numpy as np
import pytest

from judged_cases import Asked, accepted, made_up
from partwise import Ranker
from partwise.files.text_edits import EditableText
from partwise.tasks.common.command_options import Refusal
from partwise.tasks.common.suspects import Judged
from partwise.tasks.ranking.command import COMMAND
from partwise.tasks.ranking.files import read_letor
from partwise.tasks.ranking.review import JudgedRelevance

TEXT = """2 qid:7 1:3 # first
# a remark
0 qid:8 1:1 2:2
1.0 qid:7 1:2 # a note that is far too long to be shown as it is
0 qid:8 1:5
"""


def judged(path, believed):
    """The file and a judgement of its relevance, query by query: other grades are believed."""
    data = read_letor(path, normalize=False)
    order = np.concatenate(data.queries)
    given = data.relevance[order]
    found = made_up([given[:2], given[2:]], believed)
    return JudgedRelevance(
        Ranker(), data, Judged(found, lambda i: (None, None), lambda t: (given[t], float(found.evidence.believed[t])))
    )


def test_documents_are_listed_and_corrected_in_place(tmp_path):
    path = tmp_path / "queries.txt"
    path.write_text(TEXT)
    file = judged(path, [[2, 2], [1, 0]])
    parts = file.listing(Asked(parts=True))
    assert [(row.cells[1], *row.cells[4:]) for row in parts.rows] == [(4, 1, "1", "2"), (3, 0, "0", "1")]
    listing = file.listing(Asked())
    assert listing.rows[0].cells[3] == "query 7: [a note that is far too … 1 > 2]"
    assert listing.rows[1].cells[3] == "query 8: [line 3 0 > 1]"
    review = listing.review(EditableText.read(str(path)), None)
    assert review.labels == ["0", "1.0", "2"]
    assert accepted(COMMAND, review, "rank", path) == TEXT.replace("1.0 qid:7", "2 qid:7").replace("0 qid:8 1:1", "1.0 qid:8 1:1")
    assert accepted(COMMAND, parts.review(EditableText.read(str(path)), 1), "rank", path) == TEXT.replace("1.0 qid", "2 qid")
    assert file.listing(Asked(), read_letor(path)).truth["wrong"] == 0


def test_a_correction_that_is_no_relevance_is_refused():
    before, options = TEXT.encode(), COMMAND.options()
    with pytest.raises(Refusal, match="relevance"):
        COMMAND.check_repaired(before, before.replace(b"1.0", b"-1"), options)
    with pytest.raises(Refusal, match="more than labels"):
        COMMAND.check_repaired(before, before.replace(b"1:3", b"1:4"), options)
