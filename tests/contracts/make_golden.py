"""Makes the golden files: models of all kinds with what they answer, commands with what they print, public names.

Made once, with the code as it was before its layout changed; kept to show how. Do not run it to "fix" a failing test: the files
stand for models and scripts that users have, and a difference is a defect, unless it was decided and written down.

    python tests/contracts/make_golden.py [NAME ...]

Only names that users have are used: ``from partwise import ...``, `partwise.load` and ``python -m partwise``. Data are tiny:
``PARTWISE_INTERPRET=1`` saves the time for compiling.
"""

from __future__ import annotations

import gzip
import importlib
import json
import shlex
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

import partwise
from golden_files import GOLDEN, Text, about, ask, from_json, plain, to_json, without_clocks, write
from golden_functions import QUESTIONS, answer
from partwise import (
    CCCP,
    SOLVERS,
    Aligner,
    Classifier,
    ConstituencyParser,
    DependencyParser,
    Family,
    GraphLabeler,
    Ramp,
    Ranker,
    Rescaled,
    RescaledRamp,
    RnaFolder,
    SequenceLabeler,
    SoftRamp,
)
from partwise.datasets import make_brackets, make_pictures, make_sentences, make_tagged_sequences

FLOAT32 = 1e-5  #: relative tolerance for models in single precision, and for answers of iterations that stop somewhere
FLOAT64 = 1e-9


class Case(NamedTuple):
    """A fitted estimator, and what to ask it."""

    name: str
    model: Any
    inputs: dict[str, Any]
    calls: list[dict[str, Any]]
    rel: float = FLOAT64


def call(name: str, *given: str, **options: Any) -> dict[str, Any]:
    """A call of a method with these inputs, ``keyword=input`` where the two are called differently; see `golden_files.ask`."""
    pairs = [(word.partition("=")[0], word.partition("=")[2] or word) for word in given]
    return {"call": name, "with": dict(pairs)} | ({"options": options} if options else {})


def attribute(name: str) -> dict[str, Any]:
    """An attribute."""
    return {"call": name}


def decoded(**inputs: Any) -> dict[str, Any]:
    """Inputs as estimators want them."""
    return {name: from_json(to_json(value)) for name, value in inputs.items()}


# ---------------------------------------------------------------------------------------------------------------------
# Classes
# ---------------------------------------------------------------------------------------------------------------------


def points(n: int, seed: int, names: tuple[Any, ...] = ("ape", "bee", "cow")) -> tuple[np.ndarray, list[Any]]:
    """Three clouds of points in four dimensions."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(len(names), size=n)
    centres = np.array([[1.0, 0.0, 0.5, 0.0], [0.0, 1.0, -0.5, 0.0], [-1.0, -0.5, 0.0, 1.0]])[: len(names)]
    return np.round(centres[codes] + rng.normal(0.0, 0.6, (n, 4)), 3), [names[c] for c in codes]


CLASS_CALLS = [
    call("predict", "X"),
    call("decision_function", "X"),
    call("decision_value", "X"),
    call("decision_value", "X", "y"),
    call("predict_kbest", "X", k=2),
    call("score", "X", "y"),
    attribute("classes_"),
    attribute("states_"),
]
PROBABILITIES = [call("predict_marginals", "X"), call("predict_proba", "X")]


def classifiers() -> Iterator[Case]:
    """`Classifier`."""
    X, y = points(30, 0)
    new, truth = points(6, 1)
    asked = {"X": new, "y": truth}

    def fitted(**parameters: Any) -> Classifier:
        return Classifier(random_state=0, **parameters).fit(X, y)

    model = fitted(loss="hinge", C=0.5, solver="sdm").calibrate(*points(20, 2))
    yield Case("classifier-hinge-calibrated", model, asked, [*CLASS_CALLS, *PROBABILITIES])
    model = Classifier("crf", C=2.0, solver="lbfgs", dtype="float32", random_state=0).fit(scipy.sparse.csr_matrix(X), y)
    sparse = {"X": scipy.sparse.csr_matrix(new), "y": truth}
    yield Case("classifier-crf-float32-sparse", model, sparse, [*CLASS_CALLS, *PROBABILITIES], FLOAT32)
    model = fitted(loss="ramp", C=0.3, solver=CCCP(SOLVERS["sdm"](cached_passes=5), epochs=4))
    yield Case("classifier-ramp-cccp", model, asked, CLASS_CALLS)
    model = fitted(loss="slack", C=0.4, solver=SOLVERS["nslack"](variant="b", every=20, epsilon=0.01))
    yield Case("classifier-slack-nslack", model, asked, CLASS_CALLS)
    yield Case("classifier-summed", fitted(loss="summed", C=0.1, solver="sdcd", fit_intercept=False), asked, CLASS_CALLS)
    yield Case("classifier-perceptron", fitted(loss="perceptron", solver="perceptron", max_epochs=3), asked, CLASS_CALLS)
    model = fitted(loss=Family(3, 1), C=0.2, solver="dca", average=False, max_epochs=5)
    yield Case("classifier-family", model, asked, [*CLASS_CALLS, *PROBABILITIES])
    model = fitted(loss=SoftRamp(2.0, 0.5), C=0.5, solver=SOLVERS["sgd"](eta=0.1), max_epochs=4, intercept_scaling=2.0)
    yield Case("classifier-soft-ramp", model, asked, [*CLASS_CALLS, *PROBABILITIES])
    model = fitted(loss=Ramp(1.0, 0.5, 2.0), C=0.5, solver="pegasos", max_epochs=6)
    yield Case("classifier-ramp-softmax", model, asked, [*CLASS_CALLS, *PROBABILITIES])
    model = fitted(loss=RescaledRamp(0.5), C=0.5, max_epochs=20)
    yield Case("classifier-rescaled-ramp", model, asked, CLASS_CALLS)
    model = fitted(loss="crf", l1_ratio=1.0, C=0.6, solver=SOLVERS["owlqn"](memory=4), max_epochs=40)
    yield Case("classifier-crf-l1", model, asked, [*CLASS_CALLS, *PROBABILITIES])
    yield Case("classifier-hinge-hidden", fitted(loss="hinge", hidden=2, C=0.5, max_epochs=20), asked, CLASS_CALLS)
    model = fitted(loss="crf", hidden=2, C=0.5, solver="lbfgs", max_epochs=20)
    yield Case("classifier-crf-hidden", model, asked, [*CLASS_CALLS, *PROBABILITIES])
    cost = {("ape", "bee"): 2.0, ("cow", "bee"): 0.5}
    model = fitted(loss="hinge", cost=cost, class_weight={"ape": 2.0}, C=0.2, solver="dca", max_epochs=5)
    model.constraints = {"allow_labels": ["ape", "cow"]}
    calls = [call("predict", "X"), call("decision_function", "X"), call("predict_kbest", "X", k=2), call("score", "X", "y")]
    yield Case("classifier-constraints", model, asked, calls)
    numbers, names = points(30, 3, (7, -2))
    model = Classifier("softmax_margin", C=0.5, solver="lbfgs", random_state=0).fit(numbers, np.array(names))
    new, truth = points(6, 4, (7, -2))
    yield Case("classifier-two-integers", model, {"X": new, "y": np.array(truth)}, [*CLASS_CALLS, *PROBABILITIES])
    partial: list[Any] = [None if k % 5 == 0 else {label, "cow"} if k % 5 == 1 else label for k, label in enumerate(y)]
    model = Classifier("hinge", C=0.3, solver="dca", max_epochs=5, random_state=0).fit(X, partial)
    yield Case("classifier-partial", model, {"X": points(6, 1)[0], "y": points(6, 1)[1]}, CLASS_CALLS)


# ---------------------------------------------------------------------------------------------------------------------
# Sequences
# ---------------------------------------------------------------------------------------------------------------------

CHAIN_CALLS = [
    call("predict", "X"),
    call("predict_codes", "X"),
    call("predict_kbest", "X", k=3),
    call("decision_value", "X"),
    call("decision_value", "X", "y"),
    call("score", "X", "y"),
    attribute("classes_"),
    attribute("states_"),
    attribute("transitions_"),
]
CHAIN_PROBABILITIES = [
    call("predict_marginals", "X"),
    call("predict_marginals", "X", pairs=True),
    call("log_probability", "X", "y"),
]


def column_text(n: int, seed: int) -> str:
    """A column file of words, parts of speech and chunks."""
    sentences = [sentence[:7] for sentence in make_sentences(n, seed)]
    return "".join("".join(" ".join(token) + "\n" for token in sentence) + "\n" for sentence in sentences)


def matrices(n: int, seed: int) -> tuple[list[np.ndarray], list[list[int]]]:
    """Sequences of three labels that follow each other in turn, mostly, seen through noise."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        steps = rng.random(int(rng.integers(1, 6))) < 0.8
        labels = (int(rng.integers(3)) + np.cumsum(steps)) % 3
        X.append(np.round(np.eye(3)[labels] + rng.normal(0.0, 0.5, (len(labels), 3)), 3))
        y.append((10 * labels).tolist())
    return X, y


