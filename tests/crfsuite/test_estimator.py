"""`partwise.crfsuite` beside the sklearn-crfsuite it stands in for."""

import gzip
import inspect
import pickle
import warnings

import numpy as np
import pytest
from scipy.stats import expon
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, cross_val_score
from sklearn.utils.validation import check_is_fitted

import partwise
import partwise.crfsuite as ours
from partwise.crfsuite import CRF, metrics, scorers
from partwise.crfsuite.training_log import Rule, TrainingLog
from partwise.metrics import span_f1
from partwise.solvers import Record

DENSE = {"all_possible_states": True, "all_possible_transitions": True}
EXACT = {"c2": 0.1, "epsilon": 1e-9, "delta": 0.0, **DENSE}


def corpus(n, seed):
    """Labels of a noisy hidden chain, attributes of many kinds. All values are one: other rows would be compiled anew."""
    rng = np.random.default_rng(seed)
    chain = [[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.4, 0.1, 0.5]]
    X, y = [], []
    for length in [1, *rng.integers(2, 9, n - 1)]:
        labels = [int(rng.integers(3))]
        while len(labels) < length:
            labels.append(int(rng.choice(3, p=chain[labels[-1]])))
        words = [3 * label + int(rng.integers(3)) if rng.random() < 0.7 else int(rng.integers(9)) for label in labels]
        X.append([{"bias": 1.0, "word": f"w{w}", "odd": w % 2 == 1, "bag": ["a", f"b{w % 3}"]} for w in words])
        y.append(["ABC"[label] for label in labels])
    return X, y


X, Y = corpus(40, 0)
X_TEST, Y_TEST = corpus(15, 1)


@pytest.fixture(scope="module")
def theirs():
    return pytest.importorskip("sklearn_crfsuite", reason="sklearn-crfsuite is not installed")


@pytest.fixture(scope="module")
def fitted():
    return CRF(**EXACT).fit(X, Y)


def table(features):
    """One spelling of names: python-crfsuite writes word:w1."""
    return {(name.replace("=", ":"), label): weight for (name, label), weight in features.items()}


def largest_difference(a, b):
    return max(abs(a.get(key, 0.0) - b.get(key, 0.0)) for key in {*a, *b})


# -- the same interface ------------------------------------------------------------------------------------------------


def test_parameters_are_theirs_in_their_order(theirs):
    names = list(inspect.signature(theirs.CRF.__init__).parameters)
    here = inspect.signature(CRF.__init__).parameters
    assert list(here) == [*names, "n_jobs", "pair_attributes", "label_pairs"]
    for name, parameter in inspect.signature(theirs.CRF.__init__).parameters.items():
        assert here[name].default == parameter.default


def test_methods_and_attributes_are_theirs(theirs):
    public = {name for name in vars(theirs.CRF) if not name.startswith("_")}
    assert public - set(dir(CRF)) == set()
    for name in ("fit", "predict", "predict_single", "predict_marginals", "predict_marginals_single", "score"):
        here, there = (inspect.signature(getattr(kind, name)).parameters.values() for kind in (CRF, theirs.CRF))
        assert [one.name for one in here if one.kind != one.KEYWORD_ONLY] == [one.name for one in there]  # ours come by name
    for module in ("metrics", "scorers"):
        there = importlib_names(f"sklearn_crfsuite.{module}")
        assert there - set(dir(getattr(ours, module))) == set()


def importlib_names(module):
    import importlib

    found = vars(importlib.import_module(module))
    return {
        name
        for name, value in found.items()
        if name.startswith(("flat_", "sequence_")) and (callable(value) or hasattr(value, "_score_func"))
    }


