"""`GraphLabeler`: graphs, pictures, multilabel; answers, the model file, scikit-learn's habits."""

from __future__ import annotations

import importlib.util
import itertools
import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from graph_cases import paths, several
from partwise import Classifier, GraphLabeler, chain_problem, solve
from partwise.datasets import Graph, make_pictures
from partwise.engine.compilation import interpret
from partwise.files.tensors import read_tensors, write_tensors
from partwise.structures.factor_graph import packing
from partwise.structures.factor_graph.packing import plan_order
from partwise.tasks.common.model_file import FORMAT, FORMAT_VERSION, ModelFileError, load
from partwise.tasks.graphs.data import read_data
from partwise.tasks.graphs.files import GraphSet
from partwise.tasks.graphs.model import arrange_picture


@pytest.fixture(autouse=True)
def interpreted():
    """Graphs are tiny here: compiling takes longer than interpreting."""
    with interpret():
        yield


def rings(n=3, seed=0):
    """Cycles of four nodes: the search is AD3's."""
    X, y = paths(n, seed)
    ring = np.array([[0, 1], [1, 2], [2, 3], [3, 0]])
    return [(np.concatenate([x[0], x[0]])[:4], ring) for x in X], [np.concatenate([labels, labels])[:4] for labels in y]


@pytest.fixture(scope="module")
def fitted():
    with interpret():
        return GraphLabeler("crf", C=1.0, solver="lbfgs", random_state=0).fit(*paths())


def test_it_learns(fitted):
    X, y = paths(4, seed=1)
    assert fitted.score(X, y) > 0.9 and fitted.kind_ == "graphs" and fitted.classes_.tolist() == ["a", "b", "c"]
    for found, labels in zip(fitted.predict(X), y, strict=True):
        assert found.shape == labels.shape and found.dtype == labels.dtype
    assert fitted.predict([Graph(np.zeros((0, 3)), [])])[0].shape == (0,)
    assert fitted.predict([([[0.0, 0.0, 1.0]], [])])[0].tolist() == ["c"]
    assert fitted.edge_names_ == ["edge"] and fitted.coef_.shape == (3, 3) and fitted.intercept_.shape == (3,)


def score_of(model, x, edges, rows, codes):
    """By the formula."""
    total = sum(x[v] @ model.coef_[:, k] + model.intercept_[k] for v, k in enumerate(codes))
    return total + sum(r @ model.pairwise_[:, codes[a], codes[b]] for (a, b), r in zip(edges, rows, strict=True))


@pytest.mark.parametrize("pairwise", ["full", "symmetric", "potts"])
def test_answers_are_the_best_of_all(pairwise):
    X, y = paths(3, edge_features=True)
    X = [(nodes, edges[:, ::-1], features) for nodes, edges, features in X]
    model = GraphLabeler(C=1.0, pairwise=pairwise, max_epochs=3, random_state=0).fit(X, y)
    nodes, edges, features = X[0]
    rows = np.concatenate([features, np.ones((len(edges), 1))], axis=1)
    assert model.edge_names_ == ["feature 0", "edge"] and model.pairwise_.shape == (2, 3, 3)
    outputs = list(itertools.product(range(3), repeat=len(nodes)))
    scores = np.array([score_of(model, nodes, edges, rows, codes) for codes in outputs])
    best = np.argsort(-scores)[:3]
    assert model.predict(X[:1])[0].tolist() == [model.classes_[k] for k in outputs[best[0]]]
    certificate = model.certify(X[:1])
    assert certificate.proven.all() and certificate.values[0] == pytest.approx(scores[best[0]])
    few = model.predict_kbest(X[:1], k=3)[0]
    assert [value for _, value in few] == pytest.approx(scores[best])
    tables = model.pairwise_
    assert np.array_equal(tables, tables.transpose(0, 2, 1)) == (pairwise != "full")
    if pairwise == "potts":
        assert not tables[:, ~np.eye(3, dtype=bool)].any()


def test_probabilities(fitted):
    X, _ = paths(2, seed=2)
    nodes, edges = X[0]
    outputs = list(itertools.product(range(3), repeat=len(nodes)))
    weight = np.exp([score_of(fitted, nodes, edges, np.ones((len(edges), 1)), codes) for codes in outputs])
    expected = np.zeros((len(nodes), 3))
    for codes, p in zip(outputs, weight / weight.sum(), strict=True):
        expected[np.arange(len(nodes)), codes] += p
    np.testing.assert_allclose(fitted.predict_marginals(X)[0], expected, atol=1e-8)
    margin = GraphLabeler(max_epochs=1).fit(*paths(2))
    with pytest.raises(ValueError, match="fits scores, not probabilities"):
        margin.predict_marginals(X)


