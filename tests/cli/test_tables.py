"""Parquet files on the command line: every task that has tables trains on one, scores it, and answers in one."""

import pytest
from typer.testing import CliRunner

from partwise.cli.app import app
from partwise.engine.compilation import interpret

pyarrow = pytest.importorskip("pyarrow")

from partwise.files.parquet import as_parquet, read_parquet  # noqa: E402

pytestmark = pytest.mark.interpreted
TABLES = {
    "classify": ({"x": [0.0, 1.0, 5.0, 6.0] * 3, "class": ["low", "low", "high", "high"] * 3}, ["predicted"]),
    "tag": ({"w": ["a", "b", "c", "a"], "sentence": [1, 2, 1, 2], "y": ["A", "B", "C", "A"]}, ["predicted"]),
    "segment": ({"w": ["a", "b", "c", "a"], "sentence": [1, 1, 2, 2], "y": ["B-X", "I-X", "O", "B-X"]}, ["predicted"]),
    "parse": (
        {"sentence": [1, 1, 2, 2], "form": ["dogs", "bark", "cats", "run"], "head": [2, 0, 2, 0], "deprel": ["s", "root"] * 2},
        ["predicted_head", "predicted_deprel"],
    ),
    "rank": ({"qid": ["p", "q", "p", "q"], "f": [1.0, 0.0, 0.0, 1.0], "relevance": [1, 0, 0, 1]}, ["predicted"]),
    "fold": ({"sequence": ["GGAAACC", "AAAA"], "structure": ["((...))", "...."]}, ["predicted"]),
    "align": ({"row1": ["AC-T", "GG"], "row2": ["ACGT", "GG"]}, ["predicted_row1", "predicted_row2"]),
    "constituency": ({"tree": ["(S (A a) (B b))", "(S (A a) (B c))"]}, ["predicted"]),
}


def run(*words):
    with interpret():
        return CliRunner().invoke(app, [str(word) for word in words])


def said(*words):
    ran = run(*words)
    assert ran.exit_code == 0, ran.output
    return ran.stdout


def refused(*words):
    ran = run(*words)
    assert ran.exit_code == 1 and "Traceback" not in ran.output, ran.output
    return " ".join(ran.output.split())


@pytest.mark.parametrize("verb", TABLES)
def test_in_and_out(verb, tmp_path):
    columns, answers = TABLES[verb]
    file, model, out = tmp_path / "t.parquet", tmp_path / "model", tmp_path / "out.parquet"
    file.write_bytes(as_parquet(pyarrow.table(columns)))
    said("train", verb, file, "-o", model, "--epochs", "20", "-q")
    assert "%" in said("evaluate", model, file)
    said("predict", model, file, "-o", out)
    found = read_parquet(out)
    assert found.column_names == [*columns, *answers]
    assert {name: found[name].to_pylist() for name in columns} == columns  # the rows stay where they are
    truth = {"tag": "y", "segment": "y", "classify": "class", "fold": "structure", "parse": "head", "constituency": "tree"}
    if verb in truth:
        assert found[answers[0]].to_pylist() == columns[truth[verb]]
    if verb == "rank":
        scores = found["predicted"].to_pylist()
        assert scores[0] > scores[2] and scores[3] > scores[1]
    assert said("predict", model, file)  # as text, too


@pytest.fixture(scope="module")
def tagger(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tagger")
    (folder / "t.parquet").write_bytes(as_parquet(pyarrow.table({"of": [1, 1], "w": ["a", "b"], "y": ["A", "B"]})))
    said("train", "tag", folder / "t.parquet", "--group-column", "of", "-o", folder / "model", "--epochs", "2", "-q")
    return folder


def test_mistakes_are_told(tagger):
    table, model, out = tagger / "t.parquet", tagger / "model", tagger / "out.parquet"
    assert "which rows are a sentence" in refused("predict", model, table, "-o", out)
    assert "--kbest is about answers as text" in refused(
        "predict", model, table, "--group-column", "of", "--kbest", "2", "-o", out
    )
    (tagger / "t.txt").write_text("a A\n")
    assert "A parquet file is made of one" in refused("predict", model, tagger / "t.txt", "-o", out)
    assert not out.exists()
    assert "suspects are told by lines of text" in refused("suspects", model, table)
    assert "a table is natural for classify, tag" in refused("train", "graph", table, "-o", tagger / "no")
    assert "--stream reads text" in refused("train", "tag", table, "--stream", "-o", tagger / "no")
    (tagger / "damaged.parquet").write_bytes(table.read_bytes()[:60])
    assert "not a parquet file that can be read" in refused("predict", model, tagger / "damaged.parquet", "-o", out)
    (tagger / "gap.parquet").write_bytes(as_parquet(pyarrow.table({"sentence": [1, 1], "w": ["a", None], "y": ["A", "B"]})))
    assert "row 1, column 'w': there is no value" in refused("train", "tag", tagger / "gap.parquet", "-o", tagger / "no")
