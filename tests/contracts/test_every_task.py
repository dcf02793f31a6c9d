"""Every task of the registry, from its tiny workload: all verbs, the same mistakes, the same answers to them.

A new task is covered by being registered.
"""

from __future__ import annotations

import gzip
import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import partwise
from partwise.cli.app import app
from partwise.tasks.common.registry import BY_VERB, TASKS

VERBS = sorted(BY_VERB)


@pytest.fixture(autouse=True)
def interpreted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with partwise.interpret():  # workloads are tiny, loops many
        yield


def run(*words):
    """Exit status, what was printed, and what was said."""
    done = CliRunner().invoke(app, [str(word) for word in words])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception  # a traceback is never an answer
    return done.exit_code, done.stdout, done.stderr


def refused(*words):
    """The message of a command that must not succeed; it leaves nothing behind."""
    before = {path: path.read_bytes() for path in Path().iterdir() if path.is_file()}
    status, _, said = run(*words)
    assert status in (1, 2), words
    assert {path: path.read_bytes() for path in Path().iterdir() if path.is_file()} == before
    return said


def workload(verb, folder):
    return BY_VERB[verb].command.workload(Path(folder))


TRAINED: dict[str, tuple[dict, bytes]] = {}  # what training told, and the model: each task is trained once


def train(verb, folder):
    """A model of the workload."""
    if verb not in TRAINED:
        status, out, said = run("train", verb, workload(verb, folder), "-o", "model", "--epochs", "2", "--json")
        assert status == 0, said
        TRAINED[verb] = json.loads(out), Path("model").read_bytes()
    about, model = TRAINED[verb]
    Path("model").write_bytes(model)
    return about


@pytest.mark.parametrize("verb", VERBS)
def test_all_verbs(verb, tmp_path):
    about = train(verb, tmp_path)
    assert about["task"] == verb and about["examples"] > 0 and about["epochs"] <= 2 and about["C"] > 0
    assert set(about["seconds"]) >= {"read", "features", "train", "save", "total"}
    file = workload(verb, tmp_path)
    status, out, said = run("predict", "model", file)
    assert status == 0 and out.strip(), said
    status, out, said = run("evaluate", "model", file, "--json")
    assert status == 0, said
    scores = json.loads(out)
    assert any(isinstance(value, float) and 0.0 <= value <= 1.0 for value in scores.values())
    status, out, said = run("inspect", "model", "--json")
    assert status == 0 and json.loads(out)["bytes"] == os.path.getsize("model"), said
    assert run("inspect", "model", "--top", "2")[0] == 0


@pytest.mark.parametrize("verb", VERBS)
def test_a_report_tells_the_scores_that_evaluate_does(verb, tmp_path):
    about = train(verb, tmp_path)
    file = workload(verb, tmp_path)
    model = partwise.load("model")
    model.weights_[:] = np.random.default_rng(1).normal(size=model.weights_.size)  # to be wrong now and then
    model.save("model")
    scores = json.loads(run("evaluate", "model", file, "--json")[1])
    status, out, said = run("report", "model", file, "--json", "--resamples", "20")
    assert status == 0, said
    told = json.loads(out)
    shared = {name: one for name, one in told["scores"].items() if scores.get(name) is not None}
    assert len(shared) >= 3
    assert any(0.0 < one["value"] < 1.0 for one in shared.values()) or verb == "constituency"  # whose grammar has no other trees
    for name, one in shared.items():
        assert one["value"] == pytest.approx(scores[name]), name
        low, high = one["interval"]
        assert low is None or 0.0 <= low <= high <= 1.0
    assert told["weights"] and told["about"]["solver"] and "training: message" in told["about"]
    assert told["history"]["epoch"][-1] == about["epochs"] and len(told["history"]["loss"]) == about["epochs"]
    for table in ("labels", "types", "families", "identity", "grades", "queries", "lengths"):
        assert told.get(table, True), table


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
def test_a_report_is_a_page(verb, tmp_path):
    train(verb, tmp_path)
    model = partwise.load("model")
    model.weights_[:] = np.random.default_rng(1).normal(size=model.weights_.size)
    model.save("model")
    file = workload(verb, tmp_path)
    status, _, said = run("report", "model", file, "--html", "report.html", "--resamples", "0")
    assert status == 0, said
    page = Path("report.html").read_text()
    assert "<script" not in page and "style=" not in page and "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert 'id="worst"' in page or verb in ("classify", "constituency")
    assert refused("report", "model", file, "--html", "model").count("would be lost") == 1


@pytest.mark.parametrize("verb", VERBS)
def test_a_run_goes_on_from_a_model_and_says_which_it_was(verb, tmp_path):
    train(verb, tmp_path)
    status, _, said = run("train", verb, workload(verb, tmp_path), "-o", "more", "--start-from", "model", "--epochs", "1")
    assert status == 0, said
    other = next(name for name in VERBS if name != verb)
    said = refused("train", other, workload(other, tmp_path), "-o", "another", "--start-from", "model")
    assert BY_VERB[verb].does in said and BY_VERB[other].does in said


@pytest.mark.parametrize("verb", VERBS)
def test_class_and_file_and_pickle_are_one(verb, tmp_path):
    train(verb, tmp_path)
    task = BY_VERB[verb]
    model = partwise.load("model")
    assert type(model) is task.public is getattr(partwise, task.estimator)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.weights_, model.weights_)
    plain = task.core.load("model")
    np.testing.assert_array_equal(plain.weights_, model.weights_)
    with pytest.raises(partwise.ModelFileError, match="holds a"):
        next(other for other in TASKS if other is not task).public.load("model")


