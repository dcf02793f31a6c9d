"""Constituency trees: oracles against enumeration and counting, a grammar whose answers are known, solvers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings

from oracle_cases import grammar_cases
from partwise import kernels
from partwise.compilation import interpret
from partwise.solvers import solve
from partwise.structures.grammar import GLUE_COST, grammar_problem, make_grammar, nodes_of
from test_oracles import check_features, check_oracles, run_oracles

# S -> NP VP; VP -> V NP | VP PP; NP -> NP PP; PP -> P NP. Tags: N (0), V (1), P (2).
NP, VP, PP, S, V, P = range(6)
RULES = [(S, NP, VP), (VP, V, NP), (VP, VP, PP), (NP, NP, PP), (PP, P, NP)]
ENGLISH = make_grammar(6, RULES, [0, -1, -1, -1, 1, 2], [S])


def rows_for(*lengths, features=1):
    return np.zeros((sum(n * (n + 1) // 2 for n in lengths), features))


@settings(max_examples=60, deadline=None)
@given(grammar_cases())
def test_oracles_equal_enumeration(case):
    with interpret():
        check_oracles(*case)
        check_features(*case)


def test_compiled_oracles_equal_interpreted_ones():
    rng = np.random.default_rng(0)
    grammar = make_grammar(3, [(0, 1, 2), (0, 0, 0), (1, 2, 1), (2, 1, 0)], [0, 0, 1], [0])
    problem = grammar_problem(rng.normal(size=(21, 3)), [6], grammar)
    w = rng.normal(size=kernels.n_weights(problem))
    compiled = run_oracles(problem, 0, w, 0.0)
    with interpret():
        interpreted = run_oracles(problem, 0, w, 0.0)
    for a, b in zip(compiled, interpreted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_there_are_as_many_trees_as_catalan_says(n):
    problem = grammar_problem(rows_for(n), [n], make_grammar(1, [(0, 0, 0)], [0], [0]))
    with interpret():
        *_, parts, log_z = run_oracles(problem, 0, np.zeros(kernels.n_weights(problem)), 0.0)
    assert math.exp(log_z) == pytest.approx(math.comb(2 * n - 2, n - 1) / n)
    spans = n * (n + 1) // 2
    assert parts[: 2 * spans].sum() == pytest.approx(2 * n - 1)  # nodes; the second symbol is the glue
    assert parts[2 * spans] == pytest.approx(n - 1)  # uses of the rule


def pcfg_weights(problem, probabilities):
    """Weights of a probabilistic grammar: logarithms of the probabilities of its rules."""
    g, w = problem.grammar, np.zeros(kernels.n_weights(problem))
    offset = problem.rows.n_features * g.n_symbols
    for rule, p in probabilities.items():
        key = (rule[0] * g.n_symbols + rule[1]) * g.n_symbols + rule[2]
        w[offset + int(np.searchsorted(g.keys, key))] = math.log(p)
    return w


def test_the_man_with_the_telescope():
    """Of 'they saw men with telescopes' there are two trees, of probabilities 0.3 x 0.5 and 0.2 x 0.5 up to what they share."""
    problem = grammar_problem(rows_for(5), [5], ENGLISH, None, [0, 1, 0, 2, 0])
    w = pcfg_weights(problem, {RULES[1]: 0.5, RULES[2]: 0.3, RULES[3]: 0.2})
    with interpret():
        _, y, value, ys, values, parts, log_z = run_oracles(problem, 0, w, 0.0)
    assert math.exp(value) == pytest.approx(0.15) and math.exp(log_z) == pytest.approx(0.25)
    np.testing.assert_allclose(np.exp(values), [0.15, 0.1])
    assert (1, 5, VP, 3) in nodes_of(ys[0], 5) and (1, 3, VP, 2) in nodes_of(ys[0], 5)  # saw them with telescopes
    assert (2, 5, NP, 3) in nodes_of(ys[1], 5)  # men who have telescopes
    np.testing.assert_array_equal(y, ys[0])
    span = 2 * 5 - 1 + 5 - 2 - 1  # (2, 5)
    assert parts[span * 7 + NP] == pytest.approx(0.4)


def test_probabilities_are_derivatives_of_the_log_sum():
    rng = np.random.default_rng(1)
    problem = grammar_problem(rng.normal(size=(15, 2)), [5], ENGLISH, None, [0, 1, 0, 2, 0])
    w = rng.normal(size=kernels.n_weights(problem))
    gradient = np.zeros_like(w)
    with interpret():
        parts = run_oracles(problem, 0, w, 0.0)[5]
        kernels.add_parts(problem, 0, parts, 1.0, gradient)
        for k in range(0, len(w), 3):
            values = []
            for sign in (1, -1):
                moved = w.copy()
                moved[k] += sign * 1e-5
                values.append(run_oracles(problem, 0, moved, 0.0)[6])
            assert (values[0] - values[1]) / 2e-5 == pytest.approx(gradient[k], abs=1e-8)


def test_glue_holds_together_what_the_grammar_does_not():
    """N V P has no tree, and N V N P neither: with glue they have, of as few pieces as can be."""
    for tags, glues in (([0, 1, 2], 2), ([0, 1, 0, 2], 1), ([2], 1)):
        n = len(tags)
        plain = grammar_problem(rows_for(n), [n], ENGLISH, None, tags)
        w = np.zeros(kernels.n_weights(plain))
        with interpret():
            _, _, value, ys, _, _, log_z = run_oracles(plain, 0, w, 0.0)
            assert value == log_z == -np.inf and not len(ys)
            glued = plain._replace(glue=True)
            theta, y, value, ys, values, parts, log_z = run_oracles(glued, 0, w, 0.0)
        assert value == -GLUE_COST * glues and value <= log_z < value + 10
        everything = [kernels.value_of(glued, 0, theta, y) for y in kernels.outputs(glued, 0)]
        np.testing.assert_allclose(values, sorted(everything, reverse=True)[:4])
        assert parts[: n * (n + 1) // 2 * 7].sum() == pytest.approx(2 * n - 1)


def small_treebank():
    """Sentences of one shape with the tree that looks to the left or to the right, as its first feature says."""
    grammar = make_grammar(1, [(0, 0, 0)], [0], [0])
    rng = np.random.default_rng(3)
    x, trees = [], []
    for _ in range(12):
        left = bool(rng.random() < 0.5)
        own = rng.normal(size=(6, 3))
        own[:, 0] = [0, 1 if left else -1, 0, 0, -1 if left else 1, 0]
        x.append(own)
        trees.append([2, 1, 0, 0, 0] if left else [1, 0, 2, 0, 0])
    return grammar_problem(np.concatenate(x), [3] * 12, grammar, trees)


@pytest.mark.parametrize(("loss", "solvers"), [("hinge", ("sdm", "bmrm")), ("crf", ("lbfgs",))])
def test_solvers_meet(loss, solvers):
    problem = kernels.take(small_treebank(), np.array([3, 1, 7, 0]))
    with interpret():
        results = [solve(problem, loss, solver, 0.3, tol=1e-3, max_epochs=60) for solver in solvers]
    assert all(result.converged for result in results)
    assert results[0].primal == pytest.approx(results[-1].primal, rel=2e-3)


def test_bad_trees_are_refused():
    def pack(tree, tags=None, n=3):
        return grammar_problem(rows_for(n), [n], ENGLISH, [tree], tags)

    fine = [S * 3 + 1, NP * 3, VP * 3 + 2, V * 3, NP * 3]
    assert pack(fine).gold.tolist() == fine
    for tree, tags, message in (
        ([S * 3 + 1], None, "its tree has 1 nodes, but 3 words"),
        ([VP * 3 + 1, *fine[1:]], None, "symbol 1 may not be above a sentence"),
        ([S * 3 + 1, NP * 3, VP * 3 + 2, P * 3, NP * 3], None, "there is no rule 1 -> 5 0"),
        ([S * 3, *fine[1:]], None, "has no split"),
        (fine, [1, 1, 0], "symbol 0 may not be above word 1"),
    ):
        with pytest.raises(ValueError, match=message):
            pack(tree, tags)
    with pytest.raises(ValueError, match="have 6 spans, but there are 3 rows"):
        grammar_problem(np.ones((3, 1)), [3], ENGLISH)
    with pytest.raises(ValueError, match="same rule twice"):
        make_grammar(1, [(0, 0, 0)] * 2, [0], [0])
