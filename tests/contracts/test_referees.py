"""Other people's programs as referees: the same problem must have the same optimum, the same predictions, the same marginals."""

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from partwise import kernels
from partwise.losses.records import get_loss
from partwise.objective import best_outputs, objective
from partwise.solvers import solve
from partwise.structures import chain_problem, multiclass_problem


def load(name):
    x, y = load_iris(return_X_y=True) if name == "iris" else load_digits(return_X_y=True)
    if name == "digits":
        x, y = x[:400] / 16.0, y[:400]
    return x, y


@pytest.mark.parametrize(("name", "C"), [("iris", 0.1), ("iris", 30.0), ("digits", 1.0)])
def test_multiclass_crf_is_logistic_regression(name, C):
    x, y = load(name)
    problem = multiclass_problem(x, y)
    ours = solve(problem, "crf", "lbfgs", C=C, tol=1e-9)
    theirs = LogisticRegression(C=C, fit_intercept=False, tol=1e-8, max_iter=10_000).fit(x, y)
    value = objective(problem, get_loss("crf"), np.full(len(y), C), np.ascontiguousarray(theirs.coef_.T).ravel())
    assert ours.converged
    assert value.primal == pytest.approx(ours.primal, rel=1e-7)
    assert ours.dual <= value.primal
    np.testing.assert_allclose(ours.w.reshape(x.shape[1], -1), theirs.coef_.T, atol=1e-2)
    np.testing.assert_array_equal(best_outputs(problem, ours.w)[0], theirs.predict(x))
    theta, parts = np.zeros(problem.n_classes), np.zeros(problem.n_classes)
    for i in range(0, len(y), 29):
        kernels.score(problem, i, ours.w, theta)
        kernels.expected(problem, i, theta, parts)
        np.testing.assert_allclose(parts, theirs.predict_proba(x[i : i + 1])[0], atol=1e-3)


@pytest.mark.parametrize(("name", "C"), [("iris", 1.0), ("digits", 0.1)])
def test_multiclass_hinge_is_crammer_and_singer(name, C):
    x, y = load(name)
    problem = multiclass_problem(x, y)
    ours = solve(problem, "hinge", "sdm", C=C, tol=1e-6, max_epochs=20_000)
    theirs = LinearSVC(C=C, multi_class="crammer_singer", fit_intercept=False, tol=1e-8, max_iter=100_000).fit(x, y)
    value = objective(problem, get_loss("hinge"), np.full(len(y), C), np.ascontiguousarray(theirs.coef_.T).ravel())
    assert ours.converged
    assert value.primal == pytest.approx(ours.primal, rel=1e-5)
    assert ours.dual <= value.primal * (1 + 1e-12)
    assert (best_outputs(problem, ours.w)[0] == theirs.predict(x)).mean() > 0.99


@pytest.fixture(scope="module")
def corpus():
    """Sentences of attributes (lists of strings) with labels from a noisy hidden chain; one sentence has a single token."""
    rng = np.random.default_rng(4)
    sentences, labels = [], []
    for length in [1, *rng.integers(2, 9, 24)]:
        y = [int(rng.integers(3))]
        while len(y) < length:
            y.append(int(rng.choice(3, p=[[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.4, 0.1, 0.5]][y[-1]])))
        words = [int(3 * label + rng.integers(3)) if rng.random() < 0.7 else int(rng.integers(9)) for label in y]
        sentences.append([["bias", f"w={w}"] + ([f"before={words[t - 1]}"] if t else []) for t, w in enumerate(words)])
        labels.append(["ABC"[label] for label in y])
    return sentences, labels


@pytest.mark.parametrize("C", [1.0, 20.0])
def test_chain_crf_is_that_of_crfsuite(corpus, tmp_path, C):
    pycrfsuite = pytest.importorskip("pycrfsuite", reason="python-crfsuite is not installed")
    sentences, labels = corpus
    # theirs minimises  c2 ||w||^2 - log-likelihood,  which is our objective divided by C for c2 = 1 / (2 C)
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    for sentence, label in zip(sentences, labels, strict=True):
        trainer.append(sentence, label)
    switches = {"feature.possible_states": True, "feature.possible_transitions": True}
    trainer.set_params({"c1": 0.0, "c2": 0.5 / C, "max_iterations": 5000, "epsilon": 1e-9, "delta": 1e-13, **switches})
    model = str(tmp_path / "model")
    trainer.train(model)
    tagger = pycrfsuite.Tagger()
    tagger.open(model)

    attributes = sorted({a for sentence in sentences for token in sentence for a in token})
    tokens = [token for sentence in sentences for token in sentence]
    x = np.array([[float(a in token) for a in attributes] for token in tokens])
    gold = np.array(["ABC".index(label) for sequence in labels for label in sequence])
    # theirs has no weights of their own for the first and the last label
    problem = chain_problem(x, [len(s) for s in sentences], gold, 3, use_start=False, use_stop=False)
    ours = solve(problem, "crf", "lbfgs", C=C, tol=1e-10)
    assert ours.converged

    w = np.zeros(kernels.n_weights(problem))
    for (attribute, label), value in tagger.info().state_features.items():
        w[attributes.index(attribute) * 3 + "ABC".index(label)] = value
    for (before, label), value in tagger.info().transitions.items():
        w[(len(attributes) + "ABC".index(before)) * 3 + "ABC".index(label)] = value
    theirs = objective(problem, get_loss("crf"), np.full(len(sentences), C), w)
    assert theirs.primal == pytest.approx(ours.primal, rel=1e-7)
    assert C * trainer.logparser.last_iteration["loss"] == pytest.approx(ours.primal, rel=1e-6)
    assert ours.dual <= theirs.primal
    np.testing.assert_allclose(ours.w, w, atol=1e-3)

    best, starts, _ = best_outputs(problem, ours.w)
    for i, sentence in enumerate(sentences):
        T = len(sentence)
        theta, parts = np.zeros(kernels.n_parts(problem, i)), np.zeros(kernels.n_parts(problem, i))
        kernels.score(problem, i, ours.w, theta)
        kernels.expected(problem, i, theta, parts)
        assert tagger.tag(sentence) == ["ABC"[k] for k in best[starts[i] : starts[i + 1]]]
        marginals = [[tagger.marginal(label, t) for label in "ABC"] for t in range(T)]
        np.testing.assert_allclose(parts[: 3 * T].reshape(T, 3), marginals, atol=1e-4)
