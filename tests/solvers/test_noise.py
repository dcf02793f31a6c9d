"""The noise model: its sums and what follows from them, against enumeration; its fit, on data that it has made itself."""

import numpy as np
import pytest

from partwise import kernels
from partwise.passes import marginals
from partwise.solvers import noise
from partwise.solvers.noise import Judge, Noise
from partwise.solvers.second_opinion import both_opinions
from partwise.structures import chain_problem, multiclass_problem

CONFUSED = np.array([[0.0, 0.4, -0.9], [0.3, 0.0, -0.5], [-0.2, 0.2, 0.0]])


def chains(partial=False, seed=3):
    """Few short sequences, and weights."""
    rng, k, lengths = np.random.default_rng(seed), 3, [3, 0, 1, 2]
    n = sum(lengths)
    known = np.array([[True, True, True], [True, False, True]]) if partial else None
    gold = rng.integers(0, k + 2 if partial else k, n)
    problem = chain_problem(rng.normal(size=(n, 3)), lengths, gold, k, known=known)
    return problem, rng.normal(size=kernels.n_weights(problem))


def enumerated(problem, w, given, i):
    """P(no mistake) and P(right) of the positions of example i, by all outputs; the problem's costs count positions."""
    theta = np.zeros(kernels.n_parts(problem, i))
    kernels.score(problem, i, w, theta)
    outputs = list(kernels.outputs(problem, i))
    y = np.array(outputs).reshape(len(outputs), -1)
    gold = problem.gold[problem.starts[i] : problem.starts[i + 1]]
    K = problem.n_labels
    fits = np.array(
        [[y[o, t] == g if g < K else problem.known[g - K][y[o, t]] for t, g in enumerate(gold)] for o in range(len(y))]
    )
    fits = fits.reshape(len(y), -1)
    prior = np.exp(given.sharpness * np.array([kernels.value_of(problem, i, theta, o) for o in outputs]))
    prior /= prior.sum()
    d = np.zeros(len(y))
    if len(given.confused):
        d = np.array([sum(given.confused[c, g] for c, g in zip(o, gold, strict=True)) for o in y])
    wrong = (~fits).sum(axis=1)
    care = given.care * (wrong > 0)
    channel = np.exp(-care - given.trust * wrong + d) / np.exp(-care - given.trust * wrong).sum()
    meant, at_random = (1 - given.random) * prior * channel, given.random * prior / len(y)
    total = meant.sum() + at_random.sum()
    return (meant + at_random)[fits.all(axis=1)].sum() / total, (meant + at_random) @ fits / total


def log_odds(right):
    """Of being wrong."""
    with np.errstate(divide="ignore"):
        return np.log1p(-np.minimum(right, 1.0)) - np.log(right)


@pytest.mark.interpreted
@pytest.mark.parametrize("partial", [False, True])
@pytest.mark.parametrize("confused", [np.zeros((0, 0)), CONFUSED])
def test_probabilities_are_those_of_enumeration(partial, confused):
    if partial and len(confused):
        return  # sets are confused with nothing
    problem, w = chains(partial)
    given = Noise(0.7, 1.5, 0.2, 0.0 if partial else 0.8, confused)
    judges = [Judge(problem, np.arange(4), w, 1.0)]
    found = noise.judged(problem, judges, given, second_opinion=False)
    assert found.examples[1] == -np.inf and kernels.n_values(problem) == (0 if partial else 3)
    for i in (0, 2, 3):
        right, positions = enumerated(problem, w, given, i)
        assert found.examples[i] == pytest.approx(log_odds(right))
        assert found.parts[slice(*problem.starts[i : i + 2])] == pytest.approx(log_odds(positions))
    p, _ = marginals(problem, w, 0.7)
    alone = log_odds(found.evidence.given)  # what positions say by themselves, where nothing is confused
    if len(confused):
        mistaken = noise.alone_of(judges, given, None)
        others = (p**mistaken.power * mistaken.weights[:, problem.gold].T).sum(axis=1)
        alone = np.log(others) - mistaken.power * np.log(found.evidence.given)
    alone = np.maximum(alone, -noise.MOST_ODDS) - np.log(2.0)
    both = both_opinions(problem.starts, found.examples, found.parts, alone, found.random)
    second = noise.judged(problem, judges, given)
    np.testing.assert_allclose(second.examples, both[0])
    np.testing.assert_allclose(second.parts, both[1])
    if not partial:
        np.testing.assert_allclose(found.evidence.given, p[np.arange(len(p)), problem.gold])
        np.testing.assert_array_equal(found.evidence.disputed, found.evidence.believed != problem.gold)


@pytest.mark.interpreted
def test_the_slope_of_the_likelihood():
    problem, w = chains()
    judges = [Judge(problem, np.arange(4), w, 1.0)]
    counts = noise.look(judges[0], noise.noise_at(noise.BEFORE[:, 0], CONFUSED), True).sums[:, noise.COUNT]
    value = noise.log_posterior(judges, counts, CONFUSED)
    x, step = np.array([0.2, 1.3, -0.5, 0.7]), 1e-5
    _, slope = value(x)
    for k in range(4):
        to = np.eye(4)[k] * step
        assert slope[k] == pytest.approx((value(x + to)[0] - value(x - to)[0]) / (2 * step), abs=1e-7)


@pytest.mark.interpreted
def test_planted_noise_is_found_again():
    """Classes of a model that is known, a tenth of them wrong, always the same way: class 0 for class 1."""
    rng, n = np.random.default_rng(0), 400
    X = rng.normal(size=(n, 2)) * 3
    w = np.array([[1.5, 0.0], [-1.0, 1.5], [-0.5, -1.5]])
    scores = X @ w.T
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    truth = np.array([rng.choice(3, p=row / row.sum()) for row in p])
    wrong = (truth == 1) & (rng.random(n) < 0.3)
    problem = multiclass_problem(X, np.where(wrong, 0, truth), 3)
    judge = Judge(problem, np.arange(n), np.ascontiguousarray(w.T).ravel(), 0.5)  # a temperature that is off
    found = noise.fit_noise([judge])
    assert 1.5 < found.sharpness < 2.7
    assert np.exp(found.confused[1, 0]) / 2 > 0.8  # Q: of what should have been 1 and is not, nearly all is 0
    judgement = noise.judged(problem, [judge], found)
    p = 1 / (1 + np.exp(-judgement.examples))
    assert p.sum() == pytest.approx(wrong.sum(), rel=0.4) and p[wrong].mean() > 10 * p[~wrong].mean()
    np.testing.assert_allclose(judgement.examples, judgement.parts, rtol=1e-4)


@pytest.mark.interpreted
def test_the_few_and_the_many():
    assert noise.fit_noise([]).random < 0.01
    problem, w = chains()
    judges = [Judge(problem, np.arange(4), w, 1.0)]
    assert noise.thinned(judges, 0, 100) == judges
    (some,) = noise.thinned(judges, 0, 2)
    assert len(some.which) == kernels.n_examples(some.problem) == 2
