"""Models with an L1 penalty: estimators, the interface of CRFsuite, the model file, the command line."""

import json
import warnings

import numpy as np
import pytest
from typer.testing import CliRunner

import partwise
from partwise import Classifier
from partwise.crfsuite import CRF
from partwise.files.tensors import ModelFileError, read_tensors, write_tensors
from partwise.losses.penalty import penalty
from partwise.losses.records import get_loss
from partwise.objective import losses_at
from partwise.solvers import get_solver, solve
from partwise.structures import chain_problem
from partwise.tasks.common.model_file import FORMAT, FORMAT_VERSION
from partwise.tasks.common.weight_tensors import with_zeros, without_zeros
from partwise.tasks.tagging.estimator import SequenceLabeler
from partwise.text.columns import read_columns
from small_taggers import TEMPLATES, TRAIN

RATIOS = [0.3, 1.0]


# -- estimators --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("r", RATIOS)
@pytest.mark.parametrize("intercept", [False, True])
def test_classifier_is_the_logistic_regression_of_scikit_learn(r, intercept):
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 5))
    y = (X @ rng.normal(size=(5, 3)) + 1.5 * rng.normal(size=(80, 3)) + [0.7, 0, -0.7]).argmax(1)
    ours = Classifier("crf", C=0.3, l1_ratio=r, fit_intercept=intercept, tol=1e-8, max_epochs=3000).fit(X, y)
    # our intercept is the weight of a constant feature and regularised like the others
    inputs = np.hstack([X, np.ones((80, 1))]) if intercept else X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = LogisticRegression(
            penalty="elasticnet", l1_ratio=r, C=0.3, solver="saga", fit_intercept=False, tol=1e-10, max_iter=50000
        ).fit(inputs, y)
    coefficients = np.hstack([ours.coef_, ours.intercept_[:, None]]) if intercept else ours.coef_
    np.testing.assert_allclose(coefficients, theirs.coef_, atol=2e-3)
    assert (np.abs(theirs.coef_[coefficients == 0]) < 1e-3).all() and (coefficients == 0).any()
    assert ours.solver_ == "owlqn" and ours.result_.n_nonzero == np.count_nonzero(ours.weights_)


def test_warm_start_and_model_selection():
    from sklearn.base import clone
    from sklearn.model_selection import GridSearchCV

    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 5))
    y = (X @ rng.normal(size=(5, 3))).argmax(1)
    model = Classifier("hinge", C=1.0, l1_ratio=1.0, warm_start=True, tol=1e-3, random_state=0).fit(X, y)
    first = model.result_.primal
    assert model.solver_ == "admm" and model.fit(X, y).result_.primal == pytest.approx(first, rel=2e-3)
    assert clone(model).l1_ratio == 1.0
    search = GridSearchCV(Classifier("crf", random_state=0), {"l1_ratio": [0.0, 1.0], "C": [0.01, 1.0]}, cv=2).fit(X, y)
    assert search.best_params_["C"] == 1.0


# -- CRFsuite ----------------------------------------------------------------------------------------------------------


