"""Labels that a model refuses to believe: max-marginals, margins, records, cross-validation."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given, settings
from typer.testing import CliRunner

from oracle_cases import chain_cases, multiclass_cases
from partwise import kernels
from partwise.datasets import make_sentences, make_tagged_sequences, plant_errors
from partwise.engine.compilation import entry, interpret
from partwise.metrics import average_precision, precision_at, recall_at
from partwise.tasks.common.suspects import doubts
from partwise.tasks.tagging.estimator import Tagger


@entry
def nodes_pass(problem, i, w, theta, nodes):
    kernels.score(problem, i, w, theta)
    kernels.max_marginals(problem, i, theta, nodes)


def check_max_marginals(problem, w):
    size, width = max(1.0, np.abs(w).max(initial=0.0)), kernels.width(problem)
    for i in range(kernels.n_examples(problem)):
        theta, length = np.full(kernels.n_parts(problem, i), 7.0), kernels.length(problem, i)
        nodes = np.full(length * width, 7.0)
        nodes_pass(problem, i, w, theta, nodes)
        twin = np.full((length, width), -np.inf)
        for y in kernels.outputs(problem, i):
            value = kernels.value_of(problem, i, theta, y)
            for t, c in enumerate(y):
                twin[t, c] = max(twin[t, c], value)
        np.testing.assert_allclose(nodes.reshape(length, width), twin, rtol=1e-12, atol=1e-12 * size)


@settings(max_examples=100, deadline=None)
@given(chain_cases())
def test_max_marginals_of_chains_are_those_of_enumeration(case):
    check_max_marginals(*case)


@settings(max_examples=30, deadline=None)
@given(multiclass_cases())
def test_max_marginals_of_classes_are_their_scores(case):
    check_max_marginals(*case)


@settings(max_examples=20, deadline=None)
@given(chain_cases())
def test_interpreted_max_marginals(case):
    with interpret():
        check_max_marginals(*case)


# ---------------------------------------------------------------------------------------------------------------------
# Margins, against enumeration
# ---------------------------------------------------------------------------------------------------------------------


def brute_doubts(problem, w, b, i):
    """Margin, token margins and what is believed of example i, by looking at every output."""
    theta = np.zeros(kernels.n_parts(problem, i))
    kernels.score(problem, i, w, theta)
    outputs = list(kernels.outputs(problem, i))
    values = np.array([kernels.value_of(problem, i, theta, y) for y in outputs])
    costs = np.array([kernels.cost(problem, i, y) for y in outputs])
    labels = np.array(outputs).reshape(len(outputs), -1)
    gold = problem.gold[problem.starts[i] : problem.starts[i + 1]]
    fits = np.ones_like(labels, bool)
    for t, g in enumerate(gold.tolist()):
        fits[:, t] = labels[:, t] == g if g < problem.n_labels else problem.known[g - problem.n_labels][labels[:, t]]
    given = values[fits.all(axis=1)].max()
    tokens = []
    for t in range(labels.shape[1]):
        others = values[~fits[:, t]]
        tokens.append(others.max() - values[fits[:, t]].max() if len(others) else -np.inf)
    labelled = np.count_nonzero(np.isfinite(tokens))
    margin = (values[costs > 0].max() - given) / np.sqrt(labelled) if labelled else -np.inf
    return margin, tokens, labels[np.argmax(values - b * costs)], fits


@pytest.mark.parametrize("b", [0.0, 1.0])
@pytest.mark.parametrize("partial", [False, True])
def test_doubts_are_those_of_enumeration(b, partial):
    from partwise.structures import chain_problem

    rng, k, lengths = np.random.default_rng(3), 3, [3, 0, 1, 4, 2, 3]
    n = sum(lengths)
    known = np.array([[True, True, True], [True, False, True]]) if partial else None
    gold = rng.integers(0, k + 2 if partial else k, n)
    problem = chain_problem(rng.normal(size=(n, 3)), lengths, gold, k, known=known)
    w = rng.normal(size=kernels.n_weights(problem))
    found = doubts(problem, w, b)
    assert found.margins[1] == -np.inf and not found.refused[1]
    for i in (i for i, length in enumerate(lengths) if length):
        here = slice(found.starts[i], found.starts[i + 1])
        margin, tokens, believed, fits = brute_doubts(problem, w, b, i)
        assert found.margins[i] == pytest.approx(margin)
        np.testing.assert_allclose(found.token_margins[here], tokens)
        np.testing.assert_array_equal(found.believed[here], believed)
        wrong = ~fits[[tuple(y) for y in kernels.outputs(problem, i)].index(tuple(believed))]
        np.testing.assert_array_equal(found.wrong[here], wrong)
        assert found.refused[i] == wrong.any()


def test_threads_change_nothing(noisy_tagger):
    tagger, X, planted = noisy_tagger
    alone = tagger.suspicion(X, planted.y)
    tagger.n_jobs = 2
    np.testing.assert_array_equal(alone, tagger.suspicion(X, planted.y))
    tagger.n_jobs = None


# ---------------------------------------------------------------------------------------------------------------------
# Estimators
# ---------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def noisy_tagger():
    X, y = make_tagged_sequences(200, 0, ambiguity=0.1)
    planted = plant_errors(y, 0.1, seed=0)
    return Tagger(loss="ramp", C=0.1, solver="dca", random_state=0).fit(X, planted.y), X, planted


def test_planted_sentences_are_found(noisy_tagger):
    tagger, X, planted = noisy_tagger
    found = tagger.suspects(X, planted.y)
    hits = sum(planted.changed[suspect.example] for suspect in found)
    assert hits >= 0.9 * len(found) and hits >= 0.8 * planted.changed.sum()
    margins = [suspect.margin for suspect in found]
    assert margins == sorted(margins, reverse=True) and min(margins) > 0
    suspicion = tagger.suspicion(X, planted.y)
    assert [suspicion[suspect.example] for suspect in found] == margins
    assert average_precision(planted.changed, suspicion) > 0.95
    assert average_precision(planted.tokens, tagger.suspicion(X, planted.y, tokens=True)) > 0.9


def test_records_of_sequences(noisy_tagger):
    tagger, X, planted = noisy_tagger
    for suspect in tagger.suspects(X, planted.y, top=5):
        assert suspect.given == planted.y[suspect.example] and len(suspect.believed) == len(suspect.given)
        differ = [t for t, (a, b) in enumerate(zip(suspect.given, suspect.believed, strict=True)) if a != b]
        assert sorted(token.token for token in suspect.tokens) == differ and differ
        for token in suspect.tokens:
            assert (token.given, token.believed) == (suspect.given[token.token], suspect.believed[token.token])
        said = suspect.as_dict()
        assert set(said) == {"example", "given", "believed", "margin", "tokens"}
        assert set(said["tokens"][0]) == {"token", "given", "believed", "margin"}
        json.dumps(said)
        with pytest.raises(dataclasses.FrozenInstanceError):
            suspect.margin = 0.0


def test_threshold_and_top(noisy_tagger):
    tagger, X, planted = noisy_tagger
    refused, predicted = tagger.suspects(X, planted.y), tagger.suspects(X, planted.y, threshold=0.0)
    answers = tagger.predict(X)
    assert {s.example for s in predicted} == {i for i, (a, b) in enumerate(zip(answers, planted.y, strict=True)) if a != b}
    assert {s.example for s in refused} <= {s.example for s in predicted}  # the ramp gives up only what it is sure of
    assert all(s.believed == answers[s.example] for s in predicted)
    border = predicted[3].margin
    assert [s.example for s in tagger.suspects(X, planted.y, threshold=border)] == [s.example for s in predicted[:3]]
    assert tagger.suspects(X, planted.y, top=2) == refused[:2] and tagger.suspects(X, planted.y, top=0) == []


@pytest.mark.parametrize("loss", ["hinge", "crf"])
def test_other_losses_believe_their_prediction(loss):
    X, y = make_tagged_sequences(60, 1, ambiguity=0.1)
    planted = plant_errors(y, 0.1, seed=1)
    tagger = Tagger(loss=loss, C=0.1, solver="dca", random_state=0, max_epochs=5).fit(X, planted.y)
    answers = tagger.predict(X)
    found = tagger.suspects(X, planted.y)
    assert {s.example for s in found} == {i for i, (a, b) in enumerate(zip(answers, planted.y, strict=True)) if a != b}
    assert all(s.believed == answers[s.example] for s in found)


def test_a_token_without_a_label_is_never_in_doubt(noisy_tagger):
    tagger, X, planted = noisy_tagger
    worst = tagger.suspects(X, planted.y)[0]
    i, t = worst.example, worst.tokens[0].token
    labels = [None if k == t else label for k, label in enumerate(worst.given)]
    margins = tagger.suspicion([X[i]], [labels], tokens=True)
    assert margins[t] == -np.inf and np.isfinite(np.delete(margins, t)).all()
    for suspect in tagger.suspects([X[i]], [labels]):
        assert t not in [token.token for token in suspect.tokens] and suspect.given == labels
    assert tagger.suspects([X[i]], [[None] * len(labels)]) == []
    assert tagger.suspicion([X[i]], [[None] * len(labels)]).tolist() == [-np.inf]
    either = [{label, other} for label, other in zip(worst.given, worst.believed, strict=True)]
    assert tagger.suspects([X[i]], [either], threshold=0.0) == tagger.suspects([X[i]], [either]) == []


def test_forms_of_input(noisy_tagger):
    tagger, X, planted = noisy_tagger
    lengths, flat = [len(x) for x in X], [token for x in X for token in x]
    labels = [label for sequence in planted.y for label in sequence]
    assert tagger.suspects(flat, labels, lengths=lengths) == tagger.suspects(X, planted.y)
    assert tagger.suspects([], []) == [] and tagger.suspects([[]], [[]]) == [] and tagger.suspicion([[]], [[]]).shape == (1,)
    with pytest.raises(ValueError, match="Sequence 1 has 1 tokens, but 2 labels"):
        tagger.suspects([[["a"]], [["a"]]], [["O"], ["O", "O"]])
    with pytest.raises(ValueError, match=r"Label 'B-XYZ' \(token 1 of sequence 1\)"):
        tagger.suspects([[["a"]], [["a"], ["b"]]], [["O"], ["O", "B-XYZ"]])
    for wrong in ({"top": -1}, {"threshold": -0.5}, {"cv": 1}, {"cv": True}):
        with pytest.raises(ValueError, match=f"The '{next(iter(wrong))}' parameter"):
            tagger.suspects(X, planted.y, **wrong)
    with pytest.raises(ValueError, match="not fitted"):
        Tagger().suspects(X, planted.y)


def test_cross_validation_does_not_believe_what_was_learnt_by_heart():
    rng = np.random.default_rng(0)
    X = [[[f"word{rng.integers(20)}", f"only{i}-{t}"] for t in range(4)] for i in range(60)]  # every token has a name of its own
    y = [[f"L{int(token[0][4:]) % 3}" for token in x] for x in X]
    planted = plant_errors(y, 0.1, seed=0)
    tagger = Tagger(loss="hinge", C=100.0, solver="dca", random_state=0, max_epochs=20).fit(X, planted.y)
    assert tagger.suspects(X, planted.y) == []
    folded = tagger.suspicion(X, planted.y, cv=5)
    assert average_precision(planted.changed, folded) > 0.9
    before = tagger.weights_.copy()
    fresh = Tagger(loss="hinge", C=100.0, solver="dca", random_state=0, max_epochs=20)
    assert average_precision(planted.changed, fresh.suspicion(X, planted.y, cv=5)) > 0.9
    assert not hasattr(fresh, "weights_") and np.array_equal(before, tagger.weights_)
    with pytest.raises(ValueError, match="there are 3 examples only"):
        tagger.suspicion(X[:3], planted.y[:3], cv=5)


def test_classes():
    from partwise import Classifier

    rng = np.random.default_rng(0)
    centres, y = rng.normal(size=(3, 5)) * 3, np.repeat(["a", "b", "c"], 60)
    X = centres[np.repeat(np.arange(3), 60)] + rng.normal(size=(180, 5))
    planted = plant_errors(y, 0.1, 0, "shuffle")
    model = Classifier(loss="ramp", C=0.1, random_state=0)
    folded = model.suspicion(X, planted.y, cv=3)
    assert average_precision(planted.changed, folded) > 0.9 and not hasattr(model, "weights_")
    model.fit(X, planted.y)
    found = model.suspects(X, planted.y)
    assert found and all(planted.changed[s.example] for s in found)
    scores = model._scores(X)
    for s in found:
        assert s.given == planted.y[s.example] and s.believed == y[s.example] and s.tokens is None
        k = model.classes_.tolist().index(s.given)
        assert s.margin == pytest.approx(np.delete(scores[s.example], k).max() - scores[s.example, k])
        assert set(s.as_dict()) == {"example", "given", "believed", "margin"}
    assert len(model.suspects(X, planted.y, threshold=0.0)) == np.count_nonzero(model.predict(X) != planted.y)
    assert average_precision(planted.changed, model.suspicion(X, planted.y)) > 0.9
    unknown = [None, *planted.y[1:].tolist()]
    assert model.suspicion(X, unknown)[0] == -np.inf and 0 not in [s.example for s in model.suspects(X, unknown)]
    assert model.suspects(np.zeros((0, 5)), []) == []
    with pytest.raises(ValueError, match="Label 'z' of example 1"):
        model.suspects(X[:2], ["a", "z"])
    with pytest.raises(ValueError, match="inconsistent"):
        model.suspects(X, y[:5])


# ---------------------------------------------------------------------------------------------------------------------
# Rankings
# ---------------------------------------------------------------------------------------------------------------------


def test_average_precision_is_that_of_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(0)
    for n in (1, 2, 10, 200):
        for digits in (0, 1, 5):
            wrong, suspicion = rng.random(n) < 0.3, rng.normal(size=n).round(digits)  # few digits: many ties
            wrong[0] = True
            assert average_precision(wrong, suspicion) == pytest.approx(metrics.average_precision_score(wrong, suspicion))


def test_rankings_at_the_edges():
    assert np.isnan(average_precision([False, False], [1.0, 2.0])) and np.isnan(recall_at([False], [1.0], 1))
    assert average_precision([True, False, False], [np.inf, 0.0, -np.inf]) == 1.0
    assert precision_at([True, True, False, False], [1, 1, 1, 0], 3) == recall_at([1, 1, 0, 0], [0, 0, 0, 0], 2) + 1 / 6
    assert np.isnan(precision_at([True], [0.0], 0)) and recall_at([True, False], [0.0, 1.0]) == 0.0
    with pytest.raises(ValueError, match="of one length"):
        average_precision([True], [1.0, 2.0])
    with pytest.raises(ValueError, match="NaN"):
        average_precision([True, False], [1.0, np.nan])
    with pytest.raises(ValueError, match=r"k must be an int in the range \[0, 1\]"):
        precision_at([True], [1.0], 2)


# ---------------------------------------------------------------------------------------------------------------------
# The command line
# ---------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A column file with planted errors, the same with correct labels, and a model of the former."""
    folder = tmp_path_factory.mktemp("suspects")
    sentences = make_sentences(120, 0)
    planted = plant_errors([[token[-1] for token in s] for s in sentences], 0.1, seed=0)
    bad = [[(*token[:-1], label) for token, label in zip(s, y, strict=True)] for s, y in zip(sentences, planted.y, strict=True)]
    for name, text in (("good", sentences), ("bad", bad)):
        (folder / name).write_text("\n\n".join("\n".join(map(" ".join, s)) for s in text) + "\n")
    assert partwise("train", "tag", folder / "bad", "-o", folder / "model", "--loss", "ramp", "-C", "0.01", "-q").exit_code == 0
    return folder, planted


