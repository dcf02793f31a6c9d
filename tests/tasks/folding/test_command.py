"""``partwise train fold``, ``predict``, ``evaluate`` and ``inspect`` on RNA."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from partwise.cli.app import app
from partwise.engine.compilation import interpret
from partwise.tasks.common.model_file import load
from partwise.tasks.folding.command import COMMAND
from partwise.tasks.folding.estimator import RnaFolder
from partwise.tasks.folding.files import read_rna
from small_rna import as_fasta, hairpins


def run(*words):
    with interpret():
        return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fold")
    (folder / "train.fasta").write_text(as_fasta(*hairpins()))
    (folder / "test.fasta").write_text(as_fasta(*hairpins(3, seed=1)))
    words = ["train", "fold", folder / "train.fasta", "--dev", folder / "test.fasta", "-o", folder / "model"]
    ran = run(*words, "--epochs", 3, "--json")
    assert ran.exit_code == 0, ran.output
    (folder / "train.json").write_text(ran.stdout)
    return folder


def test_training_tells_what_it_did(folder):
    about = json.loads((folder / "train.json").read_text())
    assert about["task"] == "fold" and about["examples"] == 6 and about["features"] > 2000 and about["solver"] == "dca"
    assert about["dev"]["f1"] == 1.0 and about["seconds"].keys() >= {"read", "features", "train", "save", "total"}


def test_evaluate(folder):
    found = json.loads(run("evaluate", folder / "model", folder / "test.fasta", "--json").stdout)
    assert found["f1"] == found["sensitivity"] == found["selectivity"] == found["f1_slips"] == 1.0 and found["sequences"] == 3
    shown = run("evaluate", folder / "model", folder / "test.fasta").stdout
    assert "sensitivity" in shown and "100.00 %" in shown


def test_defaults_are_those_of_the_class(tmp_path):
    file = COMMAND.workload(tmp_path)
    assert run("train", "fold", file, "-o", tmp_path / "model").exit_code == 0
    with interpret():
        same = RnaFolder().fit(read_rna(file))
    found = load(tmp_path / "model", plain=True)
    assert found.parameters() == same.parameters() and (found.weights_ == same.weights_).all()


def test_predict(folder):
    bare = "".join(f">rna{k}\n{sequence}\n" for k, sequence in enumerate(hairpins(3, seed=1)[0]))
    (folder / "bare.fasta").write_text(bare)
    assert run("predict", folder / "model", folder / "bare.fasta").stdout == (folder / "test.fasta").read_text()
    row = json.loads(run("predict", folder / "model", folder / "bare.fasta", "--format", "jsonl").stdout.splitlines()[0])
    assert row["id"] == "rna0" and row["structure"] == hairpins(3, seed=1)[1][0]
    picture = run("predict", folder / "model", folder / "test.fasta", "--format", "svg").stdout
    assert picture.startswith("<svg") and picture.count("<svg") == 4 and "rna2" in picture
    run("predict", folder / "model", folder / "test.fasta", "--format", "png", "-o", folder / "arcs.png")
    assert (folder / "arcs.png").read_bytes().startswith(b"\x89PNG")


def test_inspect(folder):
    shown = run("inspect", folder / "model", "--top", 3)
    assert shown.exit_code == 0 and "stacks" in shown.stdout and "highest" in shown.stdout, shown.output
    about = json.loads(run("inspect", folder / "model", "--json").stdout)
    assert len(about["stacks"]) == 21 and about["loss"] == "crf" and about["training"]["examples"] == 6
    pytest.importorskip("matplotlib")
    assert run("inspect", folder / "model", "--picture", folder / "stacks.png").exit_code == 0
    assert (folder / "stacks.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "fold", "missing.fasta", "-o", "m"], "No such file"),
        (["train", "fold", "{folder}/bad.fasta", "-o", "{folder}/m"], "line 3: the bracket"),
        (["train", "fold", "{folder}/train.fasta", "-o", "{folder}/m", "--pairs", "AX,GC"], "'pairs' parameter"),
        (
            ["train", "fold", "{folder}/train.fasta", "-o", "{folder}/m", "--decode", "mea", "--loss", "hinge"],
            "needs probabilities",
        ),
        (["predict", "{folder}/model", "{folder}/test.fasta", "--kbest", "2"], "--kbest is for a model that labels sequences"),
        (["predict", "{folder}/model", "{folder}/test.fasta", "--format", "tree"], "written as fasta, jsonl, svg, png"),
        (["evaluate", "{folder}/model", "{folder}/none.fasta"], "no structure to compare with"),
        (["train", "fold", "{folder}/none.fasta", "-o", "{folder}/m"], "none.fasta, line 2: there is no structure to learn from"),
        (
            ["train", "fold", "{folder}/train.fasta", "--dev", "{folder}/none.fasta", "-o", "{folder}/m"],
            "none.fasta, line 2: there is no structure to compare with",
        ),
    ],
)
def test_errors_in_words(folder, words, message):
    (folder / "bad.fasta").write_text(">a\nACGU\n(...\n")
    (folder / "none.fasta").write_text(">a\nACGU\n")
    ran = run(*(word.format(folder=folder) for word in words))
    assert ran.exit_code == 1 and message in ran.output, ran.output
