"""RNA structures: oracles against enumeration, counting, extreme scores."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings

from oracle_cases import Enumeration, folding_cases
from oracle_checks import check_agreement, check_features, check_oracles
from partwise import kernels, passes
from partwise.engine.compilation import interpret
from partwise.objective import best_outputs
from partwise.structures import folding_problem
from partwise.structures.common.semirings import SUM, make_semiring
from partwise.structures.folding import sums as folding_sums
from partwise.structures.folding.loops import tying
from partwise.structures.folding.problem import inner_of, possible_structure


def sums(problem, i, w):
    """log sum exp and part marginals, compiled."""
    theta, parts = np.full(kernels.n_parts(problem, i), 7.0), np.full(kernels.n_parts(problem, i), 7.0)
    return passes.part_pass(problem, i, w, 1.0, theta, parts), parts


@settings(max_examples=12, deadline=None)
@given(folding_cases())
def test_oracles_equal_enumeration(case):
    with interpret():  # compiling k-best takes longer than some examples
        check_oracles(*case)
        check_features(*case)
        check_agreement(*case)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(folding_cases())
def test_compiled_oracles_equal_enumeration(case):
    check_oracles(*case)
    check_features(*case)


@pytest.mark.slow
def test_compiled_oracles_equal_interpreted_ones_where_all_kinds_of_loops_are():
    """Long enough for multi-loops, whose number of structures enumeration cannot list."""
    rng = np.random.default_rng(0)
    problem = folding_problem(["".join(rng.choice(list("ACGU"), 30))])
    for scale in (0.5, 1e4):
        w = scale * rng.normal(size=kernels.n_weights(problem))
        w[tying().number("multi-loop")] += 10 * scale
        (log_z, marginals), (found, _, values) = sums(problem, 0, w), best_outputs(problem, w)
        with interpret():
            theta, parts, y = np.zeros(len(marginals)), np.zeros(len(marginals)), np.zeros(30, np.int32)
            kernels.score(problem, 0, w, theta)
            assert kernels.best(problem, 0, theta, y) == pytest.approx(values[0], rel=1e-12)
            assert kernels.expected(problem, 0, theta, parts) == pytest.approx(log_z, rel=1e-12)
        np.testing.assert_array_equal(y, found)
        np.testing.assert_allclose(parts, marginals, atol=1e-8 if scale < 1 else 1e-5)
        assert log_z >= values[0] - 1e-6 * scale and multi_loops(y) > 0
        if scale > 1.0:  # one structure takes all
            assert log_z == pytest.approx(values[0], rel=1e-6)
        assert kernels.value_of(problem, 0, theta, y) == pytest.approx(values[0])
        assert (np.bincount(y[y >= 0], minlength=30) <= 1).all()


def multi_loops(y):
    return sum(y[i] > i and inner_of(y, i) < 0 and bool((y[i + 1 : y[i]] >= 0).any()) for i in range(len(y)))


@pytest.mark.parametrize("scale", [0.5, 1e3])
def test_what_is_forbidden_is_never_done(scale):
    """Bases that must pair and pairs that may not be: what k-best search, and restrictions, make of part scores."""
    rng = np.random.default_rng(6)
    for n in (9, 11, 13, 14):
        problem = folding_problem(["".join(rng.choice(list("ACGU"), n))], pairs=None if n < 12 else ("AU", "CG", "GU"))
        theta, parts, y = np.zeros(kernels.n_parts(problem, 0)), np.zeros(kernels.n_parts(problem, 0)), np.zeros(n, np.int32)
        for _ in range(4):
            kernels.score(problem, 0, scale * rng.normal(size=kernels.n_weights(problem)), theta)
            must, never = rng.random(n) < 0.15, rng.random(len(theta) - problem.n_tied - n) < 0.2
            theta[problem.n_tied : problem.n_tied + n] = np.where(must, -np.inf, rng.normal(size=n))
            theta[problem.n_tied + n :][never] = -np.inf
            truth = Enumeration(problem, 0, theta)
            with interpret():
                value, log_z = kernels.best(problem, 0, theta, y), kernels.expected(problem, 0, theta, parts)
            if truth.best == -np.inf:
                assert value == log_z == -np.inf
                continue
            assert value == pytest.approx(truth.best, rel=1e-12) and log_z == pytest.approx(truth.log_partition, rel=1e-12)
            marginals = np.zeros(len(theta))
            for output, p in zip(truth.outputs, truth.probabilities, strict=True):
                kernels.indicate(problem, 0, output, p, marginals)
            np.testing.assert_allclose(parts, marginals, atol=1e-9 * max(scale, 1.0))


@pytest.mark.parametrize(("scale", "alone"), [(0.5, 1), (1e3, 12)])
def test_multi_loops_equal_enumeration(scale, alone):
    """The shortest one has twelve bases, more than random cases have."""
    w = scale * np.random.default_rng(9).normal(size=tying().n_weights)
    w[[tying().number(name) for name in ("multi-loop", "multi-loop branch", "multi-loop unpaired")]] = 3 * scale
    y, _ = check_sums("GCGAAACAGUAAAC", w, 1e-9 * max(scale, 1.0), alone=[alone])
    assert multi_loops(y) and y[alone] < 0
    w[tying().number("pair CG")] = 20 * scale
    y, _ = check_sums("GGAAACGAAACGAAACC", w, 1e-9 * max(scale, 1.0), ("CG",))
    assert y[[0, 1, 6, 11]].tolist() == [16, 5, 10, 15]  # three branches


EVEN = {  # with these weights, all structures of hairpins of three and loops of two bases have the same score for each base
    r"external (unpaired|branch)|multi-loop (unpaired|branch)|(pair|stack) .*|hairpin (of at least 3|end .*|[ACGU]{3})": 1.0,
    r"bulge (of at least 1|[ACGU])": 0.5,
    r"internal (loop 1 x 1|loop [ACGU] x [ACGU]|end .*)": 0.75,
    r"multi-loop": -1.0,
}


@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_sums_beyond_plain_numbers():
    """e^336: each base is charged a rate, so that plain numbers do, after all; e^-750 and scores that cancel: logarithms."""
    w, tied = 0.5 * np.random.default_rng(9).normal(size=tying().n_weights), tying()
    for pattern, value in EVEN.items():
        w[[k for k, name in enumerate(tied.names) if re.fullmatch(pattern, name)]] += 24.0 * value
    assert check_sums("GCGAAACAGUAAAC", w, 1e-9)[1] > 300.0
    for value in (25.0, -25.0):
        w[tied.number("external unpaired")] = value
        assert check_sums("A" * 30, w, 1e-9, ("CG",))[1] == pytest.approx(30 * value)
    w[:] = 0.0
    w[[tied.number("pair CG"), tied.number("external branch")]] = -800.0, 802.0
    assert check_sums("GAAAC", w, 1e-9)[1] == pytest.approx(np.log(1.0 + np.exp(2.0)))


def check_sums(sequence, w, tolerance, pairs=None, alone=()):
    """The best structure and the sum over all, against enumeration; returns the structure and log Z."""
    problem = folding_problem([sequence], pairs=pairs)
    theta, parts = np.zeros(kernels.n_parts(problem, 0)), np.zeros(kernels.n_parts(problem, 0))
    y = np.zeros(len(sequence), np.int32)
    kernels.score(problem, 0, w, theta)
    for i in alone:
        kernels.hold(problem, 0, theta, i, -1, 0)
    with interpret():
        value, log_z = kernels.best(problem, 0, theta, y), kernels.expected(problem, 0, theta, parts)
    truth, marginals = Enumeration(problem, 0, theta), np.zeros(len(theta))
    for output, p in zip(truth.outputs, truth.probabilities, strict=True):
        kernels.indicate(problem, 0, output, p, marginals)
    assert value == pytest.approx(truth.best, rel=1e-12) and log_z == pytest.approx(truth.log_partition, rel=1e-12)
    np.testing.assert_allclose(parts, marginals, atol=tolerance)
    return y, log_z


@pytest.mark.parametrize(("left", "right"), [(15, 15), (1, 29), (29, 1), (0, 30), (30, 0), (16, 15), (31, 0)])
def test_loops_have_thirty_bases_and_no_more(left, right):
    sequence = "G" + "A" * left + "GAAAC" + "A" * right + "C"
    partners, n = np.full(left + right + 7, -1, np.int32), left + right + 7
    partners[[0, n - 1, left + 1, left + 5]] = n - 1, 0, left + 5, left + 1
    problem, few = folding_problem([sequence]), left + right <= 30
    assert possible_structure(problem.bases, partners, problem.pairable)[1] == (0 if few else 1)
    w = 0.3 * np.random.default_rng(left).normal(size=kernels.n_weights(problem))
    w[tying().number("pair CG")] = 20.0
    y, _ = check_sums(sequence, w, 1e-9, ("CG",))
    if few:
        np.testing.assert_array_equal(y, partners)
        np.testing.assert_array_equal(kernels.target(folding_problem([sequence], [partners]), 0), partners)
    else:
        with pytest.raises(ValueError, match="has more than 30 unpaired bases"):
            folding_problem([sequence], [partners])


def test_the_sum_counts_structures():
    """With all weights zero and any pair allowed, exp(log Z) is the number of nested structures."""

    def count(n):  # Waterman's recursion
        numbers = [1] * (n + 1)
        for m in range(5, n + 1):
            numbers[m] = numbers[m - 1] + sum(numbers[k - 1] * numbers[m - k - 1] for k in range(1, m - 3))
        return numbers[n]

    assert [count(n) for n in (4, 5, 6, 7, 8)] == [1, 2, 4, 8, 16]
    problem = folding_problem(["A" * n for n in (0, 1, 4, 5, 10, 25)], pairs=None)
    for i, n in enumerate((0, 1, 4, 5, 10, 25)):
        log_z, _ = sums(problem, i, np.zeros(kernels.n_weights(problem)))
        assert log_z == pytest.approx(np.log(count(n)), rel=1e-12)


def test_marginals_are_differences_of_the_sum():
    """d log Z / d w, by differences, on a sequence long enough for every kind of loop."""
    rng = np.random.default_rng(1)
    problem = folding_problem(["GGGAAACCCUUUGGGAAACCCAAAGCGAAAGCUUCCC" * 2])
    w = 0.3 * rng.normal(size=kernels.n_weights(problem))
    base = np.zeros(len(w))
    kernels.add_parts(problem, 0, sums(problem, 0, w)[1], 1.0, base)
    assert (base > 1e-3).sum() > 200
    named = (
        "multi-loop",
        "multi-loop branch",
        "multi-loop unpaired",
        "external unpaired",
        "external branch",
        "bulge of at least 2",
    )
    named += ("asymmetry of at least 2", "internal loop of at least 4", "hairpin of at least 5", "internal loop 1 x 1", "bulge A")
    for k in [*map(tying().number, named), *rng.permutation(np.flatnonzero(base > 1e-4))[:6]]:
        up, down = w.copy(), w.copy()
        up[k] += 1e-4
        down[k] -= 1e-4
        slope = (sums(problem, 0, up)[0] - sums(problem, 0, down)[0]) / 2e-4
        assert slope == pytest.approx(base[k], rel=1e-5, abs=1e-7), tying().names[k]


@pytest.mark.compiled
@pytest.mark.parametrize("scale", [0.05, 1.0, 200.0])
def test_long_sequences_and_large_scores_stay_finite(scale):
    rng = np.random.default_rng(2)
    problem = folding_problem(["".join(rng.choice(list("ACGU"), 500))])
    w = scale * rng.normal(size=kernels.n_weights(problem))
    parts = passes.parts(problem, 0, w, 1.0)
    out, _, values = best_outputs(problem, w)
    pairs = np.zeros((500, 500))
    pairs[np.triu_indices(500, 1)] = parts[problem.n_tied + 500 :]
    assert np.isfinite(parts).all() and np.isfinite(values).all() and parts.min() >= 0.0
    np.testing.assert_allclose((pairs + pairs.T).sum(0) + parts[problem.n_tied : problem.n_tied + 500], 1.0, atol=1e-6)
    if scale == 200.0:  # one structure takes all
        np.testing.assert_array_equal(np.flatnonzero(out >= 0), np.flatnonzero((pairs + pairs.T).sum(0) > 0.5))


@pytest.mark.compiled
@pytest.mark.parametrize("score", [2.0, -2.0])
def test_sums_of_long_sequences_are_formed_at_their_own_rate(score, monkeypatch):
    """e^900 and e^-900, of one structure. In logarithms it would be so, too: interpreted, that they are not used is seen."""
    problem, w = folding_problem(["A" * 450]), np.zeros(len(tying().names))
    w[tying().number("external unpaired")] = score
    value, parts = sums(problem, 0, w)
    assert value == pytest.approx(450 * score, rel=1e-12)
    assert parts[tying().number("external unpaired")] == pytest.approx(450.0)
    kinds = []
    monkeypatch.setattr(folding_sums, "make_semiring", lambda kind: kinds.append(kind) or make_semiring(kind))
    with interpret():
        assert kernels.expected(problem, 0, part_scores(problem, w), parts) == pytest.approx(450 * score, rel=1e-12)
    assert kinds == [SUM, SUM]  # the first bases, then all


def part_scores(problem, w):
    """Part scores."""
    theta = np.zeros(kernels.n_parts(problem, 0))
    kernels.score(problem, 0, w, theta)
    return theta


def test_the_k_best_are_all_of_them_in_order():
    rng = np.random.default_rng(8)
    problem = folding_problem(["".join(rng.choice(list("ACGU"), 8))], pairs=None)
    theta, ys, values = np.zeros(kernels.n_parts(problem, 0)), np.zeros((20, 8), np.int32), np.zeros(20)
    kernels.score(problem, 0, rng.normal(size=kernels.n_weights(problem)), theta)
    truth = Enumeration(problem, 0, theta)
    with interpret():
        found = kernels.kbest(problem, 0, theta, ys, values)
    assert found == len(truth.outputs) == 16 == len({tuple(y) for y in ys[:found]})
    np.testing.assert_allclose(values[:found], np.sort(truth.values)[::-1])
