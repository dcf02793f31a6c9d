"""Token weights: the objective of levels against its definition, by enumeration; its gradient; what it is in special cases."""

import itertools

import numpy as np
import pytest

from partwise import SequenceLabeler, kernels, solve
from partwise.losses.records import get_loss
from partwise.objective import objective
from partwise.structures.chain.problem import chain_problem
from partwise.tasks.tagging.token_weights import by_levels

pytestmark = pytest.mark.interpreted

LENGTHS, N_LABELS = [3, 0, 1, 4, 2], 3
WEIGHTS = np.array([2.0, 0.0, 2.0, 0.5, 1.0, 3.0, 0.0, 1.5, 0.0, 0.0])  # the last sequence: nothing
X = [[["a"], ["b"], ["a", "c"]], [["b"]], [["c"], ["a"]]]
Y = [["u", "v", "u"], ["v"], ["w", "u"]]


def chains(seed=0, **options):
    rng = np.random.default_rng(seed)
    n = sum(LENGTHS)
    options.setdefault("gold", rng.integers(0, N_LABELS, n))
    return chain_problem(rng.normal(size=(n, 4)), LENGTHS, n_labels=N_LABELS, **options)


def weighted(problem, tokens=WEIGHTS, sequences=None):
    return by_levels(problem, np.ones(len(LENGTHS)) if sequences is None else sequences, tokens)


def value(problem, C, w, loss="crf"):
    return objective(problem, get_loss(loss), C, w)


def definition(problem, i, w, omega):
    """The integral over levels l of -log p(y_t of weight >= l | all others), by enumeration."""
    theta = np.zeros(kernels.n_parts(problem, i))
    kernels.score(problem, i, w, theta)
    truth = problem.gold[problem.starts[i] : problem.starts[i + 1]].tolist()
    score = {y: kernels.value_of(problem, i, theta, np.array(y)) for y in itertools.product(range(N_LABELS), repeat=len(truth))}
    total, below = 0.0, 0.0
    for level in sorted(set(omega.tolist()) - {0.0}):
        fits = [s for y, s in score.items() if all(y[t] == truth[t] or omega[t] >= level for t in range(len(truth)))]
        total += (level - below) * (np.logaddexp.reduce(fits) - score[tuple(truth)])
        below = level
    return total


@pytest.mark.parametrize("scale", [0.3, 5.0, 100.0])
def test_it_is_the_sum_over_levels_of_conditional_likelihoods(scale):
    problem = chains()
    w = scale * np.random.default_rng(1).normal(size=kernels.n_weights(problem))
    wanted = sum(definition(problem, i, w, WEIGHTS[problem.starts[i] : problem.starts[i + 1]]) for i in range(len(LENGTHS)))
    leveled, C = weighted(problem)
    assert value(leveled, C, w).primal - 0.5 * w @ w == pytest.approx(wanted, rel=1e-9, abs=1e-6 * scale**2)


@pytest.mark.parametrize("loss", ["crf", "softmax_margin"])
def test_gradient_by_differences_and_convexity(loss):
    leveled, C = weighted(chains())
    rng = np.random.default_rng(2)
    w, step = rng.normal(size=(2, kernels.n_weights(leveled)))
    gradient = value(leveled, C, w, loss).gradient
    h = 1e-5
    around = [value(leveled, C, w + k * h * step, loss).primal for k in (-1, 1)]
    assert gradient @ step == pytest.approx((around[1] - around[0]) / (2 * h), rel=1e-6)
    ends = [value(leveled, C, w + k * step, loss).primal for k in (-1, 0, 1)]
    assert ends[1] <= 0.5 * (ends[0] + ends[2])


def test_equal_weights_are_the_weight_of_the_sequence():
    problem = chains()
    w = np.random.default_rng(3).normal(size=kernels.n_weights(problem))
    leveled, C = weighted(problem, np.full(sum(LENGTHS), 2.5), np.arange(5.0))
    assert leveled.allowed.size == 0 and kernels.n_examples(leveled) == 4  # the empty one says nothing
    assert value(leveled, C, w).primal == pytest.approx(value(problem, 2.5 * np.arange(5.0), w).primal)


def test_without_transitions_each_log_loss_counts_as_often_as_its_token():
    problem = chains(use_transitions=False)
    w = np.random.default_rng(4).normal(size=kernels.n_weights(problem))
    scores = problem.rows.matrix @ w[: 4 * N_LABELS].reshape(4, N_LABELS)
    log_loss = np.logaddexp.reduce(scores, axis=1) - scores[np.arange(len(scores)), problem.gold]
    leveled, C = weighted(problem)
    assert value(leveled, C, w).primal - 0.5 * w @ w == pytest.approx(WEIGHTS @ log_loss)


