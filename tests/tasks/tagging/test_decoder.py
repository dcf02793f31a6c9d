"""What a trained model answers."""

import copy

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from partwise import SequenceLabeler, kernels
from small_taggers import labelled_words

pytestmark = pytest.mark.interpreted

X, Y = labelled_words()


def model(**parameters):
    return SequenceLabeler(**{"C": 1.0, "solver": "dca", "max_epochs": 5, "dtype": "float64", **parameters})


@pytest.fixture(scope="module")
def fitted():
    return model().fit(X, Y)


@pytest.fixture(scope="module")
def crf():
    return model(loss="crf").fit(X, Y)


def test_answers_in_the_layout_of_the_question(fitted):
    answers = fitted.predict(X)
    assert isinstance(answers, list) and all(isinstance(y, list) for y in answers)
    assert [len(y) for y in answers] == [len(y) for y in Y] and [] in answers
    tokens, lengths = [token for x in X for token in x], [len(x) for x in X]
    flat = fitted.predict(tokens, lengths=lengths)
    assert isinstance(flat, np.ndarray) and flat.dtype.kind == "U" and flat.tolist() == [label for y in answers for label in y]
    joined = model().fit(tokens, [label for y in Y for label in y], lengths=lengths)
    np.testing.assert_array_equal(joined.weights_, fitted.weights_)
    assert joined.score(tokens, [label for y in Y for label in y], lengths=lengths) == fitted.score(X, Y)
    assert fitted.predict([]) == [] and fitted.predict([[], []]) == [[], []]


def test_marginals_against_enumeration(crf):
    i = next(i for i, y in enumerate(Y) if len(y) == 4)
    problem = crf.pack([X[i]]).problem
    theta = np.zeros(kernels.n_parts(problem, 0))
    kernels.score(problem, 0, crf.weights_, theta)
    outputs = np.array(list(kernels.outputs(problem, 0)))
    p = np.exp([kernels.value_of(problem, 0, theta, y) for y in outputs])
    p /= p.sum()
    nodes = np.array([[p[outputs[:, t] == c].sum() for c in range(3)] for t in range(4)])
    np.testing.assert_allclose(crf.predict_marginals([X[i]])[0], nodes, atol=1e-10)
    pairs = crf.predict_marginals([X[i]], pairs=True)[0]
    assert pairs.shape == (3, 3, 3)
    np.testing.assert_allclose(pairs.sum(2), nodes[:-1], atol=1e-10)
    answer = [["BIO"[c] for c in y] for y in outputs]
    best = crf.predict_kbest([X[i]], 4)[0]
    order = np.argsort(-p)[:4]
    assert [labels for labels, _ in best] == [answer[k] for k in order]
    np.testing.assert_allclose(np.exp(crf.log_probability([X[i]] * 4, [labels for labels, _ in best])), p[order])
    np.testing.assert_allclose(crf.decision_value([X[i]] * 4, [labels for labels, _ in best]), [value for _, value in best])
    assert crf.decision_value([X[i]])[0] == pytest.approx(best[0][1])


def test_marginals_layout_and_kbest_of_short_sequences(crf):
    marginals = crf.predict_marginals(X)
    assert [m.shape for m in marginals] == [(len(x), 3) for x in X]
    np.testing.assert_allclose(np.concatenate(marginals).sum(1), 1.0)
    assert crf.predict_kbest([[]], 3) == [[([], 0.0)]] and len(crf.predict_kbest([X[0][:1]], 10)[0]) == min(3, 3 ** len(X[0][:1]))


def test_margin_models_have_no_probabilities_unless_calibrated(fitted):
    for ask in (fitted.predict_marginals, lambda x: fitted.log_probability(x, Y)):
        with pytest.raises(ValueError, match=r"which fits scores, not probabilities. Call calibrate\(X, y\)"):
            ask(X)
    calibrated = copy.deepcopy(fitted).calibrate(*labelled_words(30, seed=1))
    assert calibrated.predict(X) == fitted.predict(X) and calibrated.temperature_ != 1.0
    one = [["w=o1", "c=o"]]
    p = np.exp(calibrated.log_probability([one] * 3, [[label] for label in "BIO"]))
    np.testing.assert_allclose(calibrated.predict_marginals([one])[0][0], p)
    held, truth = labelled_words(30, seed=1)
    best = calibrated.log_probability(held, truth).sum()
    for factor in (0.9, 1.1):
        other = copy.deepcopy(calibrated)
        other.temperature_ *= factor
        assert other.log_probability(held, truth).sum() < best


def test_known_labels_and_sets(fitted):
    x = [["w=o1", "c=o"], ["w=o2", "c=o"], ["w=e1", "c=e"]]
    assert fitted.predict([x], known=[[None, "I", None]])[0][1] == "I"
    assert fitted.predict([x], known=[[{"B", "I"}, None, None]])[0][0] in "BI"
    assert all(labels[0] == "B" for labels, _ in fitted.predict_kbest([x], 9, known=[["B", None, None]])[0])
    with pytest.raises(ValueError, match=r"known holds 'Z' \(token 2 of sequence 0\)"):
        fitted.predict([x], known=[[None, None, "Z"]])


def test_threads_do_not_change_answers(crf):
    twin = copy.deepcopy(crf).set_params(n_jobs=2)
    assert twin.predict(X) == crf.predict(X) and twin.predict_kbest(X, 2) == crf.predict_kbest(X, 2)
    for a, b in zip(twin.predict_marginals(X), crf.predict_marginals(X), strict=True):
        np.testing.assert_array_equal(a, b)


def test_not_fitted():
    for method in ("predict", "predict_marginals", "decision_value", "predict_kbest"):
        with pytest.raises(NotFittedError):
            getattr(model(), method)(X)
    assert not hasattr(model(), "coef_") and not hasattr(model(), "transitions_")


@pytest.mark.parametrize("hidden", [1, 2])
def test_packed_sequences_answer_in_numbers(hidden):
    labeler = model(loss="crf", hidden=hidden, max_epochs=2).fit(X, Y)
    x = [x for x in X if 0 < len(x) < 4][:6]
    known = [["B", *[None] * (len(one) - 1)] for one in x]
    packed, names = labeler.pack(x, known=known), labeler.classes_.tolist()
    assert [names[c] for c in packed.best()] == [label for y in labeler.predict(x, known=known) for label in y]
    np.testing.assert_array_equal(packed.marginals(), np.concatenate(labeler.predict_marginals(x, known=known)))
    k = len(names) ** 3
    found = packed.kbest(k)
    assert found.n.tolist() == [len(names) ** (len(one) - 1) for one in x]
    p = np.exp(packed.log_probabilities(found))
    np.testing.assert_allclose(p.sum(1), 1.0)  # all labellings that agree with what is known
    total = np.zeros_like(packed.marginals())
    for j in range(k):
        total[np.arange(len(total)), found.codes[j]] += np.repeat(p[:, j], packed.tokens.lengths)
    np.testing.assert_allclose(total, packed.marginals(), atol=1e-12)
