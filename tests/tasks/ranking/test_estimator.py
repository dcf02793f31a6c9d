"""`Ranker`: training, answers, queries as scikit-learn and XGBoost users give them, bad input."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
import sklearn
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from partwise import Ranker, load
from partwise.datasets import RankingSet
from partwise.engine.compilation import interpret
from partwise.metrics import ndcg
from partwise.structures import PartialRankingProblem, RankingProblem
from partwise.structures.ranking.problem import pairs_of
from partwise.tasks.ranking import data
from partwise.tasks.ranking.data import read_documents
from partwise.tasks.ranking.scores import members_of
from small_queries import documents, fitted


@pytest.fixture(autouse=True)
def interpreted():
    with interpret():
        yield


@pytest.mark.parametrize("objective", ["ndcg", "pairwise"])
@pytest.mark.parametrize("loss", ["hinge", "ramp_do"])
def test_it_learns_to_rank(objective, loss):
    ranker = fitted(objective=objective, loss=loss)
    X, y, groups = documents(seed=1)
    assert ranker.score(X, y, groups=groups) == ranker.score(X, y, qid=groups) > 0.95
    assert ranker.score(X, y, groups=groups) == ndcg(y, ranker.predict(X), groups)
    weight = np.where(groups == 2, 3.0, np.where(groups == 4, 1.0, 0.0))
    some = [ranker.score(X[groups == q], y[groups == q], qid=groups[groups == q]) for q in (2, 4)]
    assert ranker.score(X, y, groups, weight) == pytest.approx(np.average(some, weights=[3, 1]))
    for q, rows in enumerate(ranker.rank(X, groups=groups)):
        assert set(groups[rows]) == {q} and (np.diff(ranker.predict(X)[rows]) <= 0).all()
    assert ranker.n_queries_ == 6 and ranker.n_features_in_ == 3


def test_sparse_matrices_frames_and_sets_are_the_same():
    X, y, groups = documents()
    w = fitted_on(X, y, groups)
    np.testing.assert_allclose(fitted_on(scipy.sparse.csr_matrix(X), y, groups=groups), w)
    np.testing.assert_allclose(fitted_on(RankingSet(X, y, groups.astype(str), [""] * len(X), np.arange(len(X)), "x")), w)
    np.testing.assert_allclose(fitted_on(Frame({"a": X[:, 0], "qid": groups, "b": X[:, 1], "c": X[:, 2]}), y), w)
    np.testing.assert_allclose(fitted_on(X, y, qid=groups), w)
    # what is given beside a set or a frame counts
    np.testing.assert_allclose(fitted_on(RankingSet(X, 0 * y, groups, [""] * len(X), np.arange(len(X)), "x"), y), w)
    np.testing.assert_allclose(fitted_on(Frame({"a": X[:, 0], "qid": 0 * groups, "b": X[:, 1], "c": X[:, 2]}), y, groups), w)


class Frame(dict):
    """As much of a data frame as is asked of one."""

    @property
    def columns(self):
        return list(self)

    def __getitem__(self, which):
        return Frame({name: self[name] for name in which}) if isinstance(which, list) else super().__getitem__(which)

    def __array__(self, dtype=None, copy=None):
        return np.array(list(self.values()), dtype).T


def test_names_of_features_must_be_those_of_training(tmp_path):
    X, y, groups = documents()
    frame = Frame({"a": X[:, 0], "qid": groups, "b": X[:, 1], "c": X[:, 2]})
    ranker = Ranker(max_epochs=2, random_state=0).fit(frame, y)
    ranker.save(tmp_path / "m")
    assert ranker.score(frame, y) == ranker.score(X, y, groups)
    for model in (ranker, load(tmp_path / "m")):
        assert model.feature_names_in_.tolist() == ["a", "b", "c"]
        with pytest.raises(ValueError, match="in the same order. Got 'c' where 'b' was expected"):
            model.predict(frame[["qid", "a", "c", "b"]])
    with pytest.raises(ValueError, match="Got 'd' where 'c' was expected"):
        Ranker().fit(frame, y, validation=(Frame({"a": X[:, 0], "b": X[:, 1], "d": X[:, 2]}), y, groups))
    assert not hasattr(ranker.fit(X, y, groups), "feature_names_in_")


@pytest.mark.filterwarnings("error", "ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames(library):
    """A column of queries goes through scikit-learn's searches, and through a pipeline that leaves it alone."""
    DataFrame = pytest.importorskip(library).DataFrame
    X, y, groups = documents()
    queries = [f"q{g}" for g in groups]
    frame = DataFrame({"a": X[:, 0], "qid": queries, "b": X[:, 1], "c": X[:, 2]})
    ranker, folds = Ranker(C=3.0, max_epochs=3, random_state=0), GroupKFold(3)
    each = cross_val_score(ranker, frame, y, groups=queries, cv=folds, error_score="raise")
    search = GridSearchCV(ranker, {"C": [3.0]}, cv=folds, error_score="raise").fit(frame, y, groups=frame["qid"])
    assert search.best_score_ == each.mean() > 0.7
    np.testing.assert_array_equal(search.predict(frame), search.predict(frame[["a", "b", "c"]]))
    scaler = make_column_transformer(
        (StandardScaler(), ["a", "b", "c"]), ("passthrough", ["qid"]), verbose_feature_names_out=False
    ).set_output(transform=library)
    assert cross_val_score(make_pipeline(scaler, ranker), frame, y, groups=queries, cv=folds, error_score="raise").min() > 0.5
    with pytest.raises(ValueError, match="qid must not hold NaN. Got one at document 1"):
        ranker.fit(DataFrame({"a": X[:2, 0], "qid": ["1", None]}), [1, 0])
    with pytest.raises(ValueError, match="X must hold numbers only.*'qid'"):
        ranker.fit(DataFrame({"a": X[:2, 0], "query": ["x", "y"]}), [1, 0])


