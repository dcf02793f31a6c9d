"""Max-marginals, against enumeration."""

import numpy as np
from hypothesis import given, settings

from oracle_cases import chain_cases, multiclass_cases
from partwise import kernels
from partwise.engine.compilation import compiled_loop, interpret


@compiled_loop
def nodes_pass(problem, i, w, theta, nodes):
    kernels.score(problem, i, w, theta)
    kernels.max_marginals(problem, i, theta, nodes)


def check_max_marginals(problem, w):
    size, width = max(1.0, np.abs(w).max(initial=0.0)), kernels.width(problem)
    for i in range(kernels.n_examples(problem)):
        theta, length = np.full(kernels.n_parts(problem, i), 7.0), kernels.length(problem, i)
        nodes = np.full(length * width, 7.0)
        nodes_pass(problem, i, w, theta, nodes)
        twin = np.full((length, width), -np.inf)
        for y in kernels.outputs(problem, i):
            value = kernels.value_of(problem, i, theta, y)
            for t, c in enumerate(y):
                twin[t, c] = max(twin[t, c], value)
        np.testing.assert_allclose(nodes.reshape(length, width), twin, rtol=1e-12, atol=1e-12 * size)


@settings(max_examples=100, deadline=None)
@given(chain_cases())
def test_max_marginals_of_chains_are_those_of_enumeration(case):
    check_max_marginals(*case)


@settings(max_examples=30, deadline=None)
@given(multiclass_cases())
def test_max_marginals_of_classes_are_their_scores(case):
    check_max_marginals(*case)


@settings(max_examples=20, deadline=None)
@given(chain_cases())
def test_interpreted_max_marginals(case):
    with interpret():
        check_max_marginals(*case)
