"""Trees of second order: parts against enumeration, bounds, beliefs, gradients, the parser."""

from __future__ import annotations

import numpy as np
import pytest

import partwise
from partwise import kernels
from partwise.estimators import DependencyParser
from partwise.features.arc_pairs import pair_rows
from partwise.features.arc_rows import arc_rows
from partwise.structures.dependency.second_order import second_order_problem
from partwise.tasks.dependency.data import read_sentences
from partwise.tasks.dependency.files import read_treebank
from oracle_checks import check_features

LENGTHS = (4, 3, 1, 0)


def second_order_case(seed, **options):
    """Sentences with random words, random weights, some arcs left out: (problem, w)."""
    rng = np.random.default_rng(seed)
    X = [[{"form": rng.choice(list("abc")), "upos": rng.choice(list("NVD"))} for _ in range(n)] for n in LENGTHS]
    given = read_sentences(X, [[0, *range(1, n)][:n] for n in LENGTHS], None, None)
    arcs = arc_rows(given.words, given.names, bits=12)
    pairs = pair_rows(arcs, given.lengths, given.names)
    allowed = rng.random(int((given.lengths * (given.lengths + 1)).sum())) < 0.8
    kind = {"single_root": bool(seed % 2), "projective": bool(seed // 2 % 2), **options}
    problem = second_order_problem(arcs, pairs, given.lengths, allowed, given.heads, **kind)
    return problem, rng.normal(size=kernels.n_weights(problem)) * 0.3


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")  # hashes wrap around
@pytest.mark.parametrize("seed", range(4))
def test_parts_features_and_costs_tell_the_same_story(seed):
    problem, w = second_order_case(seed, iterations=500)
    with partwise.interpret():
        check_features(problem, w)
        for i in range(len(LENGTHS)):
            theta = np.full(kernels.n_parts(problem, i), 7.0)
            kernels.score(problem, i, w, theta)
            kernels.add_cost(problem, i, 0.5, theta)
            values = []
            for y in kernels.outputs(problem, i):
                features, parts, again = np.zeros(len(w)), np.zeros(len(theta)), np.zeros(len(w))
                kernels.add_features(problem, i, y, 1.0, features)
                kernels.indicate(problem, i, y, 1.0, parts)
                kernels.add_parts(problem, i, parts, 1.0, again)
                values.append(kernels.value_of(problem, i, theta, y))
                assert values[-1] == pytest.approx(features @ w + 0.5 * kernels.cost(problem, i, y))
                assert values[-1] == pytest.approx(parts @ theta)
                np.testing.assert_allclose(features, again)
            y = np.full(LENGTHS[i], 99, np.int32)
            value = kernels.best(problem, i, theta, y)
            assert value == pytest.approx(kernels.value_of(problem, i, theta, y) if LENGTHS[i] else 0.0)
            assert value <= max(values) + 1e-9
            if problem.status[i] == 0:
                assert value == pytest.approx(max(values), abs=1e-5)
            assert value >= max(values) - 0.5  # even where it is not proven


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
def test_beliefs_are_marginals_of_bethe_free_energy():
    """log Z's derivatives are the beliefs, where messages have converged; of one word they are exact."""
    problem, w = second_order_case(2, sweeps=200)
    problem = problem._replace(search=problem.search._replace(change=1e-10))
    checked = 0
    with partwise.interpret():
        for i in (0, 2):
            n = kernels.n_parts(problem, i)
            theta, parts, other = np.zeros(n), np.zeros(n), np.zeros(n)
            kernels.score(problem, i, w, theta)
            log_z = kernels.expected(problem, i, theta, parts)
            if i == 2:
                values = [kernels.value_of(problem, i, theta, y) for y in kernels.outputs(problem, i)]
                assert log_z == pytest.approx(np.logaddexp.reduce(values))
            if problem.status[i]:
                continue
            for k in np.linspace(0, n - 1, 8).astype(int):
                up, down = theta.copy(), theta.copy()
                up[k] += 1e-5
                down[k] -= 1e-5
                slope = (kernels.expected(problem, i, up, other) - kernels.expected(problem, i, down, other)) / 2e-5
                assert slope == pytest.approx(parts[k], abs=1e-4)
                checked += 1
    assert checked


def corpus(n, seed):
    """Words hang from the one before, but one after a B hangs from that B's head; all words look alike from outside."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        size = int(rng.integers(3, 6))
        tags = rng.choice(list("AB"), size)
        heads = [0]
        for m in range(1, size):
            heads.append(heads[m - 1] if tags[m - 1] == "B" and heads[m - 1] else m)
        X.append([{"form": str(tag), "upos": str(tag)} for tag in tags])
        y.append(heads)
    return X, y


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
def test_the_parser(tmp_path):
    X, y = corpus(8, 0)
    with partwise.interpret():
        model = DependencyParser(hash_bits=12, order=2, max_epochs=2, random_state=0).fit(X, y)
        assert model.attachment(X, y).uas > 0.8
        assert 0.0 < model.proven_ <= 1.0
        model.save(tmp_path / "model")
        again = partwise.load(tmp_path / "model")
        assert [t.heads for t in again.predict(X)] == [t.heads for t in model.predict(X)]
    with pytest.raises(ValueError, match="order=1 only"):
        model.predict_kbest(X)
    with pytest.raises(ValueError, match="must be 1 or 2"):
        DependencyParser(order=3).fit(X, y)
    with pytest.raises(ValueError, match="a sibling .* or a grandparent"), partwise.interpret():
        DependencyParser(order=2, templates=["h.upos|m.upos", "s.upos|g.upos"]).fit(X, y)


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
def test_arc_probabilities_and_unknown_heads():
    X, y = corpus(6, 2)
    with partwise.interpret():
        model = DependencyParser(loss="crf", hash_bits=12, order=2, max_epochs=1, random_state=0).fit(X, y)
        for p in model.predict_marginals(X[:3]):
            np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=0.05)  # beliefs of loopy messages: nearly
        with pytest.raises(ValueError, match="known as a whole"):
            DependencyParser(order=2, max_epochs=1).fit([["a", "b"]], [[0, None]])


@pytest.mark.slow
@pytest.mark.data
def test_second_order_is_better_on_english(corpora):
    """A tenth of English-EWT, compiled: some minutes."""
    train, dev = (
        read_treebank(corpora / "ud_english_ewt" / f"en_ewt-ud-{part}.conllu.gz", first=1000) for part in ("train", "dev")
    )
    shared = {"relations": False, "max_epochs": 5, "random_state": 0}
    uas = [DependencyParser(order=order, **shared).fit(train).attachment(dev).uas for order in (1, 2)]
    assert uas[1] > uas[0] + 0.01
