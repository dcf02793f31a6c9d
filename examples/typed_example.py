"""A program with types, as a user would write it: mypy and pyright accept it, with the types that partwise brings along."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from partwise import Classifier, SequenceLabeler, __version__, chain_problem, load, read_columns, solve
from partwise.bridges import AnnotatedText, TextSpan, write_annotations
from partwise.datasets import make_tagged_sequences
from partwise.metrics import SpanScores, span_scores


def train(n: int) -> SequenceLabeler:
    X, y = make_tagged_sequences(n, seed=1)
    labeler = SequenceLabeler(loss="crf", C=1.0, max_epochs=3)
    labeler.fit(X, y)
    return labeler


def judge(labeler: SequenceLabeler) -> SpanScores:
    X, y = make_tagged_sequences(20, seed=2)
    return span_scores(y, labeler.predict(X))


def again(labeler: SequenceLabeler, path: Path) -> None:
    labeler.save(path)
    model = load(path)
    print(model.classes_, __version__)


def rows() -> float:
    x = np.random.default_rng(0).normal(size=(30, 2))
    classifier = Classifier(loss="hinge", solver="sdm")
    classifier.fit(x, x[:, 0] > 0)
    return float(classifier.score(x, x[:, 0] > 0))


def packed() -> float:
    problem = chain_problem(np.eye(6), lengths=[3, 3], gold=[0, 1, 0, 1, 0, 1])
    return solve(problem, loss="hinge", solver="sdm", C=1.0).primal


def files(folder: Path) -> int:
    text = AnnotatedText("Ada sleeps", [TextSpan(0, 3, "PER")])
    (path,) = write_annotations([text], folder / "text.txt", "columns")
    return len(read_columns(path).starts)


if __name__ == "__main__":
    print(judge(train(30)).f1, rows(), packed())