def no_two_alike(n=3, nodes=7):
    """Everybody next to everybody, of fewer labels than nodes, and nobody wants to be like another: no relaxation is tight."""
    edges = np.array([(a, b) for a in range(nodes) for b in range(a)])
    return [(np.zeros((nodes, 1)), edges)] * n, [np.array(list("abcabca"))[:nodes]] * n


def test_cycles_are_told_of():
    X, y = no_two_alike()
    quick = GraphLabeler(max_epochs=2, search={"iterations": 2}, random_state=0).fit(X, y)
    certificate = quick.certify(X)
    assert quick.not_proven_ > 0 and (certificate.bounds >= certificate.values - 1e-9).all()
    X, y = rings()
    exact = GraphLabeler(inference="exact", max_epochs=2, search={"iterations": 2}, random_state=0).fit(X, y)
    assert exact.not_proven_ == 0 and exact.certify(X).proven.all()
    with pytest.warns(UserWarning, match="did not converge in 1 sweeps on 3 of 3 of the training graphs"):
        rough = GraphLabeler("crf", solver="lbfgs", search={"sweeps": 1}, max_epochs=1, tol=0.0).fit(X, y)
    assert rough.not_converged_ == 3
    with pytest.warns(UserWarning, match="on 3 of 3 of these graphs"):
        rough.predict_marginals(X)


def test_unknown_labels():
    X, y = paths(5)
    given = [labels.tolist() for labels in y]
    given[0][1] = given[2][0] = None
    model = GraphLabeler(C=1.0, max_epochs=5, random_state=0).fit(X, given)
    assert model.score(X, y) > 0.9 and model.node_scores(X, given).nodes == sum(map(len, y)) - 2
    codes = [np.array([-1 if label is None else ord(label) for label in labels]) for labels in given]
    same = GraphLabeler(C=1.0, max_epochs=5, unknown=-1, random_state=0).fit(X, codes)
    np.testing.assert_array_equal(same.weights_, model.weights_)


def test_costs_of_classes():
    X, y = paths(2)
    model = GraphLabeler(class_weight={"a": 3.0, "b": 0.5}, max_epochs=1).fit(X, y)
    given = read_data(X, y, 4, None)
    cost = dict(zip("abc", (3.0, 0.5, 1.0), strict=True))
    assert model._problem(given, model._codes(given)).weight.tolist() == [cost[label] for labels in y for label in labels]
    with pytest.raises(ValueError, match="'class_weight' parameter of GraphLabeler names 'z'"):
        GraphLabeler(class_weight={"z": 1.0}).fit(X, y)


@pytest.mark.parametrize(
    ("loss", "solver"), [("hinge", "sdm"), ("softmax_margin", "dca"), ("ramp", "auto"), ("perceptron", "auto")]
)
def test_losses_and_solvers(loss, solver):
    X, y = paths(4)
    assert GraphLabeler(loss, C=1.0, solver=solver, max_epochs=15, tol=0.05, random_state=0).fit(X, y).score(X, y) > 0.9


# ---------------------------------------------------------------------------------------------------------------------
# Special cases of other estimators
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("loss", "solver", "tol"), [("crf", "lbfgs", 1e-6), ("hinge", "sdm", 1e-3)])
def test_a_path_is_a_sequence(loss, solver, tol):
    X, y = paths(4)
    model = GraphLabeler(loss, C=0.5, solver=solver, tol=tol, max_epochs=100, random_state=0).fit(X, y)
    rows = np.concatenate([np.concatenate([nodes, np.ones((len(nodes), 1))], axis=1) for nodes, _ in X])
    gold = np.concatenate([np.searchsorted(model.classes_, labels) for labels in y])
    chains = chain_problem(rows, list(map(len, y)), gold, 3, use_start=False, use_stop=False)
    result = solve(chains, loss, solver, 0.5, tol=tol, max_epochs=100)
    assert result.converged and model.result_.primal == pytest.approx(result.primal, rel=2 * tol)


