"""SequenceLabeler: the scikit-learn face of chains."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score

from partwise import SequenceLabeler, chain_problem, kernels, solve
from partwise.features.given_labels import label_array
from partwise.tasks.tagging.constraints import forbidden_transitions


def sentences(n=40, seed=0):
    """Words whose label depends on the word and on the label before."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        labels, words, before = [], [], "O"
        for _ in range(rng.integers(0, 7)):
            before = rng.choice(["B", "O"]) if before == "O" else rng.choice(["I", "O", "B"])
            labels.append(str(before))
            words.append(f"{'o' if before == 'O' else 'e'}{rng.integers(6)}")
        X.append([[f"w={word}", f"c={word[0]}"] for word in words])
        y.append(labels)
    return X, y


X, Y = sentences()


def model(**parameters):
    return SequenceLabeler(**{"solver": "dca", "random_state": 0, "max_epochs": 5, **parameters})


@pytest.fixture(scope="module")
def fitted():
    return model().fit(X, Y)


@pytest.fixture(scope="module")
def crf():
    return model(loss="crf").fit(X, Y)


def test_is_what_solve_finds(fitted):
    vocabulary, index, ptr = {}, [], [0]
    for token in (token for x in X for token in x):
        index += [vocabulary.setdefault(name, len(vocabulary)) for name in token]
        ptr.append(len(index))
    assert fitted.vocabulary_ == vocabulary and fitted.feature_names_ == list(vocabulary)
    matrix = scipy.sparse.csr_array((np.ones(len(index)), index, ptr), shape=(len(ptr) - 1, len(vocabulary)))
    gold = ["BIO".index(label) for y in Y for label in y]
    assert fitted.classes_.tolist() == ["B", "I", "O"]
    problem = chain_problem(matrix, [len(x) for x in X], gold, 3)
    np.testing.assert_array_equal(fitted.weights_, solve(problem, "hinge", "dca", max_epochs=5).w)
    assert fitted.score(X, Y) > 0.85
    F = len(vocabulary)
    assert (
        fitted.coef_.shape == (3, F) and fitted.transitions_.shape == (3, 3) and fitted.start_.shape == fitted.stop_.shape == (3,)
    )
    i = next(i for i, y in enumerate(Y) if len(y) == 4)
    codes = ["BIO".index(label) for label in Y[i]]
    by_hand = fitted.start_[codes[0]] + fitted.stop_[codes[-1]]
    by_hand += sum(fitted.coef_[c, vocabulary[name]] for c, token in zip(codes, X[i], strict=True) for name in token)
    by_hand += sum(fitted.transitions_[a, b] for a, b in zip(codes[:-1], codes[1:], strict=True))
    assert fitted.decision_value([X[i]], [Y[i]])[0] == pytest.approx(by_hand)


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


def test_matrices_in_every_form():
    rng = np.random.default_rng(0)
    lengths = [3, 0, 1, 5, 2, 4]
    matrix = rng.normal(size=(15, 2))
    y = (matrix[:, 0] > 0).astype(np.int32)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    cut = [matrix[a:b] for a, b in zip(starts[:-1], starts[1:], strict=True)]
    y_cut = [y[a:b] for a, b in zip(starts[:-1], starts[1:], strict=True)]
    reference = model().fit(cut, y_cut)
    assert reference.n_features_in_ == 2 and reference.feature_names_ == ["x0", "x1"]
    as_lists = [m.tolist() for m in cut]
    objects = np.empty(6, object)
    objects[:] = cut
    for form in (as_lists, objects, tuple(cut)):
        np.testing.assert_array_equal(model().fit(form, y_cut).weights_, reference.weights_)
        assert model().fit(form, y_cut).predict(form) == reference.predict(cut)
    joined = model().fit(matrix, y, lengths=lengths)
    np.testing.assert_array_equal(joined.weights_, reference.weights_)
    assert joined.predict(matrix, lengths=lengths).dtype == np.int32
    tokens, problem = reference._packed([scipy.sparse.csr_matrix(m) for m in cut], None)  # packed, not run: one compilation less
    rows = scipy.sparse.csr_array((problem.rows.value, problem.rows.index, problem.rows.ptr), shape=(15, 2))
    np.testing.assert_array_equal(rows.toarray(), matrix)
    assert tokens.lengths.tolist() == lengths


