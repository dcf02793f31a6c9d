"""``partwise train rank``, ``predict``, ``evaluate`` and ``inspect`` on queries."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from partwise.cli.app import app
from partwise.engine.compilation import interpret
from test_ranker import documents, fitted


def run(*words):
    with interpret():
        return CliRunner().invoke(app, [str(word) for word in words])


def as_letor(X, y, groups, last=3):
    lines = zip(X.tolist(), y, groups, strict=True)
    return "".join(
        f"{label} qid:{q} {' '.join(f'{f}:{v}' for f, v in enumerate(x[:last], 1))} #doc {i}\n"
        for i, (x, label, q) in enumerate(lines)
    )


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
    assert about["loss"] == "ramp_do" and about["solver"] == "sdm" and about["dev"]["ndcg@10"] > 0.9
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
        (["predict", "{folder}/model", "{folder}/test.txt", "--kbest", "2"], "--kbest is for models of sequences"),
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
