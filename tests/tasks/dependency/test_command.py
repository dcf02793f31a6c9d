"""``partwise train parse``, ``predict`` and ``evaluate`` on treebanks."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

from partwise import DependencyParser, load
from partwise.cli.app import app
from partwise.datasets import read_treebank
from partwise.structures.dependency.problem import TreeProblem
from partwise.structures.multiclass.problem import MulticlassProblem
from partwise.tasks.dependency import estimator
from small_treebanks import as_conllu, sentences

pytestmark = pytest.mark.interpreted

WORDS = [{"form": "a", "upos": "N"}, {"form": "b", "upos": "V"}]


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parse")
    (folder / "train.conllu").write_text(as_conllu(*sentences()))
    (folder / "test.conllu").write_text("# a comment\n" + as_conllu(*sentences(8, seed=1)))
    words = ["train", "parse", folder / "train.conllu", "--dev", folder / "test.conllu", "-o", folder / "model"]
    ran = run(*words, "--hash-bits", 14, "-C", 0.05, "--solver", "dca", "--epochs", 4, "--json")
    assert ran.exit_code == 0, ran.output
    (folder / "train.json").write_text(ran.stdout)
    return folder


def test_training_tells_what_it_did(folder):
    about = json.loads((folder / "train.json").read_text())
    assert about["task"] == "parse" and about["examples"] == 25 and about["labels"] == 4 and about["single_root"] is True
    assert about["dev"]["uas"] == 1.0 and about["dev"]["las"] == 1.0
    assert about["seconds"].keys() >= {"read", "features", "train", "save", "total"}


def test_evaluate(folder):
    found = json.loads(run("evaluate", folder / "model", folder / "test.conllu", "--json").stdout)
    assert found["uas"] == 1.0 and found["las_no_punct"] == 1.0 and found["sentences"] == 8
    assert found["seconds"]["total"] > 0
    shown = run("evaluate", folder / "model", folder / "test.conllu").stdout
    assert "UAS" in shown and "100.00 %" in shown


def test_evaluate_parses_once(folder, monkeypatch):
    """Punctuation is left out of the scores, not of the sentences."""
    parsed = []

    def best_outputs(problem, *more):
        parsed.append(type(problem))
        return real(problem, *more)

    real = estimator.best_outputs
    monkeypatch.setattr(estimator, "best_outputs", best_outputs)
    assert run("evaluate", folder / "model", folder / "test.conllu").exit_code == 0
    assert parsed == [TreeProblem, MulticlassProblem]  # heads, and their relations


def test_evaluate_without_relations(folder):
    words = ["train", "parse", folder / "train.conllu", "-o", folder / "bare", "--no-relations", "--hash-bits", 10]
    assert run(*words, "--solver", "dca", "--epochs", 1, "--quiet").exit_code == 0
    found = json.loads(run("evaluate", folder / "bare", folder / "test.conllu", "--json").stdout)
    assert found["las"] is None and found["uas"] > 0 and found["words"] == found["tokens"]


def test_the_command_trains_what_the_class_does(folder):
    model = load(folder / "model")
    settings = {"C": 0.05, "solver": "dca", "hash_bits": 14, "max_epochs": 4}
    train, test = (read_treebank(folder / f"{part}.conllu") for part in ("train", "test"))
    same = DependencyParser(**settings).fit(train, validation=test)
    np.testing.assert_array_equal(model.weights_, same.weights_)
    np.testing.assert_array_equal(model.relation_weights_, same.relation_weights_)
    assert {name: getattr(model, name) for name in model.parameter_names()} == same.parameters()


def test_templates_from_a_file(folder):
    path = folder / "templates"
    path.write_text("# few\n\nh.upos|m.upos\n h.form|m.form \n")
    words = [
        "train",
        "parse",
        folder / "train.conllu",
        "--hash-bits",
        10,
        "--solver",
        "dca",
        "--epochs",
        1,
        "--quiet",
        "--templates",
    ]
    assert run(*words, path, "-o", folder / "few").exit_code == 0
    assert load(folder / "few").templates == ["h.upos|m.upos", "h.form|m.form"]
    refused = run(*words, path, "-o", path)
    assert refused.exit_code == 1 and "--templates, which would be lost" in refused.output
    path.write_text("# none\n")
    refused = run(*words, path, "-o", folder / "none")
    assert refused.exit_code == 1 and "nothing in it but blank lines and comments" in refused.output


def test_predict_keeps_the_text(folder):
    blank = (folder / "test.conllu").read_text().replace("\tnsubj\t", "\t_\t").replace("\troot\t", "\t_\t")
    (folder / "blank.conllu").write_text(blank)
    ran = run("predict", folder / "model", folder / "blank.conllu")
    assert ran.exit_code == 0 and ran.stdout == (folder / "test.conllu").read_text()
    out = folder / "out.conllu"
    counts = json.loads(run("predict", folder / "model", folder / "blank.conllu", "-o", out, "--json").stdout)
    assert out.read_text() == (folder / "test.conllu").read_text() and counts["sequences"] == 8


def test_other_forms(folder):
    lines = run("predict", folder / "model", folder / "test.conllu", "--format", "jsonl").stdout.splitlines()
    assert len(lines) == 8 and json.loads(lines[0])["heads"][:3] == [2, 0, 2]
    assert "┌─> " in run("predict", folder / "model", folder / "test.conllu", "--format", "tree").stdout
    picture = run("predict", folder / "model", folder / "test.conllu", "--format", "svg").stdout
    assert picture.startswith("<svg") and picture.count("<svg") == 9


def test_inspect(folder):
    shown = run("inspect", folder / "model").stdout
    assert "non-projective, one word below the root" in shown and "nsubj" in shown and "43 of arcs" in shown
    picture = folder / "tags.png"
    found = json.loads(run("inspect", folder / "model", "--top", "3", "--picture", picture, "--json").stdout)
    assert found["single_root"] is True and found["loss"] == "hinge" and found["training"]["epochs"] >= 1
    assert 0 < found["weights_not_zero"] < found["weights"] == 1 << found["hash_bits"]
    liked = {(a["head"], a["word"]) for a in found["attachments"]["for"]}
    assert {("V", "N"), ("root", "V")} & liked and len(found["attachments"]["for"]) == 3
    assert all(a["weight"] < 0 for a in found["attachments"]["against"])
    assert (found["relations_by_tags"]["nsubj"][0]["head"], found["relations_by_tags"]["nsubj"][0]["side"]) == ("V", "right")
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "N <- V (" in run("inspect", folder / "model", "--top", "3").stdout
    assert re.search(r"^C +0.05$", shown, re.MULTILINE)
    refused = run("inspect", folder / "model", "--transitions")
    assert refused.exit_code == 1 and "--transitions is for a model that labels sequences" in refused.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "parse", "missing.conllu", "-o", "m"], "No such file"),
        (["train", "parse", "{folder}/model", "-o", "{folder}/m"], "not valid utf-8"),
        (["train", "parse", "{folder}/train.conllu", "-o", "{folder}/m", "--loss", "x"], "'loss' parameter"),
        (
            ["train", "parse", "{folder}/circle.conllu", "-o", "{folder}/m"],
            "sentence 8: the heads of the words 1, 2 go in a circle",
        ),
        (["predict", "{folder}/model", "{folder}/test.conllu", "--kbest", "2"], "--kbest is for a model that labels sequences"),
        (["evaluate", "{folder}/model", "{folder}/train.json"], "expected 10 cells"),
        (
            ["predict", "{folder}/train.json", "{folder}/test.conllu", "--format", "svg"],
            "is not a partwise model",
        ),
    ],
)
def test_errors_in_words(folder, words, message):
    (folder / "circle.conllu").write_text((folder / "test.conllu").read_text() + as_conllu([WORDS], [([2, 1], ["x", "x"])]))
    ran = run(*(word.format(folder=folder) for word in words))
    assert ran.exit_code == 1 and message in ran.output, ran.output
