"""A tagger in one file: the same labels as the model, whatever its tokens are."""

import importlib.util
import subprocess
import sys

import numpy as np
import pytest

from partwise import SequenceLabeler
from partwise.bridges import export_numpy
from partwise.datasets import make_digit_words, make_sentences, make_tagged_sequences

pytestmark = pytest.mark.interpreted
CRFPP = ["U00:%x[-1,0]", "U01:%x[0,0]", "U02:%x[0,0]/%x[1,1]", "B"]
OURS = ["w[0]", "w[-1]|w[0]", "suffix2(lower(w))", "short_shape(w[1])", "match('[a-m]', w[0])", "__BOS__|pos[0]", "bias"]


def exported(model, folder):
    path = folder / "tagger.py"
    export_numpy(model, path)
    spec = importlib.util.spec_from_file_location("exported_tagger", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.predict


def sentences(n, seed):
    drawn = make_sentences(n, seed=seed)
    return [[token[:2] for token in one] for one in drawn], [[token[2] for token in one] for one in drawn]


@pytest.mark.parametrize("templates", [OURS, CRFPP], ids=["ours", "crf++"])
def test_templates(templates, tmp_path):
    X, y = sentences(12, 0)
    model = SequenceLabeler(templates=templates, columns=["w", "pos"], max_epochs=3, constraints="iob2").fit(X, y)
    X_test, _ = sentences(15, 1)
    X_test.append([])
    predict = exported(model, tmp_path)
    assert predict(X_test) == model.predict(X_test)
    text = "\n\n".join("\n".join(" ".join(token) for token in one) for one in X_test if one)
    done = subprocess.run([sys.executable, tmp_path / "tagger.py"], input=text, capture_output=True, text=True, check=True)
    labels = [line.split()[-1] for line in done.stdout.splitlines() if line]
    assert labels == [label for labels in model.predict(X_test) for label in labels]


def test_expressions_look_at_the_beginning_of_a_cell(tmp_path):
    """As those of a model do: it is the same answer, and the same bound on the time it takes."""
    templates = ["search('x', w[0])", "fullmatch('a*', w[0])"]
    model = SequenceLabeler(templates=templates, columns=["w"], max_epochs=5).fit([[("x",)], [("a",)]] * 3, [["X"], ["A"]] * 3)
    text = [[("a" * 300 + "x",)], [("x" + "a" * 300,)]]
    assert exported(model, tmp_path)(text) == model.predict(text) == [["A"], ["X"]]


@pytest.mark.parametrize("as_dicts", [True, False])
def test_attributes(as_dicts, tmp_path):
    X, y = make_tagged_sequences(12, seed=0, as_dicts=as_dicts)
    model = SequenceLabeler("crf", max_epochs=3).fit(X, y)
    X_test, _ = make_tagged_sequences(15, seed=1, as_dicts=as_dicts)
    assert exported(model, tmp_path)(X_test) == model.predict(X_test)


def test_matrices(tmp_path):
    X, y = make_digit_words(10, seed=0)
    model = SequenceLabeler(max_epochs=2).fit(X, y)
    assert exported(model, tmp_path)(X) == model.predict(X)


def test_what_cannot_be_written(tmp_path):
    X, y = [[["a"], ["b"]]], [["x", "y"]]
    for model, why in (
        (SequenceLabeler(order=2, max_epochs=1).fit(X, y), "order 1"),
        (SequenceLabeler(hash_bits=8, templates=["w"], columns=["w"], max_epochs=1).fit([[("a",), ("b",)]], y), "hashed"),
    ):
        with pytest.raises(ValueError, match=why):
            export_numpy(model, tmp_path / "no.py")
    with pytest.raises(TypeError, match="SequenceLabeler"):
        export_numpy(np.zeros(3), tmp_path / "no.py")
    assert not (tmp_path / "no.py").exists()
