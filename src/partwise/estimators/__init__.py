"""The scikit-learn front ends."""

from partwise.estimators.classifier import Classifier
from partwise.estimators.sequence import SequenceLabeler

__all__ = ["Classifier", "SequenceLabeler"]
