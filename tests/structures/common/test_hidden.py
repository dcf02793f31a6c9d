"""Hidden states of labels and partially labelled classification: against enumeration over labels and states, and end to end."""

import itertools
import math

import numpy as np
import pytest

from partwise import Classifier, SequenceLabeler
from partwise.engine.compilation import interpret
from partwise.files.tensors import read_tensors, write_tensors
from partwise.losses.records import LOSSES, Family, RescaledRamp
from partwise.objective import losses_at, objective
from partwise.solvers import CCCP, solve
from partwise.solvers.sdm import SDM
from partwise.structures import ChainProblem, MulticlassProblem, PartialChainProblem, chain_problem, multiclass_problem
from partwise.structures.common.hidden import States, small_weights
from partwise.tasks.common import model_file
from partwise.tasks.tagging.inspection import explain, find_features, summary, top_features, transitions
from partwise.text.columns import ColumnFile, read_columns
from small_taggers import TEMPLATES, TEST, TRAIN

pytestmark = pytest.mark.interpreted

COSTS = np.array([[0.0, 1.0, 3.0], [0.5, 0.0, 1.0], [2.0, 1.0, 0.0]])
SMOOTH = [LOSSES["hinge"], LOSSES["crf"], LOSSES["softmax_margin"], Family(3.0, 0.5)]


# ---------------------------------------------------------------------------------------------------------------------
# Losses and oracles against enumeration
# ---------------------------------------------------------------------------------------------------------------------


def by_hand(x, w, S, y, h, hidden):
    """Score of labels y with states h, from the weights alone: features, transitions with a begin symbol, stop."""
    w = w.reshape(-1, S)
    d = x.shape[1]
    states = [c * hidden + k for c, k in zip(y, h, strict=True)]
    total, before = 0.0, S
    for row, s in zip(x, states, strict=True):
        total += row @ w[:d, s] + w[d + before, s]
        before = s
    return total + (w[-1, before] if states else 0.0)


def soft(values, beta):
    values = np.array(values)
    return values.max() if math.isinf(beta) else np.logaddexp.reduce(beta * values) / beta