def test_queries_that_got_lost_are_told():
    """scikit-learn gives groups to the folds alone unless asked; whole folds would be taken for one query."""
    X, y, _ = documents()
    with pytest.warns(UserWarning, match="all 30 are taken for one"):
        assert Ranker(max_epochs=1).fit(X, y).n_queries_ == 1


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_several_queries_are_not_scored_as_one(tmp_path):
    X, y, groups = documents()
    ranker = fitted()
    ranker.save(tmp_path / "m")
    message = "several queries, but nothing says which of them each of the 30 documents in X belongs to.*`qid`.*set_score_request"
    for model in (ranker, load(tmp_path / "m")):
        for more in ({}, {"sample_weight": np.ones(30)}):
            with pytest.raises(ValueError, match=message):
                model.score(X, y, **more)
        assert model.score(X, y, qid=groups) == ndcg(y, X @ ranker.weights_, groups)
        assert model.score(X[:5], y[:5], qid=[0] * 5) == ndcg(y[:5], X[:5] @ ranker.weights_)
        np.testing.assert_array_equal(model.predict(X), X @ ranker.weights_)  # scores are those of documents: no query needed
        assert sorted(model.rank(X[:5])[0]) == list(range(5))
    with pytest.raises(ValueError, match=r"each of the 5 documents in the validation set, \(X, y, qid\) belongs"):
        Ranker().fit(X, y, groups, validation=(X[:5], y[:5]))
    one = Ranker(max_epochs=2).fit(X, y)
    assert one.score(X, y) == ndcg(y, one.predict(X))
    one.save(tmp_path / "m")
    assert load(tmp_path / "m").score(X, y) == one.score(X, y)
    with sklearn.config_context(enable_metadata_routing=True):
        half = Ranker(max_epochs=2).set_fit_request(groups=True).set_score_request(groups=False)
        with pytest.raises(ValueError, match=r"set_fit_request\(groups=True\).set_score_request\(groups=True\)"):
            GridSearchCV(half, {"C": [1.0]}, cv=GroupKFold(3), error_score="raise").fit(X, y, groups=groups)
        whole = half.set_score_request(groups=True)
        search = GridSearchCV(whole, {"C": [1.0, 3.0]}, cv=GroupKFold(3), error_score="raise").fit(X, y, groups=groups)
    assert search.best_score_ > 0.8


