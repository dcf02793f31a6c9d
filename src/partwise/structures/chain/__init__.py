"""Linear chains: one label per position."""

from partwise.structures.chain import by_cost, kernels, max_marginals, oracles
from partwise.structures.chain.problem import ChainProblem, PartialChainProblem, chain_problem

__all__ = ["ChainProblem", "PartialChainProblem", "by_cost", "chain_problem", "kernels", "max_marginals", "oracles"]