def partwise(*words):
    from partwise.cli.app import app

    return CliRunner().invoke(app, [str(word) for word in words])


def test_command_with_a_model(files):
    folder, planted = files
    out = folder / "out.tsv"
    result = partwise("suspects", folder / "model", folder / "bad", "--truth", folder / "good", "--json", "-o", out)
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    assert said["sequences"] == 120 and said["refused"] == len(said["suspects"]) > 0 and "total" in said["seconds"]
    assert said["truth"]["wrong"] == planted.changed.sum() and said["truth"]["average_precision"] > 0.9
    hits = [planted.changed[s["example"]] for s in said["suspects"]]
    assert said["truth"]["precision"] == pytest.approx(np.mean(hits)) and said["truth"]["found"] == sum(hits)
    worst = said["suspects"][0]
    assert len(worst["words"]) == len(worst["given"]) == len(worst["believed"])
    lines = (folder / "bad").read_text().splitlines()
    assert lines[worst["line"] - 1].split()[0] == worst["words"][0] and lines[worst["line"] - 1].split()[-1] == worst["given"][0]
    assert f"{said['refused']} of 120 sentences are not believed" in result.stderr and "average precision" in result.stderr
    written = out.read_text().splitlines()
    assert len(written) == said["refused"] + 1 and written[1].split("\t")[0] == str(worst["example"])


