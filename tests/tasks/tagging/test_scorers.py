"""Scorers for scikit-learn's model selection."""

import pickle

import numpy as np
import pytest

from partwise import metrics
from partwise.metrics import Scorer, span_f1, span_f1_scorer


class Parrot:
    def predict(self, X):
        return X


def test_scorers_by_hand():
    true, predicted = [["B-X", "I-X", "B-Y"], ["O"]], [["B-X", "I-X", "B-X"], ["O"]]
    values = {name: getattr(metrics, name)(Parrot(), predicted, true) for name in metrics.__all__ if name.endswith("_scorer")}
    assert values == {
        "span_f1_scorer": 0.5,
        "span_precision_scorer": 0.5,
        "span_recall_scorer": 0.5,
        "token_accuracy_scorer": 0.75,
        "sequence_accuracy_scorer": 0.5,
    }
    assert Scorer("recall", "X")(Parrot(), predicted, true) == 1.0 and Scorer("f1", "Z")(Parrot(), predicted, true) == 0.0
    assert Scorer("accuracy")(Parrot(), [["N"]], [["N"]]) == 1.0
    assert pickle.loads(pickle.dumps(span_f1_scorer)) == span_f1_scorer
    with pytest.raises(ValueError, match="is not of the form"):
        span_f1_scorer(Parrot(), [["N"]], [["N"]])
    with pytest.raises(ValueError, match="'measure' parameter of Scorer must be one of 'accuracy'.* Got 'F' instead"):
        Scorer("F")
    with pytest.raises(ValueError, match="'type' parameter of Scorer is for precision, recall, f1"):
        Scorer("accuracy", "X")


def test_scorers_in_scikit_learn():
    from sklearn.model_selection import GridSearchCV, cross_val_score

    from partwise import SequenceLabeler

    lengths, draw = np.random.default_rng(99).integers(1, 9, 12), np.random.default_rng(99)
    y = [[["O", "B-X", "I-X", "B-Y"][k] for k in draw.integers(4, size=length)] for length in lengths]
    x = [[[label] for label in labels] for labels in y]
    labeler = SequenceLabeler(solver="dca", max_epochs=2, random_state=0)
    scoring = {"f1": span_f1_scorer, "accuracy": metrics.token_accuracy_scorer, "X": Scorer("f1", "X")}
    search = GridSearchCV(labeler, {"C": [1e-6, 1.0]}, scoring=scoring, refit="f1", cv=2).fit(x, y)
    assert search.best_params_ == {"C": 1.0} and search.score(x, y) == span_f1(y, search.predict(x))
    assert np.isfinite(search.cv_results_["mean_test_X"]).all()
    scores = cross_val_score(labeler, x, y, scoring=metrics.sequence_accuracy_scorer, cv=2)
    assert scores.shape == (2,) and (0 <= scores).all() and (scores <= 1).all()
