"""Small corpora, and taggers trained on them: what the tests of tagging share."""

import functools

import numpy as np

from partwise.features.given_labels import GivenLabels
from partwise.tasks.tagging.estimator import SequenceLabeler
from partwise.text.chunk_schemes import convert_coded
from partwise.text.columns import read_columns

TEMPLATES = ["w[0]", "pos[0]", "pos[-1]|pos[0]"]


def corpus(n=40, seed=0, separator=" "):
    """Noun and verb groups: a word says little, its neighbours say more."""
    rng = np.random.default_rng(seed)
    lines = []
    for _ in range(n):
        for _ in range(rng.integers(1, 5)):
            kind = rng.choice(["NP", "NP", "VP", "O"])
            for k in range(1 if kind == "O" else rng.integers(1, 4)):
                pos = {"NP": "D" if k == 0 else "N", "VP": "V", "O": "."}[kind] if rng.random() < 0.8 else "X"
                label = "O" if kind == "O" else f"{'B' if k == 0 else 'I'}-{kind}"
                lines.append(separator.join([f"w{rng.integers(9)}", pos, label]))
        lines.append("")
    return "\n".join(lines).encode() + b"\n"


TRAIN = corpus()
TEST = corpus(12, seed=1)


@functools.cache
def tagger(loss="hinge", scheme=None):
    """Trained on TRAIN; in another scheme, as ``partwise train tag --scheme`` does."""
    columns = read_columns(TRAIN)
    model = SequenceLabeler(loss=loss, C=1.0, templates=TEMPLATES, solver="dca", max_epochs=3)
    if scheme is None:
        return model.fit(columns)
    given = columns.labels()
    converted = convert_coded(given.codes, columns.starts, given.distinct, scheme)
    model.fit(columns, GivenLabels(converted.codes, converted.labels))
    model.label_column_, model.given_scheme_ = 2, "iob2"
    return model


def labelled_words(n=40, seed=0):
    """Sequences of attributes: words whose label depends on the word and on the label before."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        labels, words, before = [], [], "O"
        for _ in range(rng.integers(0, 7)):
            before = rng.choice(["B", "O"]) if before == "O" else rng.choice(["I", "O", "B"])
            labels.append(str(before))
            words.append(f"{'o' if before == 'O' else 'e'}{rng.integers(6)}")
        X.append([[f"w={word}", f"c={word[0]}"] for word in words])
        y.append(labels)
    return X, y


VALUES = [
    [{"a": 1.0, "b": 0.5}, {"b": 2.0}, {"c": 1.0}],
    [{"c": 1.0}, {"a": 1.0}],
    [{"b": 1.0}, {"b": 0.25}, {"a": 1.0}, {"c": 2.0}],
]
VALUE_LABELS = [["P", "Q", "R"], ["R", "P"], ["Q", "Q", "P", "R"]]


def value_labeler(X=VALUES, **parameters):
    """Trained on attributes with values, or on others of the same lengths."""
    settings = {"C": 1.0, "solver": "dca", "max_epochs": 3, "dtype": "float64", **parameters}
    return SequenceLabeler(**settings).fit(X, VALUE_LABELS)