def labelers() -> Iterator[Case]:
    """`SequenceLabeler`."""
    few = {"types": ("PER",), "n_words": 6, "longest": 5}
    X, y = make_tagged_sequences(20, 0, **few)
    new, truth = make_tagged_sequences(4, 1, **few)
    asked = {"X": [*new, []], "y": [*truth, []]}

    def fitted(X: Any = X, y: Any = y, **parameters: Any) -> SequenceLabeler:
        return SequenceLabeler(random_state=0, **parameters).fit(X, y)

    # losses and solvers, on lists of attributes
    model = fitted(loss="hinge", C=0.3, solver="sdm").calibrate(*make_tagged_sequences(10, 2, **few))
    known = {"known": [[None, {"O", "B-PER"}, *[None] * (len(s) - 2)][: len(s)] for s in truth] + [[]]}
    more = [call("predict", "X", "known"), call("predict_marginals", "X", "known"), call("predict_kbest", "X", "known", k=2)]
    calls = [*CHAIN_CALLS, *CHAIN_PROBABILITIES, *more]
    yield Case("sequence-hinge-calibrated", model, asked | known, [*calls, attribute("vocabulary_"), attribute("start_")])
    model = fitted(loss="crf", C=1.0, solver=SOLVERS["lbfgs"](memory=4))
    yield Case("sequence-crf", model, asked, [*CHAIN_CALLS, *CHAIN_PROBABILITIES, attribute("stop_")])
    model = fitted(loss="ramp", C=0.2, solver=CCCP(SOLVERS["sdm"](), epochs=3), max_epochs=20)
    yield Case("sequence-ramp-cccp", model, asked, CHAIN_CALLS)
    model = fitted(loss="slack", C=0.2, solver=SOLVERS["nslack"](variant="b"), max_epochs=20)
    yield Case("sequence-slack-nslack", model, asked, CHAIN_CALLS)
    yield Case("sequence-rescaled", fitted(loss=Rescaled(0.5), C=0.2, solver="sgd", max_epochs=4), asked, CHAIN_CALLS)
    yield Case("sequence-summed", fitted(loss="summed", C=0.1, solver="sdcd", max_epochs=8), asked, CHAIN_CALLS)
    model = fitted(loss="softmax_margin", C=0.5, solver="dca", average=True, max_epochs=4)
    yield Case("sequence-softmax-margin", model, asked, [*CHAIN_CALLS, *CHAIN_PROBABILITIES])
    model = fitted(loss="soft_ramp", C=0.5, solver="lbfgs", max_epochs=10)
    yield Case("sequence-soft-ramp", model, asked, [*CHAIN_CALLS, *CHAIN_PROBABILITIES])
    yield Case("sequence-perceptron", fitted(loss="perceptron", solver="perceptron", max_epochs=3), asked, CHAIN_CALLS)
    yield Case("sequence-mira", fitted(loss="hinge", C=0.2, solver="mira", average=False, max_epochs=3), asked, CHAIN_CALLS)
    model = fitted(loss="hinge", C=0.2, solver=SOLVERS["kbest_mira"](k=3), max_epochs=3)
    yield Case("sequence-kbest-mira", model, asked, CHAIN_CALLS)
    model = fitted(loss="hinge", C=0.2, solver="bcfw", max_epochs=8, early_stopping=True, validation_metric="f1", patience=3)
    yield Case("sequence-bcfw-stopped", model, asked, CHAIN_CALLS)
    model = fitted(loss="crf", C=1.0, l1_ratio=0.9, solver="owlqn", max_epochs=60)
    yield Case("sequence-crf-l1", model, asked, [*CHAIN_CALLS, *CHAIN_PROBABILITIES])
    model = fitted(loss="hinge", C=0.5, l1_ratio=0.5, solver=SOLVERS["admm"](relaxation=1.5), max_epochs=30)
    yield Case("sequence-hinge-l1-float32", model.set_params(dtype="float32").fit(X, y), asked, CHAIN_CALLS, FLOAT32)

    # shapes of the model
    yield Case("sequence-hinge-hidden", fitted(loss="hinge", C=0.3, hidden=2, solver="dca", max_epochs=5), asked, CHAIN_CALLS)
    model = fitted(loss="crf", C=0.5, hidden=2, solver="lbfgs", max_epochs=10)
    yield Case("sequence-crf-hidden", model, asked, [*CHAIN_CALLS, *CHAIN_PROBABILITIES])
    model = fitted(loss="crf", C=1.0, order=2, solver="lbfgs", max_epochs=20)
    second = [*CHAIN_CALLS, *CHAIN_PROBABILITIES, call("higher_transitions", order=2)]
    yield Case("sequence-crf-order-2", model, asked, second)
    model = fitted(loss="hinge", C=0.3, order=2, constraints="iob2", solver="sdm", max_epochs=20)
    yield Case("sequence-hinge-order-2-scheme", model, asked, CHAIN_CALLS)
    rules = {"forbid": [("O", "I-PER")], "forbid_start": ["I-PER"], "scheme": "iob2"}
    model = fitted(loss="crf", C=1.0, constraints=rules, solver="lbfgs", max_epochs=20)
    yield Case("sequence-crf-constraints", model, asked, [*CHAIN_CALLS, *CHAIN_PROBABILITIES])
    model = fitted(loss="hinge", C=0.3, constraints=[(None, "I-PER"), ("O", "I-PER")], solver="dca", max_epochs=4,
                   use_start=False, use_stop=False, cost={("O", "B-PER"): 2.0}, class_weight={"O": 0.5})  # fmt: skip
    yield Case("sequence-hinge-costs", model, asked, CHAIN_CALLS)
    model = fitted(loss="crf", C=1.0, use_transitions=False, solver="lbfgs", max_epochs=20)
    yield Case("sequence-crf-independent", model, asked, [*CHAIN_CALLS, *CHAIN_PROBABILITIES])
    partial = [[None if t % 3 == 1 else {label, "O"} if t % 3 == 2 else label for t, label in enumerate(s)] for s in y]
    model = fitted(y=partial, loss="crf", C=1.0, solver="lbfgs", max_epochs=10)
    yield Case("sequence-crf-partial", model, asked, [*CHAIN_CALLS, *CHAIN_PROBABILITIES])

    pairs = [[tuple(label.split("-")) for label in s] for s in y]
    inputs = {"X": new, "y": [[tuple(label.split("-")) for label in s] for s in truth]}
    yield Case("sequence-tuples-as-labels", fitted(y=pairs, loss="hinge", C=0.3, solver="sdm"), inputs, CHAIN_CALLS)

    # encoders
    dicts, labels = make_tagged_sequences(20, 0, as_dicts=True, **few)
    model = fitted(dicts, labels, loss="crf", C=1.0, solver="lbfgs", max_epochs=20, min_count=2)
    new, truth = make_tagged_sequences(4, 1, as_dicts=True, **few)
    yield Case("sequence-crf-dicts", model, {"X": new, "y": truth}, [*CHAIN_CALLS, *CHAIN_PROBABILITIES])
    X, y = matrices(20, 0)
    model = fitted(X, y, loss="softmax_margin", C=1.0, solver="lbfgs", dtype="float32", max_epochs=20)
    new, truth = matrices(5, 1)
    yield Case("sequence-matrices-float32", model, {"X": new, "y": truth}, [*CHAIN_CALLS, *CHAIN_PROBABILITIES], FLOAT32)
    joined = scipy.sparse.csr_matrix(np.concatenate(X))
    lengths = [len(x) for x in X]
    model = SequenceLabeler("hinge", C=0.5, solver="sdm", random_state=0).fit(joined, np.concatenate(y), lengths=lengths)
    end_to_end = {
        "X": scipy.sparse.csr_matrix(np.concatenate(new)), "y": np.concatenate(truth), "lengths": np.array([len(x) for x in new])
    }  # fmt: skip
    calls = [call("predict", "X", "lengths"), call("predict_kbest", "X", "lengths", k=2), call("score", "X", "y", "lengths")]
    yield Case("sequence-sparse-end-to-end", model, end_to_end, [*calls, attribute("coef_")])
    train, text = (Text.of("columns", column_text(n, seed)) for n, seed in ((15, 0), (4, 1)))
    columns = [call("predict", "X"), call("predict_kbest", "X", k=3), call("decision_value", "X"), call("score", "X")]
    templates = ["w[0]", "w[-1]|w[0]", "suffix2(lower(w[0]))", "pos[0]", "pos[-1]|pos[0]", "match('[A-Z]', w[0])", "__BOS__"]
    model = SequenceLabeler("hinge", C=0.05, solver="dca", templates=templates, max_epochs=4, dtype="float32", random_state=0)
    names = [call("feature_name", j=j) for j in (0, 40, 80)]
    yield Case("sequence-templates", model.fit(train.data()), {"X": text}, [*columns, *names], FLOAT32)
    model = SequenceLabeler("crf", C=0.5, solver="lbfgs", templates="chunking", min_count=3, max_epochs=15, random_state=0)
    more = [call("predict_marginals", "X"), attribute("label_column_")]
    yield Case("sequence-templates-chunking", model.fit(train.data()), {"X": text}, [*columns, *more])
    crf = ["U00:%x[0,0]", "U01:%x[-1,1]/%x[0,1]", "B"]
    model = SequenceLabeler("hinge", C=0.1, solver="dca", templates=crf, hash_bits=8, max_epochs=4, random_state=0)
    yield Case("sequence-templates-hashed", model.fit(train.data()), {"X": text}, columns)


