"""What can be predicted: one package per structure, each a packed problem and its kernels.

Importing a package registers its kernels; a structure is imported when it is first asked for.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {
    "AlignmentProblem": "alignment",
    "PartialAlignmentProblem": "alignment",
    "alignment_problem": "alignment",
    "ChainProblem": "chain",
    "PairChainProblem": "chain",
    "PartialPairChainProblem": "chain",
    "PartialChainProblem": "chain",
    "chain_problem": "chain",
    "Grammar": "constituency",
    "GrammarProblem": "constituency",
    "AnyLabels": "constituency",
    "PartialGrammarProblem": "constituency",
    "grammar_problem": "constituency",
    "make_grammar": "constituency",
    "make_labels": "constituency",
    "PartialTreeProblem": "dependency",
    "TreeProblem": "dependency",
    "tree_problem": "dependency",
    "FoldingProblem": "folding",
    "folding_problem": "folding",
    "MulticlassProblem": "multiclass",
    "PartialMulticlassProblem": "multiclass",
    "multiclass_problem": "multiclass",
    "PairProblem": "ranking",
    "PartialRankingProblem": "ranking",
    "RankingProblem": "ranking",
    "pair_problem": "ranking",
    "ranking_problem": "ranking",
    "PartialSegmentProblem": "semi_markov",
    "SegmentProblem": "semi_markov",
    "segment_problem": "semi_markov",
}

__all__ = sorted(_HOME)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'partwise.structures' has no attribute {name!r}")
    return getattr(importlib.import_module(f"partwise.structures.{_HOME[name]}"), name)