def fitted_on(*data, **queries):
    return Ranker(C=3.0, max_epochs=3, random_state=0).fit(*data, **queries).weights_


def test_the_order_of_documents_does_not_matter():
    X, y, groups = documents()
    order = np.argsort(groups, kind="stable")
    np.testing.assert_allclose(fitted_on(X[order], y[order], groups=groups[order]), fitted_on(X, y, groups=groups))


def test_positions_beyond_k_do_not_count():
    X, y, groups = documents()
    ranker = fitted(k=1)
    ranker.weights_[:] = 1.0, 0.0, 0.0
    first, all_of_them = (ndcg(y, X[:, 0], groups, k) for k in (1, 10))
    assert ranker.score(X, y, groups) == first != all_of_them
    assert ranker._judge(read_documents(X, y, groups))(ranker.weights_) == pytest.approx(1.0 - first)


def test_parameters_reach_the_problem():
    X, y, groups = documents()
    seen = []

    class Seen(Ranker):
        def _problem(self, some, weights):
            seen.append(super()._problem(some, weights))
            return seen[-1]

    weight = [1, 1, 3, 3, 2, 2, 2, 2, 2, 2]  # a query weighs as much as its documents do in the mean
    Seen(loss="hinge", ties="first", k=2, positions="linear", max_epochs=1).fit(X[:10], y[:10], [0] * 4 + [1] * 6, weight)
    problem, weights = seen[0]
    assert type(problem) is RankingProblem and problem.scores.tolist() == [1.0, 0.5] and weights.tolist() == [2.0, 2.0]
    Seen(loss="hinge", max_epochs=1).fit(X[:10], y[:10], [0] * 4 + [1] * 6)
    assert type(seen[1][0]) is PartialRankingProblem and len(seen[1][0].scores) == 10


def test_warm_start():
    X, y, groups = documents()
    warm, cold = (Ranker("hinge", solver="dca", warm_start=warm, max_epochs=1, random_state=0) for warm in (True, False))
    first = [model.fit(X, y, groups).weights_.copy() for model in (warm, cold)]
    np.testing.assert_array_equal(first[0], first[1])
    np.testing.assert_array_equal(cold.fit(X, y, groups).weights_, first[1])
    assert not np.allclose(warm.fit(X, y, groups).weights_, first[0])


def test_k_best_rankings():
    ranker = fitted(k=3, positions="reciprocal")
    X, _, groups = documents(seed=2)
    for own, found in zip(ranker.rank(X, groups), ranker.predict_kbest(X, groups, k=4), strict=True):
        np.testing.assert_array_equal(found[0][0], own[:3])
        assert found[0][1] == pytest.approx(ranker.predict(X)[own[:3]] @ [1.0, 1.0 / 2.0, 1.0 / 3.0])
        assert len(found) == 4 and (np.diff([value for _, value in found]) <= 0).all()
        assert all(set(rows) <= set(own) for rows, _ in found)


def test_probabilities_of_pairs():
    ranker = fitted(objective="pairwise", loss="crf", solver="lbfgs")
    X, _, groups = documents()
    s = ranker.predict(X)[groups == 0]
    for temperature in (1.0, 0.5):
        ranker.temperature_ = temperature
        table = ranker.predict_marginals(X, groups)[0]
        np.testing.assert_allclose(table, 1.0 / (1.0 + np.exp((s[None, :] - s[:, None]) / temperature)))
    with pytest.raises(ValueError, match="fits scores, not probabilities. Train with objective='pairwise'"):
        fitted().predict_marginals(X, groups)


