"""Suspects of a table for the page: where classes stand, what is believed, how surely and why."""

import csv
import io
import json
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from partwise.cli.app import app
from partwise.files.text_edits import EditableText, TextEdit
from partwise.tasks.classification.review import cells_of, spans

LONG = 'rose "x"\nred'


def partwise(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def quoted(cell):
    return '"' + cell.replace('"', '""') + '"' if re.search('[",\n]', cell) else cell


@given(st.lists(st.text(alphabet='ab",;\n ', max_size=6), min_size=2, max_size=5), st.sampled_from(",;"))
def test_cells_are_cut_as_csv_cuts_them(cells, separator):
    out = io.StringIO()
    csv.writer(out, delimiter=separator, lineterminator="\n").writerow(cells)
    text = out.getvalue().removesuffix("\n")
    if '"' not in text or text.startswith(" ") or f"{separator} " in text:
        return
    stripped = [cell.strip() for cell in next(csv.reader(io.StringIO(text, newline=""), delimiter=separator))]
    assert [cell.strip() for cell in cells_of(text, separator)] == stripped


def test_cells_without_quotes():
    assert spans("a, b ,c", ",") == [(0, 1), (3, 4), (6, 7)] and spans("  a  b", " ") == [(2, 3), (5, 6)]
    assert spans('a"b,c', ",") == [(0, 3), (4, 5)] and spans("a::b", "::") == [(0, 1), (3, 4)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables whose rows 7 and 20 have the wrong class."""
    folder = tmp_path_factory.mktemp("rows")
    rows, light = ['name,"size, cm",class,note'], []
    for i in range(60):
        large = i % 2 == 1
        size = (5 if large else 1) + i / 100
        wrong = i in (7, 20)
        name = LONG if large != wrong else "daisy"
        rows.append(f'n{i % 3},{size:.2f},{quoted(name)},"a <b>&{i}, ""q"""')
        light.append(f"{'+1' if large != wrong else '-1'} 1:{size:.2f} 2:1 # row {i}")
    (folder / "rows.csv").write_bytes(("\r\n".join(rows) + "\r\n").encode())
    (folder / "rows.svm").write_text("\n".join(light) + "\n")
    for kind, more in (("csv", ("--drop", "note")), ("svm", ())):
        words = ("-o", folder / f"{kind}.model", "--loss", "crf", "-q", *more)
        result = partwise("train", "classify", folder / f"rows.{kind}", *words)
        assert result.exit_code == 0, result.output
    return folder


def page_of(folder, kind, *more):
    """The data of the page that is made."""
    pytest.importorskip("jinja2")
    page = folder / f"{kind}.html"
    result = partwise("suspects", folder / f"{kind}.model", folder / f"rows.{kind}", "--html", page, "-q", *more)
    assert result.exit_code == 0, result.output
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(), re.S)[1])


@pytest.mark.parametrize("kind", ["csv", "svm"])
@pytest.mark.parametrize("folds", ["0", "4"])
def test_rows(folder, kind, folds):
    data = page_of(folder, kind, "--folds", folds, "--precision", "0.1", "--top", "2")
    source = EditableText.read(str(folder / f"rows.{kind}"))
    found = {data["passages"][item["passage"]]["words"][0]: item for item in data["items"]}
    assert set(found) == {"row 8", "row 21"}
    scales = []
    for item in data["items"]:
        passage, (doubt,) = data["passages"][item["passage"]], item["doubts"]
        label = data["labels"][passage["given"][0]]
        raw = passage.get("raw", [label])[0]
        assert source.holds(TextEdit(passage["at"], raw, "")) and source.line(passage["at"]) == passage["line"]
        assert raw == (quoted(label) if kind == "csv" else label) and doubt["sure"][0] < doubt["sure"][1]
        assert data["labels"][doubt["believed"]] in data["labels"][: data["menu"]]  # spelled as the file does
        why = dict(doubt["why"])  # all of them: there are few features
        assert ("size, cm" if kind == "csv" else "1") in why
        scales.append(math.log(doubt["sure"][1] / doubt["sure"][0]) / sum(why.values()))
    assert scales[0] == pytest.approx(scales[1], rel=1e-3)  # reasons are differences of scores: log-odds but for the temperature


@pytest.mark.parametrize("kind", ["csv", "svm"])
def test_there_and_back(folder, kind):
    """What the page would hand out, applied; and a change of something else, refused."""
    data, file = page_of(folder, kind), folder / f"rows.{kind}"
    decisions = []
    for k, item in enumerate(data["items"]):
        passage = data["passages"][item["passage"]]
        old = passage.get("raw", [data["labels"][passage["given"][0]]])[0]
        new = data["labels"][item["doubts"][0]["believed"]]
        change = {"line": passage["line"], "at": passage["at"], "from": old, "to": quoted(new) if kind == "csv" else new}
        decisions.append({"item": k, "line": passage["line"], "choice": "accept", "changes": [change]})
    said = {name: data[name] for name in ("version", "task", "file", "reading")} | {"format": "partwise decisions"}
    path, out = folder / "decisions.json", folder / "out"
    path.write_text(json.dumps({**said, "decisions": decisions}))
    result = partwise("repair", file, path, "-o", out)
    assert result.exit_code == 0, result.output
    before, after = file.read_bytes(), out.read_bytes()
    if kind == "csv":
        a, b = (list(csv.reader(io.StringIO(text.decode(), newline=""))) for text in (before, after))
        assert [k for k, (old, new) in enumerate(zip(a, b, strict=True)) if old != new] == [8, 21]
        assert b[8][2] == LONG and b[21][2] == "daisy" and b[8][:2] == a[8][:2]
    else:
        changed = [(old, new) for old, new in zip(before.split(b"\n"), after.split(b"\n"), strict=True) if old != new]
        assert [(old[:2], new[:2], old[2:] == new[2:]) for old, new in changed] == [(b"-1", b"+1", True), (b"+1", b"-1", True)]
    decisions[0]["changes"][0].update({"at": before.index(b"1."), "from": "1.", "to": "9.", "line": 2})
    decisions[0]["changes"][0]["line"] = before[: before.index(b"1.")].count(b"\n") + 1
    path.write_text(json.dumps({**said, "decisions": decisions[:1]}))
    result = partwise("repair", file, path, "-o", folder / "no")
    assert result.exit_code == 1 and "more than labels" in result.stderr and not (folder / "no").exists()


def test_a_parquet_file_is_refused(folder):
    pytest.importorskip("jinja2")
    (folder / "rows.parquet").write_bytes(b"PAR1")
    result = partwise("suspects", folder / "csv.model", folder / "rows.parquet", "--html", folder / "no.html")
    assert result.exit_code == 1 and "write it as CSV first" in result.stderr
