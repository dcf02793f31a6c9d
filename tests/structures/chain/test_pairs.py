"""Transitions that look at the input: oracles against enumeration, observed pairs, solvers."""

import numpy as np
import pytest
from hypothesis import given, settings

from oracle_cases import pair_chain_cases
from oracle_checks import check_agreement, check_features, check_oracles
from partwise import kernels, solve
from partwise.features.rows import Binary
from partwise.structures import chain_problem
from partwise.structures.chain.pairs import observed_pairs, with_pairs
from partwise.structures.common.hidden import small_weights

pytestmark = pytest.mark.interpreted


@settings(max_examples=60, deadline=None)
@given(pair_chain_cases())
def test_oracles_equal_enumeration(case):
    check_oracles(*case)
    check_features(*case)
    check_agreement(*case)


def swapped(n=8):
    """The label of a token is that of the one before, or the other one where the input says so: no sum of both can tell."""
    rng = np.random.default_rng(0)
    swap = rng.integers(0, 2, (n, 6))
    swap[:, 0] = 0  # the first label is always the same
    gold = np.cumsum(swap, axis=1) % 2
    rows = Binary(np.arange(6 * n + 1), swap.reshape(-1).astype(np.int32), 2)
    chain = chain_problem(np.ones((6 * n, 1)), [6] * n, gold.reshape(-1), 2)
    return chain, rows


@pytest.mark.parametrize(("loss", "solver"), [("hinge", "sdm"), ("crf", "lbfgs"), ("crf", "eg")])
def test_only_pairs_can_learn_it(loss, solver):
    chain, rows = swapped()
    problem = with_pairs(chain, rows, *observed_pairs(chain, rows))
    plain, paired = (solve(one, loss, solver, C=100.0, tol=1e-3, max_epochs=300).primal for one in (chain, problem))
    assert paired < 0.2 * plain


def test_pairs_are_those_observed():
    chain, rows = swapped()
    ptr, codes = observed_pairs(chain, rows)
    assert [codes[a:b].tolist() for a, b in zip(ptr[:-1], ptr[1:], strict=True)] == [[0, 3], [1, 2]]  # stay; change
    some = kernels.take(with_pairs(chain, rows, ptr, codes), np.array([2]))
    assert len(some.pair_rows.ptr) == 7 and kernels.n_weights(some) == kernels.n_weights(with_pairs(chain, rows, ptr, codes))
    with pytest.raises(ValueError, match="order 1"):
        with_pairs(chain._replace(order=2), rows, ptr, codes)


def test_states_begin_at_weights_that_are_there():
    """The last row of pairs has places left over: they stay zero."""
    chain, rows = swapped()
    ptr, codes = observed_pairs(chain, rows)
    problem = with_pairs(chain, rows, np.minimum(ptr, 3), codes[:3])
    w = small_weights(problem, 0)
    assert len(w) == kernels.n_weights(problem) and w[-1] == 0.0 and w[-4:-1].all()
