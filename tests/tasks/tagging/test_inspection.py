"""``partwise inspect`` of a model of sequences."""

import json
import math

import numpy as np
import pytest
from typer.testing import CliRunner

from conftest import without_matplotlib
from partwise.cli.app import app
from partwise.tasks.tagging.inspection import explain, top_features, transitions
from partwise.text.columns import read_columns
from small_taggers import TEST, tagger, value_labeler

pytestmark = pytest.mark.interpreted


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inspect")
    tagger().save(folder / "tagger.model")
    value_labeler().save(folder / "attributes.model")
    (folder / "test.txt").write_bytes(TEST)
    return folder


def run(*arguments):
    return CliRunner().invoke(app, ["inspect", *map(str, arguments)])


def machine(*arguments):
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def refused(*arguments):
    result = run(*arguments)
    assert result.exit_code == 1 and result.stderr.startswith("partwise: error: ")
    return result.stderr


def test_the_verb_for_machines(folder):
    model, path = tagger(), folder / "tagger.model"
    about = machine(path, "--top", 2, "--label", "O", "--transitions", "--features", "w", "--most", 5)
    assert about["bytes"] == path.stat().st_size and about["solver"] == "dca"
    expected = top_features(model, 2, "O")["O"].negative
    assert about["top_features"]["O"]["negative"] == [{"feature": f.name, "weight": f.weight} for f in expected]
    np.testing.assert_array_equal(about["transition_weights"]["weights"], transitions(model).weights)
    assert len(about["found_features"]) == 5 and about["found_features"][0]["weights"].keys() == set(model.classes_.tolist())
    assert "transition_weights" not in machine(path)


def test_the_verb_explains(folder):
    columns = read_columns(TEST)
    i = 1
    line = int(columns.starts[i]) + i + 2 + 1  # blank lines before, two tokens before, and lines count from 1
    found = machine(folder / "tagger.model", "--explain", folder / "test.txt", "--line", line)["explanation"]
    why = explain(tagger(), columns, i, 2)
    assert (found["sentence"], found["token"], found["label"], found["against"]) == (i, 2, why.label, why.against)
    assert found["cells"] == " ".join(columns[i][2])
    parts = [one["difference"] for part in ("features", "transitions", "elsewhere") for one in found[part]]
    assert math.fsum(parts) == found["difference"] == why.difference
    place = ("--sentence", i, "--token", 2)
    assert machine(folder / "tagger.model", "--explain", folder / "test.txt", *place)["explanation"] == found
    shown = run(folder / "tagger.model", "--explain", folder / "test.txt", *place).stdout
    assert f"{why.label} rather than {why.against}" in shown and f"{why.difference:+.4f}" in shown


def test_the_verb_for_people(folder):
    shown = run(folder / "tagger.model").stdout
    assert "w[0], pos[0], pos[-1]|pos[0]" in shown and "B-NP, B-VP, I-NP, I-VP, O" in shown and "hinge" in shown
    shown = run(folder / "tagger.model", "--top", 1, "--transitions", "--features", "^pos.0.=D$").stdout
    best = top_features(tagger(), 1)["B-NP"].positive[0]
    assert best.name in shown and f"{best.weight:+.4f}" in shown and "from (row) to (column)" in shown and "1 features" in shown
    assert run(folder / "attributes.model", "--top", 2).exit_code == 0


def test_a_picture(folder, tmp_path, monkeypatch):
    path = tmp_path / "transitions.png"
    assert run(folder / "tagger.model", "--picture", path).exit_code == 0
    assert path.read_bytes().startswith(b"\x89PNG")
    assert "there is no folder" in refused(folder / "tagger.model", "--picture", tmp_path / "no" / "a.png")
    assert "'xyz' is not supported" in refused(folder / "tagger.model", "--picture", tmp_path / "a.xyz")
    assert not (tmp_path / "a.xyz").exists()
    without_matplotlib(monkeypatch)
    assert 'pip install "partwise[plot]"' in refused(folder / "tagger.model", "--picture", path)


def test_bad_requests_of_the_verb(folder, tmp_path):
    model, text = folder / "tagger.model", folder / "test.txt"
    assert "There is no model file" in refused(tmp_path / "no.model")
    assert "is not a partwise model" in refused(text)
    assert "Say which token" in refused(model, "--explain", text)
    assert "Say which token" in refused(model, "--explain", text, "--sentence", 1)
    assert "give the file" in refused(model, "--line", 3)
    assert "there is no token on line 999999" in refused(model, "--explain", text, "--line", 999999)
    assert "There is no sequence 99" in refused(model, "--explain", text, "--sentence", 99, "--token", 0)
    assert "'XX' is not one of the labels B-NP" in refused(model, "--label", "XX")
    assert "'XX' is not one of the labels" in refused(model, "--explain", text, "--line", 1, "--against", "XX")
    assert "not on column files" in refused(folder / "attributes.model", "--explain", text, "--line", 1)
    assert "not a regular expression" in refused(model, "--features", "(")
