"""Classifier: the scikit-learn face of multiclass problems."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from partwise import Classifier, Family, multiclass_problem, solve
from partwise.solvers import SOLVERS


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    y = np.array(["red", "green", "blue"])[(X @ rng.normal(size=(4, 3)) + 0.3 * rng.normal(size=(120, 3))).argmax(1)]
    return X, y


def model(**parameters):
    return Classifier(**{"C": 1.0, "solver": "dca", "random_state": 0, "max_epochs": 10, **parameters})


def test_is_what_solve_finds(data):
    X, y = data
    fitted = model(C=0.3).fit(X, y)
    assert fitted.classes_.tolist() == ["blue", "green", "red"]
    assert fitted.coef_.shape == (3, 4) and fitted.intercept_.shape == (3,)
    problem = multiclass_problem(np.hstack([X, np.ones((120, 1))]), np.searchsorted(fitted.classes_, y), 3)
    w = solve(problem, "hinge", "dca", C=0.3, max_epochs=10).w
    np.testing.assert_array_equal(fitted.weights_, w)
    scores = X @ fitted.coef_.T + fitted.intercept_
    np.testing.assert_allclose(fitted.decision_function(X), scores)
    assert (fitted.predict(X) == fitted.classes_[scores.argmax(1)]).all()
    assert fitted.score(X, y) > 0.85
    assert fitted.solver_ == "dca" and fitted.result_.state is None


def test_auto_says_what_it_picked(data):
    assert Classifier(random_state=0).fit(*data).solver_ in SOLVERS


def test_intercept_scaling_is_the_value_of_a_constant_feature(data):
    X, y = data
    wide = model(intercept_scaling=10.0).fit(X, y)
    by_hand = model(fit_intercept=False).fit(np.hstack([X, np.full((120, 1), 10.0)]), y)
    np.testing.assert_array_equal(wide.weights_, by_hand.weights_)
    np.testing.assert_allclose(wide.decision_function(X), by_hand.decision_function(np.hstack([X, np.full((120, 1), 10.0)])))
    np.testing.assert_array_equal(wide.intercept_, 10.0 * by_hand.coef_[:, 4])
    assert (by_hand.intercept_ == 0).all()


def test_sparse_and_dense_agree(data):
    X, y = data
    dense, sparse = model().fit(X, y), model().fit(scipy.sparse.csr_array(X), y)
    np.testing.assert_allclose(dense.decision_function(X), sparse.decision_function(scipy.sparse.csr_array(X)), atol=1e-10)


def test_binary_follows_scikit_learn(data):
    X, y = data
    fitted = model().fit(X, y == "red")
    decision = fitted.decision_function(X)
    assert decision.shape == (120,) and fitted.coef_.shape == (2, 4)
    assert ((decision > 0) == fitted.predict(X)).all()


def test_kbest_and_values(data):
    X, y = data
    fitted = model().fit(X, y)
    labels, values = fitted.predict_kbest(X, 2)
    assert labels.shape == values.shape == (120, 2)
    assert (labels[:, 0] == fitted.predict(X)).all() and (values[:, 0] >= values[:, 1]).all()
    np.testing.assert_array_equal(fitted.decision_value(X), values[:, 0])
    np.testing.assert_array_equal(fitted.decision_value(X, labels[:, 1]), values[:, 1])
    assert fitted.predict_kbest(X, 99)[0].shape == (120, 3)


def test_probabilities_of_margin_models_are_refused_unless_calibrated(data):
    X, y = data
    fitted = model(C=5.0).fit(X, y)
    assert not hasattr(fitted, "predict_proba")
    with pytest.raises(ValueError, match=r"loss 'hinge', which fits scores, not probabilities. Call calibrate\(X, y\)"):
        fitted.predict_marginals(X)
    before = fitted.predict(X)
    p = fitted.calibrate(X, y).predict_proba(X)
    np.testing.assert_allclose(p.sum(1), 1.0)
    assert (fitted.classes_[p.argmax(1)] == before).all()

    def likelihood(temperature):
        scores = fitted.decision_function(X) / temperature
        return (scores - np.log(np.exp(scores).sum(1, keepdims=True)))[np.arange(120), np.searchsorted(fitted.classes_, y)].sum()

    best = likelihood(fitted.temperature_)
    assert best > likelihood(0.9 * fitted.temperature_) and best > likelihood(1.1 * fitted.temperature_)
    assert fitted.fit(X, y).temperature_ is None  # a new fit is not calibrated


def test_probabilities_of_a_crf(data):
    X, y = data
    fitted = model(loss="crf").fit(X, y)
    scores = fitted.decision_function(X)
    np.testing.assert_allclose(fitted.predict_proba(X), np.exp(scores) / np.exp(scores).sum(1, keepdims=True))
    cold = model(loss=Family(2.0, 1.0)).fit(X, y)
    scores = 2.0 * cold.decision_function(X)
    np.testing.assert_allclose(cold.predict_marginals(X), np.exp(scores) / np.exp(scores).sum(1, keepdims=True))


def test_weights_of_classes_and_examples(data):
    X, y = data
    heavy = np.where(y == "red", 3.0, 1.0)
    by_class, by_example = model(class_weight={"red": 3.0}).fit(X, y), model().fit(X, y, sample_weight=heavy)
    np.testing.assert_array_equal(by_class.weights_, by_example.weights_)
    counts = {label: (y == label).sum() for label in set(y)}
    balanced = model(class_weight="balanced").fit(X, y)
    by_hand = model(class_weight={label: 120 / (3 * n) for label, n in counts.items()}).fit(X, y)
    np.testing.assert_allclose(balanced.weights_, by_hand.weights_)
    kept = np.arange(120) % 3 > 0
    np.testing.assert_array_equal(model().fit(X, y, sample_weight=kept).weights_, model().fit(X[kept], y[kept]).weights_)


def test_costs_reach_the_solver(data):
    X, y = data
    cost = {("red", "blue"): 5.0}
    matrix = 1.0 - np.eye(3)
    matrix[2, 0] = 5.0
    by_dict, by_matrix, plain = model(cost=cost).fit(X, y), model(cost=matrix).fit(X, y), model().fit(X, y)
    np.testing.assert_array_equal(by_dict.weights_, by_matrix.weights_)
    assert (by_dict.weights_ != plain.weights_).any()


def test_constraints_may_be_set_after_fitting(data):
    X, y = data
    fitted = model().fit(X, y).set_params(constraints={"allow_labels": ["red", "blue"]})
    assert set(fitted.predict(X)) == {"red", "blue"}
    with pytest.raises(ValueError, match=r"The label 'green' of example \d+ violates the 'constraints'"):
        fitted.fit(X, y)


def test_partial_fit_goes_on(data):
    X, y = data
    whole = model().partial_fit(X, y)
    problem = multiclass_problem(np.hstack([X, np.ones((120, 1))]), np.searchsorted(whole.classes_, y), 3)
    np.testing.assert_array_equal(whole.weights_, solve(problem, "hinge", "dca", max_epochs=1, shuffle=False).w)
    pieces = model()
    for k in range(0, 120, 40):
        pieces.partial_fit(X[k : k + 40], y[k : k + 40], classes=["red", "green", "blue"])
    np.testing.assert_array_equal(pieces.weights_, whole.weights_)  # however the stream is cut
    whole.partial_fit(X, y)  # as if fit had not stopped: iterate and average go on
    np.testing.assert_allclose(whole.weights_, solve(problem, "hinge", "dca", max_epochs=2, shuffle=False).w, rtol=1e-12)
    assert whole.result_.n_epochs == 2 and whole.solver_ == "dca"


def test_warm_start(data):
    X, y = data
    fitted = model(warm_start=True, max_epochs=1, average=False).fit(X, y)
    first = fitted.weights_.copy()
    fitted.fit(X, y)
    again = solve(
        multiclass_problem(np.hstack([X, np.ones((120, 1))]), np.searchsorted(fitted.classes_, y), 3),
        "hinge",
        SOLVERS["dca"](average=False),
        max_epochs=1,
        start=first,
    )
    np.testing.assert_array_equal(fitted.weights_, again.w)
    with pytest.raises(ValueError, match="warm_start=True cannot go on from the previous fit: y has the new class 'pink'"):
        fitted.fit(X, np.where(y == "red", "pink", y))
    with pytest.raises(ValueError, match="number of features, 'hidden' or 'fit_intercept' has changed"):
        fitted.fit(X[:, :2], y)
    assert fitted.predict(X).shape == (120,)  # still the old model


def test_early_stopping_holds_out(data):
    X, y = data
    fitted = model(early_stopping=True, patience=1, max_epochs=50, validation_fraction=0.25).fit(X, y)
    assert all(record.validation == record.validation for record in fitted.result_.history)
    assert fitted.result_.status == "early_stopping" and fitted.result_.n_epochs < 50
    given = model(patience=1, max_epochs=50).fit(X[:80], y[:80], validation=(X[80:], y[80:]))
    assert given.result_.status == "early_stopping"
    best = min(record.validation for record in given.result_.history)
    assert 1 - given.score(X[80:], y[80:]) == pytest.approx(best)


def test_float32_stays_float32(data):
    X, y = data
    fitted = model(dtype="float32").fit(X, y)
    assert fitted.weights_.dtype == fitted.coef_.dtype == fitted.decision_function(X).dtype == np.float32


def test_editing_coef_edits_the_model(data):
    X, y = data
    fitted = model().fit(X, y)
    fitted.coef_[:] = 0.0
    assert np.ptp(fitted.decision_function(X), axis=0).max() == 0.0


def test_in_the_company_of_scikit_learn(data):
    X, y = data
    search = GridSearchCV(make_pipeline(StandardScaler(), model()), {"classifier__C": [0.01, 1.0]}, cv=2, n_jobs=1).fit(X, y)
    assert search.best_score_ > 0.7
    fitted = model().fit(X, y)
    assert clone(fitted).get_params() == fitted.get_params() and not hasattr(clone(fitted), "weights_")
    for twin in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted)):
        np.testing.assert_array_equal(twin.decision_function(X), fitted.decision_function(X))
    # one copy of the weights and a short history: no scratch memory of the solver
    assert len(pickle.dumps(fitted)) < fitted.weights_.nbytes + 10_000


def test_seed_decides(data):
    X, y = data
    np.testing.assert_array_equal(model(random_state=3).fit(X, y).weights_, model(random_state=3).fit(X, y).weights_)
    assert (model(random_state=3).fit(X, y).weights_ != model(random_state=4).fit(X, y).weights_).any()


def test_verbose_and_callbacks(data, capsys):
    X, y = data
    seen = []
    model(verbose=1, callbacks=lambda record: seen.append(record.epoch) or record.epoch == 3).fit(X, y)
    captured = capsys.readouterr()
    assert captured.out == "" and seen == [1, 2, 3]
    assert (
        "solver 'dca'" in captured.err and captured.err.count("epoch ") >= 3 and captured.err.rstrip().endswith("asked to stop")
    )


def test_missed_tolerance_says_what_to_do(data):
    certified = [name for name in ("lbfgs", "sdm", "bcfw") if name in SOLVERS]
    assert certified
    loss = "crf" if certified[0] == "lbfgs" else "hinge"
    with pytest.warns(ConvergenceWarning, match="Increase max_epochs, increase tol, decrease C, or scale the features"):
        model(solver=certified[0], loss=loss, max_epochs=1, tol=1e-10).fit(*data)


def test_not_fitted(data):
    for method in ("predict", "decision_function", "predict_marginals", "decision_value", "predict_kbest"):
        with pytest.raises(NotFittedError):
            getattr(model(), method)(data[0])
    with pytest.raises(NotFittedError):
        model().save("never.partwise")
    assert not hasattr(model(), "coef_")


def test_scaled_features(data, tmp_path):
    """As if features had been standardised before; the model remembers how."""
    X, y = data
    X = X * [1.0, 100.0, 0.01, 1.0] + [0.0, 5.0, 1.0, 0.0]
    scaled = model(scale=True).fit(X, y)
    by_hand = model().fit(StandardScaler().fit_transform(X), y)
    np.testing.assert_allclose(scaled.weights_, by_hand.weights_, atol=1e-10)
    np.testing.assert_allclose(
        scaled.decision_function(X), by_hand.decision_function(StandardScaler().fit_transform(X)), atol=1e-9
    )
    scaled.save(tmp_path / "model")
    np.testing.assert_array_equal(Classifier.load(tmp_path / "model").decision_function(X), scaled.decision_function(X))
    assert scaled.suspicion(X, y, folds=2).shape == (120,) and model(scale=True).suspicion(X, y, folds=2).shape == (120,)
    sparse = model(scale=True).fit(scipy.sparse.csr_array(X), y)
    np.testing.assert_allclose(sparse.decision_function(X), sparse.decision_function(scipy.sparse.csr_array(X)), atol=1e-9)
    assert sparse.centre_ is None and sparse.scale_ == pytest.approx(X.std(axis=0))
    np.testing.assert_allclose(scaled.decision_function(scipy.sparse.csr_array(X)), scaled.decision_function(X), atol=1e-9)
    twice = model(scale=True).fit(np.vstack([X, X[:40]]), np.concatenate([y, y[:40]]))
    weighted = model(scale=True).fit(X, y, sample_weight=np.where(np.arange(120) < 40, 2.0, 1.0))
    np.testing.assert_allclose(weighted.scale_, twice.scale_)
    np.testing.assert_allclose(weighted.centre_, twice.centre_)
    stream = model(scale=True).partial_fit(X, y)
    first = stream.scale_.copy()
    np.testing.assert_array_equal(stream.partial_fit(2 * X, y).scale_, first)
    assert model().fit(X, y).scale_ is None and scaled.set_params(scale=False).fit(X, y).scale_ is None


def test_a_constant_feature_is_not_divided_by_nothing(data):
    X, y = data
    fitted = model(scale=True).fit(np.hstack([X, np.full((120, 1), 7.0)]), y)
    assert fitted.scale_[4] == 1.0 and np.isfinite(fitted.decision_function(np.hstack([X, np.full((120, 1), 9.0)]))).all()


def test_names_of_features_are_checked(data):
    class Frame:
        def __init__(self, columns):
            self.columns = columns

        def __array__(self, dtype=None, copy=None):
            return np.asarray(data[0], dtype)

    fitted = model().fit(Frame(list("abcd")), data[1])
    assert fitted.feature_names_in_.tolist() == list("abcd")
    with pytest.raises(ValueError, match="The feature names should match those that were passed during fit"):
        fitted.predict(Frame(list("abce")))
    with pytest.warns(UserWarning, match="X does not have valid feature names, but Classifier was fitted with feature names"):
        fitted.predict(data[0])
    assert not hasattr(fitted.fit(*data), "feature_names_in_")


def test_without_scikit_learn_it_is_the_same(data):
    """The core has no face, and answers alike."""
    from partwise.tasks.classification.estimator import Classifier as Core

    X, y = data
    core, faced = (kind(loss="crf", solver="dca", max_epochs=3).fit(X, y) for kind in (Core, Classifier))
    np.testing.assert_array_equal(core.predict_proba(X), faced.predict_proba(X))
    assert core.score(X, y) == faced.score(X, y) and not hasattr(core, "get_params")
    assert not hasattr(Core(loss="hinge"), "predict_proba") and hasattr(Core, "predict_proba")
    assert faced.score(X, [None if k % 2 else label for k, label in enumerate(y)]) == pytest.approx(faced.score(X[::2], y[::2]))
