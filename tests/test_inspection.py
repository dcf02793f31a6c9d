"""Looking into models: what is shown are the weights, and explanations add up."""

import json
import math

import numpy as np
import pytest
import scipy.sparse
from typer.testing import CliRunner

from conftest import without_matplotlib
from partwise import SequenceLabeler
from partwise.cli.app import app
from partwise.tasks.tagging.inspection import explain, find_features, summary, top_features, transitions
from partwise.text.columns import read_columns
from small_taggers import TEST, tagger

X = [[{"a": 1.0, "b": 0.5}, {"b": 2.0}, {"c": 1.0}], [{"c": 1.0}, {"a": 1.0}], [{"b": 1.0}, {"b": 0.25}, {"a": 1.0}, {"c": 2.0}]]
Y = [["P", "Q", "R"], ["R", "P"], ["Q", "Q", "P", "R"]]


def fit(X=X, **parameters):
    return SequenceLabeler(**{"solver": "dca", "max_epochs": 3, "random_state": 0, **parameters}).fit(X, Y)


def as_matrices(kind=np.asarray):
    return [kind(np.array([[token.get(name, 0.0) for name in "abc"] for token in x])) for x in X]


# -- weights -------------------------------------------------------------------------------------------------------------


def test_top_features_are_the_largest_and_smallest_weights():
    model = tagger()
    found = top_features(model, 4)
    assert list(found) == model.classes_.tolist()
    for k, label in enumerate(model.classes_.tolist()):
        order = np.sort(model.coef_[k].astype(float))
        np.testing.assert_array_equal([f.weight for f in found[label].positive], order[::-1][:4])
        np.testing.assert_array_equal([f.weight for f in found[label].negative], order[:4])
        assert all(model.coef_[k, f.number] == np.float32(f.weight) for f in found[label].positive + found[label].negative)
        assert all(f.name == model.feature_name(f.number) for f in found[label].positive)
    one = top_features(model, 10**6, "O")
    assert list(one) == ["O"] and len(one["O"].positive) == (model.coef_[-1] > 0).sum()


def test_only_what_is_shown_is_named(monkeypatch):
    model, named = tagger(), []
    real = model.feature_name
    monkeypatch.setattr(model, "feature_name", lambda j: named.append(j) or real(j), raising=False)
    top_features(model, 2, "O")
    assert len(named) == 4
    named.clear()
    assert len(find_features(model, "^w", 3)) == 3 and len(named) < model.n_features_in_ / 2


def test_find_features():
    model = tagger()
    found = find_features(model, r"^pos\[0\]=")
    assert {f.name for f in found} == {f"pos[0]={c}" for c in "DNVX."}
    assert all((f.weights == model.coef_[:, f.number]).all() for f in found)
    size = [np.abs(f.weights).max() for f in found]
    assert size == sorted(size, reverse=True)
    with pytest.raises(ValueError, match="not a regular expression"):
        find_features(model, "(")


def test_transitions():
    model = tagger()
    found = transitions(model)
    np.testing.assert_array_equal(found.weights[:-1, :-1], model.transitions_)
    np.testing.assert_array_equal(found.weights[-1, :-1], model.start_)
    np.testing.assert_array_equal(found.weights[:-1, -1], model.stop_)
    assert found.weights[-1, -1] == 0 and found.rows[-1] == "(begin)" and found.columns[-1] == "(end)"


def test_forbidden_transitions_are_minus_infinity():
    model = fit()
    model.constraints = [("P", "R"), (None, "R"), ("Q", None)]
    weights = transitions(model).weights
    assert np.argwhere(weights == -np.inf).tolist() == [[0, 2], [1, 3], [3, 2]]
    model.use_transitions = False
    assert not transitions(model).weights[np.isfinite(weights)].any()


def test_bad_requests():
    model = tagger()
    with pytest.raises(ValueError, match="'XX' is not one of the labels 'B-NP'"):
        top_features(model, 3, "XX")
    with pytest.raises(ValueError, match="'n' parameter"):
        top_features(model, 0)
    columns = read_columns(TEST)
    for place, message in (((10**6, 0), "no sequence 1000000"), ((0, 10**6), "no token 1000000 in sequence 0")):
        with pytest.raises(ValueError, match=message):
            explain(model, columns, *place)
    label = explain(model, columns, 0, 0).label
    with pytest.raises(ValueError, match="that is its label"):
        explain(model, columns, 0, 0, against=label)


# -- why -----------------------------------------------------------------------------------------------------------------


