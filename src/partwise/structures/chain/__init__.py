"""Linear chains: one label per position."""

from partwise.structures.chain import best, by_cost, kernels, sums
from partwise.structures.chain.problem import ChainProblem, PartialChainProblem, chain_problem

__all__ = ["ChainProblem", "PartialChainProblem", "best", "by_cost", "chain_problem", "kernels", "sums"]
