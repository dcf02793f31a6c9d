"""SMO and the heuristics around it: Algorithm 1 of Mancev (2015) to the letter, and what each switch changes."""

import itertools

import numpy as np
import pytest

from partwise import kernels
from partwise.losses.records import get_loss
from partwise.objective import losses_at
from partwise.solvers import CCCP, solve
from partwise.solvers import sdm as module
from partwise.solvers.sdm import SDM
from partwise.structures import chain_problem, multiclass_problem

pytestmark = pytest.mark.interpreted

rng = np.random.default_rng(0)
X = rng.normal(size=(30, 3))
CLASSES = rng.integers(0, 3, 30)
EASY = np.argmax(X, 1)  # most examples are soon at rest
LENGTHS = [3, 1, 0, 5, 2, 4, 6, 3, 6]
PROBLEMS = {
    "classes": multiclass_problem(X, CLASSES, 3),
    "easy classes": multiclass_problem(10 * X, EASY, 3),
    "chain": chain_problem(X, LENGTHS, CLASSES, 3),
}
LETTER = {"inexact": 0.0, "shrinking": False, "cached_passes": 0}


def most_violated(problem, i, w, b=1.0):
    """argmax_y s(y) + b l(y)."""
    theta, y = np.zeros(kernels.n_parts(problem, i)), np.zeros(kernels.length(problem, i), np.int32)
    kernels.score(problem, i, w, theta)
    kernels.add_cost(problem, i, b, theta)
    kernels.best(problem, i, theta, y)
    return tuple(int(k) for k in y)


def features_of(problem, i, y):
    """F(x_i, y)."""
    into = np.zeros(kernels.n_weights(problem))
    kernels.add_features(problem, i, np.array(y, np.int32), 1.0, into)
    return into


def cost_of(problem, i, y):
    return kernels.cost(problem, i, np.array(y, np.int32))


class Algorithm1:
    """As it is printed, but for w = u - v in line 10; C_d is C."""

    def __init__(self, problem, C, tau):
        self.problem, self.C, self.tau = problem, C, tau
        n = kernels.n_examples(problem)
        self.truth = [tuple(int(k) for k in kernels.target(problem, i)) for i in range(n)]
        self.mass = [{t: C} for t in self.truth]  # lambda over S_n
        self.u, self.v = np.zeros(kernels.n_weights(problem)), np.zeros(kernels.n_weights(problem))

    @property
    def w(self):
        return self.u - self.v

    def difference(self, i, y):
        return features_of(self.problem, i, self.truth[i]) - features_of(self.problem, i, y)

    def epoch(self):
        for i in range(len(self.mass)):
            self.mass[i].setdefault(most_violated(self.problem, i, self.w), 0.0)
            self.smo(i)

    def smo(self, i):
        S = list(self.mass[i])
        rows, before = np.array([self.difference(i, y) for y in S]), np.array([self.mass[i][y] for y in S])
        costs = np.array([cost_of(self.problem, i, y) for y in S])
        K, change = rows @ rows.T, np.zeros(len(S))
        while True:
            g = K @ change - costs + rows @ self.w
            low = int(np.argmin(g))
            high = max((k for k in range(len(S)) if change[k] > -before[k]), key=lambda k: g[k])
            if g[high] <= g[low] + self.tau:
                break
            curvature = K[low, low] - 2 * K[low, high] + K[high, high]
            delta = min(before[high] + change[high], (g[high] - g[low]) / curvature if curvature > 0 else np.inf)
            change[low] += delta
            change[high] = change[high] - delta if delta < before[high] + change[high] else -before[high]
        self.mass[i] = {y: m for y, m in zip(S, before + change, strict=True) if m > 0}
        self.u = self.u + rows.T @ change


@pytest.mark.parametrize("name", PROBLEMS)
def test_to_the_letter_it_is_algorithm_1(name):
    problem = PROBLEMS[name]
    paper = Algorithm1(problem, 0.3, 1e-9)
    solver = SDM(tau=1e-9, **LETTER)
    for epochs in range(1, 7):
        paper.epoch()
        ours = solve(problem, "hinge", solver, 0.3, tol=0, max_epochs=epochs, shuffle=False)
        np.testing.assert_allclose(ours.w, paper.w, atol=1e-6)
        assert ours.n_oracle_calls == epochs * kernels.n_examples(problem)
    other = solve(problem, "hinge", SDM(), 0.3, tol=0, max_epochs=3, shuffle=False)
    assert np.abs(other.w - paper.w).max() > 1e-3  # the test can tell


def test_and_with_a_ramp_inside_cccp():
    noisy = np.where(np.arange(30) % 6 == 0, (EASY + 1) % 3, EASY)
    problem, C, T = multiclass_problem(5 * X, noisy, 3), 0.1, 4
    paper = Algorithm1(problem, C, 1e-9)
    for _ in range(3):
        w = paper.w
        chosen = [most_violated(problem, i, w, -1.0) for i in range(30)]
        paper.v = sum(C * paper.difference(i, y) for i, y in enumerate(chosen))
        for _ in range(T):
            paper.epoch()
    refused = sum(y != t for y, t in zip(chosen, paper.truth, strict=True))
    ours = solve(problem, "ramp", CCCP(SDM(tau=1e-9, **LETTER), epochs=T), C, tol=0, max_epochs=3 * T, shuffle=False)
    assert refused > 0 and [r.epochs for r in ours.rounds] == [T, 2 * T, 3 * T] and ours.rounds[1].refused == refused
    np.testing.assert_allclose(ours.state.inside.weights.v, paper_after(problem, ours, paper), atol=1e-6)


