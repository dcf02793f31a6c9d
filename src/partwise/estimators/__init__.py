"""The scikit-learn front ends, and what they are made of. They are loaded when first asked for: scikit-learn takes its time."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from partwise.tasks.alignment.face import Aligner
    from partwise.tasks.classification.estimator import Classifier
    from partwise.tasks.constituency.face import ConstituencyParser
    from partwise.tasks.dependency.face import DependencyParser
    from partwise.tasks.folding.face import RnaFolder
    from partwise.tasks.graphs.face import GraphLabeler
    from partwise.tasks.ranking.face import Ranker
    from partwise.tasks.tagging.face import SequenceLabeler

__all__ = [
    "Aligner",
    "Classifier",
    "ConstituencyParser",
    "DependencyParser",
    "GraphLabeler",
    "Ranker",
    "RnaFolder",
    "SequenceLabeler",
]
_HOME = {
    "Aligner": "aligner",
    "Classifier": "classifier",
    "ConstituencyParser": "constituency",
    "DependencyParser": "dependency",
    "GraphLabeler": "graphs",
    "Ranker": "ranker",
    "RnaFolder": "rna",
    "SequenceLabeler": "sequence",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'partwise.estimators' has no attribute {name!r}")
    return getattr(importlib.import_module(f"partwise.estimators.{_HOME[name]}"), name)
