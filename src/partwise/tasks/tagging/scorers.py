"""Scorers for scikit-learn's model selection: ``GridSearchCV(labeler, grid, scoring=span_f1_scorer)``.

scikit-learn takes any function of (estimator, X, y) for a scorer, so nothing of it is imported here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from partwise.tasks.tagging.counts import MEASURES, SPAN_MEASURES, sequence_counts


@dataclass(frozen=True)
class Scorer:
    """Predict, and measure; greater is better.

    Parameters
    ----------
    measure : {"accuracy", "sequence_accuracy", "precision", "recall", "f1"}
    type : str, optional
        Only spans of this type, for precision, recall and f1; 0 if there are none.

    Examples
    --------
    ::

        GridSearchCV(labeler, {"C": [0.1, 1]}, scoring=span_f1_scorer)
        GridSearchCV(labeler, grid, scoring={"f1": span_f1_scorer, "PER": Scorer("f1", "PER")}, refit="f1")
        cross_val_score(labeler, X, y, scoring=token_accuracy_scorer)

    >>> from partwise import SequenceLabeler
    >>> X, y = [[["a"], ["b"]], [["b"], ["a"]]], [["A", "B"], ["B", "A"]]
    >>> Scorer("accuracy")(SequenceLabeler(max_epochs=5).fit(X, y), X, y)
    1.0
    """

    measure: str
    type: str | None = None

    def __post_init__(self) -> None:
        if self.measure not in MEASURES:
            names = ", ".join(map(repr, MEASURES))
            raise ValueError(f"The 'measure' parameter of Scorer must be one of {names}. Got {self.measure!r} instead.")
        if self.type is not None and self.measure not in SPAN_MEASURES:
            raise ValueError(f"The 'type' parameter of Scorer is for {', '.join(SPAN_MEASURES)}, not for {self.measure}.")

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """The measure of what `estimator` predicts for X, against y (list of label sequences)."""
        counts = sequence_counts(y, estimator.predict(X), spans=self.measure in SPAN_MEASURES)
        if self.type is not None and self.type not in counts.types:
            return 0.0
        return counts.measure(self.measure, self.type)


span_f1_scorer = Scorer("f1")
span_precision_scorer = Scorer("precision")
span_recall_scorer = Scorer("recall")
token_accuracy_scorer = Scorer("accuracy")
sequence_accuracy_scorer = Scorer("sequence_accuracy")