# ---------------------------------------------------------------------------------------------------------------------
# Trees
# ---------------------------------------------------------------------------------------------------------------------


def treebank(n: int, seed: int) -> str:
    """Subjects, verbs, objects, adjectives, and full stops."""
    rng = np.random.default_rng(seed)
    lines = []
    for _ in range(n):
        words = [(str(rng.choice(["dogs", "we", "men"])), "N", "nsubj"), (str(rng.choice(["eat", "see"])), "V", "root")]
        if rng.random() < 0.5:
            words.append((str(rng.choice(["old", "big"])), "A", "amod"))
        words.append((str(rng.choice(["cats", "fish"])), "N", "obj"))
        if rng.random() < 0.5:
            words.append((".", "P", "obj"))
        last = max(k for k, (_, tag, _) in enumerate(words, 1) if tag == "N")
        heads = [0 if tag == "V" else last if tag == "A" else 2 for _, tag, _ in words]
        rows = [
            f"{k}\t{form}\t_\t{tag}\t_\t_\t{head}\t{relation}\t_\t_"
            for k, ((form, tag, relation), head) in enumerate(zip(words, heads, strict=True), 1)
        ]
        lines += ["# a sentence", *rows, ""]
    return "\n".join(lines) + "\n"


def parsers() -> Iterator[Case]:
    """`DependencyParser`."""
    train, text = (Text.of("treebank", treebank(n, seed)) for n, seed in ((15, 0), (3, 1)))
    asked = {"X": text}
    calls = [call("predict", "X"), call("attachment", "X"), call("score", "X"), call("parse", "treebank=X")]
    kbest, marginals = call("predict_kbest", "X", k=3), call("predict_marginals", "X")
    few = {"hash_bits": 9, "max_epochs": 3, "random_state": 0}
    model = DependencyParser("hinge", C=0.05, solver="dca", **few).fit(train.data())
    yield Case("dependency-hinge", model, asked, [*calls, kbest, attribute("classes_"), attribute("tags_")], FLOAT32)
    model = DependencyParser("crf", C=0.5, solver="lbfgs", projective=True, relations=False, dtype="float64", **few)
    yield Case("dependency-crf-projective", model.fit(train.data()), asked, [*calls, kbest, marginals])
    templates = ["h.form|m.form", "h.upos|m.upos", "h.upos|b.upos|m.upos"]
    model = DependencyParser("softmax_margin", C=0.3, solver="dca", templates=templates, columns=["form", "upos"],
                             single_root=False, relations=False, dtype="float64", **few)  # fmt: skip
    X = [[("dogs", "N"), ("eat", "V"), ("fish", "N")], [("we", "N"), ("see", "V")], [("old", "A"), ("men", "N"), ("eat", "V")]]
    trees = [[2, 0, 2], [2, 0], [2, 3, 0]]
    inputs = {"X": [X[0], X[2][1:], []], "y": [trees[0], [2, 0], []]}
    more = [call("predict", "X"), call("score", "X", "y"), kbest, marginals]
    yield Case("dependency-tuples", model.fit(X, trees), inputs, more)
    model = DependencyParser("hinge", C=0.05, solver="dca", order=2, candidates=4, relations=False, dtype="float64", **few)
    yield Case("dependency-hinge-order-2", model.fit(train.data()), asked, calls)
    model = DependencyParser("crf", C=0.5, solver="dca", order=2, projective=True, relations=False, dtype="float64", **few)
    yield Case("dependency-crf-order-2", model.fit(train.data()), asked, [*calls, marginals], FLOAT32)


