"""``partwise train graph``, ``predict``, ``evaluate`` and ``inspect`` on graphs and pictures."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from graph_cases import paths
from partwise.cli.app import app
from partwise.datasets import make_pictures, write_graphs
from partwise.engine.compilation import interpret


def run(*words):
    with interpret():
        return CliRunner().invoke(app, [str(word) for word in words])


def said(*words):
    ran = run(*words)
    assert ran.exit_code == 0, ran.output
    return ran.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("graph")
    write_graphs(folder / "train.jsonl", *paths(6, edge_features=True))
    write_graphs(folder / "test.jsonl", *paths(3, seed=1, edge_features=True))
    images, labels = make_pictures(4, size=(4, 4), n_labels=3, noise=0.1)
    np.savez(folder / "pictures.npz", images=images, labels=np.where(np.arange(4) > 2, 255, labels))
    words = ["train", "graph", folder / "train.jsonl", "--dev", folder / "test.jsonl", "-o", folder / "model", "--epochs", 4]
    (folder / "train.json").write_text(said(*words, "--json"))
    words = ["train", "graph", folder / "pictures.npz", "-o", folder / "picture.model", "--epochs", 3, "--unknown", 255]
    (folder / "picture.json").write_text(said(*words, "--contrast", "--pairwise", "potts", "-C", 1.0, "--json"))
    return folder


def test_training_tells_what_it_did(folder):
    about = json.loads((folder / "train.json").read_text())
    assert about["task"] == "graph" and about["examples"] == 6 and about["features"] == 3 and about["edge_features"] == 2
    assert about["solver"] == "dca" and about["dev"]["accuracy"] > 0.8 and about["dev"]["proven"] == 1.0
    assert about["not_proven"] == 0 and about["labels"] == 3
    about = json.loads((folder / "picture.json").read_text())
    assert about["labels"] == 3 and about["nodes"] == 64 and about["edge_features"] == 3


def test_evaluate(folder):
    found = json.loads(said("evaluate", folder / "model", folder / "test.jsonl", "--json"))
    assert found["graphs"] == 3 and found["accuracy"] > 0.8 and set(found["by_label"]) == {"a", "b", "c"}
    shown = said("evaluate", folder / "model", folder / "test.jsonl")
    assert "right nodes" in shown and "IoU" in shown and "100.00 %" in shown
    found = json.loads(said("evaluate", folder / "picture.model", folder / "pictures.npz", "--json"))
    assert found["labelled_nodes"] == 48 and 0.5 < found["accuracy"] <= 1.0 and 0 < found["mean_iou"] <= 1.0
    bare = folder / "bare.jsonl"
    write_graphs(bare, paths(2, edge_features=True)[0])
    assert "bare.jsonl, line 1: there are no labels to compare with" in run("evaluate", folder / "model", bare).output


def test_predict(folder):
    rows = [json.loads(line) for line in said("predict", folder / "model", folder / "test.jsonl").splitlines()]
    assert len(rows) == 3 and rows[0].keys() == {"nodes", "edges", "edge_features", "labels"}
    lines = said("predict", folder / "model", folder / "test.jsonl", "--format", "labels").splitlines()
    assert [line.split("\t") for line in lines] == [row["labels"] for row in rows]
    assert "draws pictures" in run("predict", folder / "model", folder / "test.jsonl", "--format", "svg").output
    labels = [
        json.loads(line)["labels"] for line in said("predict", folder / "picture.model", folder / "pictures.npz").splitlines()
    ]
    assert np.shape(labels) == (4, 4, 4)
    text = said("predict", folder / "picture.model", folder / "pictures.npz", "--format", "labels")
    assert text.count("\n\n") == 4 and text.splitlines()[0].split("\t") == [str(label) for label in labels[0][0]]
    picture = said("predict", folder / "picture.model", folder / "pictures.npz", "--format", "svg")
    assert picture.startswith("<svg") and picture.count("<svg") == 5 and "<rect" in picture
    assert (
        "--kbest is for a model that labels sequences"
        in run("predict", folder / "model", folder / "test.jsonl", "--kbest", 2).output
    )


def test_inspect(folder, tmp_path):
    shown = said("inspect", folder / "model", "--top", 2)
    assert "feature 0: weights of pairs" in shown and "what speaks for a label" in shown and "symmetric" not in shown
    about = json.loads(said("inspect", folder / "picture.model", "--top", 1, "--json"))
    assert about["kind"] == "pictures" and set(about["pairwise_weights"]) == {"right", "down", "contrast"}
    assert len(about["strongest"]["0"]) == 1 and np.shape(about["pairwise_weights"]["right"]) == (3, 3)
    pytest.importorskip("matplotlib")
    said("inspect", folder / "picture.model", "--picture", tmp_path / "pairs.png")
    assert (tmp_path / "pairs.png").read_bytes()[:4] == b"\x89PNG"


def test_bad_input(folder, tmp_path):
    (tmp_path / "bad.jsonl").write_text('{"nodes": [[1], [2]], "edges": [[0, 7]], "labels": [0, 1]}\n')
    ran = run("train", "graph", tmp_path / "bad.jsonl", "-o", tmp_path / "model")
    assert ran.exit_code == 1 and "graph 0, edge 0: nodes [0, 7], but the graph has 2 nodes" in ran.output
    ran = run("train", "graph", folder / "train.jsonl", "-o", tmp_path / "model", "--pairwise", "some")
    assert ran.exit_code != 0 and "'full', 'symmetric', 'antisymmetric', 'potts'" in ran.output
    assert "there are no graphs" in run("train", "graph", "/dev/null", "-o", tmp_path / "model").output
