"""``partwise train tag``, as a newcomer runs it."""

import errno
import gzip
import json
import os

import numpy as np
import pytest
from typer.testing import CliRunner

from column_cases import sentences, text
from partwise.cli import progress
from partwise.cli.app import app
from partwise.tasks.common import model_file

TRAIN = sentences(40)
KEYS = {"task", "examples", "features", "epochs", "primal", "gap", "converged", "seconds"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.txt").write_text(text(TRAIN))
    (tmp_path / "dev.txt").write_text(text(sentences(20, seed=1)))
    return tmp_path


def run(*arguments, status=0, stdin=None):
    """By a quick solver, unless another is asked for."""
    quick = () if {"--solver", "--loss"} & set(arguments) else ("--solver", "dca", "-C", 0.05)
    result = CliRunner().invoke(app, ["train", "tag", *map(str, [*arguments, *quick])], input=stdin)
    assert result.exit_code == status, result.output + repr(result.exception)
    return result


def refused(*arguments):
    """What is said when it does not work; nothing may be left behind."""
    before = set(os.listdir())
    message = run(*arguments, "-o", "model", status=1).stderr
    assert set(os.listdir()) == before and "Traceback" not in message
    return message.strip()


def load(name="model"):
    return model_file.load(name, plain=True)


def test_json_for_machines(folder):
    result = run("train.txt", "--dev", "dev.txt", "-o", "model", "--json", "--epochs", 3)
    about = json.loads(result.stdout)
    assert about.keys() >= KEYS and about["task"] == "tag" and about["examples"] == 40 and about["epochs"] == 3
    assert about["seconds"].keys() >= {"read", "features", "train", "save", "total"} and about["cpu"]["total"] > 0
    assert about["primal"] > 0 and about["converged"] is False and about["scheme"] == "iob2"
    assert about["dev"]["f1"] > 0.7 and about["dev"]["accuracy"] > 0.8
    model = load()
    assert model.n_features_in_ == about["features"] and model.training_["epochs"] == 3 and model.label_column_ == 2
    assert os.listdir() and not [name for name in os.listdir() if "checkpoint" in name or "tmp" in name]


def test_words_for_people(folder):
    said = run("train.txt", "--dev", "dev.txt", "-o", "model", "--epochs", 2).stderr
    assert "train.txt: 40 sentences" in said and "chunk labels in iob2 in column 2" in said
    assert "dev F1" in said and "2/2" in said and "wrote model" in said
    assert run("train.txt", "-o", "model", "--epochs", 1, "--quiet").output == ""


@pytest.mark.interpreted
def test_ramp_tells_its_rounds_and_what_it_refuses(folder):
    arguments = ("train.txt", "-o", "model", "--loss", "ramp", "--solver", "pegasos", "--epochs", 6)
    about = json.loads(run(*arguments, "--json").stdout)
    assert about["solver"] == "pegasos" and about["rounds"] == 3 and 0 <= about["refused"] <= 40
    assert about["primal"] == pytest.approx(about["objective"], rel=1e-6)
    assert load().loss == "ramp" and "3 rounds" in run(*arguments).stderr


@pytest.mark.interpreted
def test_certified_solvers_tell_their_gap(folder):
    about = json.loads(run("train.txt", "-o", "model", "--json", "--solver", "sdm", "--dtype", "float64").stdout)
    assert about["converged"] and 0 <= about["gap"] <= 1e-3 * about["primal"]
    about = json.loads(run("train.txt", "-o", "model", "--json", "--epochs", 2, "--certify").stdout)
    assert about["gap"] > 0


def test_history_and_curve(folder):
    run("train.txt", "--dev", "dev.txt", "-o", "model", "--epochs", 4, "--history", "h.json", "--curve", "c.png")
    records = json.loads((folder / "h.json").read_text())["history"]
    assert [r["epoch"] for r in records] == [1, 2, 3, 4] and all(0 <= r["dev_f1"] <= 1 and r["gap"] is None for r in records)
    assert (folder / "c.png").read_bytes().startswith(b"\x89PNG")


def test_files_of_every_kind_give_one_model(folder):
    run("train.txt", "-o", "model", "--epochs", 2)
    expected = load().weights_
    plain = text(TRAIN)
    (folder / "crlf.txt").write_bytes(plain.replace("\n", "\r\n").encode())
    (folder / "bom.txt").write_bytes(b"\xef\xbb\xbf" + plain.encode())
    (folder / "no_newline.txt").write_text(plain.rstrip("\n"))
    (folder / "packed.gz").write_bytes(gzip.compress(plain.encode()))
    (folder / "comments.txt").write_text("# one\n" + plain)
    (folder / "utf16.txt").write_bytes(plain.encode("utf-16"))
    (folder / "commas.txt").write_text(text(TRAIN, ","))
    (folder / "first.txt").write_text(text([[(c, w, p) for w, p, c in sentence] for sentence in TRAIN]))
    for arguments in (
        ("crlf.txt",), ("bom.txt",), ("no_newline.txt",), ("packed.gz",), ("comments.txt", "--comment", "#"),
        ("utf16.txt", "--encoding", "utf-16"), ("commas.txt", "-s", ","),
    ):  # fmt: skip
        run(*arguments, "-o", "other", "--epochs", 2)
        np.testing.assert_array_equal(load("other").weights_, expected)
    run("-", "-o", "other", "--epochs", 2, stdin=plain)
    np.testing.assert_array_equal(load("other").weights_, expected)
    run("first.txt", "--label-column", 0, "--columns", "label,w,pos", "-o", "other", "--epochs", 2)
    np.testing.assert_array_equal(load("other").weights_, expected)


def test_labels_in_another_scheme(folder):
    run("train.txt", "--scheme", "iobes", "--constraints", "auto", "-o", "model", "--epochs", 3)
    model = load()
    (folder / "odd.txt").write_text(text([[("a", "N", "I-NP"), ("b", "N", "O"), ("c", "N", "B-NP")]] * 3 + TRAIN))
    assert "note: 3 labels were not as iob2 has them" in run("odd.txt", "--scheme", "iobes", "-o", "odd", "--epochs", 1).stderr
    assert model.given_scheme_ == "iob2" and model.constraints == {"scheme": "iobes"}
    assert {label[0] for label in model.classes_} <= set("BIESO") and {"E", "S"} <= {label[0] for label in model.classes_}


def test_transitions_forbidden_and_forced(folder):
    assert "violate the constraints" in refused("train.txt", "--forbid", "(begin) I-NP", "--force", "O (end)")
    (folder / "ab.txt").write_text("u A\nv B\n\nu A\nv B\nw C\n")
    assert "from 'C' to the end is forbidden" in refused("ab.txt", "--force", "A B", "--forbid", "C (end)")
    run("ab.txt", "-o", "model", "--epochs", 1, "--force", "A B", "--forbid", "B A")
    assert load().constraints == {"forbid": [("B", "A")], "force": [("A", "B")]}
    assert all(b == "B" for y in load().predict([[("u",), ("u",), ("w",)]]) for a, b in zip(y, y[1:], strict=False) if a == "A")
    assert "takes two labels with a blank between" in refused("train.txt", "--forbid", "O")


@pytest.mark.interpreted
def test_partial_labels(folder):
    lines = [[(w, p, "?" if k % 3 == 0 else f"{c}|O" if k % 3 == 1 else c) for k, (w, p, c) in enumerate(s)] for s in TRAIN]
    (folder / "partial.txt").write_text(text(lines))
    run("partial.txt", "--unknown-label", "?", "--either", "|", "--dev", "dev.txt", "-o", "model", "--epochs", 3)
    run("train.txt", "-o", "full", "--epochs", 3)
    assert set(load().classes_) <= set(load("full").classes_)


def test_streams(folder):
    for name, size in (("a", 16), ("b", 0.0001)):
        run("train.txt", "--stream", "--chunk-megabytes", size, "--dev", "dev.txt", "-o", name, "--epochs", 2)
    assert (folder / "a").read_bytes() == (folder / "b").read_bytes()
    assert "cannot go with --stream" in refused("train.txt", "--stream", "--scheme", "iobes")


def test_parameters_of_the_class_are_options(folder):
    options = ("--balanced", "--no-use-start", "--no-use-stop", "--order", 2, "--hash-bits", 10, "--min-count", 1)
    run("train.txt", "-o", "model", "--epochs", 1, *options)
    model = load()
    assert (model.class_weight, model.use_start, model.use_stop, model.order) == ("balanced", False, False, 2)
    assert model.n_features_in_ == 1024 and not model.start_.any() and not model.stop_.any()


def test_going_on_from_a_model(folder):
    run("train.txt", "-o", "model", "--epochs", 2)
    run("dev.txt", "--start-from", "model", "-o", "more", "--epochs", 2)
    assert load("more").n_features_in_ >= load().n_features_in_ and load("more").classes_.tolist() == load().classes_.tolist()
    model = load()
    model.validation_metric, model.constraints = "cost", "iob2"
    model.save("older")
    said = run("dev.txt", "--start-from", "older", "--dev", "train.txt", "-o", "more", "--epochs", 2).stderr
    assert "dev F1" in said and load("more").constraints == "iob2"


def test_more_templates(folder):
    run("train.txt", "-o", "model", "--epochs", 1, "--add-template", "suffix1(w[0])", "--add-template", "shape(w[0])")
    assert [t.text for t in load().encoder_.templates[-2:]] == ["suffix1(w[0])", "shape(w[0])"]
    (folder / "template").write_text("# CRF++\nU00:%x[0,0]\nB\n")
    run("train.txt", "-o", "model", "--epochs", 1, "-t", "template", "--add-template", "U01:%x[0,1]")
    assert [t.text for t in load().encoder_.templates] == ["U00:%x[0,0]", "U01:%x[0,1]"]


def interrupt_at(monkeypatch, epoch, error):
    said = progress.ProgressLines.__call__

    def call(self, record):
        said(self, record)
        if record.epoch == epoch:
            raise error

    monkeypatch.setattr(progress.ProgressLines, "__call__", call)


def test_ctrl_c_keeps_the_model_so_far(folder, monkeypatch):
    interrupt_at(monkeypatch, 2, KeyboardInterrupt())
    said = run("train.txt", "-o", "model", "--epochs", 50, status=130).stderr
    assert "the model so far was saved" in said and load().training_["status"] == "interrupted"


def test_resume_is_as_if_nothing_had_happened(folder, monkeypatch):
    arguments = ("train.txt", "--dev", "dev.txt", "--epochs", 6, "--checkpoint-every", 1e-9)
    run(*arguments, "-o", "whole")
    with monkeypatch.context() as patch:
        interrupt_at(patch, 3, SystemExit(9))  # as good as killed
        run(*arguments, "-o", "model", status=9)
    assert (folder / "model.checkpoint").exists() and not (folder / "model").exists()
    run(*arguments, "-o", "model", "--resume")
    np.testing.assert_array_equal(load().weights_, load("whole").weights_)
    assert not (folder / "model.checkpoint").exists()
    assert "starting from the beginning" in run(*arguments, "-o", "model", "--resume").stderr
    with monkeypatch.context() as patch:
        interrupt_at(patch, 3, SystemExit(9))
        run(*arguments, "-o", "model", status=9)
    said = run("dev.txt", *arguments[1:], "-o", "model", "--resume", status=1).stderr
    assert "model.checkpoint' belongs to another run" in said
    assert "is thrown away" in run("dev.txt", "--epochs", 1, "-o", "model").stderr


def test_a_full_disk_leaves_the_old_model(folder, monkeypatch):
    run("train.txt", "-o", "model", "--epochs", 1)
    before = (folder / "model").read_bytes()

    def full(fd):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        said = run("train.txt", "-o", "model", "--epochs", 2, status=1).stderr
    assert "model: No space left on device" in said
    assert (folder / "model").read_bytes() == before and sorted(os.listdir()) == ["dev.txt", "model", "train.txt"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "bad.txt: there are no tokens in it"),
        (b"\n \n\n", "bad.txt: there are no tokens in it"),
        (b"a N x\nb V y\nc x\n", "bad.txt, line 3: expected 3 columns as in the lines before, got 2: 'c x'"),
        (b"a N x\n\xff\xfe\xfa N y\n", "bad.txt, line 2: not valid utf-8 text"),
        (b"word\n\nword\n", "bad.txt: there is one column only"),
        (b"\x1f\x8b rubbish", "bad.txt: the compressed file"),
        (b"\xff\xfea\0 \0N\0", "not valid utf-8 text but, by its first bytes, utf-16"),
    ],
)
def test_files_that_are_no_training_data(folder, content, message):
    (folder / "bad.txt").write_bytes(content)
    assert message in refused("bad.txt")
    if b"N x\nb" not in content:
        assert message in refused("train.txt", "--dev", "bad.txt")


