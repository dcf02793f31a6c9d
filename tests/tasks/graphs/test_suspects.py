"""Labels of graphs that are probably wrong."""

from __future__ import annotations

import numpy as np
import pytest

from partwise import GraphLabeler
from partwise.solvers import noise
from partwise.solvers.noise import Noise

pytestmark = pytest.mark.interpreted


def paths(n=8, seed=0):
    """Paths of three nodes whose labels the features tell."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, (n, 3))
    edges = np.array([[0, 1], [1, 2]])
    return [(np.eye(2)[own] + rng.normal(0, 0.1, (3, 2)), edges) for own in y], [["ab"[k] for k in own] for own in y]


@pytest.mark.parametrize("loss", ["crf", "hinge"])
def test_a_wrong_node_is_found(loss, monkeypatch):
    monkeypatch.setattr(noise, "fit_noise", lambda judges, seed, n_jobs: Noise(2.0, 2.0, 0.05, 0.0, np.zeros((0, 0))))
    X, y = paths()
    y[3][1], y[5][0] = "ab"[y[3][1] == "a"], None
    judged = GraphLabeler(loss=loss, C=1.0, max_epochs=5).judge(X, y, folds=2)
    assert int(np.argmax(judged.found.parts)) == 10 and judged.part(10) == (y[3][1], "ab"[y[3][1] == "a"])
    assert judged.found.parts[15] == -np.inf  # what is not known is never in doubt
    suspect = judged.suspect(3)
    assert suspect.given == y[3] and [part.part for part in suspect.parts][0] == 1


def test_pictures_come_in_rows(monkeypatch):
    monkeypatch.setattr(noise, "fit_noise", lambda judges, seed, n_jobs: Noise(1.0, 2.0, 0.05, 0.0, np.zeros((0, 0))))
    X = [np.arange(4.0).reshape(2, 2, 1), np.zeros((1, 2, 1))]
    judged = GraphLabeler(max_epochs=1).judge(X, [np.array([[0, 1], [1, 1]]), np.array([[0, 0]])], folds=2)
    assert judged.example(0)[0] == [[0, 1], [1, 1]] and len(judged.example(1)[1]) == 1
    with pytest.raises(ValueError, match="There are no labels to judge"):
        GraphLabeler().judge(X, folds=2)


def test_what_is_given_around_a_node_counts_in_full(monkeypatch):
    """Features say nothing, so that a node by itself is never in doubt; its neighbours say that it is wrong."""
    monkeypatch.setattr(noise, "fit_noise", lambda judges, seed, n_jobs: Noise(1.0, 2.0, 1e-6, 0.0, np.zeros((0, 0))))
    nothing, edges = np.zeros((3, 1)), np.array([[0, 1], [1, 2]])
    model = GraphLabeler(loss="crf", C=1.0, max_epochs=20).fit([(nothing, edges)] * 8, [list("aaa"), list("bbb")] * 4)
    odd = model.judge([(nothing, edges)], [list("aba")], folds=None).found
    assert odd.evidence.given == pytest.approx(0.5, abs=0.05) and odd.parts[1] > 1.0
