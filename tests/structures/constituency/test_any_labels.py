"""Trees without a grammar: oracles against enumeration and counting, extreme scores, brackets known in part, solvers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings

from oracle_cases import Enumeration, label_cases
from oracle_checks import check_features, check_oracles, run_oracles
from partwise import kernels
from partwise.engine.compilation import interpret
from partwise.solvers import solve
from partwise.structures.constituency.grammar import NO_TAG, make_labels
from partwise.structures.constituency.problem import grammar_problem, nodes_of

WORD, PHRASE, SENTENCE = range(3)
LABELS = make_labels([0, NO_TAG, NO_TAG], [PHRASE, SENTENCE], [SENTENCE])


def ones(*lengths):
    return np.ones((sum(n * (n + 1) // 2 for n in lengths), 1))


@settings(max_examples=60, deadline=None)
@given(label_cases())
def test_oracles_equal_enumeration(case):
    with interpret():
        check_oracles(*case)
        check_features(*case)


@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_there_are_as_many_trees_as_catalan_says(n):
    """Times the ways to label the spans of several words: two, but the sentence."""
    labels = make_labels([0, NO_TAG, NO_TAG], [1, 2], [0, 1, 2] if n == 1 else [2])
    problem = grammar_problem(ones(n), [n], labels)
    with interpret():
        *_, parts, log_z = run_oracles(problem, 0, np.zeros(3), 0.0)
    assert math.exp(log_z) == pytest.approx(math.comb(2 * n - 2, n - 1) / n * 2 ** max(n - 2, 0))
    assert parts.sum() == pytest.approx(2 * n - 1)


def test_no_words_have_one_empty_tree():
    problem = grammar_problem(ones(0, 2), [0, 2], LABELS)
    with interpret():
        _, y, value, _, values, parts, log_z = run_oracles(problem, 0, np.zeros(3), 0.0)
    assert len(y) == len(parts) == 0 and value == log_z == 0.0 and values.tolist() == [0.0]


@pytest.mark.parametrize("seed", range(5))
def test_large_scores_and_forbidden_parts(seed):
    """Scores of +-1e6 and -inf for spans: sums stay sums, and what is forbidden is never found."""
    rng = np.random.default_rng(seed)
    problem = grammar_problem(ones(5), [5], make_labels([0, 0], [0, 1], [seed % 2]))
    theta = np.zeros(kernels.n_parts(problem, 0))
    with interpret():
        kernels.score(problem, 0, np.zeros(2), theta)
        theta += rng.choice([-1e6, 0.0, 1e6, -np.inf], len(theta), p=[0.31, 0.31, 0.31, 0.07]) + rng.normal(size=len(theta))
        truth, parts, y = Enumeration(problem, 0, theta), np.empty(len(theta)), np.zeros(9, np.int32)
        value, log_z = kernels.best(problem, 0, theta, y), kernels.expected(problem, 0, theta, parts)
        marginals = np.zeros(len(theta))
        for output, p in zip(truth.outputs, truth.probabilities, strict=True):
            kernels.indicate(problem, 0, output, p, marginals)
    assert value == pytest.approx(truth.best) and log_z == pytest.approx(truth.log_partition, rel=1e-13)
    np.testing.assert_allclose(parts, marginals, atol=1e-7)


def test_what_is_all_forbidden_has_no_tree():
    problem = grammar_problem(ones(2), [2], make_labels([0, NO_TAG], [1], []))
    with interpret():
        _, _, value, _, values, parts, log_z = run_oracles(problem, 0, np.zeros(2), 0.0)
    assert value == log_z == -np.inf and len(values) == 0 and not parts.any()


@pytest.mark.interpreted
def test_known_brackets_forbid_what_crosses_them():
    """Of four words (1, 3) is a phrase: acceptable trees have it, and cost counts nodes that cross it."""
    problem = grammar_problem(ones(4), [4], LABELS, [None], brackets=[[(1, 3, [PHRASE])]])
    assert kernels.is_partial(problem) and (1, 3, PHRASE, 2) in nodes_of(problem.targets, 4)
    with interpret():
        truth = Enumeration(problem, 0, np.zeros(kernels.n_parts(problem, 0)))
        for y in truth.outputs:
            crossing = sum((i < 1 < j < 3) or (1 < i < 3 < j) for i, j, _, _ in nodes_of(y, 4))
            wrong = any((i, j) == (1, 3) and a != PHRASE for i, j, a, _ in nodes_of(y, 4))
            assert kernels.cost(problem, 0, y) == crossing + wrong
        theta, y = np.zeros(kernels.n_parts(problem, 0)), np.zeros(7, np.int32)
        kernels.score(problem, 0, np.zeros(3), theta)
        kernels.complete(problem, 0, theta, y)
    assert kernels.cost(problem, 0, y) == 0.0 and (1, 3, PHRASE) in [node[:3] for node in nodes_of(y, 4)]


def test_wrong_trees_are_refused():
    wrong = np.array([PHRASE * 2 + 1, 0, 0])
    with pytest.raises(ValueError, match="sentence 0: its tree is none of this grammar: symbol 1 may not be above a sentence"):
        grammar_problem(ones(2), [2], LABELS, [wrong])
    with pytest.raises(ValueError, match="there is no rule 0 -> 0 0"):
        grammar_problem(ones(3), [3], LABELS, [np.array([SENTENCE * 3 + 1, 0, 0 * 3 + 2, 0, 0])])


@pytest.mark.slow
def test_compiled_oracles_equal_interpreted_ones():
    rng = np.random.default_rng(0)
    problem = grammar_problem(rng.normal(size=(21, 3)), [6], make_labels([0, 0, 1, NO_TAG], [0, 1, 3], [0, 3]))
    for size in (1.0, 300.0):
        w = size * rng.normal(size=kernels.n_weights(problem))
        compiled = run_oracles(problem, 0, w, 0.0)
        with interpret():
            interpreted = run_oracles(problem, 0, w, 0.0)
        for a, b in zip(compiled, interpreted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("loss", "solvers"), [("hinge", ["sdm", "bcfw"]), ("crf", ["lbfgs", "bmrm"])])
def test_solvers_find_the_same_optimum(loss, solvers):
    rng = np.random.default_rng(2)
    labels, lengths = make_labels([0, 0, NO_TAG], [1, 2], [2]), [2, 3]
    trees = [np.array([2 * 2 + 1, 0, 1 * 2]), np.array([2 * 3 + 2, 1 * 3 + 1, 0, 0, 1 * 3])]
    problem = grammar_problem(rng.normal(size=(9, 3)), lengths, labels, trees)
    with interpret():
        first, second = (solve(problem, loss, solver, C=1.0, max_epochs=300, tol=1e-4) for solver in solvers)
    assert first.converged and second.converged and second.gap <= 1e-3
    assert first.primal == pytest.approx(second.primal, rel=2e-4)
