"""Partial labels: the truth of an example is a set of acceptable outputs. Everything against enumeration over that set."""

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle_cases import SCALES, random_rows
from oracle_checks import check_features, check_oracles
from partwise import kernels
from partwise.engine.compilation import compiled_loop, interpret, sources
from partwise.losses.records import LOSSES, Family
from partwise.objective import completions, losses_at, mean_cost, objective
from partwise.solvers import CCCP, SOLVERS, for_optimum, get_solver, make_task, solve
from partwise.solvers.loop import run
from partwise.solvers.pegasos import Pegasos
from partwise.solvers.sgd import SGD
from partwise.structures import (
    ChainProblem,
    MulticlassProblem,
    PartialChainProblem,
    PartialMulticlassProblem,
    chain_problem,
    multiclass_problem,
)
from partwise.structures.chain.problem import take
from partwise.structures.common.gold_labels import pack_sets

pytestmark = pytest.mark.interpreted

COSTS = np.array([[0.0, 1.0, 3.0], [0.5, 0.0, 1.0], [2.0, 1.0, 0.0]])


def from_dense(known):
    """Codes and sets of a boolean array with one row per token: what the constructors take."""
    which, sets = pack_sets(known, *known.shape)
    return known.shape[1] + which, sets


def random_sets(rng, n, k):
    """n non-empty sets of labels: mostly single labels and unknown ones."""
    known = rng.random((n, k)) < rng.choice([0.2, 0.5, 1.0], size=(n, 1))
    known[np.arange(n), rng.integers(0, k, n)] = True
    return known