def check(model, X, sentence, token, **options):
    """All that an explanation promises."""
    why = explain(model, X, sentence, token, **options)
    one = X.take([sentence]) if hasattr(X, "take") else [X[sentence]]
    assert why.label != why.against and why.label == why.labels[token] and why.against == why.other_labels[token]
    assert why.labels == model.predict(one)[0]
    scores = [float(model.decision_value(one, [y])[0]) for y in (why.labels, why.other_labels)]
    close = {"rel": 1e-9, "abs": 1e-9} if model.weights_.dtype == np.float64 else {"rel": 1e-4, "abs": 1e-4}
    assert [why.score, why.other_score] == pytest.approx(scores, **close)
    assert why.difference == pytest.approx(why.score - why.other_score, rel=1e-9, abs=1e-9)
    assert math.fsum(c.chosen - c.other for c in [*why.features, *why.transitions, *why.elsewhere]) == why.difference >= 0
    # no labelling with the other label is better, and no other label has a better one
    known = [[None] * len(why.labels)]
    rivals = {}
    for label in model.classes_.tolist():
        known[0][token] = label
        y = model.predict(one, known=known)
        rivals[label] = float(model.decision_value(one, y)[0])
    assert rivals[why.against] == pytest.approx(scores[1], **close)
    if "against" not in options:
        assert rivals[why.against] == pytest.approx(max(v for label, v in rivals.items() if label != why.label), **close)
    return why


def test_explanations_add_up():
    model, columns = tagger(), read_columns(TEST)
    far = 0
    for sentence in range(3):
        for token in range(len(columns[sentence])):
            why = check(model, columns, sentence, token)
            assert len(why.features) <= 3 and len(why.transitions) == 2
            sizes = [abs(c.difference) for c in why.features]
            assert sizes == sorted(sizes, reverse=True)
            far += bool(why.elsewhere)
    assert far  # where a label changes, its neighbours often have to follow
    assert "rather than" in str(why) and f"{why.difference:+.4f}" in str(why)
    names = {c.name for c in explain(model, columns, 0, 1).features}
    word, pos, _ = columns[0][1]
    assert f"w[0]={word}" in names and f"pos[0]={pos}" in names


def test_against_a_label_of_choice():
    model, columns = tagger(), read_columns(TEST)
    label = explain(model, columns, 1, 0).label
    for against in model.classes_.tolist():
        if against != label:
            assert check(model, columns, 1, 0, against=against).against == against


@pytest.mark.parametrize(
    "data, parameters",
    [
        (X, {}),
        (X, {"order": 2}),
        (as_matrices(), {}),
        (as_matrices(scipy.sparse.csr_array), {}),
    ],
    ids=["attributes", "order 2", "dense", "sparse"],
)
def test_explanations_of_any_tokens_and_orders_add_up(data, parameters):
    model = fit(data, **parameters)
    for sentence in range(3):
        for token in range(len(Y[sentence])):
            check(model, data, sentence, token)
    assert check(model, data, -1, 3).sentence == 2


def test_weights_that_are_not_used_are_not_counted():
    model = fit(order=2)
    model.use_start = model.use_stop = False  # after training: there are weights, but they do not count
    for token in range(4):
        check(model, X, 2, token)
    model.use_transitions = False
    assert not any(one.difference for one in check(model, X, 2, 1).transitions)


def test_values_of_features_are_shown():
    names = [c.name for c in explain(fit(), X, 0, 0).features]
    assert sorted(names) == ["a", "b (0.5)"]


def test_an_answer_without_alternative():
    model = fit()
    model.constraints = {"allow_labels": ["P"]}
    with pytest.raises(ValueError, match="can have no other label than 'P'"):
        explain(model, X, 0, 1)
    with pytest.raises(ValueError, match="no labelling with it obeys the constraints"):
        explain(model, X, 0, 1, against="Q")


def test_with_known_labels():
    known = ["R", None, None]
    why = explain(fit(), X, 0, 1, known=known)
    assert why.labels[0] == why.other_labels[0] == "R"
    with pytest.raises(ValueError, match="known has 1 labels, but sequence 0 has 3"):
        explain(fit(), X, 0, 1, known=["R"])


def test_summary():
    found = summary(tagger())
    assert found["labels"] == tagger().classes_.tolist() and found["features"] == tagger().n_features_in_
    assert found["templates"] == ["w[0]", "pos[0]", "pos[-1]|pos[0]"] and found["loss"] == "hinge" and found["label_column"] == 2
    json.dumps(found)
    assert "templates" not in summary(fit())