def test_command_for_tokens_and_without_a_model(files):
    folder, planted = files
    result = partwise("suspects", "--train", folder / "bad", "--folds", "2", "--tokens", "--top", "3", "--truth", folder / "good")
    assert result.exit_code == 0, result.output
    assert f"{planted.tokens.sum()} are wrong" in result.stdout and "the first 3 of" in result.stdout
    result = partwise("suspects", folder / "model", folder / "bad", "--tokens", "--json", "-q")
    said = json.loads(result.stdout)
    assert result.stderr == ""
    lines = (folder / "bad").read_text().splitlines()
    for token in said["suspects"]:
        assert lines[token["line"] - 1].split()[0] == token["word"] and lines[token["line"] - 1].split()[-1] == token["given"]
    margins = [token["margin"] for token in said["suspects"]]
    assert margins == sorted(margins, reverse=True)


def test_command_refuses_in_words(files):
    folder, _ = files
    for words, message in (
        ((folder / "model",), "Give a model and a file"),
        (("--train", folder / "bad", folder / "bad"), "Give a model and a file"),
        (("--train", folder / "bad", "--folds", "1"), "--folds must be 0, or at least 2"),
        ((folder / "model", folder / "bad", "--json", "-o", "-"), "--json prints on stdout"),
        ((folder / "model", folder / "bad", "--label-column", "9"), "there are 3 columns"),
    ):
        result = partwise("suspects", *words)
        assert result.exit_code == 1 and message in result.stderr, result.output
    (folder / "short").write_text("a N O\n")
    result = partwise("suspects", folder / "model", folder / "bad", "--truth", folder / "short")
    assert result.exit_code == 1 and "it must have the sentences of" in result.stderr