# -- the same model ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("c2", [0.1, 1.0])
def test_lbfgs_is_theirs(theirs, c2):
    parameters = {**EXACT, "algorithm": "lbfgs", "c1": 0.0, "c2": c2, "delta": 1e-13, "max_iterations": 5000}
    a, b = theirs.CRF(**parameters).fit(X, Y), CRF(**parameters).fit(X, Y)
    assert largest_difference(table(a.state_features_), table(b.state_features_)) < 1e-3
    assert largest_difference(a.transition_features_, b.transition_features_) < 1e-3
    assert sorted(a.classes_) == b.classes_ and a.num_attributes_ == b.num_attributes_ == len(b.attributes_)
    assert b.training_log_.last_iteration["loss"] == pytest.approx(a.training_log_.last_iteration["loss"], rel=1e-6)
    there, here = a.predict(X_TEST), b.predict(X_TEST)
    assert isinstance(here, type(there)) and here.shape == there.shape and here.dtype == there.dtype == object
    assert here.tolist() == there.tolist() and isinstance(here[0], list)
    assert b.predict_single(X_TEST[3]) == a.predict_single(X_TEST[3])
    assert b.score(X_TEST, Y_TEST) == pytest.approx(a.score(X_TEST, Y_TEST))
    there, here = a.predict_marginals(X_TEST), b.predict_marginals(X_TEST)
    assert isinstance(here, type(there)) and here.shape == there.shape and here.dtype == there.dtype == object
    for p, q in zip(there, here, strict=True):
        assert all(largest_difference(s, t) < 1e-3 for s, t in zip(p, q, strict=True))
    assert b.predict_marginals_single(X_TEST[3]) == here[3]


@pytest.mark.parametrize("stop", [{}, {"period": 3, "delta": 1e-3}, {"epsilon": 1e-2, "delta": 0.0}, {"max_iterations": 7}])
def test_lbfgs_stops_when_theirs_does(theirs, stop):
    a, b = (kind(c2=0.1, **DENSE, **stop).fit(X, Y).training_log_ for kind in (theirs.CRF, CRF))
    # ours begins with the scale of weights, so the ways differ: the rule is the same, not the iteration
    assert len(b.iterations) <= 1.4 * len(a.iterations) and ("max_iterations" not in stop or len(b.iterations) == 7)
    for name in ("num", "loss", "feature_norm", "active_features"):
        assert b.iterations[0].keys() >= {name}
    assert 0.98 < b.last_iteration["loss"] / a.last_iteration["loss"] < 1.001


def test_stopping_rules():
    def run(rule, values, square=4.0):
        log = TrainingLog(2.0, rule)
        records = [Record(k + 1, 0.0, 0.0, 0, primal=p, dual=p - gap) for k, (p, gap) in enumerate(values)]
        return [log(record.with_access(0, lambda: np.array([square**0.5]), None)) for record in records]

    falling = [(100.0, 50.0), (90.0, 50.0), (89.5, 50.0), (89.4, 50.0)]
    assert run(Rule(delta=0.01, period=1), falling) == [False, False, True, True]
    assert run(Rule(delta=0.01, period=2), falling) == [False, False, False, True]
    assert run(Rule(delta=1.0, period=0), falling) == [False] * 4
    # ||grad F|| = sqrt(2 * 8) / 2 = 2 against epsilon ||w||
    assert run(Rule(epsilon=0.99), [(9.0, 8.0)]) == [False] and run(Rule(epsilon=1.01), [(9.0, 8.0)]) == [True]
    assert run(Rule(epsilon=2.01), [(9.0, 8.0)], 0.01) == [True]  # or against epsilon, if ||w|| < 1
    assert run(None, [(1.0, 0.0)] * 20) == [False] * 20


def test_l2sgd_has_the_same_optimum(fitted):
    stochastic = CRF(algorithm="l2sgd", c2=0.1, max_iterations=300, delta=0.0).fit(X, Y)
    assert stochastic.labeler_.result_.primal == pytest.approx(fitted.labeler_.result_.primal, rel=1e-2)
    assert stochastic.labeler_.C == fitted.labeler_.C == pytest.approx(5.0)


@pytest.mark.parametrize(("algorithm", "solver"), [("ap", "perceptron"), ("passive-aggressive", "mira")])
@pytest.mark.interpreted
def test_online_algorithms_are_as_good_as_theirs(theirs, algorithm, solver):
    a, b = (kind(algorithm=algorithm, max_iterations=10).fit(X, Y) for kind in (theirs.CRF, CRF))
    assert b.labeler_.solver_ == solver and len(b.training_log_.iterations) == 10
    assert b.score(X, Y) > a.score(X, Y) - 0.1
    assert not b.labeler_.start_.any() and not b.labeler_.stop_.any()
    with pytest.warns(UserWarning, match="fits scores, not probabilities.*calibrate"):
        b.predict_marginals(X_TEST)
    p = b.calibrate(X_TEST, Y_TEST).predict_marginals_single(X_TEST[1])
    assert sum(p[0].values()) == pytest.approx(1.0)


