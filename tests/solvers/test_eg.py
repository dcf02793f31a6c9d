"""EG: the dual never falls and never passes the optimum; the gain it sees is the gain there is; every structure with sums."""

import numpy as np
import pytest

from oracle_cases import random_codes
from partwise import kernels, solve
from partwise.losses.records import Family
from partwise.solvers import make_task
from partwise.solvers.eg import EG
from partwise.structures import chain_problem, multiclass_problem, segment_problem, tree_problem

pytestmark = pytest.mark.interpreted

RNG = np.random.default_rng(5)
PROBLEMS = {
    "multiclass": multiclass_problem(RNG.normal(size=(9, 3)), RNG.integers(0, 3, 9), 3),
    "chain": chain_problem(RNG.normal(size=(9, 2)), [4, 0, 1, 4], np.array([0, 2, 1, 0, 2, 1, 0, 2, 0]), 3, forbidden=[(0, 0)]),
    "segments": segment_problem(RNG.normal(size=(9, 2)), [4, 5], random_codes(RNG, [4, 5], 2, [3, 1]), 2, limits=[3, 1]),
    "tree": tree_problem(RNG.normal(size=(18, 2)), [3, 2], np.array([0, 1, 2, 0, 1])),
}


@pytest.mark.parametrize("name", list(PROBLEMS))
@pytest.mark.parametrize("loss", ["crf", Family(2.0, 0.7)], ids=["crf", "margin"])
def test_the_optimum_is_that_of_lbfgs(name, loss):
    problem = PROBLEMS[name]
    best = solve(problem, loss, "lbfgs", C=0.8, tol=1e-9, max_epochs=500)
    result = solve(problem, loss, "eg", C=0.8, tol=1e-5, max_epochs=500, evaluate="epoch")
    assert result.converged and result.primal == pytest.approx(best.primal, rel=2e-5)
    duals = [record.dual for record in result.history]
    assert max(duals) <= best.primal + 1e-9
    assert all(b >= a - 1e-5 * abs(best.primal) for a, b in zip(duals[:-1], duals[1:], strict=True))  # marginals have 32 bits
    np.testing.assert_allclose(result.w, best.w, atol=0.02)


def test_weights_are_those_of_the_distributions():
    """w = sum_i C_i (F(t_i) - E F), with the marginals that it keeps, after whatever steps."""
    task = make_task(PROBLEMS["chain"], "crf", 0.8)
    solver = EG()
    state = solver.init(task)
    for _ in range(3):
        solver.epoch(task, state)
    w, at = np.zeros(kernels.n_weights(task.problem)), 0
    for i in range(task.n):
        n = kernels.n_parts(task.problem, i)
        parts = np.zeros(n)
        kernels.expected(task.problem, i, state.scores[at : at + n].astype(float), parts)
        kernels.indicate(task.problem, i, kernels.target(task.problem, i), -1.0, parts)
        kernels.add_parts(task.problem, i, parts, -0.8, w)
        at += n
    np.testing.assert_allclose(solver.weights(state), w, atol=1e-5)


def test_a_start_is_where_it_begins():
    """At the optimum, the distributions are those of w: nothing is left to do."""
    problem = PROBLEMS["segments"]
    best = solve(problem, "crf", "lbfgs", C=0.8, tol=1e-10, max_epochs=500)
    again = solve(problem, "crf", "eg", C=0.8, tol=1e-4, start=best.w, max_epochs=1)
    assert again.converged and again.primal == pytest.approx(best.primal, rel=1e-4)