def test_nodes_alone_are_classes():
    X, y = paths(4)
    alone = [(nodes[k : k + 1], []) for nodes, _ in X for k in range(len(nodes))]
    labels = [label for some in y for label in some]
    model = GraphLabeler(C=0.7, solver="sdm", tol=1e-5, max_epochs=300, random_state=0).fit(alone, [[label] for label in labels])
    classes = Classifier(C=0.7, solver="sdm", tol=1e-5, max_epochs=300, random_state=0)
    classes.fit(np.concatenate([nodes for nodes, _ in X]), labels)
    assert model.result_.primal == pytest.approx(classes.result_.primal, rel=1e-4)
    np.testing.assert_allclose(model.coef_.T, classes.coef_, atol=0.01)


# ---------------------------------------------------------------------------------------------------------------------
# Pictures
# ---------------------------------------------------------------------------------------------------------------------


def test_pictures():
    X, y = make_pictures(3, seed=1, size=(3, 4), n_labels=3, noise=0.1)
    y = np.where(np.arange(4) > 2, 9, y)  # labels of any kind; the last column is not known
    model = GraphLabeler(C=1.0, neighbours=8, contrast=True, unknown=9, max_epochs=3, search={"iterations": 20}, random_state=0)
    model.fit(X, y)
    assert model.edge_names_ == ["right", "down", "down right", "down left", "contrast"] and model.classes_.tolist() == [0, 1, 2]
    found = model.predict(list(X[:2]) + [X[0, :1, :2]])
    assert [labels.shape for labels in found] == [(3, 4), (3, 4), (1, 2)] and model.score(X, y) > 0.6
    with pytest.raises(ValueError, match="trained on pictures. Got graphs"):
        model.predict([(X[0, 0], [])])


def test_pictures_of_one_size_are_arranged_once(monkeypatch):
    """Neither each picture nor each call asks anew in which order its factors are visited."""
    calls = []

    def count(graph, order, parents):
        calls.append(len(graph.states))
        return plan_order(graph, order, parents)

    monkeypatch.setattr(packing, "plan_order", count)
    arrange_picture.cache_clear()
    X, y = make_pictures(4, seed=1, size=(3, 5), n_labels=2, noise=0.1)
    model = GraphLabeler(max_epochs=1, search={"iterations": 5}).fit(X, y)
    assert calls == [15]
    model.predict(X)
    model.predict(X[:1])
    model.score(X, y)
    assert calls == [15]
    model.predict([*X, X[0, :2]])
    assert calls == [15, 10]
    calls.clear()
    GraphLabeler(max_epochs=1).fit(*several(6))
    assert calls == [3]  # the labels of all examples are joined alike


# ---------------------------------------------------------------------------------------------------------------------
# Multilabel
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("edges", "n"), [("tree", 2), ("full", 3), ("none", 0)])
def test_multilabel(edges, n):
    X, y = several()
    model = GraphLabeler(C=1.0, label_edges=edges, max_epochs=5, random_state=0).fit(X, y)
    assert model.kind_ == "multilabel" and len(model.label_edges_) == n == len(model.edge_names_)
    assert model.predict(X).shape == y.shape and model.score(X, y) > 0.9 and model.coef_.shape == (3, 4, 2)
    scores = model.node_scores(X, y)
    assert scores.complete == (model.predict(X) == y).all(axis=1).mean() and scores.graphs == len(X)


def test_multilabel_with_sparse_features_and_unknown_labels():
    import scipy.sparse

    X, y = several()
    dense = GraphLabeler("crf", C=1.0, solver="lbfgs").fit(X, y)
    sparse = GraphLabeler("crf", C=1.0, solver="lbfgs").fit(scipy.sparse.csr_matrix(X), y)
    np.testing.assert_allclose(sparse.weights_, dense.weights_, atol=1e-8)
    assert dense.predict_marginals(X).shape == y.shape and ((dense.predict_marginals(X) > 0.5) == dense.predict(X)).mean() > 0.95
    part = np.where(np.random.default_rng(0).random(y.shape) < 0.2, -1, y)
    assert GraphLabeler(C=1.0, unknown=-1, max_epochs=5, random_state=0).fit(X, part).score(X, y) > 0.85
    with pytest.raises(ValueError, match="matrix of 0 and 1. Got 2"):
        GraphLabeler().fit(X, y + 1)
    with pytest.raises(ValueError, match="y must be a matrix"):
        GraphLabeler().fit(X, y[:, 0])


