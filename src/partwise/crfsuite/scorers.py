"""Scorers for `GridSearchCV`, `cross_val_score` and their like: those of `partwise.metrics` under sklearn-crfsuite's names."""

from partwise.metrics import sequence_accuracy_scorer as sequence_accuracy
from partwise.metrics import token_accuracy_scorer as flat_accuracy

__all__ = ["flat_accuracy", "sequence_accuracy"]
