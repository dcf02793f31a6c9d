"""Threads on the same weights: every example is visited once, and the model is as good as that of one thread."""

import numpy as np
import pytest

from partwise import kernels
from partwise.objective import mean_cost
from partwise.solvers import get_solver, make_task, solve
from partwise.solvers.checkpoint import Checkpoint
from partwise.solvers.dca import DCA
from partwise.solvers.lock_free import LockFreeSolver
from partwise.solvers.loop import run
from partwise.solvers.mira import MIRA
from partwise.structures import chain_problem


def sentences(n=300, seed=0):
    """Chains whose labels follow from rare features: two examples seldom share one."""
    rng = np.random.default_rng(seed)
    words = rng.integers(0, 400, 5 * n)
    rows = np.zeros((5 * n, 400))
    rows[np.arange(5 * n), words] = 1.0
    return chain_problem(rows, [5] * n, words % 3, 3)


class Counting(LockFreeSolver):
    """Writes down whom it visits, and with which memory."""

    seen: list = []

    def visit(self, task, state, order):
        self.seen.append((id(state.work), id(state.weights), order))
        return float(len(order))


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_every_example_is_visited_once_on_the_same_weights_with_memory_of_its_own(n_jobs):
    solver, task = Counting(n_jobs=n_jobs), make_task(sentences(20), "hinge", 0.1)
    solver.seen.clear()
    state = solver.init(task)
    assert solver.epoch(task, state).loss == 20 and state.oracle_calls == 20
    works, weights, orders = zip(*solver.seen, strict=True)
    assert len(set(works)) == n_jobs and len(set(weights)) == 1
    assert sorted(np.concatenate(orders)) == list(range(20))


@pytest.mark.parametrize("solver", [DCA, MIRA])
def test_two_threads_learn_what_one_learns(solver):
    problem = sentences()
    one, two = (solve(problem, "hinge", solver(n_jobs=k), C=0.1, max_epochs=8, tol=0.0) for k in (1, 2))
    assert mean_cost(problem, two.w) <= mean_cost(problem, one.w) + 0.01 < 0.1
    assert two.primal == pytest.approx(one.primal, rel=0.05)
    assert two.n_oracle_calls == one.n_oracle_calls


def test_one_thread_is_the_default_and_has_no_further_memory():
    task = make_task(sentences(20), "hinge", 0.1)
    assert get_solver("dca").n_jobs == 1 and get_solver("dca").init(task).others is None
    assert len(get_solver("dca(n_jobs=3)").init(task).others) == 2


def test_lists_of_weights_cannot_grow_in_two_places():
    hinge = make_task(sentences(20), "hinge", 0.1).loss
    assert DCA().suits_lists(hinge, "never") and not DCA(n_jobs=2).suits_lists(hinge, "never")


@pytest.mark.parametrize("n_jobs", [0, -1, 1.5, True, "2"])
def test_what_is_no_number_of_threads_is_refused(n_jobs):
    with pytest.raises(ValueError, match=r"The 'n_jobs' parameter of DCA must be an int in the range \[1, inf\)"):
        DCA(n_jobs=n_jobs)


def test_more_threads_than_examples():
    problem = sentences(2)
    result = solve(problem, "hinge", DCA(n_jobs=5), C=0.1, max_epochs=2)
    assert np.isfinite(result.w).all() and kernels.n_weights(problem) == len(result.w)


def test_a_checkpoint_goes_on(tmp_path):
    solver, task = DCA(n_jobs=2), make_task(sentences(20), "hinge", 0.1)
    followed = Checkpoint(tmp_path / "run", 0.0)
    assert followed.load(solver, task) is None
    run(solver, task, max_epochs=2, tol=0.0, callbacks=[followed.save])
    resume = Checkpoint(tmp_path / "run", 0.0).load(solver, task)
    assert run(solver, task, max_epochs=4, tol=0.0, resume=resume).n_epochs == 4