# ---------------------------------------------------------------------------------------------------------------------
# Bad input
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"C": 0}, r"'C' parameter of GraphLabeler must be a float in the range \(0, inf\)"),
        ({"pairwise": "x"}, "'full', 'symmetric', 'antisymmetric', 'potts', or a dict"),
        ({"inference": 1}, "'auto' or 'exact'"),
        ({"search": {"exact": True}}, "'search' parameter"),
        ({"search": {"damping": 2}}, "'search' parameter"),
        ({"neighbours": 6}, "4 or 8"),
        ({"contrast": 1}, "a bool"),
        ({"label_edges": "ring"}, "'tree', 'full' or 'none'"),
    ],
)
def test_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        GraphLabeler(**parameters).fit(*paths(2))


NODES = [[0.0, 1.0], [1.0, 0.0]]


@pytest.mark.parametrize(
    ("X", "y", "error", "message"),
    [
        ("abc", None, TypeError, "a list of graphs, a list of pictures, or a 2-D array"),
        ([], [], ValueError, "at least one graph"),
        ([(NODES, [])], None, ValueError, "no labels to learn from"),
        ([[*NODES[0], *NODES[1], 0.0]], [[0, 1]], TypeError, "graph 0 must be a pair"),
        ([(NODES, [])], [[0, 1]] * 2, ValueError, "X has 1 graphs, but y has labels of 2"),
        (
            [(NODES, []), (NODES, [[0, 1], [1, 2]])],
            [[0, 1]] * 2,
            ValueError,
            r"graph 1, edge 1: nodes \[1, 2\], but the graph has 2",
        ),
        ([(NODES, [[0, 0]])], [[0, 1]], ValueError, "graph 0, edge 0: it joins node 0 with itself"),
        ([(NODES, [[0.5, 1]])], [[0, 1]], ValueError, "graph 0: edges must be an integer array"),
        ([(NODES, [[0, 1]], [[1.0], [2.0]])], [[0, 1]], ValueError, "graph 0 has 1 edges, but 2 rows of edge features"),
        ([(NODES, [[0, 1]], [[np.inf]])], [[0, 1]], ValueError, "graph 0, edge 0, feature 0: features must be finite"),
        ([([[0.0, np.nan]], [])], [[0]], ValueError, "graph 0, node 0, feature 1: features must be finite numbers. Got NaN"),
        ([(NODES, []), ([[1.0]], [])], [[0, 1], [0]], ValueError, "graph 1: its nodes have 1 features, those of others 2"),
        ([([["x"]], [])], [[0]], ValueError, "graph 0: features must be numbers"),
        (
            [(NODES, [])],
            [[0, 1, 0]],
            ValueError,
            r"graph 0: expected labels of shape \(2,\), one for each node. Got shape \(3,\)",
        ),
        ([(NODES, [])], [[0, 0]], ValueError, "at least two labels; y has one only: 0"),
        ([(NODES, [])], [[None, None]], ValueError, "no labels to learn from"),
        ([(NODES, [])], [[0, {0, 1}]], ValueError, "graph 0, node 1: a node has one label"),
        (np.full((1, 2, 2, 1), np.nan), np.zeros((1, 2, 2)), ValueError, "picture 0, row 0, column 0, feature 0"),
        (np.zeros((1, 2, 2, 1)), np.zeros((1, 2, 3)), ValueError, r"picture 0: expected labels of shape \(2, 2\)"),
        (
            [np.zeros((2, 2))],
            [np.zeros((2, 2))],
            ValueError,
            r"picture 0 must be an array of numbers \(height, width, features\)",
        ),
    ],
)
def test_bad_input(X, y, error, message):
    with pytest.raises(error, match=message):
        GraphLabeler(max_epochs=1).fit(X, y)


def test_bad_input_to_a_model(fitted):
    with pytest.raises(ValueError, match="X has 2 features of nodes, but GraphLabeler is expecting 3"):
        fitted.predict([(NODES, [])])
    with pytest.raises(ValueError, match="X has 1 features of edges, but GraphLabeler is expecting 0"):
        fitted.predict(paths(1, edge_features=True)[0])
    with pytest.raises(ValueError, match="graph 0, node 1: the label 'q' is not one of 'a', 'b', 'c'"):
        fitted.score([(np.eye(3)[:2], [])], [["a", "q"]])
    with pytest.raises(ValueError, match="k must be an int"):
        fitted.predict_kbest(paths(1)[0], k=0)
    changed = GraphLabeler(max_epochs=1, random_state=0).fit(*paths(2))
    changed.pairwise = "potts"
    with pytest.raises(ValueError, match="was changed after fitting"):
        changed.predict(paths(1)[0])
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        GraphLabeler().predict(paths(1)[0])


