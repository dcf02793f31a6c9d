"""What can be predicted: one module per structure, each a packed problem and its kernels."""

from partwise.structures import chain_oracles as chain_oracles  # registers the oracles of chains
from partwise.structures.chain import ChainProblem, PartialChainProblem, chain_problem
from partwise.structures.multiclass import MulticlassProblem, PartialMulticlassProblem, multiclass_problem

__all__ = [
    "ChainProblem",
    "MulticlassProblem",
    "PartialChainProblem",
    "PartialMulticlassProblem",
    "chain_problem",
    "multiclass_problem",
]