def test_numpy_object_arrays_are_read(fitted):
    ragged = np.empty(len(X), object)
    for i, x in enumerate(X):
        ragged[i] = x
    labels = np.empty(len(Y), object)
    for i, y in enumerate(Y):
        labels[i] = y
    np.testing.assert_array_equal(model().fit(ragged, labels).weights_, fitted.weights_)
    same_length = [i for i, x in enumerate(X) if len(x) == 3]
    square = np.array([[{name: True for name in token} for token in X[i]] for i in same_length], dtype=object)
    assert square.ndim == 2
    assert fitted.predict(square) == fitted.predict([X[i] for i in same_length])


@pytest.mark.parametrize(
    "names",
    [
        ("a", "b"),
        (0, 1),
        (True, False),
        (("B", 1), ("I", 1)),
        (0.5, -1.5),
        (np.int8(3), np.int8(4)),
        ("a\0", "a"),
        (b"x", "y"),
    ],
)
def test_labels_of_any_type(names):
    x, y = [[["u"], ["v"]], [["v"]]], [[names[0], names[1]], [names[1]]]
    assert model().fit(x, y).predict(x) == y


def test_label_array_keeps_labels_as_they_are():
    assert label_array(["a\0", "b"]).dtype == object and label_array(["x" * 1000, "y"]).dtype == object
    assert label_array([(1, 2), (3, 4)]).shape == (2,) and label_array([2**70, 1]).tolist() == [2**70, 1]


def test_one_label_only():
    """It works, and answers that label: a fold of cross-validation may well hold one label only."""
    single = model().fit([[["a"], ["b"]], [["c"]]], [["x", "x"], ["x"]])
    assert single.predict([[["z"]], []]) == [["x"], []]


def test_marginals_against_enumeration(crf):
    i = next(i for i, y in enumerate(Y) if len(y) == 4)
    _, problem = crf._packed([X[i]], None)
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
    calibrated = copy.deepcopy(fitted).calibrate(*sentences(30, seed=1))
    assert calibrated.predict(X) == fitted.predict(X) and calibrated.temperature_ != 1.0
    one = [["w=o1", "c=o"]]
    p = np.exp(calibrated.log_probability([one] * 3, [[label] for label in "BIO"]))
    np.testing.assert_allclose(calibrated.predict_marginals([one])[0][0], p)
    held, truth = sentences(30, seed=1)
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


def test_constraints_in_training_and_after():
    constrained = model(constraints="iob2").fit(X, Y)
    noise = [[["w=?"]] * 5] * 3
    tricky = copy.deepcopy(constrained)
    tricky.weights_[:] = 0.0
    tricky.coef_[1] = 10.0
    tricky.start_[1] = 10.0
    assert tricky.predict(noise)[0][0] != "I"
    free = clone(constrained).set_params(constraints=None).fit(X, Y)
    free.start_[1] = 100.0
    assert free.predict(noise)[0][0] == "I"
    assert free.set_params(constraints="iob2").predict(noise)[0][0] != "I"
    assert free.set_params(constraints=[(None, "I"), (None, "B")]).predict(noise)[0][0] == "O"
    assert set(free.set_params(constraints={"allow_labels": ["O", "B"]}).predict(noise)[0]) <= {"O", "B"}
    with pytest.raises(ValueError, match="No labelling of sequence 1 obeys the constraints and the known labels"):
        free.set_params(constraints={"forbid_start": ["I"]}).predict(noise[:2], known=[[None] * 5, ["I"] + [None] * 4])


def test_gold_that_violates_constraints_is_named():
    x, y = [[["a"]], [["a"], ["b"], ["c"]]], [["B-X"], ["O", "B-X", "I-Y"]]
    with pytest.raises(
        ValueError, match="labels of sequence 1 violate the constraints at token 2: from 'B-X' to 'I-Y' is forbidden"
    ):
        model(constraints="iob2").fit(x, y)
    with pytest.raises(ValueError, match="sequence 0 violate the constraints at token 0: from 'B-X' to the end is forbidden"):
        model(constraints={"forbid_stop": ["B-X"]}).fit(x, y)
    with pytest.raises(ValueError, match="sequence 1 violate the constraints at token 0: from the beginning to 'O' is forbidden"):
        model(constraints=[(None, "O")]).fit(x, y)