# ---------------------------------------------------------------------------------------------------------------------
# The model file, scikit-learn
# ---------------------------------------------------------------------------------------------------------------------


def test_the_model_file(fitted, tmp_path):
    pictures, truth = make_pictures(2, size=(3, 3), n_labels=2)
    X, y = several()
    models = [
        (fitted, paths(2, seed=5)[0]),
        (GraphLabeler(contrast=True, pairwise="potts", search={"iterations": 50}, max_epochs=1).fit(pictures, truth), pictures),
        (GraphLabeler(max_epochs=1, label_edges="full", pairwise="symmetric").fit(X, y), X),
    ]
    for model, data in models:
        model.save(tmp_path / "model")
        for other in (GraphLabeler.load(tmp_path / "model"), load(tmp_path / "model", plain=True)):
            assert all(np.array_equal(a, b) for a, b in zip(other.predict(data), model.predict(data), strict=True))
            assert other.parameters() == model.parameters() and other.edge_names_ == model.edge_names_
            assert other.contrast_scale_ == model.contrast_scale_ and np.array_equal(other.label_edges_, model.label_edges_)
    assert models[1][0].contrast_scale_ != 1.0
    content = (tmp_path / "model").read_bytes()
    (tmp_path / "damaged").write_bytes(content[:-8])
    with pytest.raises(ModelFileError):
        GraphLabeler.load(tmp_path / "damaged")
    header, tensors = read_tensors(str(tmp_path / "model"), FORMAT, FORMAT_VERSION)
    write_tensors(tmp_path / "altered", json.loads(json.dumps(header).replace("multilabel", "something?")), tensors)
    with pytest.raises(ModelFileError, match="kind"):
        GraphLabeler.load(tmp_path / "altered")


