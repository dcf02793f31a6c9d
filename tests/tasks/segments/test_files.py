"""Files of segments and of phrases."""

import pytest

from partwise.tasks.segments.files import read_dictionary, read_segments


def test_the_column_of_the_labels():
    text = read_segments(b"a N B-X\nb N I-X\n\nc V O\n")
    assert len(text) == 2 and text.label_column == 2 and text.words(0) == ["a", "b"]
    assert read_segments(b"B-X a\nI-X b\n", label_column=0).words(0) == ["a", "b"]
    assert text.take([1]).truth().codes.tolist() == [2]
    with pytest.raises(ValueError, match="there is one column only"):
        read_segments(b"a\nb\n")


def test_dictionaries(tmp_path):
    path = tmp_path / "cities.txt"
    path.write_text("# of the world\nNew York\nOslo\n")
    assert read_dictionary(path) == {"cities": [("New", "York"), ("Oslo",)]}
    path.write_text("LOC\tNew York\nPER\tAnn\n")
    assert read_dictionary(path) == {"LOC": [("New", "York")], "PER": [("Ann",)]}
    path.write_text("LOC\t\n")
    with pytest.raises(ValueError, match=r"cities.txt, line 1: expected a phrase"):
        read_dictionary(path)
