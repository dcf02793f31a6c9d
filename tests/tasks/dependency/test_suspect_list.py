"""``partwise suspects`` of a treebank."""

import json

import pytest
from typer.testing import CliRunner

from partwise.cli.app import app
from small_treebanks import as_conllu, sentences

pytestmark = [pytest.mark.interpreted, pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")]


def partwise(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A small treebank, one with a wrong head and a wrong relation, and a model of the former."""
    import partwise as library

    folder = tmp_path_factory.mktemp("suspects")
    X, y = sentences(8)
    good = as_conllu(X, y).replace("1\t", "# a comment\n1-2\tboth\t_\t_\t_\t_\t_\t_\t_\t_\n1\t", 1)
    first, second = "2\tnsubj", "2\tobj"
    bad = good.replace(second, "1\tobj", 1)
    at = bad.rindex(first)
    (folder / "good").write_text(good)
    (folder / "bad").write_text(bad[:at] + "2\tpunct" + bad[at + len(first) :])
    (folder / "templates").write_text("h.upos|m.upos\nh.upos\nm.form\n")
    with library.interpret():
        result = partwise("train", "parse", folder / "good", "-o", folder / "model", "--templates", folder / "templates",
                          "--hash-bits", "8", "--epochs", "6", "-q")  # fmt: skip
    assert result.exit_code == 0, result.output
    return folder


def test_words_sentences_and_a_page(files):
    bad, lines = files / "bad", (files / "bad").read_text().splitlines()
    common = ("suspects", files / "model", bad, "--folds", "0", "--precision", "0.3", "--truth", files / "good", "--json")
    result = partwise(*common, "--parts", "-o", files / "out.tsv")
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    assert said["folds"] == 0 and said["sequences"] == 8 and said["truth"]["wrong"] == 2
    assert said["truth"]["average_precision"] == 1.0
    for found in said["suspects"][:2]:
        cells = lines[found["line"] - 1].split("\t")
        assert cells[0] == str(found["word"]) and cells[1] == found["form"]
        assert [int(cells[6]), cells[7]] == found["given"] and found["believed"] in ([2, "obj"], [2, "nsubj"])
    written = [line.split("\t") for line in (files / "out.tsv").read_text().splitlines()]
    assert written[0][4:] == ["word", "form", "given", "believed"] and len(written) == said["listed"] + 1
    assert {row[6].split(" ")[-1] for row in written[1:3]} == {"obj", "punct"} and ":" in written[1][6]
    if pytest.importorskip("jinja2"):
        result = partwise(*common, "--html", files / "page.html")
        assert result.exit_code == 0, result.output
        said = json.loads(result.stdout)
        assert {one["example"] for one in said["suspects"][:2]} == {0, 7} and said["truth"]["recall"] == 1.0
        assert "[" in result.stderr and " > 2:" in result.stderr and '"shape": "heads"' in (files / "page.html").read_text()


def test_a_truth_of_other_sentences_is_refused(files):
    result = partwise("suspects", files / "model", files / "bad", "--folds", "0", "--truth", files / "model")
    assert result.exit_code == 1
    (files / "short").write_text("1\tYes\t_\tX\t_\t_\t0\troot\t_\t_\n")
    result = partwise("suspects", files / "model", files / "bad", "--folds", "0", "--truth", files / "short")
    assert result.exit_code == 1 and "must have the sentences of" in result.stderr
