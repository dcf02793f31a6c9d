"""The objective: gradient against differences, certificate against an explicit dual, the same answer on any number of threads."""

import math
import threading
import tracemalloc

import numpy as np
import pytest

from partwise import kernels, passes
from partwise.engine.compilation import interpret
from partwise.losses.records import Family, get_loss
from partwise.objective import best_outputs, losses_at, objective, spans
from partwise.structures import chain_problem, multiclass_problem

SMOOTH = [get_loss("crf"), get_loss("softmax_margin"), Family(3.0, 1.0)]
LOSSES = [*SMOOTH, get_loss("hinge")]


def costs(k):
    c = np.abs(np.arange(k)[:, None] - np.arange(k)) * 1.5
    c[0] *= 2
    return c


def make(kind):
    """A small problem with a cost matrix and constraints, and one weight per example (one of them zero)."""
    rng = np.random.default_rng(7)
    if kind == "multiclass":
        n = 5
        gold = rng.integers(0, 3, n)
        allowed = rng.random((n, 3)) < 0.7
        allowed[np.arange(n), gold] = True
        problem = multiclass_problem(rng.normal(size=(n, 4)), gold, 3, costs(3), allowed)
    else:
        lengths = [3, 0, 1, 4]
        n = sum(lengths)
        gold = np.array([0, 1, 2, 2, 2, 0, 0, 1])
        allowed = rng.random((n, 3)) < 0.8
        allowed[np.arange(n), gold] = True
        problem = chain_problem(
            rng.normal(size=(n, 2)),
            lengths,
            gold,
            3,
            order=1 if kind == "chain" else 2,
            costs=costs(3),
            allowed=allowed,
            forbidden=[(2, 1), (0, 2), (None, 1), (0, None)],
        )
    C = rng.random(kernels.n_examples(problem)) + 0.2
    C[2] = 0.0
    return problem, C


@pytest.fixture(params=["multiclass", "chain", "chain of order 2"], scope="module")
def case(request):
    problem, C = make(request.param)
    return problem, C, np.random.default_rng(3).normal(size=kernels.n_weights(problem))


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_gradient_is_that_of_central_differences(case, loss):
    problem, C, w = case
    h = 1e-5
    slopes = np.zeros(len(w))
    for j in range(len(w)):
        e = np.zeros(len(w))
        e[j] = h
        slopes[j] = (objective(problem, loss, C, w + e).primal - objective(problem, loss, C, w - e).primal) / (2 * h)
    np.testing.assert_allclose(objective(problem, loss, C, w).gradient, slopes, rtol=1e-6, atol=1e-7)


def enumerate_outputs(problem, i, w):
    """Scores less the target's, costs and features of all outputs that are allowed, and the target's features."""
    theta = np.zeros(kernels.n_parts(problem, i))
    kernels.score(problem, i, w, theta)
    target = kernels.target(problem, i)
    reference, feature_target = kernels.value_of(problem, i, theta, target), np.zeros(len(w))
    kernels.add_features(problem, i, target, 1.0, feature_target)
    scores, cost, features = [], [], []
    for y in kernels.outputs(problem, i):
        s = kernels.value_of(problem, i, theta, y)
        if s > -np.inf:
            feature = np.zeros(len(w))
            kernels.add_features(problem, i, y, 1.0, feature)
            scores.append(s - reference)
            cost.append(kernels.cost(problem, i, y))
            features.append(feature)
    return np.array(scores), np.array(cost), np.array(features), feature_target


def dual(loss, C, distributions, examples):
    """D(alpha) = sum_i C_i (gamma E[l] + H(p_i) / beta) - 1/2 ||sum_i C_i (F(t_i) - E[F])||^2 with alpha_i = C_i p_i."""
    value, w = 0.0, 0.0
    for c, p, (_, cost, features, target) in zip(C, distributions, examples, strict=True):
        entropy = -(p[p > 0] @ np.log(p[p > 0])) if loss.is_smooth else 0.0
        value += c * (loss.gamma * (p @ cost) + entropy / loss.beta)
        w = w + c * (target - p @ features)
    return value - 0.5 * float(w @ w)


def model_distribution(loss, scores, cost):
    v = scores + loss.gamma * cost
    if not loss.is_smooth:
        return np.eye(len(v))[v.argmax()]
    p = np.exp(loss.beta * (v - v.max()))
    return p / p.sum()


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_value_and_certificate_are_those_of_enumeration(case, loss):
    problem, C, w = case
    examples = [enumerate_outputs(problem, i, w) for i in range(len(C))]
    primal = 0.5 * w @ w
    for c, (scores, cost, _, _) in zip(C, examples, strict=True):
        v = scores + loss.gamma * cost
        high = v.max()
        primal += c * (high + (math.log(np.exp(loss.beta * (v - high)).sum()) / loss.beta if loss.is_smooth else 0.0))
    value = objective(problem, loss, C, w)
    assert value.primal == pytest.approx(primal, rel=1e-12)
    distributions = [model_distribution(loss, scores, cost) for scores, cost, _, _ in examples]
    assert value.dual == pytest.approx(dual(loss, C, distributions, examples), rel=1e-12)
    assert value.gap == pytest.approx(0.5 * value.gradient @ value.gradient, rel=1e-9)
    # weak duality: any distributions against any weights
    rng = np.random.default_rng(0)
    for _ in range(20):
        distributions = [rng.dirichlet(np.full(len(e[0]), 0.3)) for e in examples]
        other = rng.normal(size=len(w)) * rng.choice([0.01, 1.0, 3.0])
        assert dual(loss, C, distributions, examples) <= objective(problem, loss, C, other).primal
        assert value.dual <= objective(problem, loss, C, other).primal