def legal(scheme, labels):
    """An independent reading of the schemes: is this sequence of labels well formed?"""
    open_type = None  # of the chunk that must go on (iobes), or may go on (iob)
    for label in labels:
        prefix, _, kind = label.partition("-")
        if scheme == "iobes":
            if (prefix in ("I", "E")) != (open_type is not None) or (open_type is not None and kind != open_type):
                return False
            open_type = kind if prefix in ("B", "I") else None
        else:
            if prefix == {"iob2": "I", "iob1": "B"}[scheme] and kind != open_type:
                return False
            open_type = None if prefix == "O" else kind
    return scheme != "iobes" or open_type is None


@pytest.mark.parametrize("scheme", ["iob1", "iob2", "iobes"])
def test_schemes_against_an_independent_reading(scheme):
    import itertools

    prefixes = "BIES" if scheme == "iobes" else "BI"
    labels = ["O", *(f"{p}-{kind}" for p in prefixes for kind in "XY")]
    forbidden = set(forbidden_transitions(scheme, np.array(labels), "test"))
    for n in (1, 2, 3):
        for codes in itertools.product(range(len(labels)), repeat=n):
            path = [None, *codes, None]
            fine = not any(pair in forbidden for pair in zip(path[:-1], path[1:], strict=True))
            assert fine == legal(scheme, [labels[c] for c in codes]), [labels[c] for c in codes]


def test_costs_and_class_weights(fitted):
    matrix = 1.0 - np.eye(3)
    matrix[0] *= 3.0  # rows are true labels, in the order B I O
    by_matrix = model(cost=matrix).fit(X, Y)
    np.testing.assert_array_equal(by_matrix.weights_, model(class_weight={"B": 3.0}).fit(X, Y).weights_)
    np.testing.assert_array_equal(by_matrix.weights_, model(cost={("B", "I"): 3.0, ("B", "O"): 3.0}).fit(X, Y).weights_)
    assert (by_matrix.weights_ != fitted.weights_).any()
    assert (model(class_weight="balanced").fit(X, Y).weights_ != fitted.weights_).any()


def test_sequences_of_weight_zero_are_left_out():
    weight = np.arange(len(X)) % 2
    half = model().fit([x for x, c in zip(X, weight, strict=True) if c], [y for y, c in zip(Y, weight, strict=True) if c])
    whole = model().fit(X, Y, sample_weight=weight)
    for name in half.vocabulary_:
        np.testing.assert_array_equal(half.coef_[:, half.vocabulary_[name]], whole.coef_[:, whole.vocabulary_[name]])


def test_partial_fit_goes_on_and_grows():
    stream = model().partial_fit(X, Y)
    problem = stream._packed(X, None, Y)[1]
    np.testing.assert_array_equal(stream.weights_, solve(problem, "hinge", "dca", max_epochs=1, shuffle=False).w)
    stream.partial_fit(X, Y)
    np.testing.assert_allclose(stream.weights_, solve(problem, "hinge", "dca", max_epochs=2, shuffle=False).w, rtol=1e-12)
    before = stream.decision_value(X)
    n = stream.n_features_in_
    stream._grow(stream._packed(X, None)[1])  # nothing new: nothing happens
    np.testing.assert_array_equal(stream.decision_value(X), before)
    stream.partial_fit([[["brand new"], ["w=o1"]]], [["B", "O"]])
    assert stream.n_features_in_ == n + 1 and stream.coef_.shape == (3, n + 1) and stream.coef_[0, n] > 0


@pytest.mark.parametrize("size", [1, 7, 25])
def test_however_a_stream_is_cut_the_model_is_the_same(size):
    whole, pieces = model().partial_fit(X, Y), model()
    for k in range(0, 40, size):
        pieces.partial_fit(X[k : k + size], Y[k : k + size], classes=["B", "I", "O"])
    assert pieces.vocabulary_ == whole.vocabulary_
    np.testing.assert_array_equal(pieces.weights_, whole.weights_)


def test_warm_start_grows_the_vocabulary():
    warm = model(warm_start=True, max_epochs=1, average=False).fit(X[:20], Y[:20])
    before = warm.weights_.copy()
    stopped = warm.set_params(callbacks=lambda record: True, C=1e-12).fit(X[20:], Y[20:])
    n = before.size // 3 - 5  # 3 + 1 rows of transitions and one of stop weights
    np.testing.assert_allclose(stopped.weights_[: 3 * n], before[: 3 * n], atol=1e-9)
    np.testing.assert_allclose(stopped.weights_[-15:], before[-15:], atol=1e-9)
    with pytest.raises(ValueError, match=r"Label 'Z' \(token 0 of sequence 0\) is not one of .* set warm_start=False"):
        warm.fit([[["a"]]], [["Z"]])
    with pytest.raises(ValueError, match="'order' or the 'hidden' parameter has changed"):
        warm.set_params(order=2).fit(X, Y)


