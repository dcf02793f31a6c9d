"""Training on examples in several places: the same result wherever they are, and that of memory where solvers are exact."""

from __future__ import annotations

import importlib.util
import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import partwise
from partwise.engine.dask_places import ClusterLost
from partwise.files.packed_arrays import PackedError
from partwise.tasks.common import packed_corpus
from partwise.tasks.common.registry import BY_VERB

EXACT = [("lbfgs", "crf"), ("bmrm", "hinge"), ("bmrm_ls", "crf"), ("oneslack", "hinge"), ("ocas", "hinge"), ("proximal", "crf")]
EXACT += [("nrbm", "hinge"), ("polyak", "hinge"), ("bmrm", "ramp")]
MIXED = [("perceptron", "perceptron"), ("mira", "hinge"), ("dca", "crf"), ("sgd", "hinge"), ("pegasos", "hinge"), ("dca", "ramp")]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    text = BY_VERB["tag"].command.tiny[1]
    (folder / "chunks.txt").write_text("\n\n".join([text, text.replace("dog", "cow"), text.replace("the", "that"), text]))
    with partwise.interpret():
        return partwise.pack("tag", folder / "chunks.txt", folder / "corpus.packed", shard_megabytes=1e-4)


def fit(corpus, solver, loss, engine=None, **more):
    Labeler = BY_VERB["tag"].core
    more = {"max_epochs": 4, "tol": 1e-12, "dtype": "float64", **more}
    return Labeler(solver=solver, loss=loss, engine=engine, **more).fit(partwise.PackedCorpus(corpus.path))


@pytest.mark.interpreted
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("solver", "loss"), [EXACT[0], EXACT[-1], *(pytest.param(*one, marks=pytest.mark.slow) for one in EXACT[1:-1])]
)
def test_exact_solvers_find_the_same_in_parts(corpus, solver, loss):
    assert corpus.n_shards > 3
    with partwise.interpret():
        here, parts = fit(corpus, solver, loss, max_epochs=3), fit(corpus, solver, loss, "parts", max_epochs=3)
    if solver != "oneslack":  # which has no cache of outputs there
        np.testing.assert_allclose(parts.weights_, here.weights_, rtol=1e-6, atol=1e-9)
        assert parts.result_.primal == pytest.approx(here.result_.primal, rel=1e-9)
        assert parts.result_.dual == pytest.approx(here.result_.dual, rel=1e-9, nan_ok=True)


@pytest.mark.interpreted
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("solver", "loss"), [*(pytest.param(*one, marks=pytest.mark.slow) for one in MIXED[:-2]), *MIXED[-2:]])
def test_mixing_learns_and_depends_on_the_parts_alone(corpus, solver, loss):
    with partwise.interpret():
        one, two = fit(corpus, solver, loss, "parts"), fit(corpus, solver, loss, "parts", n_jobs=2)
        assert one.weights_.tobytes() == two.weights_.tobytes()
        assert one.predict([[("the", "D"), ("dog", "N")]]) == [["B-NP", "I-NP"]]


@pytest.mark.interpreted
def test_what_cannot_is_refused(corpus):
    with partwise.interpret():
        with pytest.raises(ValueError, match="'sdm' keeps something for every example.*lbfgs"):
            fit(corpus, "sdm", "hinge", "parts")
        with pytest.raises(ValueError, match="fit needs a PackedCorpus"):
            BY_VERB["tag"].core(engine="parts").fit([[["a"], ["b"]]], [["A", "B"]])
        with pytest.raises(ValueError, match="The 'engine' parameter"):
            fit(corpus, "lbfgs", "crf", "spark")
        missing = importlib.util.find_spec("distributed") is None
        what = (ImportError, "partwise\\[cluster\\]") if missing else (ValueError, "engine='dask' needs a cluster")
        with pytest.raises(what[0], match=what[1]):
            fit(corpus, "lbfgs", "crf", "dask")


# ---------------------------------------------------------------------------------------------------------------------
# Real processes
# ---------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def cluster(monkeypatch):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setenv("PARTWISE_INTERPRET", "1")
    how = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with distributed.LocalCluster(**how, silence_logs=50) as cluster, distributed.Client(cluster) as client, partwise.interpret():
        yield client


