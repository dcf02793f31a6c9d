"""Trees of second order: parts against enumeration, bounds, beliefs, gradients."""

from __future__ import annotations

import numpy as np
import pytest

import partwise
from oracle_checks import check_features
from partwise import kernels
from partwise.features.arc_pairs import pair_rows
from partwise.features.arc_rows import arc_rows
from partwise.structures.dependency.second_order import second_order_problem
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
