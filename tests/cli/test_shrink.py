"""``partwise shrink``: smaller files, and what they do to the scores."""

import json

import pytest
from typer.testing import CliRunner

from partwise.cli.app import app
from small_taggers import TRAIN


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shrink")
    (folder / "train.txt").write_bytes(TRAIN)
    run("train", "tag", folder / "train.txt", "-o", folder / "model", "--quiet")
    return folder / "model", folder / "train.txt"


def run(*arguments, fails=False):
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert (result.exit_code != 0) == fails, result.output
    return result


@pytest.mark.parametrize("how", ["--float16", "--int8", "--cut"])
def test_smaller_and_checked(model, tmp_path, how):
    path, data = model
    more = [how, "0.01"] if how == "--cut" else [how]
    told = json.loads(run("shrink", path, "-o", tmp_path / "m", *more, "--check", data, "--json", "-q").stdout)
    assert told["bytes"] == path.stat().st_size and told["bytes_now"] == (tmp_path / "m").stat().st_size
    assert told["before"].keys() == told["now"].keys() >= {"accuracy"} and (told["cut"] > 0) == (how == "--cut")
    assert abs(told["before"]["accuracy"] - told["now"]["accuracy"]) < 0.1
    assert how == "--cut" or told["bytes_now"] < told["bytes"]
    now = json.loads(run("evaluate", tmp_path / "m", data, "--json", "--no-intervals").stdout)
    assert now["accuracy"] == told["now"]["accuracy"]


def test_for_people(model, tmp_path):
    path, data = model
    text = run("shrink", path, "-o", tmp_path / "m", "--cut", "1e9", "--check", data).stdout
    assert "weights cut" in text and "accuracy: " in text and "now " in text
    assert "(-0." in text  # without weights there are more errors


def test_what_makes_no_sense(model, tmp_path):
    path, data = model
    assert "choose one" in run("shrink", path, "-o", tmp_path / "m", "--int8", "--float16", fails=True).stderr
    assert "not a partwise model" in run("shrink", data, "-o", tmp_path / "m", fails=True).stderr
    assert not (tmp_path / "m").exists()