def test_sums_over_rankings_are_refused_in_words():
    with pytest.raises(ValueError, match="sums over all rankings of a query.*objective='pairwise'"):
        fitted(loss="crf")


def test_weights_of_queries_and_of_pairs():
    X, y, groups = documents()
    weight = np.where(groups < 3, 1.0, 0.0)
    some = groups < 3
    for objective in ("ndcg", "pairwise"):
        settings = {"loss": "hinge", "objective": objective, "max_epochs": 10, "random_state": 0}
        one = Ranker(**settings).fit(X, y, groups, weight)
        np.testing.assert_allclose(one.weights_, Ranker(**settings).fit(X[some], y[some], groups[some]).weights_)
        twice, double = Ranker(**settings).fit(X, y, groups, 2.0 * np.ones(len(X))), Ranker(**settings, C=0.2).fit(X, y, groups)
        np.testing.assert_allclose(twice.weights_, double.weights_)
    given = read_documents(X[:10], y[:10], [0] * 4 + [1] * 6)
    query = pairs_of(np.array([4, 6]), y[:10])[2]
    for how, totals in (("query", [1.0, 2.0]), ("equal", np.bincount(query) * [1.0, 2.0])):
        _, weights = Ranker(objective="pairwise", loss="hinge", pair_weight=how)._problem(given, np.array([1.0, 2.0]))
        np.testing.assert_allclose(np.bincount(query, weights), totals)
    equal = Ranker(objective="pairwise", loss="hinge", pair_weight="equal", random_state=0, max_epochs=10).fit(X, y, groups)
    assert not np.allclose(equal.weights_, Ranker(objective="pairwise", loss="hinge", random_state=0).fit(X, y, groups).weights_)


def test_early_stopping_holds_out_queries():
    X, y, groups = documents(10)
    ranker = Ranker(C=3.0, early_stopping=True, validation_fraction=0.3, max_epochs=5, random_state=0).fit(X, y, groups)
    assert ranker.n_queries_ == 7 and all(0 <= record.validation <= 1 for record in ranker.result_.history)
    with pytest.raises(ValueError, match="cannot tell when to stop: nothing is relevant in the 10 held-out queries"):
        Ranker().fit(X, y, groups, validation=(X, 0 * y, groups))
    with pytest.raises(ValueError, match="X has 3 features, but the validation set 2"):
        Ranker().fit(X, y, groups, validation=(X[:, :2], y, groups))
    other = Ranker(C=3.0, max_epochs=5, random_state=0).fit(X, y, groups, validation=(X, y, groups))
    assert other.n_queries_ == 10 and other.result_.history[-1].validation < 0.2


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learn():
    X, y, groups = documents()
    ranker = clone(Ranker(C=0.5, k=3, positions="linear"))
    assert ranker.get_params()["k"] == 3
    with sklearn.config_context(enable_metadata_routing=True):
        asking = Ranker(max_epochs=5).set_fit_request(groups=True).set_score_request(groups=True)
        search = GridSearchCV(asking, {"C": [1e-9, 3.0]}, cv=GroupKFold(3)).fit(X, y, groups=groups)
        scaled = make_pipeline(StandardScaler(), asking).fit(X, y, groups=groups)
        assert scaled.score(X, y, groups=groups) > 0.8
    assert search.best_params_["C"] in (1e-9, 3.0) and search.best_score_ > 0.8


