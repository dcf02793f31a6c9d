"""What can be predicted: one module per structure, each a packed problem and its kernels."""

from partwise.structures import chain_costs as chain_costs  # registers the oracles of chains
from partwise.structures import chain_max_marginals as chain_max_marginals
from partwise.structures import chain_oracles as chain_oracles
from partwise.structures.chain import ChainProblem, PartialChainProblem, chain_problem
from partwise.structures.multiclass import MulticlassProblem, PartialMulticlassProblem, multiclass_problem
from partwise.structures.tree import PartialTreeProblem, TreeProblem, tree_problem

__all__ = [
    "ChainProblem",
    "MulticlassProblem",
    "PartialChainProblem",
    "PartialMulticlassProblem",
    "PartialTreeProblem",
    "TreeProblem",
    "chain_problem",
    "multiclass_problem",
    "tree_problem",
]
