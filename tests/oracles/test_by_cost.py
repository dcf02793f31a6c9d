"""Rescaled losses of any structure: the search over lambda against enumeration, its bound, and what solvers make of it."""

import numpy as np
import pytest

from budget_structure import PlainBudget, make_budget
from partwise import kernels
from partwise.losses.in_loops import workspace
from partwise.losses.records import Rescaled
from partwise.losses.rescaled import unseen_pass
from partwise.objective import losses_at
from partwise.oracles.by_cost import envelope_bound, highest_on_line, rescaled_value, search_costs
from partwise.solvers import solve
from partwise.structures import chain_problem, multiclass_problem

pytestmark = pytest.mark.interpreted

POWERS = [0.0, 0.5, 1.0, 2.0]
REALS = np.array([[0.0, 1.0, 3.1], [0.5, 0.0, 1.0], [2.0, 1.3, 0.0]])


def chains(seed, constrained=False):
    """Five short chains with costs that are no integers."""
    rng = np.random.default_rng(seed)
    lengths, gold = [5, 0, 1, 4, 5], rng.integers(0, 3, 15)
    allowed = rng.random((15, 3)) < 0.8
    allowed[np.arange(15), gold] = True
    return chain_problem(rng.normal(size=(15, 2)), lengths, gold, 3, costs=REALS, allowed=allowed if constrained else None)


def points(problem, i, w):
    """Cost and score of every output that is not forbidden, and the score of the truth."""
    theta = np.zeros(kernels.n_parts(problem, i))
    kernels.score(problem, i, w, theta)
    pairs = [(kernels.cost(problem, i, y), kernels.value_of(problem, i, theta, y)) for y in kernels.outputs(problem, i)]
    cost, score = np.array(pairs, float).T
    return cost[score > -np.inf], score[score > -np.inf], kernels.value_of(problem, i, theta, kernels.target(problem, i))


def on_the_hull(cost, score, k):
    """Whether no pair of points, or one of them, lies above point k at its cost."""
    left, right = cost <= cost[k], cost >= cost[k]
    across = np.maximum(cost[right][None, :] - cost[left][:, None], 1e-300)
    share = np.clip((cost[k] - cost[left])[:, None] / across, 0.0, 1.0)
    return ((1 - share) * score[left][:, None] + share * score[right][None, :]).max() <= score[k] + 1e-9


def room_above(problem, power, w):
    """What the bound leaves above the value that is found, for each example."""
    extra = np.zeros(kernels.n_examples(problem))
    unseen_pass(problem, power, 0, len(extra), w, workspace(problem), extra)
    return extra


def test_found_value_and_bound_enclose_the_truth():
    missed = met = 0
    for seed in range(12):
        problem, rng = chains(seed, constrained=seed % 2 == 1), np.random.default_rng(seed)
        w = rng.normal(size=kernels.n_weights(problem)) * [0.1, 1.0, 10.0][seed % 3]
        assert Rescaled(1).is_searched(problem)
        for power in POWERS:
            found, extra = losses_at(problem, Rescaled(power), w), room_above(problem, power, w)
            for i in range(len(found)):
                cost, score, reference = points(problem, i, w)
                values = cost**power * (score - reference) + cost
                k, rounding = values.argmax(), 1e-8 * (1.0 + abs(values).max())
                assert found[i] <= values[k] + rounding <= found[i] + extra[i] + 2 * rounding
                if on_the_hull(cost, score, k):
                    assert found[i] == pytest.approx(values[k], abs=rounding)
                    met += 1
                else:
                    missed += found[i] < values[k] - rounding
    assert met > 100 and missed > 3


def test_costs_that_can_be_counted_leave_nothing_unseen():
    rng = np.random.default_rng(0)
    integers = chain_problem(rng.normal(size=(8, 2)), [4, 4], rng.integers(0, 3, 8), 3)
    classes = multiclass_problem(rng.normal(size=(8, 2)), rng.integers(0, 3, 8), 3, costs=REALS)
    for problem in (integers, classes):
        w = rng.normal(size=kernels.n_weights(problem))
        assert not Rescaled(1).is_searched(problem) and Rescaled(1).unseen(problem, np.ones(8), w) == 0.0
    long = chain_problem(np.ones((9000, 1)), [9000], np.zeros(9000, int), 3)
    assert not kernels.counts_costs(long, 0) and int(kernels.n_costs(long, 0)) == kernels.SEARCHED


