"""``partwise train constituency``, ``predict``, ``evaluate`` and ``inspect`` on brackets; in the interpreter."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import partwise
from partwise import ConstituencyParser, interpret
from partwise.cli.app import app
from partwise.datasets import make_brackets

pytestmark = [pytest.mark.interpreted, pytest.mark.filterwarnings("ignore:overflow encountered")]  # hashes wrap around


def run(*words):
    with interpret():
        return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("constituency")
    (folder / "train.mrg").write_text("\n".join(map(str, make_brackets(20))))
    (folder / "test.mrg").write_text("\n".join(map(str, make_brackets(5, seed=1))))
    (folder / "templates").write_text("# few\nf.tag|l.tag\nl.form\nf.form[-1]\n")
    words = ["train", "constituency", folder / "train.mrg", "--dev", folder / "test.mrg", "-o", folder / "model", "--json"]
    ran = run(*words, "--hash-bits", 8, "--solver", "dca", "--epochs", 2, "--templates", folder / "templates")
    assert ran.exit_code == 0, ran.output
    (folder / "train.json").write_text(ran.stdout)
    return folder


def test_training_tells_what_it_did(folder):
    about = json.loads((folder / "train.json").read_text())
    assert about["task"] == "constituency" and about["examples"] == 20 and about["labels"] == 4 and about["rules"] > 5
    assert about["dev"]["f1"] > 0.9 and about["seconds"]["total"] > 0


def test_evaluate(folder):
    found = json.loads(run("evaluate", folder / "model", folder / "test.mrg", "--json").stdout)
    assert found["f1"] > 0.9 and found["f1_no_punct"] > 0.9 and found["trees"] == 5 and found["unparsed"] == 0
    assert "F1 without labels" in run("evaluate", folder / "model", folder / "test.mrg").stdout
    (folder / "plain.txt").write_text("they saw\n")
    refused = run("evaluate", folder / "model", folder / "plain.txt")
    assert refused.exit_code == 1 and "no trees in this file" in refused.output


def test_trees_that_are_known_in_part_are_not_compared_with(folder):
    text = (folder / "test.mrg").read_text()
    (folder / "partial.mrg").write_text(text + "\n(? (NP (PRP they)) (VBD saw))\n")
    whole, partial = (
        json.loads(run("evaluate", folder / "model", folder / name, "--json").stdout) for name in ("test.mrg", "partial.mrg")
    )
    assert (partial["f1"], partial["trees"], partial["sequences"]) == (whole["f1"], 5, 6)


@pytest.mark.parametrize(("given", "markov"), [((), 0), (("--markov", 1), 1), (("--markov", -1), None)])
def test_the_command_trains_what_the_class_does(folder, given, markov):
    words = ["train", "constituency", folder / "train.mrg", "-o", folder / "same", "--quiet", *given]
    ran = run(*words, "--hash-bits", 8, "--epochs", 1, "--solver", "dca", "--first", 5, "--templates", folder / "templates")
    assert ran.exit_code == 0, ran.output
    model = partwise.load(folder / "same")
    assert model.markov == markov
    with interpret():
        other = ConstituencyParser(**model.get_params()).fit(make_brackets(20)[:5])
    np.testing.assert_array_equal(model.weights_, other.weights_)
    said = {"hash_bits", "max_epochs", "solver", "templates", "markov"}
    plain = ConstituencyParser().get_params()
    assert {name for name, value in model.get_params().items() if value != plain[name]} == said - (set() if given else {"markov"})


def test_predict(folder):
    lines = run("predict", folder / "model", folder / "test.mrg").stdout.splitlines()
    assert len(lines) == 5 and all(line.startswith("(S (NP") for line in lines)
    row = json.loads(run("predict", folder / "model", folder / "test.mrg", "--format", "jsonl").stdout.splitlines()[0])
    assert row["parsed"] is True and row["tree"] == lines[0] and row["brackets"][0][0] == "S"
    assert "├─ NP" in run("predict", folder / "model", folder / "test.mrg", "--format", "tree").stdout
    assert run("predict", folder / "model", folder / "test.mrg", "--format", "svg").stdout.count("<svg") == 6
    refused = run("predict", folder / "model", folder / "plain.txt")
    assert refused.exit_code == 1 and "This model looks at tags" in refused.output


def test_a_long_sentence_is_refused_in_words(folder, monkeypatch):
    monkeypatch.setattr("partwise.engine.memory.available_memory", lambda: 1e3)
    refused = run("predict", folder / "model", folder / "test.mrg")
    assert refused.exit_code == 1 and "GB are free. Cut it into parts, leave it out, or take fewer threads." in refused.output
    assert "test.mrg, line" in refused.output


def test_inspect(folder):
    picture = folder / "rules.png"
    found = json.loads(run("inspect", folder / "model", "--top", 2, "--picture", picture, "--json").stdout)
    assert len(found["highest"]) == 2 and " -> " in next(iter(found["highest"])) and found["markov"] == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "rules of highest weight" in run("inspect", folder / "model", "--top", 2).stdout


def test_bad_files(folder):
    (folder / "bad.mrg").write_text("(S (NP a)\n")
    ran = run("train", "constituency", folder / "bad.mrg", "-o", folder / "other")
    assert ran.exit_code == 1 and "bad.mrg, line 1: this bracket is never closed" in ran.output
