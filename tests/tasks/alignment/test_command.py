"""``partwise train align``, ``predict``, ``evaluate`` and ``inspect`` on alignments."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from partwise import interpret
from partwise.cli.app import app
from partwise.tasks.alignment import scores
from partwise.tasks.alignment.command import COMMAND
from partwise.tasks.alignment.estimator import Aligner
from partwise.tasks.alignment.files import read_alignments
from partwise.tasks.common.model_file import load
from small_alignments import as_table, pairs

pytestmark = pytest.mark.interpreted


def run(*words):
    with interpret():
        return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("align")
    (folder / "train.tsv").write_text(as_table(pairs()[1]))
    (folder / "test.tsv").write_text(as_table(pairs(6, seed=1)[1], core=True))
    (folder / "plain.fasta").write_text("".join(f">a{k}\n{a}\n>b{k}\n{b}\n" for k, (a, b) in enumerate(pairs(3, seed=2)[0])))
    words = [
        "train",
        "align",
        folder / "train.tsv",
        "--dev",
        folder / "test.tsv",
        "-o",
        folder / "model",
        "-C",
        0.1,
        "--epochs",
        3,
    ]
    ran = run(*words, "--json")
    assert ran.exit_code == 0, ran.output
    (folder / "train.json").write_text(ran.stdout)
    return folder


def test_training_tells_what_it_did(folder):
    about = json.loads((folder / "train.json").read_text())
    assert about["task"] == "align" and about["examples"] == 14 and about["alphabet"] == "ACGT" and about["loss"] == "crf"
    assert 0.5 < about["dev"]["recall"] <= 1.0 and about["seconds"].keys() >= {"read", "features", "train", "save", "total"}


def test_all_pairs_of_a_multiple_alignment(folder):
    (folder / "many.fasta").write_text(">a\nAC-GT\n>b\nACGGT\n>c\nA--GT\n")
    (folder / "templates").write_text("# my own\na.letter|b.letter\ng\n")
    words = ["train", "align", folder / "many.fasta", "--all-pairs", "-o", folder / "own", "--templates", folder / "templates"]
    about = json.loads(run(*words, "--loss", "hinge", "--mode", "local", "--wildcard", "N", "--json").stdout)
    assert about["examples"] == 3 and about["alphabet"] == "ACGTN" and about["templates"] == 2 and about["solver"] == "pegasos"


def test_evaluate(folder):
    found = json.loads(run("evaluate", folder / "model", folder / "test.tsv", "--json").stdout)
    assert found["alignments"] == 6 and found["core"] is True and found["recall"] > 0.5 and found["seconds"]["total"] > 0
    assert sum(row["alignments"] for row in found["by_identity"]) == 6
    shown = run("evaluate", folder / "model", folder / "test.tsv").stdout
    assert "6 alignments" in shown and "recall" in shown and "31 - 100 %" in shown


def test_evaluating_is_one_pass(folder, monkeypatch):
    calls = []
    monkeypatch.setattr(Aligner, "predict", lambda self, X, predict=Aligner.predict: calls.append("predict") or predict(self, X))
    monkeypatch.setattr(scores, "pair_counts", lambda *data, count=scores.pair_counts: calls.append("count") or count(*data))
    assert run("evaluate", folder / "model", folder / "test.tsv").exit_code == 0
    assert calls == ["predict", "count"]


def test_going_on_from_a_model(folder):
    words = ["train", "align", folder / "test.tsv", "--start-from", folder / "model", "-o", folder / "more", "--epochs", 1]
    about = json.loads(run(*words, "--json").stdout)
    assert about["alphabet"] == "ACGT" and about["epochs"] == 1 and about["C"] == 0.1
    both = [load(folder / name) for name in ("model", "more")]
    assert both[0].weights_.size == both[1].weights_.size and (both[0].weights_ != both[1].weights_).any()


def test_defaults_are_those_of_the_class(tmp_path):
    file = COMMAND.workload(tmp_path)
    assert run("train", "align", file, "-o", tmp_path / "model").exit_code == 0
    with interpret():
        same = Aligner().fit(read_alignments(file))
    found = load(tmp_path / "model", plain=True)
    assert found.parameters() == same.parameters() and (found.weights_ == same.weights_).all()


def test_predict(folder):
    lines = run("predict", folder / "model", folder / "test.tsv").stdout.splitlines()
    assert lines[0] == "id1\tid2\trow1\trow2\tfamily" and len(lines) == 7
    for line, (a, b) in zip(lines[1:], pairs(6, seed=1)[0], strict=True):
        first, second = line.split("\t")[2:4]
        assert len(first) == len(second) and (first.replace("-", ""), second.replace("-", "")) == (a, b)
    fasta = run("predict", folder / "model", folder / "plain.fasta", "--format", "fasta").stdout.splitlines()
    assert fasta[0] == ">a0" and len(fasta) == 12 and len(fasta[1]) == len(fasta[3])
    rows = [
        json.loads(line)
        for line in run("predict", folder / "model", folder / "plain.fasta", "--format", "jsonl").stdout.splitlines()
    ]
    assert rows[2]["ids"] == ["a2", "b2"] and all(len(pair) == 2 for pair in rows[0]["pairs"])
    assert "|" in run("predict", folder / "model", folder / "plain.fasta", "--format", "text").stdout
    counts = json.loads(run("predict", folder / "model", folder / "plain.fasta", "-o", folder / "out", "--json").stdout)
    assert counts["pairs"] == 3 and counts["letters_per_second"] > 0 and (folder / "out").read_text().startswith("id1")


def test_inspect(folder):
    about = json.loads(run("inspect", folder / "model", "--json", "--picture", folder / "matrix.svg").stdout)
    assert about["letters"] == list("ACGT") and len(about["substitutions"]) == 4 and about["gaps"]["open"] < 0
    assert "<svg" in (folder / "matrix.svg").read_text()
    assert "letters opposite each other" in run("inspect", folder / "model").stdout
    assert "highest scores" in run("inspect", folder / "model", "--top", 2).stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "align", "missing.tsv", "-o", "m"], "No such file"),
        (["train", "align", "{folder}/plain.fasta", "-o", "{folder}/m"], "aligned rows must be as long as each other"),
        (["train", "align", "{folder}/train.tsv", "-o", "{folder}/m", "--loss", "x"], "'loss' parameter"),
        (["train", "align", "{folder}/train.tsv", "-o", "{folder}/m", "--alphabet", "ACG"], "is not in the alphabet 'ACG'"),
        (["train", "align", "{folder}/train.tsv", "-o", "{folder}/t", "--templates", "{folder}/t"], "is --templates"),
        (["predict", "{folder}/model", "{folder}/train.json"], "expected two rows with a tab between"),
        (
            ["predict", "{folder}/model", "{folder}/test.tsv", "--format", "svg"],
            "the answers of this model are written as columns, fasta, jsonl, text",
        ),
        (["evaluate", "{folder}/model", "{folder}/plain.fasta"], "no alignment to compare with"),
    ],
)
def test_errors_in_words(folder, words, message):
    ran = run(*(word.format(folder=folder) for word in words))
    assert ran.exit_code == 1 and message in ran.output, ran.output
