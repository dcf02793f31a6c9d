"""Words and labels of a stranger on a terminal: none of them tells it what to do."""

import json

import pytest
from typer.testing import CliRunner

import partwise
from partwise.cli.app import app
from partwise.cli.common import visible

pytestmark = pytest.mark.interpreted
LINES = "a\x1b]0;title\x07 N B-X\x1b[5;41m\nb\x9b2J\x7f N O\n\n"
THEIRS = ("\x1b]0", "\x07", "\x1b[5;41m", "\x9b", "\x7f", "\x1b[2J")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("strange")
    (place / "t.txt").write_text(LINES * 8)
    with partwise.interpret():
        done = CliRunner().invoke(app, ["train", "tag", str(place / "t.txt"), "-o", str(place / "m"), "--epochs", "3"])
    assert done.exit_code == 0 and not strange(done.output)
    return place


def strange(text):
    return [c for c in text if ord(c) < 32 and c not in "\n\t\r" or 127 <= ord(c) < 160]


@pytest.mark.parametrize(
    "words",
    [
        ["inspect", "m"],
        ["inspect", "m", "--json"],
        ["evaluate", "m", "t.txt"],
        ["evaluate", "m", "t.txt", "--json"],
        ["suspects", "m", "t.txt"],
        ["verify", "m"],
        ["predict", "m", "x\x1b[2J"],
        ["pack", "tag", "t.txt", "-o", "p\x1b[2J"],
    ],
)
def test_control_characters_are_written_out(words, folder, monkeypatch):
    monkeypatch.chdir(folder)
    with partwise.interpret():
        done = CliRunner().invoke(app, words)
        monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal: with styles, which are rich's own
        styled = CliRunner().invoke(app, words)
    assert done.output and not strange(done.output)
    assert not [one for one in THEIRS if one in styled.output]
    if "--json" in words:
        json.loads(done.stdout)


def test_what_is_written_of_them():
    assert visible("B-X\x1b[2J\x9b\x00\n\té→") == "B-X\\x1b[2J\\x9b\\x00\n\té→"
