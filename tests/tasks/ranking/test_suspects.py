"""Queries and documents whose relevance is probably wrong."""

from __future__ import annotations

import numpy as np
import pytest

from partwise import Ranker
from partwise.metrics import average_precision
from partwise.tasks.ranking.suspects import fit_channel, log_shares, share_of

pytestmark = pytest.mark.interpreted


def queries(n=8, size=12, seed=0):
    """Documents whose first feature tells how relevant they are, in queries of their own level; not in order."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n * size)
    qid = rng.permutation(np.repeat(np.arange(n), size))
    X = np.column_stack([y + rng.normal(0, 0.2, n * size) + 5.0 * qid, rng.normal(size=n * size)])
    return X, y, qid


@pytest.fixture(scope="module")
def judged():
    """Documents, some of them wrong, and a query that is shuffled; and what is thought of it."""
    X, y, qid = queries()
    noisy, rng = y.copy(), np.random.default_rng(1)
    own = np.flatnonzero(qid == qid[5])
    noisy[own] = 2 - noisy[own]
    some = rng.choice(np.flatnonzero(qid != qid[5]), 4, replace=False)
    noisy[some] = (noisy[some] + 1) % 3
    return X, y, qid, noisy, Ranker(objective="pairwise", loss="crf").judge(X, noisy, qid=qid, folds=2)


def test_documents_and_queries_are_found(judged):
    X, y, qid, noisy, found = judged
    order = list(dict.fromkeys(qid.tolist()))
    assert found.ranked() == [order.index(qid[5])]
    suspect = found.suspect(found.ranked()[0])
    rows = [part.part for part in suspect.parts]
    assert set(qid[rows]) == {qid[5]} and all(part.given == noisy[part.part] for part in suspect.parts)
    assert np.mean([part.believed == y[part.part] for part in suspect.parts]) > 0.8
    assert found.found.noise.shuffled == pytest.approx(1 / 8, abs=0.05)


def test_suspicion_of_documents_is_in_the_order_of_rows(judged, monkeypatch):
    X, y, qid, noisy, found = judged
    ranker = Ranker()
    monkeypatch.setattr(Ranker, "judge", lambda self, *given, **more: found)
    p = ranker.suspicion(X, noisy, qid=qid, parts=True)
    np.testing.assert_allclose(p[found.rows], 0.5 + 0.5 * np.tanh(0.5 * found.found.parts))
    assert len(p) == len(y) and len(ranker.suspicion(X, noisy, qid=qid)) == 8


def test_what_cannot_be_judged():
    X, y, qid = queries(2, 3)
    with pytest.raises(ValueError, match="There is no relevance to judge"):
        Ranker().judge(X, None, qid=qid)
    with pytest.raises(ValueError, match="there are 2 queries only"):
        Ranker().judge(X, y, qid=qid, folds=5)
    with pytest.raises(ValueError, match="40 different values"):
        Ranker().judge(np.zeros((80, 1)), np.arange(80) // 2, qid=np.arange(80) % 2, folds=2)
    with pytest.raises(ValueError, match="nothing to judge by"):
        Ranker().judge(X, np.zeros(6), qid=qid, folds=2)


def test_shares_leave_the_document_out():
    p = np.exp(log_shares(np.array([0, 0, 1, 1]), np.array([0, 0, 0, 1]), 2))
    np.testing.assert_allclose(p[0], [(1 + 1) / 4, (1 + 1) / 4])
    np.testing.assert_allclose(p[3], [0.5, 0.5])
    np.testing.assert_allclose(p.sum(axis=1), 1.0)


def test_the_share_of_shuffled_queries():
    assert share_of(np.array([50.0, *[-50.0] * 9])) == pytest.approx(0.1, abs=1e-4)
    assert share_of(np.full(5, -50.0)) < 1e-4
    r = np.linspace(0.01, 0.49, 97)
    ratio = np.array([1.0, -2.0, 0.5, -1.0, -3.0])
    likelihood = np.log(r[:, None] * np.exp(ratio) + 1 - r[:, None]).sum(axis=1)
    assert share_of(ratio) == pytest.approx(r[np.argmax(likelihood)], abs=0.01)


def test_the_noise_of_grades_and_the_sharpness_of_the_model_are_found_together():
    rng = np.random.default_rng(0)
    scores = rng.normal(0, 4, (4000, 3))
    truth = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)  # drawn by the model
    wrong = rng.random(4000) < 0.1
    given = np.where(wrong, (truth + rng.integers(1, 3, 4000)) % 3, truth)
    e, free, kept, sound = fit_channel(0.5 * scores, given)
    assert e == pytest.approx(0.1, abs=0.02)
    assert wrong[kept < 0.5].mean() > 0.7 and np.mean(1 - kept) == pytest.approx(wrong.mean(), abs=0.02)
    assert average_precision(wrong, -kept) > 0.6 and (sound <= 1).all() and ((free >= 0) & (free <= 1)).all()