def test_scikit_learn_habits():
    from sklearn.base import clone
    from sklearn.model_selection import GridSearchCV

    X, y = paths(6)
    model = clone(GraphLabeler(C=0.5, max_epochs=2, random_state=0))
    search = GridSearchCV(model, {"pairwise": ["full", "potts"]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.5
    many = GridSearchCV(GraphLabeler(max_epochs=1), {"C": [0.1, 1.0]}, cv=2).fit(*several(12))
    assert many.best_score_ > 0.5
    warm = GraphLabeler(max_epochs=1, warm_start=True, random_state=0).fit(X, y)
    before = warm.weights_.copy()
    assert not np.array_equal(warm.fit(X, y).weights_, before)
    with pytest.raises(ValueError, match="the label 'z' is not one of"):
        warm.fit(X[:1], [["z"] * len(y[0])])
    stopped = GraphLabeler(max_epochs=2, early_stopping=True, validation_fraction=0.5, random_state=0)
    stopped.fit(X, y, sample_weight=[1, 1, 0, 2, 1, 1])
    assert 0.0 <= stopped.result_.history[-1].validation <= 1.0
    told = GraphLabeler(max_epochs=2, random_state=0).fit(X, y, validation=paths(2, seed=3))
    assert told.result_.history[-1].validation >= 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert GraphLabeler(max_epochs=1, n_jobs=2, random_state=0).fit(X, y).predict(X)[0].shape == y[0].shape


def test_the_example_runs(monkeypatch, capsys, tmp_path):
    path = Path(__file__).parents[3] / "examples" / "segment_pictures.py"
    spec = importlib.util.spec_from_file_location("partwise_example_segment_pictures", path)
    example = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, example)
    spec.loader.exec_module(example)
    found = example.main(tmp_path / "some.png", n_train=2, n_test=1, size=(3, 3), noise=0.1, epochs=2)
    assert len(found) == 3 and "proven to be the best" in capsys.readouterr().out
    pytest.importorskip("matplotlib")
    assert (tmp_path / "some.png").read_bytes()[:4] == b"\x89PNG"


# -- what is forbidden, and what is known ------------------------------------------------------------------------------


def best_by_enumeration(model, x, edges, barred, known):
    """The best labelling among those that obey."""
    names, rows = model.classes_.tolist(), np.ones((len(edges), 1))
    best, found = -np.inf, None
    for codes in itertools.product(range(len(names)), repeat=len(x)):
        if any((names[codes[a]], names[codes[b]]) in barred for a, b in edges):
            continue
        if any(label is not None and names[k] != label for k, label in zip(codes, known, strict=True)):
            continue
        score = score_of(model, np.asarray(x), edges, rows, codes)
        if score > best:
            best, found = score, [names[k] for k in codes]
    return found


@pytest.mark.parametrize("cases", [paths, rings])
def test_constraints_and_known_labels_by_enumeration(cases):
    X, _ = cases(4, seed=3)
    model = GraphLabeler("crf", C=1.0, solver="lbfgs", random_state=0, inference="exact").fit(*cases())
    free = model.predict(X)
    model.constraints = barred = [("a", "a"), ("b", "c"), ("c", "c")]
    known = [[None, "a", *[None] * (len(x) - 2)] for x, _ in X]
    answers = [model.predict(X), model.predict(X, known=known)]
    for given, found in zip(([[None] * len(x) for x, _ in X], known), answers, strict=True):
        for (x, edges), labels, told in zip(X, found, given, strict=True):
            assert labels.tolist() == best_by_enumeration(model, x, edges, set(barred), told)
    assert any(a.tolist() != b.tolist() for a, b in zip(free, answers[0], strict=True))
    for p, labels in zip(model.predict_marginals(X[:2], known=known[:2]), answers[1], strict=False):
        np.testing.assert_allclose(p[1], [1.0, 0.0, 0.0], atol=1e-9)
        assert labels[1] == "a"
    assert model.predict_kbest(X[:1], 2, known=known[:1])[0][0][0].tolist() == answers[1][0].tolist()
    assert model.certify(X, known=known).values == pytest.approx(
        [best[0][1] for best in model.predict_kbest(X, 1, known=known)], abs=1e-6
    )


def test_labels_that_come_with_the_graphs_are_not_known(fitted):
    X, y = paths(3, seed=4)
    wrong = [np.roll(np.array(["a", "b", "c"]), 1)[np.searchsorted(["a", "b", "c"], labels)] for labels in y]
    told = GraphSet([Graph(*x) for x in X], wrong, [], "text")
    for name in ("predict", "predict_marginals"):
        for a, b in zip(getattr(fitted, name)(told), getattr(fitted, name)(X), strict=True):
            np.testing.assert_array_equal(a, b)
    assert fitted.certify(told).values.tolist() == fitted.certify(X).values.tolist()
    assert fitted.score(told) == fitted.score(X, wrong)


def test_constraints_in_training_and_where_they_contradict():
    X, y = paths(6)
    seen = {
        pair
        for (_, edges), labels in zip(X, y, strict=True)
        for pair in zip(labels[edges[:, 0]], labels[edges[:, 1]], strict=True)
    }
    never = [(a, b) for a in "abc" for b in "abc" if (a, b) not in seen]
    model = GraphLabeler(C=1.0, max_epochs=2, constraints=never, random_state=0).fit(X, y)
    found = model.predict(X)
    assert never and all((labels[a], labels[b]) in seen for (_, edges), labels in zip(X, found, strict=True) for a, b in edges)
    both = GraphLabeler(pairwise="potts", constraints=[("a", "b")])
    with pytest.raises(ValueError, match=r"graph \d+, node \d+ has the label 'a' and graph \d+, node \d+ the label 'b'"):
        both.fit(X, y)
    with pytest.raises(ValueError, match="constraints.*names 'z', which is not one of the labels"):
        GraphLabeler(constraints=[("a", "z")]).fit(X, y)
    with pytest.raises(ValueError, match="must hold pairs of labels. Got 'a'"):
        GraphLabeler(constraints=["a"]).fit(X, y)
    known = [[None] * len(labels) for labels in y]
    known[2][:2] = never[0]
    with pytest.raises(ValueError, match="graph 2: no labelling obeys the constraints and the known labels"):
        model.predict(X, known=known)
    with pytest.raises(ValueError, match="graph 0, node 1: the label 'z'"):
        model.predict(X[:1], known=[[None, "z", *[None] * (len(y[0]) - 2)]])
