"""Suspects of a column file for the page: where labels stand, what is believed, how surely and why."""

import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

from partwise.cli.app import app
from partwise.datasets import make_sentences, plant_errors
from partwise.files.text_edits import EditableText, TextEdit
from partwise.tasks.common.model_file import load
from partwise.tasks.tagging import review
from partwise.tasks.tagging.files import Source

pytest.importorskip("jinja2")


def partwise(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A column file with planted errors, its labels in the last column and in the middle one, and models of it."""
    folder = tmp_path_factory.mktemp("review")
    sentences = make_sentences(80, 0)
    planted = plant_errors([[token[-1] for token in s] for s in sentences], 0.1, seed=0)
    bad = [[(*token[:-1], label) for token, label in zip(s, y, strict=True)] for s, y in zip(sentences, planted.y, strict=True)]
    (folder / "bad").write_text("\n\n".join("\n".join(map(" ".join, s)) for s in bad) + "\n")
    assert partwise("train", "tag", folder / "bad", "-o", folder / "model", "--loss", "crf", "-C", "0.01", "-q").exit_code == 0
    return folder


def page_of(folder, *words, file="bad", model="model"):
    """The data of the page that is made."""
    result = partwise("suspects", folder / model, folder / file, "--html", folder / "page.html", "-q", *words)
    assert result.exit_code == 0, result.output
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', (folder / "page.html").read_text(), re.S)
    return json.loads(found[1])


def assert_cells_are_there(data, content, encoding="utf-8"):
    source = EditableText.of(content, "bad", encoding)
    assert data["file"]["sha256"] == source.sha256
    for passage in data["passages"]:
        for k, begin in enumerate(passage["begins"]):
            label = data["labels"][passage["given"][k]]
            line = passage["lines"][k] if "lines" in passage else passage["line"] + k
            assert source.holds(TextEdit(passage["at"] + begin, label, "")) and source.line(passage["at"] + begin) == line


def test_sentences(folder):
    data = page_of(folder)
    listed = json.loads(partwise("suspects", folder / "model", folder / "bad", "--json", "-q").stdout)["suspects"]
    assert len(data["items"]) == len(listed) > 3 and data["whole"]
    assert_cells_are_there(data, (folder / "bad").read_bytes())
    for item, suspect in zip(data["items"], listed, strict=True):
        passage = data["passages"][item["passage"]]
        assert passage["words"] == suspect["words"] and passage["line"] == suspect["line"]
        assert item["wrong"] == pytest.approx(suspect["probability"], rel=1e-4)
        found = [(doubt["word"], data["labels"][doubt["believed"]]) for doubt in item["doubts"]]
        assert found == [(part["part"], part["believed"]) for part in suspect["parts"]]
    doubt = data["items"][0]["doubts"][0]
    assert 0 <= doubt["sure"][0] < doubt["sure"][1] <= 1
    assert doubt["why"] and all(isinstance(name, str) and value for name, value in doubt["why"])


def test_tokens(folder):
    data = page_of(folder, "--parts", "--top", "5")
    assert len(data["items"]) == 5 and not data["whole"]
    assert all(len(item["doubts"]) == 1 for item in data["items"]) and len(data["passages"]) <= 5
    assert_cells_are_there(data, (folder / "bad").read_bytes())


@pytest.mark.parametrize("separator", [" ", "\t"])
def test_labels_in_any_column_with_any_line_ends(folder, separator):
    rows = [line.split() for line in (folder / "bad").read_text().split("\n")]
    lines = [separator.join([row[0], row[-1], *row[1:-1]]) if row else "" for row in rows]
    content = ("\ufeff# é\r\n" + "\r\n".join(lines)).encode()
    (folder / "middle").write_bytes(content)
    words = ("--comment", "#", *(() if separator == " " else ("-s", "tab")))
    train = ("train", "tag", folder / "middle", "-o", folder / "middle.model", "--label-column", "1", "-t", "words")
    assert partwise(*train, *words, "--loss", "crf", "-C", "0.01", "-q").exit_code == 0
    data = page_of(folder, *words, file="middle", model="middle.model")
    assert data["items"] and data["reading"]["label_column"] == 1
    assert_cells_are_there(data, content)


def test_folds_and_no_model_at_all(folder):
    """Reasons are those of the model that has judged the sentence."""
    data = page_of(folder, "--folds", "2")
    doubts = [doubt for item in data["items"] for doubt in item["doubts"]]
    assert doubts and all(doubt["why"] and doubt["sure"][0] < 1 for doubt in doubts)
    words = ("--train", folder / "bad", "--html", folder / "page.html", "--folds", "2", "--parts", "-q")
    result = partwise("suspects", *words)
    assert result.exit_code == 0, result.output
    assert "believed" in (folder / "page.html").read_text()


@pytest.mark.parametrize("folds", [None, 3])
def test_reasons_add_up_where_one_word_differs(folder, folds):
    """Of a sentence with one word in doubt, the differences of all weights are that of the scores of both labellings."""
    model = load(folder / "model")
    columns, judges = Source().columns(str(folder / "bad")), []
    judged = model.judge(columns, columns.labels(-1), folds=folds, judges=judges)
    data = review.JudgedColumns(model, columns, judged, columns.n_columns - 1, Source(), judges)
    shown = np.argsort(-judged.found.examples).tolist()
    reasons = review.Reasons(data, shown)
    tried = 0
    for k, i in enumerate(shown):
        doubted = judged.doubted(i)
        if len(doubted) == 1:
            tried += 1
            found = dict(reasons.of(k, doubted[0], most=1000))
            given, believed = (judges[data.parts[i]].decision_value(columns.take([i]), [y])[0] for y in judged.example(i))
            assert sum(found.values()) == pytest.approx(believed - given, rel=1e-3)
    assert tried


def test_a_corpus_with_one_label_and_a_model_that_believes_all(folder):
    (folder / "one").write_text("a X\nb X\n\nc X\n" * 4)
    assert partwise("train", "tag", folder / "one", "-o", folder / "one.model", "-q").exit_code == 0
    data = page_of(folder, file="one", model="one.model")
    assert data["items"] == data["passages"] == [] and data["labels"] == ["X"]


def test_another_scheme_is_written_as_the_file_has_it(folder):
    train = ("train", "tag", folder / "bad", "-o", folder / "iobes", "--scheme", "iobes", "--loss", "crf", "-C", "0.01", "-q")
    if partwise(*train).exit_code:
        pytest.skip("these labels are no chunk labels")
    data = page_of(folder, model="iobes")
    assert not {label[:2] for label in data["labels"]} & {"S-", "E-"}
    assert_cells_are_there(data, (folder / "bad").read_bytes())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--html", "-"), "give it a name"),
        (("--html", "bad"), "is the file to read"),
    ],
)
def test_refusals(folder, words, message, monkeypatch):
    monkeypatch.chdir(folder)
    result = partwise("suspects", "model", "bad", *words)
    assert result.exit_code == 1 and message in result.stderr


def test_compressed_files_are_refused_before_any_work(folder):
    import gzip

    (folder / "bad.gz").write_bytes(gzip.compress((folder / "bad").read_bytes()))
    result = partwise("suspects", folder / "model", folder / "bad.gz", "--html", folder / "no.html")
    assert result.exit_code == 1 and "unpack it first" in result.stderr and not (folder / "no.html").exists()