def test_passive_aggressive_steps():
    def weights(**parameters):
        return CRF(algorithm="pa", max_iterations=2, **parameters).fit(X, Y).labeler_.weights_

    assert np.abs(weights(c=1e-3)).max() < 0.1 < np.abs(weights(c=1.0)).max()
    np.testing.assert_array_equal(weights(pa_type=0, c=1e-3), weights(c=1e6))  # no slack: nothing cuts a step short
    assert (weights(averaging=False) != weights()).any()


def test_held_out_data_are_only_watched(theirs, fitted):
    watched = CRF(**EXACT).fit(X, Y, X_TEST, Y_TEST)
    np.testing.assert_array_equal(watched.labeler_.weights_, fitted.labeler_.weights_)
    here = watched.training_log_.last_iteration
    there = theirs.CRF(**{**EXACT, "delta": 1e-13}).fit(X, Y, X_TEST, Y_TEST).training_log_.last_iteration
    for name in ("item_accuracy_float", "instance_accuracy_float", "avg_precision", "avg_recall", "avg_f1"):
        assert here[name] == pytest.approx(there[name], abs=1e-5)
    assert {label: tuple(score[:3]) for label, score in here["scores"].items()} == {
        label: tuple(score[:3]) for label, score in there["scores"].items()
    }
    assert here["item_accuracy_float"] == pytest.approx(watched.score(X_TEST, Y_TEST))
    assert len({round(it["item_accuracy_float"], 6) for it in watched.training_log_.iterations}) > 1
    with pytest.raises(ValueError, match="X_dev and y_dev belong together"):
        CRF().fit(X, Y, X_TEST)


# -- what differs is told ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"algorithm": "arow", "gamma": 0.0}, "'gamma' parameter of CRF must be a float"),
        ({"algorithm": "sgd"}, "must be one of .* Got 'sgd' instead"),
        ({"algorithm": "ap", "c2": 1.0}, "'c2' parameter of CRF is not one of algorithm 'ap'"),
        ({"gamma": 1.0}, "'gamma' parameter of CRF is not one of algorithm 'lbfgs'"),
        ({"c2": 0}, r"'c2' parameter of CRF must be a float in the range \(0, inf\).* Got 0 instead"),
        ({"c1": -1}, "'c1' parameter"),
        ({"max_iterations": 0}, "'max_iterations' parameter of CRF must be an int"),
        ({"linesearch": "Armijo"}, "'linesearch' parameter"),
        ({"algorithm": "pa", "pa_type": 2}, "PA-II is not here"),
        ({"min_freq": "2"}, "'min_freq' parameter"),
    ],
)
def test_refusals(parameters, message):
    with pytest.raises(ValueError, match=message):
        CRF(**parameters).fit(X, Y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"all_possible_states": False}, "all_possible_states=False"),
        ({"all_possible_transitions": False}, "all_possible_transitions=False"),
        ({"trainer_cls": object}, "trainer_cls"),
        ({"algorithm": "pa", "error_sensitive": False}, "margin"),
        ({"algorithm": "ap", "epsilon": 0.1}, "epsilon is not looked at"),
    ],
)
def test_warnings(parameters, message):
    with pytest.warns(UserWarning, match=message) as caught:
        CRF(max_iterations=2, **parameters).fit(X[:5], Y[:5])
    assert len(caught) == 1 and caught[0].filename == __file__


def test_nothing_is_said_where_nothing_differs():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CRF(max_iterations=2, c1=0.0, linesearch="Backtracking", num_memories=3, max_linesearch=5, keep_tempfiles=True).fit(X, Y)
        CRF(algorithm="l2sgd", max_iterations=2, calibration_eta=0.5, calibration_samples=10).fit(X, Y)


