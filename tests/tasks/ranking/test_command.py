"""``partwise train rank``, ``predict``, ``evaluate`` and ``inspect`` on queries."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from partwise.cli.app import app
from partwise.engine.compilation import interpret
from partwise.tasks.common.model_file import load
from partwise.tasks.ranking import files, scores
from partwise.tasks.ranking.command import COMMAND
from partwise.tasks.ranking.estimator import Ranker
from partwise.tasks.ranking.files import read_letor
from partwise.tasks.ranking.scores import members_of
from small_queries import as_letor, documents, fitted

pytestmark = pytest.mark.interpreted


def run(*words):
    with interpret():
        return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rank")
    (folder / "train.txt").write_text(as_letor(*documents()))
    (folder / "test.txt").write_text(as_letor(*documents(3, seed=1)))
    words = ["train", "rank", folder / "train.txt", "--dev", folder / "test.txt", "-o", folder / "model", "-C", 3]
    ran = run(*words, "--epochs", 20, "--json")
    assert ran.exit_code == 0, ran.output
    (folder / "train.json").write_text(ran.stdout)
    return folder


def test_training_tells_what_it_did(folder):
    about = json.loads((folder / "train.json").read_text())
    assert about["task"] == "rank" and about["examples"] == 6 and about["tokens"] == 30 and about["features"] == 3
    assert about["loss"] == "ramp_do" and about["solver"] == "pegasos" and about["dev"]["ndcg@10"] > 0.9
    pairs = run("train", "rank", folder / "train.txt", "--objective", "pairwise", "--raw", "-o", folder / "pairs", "--epochs", 5)
    assert pairs.exit_code == 0, pairs.output
    about = json.loads(run("inspect", folder / "pairs", "--json").stdout)
    assert about["loss"] == "hinge" and about["objective"] == "pairwise" and about["training"]["raw"] is True


def test_evaluate(folder):
    found = json.loads(run("evaluate", folder / "model", folder / "test.txt", "--json").stdout)
    assert found["ndcg@10"] == json.loads((folder / "train.json").read_text())["dev"]["ndcg@10"] and found["queries"] == 3
    assert {f"ndcg@{k}" for k in range(1, 11)} | {"map"} <= found.keys() and found["queries_without_relevant"] == 0
    (folder / "none.txt").write_text(as_letor(*documents(3, seed=1)) + "0 qid:none 1:1 2:1 3:1\n1 qid:one 1:1 2:1 3:1\n")
    shown = run("evaluate", folder / "model", folder / "none.txt").stdout
    assert "NDCG@10" in shown and "1 queries have nothing relevant" in shown


def test_evaluating_is_one_pass(folder, monkeypatch):
    calls = []
    monkeypatch.setattr(Ranker, "predict", lambda self, X, predict=Ranker.predict: calls.append("predict") or predict(self, X))
    for module in (files, scores):
        monkeypatch.setattr(module, "members_of", lambda names: calls.append("queries") or members_of(names))
    assert run("evaluate", folder / "model", folder / "test.txt").exit_code == 0
    assert calls == ["queries", "predict"]


def test_going_on_from_a_model(folder):
    """Features are read and scaled as those of the model were."""
    (folder / "two.txt").write_text(as_letor(*documents(4, seed=3), last=2))
    for raw in (["--raw"], []):
        assert run("train", "rank", folder / "train.txt", "-o", folder / "begun", "--epochs", 2, *raw).exit_code == 0
        words = ["train", "rank", folder / "two.txt", "--start-from", folder / "begun", "-o", folder / "more", "--epochs", 2]
        about = json.loads(run(*words, "--json").stdout)
        assert about["features"] == 3 and about["raw"] is bool(raw)


def test_defaults_are_those_of_the_class(tmp_path):
    file = COMMAND.workload(tmp_path)
    for objective in ("ndcg", "pairwise"):
        assert run("train", "rank", file, "--objective", objective, "-o", tmp_path / "model").exit_code == 0
        with interpret():
            same = Ranker(objective=objective).fit(read_letor(file))
        found = load(tmp_path / "model", plain=True)
        assert found.parameters() == same.parameters() and (found.weights_ == same.weights_).all()


def test_predict(folder):
    rows = [line.split("\t") for line in run("predict", folder / "model", folder / "test.txt").stdout.splitlines()]
    assert len(rows) == 15 and [row[0] for row in rows] == ["0"] * 5 + ["1"] * 5 + ["2"] * 5
    assert [int(row[1]) for row in rows[:5]] == [1, 2, 3, 4, 5] and rows[0][3].startswith("doc ")
    scores = np.array(run("predict", folder / "model", folder / "test.txt", "--format", "scores").stdout.split(), float)
    assert scores[int(rows[0][3].split()[1])] == pytest.approx(float(rows[0][2])) == scores[::3].max()
    first = json.loads(run("predict", folder / "model", folder / "test.txt", "--format", "jsonl").stdout.splitlines()[0])
    assert first["qid"] == "0" and first["ranking"][0]["note"] == rows[0][3]
    with interpret():
        ranker = fitted()  # in Python, where features are taken as they are
    ranker.save(folder / "python")
    scores = np.array(run("predict", folder / "python", folder / "test.txt", "--format", "scores").stdout.split(), float)
    np.testing.assert_allclose(scores, ranker.predict(documents(3, seed=1)[0]), rtol=1e-6)
    (folder / "fewer.txt").write_text(as_letor(*documents(3, seed=1), last=2))  # the last feature is zero in all of the file
    assert run("predict", folder / "model", folder / "fewer.txt").exit_code == 0


def test_inspect(folder):
    shown = run("inspect", folder / "model", "--top", 2)
    assert shown.exit_code == 0 and "largest weights" in shown.stdout, shown.output
    assert list(json.loads(run("inspect", folder / "model", "--top", 2, "--json").stdout)["largest"]) in (["1", "2"], ["2", "1"])
    pytest.importorskip("matplotlib")
    assert run("inspect", folder / "model", "--picture", folder / "weights.png").exit_code == 0
    assert (folder / "weights.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "rank", "missing.txt", "-o", "m"], "No such file"),
        (["train", "rank", "{folder}/bad.txt", "-o", "{folder}/m"], "line 2: relevance must be"),
        (["train", "rank", "{folder}/train.txt", "-o", "{folder}/m", "--loss", "crf"], "sums over all rankings"),
        (["train", "rank", "{folder}/train.txt", "-o", "{folder}/m", "--ties", "no"], "'ties' parameter"),
        (
            ["train", "rank", "{folder}/train.txt", "-o", "{folder}/m", "--dev", "{folder}/zero.txt"],
            "nothing is relevant in the 1",
        ),
        (["train", "rank", "{folder}/zero.txt", "-o", "{folder}/m"], "all documents are equally relevant"),
        (["predict", "{folder}/model", "{folder}/test.txt", "--kbest", "2"], "--kbest is for a model that labels sequences"),
        (["predict", "{folder}/model", "{folder}/wide.txt"], "there are 9 features, but the model was trained with 3"),
        (["predict", "{folder}/model", "{folder}/test.txt", "--format", "iob"], "are written as tsv, scores, jsonl"),
    ],
)
def test_bad_input(folder, words, message):
    (folder / "bad.txt").write_text("1 qid:1 1:2\n-1 qid:1 1:3\n")
    (folder / "zero.txt").write_text("0 qid:1 1:2\n0 qid:1 1:3\n")
    (folder / "wide.txt").write_text("1 qid:1 9:2\n")
    ran = run(*(word.format(folder=folder) for word in words))
    assert ran.exit_code != 0 and message in " ".join(ran.output.split()), ran.output