def processes(client):
    """Ids of the processes of the workers."""
    return list(client.run(os.getpid).values())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_cluster_finds_the_same_to_the_bit(corpus, cluster):
    for solver, loss in (*EXACT, *MIXED):
        here, there = fit(corpus, solver, loss, "parts"), fit(corpus, solver, loss, "dask")
        assert here.weights_.tobytes() == there.weights_.tobytes(), (solver, loss)
    cluster.cluster.scale(3)
    cluster.wait_for_workers(3)
    there = fit(corpus, "lbfgs", "crf", cluster)
    assert fit(corpus, "lbfgs", "crf", "parts").weights_.tobytes() == there.weights_.tobytes()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_workers_that_are_killed_change_nothing(corpus, cluster):
    """kill -9 at random moments, until twenty of them are dead."""
    expected = fit(corpus, "lbfgs", "crf", "parts", max_epochs=40).weights_.tobytes()
    rng, killed, over = np.random.default_rng(0), [], threading.Event()

    def kill():
        while not over.is_set() and len(killed) < 20:
            time.sleep(rng.uniform(0.2, 1.0))
            known = {about["name"] for about in cluster.scheduler_info(n_workers=-1)["workers"].values()}
            alive = [worker.pid for name, worker in cluster.cluster.workers.items() if name in known and worker.pid]
            if len(alive) == 2:  # dask gives up a worker that dies while it starts
                time.sleep(rng.uniform(0.0, 0.5))
                victim = alive[int(rng.integers(len(alive)))]
                try:
                    os.kill(victim, signal.SIGKILL)
                    killed.append(victim)
                except ProcessLookupError:
                    pass

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        while len(killed) < 20:
            assert fit(corpus, "lbfgs", "crf", "dask", max_epochs=40).weights_.tobytes() == expected
    finally:
        over.set()
        thread.join()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_all_workers_dead_and_going_on(corpus, cluster, tmp_path, monkeypatch):
    from partwise.engine import dask_places

    def hurried(self, *given, wait=30.0, **more):
        original(self, *given, wait=1.0, **more)

    original = dask_places.DaskPlaces.__init__
    monkeypatch.setattr(dask_places.DaskPlaces, "__init__", hurried)
    expected = fit(corpus, "lbfgs", "crf", "parts", max_epochs=6).weights_.tobytes()
    Labeler, checkpoint = BY_VERB["tag"].core, tmp_path / "model.checkpoint"
    how = {"solver": "lbfgs", "loss": "crf", "max_epochs": 6, "tol": 1e-12, "dtype": "float64", "engine": "dask"}

    def stop(record):
        if record.epoch == 3:
            cluster.cluster.scale(0)
            while cluster.scheduler_info()["workers"]:
                time.sleep(0.05)

    labeler = Labeler(**how, callbacks=stop)
    labeler.checkpoint_seconds = 0.0
    with pytest.raises(ClusterLost, match=r"All workers .* are gone.*model\.checkpoint.*--resume"):
        labeler.fit(partwise.PackedCorpus(corpus.path), checkpoint=checkpoint)
    cluster.cluster.scale(1)
    cluster.wait_for_workers(1)
    again = Labeler(**how).fit(partwise.PackedCorpus(corpus.path), checkpoint=checkpoint)
    assert again.weights_.tobytes() == expected
    assert not checkpoint.exists()


@pytest.mark.slow
def test_other_versions_and_damaged_shards_are_refused(corpus, cluster, tmp_path, monkeypatch):
    import shutil

    copy = tmp_path / "copy.packed"
    shutil.copytree(corpus.path, copy)
    place = Path(copy) / "main.gold.npy"
    data = bytearray(place.read_bytes())
    data[-1] ^= 1
    place.write_bytes(data)
    some = partwise.PackedCorpus(copy)
    some.verify = True
    with pytest.raises(PackedError, match=f"shard {some.n_shards - 1} .* is damaged"):
        some.places("dask").root.each(len)
    monkeypatch.setattr(packed_corpus, "__version__", "99")
    with pytest.raises(RuntimeError, match="The worker .* has partwise .* instead of 99"):
        fit(corpus, "lbfgs", "crf", "dask")
