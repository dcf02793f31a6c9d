"""What oracles take is at most twice what is announced: arrays are counted while they run in the interpreter."""

import tracemalloc

import numpy as np
import pytest

import partwise
from partwise import kernels
from partwise.structures.alignment.problem import BYTES, alignment_problem
from partwise.structures.constituency.grammar import make_grammar, make_labels
from partwise.structures.constituency.problem import grammar_problem
from partwise.structures.constituency.problem import memory_needed as needed_by_trees
from partwise.structures.folding.problem import folding_problem
from partwise.structures.folding.problem import memory_needed as needed_by_folding

pytestmark = [pytest.mark.interpreted, pytest.mark.slow]
TAGS = [0, 1, 2, 3, 4, 5, -1, -1, -1, -1]


def trees(grammar, n=12):
    problem = grammar_problem(np.ones((n * (n + 1) // 2, 2)), [n], grammar)
    return problem, [needed_by_trees(n, grammar, sums) for sums in (False, True)]


def with_rules():
    rng, S = np.random.default_rng(0), len(TAGS)
    rules = [(a, b, c) for a in range(S) for b in range(S) for c in range(S) if rng.random() < 0.1]
    return trees(make_grammar(S, rules, TAGS, [0, 1, 2]))


def with_labels():
    return trees(make_labels(TAGS, range(len(TAGS)), range(len(TAGS))))


def folding(n=50):
    sequence = "".join(np.random.default_rng(0).choice(list("ACGU"), n))
    return folding_problem([sequence]), [needed_by_folding(n)] * 2


def alignment(n=40, m=50):
    return alignment_problem(np.ones((n * m + 4 * (n + m), 2)), [(n, m)]), [BYTES * n * m] * 2


@pytest.mark.parametrize("made", [with_rules, with_labels, folding, alignment])
def test_oracles_take_no_more_than_twice_what_is_announced(made):
    problem, announced = made()
    w = 0.1 * np.random.default_rng(1).normal(size=kernels.n_weights(problem))

    def best():
        theta = np.zeros(kernels.n_parts(problem, 0))
        kernels.score(problem, 0, w, theta)
        kernels.best(problem, 0, theta, np.zeros(kernels.length(problem, 0), np.int32))

    def expected():
        theta = np.zeros(kernels.n_parts(problem, 0))
        kernels.score(problem, 0, w, theta)
        kernels.expected(problem, 0, theta, np.zeros_like(theta))

    with partwise.interpret():
        for oracle, needed in zip((best, expected), announced, strict=True):
            tracemalloc.start()
            try:
                oracle()
                assert tracemalloc.get_traced_memory()[1] <= 2 * needed
            finally:
                tracemalloc.stop()
