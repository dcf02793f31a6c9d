"""Training on examples in several places: the same result wherever they are, and that of memory where solvers are exact."""

from __future__ import annotations

import importlib.util
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from tests.worker_processes import Workers, cluster_of, scheduler_process

import partwise
from partwise.engine.dask_places import ClusterLost
from partwise.files.packed_arrays import PackedError
from partwise.tasks.common import packed_corpus
from partwise.tasks.common.registry import BY_VERB

EXACT = [("lbfgs", "crf"), ("bmrm", "hinge"), ("bmrm_ls", "crf"), ("oneslack", "hinge"), ("ocas", "hinge"), ("proximal", "crf")]
EXACT += [("nrbm", "hinge"), ("polyak", "hinge"), ("kelley", "hinge"), ("owlqn", "crf"), ("lbfgs", "soft_ramp"), ("bmrm", "ramp")]
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
    more = {"max_epochs": 4, "tol": 1e-12, "dtype": "float64", "l1_ratio": 0.5 if solver == "owlqn" else 0.0, **more}
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
def test_threads_that_have_nothing_to_do_are_told_of(corpus):
    with partwise.interpret(), pytest.warns(UserWarning, match=r"8 shards.* 2 of 10 threads .*--shard-megabytes 0\.01"):
        assert len(partwise.PackedCorpus(corpus.path).places("parts", 10)) == corpus.n_shards == 8


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


def waiting(monkeypatch, seconds):
    """Wait so long for workers, where it would be half a minute."""
    from partwise.engine import dask_places

    def another(self, *given, wait=30.0, **more):
        original(self, *given, wait=seconds, **more)

    original = dask_places.DaskPlaces.__init__
    monkeypatch.setattr(dask_places.DaskPlaces, "__init__", another)


@pytest.fixture
def interpreted(monkeypatch):
    """Here and in the workers."""
    pytest.importorskip("distributed")
    monkeypatch.setenv("PARTWISE_INTERPRET", "1")
    with partwise.interpret():
        yield


@pytest.fixture
def cluster(interpreted):
    with cluster_of(2) as (client, workers):
        client.processes = workers
        yield client


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_cluster_finds_the_same_to_the_bit(corpus, interpreted):
    """Whoever works: threads here, or one, two, four processes."""
    here = {one: fit(corpus, *one, "parts").weights_.tobytes() for one in EXACT}
    mixed = {one: fit(corpus, *one, "parts", mixing_parts=3).weights_.tobytes() for one in MIXED}
    with cluster_of(1) as (client, workers):
        for n, more in ((1, 1), (2, 2), (4, 0)):
            for one, expected in here.items():
                assert fit(corpus, *one, client).weights_.tobytes() == expected, (n, one)
            for one, expected in mixed.items():
                assert fit(corpus, *one, client, mixing_parts=3).weights_.tobytes() == expected, (n, one)
            workers.start(more)
            client.wait_for_workers(n + more)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", [0, 1])
def test_workers_that_are_killed_change_nothing(corpus, cluster, seed, monkeypatch):
    """kill -9 at random moments, until twenty of them are dead; now and then nobody is left for a while."""
    waiting(monkeypatch, 300.0)
    expected = fit(corpus, "lbfgs", "crf", "parts", max_epochs=40).weights_.tobytes()
    rng, workers, over = np.random.default_rng(seed), cluster.processes, threading.Event()

    def kill():
        while not over.wait(rng.uniform(0.0, 2.0)) and workers.killed < 20:
            workers.kill(int(rng.integers(2)))
            workers.start()
            until = time.monotonic() + 60
            while rng.random() < 0.9 and not cluster.scheduler_info(n_workers=-1)["workers"] and time.monotonic() < until:
                time.sleep(0.1)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        while workers.killed < 20:
            assert fit(corpus, "lbfgs", "crf", "dask", max_epochs=40).weights_.tobytes() == expected
    finally:
        over.set()
        thread.join()


def going_on_after(corpus, checkpoint, happening, words, client):
    """Something happens after the third epoch of six: the error has these words. Returns a function that goes on."""
    Labeler = BY_VERB["tag"].core
    how = {"solver": "lbfgs", "loss": "crf", "max_epochs": 6, "tol": 1e-12, "dtype": "float64"}

    def stop(record):
        if record.epoch == 3:
            happening()

    labeler = Labeler(**how, callbacks=stop, engine=client)
    labeler.checkpoint_seconds = 0.0
    with pytest.raises(ClusterLost, match=words + r".*model\.checkpoint.*--resume"):
        labeler.fit(partwise.PackedCorpus(corpus.path), checkpoint=checkpoint)

    def go_on(client):
        again = Labeler(**how, engine=client).fit(partwise.PackedCorpus(corpus.path), checkpoint=checkpoint)
        assert again.result_.history[0].epoch == 1 and again.result_.n_epochs == 6
        assert again.weights_.tobytes() == fit(corpus, "lbfgs", "crf", "parts", max_epochs=6).weights_.tobytes()
        assert not checkpoint.exists()

    return go_on


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_all_workers_dead_and_going_on(corpus, cluster, tmp_path, monkeypatch):
    waiting(monkeypatch, 1.0)
    go_on = going_on_after(corpus, tmp_path / "model.checkpoint", cluster.processes.kill_all, "All workers .* are gone", cluster)
    cluster.processes.start()
    cluster.wait_for_workers(1)
    go_on(cluster)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_scheduler_is_gone(corpus, interpreted, tmp_path):
    import distributed

    with scheduler_process(tmp_path / "scheduler.json") as (address, scheduler):
        workers = Workers(address)
        workers.start()
        try:
            with distributed.Client(address, timeout=5) as client:
                client.wait_for_workers(1, timeout=120)
                go_on = going_on_after(corpus, tmp_path / "model.checkpoint", scheduler.kill, "The scheduler .* is gone", client)
        finally:
            workers.kill_all()
    with cluster_of(1) as (client, _):
        go_on(client)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_worker_that_runs_out_of_memory(corpus, interpreted, tmp_path):
    """Its nanny ends it and starts another, which has no more room: an error after a few of them, and no wait for ever."""
    import distributed

    how = {"n_workers": 1, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0", "silence_logs": 50}
    with distributed.LocalCluster(**how, memory_limit="400MB") as cluster, distributed.Client(cluster) as client:
        places = partwise.PackedCorpus(corpus.path).places(client)
        with pytest.raises(ClusterLost, match="out of memory"):
            places.root.each(take_more_and_more)


def take_more_and_more(part):
    taken = []
    while True:
        taken.append(bytearray(10_000_000))
        time.sleep(0.01)


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