def test_attributes_without_weights_are_left_out(fitted):
    sparse = CRF(c1=3.0, c2=0.1, max_iterations=50).fit(X, Y)
    used = {name for name, _ in sparse.state_features_}
    assert set(sparse.attributes_) == used and 0 < sparse.num_attributes_ < fitted.num_attributes_
    assert sparse.size_ < fitted.size_ and sparse.predict(X_TEST).tolist() == sparse.labeler_.predict(X_TEST)
    assert sparse.training_log_.last_iteration["active_features"] == len(sparse.state_features_) + len(
        sparse.transition_features_
    )


def test_min_freq_leaves_out_rare_attributes():
    x = [[{"a": "x"}, {"a": "y"}], [{"a": "x"}, {"a": "x"}]]
    y = [["A", "B"], ["A", "A"]]
    assert CRF(max_iterations=2).fit(x, y).num_attributes_ == 2
    assert CRF(max_iterations=2, min_freq=1.5).fit(x, y).num_attributes_ == 1


# -- in the company of scikit-learn ------------------------------------------------------------------------------------


def test_clone_pickle_and_model_file(theirs, fitted, tmp_path):
    answers = fitted.predict(X_TEST).tolist()
    again = clone(fitted)
    assert again.get_params() == fitted.get_params() and not hasattr(again, "labeler_")
    with pytest.raises(NotFittedError, match="This CRF instance is not fitted yet"):
        again.predict(X_TEST)
    with pytest.raises(NotFittedError):
        check_is_fitted(again)
    check_is_fitted(fitted)
    copy = pickle.loads(pickle.dumps(fitted))
    assert copy.labeler_.callbacks is None  # the log belongs to that one fit
    assert copy.predict(X_TEST).tolist() == answers and copy.training_log_.last_iteration == fitted.training_log_.last_iteration
    path = str(tmp_path / "model")
    CRF(**EXACT, model_filename=path).fit(X, Y)
    used = CRF(model_filename=path)  # as sklearn-crfsuite: no fit
    check_is_fitted(used)
    assert used.predict(X_TEST).tolist() == answers
    assert partwise.load(path).predict(X_TEST) == answers
    assert used.size_ <= (tmp_path / "model").stat().st_size
    there = theirs.CRF(max_iterations=2, model_filename=path).fit(X, Y)
    assert (CRF(model_filename=path).predict(X_TEST) == list(there.predict(X_TEST))).all()  # theirs are read, too


def test_answers_of_equal_length_stay_lists(fitted):
    same = [[X[1][0]] * 2] * 3
    assert fitted.predict(same).shape == fitted.predict_marginals(same).shape == (3,)
    assert fitted.predict([]).shape == (0,) and fitted.predict([[]]).tolist() == [[]]


def test_model_selection():
    crf = CRF(algorithm="lbfgs", max_iterations=20, all_possible_transitions=True)
    grid = GridSearchCV(crf, {"c2": [0.1, 1e4]}, cv=3, scoring=scorers.flat_accuracy).fit(X, Y)
    assert grid.best_params_ == {"c2": 0.1}
    assert grid.best_score_ == pytest.approx(cross_val_score(clone(crf).set_params(c2=0.1), X, Y, cv=3).mean())
    assert 0 < cross_val_score(crf, X, Y, cv=3, scoring=scorers.sequence_accuracy).mean() < grid.best_score_
    f1 = make_scorer(metrics.flat_f1_score, average="weighted", labels=["A", "B"])
    random = RandomizedSearchCV(crf, {"c2": expon(scale=0.5)}, cv=3, n_iter=3, scoring=f1, random_state=0, n_jobs=1).fit(X, Y)
    assert 0.5 < random.best_score_ < 1.0
    pickle.loads(pickle.dumps((f1, scorers.flat_accuracy, grid)))


