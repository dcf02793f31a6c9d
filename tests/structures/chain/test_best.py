"""Viterbi with many labels leaves out rows of transitions that cannot matter: the numbers must be the same as without."""

import numpy as np
import pytest

from partwise import kernels
from partwise.objective import best_outputs
from partwise.structures import chain_problem
from partwise.structures.chain import best as chain_best

LABELS = 70


def chains(order, forbidden, spread):
    """Three chains over one-hot tokens, and weights whose transitions are `spread` times as large as their emissions."""
    rng = np.random.default_rng(order)
    x = np.eye(6)[rng.integers(0, 6, 9)]
    pairs = [tuple(p) for p in rng.integers(0, LABELS, (LABELS**2 // 4, 2))] if forbidden else []
    problem = chain_problem(x, [5, 1, 3], n_labels=LABELS, order=order, forbidden=pairs)
    w = rng.normal(size=kernels.n_weights(problem))
    w[6 * LABELS :] *= spread
    return problem, w


def plain(problem, i, w):
    """The score of the best output by the textbook's recursion over states."""
    theta = np.zeros(kernels.n_parts(problem, i))
    kernels.score(problem, i, w, theta)
    L, T = problem.n_labels, kernels.length(problem, i)
    S, H = (L + 1) ** problem.order, L + 1
    theta = theta.reshape(-1, L)
    nodes, moves, stop = theta[:T], theta[T : T + S], theta[T + S]
    alpha = np.full(S, -np.inf)
    alpha[S - 1] = 0.0
    for node in nodes:
        through = alpha.reshape(H, S // H, 1) + moves.reshape(H, S // H, L)  # [forgotten, kept, next]
        alpha = np.full(S, -np.inf)
        alpha.reshape(S // H, H)[:, :L] = through.max(0) + node
    return (alpha.reshape(S // H, H)[:, :L].max(0) + stop).max()


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("forbidden", [False, True])
@pytest.mark.parametrize("spread", [0.01, 1.0, 100.0])
def test_best_of_many_labels(order, forbidden, spread):
    problem, w = chains(order, forbidden, spread)
    assert problem.n_labels >= chain_best.MANY
    out, starts, values = best_outputs(problem, w)
    for i in range(3):
        assert values[i] == pytest.approx(plain(problem, i, w), rel=1e-12)
        theta = np.zeros(kernels.n_parts(problem, i))
        kernels.score(problem, i, w, theta)
        y = out[starts[i] : starts[i + 1]]
        assert kernels.value_of(problem, i, theta, y) == pytest.approx(values[i], rel=1e-12)


@pytest.mark.parametrize("spread", [0.01, 0.3, 10.0])
@pytest.mark.parametrize("forbidden", [0.0, 0.3])
def test_leaving_out_changes_nothing(spread, forbidden):
    """Not one of the sums a row could have been the highest in, to the last bit."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        a, matrix = rng.normal(size=9), spread * rng.normal(size=(9, 8))
        matrix[rng.random(matrix.shape) < forbidden] = -np.inf
        a[rng.random(9) < forbidden] = -np.inf
        bound, out = np.zeros(9), np.zeros(8)
        chain_best.highest_of_rows(matrix.ravel(), 9, 8, bound)
        np.testing.assert_array_equal(bound, matrix.max(1))
        chain_best.max_sums_of_few(a, bound, matrix.ravel(), 9, 8, out, np.zeros(9, np.int64))
        np.testing.assert_array_equal(out, (a[:, None] + matrix).max(0))
