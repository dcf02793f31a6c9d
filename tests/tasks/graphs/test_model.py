"""`GraphLabeler`: ties of each feature of edges, submodular weights, hidden states and types of nodes, against enumeration."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest

from graph_cases import paths
from partwise import Classifier, GraphLabeler
from partwise.datasets import Graph, read_graphs, write_graphs
from partwise.structures.factor_graph.pairwise import excess
from partwise.tasks.common.model_file import ModelFileError, load

pytestmark = pytest.mark.interpreted


def outputs_of(model, x, edges, rows, allowed=None):
    """All labellings as numbers of states, and their scores by the formula."""
    n = model.coef_.shape[1]
    own = [range(n)] * len(x) if allowed is None else allowed
    outputs = np.array(list(itertools.product(*own)))
    nodes = x @ model.coef_ + model.intercept_
    scores = nodes[np.arange(len(x)), outputs].sum(axis=1)
    for (a, b), row in zip(edges, rows, strict=True):
        scores = scores + np.tensordot(row, model.pairwise_, 1)[outputs[:, a], outputs[:, b]]
    return outputs, scores


def rings(n, k, seed=0, positive=True):
    """Cycles with a chord, k labels that their features hint at, and edges with two features."""
    rng, edges = np.random.default_rng(seed), np.array([[0, 1], [1, 2], [2, 3], [3, 0], [0, 2]])
    labels = [np.arange(4) * (k - 1) // 3 if i == 0 else rng.integers(0, k, 4) for i in range(n)]
    rows = [rng.random((5, 2)) if positive else rng.normal(size=(5, 2)) for _ in range(n)]
    return [(np.eye(k)[y] + rng.normal(0, 0.5, (4, k)), edges, row) for y, row in zip(labels, rows, strict=True)], labels


# -- ties --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pairwise", ["antisymmetric", {"feature 0": "antisymmetric", "edge": "potts"}, {"feature 1": "symmetric"}]
)
def test_ties_of_each_feature_of_edges(pairwise, tmp_path):
    X, y = rings(4, 3, positive=False)
    model = GraphLabeler(C=1.0, pairwise=pairwise, max_epochs=3, random_state=0, inference="exact").fit(X, y)
    kinds = pairwise if isinstance(pairwise, dict) else dict.fromkeys(model.edge_names_, pairwise)
    for name, table in zip(model.edge_names_, model.pairwise_, strict=True):
        kind = kinds.get(name, "full")
        assert np.array_equal(table, table.T) == (kind in ("symmetric", "potts")) and table.any()
        assert np.array_equal(table, -table.T) == (kind == "antisymmetric")
    for x, edges, row in X:
        outputs, scores = outputs_of(model, x, edges, np.column_stack([row, np.ones(5)]))
        assert model.predict([(x, edges, row)])[0].tolist() == outputs[np.argmax(scores)].tolist()
    model.save(tmp_path / "m")
    assert load(tmp_path / "m").predict(X)[1].tolist() == model.predict(X)[1].tolist()
    with pytest.raises(
        ValueError, match="'pairwise' parameter of GraphLabeler names 'bend'; the features of edges are feature 0"
    ):
        GraphLabeler(pairwise={"bend": "potts"}).fit(X, y)


def test_what_has_a_direction_only_some_ties_can_tell():
    X = [(np.zeros((2, 1)), [[0, 1]])] * 4
    y = [[0, 1]] * 4
    one_way = GraphLabeler(C=1.0, pairwise="antisymmetric", solver="sdm", fit_intercept=False).fit(X, y)
    assert [one_way.predict([(np.zeros((2, 1)), [edge])])[0].tolist() for edge in ([0, 1], [1, 0])] == [[0, 1], [1, 0]]
    assert GraphLabeler(pairwise="symmetric", constraints=[(0, 1)])._has_direction is False
    assert GraphLabeler(pairwise="antisymmetric", constraints=[(0, 1)])._has_direction


# -- submodular --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("k", "pairwise"), [(2, "potts"), (2, "full"), (3, "full"), (3, "symmetric"), (4, {"edge": "antisymmetric"})]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("solver", ["dca", "sdm"])
def test_a_submodular_model_is_searched_exactly(k, pairwise, solver):
    X, y = rings(5, k)
    free = GraphLabeler(C=1.0, pairwise=pairwise, solver=solver, max_epochs=5, random_state=0).fit(X, y)
    model = GraphLabeler(C=1.0, pairwise=pairwise, solver=solver, submodular=True, max_epochs=5, random_state=0).fit(X, y)
    assert min(excess(table).min() for table in free.pairwise_) < -1e-3  # there is something to constrain
    assert min(excess(table).min() for table in model.pairwise_) > -1e-5  # float32
    model.weights_ = model.weights_.astype(float)
    model._make_submodular()  # to the last digit
    certificate = model.certify(X)
    assert certificate.proven.all()
    for (x, edges, row), found in zip(X, certificate.values, strict=True):
        assert found == pytest.approx(outputs_of(model, x, edges, np.column_stack([row, np.ones(5)]))[1].max(), abs=1e-6)


def test_a_cut_is_the_best_labelling():
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import maximum_flow

    X, y = rings(6, 2, seed=3)
    model = GraphLabeler(C=1.0, submodular=True, max_epochs=5, random_state=0).fit(X, y)
    model.weights_ = np.round(model.weights_.astype(float) * 64)  # whole numbers, as the flow wants them
    model._make_submodular()
    for x, edges, row in X:
        x, row = np.round(x * 8), np.round(row * 8)
        nodes, links = x @ model.coef_ + model.intercept_, []
        gain, constant = nodes[:, 1] - nodes[:, 0], nodes[:, 0].sum()
        for (a, b), own in zip(edges, np.column_stack([row, np.ones(5)]), strict=True):
            t = np.tensordot(own, model.pairwise_, 1)
            constant += t[0, 0]
            gain[a] += t[1, 0] - t[0, 0]
            gain[b] += t[0, 1] - t[0, 0]
            links.append((a, b, t[0, 0] + t[1, 1] - t[0, 1] - t[1, 0]))  # what both being 1 adds
        capacity = np.zeros((6, 6), np.int32)  # source 4: label 1, sink 5
        for a, b, both in links:
            gain[a] += both
            capacity[a, b] += int(both)
        for v, g in enumerate(gain):
            capacity[(4, v) if g > 0 else (v, 5)] += int(abs(g))
        best = constant + np.maximum(gain, 0.0).sum() - maximum_flow(csr_matrix(capacity), 4, 5).flow_value
        assert model.certify([(x, edges, row)]).values[0] == pytest.approx(best)


def test_the_constrained_optimum_where_neighbours_want_to_differ():
    rng = np.random.default_rng(0)
    y = [np.arange(4) % 2] * 6
    X = [(np.eye(2)[labels] * 0.3 + rng.normal(0, 1.0, (4, 2)), [[0, 1], [1, 2], [2, 3]]) for labels in y]
    settings = {"C": 0.2, "solver": "sdm", "dtype": "float64", "tol": 1e-7, "max_epochs": 500, "fit_intercept": False}
    model = GraphLabeler(pairwise="potts", submodular=True, **settings).fit(X, y)
    assert GraphLabeler(pairwise="potts", **settings).fit(X, y).pairwise_[0, 0, 0] < -0.1
    assert model.pairwise_[0, 0, 0] == pytest.approx(0.0, abs=1e-6)
    alone = Classifier(**settings).fit(np.concatenate([x for x, _ in X]), np.concatenate(y))
    rows = np.concatenate([x for x, _ in X])
    np.testing.assert_allclose(
        rows @ (model.coef_[:, 1] - model.coef_[:, 0]), alone.decision_function(rows).reshape(-1), atol=1e-3
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"loss": "crf"}, "goes with the losses 'hinge' and 'perceptron'. Got 'crf'"),
        ({"solver": "pegasos"}, "does not go with solver='pegasos'"),
        ({"hidden": 2}, "hidden states have none: set hidden=1"),
        ({"pairwise": "potts"}, "with more than two labels no weight but zero of pairwise='potts'"),
        ({"pairwise": "full"}, r"graph 1, edge \d, feature 0: submodular=True needs features of edges that are not negative"),
    ],
)
def test_what_submodular_does_not_go_with(settings, message):
    X, y = rings(3, 3)
    X[1][2][:, 0] -= 2.0
    with pytest.raises(ValueError, match=message):
        GraphLabeler(submodular=True, **settings).fit(X, y)


# -- hidden states -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lumps():
    """Labels of two lumps each, which no line parts: the label is the parity of two features; neighbours are alike."""
    rng = np.random.default_rng(0)
    X, y = [], []
    for _ in range(12):
        corner = np.repeat(rng.integers(0, 2, 2), 2), np.repeat(rng.integers(0, 2, 2), 2)
        X.append((np.stack(corner, axis=1) * 2.0 - 1.0 + rng.normal(0, 0.2, (4, 2)), np.array([[0, 1], [1, 2], [2, 3]])))
        y.append(np.array(["even", "odd"])[corner[0] ^ corner[1]])
    return X, y


@pytest.mark.parametrize(("loss", "solver"), [("crf", "lbfgs"), ("hinge", "dca")])
def test_hidden_states(loss, solver, lumps, tmp_path):
    X, y = lumps
    plain = GraphLabeler(loss, C=1.0, solver=solver, max_epochs=30, random_state=0).fit(X, y).score(X, y)
    model = GraphLabeler(loss, C=1.0, solver=solver, hidden=2, max_epochs=30, random_state=1).fit(X, y)
    assert model.score(X, y) > 0.95 > plain + 0.1
    assert model.states_ == ["even/1", "even/2", "odd/1", "odd/2"] and model.coef_.shape == (2, 4)
    x, edges = X[0]
    outputs, scores = outputs_of(model, x, edges, np.ones((3, 1)))
    labels = model.classes_[outputs // 2]
    assert model.predict(X[:1])[0].tolist() == labels[np.argmax(scores)].tolist()
    best = {}
    for own, score in zip(map(tuple, labels.tolist()), scores, strict=True):
        best[own] = max(best.get(own, -np.inf), score)
    ranked = sorted(best.items(), key=lambda pair: -pair[1])[:3]
    for (found, value), (expected, score) in zip(model.predict_kbest(X[:1], 3)[0], ranked, strict=True):
        assert tuple(found) == expected and value == pytest.approx(score, rel=1e-5)
    if loss == "crf":
        p = np.exp(scores - scores.max())
        expected = [[p[labels[:, v] == name].sum() / p.sum() for name in model.classes_] for v in range(4)]
        np.testing.assert_allclose(model.predict_marginals(X[:1])[0], expected, atol=1e-6)
        with pytest.raises(ValueError, match="hidden=2 that is a set"):
            GraphLabeler("summed", hidden=2).fit(X, y)
    known = [[None, *labels[0][1:2].tolist(), None, None]]
    fits = (labels[:, 1] == known[0][1]).nonzero()[0]
    assert model.predict(X[:1], known=known)[0].tolist() == labels[fits[np.argmax(scores[fits])]].tolist()
    model.save(tmp_path / "m")
    again = load(tmp_path / "m")
    assert again.states_ == model.states_ and again.score(X, y) == model.score(X, y)


# -- types of nodes ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def typed():
    """Words have tags, the sentence above them a language; features alone do not tell."""
    rng = np.random.default_rng(1)
    X, y = [], []
    for _ in range(10):
        language = int(rng.integers(2))
        tags = np.where(rng.random(3) < 0.8, language, 1 - language)
        nodes = np.zeros((4, 3))
        nodes[0, 2], nodes[1:, :2] = language + rng.normal(0, 0.3), np.eye(2)[tags] + rng.normal(0, 0.3, (3, 2))
        X.append(Graph(nodes, np.array([[0, 1], [0, 2], [0, 3]]), None, ["sentence", "word", "word", "word"]))
        y.append([("en", "fr")[language], *(("N", "V")[tag] for tag in tags)])
    return X, y


def test_types_of_nodes_have_labels_of_their_own(typed, tmp_path):
    X, y = typed
    model = GraphLabeler("crf", C=10.0, solver="lbfgs", random_state=0).fit(X, y)
    assert model.node_types_ == {"sentence": ("en", "fr"), "word": ("N", "V")}
    assert model.score(X, y) > 0.9
    allowed = [[k for k, name in enumerate(model.classes_) if name in model.node_types_[t]] for t in X[0].types]
    for x in X[:3]:
        outputs, scores = outputs_of(model, x.nodes, x.edges, np.ones((3, 1)), allowed)
        assert model.predict([x])[0].tolist() == model.classes_[outputs[np.argmax(scores)]].tolist()
        p = model.predict_marginals([x])[0]
        assert not p[0, [k for k in range(4) if k not in allowed[0]]].any() and p.sum(axis=1) == pytest.approx(np.ones(4))
    assert len(model.predict_kbest(X[:1], 100)[0]) == 16
    path = tmp_path / "typed.jsonl"
    write_graphs(path, X, y)
    data = read_graphs(path)
    assert data.graphs[0].types == list(X[0].types) and model.score(data) == model.score(X, y)
    model.save(tmp_path / "m")
    assert load(tmp_path / "m").node_types_ == model.node_types_
    without = [("x", None), (None, None)]
    for (new, _), message in zip(without, ["graph 0, node 1: its type is 'x'", "trained on nodes with types"], strict=True):
        types = ["sentence", new, "word", "word"] if new else None
        with pytest.raises(ValueError, match=message):
            model.predict([X[0]._replace(types=types)])
    with pytest.raises(ValueError, match="graph 0, node 0: the label 'N' is not one of those of type 'sentence'"):
        model.fit(X, y).suspects([X[0]], [["N", *y[0][1:]]], folds=None)
    with pytest.raises(ValueError, match="graph 0 has 4 nodes, but 2 types"):
        model.predict([X[0]._replace(types=["word"] * 2)])
    with pytest.raises(ValueError, match=r"graph 0, node 2: a type is a string or a number. Got \(\)"):
        model.predict([X[0]._replace(types=["word", "word", (), "word"])])
    with pytest.raises(ValueError, match="graph 1: its nodes have no types"):
        model.predict([X[0], X[1]._replace(types=None)])
    with pytest.raises(ValueError, match="No node of type 'word' has a label"):
        GraphLabeler().fit(X, [[labels[0], None, None, None] for labels in y])
    with pytest.raises(ValueError, match="line 1: 'types' must be a list"):
        read_graphs(json.dumps({"nodes": [[1.0]], "edges": [], "types": "word"}).encode())


@pytest.mark.parametrize(
    "wrong", [3, [["word"]], [["word", [9]]], [["word", []]], [["word", [0]], ["word", [1]]], [[["a"], [0]]]]
)
def test_types_in_a_model_file_are_checked(wrong, typed, tmp_path):
    model = GraphLabeler(max_epochs=1).fit(*typed)
    header, tensors = model._to_file()
    header["node_types"] = wrong
    model._to_file = lambda: (header, tensors)
    model.save(tmp_path / "m")
    with pytest.raises(ModelFileError, match="the types of nodes are not"):
        load(tmp_path / "m")


def test_graphs_without_nodes_need_no_types(typed):
    X, y = typed
    model = GraphLabeler(max_epochs=1).fit([*X, (np.zeros((0, 3)), [])], [*y, []])
    assert model.predict([(np.zeros((0, 3)), [])])[0].shape == (0,)
    assert len(model.node_types_) == 2 and GraphLabeler(max_epochs=1).fit(*paths(2)).node_types_ == {}
