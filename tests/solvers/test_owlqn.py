"""OWL-QN; tests/losses/test_penalty.py checks its optimum."""

import numpy as np
import pytest

from partwise.solvers import make_task, solve
from partwise.solvers.owlqn import OWLQN, SHARPER, STEEP, align
from partwise.structures import chain_problem

pytestmark = pytest.mark.interpreted


def test_where_the_step_may_go():
    w = np.array([0.0, 0.0, 1.0, 1.0, 1.0, -1.0])
    pseudo = np.array([1.0, 1.0, 1.0, -1.0, -1.0, 2.0])
    to = np.array([-0.5, 0.5, -0.5, 2.0, 0.5, -2.0])
    free, aligned = to.copy(), to.copy()
    slope = align(free, w, pseudo, 1.0, False, 0, 6)
    assert free.tolist() == [-0.5, 0.0, 0.0, 2.0, 0.5, -2.0]  # uphill from zero, or over zero: zero
    assert slope == pytest.approx((free - w) @ pseudo)
    slope = align(aligned, w, pseudo, 1.0, True, 0, 6)
    assert aligned.tolist() == [-0.5, 0.0, 0.0, 2.0, 1.0, -2.0]  # uphill: not at all
    assert slope == pytest.approx((aligned - w) @ pseudo) and slope < (free - w) @ pseudo
    plain = to.copy()
    align(plain, w, pseudo, 0.0, True, 0, 6)
    assert plain.tolist() == to.tolist()  # no orthants


def test_all_is_aligned_while_the_objective_falls_steeply():
    rng = np.random.default_rng(0)
    gold = rng.integers(0, 3, 40)
    problem = chain_problem(np.eye(3)[gold] + rng.normal(size=(40, 3)), [4] * 10, gold, 3)
    result = solve(problem, "crf", "owlqn", C=1.0, l1_ratio=0.5, max_epochs=60, tol=1e-9)
    values = [record.primal for record in result.history]
    falls = [(a - b) / b for a, b in zip(values, values[1:], strict=False)]
    assert falls[0] > STEEP > falls[-1] >= -1e-12  # both rules had their turn
    assert result.state.fall <= STEEP and result.gap < 1e-3 * result.primal


def test_the_scale_of_the_end_is_sharper():
    rng = np.random.default_rng(0)
    gold = rng.integers(0, 3, 40)
    problem = chain_problem(np.eye(3)[gold] + rng.normal(size=(40, 3)), [4] * 10, gold, 3)
    solver, task = OWLQN(), make_task(problem, "crf", 3.0, l1_ratio=0.5)
    state = solver.init(task)
    solver.epoch(task, state)
    old, n = state.scale, len(state.memory.slots)
    while not state.sharp:
        n = len(state.memory.slots)
        solver.epoch(task, state)
    np.testing.assert_allclose(state.scale, old**SHARPER, rtol=1e-6)
    assert len(state.memory.slots) >= n > 2  # pairs are kept