def test_search_ends_at_its_limit_and_its_bound_still_holds():
    """Room for three outputs and as many queries: fewer vertices, a higher bound, never a wrong one."""
    problem = chains(3)
    w = np.random.default_rng(3).normal(size=kernels.n_weights(problem))
    theta = np.zeros(kernels.n_parts(problem, 0))
    kernels.score(problem, 0, w, theta)
    cost, score, reference = points(problem, 0, w)
    for room in (3, 32):
        ys, values, costs = np.zeros((room, 5), np.int32), np.zeros(room), np.zeros(room)
        lines = np.zeros((room, 2))
        n, queries = search_costs(problem, 0, theta, ys, values, costs, lines)
        assert n <= room and queries <= room
        assert {(round(c, 9), round(v, 9)) for c, v in zip(costs[:n], values[:n], strict=True)} <= {
            (round(c, 9), round(s, 9)) for c, s in zip(cost, score, strict=True)
        }
        assert (score[:, None] <= lines[:queries, 1] - np.outer(cost, lines[:queries, 0]) + 1e-9).all()
        grid = np.linspace(0.0, costs[:n].max(), 20_001)
        under = (lines[:queries, 1] - np.outer(grid, lines[:queries, 0])).min(axis=1)
        for power in POWERS:
            highest = (grid**power * (under - reference) + grid).max()
            assert highest - 1e-9 <= envelope_bound(lines, queries, reference, costs[:n].max(), power) <= highest + 1e-2
            assert (cost**power * (score - reference) + cost).max() <= highest + 1e-2


def test_highest_value_on_a_line_is_that_of_a_grid():
    rng = np.random.default_rng(0)
    for k in range(200):
        power, slope = POWERS[k % 4] if k % 8 < 4 else rng.random() * 3, rng.random() * 3 * (k % 5 > 0)
        a, low = rng.normal() * 3, rng.random() * 2 * (k % 3 > 0)
        high = low + rng.random() * 4
        grid = np.linspace(low, high, 20_001)
        values = [rescaled_value(c, a - slope * c, power) for c in grid]
        found = highest_on_line(a, slope, low, high, power)
        assert max(values) - 1e-12 <= found <= max(values) + 1e-4


@pytest.mark.parametrize("solver", ["oneslack", *(pytest.param(s, marks=pytest.mark.slow) for s in ("sdm", "bcfw", "nslack"))])
def test_chains_with_any_costs_train_and_say_what_they_may_have_missed(solver):
    problem, C = chains(0), 0.5
    result = solve(problem, "slack", solver, C=C, tol=1e-3, max_epochs=300, evaluate="epoch")
    true = 0.5 * result.w @ result.w
    for i in range(5):
        cost, score, reference = points(problem, i, result.w)
        true += C * (cost * (score - reference) + cost).max()
    assert 0.0 < result.unseen < 0.5 * result.primal
    assert result.primal <= true + 1e-9 <= result.primal + result.unseen + 1e-8
    for record in result.history:  # weak duality, although the oracle is a search
        assert record.dual <= record.primal + 1e-9


def test_structure_in_plain_python_needs_no_oracle_of_its_own():
    problem = make_budget(6, structure=PlainBudget)
    result = solve(problem, "slack", "sdm", C=0.3, tol=1e-2, max_epochs=60)
    assert result.converged and 0.0 <= result.unseen <= 0.5 * result.primal
    for i in range(6):
        cost, score, reference = points(problem, i, result.w)
        assert losses_at(problem, Rescaled(1), result.w)[i] <= (cost * (score - reference) + cost).max() + 1e-9


def test_room_for_one_output_is_not_overrun():
    """A structure of a user's may say that there is one cost: what is found beyond has no place."""
    problem = multiclass_problem(np.eye(3), [0, 1, 2], 3)
    theta, ys, values, costs = np.array([0.0, 2.0, 1.0]), np.full((1, 1), 9, np.int32), np.zeros(1), np.zeros(1)
    assert search_costs(problem, 0, theta, ys, values, costs, np.zeros((2, 2))) == (1, 1)
    assert ys.tolist() == [[1]] and values.tolist() == [2.0] and costs.tolist() == [1.0]