def test_measures(theirs, fitted):
    from sklearn_crfsuite import metrics as reference

    found = fitted.predict(X_TEST)
    for name in ("flat_accuracy_score", "sequence_accuracy_score"):
        assert getattr(metrics, name)(Y_TEST, found) == pytest.approx(getattr(reference, name)(Y_TEST, found))
    for name in ("flat_precision_score", "flat_recall_score", "flat_f1_score"):
        for how in ({"average": "macro"}, {"average": None, "labels": ["C", "A"]}):
            np.testing.assert_allclose(
                getattr(metrics, name)(Y_TEST, found, **how), getattr(reference, name)(Y_TEST, found, **how)
            )
    both = [m.flat_fbeta_score(Y_TEST, found, 2.0, average="micro", labels=["A"]) for m in (metrics, reference)]
    assert both[0] == both[1]
    both = [m.flat_classification_report(Y_TEST, found, labels=["B", "A"], digits=3) for m in (metrics, reference)]
    assert both[0] == both[1] and metrics.flat_f1_score.__name__ == "flat_f1_score"
    assert metrics.sequence_accuracy_score([], []) == 0
    assert metrics.sequence_accuracy_score([["a", "b"], ["a", "b"]], [["a", "b"], ["a", "x"]]) == 0.5
    assert ours.utils.flatten([["a"], ["b", "c"]]) == ["a", "b", "c"]


# -- a real task -------------------------------------------------------------------------------------------------------


def attributes(sentence, t):
    """In the way of the tutorials: strings, bools and numbers."""
    word, tag = sentence[t][:2]
    found = {"bias": 1.0, "low": word.lower(), "[-3:]": word[-3:], "upper": word.isupper(), "title": word.istitle(), "tag": tag}
    found["length"] = len(word) / 10
    for offset in (-1, 1):
        if 0 <= t + offset < len(sentence):
            word, tag = sentence[t + offset][:2]
            found.update({f"{offset}:low": word.lower(), f"{offset}:title": word.istitle(), f"{offset}:tag": tag})
        else:
            found["BOS" if offset < 0 else "EOS"] = True
    return found


def spanish(corpora, part, n):
    """Attributes and labels of the first n sentences."""
    path = corpora / "conll2002" / f"esp.{part}.txt.gz"
    if not path.exists():
        pytest.skip(f"there is no {path.name} in the folder conll2002 of PARTWISE_DATA")
    with gzip.open(path, "rt", encoding="utf-8") as f:
        sentences = [[line.split(" ") for line in block.split("\n")] for block in f.read().strip().split("\n\n")[:n]]
    return [[attributes(s, t) for t in range(len(s))] for s in sentences], [[token[2] for token in s] for s in sentences]


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("penalty", [{"c1": 0.1, "c2": 0.1}, {"c1": 0.0, "c2": 1.0}], ids=["L1", "L2"])
def test_the_objective_falls_as_fast_as_theirs(theirs, corpora, penalty):
    """On few sentences ours is far lower at first and near theirs later: with L1 up to two in a thousand higher."""
    x, y = spanish(corpora, "train", 600)
    settings = DENSE | {"max_iterations": 60, **penalty}
    there, here = (
        [step["loss"] for step in kind(**settings).fit(x, y).training_log_.iterations if "loss" in step]
        for kind in (theirs.CRF, CRF)
    )
    assert len(here) == len(there) == 60 and all(here[k] < there[k] * bound for k, bound in ((19, 0.9), (24, 0.95), (29, 0.98)))
    most = 1.003 if penalty["c1"] else 1.0005
    assert all(ours <= peer * most for ours, peer in zip(here[30:], there[30:], strict=True))


@pytest.mark.data
@pytest.mark.slow
def test_spanish_entities(theirs, corpora):
    x, y = spanish(corpora, "train", 1000)
    x_dev, y_dev = spanish(corpora, "testa", 500)
    a, b = (kind(c2=1.0, delta=1e-7, epsilon=1e-7, **DENSE).fit(x, y) for kind in (theirs.CRF, CRF))
    there, here = a.predict(x_dev), b.predict(x_dev)
    assert metrics.flat_accuracy_score(there, here) > 0.995
    assert span_f1(y_dev, here) == pytest.approx(span_f1(y_dev, there), abs=0.01)
    assert span_f1(y_dev, here) > 0.5
    strongest = sorted(b.state_features_.items(), key=lambda item: -item[1])[:20]
    there = table(a.state_features_)
    assert all(there[key] == pytest.approx(weight, abs=0.05) for key, weight in table(dict(strongest)).items())
