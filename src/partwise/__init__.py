"""partwise: structured prediction for Python.

A structure says which parts an output is made of; weights score the parts; an oracle finds the best output or the expected one; a
loss compares that with the truth; a solver moves the weights.

    >>> from partwise import Classifier, SequenceLabeler
    >>> labeler = SequenceLabeler(loss="hinge").fit(X, y)      # doctest: +SKIP

Importing this package is quick: numba, scipy and scikit-learn are loaded when something first needs them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from partwise.files.version import __version__

if TYPE_CHECKING:
    from partwise.engine.compilation import cache_stats, interpret
    from partwise.losses.records import LOSSES, Family, Ramp, Rescaled, RescaledRamp, SoftRamp, SquaredHinge, Summed
    from partwise.solvers import CCCP, SOLVERS, Record, Solver, SolveResult, solve
    from partwise.solvers.comparison import compare
    from partwise.structures import ChainProblem, MulticlassProblem, chain_problem, multiclass_problem
    from partwise.structures.factor_graph.model import FactorGraph
    from partwise.structures.factor_graph.packing import graph_families, graph_problem
    from partwise.tasks.alignment.estimator import Aligner
    from partwise.tasks.classification.estimator import Classifier
    from partwise.tasks.common.model_file import ModelFileError, load
    from partwise.tasks.common.packed_corpus import PackedCorpus
    from partwise.tasks.common.packing import pack
    from partwise.tasks.constituency.estimator import ConstituencyParser
    from partwise.tasks.dependency.estimator import DependencyParser
    from partwise.tasks.folding.estimator import RnaFolder
    from partwise.tasks.graphs.estimator import GraphLabeler
    from partwise.tasks.ranking.estimator import Ranker
    from partwise.tasks.segments.estimator import SegmentLabeler
    from partwise.tasks.tagging.estimator import SequenceLabeler
    from partwise.text.columns import ColumnFile, Columns, read_columns
    from partwise.text.template_encoder import TemplateEncoder

#: where a name is, but for the estimators: those the registry of tasks knows
_HOME = {
    "compare": "solvers.comparison",
    "FactorGraph": "structures.factor_graph.model",
    "graph_families": "structures.factor_graph.packing",
    "graph_problem": "structures.factor_graph.packing",
    "ColumnFile": "text.columns",
    "Columns": "text.columns",
    "read_columns": "text.columns",
    "TemplateEncoder": "text.template_encoder",
    "Family": "losses.records",
    "Ramp": "losses.records",
    "Rescaled": "losses.records",
    "RescaledRamp": "losses.records",
    "SoftRamp": "losses.records",
    "SquaredHinge": "losses.records",
    "Summed": "losses.records",
    "CCCP": "solvers",
    "LOSSES": "losses.records",
    "SOLVERS": "solvers",
    "Record": "solvers",
    "SolveResult": "solvers",
    "Solver": "solvers",
    "solve": "solvers",
    "ChainProblem": "structures",
    "MulticlassProblem": "structures",
    "chain_problem": "structures",
    "multiclass_problem": "structures",
    "ModelFileError": "tasks.common.model_file",
    "PackedCorpus": "tasks.common.packed_corpus",
    "pack": "tasks.common.packing",
    "load": "tasks.common.model_file",
    "cache_stats": "engine.compilation",
    "interpret": "engine.compilation",
}

__all__ = [
    "CCCP",
    "LOSSES",
    "SOLVERS",
    "Aligner",
    "ChainProblem",
    "Classifier",
    "ColumnFile",
    "Columns",
    "ConstituencyParser",
    "DependencyParser",
    "FactorGraph",
    "Family",
    "GraphLabeler",
    "ModelFileError",
    "MulticlassProblem",
    "PackedCorpus",
    "Ramp",
    "Ranker",
    "Record",
    "Rescaled",
    "RescaledRamp",
    "RnaFolder",
    "SegmentLabeler",
    "SequenceLabeler",
    "SolveResult",
    "SoftRamp",
    "Solver",
    "SquaredHinge",
    "Summed",
    "TemplateEncoder",
    "__version__",
    "cache_stats",
    "chain_problem",
    "compare",
    "graph_families",
    "graph_problem",
    "interpret",
    "load",
    "multiclass_problem",
    "pack",
    "read_columns",
    "solve",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(importlib.import_module(f"partwise.{_HOME[name]}"), name)
    elif name in __all__:
        from partwise.tasks.common.registry import BY_ESTIMATOR

        value = BY_ESTIMATOR[name].public
    else:
        raise AttributeError(f"module 'partwise' has no attribute {name!r}")
    globals()[name] = value  # the next access is a plain lookup
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
