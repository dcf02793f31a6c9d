"""What the command line does on a cluster, on one of real processes: the same as here."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.worker_processes import cluster_of
from typer.testing import CliRunner

import partwise
from partwise.cli.app import app
from partwise.tasks.common.registry import BY_VERB

TINY = BY_VERB["tag"].command.tiny[1]


def run(*words):
    done = CliRunner().invoke(app, [str(word) for word in words])
    return done.exit_code, done.stdout + done.stderr


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Three files in the working folder, interpreted here and in workers."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PARTWISE_INTERPRET", "1")
    names = []
    for k, word in enumerate(("dog", "cow", "cat")):
        names.append(f"part-{k}.txt")
        Path(names[-1]).write_text("\n\n".join([TINY.replace("dog", word)] * 2))
    with partwise.interpret():
        yield names


@pytest.mark.interpreted
def test_several_files_here(files):
    assert run("train", "tag", files[0], "-o", "model", "--epochs", "2", "-q")[0] == 0
    assert run("predict", "model", files[1], "-o", "alone.txt", "-q")[0] == 0
    status, said = run("predict", "model", *files, "-o", "answers", "--json", "-q")
    assert status == 0 and json.loads(said)["sequences"] == 18, said
    assert sorted(path.name for path in Path("answers").iterdir()) == files
    assert Path("answers", files[1]).read_bytes() == Path("alone.txt").read_bytes()
    status, said = run("evaluate", "model", *files, "--json", "-q")
    alone = json.loads(run("evaluate", "model", files[2], "--json", "-q")[1])
    found = json.loads(said)["files"]
    assert status == 0 and [one["file"] for one in found] == files and found[2]["accuracy"] == alone["accuracy"]


@pytest.mark.interpreted
def test_several_files_that_cannot_be(files):
    assert run("train", "tag", files[0], "-o", "model", "--epochs", "1", "-q")[0] == 0
    Path("below").mkdir()
    Path("below", files[0]).write_text(TINY)
    for words, why in (
        (("predict", "model", *files), "go into a folder"),
        (("predict", "model", *files, "-o", files[0]), "is a file"),
        (("predict", "model", files[0], f"below/{files[0]}", "-o", "answers"), "Two of the files are called part-0.txt"),
        (("predict", "model", *files, "-o", "."), "would be lost"),
        (("evaluate", "model", files[0], "nowhere.txt"), "nowhere.txt: there is no such file"),
        (("evaluate", "model", files[0], "-"), "names of files"),
    ):
        status, said = run(*words)
        assert status == 1 and why in " ".join(said.split()), said


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_verbs_on_a_cluster(files):
    pytest.importorskip("distributed")
    with cluster_of(2) as (_, workers):
        there = ("--cluster", workers.address)
        assert run("pack", "tag", *files, "-o", "here.packed", "-q")[0] == 0
        status, said = run("pack", "tag", *files, "-o", "there.packed", "-q", *there)
        assert status == 0, said
        for path in sorted(Path("here.packed").iterdir()):
            if path.name != "manifest.json":
                assert path.read_bytes() == Path("there.packed", path.name).read_bytes(), path.name

        how = ("--solver", "lbfgs", "--loss", "crf", "--epochs", "3", "-q")
        for where, more in (("here", ()), ("there", there)):
            status, said = run("train", "tag", "there.packed", "-o", f"{where}.model", *how, *more)
            assert status == 0, said
        here, far = (partwise.load(f"{where}.model").weights_ for where in ("here", "there"))
        np.testing.assert_allclose(far, here, rtol=1e-5, atol=1e-7)

        for where, more in (("here", ()), ("there", there)):
            status, said = run("predict", "here.model", *files, "-o", f"{where}.answers", "-q", *more)
            assert status == 0, said
        for name in files:
            assert Path("here.answers", name).read_bytes() == Path("there.answers", name).read_bytes()
        found = [json.loads(run("evaluate", "here.model", *files, "--json", "-q", *more)[1])["files"] for more in ((), there)]
        for one in found[0] + found[1]:
            del one["tokens_per_second"]
        assert found[0] == found[1]

        found = []
        for more in ((), there):
            status, said = run("suspects", "here.model", files[0], "--folds", "2", "--precision", "0.1", "--json", "-q", *more)
            assert status == 0, said
            found.append(json.loads(said)["suspects"])
        assert found[0] == found[1]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_cells_of_a_table_on_a_cluster(tmp_path):
    pytest.importorskip("distributed")
    from tests.toy_experiment import Toy

    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "numbers.txt").write_text("1.5")
    from partwise.engine.cluster_map import on_cluster
    from partwise.experiments.runner import run_cells

    here = run_cells(Toy(), "quick", tmp_path, tmp_path / "here")
    with cluster_of(2) as (client, _), on_cluster(client):
        there = run_cells(Toy(), "quick", tmp_path, tmp_path / "there")
    assert [str((one.cell, one.numbers)) for one in there] == [str((one.cell, one.numbers)) for one in here]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_search_on_a_cluster(files):
    """The two lines of docs/cluster.md."""
    pytest.importorskip("distributed")
    import joblib
    from sklearn.model_selection import GridSearchCV

    X = [[("the", "D"), (noun, "N"), ("barks", "V")] for noun in ("dog", "cow", "cat", "hen", "fox", "owl")]
    y = [["B", "I", "O"]] * 6
    search = GridSearchCV(partwise.SequenceLabeler(max_epochs=1), {"C": [0.01, 1.0]}, n_jobs=-1, cv=2)
    here = search.fit(X, y).cv_results_["mean_test_score"]
    with cluster_of(2), joblib.parallel_backend("dask"):
        there = search.fit(X, y).cv_results_["mean_test_score"]
    assert np.array_equal(here, there)