def constituency() -> Iterator[Case]:
    """`ConstituencyParser`."""
    train, trees = ([str(tree) for tree in make_brackets(n, seed=seed, depth=2)] for n, seed in ((12, 0), (3, 1)))
    bank = Text.of("brackets", "\n".join(train) + "\n")
    asked = {"X": Text.of("brackets", "\n".join(trees) + "\n")}
    calls = [call("predict", "X"), call("brackets", "X"), call("score", "X"), call("parse", "X"), call("predict_kbest", "X", k=2)]
    few = {"hash_bits": 6, "max_epochs": 3, "random_state": 0}
    model = ConstituencyParser("hinge", C=0.1, solver="dca", **few).fit(bank.data())
    yield Case("constituency-hinge", model, asked, [*calls, attribute("classes_")], FLOAT32)
    model = ConstituencyParser("crf", C=0.5, solver="lbfgs", markov=1, dtype="float64", **few).fit(bank.data())
    yield Case("constituency-crf-markov", model, asked, [*calls, call("predict_marginals", "X")])
    model = ConstituencyParser("softmax_margin", C=0.5, solver="dca", tags="predicted", templates=["f.form|l.form", "f.form[-1]"],
                               markov=None, dtype="float64", **few).fit(bank.data())  # fmt: skip
    words = [[word for word, _ in tree.leaves()] for tree in asked["X"].data().trees]
    inputs = {"X": words, "y": trees}
    more = [call("predict", "X"), call("predict_kbest", "X", k=2), call("score", "X", "y"), call("predict_marginals", "X")]
    yield Case("constituency-predicted-tags", model, inputs, more)


# ---------------------------------------------------------------------------------------------------------------------
# Alignments, foldings
# ---------------------------------------------------------------------------------------------------------------------


