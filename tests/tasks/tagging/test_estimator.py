"""SequenceLabeler: training, in memory, on a stream, bit by bit."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

import partwise
from column_cases import sentences, text
from partwise import SequenceLabeler, chain_problem, solve
from partwise.losses.records import LOSSES
from partwise.solvers import SOLVERS
from partwise.text.columns import ColumnFile, read_columns
from small_taggers import labelled_words

X, Y = labelled_words()


def model(**parameters):
    return SequenceLabeler(**{"C": 1.0, "solver": "dca", "max_epochs": 5, "dtype": "float64", **parameters})


@pytest.fixture(scope="module")
def fitted():
    return model().fit(X, Y)


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
    packed = reference.pack([scipy.sparse.csr_matrix(m) for m in cut])  # packed, not run: one compilation less
    value, index, ptr = packed.problem.rows.value, packed.problem.rows.index, packed.problem.rows.ptr
    np.testing.assert_array_equal(scipy.sparse.csr_array((value, index, ptr), shape=(15, 2)).toarray(), matrix)
    assert packed.tokens.lengths.tolist() == lengths


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


def test_one_label_only():
    """It works, and answers that label: a fold of cross-validation may well hold one label only."""
    single = model().fit([[["a"], ["b"]], [["c"]]], [["x", "x"], ["x"]])
    assert single.predict([[["z"]], []]) == [["x"], []]


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
    problem = stream.pack(X, Y).problem
    np.testing.assert_array_equal(stream.weights_, solve(problem, "hinge", "dca", max_epochs=1, shuffle=False).w)
    stream.partial_fit(X, Y)
    np.testing.assert_allclose(stream.weights_, solve(problem, "hinge", "dca", max_epochs=2, shuffle=False).w, rtol=1e-12)
    before = stream.decision_value(X)
    n = stream.n_features_in_
    stream._grow(stream.pack(X).problem)  # nothing new: nothing happens
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
    x, y = labelled_words(30, seed=1)
    given = model(patience=1, max_epochs=40, validation_metric="cost").fit(X, Y, validation=(x, y))
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


# -- streams and checkpoints ------------------------------------------------------------------------------------------


DATA = sentences()
COLUMNS = read_columns(text(DATA).encode(), name="train.txt")
TEST = read_columns(text(sentences(20, seed=1)).encode(), name="test.txt")


def tagger(**parameters):
    return SequenceLabeler(**{"C": 1.0, "solver": "dca", "max_epochs": 3, "dtype": "float64", **parameters})


@pytest.mark.parametrize("options", [{}, {"hash_bits": 10}, {"min_count": 2}])
def test_a_stream_gives_the_same_model_however_it_is_cut(tmp_path, options):
    (tmp_path / "train.txt").write_text(text(DATA))
    models = []
    for size in (1, 300, 10**6):
        model = tagger(**options).fit_stream(ColumnFile(tmp_path / "train.txt", chunk_bytes=size), validation=TEST)
        model.save(tmp_path / "model")
        models.append((tmp_path / "model").read_bytes())
    assert models[0] == models[1] == models[2]
    assert model.score(TEST) > 0.8 and model.label_column_ == 2
    if options == {}:  # and the same as from memory, in the order of the file
        problem = tagger().fit(COLUMNS).pack(COLUMNS, labelled=True).problem
        expected = partwise.solve(problem, "hinge", "dca", max_epochs=3, shuffle=False)
        np.testing.assert_array_equal(
            tagger().fit_stream([COLUMNS.take(range(20)), COLUMNS.take(range(20, 40))]).weights_, expected.w
        )


def test_streams_that_cannot_be():
    with pytest.raises(ValueError, match="Solver 'sdm' cannot train on a stream. Solvers that can: 'dca', 'mira', 'perceptron'"):
        tagger(solver="sdm").fit_stream([COLUMNS])
    with pytest.raises(ValueError, match="loss 'soft_ramp' cannot be learnt from a stream, by none of .*'perceptron'. Use fit."):
        tagger(loss="soft_ramp", solver="auto").fit_stream([COLUMNS])
    with pytest.raises(TypeError, match="a generator is spent after a pass"):
        tagger().fit_stream(iter([COLUMNS]))
    with pytest.raises(ValueError, match="the stream is empty"):
        tagger().fit_stream([])
    with pytest.raises(TypeError, match="must be a file that can be read again"):
        ColumnFile("-")


class Killed(Exception):
    """What happens to a process now and then."""


@pytest.mark.interpreted  # compiled, test_solve has it resume exactly
@pytest.mark.parametrize("solver", sorted(SOLVERS))
def test_a_checkpoint_goes_on_as_if_nothing_had_happened(tmp_path, solver):
    loss = next(name for name in ("hinge", "crf", "perceptron", "summed") if SOLVERS[solver]().accepts(LOSSES[name]))
    path = tmp_path / "run.checkpoint"

    def fit(callbacks=None, **parameters):
        model = tagger(solver=solver, loss=loss, max_epochs=6, tol=0, templates=["w[0]"], callbacks=callbacks, **parameters)
        model.checkpoint_seconds = 0.0
        return model.fit(COLUMNS, validation=TEST, checkpoint=path)

    whole = fit()
    assert not path.exists()

    def kill(record):
        if record.epoch == 2:
            raise Killed

    with pytest.raises(Killed):
        fit(kill)
    assert path.exists()
    seen = []
    rest = fit(lambda record: seen.append(record.epoch))
    np.testing.assert_array_equal(rest.weights_, whole.weights_)
    assert seen[0] == 2 and not path.exists()  # the callback that kills comes before the one that saves
    for a, b in zip(rest.result_.history, whole.result_.history, strict=True):
        assert dataclasses.replace(a, seconds=0.0).as_dict() == dataclasses.replace(b, seconds=0.0).as_dict()


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    path = tmp_path / "run.checkpoint"

    def kill(record):
        if record.epoch == 2:
            raise Killed

    def fit(X=COLUMNS, callbacks=None, **parameters):
        model = tagger(callbacks=callbacks, **parameters)
        model.checkpoint_seconds = 0.0
        return model.fit(X, checkpoint=path)

    with pytest.raises(Killed):
        fit(callbacks=kill)
    for change, what in (
        ({"C": 2.0}, "C"),
        ({"random_state": 1}, "seed"),
        ({"X": TEST}, "size, data"),
        ({"solver": "mira"}, "solver"),
    ):
        with pytest.raises(ValueError, match=f"belongs to another run: .*{what}.* Remove it to start afresh"):
            fit(**change)
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(partwise.ModelFileError, match="truncated or damaged"):
        fit()