def test_early_stopping():
    held = model(early_stopping=True, validation_fraction=0.3, patience=1, max_epochs=40).fit(X, Y)
    assert held.result_.status == "early_stopping" and held.result_.n_epochs < 40
    x, y = sentences(30, seed=1)
    given = model(patience=1, max_epochs=40).fit(X, Y, validation=(x, y))
    best = min(record.validation for record in given.result_.history)
    assert (1 - given.score(x, y)) * sum(map(len, y)) / 30 == pytest.approx(best)


def test_second_order():
    """Labels that only the label two before explains."""
    x = [[["a"]] * 8] * 4
    y = [["u", "u", "v", "v"] * 2, ["v", "v", "u", "u"] * 2, ["u", "v", "v", "u"] * 2, ["v", "u", "u", "v"] * 2]
    first, second = model(max_epochs=30).fit(x, y), model(order=2, max_epochs=30).fit(x, y)
    known = [[label if t < 2 else None for t, label in enumerate(labels)] for labels in y]
    assert second.predict(x, known=known) == y and first.predict(x, known=known) != y
    assert second.higher_transitions(2).shape == (3, 3, 2) and second.transitions_.shape == (2, 2)


def test_start_and_stop_weights_can_be_left_out():
    plain = model(use_start=False, use_stop=False).fit(X, Y)
    assert (plain.start_ == 0).all() and (plain.stop_ == 0).all()


def test_threads_do_not_change_answers(crf):
    twin = copy.deepcopy(crf).set_params(n_jobs=2)
    assert twin.predict(X) == crf.predict(X) and twin.predict_kbest(X, 2) == crf.predict_kbest(X, 2)
    for a, b in zip(twin.predict_marginals(X), crf.predict_marginals(X), strict=True):
        np.testing.assert_array_equal(a, b)


def test_in_the_company_of_scikit_learn(fitted):
    search = GridSearchCV(model(max_epochs=2), {"C": [0.001, 1.0]}, cv=2).fit(X, Y)
    assert search.best_score_ > 0.6 and search.predict(X)[0] == search.best_estimator_.predict(X)[0]
    assert len(cross_val_score(model(max_epochs=2), X, Y, cv=2)) == 2
    assert clone(fitted).get_params() == fitted.get_params()
    for twin in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted)):
        assert twin.predict(X) == fitted.predict(X)
    assert len(pickle.dumps(fitted)) < fitted.weights_.nbytes + 10_000
    assert "SequenceLabeler(" in repr(fitted)


def test_parameters_that_decide_the_shape_are_guarded_after_fitting():
    changed = model(max_epochs=1).fit(X, Y).set_params(order=2)
    with pytest.raises(ValueError, match=r"\('order', 'hidden', 'fit_intercept'\) was changed after fitting"):
        changed.predict(X)


def test_not_fitted():
    for method in ("predict", "predict_marginals", "decision_value", "predict_kbest"):
        with pytest.raises(NotFittedError):
            getattr(model(), method)(X)
    assert not hasattr(model(), "coef_") and not hasattr(model(), "transitions_")


@pytest.mark.data
def test_conll2000_from_string_lists(corpora):
    """A third of the corpus, end to end from Python strings."""
    from partwise.datasets import chunking_attributes
    from partwise.text.columns import read_columns

    def read(name, most):
        sentences = read_columns(corpora / "conll2000" / name).sentences()[:most]
        return [chunking_attributes(s) for s in sentences], [[token[-1] for token in s] for s in sentences]

    tagger = model(constraints="iob2", max_epochs=5).fit(*read("train.txt.gz", 3000))
    assert tagger.score(*read("test.txt.gz", 1000)) > 0.94


def test_forced_transitions():
    classes = np.array(["A", "B", "C"])
    assert forbidden_transitions({"force": [("A", "B"), ("A", None)]}, classes, "test") == [(0, 0), (0, 2)]
    assert forbidden_transitions({"force": [(None, "A")]}, classes, "test") == [(None, 1), (None, 2)]
    assert forbidden_transitions({"force": [("B", "C")], "forbid": [("A", "A")]}, classes, "test") == [
        (0, 0),
        (1, None),
        (1, 0),
        (1, 1),
    ]