def test_a_very_long_line(folder):
    (folder / "long.txt").write_text("a" * 10_000_000 + " N x\nb V y\n")
    run("long.txt", "-o", "model", "--epochs", 1)
    (folder / "long.txt").write_text("a N x\n" + "b " * 5_000_000 + "y\n")
    said = refused("long.txt")
    assert "long.txt, line 2: expected 3 columns as in the lines before, got 5000001" in said and len(said) < 400


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("missing.txt",), "missing.txt: No such file or directory"),
        (("train.txt", "--dev", "missing.txt"), "missing.txt: No such file or directory"),
        ((".",), "Is a directory"),
        (("train.txt", "--label-column", 3), "--label-column 3: there are 3 columns, counted from 0"),
        (("train.txt", "--max-labels", 2), "column 2 has 5 different values"),
        (("train.txt", "-t", "nothing"), "'nothing' is neither a file of templates nor a ready-made set"),
        (("train.txt", "--add-template", "w[0]|lemma[0]"), "refers to a column 'lemma', which is not there"),
        (
            ("train.txt", "--columns", "w,pos,chunk,lemma", "--add-template", "lemma[0]"),
            "refers to column 3 ('lemma'), but there are 3",
        ),
        (("train.txt", "--add-template", "U01:%x[0,2]"), "looks at column 2, which is the column of the labels (train.txt)"),
        (("train.txt", "--loss", "hings"), "The 'loss' parameter must be one of 'perceptron', 'hinge'"),
        (("train.txt", "--solver", "adam"), "The 'solver' parameter must be one of"),
        (("train.txt", "--solver", "lbfgs"), "Solver 'lbfgs' minimises"),
        (
            ("train.txt", "--solver", "dca", "-C", -1),
            "The 'C' parameter of SequenceLabeler must be a float in the range (0, inf) or None. Got -1.0 instead.",
        ),
        (("train.txt", "--scheme", "bio"), "--scheme must be one of"),
        (("train.txt", "--validation-metric", "cost"), "--validation-metric must be auto, f1 or error. Got 'cost'."),
        (("train.txt", "--label-column", 1, "-t", "words", "--scheme", "iobes"), "the labels in column 1 are no chunk labels"),
        (("train.txt", "--start-from", "train.txt"), "'train.txt' is not a partwise model"),
        (("train.txt", "--history", "nowhere/h.json"), "nowhere/h.json: there is no folder"),
    ],
)
def test_settings_that_cannot_be(folder, arguments, message):
    assert message in refused(*arguments)


