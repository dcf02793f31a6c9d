"""Files that are corrected in places and keep every other byte."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partwise.files.text_edits import EditableText, TextEdit

TEXT = st.text(st.characters(exclude_characters="\r", codec="utf-8"))  # lines that end with CR alone are refused


@given(st.lists(st.tuples(TEXT, TEXT, TEXT), max_size=8), st.sampled_from(("utf-8", "utf-16-le", "utf-8-sig")))
def test_every_other_byte_stays(pieces, encoding):
    before = "".join(rest + old for rest, old, _ in pieces)
    if before.startswith("\ufeff") or before[:1] in ("\x1f", "P"):
        return
    after = "".join(rest + new for rest, _, new in pieces)
    edits, at = [], 0
    for rest, old, new in pieces:
        at += len(rest.encode())
        edits.append(TextEdit(at, old, new))
        at += len(old.encode())
    if len({edit.begin for edit in edits}) < len(edits):
        return  # two at one place: in which order?
    source = EditableText.of(before.encode(encoding), "a.txt", encoding)
    assert source.edited(edits) == after.encode(encoding)


def test_lines_and_line_ends_are_kept():
    source = EditableText.of(b"\xef\xbb\xbfa X\r\n\r\nb X\n\n\n", "a.txt")
    assert source.text == b"a X\r\n\r\nb X\n\n\n" and [source.line(k) for k in (2, 9)] == [1, 3]
    assert source.edited([TextEdit(9, "X", "Y"), TextEdit(2, "X", "ŽŽ")]) == "\ufeffa ŽŽ\r\n\r\nb Y\n\n\n".encode()


@pytest.mark.parametrize(
    "edits", [[TextEdit(0, "X", "Y")], [TextEdit(2, "X", "Y"), TextEdit(2, "X", "Z")], [TextEdit(-1, "", "Y")]]
)
def test_what_is_not_there_is_refused(edits):
    with pytest.raises(ValueError, match=r"a.txt, line 1: there is no"):
        EditableText.of(b"a X\n", "a.txt").edited(edits)


def test_what_cannot_be_written_again_is_refused(tmp_path):
    with pytest.raises(ValueError, match="unpack it first"):
        EditableText.of(gzip.compress(b"a X\n"), "a.gz")
    with pytest.raises(ValueError, match="write it as CSV first"):
        EditableText.of(b"PAR1....", "a.parquet")
    with pytest.raises(ValueError, match="standard input"):
        EditableText.read("-")
    with pytest.raises(ValueError, match=r"line 2: not valid utf-8"):
        EditableText.of(b"a\n\xff\n", "a.txt")
    with pytest.raises(ValueError, match="would not be the same"):
        EditableText.of("a".encode("utf-16-be").join([b"\xfe\xff", b""]), "a.txt", "utf-16")
    with pytest.raises(ValueError, match="'Ж' cannot be written in latin-1"):
        EditableText.of(b"a X\n", "a.txt", "latin-1").edited([TextEdit(2, "X", "Ж")])
    path = tmp_path / "a.txt"
    path.write_bytes("é X\n".encode("latin-1"))
    source = EditableText.read(str(path), "latin-1")
    assert source.name == "a.txt" and source.edited([TextEdit(3, "X", "Ü")]) == "é Ü\n".encode("latin-1")