def test_the_model_file(tmp_path):
    ranker = fitted(k=4, objective="pairwise", loss="hinge")
    ranker.save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.weights_, ranker.weights_)
    assert again.k == 4 and again.objective == "pairwise" and again.n_features_in_ == 3
    with pytest.raises(ValueError, match="X has 2 features, but Ranker is expecting 3 features"):
        again.predict(np.zeros((1, 2)))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"objective": "listwise"}, "'objective' parameter of Ranker must be 'ndcg' or 'pairwise'. Got 'listwise'"),
        ({"k": 0}, "'k' parameter"),
        ({"positions": "cube"}, "'positions' parameter"),
        ({"positions": [1.0, 0.5]}, "at least k = 10"),
        ({"ties": "last"}, "'ties' parameter"),
        ({"pair_weight": 1}, "'pair_weight' parameter"),
        ({"C": -1}, "'C' parameter"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        fitted(**parameters)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": None}, "no relevance to learn from"),
        ({"y": [1, 0]}, "y must have the relevance of each document"),
        ({"y": [1, 0, -1, 0]}, "Got -1 for document 2"),
        ({"y": [1, 0, np.nan, 0]}, "Got nan for document 2"),
        ({"y": [1, 0, 61, 0]}, "range \\[0, 60\\]"),
        ({"y": [1, 1, 2, 2]}, "all documents are equally relevant. Got 4 documents of 2 queries"),
        ({"X": [[1.0, 0.0], [2.0, 1.0], [3.0, np.inf], [0.0, 1.0]]}, "document 2 holds inf"),
        ({"X": scipy.sparse.csr_matrix([[1.0, 2.0], [2.0, 0.0], [3.0, np.inf], [0.0, 1.0]])}, "document 2 holds inf"),
        ({"X": [1.0, 2.0, 3.0, 4.0]}, "2D array. Got 1D"),
        ({"groups": [1, 1, 2]}, "groups must have the query of each document"),
        ({"groups": [1, 1, 2, np.nan]}, "groups must not hold NaN. Got one at document 3"),
        ({"qid": ["a", "a", None, 2], "groups": None}, "qid must not hold NaN. Got one at document 2"),
        ({"X": [["x"], [1.0], [2.0], [3.0]]}, "X must hold numbers only, but could not convert"),
        ({"groups": [1, 2, 3, 4]}, "does `groups`"),
        ({"qid": [1, 1, 2, 2]}, "Got both"),
    ],
)
def test_bad_input(change, message):
    given = {"X": [[1.0], [2.0], [3.0], [4.0]], "y": [1, 0, 1, 0], "groups": [1, 1, 2, 2]} | change
    with pytest.raises(ValueError, match=message):
        Ranker().fit(given.pop("X"), given.pop("y"), **given)


def test_useless_input():
    """Constant features, queries of one document or without a relevant one, relevance between whole numbers."""
    X, y, groups = documents()
    X, y, groups = np.vstack([X, X[:3]]), np.append(y, [2, 0, 0]) + 0.5 * (np.arange(33) == 0), np.append(groups, [90, 91, 91])
    ranker = Ranker(max_epochs=5, random_state=0).fit(np.hstack([X, np.ones((33, 1))]), y, groups)
    assert ranker.n_queries_ == 6 and abs(ranker.weights_[3]) < 1e-9
    assert 0.5 < ranker.score(np.hstack([X, np.ones((33, 1))]), y, groups) <= 1.0
    with pytest.warns(UserWarning, match="all features are zero"):
        assert not Ranker(max_epochs=2).fit(np.zeros((33, 2)), y, groups).weights_.any()


def test_the_loss_depends_on_what_is_ranked():
    assert fitted().result_.loss.name == "ramp_do" and fitted(objective="pairwise").result_.loss.name == "hinge"
    assert fitted(objective="pairwise", loss="ramp_do").result_.loss.name == "ramp_do"
    with pytest.raises(ValueError, match="loss 'hinge', which fits scores, not probabilities"):
        fitted(objective="pairwise").predict_marginals(documents()[0])


def test_queries_are_told_apart_once(monkeypatch):
    """Their names are sorted for that, and sorting strings takes longer than an epoch."""
    X, y, groups = documents()
    calls = []
    monkeypatch.setattr(data, "members_of", lambda names: calls.append(names.dtype.kind) or members_of(names))
    names = groups.astype(str)
    Ranker(max_epochs=4, random_state=0).fit(X, y, names, validation=(X, y, names))
    assert calls.count("U") == 2  # of the training and of the held-out documents