def test_places_that_cannot_be_written_to(folder):
    assert "there is no folder" in run("train.txt", "-o", "nowhere/model", status=1).stderr
    (folder / "is_a_folder").mkdir()
    assert "is_a_folder is a folder; give the name of a file" in run("train.txt", "-o", "is_a_folder", status=1).stderr


@pytest.mark.parametrize("link", [None, os.link, os.symlink])
def test_nothing_that_is_read_is_written_over(folder, link):
    """Under whatever name, and before any work."""
    (folder / "template").write_text("U00:%x[0,0]\nB\n")
    run("train.txt", "-o", "old", "--epochs", 1)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for path, arguments in (
        ("train.txt", ("train.txt",)),
        ("dev.txt", ("train.txt", "--dev", "dev.txt")),
        ("template", ("train.txt", "-t", "template")),
        ("old", ("train.txt", "--start-from", "old")),
    ):
        name = path
        if link is not None:
            name = f"other-{path}"
            link(path, name)
            before[name] = before[path]
        for option in ("-o", "--history", "--curve"):
            given = (*arguments, option, name, *(() if option == "-o" else ("-o", "model")))
            said = run(*given, status=1).stderr
            assert name in said and "which would be lost; choose another name" in said
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_two_results_are_not_written_to_one_file(folder):
    for option in ("--history", "--curve"):
        assert "are the same file, model; choose two names" in refused("train.txt", option, "model")
    run("train.txt", "-o", "phrases", "-t", "phrases", "--epochs", 1)  # a set of that name is no file
