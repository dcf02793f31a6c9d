"""Suspects as a page shows them."""

import json

import pytest

from partwise.files.text_edits import EditableText
from partwise.tasks.common.command_options import Refusal
from partwise.tasks.common.review import DoubtedWord, Passage, ReviewItem, rounded
from review_cases import column_review, column_text

SENTENCES = [[("a", "X"), ("b", "Y")], [("ü", "X")]]


def test_packed():
    source = EditableText.of(column_text(SENTENCES).encode(), "a.txt")
    review = column_review(SENTENCES, [(1, 0, "Z")])
    data = review.packed("tag", source, "said")
    assert data["labels"] == ["X", "Y", "Z"] and data["menu"] == 2  # what the model believes is none of the file's labels
    assert data["passages"][1] == {"line": 4, "at": 12, "words": ["ü"], "given": [0], "begins": [0]}
    assert data["items"][0]["doubts"][0]["believed"] == 2 and json.dumps(data)
    assert data["page"] == review.packed("tag", source, "said")["page"] != review.packed("tag", source, "other")["page"]


def test_a_file_that_has_changed_while_it_was_judged_is_refused():
    review = column_review(SENTENCES, [(1, 0, "Z")])
    with pytest.raises(Refusal, match=r"a.txt, line 4: expected 'X'. The file has changed"):
        review.packed("tag", EditableText.of(column_text([*SENTENCES[:1], [("ü", "Y")]]).encode(), "a.txt"), "said")


def test_what_is_not_a_number_is_null_and_lines_need_not_follow():
    assert rounded(float("inf")) is None and rounded(0.123456789) == 0.12346
    item = ReviewItem(0, float("inf"), [DoubtedWord(0, "X", -float("inf"))])
    assert item.packed({"X": 0}) == {"passage": 0, "wrong": None, "doubts": [{"word": 0, "believed": 0, "wrong": None}]}
    passage = Passage(["a", "b"], ["X", "X"], [2, 12], [1, 3], ['"X"', "X"], [("title", "value")])
    packed = passage.packed({"X": 0})
    assert packed["lines"] == [1, 3] and packed["raw"] == ['"X"', "X"] and packed["fields"] == [["title", "value"]]