@st.composite
def partial_cases(draw):
    """A problem with random sets of acceptable labels, random weights, and the sets (problem, w, known)."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    chain, costs, constrained = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
    k = draw(st.integers(2, 3))
    lengths = draw(st.lists(st.integers(0, 3), min_size=2, max_size=2)) if chain else [1, 1, 1]
    n = sum(lengths)
    known = random_sets(rng, n, k)
    if n and known.sum(axis=1).max() == 1:
        known[0] = True  # at least one token is not fully labelled
    gold, sets = from_dense(known)
    options = {
        "costs": rng.random((k, k)) * (1 - np.eye(k)) if costs else None,
        "allowed": rng.random((n, k)) < 0.8 if constrained else None,
        "known": sets,
    }
    x = random_rows(rng, n, 3, "dense")
    if chain:
        symbols = [*range(k), None]
        options["forbidden"] = [(a, b) for a in symbols for b in symbols if constrained and rng.random() < 0.15]
        problem = chain_problem(x, lengths, gold, k, order=draw(st.integers(1, 2)), use_start=draw(st.booleans()), **options)
    else:
        problem = multiclass_problem(x, gold, k, **options)
    w = rng.normal(size=kernels.n_weights(problem)) * draw(st.sampled_from(SCALES))
    return problem, w, known


@compiled_loop
def both_oracles(problem, i, w, theta, y, best, parts):
    """The oracles over acceptable outputs, compiled once."""
    kernels.score(problem, i, w, theta)
    kernels.best(problem, i, theta, best)
    return kernels.complete(problem, i, theta, y), kernels.expected_completion(problem, i, theta, -2.0, parts)


def acceptable_outputs(problem, i, known):
    """The outputs of example i that agree with what is known, by looking at each; and the costs of all outputs."""
    first = problem.starts[i] if isinstance(problem, ChainProblem) else i
    everything = list(kernels.outputs(problem, i))
    fine = [all(known[first + t, label] for t, label in enumerate(y)) for y in everything]
    costs = problem.costs[: known.shape[1]]
    cost = [sum(costs[known[first + t], label].min() for t, label in enumerate(y)) for y in everything]
    return everything, np.array(fine), np.array(cost)


@settings(max_examples=150, deadline=None)
@given(partial_cases())
def test_oracles_over_acceptable_outputs_equal_enumeration(case):
    problem, w, known = case
    if len(known):
        assert type(problem) in (PartialChainProblem, PartialMulticlassProblem) and kernels.is_partial(problem)
    size = max(1.0, np.abs(w).max())
    for i in range(kernels.n_examples(problem)):
        n, length = kernels.n_parts(problem, i), kernels.length(problem, i)
        theta, parts = np.full(n, 7.0), np.full(n, 0.5)
        y, best = np.full(length, 99, np.int32), np.full(length, 99, np.int32)
        value, log_sum = both_oracles(problem, i, w, theta, y, best, parts)
        everything, fine, cost = acceptable_outputs(problem, i, known)
        assert kernels.is_labelled(problem, i) == (fine.sum() == 1)
        scores = np.array([kernels.value_of(problem, i, theta, one) for one in everything])
        truth = np.where(fine, scores, -np.inf)
        if truth.max() == -np.inf:
            assert value == -np.inf and log_sum == -np.inf
            continue
        assert value == pytest.approx(truth.max(), rel=1e-12, abs=1e-12 * size)
        assert kernels.value_of(problem, i, theta, y) == pytest.approx(value, rel=1e-12, abs=1e-12 * size)
        numbers = {tuple(one): k for k, one in enumerate(everything)}
        assert fine[numbers[tuple(y)]]
        if fine[numbers[tuple(best)]]:  # ties are broken alike: an acceptable best output is its own completion
            np.testing.assert_array_equal(y, best)
        p = np.exp(truth - truth.max())
        assert log_sum == pytest.approx(truth.max() + np.log(p.sum()), rel=1e-12, abs=1e-10)
        marginals = np.full(n, 0.5)
        for one, q in zip(everything, p / p.sum(), strict=True):
            kernels.indicate(problem, i, one, -2.0 * q, marginals)
        np.testing.assert_allclose(parts, marginals, atol=1e-9 if size < 1e3 else 1e-6)
        # the cost is against the nearest acceptable label, also part by part
        np.testing.assert_allclose([kernels.cost(problem, i, one) for one in everything], cost, atol=1e-12)
        assert not cost[fine].any()
        augmented = np.zeros(n)
        kernels.add_cost(problem, i, 1.0, augmented)
        np.testing.assert_allclose([kernels.value_of(problem, i, augmented, one) for one in everything], cost, atol=1e-12)


def example(kind="chain"):
    """A small problem with costs and constraints, some of its examples fully labelled; its C, and what is known."""
    rng = np.random.default_rng(5)
    n, lengths = 9, [3, 0, 1, 3, 2]
    known = random_sets(rng, n, 3)
    known[:3] = np.eye(3)[[0, 1, 2]]
    known[3] = True
    gold, sets = from_dense(known)
    x = rng.normal(size=(n, 2))
    if kind == "chain":
        problem = chain_problem(x, lengths, gold, 3, costs=COSTS, known=sets, forbidden=[(2, 1), (0, None)])
    else:
        problem = multiclass_problem(x, gold, 3, COSTS, known=sets)
    return problem, rng.random(kernels.n_examples(problem)) + 0.2, known


ALL = [*(loss for loss in LOSSES.values() if isinstance(loss, Family)), Family(3.0, 1.0)]


@pytest.mark.parametrize("loss", ALL, ids=lambda loss: loss.name)
@pytest.mark.parametrize("kind", ["chain", "multiclass"])
def test_loss_and_gradient_are_those_of_enumeration(kind, loss):
    problem, C, known = example(kind)
    w = np.random.default_rng(3).normal(size=kernels.n_weights(problem))

    def soft(v):
        v = v[v > -np.inf]
        return v.max() + (math.log(np.exp(loss.beta * (v - v.max())).sum()) / loss.beta if loss.is_smooth else 0.0)

    expected = []
    for i in range(len(C)):
        theta = np.zeros(kernels.n_parts(problem, i))
        kernels.score(problem, i, w, theta)
        everything, fine, cost = acceptable_outputs(problem, i, known)
        scores = np.array([kernels.value_of(problem, i, theta, y) for y in everything])
        expected.append(soft(scores + loss.gamma * cost) - soft(np.where(fine, scores, -np.inf)))
    with interpret():
        np.testing.assert_allclose(losses_at(problem, loss, w), expected, rtol=1e-10, atol=1e-12)
        value = objective(problem, loss, C, w)
        assert value.primal == pytest.approx(0.5 * w @ w + C @ expected, rel=1e-12)
        assert math.isnan(value.dual) and math.isnan(value.gap)
        assert value.residual == pytest.approx(0.5 * value.gradient @ value.gradient)
        h = 1e-6
        for j in range(len(w)):
            e = h * np.eye(len(w))[j]
            slope = (objective(problem, loss, C, w + e).primal - objective(problem, loss, C, w - e).primal) / (2 * h)
            assert value.gradient[j] == pytest.approx(slope, rel=1e-5, abs=1e-6)


def test_compiled_and_interpreted_agree():
    problem, C, _ = example()
    w = np.random.default_rng(3).normal(size=kernels.n_weights(problem))
    for loss in (LOSSES["hinge"], LOSSES["crf"]):
        compiled = objective(problem, loss, C, w, n_jobs=2)
        with interpret():
            interpreted = objective(problem, loss, C, w)
        assert compiled.primal == pytest.approx(interpreted.primal, rel=1e-12)
        np.testing.assert_allclose(compiled.gradient, interpreted.gradient, rtol=1e-10, atol=1e-12)


def full_labels(n=30, d=4):
    rng = np.random.default_rng(11)
    x = rng.normal(size=(n, d))
    return x, [3] * (n // 3), (x[:, :3] + 0.5 * rng.normal(size=(n, 3))).argmax(1)


@pytest.mark.parametrize(("loss", "solver"), [("hinge", "dca"), ("crf", SGD(eta=0.3)), ("crf", "lbfgs")])
def test_sets_of_one_label_are_full_supervision(loss, solver):
    x, lengths, gold = full_labels()
    plain = chain_problem(x, lengths, gold, 3)
    codes, sets = from_dense(np.eye(3, dtype=bool)[gold])
    single = chain_problem(x, lengths, codes, 3, known=sets)
    assert type(single) is ChainProblem
    np.testing.assert_array_equal(single.gold, gold)
    a, b = (solve(p, loss, solver, max_epochs=5) for p in (plain, single))
    np.testing.assert_array_equal(a.w, b.w)
    assert a.dual == b.dual and a.primal == b.primal
    # one more sequence, unknown and of no weight, makes it a partial problem of fully labelled examples
    more = chain_problem(np.vstack([x, x[:3]]), [*lengths, 3], [*gold, 3, 3, 3], 3, known=np.ones((1, 3), bool))
    assert type(more) is PartialChainProblem
    with interpret():
        a = solve(plain, loss, solver, max_epochs=3, shuffle=False)
        b = solve(more, loss, solver, max_epochs=3, shuffle=False, sample_weight=[1.0] * len(lengths) + [0.0])
    np.testing.assert_allclose(a.w, b.w, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("loss", ALL, ids=lambda loss: loss.name)
def test_margins_are_against_the_target_and_costs_against_the_truth(loss):
    """What CCCP hands to a solver: a target that itself has a cost, which its score must not include."""
    problem, C, known = example()
    targets = np.where(known[:, 2], 2, 0).astype(np.int32)
    targets[:3] = [1, 1, 2]
    fixed, w = kernels.with_targets(problem, targets), np.zeros(kernels.n_weights(problem))
    with interpret():
        value, open_value = objective(fixed, loss, C, w), losses_at(problem, loss, w)
        for i in range(len(C)):
            everything, fine, _ = acceptable_outputs(problem, i, known)
            several = math.log(sum(fine & possible(problem, i, everything))) / loss.beta if loss.is_smooth else 0.0
            assert losses_at(fixed, loss, w)[i] == pytest.approx(open_value[i] + several, abs=1e-12)
    assert value.dual <= value.primal


def possible(problem, i, everything):
    """Which outputs are not forbidden."""
    theta = np.zeros(kernels.n_parts(problem, i))
    kernels.score(problem, i, np.zeros(kernels.n_weights(problem)), theta)
    return np.array([kernels.value_of(problem, i, theta, y) > -np.inf for y in everything])


@pytest.mark.parametrize("loss", ALL, ids=lambda loss: loss.name)
def test_where_nothing_is_known_nothing_is_lost(loss):
    rng = np.random.default_rng(0)
    problem = chain_problem(rng.normal(size=(5, 2)), [2, 0, 3], [3] * 5, 3, known=np.ones((1, 3), bool), forbidden=[(0, 0)])
    w = rng.normal(size=kernels.n_weights(problem))
    with interpret():
        np.testing.assert_allclose(losses_at(problem, loss, w), 0.0, atol=1e-12)
        assert mean_cost(problem, w) == 0.0
        result = solve(problem, loss, get_solver("auto", problem, loss))
    assert result.status == "converged" and not result.w.any()


def noisy_sets(n=60):
    """Sequences whose tokens are known, unknown or have one wrong label beside the right one, a third each."""
    x, lengths, gold = full_labels(n)
    known = np.eye(3, dtype=bool)[gold]
    known[::3] = True
    known[np.arange(1, n, 3), (gold[1::3] + 1) % 3] = True
    codes, sets = from_dense(known)
    return chain_problem(x, lengths, codes, 3, known=sets), chain_problem(x, lengths, gold, 3)


ENDS = {
    "perceptron": ("perceptron", {"max_epochs", "converged"}),
    "mira": ("hinge", {"max_epochs"}),
    "arow": ("hinge", {"max_epochs"}),
    "kbest_mira": ("hinge", {"max_epochs"}),
    "dca": ("softmax_margin", {"max_epochs"}),
    "sgd": ("hinge", {"max_epochs"}),
    "pegasos": ("crf", {"max_epochs"}),
    "lbfgs": ("crf", {"converged"}),
    "polyak": ("hinge", {"max_epochs"}),
}


@pytest.mark.parametrize("name", ENDS)
def test_solvers_end_without_a_false_certificate(name):
    problem, truth = noisy_sets(30)
    loss, ends = ENDS[name]
    solver = SGD(eta=0.3) if name == "sgd" else get_solver(name)
    with interpret():
        result = solve(problem, loss, solver, max_epochs=30 if name == "lbfgs" else 4, evaluate="epoch", tol=1e-2)
        before = objective(problem, LOSSES[loss], np.ones(10), np.zeros_like(result.w))
        assert result.status in ends and result.converged == (result.status == "converged")
        assert math.isnan(result.dual) and math.isnan(result.gap) and all(math.isnan(r.dual) for r in result.history)
        if name != "perceptron":  # which minimises no objective
            assert result.primal < before.primal
        assert mean_cost(truth, result.w) <= 0.5 * mean_cost(truth, np.zeros_like(result.w))
    if name == "lbfgs":
        assert "stationary point" in result.message and "not convex" in result.message
        gradient = result.state.gradient
        assert 0.5 * gradient @ gradient <= 1e-2 * result.primal


DUAL = [name for name, make in SOLVERS.items() if make.fixed_targets and make().accepts(LOSSES["hinge"])]


def test_every_solver_is_tested_with_partial_labels():
    summed = LOSSES["summed"].found_by  # which refuses sets
    smooth = {"nrbm", "owlqn", "eg"}  # owlqn is lbfgs with a penalty of its own; eg goes by targets, in CCCP
    assert set(SOLVERS) - {*smooth, *summed} == {*ENDS, *DUAL}


@pytest.mark.parametrize("name", [n if n in ("sdm", "oneslack") else pytest.param(n, marks=pytest.mark.slow) for n in DUAL])
def test_dual_solvers_train_inside_cccp(name):
    problem, truth = noisy_sets(30)
    result = solve(problem, "hinge", name, C=0.3, max_epochs=200 if name == "kelley" else None)  # else it takes minutes
    assert isinstance(result.solver, CCCP) and result.rounds
    assert all(later.objective <= sooner.objective for sooner, later in itertools.pairwise(result.rounds))
    assert mean_cost(truth, result.w) <= 0.5 * mean_cost(truth, np.zeros_like(result.w))
    with pytest.raises(ValueError, match=f"'{name}' works in the dual.*partially labelled.*Put it into CCCP.*dca"):
        run(SOLVERS[name](), make_task(problem, "hinge", 1.0))


def test_auto_takes_what_needs_no_dual():
    problem, truth = noisy_sets(6)
    assert for_optimum(problem, LOSSES["crf"]).name == "lbfgs" and for_optimum(problem, LOSSES["hinge"]).name == "dca"
    assert for_optimum(problem, LOSSES["perceptron"]).name == "perceptron"
    assert for_optimum(truth, LOSSES["hinge"]).name == "sdm"


def test_the_ball_of_pegasos_holds_a_minimum_that_is_not_convex():
    problem, _ = noisy_sets(6)
    with interpret():
        state = Pegasos().init(make_task(problem, "hinge", 1.0))
        assert state.radius**2 == pytest.approx(2.0 * losses_at(problem, LOSSES["hinge"], np.zeros_like(state.weights.v)).sum())
    assert not state.is_dual


def test_partial_labels_teach():
    """A corpus of which a third is unknown and a third ambiguous labels nearly as well as the whole truth, compiled."""
    problem, truth = noisy_sets(600)
    partial = solve(problem, "hinge", "dca", C=0.1, max_epochs=10, evaluate="never").w
    full = solve(truth, "hinge", "dca", C=0.1, max_epochs=10, evaluate="never").w
    assert mean_cost(truth, partial) <= mean_cost(truth, full) + 0.15
    assert mean_cost(truth, partial) <= 0.4 * mean_cost(truth, np.zeros_like(full))


def test_choosing_targets_and_solving_for_them_never_raises_the_objective():
    """CCCP, with a dual solver inside: the convex problem of the completions bounds the objective from above and touches it."""
    problem, _ = noisy_sets(30)
    loss, C = LOSSES["hinge"], np.full(10, 0.3)
    w = np.zeros(kernels.n_weights(problem))
    values = [objective(problem, loss, C, w).primal]
    for _ in range(4):
        outputs, _, scores = completions(problem, w)
        convex = kernels.with_targets(problem, outputs)
        assert type(convex) is ChainProblem and not kernels.is_partial(convex)
        assert objective(convex, loss, C, w).primal == pytest.approx(values[-1], rel=1e-12)
        result = solve(convex, loss, "sdm", C=0.3, tol=1e-6, start=w)
        assert result.converged and result.gap >= -1e-12
        w = result.w
        values.append(objective(problem, loss, C, w).primal)
        assert values[-1] <= result.primal + 1e-9
    assert all(b <= a + 1e-5 * a for a, b in zip(values[:-1], values[1:], strict=True)) and values[-1] < values[0]


# ---------------------------------------------------------------------------------------------------------------------
# Packing
# ---------------------------------------------------------------------------------------------------------------------


def test_labels_that_cannot_be_completed_are_found():
    x = np.zeros((4, 1))
    known = np.array([[True, True, False]])
    problem = chain_problem(x, [1, 3], [3, 2, 3, 2], 3, known=known, forbidden=[(2, 0), (1, 2)])
    out, starts, values = completions(problem, np.zeros(kernels.n_weights(problem)))
    assert values[0] == 0.0 and values[1] == -np.inf and list(starts) == [0, 1, 4] and out[0] in (0, 1)
    with pytest.raises(ValueError, match="No output of example 1 agrees with its partial labels"):
        solve(problem, "hinge", "dca")
    allowed = np.ones((4, 3), bool)
    allowed[0, :2] = False
    problem = chain_problem(x, [1, 3], [3, 2, 3, 2], 3, known=known, allowed=allowed)
    with pytest.raises(ValueError, match="No output of example 0 agrees with its partial labels"):
        solve(problem, "crf", "lbfgs")


def test_sets_are_checked():
    x, known = np.zeros((4, 1)), np.array([[True, True, False], [False, False, False]])
    with pytest.raises(ValueError, match="acceptable labels of sequence 1, token 2 is empty"):
        chain_problem(x, [1, 3], [0, 3, 1, 4], 3, known=known)
    with pytest.raises(ValueError, match="acceptable labels of example 1 is empty"):
        multiclass_problem(x, [0, 4, 1, 3], 3, known=known)
    with pytest.raises(ValueError, match=r"integers in \[0, 5\). Got 0 to 5"):
        chain_problem(x, [1, 3], [0, 3, 1, 5], 3, known=known)
    with pytest.raises(ValueError, match=r"one row of 3 booleans.*\(1, 2\)"):
        chain_problem(x, [4], [0, 3, 1, 2], 3, known=np.ones((1, 2), bool))
    unused = chain_problem(x, [1, 3], [0, 3, 1, 2], 3, known=known)  # an empty set that nobody refers to
    assert type(unused) is PartialChainProblem and np.isfinite(unused.costs).all()


def test_compiled_code_of_partial_problems_depends_on_the_sources_of_the_full_ones():
    """The type inherits its kernels: the disk cache must watch the files they come from."""
    for structure, files in (
        (PartialChainProblem, {"chain/kernels.py", "chain/best.py"}),
        (PartialMulticlassProblem, {"multiclass/kernels.py"}),
    ):
        assert files <= {"/".join(Path(path).parts[-2:]) for path in sources(both_oracles.interpreted, structure)}


def test_targets_of_unknown_tokens_are_labels_that_may_be_answered():
    allowed = np.array([[False, True, True], [True, True, True]])
    for problem in (
        chain_problem(np.zeros((2, 1)), [2], [3, 3], 3, known=np.ones((1, 3), bool), allowed=allowed),
        multiclass_problem(np.zeros((2, 1)), [3, 3], 3, allowed=allowed, known=np.ones((1, 3), bool)),
    ):
        assert list(problem.targets) == [1, 0]


def test_some_sequences_of_a_partial_problem():
    problem, _, known = example()
    some = take(problem, np.array([4, 1, 3]))
    assert type(some) is PartialChainProblem and list(np.diff(some.starts)) == [2, 0, 3]
    w = np.random.default_rng(0).normal(size=kernels.n_weights(problem))
    with interpret():
        whole = losses_at(problem, LOSSES["softmax_margin"], w)
        np.testing.assert_allclose(losses_at(some, LOSSES["softmax_margin"], w), whole[[4, 1, 3]], rtol=1e-12)
    labelled = take(problem, np.array([0, 1]))  # convex again
    assert type(labelled) is ChainProblem and not kernels.is_partial(labelled)
    fixed = take(kernels.with_targets(problem, np.arange(9, dtype=np.int32) % 3), np.array([3]))
    assert type(fixed) is ChainProblem and list(fixed.targets) == [1, 2, 0]
    assert type(multiclass_problem(np.zeros((1, 1)), [0], 2)) is MulticlassProblem


# ---------------------------------------------------------------------------------------------------------------------
# Chains without transition weights
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [1, 2])
def test_chains_without_transition_weights(order):
    rng = np.random.default_rng(0)
    x, lengths, gold = rng.normal(size=(5, 4)), [3, 2], rng.integers(0, 3, 5)
    problem = chain_problem(x, lengths, gold, 3, order=order, use_transitions=False, forbidden=[(0, 1), (None, 2)])
    w = rng.normal(size=kernels.n_weights(problem))
    check_oracles(problem, w)
    check_features(problem, w)
    assert kernels.n_weights(problem) == kernels.n_weights(chain_problem(x, lengths, gold, 3, order=order))
    features = np.zeros_like(w)
    kernels.add_features(problem, 0, np.array([0, 2, 1], np.int32), 1.0, features)
    assert not features[4 * 3 :].any() and features[: 4 * 3].any()


def test_a_chain_without_transition_weights_is_a_classifier_of_tokens():
    x, _, gold = full_labels(30)
    tokens = solve(multiclass_problem(x, gold, 3), "crf", "lbfgs", tol=1e-11).w
    chain = solve(chain_problem(x, [3] * 10, gold, 3, use_transitions=False), "crf", "lbfgs", tol=1e-11).w
    np.testing.assert_allclose(chain[: len(tokens)], tokens, atol=1e-4)
    assert not chain[len(tokens) :].any()
