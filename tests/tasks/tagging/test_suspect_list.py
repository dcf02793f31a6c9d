"""``partwise suspects`` of a column file."""

import json
import os

import numpy as np
import pytest
from typer.testing import CliRunner

from partwise.cli.app import app
from partwise.datasets import make_sentences, plant_errors


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A column file with planted errors, the same with correct labels, and a model of the former."""
    folder = tmp_path_factory.mktemp("suspects")
    sentences = make_sentences(120, 0)
    planted = plant_errors([[token[-1] for token in s] for s in sentences], 0.1, seed=0)
    bad = [[(*token[:-1], label) for token, label in zip(s, y, strict=True)] for s, y in zip(sentences, planted.y, strict=True)]
    for name, text in (("good", sentences), ("bad", bad)):
        (folder / name).write_text("\n\n".join("\n".join(map(" ".join, s)) for s in text) + "\n")
    assert (
        partwise(
            "train", "tag", folder / "bad", "-o", folder / "model", "--loss", "ramp", "--solver", "pegasos", "-C", "0.01", "-q"
        ).exit_code
        == 0
    )
    return folder, planted


def partwise(*words):

    return CliRunner().invoke(app, [str(word) for word in words])


def test_command_with_a_model(files):
    folder, planted = files
    out = folder / "out.tsv"
    result = partwise("suspects", folder / "model", folder / "bad", "--truth", folder / "good", "--json", "-o", out)
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    assert said["sequences"] == 120 and said["listed"] == len(said["suspects"]) > 0 and "total" in said["seconds"]
    assert said["truth"]["wrong"] == planted.changed.sum() and said["truth"]["average_precision"] > 0.9
    hits = [planted.changed[s["example"]] for s in said["suspects"]]
    assert said["truth"]["precision"] == pytest.approx(np.mean(hits)) and said["truth"]["found"] == sum(hits)
    worst = said["suspects"][0]
    assert len(worst["words"]) == len(worst["given"]) == len(worst["believed"])
    lines = (folder / "bad").read_text().splitlines()
    assert lines[worst["line"] - 1].split()[0] == worst["words"][0] and lines[worst["line"] - 1].split()[-1] == worst["given"][0]
    assert f"{said['listed']} of 120 sentences are listed" in result.stderr and "average precision" in result.stderr
    written = out.read_text().splitlines()
    assert len(written) == said["listed"] + 1 and written[1].split("\t")[0] == str(worst["example"])


def test_command_for_tokens_and_without_a_model(files):
    folder, planted = files
    result = partwise("suspects", "--train", folder / "bad", "--folds", "2", "--parts", "--top", "3", "--truth", folder / "good")
    assert result.exit_code == 0, result.output
    assert f"{planted.tokens.sum()} are wrong" in result.stdout and "the first 3 of" in result.stdout
    result = partwise("suspects", folder / "model", folder / "bad", "--parts", "--json", "-q")
    said = json.loads(result.stdout)
    assert result.stderr == ""
    lines = (folder / "bad").read_text().splitlines()
    for token in said["suspects"]:
        assert lines[token["line"] - 1].split()[0] == token["word"] and lines[token["line"] - 1].split()[-1] == token["given"]
    probabilities = [token["probability"] for token in said["suspects"]]
    assert probabilities == sorted(probabilities, reverse=True) and said["expected"] > 0 and said["noise"]["trust"] > 0
    fewer = json.loads(
        partwise("suspects", folder / "model", folder / "bad", "--parts", "--json", "-q", "--precision", 0.999).stdout
    )
    assert 0 < fewer["listed"] < said["listed"] and fewer["suspects"] == said["suspects"][: fewer["listed"]]


def test_command_refuses_in_words(files):
    folder, _ = files
    for words, message in (
        ((folder / "model",), "Give a model and a file"),
        (("--train", folder / "bad", folder / "bad"), "Give a model and a file"),
        (("--train", folder / "bad", "--folds", "1"), "--folds must be 0, or at least 2"),
        ((folder / "model", folder / "bad", "--precision", "0"), "--precision must be more than 0"),
        ((folder / "model", folder / "bad", "--json", "-o", "-"), "--json prints on stdout"),
        ((folder / "model", folder / "bad", "--label-column", "9"), "there are 3 columns"),
    ):
        result = partwise("suspects", *words)
        assert result.exit_code == 1 and message in result.stderr, result.output
    (folder / "short").write_text("a N O\n")
    result = partwise("suspects", folder / "model", folder / "bad", "--truth", folder / "short")
    assert result.exit_code == 1 and "it must have the sentences of" in result.stderr


@pytest.mark.parametrize("link", [None, os.link, os.symlink])
def test_the_list_is_not_written_over_what_is_read(files, tmp_path, link):
    folder, _ = files
    for name in ("model", "bad", "good"):
        before, path = (folder / name).read_bytes(), folder / name
        if link is not None:
            path = tmp_path / name
            link(folder / name, path)
        arguments = [folder / "model", folder / "bad", "--truth", folder / "good", "-o", path]
        result = partwise("suspects", *arguments)
        assert result.exit_code == 1 and "which would be lost; choose another name" in result.stderr, result.output
        result = partwise("suspects", "--train", folder / name, "-o", path)
        assert result.exit_code == 1 and "which would be lost; choose another name" in result.stderr, result.output
        assert (folder / name).read_bytes() == before
    assert "there is no folder" in partwise("suspects", folder / "model", folder / "bad", "-o", tmp_path / "no" / "out").stderr


def test_stdout_has_all_of_them(files):
    folder, _ = files
    listed = partwise("suspects", folder / "model", folder / "bad", "-o", "-").stdout
    titles, *rows = listed.splitlines()
    assert titles.split("\t") == ["example", "line", "probability", "text"] and all(row.count("\t") == 3 for row in rows) and rows
    tokens = partwise("suspects", folder / "model", folder / "bad", "-o", "-", "--parts", "--top", 2).stdout.splitlines()
    assert tokens[0].split("\t")[4:] == ["token", "word", "given", "believed"] and len(tokens) == 3


def test_options_of_other_tasks_are_refused_by_name(files, tmp_path):
    folder, _ = files
    (tmp_path / "table.csv").write_text("0.0,a\n1.0,b\n0.1,a\n0.9,b\n")
    trained = partwise("train", "classify", tmp_path / "table.csv", "-o", tmp_path / "model", "--solver", "dca", "-q")
    assert trained.exit_code == 0, trained.output
    for option in (("-C", 1), ("--comment", "#")):
        said = partwise("suspects", tmp_path / "model", tmp_path / "table.csv", *option).stderr
        assert f"{option[0]} is for a model that labels sequences" in said and f"{tmp_path / 'model'} classifies." in said
