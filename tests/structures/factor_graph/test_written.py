"""Factors written in Python: the same as those that are built in, and as enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from graph_cases import every_output
from partwise import FactorGraph, graph_problem, kernels, solve
from partwise.objective import best_outputs

pytestmark = pytest.mark.interpreted


class AtMost:
    """At most so many hold; each that does scores something of its own."""

    def __init__(self, most, own=0.0):
        self.most, self.own = most, own

    def configurations(self, scores):
        for on in itertools.product((0, 1), repeat=len(scores)):
            if sum(on) <= self.most:
                value = sum(s + self.own for s, yes in zip(scores, on, strict=True) if yes)
                yield value, np.array(on)

    def best(self, scores):
        return max(self.configurations(scores), key=lambda pair: pair[0])

    def expected(self, scores):
        values, on = zip(*self.configurations(scores), strict=True)
        top = max(values)
        p = np.exp(np.array(values) - top)
        return top + np.log(p.sum()), p / p.sum() @ np.array(on)


class Told(AtMost):
    """The same, which says itself what a configuration has of its own."""

    def value(self, on):
        return self.own * on.sum() if on.sum() <= self.most else -np.inf


def graph(factor, seed=0, cycles=True):
    rng = np.random.default_rng(seed)
    g = FactorGraph()
    b, x = g.bits(4), g.variables(2, states=3)
    g.unary(b, rng.normal(size=4) + 1.0)
    g.unary(x, rng.normal(size=(2, 3)))
    literals = [b[0], ~b[1], x[0].is_(2), b[2]]
    if factor is None:
        g.budget(literals, 2)
    else:
        g.factor(literals, factor, "few")
    g.pairwise(x[0], x[1], rng.normal(size=(3, 3)))
    if cycles:
        g.pairwise(b[0], x[1], rng.normal(size=(2, 3)))
        g.or_([b[2], b[3], ~b[0]])
    return g, b, x


@pytest.mark.parametrize("cycles", [False, True])
@pytest.mark.parametrize("kind", [AtMost, Told])
@pytest.mark.parametrize("own", [0.0, -0.7, 1.3])
def test_the_same_as_a_budget_and_as_enumeration(cycles, kind, own):
    for seed in range(4):
        g = graph(kind(2, own), seed, cycles)[0]
        outputs, scores = every_output(g)
        answer = g.best(method="exact")
        assert answer.proven and answer.value == pytest.approx(scores.max(), abs=1e-6)
        assert answer.states.tolist() == outputs[np.argmax(scores)].tolist()
        if own == 0.0:
            other = graph(None, seed, cycles)[0]
            assert len(outputs) == len(every_output(other)[0])
            assert other.best(method="exact").value == pytest.approx(answer.value)
            np.testing.assert_allclose(g.marginals().literals, other.marginals().literals, atol=1e-6)
        if not cycles:
            beliefs = g.marginals()
            assert beliefs.exact and beliefs.log_partition == pytest.approx(np.log(np.exp(scores).sum()))
            p = np.exp(scores - beliefs.log_partition)
            np.testing.assert_allclose(beliefs.literals[:4], p @ outputs[:, :4], atol=1e-9)


def test_learning_with_one():
    """Two of four always hold, which the features do not tell."""
    rng, graphs, y = np.random.default_rng(0), [], []
    for _ in range(8):
        states = rng.permutation([0, 0, 1, 1])
        g = FactorGraph()
        b = g.bits(4)
        g.unary(b, features=np.stack([states + rng.normal(0, 0.6, 4), np.ones(4)], axis=1), weights="bit")
        g.factor(b, Pair())
        graphs.append(g)
        y.append(states)
    problem = graph_problem(graphs, y)
    for loss, solver in (("hinge", "dca"), ("hinge", "sdm"), ("crf", "lbfgs")):
        w = solve(problem, loss, solver, C=1.0, max_epochs=10).w
        found, starts, _ = best_outputs(graph_problem(graphs), w)
        assert all(found[a:b].sum() == 2 for a, b in itertools.pairwise(starts.tolist()))
        assert np.mean(found == np.concatenate(y)) > 0.8
    half = kernels.take(problem, [1, 5])
    assert best_outputs(half, w)[0].tolist() == found.reshape(8, 4)[[1, 5]].reshape(-1).tolist()
    partly = graph_problem(graphs, [[states[0], -1, -1, -1] for states in y])
    assert partly.targets.reshape(8, 4).sum(axis=1).tolist() == [2] * 8
    assert solve(partly, "hinge", "sdm", C=1.0, max_epochs=5).w.shape == w.shape
    y[3] = [1, 1, 1, 0]
    with pytest.raises(ValueError, match="graph 3: the states that it is to learn are against the factor factor 'Pair'"):
        graph_problem(graphs, y)


class Pair:
    """Just two hold."""

    def best(self, scores):
        order = np.argsort(-scores)
        on = np.zeros(len(scores), bool)
        on[order[:2]] = True
        return scores[on].sum(), on

    def expected(self, scores):
        pairs = list(itertools.combinations(range(len(scores)), 2))
        p = np.exp([scores[a] + scores[b] for a, b in pairs])
        marginals = np.zeros(len(scores))
        for (a, b), share in zip(pairs, p / p.sum(), strict=True):
            marginals[[a, b]] += share
        return np.log(p.sum()), marginals


class Wrong:
    def __init__(self, answer):
        self.answer = answer

    def best(self, scores):
        return self.answer

    def expected(self, scores):
        return self.answer


@pytest.mark.parametrize("answer", [None, 3.0, (1.0, [1]), (np.nan, [0, 0]), (1.0, [0.5, 0.5])])
def test_what_is_no_answer(answer):
    g = FactorGraph()
    g.factor(g.bits(2), Wrong(answer))
    with pytest.raises(ValueError, match="Wrong.best must return a score and, for each of 2 literals, whether it holds"):
        g.best()


def test_what_cannot_be():
    g = FactorGraph()
    b, x = g.bits(3), g.variables(1, states=2)
    with pytest.raises(TypeError, match=r"must have a method best\(scores\). Got int"):
        g.factor(b, 3)
    with pytest.raises(ValueError, match="factor 'few': a variable is in it twice"):
        g.factor([x[0].is_(0), x[0].is_(1)], AtMost(1), "few")
    g.factor(b, Wrong((-np.inf, [])), "never")
    with pytest.raises(ValueError, match="No output is allowed"):
        g.best()
    with pytest.raises(ValueError, match="HiGHS cannot be asked about factors of the kind 'factor'"):
        g.best(method="highs")
    g = FactorGraph()
    b = g.bits(2)
    g.factor(b, type("OnlyBest", (), {"best": lambda self, scores: (0.0, np.zeros(2))})())
    with pytest.raises(TypeError, match=r"OnlyBest has no method expected\(scores\)"):
        g.marginals()
    g = FactorGraph()
    g.factor(g.bits(2), type("Odd", (Pair,), {"expected": lambda self, scores: (0.0, [2.0, 0.0])})())
    with pytest.raises(ValueError, match="Odd.expected must return probabilities of its 2 literals"):
        g.marginals()