def paper_after(problem, ours, paper):
    """Our state is already against the targets of the next round, if the last one was taken."""
    chosen = [tuple(int(k) for k in kernels.target(kernels.with_targets(problem, ours.state.targets), i)) for i in range(30)]
    return paper.u - sum(paper.C * paper.difference(i, y) for i, y in enumerate(chosen))


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_every_combination_of_switches_has_the_same_optimum(loss):
    problem = PROBLEMS["chain"]
    best = solve(problem, loss, "proximal", 0.2, tol=1e-6, max_epochs=500).primal
    for inexact, shrinking, passes in itertools.product((0.0, 0.5), (False, True), (0, 3)):
        solver = SDM(inexact=inexact, shrinking=shrinking, cached_passes=passes)
        result = solve(problem, loss, solver, 0.2, tol=1e-5, max_epochs=500)
        assert result.converged and result.primal == pytest.approx(best, rel=2e-5), solver


def test_shrinking_saves_oracle_calls():
    problem = PROBLEMS["easy classes"]
    with_it, without = (
        solve(problem, "hinge", SDM(shrinking=shrinking, cached_passes=0), 0.1, tol=0, max_epochs=20)
        for shrinking in (True, False)
    )
    assert without.n_oracle_calls == 20 * 30 and with_it.n_oracle_calls < 0.8 * without.n_oracle_calls
    assert with_it.primal == pytest.approx(without.primal, rel=0.01)


def count_cached_visits(monkeypatch, solver, problem, epochs=5):
    visits, real = [], SDM.sweep

    def counting(self, task, state, order, at, *rest):
        real(self, task, state, order, at, *rest)
        visits.append(int(at[module.VISITS]))

    with monkeypatch.context() as patch:
        patch.setattr(SDM, "sweep", counting)
        solve(problem, "hinge", solver, 0.2, tol=0, max_epochs=epochs)
    return sum(visits)


def test_cached_passes_and_who_takes_part_in_them(monkeypatch):
    problem = PROBLEMS["classes"]
    assert count_cached_visits(monkeypatch, SDM(cached_passes=0), problem) == 0
    all_of_them = count_cached_visits(monkeypatch, SDM(shrinking=False), problem)
    assert all_of_them > count_cached_visits(monkeypatch, SDM(), problem) > 0


def taus_of(monkeypatch, solver, problem):
    """What SMO was asked for in each visit, and the violation it found and left."""
    seen, real = [], module.smo

    def watching(products, first, side, slots, g, mass, n, tau, *rest):
        found = g[:n].max() - g[:n].min()
        real(products, first, side, slots, g, mass, n, tau, *rest)
        seen.append((tau, found, max(g[k] for k in range(n) if mass[k] > 0) - g[:n].min()))

    with monkeypatch.context() as patch:
        patch.setattr(module, "smo", watching)
        result = solve(problem, "hinge", solver, 0.2, tol=0, max_epochs=8)
    return np.array(seen), result


def test_when_smo_stops(monkeypatch):
    problem = PROBLEMS["chain"]
    seen, _ = taus_of(monkeypatch, SDM(), problem)
    np.testing.assert_allclose(seen[:, 0], 0.1 * seen[:, 1], atol=1e-10)
    seen, _ = taus_of(monkeypatch, SDM(inexact=0.0, tau=0.05), problem)
    assert (seen[:, 0] == 0.05).all() and (seen[:, 2] <= 0.05).all() and (seen[:, 2] > 1e-3).any()
    seen, _ = taus_of(monkeypatch, SDM(inexact=0.0), problem)
    assert (seen[:, 0] < 1e-10).all() and (seen[:, 2] < 1e-9).all()
    seen, result = taus_of(monkeypatch, SDM(inexact=0.5, tau=1e9), problem)
    assert not result.w.any()  # nothing is violated by so much


def test_a_fixed_tau_ends_within_C_tau_of_the_optimum_of_each_example():
    problem, C, tau = PROBLEMS["chain"], 0.2, 0.05
    result = solve(problem, "hinge", SDM(tau=tau, **LETTER), C, tol=1e-12, max_epochs=300)
    assert 0.0 < result.gap <= C * tau * kernels.n_examples(problem)
    assert result.primal == pytest.approx(0.5 * result.w @ result.w + C * losses_at(problem, get_loss("hinge"), result.w).sum())


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"tau": -1e-3}, r"'tau' parameter of SDM must be a float in the range \[0, inf\). Got -0.001 instead"),
        ({"tau": "x"}, "'tau' parameter of SDM must be a float"),
        ({"inexact": 1.0}, r"'inexact' parameter of SDM must be a float in the range \[0, 1\). Got 1.0 instead"),
        ({"shrinking": 1}, "'shrinking' parameter of SDM must be True or False. Got 1 instead"),
        ({"cached_passes": -1}, r"'cached_passes' parameter of SDM must be an int in the range \[0, inf\). Got -1 instead"),
        ({"cached_passes": True}, "'cached_passes' parameter of SDM must be an int"),
    ],
)
def test_bad_parameters(parameters, words):
    with pytest.raises(ValueError, match=words):
        SDM(**parameters)
