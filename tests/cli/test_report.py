"""The command: what it refuses, what it says, and the learning curve."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

from partwise import interpret, load
from partwise.cli.app import app
from partwise.cli.report import history_of, in_a_line
from partwise.tasks.common.registry import BY_VERB

pytestmark = pytest.mark.interpreted
WORDS = [(f"word{k}", "DNVP"[k % 4]) for k in range(12)]  # what has not been seen cannot be known


def run(*words):
    done = CliRunner().invoke(app, [str(word) for word in words])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.stdout, done.stderr


def corpus(n):
    """Sentences of two words each."""
    pairs = [(WORDS[k % 12], WORDS[(5 * k + 3) % 12]) for k in range(n)]
    return "\n\n".join("\n".join(" ".join(word) for word in pair) for pair in pairs) + "\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A training file, a test file, and a model."""
    path = tmp_path_factory.mktemp("report")
    (path / "train").write_text(corpus(20))
    (path / "test").write_text(corpus(6))
    with interpret():
        (path / "templates").write_text("w[0]\nw[-1]\n")
        words = ("-o", path / "model", "--epochs", "2", "-t", path / "templates", "-q")
        assert run("train", "tag", path / "train", *words)[0] == 0
    return path


def test_scores_for_people_and_a_learning_curve(folder):
    status, out, said = run(
        "report", folder / "model", folder / "test", "--learning-curve", "--train", folder / "train", "--json"
    )
    assert status == 0, said
    told = json.loads(out)
    points = told["learning_curve"]
    assert [point["examples"] for point in points] == [2, 5, 10, 20] and points[0]["measure"] == "accuracy"
    assert points[0]["value"] < points[-1]["value"] == told["scores"]["accuracy"]["value"]  # the same model as the given one
    assert "trained on 20 of 20 examples" in said and "tokens right" in said
    status, out, said = run("report", folder / "model", folder / "test", "--resamples", "0")
    assert status == 0 and "tokens right" in out and "bootstrap" not in out and "answers" in said


def test_what_is_trained_again_is_the_same_model(folder):
    model, command = load(folder / "model"), BY_VERB["tag"].command
    training = command.train_again(model, str(folder / "train"), vars(command.report_options()))
    training.fit(checkpoint=None)
    np.testing.assert_array_equal(training.estimator.weights_, model.weights_)


def test_refusals(folder):
    model, test = folder / "model", folder / "test"
    (folder / "one").write_text("word1\n\nword2\n")
    (folder / "strange").write_text("word0 X\nword1 Y\n")
    (folder / "few").write_text(corpus(5))
    for words, message in (
        ((model, test, "--learning-curve"), "--learning-curve and --train go together"),
        ((model, test, "--train", test), "--learning-curve and --train go together"),
        ((model, "-", "--learning-curve", "--train", test), "standard input can be read only once"),
        ((model, test, "--learning-curve", "--train", folder / "few"), "at least 16 examples. Got 5"),
        ((model, test, "--html", "-"), "--html is a file for a browser"),
        ((model, test, "--html", model), "would be lost"),
        ((model, folder / "one"), "no labels to compare with"),
        ((model, folder / "strange"), "the model knows none of its labels ('X', 'Y'"),
        ((model, folder / "nowhere"), "nowhere"),
        ((folder / "nothing", test), "There is no model file"),
    ):
        status, _, said = run("report", *words)
        assert status == 1 and message in said, (words, said)


def test_labels_of_one_kind_and_unknown_ones_are_noted(folder):
    (folder / "alike").write_text("word1 N\nword5 N\n")
    assert "all tokens of this file have the label N" in run("report", folder / "model", folder / "alike")[1]
    (folder / "mixed").write_text("word1 N\nword0 <b>\n")
    out = run("report", folder / "model", folder / "mixed")[1]
    assert "does not know these labels of the file, and answers them wrongly: <b>" in out


def test_histories_that_are_none():
    whole = {"metric": "ndcg@5", "epoch": [1, 2], "loss": [2.0, 1.0], "dev": [None, 0.5]}
    assert history_of(SimpleNamespace(training_={"history": whole})) == whole
    for wrong in (
        {},
        {"epoch": "12"},
        {"loss": [1.0]},
        {"loss": [1.0, float("inf")]},
        {"dev": [0.5, "<b>"]},
        {"metric": "$x$"},
        {"metric": None},
        {"epoch": [], "loss": [], "dev": []},
    ):
        history = {**whole, **wrong} if wrong else wrong
        assert history_of(SimpleNamespace(training_={"history": history})) is None, wrong
    assert history_of(SimpleNamespace(training_=None)) is None


def test_values_in_a_line():
    values = [True, None, 12345, 0.1234567, "a", list(range(20)), [], {"a": 1}, [[1]]]
    assert [in_a_line(value) for value in values] == [
        "yes", "", "12,345", "0.123457", "a", "20: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, …", "", "", ""
    ]  # fmt: skip
