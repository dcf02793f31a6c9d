"""AROW; tests/crfsuite/test_binary_model.py has CRFsuite's as a referee."""

import numpy as np
import pytest

from partwise.objective import best_outputs
from partwise.solvers import solve
from partwise.solvers.arow import AROW
from partwise.structures import chain_problem, multiclass_problem

pytestmark = pytest.mark.interpreted


def problem(n=30, seed=0):
    rng = np.random.default_rng(seed)
    gold = rng.integers(0, 3, n)
    x = np.eye(3)[gold] + 0.5 * rng.normal(size=(n, 3))
    return chain_problem(x, [n // 10] * 10, gold, 3)


def test_one_step_by_hand():
    """Two classes would be too easy: one token, three labels, one feature."""
    one = chain_problem(np.array([[2.0]]), [1], np.array([1]), 3, use_start=False, use_stop=False)
    w = solve(one, "hinge", AROW(variance=0.5), C=4.0, max_epochs=1, evaluate="never").w
    # label 0 or 2 wins by its cost 1: dF = (-2, 2), dF' S dF = 0.5 * 8, alpha = 1 / (1/4 + 4), step alpha S dF
    step = 0.5 * 2.0 / (0.25 + 4.0)
    np.testing.assert_allclose(sorted(w[:3]), [-step, 0.0, step])


def test_sure_weights_move_less():
    def lengths(epochs):
        return solve(problem(), "hinge", "arow", C=1.0, max_epochs=epochs, evaluate="never").w

    first, later = np.linalg.norm(lengths(1)), np.linalg.norm(lengths(9) - lengths(8))
    assert later < 0.3 * first


@pytest.mark.parametrize("update", ["max_loss", "prediction"])
def test_it_learns(update):
    data = problem()
    result = solve(data, "hinge", AROW(update=update), C=1.0, max_epochs=10)
    assert (best_outputs(data, result.w)[0] == data.gold).mean() > 0.9


def test_refusals():
    with pytest.raises(ValueError, match="'variance' parameter of AROW must be a float in the range"):
        AROW(variance=0.0)
    with pytest.raises(ValueError, match="'update' parameter of AROW"):
        AROW(update="best")
    with pytest.raises(ValueError, match="'arow' minimises max-margin losses"):
        solve(problem(), "crf", "arow")


def test_any_structure_with_best():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 20)
    data = multiclass_problem(np.eye(3)[y] + 0.1 * rng.normal(size=(20, 3)), y, 3)
    w = solve(data, "hinge", "arow", C=1.0, max_epochs=3).w
    assert (best_outputs(data, w)[0] == y).all()
