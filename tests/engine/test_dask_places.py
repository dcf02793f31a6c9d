from __future__ import annotations

import os
import pickle
import signal
from pathlib import Path

import numpy as np
import pytest
from tests.worker_processes import cluster_of

from partwise.engine.dask_places import ClusterLost, DaskPlaces, Held, ThinVector, load_group, thin
from partwise.engine.places import Places

EDGES = [0, 3, 4, 10, 11, 17, 18, 19, 25, 30, 40]


def part(first, last):
    return np.arange(first, last) + 0.1


def scaled(numbers, piece, w):
    return float(w[:3].sum()) * float(np.sum(numbers * piece)) / 3.0


def moved(numbers, w):
    return numbers + w[-1]


def add(a, b):
    return a + b


def deadly(numbers, mark):
    """The first one who comes here dies."""
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return float(np.sum(numbers))
    os.kill(os.getpid(), signal.SIGKILL)


def greedy(numbers):
    raise MemoryError("no room")


def wrong(numbers):
    raise ValueError("not so")


def refused(numbers):
    raise OSError("gone")


def test_vectors_are_sent_as_what_is_not_zero():
    few = np.zeros(1000, np.float32)
    few[[3, 999]] = 2.0, -0.0
    sent = pickle.loads(pickle.dumps(thin(few)))
    assert isinstance(sent, ThinVector) and sent.nbytes == 16
    assert sent.dense().tobytes() == few.tobytes()
    for value in (np.ones(1000, np.float32), np.zeros((5, 5))):
        assert thin(value) is value


def test_parts_are_sent_as_how_they_were_made():
    held = Held(load_group, part, list(range(0, 10_001, 1000)))
    data = pickle.dumps(held)
    assert len(data) < 1000
    again = pickle.loads(data)
    assert len(again) == 10 and np.array_equal(again.parts[9], held.parts[9])


def test_sums_on_a_cluster_where_a_worker_dies(tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    whole, w = part(0, 40), np.random.default_rng(0).normal(size=5000)
    here = Places(whole, EDGES, part)
    with cluster_of(2) as (client, workers):
        there = DaskPlaces(client, whole, EDGES, part, versions=lambda: {"all": 1})
        pieces = [places.cut(whole) for places in (here, there)]
        for _ in range(2):
            found = [p.root.total(add, scaled, w, pieces=own) for p, own in zip((here, there), pieces, strict=True)]
            assert found[0] == found[1]
        found = [p.root.then(moved, w).each(moved, w) for p in (here, there)]
        assert len(found[1]) == 10 and np.array_equal(np.concatenate(found[0]), np.concatenate(found[1]))
        sent = there.bytes_sent
        assert sent == 4 * w.nbytes  # two sums, and one in each of the two steps of the last pass

        mark = str(tmp_path / "mark")
        total = there.root.total(add, deadly, mark)
        assert Path(mark).exists() and [process.poll() is None for process in workers.running].count(False) == 1
        assert total == here.root.total(add, deadly, mark)

        with pytest.raises(ValueError, match="not so"):
            there.root.each(wrong)
        with pytest.raises(ClusterLost, match=r"ran out of memory \(no room\)"):
            there.root.each(greedy)
        monkeypatch.setattr("partwise.engine.dask_places.ATTEMPTS", 2)
        with pytest.raises(ClusterLost, match="lost 2 times in one pass; the last time: gone"):
            there.root.each(refused)
        workers.kill_all()
        there.wait = 0.5
        with pytest.raises(ClusterLost, match="All workers of the cluster are gone"):
            there.root.each(wrong)
