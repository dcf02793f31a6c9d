"""Decisions about suspects: read, checked against a file, applied."""

import json

import pytest

from partwise.files.text_edits import EditableText
from partwise.tasks.common.command_options import Refusal
from partwise.tasks.common.decisions import Decisions

TEXT = b"a X\nb X\n\nc Y\n"


def decisions(tmp_path, changes, **more):
    """Those that a page would hand out."""
    source = EditableText.of(TEXT, "a.txt")
    said = {
        "format": "partwise decisions",
        "version": 1,
        "task": "tag",
        "file": {"name": "a.txt", "sha256": source.sha256, "encoding": "utf-8"},
        "reading": {"label_column": 1},
        "decisions": [{"item": 0, "line": 1, "choice": "edit", "changes": changes}],
        **more,
    }
    path = tmp_path / "a.json"
    path.write_text(json.dumps(said))
    return path


def change(line, at, old, new):
    return {"line": line, "at": at, "from": old, "to": new}


def test_they_are_applied(tmp_path):
    read = Decisions.read(decisions(tmp_path, [change(4, 11, "Y", "ZZ"), change(1, 2, "X", "Y")]))
    assert read.apply(EditableText.of(TEXT, "other name")) == b"a Y\nb X\n\nc ZZ\n"
    assert read.counted() == "0 accepted, 0 kept, 1 edited" and read.reading == {"label_column": 1}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ([change(1, 2, "Q", "Y")], "line 1 does not have 'Q'"),
        ([change(2, 2, "X", "Y")], "line 2 does not have 'X' at byte 2"),
        ([change(1, 2000, "X", "Y")], "line 1 does not have"),
    ],
)
def test_what_does_not_fit_is_refused_by_line(tmp_path, changes, message):
    with pytest.raises(Refusal, match=message):
        Decisions.read(decisions(tmp_path, changes)).apply(EditableText.of(TEXT, "a.txt"))


def test_another_file_a_changed_one_and_one_that_is_corrected_already(tmp_path):
    read = Decisions.read(decisions(tmp_path, [change(1, 2, "X", "YY"), change(4, 11, "Y", "X")]))
    with pytest.raises(Refusal, match=r"about a file called a.txt, and b.txt is another one"):
        read.apply(EditableText.of(b"p Q\n", "b.txt"))
    with pytest.raises(Refusal, match=r"a.txt has changed since .* In line 4, say, there is no 'Y' any more"):
        read.apply(EditableText.of(b"a X\nb X\n\nc Q\n", "a.txt"))
    with pytest.raises(Refusal, match="has these corrections already"):
        read.apply(EditableText.of(read.apply(EditableText.of(TEXT, "a.txt")), "a.txt"))


def test_one_place_may_be_decided_once(tmp_path):
    twice = [change(1, 2, "X", "Y"), change(1, 2, "X", "Y")]
    assert len(Decisions.read(decisions(tmp_path, twice)).changes) == 1
    with pytest.raises(Refusal, match="decides twice about line 1: 'X' is to become 'Y', and 'Z'"):
        Decisions.read(decisions(tmp_path, [*twice, change(1, 2, "X", "Z")]))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"format": "other"}, "is not a file of decisions"),
        ({"version": 2}, "is of version 2"),
        ({"file": {}}, "damaged"),
        ({"file": []}, "damaged"),
        ({"reading": []}, "damaged"),
        ({"decisions": 3}, "damaged"),
        ({"decisions": [{"choice": "drop", "changes": []}]}, "damaged"),
        ({"decisions": [{"choice": "edit", "changes": [change(True, 2, "X", "Y")]}]}, "damaged"),
        ({"decisions": [{"choice": "edit", "changes": [change(1, -2, "X", "Y")]}]}, "damaged"),
        ({"decisions": [{"choice": "edit", "changes": [change(1, 2, "X", None)]}]}, "damaged"),
        ({"decisions": [{"choice": "edit", "changes": [change(1, 2, "X", "\ud800")]}]}, "damaged"),
    ],
)
def test_bad_files(tmp_path, more, message):
    with pytest.raises(Refusal, match=message):
        Decisions.read(decisions(tmp_path, [], **more))


@pytest.mark.parametrize("content", [b"", b"[", b"\xff\xfe", b"3", b"[" * 100_000])
def test_no_json(tmp_path, content):
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(Refusal, match="is not a file of decisions"):
        Decisions.read(path)
