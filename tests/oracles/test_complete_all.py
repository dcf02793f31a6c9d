"""Targets to begin with: an acceptable output of every example, whatever its structure."""

from __future__ import annotations

import numpy as np
import pytest

from partwise import kernels
from partwise.engine.compilation import interpret
from partwise.oracles.complete_all import complete_all
from partwise.structures import chain_problem, tree_problem
from partwise.structures.constituency.grammar import make_grammar
from partwise.structures.constituency.problem import grammar_problem

pytestmark = pytest.mark.interpreted

KNOWN = np.array([[True, True, False], [False, True, True]])  # labels 3 and 4


def trees():
    """Of five words, the heads of two are known."""
    return tree_problem(np.ones((18, 2)), [3, 2], [2, -1, -1, -1, 1])


def chains(forbidden=()):
    """Of five tokens, sets of labels."""
    return chain_problem(np.ones((5, 2)), [3, 2], [0, 3, 4, 3, 2], 3, known=KNOWN, forbidden=forbidden)


def brackets():
    """Of three words, the symbol above the last two."""
    grammar = make_grammar(2, [(0, 0, 1), (0, 1, 1), (1, 1, 1)], [0, 0], [0])
    return grammar_problem(np.ones((6, 2)), [3], grammar, [None], brackets=[[(1, 3, [1])]])


@pytest.mark.parametrize("make", [trees, chains, brackets])
def test_every_example_gets_an_acceptable_output(make):
    with interpret():
        problem = make()
        targets, wrong = complete_all(problem)
        starts, parts = kernels.sizes(problem)
        assert kernels.is_partial(problem) and wrong == -1 and len(targets) == starts[-1]
        for i, (a, b) in enumerate(zip(starts[:-1], starts[1:], strict=True)):
            theta = np.zeros(parts)[: kernels.n_parts(problem, i)]
            kernels.score(problem, i, np.zeros(kernels.n_weights(problem)), theta)
            assert kernels.value_of(problem, i, theta, targets[a:b]) == 0.0 and kernels.cost(problem, i, targets[a:b]) == 0.0


def test_the_first_example_without_any_is_named():
    with interpret():
        assert complete_all(chains(forbidden=[(1, 2)]))[1] == -1
        assert complete_all(chains(forbidden=[(0, 2), (1, 2)]))[1] == 1  # the second ends in 0 2 or in 1 2