def test_losses_are_those_the_objective_sums(case):
    problem, C, w = case
    for loss in LOSSES:
        losses = losses_at(problem, loss, w, 2)
        assert (losses >= -1e-12).all()
        assert 0.5 * w @ w + C @ losses == pytest.approx(objective(problem, loss, C, w).primal, rel=1e-12)


def many_examples():
    rng = np.random.default_rng(1)
    return multiclass_problem(rng.normal(size=(203, 4)), rng.integers(0, 3, 203), 3), rng.random(203)


def many_weights():
    rng = np.random.default_rng(2)
    return multiclass_problem(rng.normal(size=(6, 90_000)), rng.integers(0, 3, 6), 3), rng.random(6)


@pytest.mark.parametrize("make_problem", [many_examples, many_weights])
@pytest.mark.parametrize("loss", ["crf", "hinge"])
def test_number_of_threads_never_changes_the_answer(make_problem, loss):
    problem, C = make_problem()
    w = np.random.default_rng(5).normal(size=kernels.n_weights(problem))
    one = objective(problem, get_loss(loss), C, w, 1)
    for n_jobs in (None, 2, 3, -1):
        other = objective(problem, get_loss(loss), C, w, n_jobs)
        assert other.primal == one.primal and other.dual == one.dual
        np.testing.assert_array_equal(other.gradient, one.gradient)


def test_interpreted_and_compiled_agree(case):
    problem, C, w = case
    for loss in LOSSES:
        compiled = objective(problem, loss, C, w)
        with interpret():
            interpreted = objective(problem, loss, C, w)
        assert interpreted.primal == pytest.approx(compiled.primal, rel=1e-12)
        assert interpreted.dual == pytest.approx(compiled.dual, rel=1e-12)
        np.testing.assert_allclose(interpreted.gradient, compiled.gradient, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_vectors_of_the_pool_are_used_and_given_back(n_jobs):
    problem, C = many_examples()
    w = np.ones(kernels.n_weights(problem))
    fresh = objective(problem, get_loss("crf"), C, w, n_jobs)
    pool = [np.full(len(w), math.nan) for _ in range(3)]
    mine = {id(v) for v in pool}
    value = objective(problem, get_loss("crf"), C, w, n_jobs, pool)
    assert value.primal == fresh.primal
    np.testing.assert_array_equal(value.gradient, fresh.gradient)
    assert id(value.gradient) in mine and {id(v) for v in pool} | {id(value.gradient)} == mine
    assert all(v is not value.gradient for v in pool)


def test_a_pass_takes_eight_bytes_for_each_example():
    """Their losses, and nothing else: what is mapped from disk may be a thousand times as long as what fits in memory."""
    peaks = []
    for n in (1000, 5000):
        problem = multiclass_problem(np.ones((n, 1), np.float32), np.arange(n) % 2, 2)
        C, w, hinge = np.ones(n), np.zeros(kernels.n_weights(problem)), get_loss("hinge")
        with interpret():
            objective(problem, hinge, C, w)
            tracemalloc.start()
            objective(problem, hinge, C, w)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert peaks[1] - peaks[0] < 4000 * 12


def test_spans_cover_every_weight_once():
    for d in (0, 1, 4096, 131_072, 131_073, 270_000, 7_721_077):
        edges = spans(d)
        assert edges[0][0] == 0 and edges[-1][1] == d and len(edges) <= 8
        assert all(a[1] == b[0] for a, b in zip(edges[:-1], edges[1:], strict=True))


def test_sizes_are_those_of_the_examples(case):
    problem = case[0]
    n = kernels.n_examples(problem)
    starts, parts = kernels.sizes(problem)
    assert list(np.diff(starts)) == [kernels.length(problem, i) for i in range(n)] and starts[0] == 0
    assert parts == max(kernels.n_parts(problem, i) for i in range(n))
    assert kernels.total_parts(problem) == sum(kernels.n_parts(problem, i) for i in range(n))


class Faulty:
    """A structure in plain Python whose first example cannot be scored."""


def fail_at_first(problem, i, w, theta):
    if i == 0:
        raise ArithmeticError("example 0")
    theta[:] = 0.0


for name, body in {
    "n_examples": lambda problem: 16,
    "n_weights": lambda problem: 1,
    "n_parts": lambda problem, i: 1,
    "length": lambda problem, i: 1,
    "target": lambda problem, i: np.zeros(1, np.int32),
    "score": fail_at_first,
    "value_of": lambda problem, i, theta, y: 0.0,
    "expected": lambda problem, i, theta, parts: 0.0,
    "indicate": lambda problem, i, y, c, parts: None,
    "add_parts": lambda problem, i, parts, c, into: None,
}.items():
    getattr(kernels, name).implements(Faulty)(body)


def test_an_error_in_one_thread_reaches_the_caller_and_leaves_none_waiting():
    before = threading.active_count()
    with pytest.raises(ArithmeticError, match="example 0"):
        objective(Faulty(), get_loss("crf"), np.ones(16), np.zeros(1), 3)
    assert threading.active_count() == before


@pytest.mark.parametrize("size", [0, 11, 13])
def test_weights_of_another_shape_never_reach_compiled_code(size):
    problem = multiclass_problem(np.eye(4), [0, 1, 2, 0], 3)
    w = np.zeros(size)
    asked = [
        lambda: losses_at(problem, get_loss("hinge"), w),
        lambda: best_outputs(problem, w),
        lambda: passes.marginals(problem, w, 1.0),
        lambda: passes.kbest(problem, w, 2),
        lambda: passes.values_of_targets(problem, w),
        lambda: passes.parts(problem, 0, w, 1.0),
    ]
    for ask in asked:
        with pytest.raises(ValueError, match=f"There are {size} weights .* where the problem has 12"):
            ask()