def rows(n: int, seed: int) -> list[tuple[str, str]]:
    """Rows of DNA in which letters change now and then, and some are lost."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n):
        first, second = "", ""
        for letter in rng.choice(list("ACGT"), rng.integers(4, 8)):
            kind = rng.random()
            first += str(letter) if kind < 0.9 else "-"
            second += "-" if kind < 0.12 else str(rng.choice(list("ACGT"))) if kind < 0.2 else str(letter)
        found.append((first, second))
    return found


def table(n: int, seed: int) -> str:
    """A table of alignments in which some columns are reliable."""
    lines = [f"s{k}\tt{k}\t{a}\t{b}\tf{k % 2}\t" + "1" * (len(a) - 1) + "0" for k, (a, b) in enumerate(rows(n, seed))]
    return "\n".join(["id1\tid2\trow1\trow2\tfamily\tcore", *lines, ""])


def aligners() -> Iterator[Case]:
    """`Aligner`."""
    y, truth = rows(14, 0), rows(3, 1)
    X, new = ([tuple(row.replace("-", "") for row in two) for two in some] for some in (y, truth))
    asked = {"X": [*new, ("ACG", "")], "y": [*truth, ("ACG", "---")]}
    calls = [
        call("predict", "X"),
        call("predict_kbest", "X", k=3),
        call("accuracy", "X", "y"),
        call("score", "X", "y"),
        call("substitution_matrix"),
        call("gap_scores"),
        attribute("classes_"),
    ]
    marginals = call("predict_marginals", "X")
    few = {"max_epochs": 4, "random_state": 0}
    yield Case("alignment-crf", Aligner("crf", C=0.1, solver="dca", **few).fit(X, y), asked, [*calls, marginals])
    model = Aligner("crf", C=0.1, solver="lbfgs", mode="local", decode="best", **few).fit(X, y)
    yield Case("alignment-crf-local", model, asked, [*calls, marginals])
    model = Aligner("hinge", C=0.1, solver="dca", precision_weight=0.5, cost_scale=2.0, **few).fit(X, y).calibrate(X, y)
    yield Case("alignment-hinge-calibrated", model, asked, [*calls, marginals])
    model = Aligner("hinge", C=0.1, solver="sdm", mode="local", dtype="float32", **few).fit(X, y)
    yield Case("alignment-hinge-local-float32", model, asked, calls, FLOAT32)
    properties = {"kind": {"A": "purine", "G": "purine", "C": "pyrimidine", "T": "pyrimidine"}}
    templates = ["a.letter|b.letter", "a.kind[-1]|b.kind", "g", "g.kind"]
    model = Aligner("softmax_margin", C=0.1, solver="dca", symmetric=False, wildcard="N", properties=properties,
                    templates=templates, core="known", **few)  # fmt: skip
    train, text = (Text.of("alignments", table(n, seed)) for n, seed in ((10, 0), (3, 1)))
    more = [call("predict", "X"), call("accuracy", "X"), call("substitution_matrix"), marginals]
    yield Case("alignment-table-wildcard", model.fit(train.data()), {"X": text}, more)


def hairpins(n: int, seed: int) -> tuple[list[str], list[str]]:
    """A helix of G and C around a loop of A and U."""
    rng = np.random.default_rng(seed)
    sequences, structures = [], []
    for _ in range(n):
        stem, loop = int(rng.integers(2, 5)), int(rng.integers(3, 5))
        left = "".join(rng.choice(list("GC"), stem))
        right = left[::-1].translate(str.maketrans("GC", "CG"))
        sequences.append("A" + left + "".join(rng.choice(list("AU"), loop)) + right)
        structures.append("." + "(" * stem + "." * loop + ")" * stem)
    return sequences, structures


def fasta(n: int, seed: int) -> str:
    """The same as a file."""
    return "".join(f">rna{k}\n{a}\n{b}\n" for k, (a, b) in enumerate(zip(*hairpins(n, seed), strict=True)))


def folders() -> Iterator[Case]:
    """`RnaFolder`."""
    X, y = hairpins(8, 0)
    new, truth = hairpins(3, 1)
    asked = {"X": new, "y": truth}
    calls = [
        call("predict", "X"),
        call("predict_kbest", "X", k=2),
        call("decision_value", "X"),
        call("decision_value", "X", "y"),
        call("base_pairs", "X", "y"),
        call("score", "X", "y"),
    ]
    marginals = call("predict_marginals", "X")
    few = {"max_epochs": 3, "random_state": 0}
    yield Case("folding-crf", RnaFolder("crf", C=0.1, solver="dca", **few).fit(X, y), asked, [*calls, marginals])
    model = RnaFolder("hinge", C=0.1, solver="dca", trade_off=0.3, relative_cost=True, dtype="float32", **few).fit(X, y)
    yield Case("folding-hinge-float32", model, asked, calls, FLOAT32)
    model = RnaFolder("softmax_margin", C=0.1, solver="dca", decode="mea", gamma=2.0, pairs=None, max_loop=6, **few).fit(X, y)
    yield Case("folding-softmax-margin", model, asked, [*calls[:1], *calls[2:], marginals])
    model = RnaFolder("crf", C=1.0, solver="owlqn", l1_ratio=1.0, decode="best", **few)
    train, text = Text.of("rna", fasta(8, 0)), Text.of("rna", fasta(3, 1))
    yield Case("folding-crf-l1", model.fit(train.data()), {"X": text}, [call("predict", "X"), call("score", "X"), marginals])


# ---------------------------------------------------------------------------------------------------------------------
# Rankings, graphs
# ---------------------------------------------------------------------------------------------------------------------


def documents(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Queries of four documents with three features."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(4 * n, 3)), 3)
    relevance = np.clip(np.round(X @ [1.0, -0.5, 0.2] + rng.normal(0.0, 0.3, 4 * n)), 0, 2).astype(int)
    relevance[::4] = 1
    return X, relevance, np.repeat(np.arange(n), 4)


def letor(n: int, seed: int) -> str:
    """The same as a file."""
    lines = zip(*documents(n, seed), strict=True)
    return "".join(
        f"{label} qid:{q} {' '.join(f'{f}:{v}' for f, v in enumerate(x.tolist(), 1))} #doc {i}\n"
        for i, (x, label, q) in enumerate(lines)
    )


def rankers() -> Iterator[Case]:
    """`Ranker`."""
    X, y, groups = documents(8, 0)
    new, truth, queries = documents(3, 1)
    asked = {"X": new, "y": truth, "groups": queries}
    calls = [
        call("predict", "X"),
        call("decision_function", "X"),
        call("rank", "X", "groups"),
        call("score", "X", "y", "groups"),
        call("predict_kbest", "X", "groups", k=2),
    ]
    few = {"C": 0.5, "max_epochs": 20, "random_state": 0}
    model = Ranker("ramp_do", solver="sdm", objective="ndcg", k=3, **few).fit(X, y, groups=groups)
    yield Case("ranking-ndcg-ramp", model, asked, calls)
    positions = {"positions": "reciprocal", "ties": "first"}
    model = Ranker("hinge", solver="sdm", objective="ndcg", k=2, **positions, **few).fit(X, y, groups=groups)
    yield Case("ranking-ndcg-hinge", model, asked, calls)
    model = Ranker("hinge", solver="sdm", objective="pairwise", dtype="float32", **few)
    model.fit(scipy.sparse.csr_matrix(X), y, groups=groups)
    yield Case("ranking-pairs-float32", model, {**asked, "X": scipy.sparse.csr_matrix(new)}, calls, FLOAT32)
    model = Ranker("crf", solver="lbfgs", objective="pairwise", pair_weight="equal", **few)
    text = Text.of("letor", letor(3, 1))
    more = [call("predict", "X"), call("rank", "X"), call("score", "X"), call("predict_marginals", "X")]
    yield Case("ranking-pairs-crf", model.fit(Text.of("letor", letor(8, 0)).data()), {"X": text}, more)


def paths(n: int, seed: int, edge_features: bool = False) -> tuple[list[Any], list[Any]]:
    """Short paths whose labels come in runs."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        k = int(rng.integers(3, 6))
        labels = np.cumsum(rng.random(k) < 0.4) % 3
        nodes = np.round(np.eye(3)[labels] + rng.normal(0.0, 0.4, (k, 3)), 3)
        edges = np.stack([np.arange(k - 1), np.arange(1, k)], axis=1)
        same = (labels[1:] == labels[:-1]).astype(float)[:, None]
        X.append((nodes, edges, same) if edge_features else (nodes, edges))
        y.append(["abc"[c] for c in labels])
    return X, y