@pytest.mark.parametrize("loss", SMOOTH, ids=lambda loss: loss.name)
def test_the_latent_loss_of_chains_is_that_of_enumeration(loss):
    """max_{y,h} [s(y, h) + l(y)] - max_h s(y_i, h), and its soft twins, with costs, constraints and partial labels."""
    rng = np.random.default_rng(0)
    L, H, lengths = 3, 2, [2, 3, 1]
    x, gold = rng.normal(size=(6, 2)), np.array([0, 2, 1, 3, 1, 4])  # 3: label 0 or 2; 4: unknown
    known = np.array([[True, False, True], [True, True, True]])
    forbidden = [(1, 2), (None, 2), (0, None)]
    states = States(L, H)
    truth, sets = states.truth(gold, known)
    problem = chain_problem(
        x, lengths, truth, states.n, costs=states.costs(COSTS), known=sets, forbidden=states.transitions(forbidden)
    )
    w = 0.3 * rng.normal(size=(2 + states.n + 2) * states.n)
    fits = np.vstack([np.eye(L, dtype=bool), known])
    expected, first = [], 0
    for n in lengths:
        everything, acceptable = [], []
        for y in itertools.product(range(L), repeat=n):
            if set(zip([None, *y], [*y, None], strict=True)) & set(forbidden):
                continue
            allowed = [fits[g] for g in gold[first : first + n]]
            cost = sum(COSTS[fine, c].min() for fine, c in zip(allowed, y, strict=True))
            for h in itertools.product(range(H), repeat=n):
                s = by_hand(x[first : first + n], w, states.n, y, h, H)
                everything.append(s + loss.gamma * cost)
                if all(fine[c] for fine, c in zip(allowed, y, strict=True)):
                    acceptable.append(s)
        expected.append(soft(everything, loss.beta) - soft(acceptable, loss.beta))
        first += n
    with interpret():
        np.testing.assert_allclose(losses_at(problem, loss, w), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("loss", SMOOTH, ids=lambda loss: loss.name)
def test_the_latent_loss_of_classes_is_that_of_enumeration(loss):
    rng = np.random.default_rng(0)
    x, gold, H = rng.normal(size=(4, 2)), np.array([0, 2, 1, 3]), 3
    known = np.array([[False, True, True]])
    states = States(3, H)
    truth, sets = states.truth(gold, known)
    problem = multiclass_problem(x, truth, states.n, states.costs(COSTS), known=sets)
    w = 0.3 * rng.normal(size=2 * states.n)
    expected = []
    for row, fine in zip(x, np.vstack([np.eye(3, dtype=bool), known])[gold], strict=True):
        scores = (row @ w.reshape(2, -1)).reshape(3, H)
        costs = COSTS[fine].min(0)
        expected.append(soft((scores + loss.gamma * costs[:, None]).ravel(), loss.beta) - soft(scores[fine].ravel(), loss.beta))
    with interpret():
        np.testing.assert_allclose(losses_at(problem, loss, w), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("loss", "solver"), [("hinge", "dca"), ("hinge", "sdm"), ("crf", "lbfgs")])
def test_a_trivial_hidden_part_is_full_supervision(loss, solver):
    """Two states, one of which is never allowed: the same losses, and the same model."""
    rng = np.random.default_rng(1)
    x, lengths = rng.normal(size=(12, 3)), [3] * 4
    gold = x[:, :3].argmax(1)
    states = States(3, 2)
    truth, sets = states.truth(gold, None)
    plain = chain_problem(x, lengths, gold, 3, costs=COSTS)
    first = np.tile([True, False], (12, 3))
    latent = chain_problem(x, lengths, truth, 6, costs=states.costs(COSTS), known=sets, allowed=first)
    assert type(plain) is ChainProblem and type(latent) is PartialChainProblem
    w = rng.normal(size=(3 + 4 + 1) * 3)

    def embedded(w):
        w = w.reshape(-1, 3)
        wide = np.zeros((3 + 7 + 1, 6))
        wide[:3, ::2], wide[3:9:2, ::2], wide[9, ::2], wide[10, ::2] = w[:3], w[3:6], w[6], w[7]
        return wide.reshape(-1)

    with interpret():
        for one in SMOOTH:
            np.testing.assert_allclose(losses_at(latent, one, embedded(w)), losses_at(plain, one, w), rtol=1e-12, atol=1e-14)
        a, b = (solve(p, loss, solver, C=0.3, max_epochs=40, tol=1e-5) for p in (plain, latent))
        if solver == "sdm":  # CCCP takes other steps to the same optimum
            assert isinstance(b.solver, CCCP) and b.primal == pytest.approx(a.primal, rel=1e-4)
            np.testing.assert_allclose(b.w, embedded(a.w), atol=0.03)
        else:
            np.testing.assert_allclose(b.w, embedded(a.w), rtol=1e-7, atol=1e-9)


def test_one_hidden_state_changes_nothing():
    states, costs, gold = States(3, 1), np.ones((3, 3)), np.arange(3)
    assert states.truth(gold, None) == (gold, None) and states.costs(costs) is costs and states.costs(None) is None
    assert states.sets(costs) is costs and states.labels(gold) is gold and states.total(costs) is costs
    assert states.label_costs(costs) is costs and states.transitions([(None, 1), (2, None)]) == [(None, 1), (2, None)]
    X, y = two_clusters(40)
    with interpret():
        a, b = (Classifier(random_state=0, max_epochs=2, solver="dca", **more).fit(X, y) for more in ({}, {"hidden": 1}))
    np.testing.assert_array_equal(a.weights_, b.weights_)
    assert a.states_ == [0, 1, 2] and type(a._problem(X, a._truth(y, a.classes_), a.classes_)) is MulticlassProblem


def test_complete_partial_labels_are_full_supervision_through_cccp():
    """One unknown sequence of no weight makes the problem partial: CCCP-SDM finds the optimum of the labelled rest."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(30, 4))
    gold = (x[:, :3] + 0.5 * rng.normal(size=(30, 3))).argmax(1)
    plain = chain_problem(x, [3] * 10, gold, 3)
    more = chain_problem(np.vstack([x, x[:3]]), [3] * 11, [*gold, 3, 3, 3], 3, known=np.ones((1, 3), bool))
    weight = [1.0] * 10 + [0.0]
    with interpret():
        a = solve(plain, "hinge", "sdm", C=0.3, tol=1e-5)
        for solver in (CCCP(SDM()), "bcfw"):
            b = solve(more, "hinge", solver, C=0.3, tol=1e-4, max_epochs=400, sample_weight=weight)
            assert b.primal == pytest.approx(a.primal, rel=3e-4) and b.primal >= a.dual


# ---------------------------------------------------------------------------------------------------------------------
# Where hidden states are worth it
# ---------------------------------------------------------------------------------------------------------------------


def two_clusters(n, seed=0):
    """Three classes, each two clusters on opposite sides of the origin: no linear classifier tells them apart."""
    rng = np.random.default_rng(seed)
    centre = 3.0 * np.eye(3, 4)
    y = rng.integers(0, 3, n)
    return centre[y] * rng.choice([-1, 1], n)[:, None] + rng.normal(size=(n, 4)), y


def modes(n, seed=0, length=10):
    """Sequences of two labels, each with two modes that last a while; a token looks like its mode, as exclusive or."""
    rng = np.random.default_rng(seed)
    where = np.array([[1, 1], [-1, -1], [1, -1], [-1, 1]])
    X, Y = [], []
    for _ in range(n):
        states = [rng.integers(4)]
        while len(states) < length:
            states.append(states[-1] if rng.random() < 0.7 else rng.integers(4))
        X.append(where[states] + 0.8 * rng.normal(size=(length, 2)))
        Y.append([("even", "odd")[s // 2] for s in states])
    return X, Y


@pytest.mark.parametrize(("loss", "solver"), [("hinge", "sdm"), ("crf", "lbfgs")])
def test_classes_of_two_clusters(loss, solver):
    (X, y), (Xt, yt) = two_clusters(300), two_clusters(600, 1)
    plain = Classifier(loss, C=0.1, solver=solver).fit(X, y)
    latent = Classifier(loss, C=0.1, solver=solver, hidden=2, random_state=0).fit(X, y)
    assert plain.score(Xt, yt) < 0.6 and latent.score(Xt, yt) > 0.9
    assert latent.coef_.shape == (6, 4) and latent.states_[:3] == ["0/1", "0/2", "1/1"]
    if loss == "hinge":  # CCCP: each round, the convex problem of the best completions
        values = [one.objective for one in latent.result_.rounds]
        assert len(values) >= 2 and all(b <= a for a, b in itertools.pairwise(values))
        truth = latent._truth(y, latent.classes_)
        problem = latent._problem(X, truth, latent.classes_)
        value = objective(problem, LOSSES["hinge"], np.full(len(y), 0.1), latent.weights_)
        assert value.primal == pytest.approx(values[-1], rel=1e-9) and latent.result_.primal == pytest.approx(values[-1])
        with pytest.raises(ValueError, match="fits scores, not probabilities"):
            latent.predict_marginals(Xt)
        before = latent.predict(Xt)
        p = latent.calibrate(Xt, yt).predict_proba(Xt)
        np.testing.assert_array_equal(latent.predict(Xt), before)
        assert -np.log(p[np.arange(600), yt]).mean() < 0.4
    else:
        p = latent.predict_proba(Xt)
        np.testing.assert_array_equal(p.argmax(1), latent.predict(Xt))
        scores = latent.decision_function(Xt)
        np.testing.assert_allclose(p, np.exp(scores) / np.exp(scores).sum(1, keepdims=True), rtol=1e-9)
        np.testing.assert_allclose(latent.decision_value(Xt, yt), scores[np.arange(600), yt])


@pytest.mark.parametrize(("loss", "solver"), [("hinge", "sdm"), ("crf", "lbfgs"), ("hinge", "dca")])
def test_labels_of_two_modes(loss, solver):
    (X, Y), (Xt, Yt) = modes(80), modes(60, 1)
    plain = SequenceLabeler(loss, C=0.1, solver=solver).fit(X, Y)
    latent = SequenceLabeler(loss, C=0.1, solver=solver, hidden=2, random_state=0).fit(X, Y)
    assert plain.score(Xt, Yt) < 0.65 and latent.score(Xt, Yt) > 0.83
    assert latent.states_ == ["even/1", "even/2", "odd/1", "odd/2"] and latent.transitions_.shape == (4, 4)
    values = [one.objective for one in latent.result_.rounds]
    assert all(b <= a for a, b in itertools.pairwise(values)) and (len(values) > 1) == (solver == "sdm")


def test_without_random_weights_states_would_stay_alike():
    """At w = 0 the gradient does not tell the states of a label apart: why training begins elsewhere."""
    X, y = two_clusters(60)
    states = States(3, 2)
    truth, known = states.truth(y, None)
    problem = multiclass_problem(X, truth, 6, states.costs(None), known=known)
    with interpret():
        symmetric = solve(problem, "crf", "lbfgs").w.reshape(-1, 3, 2)
        np.testing.assert_array_equal(symmetric[:, :, 0], symmetric[:, :, 1])
        start = small_weights(problem, 0)
        broken = solve(problem, "crf", "lbfgs", start=start).w.reshape(-1, 3, 2)
    assert np.abs(broken[:, :, 0] - broken[:, :, 1]).max() > 0.1
    scores = X @ start.reshape(4, 6)
    assert 0.05 < scores.std() < 0.2  # whatever the scale of the features
    np.testing.assert_allclose(small_weights(problem._replace(rows=problem.rows._replace(matrix=9 * X)), 0), start / 9)
    np.testing.assert_allclose(small_weights(problem, 0), start)
    assert np.abs(small_weights(problem, 1) - start).max() > 0.01


@pytest.mark.parametrize("use", [(False, True), (True, False), (False, False)])
def test_places_without_a_weight_stay_zero(use):
    problem = chain_problem(
        np.ones((3, 1)), [3], n_labels=2, order=2, use_start=use[0], use_stop=use[1], use_transitions=any(use)
    )
    w = small_weights(problem, 0).reshape(-1, 2)
    assert w[0].all()
    first, second = w[1:4], w[4:13].reshape(3, 3, 2)  # the last symbol of an axis is the beginning
    used = problem.use_transitions
    assert first[:2].all() == second[:2, :2].all() == used and first[2].any() == use[0]
    assert second[2].any() == second[:, 2].any() == use[0] and w[-1].any() == use[1]


# ---------------------------------------------------------------------------------------------------------------------
# What the estimators do with hidden states
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [*LOSSES, RescaledRamp(0.5)], ids=str)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_loss_goes_with_hidden_states_or_is_refused_in_words(loss):
    tokens, tags = [[["a"], ["b"]], [["b"]]], [["x", "y"], ["y"]]
    X, y = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), ["x", "y", "x"]
    models = [
        (lambda **more: SequenceLabeler(loss, hidden=2, max_epochs=2, random_state=0, **more), (tokens, tags)),
        (lambda **more: Classifier(loss, hidden=2, max_epochs=2, random_state=0, **more), (X, y)),
    ]
    with interpret():
        for make, data in models:
            if loss in ("summed", "squared_summed") or isinstance(loss, RescaledRamp):
                for model in (make(), make(solver="sdm" if isinstance(loss, RescaledRamp) else "sdcd")):
                    message = "needs one true output per example.*hidden=2.*go with hidden states: .*'hinge', 'crf'.*set hidden=1"
                    with pytest.raises(ValueError, match=message):
                        model.fit(*data)
            else:
                assert len(make().fit(*data).predict(data[0])) == len(data[0])


@pytest.fixture(scope="module")
def small():
    """A model of three labels of two states, with random weights: what it answers is checked by enumeration."""
    rng = np.random.default_rng(3)
    X = [rng.normal(size=(n, 2)) for n in (3, 1, 0, 2)]
    with interpret():
        labeler = SequenceLabeler("crf", C=1.0, solver="dca", hidden=2, max_epochs=1, constraints=[("a", "c")], dtype="float64")
        labeler.fit(X, [["a", "b", None], ["c"], [], [{"a", "b"}, "b"]])
    labeler.weights_[:] = rng.normal(size=labeler.weights_.size)
    return labeler, X


def enumerated(labeler, x):
    """Every labelling that may be answered, with the scores of its states."""
    found = {}
    for y in itertools.product(range(3), repeat=len(x)):
        if (0, 2) not in itertools.pairwise(y):
            states = itertools.product(range(2), repeat=len(x))
            found[tuple("abc"[c] for c in y)] = np.array([by_hand(x, labeler.weights_, 6, y, h, 2) for h in states])
    return found


def test_answers_are_those_of_enumeration(small):
    labeler, X = small
    with interpret():
        predicted, kbest = labeler.predict(X), labeler.predict_kbest(X, 7)
        marginals, pairs = labeler.predict_marginals(X), labeler.predict_marginals(X, pairs=True)
        for i, x in enumerate(X):
            found = enumerated(labeler, x)
            ranked = sorted(found, key=lambda y: -found[y].max())
            assert tuple(predicted[i]) == ranked[0]
            assert [tuple(y) for y, _ in kbest[i]] == ranked[:7]
            np.testing.assert_allclose([s for _, s in kbest[i]], [found[y].max() for y in ranked[:7]], atol=1e-12)
            total = sum(np.exp(s).sum() for s in found.values())
            y = list(ranked[-1])
            assert labeler.decision_value([x], [y])[0] == pytest.approx(found[tuple(y)].max(), abs=1e-12)
            assert labeler.log_probability([x], [y])[0] == pytest.approx(np.log(np.exp(found[tuple(y)]).sum() / total), abs=1e-10)
            for t in range(len(x)):
                p = [sum(np.exp(s).sum() for y, s in found.items() if y[t] == c) / total for c in "abc"]
                np.testing.assert_allclose(marginals[i][t], p, atol=1e-10)
            for t in range(len(x) - 1):
                p = [[sum(np.exp(s).sum() for y, s in found.items() if y[t : t + 2] == (a, b)) for b in "abc"] for a in "abc"]
                np.testing.assert_allclose(pairs[i][t], np.array(p) / total, atol=1e-10)
        known = [[None, {"a", "c"}, "b"], [None], [], ["b", None]]
        allowed = [
            {y: s for y, s in enumerated(labeler, x).items() if all(k is None or c in k for c, k in zip(y, one, strict=True))}
            for x, one in zip(X, known, strict=True)
        ]
        expected = [list(max(found, key=lambda y: found[y].max())) for found in allowed]
        assert labeler.predict(X, known=known) == expected


def test_inspection_speaks_of_states(small):
    labeler, X = small
    names = ["a/1", "a/2", "b/1", "b/2", "c/1", "c/2"]
    assert labeler.states_ == names and list(top_features(labeler, 1)) == names
    assert list(top_features(labeler, 1, "b")) == ["b/1", "b/2"]
    about = summary(labeler)
    assert about["hidden"] == 2 and about["states"] == names and about["labels"] == ["a", "b", "c"]
    shown = transitions(labeler)
    assert shown.rows[:-1] == names and (shown.weights[:2, 4:6] == -np.inf).all() and np.isfinite(shown.weights[2:]).all()
    assert len(find_features(labeler, ".")[0].weights) == 6
    with interpret():
        labels = labeler.predict(X)[0]
        for t in range(3):
            why = explain(labeler, X, 0, t)
            assert why.labels == labels and why.label == labels[t] != why.against and why.other_labels[t] == why.against
        two = [labeler.decision_value(X[:1], [y])[0] for y in (why.labels, why.other_labels)]
    assert why.difference == pytest.approx(two[0] - two[1]) and why.score == pytest.approx(two[0])
    assert any("/" in part.name for part in why.contributions())


def test_model_file(small, tmp_path):
    labeler, X = small
    labeler.save(tmp_path / "m")
    again = SequenceLabeler.load(tmp_path / "m")
    with interpret():
        assert again.hidden == 2 and again.predict(X) == labeler.predict(X) and again.states_ == labeler.states_
        X, y = two_clusters(30)
        classifier = Classifier(hidden=3, solver="dca", max_epochs=1, random_state=0).fit(X, y)
    classifier.save(tmp_path / "c")
    np.testing.assert_array_equal(Classifier.load(tmp_path / "c").predict(X), classifier.predict(X))
    header, tensors = read_tensors(str(tmp_path / "m"), model_file.FORMAT, model_file.FORMAT_VERSION)
    header["parameters"]["hidden"] = 1  # two states' weights cannot be one's
    write_tensors(tmp_path / "m", header, tensors)
    with pytest.raises(model_file.ModelFileError, match="weights where the model needs"):
        SequenceLabeler.load(tmp_path / "m")


def test_models_of_older_versions_have_one_state(tmp_path):
    X, y = two_clusters(30)
    with interpret():
        classifier = Classifier(solver="dca", max_epochs=1, random_state=0).fit(X, y)
    classifier.save(tmp_path / "c")
    header, tensors = read_tensors(str(tmp_path / "c"), model_file.FORMAT, model_file.FORMAT_VERSION)
    del header["parameters"]["hidden"]
    write_tensors(tmp_path / "c", header, tensors)
    again = Classifier.load(tmp_path / "c")
    assert again.hidden == 1
    np.testing.assert_array_equal(again.predict(X), classifier.predict(X))


@pytest.mark.parametrize("metric", ["cost", "error"])
def test_early_stopping_judges_labels(metric):
    X, Y = modes(12, length=4)
    options = {"solver": "dca", "C": 1.0, "hidden": 2, "max_epochs": 3, "random_state": 0, "cost": {("even", "odd"): 3.0}}
    with interpret():
        labeler = SequenceLabeler(validation_metric=metric, **options)
        labeler.fit(X, Y, validation=(X[:4], Y[:4]))
        labeler.max_epochs = min(range(3), key=lambda k: labeler.result_.history[k].validation) + 1
        last = SequenceLabeler(**{**options, "max_epochs": labeler.max_epochs}).fit(X, Y)
        np.testing.assert_array_equal(last.weights_, labeler.weights_)
        answers = labeler.predict(X[:4])
        wrong = [3.0 if t == "even" and metric == "cost" else 1.0 for a, y in zip(answers, Y[:4], strict=True)
                 for b, t in zip(a, y, strict=True) if b != t]  # fmt: skip
        assert min(r.validation for r in labeler.result_.history) == pytest.approx(sum(wrong) / (4 if metric == "cost" else 16))
        held = SequenceLabeler(early_stopping=True, validation_fraction=0.3, validation_metric=metric, **options)
        partly = [[None, *y[1:]] for y in Y]
        for labels in (Y, partly):
            history = held.fit(X, labels).result_.history
            assert all(0.0 <= r.validation <= (12.0 if metric == "cost" else 1.0) for r in history)


def test_warm_start_and_partial_fit_go_on():
    X = [[["x"], ["y"]], [["y"]]]
    Y = [["a", "b"], ["b"]]
    with interpret():
        labeler = SequenceLabeler(solver="dca", hidden=2, max_epochs=2, warm_start=True, average=False, random_state=0).fit(X, Y)
        before = labeler.weights_.copy()
        labeler.set_params(C=1e-9, max_epochs=1).fit([*X, [["z"]]], [*Y, ["a"]])
        assert labeler.coef_.shape == (4, 3)
        np.testing.assert_allclose(labeler.coef_[:, :2].T.reshape(-1), before[:8], atol=1e-6)
        with pytest.raises(ValueError, match="'hidden' parameter has changed"):
            labeler.set_params(hidden=3).fit(X, Y)
        one = SequenceLabeler(hidden=2, random_state=0)
        for _ in range(2):
            one.partial_fit(X, Y).partial_fit([[["z"], ["x"]]], [["a", "a"]])
        assert one.result_.n_epochs == 4 and one.predict([[["z"]], [["y"]]]) == [["a"], ["b"]]
        assert (one.coef_[:2, 0] != one.coef_[1:3, 0]).any()


def test_streams_begin_at_random_weights_too(tmp_path):
    (tmp_path / "train.txt").write_bytes(TRAIN)
    with interpret():
        options = {"templates": TEMPLATES, "hidden": 2, "max_epochs": 1, "random_state": 0, "C": 1e-9}
        small, large = (
            SequenceLabeler(**options).fit_stream(ColumnFile(tmp_path / "train.txt", chunk_bytes=n)) for n in (500, 10_000_000)
        )
    np.testing.assert_array_equal(small.weights_, large.weights_)
    assert 0.03 < small.coef_.std() < 0.3  # nothing was learnt with that C


def test_wrong_parameters_are_refused():
    X, Y = [[["x"]]], [["a"]]
    for wrong in (0, 1.5, True, None):
        with pytest.raises(ValueError, match=r"The 'hidden' parameter of SequenceLabeler must be an int in the range \[1, inf\)"):
            SequenceLabeler(hidden=wrong).fit(X, Y)
    with pytest.raises(ValueError, match=r"The 'hidden' parameter of SequenceLabeler is too large: 1 labels of 20000000 hidden"):
        SequenceLabeler(hidden=20_000_000).fit(X, Y)
    with interpret():
        fitted = SequenceLabeler(hidden=2, solver="dca", max_epochs=1).fit([[["x"], ["y"]]], [["a", "b"]])
        with pytest.raises(ValueError, match="'hidden'.* was changed after fitting"):
            fitted.set_params(hidden=3).predict(X)


def test_crfsuite_face_names_states(small, tmp_path):
    from partwise.crfsuite import CRF

    with interpret():
        labeler = SequenceLabeler("crf", solver="dca", hidden=2, max_epochs=1, random_state=0)
        labeler.fit([[["x"], ["y"]]], [["a", "b"]]).save(tmp_path / "m")
        crf = CRF(model_filename=tmp_path / "m")
        assert set(crf.predict_marginals([[["x"]]])[0][0]) == {"a", "b"}
    assert ("x", "a/2") in crf.state_features_ and ("a/1", "b/2") in crf.transition_features_


def test_command_line(tmp_path):
    from typer.testing import CliRunner

    from partwise.cli.app import app

    (tmp_path / "train.txt").write_bytes(TRAIN)
    (tmp_path / "test.txt").write_bytes(TEST)
    model = str(tmp_path / "m")
    with interpret():
        for arguments in (
            ["train", "tag", str(tmp_path / "train.txt"), "-o", model, "--hidden", "2", "--epochs", "2", "--constraints", "auto"],
            ["predict", model, str(tmp_path / "test.txt"), "-o", str(tmp_path / "out")],
        ):
            run = CliRunner().invoke(app, arguments, catch_exceptions=False)
            assert run.exit_code == 0, run.output
    tagger = model_file.load(model, plain=True)
    assert tagger.hidden == 2 and len(tagger.states_) == 2 * len(tagger.classes_)
    written = {line.split()[-1] for line in (tmp_path / "out").read_text().splitlines() if line}
    assert written <= set(tagger.classes_.tolist()) and len(written) > 1
    with interpret():
        assert tagger.score(read_columns(TEST)) > 0.7


# ---------------------------------------------------------------------------------------------------------------------
# Partially labelled classification
# ---------------------------------------------------------------------------------------------------------------------


def test_candidate_classes_teach():
    (X, y), (Xt, yt) = two_clusters(400), two_clusters(400, 1)
    X, Xt = np.abs(X), np.abs(Xt)
    rng = np.random.default_rng(0)
    partly = [
        None if u < 0.3 else {int(c), int((c + 1) % 3)} if u < 0.6 else int(c) for c, u in zip(y, rng.random(400), strict=True)
    ]
    for loss, solver in (("hinge", "sdm"), ("crf", "lbfgs")):
        full = Classifier(loss, C=0.1, solver=solver).fit(X, y)
        half = Classifier(loss, C=0.1, solver=solver, random_state=0).fit(X, partly)
        np.testing.assert_array_equal(half.classes_, [0, 1, 2])
        assert half.score(Xt, yt) > full.score(Xt, yt) - 0.03
        told = [k for k, label in enumerate(partly) if label is not None]
        predicted = half.predict(X)
        right = [predicted[k] in partly[k] if isinstance(partly[k], set) else predicted[k] == partly[k] for k in told]
        assert half.score(X, partly) == pytest.approx(np.mean(right))


def test_sets_of_one_class_are_full_supervision():
    X, y = two_clusters(60)
    names = np.array(["red", "green", "blue"])[y]
    with interpret():
        full = Classifier(solver="dca", max_epochs=3, random_state=0, class_weight={"red": 2.0}).fit(X, names)
        single = Classifier(solver="dca", max_epochs=3, random_state=0, class_weight={"red": 2.0}).fit(X, [{c} for c in names])
        np.testing.assert_array_equal(full.weights_, single.weights_)
        np.testing.assert_array_equal(full.classes_, single.classes_)
        truth = full._truth(["red", {"red", "blue"}, None], full.classes_)
        np.testing.assert_allclose(full._weights_of(X[:3], truth, full.classes_, [1.0, 2.0, 3.0]), [2.0, 3.0, 4.0])
        both = Classifier(solver="dca", hidden=2, max_epochs=3, random_state=0)
        both.fit(X, np.array([None, {"red", "blue"}, *names[2:]], object), validation=(X, names))
        assert len(both.classes_) == 3 and both.coef_.shape == (6, 4)
        both.partial_fit(X[:2], [None, {"red", "green"}])


def test_partial_classes_that_cannot_be():
    X, y = two_clusters(4)
    with interpret():
        fitted = Classifier(solver="dca", max_epochs=1).fit(X, [0, 1, None, {1, 2}])
        for wrong, words in (
            ([0, 1, 2, set()], "An empty set, the label of example 3, is not one of the classes"),
            ([0, 1, 2, {1, 7}], "Label 7 of example 3 is not one of the classes 0, 1, 2"),
            ([0, 1, None], "X has 4 examples, but y has 3 labels"),
        ):
            with pytest.raises(ValueError, match=words):
                fitted.fit(X, [0, 1, {0, 2}, 2]).partial_fit(X, wrong)
        with pytest.raises(ValueError, match="example 1 violates the 'constraints' parameter"):
            Classifier(solver="dca", constraints={"allow_labels": [0, 1]}).fit(X, [None, {2}, 0, 1])
        with pytest.raises(ValueError, match="There are no labelled examples to score"):
            fitted.score(X, [None] * 4)
    with pytest.raises(ValueError, match="There are no labels to learn from"):
        Classifier().fit(X, [None] * 4)
