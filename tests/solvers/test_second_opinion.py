"""The second opinion: the share that is wrong, and how much the first one counts beside it."""

import numpy as np
import pytest

from partwise.solvers.second_opinion import LEAST, both_opinions, confused_alone, log_rest, share_alone, sigmoid


def test_the_share_is_the_likeliest_one():
    rng = np.random.default_rng(0)
    one = rng.beta(0.2, 0.2, 4000)  # the probability of the second of two values
    given = (rng.random(4000) < one) ^ (rng.random(4000) < 0.1)  # a tenth are wrong
    p = np.where(given, one, 1.0 - one).clip(1e-9, 1 - 1e-9)
    alone = np.log1p(-p) - np.log(p)
    found = share_alone(alone, np.ones(4000))
    shares = np.linspace(0.01, 0.4, 400)
    likelihood = [np.log((1 - a) * p + a * (1 - p)).sum() for a in shares]
    assert found == pytest.approx(shares[np.argmax(likelihood)], abs=0.002)
    assert 0.07 < found < 0.13
    assert share_alone(np.full(9, -50.0), np.ones(9)) == LEAST and share_alone(np.full(9, 50.0), np.ones(9)) == 0.5
    none = np.concatenate([np.ones(4000), np.zeros(1000)])  # what does not count changes nothing
    assert share_alone(np.concatenate([alone, np.full(1000, 9.0)]), none) == found


def test_what_is_confused_is_found_by_positions_alone():
    """A tenth is wrong: 0 where it should be 1, and 2 where it should be 0; and the model is less sure than it might be."""
    rng, n = np.random.default_rng(0), 6000
    channel = np.array([[0.8, 0.0, 0.2, 0.0], [0.2, 0.8, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
    true = np.exp(rng.normal(scale=4.0, size=(n, 4)))
    true /= true.sum(axis=1, keepdims=True)
    y = np.array([rng.choice(4, p=row) for row in true])
    given = np.array([rng.choice(4, p=channel[k]) for k in y])
    flat = np.sqrt(true)
    found = confused_alone(flat / flat.sum(axis=1, keepdims=True), given, np.ones(n))
    assert found.power == pytest.approx(2.0, abs=0.2) and not np.diag(found.weights).any()
    np.testing.assert_allclose(found.weights.sum(axis=1), 3.0)
    assert found.weights[1].argmax() == 0 and found.weights[0].argmax() == 2 and found.weights[[1, 0], [0, 2]].min() > 2.0
    sure = np.eye(4)[given]
    none = confused_alone(sure, given, np.ones(n))  # nothing is in doubt: values are taken for frequent ones
    frequent = np.bincount(given)
    assert none.power == 1.0 and none.weights[0] == pytest.approx(3 * np.r_[0, frequent[1:]] / frequent[1:].sum(), abs=1e-3)


def test_the_first_opinion_counts_as_far_as_it_finds_mistakes():
    starts, alone = np.array([0, 2, 2, 4]), np.array([3.0, -9.0, -9.0, -9.0])
    share = share_alone(alone, np.ones(4))
    second = alone + np.log(share) - np.log1p(-share)
    for first in (np.array([2.0, -6.0, -6.0, -6.0]), np.full(4, -12.0)):  # finds as many; finds none
        weight = 0.5 * min(1.0, sigmoid(first).mean() / share)
        examples, parts = both_opinions(starts, np.array([1.0, -np.inf, -5.0]), first, alone, np.zeros(3))
        np.testing.assert_allclose(parts, weight * first + (1 - weight) * second)
        none = (1 - sigmoid(second[:2])).prod()
        assert examples[0] == pytest.approx(weight + (1 - weight) * np.log((1 - none) / none))
        assert examples[1] == -np.inf  # nothing is given there
    assert weight < 1e-3
    examples, parts = both_opinions(starts, np.array([1.0, -np.inf, -5.0]), first, alone, np.array([1.0, 0.0, 0.0]))
    np.testing.assert_allclose(parts[:2], first[:2])  # it is random, and only the first opinion knows of that
    assert examples[0] == pytest.approx(1.0)


def test_what_is_unknown_is_never_in_doubt():
    starts = np.array([0, 3])
    first, alone = np.array([-np.inf, np.inf, -1.0]), np.array([5.0, 700.0, -700.0])
    examples, parts = both_opinions(starts, np.zeros(1), first, alone, np.ones(1))
    assert parts[0] == -np.inf and parts[1] == np.inf and np.isfinite(parts[2]) and np.isfinite(examples[0])
    nothing = both_opinions(starts, np.array([-np.inf]), np.full(3, -np.inf), np.zeros(3), np.zeros(1))
    assert all(np.all(one == -np.inf) for one in nothing)


def test_log_rest():
    np.testing.assert_allclose(log_rest(np.log([0.25, 1e-9, 1.0 - 1e-9])), np.log([0.75, 1 - 1e-9, 1e-9]), rtol=1e-6)
