"""Trees of second order: parts against enumeration, bounds, beliefs, gradients."""

from __future__ import annotations

import numpy as np
import pytest

import partwise
from oracle_checks import check_features
from partwise import kernels
from partwise.engine.compilation import compiled_loop
from partwise.features.arc_pairs import pair_rows
from partwise.features.arc_rows import arc_rows
from partwise.structures.dependency.kept_arcs import PartialSecondOrderProblem, any_trees
from partwise.structures.dependency.projective import sum_over_projective_trees
from partwise.structures.dependency.second_order import second_order_problem
from partwise.structures.dependency.spanning import sum_over_trees
from partwise.structures.factor_graph.layout import PROJECTIVE, SINGLE_ROOT
from partwise.structures.factor_graph.problem import make_search
from partwise.tasks.dependency.data import read_sentences

LENGTHS = (4, 3, 1, 0)


def second_order_case(seed, **options):
    """Sentences with random words, random weights, some arcs left out: (problem, w)."""
    rng = np.random.default_rng(seed)
    X = [[{"form": rng.choice(list("abc")), "upos": rng.choice(list("NVD"))} for _ in range(n)] for n in LENGTHS]
    given = read_sentences(X, [[0, *range(1, n)][:n] for n in LENGTHS], None, None)
    arcs = arc_rows(given.words, given.names, bits=12)
    pairs = pair_rows(arcs, given.lengths, given.names)
    allowed = rng.random(int((given.lengths * (given.lengths + 1)).sum())) < 0.8
    kind = {"single_root": bool(seed % 2), "projective": bool(seed // 2 % 2), **options}
    problem = second_order_problem(arcs, pairs, given.lengths, allowed, given.heads, **kind)
    return problem, rng.normal(size=kernels.n_weights(problem)) * 0.3


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")  # hashes wrap around
@pytest.mark.parametrize("seed", range(4))
def test_parts_features_and_costs_tell_the_same_story(seed):
    problem, w = second_order_case(seed, iterations=500)
    with partwise.interpret():
        check_features(problem, w)
        for i in range(len(LENGTHS)):
            theta = np.full(kernels.n_parts(problem, i), 7.0)
            kernels.score(problem, i, w, theta)
            kernels.add_cost(problem, i, 0.5, theta)
            values = []
            for y in kernels.outputs(problem, i):
                features, parts, again = np.zeros(len(w)), np.zeros(len(theta)), np.zeros(len(w))
                kernels.add_features(problem, i, y, 1.0, features)
                kernels.indicate(problem, i, y, 1.0, parts)
                kernels.add_parts(problem, i, parts, 1.0, again)
                values.append(kernels.value_of(problem, i, theta, y))
                assert values[-1] == pytest.approx(features @ w + 0.5 * kernels.cost(problem, i, y))
                assert values[-1] == pytest.approx(parts @ theta)
                np.testing.assert_allclose(features, again)
            y = np.full(LENGTHS[i], 99, np.int32)
            value = kernels.best(problem, i, theta, y)
            assert value == pytest.approx(kernels.value_of(problem, i, theta, y) if LENGTHS[i] else 0.0)
            assert value <= max(values) + 1e-9
            if problem.status[i] == 0:
                assert value == pytest.approx(max(values), abs=1e-5)
            assert value >= max(values) - 0.5  # even where it is not proven


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.parametrize("seed", range(4))
def test_the_k_best_trees(seed):
    """Distinct trees in order; those of highest score, where the search is exact."""
    problem, w = second_order_case(seed, iterations=500)
    with partwise.interpret():
        for i in range(1, len(LENGTHS)):
            theta, n = np.zeros(kernels.n_parts(problem, i)), LENGTHS[i]
            kernels.score(problem, i, w, theta)
            scores = sorted((kernels.value_of(problem, i, theta, y) for y in kernels.outputs(problem, i)), reverse=True)
            ys, values = np.zeros((4, n), np.int32), np.zeros(4)
            found = kernels.kbest(problem, i, theta, ys, values)
            assert found == min(4, len(scores)) and len({tuple(y) for y in ys[:found]}) == found
            np.testing.assert_allclose(values[:found], [kernels.value_of(problem, i, theta, y) for y in ys[:found]])
            np.testing.assert_allclose(values[:found], scores[:found], atol=1e-5)


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.parametrize("seed", range(2))
def test_agreement_and_some_of_the_sentences(seed):
    """How far any tree agrees with the truth; and sentences taken out score as they did."""
    problem, w = second_order_case(seed)
    order = np.array([2, 0, 3, 1])
    some = kernels.take(problem, order)
    with partwise.interpret():
        for own, i in enumerate(order.tolist()):
            theta, again = np.zeros(kernels.n_parts(problem, i)), np.zeros(kernels.n_parts(some, own))
            kernels.score(problem, i, w, theta)
            kernels.score(some, own, w, again)
            np.testing.assert_array_equal(theta, again)
            trees, others = (list(kernels.outputs(*one)) for one in ((problem, i), (some, own)))
            assert len(trees) == len(others) and all(map(np.array_equal, trees, others))
            gold = problem.gold[problem.starts[i] : problem.starts[i + 1]]
            given, mixed, wanted = np.full(len(gold), 9.0), np.zeros(len(theta)), np.zeros(len(gold))
            for k, y in enumerate(trees):
                parts, p = np.zeros(len(theta)), (k + 1) / (len(trees) * (len(trees) + 1) / 2)
                kernels.indicate(some, own, y, 1.0, parts)
                kernels.agreement(some, own, parts, given)
                np.testing.assert_array_equal(given, y == gold)
                mixed, wanted = mixed + p * parts, wanted + p * (y == gold)
            kernels.agreement(problem, i, mixed, given)
            np.testing.assert_allclose(given, wanted)


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.parametrize("seed", range(6))
def test_trees_with_unknown_heads_are_completed(seed):
    """By the best tree that agrees with what is known, found by looking at all; unknown heads cost nothing."""
    whole, w = second_order_case(seed, iterations=500)
    rng = np.random.default_rng(seed)
    hidden = rng.random(len(whole.gold)) < 0.5
    hidden[0] = True
    gold = np.where(hidden, -1, whole.gold)
    problem = PartialSecondOrderProblem(*whole)._replace(gold=gold.astype(np.int32))
    with partwise.interpret():
        for i in range(len(LENGTHS)):
            own, theta, n = gold[problem.starts[i] : problem.starts[i + 1]], np.zeros(kernels.n_parts(problem, i)), LENGTHS[i]
            kernels.score(problem, i, w, theta)
            trees = list(kernels.outputs(problem, i))
            costs = [float(((y != own) & (own >= 0)).sum()) for y in trees]
            assert [kernels.cost(problem, i, y) for y in trees] == costs
            raised = theta.copy()
            kernels.add_cost(problem, i, 2.0, raised)
            values = [kernels.value_of(problem, i, theta, y) for y in trees]
            wanted = np.array(values) + 2.0 * np.array(costs)
            np.testing.assert_allclose([kernels.value_of(problem, i, raised, y) for y in trees], wanted)
            assert kernels.is_labelled(problem, i) == (own >= 0).all()
            fine = [value for value, c in zip(values, costs, strict=True) if c == 0.0]
            y, parts = np.zeros(n, np.int32), np.zeros(len(theta))
            value = kernels.complete(problem, i, theta, y)
            assert kernels.cost(problem, i, y) == 0.0 and value == pytest.approx(kernels.value_of(problem, i, theta, y))
            assert value == pytest.approx(max(fine), abs=1e-5) or problem.status[i]
            theta[problem.arcs[i + 1] - problem.arcs[i] :] = 0.0  # where only arcs score, belief propagation is exact
            fine = [kernels.value_of(problem, i, theta, y) for y, c in zip(trees, costs, strict=True) if c == 0.0]
            log_z = kernels.expected_completion(problem, i, theta, 1.0, parts)
            assert log_z == pytest.approx(np.logaddexp.reduce(fine), abs=1e-9)
            given = np.zeros(n)
            kernels.agreement(problem, i, parts, given)
            np.testing.assert_allclose(given, 1.0, atol=1e-6)
    known = kernels.take(problem, np.array([2, 3]))
    assert kernels.is_partial(known) == bool((gold[problem.starts[2] :] < 0).any())
    convex = kernels.with_targets(problem, whole.gold)
    assert not kernels.is_partial(convex)


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.interpreted
def test_targets_of_unknown_heads_agree_with_what_is_known():
    rng = np.random.default_rng(0)
    given = read_sentences([[{"form": "a", "upos": "N"}] * 5], [[2, 0, 2, 3, 3]], None, None)
    arcs = arc_rows(given.words, given.names, bits=8)
    pairs = pair_rows(arcs, given.lengths, given.names)
    allowed = rng.random(30) < 0.5
    heads = np.array([2, -1, 2, -1, -1])
    problem = second_order_problem(arcs, pairs, given.lengths, allowed | True, heads)
    assert (problem.targets[[0, 2]] == 2).all() and kernels.is_partial(problem)
    assert any(np.array_equal(problem.targets, y) for y in kernels.outputs(problem, 0))
    with pytest.raises(ValueError, match="must agree with those that are known"):
        second_order_problem(arcs, pairs, given.lengths, allowed, heads, targets=[0, 1, 2, 3, 4])
    with pytest.raises(ValueError, match="sentence 0: no tree agrees with its known heads"):
        second_order_problem(arcs, pairs, given.lengths, allowed & False, heads)


def one_sentence(n, rng, share, **options):
    """A sentence of n words with this share of its arcs; words do not matter."""
    given = read_sentences([[{"form": "a", "upos": "N"}] * n], [[0, *range(1, n)]], None, None)
    arcs = arc_rows(given.words, given.names, bits=8)
    pairs = pair_rows(arcs, given.lengths, given.names)
    return second_order_problem(arcs, pairs, given.lengths, rng.random(n * (n + 1)) < share, given.heads, **options)


def first_order(problem, theta):
    """log Z and the marginals of arcs, by the matrix-tree theorem or inside-outside."""
    n = int(problem.starts[1])
    scores, marginals = np.full((n, n + 1), -np.inf), np.zeros((n, n + 1))
    scores[problem.word - 1, problem.head] = theta[: len(problem.word)]
    sums = sum_over_projective_trees if problem.kind & PROJECTIVE else sum_over_trees
    return sums(scores, n, bool(problem.kind & SINGLE_ROOT), marginals), marginals[problem.word - 1, problem.head]


@compiled_loop
def compiled_sum(problem, i, theta, parts):
    return kernels.expected(problem, i, theta, parts)


def check_without_pairs(sizes, seeds=2, summed=kernels.expected):
    """Where only arcs score, belief propagation is the sum of first order."""
    for n, share in sizes:
        for seed in range(4 * seeds):
            rng = np.random.default_rng(seed)
            kind = {"projective": bool(seed % 2), "single_root": bool(seed // 2 % 2)}
            problem = one_sentence(n, rng, share, **kind)
            theta, A = np.zeros(int(problem.parts[1])), len(problem.word)
            theta[:A] = rng.normal(size=A) * (1 if seed < 4 else 5)
            parts = np.zeros(len(theta))
            log_z, marginals = first_order(problem, theta)
            assert summed(problem, 0, theta, parts) == pytest.approx(log_z, abs=1e-9), (n, kind)
            np.testing.assert_allclose(parts[:A], marginals, atol=1e-9)
            assert problem.status[0] == 0


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
def test_without_scores_of_pairs_sums_are_those_of_first_order():
    with partwise.interpret():
        check_without_pairs([(2, 1.0), (3, 1.0), (5, 1.0), (8, 0.5)])
        check_without_pairs([(20, 0.1)], seeds=1)


@pytest.mark.slow
def test_without_scores_of_pairs_sums_of_long_sentences_are_those_of_first_order():
    check_without_pairs([(2, 1.0), (16, 1.0), (64, 1.0), (64, 0.2)], seeds=1, summed=compiled_sum)


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.parametrize("scale", [0.5, 1.0, 3.0])
def test_sums_with_scores_of_pairs_against_enumeration(scale):
    """Bethe's are not exact, but near; the bound is above, converged or not."""
    off = []
    with partwise.interpret():
        for seed in range(8):
            rng = np.random.default_rng(seed)
            kind = {"projective": bool(seed % 2), "single_root": bool(seed // 2 % 2)}
            problem = one_sentence(4, rng, 0.8, sweeps=50, **kind)
            theta = rng.normal(size=int(problem.parts[1])) * scale
            theta[len(problem.word) :] *= 0.5
            parts = np.zeros(len(theta))
            log_z = np.logaddexp.reduce([kernels.value_of(problem, 0, theta, y) for y in kernels.outputs(problem, 0)])
            off.append(abs(kernels.expected(problem, 0, theta, parts) - log_z))
            for sweeps in (1, 30):
                search = make_search({"sums": "trw", "sweeps": sweeps})
                assert kernels.expected(problem._replace(search=search), 0, theta, parts) >= log_z - 1e-9
    assert np.median(off) < 0.15 * scale


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.parametrize("sums", ["bethe", "trw"])
def test_sums_of_extreme_scores_and_of_the_shortest_sentences(sums):
    with partwise.interpret():
        for n, scale in ((1, 1.0), (1, 1e6), (2, 1e6), (4, 1e6)):
            rng = np.random.default_rng(n)
            problem = one_sentence(n, rng, 0.8, sums=sums)
            theta = rng.normal(size=int(problem.parts[1])) * scale
            if n == 4:
                theta[np.flatnonzero(problem.head != problem.gold[problem.word - 1])[0]] = -np.inf
            parts = np.zeros(len(theta))
            log_z = np.logaddexp.reduce([kernels.value_of(problem, 0, theta, y) for y in kernels.outputs(problem, 0)])
            found = kernels.expected(problem, 0, theta, parts)
            assert found >= log_z - 1e-9 * abs(log_z)
            if sums == "bethe" or n == 1:
                assert found <= log_z + 1e-9 * abs(log_z)
            assert (parts >= 0.0).all() and (parts <= 1.0 + 1e-6).all()


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
def test_beliefs_are_marginals_of_bethe_free_energy():
    """log Z's derivatives are the beliefs, where messages have converged; of one word they are exact."""
    problem, w = second_order_case(2, sweeps=200)
    problem = problem._replace(search=problem.search._replace(change=1e-10))
    checked = 0
    with partwise.interpret():
        for i in (0, 2):
            n = kernels.n_parts(problem, i)
            theta, parts, other = np.zeros(n), np.zeros(n), np.zeros(n)
            kernels.score(problem, i, w, theta)
            log_z = kernels.expected(problem, i, theta, parts)
            if i == 2:
                values = [kernels.value_of(problem, i, theta, y) for y in kernels.outputs(problem, i)]
                assert log_z == pytest.approx(np.logaddexp.reduce(values))
            if problem.status[i]:
                continue
            for k in np.linspace(0, n - 1, 8).astype(int):
                up, down = theta.copy(), theta.copy()
                up[k] += 1e-5
                down[k] -= 1e-5
                slope = (kernels.expected(problem, i, up, other) - kernels.expected(problem, i, down, other)) / 2e-5
                assert slope == pytest.approx(parts[k], abs=1e-4)
                checked += 1
    assert checked


@pytest.mark.interpreted
def test_a_known_head_counts_though_its_arc_was_not_allowed():
    allowed = np.ones((3, 4), bool)
    allowed[1, 3] = False  # the second word under the third
    gold, lengths, starts = np.array([-1, 3, 0]), np.array([3]), np.array([0, 3])
    heads = any_trees(np.ones((12, 1)), lengths, starts, allowed.reshape(-1), gold, False, True)
    assert heads[1] == 3 and heads[2] == 0
