"""Oracles and features of any structure against enumeration: what the tests of all structures share."""

from __future__ import annotations

import numpy as np
import pytest

from oracle_cases import Enumeration
from partwise import kernels
from partwise.engine.accumulator import accumulator
from partwise.engine.compilation import compiled_loop

K = 4


@compiled_loop
def oracles(problem, i, w, c, theta, y, ys, values, parts):
    """All oracles at once, so that they are compiled once: the best value, the number of k-best, the log-partition."""
    kernels.score(problem, i, w, theta)
    if c != 0.0:
        kernels.add_cost(problem, i, c, theta)
    value = kernels.best(problem, i, theta, y)
    found = kernels.kbest(problem, i, theta, ys, values)
    return value, found, kernels.expected(problem, i, theta, parts)


def run_oracles(problem, i, w, c):
    """Call `oracles` with fresh buffers, filled with rubbish that no oracle may rely on."""
    n, length = kernels.n_parts(problem, i), kernels.length(problem, i)
    theta, parts, y = np.full(n, 7.0), np.full(n, 7.0), np.full(length, 99, np.int32)
    ys, values = np.full((K, length), 99, np.int32), np.full(K, 7.0)
    value, found, log_z = oracles(problem, i, w, c, theta, y, ys, values, parts)
    return theta, y, value, ys[:found], values[:found], parts, log_z


def check_oracles(problem, w, digits=1e-12):
    size = max(1.0, np.abs(w).max(initial=0.0))
    for i in range(kernels.n_examples(problem)):
        for c in (0.0, 1.0, -1.0):
            theta, y, value, ys, values, parts, log_z = run_oracles(problem, i, w, c)
            truth = Enumeration(problem, i, theta)
            if truth.best == -np.inf:
                assert value == -np.inf and log_z == -np.inf and len(values) == 0
                continue
            possible = truth.values > -np.inf
            # parts, features and costs tell the same story
            np.testing.assert_allclose(
                truth.values[possible], (truth.features @ w + c * truth.costs)[possible], rtol=1e-9, atol=1e-9 * size
            )
            # best
            assert value == pytest.approx(truth.best, rel=digits, abs=digits * size)
            assert kernels.value_of(problem, i, theta, y) == pytest.approx(value, rel=digits, abs=digits * size)
            # k-best: right values, in order, of distinct outputs
            np.testing.assert_allclose(values, np.sort(truth.values[possible])[::-1][:K], rtol=digits, atol=digits * size)
            assert len({tuple(row) for row in ys}) == len(ys)
            for row, v in zip(ys, values, strict=True):
                assert kernels.value_of(problem, i, theta, row) == pytest.approx(v, rel=digits, abs=digits * size)
            # log-partition, part marginals, expected features
            assert log_z == pytest.approx(truth.log_partition, rel=digits, abs=100 * digits)
            marginals = np.zeros_like(parts)
            for output, p in zip(truth.outputs, truth.probabilities, strict=True):
                kernels.indicate(problem, i, output, p, marginals)
            tolerance = 1e-9 if size < 1e3 else 1e-6  # differences of scores of 1e6 have six digits fewer
            np.testing.assert_allclose(parts, marginals, rtol=0, atol=tolerance)
            expected = np.zeros_like(w)
            kernels.add_parts(problem, i, parts, 1.0, expected)
            np.testing.assert_allclose(expected, truth.probabilities @ truth.features, rtol=0, atol=10 * tolerance)
            # entropy from marginals alone: log Z - E[score]
            p, rounding = truth.probabilities[truth.probabilities > 0], 1e-15 * truth.best**2  # of marginals, times the score
            entropy = -(p * np.log(p)).sum()
            assert log_z - parts[parts > 0.0] @ theta[parts > 0.0] == pytest.approx(entropy, abs=1e-8 * size + rounding)


def check_max_marginals(problem, w, digits=1e-12):
    """Of every part the best output that has it, found by looking at all."""
    size = max(1.0, np.abs(w).max(initial=0.0))
    for i in range(kernels.n_examples(problem)):
        n = kernels.n_parts(problem, i)
        theta, parts, own, right = np.zeros(n), np.full(n, 7.0), np.zeros(n), np.full(n, -np.inf)
        kernels.score(problem, i, w, theta)
        truth = Enumeration(problem, i, theta)
        for y, value in zip(truth.outputs, truth.values, strict=True):
            own[:] = 0.0
            kernels.indicate(problem, i, y, 1.0, own)
            right[own > 0.0] = np.maximum(right[own > 0.0], value)
        assert kernels.max_marginals(problem, i, theta, parts) == pytest.approx(truth.best, rel=digits, abs=digits * size)
        np.testing.assert_allclose(parts, right, rtol=digits, atol=10 * digits * size)


def check_features(problem, w):
    rng = np.random.default_rng(0)
    size = max(1.0, np.abs(w).max(initial=0.0))
    first, second = (accumulator(len(w), kernels.width(problem)) for _ in range(2))
    for i in range(kernels.n_examples(problem)):
        everything = list(kernels.outputs(problem, i))
        chosen = [everything[k] for k in rng.integers(len(everything), size=4)]
        F = np.zeros((4, len(w)))
        for y, f in zip(chosen, F, strict=True):
            kernels.add_features(problem, i, y, 1.0, f)
        t = chosen[0]
        for y, f in zip(chosen, F, strict=True):
            dense = np.zeros(len(w))
            kernels.difference(problem, i, t, y, 2.0, dense)
            np.testing.assert_allclose(dense, 2.0 * (F[0] - f), atol=1e-12)
            kernels.difference(problem, i, t, y, 2.0, first)
            np.testing.assert_array_equal(first.value[: len(w)], dense)
            kernels.clear(first)
            assert kernels.margin(problem, i, w, t, y, first) == pytest.approx(w @ (F[0] - f), rel=1e-9, abs=1e-9 * size)
        products = np.zeros((4, 4))
        kernels.gram(problem, i, t, np.array(chosen), 4, products, first, second)
        np.testing.assert_allclose(products, (F[0] - F) @ (F[0] - F).T, atol=1e-10)
        assert not first.value.any() and not first.count[0] and not second.count[0]


def check_agreement(problem, w, unknown=None):
    """How far marginals, and outputs, agree with the truth: by looking at every output. `unknown`: what stands for no truth."""
    for i in range(kernels.n_examples(problem)):
        n, length = kernels.n_parts(problem, i), int(kernels.length(problem, i))
        theta, parts, gold, given = np.zeros(n), np.zeros(n), np.zeros(length, np.int32), np.full(length, 7.0)
        kernels.score(problem, i, w, theta)
        truth = Enumeration(problem, i, theta)
        if truth.best == -np.inf:
            continue
        kernels.truth(problem, i, gold)
        right = np.array([(y == gold) | (gold == unknown) for y in truth.outputs])
        kernels.expected(problem, i, theta, parts)
        kernels.agreement(problem, i, parts, given)
        np.testing.assert_allclose(given, truth.probabilities @ right, atol=1e-6 if np.abs(w).max(initial=0.0) > 1e3 else 1e-9)
        for y, same in zip(truth.outputs[:20], right, strict=False):
            parts[:] = 0.0
            kernels.indicate(problem, i, y, 1.0, parts)
            kernels.agreement(problem, i, parts, given)
            np.testing.assert_array_equal(given, same)
