"""Every oracle of every structure against enumeration, on tiny random inputs: extreme scores, constraints, empty sequences."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from hypothesis import given, settings

from oracle_cases import Enumeration, alignment_cases, chain_cases, multiclass_cases, tree_cases
from oracle_checks import K, check_features, check_oracles, oracles, run_oracles
from partwise import kernels
from partwise.engine.compilation import interpret
from partwise.structures import chain_problem
from partwise.structures.alignment.pair_tables import PairTables
from partwise.structures.chain.sums import pair_marginals

EXAMPLES = settings(max_examples=150, deadline=None)


@EXAMPLES
@given(multiclass_cases())
def test_multiclass_oracles_equal_enumeration(case):
    check_oracles(*case)
    check_features(*case)


@EXAMPLES
@given(chain_cases())
def test_chain_oracles_equal_enumeration(case):
    check_oracles(*case)
    check_features(*case)


@EXAMPLES
@given(tree_cases())
def test_tree_oracles_equal_enumeration(case):
    check_oracles(*case)
    check_features(*case)


@EXAMPLES
@given(alignment_cases())
def test_alignment_oracles_equal_enumeration(case):
    """Pairs that come as tables compiled, those with rows of features in the interpreter: one compilation is long enough."""
    with contextlib.nullcontext() if isinstance(case[0].rows, PairTables) else interpret():
        check_oracles(*case)
        check_features(*case)


@settings(max_examples=15, deadline=None)
@given(chain_cases())
def test_interpreted_oracles_equal_compiled_ones(case):
    problem, w = case
    tolerance = 1e-9 if np.abs(w).max(initial=0.0) < 1e3 else 1e-6  # sums in another order round differently
    for i in range(kernels.n_examples(problem)):
        compiled = run_oracles(problem, i, w, 1.0)
        with interpret():
            interpreted = run_oracles(problem, i, w, 1.0)
        for a, b in zip(compiled, interpreted, strict=True):
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@settings(max_examples=50, deadline=None)
@given(chain_cases())
def test_pair_marginals_equal_enumeration(case):
    problem, w = case
    for i in range(kernels.n_examples(problem)):
        theta, *_, log_z = run_oracles(problem, i, w, 0.0)
        truth = Enumeration(problem, i, theta)
        if truth.best == -np.inf:
            continue
        pairs = pair_marginals(problem, i, theta)
        expected = np.zeros_like(pairs)
        for y, p in zip(truth.outputs, truth.probabilities, strict=True):
            for t in range(len(y) - 1):
                expected[t, y[t], y[t + 1]] += p
        np.testing.assert_allclose(pairs, expected, atol=1e-6)


def test_a_state_that_falls_behind_for_long_is_not_lost():
    """Two labels that never meet; the one that must win in the end falls behind by 150 per step. Scaled sums alone lose it."""
    T = 12
    x = np.eye(1).repeat(T, axis=0)
    problem = chain_problem(x, [T], None, 2, forbidden=[(0, 1), (1, 0), (0, None)], use_start=False, use_stop=False)
    w = np.zeros(kernels.n_weights(problem))
    w[0] = 150.0  # label 0 gains 150 at every token, but may not stand at the end
    _, y, value, _, _, parts, log_z = run_oracles(problem, 0, w, 0.0)
    assert value == 0.0 and log_z == pytest.approx(0.0, abs=1e-9)
    np.testing.assert_array_equal(y, np.ones(T))
    np.testing.assert_allclose(parts[: 2 * T].reshape(T, 2), np.tile([0.0, 1.0], (T, 1)), atol=1e-12)


def test_float32_scores_follow_float64():
    rng = np.random.default_rng(0)
    problem = chain_problem(rng.normal(size=(9, 4)), [5, 4], rng.integers(0, 3, 9), 3)
    w = rng.normal(size=kernels.n_weights(problem))
    for i in range(2):
        n, length = kernels.n_parts(problem, i), kernels.length(problem, i)
        y, ys, values = np.zeros(length, np.int32), np.zeros((K, length), np.int32), np.zeros(K)
        theta = np.zeros(n, np.float32)
        value, _, log_z = oracles(problem, i, w.astype(np.float32), 1.0, theta, y, ys, values, np.zeros(n))
        reference = run_oracles(problem, i, w, 1.0)
        assert value == pytest.approx(reference[2], rel=1e-5) and log_z == pytest.approx(reference[6], rel=1e-5)
        np.testing.assert_array_equal(y, reference[1])
