"""Segments: oracles against enumeration, extreme scores, partial labels, solvers that meet at one optimum."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from oracle_cases import Enumeration, segment_cases
from oracle_checks import check_agreement, check_features, check_oracles, run_oracles
from partwise import kernels
from partwise.engine.compilation import interpret
from partwise.losses.records import LOSSES
from partwise.oracles.kbest_by_partition import kbest_by_partition
from partwise.solvers import SOLVERS, solve
from partwise.structures import segment_problem

pytestmark = pytest.mark.interpreted


@settings(max_examples=60, deadline=None)
@given(segment_cases())
def test_oracles_equal_enumeration(case):
    check_oracles(*case)
    check_features(*case)
    check_agreement(*case)


@settings(max_examples=40, deadline=None)
@given(segment_cases(partial=True))
def test_completions_equal_enumeration(case):
    problem, w = case
    K = problem.n_labels
    if not kernels.is_partial(problem):
        return
    for i in range(kernels.n_examples(problem)):
        first, last = problem.starts[i : i + 2]
        theta = np.zeros(kernels.n_parts(problem, i))
        kernels.score(problem, i, w, theta)
        truth = Enumeration(problem, i, theta)
        gold = problem.gold[first:last]
        fine = [
            all(c == g if g < 2 * K else problem.known[g - 2 * K, c] for c, g in zip(y, gold, strict=True)) for y in truth.outputs
        ]
        values = truth.values[fine]
        y, parts = np.zeros(last - first, np.int32), np.zeros(len(theta))
        value = kernels.complete(problem, i, theta, y)
        log_z = kernels.expected_completion(problem, i, theta, 1.0, parts)
        if not len(values) or values.max() == -np.inf:
            if not kernels.is_labelled(problem, i):
                assert value == log_z == -np.inf
            continue
        size = max(1.0, np.abs(w).max(initial=0.0))
        assert value == pytest.approx(values.max(), rel=1e-12, abs=1e-12 * size)
        if not kernels.is_labelled(problem, i):
            assert log_z == pytest.approx(values.max() + np.log(np.exp(values - values.max()).sum()), rel=1e-12, abs=1e-9)
        assert kernels.value_of(problem, i, theta, y) == pytest.approx(value, rel=1e-12, abs=1e-12 * size)
        assert kernels.cost(problem, i, y) == 0.0
        given, right = (
            np.zeros(last - first),
            np.array(
                [
                    [c == g if g < 2 * K else problem.known[g - 2 * K, c] for c, g in zip(y, gold, strict=True)]
                    for y in truth.outputs
                ]
            ),
        )
        kernels.expected(problem, i, theta, parts)
        kernels.agreement(problem, i, parts, given)
        np.testing.assert_allclose(given, truth.probabilities @ right, atol=1e-6 if size > 1e3 else 1e-9)


def problem_of(T=12, seed=0, **more):
    rng = np.random.default_rng(seed)
    return segment_problem(rng.normal(size=(T, 3)), [T], n_labels=2, **more)


def test_a_segment_beyond_its_limit_has_no_score():
    problem = problem_of(4, limits=[3, 1])
    theta = np.zeros(kernels.n_parts(problem, 0))
    fine, long = np.array([2, 0, 0, 3], np.int32), np.array([2, 0, 3, 1], np.int32)  # K + k begins a segment of label k
    assert kernels.value_of(problem, 0, theta, fine) == 0.0
    assert kernels.value_of(problem, 0, theta, long) == -np.inf


def test_what_is_forgotten_costs_nothing_and_targets_stay_segments():
    gold = np.array([2, 0, 3, 1, 1], np.int32)  # K + k begins a segment of label k
    problem = segment_problem(np.ones((5, 1)), [5], gold, n_labels=2)
    known = kernels.forget(problem, np.array([False, True, False, False, True]), np.array([9, 1, 9, 9, 0], np.int32))
    assert known.targets.tolist() == [2, 3, 3, 1, 2]  # 1 cannot go on after a segment of 0, nor 0 after one of 1: they begin
    for y, cost in (
        ([2, 0, 3, 1, 1], 0.0),
        ([2, 3, 3, 1, 2], 0.0),
        ([3, 1, 3, 1, 1], kernels.cost(problem, 0, np.array([3, 0, 3, 1, 1]))),
    ):
        assert kernels.cost(known, 0, np.array(y, np.int32)) == cost, y
    assert kernels.cost(problem, 0, np.array([2, 3, 3, 1, 2], np.int32)) > 0.0


def test_what_is_not_allowed_is_never_best():
    allowed = np.ones((5, 4), bool)
    allowed[1, :2] = allowed[2, 2:] = False  # a segment begins at the second token, and none at the third
    for seed in range(20):
        rng = np.random.default_rng(seed)
        problem = segment_problem(rng.normal(size=(5, 3)), [5], n_labels=2, allowed=allowed)
        theta, y = np.zeros(kernels.n_parts(problem, 0)), np.zeros(5, np.int32)
        kernels.score(problem, 0, rng.normal(size=kernels.n_weights(problem)), theta)
        assert kernels.best(problem, 0, theta, y) > -np.inf and allowed[np.arange(5), y].all()


def test_the_k_best_are_those_of_the_partition():
    problem = problem_of(7, limits=[3, 1])
    w = np.random.default_rng(1).normal(size=kernels.n_weights(problem))
    theta, *_ = run_oracles(problem, 0, w, 0.0)
    ys, values, others = np.zeros((9, 7), np.int32), np.zeros(9), np.zeros(9)
    assert kernels.kbest(problem, 0, theta, ys, values) == kbest_by_partition(problem, 0, theta, ys.copy(), others) == 9
    np.testing.assert_allclose(values, others)


@pytest.mark.parametrize("ahead", [1.0, 150.0, 1e4])
def test_a_label_that_falls_behind_is_not_lost(ahead):
    """Two labels that never meet: tokens of the first gain, but only the second may stand at the end."""
    problem = segment_problem(np.ones((12, 1)), [12], n_labels=2, limits=4, forbidden=[(0, 1), (1, 0), (0, None)], use_ends=False)
    w = np.zeros(kernels.n_weights(problem))
    w[[0, 2]] = ahead  # inside and begin of the first label
    *_, parts, log_z = run_oracles(problem, 0, w, 0.0)
    ways = [1, 1, 2, 4, 8]
    while len(ways) < 13:
        ways.append(sum(ways[-4:]))
    assert log_z == pytest.approx(np.log(ways[12]))
    np.testing.assert_allclose(parts[:48].reshape(12, 4)[:, [1, 3]].sum(1), 1.0)


def test_what_cannot_be_is_refused_with_its_place():
    x = np.ones((3, 1))
    with pytest.raises(ValueError, match="sequence 1, token 0 a segment of label 0 goes on"):
        segment_problem(x, [2, 1], [1, 0, 0], 1)
    with pytest.raises(ValueError, match="more than its limit 1"):
        segment_problem(x, [3], [1, 0, 0], 1, limits=1)
    with pytest.raises(ValueError, match="is not within a sequence"):
        segment_problem(x, [2, 1], [1, 0, 1], 1, spans=([1], [2], _one_row()))
    with pytest.raises(ValueError, match="given twice"):
        segment_problem(x, [3], [1, 0, 1], 1, spans=([1, 1], [2, 2], _one_row(2)))


def _one_row(n=1):
    import scipy.sparse

    return scipy.sparse.csr_matrix(np.ones((n, 1)))


def test_some_sequences_keep_their_spans():
    problem = segment_problem(np.arange(5.0)[:, None], [2, 3], [1, 0, 1, 0, 1], 1, spans=([0, 2, 3], [2, 2, 1], _one_row(3)))
    taken = kernels.take(problem, np.array([1]))
    assert taken.span_ptr.tolist() == [0, 1, 2, 2] and taken.span_length.tolist() == [2, 1]
    assert kernels.n_parts(taken, 0) == kernels.n_parts(problem, 1)


@pytest.fixture(scope="module")
def small_problem():
    """Nine tokens with segments, an empty sequence, one token by itself, features of spans."""
    gold = np.array([2, 0, 3, 2, 2, 0, 3, 3, 2])
    rows = np.random.default_rng(3).normal(size=(9, 2))
    return segment_problem(rows, [4, 0, 4, 1], gold, 2, spans=([0, 4], [2, 2], _one_row(2)))


HINGE = ("sdm", "nslack", "oneslack", "bcfw", "bmrm", "bmrm_ls", "ocas", "proximal", "sdcd", "exponentiated_gradient")
CRF = ("lbfgs", "bmrm", "bmrm_ls", "eg", "proximal", "nrbm")


@pytest.mark.parametrize(("loss", "names"), [("hinge", HINGE), ("crf", CRF)])
def test_solvers_meet_at_one_optimum(loss, names, small_problem):
    names = [name for name in names if name in SOLVERS and SOLVERS[name]().accepts(LOSSES[loss])]
    values = {name: solve(small_problem, loss, name, C=0.5, tol=1e-4, max_epochs=2000).primal for name in names}
    assert len(values) >= 5
    lowest = min(values.values())
    assert {name: value for name, value in values.items() if value > lowest * (1 + 1e-3)} == {}


@pytest.mark.slow
def test_compiled_oracles_equal_interpreted_ones():
    problem = problem_of(9, limits=[4, 2])
    for size in (1.0, 300.0):
        w = size * np.random.default_rng(2).normal(size=kernels.n_weights(problem))
        compiled = run_oracles(problem, 0, w, 1.0)
        with interpret():
            interpreted = run_oracles(problem, 0, w, 1.0)
        for a, b in zip(compiled, interpreted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
