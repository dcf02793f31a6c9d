"""Column files, templates and the model file, from Python."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

import partwise
from column_cases import sentences, text
from partwise.tasks.common.model_file import load
from partwise.tasks.tagging.estimator import SequenceLabeler
from partwise.text.columns import read_columns
from partwise.text.template_encoder import TemplateEncoder

pytestmark = pytest.mark.interpreted

DATA = sentences()
TOKENS = [[token[:2] for token in sentence] for sentence in DATA]
LABELS = [[token[2] for token in sentence] for sentence in DATA]
COLUMNS = read_columns(text(DATA).encode(), name="train.txt")
TEST = read_columns(text(sentences(20, seed=1)).encode(), name="test.txt")


def tagger(kind=SequenceLabeler, **parameters):
    return kind(**{"C": 1.0, "solver": "dca", "max_epochs": 3, **parameters})


@pytest.fixture(scope="module")
def fitted():
    return tagger().fit(COLUMNS)


def test_columns_lists_of_tokens_and_attributes_give_one_model(fitted):
    assert fitted.label_column_ == 2 and fitted.classes_.tolist() == sorted({label for y in LABELS for label in y})
    for y in (-1, 2, LABELS):
        np.testing.assert_array_equal(tagger().fit(COLUMNS, y).weights_, fitted.weights_)
    lists = tagger(templates="phrases").fit(TOKENS, LABELS)
    np.testing.assert_array_equal(lists.weights_, fitted.weights_)
    assert lists.label_column_ is None
    joined = tagger(templates="phrases").fit(
        [t for s in TOKENS for t in s], [c for y in LABELS for c in y], lengths=list(map(len, TOKENS))
    )
    np.testing.assert_array_equal(joined.weights_, fitted.weights_)
    rows = fitted.encoder_.transform(COLUMNS)
    names = [[fitted.feature_name(j) for j in rows.index[a:b]] for a, b in zip(rows.ptr[:-1], rows.ptr[1:], strict=True)]
    strings = tagger().fit(names, [c for y in LABELS for c in y], lengths=list(map(len, TOKENS)))
    np.testing.assert_array_equal(strings.weights_, fitted.weights_)
    assert strings.feature_names_ == fitted.feature_names_


def test_answers(fitted):
    answers = fitted.predict(TEST)
    assert answers == fitted.predict([[token[:2] for token in TEST[i]] for i in range(len(TEST))])
    codes = fitted.predict_codes(TEST)
    assert [fitted.classes_[c] for c in codes] == [label for y in answers for label in y]
    right = [a == token[2] for i, y in enumerate(answers) for a, token in zip(y, TEST[i], strict=True)]
    assert fitted.score(TEST) == fitted.score(TEST, 2) == pytest.approx(np.mean(right)) and np.mean(right) > 0.9


@pytest.mark.parametrize("options", [{}, {"min_count": 3}, {"hash_bits": 8}, {"templates": ["w[0]", "suffix1(w[-1])"]}])
def test_templates_come_back_from_the_file(tmp_path, options):
    model = tagger(kind=partwise.SequenceLabeler, **options).fit(COLUMNS)
    model.save(tmp_path / "model")
    again = partwise.load(tmp_path / "model")
    assert type(again) is partwise.SequenceLabeler and again.predict(TEST) == model.predict(TEST) and again.label_column_ == 2
    plain = load(tmp_path / "model", plain=True)
    assert type(plain) is SequenceLabeler and plain.predict(TEST) == model.predict(TEST)
    plain.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


def test_which_templates_auto_takes():
    two = read_columns(text(DATA, columns=slice(0, 3, 2)).encode())
    assert [t.text for t in tagger().fit(two).encoder_.templates] == [t.text for t in TemplateEncoder("ner").templates]
    words = tagger(templates="auto").fit(two, [["X"] * len(y) for y in LABELS])
    assert [t.text for t in words.encoder_.templates] == [t.text for t in TemplateEncoder("phrases").templates]
    pos = read_columns(text(DATA, columns=slice(0, 2)).encode())
    assert [t.text for t in tagger().fit(pos).encoder_.templates] == [t.text for t in TemplateEncoder("words").templates]


def test_templates_must_not_look_at_the_labels():
    two = read_columns(text(DATA, columns=slice(0, 2)).encode(), name="pos.txt")
    with pytest.raises(ValueError, match=r"looks at column 1, which is the column of the labels \(pos.txt\).*'words' or 'ner'"):
        tagger(templates="chunking").fit(two)
    tagger(templates="chunking").fit(two, LABELS)  # labels from elsewhere: column 1 is an ordinary column


def test_min_count_for_attributes_too():
    X = [[["a", "rare"], ["b"]], [["a"], ["b", "b"]]]
    model = tagger(min_count=2).fit(X, [["x", "y"], ["x", "y"]])
    assert model.feature_names_ == ["a", "b"] and model.coef_.shape == (2, 2)
    values = tagger(min_count=2).fit([[{"a": 0.5, "rare": 2.0}], [{"a": 1.5}]], [["x"], ["y"]])
    assert values.feature_names_ == ["a"]
    with pytest.raises(ValueError, match="min_count > 1 needs all training data at once"):
        tagger(min_count=2).partial_fit(X, [["x", "y"], ["x", "y"]])
    model.partial_fit([[["new"]]], [["x"]])
    assert model.n_features_in_ == 2  # a vocabulary that was cut stays as it is


def test_a_crfpp_file_without_b_has_no_transitions(tmp_path):
    (tmp_path / "template").write_text("U00:%x[0,0]\nU01:%x[0,1]\n")
    alone = tagger(templates=str(tmp_path / "template")).fit(COLUMNS)
    assert not alone.transitions_.any() and not alone.start_.any() and alone.coef_.any()
    (tmp_path / "template").write_text("U00:%x[0,0]\nU01:%x[0,1]\nB\n")
    assert tagger(templates=str(tmp_path / "template")).fit(COLUMNS).transitions_.any()
    assert not tagger(use_transitions=False).fit(COLUMNS).transitions_.any()


def test_scikit_learn_sees_an_estimator():
    model = tagger(kind=partwise.SequenceLabeler, templates="chunking", columns=["w", "pos"])
    assert clone(model).get_params() == model.get_params()
    assert cross_val_score(model, TOKENS, LABELS, cv=2).mean() > 0.8
    assert len(COLUMNS) == 40 and COLUMNS[-1] == DATA[-1]


def test_the_command_line_does_without_scikit_learn():
    code = (
        "import sys\n"
        "from partwise.tasks.tagging.estimator import SequenceLabeler\nfrom partwise.text.columns import read_columns\n"
        "import partwise.cli.app, partwise.tasks.tagging.files, partwise.metrics\n"
        "SequenceLabeler(solver='dca', max_epochs=1).fit(read_columns(b'a N x\\nb V y\\n'))\n"
        "print([m for m in ('sklearn', 'scipy.stats', 'scipy.sparse', 'matplotlib') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_unknown_and_several_labels(fitted):
    complete = [[{label} for label in y] for y in LABELS]
    np.testing.assert_array_equal(tagger().fit(COLUMNS, complete).weights_, fitted.weights_)
    rng = np.random.default_rng(0)
    partial = [[label if rng.random() < 0.5 else None if rng.random() < 0.5 else {label, "O"} for label in y] for y in LABELS]
    for parameters in ({}, {"loss": "crf", "solver": "lbfgs", "max_epochs": 10, "tol": 0}):
        model = tagger(**parameters).fit(COLUMNS, partial)
        assert model.classes_.tolist() == fitted.classes_.tolist()
        assert model.score(TEST) > 0.7 and np.isnan(model.result_.dual)
    told = [label for y in partial for label in y]
    answers = [label for y in model.predict(COLUMNS) for label in y]
    fine = [a in t if isinstance(t, set) else a == t for a, t in zip(answers, told, strict=True) if t is not None]
    assert model.score(COLUMNS, partial) == pytest.approx(np.mean(fine))
    dual = tagger(solver="sdm", max_epochs=30).fit(COLUMNS, partial)  # one target per example, chosen round by round
    assert dual.score(TEST) > 0.7 and dual.result_.rounds
    with pytest.raises(ValueError, match=r"An empty set of labels \(train.txt, line 1\) is not one of"):
        tagger().fit(COLUMNS, [[set()] + y[1:] for y in LABELS])


def test_partial_labels_in_a_column():
    columns = read_columns(b"a N x\nb V ?\nc N x|y\n")
    given = columns.labels(2, "?", "|")
    assert given.codes.tolist() == [0, 1, 2] and given.distinct == ["x", None, frozenset("xy")]
    with pytest.raises(ValueError, match="<bytes>: there is no column 3: there are 3 columns"):
        columns.labels(3)


def test_a_large_model_is_announced(monkeypatch):
    monkeypatch.setattr("partwise.tasks.tagging.model.LARGE", 1000)
    with pytest.warns(UserWarning, match=r"features and 5 labels make 0.0 GB of weights.*min_count, hash_bits"):
        tagger(max_epochs=1).fit(COLUMNS)