def sequences(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X, y = [], []
    for length in rng.integers(2, 9, n):
        labels = rng.integers(0, 3, length)
        words = [3 * c + int(rng.integers(3)) if rng.random() < 0.7 else int(rng.integers(9)) for c in labels]
        X.append([{"bias": 1.0, "word": f"w{w}", "odd": w % 2 == 1} for w in words])
        y.append(["ABC"[c] for c in labels])
    return X, y


@pytest.mark.parametrize(("c1", "c2"), [(0.5, 0.0), (0.3, 0.2), (2.0, 0.01)])
def test_c1_is_that_of_crfsuite(c1, c2):
    theirs = pytest.importorskip("sklearn_crfsuite", reason="sklearn-crfsuite is not installed")
    X, y = sequences()
    parameters = {"algorithm": "lbfgs", "c1": c1, "c2": c2, "epsilon": 1e-9, "delta": 1e-12, "max_iterations": 5000}
    parameters |= {"all_possible_states": True, "all_possible_transitions": True}
    ours, reference = CRF(**parameters).fit(X, y), theirs.CRF(**parameters).fit(X, y)
    model = ours.labeler_
    assert (
        model.solver_ == "owlqn" and model.C == pytest.approx(1 / (c1 + 2 * c2)) and model.l1_ratio == pytest.approx(c1 * model.C)
    )
    # their weights in our layout: one objective for both
    state = {(name.replace("=", ":"), label): weight for (name, label), weight in reference.state_features_.items()}
    w = model.weights_.copy()
    twin = type(model)(**{**model.get_params(), "max_epochs": 1}).fit(X, y)  # with the attributes that ours has left out
    names = [name.replace("=", ":") for name in twin.feature_names_]
    twin.weights_[:] = 0.0
    twin.coef_[:] = [[state.get((name, label), 0.0) for name in names] for label in ours.classes_]
    twin.transitions_[:] = [[reference.transition_features_.get((a, b), 0.0) for b in ours.classes_] for a in ours.classes_]

    def value(weights, of=model):
        losses = losses_at(of.pack(X, y).problem, get_loss("crf"), weights)
        return penalty(weights, model.l1_ratio) + model.C * losses.sum()

    assert value(w) == pytest.approx(model.result_.primal, rel=1e-9)
    theirs_in_ours = value(twin.weights_, twin)
    assert value(w) == pytest.approx(theirs_in_ours, rel=1e-5) and value(w) <= theirs_in_ours * (1 + 1e-6)
    last = ours.training_log_.last_iteration
    assert last["loss"] == pytest.approx(reference.training_log_.last_iteration["loss"], rel=1e-4)
    assert abs(last["active_features"] - np.count_nonzero(twin.weights_)) <= 2 and last["active_features"] < len(twin.weights_)
    assert len(ours.state_features_) + len(ours.transition_features_) == last["active_features"]


def test_c1_and_c2_may_not_both_be_zero():
    X, y = sequences(5)
    with pytest.raises(ValueError, match=r"'c2' parameter of CRF must be a float in the range \(0, inf\), unless c1 > 0"):
        CRF(c1=0.0, c2=0.0).fit(X, y)
    with pytest.raises(ValueError, match="'c1' parameter of CRF is not one of algorithm 'l2sgd'"):
        CRF(algorithm="l2sgd", c1=0.1).fit(X, y)


# -- model file and command line ---------------------------------------------------------------------------------------


@pytest.fixture
def sparse_model(tmp_path):
    columns = read_columns(TRAIN)
    model = SequenceLabeler("crf", templates=[*TEMPLATES, "w[0]|pos[0]", "w[-1]|w[0]"], C=0.3, l1_ratio=1.0, dtype="float32").fit(
        columns
    )
    return model, tmp_path / "model", columns


def test_sparse_models_make_small_files(sparse_model):
    model, path, columns = sparse_model
    model.save(path)
    dense = model.weights_.nbytes
    assert model.result_.n_nonzero < 0.2 * model.weights_.size and path.stat().st_size < 0.8 * dense + 20_000
    again = partwise.load(path)
    np.testing.assert_array_equal(again.weights_, model.weights_)
    assert again.l1_ratio == 1.0 and again.weights_.dtype == np.float32 and again.weights_.flags.writeable
    assert (again.predict(columns) == model.predict(columns)) is True
    header = json.loads(
        json.loads(path.read_bytes()[8 : 8 + int.from_bytes(path.read_bytes()[:8], "little")])["__metadata__"]["partwise"]
    )
    assert header["n_weights"] == model.weights_.size and b"weights.mask" in path.read_bytes()
    model.weights_[:] = 1.0
    model.save(path)  # dense weights stay as they were
    assert b"weights.mask" not in path.read_bytes()


@pytest.mark.parametrize("n", [0, 1, 8, 9, 1000])
def test_without_zeros_and_back(n):
    rng = np.random.default_rng(n)
    weights = rng.normal(size=n) * (rng.random(n) < 0.1)
    np.testing.assert_array_equal(with_zeros(without_zeros(weights), n), weights)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda t, h: h.update(n_weights=10**15),
        lambda t, h: h.update(n_weights=-1),
        lambda t, h: h.update(n_weights="many"),
        lambda t, h: h.update(n_weights=True),
        lambda t, h: h.pop("n_weights"),
        lambda t, h: t.update({"weights.values": t["weights.values"][1:]}),
        lambda t, h: t.update({"weights.values": t["weights.values"].astype(np.int32)}),
        lambda t, h: t.update({"weights.values": np.full_like(t["weights.values"], np.nan)}),
        lambda t, h: t.update({"weights.values": t["weights.values"][None]}),
        lambda t, h: t.update({"weights.mask": t["weights.mask"][1:]}),
        lambda t, h: t.update({"weights.mask": t["weights.mask"].astype(np.int32)}),
        lambda t, h: t.update({"weights.mask": np.full_like(t["weights.mask"], 255)}),
        lambda t, h: t.pop("weights.mask"),
        lambda t, h: t.pop("weights.values"),
    ],
)
def test_spoilt_sparse_weights_are_noticed(sparse_model, spoil):
    model, path, _ = sparse_model
    model.save(path)
    header, tensors = read_tensors(str(path), FORMAT, FORMAT_VERSION)
    tensors = {key: np.array(array) for key, array in tensors.items()}
    spoil(tensors, header)
    write_tensors(path, header, tensors)
    with pytest.raises(ModelFileError, match="damaged or was altered"):
        partwise.load(path)


def test_command_line(tmp_path):
    from partwise.cli.app import app

    data, model = tmp_path / "train.txt", tmp_path / "model"
    data.write_bytes(TRAIN)

    def run(*more):
        arguments = ["train", "tag", str(data), "-o", str(model), "--json", *more]
        return CliRunner().invoke(app, arguments)

    result = run("--loss", "crf", "--l1-ratio", "1", "-C", "0.5")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["l1_ratio"] == 1.0 and told["solver"] == "owlqn" and 0 < told["nonzero"] < told["weights"]
    assert told["gap"] <= 1e-3 * told["primal"] and told["converged"]
    assert np.count_nonzero(partwise.load(model).weights_) == told["nonzero"]
    arguments = ["train", "tag", str(data), "-o", str(model), "--loss", "crf", "--l1-ratio", "1"]
    assert "weights are not zero" in CliRunner().invoke(app, arguments).output
    assert run("--l1-ratio", "1.5").exit_code == 2
    refused = run("--l1-ratio", "0.5", "--solver", "dca")
    assert refused.exit_code != 0 and "takes no L1 penalty" in refused.output
    assert "fit_stream goes on" in run("--l1-ratio", "0.5", "--stream").output


# -- real data ---------------------------------------------------------------------------------------------------------


@pytest.mark.data
@pytest.mark.slow
def test_sparse_structural_svm_on_handwriting():
    from partwise.datasets import load_ocr

    try:
        pixels, lengths, letters = load_ocr([0])
    except FileNotFoundError as error:
        pytest.skip(str(error))
    result = solve(chain_problem(pixels, lengths, letters, 26), "hinge", C=0.1, l1_ratio=1.0, tol=3e-3, max_epochs=300)
    assert result.converged and result.primal == pytest.approx(398.9, rel=3e-3) and 1000 < result.n_nonzero < 1500
    assert get_solver("auto", None, get_loss("hinge"), 1.0).name == "admm"
