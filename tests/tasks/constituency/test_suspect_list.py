"""``partwise suspects`` of trees in brackets."""

import json

import pytest
from typer.testing import CliRunner

from partwise.cli.app import app

pytestmark = [pytest.mark.interpreted, pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")]
GOOD = "(S (NP (DT the) (NN dog)) (VP (VBZ sees) (NP (NN cats))))\n\n(S (NP (NN cats)) (VP (VBZ see) (NP (DT the) (NN dog))))\n"
RIGHT = "(S\n  (NP (DT a) (NN dog))\n  (VP (VBZ sees) (NP (NN mice))))\n"
WRONG = "(S\n  (NP (DT a) (NN dog))\n  (VP (NP (VBZ sees) (NN mice))))\n"


def partwise(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def test_brackets_trees_and_a_page(tmp_path):
    pytest.importorskip("jinja2")
    (tmp_path / "good").write_text(GOOD + RIGHT)
    (tmp_path / "bad").write_text(GOOD + WRONG)
    (tmp_path / "learnt").write_text(2 * GOOD + WRONG)
    (tmp_path / "templates").write_text("f.tag|l.tag\nf.tag\n")
    result = partwise("train", "constituency", tmp_path / "learnt", "-o", tmp_path / "model", "--hash-bits", "8", "--epochs", "3",
                      "--templates", tmp_path / "templates", "-q")  # fmt: skip
    assert result.exit_code == 0, result.output
    common = (
        "suspects",
        tmp_path / "model",
        tmp_path / "bad",
        "--folds",
        "0",
        "--precision",
        "0.01",
        "--truth",
        tmp_path / "good",
    )
    result = partwise(*common, "--json", "--html", tmp_path / "page.html")
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    worst = said["suspects"][0]
    assert said["truth"]["average_precision"] == 1.0 and said["sequences"] == 3 and said["brackets"] == 11
    assert worst["line"] == 4 and worst["given"] == "(S (NP (DT a) (NN dog)) (VP (NP (VBZ sees) (NN mice))))"
    assert "[VP+NP sees mice > VP] +NP mice" in result.stderr and '"shape": "brackets"' in (tmp_path / "page.html").read_text()
    result = partwise(*common, "--parts", "-o", tmp_path / "out.tsv")
    assert result.exit_code == 0, result.output
    rows = [line.split("\t") for line in (tmp_path / "out.tsv").read_text().splitlines()]
    assert rows[0][4:] == ["begin", "end", "given", "believed"] and rows[1][3:] == ["sees mice", "2", "4", "VP+NP", "VP"]
    (tmp_path / "other").write_text(GOOD)
    result = partwise(*common[:-1], tmp_path / "other")
    assert result.exit_code == 1 and "must have the sentences of" in result.stderr
