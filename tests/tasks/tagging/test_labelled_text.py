"""``partwise predict``: text in, the same text with labels out, or a clear message and nothing at all."""

import gzip
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from partwise import SequenceLabeler
from partwise.cli.app import app
from partwise.files import tensors
from partwise.tasks.tagging import labelled_text
from partwise.text.columns import read_columns
from partwise.text.template_encoder import TemplateEncoder
from small_taggers import TEMPLATES, TEST, TRAIN, tagger, value_labeler


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Models and files."""
    folder = tmp_path_factory.mktemp("predict")
    tagger().save(folder / "hinge.model")
    tagger("crf").save(folder / "crf.model")
    tagger("crf", "iobes").save(folder / "iobes.model")
    (folder / "test.txt").write_bytes(TEST)
    return folder


def run(*arguments, stdin=None):
    return CliRunner().invoke(app, ["predict", *map(str, arguments)], input=stdin)


def ok(*arguments, stdin=None):
    result = run(*arguments, stdin=stdin)
    assert result.exit_code == 0, result.output
    return result.stdout_bytes


def refused(*arguments, stdin=None):
    """The message of a command that fails."""
    result = run(*arguments, stdin=stdin)
    assert result.exit_code == 1 and isinstance(result.exception, SystemExit), result.output
    assert result.stderr.startswith("partwise: error: ") and result.stderr.count("\n") == 1
    return result.stderr


def appended(text, labels, separator=b" "):
    """The slow way to append a column: line by line, in Python."""
    labels = iter(labels)
    lines = []
    for line in text.split(b"\n"):
        body = line.rstrip(b"\r")
        end = line[len(body) :]
        if body.strip() and not body.startswith((b"#", b"-DOCSTART-")):
            stripped = body.rstrip(b" \t")
            body = stripped + separator + next(labels).encode() + body[len(stripped) :]
        lines.append(body + end)
    assert next(labels, None) is None
    return b"\n".join(lines)


def labels_of(model, text, **options):
    return [label for labels in model.predict(read_columns(text, **options)) for label in labels]


def test_labels_are_appended(folder):
    out = ok(folder / "hinge.model", folder / "test.txt")
    assert out == appended(TEST, labels_of(tagger(), TEST))
    assert len(set(labels_of(tagger(), TEST))) > 2


MESSY = b"# a comment\n\n\n-DOCSTART- -X- O\n\nw1 D ?\r\nw2 N ?  \n\n# in between\nw3  \tV ?\n#\n\n \t\n"
MESSY += TEST + b"w5 D x\n\n# the end\n\n#"


@pytest.mark.parametrize("part", [1 << 22, 40])
def test_all_else_stays_as_it_was_whatever_the_parts(folder, part, monkeypatch):
    monkeypatch.setattr(labelled_text.Labels, "part_bytes", part)
    (folder / "messy.txt").write_bytes(MESSY)
    expected = appended(MESSY, labels_of(tagger(), MESSY, comment="#"))
    assert ok(folder / "hinge.model", folder / "messy.txt", "--comment", "#") == expected
    assert ok(folder / "hinge.model", "-", "--comment", "#", stdin=MESSY) == expected


def test_the_separator_is_that_of_the_first_line_in_every_part(folder, monkeypatch):
    monkeypatch.setattr(labelled_text.Labels, "part_bytes", 1)
    out = ok(folder / "hinge.model", "-", stdin=b"w1\tD\n\nw1 D\n\n")
    assert [line.count(b"\t") for line in out.splitlines()] == [2, 0, 1, 0]
    assert ok(folder / "hinge.model", "-", "-s", "|", stdin=b"w1|D\n").count(b"|") == 2


def test_gzip_in_and_out(folder):
    (folder / "test.gz").write_bytes(gzip.compress(TEST))
    out = folder / "labelled.txt.gz"
    assert ok(folder / "hinge.model", folder / "test.gz", "-o", out) == b""
    assert gzip.decompress(out.read_bytes()) == appended(TEST, labels_of(tagger(), TEST))


def test_other_encodings_are_written_as_they_are_read(folder):
    text = "wörter D\nmöbel N\n"
    for encoding in ("latin-1", "utf-16"):
        out = ok(folder / "hinge.model", "-", "--encoding", encoding, stdin=text.encode(encoding))
        assert [line.split()[:2] for line in out.decode(encoding).splitlines()] == [["wörter", "D"], ["möbel", "N"]]
    marked = ok(folder / "hinge.model", "-", stdin=b"\xef\xbb\xbfw1 D\n")  # a byte order mark is not part of a word
    assert marked == ok(folder / "hinge.model", "-", stdin=b"w1 D\n")


def test_what_is_said_to_machines(folder):
    out = folder / "out.txt"
    about = json.loads(ok(folder / "hinge.model", folder / "test.txt", "-o", out, "--json", "-j", 2))
    columns = read_columns(TEST)
    assert about["tokens"] == columns.n_tokens and about["sequences"] == columns.n_sentences
    assert about["seconds"].keys() == {"load", "read", "label", "write", "total"} and about["tokens_per_second"] > 0
    assert out.read_bytes() == appended(TEST, labels_of(tagger(), TEST))
    assert "say with --output where" in refused(folder / "hinge.model", folder / "test.txt", "--json")


def test_json_lines(folder):
    lines = [json.loads(line) for line in ok(folder / "hinge.model", folder / "test.txt", "--format", "jsonl").splitlines()]
    assert [line["labels"] for line in lines] == tagger().predict(read_columns(TEST))
    lines = [
        json.loads(x) for x in ok(folder / "crf.model", folder / "test.txt", "--format", "jsonl", "--marginals").splitlines()
    ]
    p = tagger("crf").predict_marginals(read_columns(TEST))
    classes = tagger("crf").classes_.tolist()
    for line, rows in zip(lines, p, strict=True):
        best = [row[classes.index(label)] for row, label in zip(rows, line["labels"], strict=True)]
        np.testing.assert_allclose(line["probabilities"], best, atol=1e-6)


def test_marginals(folder):
    model = tagger("crf")
    p = np.concatenate(model.predict_marginals(read_columns(TEST)))
    classes = model.classes_.tolist()
    for option, n in (("--marginals", 1), ("--all-marginals", len(classes))):
        lines = [line.decode().split() for line in ok(folder / "crf.model", folder / "test.txt", option).splitlines() if line]
        assert [line[3] for line in lines] == labels_of(model, TEST)
        for line, row in zip(lines, p, strict=True):
            said = dict(cell.rsplit("/", 1) for cell in line[4:])
            assert list(said) == ([line[3]] if n == 1 else classes)
            assert all(abs(float(value) - row[classes.index(label)]) < 6e-5 for label, value in said.items())


def test_marginals_of_a_margin_model_need_calibration(folder):
    message = refused(folder / "hinge.model", folder / "test.txt", "--marginals")
    assert "'hinge', which fits scores, not probabilities" in message and "--calibrate" in message
    (folder / "train.txt").write_bytes(TRAIN)
    lines = ok(folder / "hinge.model", folder / "test.txt", "--marginals", "--calibrate", folder / "train.txt").splitlines()
    model = tagger().load(folder / "hinge.model").calibrate(read_columns(TRAIN))
    p = np.concatenate(model.predict_marginals(read_columns(TEST))).max(1)
    said = [float(line.rsplit(b"/", 1)[1]) for line in lines if line]
    assert np.mean(np.abs(said - p) < 1e-3) > 0.9  # the best label is nearly always the most probable one


def test_kbest_as_crf_test_prints_it(folder):
    text = b"#0\n" + TEST[: TEST.index(b"\n\n") + 2] + b"w1 D O\r\nw2 N O"
    for name, model in (("crf", tagger("crf")), ("hinge", tagger())):
        out = ok(folder / f"{name}.model", "-", "--kbest", 3, "--comment", "#0", stdin=text)
        columns = read_columns(text, comment="#0")
        expected = []
        for i, found in enumerate(model.predict_kbest(columns, 3)):
            for k, (labels, score) in enumerate(found):
                number = score
                if name == "crf":
                    number = np.exp(model.log_probability(columns.take([i]), [labels])[0])
                expected.append(
                    (k, pytest.approx(number, abs=2e-5), [(*cells, y) for cells, y in zip(columns[i], labels, strict=True)])
                )
        blocks, seen = [], []
        for line in out.removeprefix(b"#0\n").replace(b"\r", b"").decode().split("\n"):
            if line.startswith("# "):
                blocks.append((int(line.split()[1]), float(line.split()[2]), []))
            elif line:
                blocks[-1][2].append(tuple(line.split()))
            seen.append(bool(line))
        assert blocks == expected and len(blocks) == 6
        assert seen.count(False) == 5  # one blank line between two blocks, none at the end where there was none
        assert out.endswith(b"\r\n" + " ".join(expected[-1][2][-1]).encode())
    lines = [json.loads(x) for x in ok(folder / "hinge.model", "-", "--kbest", 2, "--format", "jsonl", stdin=TEST).splitlines()]
    best = [found[0] for found in tagger().predict_kbest(read_columns(TEST), 2)]
    assert [(line["candidates"][0]["labels"], line["candidates"][0]["score"]) for line in lines] == best
    assert "cannot go with" in refused(folder / "crf.model", "-", "--kbest", 2, "--marginals", stdin=TEST)


@pytest.mark.parametrize("loss", [pytest.param("crf", marks=pytest.mark.slow), "hinge"])
@pytest.mark.interpreted
def test_kbest_of_a_model_with_hidden_states(folder, loss):
    columns, path = read_columns(TEST), folder / f"hidden-{loss}.model"
    model = SequenceLabeler(loss, C=1.0, hidden=2, templates=TEMPLATES, solver="dca", max_epochs=2).fit(read_columns(TRAIN))
    model.save(path)
    lines = [json.loads(x) for x in ok(path, "-", "--kbest", 3, "--format", "jsonl", stdin=TEST).splitlines()]
    for i, (line, found) in enumerate(zip(lines, model.predict_kbest(columns, 3), strict=True)):
        said = line["candidates"]
        assert [(one["labels"], one["score"]) for one in said] == found
        if loss == "crf":  # of the labelling, over all its states
            p = np.exp(model.log_probability(columns.take([i] * len(found)), [labels for labels, _ in found]))
            np.testing.assert_allclose([one["probability"] for one in said], p, rtol=1e-5)
        else:
            assert all("probability" not in one for one in said)
    blocks = [line for line in ok(path, "-", "--kbest", 3, stdin=TEST).splitlines() if line.startswith(b"# ")]
    assert len(blocks) == sum(len(line["candidates"]) for line in lines)


def test_known_labels_are_kept(folder):
    text = b"w1 D _\nw2 N _\nw3 V I-VP\n\nw1 D _\n"
    out = ok(folder / "hinge.model", "-", "--known-column", 2, "--known-unknown", "_", stdin=text)
    labels = [line.split()[3].decode() for line in out.splitlines() if line]
    known = [[None, None, "I-VP"], [None]]
    assert labels == [label for y in tagger().predict(read_columns(text), known=known) for label in y]
    assert labels[2] == "I-VP" != labels_of(tagger(), text)[2]
    message = refused(folder / "hinge.model", "-", "--known-column", 2, stdin=text)
    assert "<stdin>, line 1, column 2: '_' is not a label that the model knows. Say with --known-unknown" in message
    assert "there is no column 7" in refused(folder / "hinge.model", "-", "--known-column", 7, stdin=text)


def test_predictions_are_in_the_scheme_of_the_training_data(folder):
    columns = read_columns(TEST)
    model = tagger("crf", "iobes")
    iobes = [label for labels in model.predict(columns) for label in labels]
    assert {"S-NP", "E-NP"} & set(iobes)
    out = ok(folder / "iobes.model", folder / "test.txt", "--all-marginals")
    lines = [line.decode().split() for line in out.splitlines() if line]
    p = np.concatenate(model.predict_marginals(columns))
    place = {label: k for k, label in enumerate(model.classes_.tolist())}
    for line, row, own in zip(lines, p, iobes, strict=True):
        said = dict(cell.rsplit("/", 1) for cell in line[4:])
        assert list(said) == ["B-NP", "B-VP", "I-NP", "I-VP", "O"]
        assert float(said["B-NP"]) == pytest.approx(row[place["B-NP"]] + row[place["S-NP"]], abs=6e-5)
        assert float(said["I-VP"]) == pytest.approx(row[place["I-VP"]] + row[place["E-VP"]], abs=6e-5)
        assert line[3] == own.replace("S-", "B-").replace("E-", "I-") or own[0] in "IE"  # an ill-formed I begins a span
    as_iobes = ok(folder / "iobes.model", folder / "test.txt", "--scheme", "bilou").decode()
    assert "U-NP" in as_iobes and "S-NP" not in as_iobes
    text = b"w1 D _\nw2 N B-VP\nw3 V I-VP\n"
    out = ok(folder / "iobes.model", "-", "--known-column", 2, "--known-unknown", "_", stdin=text)
    assert [line.split()[3] for line in out.splitlines()][1:] == [b"B-VP", b"I-VP"]
    assert "must be one of iob2" in refused(folder / "iobes.model", "-", "--scheme", "iob3", stdin=text)


BAD = {
    "ragged": (b"w1 D\nw2\n", "line 2: expected 2 columns as in the lines before, got 1"),
    "empty": (b"", "there are no tokens in it"),
    "blank": (b"\n\n \n", "there are no tokens in it"),
    "too narrow": (b"w1\n", "the template 'pos[0]' refers to column 1 ('pos'), but there are 1 columns"),
    "not utf-8": (b"w1 D\n\xff\xfe\xff N\n", "line 2: not valid utf-8 text"),
    "utf-16": ("w1 D\n".encode("utf-16"), "by its first bytes, utf-16"),
    "cut gzip": (gzip.compress(TEST)[:-9], "the compressed file ends too early"),
    "a long line": (
        b"w1 D\n" + b"x " * 5_000_000 + b"\n",
        "line 2: expected 2 columns as in the lines before, got 5000000: 'x x",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_text_is_refused_with_its_place_and_nothing_is_written(folder, name):
    content, message = BAD[name]
    path, out = folder / "bad.txt", folder / "kept.txt"
    path.write_bytes(content)
    out.write_bytes(b"old")
    before = sorted(os.listdir(folder))
    said = refused(folder / "hinge.model", path, "-o", out)
    assert message in said and str(path) in said and len(said) < 500
    assert out.read_bytes() == b"old" and sorted(os.listdir(folder)) == before


def test_an_error_in_a_late_part_leaves_the_old_output(folder, monkeypatch):
    monkeypatch.setattr(labelled_text.Labels, "part_bytes", 64)
    out = folder / "late.txt"
    out.write_bytes(b"old")
    lines = TEST.count(b"\n")
    assert f"<stdin>, line {lines + 1}: expected 3" in refused(folder / "hinge.model", "-", "-o", out, stdin=TEST + b"w1\n")
    assert out.read_bytes() == b"old"


def test_files_that_are_not_there_or_not_files(folder, tmp_path):
    model, text = folder / "hinge.model", folder / "test.txt"
    assert "nothing.txt: No such file" in refused(model, tmp_path / "nothing.txt")
    assert "Is a directory" in refused(model, tmp_path)
    assert "There is no model file" in refused(tmp_path / "nothing.model", text)
    assert "cannot be read" in refused(tmp_path, text)
    assert "there is no folder" in refused(model, text, "-o", tmp_path / "no" / "out.txt")
    assert "is a folder" in refused(model, text, "-o", tmp_path)
    assert "choose another name" in refused(model, text, "-o", text)
    assert "choose another name" in refused(model, text, "-o", model)
    assert text.read_bytes() == TEST


@pytest.mark.interpreted
def test_models_that_are_none(folder, tmp_path):
    text, path = folder / "test.txt", tmp_path / "bad.model"
    path.write_bytes((folder / "hinge.model").read_bytes()[:-100])
    assert "truncated or damaged" in refused(path, text)
    path.write_bytes(TEST)
    assert "is not a partwise model" in refused(path, text)
    value_labeler().save(path)
    assert "was trained on attributes, not on column files" in refused(path, text)
    assert "--format svg: the answers of this model are written as columns, jsonl" in refused(
        folder / "hinge.model", text, "--format", "svg"
    )


def test_the_model_is_opened_once_and_the_text_encoded_once(folder, monkeypatch):
    opened, encoded = [], []
    real_open, real_transform = tensors.mapped_file, TemplateEncoder.transform
    monkeypatch.setattr(tensors, "mapped_file", lambda path: opened.append(path) or real_open(path))
    monkeypatch.setattr(TemplateEncoder, "transform", lambda self, data: encoded.append(data.name) or real_transform(self, data))
    for options in ((), ("--marginals",), ("--all-marginals", "--format", "jsonl"), ("--kbest", 2)):
        opened.clear(), encoded.clear()
        ok(folder / "crf.model", folder / "test.txt", *options)
        assert opened == [str(folder / "crf.model")] and encoded == [str(folder / "test.txt")]


def test_a_reader_that_has_seen_enough_and_light_imports(folder):
    code = (
        "import sys; from partwise.cli import main\n"
        "try: main()\n"
        "finally: sys.stderr.write(' '.join(m for m in ('sklearn', 'scipy.stats', 'matplotlib', 'rich') if m in sys.modules))"
    )
    command = [sys.executable, "-c", code, "predict", str(folder / "hinge.model"), str(folder / "test.txt")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait() == 1