@pytest.mark.parametrize("verb", VERBS)
def test_losses_and_solvers_with_parameters(verb, tmp_path):
    said = refused("train", verb, workload(verb, tmp_path), "-o", "out", "--loss", "family(alpha=1)")
    assert "beta" in said and "gamma" in said
    said = refused("train", verb, workload(verb, tmp_path), "-o", "out", "--solver", "nslack(colour='b')")
    assert "variant" in said
    for hostile in ("__import__('os').getcwd()", "().__class__", "family(beta=10**10**10)", "lambda: 1", "family(" * 50):
        refused("train", verb, workload(verb, tmp_path), "-o", "out", "--loss", hostile)


BAD_FILES = {
    "nothing": b"",
    "blank": b"\n\n   \n",
    "noise": bytes(np.random.default_rng(0).integers(0, 256, 999, dtype=np.uint8)),
    "zeros": bytes(100),
    "cut.gz": gzip.compress(b"some text that is long enough to be cut in two\n" * 50)[:60],
    "model": b"\x08\x00\x00\x00\x00\x00\x00\x00{}      ",
}


@pytest.mark.parametrize("verb", VERBS)
def test_files_that_are_no_data(verb, tmp_path):
    for name, content in BAD_FILES.items():
        (tmp_path / name).write_bytes(content)
        said = refused("train", verb, name, "-o", "out")
        assert "partwise: error:" in said and (name in said or "no " in said), (name, said)
    assert "there-is-none" in refused("train", verb, "there-is-none", "-o", "out")
    (tmp_path / "folder").mkdir()
    refused("train", verb, "folder", "-o", "out")


@pytest.mark.parametrize("verb", VERBS)
def test_nothing_is_written_over_what_is_read(verb, tmp_path):
    file = workload(verb, tmp_path)
    os.link(file, "same")
    Path("link").symlink_to(file)
    for output in (file, "same", "link"):
        assert "would be lost" in refused("train", verb, file, "-o", output)
    assert "would be lost" in refused("train", verb, file, "--dev", file, "-o", "out", "--history", "same")
    assert "same file" in refused("train", verb, file, "-o", "out", "--history", "out")
    assert "same file" in refused("train", verb, file, "-o", "out", "--curve", tmp_path / "out")
    train(verb, tmp_path)
    assert "would be lost" in refused("predict", "model", file, "-o", "model")
    assert "would be lost" in refused("predict", "model", file, "-o", "link")
    assert "would be lost" in refused("inspect", "model", "--picture", "model")


@pytest.mark.parametrize("verb", VERBS)
def test_places_that_cannot_be_written(verb, tmp_path):
    file = workload(verb, tmp_path)
    (tmp_path / "folder").mkdir()
    assert "is a folder" in refused("train", verb, file, "-o", "folder")
    assert "there is no folder" in refused("train", verb, file, "-o", "nowhere/model")
    assert "there is no folder" in refused("train", verb, file, "-o", "out", "--history", "nowhere/history.json")


@pytest.mark.parametrize("verb", VERBS)
def test_parameters_that_cannot_be(verb, tmp_path):
    file = workload(verb, tmp_path)
    for words, message in (
        (("--loss", "hing"), "hinge"),
        (("--solver", "adam"), "dca"),
        (("-C", "-1"), "(0, inf)"),
        (("-C", "nan"), "(0, inf)"),
        (("--epochs", "0"), "epochs"),
        (("--dtype", "float16"), "float64"),
        (("--jobs", "0"), "n_jobs"),
        (("--l1-ratio", "2"), "l1-ratio"),
        (("--no-such-option",), "no-such-option"),
    ):
        assert message in refused("train", verb, file, "-o", "out", *words), words


@pytest.mark.parametrize("verb", VERBS)
def test_models_that_are_none(verb, tmp_path):
    file = workload(verb, tmp_path)
    train(verb, tmp_path)
    whole = Path("model").read_bytes()
    for name, content in {"cut": whole[: len(whole) // 2], "text": b"hello", "empty": b"", "flipped": flipped(whole)}.items():
        Path(name).write_bytes(content)
        for verb_of_models in ("predict", "evaluate"):
            assert name in refused(verb_of_models, name, file)
        assert name in refused("inspect", name)
    assert "there-is-none" in refused("predict", "there-is-none", file)


def flipped(data: bytes) -> bytes:
    """One bit of the last tensor is another."""
    return data[:-9] + bytes([data[-9] ^ 1]) + data[-8:]


def test_options_of_other_tasks_are_refused_by_name(tmp_path):
    train("fold", tmp_path)
    said = refused("predict", "model", workload("fold", tmp_path), "--kbest", "3")
    assert "--kbest is for a model that labels sequences" in said and "folds RNA" in said


def test_options_of_one_name_mean_the_same_everywhere():
    """Verbs of models show the options of all tasks together, each once."""
    from partwise.cli.model_verbs import options_of
    from partwise.cli.options import as_parameters

    for verb in ("predict", "evaluate", "inspect", "suspects", "report"):
        seen = {}
        for task in TASKS:
            for one in as_parameters(options_of(task, verb)) if options_of(task, verb) else ():
                kind = (one.kind, one.names, one.default)
                assert seen.setdefault(one.name, kind) == kind, (verb, task.verb, one.name)
