"""Constituency trees: oracles against enumeration and counting, a grammar whose answers are known, solvers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings

from oracle_cases import Enumeration, grammar_cases
from oracle_checks import check_features, check_oracles, run_oracles
from partwise import kernels
from partwise.engine.compilation import interpret
from partwise.solvers import solve
from partwise.structures.constituency.grammar import make_grammar
from partwise.structures.constituency.kernels import GLUE_COST
from partwise.structures.constituency.problem import grammar_problem, nodes_of

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
    for size in (1.0, 300.0):
        w = size * rng.normal(size=kernels.n_weights(problem))
        compiled = run_oracles(problem, 0, w, 0.0)
        with interpret():
            interpreted = run_oracles(problem, 0, w, 0.0)
        for a, b in zip(compiled, interpreted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 4, 6, 7])
def test_large_scores_and_forbidden_parts(seed):
    """Scores of +-300 and -inf for spans and rules: entries of a span are e^1000 apart; any may be all there is in the end."""
    rng = np.random.default_rng(seed)
    grammar = make_grammar(2, [(0, 0, 1), (0, 1, 1), (1, 0, 0), (1, 1, 0), (1, 1, 1)], [0, 0], [seed % 2])
    problem = grammar_problem(rows_for(5), [5], grammar)
    theta = np.zeros(kernels.n_parts(problem, 0))
    with interpret():
        kernels.score(problem, 0, np.zeros(kernels.n_weights(problem)), theta)
        theta += rng.choice([-300.0, 0.0, 300.0, -np.inf], len(theta), p=[0.31, 0.31, 0.31, 0.07]) + rng.normal(size=len(theta))
        truth, parts, y = Enumeration(problem, 0, theta), np.empty(len(theta)), np.zeros(9, np.int32)
        value, log_z = kernels.best(problem, 0, theta, y), kernels.expected(problem, 0, theta, parts)
        marginals = np.zeros(len(theta))
        for output, p in zip(truth.outputs, truth.probabilities, strict=True):
            kernels.indicate(problem, 0, output, p, marginals)
    assert value == pytest.approx(truth.best) and log_z == pytest.approx(truth.log_partition, rel=1e-13)
    np.testing.assert_allclose(parts, marginals, atol=1e-9)


@pytest.mark.parametrize("ahead", [1.0, 30.0, 200.0, 500.0])
def test_a_symbol_that_falls_behind_is_not_lost(ahead):
    """Two symbols that never meet: spans of the first gain, but only the second may be above the sentence. Plain sums lose it."""
    n, grammar = 6, make_grammar(2, [(0, 0, 0), (1, 1, 1)], [0, 0], [1])
    problem = grammar_problem(np.ones((n * (n + 1) // 2, 1)), [n], grammar)
    w = np.zeros(kernels.n_weights(problem))
    w[0] = ahead  # of every span with the first symbol
    with interpret():
        *_, parts, log_z = run_oracles(problem, 0, w, 0.0)
    assert log_z == pytest.approx(math.log(42))  # trees of six words
    spans = parts[: n * (n + 1) // 2 * 3].reshape(-1, 3)
    assert spans[:, 0].max() == 0.0 and spans[:, 1].sum() == pytest.approx(2 * n - 1)
    assert parts[spans.size :][:2].tolist() == [0.0, pytest.approx(n - 1)]


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


def test_a_split_that_falls_behind_is_not_lost():
    """Words 2 and 3 together gain 800, but nothing is above them: what is left is the split that e^-800 is the factor of."""
    above, pair, useless, word = range(4)
    grammar = make_grammar(4, [(above, pair, word), (pair, word, word), (useless, word, word)], [-1, -1, -1, 0], [above])
    problem = grammar_problem(rows_for(3), [3], grammar)
    theta, parts = np.zeros(kernels.n_parts(problem, 0)), np.zeros(kernels.n_parts(problem, 0))
    with interpret():
        kernels.score(problem, 0, np.zeros(kernels.n_weights(problem)), theta)
        span = 4 * 5  # words 2 and 3
        theta[span + pair], theta[span + useless] = -np.inf, 800.0
        assert kernels.expected(problem, 0, theta, parts) == pytest.approx(0.0)
    assert parts[1 * 5 + pair] == pytest.approx(1.0) and parts[:30].sum() == pytest.approx(5)


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
        features, expected = np.zeros(len(w)), np.zeros(len(w))
        with interpret():
            kernels.add_features(glued, 0, y, 1.0, features)
            kernels.add_parts(glued, 0, parts, 1.0, expected)
        assert not features[7:][5:].any() and not expected[7:][5:].any()  # glue is not learnt: five rules, then gluing ones


@pytest.mark.parametrize("seed", range(6))
def test_brackets_that_are_known(seed):
    """The acceptable trees are those that have them: costs and the oracles over these against enumeration."""
    rng, n = np.random.default_rng(seed), 4
    grammar = make_grammar(2, [(0, 0, 1), (0, 1, 1), (1, 0, 0), (1, 1, 0), (1, 1, 1)], [0, 0], [0, 1])
    whole = list(kernels.outputs(grammar_problem(rows_for(n), [n], grammar), 0))
    tree = whole[rng.integers(len(whole))]
    picked = [node for node in nodes_of(tree, n) if rng.random() < 0.4]
    brackets = [(a, b, [symbol] if rng.random() < 0.7 else [0, 1]) for a, b, symbol, _ in picked]
    with interpret():
        problem = grammar_problem(rng.normal(size=(20, 2)), [n, n], grammar, [None, tree], brackets=[brackets, ()])
        assert kernels.is_partial(problem) and not kernels.is_labelled(problem, 0) and kernels.is_labelled(problem, 1)
        theta = np.zeros(kernels.n_parts(problem, 0))
        kernels.score(problem, 0, rng.normal(size=kernels.n_weights(problem)), theta)
        values, costs, right = [], [], []
        for y in whole:
            found = nodes_of(y, n)
            values.append(kernels.value_of(problem, 0, theta, y))
            costs.append(kernels.cost(problem, 0, y))
            right.append(all(any(i == a and j == b and s in some for i, j, s, _ in found) for a, b, some in brackets))
            crossing = sum(any(a < i < b < j or i < a < j < b for a, b, _ in brackets) for i, j, *_ in found)
            other = sum(i == a and j == b and s not in some for i, j, s, _ in found for a, b, some in brackets)
            assert costs[-1] == crossing + other
            augmented = theta.copy()
            kernels.add_cost(problem, 0, 1.0, augmented)
            assert kernels.value_of(problem, 0, augmented, y) == pytest.approx(values[-1] + costs[-1])
        assert right == [cost == 0 for cost in costs] and any(right)
        values, y, parts, expected = (
            np.array(values)[right],
            np.zeros(2 * n - 1, np.int32),
            np.zeros(len(theta)),
            np.zeros(len(theta)),
        )
        assert kernels.complete(problem, 0, theta, y) == pytest.approx(values.max()) and kernels.cost(problem, 0, y) == 0
        log_z = kernels.expected_completion(problem, 0, theta, 1.0, parts)
        assert log_z == pytest.approx(np.log(np.exp(values).sum()))
        for y, v in zip([y for y, r in zip(whole, right, strict=True) if r], values, strict=True):
            kernels.indicate(problem, 0, y, math.exp(v - log_z), expected)
        np.testing.assert_allclose(parts, expected, atol=1e-9)
        assert kernels.cost(problem, 0, kernels.target(problem, 0)) == 0  # some right tree
        assert not kernels.is_partial(kernels.take(problem, np.array([1])))
        convex, turned = kernels.with_targets(problem, problem.targets), kernels.take(problem, np.array([1, 0]))
        assert not kernels.is_partial(convex) and kernels.is_partial(turned)
        assert costs == [kernels.cost(convex, 0, y) for y in whole] == [kernels.cost(turned, 1, y) for y in whole]
        for wrong in ([(0, 2, [0]), (1, 3, [0])], [(0, 5, [0])], [(0, 2, [0])] * 2):
            with pytest.raises(ValueError, match="sentence 0: the bracket .* crosses another"):
                grammar_problem(rows_for(n), [n], grammar, [None], brackets=[wrong])
        with pytest.raises(ValueError, match="sentence 0: the grammar has no tree with the brackets"):
            grammar_problem(rows_for(n), [n], grammar, [None], brackets=[[(0, 2, [])]])


def has_node(y, n, begin, end, symbols):
    """Whether an output has a node there with one of these symbols."""
    return any((a, b) == (begin, end) and s in symbols for a, b, s, _ in nodes_of(y, n))


@pytest.mark.parametrize("seed", range(4))
def test_agreement_is_the_probability_of_every_node_that_is_known(seed):
    """Of trees known as a whole, and of brackets: against enumeration; with an output in place of marginals, 0 or 1."""
    rng, n = np.random.default_rng(seed), 4
    grammar = make_grammar(2, [(0, 0, 1), (0, 1, 1), (1, 0, 0), (1, 1, 0), (1, 1, 1)], [0, 0], [0, 1])
    whole = list(kernels.outputs(grammar_problem(rows_for(n), [n], grammar), 0))
    tree = whole[rng.integers(len(whole))]
    inner = nodes_of(tree, n)[1]
    sets = [[inner[2]], [0, 1]][seed % 2]
    brackets = [[], [(*inner[:2], sets)]]
    problem = grammar_problem(rng.normal(size=(20, 2)), [n, n], grammar, [tree, None], brackets=brackets)
    for i in range(2):
        theta, parts, given = np.zeros(kernels.n_parts(problem, i)), np.zeros(kernels.n_parts(problem, i)), np.full(7, 9.0)
        with interpret():
            kernels.score(problem, i, rng.normal(size=kernels.n_weights(problem)), theta)
            kernels.expected(problem, i, theta, parts)
            kernels.agreement(problem, i, parts, given)
            truth = Enumeration(problem, i, theta)
            target = kernels.target(problem, i)
            known = [(a, b, [s]) for a, b, s, _ in nodes_of(tree, n)] if i == 0 else brackets[1]
            of = {(a, b): symbols for a, b, symbols in known}
            for t, (a, b, *_) in enumerate(nodes_of(target, n)):
                wanted = [1.0 if (a, b) not in of else float(has_node(y, n, a, b, of[a, b])) for y in truth.outputs]
                assert given[t] == pytest.approx(truth.probabilities @ wanted, abs=1e-9)
            assert len(of) < 7 or given.min() < 0.999
            parts[:] = 0.0
            kernels.indicate(problem, i, whole[0], 1.0, parts)
            kernels.agreement(problem, i, parts, given)
        wrong = [
            k for k, (a, b, *_) in enumerate(nodes_of(target, n)) if (a, b) in of and not has_node(whole[0], n, a, b, of[a, b])
        ]
        assert np.flatnonzero(given == 0.0).tolist() == wrong and set(given.tolist()) <= {0.0, 1.0}


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


def test_truths_and_parts_of_a_problem():
    trees = [[S * 3 + 1, NP * 3, VP * 3 + 2, V * 3, NP * 3], [], [S * 3 + 1, NP * 3, VP * 3 + 2, V * 3, NP * 3]]
    whole = grammar_problem(np.arange(12.0)[:, None], [3, 0, 3], ENGLISH, trees, [0, 1, 0, -1, 1, -1])
    some = kernels.take(whole, np.array([2, 1]))
    assert some.tags.tolist() == [-1, 1, -1] and some.starts.tolist() == [0, 3, 3] and some.nodes.tolist() == [0, 5, 5]
    with interpret():
        for i, tree in enumerate(trees):
            y = np.zeros(len(tree), np.int32)
            kernels.truth(whole, i, y)
            assert y.tolist() == tree and kernels.cost(whole, i, y) == 0.0
        w = np.ones(kernels.n_weights(whole))
        np.testing.assert_array_equal(run_oracles(some, 0, w, 0.0)[0], run_oracles(whole, 2, w, 0.0)[0])


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
