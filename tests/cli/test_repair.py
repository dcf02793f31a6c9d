"""``partwise repair``: decisions applied to a file, and what they change for a model."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import small_queries
from partwise.cli.app import app
from partwise.cli.model_verbs import load
from partwise.cli.repair import reading_of, training_on
from partwise.datasets import make_sentences
from partwise.files.text_edits import EditableText
from partwise.tasks.common.command import Seconds, fitted
from partwise.tasks.common.decisions import Decisions
from partwise.tasks.common.registry import BY_VERB


def partwise(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def case(tmp_path):
    """A file, and how to write decisions about it."""
    file = tmp_path / "corpus.txt"
    file.write_bytes("the D X\ndög N Y\n\n\nit P X\n".encode())

    def decide(*changes, **reading):
        source = EditableText.read(str(file))
        edits = []
        for line, old, new in changes:
            begin = sum(len(text) + 1 for text in source.text.split(b"\n")[: line - 1])
            at = begin + source.text[begin:].index(old.encode())
            edits.append({"line": line, "at": at, "from": old, "to": new})
        said = {
            "format": "partwise decisions",
            "version": 1,
            "task": "tag",
            "file": {"name": "corpus.txt", "sha256": source.sha256, "encoding": "utf-8"},
            "reading": {"label_column": 2, **reading},
            "decisions": [{"item": k, "line": one["line"], "choice": "accept", "changes": [one]} for k, one in enumerate(edits)],
        }
        (tmp_path / "decisions.json").write_text(json.dumps(said))
        return file, tmp_path / "decisions.json", "-o", tmp_path / "out"

    return tmp_path, decide


def test_every_other_byte_stays(case):
    folder, decide = case
    result = partwise("repair", *decide((2, "Y", "ŽŽ"), (5, "X", "Q")))
    assert result.exit_code == 0, result.output
    assert (folder / "out").read_bytes() == "the D X\ndög N ŽŽ\n\n\nit P Q\n".encode()
    assert "2 labels of" in result.stdout and "2 accepted, 0 kept, 0 edited" in result.stdout
    result = partwise("repair", *decide(), "--json", "-q")
    said = json.loads(result.stdout)
    assert said["changes"] == 0 and (folder / "out").read_bytes() == (folder / "corpus.txt").read_bytes() and result.stderr == ""
    result = partwise("repair", *decide((2, "Y", "Z"))[:2], "-o", "-")
    assert result.stdout_bytes == (folder / "corpus.txt").read_bytes().replace(b"Y", b"Z")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ((1, "the", "a"), "would change more than labels"),
        ((2, "Y", "Y Z"), "expected 3 columns"),
        ((2, "Y", "Y\n\nthe D X"), "would change more than labels"),
        ((2, "Y", ""), "expected 3 columns"),
    ],
)
def test_what_is_no_label_is_refused(case, change, message):
    folder, decide = case
    result = partwise("repair", *decide(change))
    assert result.exit_code == 1 and message in result.stderr and not (folder / "out").exists()


def test_refusals(case):
    folder, decide = case
    words = decide((2, "Y", "Z"))
    (folder / "other.txt").write_text("a B C\n")
    for more, message in (
        (words[:3] + (folder / "corpus.txt",), "which would be lost"),
        (("-", *words[1:]), "standard input"),
        ((*words, "--like", folder / "model"), "goes with --retrain"),
        ((folder / "other.txt", *words[1:]), "is another one"),
        ((folder / "none.txt", *words[1:]), "No such file"),
        ((words[0], words[0], *words[2:]), "is not a file of decisions"),
    ):
        result = partwise("repair", *more)
        assert result.exit_code == 1 and message in result.stderr, result.output
        assert not (folder / "out").exists()
    for reading, message in (
        ({"templates": "passwords.txt"}, "not read with 'templates'"),
        ({"label_column": 7}, "there are 3"),
        ({"label_column": "last"}, "damaged or was altered"),
        ({"separator": 3}, "must be None or a string"),
        ({"comment": [1]}, "damaged or was altered"),
    ):
        result = partwise("repair", *decide((2, "Y", "Z"), **reading))
        assert result.exit_code == 1 and message in result.stderr, result.output
    said = json.loads((folder / "decisions.json").read_text())
    (folder / "decisions.json").write_text(json.dumps({**said, "task": "swim"}))
    result = partwise("repair", *words)
    assert result.exit_code == 1 and "no task 'swim' whose files can be corrected" in result.stderr


@pytest.mark.interpreted
def test_like_a_tagger_is_with_its_templates(case):
    folder, decide = case
    file, path = decide(label_column=2)[:2]
    (folder / "templates").write_text("w[0]\nw[-1]|w[0]\n")
    assert partwise("train", "tag", file, "-t", folder / "templates", "--epochs", 2, "-o", folder / "model", "-q").exit_code == 0
    decided = Decisions.read(path)
    (task, options), like = reading_of(decided), load(folder / "model")[0]
    again = fitted(training_on(task, decided, options, like, str(file)))
    assert again.encoder_.feature_names() == like.encoder_.feature_names()
    np.testing.assert_array_equal(again.weights_, like.weights_)
    assert training_on(task, decided, options, None, str(file)).estimator.templates == task.core().templates


@pytest.mark.interpreted
def test_a_ranker_trained_again_knows_whether_its_features_are_scaled(tmp_path):
    X, y, groups = small_queries.documents()
    (tmp_path / "train").write_text(small_queries.as_letor(X, y, groups))
    task = BY_VERB["rank"]
    decided = Decisions("d", "rank", "train", "", "utf-8", {"encoding": "utf-8"}, {}, [])
    options, seconds = task.command.options(), Seconds()
    scores = {}
    for raw in (False, True):
        words = ("--raw",) if raw else ()
        assert partwise("train", "rank", tmp_path / "train", *words, "--epochs", 3, "-o", tmp_path / "model", "-q").exit_code == 0
        like = load(tmp_path / "model")[0]
        made = fitted(training_on(task, decided, options, like, str(tmp_path / "train")))
        assert made.training_["raw"] is raw
        told = [
            task.command.evaluate(one, str(tmp_path / "train"), task.command.evaluate_options(), seconds) for one in (made, like)
        ]
        assert told[0].found == told[1].found
        scores[raw] = made.weights_.tolist()
    assert scores[True] != scores[False]


@pytest.mark.slow
def test_retrain_shows_the_scores_before_and_after(case):
    folder, decide = case
    sentences = make_sentences(60, 0)
    (folder / "held").write_text("\n\n".join("\n".join(map(" ".join, s)) for s in sentences[30:]) + "\n")
    (folder / "corpus.txt").write_text("\n\n".join("\n".join(map(" ".join, s)) for s in sentences[:30]) + "\n")
    label = sentences[0][0][-1]
    words = decide((1, label, "Q-Q"))
    result = partwise("repair", *words, "--retrain", folder / "held", "--json")
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    assert set(said["before"]) == set(said["after"]) >= {"accuracy", "f1"} and 0.5 < said["before"]["accuracy"] <= 1
    assert "before" in result.stderr and "difference" in result.stderr
    (folder / "out").unlink()
    (folder / "held").write_text("one\ntwo three\n")
    result = partwise("repair", *words, "--retrain", folder / "held")
    assert result.exit_code == 1 and not (folder / "out").exists()  # noticed before anything is written