def test_tokens_of_several_labels_keep_them():
    """A token of weight zero with a set of labels is one of these, whatever else is learnt."""
    gold = np.random.default_rng(0).integers(0, N_LABELS, sum(LENGTHS))
    gold[[0, 1, 5]] = [N_LABELS, N_LABELS + 1, N_LABELS]
    known = np.array([[True, True, False], [True, True, True]])
    problem = chains(gold=gold, known=known)
    leveled, _ = weighted(problem)
    assert kernels.is_partial(leveled)
    w = np.random.default_rng(5).normal(size=kernels.n_weights(problem))
    theta = np.zeros(kernels.n_parts(leveled, 0))
    kernels.score(leveled, 0, w, theta)  # the level 0.5 of the first sequence: its second token, of weight zero, is open
    first = leveled.sets[leveled.allowed[: LENGTHS[0]]]
    np.testing.assert_array_equal(first[1], known[1])
    assert np.isfinite(value(leveled, np.ones(kernels.n_examples(leveled)), w).primal)


def test_solvers_agree():
    leveled, C = weighted(chains())
    found = [
        solve(leveled, loss="crf", solver=name, C=1.0, sample_weight=C, max_epochs=300, tol=1e-6) for name in ("lbfgs", "eg")
    ]
    assert found[0].primal == pytest.approx(found[1].primal, rel=1e-4) and found[1].dual <= found[0].primal + 1e-9
    margin = [solve(leveled, loss="hinge", solver=name, C=1.0, sample_weight=C, max_epochs=300) for name in ("bcfw", "oneslack")]
    assert margin[0].primal == pytest.approx(margin[1].primal, rel=5e-3)


def fitted(**given):
    weights = given.pop("weights", {})
    return SequenceLabeler(loss="crf", C=1.0, dtype="float64", tol=1e-8, max_epochs=60, **given).fit(X, Y, **weights)


def test_class_weight_of_the_log_loss_is_that_of_its_tokens():
    by_class = fitted(class_weight={"u": 3.0, "w": 0.5})
    by_token = fitted(weights={"token_weight": [[3.0, 1.0, 3.0], [1.0], [0.5, 3.0]]})
    np.testing.assert_array_equal(by_class.weights_, by_token.weights_)
    assert np.abs(by_class.weights_ - fitted().weights_).max() > 1e-3
    assert by_class.predict_marginals([[["a"]]])[0][0, 0] > fitted().predict_marginals([[["a"]]])[0][0, 0]
    doubled = fitted(weights={"token_weight": [[2.0] * len(y) for y in Y]})
    np.testing.assert_allclose(doubled.weights_, fitted(weights={"sample_weight": [2.0] * 3}).weights_, atol=1e-6)
    assert fitted(class_weight="balanced").weights_.size


def test_all_ways_in():
    flat = SequenceLabeler(loss="crf", C=1.0, max_epochs=5)
    x, y, omega = sum(X, []), sum(Y, []), np.array([3.0, 0.0, 1.0, 1.0, 0.0, 2.0])
    joined = flat.fit(x, y, lengths=[3, 1, 2], token_weight=omega).weights_
    lists = SequenceLabeler(loss="crf", C=1.0, max_epochs=5).fit(X, Y, token_weight=[omega[:3], omega[3:4], omega[4:].tolist()])
    np.testing.assert_array_equal(joined, lists.weights_)
    stream = SequenceLabeler(loss="hinge", C=1.0).partial_fit(X, Y, token_weight=[omega[:3], omega[3:4], omega[4:]])
    assert np.isfinite(stream.weights_).all() and stream.weights_.any()
    held = SequenceLabeler(loss="crf", early_stopping=True, max_epochs=5, validation_fraction=0.34, hidden=2)
    assert held.fit(X, Y, token_weight=[omega[:3], omega[3:4], omega[4:]]).predict(X)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([[1.0], [1.0], [1.0]], "token_weight of sequence 0 must have one number per token, shape \\(3,\\)"),
        ([[1.0, 1.0, -2.0], [1.0], [1.0, 1.0]], "Got -2.0 for token 2 of sequence 0"),
        ([[1.0, 1.0, 1.0], [float("nan")], [1.0, 1.0]], "Got nan for token 0 of sequence 1"),
        ([[1.0, 1.0, 1.0]], "X has 3 sequences, but token_weight has 1"),
        ([[0.0, 0, 0], [0], [0, 0]], "zero for every token"),
        ([["x", "y", "z"], [0], [0, 0]], "token_weight of sequence 0 is not a list of numbers"),
        (3.0, "must hold a list of numbers"),
    ],
)
def test_bad_weights_are_refused_with_their_place(given, message):
    with pytest.raises((ValueError, TypeError), match=message):
        SequenceLabeler(loss="crf").fit(X, Y, token_weight=given)


def test_losses_that_are_not_convex_are_refused():
    with pytest.raises(ValueError, match="token_weight needs a convex loss.*'ramp'"):
        SequenceLabeler(loss="ramp").fit(X, Y, token_weight=[np.ones(3), np.ones(1), np.ones(2)])
    with pytest.raises(ValueError, match="leaves nothing"):
        fitted(class_weight={"u": 0, "v": 0, "w": 0})