def rings(n: int, seed: int) -> tuple[list[Any], list[Any]]:
    """Cycles of four nodes: the search is AD3's."""
    X, y = paths(n, seed)
    ring = np.array([[0, 1], [1, 2], [2, 3], [3, 0]])
    return [(np.concatenate([x[0], x[0]])[:4], ring) for x in X], [(labels + labels)[:4] for labels in y]


def pictures(n: int, seed: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Pictures of four by four pixels."""
    X, y = make_pictures(n, seed, size=(4, 4), n_labels=3, noise=0.25, shapes=2)
    return [np.round(x, 3) for x in X], list(y)


def graph_text(n: int, seed: int, pixels: bool = False) -> str:
    """Graphs or pictures as JSON lines."""
    if pixels:
        found = [{"image": x.tolist(), "labels": y.tolist()} for x, y in zip(*pictures(n, seed), strict=True)]
    else:
        keys = ("nodes", "edges", "edge_features")
        graphs, labels = paths(n, seed, edge_features=True)
        found = [
            {key: part.tolist() for key, part in zip(keys, graph, strict=True)} | {"labels": own}
            for graph, own in zip(graphs, labels, strict=True)
        ]
    return "".join(json.dumps(row) + "\n" for row in found)


def graphs() -> Iterator[Case]:
    """`GraphLabeler`."""
    calls = [
        call("predict", "X"),
        call("predict_kbest", "X", k=2),
        call("certify", "X"),
        call("node_scores", "X", "y"),
        call("score", "X", "y"),
        attribute("classes_"),
        attribute("coef_"),
        attribute("pairwise_"),
        attribute("edge_names_"),
    ]
    marginals = call("predict_marginals", "X")
    few = {"max_epochs": 5, "random_state": 0}
    new, truth = paths(3, 1)
    model = GraphLabeler("hinge", C=0.3, solver="dca", **few).fit(*paths(8, 0))
    yield Case("graph-hinge-paths", model, {"X": new, "y": truth}, calls)
    model = GraphLabeler("crf", C=1.0, solver="lbfgs", pairwise="symmetric", **few).fit(*paths(8, 0, True))
    new, truth = paths(3, 1, True)
    yield Case("graph-crf-edge-features", model, {"X": new, "y": truth}, [*calls, marginals])
    X, y = rings(6, 0)
    y = [[None if v == i % 5 else label for v, label in enumerate(labels)] for i, labels in enumerate(y)]
    model = GraphLabeler("hinge", C=0.3, solver="bcfw", pairwise="symmetric", inference="exact", class_weight={"a": 2.0},
                         search={"iterations": 200}, **few).fit(X, y)  # fmt: skip
    new, truth = rings(2, 1)
    yield Case("graph-hinge-rings-exact", model, {"X": new, "y": truth}, calls)
    X, y = pictures(3, 0)
    few["max_epochs"] = 3
    model = GraphLabeler("hinge", C=0.3, solver="dca", pairwise="potts", contrast=True, neighbours=8, unknown=-1, **few)
    new, truth = pictures(1, 1)
    unknown = [np.where(np.arange(4) > 2, -1, labels) for labels in y]
    yield Case("graph-hinge-pictures", model.fit(X, unknown), {"X": new, "y": truth}, calls)
    model = GraphLabeler("crf", C=0.3, solver="dca", pairwise="potts", search={"damping": 0.3}, fit_intercept=False, **few)
    yield Case("graph-crf-pictures", model.fit(X, y), {"X": new, "y": truth}, [*calls, marginals], FLOAT32)
    rng = np.random.default_rng(5)
    examples = np.round(rng.normal(size=(24, 2)), 3)
    on = np.stack([examples[:, 0] > 0, examples[:, 0] + examples[:, 1] > 0, examples[:, 1] > 0.3], axis=1).astype(int)
    inputs = {"X": examples[20:], "y": on[20:]}
    model = GraphLabeler("crf", C=1.0, solver="lbfgs", label_edges="tree", **few).fit(examples[:20], on[:20])
    yield Case("graph-crf-multilabel", model, inputs, [*calls, marginals, attribute("label_edges_")])
    model = GraphLabeler("hinge", C=0.5, solver="dca", label_edges="full", dtype="float32", **few)
    yield Case("graph-hinge-multilabel-float32", model.fit(examples[:20], on[:20]), inputs, calls, FLOAT32)


# ---------------------------------------------------------------------------------------------------------------------
# The command line
# ---------------------------------------------------------------------------------------------------------------------


def training(task: str, file: str, *words: Any) -> list[str]:
    """A command that leaves nothing to defaults that may change."""
    return ["train", task, file, "-o", "model", "--seed", "0", *map(str, words), "--json"]


def answers(test: str, out: str, *inspected: str) -> list[list[str]]:
    """Commands that ask a trained model."""
    return [
        ["evaluate", "model", test, "--seed", "0", "--json"],
        ["predict", "model", test, "-o", out, "--json"],
        ["predict", "model", test, "--format", "jsonl"],
        ["inspect", "model", *inspected, "--json"],
    ]


def commands() -> dict[str, tuple[dict[str, str], list[list[str]]]]:
    """Of each task the files, and the commands in their order."""
    dca = ("--solver", "dca", "--no-average", "--tol", 0)
    wrong = column_text(5, 1).replace("to TO I-VP", "to TO B-PP").replace("bank NN I-NP", "bank NN B-NP")
    tags = "w[0]\nw[-1]|w[0]\npos[0]\npos[-1]|pos[0]\nsuffix2(w[0])\n"
    arcs, spans = "h.upos|m.upos\nh.form|m.form\nh.upos|b.upos|m.upos\n", "f.tag|l.tag\nl.form\nf.form[-1]\n"
    brackets = ["\n".join(map(str, make_brackets(n, seed=seed, depth=2))) + "\n" for n, seed in ((12, 0), (4, 1))]
    return {
        "tag": (
            {"train.txt": column_text(20, 0), "test.txt": wrong, "templates": tags},
            [
                training("tag", "train.txt", "--templates", "templates", "--loss", "hinge", "-C", 0.05, *dca, "--epochs", 3,
                         "--dtype", "float64"),
                *answers("test.txt", "out.txt", "--top", "2"),
                ["predict", "model", "test.txt", "--kbest", "2"],
                ["evaluate", "model", "test.txt", "--seed", "0", "--conlleval"],
                ["inspect", "model", "--transitions", "--json"],
                ["inspect", "model", "--explain", "test.txt", "--line", "2", "--json"],
                training("tag", "train.txt", "--templates", "templates", "--loss", "crf", "-C", 1, "--solver", "lbfgs",
                         "--epochs", 10, "--tol", 0, "--dtype", "float64", "--constraints", "iob2", "--certify"),
                ["predict", "model", "test.txt", "--all-marginals"],
                training("tag", "train.txt", "--templates", "templates", "--hash-bits", 8, "--loss", "hinge", "-C", 0.05, *dca,
                         "--epochs", 2, "--dtype", "float32", "--scheme", "iobes", "--constraints", "auto"),
                *answers("test.txt", "other.txt")[:2],
            ],
        ),
        "parse": (
            {"train.conllu": treebank(15, 0), "test.conllu": treebank(4, 1), "templates": arcs},
            [
                training("parse", "train.conllu", "--templates", "templates", "--hash-bits", 9, "--loss", "hinge", "-C", 0.05,
                         *dca, "--epochs", 3, "--dtype", "float64"),
                *answers("test.conllu", "out.conllu", "--top", "3"),
                ["predict", "model", "test.conllu", "--format", "tree"],
            ],
        ),
        "constituency": (
            {"train.mrg": brackets[0], "test.mrg": brackets[1], "templates": spans},
            [
                training("constituency", "train.mrg", "--templates", "templates", "--hash-bits", 8, "--loss", "hinge", "-C", 0.1,
                         *dca, "--epochs", 2, "--dtype", "float64", "--markov", 0, "--tags", "given"),
                *answers("test.mrg", "out.mrg", "--top", "3"),
            ],
        ),
        "align": (
            {"train.tsv": table(10, 0), "test.tsv": table(3, 1)},
            [
                training("align", "train.tsv", "--loss", "crf", "-C", 0.1, *dca, "--epochs", 3, "--dtype", "float64", "--mode",
                         "global", "--core", "cost"),
                *answers("test.tsv", "out.tsv", "--top", "3"),
            ],
        ),
        "fold": (
            {"train.fasta": fasta(8, 0), "test.fasta": fasta(3, 1)},
            [
                training("fold", "train.fasta", "--loss", "crf", "-C", 0.1, *dca, "--epochs", 2, "--dtype", "float64", "--decode",
                         "auto"),
                *answers("test.fasta", "out.fasta", "--top", "3"),
            ],
        ),
        "rank": (
            {"train.txt": letor(8, 0), "test.txt": letor(3, 1)},
            [
                training("rank", "train.txt", "--objective", "ndcg", "-k", 3, "--loss", "ramp_do", "-C", 1, "--solver", "sdm",
                         "--epochs", 20, "--tol", 0.01, "--dtype", "float64"),
                *answers("test.txt", "out.txt", "--top", "3"),
                training("rank", "train.txt", "--objective", "pairwise", "--raw", "--loss", "hinge", "-C", 0.5, *dca,
                         "--epochs", 3, "--dtype", "float64"),
                ["evaluate", "model", "test.txt", "--seed", "0", "--json"],
            ],
        ),
        "graph": (
            {"train.jsonl": graph_text(6, 0), "test.jsonl": graph_text(3, 1), "pictures.jsonl": graph_text(2, 2, pixels=True)},
            [
                training("graph", "train.jsonl", "--loss", "hinge", "-C", 0.3, *dca, "--epochs", 4, "--dtype", "float64"),
                *answers("test.jsonl", "out.jsonl", "--top", "3"),
                training("graph", "pictures.jsonl", "--loss", "hinge", "-C", 0.3, *dca, "--epochs", 2, "--dtype", "float64",
                         "--pairwise", "potts", "--contrast"),
                ["evaluate", "model", "pictures.jsonl", "--seed", "0", "--json"],
            ],
        ),
    }  # fmt: skip


def record(files: dict[str, str], steps: list[list[str]]) -> dict[str, Any]:
    """Run the commands in a folder of their own; what they print, and what they write besides models."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            Path(folder, name).write_text(text)
        printed = []
        for words in steps:
            ran = subprocess.run([sys.executable, "-m", "partwise", *words], cwd=folder, capture_output=True, text=True)
            if ran.returncode:
                raise SystemExit(f"partwise {' '.join(words)}\n{ran.stderr}")
            own: dict[str, Any] = {"command": shlex.join(words)}
            try:
                own["json"] = without_clocks(json.loads(ran.stdout))
            except ValueError:
                own["text"] = ran.stdout
            if words[0] == "predict" and "-o" in words:
                own["written"] = Path(folder, words[words.index("-o") + 1]).read_text()
            printed.append(own)
    return {"files": files, "commands": printed}


# ---------------------------------------------------------------------------------------------------------------------
# Public names
# ---------------------------------------------------------------------------------------------------------------------


def names() -> dict[str, Any]:
    """Names that users import, and those of modules that are not for them."""

    def listed(module: str) -> list[str]:
        return sorted(importlib.import_module(module).__all__)

    facades = {module: listed(module) for module in ("partwise", "partwise.datasets", "partwise.metrics", "partwise.crfsuite")}
    facades["partwise.crfsuite.metrics"] = [
        "flat_accuracy_score", "flat_classification_report", "flat_f1_score", "flat_fbeta_score", "flat_precision_score",
        "flat_recall_score", "sequence_accuracy_score",
    ]  # fmt: skip
    facades["partwise.crfsuite.scorers"] = listed("partwise.crfsuite.scorers")
    facades["partwise.crfsuite.utils"] = ["flatten"]
    losses = ["LOSSES", "Family", "Loss", "Ramp", "Rescaled", "RescaledRamp", "SoftRamp", "Summed", "get_loss"]
    internal = {"partwise.structures": listed("partwise.structures"), "partwise.solvers": listed("partwise.solvers")}
    return {
        "facades": facades,
        "internal": {**internal, "partwise.losses": losses},
        "losses": sorted(partwise.LOSSES),
        "solvers": sorted(partwise.SOLVERS),
    }


# ---------------------------------------------------------------------------------------------------------------------
# Writing
# ---------------------------------------------------------------------------------------------------------------------


def refuse_ties(case: str, question: dict[str, Any], said: Any) -> None:
    """Raise where the k best have scores that rounding errors decide between: nobody could compare them later."""
    if question["call"] != "predict_kbest" or not isinstance(said[0], list) or not isinstance(said[0][0], list):
        return
    for found in said:
        values = [row[-1] for row in found if isinstance(row[-1], float)]
        close = [a - b for a, b in zip(values, values[1:], strict=False) if abs(a - b) < 1e-4]
        if close:
            raise SystemExit(f"{case}: among the k best there is a tie: {values}. Choose other data.")


def save(case: Case) -> None:
    """One model and what it answers, asked of the model as it comes from the file."""
    path = GOLDEN / f"{case.name}.model"
    case.model.save(path)
    data = path.read_bytes()
    model = partwise.load(path)
    path.unlink()
    packed = gzip.compress(data, mtime=0)
    (GOLDEN / f"{case.name}.model.gz").write_bytes(packed)
    inputs, calls = decoded(**case.inputs), []
    for question in case.calls:
        said = ask(model, question, inputs)
        refuse_ties(case.name, question, said)
        calls.append({**question, "answer": said})
    given = {name: to_json(value) for name, value in case.inputs.items()}
    write(case.name, {"rel": case.rel, **about(model), "inputs": given, "calls": calls})
    size = (GOLDEN / f"{case.name}.json").stat().st_size
    print(f"{case.name}: model {len(packed):,} of {len(data):,} bytes, answers {size:,} bytes", file=sys.stderr)


def main(wanted: list[str]) -> None:
    """Make all of them, or those whose names begin with one of `wanted`."""
    warnings.simplefilter("ignore")
    GOLDEN.mkdir(exist_ok=True)

    def asked_for(name: str) -> bool:
        return not wanted or any(name.startswith(word) for word in wanted)

    makers = {
        "classifier": classifiers, "sequence": labelers, "dependency": parsers, "constituency": constituency,
        "alignment": aligners, "folding": folders, "ranking": rankers, "graph": graphs,
    }  # fmt: skip
    for kind, maker in makers.items():
        if asked_for(kind) or any(word.startswith(kind) for word in wanted):
            for case in maker():
                if asked_for(case.name):
                    save(case)
    for task, (files, steps) in commands().items():
        if asked_for(f"cli-{task}"):
            write(f"cli-{task}", record(files, steps))
            print(f"cli-{task}", file=sys.stderr)
    if asked_for("functions"):
        write("functions", {question.__name__: answer(question) for question in QUESTIONS})
    if asked_for("names"):
        write("names", plain(names()))


if __name__ == "__main__":
    main(sys.argv[1:])
