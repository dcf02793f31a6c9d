"""``partwise train classify``, ``predict``, ``evaluate``, ``inspect`` and ``suspects`` on tables and svmlight files."""

from __future__ import annotations

import gzip
import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

import partwise
from partwise.cli.app import app
from partwise.engine.compilation import interpret

COLOURS = np.array(["red", "white", "blue"])


def run(*words, **more):
    with interpret():
        return CliRunner().invoke(app, [str(word) for word in words], **more)


def said(*words):
    ran = run(*words)
    assert ran.exit_code == 0, ran.output
    return ran.stdout


def refused(*words):
    ran = run(*words)
    assert ran.exit_code == 1 and "Traceback" not in ran.output
    return ran.output


def flowers(n, seed=0):
    """Lengths in millimetres, widths in metres, colours: classes that are easily told apart."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 3, n)
    length, width = 100 * kind + rng.normal(0, 10, n), 0.001 * rng.normal(size=n)
    return [
        (f"{a:.2f}", f"{b:.5f}", str(COLOURS[(k + (rng.random() < 0.1)) % 3]), ("rose", "tulip", "daisy")[k])
        for a, b, k in zip(length, width, kind, strict=True)
    ]


def as_csv(rows, titles="length,width,colour,class"):
    return "\n".join(([titles] if titles else []) + [",".join(row) for row in rows]) + "\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("classify")
    (folder / "train.csv").write_text(as_csv(flowers(60)))
    (folder / "test.csv").write_text(as_csv(flowers(30, seed=1)))
    words = ["train", "classify", folder / "train.csv", "--dev", folder / "test.csv", "--scale", "-o", folder / "model"]
    (folder / "train.json").write_text(said(*words, "--solver", "dca", "--epochs", 10, "--json"))
    rows = [f"{row[3]} 1:{row[0]} 3:{float(row[1]) * 1000:.3f} # {row[2]}" for row in flowers(40)]
    (folder / "train.svm").write_text("\n".join(rows) + "\n")
    words = ["train", "classify", folder / "train.svm", "--loss", "crf", "--solver", "lbfgs", "--epochs", 30, "--scale"]
    said(*words, "-o", folder / "svm.model", "--quiet")
    return folder


def test_training_tells_what_it_did(folder, tmp_path):
    about = json.loads((folder / "train.json").read_text())
    assert about["task"] == "classify" and about["examples"] == 60 and about["labels"] == 3 and about["features"] == 5
    assert about["label_column"] == "class" and about["dev"]["accuracy"] > 0.9 and about["dev"]["f1"] > 0.9
    ran = run("train", "classify", folder / "train.csv", "-o", tmp_path / "m", "--solver", "dca", "--epochs", 1)
    assert "60 rows, 5 features, 3 classes; classes: column 'class', by its title" in ran.output
    assert re.search("note: some features are of size 1[0-9]{2}; --scale makes all alike", ran.output)


def test_the_class_trains_the_same_model(folder):
    model = partwise.load(folder / "svm.model")
    from partwise.tasks.classification.files import read_examples
    from partwise.tasks.classification.table_form import learn_form

    table = read_examples(folder / "train.svm")
    X = learn_form(table, None, (), "refuse").matrix(table)
    with interpret():
        twin = partwise.Classifier("crf", solver="lbfgs", max_epochs=30, scale=True).fit(X, table.rows.labels)
    np.testing.assert_array_equal(twin.weights_, model.weights_)
    assert twin.predict(X).tolist() == model.predict(X).tolist()


def test_predict(folder, tmp_path):
    rows = said("predict", folder / "model", folder / "test.csv").splitlines()
    truth = flowers(30, seed=1)
    assert rows[0] == "length,width,colour,class,predicted" and len(rows) == 31
    assert [row.rsplit(",", 1)[0] for row in rows[1:]] == [",".join(row) for row in truth]
    answers = [row.rsplit(",", 1)[1] for row in rows[1:]]
    assert np.mean([a == row[3] for a, row in zip(answers, truth, strict=True)]) > 0.9
    assert said("predict", folder / "model", folder / "test.csv", "--format", "labels").split() == answers
    (tmp_path / "bare.tsv").write_text("colour\tlength\twidth\n" + "".join(f"{c}\t{a}\t{b}\n" for a, b, c, _ in truth))
    found = [
        json.loads(line) for line in said("predict", folder / "model", tmp_path / "bare.tsv", "--format", "jsonl").splitlines()
    ]
    assert [row["label"] for row in found] == answers and found[0]["line"] == 2
    assert "which fits scores, not probabilities" in refused("predict", folder / "model", folder / "test.csv", "--marginals")
    calibrated = ("--marginals", "--calibrate", folder / "test.csv", "-o", tmp_path / "out.csv.gz", "--json")
    about = json.loads(said("predict", folder / "model", folder / "test.csv", *calibrated))
    assert about["examples"] == 30 and gzip.open(tmp_path / "out.csv.gz", "rt").readline().endswith("predicted,probability\n")


def test_predict_svmlight(folder):
    lines = said("predict", folder / "svm.model", folder / "train.svm").splitlines()
    given = (folder / "train.svm").read_text().splitlines()
    assert [line.split(None, 1)[1] for line in lines] == [line.split(None, 1)[1] for line in given]
    assert np.mean([a.split()[0] == b.split()[0] for a, b in zip(lines, given, strict=True)]) > 0.9
    first = json.loads(
        said("predict", folder / "svm.model", folder / "train.svm", "--format", "jsonl", "--all-marginals").splitlines()[0]
    )
    assert sum(first["probabilities"].values()) == pytest.approx(1.0) and first["probability"] == max(
        first["probabilities"].values()
    )
    assert "train.csv is a table; the model was trained on svmlight" in refused(
        "predict", folder / "svm.model", folder / "train.csv"
    )


def test_evaluate(folder, tmp_path):
    found = json.loads(said("evaluate", folder / "model", folder / "test.csv", "--confusion", "--json"))
    assert found["examples"] == 30 and found["accuracy"] == json.loads((folder / "train.json").read_text())["dev"]["accuracy"]
    low, high = found["intervals"]["accuracy"]
    assert low <= found["accuracy"] <= high and set(found["by_class"]) == {"daisy", "rose", "tulip"}
    assert sum(row["examples"] for row in found["confusion"]) == 30
    shown = said("evaluate", folder / "model", folder / "test.csv", "--no-intervals", "--confusion")
    assert "F1, mean over classes" in shown and "answered" in shown and "bootstrap" not in shown
    (tmp_path / "new.csv").write_text("length,width,colour,class\n100,0,red,orchid\n100,0,white,tulip\n")
    found = json.loads(said("evaluate", folder / "model", tmp_path / "new.csv", "--json"))
    assert found["by_class"]["orchid"]["recall"] == 0.0 and found["accuracy"] <= 0.5
    (tmp_path / "bare.csv").write_text("length,width,colour\n100,0,red\n")
    assert "no column of classes to compare with" in refused("evaluate", folder / "model", tmp_path / "bare.csv")


def test_inspect(folder, tmp_path):
    about = json.loads(said("inspect", folder / "model", "--top", 2, "--json"))
    assert about["classes"] == ["daisy", "rose", "tulip"] and about["scaled"] and about["columns"]["width"] == "numbers"
    assert about["columns"]["colour"] == ["blue", "red", "white"] and "length" in about["strongest"]["daisy"]
    shown = said("inspect", folder / "model", "--top", 1, "--label", "rose")
    assert "  rose\n" in shown and "  daisy\n" not in shown and "label_column" in shown
    assert "--label goes with --top" in refused("inspect", folder / "model", "--label", "rose")
    assert "there is no such class; there are 'daisy'" in refused("inspect", folder / "model", "--top", 1, "--label", "oak")
    pytest.importorskip("matplotlib")
    said("inspect", folder / "model", "--picture", tmp_path / "weights.png")
    assert (tmp_path / "weights.png").read_bytes()[:4] == b"\x89PNG"


def test_suspects(folder, tmp_path):
    rows = flowers(60)
    wrong = [*rows[:5], (*rows[5][:3], "daisy" if rows[5][3] != "daisy" else "rose"), *rows[6:]]
    (tmp_path / "wrong.csv").write_text(as_csv(wrong))
    words = ("suspects", folder / "model", tmp_path / "wrong.csv", "--truth", folder / "train.csv")
    found = json.loads(said(*words, "--json"))
    assert found["examples"] == 60 and found["truth"]["wrong"] == 1 and found["truth"]["recall"] == 1.0
    worst = found["suspects"][0]
    assert worst["line"] == 7 and worst["example"] == 5 and worst["given"] == wrong[5][3] and worst["believed"] == rows[5][3]
    assert "given" in said(*words, "--folds", 3)
    (tmp_path / "strange.csv").write_text("length,width,colour,class\n1,2,red,orchid\n")
    assert "line 2: the model knows no class 'orchid'" in refused("suspects", folder / "model", tmp_path / "strange.csv")


def test_options(folder, tmp_path):
    quick = ("--solver", "dca", "--epochs", 2, "--quiet", "-o", tmp_path / "m")
    (tmp_path / "plain.csv").write_text(as_csv(flowers(30), titles=""))
    said("train", "classify", tmp_path / "plain.csv", *quick, "--label-column", 3, "--drop", 1, "--balanced", "--hidden", 2)
    model = partwise.load(tmp_path / "m")
    assert model.class_weight == "balanced" and model.hidden == 2 and model.n_features_in_ == 4 and not model.table_["titled"]
    said("train", "classify", tmp_path / "plain.csv", *quick, "--no-intercept", "--label-column", "2", "--unknown-label", "red")
    model = partwise.load(tmp_path / "m")
    assert model.classes_.tolist() == ["blue", "white"] and model.intercept_.tolist() == [0.0, 0.0]
    (tmp_path / "names.csv").write_text("".join(f"name{k},{k % 3},{k % 2}\n" for k in range(30)))
    ran = run("train", "classify", tmp_path / "names.csv", "-o", tmp_path / "names", "--solver", "dca", "--epochs", 1)
    assert "note: there are 30 different words in column 0; --drop 0 leaves it out" in ran.output
    (tmp_path / "holes.csv").write_text("a,b,class\n1,,x\n2,3,y\n,4,x\n")
    said("train", "classify", tmp_path / "holes.csv", *quick, "--missing", "mean")
    assert "predicted" in said("predict", tmp_path / "m", tmp_path / "holes.csv")
    assert "must be one of refuse, zero, mean" in refused(
        "train", "classify", tmp_path / "holes.csv", *quick, "--missing", "guess"
    )
    said("train", "classify", folder / "train.csv", *quick, "--start-from", folder / "model")
    assert partwise.load(tmp_path / "m").warm_start


@pytest.mark.parametrize(
    ("text", "words", "message"),
    [
        ("", (), "there is nothing in it"),
        ("a,b,class\n1,2,x\n1,2\n", (), "line 3: expected 3 cells, as line 1 has. Got 2"),
        ("a,b,class\n1,2,x\n1,,y\n", (), "line 3, column 1 (b): there is no value"),
        ("a,b,class\n1,2,x\n1,2,\n", (), "line 3: there is no class"),
        ("a,a,class\n1,2,x\n", (), "line 1: two columns are called 'a'"),
        ("a,b,class\n1,2,x\n3,4,x\n", (), "all 2 rows are of one class, 'x'"),
        ("a,b\n1,0.5\n3,0.25\n", (), "line 2: 0.5 is a quantity, not a class"),
        ("a,b,class\n1,2,x\n", ("--label-column", "size"), "--label-column size: there is no such column"),
        ("a,b,class\n1,2,x\n", ("--drop", "size"), "--drop size: there is no such column"),
        ("a,b,class\n1,2,x\n1,inf,y\n", (), "line 3, column 1 (b): inf is not a finite number"),
        ("1 1:2\n2 1:a\n", (), "line 2: expected a class, and features as number:value"),
    ],
)
def test_bad_files(tmp_path, text, words, message):
    (tmp_path / "bad.csv").write_text(text)
    assert message in refused("train", "classify", tmp_path / "bad.csv", "-o", tmp_path / "model", *words)
    assert not (tmp_path / "model").exists()


def test_too_many_classes(tmp_path, monkeypatch):
    (tmp_path / "ids.csv").write_text("".join(f"{k % 7},{k // 2}\n" for k in range(2000)))
    monkeypatch.setattr("partwise.engine.memory.available_memory", lambda: 1e4)
    output = refused("train", "classify", tmp_path / "ids.csv", "-o", tmp_path / "model")
    assert "To learn 1,000 classes of 1 features, 2,000 weights," in output and "--label-column" in output


def test_a_model_of_a_matrix(tmp_path, folder):
    with interpret():
        partwise.Classifier(solver="dca", max_epochs=1).fit([[0.0], [1.0]], [0, 1]).save(tmp_path / "m")
    assert "trained on a matrix in Python, not on a file" in refused("predict", tmp_path / "m", folder / "test.csv")
    assert "feature 0" in said("inspect", tmp_path / "m", "--top", 1)