# -- the command line ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inspect")
    tagger().save(folder / "tagger.model")
    fit().save(folder / "attributes.model")
    (folder / "test.txt").write_bytes(TEST)
    return folder


def run(*arguments):
    return CliRunner().invoke(app, ["inspect", *map(str, arguments)])


def machine(*arguments):
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def refused(*arguments):
    result = run(*arguments)
    assert result.exit_code == 1 and result.stderr.startswith("partwise: error: ")
    return result.stderr


def test_the_verb_for_machines(folder):
    model, path = tagger(), folder / "tagger.model"
    about = machine(path, "--top", 2, "--label", "O", "--transitions", "--features", "w", "--most", 5)
    assert about["bytes"] == path.stat().st_size and about["solver"] == "dca"
    expected = top_features(model, 2, "O")["O"].negative
    assert about["top_features"]["O"]["negative"] == [{"feature": f.name, "weight": f.weight} for f in expected]
    np.testing.assert_array_equal(about["transition_weights"]["weights"], transitions(model).weights)
    assert len(about["found_features"]) == 5 and about["found_features"][0]["weights"].keys() == set(model.classes_.tolist())
    assert "transition_weights" not in machine(path)


def test_the_verb_explains(folder):
    columns = read_columns(TEST)
    i = 1
    line = int(columns.starts[i]) + i + 2 + 1  # blank lines before, two tokens before, and lines count from 1
    found = machine(folder / "tagger.model", "--explain", folder / "test.txt", "--line", line)["explanation"]
    why = explain(tagger(), columns, i, 2)
    assert (found["sentence"], found["token"], found["label"], found["against"]) == (i, 2, why.label, why.against)
    assert found["cells"] == " ".join(columns[i][2])
    parts = [one["difference"] for part in ("features", "transitions", "elsewhere") for one in found[part]]
    assert math.fsum(parts) == found["difference"] == why.difference
    place = ("--sentence", i, "--token", 2)
    assert machine(folder / "tagger.model", "--explain", folder / "test.txt", *place)["explanation"] == found
    shown = run(folder / "tagger.model", "--explain", folder / "test.txt", *place).stdout
    assert f"{why.label} rather than {why.against}" in shown and f"{why.difference:+.4f}" in shown


def test_the_verb_for_people(folder):
    shown = run(folder / "tagger.model").stdout
    assert "w[0], pos[0], pos[-1]|pos[0]" in shown and "B-NP, B-VP, I-NP, I-VP, O" in shown and "hinge" in shown
    shown = run(folder / "tagger.model", "--top", 1, "--transitions", "--features", "^pos.0.=D$").stdout
    best = top_features(tagger(), 1)["B-NP"].positive[0]
    assert best.name in shown and f"{best.weight:+.4f}" in shown and "from (row) to (column)" in shown and "1 features" in shown
    assert run(folder / "attributes.model", "--top", 2).exit_code == 0


def test_a_picture(folder, tmp_path, monkeypatch):
    path = tmp_path / "transitions.png"
    assert run(folder / "tagger.model", "--picture", path).exit_code == 0
    assert path.read_bytes().startswith(b"\x89PNG")
    assert "there is no folder" in refused(folder / "tagger.model", "--picture", tmp_path / "no" / "a.png")
    assert "'xyz' is not supported" in refused(folder / "tagger.model", "--picture", tmp_path / "a.xyz")
    assert not (tmp_path / "a.xyz").exists()
    without_matplotlib(monkeypatch)
    assert 'pip install "partwise[plot]"' in refused(folder / "tagger.model", "--picture", path)


def test_bad_requests_of_the_verb(folder, tmp_path):
    model, text = folder / "tagger.model", folder / "test.txt"
    assert "There is no model file" in refused(tmp_path / "no.model")
    assert "is not a partwise model" in refused(text)
    assert "Say which token" in refused(model, "--explain", text)
    assert "Say which token" in refused(model, "--explain", text, "--sentence", 1)
    assert "give the file" in refused(model, "--line", 3)
    assert "there is no token on line 999999" in refused(model, "--explain", text, "--line", 999999)
    assert "There is no sequence 99" in refused(model, "--explain", text, "--sentence", 99, "--token", 0)
    assert "'XX' is not one of the labels B-NP" in refused(model, "--label", "XX")
    assert "'XX' is not one of the labels" in refused(model, "--explain", text, "--line", 1, "--against", "XX")
    assert "not on column files" in refused(folder / "attributes.model", "--explain", text, "--line", 1)
    assert "not a regular expression" in refused(model, "--features", "(")
