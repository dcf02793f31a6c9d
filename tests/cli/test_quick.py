"""Command lines that are read without typer are read as typer reads them; all others are left to it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from partwise.cli import quick
from partwise.cli.typer_commands import as_command

PREDICT = [
    ["m", "f"],
    ["m", "-"],
    ["m", "f", "-o", "out.txt", "-q"],
    ["--output=out.txt", "m", "--jobs", "-1", "f", "--json"],
    ["-j", "2", "m", "f", "--quiet"],
    ["m", "f", "--format", "jsonl", "--encoding=latin-1"],
    ["m", "f", "--kbest", "3", "--marginals", "--separator", "tab", "-o", "-"],
]
EVALUATE = [["m"], ["m", "f", "--json"], ["m", "f", "--level", "0.9", "--no-intervals"], ["m", "--predicted-column", "-1"]]
TRAIN = [
    ["f", "-o", "m"],
    ["f", "--output", "m", "--dev", "d", "-C", "0.05", "--epochs", "20", "--loss", "family(beta=1, gamma=3)"],
    ["f", "-o", "m", "--forbid", "O I-NP", "--forbid", "B I", "--columns=w,pos", "--balanced"],
    ["f", "-o", "m", "--average", "--no-use-stop", "--tol", "1e-5", "--history", "h.json", "--stream", "--certify"],
    ["-", "-o", "m", "-C", "1", "--checkpoint-every", "0"],
]
SEEN = [["predict", *words] for words in PREDICT] + [["evaluate", *words] for words in EVALUATE]
SEEN += [["train", "tag", *words] for words in TRAIN] + [["train", "parse", "f", "-o", "m", "--seed", "3"]]

LEFT = [
    [],
    ["--help"],
    ["predict"],
    ["predict", "m"],
    ["inspect", "m", "more"],
    ["predict", "m", "f", "--help"],
    ["predict", "m", "f", "--nothing"],
    ["predict", "m", "f", "-o"],
    ["predict", "m", "f", "-o", ""],
    ["predict", "m", "f", "-o", "--json"],
    ["predict", "m", "f", "-oout"],
    ["predict", "m", "f", "-qj2"],
    ["predict", "m", "f", "--jobs", "two"],
    ["predict", "m", "f", "--jobs", "1_0"],
    ["predict", "m", "f", "--json=yes"],
    ["predict", "m", "f", "-o", "a", "-o", "b"],
    ["predict", "m", "f", "--kbest", "0"],
    ["predict", "--", "m", "f"],
    ["evaluate", "m", "f", "--level", "1.5"],
    ["evaluate", "m", "f", "--level", "nan"],
    ["train"],
    ["train", "--help"],
    ["train", "nothing", "f", "-o", "m"],
    ["train", "tag", "f"],
    ["train", "tag", "--help"],
    ["train", "tag", "f", "-o", "m", "--epochs", "1.0"],
    ["inspect", "m"],
    ["nothing"],
]


def by_typer(verb, words):
    found = []
    as_command(verb._replace(run=lambda **given: found.append(given)))(list(words), standalone_mode=False)
    return found[0]


@pytest.mark.parametrize("argv", SEEN, ids=" ".join)
def test_what_is_read_is_what_typer_reads(argv):
    read = [
        (given, by_typer(verb, words)) for verb, words in quick.readings(argv) if (given := quick.read(verb.parameters, words))
    ]
    assert read
    for given, same in read:
        assert given == same and {k: type(v) for k, v in given.items()} == {k: type(v) for k, v in same.items()}


@pytest.mark.parametrize("argv", LEFT, ids=" ".join)
def test_what_is_not_plainly_right_is_left_to_typer(argv):
    assert not quick.run(argv)


def test_defaults_are_not_shared():
    verb, words = next(quick.readings(["train", "tag", "f", "-o", "m"]))
    quick.read(verb.parameters, words)["forbid"].append("O I-NP")
    assert quick.read(verb.parameters, words)["forbid"] == []


def test_a_shell_that_asks_for_completions_is_left_to_typer(monkeypatch):
    monkeypatch.setenv("_PARTWISE_COMPLETE", "complete_bash")
    assert not quick.run(["predict", "there is no such model", "f"])


def test_errors_are_the_same_in_words_and_status(tmp_path):
    """Of both ways: an option that only typer reads changes nothing else."""
    command = [sys.executable, "-m", "partwise", "predict", "nothing.model", "f"]
    said = [
        subprocess.run([*command, *more], capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "COLUMNS": "80"})
        for more in ([], ["-qj1"])
    ]
    assert said[0].stderr == said[1].stderr == "partwise: error: There is no model file 'nothing.model'.\n"
    assert said[0].returncode == said[1].returncode == 1
    assert not list(Path(tmp_path).iterdir())
